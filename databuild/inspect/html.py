"""Rows as HTML: what the terminal shows, in one page."""

from __future__ import annotations

from pathlib import Path

from databuild.inspect import Document, Look, View
from databuild.inspect.origin import Reason
from databuild.inspect.text import TokenText, runs, spelled
from databuild.page import escape, page, write_page

LEGEND = (
    "<p><mark>Trained text</mark> is what the model learns to write; all other text is only read. "
    '<b class="s">&lt;｜User｜&gt;</b> is a special token; <b class="t">&lt;｜User｜&gt;</b> is ordinary text that only '
    "spells one.</p>"
)


def write_look(answer: Look, folder: Path, path: Path) -> int:
    """Write an answer as a page; gives its size in bytes."""
    return write_page(path, look_page(answer), folder)


def look_page(answer: Look) -> bytes:
    """An answer as a page."""
    name = answer.manifest.name
    parts = [f'<header><h1>{escape(name)}</h1></header>\n<main id="main">', LEGEND]
    parts += [f"<p>Note: {escape(note)}</p>" for note in answer.notes]
    if answer.to_list:
        items = "\n".join(
            f"<li>row {m.row}, tokens {m.start} to {m.stop - 1}: <code>{escape(m.why)}</code></li>"
            for m in answer.matches
        )
        parts.append(f"<h2>{len(answer.matches)} places</h2>\n<ul>{items}</ul>")
    for view in answer.views:
        parts.append(f"<h2>Row {view.row}</h2>\n<p>{escape(facts(view))}</p>")
        parts += documents_html(view, answer.text, show_ids=answer.show_ids)
    rows = ", ".join(str(view.row) for view in answer.views)
    return page(f"{name}, row {rows}", "\n".join([*parts, "</main>"]))


def facts(view: View) -> str:
    """The sums of a row in a line."""
    size, targets = len(view.ids), int(view.mask.sum())
    some = "" if view.num_documents == 1 else "s"
    return f"{size:,} tokens, {targets:,} trained ({targets / size:.1%}), {view.num_documents:,} conversation{some}" + (
        "" if len(view.documents) == view.num_documents else f", {len(view.documents)} shown"
    )


def documents_html(view: View, text: TokenText, *, show_ids: bool = False, most_tokens: int | None = None) -> list[str]:
    """The documents of a row, each a block. Past most_tokens a note stands for the rest."""
    parts, left = [], len(view.ids) if most_tokens is None else most_tokens
    for place, document in enumerate(view.documents):
        if left <= 0:
            rest = len(view.documents) - place
            parts.append(
                f'<p class="dim">{rest:,} more conversation{"s" * (rest != 1)}: databuild inspect shows them.</p>'
            )
            break
        stop = min(document.stop, document.start + left)
        left -= stop - document.start
        body = []
        if view.reasons is not None:
            body += [_reason(view, reason, text) for reason in view.reasons[place] if reason.start < stop]
        elif not show_ids:
            body.append(f'<p class="x">{_text(view, document.start, stop, text)}</p>')
        if show_ids:
            body.append(_ids(view, document.start, stop, text))
        if stop < document.stop:
            body.append(f'<p class="dim">{document.stop - stop:,} more tokens: databuild inspect shows them.</p>')
        parts.append(f'<div class="doc"><p class="h">{escape(_heading(document))}</p>\n' + "\n".join(body) + "</div>")
    return parts


def _heading(document: Document) -> str:
    trained = sum(s.stop - s.start for s in document.spans if s.trained)
    return (
        f"source row {document.source_row}{', continued' if document.continues else ''}, "
        f"tokens {document.start} to {document.stop - 1}, {trained:,} trained"
    )


def _text(view: View, start: int, stop: int, text: TokenText) -> str:
    parts: list[str] = []
    open_mark = False
    for run in runs(view.ids, view.mask, start, stop, text):
        if run.trained != open_mark:
            parts.append("<mark>" if run.trained else "</mark>")
            open_mark = run.trained
        if run.special:
            parts.append(f'<b class="s">{escape(run.text)}</b>')
        else:
            parts += [
                f'<b class="t">{escape(part)}</b>' if spells else escape(part)
                for part, spells in spelled(text, run.text)
            ]
    return "".join(parts) + ("</mark>" if open_mark else "")


def _reason(view: View, reason: Reason, text: TokenText) -> str:
    where = "" if reason.message is None else f"message {reason.message}, "
    last = "" if reason.stop == reason.start + 1 else f" to {reason.stop - 1}"
    return (
        f'<p class="x">{_text(view, reason.start, reason.stop, text)}\n'
        f'<span class="y">{escape(f"{reason.start}{last}: {where}{reason.why}")}</span></p>'
    )


def _ids(view: View, start: int, stop: int, text: TokenText) -> str:
    lines = []
    for place in range(start, stop):
        token, trained = int(view.ids[place]), bool(view.mask[place])
        shown = escape(text.token(token)).replace("\n", "\\n")
        shown = f'<b class="s">{shown}</b>' if text.is_special[token] else shown
        lines.append(
            f"<tr><td>{place}</td><td>{token}</td><td>{'yes' if trained else ''}</td>"
            f'<td class="x">{f"<mark>{shown}</mark>" if trained else shown}</td></tr>'
        )
    heads = "".join(f'<th scope="col">{name}</th>' for name in ("place", "id", "trained", "text"))
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
