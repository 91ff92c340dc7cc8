"""What of a row a token may see: itself and its window, and the entries that windows of tokens are compressed to.

Everything counts within a document: positions, windows and entries start anew at each, so that no token can reach another
document by any way. A row that is not split is one document.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from train.deepseek_v4.config import SLIDING, V4Config
from train.deepseek_v4.rope import frequencies, turns

# Tensor cores take sizes that are multiples of this; others cost twice the time of the product, and more.
ALIGNED = 8


def first_near(start: int, window: int) -> int:
    """Where the keys of queries from start on begin: at the window of the first, or a little before it."""
    return max(start - window + 1, 0) // ALIGNED * ALIGNED


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The windows of rate tokens that a row is compressed by, one slot for each that fits: n = s // rate of them.

    B is the batch, or 1 where all rows are alike. Documents leave their last incomplete window out, so slots may stay over
    at the end of a row; nobody sees those.
    """

    rate: int
    tokens: Tensor | None
    """int64[B, n, rate]: which tokens of the row a slot compresses; None: slot i has tokens i * rate and on"""
    follows: Tensor
    """bool[B, n]: whether the slot before is of the same document"""
    cos: Tensor
    sin: Tensor
    """float32[B, n, rope_dim / 2] at the position of a window's first token in its document"""
    first: Tensor
    """int64[B, s]: the first slot that a token may see"""
    end: Tensor
    """int64[B, s]: the slot after the last one it may see; the windows in between are complete at that token"""
    masks: dict[tuple[int, int, int], Tensor] = field(default_factory=dict)
    """What seen has made, for the layers that ask again: a GPU would spend much of a step on making them."""

    @property
    def slots(self) -> int:
        """How many there are."""
        return int(self.follows.shape[1])

    def take(self, x: Tensor) -> Tensor:
        """[b, n, rate, d]: of x [b, s, d] the tokens of each slot."""
        if self.tokens is None:
            return x[:, : self.slots * self.rate].unflatten(1, (self.slots, self.rate))
        index = self.tokens.flatten(1).unsqueeze(-1).expand(-1, -1, x.shape[-1])
        return x.gather(1, index).unflatten(1, (self.slots, self.rate))

    def seen(self, start: int, end: int, slots: int) -> Tensor:
        """bool[B, end - start, slots]: which of the first slots the tokens from start to end may see."""
        key = (start, end, slots)
        if key not in self.masks:
            slot = torch.arange(slots, device=self.end.device)
            self.masks[key] = (slot >= self.first[:, start:end, None]) & (slot < self.end[:, start:end, None])
        return self.masks[key]


@dataclass(frozen=True, kw_only=True)
class RowMap:
    """The documents of a micro-batch, for all layers of a model."""

    starts: Tensor
    """int64[B, s]: where the document of a token begins"""
    turns: dict[bool, tuple[Tensor, Tensor]]
    """(cos, sin) float32[B, s, rope_dim / 2] of the token's position, of sliding layers (False) and compressed ones (True)"""
    windows: dict[int, Windows]
    """By rate."""
    masks: dict[tuple[int, int, int], Tensor] = field(default_factory=dict)

    def near(self, start: int, end: int, window: int) -> Tensor:
        """bool[B, end - start, keys]: which tokens from first_near(start, window) to end those from start to end may see."""
        key = (start, end, window)
        if key not in self.masks:
            query = torch.arange(start, end, device=self.starts.device).unsqueeze(1)
            place = torch.arange(first_near(start, window), end, device=self.starts.device)
            within = (place <= query) & (place > query - window)
            self.masks[key] = within & (place >= self.starts[:, start:end, None])
        return self.masks[key]


def map_rows(c: V4Config, length: int, doc_ids: Tensor | None, device: torch.device) -> RowMap:
    """The map of rows of length tokens; doc_ids int[b, s] numbers the documents of each row, None: each row is one."""
    place = torch.arange(length, device=device).unsqueeze(0)
    if doc_ids is None:
        starts = torch.zeros_like(place)
    else:
        begins = torch.ones_like(doc_ids, dtype=torch.bool)
        begins[:, 1:] = doc_ids[:, 1:] != doc_ids[:, :-1]
        starts = torch.where(begins, place, 0).cummax(1).values
    positions = place - starts
    rates = sorted({c.compress_rates[kind] for kind in c.attention_types if kind != SLIDING})
    inverse = frequencies(c, True, device)
    return RowMap(
        starts=starts,
        turns={kind: turns(positions, frequencies(c, kind, device)) for kind in (False, True)},
        windows={rate: _windows(rate, positions, starts, doc_ids is None, inverse) for rate in rates},
    )


def _windows(rate: int, positions: Tensor, starts: Tensor, whole: bool, inverse: Tensor) -> Windows:
    rows, length = positions.shape
    slots, device = length // rate, positions.device
    completes = positions % rate == rate - 1
    end = completes.cumsum(1)
    # Slots before the document: those complete at the token before it.
    before = torch.cat([end.new_zeros(rows, 1), end], 1).gather(1, starts)
    # Where each slot's last token is; tokens that complete nothing write to a slot too many.
    last = torch.full((rows, slots + 1), rate - 1, device=device)
    last.scatter_(1, torch.where(completes, end - 1, slots), torch.arange(length, device=device).expand(rows, -1))
    first_token = last[:, :slots] - (rate - 1)
    place = positions.gather(1, first_token)
    cos, sin = turns(place, inverse)
    return Windows(
        rate=rate,
        tokens=None if whole else first_token.unsqueeze(-1) + torch.arange(rate, device=device),
        follows=place > 0,
        cos=cos,
        sin=sin,
        first=before,
        end=end,
    )
