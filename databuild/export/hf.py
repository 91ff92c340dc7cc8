"""For TRL, axolotl and open-instruct: input_ids, attention_mask, labels, not shifted; the model shifts.

README.md is a dataset card that says which file is the data, so that `datasets.load_dataset(DIR)` finds it.
"""

from __future__ import annotations

from collections.abc import Iterator

from databuild.export.common import Consumer, Part, Plan
from databuild.export.labelled import read_labelled, write_labelled
from databuild.pack import Rows

FILE = "rows.hf.parquet"
CARD = "README.md"


def _card(plan: Plan) -> bytes:
    return f"""---
configs:
- config_name: default
  data_files:
  - split: train
    path: {FILE}
---

# {plan.name}

{plan.rows:,} rows of exactly {plan.row_tokens:,} tokens, in training order: `input_ids`, `attention_mask` (1 everywhere: there is
no padding) and `labels` (-100 where nothing is trained; not shifted, the model shifts). `export.json` has the digests;
`databuild verify` proves them. Do not pack, truncate or tokenize again.

rows_sha256 `{plan.rows_sha256}`
""".encode()


def _write(groups: Iterator[Rows], plan: Plan) -> None:
    write_labelled(groups, plan.folder / FILE, shifted=False, attention_mask=True)
    (plan.folder / CARD).write_bytes(_card(plan))


def _read(plan: Plan) -> Iterator[Part]:
    return read_labelled(plan, FILE, shifted=False, attention_mask=True)


HF = Consumer(name="hf", files=lambda _: [CARD, FILE], write=_write, read=_read)
