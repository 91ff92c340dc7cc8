"""What every source gives: an identity, a number of rows, and conversations by row index in batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from manifests.model import SourceRecord

#: Role codes of plain messages. A conversation that is not plain is one entry, RAW, whose text is its record as JSON.
ROLE_CODES = {"system": 0, "user": 1, "assistant": 2}
SYSTEM, USER, ASSISTANT, RAW = 0, 1, 2, 255


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationBatch:
    """k conversations in reading order, columnar, m message entries in all.

    rows: int64[k], source row indices. counts: int64[k], entries of each. roles: uint8[m]. texts: m strings.
    marked: bool[m], False where a text surely spells no added token (see sources.marks). source_codes: int32[k], index
    into the source's `source_names`. id_codes: int64[k], equal for equal ids, -1 without.
    """

    rows: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    roles: npt.NDArray[np.uint8]
    texts: list[str]
    marked: npt.NDArray[np.bool_]
    source_codes: npt.NDArray[np.int32]
    id_codes: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)


class Source(Protocol):
    """A readable, unchanging, ordered set of conversations."""

    @property
    def record(self) -> SourceRecord:
        """The identity, as it stands in the manifest."""
        ...

    @property
    def source_names(self) -> list[str]:
        """The names that source_codes point into."""
        ...

    @property
    def num_rows(self) -> int:
        """How many rows the source has, usable or not."""
        ...

    @property
    def num_ids(self) -> int:
        """An upper bound of id_codes."""
        ...

    def take(self, indices: npt.NDArray[np.int64]) -> ConversationBatch:
        """The conversations at these row indices, in this order."""
        ...

    def close(self) -> None:
        """Give back what the source holds on disk."""
        ...
