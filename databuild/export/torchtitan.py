"""For torchtitan: the fields of its TextSequence, input_ids and labels shifted by one, -100 where nothing is trained."""

from __future__ import annotations

from collections.abc import Iterator

from databuild.export.common import Consumer, Part, Plan
from databuild.export.labelled import read_labelled, write_labelled
from databuild.pack import Rows

FILE = "rows.torchtitan.parquet"


def _write(groups: Iterator[Rows], plan: Plan) -> None:
    write_labelled(groups, plan.folder / FILE, shifted=True, attention_mask=False)


def _read(plan: Plan) -> Iterator[Part]:
    return read_labelled(plan, FILE, shifted=True, attention_mask=False)


TORCHTITAN = Consumer(name="torchtitan", files=lambda _: [FILE], write=_write, read=_read)
