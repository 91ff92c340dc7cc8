"""RMSNorm that allows sequence parallelism: Megatron's torch norm refuses it."""

from __future__ import annotations

from typing import Any

import torch


class RMSNorm(torch.nn.RMSNorm):
    """torch's RMSNorm over the last dimension, with the flag under which Megatron sums its gradient over the tp ranks.

    With sequence parallelism each rank normalizes its own part of the row, so the gradient of the weight is a partial sum.
    """

    def __init__(self, config: Any, hidden_size: int, eps: float = 1e-6, **_: Any) -> None:
        super().__init__(hidden_size, eps=eps, dtype=config.params_dtype, device=torch.cuda.current_device())
        self.weight.sequence_parallel = config.sequence_parallel
