"""Everything that decides a training run: one flat, strict model, read from a YAML file and `key=value` sets.

Nothing here needs torch, megatron-core or a world size; what depends on the number of processes is checked by the trainer.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from databuild.errors import UsageError
from train.deepseek_v4.config import V4Config, run_problems, with_shared_keys
from train.yaml12 import parse_yaml

Positive = Annotated[int, Field(ge=1)]
NonNegative = Annotated[int, Field(ge=0)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Beta = Annotated[float, Field(ge=0, lt=1)]


class TrainConfig(BaseModel):
    """One training run. Frozen; unknown keys and silent conversions are errors. Sizes are counts unless a unit is named.

    None stands for "not used", and for sizes with a usual value: `num_query_groups` (num_attention_heads), `kv_channels`
    (hidden_size / num_attention_heads), `moe_ffn_hidden_size` (ffn_hidden_size). The properties give the value in use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # The run, as recipes state it.
    steps: Positive = 20
    seq_length: Annotated[int, Field(ge=2)] = 8192
    micro_batch_size: Positive = 1
    global_batch_size: Positive = 128
    tp: Positive = 1
    pp: Positive = 1
    cp: Positive = 1
    ep: Positive = 1
    etp: Positive = 1
    sequence_parallel: bool = False
    first_stage_layers: Positive | None = None
    last_stage_layers: Positive | None = None
    recompute: Literal["none", "selective", "full"] = "none"
    attention: Literal["causal_row", "document"] = "causal_row"
    precision: Literal["fp32", "bf16"] = "bf16"
    deterministic: bool = False
    freeze_router: bool = False
    freeze_e_score_correction_bias: bool = False
    seed: NonNegative = 42

    # The model.
    num_layers: Positive
    hidden_size: Positive
    ffn_hidden_size: Positive
    num_attention_heads: Positive
    num_query_groups: Positive | None = None
    kv_channels: Positive | None = None
    vocab_size: Positive = 129_280
    rotary_base: PositiveFloat = 10_000.0
    rotary_percent: Annotated[float, Field(gt=0, le=1)] = 1.0
    norm_epsilon: PositiveFloat = 1e-6
    init_method_std: PositiveFloat = 0.02
    tie_embeddings: bool = False
    qk_layernorm: bool = False
    add_qkv_bias: bool = False

    num_moe_experts: Positive | None = None
    moe_router_topk: Positive = 2
    moe_ffn_hidden_size: Positive | None = None
    moe_shared_expert_intermediate_size: Positive | None = None
    moe_layer_freq: Positive | list[Literal[0, 1]] = 1
    moe_router_score_function: Literal["softmax", "sigmoid"] = "softmax"
    moe_router_enable_expert_bias: bool = False
    moe_aux_loss_coeff: NonNegativeFloat = 0.0
    moe_router_num_groups: Positive | None = None
    moe_router_group_topk: Positive | None = None
    moe_router_topk_scaling_factor: PositiveFloat | None = None

    multi_latent_attention: bool = False
    q_lora_rank: Positive | None = None
    kv_lora_rank: Positive | None = None
    qk_head_dim: Positive | None = None
    qk_pos_emb_head_dim: Positive | None = None
    v_head_dim: Positive | None = None

    mtp_num_layers: Positive | None = None
    mtp_loss_scaling_factor: NonNegativeFloat = 0.1

    # Another architecture, whose section says everything of the model; the keys above that say the same follow from it.
    deepseek_v4: V4Config | None = None
    compile: bool = False

    # The optimizer.
    lr: PositiveFloat = 1e-5
    min_lr: NonNegativeFloat = 0.0
    lr_warmup_fraction: Annotated[float, Field(ge=0, lt=1)] = 0.1
    lr_decay_style: Literal["constant", "linear", "cosine"] = "cosine"
    weight_decay: NonNegativeFloat = 0.1
    adam_beta1: Beta = 0.9
    adam_beta2: Beta = 0.98
    adam_eps: PositiveFloat = 1e-8
    clip_grad: NonNegativeFloat = 1.0
    use_distributed_optimizer: bool = True

    # What is written, and what figures need.
    save_interval: Positive | None = None
    log_interval: Positive = 1
    load_hf: str | None = None
    price_per_gpu_hour: NonNegativeFloat | None = None
    peak_tflops: PositiveFloat | None = None

    @property
    def query_groups(self) -> int:
        """Key and value heads."""
        return self.num_query_groups or self.num_attention_heads

    @property
    def head_dim(self) -> int:
        """Size of a head of plain attention."""
        return self.kv_channels or self.hidden_size // self.num_attention_heads

    @property
    def moe_ffn_size(self) -> int:
        """Inner size of one expert."""
        return self.moe_ffn_hidden_size or self.ffn_hidden_size

    @property
    def moe_layers(self) -> tuple[bool, ...]:
        """Whether each layer has experts, as Megatron reads moe_layer_freq: every n-th from the first, or a list."""
        if self.num_moe_experts is None:
            return (False,) * self.num_layers
        if isinstance(self.moe_layer_freq, int):
            return tuple(i % self.moe_layer_freq == 0 for i in range(self.num_layers))
        return tuple(bool(flag) for flag in self.moe_layer_freq)

    @property
    def tokens_per_step(self) -> int:
        """Row tokens of a global batch, trained or not."""
        return self.global_batch_size * self.seq_length

    @model_validator(mode="before")
    @classmethod
    def _section_decides(cls, values: Any) -> Any:
        return with_shared_keys(values)

    @model_validator(mode="after")
    def _fits_together(self) -> TrainConfig:
        own = run_problems(self) if self.deepseek_v4 else _unless(not self.compile, "compile needs deepseek_v4")
        for broken in (*_run_problems(self), *_model_problems(self), *_expert_problems(self), *own):
            raise ValueError(broken)
        return self


def _unless(condition: bool, text: str) -> list[str]:
    return [] if condition else [text]


def _divides(small: int, large: int, small_name: str, large_name: str) -> list[str]:
    return _unless(large % small == 0, f"{large_name} {large} must be a multiple of {small_name} {small}")


def _run_problems(c: TrainConfig) -> list[str]:
    problems = _divides(c.micro_batch_size, c.global_batch_size, "micro_batch_size", "global_batch_size")
    if c.cp > 1:
        problems += _divides(2 * c.cp, c.seq_length, "2 x cp", "seq_length")
    if c.sequence_parallel:
        problems += _unless(c.tp > 1, "sequence_parallel needs tp > 1")
        problems += _divides(c.tp * c.cp, c.seq_length, "tp x cp", "seq_length")
    problems += _unless(c.min_lr <= c.lr, f"min_lr {c.min_lr} must not exceed lr {c.lr}")
    return problems + _stage_problems(c)


def _stage_problems(c: TrainConfig) -> list[str]:
    """Whether the layers can be split over the pipeline stages."""
    ends = [n for n in (c.first_stage_layers, c.last_stage_layers) if n is not None]
    if c.pp == 1:
        return _unless(not ends, "first_stage_layers and last_stage_layers need pp > 1")
    rest, stages = c.num_layers - sum(ends), c.pp - len(ends)
    if stages == 0:
        return _unless(
            rest == 0, f"first_stage_layers + last_stage_layers must be num_layers {c.num_layers} under pp 2"
        )
    return _unless(
        rest >= stages and rest % stages == 0,
        f"{rest} of num_layers {c.num_layers} are left for {stages} pipeline stages: "
        "they must be a multiple of it (set first_stage_layers, last_stage_layers)",
    )


_MLA_NEEDED = ("kv_lora_rank", "qk_head_dim", "qk_pos_emb_head_dim", "v_head_dim")


def _model_problems(c: TrainConfig) -> list[str]:
    problems = _divides(c.query_groups, c.num_attention_heads, "num_query_groups", "num_attention_heads")
    for name in ("num_attention_heads", "ffn_hidden_size", "vocab_size"):
        problems += _divides(c.tp, getattr(c, name), "tp", name)
    if c.multi_latent_attention:
        missing = [name for name in _MLA_NEEDED if getattr(c, name) is None]
        problems += _unless(not missing, f"multi_latent_attention needs {', '.join(missing)}")
        foreign = [name for name in ("num_query_groups", "kv_channels") if getattr(c, name) is not None]
        problems += _unless(not foreign, f"{', '.join(foreign)} has no meaning with multi_latent_attention")
        return problems + _unless(not c.add_qkv_bias, "add_qkv_bias has no meaning with multi_latent_attention")
    foreign = [name for name in ("q_lora_rank", *_MLA_NEEDED) if getattr(c, name) is not None]
    problems += _unless(not foreign, f"{', '.join(foreign)} needs multi_latent_attention: true")
    if c.kv_channels is None:
        problems += _divides(c.num_attention_heads, c.hidden_size, "num_attention_heads", "hidden_size")
    if c.query_groups >= c.tp:
        return problems + _divides(c.tp, c.query_groups, "tp", "num_query_groups")
    return problems + _divides(c.query_groups, c.tp, "num_query_groups", "tp")


def _expert_problems(c: TrainConfig) -> list[str]:
    if c.num_moe_experts is None:
        fields = TrainConfig.model_fields
        named = [n for n in fields if n.startswith("moe_")] + [
            "freeze_router",
            "freeze_e_score_correction_bias",
            "ep",
            "etp",
        ]
        foreign = [name for name in named if getattr(c, name) != fields[name].default]
        return _unless(not foreign, f"{', '.join(foreign)} needs num_moe_experts")
    problems = _divides(c.ep, c.num_moe_experts, "ep", "num_moe_experts")
    problems += _divides(c.etp, c.moe_ffn_size, "etp", "moe_ffn_hidden_size")
    problems += _unless(
        c.moe_router_topk <= c.num_moe_experts,
        f"moe_router_topk {c.moe_router_topk} must not exceed num_moe_experts {c.num_moe_experts}",
    )
    if isinstance(c.moe_layer_freq, list):
        problems += _unless(
            len(c.moe_layer_freq) == c.num_layers,
            f"moe_layer_freq lists {len(c.moe_layer_freq)} layers, num_layers is {c.num_layers}",
        )
        problems += _unless(1 in c.moe_layer_freq, "moe_layer_freq gives no layer experts: leave num_moe_experts out")
    if c.deepseek_v4:  # routes by itself; what it cannot be spread over, train.layout refuses
        return problems
    # Megatron 0.16.1 and 0.19.2 leave the experts' gradients unreduced over tp then: 1e-2 off, without a word.
    problems += _unless(c.tp == 1 or c.ep > 1 or c.etp > 1, "tp > 1 with experts needs ep > 1 or etp > 1")
    problems += _unless(c.tp == 1 or c.sequence_parallel, "tp > 1 with experts needs sequence_parallel: true")
    problems += _unless(
        not c.moe_router_enable_expert_bias or c.moe_router_score_function == "sigmoid",
        "moe_router_enable_expert_bias needs moe_router_score_function: sigmoid",
    )
    problems += _unless(
        not c.freeze_e_score_correction_bias or c.moe_router_enable_expert_bias,
        "freeze_e_score_correction_bias needs moe_router_enable_expert_bias: true",
    )
    return problems + _group_problems(c, c.num_moe_experts)


def _group_problems(c: TrainConfig, experts: int) -> list[str]:
    groups, chosen = c.moe_router_num_groups, c.moe_router_group_topk
    if groups is None or chosen is None:
        return _unless(groups is chosen, "moe_router_num_groups and moe_router_group_topk go together")
    return [
        *_divides(groups, experts, "moe_router_num_groups", "num_moe_experts"),
        *_divides(chosen, c.moe_router_topk, "moe_router_group_topk", "moe_router_topk"),
        *_unless(chosen <= groups, "moe_router_group_topk must not exceed moe_router_num_groups"),
        *_unless(
            c.moe_router_topk <= chosen * (experts // groups),
            f"{chosen} groups of {experts // groups} experts hold fewer than moe_router_topk {c.moe_router_topk}",
        ),
    ]


def _parse(text: str, where: str) -> Any:
    return parse_yaml(text, where, "the configuration")


def _known(key: str, where: str) -> None:
    names = [*TrainConfig.model_fields, *(f"deepseek_v4.{name}" for name in V4Config.model_fields)]
    if key not in names:
        near = difflib.get_close_matches(key, names, 1, 0.5)
        raise UsageError(
            f"there is no key {key!r}", where=where, next_step=f"did you mean {near[0]}?" if near else "see README"
        )


def load_config(path: str | Path, sets: Sequence[str] = ()) -> TrainConfig:
    """The configuration of a YAML file with `key=value` sets over it. UsageError for anything that is not understood.

    With load_hf, the model keys that are left out are those of the checkpoint's config.json; stated ones must agree.
    """
    values = _file_values(Path(path))
    for key, value in _set_values(sets).items():
        section, dot, name = key.partition(".")
        if dot:
            stated = values.get(section)
            values[section] = {**(stated if isinstance(stated, dict) else {}), name: value}
        else:
            values[key] = value
    if isinstance(values.get("load_hf"), str):
        values = _with_checkpoint(values)
    try:
        return TrainConfig.model_validate(values)
    except ValidationError as error:
        raise _refusal(error, str(path)) from error


def _file_values(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError("the configuration cannot be read", where=str(path), found=reason) from error
    values = _parse(text, str(path))
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise UsageError(
            "the configuration is not a list of keys",
            where=str(path),
            expected="lines of key: value",
            found=type(values).__name__,
        )
    for key in values:
        _known(key, str(path))
    return values


def _set_values(sets: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for item in sets:
        key, equals, text = item.partition("=")
        where = f"set {item!r}"
        if not equals or not text.strip():
            raise UsageError("a set needs a value", where=where, expected="key=value, key=null to unset")
        _known(key, where)
        if key in values:
            raise UsageError(f"key {key!r} is set twice", where=where)
        values[key] = _parse(text, where)
    return values


def _with_checkpoint(values: dict[str, Any]) -> dict[str, Any]:
    from train.hf import config_from_hf

    found = config_from_hf(values["load_hf"])
    stated = {key: value for key, value in values.items() if key not in found or value is not None}
    for key in found.keys() & stated.keys() - {"init_method_std"}:  # nothing is drawn when weights are loaded
        if stated[key] != found[key]:
            raise UsageError(
                f"{key} contradicts the checkpoint",
                where=values["load_hf"],
                expected=str(found[key]),
                found=str(stated[key]),
            )
    return found | stated


def _refusal(error: ValidationError, where: str) -> UsageError:
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"])) if first["loc"][:1] == ("deepseek_v4",) else str((*first["loc"], "")[0])
    text = first["msg"].removeprefix("Value error, ")
    if not key:
        return UsageError(text, where=where)
    if first["type"] == "missing":
        return UsageError(f"{key} is missing", where=where, next_step=f"add a line `{key}: VALUE`")
    same = (
        [e for e in error.errors(include_url=False) if e["loc"][:1] == first["loc"][:1]] if "." not in key else [first]
    )
    expected = "; ".join(dict.fromkeys(e["msg"] for e in same))
    return UsageError(
        f"{key} has a value that makes no sense", where=where, expected=expected, found=repr(first["input"])
    )


def print_config(config: TrainConfig) -> str:
    """The whole configuration as YAML, every key in the order of TrainConfig; load_config reads it back as it was."""
    return "".join(f"{key}: {_scalar(value)}\n" for key, value in config.model_dump().items())


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_scalar(item)}' for key, item in value.items())}}}"
    if isinstance(value, float):
        mantissa, e, exponent = repr(value).partition("e")
        return f"{mantissa}.0e{exponent}" if e and "." not in mantissa else repr(value)  # YAML 1.1 wants the point
    if isinstance(value, str):
        # A plain word stays one where it cannot be read as anything else; the rest is quoted and escaped.
        if re.fullmatch(r"[a-z][a-z0-9_]*", value) and yaml.safe_load(value) == value:
            return value
        return str(yaml.safe_dump(value, default_style='"', width=float("inf"))).rstrip("\n")
    return repr(value)
