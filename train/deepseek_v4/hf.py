"""Hugging Face checkpoints of DeepSeek-V4 <-> the names of V4Model. Numbers are only moved.

On disk the tensors have the names of DeepSeek's own code, as transformers saves them (layers.N.attn.wq_a.weight) and as
DeepSeek publishes them, without `model.`; both are read, the first is written. Experts lie there one by one:

    decoder.layers.N.mlp.experts.gate_up_proj[e]    ffn.experts.e.w1.weight above ffn.experts.e.w3.weight
    decoder.layers.N.mlp.experts.down_proj[e]       ffn.experts.e.w2.weight
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from databuild.errors import SourceError, UsageError
from manifests.model import first_error
from train.deepseek_v4.config import CSA, HCA, SLIDING, V4Config
from train.hf import CONFIG, INDEX, SHARD_BYTES, WEIGHTS, _compare, _read_json, _unlike, write_checkpoint

if TYPE_CHECKING:
    from torch import Tensor

ENDS = {
    "embedding.word_embeddings.weight": "model.embed_tokens.weight",
    "hc_head.hc_fn": "model.hc_head.hc_fn",
    "hc_head.hc_base": "model.hc_head.hc_base",
    "hc_head.hc_scale": "model.hc_head.hc_scale",
    "decoder.final_layernorm.weight": "model.norm.weight",
    "output_layer.weight": "head.weight",
}
IN_A_LAYER = {
    "self_attn.sinks": "attn.attn_sink",
    "self_attn.q_a_proj.weight": "attn.wq_a.weight",
    "self_attn.q_a_norm.weight": "attn.q_norm.weight",
    "self_attn.q_b_proj.weight": "attn.wq_b.weight",
    "self_attn.kv_proj.weight": "attn.wkv.weight",
    "self_attn.kv_norm.weight": "attn.norm.weight",
    "self_attn.o_a_proj.weight": "attn.wo_a.weight",
    "self_attn.o_b_proj.weight": "attn.wo_b.weight",
    "self_attn.compressor.position_bias": "attn.compressor.ape",
    "self_attn.compressor.kv_proj.weight": "attn.compressor.wkv.weight",
    "self_attn.compressor.gate_proj.weight": "attn.compressor.wgate.weight",
    "self_attn.compressor.kv_norm.weight": "attn.compressor.norm.weight",
    "self_attn.compressor.indexer.position_bias": "attn.indexer.compressor.ape",
    "self_attn.compressor.indexer.kv_proj.weight": "attn.indexer.compressor.wkv.weight",
    "self_attn.compressor.indexer.gate_proj.weight": "attn.indexer.compressor.wgate.weight",
    "self_attn.compressor.indexer.kv_norm.weight": "attn.indexer.compressor.norm.weight",
    "self_attn.compressor.indexer.q_b_proj.weight": "attn.indexer.wq_b.weight",
    "self_attn.compressor.indexer.scorer.weights_proj.weight": "attn.indexer.weights_proj.weight",
    "mlp.gate.weight": "ffn.gate.weight",
    "mlp.gate.tid2eid": "ffn.gate.tid2eid",
    "mlp.gate.expert_bias": "ffn.gate.bias",
    "mlp.shared_experts.gate_proj.weight": "ffn.shared_experts.w1.weight",
    "mlp.shared_experts.up_proj.weight": "ffn.shared_experts.w3.weight",
    "mlp.shared_experts.down_proj.weight": "ffn.shared_experts.w2.weight",
    "input_layernorm.weight": "attn_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    **{f"{part}_hc.{name}": f"hc_{part}_{name}" for part in ("attn", "ffn") for name in ("fn", "base", "scale")},
}
EXPERTS = {"mlp.experts.gate_up_proj": ("w1", "w3"), "mlp.experts.down_proj": ("w2",)}
PUBLISHED = {
    "embed.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "lm_head.weight": "head.weight",
    "hc_head_fn": "model.hc_head.hc_fn",
    "hc_head_base": "model.hc_head.hc_base",
    "hc_head_scale": "model.hc_head.hc_scale",
}


def stored_names(name: str, experts: range | None = None) -> list[str]:
    """The stored tensors that make V4Model's tensor, in order; experts: which ones it stacks, NAME.3 is one of them alone."""
    if name in ENDS:
        return [ENDS[name]]
    number, rest = name.removeprefix("decoder.layers.").split(".", 1)
    layer = f"model.layers.{number}."
    if rest in IN_A_LAYER:
        return [layer + IN_A_LAYER[rest]]
    if experts is None:
        rest, expert = rest.rsplit(".", 1)
        experts = range(int(expert), int(expert) + 1)
    return [f"{layer}ffn.experts.{e}.{part}.weight" for e in experts for part in EXPERTS[rest]]


class Checkpoint:
    """A checkpoint directory, of which each process reads what it needs.

    SourceError if a file or a tensor is missing, too many, quantized, or of another shape than the configuration says.
    """

    def __init__(self, folder: str | Path, c: V4Config) -> None:
        from safetensors import SafetensorError, safe_open

        where = Path(folder)
        self._of: dict[str, tuple[Any, str]] = {}
        found: dict[str, tuple[int, ...]] = {}
        for name in _files(where):
            try:
                file: Any = safe_open(where / name, "pt")
                for stored in file.keys():  # noqa: SIM118 (it is no mapping)
                    if stored.startswith("mtp."):
                        continue  # prediction layers; transformers leaves them out too
                    part = file.get_slice(stored)
                    if stored.endswith(".scale") or part.get_dtype().startswith("F8"):
                        raise SourceError(
                            "the weights are quantized",
                            where=f"{where / name}, {stored}",
                            expected="bf16 or fp32",
                            next_step="convert them to bf16 first",
                        )
                    self._of[_saved_name(stored)] = file, stored
                    found[_saved_name(stored)] = tuple(part.get_shape())
            except (OSError, SafetensorError) as error:
                raise SourceError("the weights cannot be read", where=str(where / name), found=str(error)) from error
        _compare(stored_shapes(c), found, str(where), SourceError)

    def weight(self, name: str, shape: tuple[int, ...]) -> Tensor:
        """A whole tensor of V4Model, or one expert's part (NAME.3); what train.deepseek_v4.weights.fill asks for."""
        import torch

        parts = [self._read(stored) for stored in stored_names(name)]
        whole = torch.cat(parts)
        assert tuple(whole.shape) == shape, (name, whole.shape, shape)  # both follow from the configuration
        return whole

    def _read(self, stored: str) -> Tensor:
        file, name = self._of[stored]
        tensor: Tensor = file.get_tensor(name)
        return tensor


def stored_shapes(c: V4Config) -> dict[str, tuple[int, ...]]:
    """Name and shape of everything a checkpoint of this architecture holds."""
    import torch

    from train.deepseek_v4.model import V4Model
    from train.deepseek_v4.weights import whole_tensors

    with torch.device("meta"):
        model = V4Model(c)
    shapes: dict[str, tuple[int, ...]] = {}
    for item in whole_tensors(model):
        names = stored_names(item.name, item.experts)
        shape = tuple(item.tensor.shape)
        if item.experts is not None:
            pieces = len(names) // len(item.experts)
            shape = (shape[1] // pieces, *shape[2:])
        shapes |= dict.fromkeys(names, shape)
    return shapes


def export_hf(state: Mapping[str, Any], c: V4Config, folder: str | Path, *, shard_bytes: int = SHARD_BYTES) -> None:
    """Write a whole model as a checkpoint directory that transformers loads; it holds no tokenizer.

    state: V4Model's names, experts stacked; the directory must not exist or be empty. UsageError if the state is not that of
    the configuration, OutputError if it cannot be written.
    """
    tensors: dict[str, Tensor] = {}
    for name, tensor in state.items():
        whole = tensor.detach().cpu()
        if name.endswith(tuple(EXPERTS)):
            pieces = len(EXPERTS[name.split(".", 3)[3]])
            parts = [part for expert in whole for part in expert.chunk(pieces)]
            tensors |= dict(zip(stored_names(name, range(len(whole))), parts, strict=True))
        else:
            tensors[stored_names(name)[0]] = whole
    found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    _compare(stored_shapes(c), found, "state", UsageError)
    dtype = str(tensors[ENDS["output_layer.weight"]].dtype).removeprefix("torch.")
    write_checkpoint(tensors, hf_config(c, dtype), folder, shard_bytes)


def hf_config(c: V4Config, dtype: str) -> dict[str, Any]:
    """config.json of an architecture."""
    values = c.model_dump(exclude={"rope_scaling"})
    part = {"partial_rotary_factor": c.partial_rotary_factor}
    compress: dict[str, Any] = {"rope_type": "default", "rope_theta": c.compress_rope_theta, **part}
    if c.rope_scaling:
        yarn = c.rope_scaling
        compress |= {"rope_type": "yarn", "attention_factor": 1.0, **yarn.model_dump()}
        values["max_position_embeddings"] = int(yarn.factor * yarn.original_max_position_embeddings)
    return values | {
        "architectures": ["DeepseekV4ForCausalLM"],
        "model_type": "deepseek_v4",
        "dtype": dtype,
        "layer_types": c.attention_types,
        "mlp_layer_types": ["hash_moe" if flag else "moe" for flag in c.hash_layers],
        "rope_parameters": {"main": {"rope_type": "default", "rope_theta": c.rope_theta, **part}, "compress": compress},
        "qk_rope_head_dim": c.rope_dim,
        "num_key_value_heads": 1,
        "n_shared_experts": 1,
        "scoring_func": "sqrtsoftplus",
        "hidden_act": "silu",
        "norm_topk_prob": True,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "num_nextn_predict_layers": 0,
    }


def section_from_hf(raw: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The section deepseek_v4 of a TrainConfig out of config.json, in transformers' form or in DeepSeek's.

    UsageError if it describes a model that is not built that way, SourceError if its sizes make no model.
    """
    for key, wanted in (
        ("scoring_func", "sqrtsoftplus"),
        ("hidden_act", "silu"),
        ("n_shared_experts", 1),
        ("num_key_value_heads", 1),
        ("norm_topk_prob", True),
        ("attention_bias", False),
        ("mlp_bias", False),
        ("tie_word_embeddings", False),
    ):
        if raw.get(key, wanted) != wanted:
            raise _unlike(path, key, str(wanted), raw[key])
    try:
        values = {key: raw[key] for key in V4Config.model_fields if raw.get(key) is not None}
        values |= _older_keys(raw)
        rope = raw.get("rope_parameters") or raw.get("rope_scaling") or {}
        rope = rope.get("compress", rope)
        values["rope_scaling"] = None
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind == "yarn":
            keys = ("factor", "original_max_position_embeddings", "beta_fast", "beta_slow")
            values["rope_scaling"] = {key: rope[key] for key in keys if key in rope}
        elif kind != "default":
            raise _unlike(path, "rope_type", "default or yarn", kind)
        return V4Config.model_validate(values).model_dump()
    except ValidationError as error:
        raise SourceError("config.json makes no model", where=str(path), found=first_error(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SourceError(
            "config.json lacks a size", where=str(path), found=f"{type(error).__name__} {error}"
        ) from error


def _older_keys(raw: Mapping[str, Any]) -> dict[str, Any]:
    """What DeepSeek's own config.json calls by other names."""
    layers = int(raw["num_hidden_layers"])
    values: dict[str, Any] = {}
    if raw.get("compress_ratios") is not None and raw.get("layer_types") is None:
        kinds = {0: SLIDING, 4: CSA, 128: HCA}
        values["layer_types"] = [kinds[ratio] for ratio in raw["compress_ratios"][:layers]]
    if raw.get("num_hash_layers") is not None and raw.get("mlp_layer_types") is None:
        hashed = min(int(raw["num_hash_layers"]), layers)
        values["mlp_layer_types"] = ["hash_moe"] * hashed + ["moe"] * (layers - hashed)
    if raw.get("qk_rope_head_dim") is not None and raw.get("partial_rotary_factor") is None:
        values["partial_rotary_factor"] = raw["qk_rope_head_dim"] / raw["head_dim"]
    return values


def _saved_name(stored: str) -> str:
    """The name transformers saves a tensor by, of that or of the published one."""
    name = PUBLISHED.get(stored, stored)
    if name.startswith("layers."):
        name = f"model.{name}"
    return name.replace(".attn.kv_norm.", ".attn.norm.")


def _files(folder: Path) -> list[str]:
    if not (folder / INDEX).exists():
        return [WEIGHTS]
    names = sorted(set(_read_json(folder / INDEX).get("weight_map", {}).values()))
    for name in names:
        if Path(name).name != name:
            raise SourceError("the index names a file elsewhere", where=str(folder / INDEX), found=name)
    return names


def read_section(folder: str | Path) -> V4Config:
    """The architecture of a checkpoint directory. Errors as section_from_hf."""
    path = Path(folder) / CONFIG
    return V4Config.model_validate(section_from_hf(_read_json(path), path))
