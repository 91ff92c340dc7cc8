"""For Megatron-Bridge: offline-packed parquet, as its GPTSFTPackedParquetDataset reads it.

Of each stored segment it feeds all tokens but the last and takes the next ones as labels, weighed by a mask that is aligned
with the labels: so a row gets one EOS more, and mask[t] says whether token t + 1 is trained. seq_start_id: where segments
begin. `rows`: a row is one segment, and conversations of a row see each other, as in every other export here. `documents`:
each conversation is a segment of its own; its last token is then fed to nothing, and a label of a first token is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from databuild.export.columns import TableFile, fixed, lists, matrix, ragged, ragged_values, read_tables
from databuild.export.common import Consumer, Part, Plan, expected_labels, mask_of, not_whole
from databuild.pack import Rows
from databuild.reading.rowviews import IGNORE
from manifests.canonical import canonical_json
from masks.deepseek_v4 import EOS

METADATA = "metadata.json"
IDS, STARTS, MASK = lists("input_ids", pa.int32()), lists("seq_start_id", pa.int32()), lists("loss_mask", pa.int8())
SCHEMA = pa.schema([IDS, STARTS, MASK])


def _file(plan: Plan) -> str:
    return f"training_{plan.row_tokens}{_suffix(plan.options)}.idx.parquet"


def _suffix(options: dict[str, str]) -> str:
    return "_documents" if options["segments"] == "documents" else ""


class _Lengths:
    """What metadata.json tells of the segments."""

    def __init__(self) -> None:
        self.longest = self.most = self.segments = self.rows = 0

    def add(self, starts: npt.NDArray[Any], counts: npt.NDArray[np.int64], row_tokens: int) -> None:
        firsts = np.cumsum(counts) - counts
        ends = np.append(starts[1:], row_tokens)
        ends[np.append(firsts[1:], len(starts)) - 1] = row_tokens
        self.longest = max(self.longest, int((ends - starts).max()))
        self.most = max(self.most, int(counts.max()))
        self.segments += len(starts)
        self.rows += len(counts)

    def to_json(self, row_tokens: int) -> bytes:
        """A list, one entry a split; only pad_cu_seqlens=True needs it, and of it max_samples_per_bin."""
        return canonical_json(
            [
                {
                    "dataset_max_seqlen": self.longest,
                    "max_samples_per_bin": self.most,
                    "min_packed_seqlen": row_tokens,
                    "pack_size": row_tokens,
                    "packing_efficiency": 100.0,
                    "packing_factor": round(self.segments / max(1, self.rows), 2),
                }
            ]
        )


def _write(groups: Iterator[Rows], plan: Plan) -> None:
    lengths = _Lengths()
    with TableFile(plan.folder / _file(plan), SCHEMA, constants=["seq_start_id.list.element"]) as file:
        for rows in groups:
            num = len(rows)
            ids = np.concatenate([rows.input_ids, np.full((num, 1), EOS, np.int32)], axis=1)
            mask = np.zeros(ids.shape, np.int8)
            mask[:, :-1] = expected_labels(rows, plan.options) != IGNORE
            starts, counts = np.zeros(num, np.int32), np.ones(num, np.int64)
            if plan.options["segments"] == "documents":
                starts, counts = rows.doc_starts, np.diff(rows.doc_offsets)
            lengths.add(starts, counts, plan.row_tokens)
            offsets = np.append(0, np.cumsum(counts))
            file.write([fixed(ids, IDS), ragged(starts, offsets, STARTS), fixed(mask, MASK)])
    (plan.folder / METADATA).write_bytes(lengths.to_json(plan.row_tokens))


def _read(plan: Plan) -> Iterator[Part]:
    lengths = _Lengths()
    for table, where in read_tables(plan.folder / _file(plan), SCHEMA):
        ids = matrix(table, "input_ids", plan.row_tokens + 1, where)
        mask = matrix(table, "loss_mask", plan.row_tokens + 1, where)
        starts, counts = ragged_values(table, "seq_start_id")
        _check_starts(starts, counts, plan, where)
        # Of a segment that ends where another begins, the last token predicts nothing.
        follows = np.repeat(np.arange(len(ids)), counts)[starts > 0], starts[starts > 0] - 1
        if mask.max() > 1 or mask.min() < 0 or mask[:, -2:].any() or mask[follows].any():
            raise not_whole(
                "the mask is not aligned with the labels", where, "0 or 1, and 0 at the end of each segment"
            )
        if (ids[:, -1] != EOS).any():
            raise not_whole("a row does not end in the EOS that is added", where)
        lengths.add(starts, counts, plan.row_tokens)
        labels = np.where(mask[:, :-1] == 1, ids[:, 1:], np.int32(IGNORE))
        content = {"input_ids": ids, "loss_mask": mask, "seq_start_id": starts, "seq_start_id.lengths": counts}
        yield Part(input_ids=ids[:, :-1], labels=labels, content=content)
    path = plan.folder / METADATA
    if not path.is_file() or path.read_bytes() != lengths.to_json(plan.row_tokens):
        raise not_whole("the metadata is not that of the rows", METADATA)


def _check_starts(starts: npt.NDArray[Any], counts: npt.NDArray[np.int64], plan: Plan, where: str) -> None:
    firsts = np.cumsum(counts) - counts
    rises = np.append(True, np.diff(starts) > 0)
    rises[firsts] = starts[firsts] == 0 if counts.all() else False
    whole = plan.options["segments"] == "documents" or (counts == 1).all()
    if not (counts.all() and whole and rises.all() and starts.max() < plan.row_tokens):
        raise not_whole("seq_start_id is not 0 and rising", where, "0 < ... < row length" if not whole else "0 alone")


def num_after_eos(rows: Rows) -> int:
    """Targets that follow an EOS. Megatron-Bridge 0.6.2 leaves them out, later versions train them."""
    labels = mask_of(expected_labels(rows, {}))
    return int(np.count_nonzero((labels[:, 1:] == 1) & (rows.input_ids[:, :-1] == EOS)))


BRIDGE = Consumer(
    name="bridge",
    options={"segments": ("rows", "documents")},
    suffix=lambda options: _suffix(options).replace("_", "-"),
    files=lambda plan: [METADATA, _file(plan)],
    write=_write,
    read=_read,
)
