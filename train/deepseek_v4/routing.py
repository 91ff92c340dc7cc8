"""Which experts a token goes to, and its rows in the order of experts and back."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.deepseek_v4.config import V4Config


class Router(nn.Module):
    """(weights float32[t, k], experts int64[t, k]) of hidden [t, h]; scores in fp32.

    Experts are picked by score plus a correction bias, which no gradient reaches, or by the token's id from a fixed table;
    either way their weights are the scores, divided by their sum.
    """

    def __init__(self, c: V4Config, layer_number: int, by_hash: bool) -> None:
        super().__init__()
        self.layer_number, self.by_hash = layer_number, by_hash
        self.experts, self.topk, self.scaling = c.n_routed_experts, c.num_experts_per_tok, c.routed_scaling_factor
        self.weight = nn.Parameter(torch.empty(c.n_routed_experts, c.hidden_size))
        if by_hash:
            self.register_buffer("tid2eid", torch.zeros(c.vocab_size, c.num_experts_per_tok, dtype=torch.int64))
        else:
            # Both names are those by which Megatron finds and moves a correction bias after a step.
            self.register_buffer("expert_bias", torch.zeros(c.n_routed_experts, dtype=torch.float32))
            self.register_buffer(
                "local_tokens_per_expert", torch.zeros(c.n_routed_experts, dtype=torch.float32), persistent=False
            )

    def forward(self, hidden: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """See the class; tokens int64[t]."""
        scores = F.softplus(F.linear(hidden.float(), self.weight.float())).sqrt()
        if self.by_hash:
            experts = self.tid2eid[tokens]
        else:
            experts = (scores.detach() + self.expert_bias).topk(self.topk, dim=-1, sorted=False).indices
            if torch.is_grad_enabled():  # under recompute a forward pass runs twice, the first time without gradients
                self.local_tokens_per_expert += self.count((scores, experts))
        weights = scores.gather(1, experts)
        return weights / (weights.sum(-1, keepdim=True) + 1e-20) * self.scaling, experts

    @torch.no_grad()
    def count(self, output: tuple[Tensor, Tensor]) -> Tensor:
        """float32[experts]: how many tokens each got, of an output."""
        return tokens_per_expert(output[1], self.experts).float()


def tokens_per_expert(experts: Tensor, total: int) -> Tensor:
    """int64[total]: how often each is in experts [t, k]; bincount would wait for the GPU to tell the largest."""
    return (experts.reshape(-1, 1) == torch.arange(total, device=experts.device)).sum(0)


class Order:
    """The rows of t tokens, k each, sorted by expert: a permutation known both ways, so that no gradient is scattered."""

    def __init__(self, experts: Tensor) -> None:
        self.topk = experts.shape[1]
        self.sorted = experts.flatten().argsort(stable=True)
        self.back = torch.empty_like(self.sorted)
        self.back[self.sorted] = torch.arange(len(self.sorted), device=experts.device)
        self.tokens = self.sorted // self.topk


class _ToExperts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, order: Order) -> Tensor:
        ctx.order = order
        return hidden.index_select(0, order.tokens)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        order = ctx.order
        return grad.index_select(0, order.back).unflatten(0, (-1, order.topk)).sum(1), None


class _Reordered(torch.autograd.Function):
    """Rows in another order, given both ways."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, there: Tensor, back: Tensor) -> Tensor:
        ctx.back = back
        return rows.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad.index_select(0, ctx.back), None, None


def to_experts(hidden: Tensor, order: Order) -> Tensor:
    """[t * k, h] of hidden [t, h], sorted by expert."""
    result: Tensor = _ToExperts.apply(hidden, order)
    return result


def reordered(rows: Tensor, there: Tensor, back: Tensor) -> Tensor:
    """rows[there]; back is the inverse of there."""
    result: Tensor = _Reordered.apply(rows, there, back)
    return result


def from_experts(rows: Tensor, order: Order, weights: Tensor) -> Tensor:
    """[t, h]: for each token the weighed sum of its k rows of [t * k, h]."""
    own = reordered(rows, order.back, order.sorted).unflatten(0, (-1, order.topk))
    return (weights.to(rows.dtype).unsqueeze(1) @ own).squeeze(1)
