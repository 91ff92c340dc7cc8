"""`databuild report`: one HTML file about a build, for people. The same build and options give the same bytes."""

from __future__ import annotations

from pathlib import Path

from databuild.diff import Diff, compare
from databuild.inspect.html import LEGEND, documents_html
from databuild.inspect.html import facts as row_facts
from databuild.inspect.text import TokenText, token_text
from databuild.page import check_page_path, escape, page, write_page
from databuild.report import charts, sections
from databuild.report.facts import Facts, gather, view
from databuild.tokenizer import PinnedTokenizer

#: Bytes that the rows of the browser may take; past it the rest is named, not shown.
ROWS_BYTES = 3_500_000

#: Tokens of one row that are shown.
ROW_TOKENS = 16_384


def write_report(
    folder: Path,
    out: Path,
    *,
    tokenizer: PinnedTokenizer,
    other: Path | None = None,
    seed: int = 0,
    rows_shown: int = 24,
    sources: list[str] | None = None,
) -> int:
    """Write the report of a build; gives its size in bytes. other: a build to compare with. sources: as for --source.

    IntegrityError for a damaged build, UsageError without matplotlib, OutputError if out cannot be written.
    """
    charts.require_matplotlib()
    check_page_path(out, folder)
    data = report_page(
        folder, tokenizer=tokenizer, other=other, seed=seed, rows_shown=rows_shown, sources=sources or []
    )
    return write_page(out, data, folder)


def report_page(
    folder: Path, *, tokenizer: PinnedTokenizer, other: Path | None, seed: int, rows_shown: int, sources: list[str]
) -> bytes:
    """The report as bytes."""
    from databuild.inspect import checked_manifest

    manifest = checked_manifest(folder)
    text = token_text(tokenizer)
    facts = gather(folder, manifest, text, seed=seed, rows_shown=rows_shown, sources=sources)
    found = None if other is None else compare(folder, other)
    parts = [
        sections.what_was_built(facts),
        *([] if found is None else [sections.compared(found, text)]),
        sections.by_source(facts),
        sections.over_rows(facts),
        sections.conversations_section(facts),
        sections.skipped(facts),
        sections.special_text(facts),
        _browser(facts, folder, tokenizer, text, seed),
    ]
    body = "\n".join(
        [
            f"<header><h1>{escape(manifest.name)}</h1>",
            f"<p>{escape(_summary(facts))} <code>{manifest.rows.rows_sha256}</code></p>",
            f"{_contents(found)}</header>",
            '<main id="main">',
            sections.headline(facts),
            *parts,
            "</main>",
        ]
    )
    return page(f"{manifest.name}: report", body)


def _summary(facts: Facts) -> str:
    m = facts.manifest
    source = m.sources[0].name or m.sources[0].kind
    return (
        f"Training rows for DeepSeek-V4 from {source}, loss mask {m.spec['loss_mask_type']}, seed {m.spec['seed']}. "
        "rows_sha256"
    )


def _contents(found: Diff | None) -> str:
    names = [
        ("built", "What was built"),
        *([] if found is None else [("compare", "Compared")]),
        ("sources", "Sources"),
        ("rows", "Rows"),
        ("conversations", "Conversations"),
        ("skipped", "Skipped and noted"),
        ("special", "Special text"),
        ("browser", "Rows to look at"),
    ]
    items = "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in names)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _browser(facts: Facts, folder: Path, tokenizer: PinnedTokenizer, text: TokenText, seed: int) -> str:
    """Rows to open: each folded, with its numbers in the fold."""
    size, parts, left = 0, [], list(facts.chosen)
    while left:
        chosen = left[0]
        shown = view(folder, facts.manifest, chosen.row, tokenizer)
        inside = "\n".join(documents_html(shown, text, most_tokens=ROW_TOKENS))
        block = (
            f'<details class="row" id="row-{chosen.row}"><summary>Row {chosen.row}: {escape(row_facts(shown))} '
            f'<span class="dim">({escape(", ".join(chosen.why))})</span></summary>\n{inside}</details>'
        )
        if size + len(block.encode("utf-8", "backslashreplace")) > ROWS_BYTES:
            break
        size += len(block.encode("utf-8", "backslashreplace"))
        parts.append(block)
        left.pop(0)
    if left:
        numbers = ", ".join(str(chosen.row) for chosen in left)
        parts.append(f"<p>Too large to be shown here: rows {numbers}. <code>databuild inspect DIR --row N</code></p>")
    about = (
        f"<p>{len(facts.chosen) - len(left)} of {facts.manifest.rows.rows:,} rows: the lowest and the highest supervised "
        f"ratio, those with the shortest and the longest conversations, and some drawn at random (seed {seed}).</p>"
    )
    return sections.section("browser", "Rows to look at", about + LEGEND + "\n".join(parts))
