"""The rows as a torch IterableDataset that any trainer can resume: batches in an order that is written down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info

from databuild.errors import UsageError
from databuild.reading.iterate import Order
from databuild.reading.loading import RowSet
from train.data import items


class RowStream(IterableDataset[dict[str, torch.Tensor]]):
    """Batches of `RowSet.iterate` as tensors, with its `state_dict` and `load_state_dict`.

    Use it with DataLoader(stream, batch_size=None): tokens, labels, position_ids int64[B, S]; loss_mask float32[B, S],
    label-aligned, as in train.data.RowDataset. Options: those of `RowSet.iterate`.

        stream = RowStream(databuild.load(DIR), batch_size=4, order="shuffled", seed=7, epochs=3)
        for batch in DataLoader(stream, batch_size=None): ...
        torch.save({"rows": stream.state_dict(), ...}, path)

    The state is that after the batch given last, so a loader must not read ahead: UsageError in a worker process.
    Iterating goes on where the stream is and never starts it again: epochs says how often the rows come.
    """

    def __init__(
        self,
        rows: RowSet,
        batch_size: int,
        *,
        order: Order = "file",
        seed: int = 42,
        epochs: int | None = 1,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
    ) -> None:
        self._iterator = rows.iterate(
            batch_size, order=order, seed=seed, epochs=epochs, rank=rank, world_size=world_size, drop_last=drop_last
        )

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        if get_worker_info() is not None:
            raise UsageError(
                "a row stream cannot be read in the worker of a DataLoader: its place would be saved in another process",
                expected="num_workers=0",
                next_step="use num_workers=0, or train.data.RowDataset with a sampler of your own",
            )
        return self._batches()

    def _batches(self) -> Iterator[dict[str, torch.Tensor]]:
        for batch in self._iterator:
            yield items(batch.input_ids, batch.loss_mask)

    def state_dict(self) -> dict[str, Any]:
        """Where the stream is, as plain JSON values."""
        return self._iterator.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to a saved place; UsageError if it is one of another stream."""
        self._iterator.load_state_dict(state)
