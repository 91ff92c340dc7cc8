"""How many tokens each expert of each layer gets in a step."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from megatron.core.transformer.moe.router import TopKRouter
from torch import Tensor

from train.deepseek_v4.routing import Router as V4Router


def _mapped_tokens(output: tuple[Tensor, Tensor]) -> Tensor:
    """Tokens of each expert, of the output of Megatron's router: probabilities and a map [tokens, experts]."""
    return output[1].sum(0)


class ExpertLoad:
    """Counts what the routers of a model decide; a model without experts has no counts."""

    def __init__(self, model: Any) -> None:
        config = model.config
        self._names = [f"decoder.layers.{i}" for i in range(config.num_layers)]
        self._names += [f"mtp.layers.{i}" for i in range(config.mtp_num_layers or 0)]
        self._counts = torch.zeros(
            len(self._names), config.num_moe_experts or 0, dtype=torch.float64, device=torch.cuda.current_device()
        )
        for name, module in model.named_modules():
            if isinstance(module, TopKRouter):
                module.register_forward_hook(self._counter(self._row(model, name), _mapped_tokens))
            elif isinstance(module, V4Router):
                module.register_forward_hook(self._counter(module.layer_number - 1, module.count))

    def _row(self, model: Any, name: str) -> int:
        match = re.match(r"(decoder|mtp)\.layers\.(\d+)\.", name)
        assert match is not None, name
        index = int(match[2])
        if match[1] == "mtp":
            return int(model.config.num_layers) + index
        return int(model.decoder.layers[index].layer_number) - 1

    def _counter(self, row: int, tokens_of: Callable[[tuple[Tensor, Tensor]], Tensor]) -> Any:
        def count(_module: Any, _inputs: Any, output: tuple[Tensor, Tensor]) -> None:
            # Under full recompute a forward pass runs twice, the first time without gradients.
            if torch.is_grad_enabled():
                self._counts[row] += tokens_of(output)

        return count

    def take(self) -> dict[str, list[float]] | None:
        """{layer: tokens of each expert} since the last call, over all ranks; every rank calls it."""
        if not self._counts.numel():
            return None
        dist.all_reduce(self._counts)  # each token is on one rank of tp, cp and dp, each layer on one of pp
        counts = self._counts.tolist()
        self._counts.zero_()
        return {name: load for name, load in zip(self._names, counts, strict=True) if any(load)}
