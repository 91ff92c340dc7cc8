"""The row file: its schema, its digests, writing and reading. What is written here is the contract with every consumer."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from databuild.arrow import UNREADABLE, array_of, column_values, first_line
from databuild.errors import IntegrityError, OutputError
from databuild.footer import MAGIC
from databuild.pack import Rows
from databuild.shards import Group, ShardFile
from manifests.model import RowsRecord

ROWS_PER_GROUP = 128
ROWS_PER_SHARD = 65_536

SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64(), nullable=False),
        pa.field("input_ids", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
        pa.field("loss_mask", pa.list_(pa.field("element", pa.uint8(), nullable=False)), nullable=False),
        pa.field("doc_starts", pa.list_(pa.field("element", pa.int32(), nullable=False)), nullable=False),
        pa.field("doc_rows", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
        pa.field("num_targets", pa.int32(), nullable=False),
        pa.field("xxh3", pa.uint64(), nullable=False),
    ]
)


def canonical_bytes(input_ids: npt.NDArray[np.int32], loss_mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """uint8[r, 5 * R]: of each row its ids as little-endian int32, then its mask as uint8."""
    num, size = input_ids.shape
    result = np.empty((num, 5 * size), np.uint8)
    result[:, : 4 * size] = np.ascontiguousarray(input_ids, "<i4").view(np.uint8).reshape(num, 4 * size)
    result[:, 4 * size :] = loss_mask
    return result


class Digests:
    """rows_sha256 and docs_sha256 of rows that come in order."""

    def __init__(self) -> None:
        self._rows = hashlib.sha256()
        self._docs = hashlib.sha256()

    def add(self, rows: Rows, canonical: npt.NDArray[np.uint8] | None = None) -> None:
        """Add rows; canonical is their canonical_bytes where they are at hand."""
        self._rows.update((canonical_bytes(rows.input_ids, rows.loss_mask) if canonical is None else canonical).data)
        offsets = rows.doc_offsets.tolist()
        starts, doc_rows = rows.doc_starts.astype("<i4"), rows.doc_rows.astype("<i8")
        for a, b in pairwise(offsets):
            self._docs.update(np.int32(b - a).astype("<i4").tobytes())
            self._docs.update(starts[a:b].tobytes())
            self._docs.update(doc_rows[a:b].tobytes())

    @property
    def rows_sha256(self) -> str:
        """sha256 over the canonical bytes of all rows in order."""
        return self._rows.hexdigest()

    @property
    def docs_sha256(self) -> str:
        """sha256 over, for each row, the number of documents, doc_starts and doc_rows."""
        return self._docs.hexdigest()


def check_totals(expected: RowsRecord, digests: Digests, *, rows: int, targets: int, where: str) -> None:
    """IntegrityError unless all rows of a build together are what its manifest says."""
    for name, wanted, found in (
        ("rows", expected.rows, rows),
        ("num_targets", expected.num_targets, targets),
        ("rows_sha256", expected.rows_sha256, digests.rows_sha256),
        ("docs_sha256", expected.docs_sha256, digests.docs_sha256),
    ):
        if wanted != found:
            raise damaged(f"{name} is not what the manifest says", where, str(wanted), str(found))


def to_table(rows: Rows, first_row: int, canonical: npt.NDArray[np.uint8]) -> pa.Table:
    """Rows as the columns of the row file."""
    num, size = rows.input_ids.shape
    every = np.arange(num + 1, dtype=np.int32) * size
    docs = rows.doc_offsets.astype(np.int32)

    def lists(name: str, offsets: npt.NDArray[np.int32], values: npt.NDArray[Any]) -> pa.Array:
        kind = SCHEMA.field(name).type
        return pa.ListArray.from_arrays(array_of(offsets), array_of(values), type=kind)

    return pa.Table.from_arrays(
        [
            array_of(np.arange(first_row, first_row + num, dtype=np.int64)),
            lists("input_ids", every, rows.input_ids.reshape(-1)),
            lists("loss_mask", every, rows.loss_mask.reshape(-1)),
            lists("doc_starts", docs, rows.doc_starts),
            lists("doc_rows", docs, rows.doc_rows),
            array_of(rows.loss_mask.sum(axis=1, dtype=np.int32)),
            array_of(np.array([xxhash.xxh3_64_intdigest(row) for row in canonical], np.uint64)),
        ],
        schema=SCHEMA,
    )


def from_table(table: pa.Table, row_tokens: int, where: str) -> Rows:
    """The columns of the row file as Rows; IntegrityError if a row has another length."""

    def flat(name: str) -> npt.NDArray[Any]:
        return column_values(table.column(name).combine_chunks().flatten())

    ids, mask = flat("input_ids"), flat("loss_mask")
    for name in ("input_ids", "loss_mask"):
        lengths = _lengths(table, name)
        if (wrong := np.flatnonzero(lengths != row_tokens)).size:
            raise damaged(
                f"{name} of a row has another length",
                f"{where}, row {table.column('row')[int(wrong[0])].as_py()}",
                f"{row_tokens} tokens",
                f"{lengths[wrong[0]]}",
            )
    starts, counts = flat("doc_starts"), _lengths(table, "doc_starts")
    if not np.array_equal(counts, _lengths(table, "doc_rows")):
        raise damaged("doc_starts and doc_rows differ in length", where)
    return Rows(
        input_ids=ids.reshape(-1, row_tokens),
        loss_mask=mask.reshape(-1, row_tokens),
        doc_starts=starts,
        doc_rows=flat("doc_rows"),
        doc_offsets=np.append(0, np.cumsum(counts)).astype(np.int64),
    )


def _lengths(table: pa.Table, name: str) -> npt.NDArray[np.int64]:
    import pyarrow.compute as pc

    return column_values(pc.list_value_length(table.column(name))).astype(np.int64)


def concat(parts: Sequence[Rows]) -> Rows:
    """Rows one after another."""
    counts = np.concatenate([np.diff(p.doc_offsets) for p in parts])
    return Rows(
        input_ids=np.concatenate([p.input_ids for p in parts]),
        loss_mask=np.concatenate([p.loss_mask for p in parts]),
        doc_starts=np.concatenate([p.doc_starts for p in parts]),
        doc_rows=np.concatenate([p.doc_rows for p in parts]),
        doc_offsets=np.append(0, np.cumsum(counts)).astype(np.int64),
    )


def select(rows: Rows, start: int, stop: int) -> Rows:
    """Rows start to stop."""
    a, b = int(rows.doc_offsets[start]), int(rows.doc_offsets[stop])
    return Rows(
        input_ids=rows.input_ids[start:stop],
        loss_mask=rows.loss_mask[start:stop],
        doc_starts=rows.doc_starts[a:b],
        doc_rows=rows.doc_rows[a:b],
        doc_offsets=rows.doc_offsets[start : stop + 1] - a,
    )


class RowWriter:
    """Writes rows into shards under provisional names, in row groups of ROWS_PER_GROUP whatever the batches were.

    A row group is on disk as soon as it is written, and `groups` says where: see databuild.journal.
    """

    def __init__(self, folder: Path, *, rows_per_shard: int = ROWS_PER_SHARD) -> None:
        self._folder = folder
        self._rows_per_shard = rows_per_shard
        self._pending: list[Rows] = []
        self._num_pending = 0
        self._shard: ShardFile | None = None
        self._shards: list[tuple[Path, int]] = []
        self.groups: list[Group] = []
        self.digests = Digests()
        self.num_rows = 0
        self.num_targets = 0

    def add(self, rows: Rows) -> None:
        """Add rows; whole row groups are written at once."""
        if not len(rows):
            return
        self._pending.append(rows)
        self._num_pending += len(rows)
        if self._num_pending < ROWS_PER_GROUP:
            return
        merged = concat(self._pending) if len(self._pending) > 1 else rows
        whole = self._num_pending - self._num_pending % ROWS_PER_GROUP
        for start in range(0, whole, ROWS_PER_GROUP):
            self._write_group(select(merged, start, start + ROWS_PER_GROUP))
        rest = select(merged, whole, self._num_pending)
        self._pending, self._num_pending = ([rest] if len(rest) else []), len(rest)

    @property
    def pending(self) -> Rows | None:
        """Rows that are in no row group yet."""
        return concat(self._pending) if self._pending else None

    def resume(self, groups: Sequence[Group], row_tokens: int) -> None:
        """Go on after row groups that a killed builder wrote; what stands after them in the shards is cut off.

        Each is read, checked and counted as if it had been written now; IntegrityError for one that is not what it was.
        """
        for group in groups:
            if self._shard is None or group.shard != self._shard.index:
                self._close_shard()
                self._shard = ShardFile(self._folder, len(self._shards), again=True)
            shard = self._shard
            where = f"{shard.path.name}, row group {len(shard.groups)}"
            rows = from_table(pq.ParquetFile(pa.BufferReader(shard.take(group))).read(), row_tokens, where)
            if len(rows) != group.rows:
                raise damaged("an unfinished row file is not what its journal says", where)
            self._count(rows, canonical_bytes(rows.input_ids, rows.loss_mask), group)
        if self._shard is not None:
            self._shard.cut()

    @property
    def shard(self) -> ShardFile | None:
        """The row file that is being written."""
        return self._shard

    def finish(self) -> list[tuple[Path, int]]:
        """Write what is left and close; gives (path, rows) of each shard, under its final name."""
        if self._num_pending:
            self._write_group(concat(self._pending))
        if self._shard is None and not self._shards:
            self._open_shard()  # a build may have no row at all; its file says so
        self._close_shard()
        named = []
        for index, (path, rows) in enumerate(self._shards):
            final = self._folder / shard_name(index, len(self._shards))
            os.rename(path, final)
            named.append((final, rows))
        return named

    def close(self) -> None:
        """Let go of an unfinished shard."""
        if self._shard is not None:
            self._shard.close()
            self._shard = None

    def _write_group(self, rows: Rows) -> None:
        if self._shard is None or self._shard.rows >= self._rows_per_shard:
            self._close_shard()
            self._open_shard()
        assert self._shard is not None
        canonical = canonical_bytes(rows.input_ids, rows.loss_mask)
        file = _parquet(to_table(rows, self.num_rows, canonical))
        self._count(rows, canonical, self._shard.add(file, len(rows)))

    def _count(self, rows: Rows, canonical: npt.NDArray[np.uint8], group: Group) -> None:
        self.digests.add(rows, canonical)
        self.groups.append(group)
        self.num_rows += len(rows)
        self.num_targets += int(rows.loss_mask.sum(dtype=np.int64))

    def _open_shard(self) -> None:
        self._shard = ShardFile(self._folder, len(self._shards))

    def _close_shard(self) -> None:
        if self._shard is None:
            return
        shard = self._shard
        shard.finish(_parquet(None))
        self._shard = None
        sync(shard.path)
        self._shards.append((shard.path, shard.rows))
        found = pq.read_metadata(shard.path)
        if (found.num_rows, found.num_row_groups) != (shard.rows, len(shard.groups)):
            raise damaged(
                "a row file does not read as it was written", shard.path.name, f"{shard.rows} rows", f"{found.num_rows}"
            )


def _parquet(table: pa.Table | None) -> memoryview:
    """A parquet file in memory: one row group, or none."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        SCHEMA,
        version="2.6",
        compression="zstd",
        compression_level=1,
        use_dictionary=False,
        column_encoding={"input_ids.list.element": "BYTE_STREAM_SPLIT"},
        write_statistics=False,
        store_schema=True,
    ) as writer:
        if table is not None:
            writer.write_table(table, row_group_size=len(table))
    return memoryview(sink.getvalue())


def shard_name(index: int, shards: int) -> str:
    """Name of a row file among shards."""
    return "rows.parquet" if shards == 1 else f"rows-{index:05d}-of-{shards:05d}.parquet"


def sync(path: Path) -> None:
    """fsync a file or a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a directory; what they hold is in their hands.
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise OutputError("cannot write", where=str(path), found=error.strerror) from error
    finally:
        os.close(descriptor)


def read_groups(paths: Sequence[Path], row_tokens: int) -> Iterator[tuple[pa.Table, Rows, str]]:
    """(table, rows, where) of each row group, in order. IntegrityError for a file that is not a row file."""
    for path in paths:
        try:
            with open(path, "rb") as start:
                if start.read(4) != MAGIC:  # pyarrow looks at the end of a file only
                    raise damaged("a row file cannot be read", path.name, None, "it does not begin as parquet does")
            file = pq.ParquetFile(path)
            if file.schema_arrow.remove_metadata() != SCHEMA:
                raise damaged(
                    "the file has other columns than a row file",
                    path.name,
                    ", ".join(map(_column, SCHEMA)),
                    ", ".join(map(_column, file.schema_arrow)),
                )
            for group in range(file.metadata.num_row_groups):
                where = f"{path.name}, row group {group}"
                _check_size(file.metadata.row_group(group), row_tokens, where)
                table = file.read_row_group(group)
                yield table, from_table(table, row_tokens, where), where
        except UNREADABLE as error:
            raise damaged("a row file cannot be read", path.name, None, first_line(error)) from error


def _check_size(group: Any, row_tokens: int, where: str) -> None:
    """Refuse what no row group can hold before it is decoded: 5 bytes a token, and at most 12 for documents, with levels."""
    if group.num_rows > ROWS_PER_GROUP:
        raise damaged("a row group has another size", where, f"{ROWS_PER_GROUP} rows", f"{group.num_rows}")
    most = 65_536 + group.num_rows * (256 + 20 * row_tokens)
    if group.total_byte_size > most:
        raise damaged(
            "a row group is larger than its rows can be", where, f"at most {most:,} bytes", f"{group.total_byte_size:,}"
        )


def _column(field: pa.Field) -> str:
    return f"{field.name}: {field.type}{' or null' if field.nullable else ''}"


def damaged(what: str, where: str, expected: str | None = None, found: str | None = None) -> IntegrityError:
    """The error for a build that is not what it should be."""
    return IntegrityError(
        what,
        where=where,
        expected=expected,
        found=found,
        next_step="do not use this build; make it again, or fetch it again from where it came",
    )
