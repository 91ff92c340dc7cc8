"""A row file while it is written: pages go to disk group by group, the footer that makes it parquet comes last."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path

import xxhash

from databuild import footer
from databuild.errors import IntegrityError


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A row group on disk: where its pages stand in which shard, its own footer, and the digest of the pages."""

    shard: int
    start: int
    stop: int
    rows: int
    footer: bytes
    xxh3: str


class ShardFile:
    """One provisional row file; again: one that a killed builder left, whose groups `take` has to prove."""

    def __init__(self, folder: Path, index: int, *, again: bool = False) -> None:
        self.path = folder / provisional_name(index)
        self.index = index
        self.rows = 0
        self.groups: list[Group] = []
        flags = os.O_RDWR | os.O_NOFOLLOW | (0 if again else os.O_CREAT | os.O_EXCL)
        self._file = io.FileIO(self.path, "r+", opener=lambda name, _: os.open(name, flags, 0o666))
        if again and os.fstat(self._file.fileno()).st_nlink != 1:  # it would change under another name, too
            self.close()
            raise IntegrityError("an unfinished row file has another name", where=self.path.name)
        self._write(memoryview(footer.MAGIC))  # again: over what stands there

    def add(self, file: memoryview, rows: int) -> Group:
        """Append the one row group of a parquet file in memory."""
        pages, end = footer.split(file)
        start = self._file.tell()
        self._write(pages)
        group = Group(
            shard=self.index,
            start=start,
            stop=start + len(pages),
            rows=rows,
            footer=end,
            xxh3=xxhash.xxh3_128_hexdigest(pages),
        )
        return self._added(group)

    def take(self, group: Group) -> bytes:
        """A row group that is here already, as a parquet file in memory; what stands after it is not trusted."""
        pages = os.pread(self._file.fileno(), group.stop - group.start, group.start)
        follows = self.groups[-1].stop if self.groups else len(footer.MAGIC)
        if group.start != follows or xxhash.xxh3_128_hexdigest(pages) != group.xxh3:
            raise IntegrityError("an unfinished row file is not what its journal says", where=self.path.name)
        self._file.seek(group.stop)
        self._added(group)
        return footer.alone(pages, group.footer)

    def finish(self, empty: memoryview) -> None:
        """Write the footer and let go. empty: a parquet file in memory without any row group."""
        self.cut()
        if self.groups:
            end = footer.end_of_file([g.footer for g in self.groups], [g.start for g in self.groups])
        else:
            end = bytes(empty[len(footer.MAGIC) :])
        self._write(memoryview(end))
        self.close()

    def cut(self) -> None:
        """Forget what stands after the last group."""
        self._file.truncate(self._file.tell())

    def fileno(self) -> int:
        """The descriptor."""
        return self._file.fileno()

    def close(self) -> None:
        """Let go of the file as it is."""
        self._file.close()

    def _added(self, group: Group) -> Group:
        self.groups.append(group)
        self.rows += group.rows
        return group

    def _write(self, data: memoryview) -> None:
        data = data.cast("B")
        while len(data):  # one call may take less than it is given
            data = data[self._file.write(data) :]


def provisional_name(index: int) -> str:
    """Name of a row file that is not whole yet."""
    return f"shard-{index:05d}.tmp"
