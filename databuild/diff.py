"""Two builds side by side: what their manifests and their rows do not share.

Rows are read in lockstep, a row group at a time, and compared as they are. Where they differ in place, their digests tell
whether the same rows stand elsewhere. Memory: some bytes for each row and each document, and two row groups.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from databuild.pack import Rows
from databuild.reading.groups import proven_groups
from databuild.rows import canonical_bytes, damaged, read_groups, select
from databuild.survey import Conversations, Survey, conversations, survey
from databuild.verify import load_manifest, row_paths, verify
from manifests.model import Manifest

#: How many rows or conversations a list names; the counts are of all.
LISTED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of the first difference: the row alone (None past its end), and the source row at the token."""

    rows: Rows | None
    source_row: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """The first row that differs, and its first token that does.

    what: "token" or "mask"; where both are equal, "boundary" or "conversation" (doc_rows); "end" where one of the two
    builds has no such row.
    """

    row: int
    token: int
    what: str
    a: Side
    b: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDiff:
    """How rows differ, their documents included.

    differ: numbers that hold another row, or none, on the other side. moved: (row of A, row of B) of rows that stand
    elsewhere. only_a and only_b: rows that the other side lacks. Lists name the first LISTED.
    """

    num_differ: int
    num_moved: int
    num_only_a: int
    num_only_b: int
    moved: list[tuple[int, int]]
    only_a: list[int]
    only_b: list[int]
    first: First

    @property
    def other_order(self) -> bool:
        """Whether both hold the same rows, in another order."""
        return self.num_only_a == self.num_only_b == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationsDiff:
    """Conversations by source row: in one build only, or at another place (row, token) in the other."""

    num_only_a: int
    num_only_b: int
    num_moved: int
    only_a: list[int]
    only_b: list[int]
    moved: list[tuple[int, tuple[int, int], tuple[int, int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What differs between builds a and b.

    manifest: dotted name -> (in a, in b). rows None: they are equal, or of other lengths and not compared (then
    `manifest` has row_tokens). conversations None: of other sources. files_differ: the parquet bytes do.
    """

    a: Manifest
    b: Manifest
    manifest: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    rows: RowsDiff | None = None
    conversations: ConversationsDiff | None = None
    files_differ: bool = False
    names_differ: bool = False

    @property
    def equal(self) -> bool:
        """Same spec, source, tokenizer, counts and rows. The name and the parquet bytes are no part of it."""
        return not self.manifest and self.rows is None


def compare(a: Path, b: Path) -> Diff:
    """Compare two builds. IntegrityError if one of them is not what its manifest says (levels 1 and 2, ids aside)."""
    for folder in (a, b):
        verify(folder, level=1)
    first, second = load_manifest(a), load_manifest(b)
    rows = None
    if first.rows.row_tokens == second.rows.row_tokens:
        rows = _compare_rows(a, first, b, second)
    else:
        for folder, manifest in ((a, first), (b, second)):
            for _ in _checked(folder, manifest):
                pass
    same_source = [s.identity_sha256 for s in first.sources] == [s.identity_sha256 for s in second.sources]
    return Diff(
        a=first,
        b=second,
        manifest=_manifest(first, second),
        rows=rows,
        conversations=_compare_conversations(survey(a, first), survey(b, second)) if same_source else None,
        files_differ=first.files != second.files,
        names_differ=first.name != second.name,
    )


def _manifest(a: Manifest, b: Manifest) -> dict[str, tuple[Any, Any]]:
    """The fields that differ, by dotted name. Names, file digests and digests of the manifest itself follow from others."""
    left: dict[str, Any] = {}
    right: dict[str, Any] = {}
    for manifest, flat in ((a, left), (b, right)):
        data = manifest.model_dump()
        for part in ("spec", "tokenizer", "counts", "rows"):
            _flatten(part, data[part], flat)
        for number, source in enumerate(data["sources"]):
            _flatten(f"sources.{number}", {k: v for k, v in source.items() if k != "files"}, flat)
            for file in source["files"]:
                flat[f"sources.{number}.files.{file['name']}"] = f"{file['bytes']} bytes, sha256 {file['sha256']}"
    missing = object()
    return {
        name: (left.get(name), right.get(name))
        for name in dict.fromkeys([*left, *right])
        if left.get(name, missing) != right.get(name, missing)
    }


def _flatten(name: str, value: Any, into: dict[str, Any]) -> None:
    if isinstance(value, dict) and value:
        for key in sorted(value):
            _flatten(f"{name}.{key}", value[key], into)
    elif value != {}:
        into[name] = value


def _checked(folder: Path, manifest: Manifest) -> Iterator[tuple[Rows, npt.NDArray[np.uint64]]]:
    """(rows, their xxh3) of each row group, digests and sums proven on the way."""
    for rows in proven_groups(row_paths(folder, manifest), manifest):
        if (np.diff(rows.doc_offsets) < 1).any():
            raise damaged("a row names no document", str(folder))
        canonical = canonical_bytes(rows.input_ids, rows.loss_mask)
        yield rows, np.array([xxhash.xxh3_64_intdigest(row) for row in canonical], np.uint64)


def _lockstep(
    a: Iterator[tuple[Rows, npt.NDArray[np.uint64]]], b: Iterator[tuple[Rows, npt.NDArray[np.uint64]]]
) -> Iterator[tuple[Rows | None, Rows | None, npt.NDArray[np.uint64], npt.NDArray[np.uint64]]]:
    """Equal numbers of rows of both sides, whatever their row groups are; then what is left of the longer one."""
    none = np.zeros(0, np.uint64)
    left, right = next(a, None), next(b, None)
    while left is not None and right is not None:
        num = min(len(left[0]), len(right[0]))
        yield select(left[0], 0, num), select(right[0], 0, num), left[1][:num], right[1][:num]
        left, right = (
            next(side, None) if len(has[0]) == num else (select(has[0], num, len(has[0])), has[1][num:])
            for side, has in ((a, left), (b, right))
        )
    while left is not None:
        yield left[0], None, left[1], none
        left = next(a, None)
    while right is not None:
        yield None, right[0], none, right[1]
        right = next(b, None)


def _compare_rows(a: Path, first: Manifest, b: Path, second: Manifest) -> RowsDiff | None:
    hashes_a: list[npt.NDArray[np.uint64]] = []
    hashes_b: list[npt.NDArray[np.uint64]] = []
    differ: list[int] = []
    found: First | None = None
    base = 0
    for rows, others, hash_a, hash_b in _lockstep(_checked(a, first), _checked(b, second)):
        hashes_a.append(hash_a)
        hashes_b.append(hash_b)
        num = max(len(hash_a), len(hash_b))
        here = _differing(rows, others) if rows is not None and others is not None else list(range(num))
        if here and found is None:
            found = _first(base + here[0], here[0], rows, others)
        differ += [base + i for i in here]
        base += num
    if found is None:
        return None
    return _matched(differ, found, (a, first, np.concatenate(hashes_a)), (b, second, np.concatenate(hashes_b)))


def _differing(rows: Rows, others: Rows) -> list[int]:
    """Places where two equally long parts do not hold the same row."""
    differs = (rows.input_ids != others.input_ids).any(1) | (rows.loss_mask != others.loss_mask).any(1)
    if not (
        np.array_equal(rows.doc_offsets, others.doc_offsets)
        and np.array_equal(rows.doc_starts, others.doc_starts)
        and np.array_equal(rows.doc_rows, others.doc_rows)
    ):
        for i in range(len(rows)):
            mine, theirs = select(rows, i, i + 1), select(others, i, i + 1)
            differs[i] |= not (
                np.array_equal(mine.doc_starts, theirs.doc_starts) and np.array_equal(mine.doc_rows, theirs.doc_rows)
            )
    return [int(i) for i in np.flatnonzero(differs)]


def _first(number: int, place: int, rows: Rows | None, others: Rows | None) -> First:
    mine = None if rows is None else select(rows, place, place + 1)
    theirs = None if others is None else select(others, place, place + 1)
    token, what = 0, "end"
    if mine is not None and theirs is not None:
        token, what = _first_token(mine, theirs)
    return First(row=number, token=token, what=what, a=_side(mine, token), b=_side(theirs, token))


def _first_token(mine: Rows, theirs: Rows) -> tuple[int, str]:
    """(token, what) of the first difference of two rows that differ: of ids and mask first, else of their documents."""
    ids, mask = mine.input_ids[0] != theirs.input_ids[0], mine.loss_mask[0] != theirs.loss_mask[0]
    if (ids | mask).any():
        token = int(np.flatnonzero(ids | mask)[0])
        return token, "token" if ids[token] else "mask"
    for what, differs in (
        ("boundary", _starts(mine) != _starts(theirs)),
        ("conversation", _owners(mine) != _owners(theirs)),
    ):
        if differs.any():
            return int(np.flatnonzero(differs)[0]), what
    raise AssertionError("two rows that differ do so in something")


def _starts(row: Rows) -> npt.NDArray[np.bool_]:
    """bool[R]: whether a document begins at each token."""
    starts = np.zeros(row.input_ids.shape[1], bool)
    starts[row.doc_starts] = True
    return starts


def _owners(row: Rows) -> npt.NDArray[np.int64]:
    """int64[R]: the source row of each token."""
    place = np.searchsorted(row.doc_starts, np.arange(row.input_ids.shape[1]), side="right") - 1
    result: npt.NDArray[np.int64] = row.doc_rows[np.maximum(place, 0)]
    return result


def _side(row: Rows | None, token: int) -> Side:
    return Side(rows=row, source_row=None if row is None else int(_owners(row)[token]))


def _matched(
    differ: list[int],
    first: First,
    a: tuple[Path, Manifest, npt.NDArray[np.uint64]],
    b: tuple[Path, Manifest, npt.NDArray[np.uint64]],
) -> RowsDiff:
    """Which of the differing rows stand elsewhere on the other side. The stored xxh3 proposes, sha256 decides."""
    rows_a, rows_b = ([number for number in differ if number < len(side[2])] for side in (a, b))
    shared = np.intersect1d(a[2][rows_a], b[2][rows_b])
    sums_a, sums_b = (
        _sums(side[0], side[1], {n for n in numbers if side[2][n] in shared_set})
        for side, numbers, shared_set in ((a, rows_a, set(shared)), (b, rows_b, set(shared)))
    )
    places: dict[bytes, list[int]] = {}
    for number in sorted(sums_b, reverse=True):
        places.setdefault(sums_b[number], []).append(number)
    moved = [(n, places[sums_a[n]].pop()) for n in sorted(sums_a) if places.get(sums_a[n])]
    gone, come = ({pair[side] for pair in moved} for side in (0, 1))
    only_a, only_b = [n for n in rows_a if n not in gone], [n for n in rows_b if n not in come]
    return RowsDiff(
        num_differ=len(differ),
        num_moved=len(moved),
        num_only_a=len(only_a),
        num_only_b=len(only_b),
        moved=moved[:LISTED],
        only_a=only_a[:LISTED],
        only_b=only_b[:LISTED],
        first=first,
    )


def _sums(folder: Path, manifest: Manifest, wanted: set[int]) -> dict[int, bytes]:
    """sha256 of the whole of these rows, documents included."""
    found: dict[int, bytes] = {}
    base = 0
    for _, rows, _ in read_groups(row_paths(folder, manifest), manifest.rows.row_tokens) if wanted else ():
        for i in range(len(rows)):
            if base + i in wanted:
                row = select(rows, i, i + 1)
                digest = hashlib.sha256(canonical_bytes(row.input_ids, row.loss_mask).data)
                digest.update(row.doc_starts.astype("<i4").tobytes() + row.doc_rows.astype("<i8").tobytes())
                found[base + i] = digest.digest()
        base += len(rows)
    return found


def _compare_conversations(a: Survey, b: Survey) -> ConversationsDiff:
    left, right = conversations(a), conversations(b)
    only_a = np.setdiff1d(left.source_row, right.source_row)
    only_b = np.setdiff1d(right.source_row, left.source_row)
    both, at_a, at_b = np.intersect1d(left.source_row, right.source_row, return_indices=True)
    place_a, place_b = _places(a, left), _places(b, right)
    moved = np.flatnonzero((place_a[at_a] != place_b[at_b]).any(1)) if len(both) else np.zeros(0, np.intp)
    return ConversationsDiff(
        num_only_a=len(only_a),
        num_only_b=len(only_b),
        num_moved=len(moved),
        only_a=only_a[:LISTED].tolist(),
        only_b=only_b[:LISTED].tolist(),
        moved=[(int(both[i]), _pair(place_a[at_a[i]]), _pair(place_b[at_b[i]])) for i in moved[:LISTED].tolist()],
    )


def _pair(place: npt.NDArray[np.int64]) -> tuple[int, int]:
    return int(place[0]), int(place[1])


def _places(of: Survey, found: Conversations) -> npt.NDArray[np.int64]:
    """int64[c, 2]: row and token at which each conversation begins."""
    return np.stack([of.doc_row[found.first], of.doc_start[found.first]], axis=1)
