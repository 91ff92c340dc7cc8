"""For NeMo Automodel: input_ids, attention_mask, labels shifted by one: its trainer does not shift.

Without attention_mask its collater takes every token 0 for padding, and that is the BOS of DeepSeek-V4.
"""

from __future__ import annotations

from collections.abc import Iterator

from databuild.export.common import Consumer, Part, Plan
from databuild.export.labelled import read_labelled, write_labelled
from databuild.pack import Rows

FILE = "rows.automodel.parquet"


def _write(groups: Iterator[Rows], plan: Plan) -> None:
    write_labelled(groups, plan.folder / FILE, shifted=True, attention_mask=True)


def _read(plan: Plan) -> Iterator[Part]:
    return read_labelled(plan, FILE, shifted=True, attention_mask=True)


AUTOMODEL = Consumer(name="automodel", files=lambda _: [FILE], write=_write, read=_read)
