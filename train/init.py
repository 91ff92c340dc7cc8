"""Initial weights that depend on the seed and the name of a weight, not on how the model is spread over processes."""

from __future__ import annotations

import hashlib
import os
import re
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from megatron.core import parallel_state
from torch import Tensor

from databuild.environment import usable_cpus
from train.config import TrainConfig
from train.hf import load_hf


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a rank's parameter lies in the whole one.

    name: the same in every layout: layers and experts are counted over all ranks, a tied output layer is the embedding.
    shape: of the whole parameter. dim: the dimension that is cut, None for a parameter every rank holds whole.
    blocks: how many equal blocks of that dimension are cut one by one (2 for the gate and the value of SwiGLU).
    """

    name: str
    shape: tuple[int, ...]
    dim: int | None = None
    parts: int = 1
    part: int = 0
    blocks: int = 1

    def cut(self, whole: Tensor) -> Tensor:
        """The part of the whole parameter on this rank."""
        if self.dim is None:
            return whole
        blocks = [block.chunk(self.parts, self.dim)[self.part] for block in whole.chunk(self.blocks, self.dim)]
        return torch.cat(blocks, self.dim)


def placed_parameters(model: Any) -> Iterator[tuple[Place, torch.nn.Parameter]]:
    """Each parameter of this rank's GPTModel with its place."""
    for name, parameter in model.named_parameters():
        yield _place(model, name, parameter), parameter


def _place(model: Any, name: str, parameter: torch.nn.Parameter) -> Place:
    whole_name = _whole_name(model, name)
    if not getattr(parameter, "tensor_model_parallel", False):
        return Place(name=whole_name, shape=tuple(parameter.shape))
    if ".local_experts." in name:
        parts = parallel_state.get_expert_tensor_parallel_world_size()
        part = parallel_state.get_expert_tensor_parallel_rank()
    else:
        parts = parallel_state.get_tensor_model_parallel_world_size()
        part = parallel_state.get_tensor_model_parallel_rank()
    dim = parameter.partition_dim
    shape = list(parameter.shape)
    shape[dim] *= parts
    # Each rank of a SwiGLU layer holds [its part of the gate; its part of the value].
    blocks = 2 if ".linear_fc1." in name else 1
    return Place(name=whole_name, shape=tuple(shape), dim=dim, parts=parts, part=part, blocks=blocks)


def _whole_name(model: Any, name: str) -> str:
    if name == "output_layer.weight" and model.share_embeddings_and_output_weights:
        return "embedding.word_embeddings.weight"
    if match := re.match(r"decoder\.layers\.(\d+)\.", name):
        number = model.decoder.layers[int(match[1])].layer_number - 1
        name = f"decoder.layers.{number}.{name[match.end() :]}"
    if match := re.search(r"\.local_experts\.(\d+)\.", name):
        experts = model.config.num_moe_experts // parallel_state.get_expert_model_parallel_world_size()
        number = parallel_state.get_expert_model_parallel_rank() * experts + int(match[1])
        name = f"{name[: match.start()]}.{number}.{name[match.end() :]}"
    return name


def draw(place: Place, config: TrainConfig) -> Tensor:
    """float32 of the whole parameter: norms 1, biases 0, matrices normal with Megatron's usual deviations."""
    if place.name.endswith(".bias"):
        return torch.zeros(place.shape)
    if len(place.shape) == 1:
        return torch.ones(place.shape)
    std = config.init_method_std
    if place.name.endswith((".linear_proj.weight", ".linear_fc2.weight")):
        std /= (2 * config.num_layers) ** 0.5  # what adds to the residual stream
    seed = hashlib.sha256(f"{config.seed}/{place.name}".encode()).digest()
    generator = np.random.Generator(np.random.Philox(key=int.from_bytes(seed[:16], "little")))
    return torch.from_numpy(generator.standard_normal(place.shape, np.float32) * np.float32(std))


@torch.no_grad()
def init_weights(model: Any, config: TrainConfig) -> None:
    """Give every parameter of this rank's GPTModel its weights: those of the checkpoint load_hf names, else drawn.

    Each is made whole and cut, so that all layouts start equal.
    """
    if config.load_hf:
        loaded = load_hf(config.load_hf)
        for place, parameter in placed_parameters(model):
            parameter.copy_(place.cut(loaded[place.name]))
        return
    placed = list(placed_parameters(model))
    workers = max(1, usable_cpus() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    # numpy draws without the interpreter's lock. A few at a time: a whole one may be a gigabyte.
    with ThreadPoolExecutor(workers) as pool:
        drawn: deque[Any] = deque()
        for number, (place, parameter) in enumerate(placed):
            while number + len(drawn) < len(placed) and len(drawn) < workers:
                drawn.append(pool.submit(draw, placed[number + len(drawn)][0], config))
            parameter.copy_(place.cut(drawn.popleft().result()))
