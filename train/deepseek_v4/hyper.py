"""Hyper-connections: several residual streams, mixed before and after each part of a layer by weights a token computes itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.deepseek_v4.config import V4Config
from train.deepseek_v4.fused import fused


def _projected(streams: Tensor, matrix: Tensor, epsilon: float) -> Tensor:
    """All streams of a token as one normalized vector, times matrix; in fp32."""
    flat = streams.flatten(-2).float()
    # Normalized after the product, which has 24 numbers a token where the vector has thousands.
    return F.linear(flat, matrix) * torch.rsqrt(flat.square().mean(-1, keepdim=True) + epsilon)


@fused(dynamic=False)
def _weights(
    mixed: Tensor, scale: Tensor, base: Tensor, streams: int, rounds: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """(into [..., n], out_of [..., n], across [..., n, n]) of mixed [..., (2 + n) n].

    across is made doubly stochastic by rounds of Sinkhorn: columns, then rows and columns in turn, divided by their sums.
    """
    n = streams
    into, out_of, across = mixed.split([n, n, n * n], -1)
    base_into, base_out, base_across = base.split([n, n, n * n])
    into = torch.sigmoid(into * scale[0] + base_into) + epsilon
    out_of = 2 * torch.sigmoid(out_of * scale[1] + base_out)
    across = (across * scale[2] + base_across).unflatten(-1, (n, n)).softmax(-1) + epsilon
    across = across / (across.sum(-2, keepdim=True) + epsilon)
    for _ in range(rounds - 1):
        across = across / (across.sum(-1, keepdim=True) + epsilon)
        across = across / (across.sum(-2, keepdim=True) + epsilon)
    return into, out_of, across


@fused(dynamic=False)
def _joined(into: Tensor, streams: Tensor) -> Tensor:
    """One stream [b, s, h] out of streams [b, s, n, h]; the sum in fp32."""
    return (into.unsqueeze(-1) * streams).sum(-2).to(streams.dtype)


@fused(dynamic=False)
def _spread(out_of: Tensor, across: Tensor, output: Tensor, streams: Tensor) -> Tensor:
    """The streams [b, s, n, h] after a part of a layer: a share of its output each, and a mixture of those before it."""
    mixed = out_of.unsqueeze(-1) * output.float().unsqueeze(-2)
    # One stream after another: compiled this is one pass over memory, where a product of 4 x 4 matrices is a slow GEMM.
    for i, stream in enumerate(streams.unbind(-2)):
        mixed = mixed + across[..., i, :].unsqueeze(-1) * stream.float().unsqueeze(-2)
    return mixed.to(streams.dtype)


class HyperConnection(nn.Module):
    """What goes into a part of a layer, and how its output goes back to the streams."""

    def __init__(self, c: V4Config) -> None:
        super().__init__()
        self.streams, self.rounds = c.hc_mult, c.hc_sinkhorn_iters
        self.epsilon, self.norm_epsilon = c.hc_eps, c.rms_norm_eps
        size = (2 + c.hc_mult) * c.hc_mult
        self.fn = nn.Parameter(torch.empty(size, c.hc_mult * c.hidden_size, dtype=torch.float32))
        self.base = nn.Parameter(torch.zeros(size, dtype=torch.float32))
        self.scale = nn.Parameter(torch.ones(3, dtype=torch.float32))

    def enter(self, streams: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(input of the part [b, s, h], and what leave needs) of streams [b, s, n, h]."""
        mixed = _projected(streams, self.fn, self.norm_epsilon)
        into, out_of, across = _weights(mixed, self.scale, self.base, self.streams, self.rounds, self.epsilon)
        return _joined(into, streams), out_of, across

    def leave(self, out_of: Tensor, across: Tensor, output: Tensor, streams: Tensor) -> Tensor:
        """The streams after the part, whose output is [b, s, h]."""
        result: Tensor = _spread(out_of, across, output, streams)
        return result


class HyperHead(nn.Module):
    """The streams as one, before the last norm."""

    def __init__(self, c: V4Config) -> None:
        super().__init__()
        self.epsilon, self.norm_epsilon = c.hc_eps, c.rms_norm_eps
        self.hc_fn = nn.Parameter(torch.empty(c.hc_mult, c.hc_mult * c.hidden_size, dtype=torch.float32))
        self.hc_base = nn.Parameter(torch.zeros(c.hc_mult, dtype=torch.float32))
        self.hc_scale = nn.Parameter(torch.ones(1, dtype=torch.float32))

    def forward(self, streams: Tensor) -> Tensor:
        """[b, s, h] of streams [b, s, n, h]."""
        mixed = _projected(streams, self.hc_fn, self.norm_epsilon)
        result: Tensor = _joined(torch.sigmoid(mixed * self.hc_scale + self.hc_base) + self.epsilon, streams)
        return result
