"""The rows of a build as they lie on the disk: one row group at a time when asked, or all of them in one proven pass."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from databuild.arrow import UNREADABLE, column_values, first_line
from databuild.pack import Rows
from databuild.rows import (
    ROWS_PER_GROUP,
    SCHEMA,
    Digests,
    canonical_bytes,
    check_totals,
    damaged,
    from_table,
    read_groups,
)
from manifests.model import Manifest


class GroupReader:
    """Reads row groups when they are asked for and keeps the last ones.

    Every group that is read must hold the rows that it should, by their numbers; with check also by the xxh3 of each. So a
    file that changes after its digest was checked is noticed. Safe for threads, and after a fork or a pickle.
    """

    def __init__(
        self, paths: Sequence[Path], num_rows: Sequence[int], row_tokens: int, *, keep: int, check: bool
    ) -> None:
        self._paths = list(paths)
        self._firsts = np.append(0, np.cumsum(np.asarray(num_rows, np.int64))).astype(np.int64)
        self._row_tokens = row_tokens
        self._keep = max(1, keep)
        self._check = check
        self._start()

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("_files", "_groups", "_lock")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    def _start(self) -> None:
        self._files: dict[int, pq.ParquetFile] = {}
        self._groups: OrderedDict[tuple[int, int], Rows] = OrderedDict()
        self._lock = threading.Lock()

    def locate(self, row: int) -> tuple[tuple[int, int], int]:
        """((file, row group), place in the group) of a row."""
        file = int(np.searchsorted(self._firsts, row, side="right")) - 1
        group, place = divmod(row - int(self._firsts[file]), ROWS_PER_GROUP)
        return (file, group), place

    def group(self, key: tuple[int, int]) -> Rows:
        """The rows of a group as read-only arrays. IntegrityError if they are not those."""
        with self._lock:
            if key in self._groups:
                self._groups.move_to_end(key)
                return self._groups[key]
            rows = self._read(*key)
            self._groups[key] = rows
            if len(self._groups) > self._keep:
                self._groups.popitem(last=False)
            return rows

    def _read(self, file: int, group: int) -> Rows:
        path = self._paths[file]
        where = f"{path.name}, row group {group}"
        try:
            if file not in self._files:
                self._files[file] = pq.ParquetFile(path)
            table = self._files[file].read_row_group(group)
        except (*UNREADABLE, IndexError) as error:
            raise damaged("a row file cannot be read", where, None, first_line(error)) from error
        if table.schema.remove_metadata() != SCHEMA:
            raise damaged("the file has other columns than a row file", where)
        rows = from_table(table, self._row_tokens, where)
        first = int(self._firsts[file]) + group * ROWS_PER_GROUP
        _in_place(table, rows, first, min(ROWS_PER_GROUP, int(self._firsts[file + 1]) - first), where)
        if self._check:
            _undamaged(table, canonical_bytes(rows.input_ids, rows.loss_mask), first, where)
        return freeze(rows)


def freeze(rows: Rows) -> Rows:
    """The same rows, read-only."""
    for array in (rows.input_ids, rows.loss_mask, rows.doc_starts, rows.doc_rows):
        array.flags.writeable = False
    return rows


def proven_groups(paths: Sequence[Path], manifest: Manifest) -> Iterator[Rows]:
    """All row groups in order; IntegrityError at the first row that is not what it should be.

    Checked: the place and the xxh3 of each row, its loss_mask and doc_starts, and in the end, when the last group has been
    taken, rows_sha256, docs_sha256, the number of rows and that of targets. What was given before is proven only then.
    """
    size, num, ends = manifest.rows.row_tokens, manifest.rows.rows, np.cumsum([file.rows for file in manifest.files])
    digests, first, targets = Digests(), 0, 0
    for table, rows, where in read_groups(paths, size):
        if first + len(rows) > num:
            raise damaged(
                "the files hold more rows than the manifest says", where, f"{num} rows", f"{first + len(rows)} or more"
            )
        end = int(ends[np.searchsorted(ends, first, side="right")]) if len(rows) else first
        _in_place(table, rows, first, min(ROWS_PER_GROUP, end - first), where)
        canonical = canonical_bytes(rows.input_ids, rows.loss_mask)
        _undamaged(table, canonical, first, where)
        if (wrong := np.flatnonzero((rows.loss_mask > 1).any(1) | (rows.loss_mask[:, 0] != 0))).size:
            raise damaged(
                "loss_mask is neither 0 nor 1, or its first is not 0", f"{where}, row {first + int(wrong[0])}"
            )
        if rows.doc_starts.size and not 0 <= int(rows.doc_starts.min()) <= int(rows.doc_starts.max()) < size:
            raise damaged(
                "doc_starts names no position of a row", where, f"0 to {size - 1}", str(rows.doc_starts.max())
            )
        digests.add(rows, canonical)
        targets += int(rows.loss_mask.sum(dtype=np.int64))
        first += len(rows)
        yield rows
    check_totals(manifest.rows, digests, rows=first, targets=targets, where=str(paths[0].parent))


def read_everything(paths: Sequence[Path], manifest: Manifest, *, check: bool = True) -> Rows:
    """All rows in memory, as arrays of one allocation each: 5 bytes a token and 12 a document.

    Joining the row groups afterwards would take twice the memory for a moment. With check they are proven as in proven_groups.
    """
    num, size = manifest.rows.rows, manifest.rows.row_tokens
    ids, mask = np.empty((num, size), np.int32), np.empty((num, size), np.uint8)
    starts, doc_rows, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    first = 0
    groups = proven_groups(paths, manifest) if check else (rows for _, rows, _ in read_groups(paths, size))
    for rows in groups:
        last = first + len(rows)
        if last > num:
            raise damaged("the files hold more rows than the manifest says", str(paths[0].parent), f"{num} rows")
        ids[first:last], mask[first:last] = rows.input_ids, rows.loss_mask
        # Copies, or they would keep the whole row group alive.
        starts.append(rows.doc_starts.copy())
        doc_rows.append(rows.doc_rows.copy())
        counts.append(np.diff(rows.doc_offsets))
        first = last
    if first != num:
        raise damaged("the files hold fewer rows than the manifest says", str(paths[0].parent), f"{num}", f"{first}")
    return Rows(
        input_ids=ids,
        loss_mask=mask,
        doc_starts=np.concatenate(starts),
        doc_rows=np.concatenate(doc_rows),
        doc_offsets=np.append(0, np.cumsum(np.concatenate(counts))).astype(np.int64),
    )


def _in_place(table: pa.Table, rows: Rows, first: int, expected: int, where: str) -> None:
    if len(rows) != expected:
        raise damaged("a row group has another size", where, f"{expected} rows", f"{len(rows)}")
    numbers = column_values(table.column("row"))
    if (wrong := np.flatnonzero(numbers != first + np.arange(len(rows)))).size:
        raise damaged(
            "a row is out of place", where, f"row {first + int(wrong[0])}", f"row {int(numbers[int(wrong[0])])}"
        )


def _undamaged(table: pa.Table, canonical: npt.NDArray[np.uint8], first: int, where: str) -> None:
    for i, digest in enumerate(column_values(table.column("xxh3")).tolist()):
        if xxhash.xxh3_64_intdigest(canonical[i]) != digest:
            raise damaged("a row is damaged: its xxh3 differs", f"{where}, row {first + i}")
