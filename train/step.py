"""One training step: the micro-batches of a global batch forward and backward, then the optimizer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.distributed import finalize_model_grads
from megatron.core.pipeline_parallel import get_forward_backward_func
from torch import Tensor

from train.attention import zigzag
from train.config import TrainConfig
from train.data import MicroBatch
from train.expert_load import ExpertLoad
from train.logprobs import Watch
from train.loss import batch_loss, masked_sum


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step did. loss: mean over the num_targets targets of the global batch, before the update.

    expert_load: for each layer with experts, how many tokens each of them got.
    """

    loss: float
    num_targets: int
    grad_norm: float
    lr: float
    expert_load: dict[str, list[float]] | None


def connect(model: Any, optimizer: Any) -> None:
    """Give Megatron's schedule what it calls while it runs a step."""
    model.config.grad_scale_func = optimizer.scale_loss
    model.config.finalize_model_grads_func = finalize_model_grads


def _device_batches(config: TrainConfig, batches: Sequence[MicroBatch]) -> Iterator[dict[str, Tensor]]:
    """The micro-batches as tensors: of each row this context-parallel rank's part, and all their documents."""
    cp_size = parallel_state.get_context_parallel_world_size()
    cp_rank = parallel_state.get_context_parallel_rank()
    device = torch.cuda.current_device()
    for batch in batches:
        tensors = {
            name: zigzag(torch.as_tensor(getattr(batch, name)).to(device), cp_size, cp_rank, 1)
            for name in ("tokens", "labels", "label_mask", "position_ids")
        }
        if config.attention == "document":
            tensors["doc_bounds"] = torch.as_tensor(batch.doc_bounds).to(device)
        yield tensors


def _forward(
    config: TrainConfig, watch: Watch | None, batches: Iterator[dict[str, Tensor]], model: Any
) -> tuple[Tensor, Any]:
    batch = next(batches)
    # An MTP layer shifts labels and mask once more for each token it looks further; without a mask it trains on everything.
    extra = {"loss_mask": batch["label_mask"]} if config.mtp_num_layers else {}
    # RoPE sees only distances, so positions need not restart where attention does.
    output = model(batch["tokens"], batch["position_ids"], batch.get("doc_bounds"), labels=batch["labels"], **extra)
    return output, partial(watch.masked_sum if watch else masked_sum, batch["label_mask"])


def train_step(
    config: TrainConfig,
    model: Any,
    optimizer: Any,
    schedule: Any,
    load: ExpertLoad,
    batches: Sequence[MicroBatch],
    watch: Watch | None = None,
) -> StepResult:
    """Train on one global batch; batches are the micro-batches of this data-parallel rank; watch sees each token's loss."""
    model.zero_grad_buffer()
    optimizer.zero_grad()
    parts = get_forward_backward_func()(
        forward_step_func=partial(_forward, config, watch),
        data_iterator=_device_batches(config, batches),
        model=[model],
        num_microbatches=len(batches),
        seq_length=config.seq_length,
        micro_batch_size=config.micro_batch_size,
        decoder_seq_length=config.seq_length,
        forward_only=False,
    )
    loss, num_targets = batch_loss(parts)
    lr = max(group["lr"] for group in optimizer.param_groups)
    _, grad_norm, _ = optimizer.step()
    schedule.step(increment=1)
    return StepResult(loss=loss, num_targets=num_targets, grad_norm=float(grad_norm), lr=lr, expert_load=load.take())
