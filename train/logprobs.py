"""The log-probability of every target token at the first step, whatever the layout: what a parity check compares.

RUN/logprobs-step0.npz    row int64[n], position int32[n], logprob float32[n], in the order of rows and positions;
                          rows_sha256 and config as text, and gpus. position is that of the target token itself in its row.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch.distributed as dist
from megatron.core import parallel_state
from torch import Tensor

from databuild.errors import OutputError
from train.batches import step_rows
from train.config import TrainConfig, print_config
from train.loss import masked_sum

FILE = "logprobs-step0.npz"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Logprobs:
    """Of all targets of the first global batch, sorted by row, then position; the same length all over."""

    row: npt.NDArray[np.int64]
    position: npt.NDArray[np.int32]
    logprob: npt.NDArray[np.float32]


class Watch:
    """Takes the per-token losses of one step as they come to the loss function, on the ranks that have them.

    The loss of a token is minus its log-probability; vocabulary-parallel ranks all hold the whole of it.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]] = []

    def masked_sum(self, label_mask: Tensor, token_losses: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """train.loss.masked_sum, seen. Megatron calls it once a micro-batch, in order."""
        self._parts.append((-token_losses.detach().float().cpu().numpy(), label_mask.cpu().numpy() > 0))
        return masked_sum(label_mask, token_losses)

    def gather(self, config: TrainConfig, dp_rank: int, dp_size: int) -> Logprobs | None:
        """All targets of the step on rank 0, None on the others; every rank calls it, after the step."""
        own = None
        if self._parts and parallel_state.get_tensor_model_parallel_rank() == 0:
            own = self._placed(config, dp_rank, dp_size)
        gathered: list[Any] | None = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
        dist.gather_object(own, gathered, dst=0)
        if gathered is None:
            return None
        rows, positions, logprobs = (np.concatenate(parts) for parts in zip(*(g for g in gathered if g), strict=True))
        order = np.lexsort((positions, rows))
        return Logprobs(row=rows[order], position=positions[order], logprob=logprobs[order])

    def _placed(
        self, config: TrainConfig, dp_rank: int, dp_size: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Which row and token each of the losses of this rank is of."""
        # Not at the top: its module needs the CPU stand-ins in place on a machine without a GPU.
        import torch

        from train.attention import zigzag

        cp_size = parallel_state.get_context_parallel_world_size()
        cp_rank = parallel_state.get_context_parallel_rank()
        index = zigzag(torch.arange(config.seq_length)[None], cp_size, cp_rank, 1)[0].numpy()
        rows = step_rows(
            0,
            global_batch_size=config.global_batch_size,
            micro_batch_size=config.micro_batch_size,
            dp_size=dp_size,
            dp_rank=dp_rank,
        )
        logprobs, mask = (np.stack(arrays) for arrays in zip(*self._parts, strict=True))  # [micro-batches, mbs, S / cp]
        assert logprobs.shape == (*rows.shape, len(index)), (logprobs.shape, rows.shape, len(index))
        whole_rows = np.broadcast_to(rows[..., None], mask.shape)
        # The loss at t is of predicting token t + 1.
        positions = np.broadcast_to((index + 1).astype(np.int32), mask.shape)
        return whole_rows[mask], positions[mask], logprobs[mask]


def write(folder: Path, found: Logprobs, rows_sha256: str, config: TrainConfig) -> Path:
    """Write FILE under folder; at any time it is whole or not there. Gives its path."""
    path = folder / FILE
    temporary = path.with_name(path.name + ".tmp.npz")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        np.savez(
            temporary,
            row=found.row,
            position=found.position,
            logprob=found.logprob,
            rows_sha256=np.array(rows_sha256),
            gpus=np.array(dist.get_world_size()),
            config=np.array(print_config(config)),
        )
        temporary.replace(path)
    except OSError as error:
        raise OutputError("the log-probabilities cannot be written", where=str(path), found=error.strerror) from error
    return path
