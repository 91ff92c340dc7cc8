"""Token stream -> rows. Pure: no token is changed, moved, padded or dropped but the tail of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """r kept rows of R tokens.

    input_ids: int32[r, R]. loss_mask: uint8[r, R], token-aligned, column 0 is 0. doc_starts: int32[d] and doc_rows:
    int64[d], the documents of row i at doc_offsets[i] : doc_offsets[i + 1] (int64[r + 1]).
    """

    input_ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.uint8]
    doc_starts: npt.NDArray[np.int32]
    doc_rows: npt.NDArray[np.int64]
    doc_offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.input_ids)


class Packer:
    """Cuts a stream that comes in batches every row_tokens; keeps rows with a target; stops at max_rows kept."""

    def __init__(self, row_tokens: int, max_rows: int | None = None) -> None:
        self.row_tokens = row_tokens
        self.max_rows = max_rows
        self.num_tokens = 0  # of the stream, up to what has been read
        self.num_cut = 0
        self.num_kept = 0
        self._ids = np.zeros(0, np.int32)  # the tail so far
        self._mask = np.zeros(0, np.uint8)
        self._doc_starts = np.zeros(0, np.int64)  # of the documents that reach into the tail, in stream positions
        self._doc_rows = np.zeros(0, np.int64)

    @property
    def full(self) -> bool:
        """Whether max_rows are kept."""
        return self.max_rows is not None and self.num_kept >= self.max_rows

    @property
    def tail_tokens(self) -> int:
        """Tokens read past the last row."""
        return self.num_tokens - self.num_cut * self.row_tokens

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What `restore` needs to go on from here; nothing in it changes later."""
        numbers = [self.num_tokens, self.num_cut, self.num_kept]
        return {
            "numbers": np.array(numbers, np.int64), "ids": self._ids, "mask": self._mask,
            "doc_starts": self._doc_starts, "doc_rows": self._doc_rows,
        }  # fmt: skip

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a state."""
        self.num_tokens, self.num_cut, self.num_kept = state["numbers"].tolist()
        self._ids, self._mask = state["ids"], state["mask"]
        self._doc_starts, self._doc_rows = state["doc_starts"], state["doc_rows"]

    def add(
        self,
        ids: npt.NDArray[np.int32],
        loss_mask: npt.NDArray[np.uint8],
        doc_ends: npt.NDArray[np.int64],
        doc_rows: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
    ) -> tuple[Rows, int]:
        """Add k conversations that end at ends[0..k) in ids; gives (kept rows, how many conversations were read).

        doc_ends[0..e) and doc_rows[0..e): where each of their examples ends, and its source row.

        Fewer than k are read only when max_rows is reached: up to the one that gives the last token of the last row.
        """
        size = self.row_tokens
        base = self.num_cut * size  # stream position of the first token of the tail
        before = self.num_tokens
        starts = before + np.append(0, doc_ends)[:-1]
        filled = starts < before + doc_ends  # an example without tokens is no document
        doc_starts = np.append(self._doc_starts, starts[filled])
        doc_rows = np.append(self._doc_rows, doc_rows[filled])
        stream = np.concatenate([self._ids, ids])
        mask = np.concatenate([self._mask, loss_mask])
        cut = len(stream) // size
        row_ids = stream[: cut * size].reshape(cut, size)
        row_mask = mask[: cut * size].reshape(cut, size)
        row_mask[:, 0] = 0  # nothing before it in the row predicts it
        keep = np.flatnonzero(row_mask.any(axis=1))
        read = len(ends)
        if self.max_rows is not None and self.num_kept + len(keep) >= self.max_rows:
            keep = keep[: self.max_rows - self.num_kept]
            cut = int(keep[-1]) + 1
            last_token = base + cut * size - 1
            read = int(np.searchsorted(before + ends, last_token, side="right")) + 1
        end = before + (int(ends[read - 1]) if read else 0)
        result = self._kept(row_ids, row_mask, keep, cut, base, doc_starts, doc_rows, before + len(ids))
        self.num_tokens = end
        self.num_cut += cut
        self.num_kept += len(keep)
        self._ids, self._mask = stream[cut * size :].copy(), mask[cut * size :].copy()
        reaching = np.append(doc_starts, end)[1:] > base + cut * size
        self._doc_starts, self._doc_rows = doc_starts[reaching], doc_rows[reaching]
        return result, read

    def _kept(
        self,
        row_ids: npt.NDArray[np.int32],
        row_mask: npt.NDArray[np.uint8],
        keep: npt.NDArray[np.intp],
        cut: int,
        base: int,
        doc_starts: npt.NDArray[np.int64],
        doc_rows: npt.NDArray[np.int64],
        stream_end: int,
    ) -> Rows:
        size = self.row_tokens
        doc_ends = np.append(doc_starts, stream_end)[1:]
        first_row = np.maximum(doc_starts - base, 0) // size
        past_row = np.minimum((doc_ends - base - 1) // size + 1, cut)  # a document may reach over many rows
        covers = np.maximum(past_row - first_row, 0)
        document = np.repeat(np.arange(len(covers)), covers)
        row = np.arange(len(document)) - np.repeat(np.cumsum(covers) - covers, covers) + first_row[document]
        in_row = np.maximum(doc_starts[document] - base - row * size, 0)
        chosen = np.zeros(cut, bool)
        chosen[keep] = True
        entry = chosen[row]
        counts = np.bincount(row[entry], minlength=cut)[keep] if cut else np.zeros(0, np.int64)
        return Rows(
            input_ids=row_ids[keep],
            loss_mask=row_mask[keep],
            doc_starts=in_row[entry].astype(np.int32),
            doc_rows=doc_rows[document[entry]],
            doc_offsets=np.append(0, np.cumsum(counts)).astype(np.int64),
        )
