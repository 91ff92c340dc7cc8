"""How many parameters a model has, how many a token meets, and the floating point operations that MFU figures stand on.

Pure functions of TrainConfig. FLOPs count a multiplication and an addition as two; a training token costs three forward
passes (one forward, two backward). Recomputed work is never counted: these are model FLOPs, not hardware FLOPs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from train.config import TrainConfig
from train.deepseek_v4 import counts as deepseek_v4

FORMULA_6N = "mfu_6n = 6 * matmul_parameters * tokens_per_s_per_gpu / (peak_tflops * 1e12)"
FORMULA_WITH_ATTENTION = (
    "mfu_with_attention = (6 * matmul_parameters_with_mtp + attention_flops_per_token) * tokens_per_s_per_gpu "
    "/ (peak_tflops * 1e12)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCounts:
    """Parameters of the whole model, whatever its layout."""

    total: int
    """every trainable number; the score-correction bias of a router is a buffer and not among them"""
    active: int
    """total without the experts that a token does not meet; embeddings counted whole"""
    matmul: int
    """N of 6N: the matrices that one token is multiplied with, output layer included; no input embedding, norms, biases or MTP"""
    matmul_with_mtp: int
    """matmul and that of the multi-token prediction layers, each of which uses the output layer once more"""


def parameter_counts(config: TrainConfig) -> ParameterCounts:
    """Count the parameters of a configuration."""
    c = config
    if c.deepseek_v4:
        total, active, matmul = deepseek_v4.counts(c.deepseek_v4)
        return ParameterCounts(total=total, active=active, matmul=matmul, matmul_with_mtp=matmul)
    head = c.vocab_size * c.hidden_size
    total = head * (1 if c.tie_embeddings else 2) + c.hidden_size
    active, matmul = total, head
    for has_experts in c.moe_layers:
        whole, met, matrices = _layer(c, has_experts)
        total, active, matmul = total + whole, active + met, matmul + matrices
    with_mtp = matmul
    if c.mtp_num_layers:
        # Megatron builds a prediction layer like the last layer, with norms of its two inputs and of its output.
        whole, met, matrices = _layer(c, c.moe_layers[-1])
        joined, norms = 2 * c.hidden_size * c.hidden_size, 3 * c.hidden_size
        total += c.mtp_num_layers * (whole + joined + norms)
        active += c.mtp_num_layers * (met + joined + norms)
        with_mtp += c.mtp_num_layers * (matrices + joined + head)
    return ParameterCounts(total=total, active=active, matmul=matmul, matmul_with_mtp=with_mtp)


def attention_flops_per_token(config: TrainConfig, segments: Sequence[int] | None = None) -> float:
    """FLOPs of a training token in QK^T and PV, all layers and MTP layers, causal: a token sees half of its segment.

    segments: tokens of each piece that attends within itself; None is the whole row, seq_length tokens.
    """
    c = config
    if c.deepseek_v4:
        return deepseek_v4.attention_flops(c.deepseek_v4, segments if segments is not None else [c.seq_length])
    if c.multi_latent_attention:
        assert c.qk_head_dim and c.qk_pos_emb_head_dim and c.v_head_dim  # TrainConfig refuses it otherwise
        sizes = c.qk_head_dim + c.qk_pos_emb_head_dim + c.v_head_dim
    else:
        sizes = 2 * c.head_dim
    pieces = segments if segments is not None else [c.seq_length]
    seen = sum(length * length for length in pieces) / sum(pieces) / 2  # keys that a token sees, on average
    layers = c.num_layers + (c.mtp_num_layers or 0)
    return 3 * 2 * c.num_attention_heads * sizes * seen * layers


def mfu_6n(config: TrainConfig, tokens_per_s_per_gpu: float, peak_tflops: float) -> float:
    """Model FLOPs utilization as recipes quote it: 6N a token, N = ParameterCounts.matmul. peak_tflops in TFLOP/s."""
    return 6 * parameter_counts(config).matmul * tokens_per_s_per_gpu / (peak_tflops * 1e12)


def mfu_with_attention(
    config: TrainConfig, tokens_per_s_per_gpu: float, peak_tflops: float, attention_flops: float | None = None
) -> float:
    """Utilization that counts attention and MTP too. attention_flops per token; None for whole causal rows."""
    attention = attention_flops_per_token(config) if attention_flops is None else attention_flops
    flops = 6 * parameter_counts(config).matmul_with_mtp + attention
    return flops * tokens_per_s_per_gpu / (peak_tflops * 1e12)


def _layer(c: TrainConfig, has_experts: bool) -> tuple[int, int, int]:
    """(all parameters, those a token meets, matrix parameters that a token is multiplied with) of one layer."""
    attention, attention_small = _attention(c)
    small = attention_small + 2 * c.hidden_size
    if not has_experts:
        matrices = attention + 3 * c.hidden_size * c.ffn_hidden_size
        return matrices + small, matrices + small, matrices
    assert c.num_moe_experts
    expert = 3 * c.hidden_size * c.moe_ffn_size
    common = attention + c.hidden_size * c.num_moe_experts
    common += 3 * c.hidden_size * (c.moe_shared_expert_intermediate_size or 0)
    met = common + c.moe_router_topk * expert
    return common + c.num_moe_experts * expert + small, met + small, met


def _attention(c: TrainConfig) -> tuple[int, int]:
    """(matrix parameters, norms and biases) of the attention of one layer, without the norm before it."""
    h, heads = c.hidden_size, c.num_attention_heads
    if not c.multi_latent_attention:
        keys_and_queries = (heads + 2 * c.query_groups) * c.head_dim
        small = 2 * c.head_dim * c.qk_layernorm + keys_and_queries * c.add_qkv_bias
        return h * keys_and_queries + heads * c.head_dim * h, small
    assert c.kv_lora_rank and c.qk_head_dim and c.qk_pos_emb_head_dim and c.v_head_dim
    query = heads * (c.qk_head_dim + c.qk_pos_emb_head_dim)
    matrices = c.q_lora_rank * (h + query) if c.q_lora_rank else h * query
    matrices += h * (c.kv_lora_rank + c.qk_pos_emb_head_dim)
    matrices += c.kv_lora_rank * heads * (c.qk_head_dim + c.v_head_dim) + heads * c.v_head_dim * h
    return matrices, c.kv_lora_rank + (c.q_lora_rank or 0)  # both latents are normalized
