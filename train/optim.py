"""The optimizer and its schedule: Megatron's Adam, with the state of torch's Adam kept right."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.optimizer_param_scheduler import OptimizerParamScheduler

from train.config import TrainConfig


def build_optimizer(c: TrainConfig, model: Any) -> Any:
    """Adam with decoupled weight decay over the model's trainable parameters, fp32 main weights, its state in place."""
    optimizer = get_megatron_optimizer(
        OptimizerConfig(
            optimizer="adam",
            lr=c.lr,
            min_lr=c.min_lr,
            weight_decay=c.weight_decay,
            adam_beta1=c.adam_beta1,
            adam_beta2=c.adam_beta2,
            adam_eps=c.adam_eps,
            clip_grad=c.clip_grad or math.inf,  # with 0 Megatron would not measure the norm either
            bf16=c.precision == "bf16",
            params_dtype=torch.bfloat16 if c.precision == "bf16" else torch.float32,
            use_distributed_optimizer=c.use_distributed_optimizer,
        ),
        [model],
    )
    _prime(optimizer)
    return optimizer


def build_schedule(c: TrainConfig, optimizer: Any) -> OptimizerParamScheduler:
    """Learning rate by step: linear warm-up from 0, then lr_decay_style down to min_lr at the last step."""
    return OptimizerParamScheduler(
        optimizer,
        init_lr=0.0,
        max_lr=c.lr,
        min_lr=c.min_lr,
        lr_warmup_steps=int(c.lr_warmup_fraction * c.steps),
        lr_decay_steps=c.steps,
        lr_decay_style=c.lr_decay_style,
        start_wd=c.weight_decay,
        end_wd=c.weight_decay,
        wd_incr_steps=c.steps,
        wd_incr_style="constant",
    )


def parts(optimizer: Any) -> list[Any]:
    """Megatron's optimizers inside its optimizer: one, or with ep > 1 one more for the experts."""
    return list(getattr(optimizer, "chained_optimizers", [optimizer]))


def _torch_optimizers(optimizer: Any) -> Iterator[torch.optim.Optimizer]:
    for part in parts(optimizer):
        if getattr(part, "optimizer", None) is not None:
            yield part.optimizer


def _prime(optimizer: Any) -> None:
    """Make the state that torch's Adam would make at its first step: Megatron cannot save or load without it."""
    for inner in _torch_optimizers(optimizer):
        for group in inner.param_groups:
            for parameter in group["params"]:
                inner.state[parameter] = {
                    "step": torch.tensor(0.0),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }


def separate_steps(optimizer: Any) -> None:
    """Give each parameter its own step count after a load.

    Megatron's load puts one tensor into the state of all parameters, and torch's Adam counts it up once for each.
    """
    for inner in _torch_optimizers(optimizer):
        for state in inner.state.values():
            state["step"] = state["step"].clone()
