"""Attention of many query heads to one key head that is its own value, with a sink, in blocks of queries.

A block sees the window before and in it, and compressed entries; its scores are made, used and forgotten, and made again for
the gradients. So the scores of a row never exist at once: at 8,192 tokens those of one layer of V4-Flash would be 10 GB.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from train.deepseek_v4.fused import fused
from train.deepseek_v4.rows import ALIGNED, RowMap, Windows, first_near

# Rows of a block's score matrix: query heads times tokens. 32,768 x 4,200 scores are 280 MB in bf16, and larger blocks are
# fewer kernels to launch.
BLOCK_ROWS = 32_768
# A block's queries see a window, yet are multiplied with the tokens of all their windows.
MOST_QUERIES = 2048


@dataclass(frozen=True, kw_only=True)
class Sight:
    """What each query of a row sees.

    window: tokens up to and with itself, in its document. windows: how the row is compressed, None in a sliding layer. picked
    bool[b, s, slots]: the entries an indexer picked, None for all that may be seen.
    """

    rows: RowMap
    window: int
    windows: Windows | None = None
    picked: Tensor | None = None

    def blocks(self, heads: int) -> Iterator[Block]:
        """The row in order, in blocks of queries."""
        length = self.rows.starts.shape[1]
        size = min(max(BLOCK_ROWS // heads, 1), MOST_QUERIES)
        for start in range(0, length, size):
            end = min(start + size, length)
            # An entry takes the place of rate tokens, so no more than this many are complete before the block ends.
            slots = 0
            if self.windows is not None:
                slots = min(-(-(end // self.windows.rate) // ALIGNED) * ALIGNED, self.windows.slots)
            yield Block(start=start, end=end, first_key=first_near(start, self.window), slots=slots)

    def mask(self, block: Block) -> Tensor:
        """bool[B, queries, 1, keys], True where a query sees a key: tokens from first_key to end, then slots."""
        near = self.rows.near(block.start, block.end, self.window)
        if self.windows is None:
            return near.unsqueeze(2)
        if self.picked is not None:
            far = self.picked[:, block.start : block.end, : block.slots]
        else:
            far = self.windows.seen(block.start, block.end, block.slots)
        batch = max(near.shape[0], far.shape[0])
        return torch.cat([near.expand(batch, -1, -1), far.expand(batch, -1, -1)], -1).unsqueeze(2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Queries from start to end; their keys are the tokens from first_key to end and the first slots entries."""

    start: int
    end: int
    first_key: int
    slots: int

    def keys(self, tokens: Tensor, entries: Tensor | None) -> Tensor:
        """[b, keys, d]."""
        near = tokens[:, self.first_key : self.end]
        return near if entries is None else torch.cat([near, entries[:, : self.slots]], 1)


@fused(dynamic=True)
def _probabilities(scores: Tensor, mask: Tensor, sinks: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """(probabilities in the dtype of scores, float32[b, q, h] log of their common denominator) of scores [b, q, h, k]."""
    scaled = (scores.float() * scale).masked_fill(~mask, -torch.inf)
    top = torch.maximum(scaled.amax(-1), sinks)
    powers = (scaled - top.unsqueeze(-1)).exp()
    total = powers.sum(-1) + (sinks - top).exp()
    return (powers / total.unsqueeze(-1)).to(scores.dtype), top + total.log()


@fused(dynamic=True)
def _backward(
    scores: Tensor, mask: Tensor, denominator: Tensor, out_dot: Tensor, grad: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """(probabilities, gradient of scores): grad is that of the probabilities, out_dot the sum of their product."""
    scaled = (scores.float() * scale).masked_fill(~mask, -torch.inf)
    share = (scaled - denominator.unsqueeze(-1)).exp()
    return share.to(scores.dtype), (share * (grad.float() - out_dot.unsqueeze(-1)) * scale).to(scores.dtype)


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, tokens: Tensor, entries: Tensor | None, sinks: Tensor, sight: Sight, scale: float
    ) -> Tensor:
        heads = query.shape[2]
        out = torch.empty_like(query)
        denominator = torch.empty(query.shape[:3], dtype=torch.float32, device=query.device)
        for block in sight.blocks(heads):
            part = slice(block.start, block.end)
            keys = block.keys(tokens, entries)
            scores = _times(query[:, part], keys.mT)
            shares, denominator[:, part] = _probabilities(scores, sight.mask(block), sinks, scale)
            out[:, part] = _times(shares, keys)
        ctx.save_for_backward(query, tokens, entries, sinks, out, denominator)
        ctx.sight, ctx.scale = sight, scale
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, tokens, entries, sinks, out, denominator = ctx.saved_tensors
        out_dot = (grad.float() * out.float()).sum(-1)  # [b, s, h]
        grad_query = torch.empty_like(query)
        grad_tokens = torch.zeros_like(tokens, dtype=torch.float32)
        grad_entries = None if entries is None else torch.zeros_like(entries, dtype=torch.float32)
        for block in ctx.sight.blocks(query.shape[2]):
            part = slice(block.start, block.end)
            keys = block.keys(tokens, entries)
            scores = _times(query[:, part], keys.mT)
            shares, grad_scores = _backward(
                scores,
                ctx.sight.mask(block),
                denominator[:, part],
                out_dot[:, part],
                _times(grad[:, part], keys.mT),
                ctx.scale,
            )
            grad_query[:, part] = _times(grad_scores, keys)
            # A key is its own value: it has a gradient as each.
            grad_keys = grad_scores.flatten(1, 2).mT @ query[:, part].flatten(1, 2)
            grad_keys = grad_keys.float() + shares.flatten(1, 2).mT @ grad[:, part].flatten(1, 2)
            near = block.end - block.first_key
            grad_tokens[:, block.first_key : block.end] += grad_keys[:, :near]
            if grad_entries is not None:
                grad_entries[:, : block.slots] += grad_keys[:, near:]
        grad_sinks = -((sinks - denominator).exp() * out_dot).sum((0, 1))
        grad_tokens = grad_tokens.to(tokens.dtype)
        if entries is not None and grad_entries is not None:
            grad_entries = grad_entries.to(entries.dtype)
        return grad_query, grad_tokens, grad_entries, grad_sinks, None, None


def _times(rows: Tensor, matrix: Tensor) -> Tensor:
    """[b, q, h, n] of rows [b, q, h, m] and matrix [b, m, n]: all heads in one product."""
    return (rows.flatten(1, 2) @ matrix).unflatten(1, rows.shape[1:3])


def attend(query: Tensor, tokens: Tensor, entries: Tensor | None, sinks: Tensor, sight: Sight, scale: float) -> Tensor:
    """[b, s, heads, d] of query [b, s, heads, d] over tokens [b, s, d] and entries [b, slots, d]; sinks float32[heads].

    A sink is a score that takes its share of the probabilities and gives nothing.
    """
    result: Tensor = _Attend.apply(query, tokens, entries, sinks, sight, scale)
    return result
