"""RMSNorms of DeepSeek-V4: computed in fp32, weights kept in fp32."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from train.deepseek_v4.fused import fused


@fused(dynamic=False)
def _normalized(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    wide = x.float()
    return (weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon))).to(x.dtype)


@fused(dynamic=False)
def unit(x: Tensor, epsilon: float) -> Tensor:
    """X divided by its root mean square over the last dimension."""
    return x * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + epsilon).to(x.dtype)


class RMSNorm(nn.Module):
    """X over its root mean square, times a weight, in fp32; the result has the dtype of x."""

    def __init__(self, size: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size, dtype=torch.float32))
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """[..., size] of x [..., size]."""
        result: Tensor = _normalized(x, self.weight, self.epsilon)
        return result
