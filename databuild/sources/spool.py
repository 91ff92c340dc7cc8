"""A source's conversations on disk in a shape that gives any row at once, without Python objects for the rest.

Reading in permuted order means random access, and the shards of a source are compressed. So each is read once, front to
back, into flat files: the UTF-8 of all texts, and for every message its end and role. They are mapped, not loaded; the
anonymous memory of a build does not depend on the size of the source.
"""

from __future__ import annotations

import contextlib
import mmap
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from databuild.sources.base import RAW, ConversationBatch
from databuild.sources.marks import marked

NO_SOURCE = "(none)"


class SpoolWriter:
    """Appends conversations; `finish` gives the readable Spool."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=False)
        # Buffered: a raw file may take less than it is given and say so only in the value it returns.
        self._files = {
            name: open(folder / name, "wb", buffering=1 << 20)  # noqa: SIM115  (closed in finish)
            for name in ("text", "message_lengths", "roles", "marked", "counts", "sources", "ids")
        }
        self._names: dict[str, int] = {}
        self.num_rows = 0

    def add(
        self,
        *,
        text: Any,
        message_lengths: npt.NDArray[np.int64],
        roles: npt.NDArray[np.uint8],
        counts: npt.NDArray[np.int64],
        sources: Sequence[str | None],
        ids: Sequence[Any] | None,
    ) -> None:
        """Add k conversations: a buffer that holds m texts back to back, m lengths in bytes, m roles, k counts."""
        self._files["text"].write(text)
        # A record as JSON spells what is not ASCII in escapes: it is looked at when it is parsed.
        self._files["marked"].write(np.where(roles == RAW, True, marked(text, message_lengths)).data)
        self._files["message_lengths"].write(np.ascontiguousarray(message_lengths, np.int64).data)
        self._files["roles"].write(np.ascontiguousarray(roles, np.uint8).data)
        self._files["counts"].write(np.ascontiguousarray(counts, np.int64).data)
        names = self._names
        codes = [names.setdefault(NO_SOURCE if s is None else s, len(names)) for s in sources]
        self._files["sources"].write(np.array(codes, np.int32).data)
        hashes = np.zeros(len(codes), np.uint64) if ids is None else np.array([_id_hash(i) for i in ids], np.uint64)
        self._files["ids"].write(hashes.data)
        self.num_rows += len(codes)

    def finish(self) -> Spool:
        """Close the files and map them."""
        self.close()
        return Spool(self.folder, list(self._names))

    def close(self) -> None:
        """Close all files, whichever of them fails; what was written stays."""
        with contextlib.ExitStack() as stack:
            for file in self._files.values():
                stack.callback(file.close)


class Spool:
    """Random access to spooled conversations. Deletes its folder on close."""

    def __init__(self, folder: Path, source_names: list[str]) -> None:
        self.folder = folder
        self.source_names = source_names
        self._roles = _mapped(folder / "roles", np.uint8)
        self._marked = _mapped(folder / "marked", np.bool_)
        self._sources = _mapped(folder / "sources", np.int32)
        self._message_ends = _summed(folder / "message_lengths")
        self._row_ends = _summed(folder / "counts")
        self.num_rows = len(self._sources)
        self._id_codes, self.num_ids = _id_codes(_mapped(folder / "ids", np.uint64))
        self._text_map: mmap.mmap | None = None
        if (folder / "text").stat().st_size:
            with open(folder / "text", "rb") as file:
                self._text_map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._text = memoryview(self._text_map if self._text_map is not None else b"")

    def take(self, indices: npt.NDArray[np.int64]) -> ConversationBatch:
        """The conversations at these rows, in this order."""
        first = np.where(indices > 0, self._row_ends[indices - 1], 0)
        counts = self._row_ends[indices] - first
        messages = _ranges(first, counts)
        ends = self._message_ends[messages]
        starts = np.where(messages > 0, self._message_ends[messages - 1], 0)
        text = self._text
        texts = [str(text[a:b], "utf-8") for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        return ConversationBatch(
            rows=indices,
            counts=counts,
            roles=self._roles[messages],
            texts=texts,
            marked=self._marked[messages],
            source_codes=self._sources[indices],
            id_codes=self._id_codes[indices],
        )

    def close(self) -> None:
        """Unmap and delete."""
        self._text.release()
        if self._text_map is not None:
            self._text_map.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _ranges(first: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """[first[0], first[0]+1, ... first[0]+counts[0]-1, first[1], ...]."""
    total = int(counts.sum())
    before = np.repeat(np.cumsum(counts) - counts, counts)
    result: npt.NDArray[np.int64] = np.arange(total, dtype=np.int64) - before + np.repeat(first, counts)
    return result


def _mapped(path: Path, dtype: Any) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype=dtype, mode="r")


def _summed(path: Path) -> npt.NDArray[Any]:
    """Lengths on disk -> their running ends, in place."""
    if path.stat().st_size == 0:
        return np.zeros(0, np.int64)
    ends = np.memmap(path, dtype=np.int64, mode="r+")
    np.cumsum(ends, out=ends)
    return ends


def _id_hash(value: Any) -> int:
    """64 bits for an id that is text or a whole number; 0 means there is none. Two ids meet once in 10^19 pairs."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return 0
    kind = "s" if isinstance(value, str) else "i"  # the text "1" and the number 1 are two ids
    return xxhash.xxh3_64_intdigest(f"{kind}{value}".encode("utf-8", "surrogatepass")) or 1


def _id_codes(hashes: npt.NDArray[np.uint64]) -> tuple[npt.NDArray[np.int64], int]:
    """Equal ids -> equal codes 0..num; -1 where there is no id."""
    if not hashes.any():
        return np.full(len(hashes), -1, np.int64), 0
    values, codes = np.unique(hashes, return_inverse=True)
    codes = codes.astype(np.int64)
    if values[0] == 0:
        return codes - 1, len(values) - 1
    return codes, len(values)
