"""For miles: an index for --prompt-data, and the row files themselves, which train/miles/pretokenized_sft_rollout.py reads.

miles holds every row of the index in memory and copies its metadata at each step, so there are a few bytes a row in it and
no tokens. messages is a list, which miles neither tokenizes nor filters by length.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from databuild.arrow import array_of, column_values
from databuild.export.columns import TableFile, read_tables
from databuild.export.common import Consumer, Part, Plan, not_whole
from databuild.export.raw import check_mask
from databuild.pack import Rows
from databuild.reading.rowviews import shifted_labels
from databuild.rows import ROWS_PER_SHARD, read_groups

FILE = "rows.miles.parquet"
#: What stands for the conversation that is long tokenized.
PLACEHOLDER = {"role": "user", "content": "pretokenized"}

_TEXT = pa.field("role", pa.string(), nullable=False), pa.field("content", pa.string(), nullable=False)
SCHEMA = pa.schema(
    [
        pa.field("messages", pa.list_(pa.field("element", pa.struct(_TEXT), nullable=False)), nullable=False),
        pa.field(
            "metadata",
            pa.struct(
                [
                    pa.field("row", pa.int64(), nullable=False),
                    pa.field("rows_file", pa.string(), nullable=False),
                    pa.field("rows_sha256", pa.string(), nullable=False),
                ]
            ),
            nullable=False,
        ),
    ]
)


def _columns(plan: Plan, first: int, num: int) -> list[pa.Array]:
    """The index of rows first to first + num, all of one row file."""
    messages = pa.array([PLACEHOLDER] * num, pa.struct(_TEXT))
    metadata = pa.StructArray.from_arrays(
        [
            array_of(np.arange(first, first + num, dtype=np.int64)),
            pa.array([plan.row_files[first // ROWS_PER_SHARD]] * num, pa.string()),
            pa.array([plan.rows_sha256] * num, pa.string()),
        ],
        fields=list(SCHEMA.field("metadata").type),
    )
    offsets = array_of(np.arange(num + 1, dtype=np.int32))
    return [pa.ListArray.from_arrays(offsets, messages, type=SCHEMA.field("messages").type), metadata]


def _write(groups: Iterator[Rows], plan: Plan) -> None:
    assert plan.source is not None
    first = 0
    with TableFile(plan.folder / FILE, SCHEMA, constants=[c for c in _LEAVES if c != "metadata.row"]) as file:
        for rows in groups:
            file.write(_columns(plan, first, len(rows)))
            first += len(rows)
    for name in plan.row_files:
        _link(str(plan.source / name), str(plan.folder / name))


_LEAVES = [
    "messages.list.element.role", "messages.list.element.content", "metadata.row", "metadata.rows_file",
    "metadata.rows_sha256",
]  # fmt: skip


def _link(old: str, new: str) -> None:
    """The same file under a second name where the file system can, else a copy. Either way its bytes are read back."""
    try:
        os.link(old, new, follow_symlinks=False)
    except OSError:
        shutil.copyfile(old, new)


def _read(plan: Plan) -> Iterator[Part]:
    index = read_tables(plan.folder / FILE, SCHEMA)
    first = 0
    for _, rows, where in read_groups([plan.folder / name for name in plan.row_files], plan.row_tokens):
        table, there = next(index, (None, FILE))
        expected = pa.Table.from_arrays(_columns(plan, first, len(rows)), schema=SCHEMA)
        if table is None or not table.equals(expected):
            raise not_whole("the index does not name the rows in order", there)
        check_mask(rows.loss_mask, where)
        numbers = column_values(table.column("metadata").combine_chunks().field("row"))
        content = {"row": numbers, "input_ids": rows.input_ids, "loss_mask": rows.loss_mask}
        yield Part(input_ids=rows.input_ids, labels=shifted_labels(rows.input_ids, rows.loss_mask), content=content)
        first += len(rows)
    if next(index, None) is not None:
        raise not_whole("the index names more rows than there are", FILE)


MILES = Consumer(name="miles", files=lambda plan: [FILE, *plan.row_files], write=_write, read=_read)
