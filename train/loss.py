"""The loss: the sum over the targets of the whole global batch, divided by their number."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from torch import Tensor


def masked_sum(label_mask: Tensor, token_losses: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """(sum of losses, number of targets, {"loss": fp64[2] of both}) of a micro-batch; what Megatron's schedule expects.

    token_losses float32[b, s] is the cross entropy of each label, label_mask float32[b, s] is 1 where the label is a target.
    Megatron divides the gradients by the number of targets of all micro-batches and ranks. The sums are taken in fp64, so
    how a batch is split over ranks and micro-batches does not show in the logged loss.
    """
    total = (token_losses.double() * label_mask.double()).sum()
    targets = label_mask.sum().int()
    return total, targets, {"loss": torch.stack([total.detach(), targets.double()])}


def batch_loss(parts: Sequence[dict[str, Tensor]]) -> tuple[float, int]:
    """(loss, number of targets) of the global batch, the same on every rank; parts are the micro-batches of this rank."""
    total = torch.zeros(2, dtype=torch.float64, device=torch.cuda.current_device())
    for part in parts:
        total += part["loss"]
    if parallel_state.is_pipeline_last_stage():
        dist.all_reduce(total, group=parallel_state.get_data_parallel_group(with_context_parallel=True))
    dist.broadcast(
        total,
        src=parallel_state.get_pipeline_model_parallel_last_rank(),
        group=parallel_state.get_pipeline_model_parallel_group(),
    )
    loss_sum, targets = total.tolist()
    return loss_sum / max(targets, 1.0), int(targets)
