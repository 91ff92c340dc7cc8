"""Rotary positions of DeepSeek-V4: neighbouring dimensions are a pair, the last dimensions of a head are rotated."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from train.deepseek_v4.config import V4Config
from train.deepseek_v4.fused import fused


def frequencies(c: V4Config, compressed: bool, device: torch.device | str | None = None) -> Tensor:
    """float32[rope_dim / 2], radians a token: those of sliding layers, or of layers with compressed entries (YaRN)."""
    pairs = torch.arange(0, c.rope_dim, 2, dtype=torch.float32, device=device) / c.rope_dim
    theta = c.compress_rope_theta if compressed else c.rope_theta
    own = 1.0 / theta**pairs
    yarn = c.rope_scaling
    if not compressed or yarn is None:
        return own
    # Pairs that turn more than beta_fast times within the original length stay, those below beta_slow are stretched by
    # factor, and in between it goes over linearly.
    size, length = c.rope_dim, yarn.original_max_position_embeddings

    def pair_of(turns: float) -> float:
        return size * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(theta))

    low = max(math.floor(pair_of(yarn.beta_fast)), 0)
    high = min(math.ceil(pair_of(yarn.beta_slow)), size - 1)
    steps = torch.arange(size // 2, dtype=torch.float32, device=device)
    stretched = ((steps - low) / max(high - low, 0.001)).clamp(0, 1)
    return own / yarn.factor * stretched + own * (1 - stretched)


def turns(positions: Tensor, inverse: Tensor) -> tuple[Tensor, Tensor]:
    """(cos, sin) float32[..., rope_dim / 2] of positions int[...]."""
    angle = positions.unsqueeze(-1).float() * inverse
    return angle.cos(), angle.sin()


@fused(dynamic=False)
def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """x [..., dim] with its last pairs rotated; cos and sin broadcast to [..., rope_dim / 2]. -sin rotates back."""
    size = 2 * cos.shape[-1]
    still, turned = x.split([x.shape[-1] - size, size], -1)
    first, second = turned.float().unflatten(-1, (-1, 2)).unbind(-1)
    pairs = torch.stack([first * cos - second * sin, second * cos + first * sin], -1)
    return torch.cat([still, pairs.flatten(-2).to(x.dtype)], -1)
