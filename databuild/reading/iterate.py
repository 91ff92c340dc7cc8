"""Batches of rows in an order that is written down, and a place in it that can be saved. The plan is pure.

The rows of all epochs are one stream: epoch 0 in its order, then epoch 1 in its own, and so on. Batches are cut from the
stream, so one may hold the end of an epoch and the start of the next. Rank r takes of step k the stream's positions
`(k * world_size + r) * batch_size + i`: with order "file" the micro-batches of train.batches, whichever the layout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, ValidationError

from databuild.errors import IntegrityError, UsageError
from databuild.reading.rowviews import RowBatch
from manifests.model import Count, Digest, Strict, first_error

Order = Literal["file", "shuffled"]
STATE_SCHEMA = "databuild/iterator/v1"
MAX_SEED = (1 << 32) - 1

#: (n, seed, epoch, first values): what numpy must draw. Epoch 0 is `databuild.order.permutation(n, seed)`.
VECTORS: tuple[tuple[int, int, int, tuple[int, ...]], ...] = (
    (10, 42, 0, (5, 6, 0, 7, 3, 2, 4, 9, 1, 8)),
    (10, 42, 1, (0, 8, 7, 4, 3, 1, 2, 9, 6, 5)),
    (6400, 7, 3, (5031, 2886, 3263, 6245, 2452, 2181, 4507, 837)),
)


@lru_cache(maxsize=2)
def epoch_order(num_rows: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """int64[num_rows], read-only: `numpy.random.default_rng([seed, epoch]).permutation(num_rows)`."""
    order = np.random.default_rng([seed, epoch]).permutation(num_rows).astype(np.int64, copy=False)
    order.flags.writeable = False
    return order


def check_epoch_order() -> None:
    """IntegrityError unless this numpy draws the pinned orders."""
    for num_rows, seed, epoch, expected in VECTORS:
        found = tuple(epoch_order(num_rows, seed, epoch)[: len(expected)].tolist())
        if found != expected:
            raise IntegrityError(
                f"numpy {np.__version__} draws another order of {num_rows} rows with seed {seed} in epoch {epoch}",
                expected=str(expected),
                found=str(found),
                next_step="install a numpy that README lists as tested",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Which rows each batch of one rank holds. batch_size: rows of a batch of one rank. epochs None: without end.

    The last batch holds what is left, or is left out with drop_last. With several ranks there is no short batch: they
    would run out at different steps. UsageError for a plan that cannot be.
    """

    num_rows: int
    batch_size: int
    order: Order
    seed: int
    epochs: int | None
    rank: int
    world_size: int
    drop_last: bool

    def __post_init__(self) -> None:
        for name, low in (("batch_size", 1), ("seed", 0), ("epochs", 0), ("rank", 0), ("world_size", 1)):
            value = getattr(self, name)
            if name == "epochs" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < low:
                raise UsageError(f"{name} is no number of that kind", expected=f"{low} or more", found=repr(value))
        if self.order not in ("file", "shuffled"):
            raise UsageError("there is no such order", expected="file or shuffled", found=repr(self.order))
        if self.seed > MAX_SEED:
            raise UsageError("the seed is too large", expected=f"at most {MAX_SEED}", found=str(self.seed))
        if self.rank >= self.world_size:
            raise UsageError("there is no such rank", expected=f"0 to {self.world_size - 1}", found=str(self.rank))
        if self.total is None and self.num_rows == 0:
            raise UsageError("a build without rows has no batches without end", next_step="give epochs a number")
        if self.world_size > 1 and not self.drop_last and self.total is not None and self.total % self.step:
            raise UsageError(
                "the rows do not divide among the ranks: the last step would be short for some",
                expected=f"a multiple of world_size {self.world_size} x batch_size {self.batch_size}",
                found=f"{self.num_rows:,} rows x {self.epochs} epochs",
                next_step="drop_last=True leaves out the rows after the last whole step",
            )

    @property
    def step(self) -> int:
        """Rows that all ranks take together in a step: the global batch."""
        return self.batch_size * self.world_size

    @property
    def total(self) -> int | None:
        """Rows of the whole stream, None without end."""
        return None if self.epochs is None else self.epochs * self.num_rows

    def num_batches(self, consumed: int = 0) -> int | None:
        """Batches of a rank that are left after consumed rows; None without end."""
        if self.total is None:
            return None
        left = max(0, self.total - consumed)
        return left // self.step if self.drop_last else -(-left // self.step)

    def batch(self, consumed: int) -> npt.NDArray[np.int64] | None:
        """int64[B]: the rows of the batch that comes after consumed rows of the stream; None if there is none."""
        start, stop = consumed + self.rank * self.batch_size, consumed + (self.rank + 1) * self.batch_size
        if self.total is not None:
            if consumed >= self.total or (self.drop_last and consumed + self.step > self.total):
                return None
            stop = min(stop, self.total)
        parts = []
        while start < stop:
            epoch, first = divmod(start, self.num_rows)
            last = min(self.num_rows, first + stop - start)
            parts.append(
                np.arange(first, last, dtype=np.int64)
                if self.order == "file"
                else epoch_order(self.num_rows, self.seed, epoch)[first:last]
            )
            start += last - first
        return np.concatenate(parts)


class IteratorState(Strict):
    """A place in the stream, as it is saved. consumed = epoch * rows + position counts the rows of all ranks."""

    schema_: Annotated[Literal["databuild/iterator/v1"], Field(alias="schema")]
    rows_sha256: Digest
    order: Order
    seed: Count
    global_batch_size: Annotated[int, Field(ge=1)]
    consumed: Count
    epoch: Count
    position: Count


class RowIterator:
    """The batches of a plan, one after another; `state_dict()` says where it is, `load_state_dict` goes there.

    Its state is that after the batch given last. Iterating goes on where it is; it does not start again.
    """

    def __init__(self, take: Callable[[npt.NDArray[np.int64]], RowBatch], rows_sha256: str, plan: Plan) -> None:
        if plan.order == "shuffled":
            check_epoch_order()
        self.plan = plan
        self.consumed = 0  # rows of the stream, of all ranks
        self._take = take
        self._rows_sha256 = rows_sha256

    def __iter__(self) -> RowIterator:
        return self

    def __next__(self) -> RowBatch:
        rows = self.plan.batch(self.consumed)
        if rows is None:
            raise StopIteration
        batch = self._take(rows)
        total = self.plan.total
        self.consumed = self.consumed + self.plan.step if total is None else min(total, self.consumed + self.plan.step)
        return batch

    def __length_hint__(self) -> int:
        left = self.plan.num_batches(self.consumed)
        return NotImplemented if left is None else left

    def state_dict(self) -> dict[str, Any]:
        """The place as plain JSON values. Every rank of a step has the same."""
        plan = self.plan
        epoch, position = divmod(self.consumed, plan.num_rows) if plan.num_rows else (0, 0)
        return {
            "schema": STATE_SCHEMA,
            "rows_sha256": self._rows_sha256,
            "order": plan.order,
            "seed": plan.seed if plan.order == "shuffled" else 0,
            "global_batch_size": plan.step,
            "consumed": self.consumed,
            "epoch": epoch,
            "position": position,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go to a saved place. UsageError if it is one of other rows, or of another order, seed or batch size.

        rank, world_size, epochs and drop_last may be others, as long as world_size x batch_size is the same.
        """
        try:
            saved = IteratorState.model_validate(state)
        except ValidationError as error:
            raise UsageError("this is no state of a row iterator", found=first_error(error)) from error
        here = IteratorState.model_validate(self.state_dict())
        for field in ("rows_sha256", "order", "seed", "global_batch_size"):
            if getattr(saved, field) != getattr(here, field):
                raise UsageError(
                    f"the saved place is in another stream: its {field} differs",
                    expected=str(getattr(here, field)),
                    found=str(getattr(saved, field)),
                    next_step="iterate over the same build with the same order, seed and batch size",
                )
        if saved.epoch * self.plan.num_rows + saved.position != saved.consumed or (
            saved.position > max(0, self.plan.num_rows - 1)
        ):
            raise UsageError(
                "the saved place contradicts itself",
                expected=f"epoch {saved.epoch} x {self.plan.num_rows} rows + position {saved.position}",
                found=f"consumed {saved.consumed}",
            )
        self.consumed = saved.consumed
