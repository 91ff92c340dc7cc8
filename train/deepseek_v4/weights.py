"""Initial weights of DeepSeek-V4, by seed and name of a weight: the same however the model is spread over processes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from train.deepseek_v4.config import V4Config
from train.deepseek_v4.model import V4Model

TABLE_ROWS = 8192
EXPERTS = (".gate_up_proj", ".experts.down_proj")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """A parameter or saved buffer of this process: name in the whole model, and of stacked experts which ones these are."""

    name: str
    tensor: Tensor
    experts: range | None = None


def whole_tensors(model: V4Model) -> Iterator[Whole]:
    """Everything a model is made of: parameters, then buffers that are saved."""
    saved = model.state_dict(keep_vars=True)
    for name, tensor in saved.items():
        experts = None
        if name.endswith(EXPERTS):
            first = model.share.rank * tensor.shape[0]
            experts = range(first, first + tensor.shape[0])
        yield Whole(name=model.whole_name(name), tensor=tensor, experts=experts)


def _generator(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


def draw(c: V4Config, seed: int, name: str, shape: tuple[int, ...]) -> Tensor:
    """A whole weight, or the part of one expert (NAME.3): norms and scales 1, biases and sinks 0, matrices normal, float32.

    The expert table of a hash layer gives each token num_experts_per_tok experts of a random permutation, int64.
    """
    if name.endswith("tid2eid"):
        return _expert_table(c, seed, name)
    if name.endswith("norm.weight") or name.endswith("scale"):
        return torch.ones(shape)
    if name.endswith(("base", "sinks", "position_bias", "expert_bias")):
        return torch.zeros(shape)
    drawn = _generator(seed, name).standard_normal(shape, np.float32)
    return torch.from_numpy(drawn * np.float32(c.initializer_range))


def _expert_table(c: V4Config, seed: int, name: str) -> Tensor:
    generator = _generator(seed, name)
    parts = []
    for first in range(0, c.vocab_size, TABLE_ROWS):
        keys = generator.random((min(TABLE_ROWS, c.vocab_size - first), c.n_routed_experts), np.float32)
        parts.append(keys.argsort(1, kind="stable")[:, : c.num_experts_per_tok])
    return torch.from_numpy(np.concatenate(parts).astype(np.int64))


@torch.no_grad()
def fill(model: V4Model, weight: Callable[[str, tuple[int, ...]], Tensor]) -> None:
    """Give a model its weights; weight(name, shape) is asked for whole ones, and for stacked experts one by one, as NAME.3."""
    for item in whole_tensors(model):
        if item.experts is None:
            item.tensor.copy_(weight(item.name, tuple(item.tensor.shape)))
            continue
        for row, number in zip(item.tensor, item.experts, strict=True):
            row.copy_(weight(f"{item.name}.{number}", tuple(row.shape)))
