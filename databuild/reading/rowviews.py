"""What a reader gets of the rows: one row, or a batch of them, as numpy arrays. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

#: The label of a position that is not trained; what torch.nn.functional.cross_entropy leaves out by default.
IGNORE = -100


def shifted(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The value of the next position at each; 0 at the last, which has none. [..., R], of the same type.

    The only place where rows are shifted for a trainer.
    """
    result = np.zeros_like(values)
    result[..., :-1] = values[..., 1:]
    return result


def shifted_labels(input_ids: npt.NDArray[np.int32], loss_mask: npt.NDArray[np.uint8]) -> npt.NDArray[np.int32]:
    """int32[..., R]: labels[t] = input_ids[t + 1] where loss_mask[t + 1] is 1, IGNORE elsewhere and at the last position."""
    labels: npt.NDArray[np.int32] = np.where(shifted(loss_mask) != 0, shifted(input_ids), np.int32(IGNORE))
    return labels


class _Trained:
    """What a trainer takes from ids and a mask of the same shape, one row's [R] or a batch's [B, R]."""

    __slots__ = ()
    input_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.uint8]

    @property
    def labels(self) -> npt.NDArray[np.int32]:
        """int32[..., R], shifted already: labels[t] = input_ids[t + 1] where that is a target, else -100."""
        return shifted_labels(self.input_ids, self.loss_mask)

    @property
    def label_mask(self) -> npt.NDArray[np.uint8]:
        """uint8[..., R], shifted already: label_mask[t] = loss_mask[t + 1], 0 at the last position."""
        return shifted(self.loss_mask)

    @property
    def num_targets(self) -> int:
        """Tokens that are trained."""
        return int(self.loss_mask.sum(dtype=np.int64))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row(_Trained):
    """One row. The arrays are read-only views of what was read: a row that is kept keeps its row group in memory."""

    row: int
    """its number in the build"""
    input_ids: npt.NDArray[np.int32]
    """int32[row_tokens]"""
    loss_mask: npt.NDArray[np.uint8]
    """uint8[row_tokens]; 1: this token is a target, predicted from those before it; loss_mask[0] is 0"""
    doc_starts: npt.NDArray[np.int32]
    """int32[d]: where each conversation, or its continuation at 0, begins"""
    doc_rows: npt.NDArray[np.int64]
    """int64[d]: the source row of each of those"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBatch(_Trained):
    """B rows; the arrays are read-only. batch[i] and iteration give single rows."""

    rows: npt.NDArray[np.int64]
    """int64[B]: their numbers in the build"""
    input_ids: npt.NDArray[np.int32]
    """int32[B, row_tokens]"""
    loss_mask: npt.NDArray[np.uint8]
    """uint8[B, row_tokens], not shifted"""
    doc_starts: npt.NDArray[np.int32]
    """int32[d]: those of row i at doc_offsets[i] : doc_offsets[i + 1]"""
    doc_rows: npt.NDArray[np.int64]
    """int64[d]: likewise"""
    doc_offsets: npt.NDArray[np.int64]
    """int64[B + 1]"""

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Row:
        place = range(len(self))[index]
        docs = slice(int(self.doc_offsets[place]), int(self.doc_offsets[place + 1]))
        return Row(
            row=int(self.rows[place]),
            input_ids=self.input_ids[place],
            loss_mask=self.loss_mask[place],
            doc_starts=self.doc_starts[docs],
            doc_rows=self.doc_rows[docs],
        )

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))
