"""The shape of DeepSeek-V4 models from the keys of their config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from databuild.errors import UsageError
from train.deepseek_v4.config import V4Config
from train.planner.shape import GATED, RESIDUALS, Layer, Shape

#: Sizes that a shape needs, in the names of config.json.
_SIZES = (
    *(
        "num_hidden_layers",
        "hidden_size",
        "vocab_size",
        "num_attention_heads",
        "head_dim",
        "q_lora_rank",
        "o_lora_rank",
    ),
    *(
        "o_groups",
        "index_n_heads",
        "index_head_dim",
        "n_routed_experts",
        "num_experts_per_tok",
        "moe_intermediate_size",
    ),
    "hc_mult",
)
#: Those of DeepSeek-V4-Flash as published.
FLASH: dict[str, int] = {
    **{name: getattr(V4Config(), name) for name in _SIZES},
    "n_shared_experts": 1,
    "num_hash_layers": 3,
}


def keys_of_section(c: V4Config) -> dict[str, Any]:
    """The section of a train.sft configuration in the names of config.json."""
    return c.model_dump(include=set(_SIZES)) | {"compress_ratios": [c.rate(kind) or 0 for kind in c.attention_types]}


def shape_of_v4(keys: Mapping[str, Any], name: str) -> Shape:
    """The shape from config.json; keys that are missing are those of Flash. UsageError if a size makes no sense."""
    k = {**FLASH, **{key: value for key, value in keys.items() if value is not None}}
    for key in FLASH:
        if not isinstance(k[key], int) or k[key] < (0 if key.startswith("n") else 1):
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
