"""For OLMo-core: headerless arrays (their name ends in .npy all the same) and the bounds of each row.

uint32 ids, a bool label mask that is token-aligned, and `start,end` of each row as a document. NumpyFSLDatasetConfig at a
sequence length of row_tokens gives the rows; NumpyPackedFSLDatasetConfig does with use_array_if_local=False, else it looks for
EOS and packs conversations anew.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from databuild.export.common import Consumer, Part, Plan, not_whole
from databuild.export.raw import check_mask, read_raw
from databuild.pack import Rows
from databuild.reading.rowviews import shifted_labels

IDS, MASK, BOUNDS = "token_ids_part_0000.npy", "labels_mask_part_0000.npy", "token_ids_part_0000.csv.gz"


def _bounds(first: int, rows: int, row_tokens: int) -> npt.NDArray[np.int64]:
    starts = np.arange(first, first + rows, dtype=np.int64) * row_tokens
    return np.stack([starts, starts + row_tokens], axis=1)


class _StoredGzip:
    """A gzip file without compression, time or name: what a library would compress differs with its version."""

    _BLOCK = 0xFFFF

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._pending, self._crc, self._size = file, bytearray(), 0, 0
        file.write(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff")

    def write(self, data: bytes) -> None:
        """Add bytes."""
        self._pending += data
        self._crc, self._size = zlib.crc32(data, self._crc), self._size + len(data)
        while len(self._pending) > self._BLOCK:
            self._block(self._BLOCK, last=False)

    def finish(self) -> None:
        """Write what is left, and the sums."""
        self._block(len(self._pending), last=True)
        self._file.write(struct.pack("<II", self._crc, self._size & 0xFFFFFFFF))

    def _block(self, size: int, *, last: bool) -> None:
        self._file.write(struct.pack("<BHH", last, size, size ^ 0xFFFF) + self._pending[:size])
        del self._pending[:size]


def _write(groups: Iterator[Rows], plan: Plan) -> None:
    with ExitStack() as stack:
        ids = stack.enter_context(open(plan.folder / IDS, "wb"))
        mask = stack.enter_context(open(plan.folder / MASK, "wb"))
        packed = stack.enter_context(open(plan.folder / BOUNDS, "wb"))
        bounds, first = _StoredGzip(packed), 0
        for rows in groups:
            ids.write(rows.input_ids.astype("<u4").data)
            mask.write(np.ascontiguousarray(rows.loss_mask).data)
            for start, end in _bounds(first, len(rows), plan.row_tokens).tolist():
                bounds.write(b"%d,%d\n" % (start, end))
            first += len(rows)
        bounds.finish()


def _read(plan: Plan) -> Iterator[Part]:
    first = 0
    with ExitStack() as stack:
        try:
            bounds = stack.enter_context(gzip.open(plan.folder / BOUNDS, "rb"))
            for ids, mask in read_raw(plan, {IDS: "<u4", MASK: "u1"}):
                if ids.max() >= 1 << 31:
                    raise not_whole("a token id is out of range", IDS)
                check_mask(mask, MASK)
                expected = _bounds(first, len(ids), plan.row_tokens)
                lines = b"".join(b"%d,%d\n" % (start, end) for start, end in expected.tolist())
                if bounds.read(len(lines)) != lines:
                    raise not_whole("the bounds are not those of rows of one length", BOUNDS)
                signed = ids.astype(np.int32)
                content = {"token_ids": ids, "labels_mask": mask, "bounds": expected}
                yield Part(input_ids=signed, labels=shifted_labels(signed, mask), content=content)
                first += len(ids)
            if bounds.read(1):
                raise not_whole("there are more bounds than rows", BOUNDS)
        except (OSError, EOFError) as error:
            raise not_whole("the file cannot be read", BOUNDS, None, str(error)) from error


OLMO = Consumer(name="olmo", files=lambda _: [MASK, BOUNDS, IDS], write=_write, read=_read)
