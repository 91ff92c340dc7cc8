"""Where the documents of a micro-batch are, as the forms of attention within documents take it; nothing waits for the GPU."""

from __future__ import annotations

import torch
from torch import Tensor


def document_ids(bounds: Tensor, rows: int, row_tokens: int) -> Tensor:
    """int64[rows, row_tokens]: the number of each token's document, counted over the micro-batch.

    bounds int32[d + 1]: where the documents of the rows, one row after another, begin, and the end of the last.
    """
    tokens = torch.arange(rows * row_tokens, device=bounds.device, dtype=bounds.dtype)
    return torch.bucketize(tokens, bounds[1:], right=True).view(rows, row_tokens)


def varlen_bounds(bounds: Tensor, row_tokens: int, first: int, queries: int) -> tuple[Tensor, Tensor]:
    """(of the queries, of the keys) int32[d + 1] each, for a kernel that aligns the ends of both in every document.

    The queries are positions first..first + queries of each row, the keys 0..first + queries, rows one after another. A
    document outside has no queries, and what follows the queries no keys. Nothing here waits for the GPU.
    """
    row, position = bounds // row_tokens, bounds % row_tokens
    keys = first + queries
    return row * queries + (position - first).clamp(0, queries), row * keys + position.clamp(max=keys)
