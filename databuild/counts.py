"""The counts of a build, from what was really read."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.encode import EncodedBatch
from databuild.pack import Packer
from databuild.pieces import NOTE_BIT, NOTES, REASONS
from databuild.sources.base import ConversationBatch
from manifests.model import Counts
from masks.conversation import Note


class Tally:
    """Adds up conversations in reading order."""

    def __init__(self, num_ids: int) -> None:
        self._seen_ids = np.zeros(num_ids, bool)
        self._reasons = np.zeros(len(REASONS) + 1, np.int64)
        self._notes = np.zeros(len(NOTES), np.int64)
        self._by_source = np.zeros((0, 4), np.int64)  # used, skipped, tokens, targets
        self.conversations = 0
        self.targets = 0

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """What `restore` needs to go on from here; nothing in it changes later."""
        return {
            "seen_ids": np.packbits(self._seen_ids), "reasons": self._reasons.copy(), "notes": self._notes.copy(),
            "by_source": self._by_source.copy(), "numbers": np.array([self.conversations, self.targets], np.int64),
        }  # fmt: skip

    def restore(self, state: dict[str, npt.NDArray[Any]]) -> None:
        """Go on from a state."""
        self._seen_ids = np.unpackbits(state["seen_ids"], count=len(self._seen_ids)).astype(bool)
        self._reasons, self._notes, self._by_source = state["reasons"], state["notes"], state["by_source"]
        self.conversations, self.targets = state["numbers"].tolist()

    def add(self, batch: ConversationBatch, encoded: EncodedBatch, read: int) -> None:
        """Count the first `read` conversations of a batch."""
        status, codes = encoded.status[:read], batch.source_codes[:read]
        used = status == 0
        tokens = np.diff(encoded.ends[:read], prepend=0)
        targets = encoded.num_targets[:read]
        notes = encoded.notes[:read].astype(np.int64)
        notes[self._repeats(batch.id_codes[:read], used)] |= NOTE_BIT[Note.ID_DUPLICATE]
        self._reasons += np.bincount(status, minlength=len(self._reasons))
        self._notes += [(notes[used] & NOTE_BIT[note] != 0).sum() for note in NOTES]
        width = max(len(self._by_source), int(codes.max(initial=-1)) + 1)
        grown = np.zeros((width, 4), np.int64)
        grown[: len(self._by_source)] = self._by_source
        for column, weights in enumerate((used, ~used, tokens, targets)):
            # Weighted bincount adds in float64, which is exact for these (far below 2^53).
            grown[:, column] += np.bincount(codes, weights=weights, minlength=width).astype(np.int64)
        self._by_source = grown
        self.conversations += read
        self.targets += int(targets.sum())

    def _repeats(self, id_codes: npt.NDArray[np.int64], used: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """Positions whose id an earlier used conversation had."""
        at = np.flatnonzero(used & (id_codes >= 0))
        ids = id_codes[at]
        first = np.zeros(len(at), bool)
        first[np.unique(ids, return_index=True)[1]] = True
        repeated = self._seen_ids[ids] | ~first
        self._seen_ids[ids] = True
        result: npt.NDArray[np.intp] = at[repeated]
        return result

    def counts(self, packer: Packer, source_names: list[str]) -> Counts:
        """The counts as they stand in the manifest; only what occurred is listed."""
        by_source: dict[str, Any] = {}
        for code, (used, skipped, tokens, targets) in enumerate(self._by_source.tolist()):
            if used or skipped:
                by_source[source_names[code]] = {
                    "used": used, "skipped": skipped, "tokens": tokens, "targets": targets
                }  # fmt: skip
        return Counts(
            conversations=self.conversations,
            used=int(self._reasons[0]),
            skipped={r.value: int(c) for r, c in zip(REASONS, self._reasons[1:], strict=True) if c},
            noted={n.value: int(c) for n, c in zip(NOTES, self._notes, strict=True) if c},
            by_source=by_source,
            tokens=packer.num_tokens,
            rows_cut=packer.num_cut,
            rows_without_targets=packer.num_cut - packer.num_kept,
            tail_tokens=packer.tail_tokens,
        )
