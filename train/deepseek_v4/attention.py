"""The attention of a layer: low-rank queries, one key that is its own value, compressed entries, grouped low-rank output."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from train.deepseek_v4.compress import AttentionCompressor
from train.deepseek_v4.config import SLIDING, LayerType, V4Config
from train.deepseek_v4.norm import RMSNorm, unit
from train.deepseek_v4.rope import rotate
from train.deepseek_v4.rows import RowMap
from train.deepseek_v4.scores import Sight, attend


class GroupedLinear(nn.Linear):
    """[..., groups, out / groups] of x [..., groups, in]: each group through its own rows of the matrix."""

    def __init__(self, size: int, out: int, groups: int) -> None:
        super().__init__(size, out, bias=False)
        self.groups = groups

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        matrices = self.weight.unflatten(0, (self.groups, -1)).mT
        return (x.flatten(0, -3).transpose(0, 1) @ matrices).transpose(0, 1).unflatten(0, x.shape[:-2])


class Attention(nn.Module):
    """hidden [b, s, h] -> [b, s, h]."""

    def __init__(self, c: V4Config, kind: LayerType) -> None:
        super().__init__()
        self.heads, self.size, self.window, self.groups = (
            c.num_attention_heads,
            c.head_dim,
            c.sliding_window,
            c.o_groups,
        )
        self.compressed = kind != SLIDING
        self.epsilon = c.rms_norm_eps
        self.q_a_proj = nn.Linear(c.hidden_size, c.q_lora_rank, bias=False)
        self.q_a_norm = RMSNorm(c.q_lora_rank, c.rms_norm_eps)
        self.q_b_proj = nn.Linear(c.q_lora_rank, self.heads * self.size, bias=False)
        self.kv_proj = nn.Linear(c.hidden_size, self.size, bias=False)
        self.kv_norm = RMSNorm(self.size, c.rms_norm_eps)
        self.o_a_proj = GroupedLinear(self.heads * self.size // c.o_groups, c.o_groups * c.o_lora_rank, c.o_groups)
        self.o_b_proj = nn.Linear(c.o_groups * c.o_lora_rank, c.hidden_size, bias=False)
        self.sinks = nn.Parameter(torch.zeros(self.heads, dtype=torch.float32))
        self.compressor = AttentionCompressor(c, kind) if self.compressed else None

    def forward(self, hidden: Tensor, rows: RowMap) -> Tensor:
        """See the class; rows: the documents of the micro-batch."""
        cos, sin = rows.turns[self.compressed]
        latent = self.q_a_norm(self.q_a_proj(hidden))
        query = self.q_b_proj(latent).unflatten(-1, (self.heads, self.size))
        query = rotate(unit(query, self.epsilon), cos.unsqueeze(2), sin.unsqueeze(2))
        tokens = rotate(self.kv_norm(self.kv_proj(hidden)), cos, sin)
        entries, windows, picked = None, None, None
        if self.compressor is not None:
            windows = rows.windows[self.compressor.rate]
            entries = self.compressor.compress(hidden, windows)
            if self.compressor.indexer is not None:
                picked = self.compressor.indexer.pick(hidden, latent, rows)
        sight = Sight(rows=rows, window=self.window, windows=windows, picked=picked)
        out = attend(query, tokens, entries, self.sinks, sight, self.size**-0.5)
        # Values are keys, and so came rotated to where they stand: turned back by the query's own position, only the
        # distance is left in them.
        out = rotate(out, cos.unsqueeze(2), -sin.unsqueeze(2))
        grouped = out.flatten(2).unflatten(-1, (self.groups, -1))
        result: Tensor = self.o_b_proj(self.o_a_proj(grouped).flatten(2))
        return result
