"""Which rows to look at: by number, by conversation, by text, or the most unusual ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from databuild.errors import UsageError
from databuild.inspect.text import TokenText
from databuild.rows import read_groups
from databuild.survey import Survey, conversations, survey
from databuild.verify import row_paths
from manifests.model import Manifest

Worst = Literal["ratio", "docs", "long"]

#: How many rows a question lists; the first is shown.
LISTED = 20

#: Bytes of text shown on both sides of a text that was found.
_AROUND = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A place in a build: tokens start to stop of a row, and in words why it is one."""

    row: int
    start: int
    stop: int
    why: str


def by_doc(folder: Path, manifest: Manifest, source_row: int) -> list[Match]:
    """Every part of one conversation, in order. UsageError if no row holds it."""
    of = survey(folder, manifest)
    found = [
        Match(row=row, start=start, stop=start + tokens, why=f"{tokens:,} tokens of source row {source_row}")
        for row, start, tokens in zip(*_parts(of, source_row), strict=True)
    ]
    if not found:
        total = sum(source.rows for source in manifest.sources)
        raise UsageError(
            f"no row holds a conversation of source row {source_row}",
            expected=f"a source row from 0 to {total - 1} that was used"
            if source_row >= total
            else "a conversation that was used; this one was skipped, not read, or lies in the tail or in a row "
            "without targets",
        )
    return found


def _parts(of: Survey, source_row: int) -> tuple[list[int], list[int], list[int]]:
    at = np.flatnonzero(of.source_row == source_row)
    return of.doc_row[at].tolist(), of.doc_start[at].tolist(), of.doc_tokens[at].tolist()


def by_worst(folder: Path, manifest: Manifest, what: Worst) -> list[Match]:
    """The LISTED most unusual rows: lowest supervised ratio, most documents, or where the longest conversations begin."""
    of = survey(folder, manifest)
    size = of.row_tokens
    if what == "long":
        found = conversations(of)
        order = np.lexsort((found.source_row, -found.tokens))[:LISTED]
        return [
            Match(
                row=int(of.doc_row[found.first[c]]),
                start=int(of.doc_start[found.first[c]]),
                stop=int(of.doc_start[found.first[c]] + of.doc_tokens[found.first[c]]),
                why=f"source row {found.source_row[c]}: {found.tokens[c]:,} tokens in {found.rows[c]:,} "
                f"row{'' if found.rows[c] == 1 else 's'}",
            )
            for c in order.tolist()
        ]
    if what == "docs":
        order = np.lexsort((np.arange(len(of.doc_counts)), -of.doc_counts))[:LISTED]
        return [Match(row=r, start=0, stop=size, why=f"{of.doc_counts[r]:,} documents") for r in order.tolist()]
    order = np.lexsort((np.arange(len(of.num_targets)), of.num_targets))[:LISTED]
    return [
        Match(row=r, start=0, stop=size, why=f"{of.num_targets[r]:,} trained ({of.ratios[r]:.1%})")
        for r in order.tolist()
    ]


def by_text(folder: Path, manifest: Manifest, wanted: str, text: TokenText) -> list[Match]:
    """The first LISTED places whose text holds `wanted`, special tokens spelled out; a text over a row's edge is not seen.

    UsageError if there is none.
    """
    found: list[Match] = []
    for match in _places(folder, manifest, _encoded(wanted), text):
        found.append(match)
        if len(found) == LISTED:
            break
    if not found:
        raise UsageError(f"no row holds the text {wanted[:60]!a}", where=str(folder))
    return found


def _encoded(wanted: str) -> bytes:
    try:
        needle = wanted.encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError("--find is not text", found=ascii(wanted)) from error
    if not needle:
        raise UsageError("--find looks for nothing", expected="some text")
    return needle


def _places(folder: Path, manifest: Manifest, needle: bytes, text: TokenText) -> Iterator[Match]:
    first = 0
    for _, rows, _ in read_groups(row_paths(folder, manifest), manifest.rows.row_tokens):
        for i in range(len(rows)):
            data = text.bytes_of(rows.input_ids[i])
            at = data.find(needle)
            if at < 0:
                continue
            ends = text.ends(rows.input_ids[i])
            while at >= 0:
                start = int(np.searchsorted(ends, at, side="right"))
                stop = int(np.searchsorted(ends, at + len(needle) - 1, side="right")) + 1
                around = data[max(0, at - _AROUND) : at + len(needle) + _AROUND].decode("utf-8", "ignore")
                yield Match(row=first + i, start=start, stop=stop, why=around)
                at = data.find(needle, at + len(needle))
        first += len(rows)
