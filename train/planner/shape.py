"""The shape of a model as the planner needs it: parameters by how a layout cuts them, and what a token leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from train.config import TrainConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One layer. Parameters: sharded over tp; replicated on each tp rank; experts over ep x etp.

    residual, inner: numbers that a token leaves for the backward pass. residual ones (inputs of norms and matrices, streams)
    are whole on each tp rank without sequence parallelism; inner ones (heads, feed-forward, experts) are cut by tp.
    """

    sharded: int
    replicated: int
    experts: int
    residual: int
    inner: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A model. streams: how wide the residual is, in hidden sizes; 4 with the hyper-connections of DeepSeek-V4.

    layers: decoder layers in order. extra: multi-token prediction layers, which live on the last pipeline stage and use the
    output layer once more each.
    """

    name: str
    hidden_size: int
    vocab_size: int
    tied: bool
    streams: int
    layers: tuple[Layer, ...]
    extra: tuple[Layer, ...] = ()
    heads: int
    """tp must divide it"""
    query_groups: int | None
    """tp must divide it; None where key heads are not cut (one shared head, latents)"""
    num_experts: int | None = None
    moe_ffn_size: int | None = None
    needs_sequence_parallel: bool = False
    """tp > 1 is only right with sequence parallelism: experts, latent attention in Megatron-core"""

    @property
    def parameters(self) -> int:
        """All of them."""
        embeddings = self.vocab_size * self.hidden_size * (1 if self.tied else 2)
        return (
            embeddings
            + self.hidden_size
            + sum(x.sharded + x.replicated + x.experts for x in (*self.layers, *self.extra))
        )


def shape_of_config(c: TrainConfig, name: str) -> Shape:
    """The shape of a model that train.sft can build."""
    layers = tuple(_layer(c, has) for has in c.moe_layers)
    extra: tuple[Layer, ...] = ()
    if c.mtp_num_layers:
        last, h = _layer(c, c.moe_layers[-1]), c.hidden_size
        joined = Layer(
            sharded=last.sharded + 2 * h * h,
            replicated=last.replicated + 3 * h,
            experts=last.experts,
            residual=last.residual + 4 * h,
            inner=last.inner,
        )
        extra = (joined,) * c.mtp_num_layers
    return Shape(
        name=name,
        hidden_size=c.hidden_size,
        vocab_size=c.vocab_size,
        tied=c.tie_embeddings,
        streams=1,
        layers=layers,
        extra=extra,
        heads=c.num_attention_heads,
        query_groups=None if c.multi_latent_attention else c.query_groups,
        num_experts=c.num_moe_experts,
        moe_ffn_size=c.moe_ffn_size if c.num_moe_experts else None,
        needs_sequence_parallel=bool(c.num_moe_experts) or c.multi_latent_attention,
    )


# Numbers a token leaves in a layer, per hidden size: input and output of both norms (the own RMSNorm keeps its fp32 copy,
# which counts twice), and the sums after attention and feed-forward.
RESIDUALS = 8
# Of a feed-forward: gate and up, the activated gate, their product.
GATED = 4


def _layer(c: TrainConfig, has_experts: bool) -> Layer:
    h, heads = c.hidden_size, c.num_attention_heads
    if c.multi_latent_attention:
        assert c.kv_lora_rank and c.qk_head_dim and c.qk_pos_emb_head_dim and c.v_head_dim
        query = heads * (c.qk_head_dim + c.qk_pos_emb_head_dim)
        low = (c.q_lora_rank or 0) + c.kv_lora_rank
        replicated = h * (c.kv_lora_rank + c.qk_pos_emb_head_dim) + h * (c.q_lora_rank or 0) + low
        sharded = (c.q_lora_rank or h) * query + c.kv_lora_rank * heads * (c.qk_head_dim + c.v_head_dim)
        sharded += heads * c.v_head_dim * h
        # Queries and keys before and after rotation, values padded to their size for the kernel, and the output.
        inner = 6 * query + 2 * heads * c.v_head_dim + 2 * low
    else:
        q, kv = heads * c.head_dim, c.query_groups * c.head_dim
        sharded = h * (q + 2 * kv) + q * h
        replicated = 2 * c.head_dim * c.qk_layernorm
        inner = 2 * (q + kv) + kv + q  # queries and keys before and after rotation, values, output
    replicated += 2 * h
    experts = 0
    residual = RESIDUALS * h
    if not has_experts:
        sharded += 3 * h * c.ffn_hidden_size
        inner += GATED * c.ffn_hidden_size
    else:
        assert c.num_moe_experts
        shared = c.moe_shared_expert_intermediate_size or 0
        sharded += 3 * h * shared
        replicated += h * c.num_moe_experts
        experts = 3 * h * c.moe_ffn_size * c.num_moe_experts
        # Each chosen expert gets a copy of the token and gives one back.
        inner += GATED * (shared + c.moe_router_topk * c.moe_ffn_size) + 2 * c.moe_router_topk * h
    return Layer(sharded=sharded, replicated=replicated, experts=experts, residual=residual, inner=inner)
