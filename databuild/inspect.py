"""One row, for a person or a program: its conversations, their text, and which of it is trained."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from databuild.errors import UsageError
from databuild.pack import Rows
from databuild.rows import ROWS_PER_GROUP, from_table, select
from databuild.tokenizer import PinnedTokenizer, load_tokenizer
from databuild.verify import load_manifest, row_paths, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Tokens start to stop of a row that are alike: all trained or none. text is what they decode to."""

    start: int
    stop: int
    trained: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The part of one conversation that lies in a row."""

    source_row: int
    start: int
    stop: int
    continues: bool
    spans: list[Span]


def load_row(folder: Path, row: int) -> tuple[Rows, dict[str, Any]]:
    """(that row alone, the summary of its build). The files' digests are checked first."""
    verify(folder, level=1)
    manifest = load_manifest(folder)
    if not 0 <= row < manifest.rows.rows:
        raise UsageError(f"there is no row {row}", where=str(folder), expected=f"0 to {manifest.rows.rows - 1}")
    first = 0
    for path, file in zip(row_paths(folder, manifest), manifest.files, strict=True):
        if row < first + file.rows:
            import pyarrow.parquet as pq

            group = pq.ParquetFile(path).read_row_group((row - first) // ROWS_PER_GROUP)
            at = (row - first) % ROWS_PER_GROUP
            rows = select(from_table(group, manifest.rows.row_tokens, path.name), at, at + 1)
            return rows, {"name": manifest.name, "rows": manifest.rows.rows, "row_tokens": manifest.rows.row_tokens}
        first += file.rows
    raise AssertionError("the manifest's files hold its rows")


def documents(rows: Rows, tokenizer: PinnedTokenizer) -> list[Document]:
    """The conversations of a single row."""
    ids, mask = rows.input_ids[0], rows.loss_mask[0]
    starts = rows.doc_starts.tolist()
    found = []
    for start, stop, source_row in zip(starts, [*starts[1:], len(ids)], rows.doc_rows.tolist(), strict=True):
        edges = [start, *(np.flatnonzero(np.diff(mask[start:stop])) + start + 1).tolist(), stop]
        spans = [
            Span(
                start=a,
                stop=b,
                trained=bool(mask[a]),
                text=tokenizer.full_vocabulary.decode(ids[a:b].tolist()),
            )
            for a, b in pairwise(edges)
            if a < b
        ]
        continues = start == 0 and ids[0] != 0
        found.append(Document(source_row=source_row, start=start, stop=stop, continues=continues, spans=spans))
    return found


def as_json(folder: Path, row: int) -> dict[str, Any]:
    """A row as one JSON object: ids and mask as they are stored, and the decoded documents."""
    rows, summary = load_row(folder, row)
    return {
        **summary,
        "row": row,
        "num_targets": int(rows.loss_mask.sum()),
        "documents": [
            {
                "source_row": d.source_row,
                "start": d.start,
                "stop": d.stop,
                "spans": [{"start": s.start, "stop": s.stop, "trained": s.trained, "text": s.text} for s in d.spans],
            }
            for d in documents(rows, load_tokenizer())
        ],
        "input_ids": rows.input_ids[0].tolist(),
        "loss_mask": rows.loss_mask[0].tolist(),
    }


def show(folder: Path, row: int) -> None:
    """Print a row: trained text in green and underlined, the rest as it is, a rule before each conversation."""
    import sys

    from rich.console import Console
    from rich.text import Text

    rows, summary = load_row(folder, row)

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            raise  # `| head` has what it wanted; the command line ends quietly

    console = Terminal(highlight=False, soft_wrap=not sys.stdout.isatty())
    targets = int(rows.loss_mask.sum())
    console.print(
        Text(
            f"{summary['name']}, row {row} of {summary['rows']:,}: {summary['row_tokens']:,} tokens, "
            f"{targets:,} trained ({targets / summary['row_tokens']:.1%})"
        )
    )
    colours = console.is_terminal and console.color_system is not None and not console.no_color
    for document in documents(rows, load_tokenizer()):
        trained = sum(s.stop - s.start for s in document.spans if s.trained)
        console.print(
            Text(
                f"── source row {document.source_row}"
                f"{', continued' if document.continues else ''}, tokens {document.start} to {document.stop - 1}, "
                f"{trained:,} trained ──",
                style="bold",
            )
        )
        text = Text()
        for span in document.spans:
            shown = printable(span.text)
            # Where there is no colour the marks say it.
            marked = shown if colours or not span.trained else f"⟦{shown}⟧"
            text.append(marked, style="green underline" if span.trained else "")
        console.print(text)


def printable(text: str) -> str:
    """Control characters but the line ends as escapes: a terminal must show data, not obey it."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
