"""One self-contained HTML page: everything inline, no script, no request, every text escaped. Pure but for `write_page`."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from databuild.errors import OutputError

#: The first bytes of every page: only a file that begins so is ever replaced.
MARK = "<!doctype html>\n<!-- written by databuild -->\n"

# Nothing may be loaded and nothing may run: whatever a text of the data says, it stays text.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#f3f5f7;--line:#c9d1d9;--dim:#545d68;--link:#0550ae;
--trained:#d2f4dc;--trained-line:#17713a;--special:#5b2c9f;--spelled:#b3261e;--c1:#1f6feb;--c2:#c2570c}
@media (prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--soft:#161b22;--line:#3d444d;--dim:#9aa4af;
--link:#79b8ff;--trained:#12391f;--trained-line:#56d364;--special:#d2a8ff;--spelled:#ff8b82;--c1:#58a6ff;--c2:#f0883e}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem;-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:64rem;padding:1rem 1.25rem 4rem;background:var(--paper);color:var(--ink);
overflow-wrap:break-word;font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
h1{font-size:1.6rem;line-height:1.25;margin:1rem 0 .5rem}h1,header p{overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.5rem 0 .75rem;padding-top:.75rem;border-top:1px solid var(--line)}
h3{font-size:1.05rem;margin:1.5rem 0 .5rem}
a{color:var(--link)}
a:focus-visible,summary:focus-visible,[tabindex]:focus-visible{outline:3px solid var(--link);outline-offset:2px;
border-radius:3px}
.skip{position:absolute;left:-100rem}.skip:focus{left:1rem;top:.5rem;background:var(--paper);padding:.5rem;z-index:9}
nav ul{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;list-style:none;padding:0;margin:.5rem 0}
.facts{display:grid;grid-template-columns:repeat(4,1fr);gap:.75rem;margin:1rem 0;padding:0}
.facts div{background:var(--soft);border-radius:.5rem;padding:.6rem .8rem}
.facts dt{color:var(--dim);font-size:.85rem}.facts dd{margin:0;font-size:1.25rem;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto;margin:.5rem 0}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--dim);padding:.25rem 0}
th,td{padding:.3rem .8rem .3rem 0;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
code,pre,.x{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:.85rem}
code{overflow-wrap:anywhere}
pre{background:var(--soft);padding:.75rem;border-radius:.5rem;overflow-x:auto}
figure{margin:1rem 0;min-width:0}figure svg{display:block;width:100%;height:auto;max-width:36rem}
figure svg *{stroke-linejoin:round;stroke-linecap:butt}figure svg text{font-family:inherit}
figcaption{color:var(--dim);font-size:.9rem;max-width:36rem}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,26rem),1fr));gap:0 2rem}
details{margin:.35rem 0}summary{cursor:pointer;padding:.3rem 0}
details.row{border:1px solid var(--line);border-radius:.5rem;padding:.1rem .75rem}
details.row[open]{padding-bottom:.75rem}
.doc{border-left:3px solid var(--line);padding-left:.75rem;margin:1rem 0}
.doc>.h{color:var(--dim);font-size:.85rem;margin:0 0 .25rem}
.x{white-space:pre-wrap;overflow-wrap:anywhere;margin:0}.x+.x{margin-top:.5rem}li{margin:.4rem 0}
mark{background:var(--trained);color:inherit;text-decoration:underline;text-decoration-color:var(--trained-line);
text-underline-offset:3px;border-radius:2px}
mark::before{content:" [trained: "}mark::after{content:"] "}
mark::before,mark::after,.v{clip-path:inset(50%);height:1px;width:1px;overflow:hidden;position:absolute;white-space:nowrap}
b.s{color:var(--special);font-weight:600}
b.t{color:var(--spelled);font-weight:600;text-decoration:underline wavy}
i.e{font-style:normal;color:var(--dim)}
.y{color:var(--dim);font:.8rem/1.4 system-ui,sans-serif}
.dim{color:var(--dim)}
@media print{details.row{border:0}mark{outline:1px solid}}
@media (max-width:40rem){.facts{grid-template-columns:repeat(2,1fr);gap:.5rem}
body{padding:.5rem .8rem 3rem}h1{font-size:1.3rem}th,td{padding-right:.6rem}}
"""


def escape(text: object) -> str:
    """Text as HTML; characters that a reader cannot see, or that would turn the page around, as escapes."""
    shown = "".join(
        c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in str(text)
    )
    return html.escape(shown, quote=True)


def table(caption: str, heads: Sequence[str], lines: Sequence[Sequence[object]], *, numbers: int = 0) -> str:
    """A table; the last `numbers` columns hold numbers. Cells are escaped, but for those of class Html."""

    def cell(tag: str, place: int, value: object) -> str:
        scope = ' scope="col"' if tag == "th" else ""
        number = ' class="n"' if place >= len(heads) - numbers else ""
        return f"<{tag}{scope}{number}>{value if isinstance(value, Html) else escape(_number(value))}</{tag}>"

    head = "".join(cell("th", i, name) for i, name in enumerate(heads))
    body = "\n".join("<tr>" + "".join(cell("td", i, v) for i, v in enumerate(line)) + "</tr>" for line in lines)
    name = escape(caption)
    # A table that is wider than the screen scrolls by itself, with the keyboard as well.
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{name}"><table><caption>{name}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def _number(value: object) -> object:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value


def page(title: str, body: str) -> bytes:
    """A whole page in UTF-8."""
    return (
        MARK
        + f"""<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
{body}
</body>
</html>
"""
    ).encode("utf-8", "backslashreplace")


def check_page_path(path: Path, build: Path) -> None:
    """OutputError if a page may not be written there: inside a build, or over a file that is not a page of ours."""
    if path.resolve().is_relative_to(build.resolve()):
        raise OutputError(
            "a page inside a build would damage it", where=str(path), next_step="choose a place outside of the build"
        )
    if not os.path.lexists(path):
        return
    try:
        with open(path, "rb") as file:
            ours = file.read(len(MARK)) == MARK.encode()
    except OSError:
        ours = False
    if not ours:
        raise OutputError(
            "there is something else, and it is never replaced",
            where=str(path),
            expected="no file, or a page of databuild",
            next_step="choose another name",
        )


def write_page(path: Path, data: bytes, build: Path) -> int:
    """Write a page in one step; gives its size in bytes. OutputError if it may not or cannot be written."""
    check_page_path(path, build)
    temporary = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise OutputError(
            "cannot write", where=str(path), found=error.strerror, next_step="choose another place"
        ) from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
    return len(data)
