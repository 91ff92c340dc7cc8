"""For Megatron-LM: two IndexedDatasets, rows_ids (int32) and rows_mask (uint8, token-aligned), a row a document.

The .idx format is that of megatron.core.datasets.indexed_dataset: a header, the length of each sequence, its byte offset,
and the documents. The .bin files have no header: `np.memmap(rows_ids.bin, "<i4").reshape(rows, row_tokens)` reads them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack

import numpy as np

from databuild.export.common import Consumer, Part, Plan, not_whole
from databuild.export.raw import check_mask, read_raw
from databuild.pack import Rows
from databuild.reading.rowviews import shifted_labels

_MAGIC, _VERSION = b"MMIDIDX\x00\x00", 1
#: name -> (numpy dtype, megatron's code of it).
_ARRAYS = {"rows_ids": ("<i4", 4), "rows_mask": ("u1", 1)}


def _index(plan: Plan, name: str) -> bytes:
    kind, code = _ARRAYS[name]
    num = plan.rows
    return b"".join(
        [
            _MAGIC,
            struct.pack("<QBQQ", _VERSION, code, num, num + 1),
            np.full(num, plan.row_tokens, "<i4").tobytes(),
            (np.arange(num, dtype="<i8") * (plan.row_tokens * np.dtype(kind).itemsize)).tobytes(),
            np.arange(num + 1, dtype="<i8").tobytes(),
        ]
    )


def _write(groups: Iterator[Rows], plan: Plan) -> None:
    with ExitStack() as stack:
        ids, mask = (stack.enter_context(open(plan.folder / f"{name}.bin", "wb")) for name in _ARRAYS)
        for rows in groups:
            ids.write(np.ascontiguousarray(rows.input_ids, "<i4").data)
            mask.write(np.ascontiguousarray(rows.loss_mask).data)
    for name in _ARRAYS:
        (plan.folder / f"{name}.idx").write_bytes(_index(plan, name))


def _read(plan: Plan) -> Iterator[Part]:
    for name in _ARRAYS:
        path = plan.folder / f"{name}.idx"
        if not path.is_file() or path.read_bytes() != _index(plan, name):
            raise not_whole("the index is not that of rows of one length", path.name)
    for ids, mask in read_raw(plan, {f"{name}.bin": kind for name, (kind, _) in _ARRAYS.items()}):
        check_mask(mask, "rows_mask.bin")
        yield Part(input_ids=ids, labels=shifted_labels(ids, mask), content={"rows_ids": ids, "rows_mask": mask})


def _files(_: Plan) -> list[str]:
    return [f"{name}.{suffix}" for name in _ARRAYS for suffix in ("bin", "idx")]


MEGATRON = Consumer(name="megatron", files=_files, write=_write, read=_read)
