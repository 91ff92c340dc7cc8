"""Compressed entries: a window of tokens as one key, and the indexer that picks entries for a token."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from train.deepseek_v4.config import CSA, LayerType, V4Config
from train.deepseek_v4.fused import fused
from train.deepseek_v4.norm import RMSNorm
from train.deepseek_v4.rope import rotate
from train.deepseek_v4.rows import RowMap, Windows
from train.deepseek_v4.scores import BLOCK_ROWS


@fused(dynamic=False)
def _weighed(values: Tensor, gates: Tensor) -> Tensor:
    """[b, slots, size]: of values [b, slots, tokens, size] the mean by the softmax of gates."""
    return (values * gates.softmax(2, dtype=torch.float32).to(values.dtype)).sum(2)


@fused(dynamic=True)
def _index_scores(products: Tensor, weights: Tensor, seen: Tensor, scale: float) -> Tensor:
    """float32[b, q, slots] of products [b, q, heads, slots] and weights [b, q, heads]; -inf where a query may not look."""
    total = (F.relu(products) * scale * weights.unsqueeze(-1)).sum(2)
    return total.masked_fill(~seen, -torch.inf)


class Compressor(nn.Module):
    """[b, slots, size] of hidden [b, s, h]: of each dimension a mean over the window, weighed by a softmax of its own.

    overlapping: a slot also takes the window before, through projections of its own, the first half of each matrix.
    """

    def __init__(self, c: V4Config, size: int, rate: int, overlapping: bool) -> None:
        super().__init__()
        self.size, self.rate, self.overlapping = size, rate, overlapping
        width = 2 * size if overlapping else size
        self.kv_proj = nn.Linear(c.hidden_size, width, bias=False)
        self.gate_proj = nn.Linear(c.hidden_size, width, bias=False)
        self.position_bias = nn.Parameter(torch.empty(rate, width, dtype=torch.float32))
        self.kv_norm = RMSNorm(size, c.rms_norm_eps)

    def compress(self, hidden: Tensor, windows: Windows) -> Tensor:
        """The entries, rotated to the position of their first token."""
        values = windows.take(self.kv_proj(hidden))
        gates = windows.take(self.gate_proj(hidden)) + self.position_bias
        if self.overlapping:
            values, gates = self._with_window_before(values, gates, windows.follows)
        return rotate(self.kv_norm(_weighed(values, gates)), windows.cos, windows.sin)

    def _with_window_before(self, values: Tensor, gates: Tensor, follows: Tensor) -> tuple[Tensor, Tensor]:
        """Both [b, slots, 2 * rate, size]; the window before weighs nothing where there is none in the document."""
        none = ~follows[:, :, None, None]
        before, own = values.split(self.size, -1)
        gate_before, gate_own = gates.split(self.size, -1)
        before = F.pad(before[:, :-1], (0, 0, 0, 0, 1, 0)).masked_fill(none, 0)
        gate_before = F.pad(gate_before[:, :-1], (0, 0, 0, 0, 1, 0)).masked_fill(none, -torch.inf)
        return torch.cat([before, own], 2), torch.cat([gate_before, gate_own], 2)


class Scorer(nn.Module):
    """How the index heads of a token are weighed."""

    def __init__(self, c: V4Config) -> None:
        super().__init__()
        self.weights_proj = nn.Linear(c.hidden_size, c.index_n_heads, bias=False)


class Indexer(Compressor):
    """Picks index_topk entries for each token by the scores of small heads against small entries of its own.

    A choice has no gradient: the loss of the model does not train an indexer, here or in the Hugging Face model, so its
    weights are frozen. (An optimizer would only let them decay.)
    """

    def __init__(self, c: V4Config, rate: int) -> None:
        super().__init__(c, c.index_head_dim, rate, overlapping=True)
        self.heads, self.topk = c.index_n_heads, c.index_topk
        self.q_b_proj = nn.Linear(c.q_lora_rank, c.index_n_heads * c.index_head_dim, bias=False)
        self.scorer = Scorer(c)
        self.requires_grad_(False)

    @torch.no_grad()
    def pick(self, hidden: Tensor, latent: Tensor, rows: RowMap) -> Tensor | None:
        """bool[b, s, slots]; None where there are no more entries than are picked. latent [b, s, q_lora_rank]."""
        windows = rows.windows[self.rate]
        if windows.slots <= self.topk:
            return None
        cos, sin = (part.unsqueeze(2) for part in rows.turns[True])
        query = rotate(self.q_b_proj(latent).unflatten(-1, (self.heads, self.size)), cos, sin)
        entries = self.compress(hidden, windows).float().mT
        weights = self.scorer.weights_proj(hidden).float() * self.heads**-0.5
        length = hidden.shape[1]
        picked = torch.zeros(*hidden.shape[:2], windows.slots, dtype=torch.bool, device=hidden.device)
        size = max(BLOCK_ROWS // self.heads, 1)
        for start in range(0, length, size):
            end = min(start + size, length)
            products = (query[:, start:end].float().flatten(1, 2) @ entries).unflatten(1, (-1, self.heads))
            seen = windows.seen(start, end, windows.slots)
            scores = _index_scores(products, weights[:, start:end], seen, self.size**-0.5)
            best = scores.topk(self.topk, dim=-1).indices
            picked[:, start:end] = picked[:, start:end].scatter(-1, best, True) & seen
        return picked


class AttentionCompressor(Compressor):
    """The compressor of a layer; with an indexer where not all entries are seen."""

    def __init__(self, c: V4Config, kind: LayerType) -> None:
        rate = c.rate(kind)
        assert rate is not None
        super().__init__(c, c.head_dim, rate, overlapping=kind == CSA)
        self.indexer = Indexer(c, rate) if kind == CSA else None
