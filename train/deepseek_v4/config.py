"""The architecture of a DeepSeek-V4 model, in the field names of its Hugging Face configuration. Needs no torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

Positive = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]

SLIDING: Literal["sliding_attention"] = "sliding_attention"
CSA: Literal["compressed_sparse_attention"] = "compressed_sparse_attention"
HCA: Literal["heavily_compressed_attention"] = "heavily_compressed_attention"
LayerType = Literal["sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention"]


class Yarn(BaseModel):
    """How the rotary frequencies of layers with compressed entries are stretched."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    factor: PositiveFloat
    original_max_position_embeddings: Positive
    beta_fast: PositiveFloat = 32.0
    beta_slow: PositiveFloat = 1.0


class V4Config(BaseModel):
    """The model alone; sizes are counts. The defaults are the sizes of DeepSeek-V4-Flash, but for its rope_scaling.

    layer_types: what the attention of each layer sees besides its window: nothing, entries of 4 tokens that an indexer picks
    (compressed sparse), or all entries of 128 tokens (heavily compressed). mlp_layer_types: how each layer picks experts, by
    a table of token ids (hash_moe) or by scores (moe); None: three hash layers, then scores. rope_scaling: YaRN, in layers
    with entries.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    vocab_size: Positive = 129_280
    hidden_size: Positive = 4096
    num_hidden_layers: Positive = 43
    layer_types: list[LayerType] | None = None
    mlp_layer_types: list[Literal["hash_moe", "moe"]] | None = None

    num_attention_heads: Positive = 64
    head_dim: Positive = 512
    partial_rotary_factor: Annotated[float, Field(gt=0, le=1)] = 0.125
    q_lora_rank: Positive = 1024
    o_groups: Positive = 8
    o_lora_rank: Positive = 1024
    sliding_window: Positive = 128
    compress_rates: dict[Literal["compressed_sparse_attention", "heavily_compressed_attention"], Positive] = {
        CSA: 4,
        HCA: 128,
    }
    index_n_heads: Positive = 64
    index_head_dim: Positive = 128
    index_topk: Positive = 512
    rope_theta: PositiveFloat = 10_000.0
    compress_rope_theta: PositiveFloat = 160_000.0
    rope_scaling: Yarn | None = None

    hc_mult: Positive = 4
    hc_sinkhorn_iters: Positive = 20
    hc_eps: PositiveFloat = 1e-6

    n_routed_experts: Positive = 256
    num_experts_per_tok: Positive = 6
    moe_intermediate_size: Positive = 2048
    routed_scaling_factor: PositiveFloat = 1.5
    swiglu_limit: PositiveFloat = 10.0

    rms_norm_eps: PositiveFloat = 1e-6
    initializer_range: PositiveFloat = 0.02

    @property
    def attention_types(self) -> list[LayerType]:
        """What the attention of each layer is: as stated, else as in V4-Flash, two sliding layers and then CSA, HCA, CSA, ..."""
        if self.layer_types is not None:
            return self.layer_types
        later: list[LayerType] = [HCA if i % 2 else CSA for i in range(max(self.num_hidden_layers - 2, 0))]
        first: list[LayerType] = [SLIDING] * min(self.num_hidden_layers, 2)
        return first + later

    @property
    def hash_layers(self) -> list[bool]:
        """Whether each layer picks its experts by token id."""
        if self.mlp_layer_types is not None:
            return [kind == "hash_moe" for kind in self.mlp_layer_types]
        return [i < 3 for i in range(self.num_hidden_layers)]

    @property
    def rope_dim(self) -> int:
        """How many of the last dimensions of a head are rotated."""
        return int(self.head_dim * self.partial_rotary_factor)

    def rate(self, kind: LayerType) -> int | None:
        """Tokens of one compressed entry; None for a sliding layer."""
        return None if kind == SLIDING else self.compress_rates[kind]

    @model_validator(mode="after")
    def _fits_together(self) -> V4Config:
        for broken in _problems(self):
            raise ValueError(broken)
        return self


def _problems(c: V4Config) -> list[str]:
    problems = []
    for name in ("layer_types", "mlp_layer_types"):
        listed = getattr(c, name)
        if listed is not None and len(listed) != c.num_hidden_layers:
            problems.append(f"{name} has {len(listed)} entries, num_hidden_layers is {c.num_hidden_layers}")
    if missing := {CSA, HCA} - set(c.compress_rates):
        problems.append(f"compress_rates lacks {', '.join(sorted(missing))}")
    if c.rope_dim % 2 or not c.rope_dim:
        problems.append(
            f"head_dim x partial_rotary_factor is {c.rope_dim}: pairs are rotated, it must be even and not 0"
        )
    if c.rope_dim > c.index_head_dim:
        problems.append(f"index_head_dim {c.index_head_dim} is smaller than the {c.rope_dim} rotated dimensions")
    if c.num_attention_heads * c.head_dim % c.o_groups:
        problems.append(f"num_attention_heads x head_dim must be a multiple of o_groups {c.o_groups}")
    if c.num_experts_per_tok > c.n_routed_experts:
        problems.append(f"num_experts_per_tok {c.num_experts_per_tok} exceeds n_routed_experts {c.n_routed_experts}")
    return problems


def shared_keys(c: V4Config) -> dict[str, Any]:
    """The keys of TrainConfig that say the same as this architecture; they follow from it and need not be stated."""
    return {
        "num_layers": c.num_hidden_layers,
        "hidden_size": c.hidden_size,
        "ffn_hidden_size": c.moe_intermediate_size,
        "num_attention_heads": c.num_attention_heads,
        "num_query_groups": 1,
        "kv_channels": c.head_dim,
        "vocab_size": c.vocab_size,
        "rotary_base": c.rope_theta,
        "rotary_percent": c.partial_rotary_factor,
        "norm_epsilon": c.rms_norm_eps,
        "init_method_std": c.initializer_range,
        "num_moe_experts": c.n_routed_experts,
        "moe_router_topk": c.num_experts_per_tok,
        "moe_ffn_hidden_size": c.moe_intermediate_size,
        "moe_shared_expert_intermediate_size": c.moe_intermediate_size,
        "moe_router_topk_scaling_factor": c.routed_scaling_factor,
    }


# What a run of the other models may ask for and this one does not have.
FOREIGN = {
    "tie_embeddings": "its output layer is a matrix of its own",
    "qk_layernorm": "its queries and keys are always normalized",
    "add_qkv_bias": "its projections have no bias",
    "multi_latent_attention": "it has its own attention",
    "mtp_num_layers": "the Hugging Face model leaves the prediction layers out, so there is nothing to compare one with",
    "moe_layer_freq": "all its layers have experts",
    "moe_router_score_function": "its scores are the root of a softplus",
    "moe_router_enable_expert_bias": "its routers always have a correction bias",
    "moe_aux_loss_coeff": "a correction bias balances its experts",
    "moe_router_num_groups": "its experts are not in groups",
    "moe_router_group_topk": "its experts are not in groups",
}


def with_shared_keys(values: Any) -> Any:
    """The values of a TrainConfig with the keys that follow from its section; ValueError if a stated one contradicts it."""
    if not isinstance(values, dict) or values.get("deepseek_v4") is None:
        return values
    section = values["deepseek_v4"]
    if not isinstance(section, V4Config):
        try:
            section = V4Config.model_validate(section)
        except ValidationError:
            # TrainConfig meets the same mistake and reports it; it must not miss the keys that would have followed.
            return dict.fromkeys(("num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads"), 1) | values
    shared = shared_keys(section)
    for key, value in shared.items():
        if values.get(key, value) != value:
            raise ValueError(f"{key} {values[key]} contradicts the section deepseek_v4: there it is {value}")
    return {**values, **shared, "deepseek_v4": section}


def run_problems(c: Any) -> list[str]:
    """What a TrainConfig with this architecture asks for and cannot have."""
    problems = [
        f"{name} has no meaning with deepseek_v4: {reason}"
        for name, reason in FOREIGN.items()
        if getattr(c, name) != type(c).model_fields[name].default
    ]
    if c.recompute == "selective":
        problems.append(
            "recompute: selective has no meaning with deepseek_v4: its attention always makes its scores again"
        )
    return problems


def layout_problems(c: Any) -> list[str]:
    """Why this architecture cannot be spread like this; c is a TrainConfig."""
    problems = []
    if c.tp > 1:
        problems.append(
            f"tp {c.tp}: all heads of DeepSeek-V4 share one key, and its hyper-connections mix whole tokens, so that tensor "
            "parallelism would hold and compute most of a layer on every rank; use ep and pp"
        )
    if c.cp > 1:
        problems.append(
            f"cp {c.cp}: compressed entries and the indexer of DeepSeek-V4 need the row in order on one rank; use dp, ep and pp"
        )
    return problems
