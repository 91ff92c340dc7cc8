"""A source made of files on this machine, spooled at first use."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from databuild.errors import OutputError, SourceError
from databuild.sources import jsonl, parquet
from databuild.sources.base import ConversationBatch
from databuild.sources.columns import ColumnMap, named_columns, needed_columns
from databuild.sources.records import RecordSpooler
from databuild.sources.spool import Spool, SpoolWriter
from manifests.model import SourceFileRecord, SourceRecord

SUFFIXES = (*parquet.SUFFIXES, *jsonl.SUFFIXES)


Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFile:
    """A file to read: where it lies, and the name it has in the manifest.

    stamp: size, time of change and inode when the digest was taken; a file that has another when it is read is refused.
    """

    path: Path
    name: str
    bytes: int
    sha256: str
    stamp: Stamp | None = None

    @classmethod
    def of(cls, path: Path, name: str) -> LocalFile:
        """The file with its digest."""
        stamp = _stat(path)
        return cls(path=path, name=name, bytes=stamp[0], sha256=sha256_file(path), stamp=stamp)


class SpooledSource:
    """Conversations of local files, in the order of the files and of the rows in each."""

    def __init__(self, *, record: SourceRecord, spool: Spool) -> None:
        self.record = record
        self._spool = spool

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return self._spool.num_rows

    @property
    def source_names(self) -> list[str]:
        """Values of the source column, in order of first appearance."""
        return self._spool.source_names

    @property
    def num_ids(self) -> int:
        """How many different ids there are."""
        return self._spool.num_ids

    def take(self, indices: npt.NDArray[np.int64]) -> ConversationBatch:
        """The conversations at these rows."""
        return self._spool.take(indices)

    def close(self) -> None:
        """Delete the spool."""
        self._spool.close()


def spool_files(
    files: Sequence[LocalFile],
    *,
    folder: Path,
    mapping: ColumnMap | None,
    say: Callable[[str], None],
    kind: str,
    name: str | None = None,
    revision: str | None = None,
    split: str | None = None,
    license: str | None = None,
    expected_rows: int | None = None,
) -> SpooledSource:
    """Read files whose digests are known into a spool under `folder`; nothing stays behind when it fails."""
    total = sum(file.bytes for file in files)
    say(f"reading {len(files)} file{'s' * (len(files) != 1)}, {total / 1e6:,.1f} MB, into a spool in {folder.parent}")
    try:
        writer = SpoolWriter(folder)
        try:
            for file in files:
                _read(file, writer, mapping)
            if expected_rows is not None and writer.num_rows != expected_rows:
                raise SourceError(
                    f"{name} has another number of rows than its lock says",
                    expected=f"{expected_rows:,}",
                    found=f"{writer.num_rows:,}",
                    next_step="nothing was written; clear the hub cache of this dataset and run again",
                )
            if writer.num_rows == 0:
                raise SourceError("the source has no rows", where=", ".join(file.name for file in files[:5]))
            spool = writer.finish()
        except BaseException:
            with contextlib.suppress(OSError):  # a full disk fails once more here
                writer.close()
            shutil.rmtree(folder, ignore_errors=True)
            raise
    except OSError as error:
        raise OutputError(
            "the spool cannot be written",
            where=str(folder),
            found=error.strerror or str(error),
            next_step="free some space (a spool takes about as much as the texts), or choose another --out",
        ) from error
    record = SourceRecord.make(
        kind=kind,
        name=name,
        revision=revision,
        split=split,
        rows=spool.num_rows,
        license=license,
        files=[SourceFileRecord(name=file.name, bytes=file.bytes, sha256=file.sha256) for file in files],
    )
    return SpooledSource(record=record, spool=spool)


def _read(file: LocalFile, writer: SpoolWriter, mapping: ColumnMap | None) -> None:
    before = _stat(file.path)
    if file.path.name.endswith(parquet.SUFFIXES):
        parquet.read_parquet(file.path, writer, mapping)
    else:
        spooler = RecordSpooler(writer, mapping)
        jsonl.read_jsonl(file.path, spooler, needed_columns(mapping)[0], named_columns(mapping))
        spooler.flush()
    if _stat(file.path) != before or before[0] != file.bytes or file.stamp not in (None, before):
        raise SourceError(
            "a file changed while it was read",
            where=file.name,
            expected=f"{file.bytes} bytes with sha256 {file.sha256}",
            next_step="let the writer of the file finish, then run again",
        )


def _stat(path: Path) -> Stamp:
    try:
        stat = path.stat()
    except OSError as error:
        raise SourceError("a file cannot be read", where=str(path), found=error.strerror) from error
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


def sha256_file(path: Path) -> str:
    """sha256 of a file, as hex."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise SourceError("a file cannot be read", where=os.fspath(path), found=error.strerror) from error
