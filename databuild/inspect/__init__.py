"""Rows, for a person or a program: their conversations, their text, and which of it is trained.

find.py chooses rows, text.py decodes them, origin.py says why a token is trained; terminal.py and html.py show them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.config import BuildSpec
from databuild.errors import UsageError
from databuild.inspect.find import Match, Worst, by_doc, by_text, by_worst
from databuild.inspect.origin import Reason, Tracer, opened_source, source_missing
from databuild.inspect.text import TokenText, printable, token_text
from databuild.pack import Rows
from databuild.rows import ROWS_PER_GROUP, from_table, select
from databuild.tokenizer import PinnedTokenizer, load_tokenizer
from databuild.verify import load_manifest, row_paths, verify
from manifests.model import Manifest

__all__ = [
    "Document",
    "Question",
    "Span",
    "View",
    "as_json",
    "documents",
    "load_row",
    "load_tokenizer",
    "look",
    "printable",
    "show",
]

#: A conversation may span many rows; of so many its parts are shown.
MAX_PARTS = 16


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What to look at, at most one of row, doc (a source row), find (text) and worst; and how.

    why: say why each token is trained. sources: the values of --source, for it.
    """

    row: int | None = None
    doc: int | None = None
    find: str | None = None
    worst: Worst | None = None
    ids: bool = False
    why: bool = False
    sources: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A row to show: ids int32[R], mask uint8[R], the documents to show of it, and the reasons of each if asked for."""

    row: int
    ids: npt.NDArray[np.int32]
    mask: npt.NDArray[np.uint8]
    documents: list[Document]
    num_documents: int
    reasons: list[list[Reason]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The answer to a question.

    matches: what was found; to_list: whether more was found than is shown. notes: what a reader must know, such as a
    source that is not at hand.
    """

    manifest: Manifest
    views: list[View]
    matches: list[Match]
    to_list: bool
    text: TokenText
    show_ids: bool
    notes: list[str] = field(default_factory=list)


def load_row(folder: Path, row: int) -> tuple[Rows, dict[str, Any]]:
    """(that row alone, the summary of its build). The files' digests are checked first."""
    manifest = checked_manifest(folder)
    return read_row(folder, manifest, row), _summary(manifest)


def checked_manifest(folder: Path) -> Manifest:
    """The manifest of a build whose files' digests are right."""
    verify(folder, level=1)
    return load_manifest(folder)


def read_row(folder: Path, manifest: Manifest, row: int) -> Rows:
    """One row of a build whose files have been checked; UsageError if there is none of that number."""
    if not 0 <= row < manifest.rows.rows:
        raise UsageError(f"there is no row {row}", where=str(folder), expected=f"0 to {manifest.rows.rows - 1}")
    first = 0
    for path, file in zip(row_paths(folder, manifest), manifest.files, strict=True):
        if row < first + file.rows:
            import pyarrow.parquet as pq

            group = pq.ParquetFile(path).read_row_group((row - first) // ROWS_PER_GROUP)
            at = (row - first) % ROWS_PER_GROUP
            return select(from_table(group, manifest.rows.row_tokens, path.name), at, at + 1)
        first += file.rows
    raise AssertionError("the manifest's files hold its rows")


def _summary(manifest: Manifest) -> dict[str, Any]:
    return {"name": manifest.name, "rows": manifest.rows.rows, "row_tokens": manifest.rows.row_tokens}


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


def look(folder: Path, question: Question) -> Look:
    """Answer a question about a build. UsageError if there is no such row, conversation or text."""
    asked = [name for name in ("row", "doc", "find", "worst") if getattr(question, name) is not None]
    if len(asked) > 1:
        raise UsageError(
            f"--{asked[0]} and --{asked[1]} are two questions", expected="one of --row, --doc, --find, --worst"
        )
    if question.sources and not question.why:
        raise UsageError("--source is for --why", next_step="add --why, or leave --source out")
    manifest = checked_manifest(folder)
    tokenizer = load_tokenizer()
    text = token_text(tokenizer)
    matches: list[Match] = []
    if question.doc is not None:
        matches = by_doc(folder, manifest, question.doc)
    elif question.find is not None:
        matches = by_text(folder, manifest, question.find, text)
    elif question.worst is not None:
        matches = by_worst(folder, manifest, question.worst)
    notes = []
    if question.doc is not None:
        numbers = list(dict.fromkeys(match.row for match in matches))
        if len(numbers) > MAX_PARTS:
            notes.append(f"the conversation lies in {len(numbers):,} rows; the first {MAX_PARTS} are shown")
        numbers = numbers[:MAX_PARTS]
    else:
        numbers = [matches[0].row] if matches else [question.row or 0]
    with contextlib.ExitStack() as stack:
        tracer = None
        if question.why:
            missing = source_missing(manifest, question.sources)
            if missing is None:
                source = stack.enter_context(opened_source(manifest, question.sources))
                tracer = Tracer(source, BuildSpec.model_validate(manifest.spec), tokenizer)
            else:
                notes.append(f"no reasons, the mask alone: {missing}")
        views = [_view(folder, manifest, number, question.doc, tokenizer, tracer) for number in numbers]
    return Look(
        manifest=manifest,
        views=views,
        matches=matches,
        to_list=len(matches) > 1 and question.doc is None,
        text=text,
        show_ids=question.ids,
        notes=notes,
    )


def _view(
    folder: Path, manifest: Manifest, number: int, only: int | None, tokenizer: PinnedTokenizer, tracer: Tracer | None
) -> View:
    rows = read_row(folder, manifest, number)
    ids, mask = rows.input_ids[0], rows.loss_mask[0]
    found = documents(rows, tokenizer)
    chosen = [d for d in found if only is None or d.source_row == only]
    reasons = None
    if tracer is not None:
        reasons = [
            tracer.trace(d.source_row, d.start, ids[d.start : d.stop], mask[d.start : d.stop], f"row {number}")
            for d in chosen
        ]
    return View(row=number, ids=ids, mask=mask, documents=chosen, num_documents=len(found), reasons=reasons)


def as_json(folder: Path, question: Question | int) -> dict[str, Any]:
    """A row as one JSON object: ids and mask as they are stored, and the decoded documents. A number is that row.

    A question that searches adds `matches`; --why adds `reasons` to each document, or `notes` if it cannot. With
    --doc the object is that of its first row.
    """
    answer = look(folder, Question(row=question) if isinstance(question, int) else question)
    view = answer.views[0]
    result: dict[str, Any] = {
        **_summary(answer.manifest),
        "row": view.row,
        "num_targets": int(view.mask.sum()),
        "documents": [
            {
                "source_row": d.source_row,
                "start": d.start,
                "stop": d.stop,
                "spans": [{"start": s.start, "stop": s.stop, "trained": s.trained, "text": s.text} for s in d.spans],
            }
            for d in view.documents
        ],
        "input_ids": view.ids.tolist(),
        "loss_mask": view.mask.tolist(),
    }
    if view.reasons is not None:
        for shown, reasons in zip(result["documents"], view.reasons, strict=True):
            shown["reasons"] = [
                {name: getattr(r, name) for name in ("start", "stop", "trained", "kind", "message", "why")}
                for r in reasons
            ]
    if answer.matches:
        result["matches"] = [{"row": m.row, "start": m.start, "stop": m.stop, "why": m.why} for m in answer.matches]
    if answer.notes:
        result["notes"] = answer.notes
    return result


def show(folder: Path, question: Question) -> None:
    """Print the answer to a question."""
    from databuild.inspect.terminal import print_look

    print_look(look(folder, question))
