"""A training run in memory: model, optimizer and schedule of one rank, stepped over the rows, saved and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import torch.distributed as dist
from megatron.core import parallel_state

from databuild.errors import UsageError
from train import checkpoint, megatron_fixes
from train.checkpoint import Progress
from train.config import TrainConfig
from train.data import MicroBatch
from train.expert_load import ExpertLoad
from train.layout import check_layout, data_parallel_size, start_groups
from train.logprobs import Logprobs, Watch
from train.model import build_model, unwrapped
from train.optim import build_optimizer, build_schedule
from train.step import StepResult, connect, train_step


class Rows(Protocol):
    """What a run needs of the rows; train.data.RowData has it."""

    @property
    def rows_sha256(self) -> str:
        """The identity of the rows."""

    def micro_batches(self, consumed_rows: int, dp_rank: int, dp_size: int) -> list[MicroBatch]:
        """The micro-batches of a data-parallel rank for the global batch that starts after consumed_rows."""


def refuse_layout(config: TrainConfig, world_size: int) -> None:
    """UsageError if these processes cannot train this configuration, with every reason."""
    if reasons := check_layout(config, world_size):
        raise UsageError("this layout cannot be trained", found="; ".join(reasons))


class Run:
    """One run on this rank; torch.distributed is up, on a CPU with train.cpu_shim in place.

    Every rank calls every method. UsageError if the layout cannot be trained. watch_first: keep the log-probabilities of
    the targets of step 0 in first_logprobs, on rank 0.
    """

    def __init__(self, config: TrainConfig, rows: Rows, *, watch_first: bool = False) -> None:
        refuse_layout(config, dist.get_world_size())
        megatron_fixes.install()
        start_groups(config)
        self.config = config
        self.rows = rows
        self.progress = Progress(step=0, consumed_rows=0)
        self.first_logprobs: Logprobs | None = None
        self._watch_first = watch_first
        self.model = build_model(config)
        self.optimizer = build_optimizer(config, self.model)
        self.schedule = build_schedule(config, self.optimizer)
        connect(self.model, self.optimizer)
        self.expert_load = ExpertLoad(unwrapped(self.model))

    def step(self) -> StepResult:
        """Train on the next global batch."""
        dp_size = data_parallel_size(self.config, dist.get_world_size())
        dp_rank = parallel_state.get_data_parallel_rank()
        batches = self.rows.micro_batches(self.progress.consumed_rows, dp_rank, dp_size)
        watch = Watch() if self._watch_first and self.progress.step == 0 else None
        result = train_step(self.config, self.model, self.optimizer, self.schedule, self.expert_load, batches, watch)
        if watch is not None:
            self.first_logprobs = watch.gather(self.config, dp_rank, dp_size)
        self.progress = Progress(
            step=self.progress.step + 1,
            consumed_rows=self.progress.consumed_rows + self.config.global_batch_size,
        )
        return result

    def save(self, folder: Path) -> Path:
        """Save a checkpoint under folder; gives its path."""
        return checkpoint.save(
            folder, self.config, self.rows.rows_sha256, self.progress, self.model, self.optimizer, self.schedule
        )

    def resume(self, folder: Path) -> None:
        """Go on from the newest checkpoint under folder, whatever layout saved it."""
        self.progress = checkpoint.load(
            folder, self.config, self.rows.rows_sha256, self.model, self.optimizer, self.schedule
        )

    def close(self) -> None:
        """Give up Megatron's process groups and what it keeps of a model outside the model; another run may start."""
        megatron_fixes.forget_model()
        parallel_state.destroy_model_parallel()
