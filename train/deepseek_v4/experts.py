"""The experts of a layer: those of this rank as one grouped GEMM, the others over an all-to-all, and the shared one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.deepseek_v4.config import V4Config
from train.deepseek_v4.fused import fused
from train.deepseek_v4.routing import Order, Router, from_experts, reordered, to_experts, tokens_per_expert

_grouped_mm = getattr(F, "grouped_mm", None) or torch._grouped_mm

# A CPU multiplies a few rows by another kernel than many, with other roundings: with whole blocks of rows the result of a token
# does not depend on how many others go to its expert, which may be of another document.
CPU_ROWS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertShare:
    """The experts of this process: part rank of size equal parts; group is the process group that has them all."""

    rank: int = 0
    size: int = 1
    group: Any = None


@fused(dynamic=True)
def _swiglu(gate: Tensor, up: Tensor, limit: float) -> Tensor:
    return F.silu(gate.clamp(max=limit)) * up.clamp(min=-limit, max=limit)


class SharedExpert(nn.Module):
    """The expert of every token."""

    def __init__(self, c: V4Config) -> None:
        super().__init__()
        self.limit = c.swiglu_limit
        self.gate_proj = nn.Linear(c.hidden_size, c.moe_intermediate_size, bias=False)
        self.up_proj = nn.Linear(c.hidden_size, c.moe_intermediate_size, bias=False)
        self.down_proj = nn.Linear(c.moe_intermediate_size, c.hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """[t, h] of hidden [t, h]."""
        result: Tensor = self.down_proj(_swiglu(self.gate_proj(hidden), self.up_proj(hidden), self.limit))
        return result


class Experts(nn.Module):
    """The routed experts on this rank: gate_up_proj [experts, 2 f, h], down_proj [experts, h, f]."""

    def __init__(self, c: V4Config, share: ExpertShare) -> None:
        super().__init__()
        self.share, self.limit, self.total = share, c.swiglu_limit, c.n_routed_experts
        self.local = c.n_routed_experts // share.size
        self.gate_up_proj = nn.Parameter(torch.empty(self.local, 2 * c.moe_intermediate_size, c.hidden_size))
        self.down_proj = nn.Parameter(torch.empty(self.local, c.hidden_size, c.moe_intermediate_size))
        for parameter in (self.gate_up_proj, self.down_proj):
            # So Megatron marks what is not the same on all data-parallel ranks.
            parameter.allreduce = share.size == 1

    def forward(self, hidden: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
        """[t, h] of hidden [t, h], weights float32[t, k] and experts int64[t, k]."""
        order = Order(experts)
        rows = to_experts(hidden, order)
        counts = tokens_per_expert(experts, self.total)
        out = self._own(rows, counts) if self.share.size == 1 else self._exchanged(rows, counts)
        return from_experts(out, order, weights)

    def _exchanged(self, rows: Tensor, counts: Tensor) -> Tensor:
        """Rows to the ranks of their experts, through them, and back."""
        from megatron.core.tensor_parallel.mappings import all_to_all

        size, group = self.share.size, self.share.group
        arriving = torch.empty_like(counts)
        torch.distributed.all_to_all_single(arriving, counts, group=group)
        by_rank = torch.stack([counts, arriving]).unflatten(1, (size, self.local)).sum(2).tolist()
        rows = all_to_all(group, rows, by_rank[1], by_rank[0])
        # They come sorted by sender, and by expert within each.
        expert = torch.arange(self.local, device=rows.device).repeat(size).repeat_interleave(arriving)
        order = expert.argsort(stable=True)
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order), device=order.device)
        out = self._own(reordered(rows, order, back), arriving.unflatten(0, (size, self.local)).sum(0))
        return all_to_all(group, reordered(out, back, order), by_rank[0], by_rank[1])

    def _own(self, rows: Tensor, counts: Tensor) -> Tensor:
        """Rows [n, h] sorted by expert through the experts of this rank; counts int64[experts]."""
        if rows.is_cuda and rows.dtype == torch.bfloat16 and rows.numel():
            ends = counts.cumsum(0).to(torch.int32)
            gate, up = _grouped_mm(rows, self.gate_up_proj.mT, offs=ends).chunk(2, -1)
            return _grouped_mm(_swiglu(gate, up, self.limit), self.down_proj.mT, offs=ends)
        out = []
        for i, part in enumerate(rows.split(counts.tolist())):
            padded = F.pad(part, (0, 0, 0, -len(part) % CPU_ROWS))
            gate, up = F.linear(padded, self.gate_up_proj[i]).chunk(2, -1)
            out.append(F.linear(_swiglu(gate, up, self.limit), self.down_proj[i])[: len(part)])
        return torch.cat(out)


class Mixture(nn.Module):
    """Hidden [b, s, h] -> [b, s, h]; tokens int64[b, s]."""

    def __init__(self, c: V4Config, layer_number: int, share: ExpertShare) -> None:
        super().__init__()
        self.gate = Router(c, layer_number, c.hash_layers[layer_number - 1])
        self.experts = Experts(c, share)
        self.shared_experts = SharedExpert(c)

    def forward(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """See the class."""
        flat = hidden.flatten(0, 1)
        weights, experts = self.gate(flat, tokens.flatten())
        result: Tensor = self.experts(flat, weights, experts) + self.shared_experts(flat)
        return result.view_as(hidden)
