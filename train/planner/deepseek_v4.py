"""The shape of DeepSeek-V4 models from the keys of their config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from databuild.errors import UsageError
from train.planner.shape import GATED, RESIDUALS, Layer, Shape

#: DeepSeek-V4-Flash as published. compress_ratios: two sliding layers, then 4 and 128 in turn.
FLASH: dict[str, Any] = {
    "model_type": "deepseek_v4",
    "num_hidden_layers": 43,
    "hidden_size": 4096,
    "vocab_size": 129280,
    "num_attention_heads": 64,
    "head_dim": 512,
    "q_lora_rank": 1024,
    "o_lora_rank": 1024,
    "o_groups": 8,
    "index_n_heads": 64,
    "index_head_dim": 128,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 2048,
    "hc_mult": 4,
    "num_hash_layers": 3,
}


def shape_of_v4(keys: Mapping[str, Any], name: str) -> Shape:
    """The shape from config.json; keys that are missing are those of Flash. UsageError if a size makes no sense."""
    k = {**FLASH, **{key: value for key, value in keys.items() if value is not None}}
    for key, value in FLASH.items():
        if isinstance(value, int) and (not isinstance(k[key], int) or k[key] < (0 if key.startswith("n") else 1)):
            raise UsageError("a size of the model makes no sense", where=f"{name}, {key}", found=repr(k[key]))
    count = k["num_hidden_layers"]
    ratios = k.get("compress_ratios") or _ratios(count)  # may go on with that of an MTP layer
    if not isinstance(ratios, list) or len(ratios) < count:
        raise UsageError(
            "compress_ratios does not name every layer",
            where=name,
            expected=f"{count} numbers",
            found=repr(ratios)[:80],
        )
    return Shape(
        name=name,
        hidden_size=k["hidden_size"],
        vocab_size=k["vocab_size"],
        tied=False,
        streams=k["hc_mult"],
        layers=tuple(_layer(k, ratios[i]) for i in range(count)),
        heads=k["num_attention_heads"],
        query_groups=None,
        num_experts=k["n_routed_experts"],
        moe_ffn_size=k["moe_intermediate_size"],
    )


def _ratios(count: int) -> list[int]:
    return [0 if i < 2 else 128 if i % 2 else 4 for i in range(count)]


def _layer(k: Mapping[str, Any], ratio: int) -> Layer:
    h, heads, dim = k["hidden_size"], k["num_attention_heads"], k["head_dim"]
    low, groups, wide = k["q_lora_rank"], k["o_groups"], k["hc_mult"]
    group_in = heads * dim // groups
    # Queries up, the grouped low-rank output, the shared expert.
    sharded = low * heads * dim + groups * group_in * k["o_lora_rank"] + groups * k["o_lora_rank"] * h
    sharded += 3 * h * k["moe_intermediate_size"] * k["n_shared_experts"]
    replicated = h * low + h * dim + h * k["n_routed_experts"] + 2 * (2 + wide) * wide * wide * h + 4 * h
    if ratio == 4:  # overlapping windows: twice as wide; and the indexer
        index = k["index_n_heads"] * k["index_head_dim"]
        replicated += 2 * h * 2 * dim + low * index + h * k["index_n_heads"] + 2 * h * 2 * k["index_head_dim"]
    elif ratio:
        replicated += 2 * h * dim
    chosen = k["num_experts_per_tok"]
    feed = k["n_shared_experts"] + chosen
    inner = 4 * heads * dim + 2 * groups * k["o_lora_rank"] + GATED * feed * k["moe_intermediate_size"] + 2 * chosen * h
    return Layer(
        sharded=sharded,
        replicated=replicated,
        experts=3 * h * k["moe_intermediate_size"] * k["n_routed_experts"],
        # The streams go in and come out of both halves of a layer; the rest is as in any layer.
        residual=2 * wide * h + RESIDUALS * h,
        inner=inner,
    )
