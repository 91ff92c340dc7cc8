"""Hugging Face checkpoints of dense models <-> state dicts in the names of Megatron's GPTModel. Numbers are only moved.

Llama, Qwen2 and Qwen3, and what is built like them: RMSNorm, rotary positions on whole heads, SwiGLU. Names are those of
Megatron's local layer spec (no Transformer Engine, where norms are part of the linear layer behind them).

    embedding.word_embeddings.weight                    model.embed_tokens.weight
    decoder.layers.N.input_layernorm.weight             model.layers.N.input_layernorm.weight
    decoder.layers.N.self_attention.linear_qkv.weight   q_proj, k_proj, v_proj: for each group its queries, key, value
    decoder.layers.N.self_attention.q_layernorm.weight  model.layers.N.self_attn.q_norm.weight; k_layernorm alike
    decoder.layers.N.self_attention.linear_proj.weight  model.layers.N.self_attn.o_proj.weight
    decoder.layers.N.pre_mlp_layernorm.weight           model.layers.N.post_attention_layernorm.weight
    decoder.layers.N.mlp.linear_fc1.weight              gate_proj above up_proj
    decoder.layers.N.mlp.linear_fc2.weight              model.layers.N.mlp.down_proj.weight
    decoder.final_layernorm.weight                      model.norm.weight
    output_layer.weight                                 lm_head.weight; neither is there with tie_embeddings
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from databuild.errors import OutputError, SourceError, UsageError
from manifests.model import first_error
from train.config import TrainConfig

if TYPE_CHECKING:
    from torch import Tensor

MODEL_TYPES = {"llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
SHARD_BYTES = 5 * 10**9

EMBEDDING, HF_EMBEDDING = "embedding.word_embeddings.weight", "model.embed_tokens.weight"
FINAL_NORM, HF_FINAL_NORM = "decoder.final_layernorm.weight", "model.norm.weight"
OUTPUT, HF_OUTPUT = "output_layer.weight", "lm_head.weight"
SAME_IN_A_LAYER = {
    "input_layernorm.weight": "input_layernorm.weight",
    "self_attention.linear_proj.weight": "self_attn.o_proj.weight",
    "pre_mlp_layernorm.weight": "post_attention_layernorm.weight",
    "mlp.linear_fc2.weight": "mlp.down_proj.weight",
}
QK_NORMS = {
    "self_attention.q_layernorm.weight": "self_attn.q_norm.weight",
    "self_attention.k_layernorm.weight": "self_attn.k_norm.weight",
}


def config_from_hf(folder: str | Path) -> dict[str, Any]:
    """The model keys of TrainConfig that a checkpoint directory states.

    SourceError if its config.json cannot be read, UsageError if it describes a model that is not built that way.
    """
    path = Path(folder) / CONFIG
    raw = _read_json(path)
    model_type = raw.get("model_type")
    if model_type == "deepseek_v4":
        from train.deepseek_v4.hf import section_from_hf

        return {"deepseek_v4": section_from_hf(raw, path)}
    if model_type not in MODEL_TYPES:
        raise _unlike(path, "model_type", f"one of {', '.join(MODEL_TYPES)}, deepseek_v4", model_type)
    rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    for key, wanted, found in (
        ("hidden_act", "silu", raw.get("hidden_act", "silu")),
        ("rope_type", "default", kind),
        ("attention_bias", False, bool(raw.get("attention_bias", False))),
        ("mlp_bias", False, bool(raw.get("mlp_bias", False))),
        ("use_sliding_window", False, bool(raw.get("use_sliding_window", False))),
        ("partial_rotary_factor", 1, rope.get("partial_rotary_factor", raw.get("partial_rotary_factor", 1))),
    ):
        if found != wanted:
            raise _unlike(path, key, str(wanted), found)
    try:
        heads = int(raw["num_attention_heads"])
        return {
            "num_layers": int(raw["num_hidden_layers"]),
            "hidden_size": int(raw["hidden_size"]),
            "ffn_hidden_size": int(raw["intermediate_size"]),
            "num_attention_heads": heads,
            "num_query_groups": int(raw.get("num_key_value_heads") or heads),
            "kv_channels": int(raw.get("head_dim") or int(raw["hidden_size"]) // heads),
            "vocab_size": int(raw["vocab_size"]),
            "rotary_base": float(rope.get("rope_theta") or raw.get("rope_theta") or 10_000.0),
            "rotary_percent": 1.0,
            "norm_epsilon": float(raw.get("rms_norm_eps", 1e-6)),
            "init_method_std": float(raw.get("initializer_range", 0.02)),
            "tie_embeddings": bool(raw.get("tie_word_embeddings", False)),
            "qk_layernorm": model_type == "qwen3",
            "add_qkv_bias": model_type == "qwen2",
        }
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(
            "config.json lacks a size", where=str(path), found=f"{type(error).__name__} {error}"
        ) from error


def load_hf(folder: str | Path) -> dict[str, Tensor]:
    """The whole model of a checkpoint directory, in Megatron's names and the dtype it is stored in, on the CPU.

    SourceError if a file or a tensor is missing, too many, or has another shape than config.json says.
    """
    import torch

    where = Path(folder)
    try:
        config = TrainConfig(**config_from_hf(where))
    except ValidationError as error:
        raise UsageError(
            "config.json has sizes that make no model", where=str(where / CONFIG), found=first_error(error)
        ) from error
    stored = _read_tensors(where)
    if config.tie_embeddings:
        stored.pop(HF_OUTPUT, None)  # some writers store the embedding twice
    for name in [name for name in stored if name.endswith("rotary_emb.inv_freq")]:
        del stored[name]  # older Llama checkpoints; follows from rotary_base
    expected = _hf_shapes(config)
    _compare(expected, {name: tuple(tensor.shape) for name, tensor in stored.items()}, str(where), SourceError)
    state = {EMBEDDING: stored[HF_EMBEDDING], FINAL_NORM: stored[HF_FINAL_NORM]}
    if not config.tie_embeddings:
        state[OUTPUT] = stored[HF_OUTPUT]
    for ours, theirs in _layer_prefixes(config):
        for name, hf_name in _moved(config).items():
            state[ours + name] = stored[theirs + hf_name]
        for kind in ("weight", "bias") if config.add_qkv_bias else ("weight",):
            # Taken out of stored, so that a large model is not held twice.
            query, key, value = (stored.pop(f"{theirs}self_attn.{letter}_proj.{kind}") for letter in "qkv")
            state[f"{ours}self_attention.linear_qkv.{kind}"] = join_qkv(query, key, value, config)
        gate, up = (stored.pop(f"{theirs}mlp.{name}_proj.weight") for name in ("gate", "up"))
        state[f"{ours}mlp.linear_fc1.weight"] = torch.cat([gate, up])
    return state


def export_hf(
    state: Mapping[str, Any], config: TrainConfig, folder: str | Path, *, shard_bytes: int = SHARD_BYTES
) -> None:
    """Write a whole, unsharded model as a checkpoint directory that transformers loads; it holds no tokenizer.

    state: Megatron's names, without wrappers' prefixes; `_extra_state` entries are left out. The directory must not exist
    or be empty. UsageError if the model has no such form or the state is not that of config; OutputError if it cannot be
    written.
    """
    model_type = _hf_model_type(config)
    tensors = _to_hf({name: value for name, value in state.items() if not name.endswith("_extra_state")}, config)
    dtype = str(next(iter(tensors.values())).dtype).removeprefix("torch.")
    write_checkpoint(tensors, _hf_config(config, model_type, dtype), folder, shard_bytes)


def write_checkpoint(
    tensors: Mapping[str, Tensor], config: Mapping[str, Any], folder: str | Path, shard_bytes: int
) -> None:
    """Write tensors and config.json, the latter last; the directory must not exist or be empty. OutputError if it cannot be."""
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise OutputError("the directory is not empty", where=str(target), next_step="export into a new directory")
    from safetensors.torch import save_file

    shards = _shards(tensors, shard_bytes)
    names = [WEIGHTS] if len(shards) == 1 else [
        f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors" for i in range(len(shards))
    ]  # fmt: skip
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, keys in zip(names, shards, strict=True):
            # save_file wants memory of its own for each tensor: parts of one matrix, say of linear_qkv, are copied here.
            save_file({key: tensors[key].contiguous() for key in keys}, target / name, metadata={"format": "pt"})
        if len(shards) > 1:
            sizes = sum(_bytes(tensor) for tensor in tensors.values())
            where = {key: name for name, keys in zip(names, shards, strict=True) for key in keys}
            _write_json(target / INDEX, {"metadata": {"total_size": sizes}, "weight_map": where})
        # Last: without config.json nothing takes the directory for a checkpoint.
        _write_json(target / CONFIG, config)
    except OSError as error:
        raise OutputError("cannot write the checkpoint", where=str(target), found=str(error.strerror)) from error


def join_qkv(query: Tensor, key: Tensor, value: Tensor, config: TrainConfig) -> Tensor:
    """Weights or biases of queries, keys and values as Megatron's linear_qkv: group by group."""
    import torch

    groups, rest = config.query_groups, query.shape[1:]
    parts = [part.reshape(groups, -1, *rest) for part in (query, key, value)]
    return torch.cat(parts, dim=1).reshape(-1, *rest)


def split_qkv(joined: Tensor, config: TrainConfig) -> tuple[Tensor, Tensor, Tensor]:
    """The inverse of join_qkv."""
    import torch

    groups, size = config.query_groups, config.head_dim
    queries = config.num_attention_heads // groups * size
    grouped = joined.reshape(groups, queries + 2 * size, *joined.shape[1:])
    parts = torch.split(grouped, [queries, size, size], dim=1)
    query, key, value = (part.reshape(-1, *joined.shape[1:]) for part in parts)
    return query, key, value


def _to_hf(state: Mapping[str, Tensor], config: TrainConfig) -> dict[str, Tensor]:
    found = {name: tuple(tensor.shape) for name, tensor in state.items()}
    _compare(_shapes(config), found, "state", UsageError)
    tensors = {HF_EMBEDDING: state[EMBEDDING], HF_FINAL_NORM: state[FINAL_NORM]}
    if not config.tie_embeddings:
        tensors[HF_OUTPUT] = state[OUTPUT]
    for ours, theirs in _layer_prefixes(config):
        for name, hf_name in _moved(config).items():
            tensors[theirs + hf_name] = state[ours + name]
        for kind in ("weight", "bias") if config.add_qkv_bias else ("weight",):
            parts = split_qkv(state[f"{ours}self_attention.linear_qkv.{kind}"], config)
            for letter, part in zip("qkv", parts, strict=True):
                tensors[f"{theirs}self_attn.{letter}_proj.{kind}"] = part
        gate, up = state[f"{ours}mlp.linear_fc1.weight"].chunk(2)
        tensors |= {f"{theirs}mlp.gate_proj.weight": gate, f"{theirs}mlp.up_proj.weight": up}
    return {name: tensor.detach().cpu() for name, tensor in tensors.items()}


def _layer_prefixes(config: TrainConfig) -> Iterator[tuple[str, str]]:
    return ((f"decoder.layers.{i}.", f"model.layers.{i}.") for i in range(config.num_layers))


def _moved(config: TrainConfig) -> dict[str, str]:
    return SAME_IN_A_LAYER | (QK_NORMS if config.qk_layernorm else {})


Shape = tuple[int, ...]


def _common_shapes(c: TrainConfig) -> dict[str, Shape]:
    """Tensors of a layer that only change their name, by Megatron's name."""
    shapes: dict[str, Shape] = {
        "input_layernorm.weight": (c.hidden_size,),
        "self_attention.linear_proj.weight": (c.hidden_size, c.num_attention_heads * c.head_dim),
        "pre_mlp_layernorm.weight": (c.hidden_size,),
        "mlp.linear_fc2.weight": (c.hidden_size, c.ffn_hidden_size),
    }
    return shapes | (dict.fromkeys(QK_NORMS, (c.head_dim,)) if c.qk_layernorm else {})


def _shapes(c: TrainConfig) -> dict[str, Shape]:
    """Megatron's name -> shape."""
    rows = (c.num_attention_heads + 2 * c.query_groups) * c.head_dim
    layer = _common_shapes(c) | {
        "self_attention.linear_qkv.weight": (rows, c.hidden_size),
        "mlp.linear_fc1.weight": (2 * c.ffn_hidden_size, c.hidden_size),
    }
    if c.add_qkv_bias:
        layer["self_attention.linear_qkv.bias"] = (rows,)
    ends: dict[str, Shape] = {EMBEDDING: (c.vocab_size, c.hidden_size), FINAL_NORM: (c.hidden_size,)}
    if not c.tie_embeddings:
        ends[OUTPUT] = (c.vocab_size, c.hidden_size)
    return ends | {ours + name: shape for ours, _ in _layer_prefixes(c) for name, shape in layer.items()}


def _hf_shapes(c: TrainConfig) -> dict[str, Shape]:
    """Hugging Face's name -> shape."""
    queries, keys = c.num_attention_heads * c.head_dim, c.query_groups * c.head_dim
    moved = _moved(c)
    layer = {moved[name]: shape for name, shape in _common_shapes(c).items()}
    for letter, rows in (("q", queries), ("k", keys), ("v", keys)):
        layer[f"self_attn.{letter}_proj.weight"] = (rows, c.hidden_size)
        if c.add_qkv_bias:
            layer[f"self_attn.{letter}_proj.bias"] = (rows,)
    for name in ("gate", "up"):
        layer[f"mlp.{name}_proj.weight"] = (c.ffn_hidden_size, c.hidden_size)
    ends: dict[str, Shape] = {HF_EMBEDDING: (c.vocab_size, c.hidden_size), HF_FINAL_NORM: (c.hidden_size,)}
    if not c.tie_embeddings:
        ends[HF_OUTPUT] = (c.vocab_size, c.hidden_size)
    return ends | {theirs + name: shape for _, theirs in _layer_prefixes(c) for name, shape in layer.items()}


def _compare(
    expected: Mapping[str, Shape], found: Mapping[str, Shape], where: str, kind: type[SourceError] | type[UsageError]
) -> None:
    for what, names in (
        ("is missing", sorted(expected.keys() - found.keys())),
        ("does not belong to this model", sorted(found.keys() - expected.keys())),
    ):
        if names:
            more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
            raise kind(f"a tensor {what}", where=where, found=names[0] + more)
    for name, shape in expected.items():
        if found[name] != shape:
            raise kind(
                "a tensor has another shape", where=f"{where}, {name}", expected=str(shape), found=str(found[name])
            )


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    names = [WEIGHTS]
    if (folder / INDEX).exists():
        names = sorted(set(_read_json(folder / INDEX).get("weight_map", {}).values()))
    tensors: dict[str, Tensor] = {}
    for name in names:
        if Path(name).name != name:
            raise SourceError("the index names a file elsewhere", where=str(folder / INDEX), found=name)
        try:
            tensors |= load_file(folder / name)
        except (OSError, SafetensorError) as error:
            raise SourceError("the weights cannot be read", where=str(folder / name), found=str(error)) from error
    return tensors


def _hf_model_type(c: TrainConfig) -> str:
    if c.num_moe_experts or c.multi_latent_attention or c.mtp_num_layers:
        raise UsageError("only dense models without multi-latent attention and MTP have a Hugging Face form here")
    if c.qk_layernorm and c.add_qkv_bias:
        raise UsageError("no Hugging Face model here has both qk_layernorm and add_qkv_bias")
    if c.rotary_percent != 1:
        raise UsageError(
            "no Hugging Face model here rotates a part of a head", found=f"rotary_percent {c.rotary_percent}"
        )
    if c.add_qkv_bias and c.head_dim * c.num_attention_heads != c.hidden_size:
        raise UsageError("Qwen2 has heads of hidden_size / num_attention_heads", found=f"kv_channels {c.head_dim}")
    return "qwen3" if c.qk_layernorm else "qwen2" if c.add_qkv_bias else "llama"


def _hf_config(c: TrainConfig, model_type: str, dtype: str) -> dict[str, Any]:
    return {
        "architectures": [MODEL_TYPES[model_type]],
        "model_type": model_type,
        "num_hidden_layers": c.num_layers,
        "hidden_size": c.hidden_size,
        "intermediate_size": c.ffn_hidden_size,
        "num_attention_heads": c.num_attention_heads,
        "num_key_value_heads": c.query_groups,
        "head_dim": c.head_dim,
        "vocab_size": c.vocab_size,
        "max_position_embeddings": c.seq_length,
        "hidden_act": "silu",
        "rms_norm_eps": c.norm_epsilon,
        # Both spellings: transformers 4 reads the first, 5 the second.
        "rope_theta": c.rotary_base,
        "rope_parameters": {"rope_type": "default", "rope_theta": c.rotary_base},
        "initializer_range": c.init_method_std,
        "tie_word_embeddings": c.tie_embeddings,
        "attention_bias": False,
        "torch_dtype": dtype,
    }


def _shards(tensors: Mapping[str, Tensor], limit: int) -> list[list[str]]:
    """Names of tensors in order, cut so that a file stays below limit bytes where one tensor does."""
    shards: list[list[str]] = []
    size = 0
    for name, tensor in tensors.items():
        if not shards or size + _bytes(tensor) > limit:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += _bytes(tensor)
    return shards


def _bytes(tensor: Tensor) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SourceError(
            "this is no checkpoint of Hugging Face",
            where=str(path),
            found=getattr(error, "strerror", None) or str(error),
        ) from error
    if not isinstance(value, dict):
        raise SourceError("this is no checkpoint of Hugging Face", where=str(path), found=type(value).__name__)
    return value


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _unlike(path: Path, key: str, expected: str, found: object) -> UsageError:
    return UsageError(
        "the checkpoint is of a model that is not built here",
        where=f"{path}, {key}",
        expected=expected,
        found=str(found),
    )
