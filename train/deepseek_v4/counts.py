"""Parameters of a DeepSeek-V4 model and the floating point operations of its attention, from its configuration."""

from __future__ import annotations

from collections.abc import Sequence

from train.deepseek_v4.config import CSA, HCA, LayerType, V4Config


def counts(c: V4Config) -> tuple[int, int, int]:
    """(all parameters, those a token meets, N of 6N) of the whole model.

    N is what recipes quote as active: every matrix that a token is multiplied with, of its own experts only, with those of
    hyper-connections, indexers and the output layer; without the input embedding, norms, position biases and sinks. The
    second counts the embedding and all that is small too. Tables of token ids and correction biases are no parameters.
    """
    h, streams = c.hidden_size, c.hc_mult
    table = c.vocab_size * h
    matrices = table + streams * streams * h
    small = h + streams + 1  # the last norm, and the base and scale of the head
    whole = 0  # of experts that a token does not meet
    expert = 3 * h * c.moe_intermediate_size
    mixing = (2 + streams) * streams
    for kind in c.attention_types:
        attention, attention_small = _attention(c, kind)
        matrices += attention + 2 * mixing * streams * h
        matrices += (c.num_experts_per_tok + 1) * expert + c.n_routed_experts * h
        small += attention_small + 2 * h + 2 * (mixing + 3)
        whole += (c.n_routed_experts - c.num_experts_per_tok) * expert
    active = matrices + small + table
    return active + whole, active, matrices


def _attention(c: V4Config, kind: LayerType) -> tuple[int, int]:
    """(matrix parameters, norms, position biases and sinks) of a layer's attention."""
    h, rate = c.hidden_size, c.rate(kind)
    heads = c.num_attention_heads * c.head_dim
    matrices = h * c.q_lora_rank + c.q_lora_rank * heads + h * c.head_dim + c.o_lora_rank * heads
    matrices += c.o_groups * c.o_lora_rank * h
    small = c.q_lora_rank + c.head_dim + c.num_attention_heads
    if rate is None:
        return matrices, small
    width = 2 * c.head_dim if kind == CSA else c.head_dim
    matrices, small = matrices + 2 * h * width, small + rate * width + c.head_dim
    if kind == CSA:
        matrices += c.q_lora_rank * c.index_n_heads * c.index_head_dim + h * c.index_n_heads + 4 * h * c.index_head_dim
        small += 2 * rate * c.index_head_dim + c.index_head_dim
    return matrices, small


def attention_flops(c: V4Config, segments: Sequence[int]) -> float:
    """FLOPs of a training token in scores and values, all layers, a mean over segments of tokens that see only themselves.

    Keys are what the architecture sees: the window, all complete entries of a heavily compressed layer, and those that an
    indexer picks. Three passes, and one for the scores of the indexers, which have no gradient.
    """
    each = 2 * 2 * c.num_attention_heads * c.head_dim
    index = 2 * c.index_n_heads * c.index_head_dim
    tokens = sum(segments)
    total = 0
    kinds = c.attention_types
    csa, hca = c.compress_rates[CSA], c.compress_rates[HCA]
    for length in segments:
        near = _up_to(length, c.sliding_window)
        all_csa = _complete(length, csa)
        # An entry is complete every csa tokens, so the first topk are all seen.
        picked = all_csa - _complete(max(length - csa * c.index_topk, 0), csa)
        total += 3 * each * near * len(kinds)
        total += 3 * each * _complete(length, hca) * kinds.count(HCA)
        total += 3 * each * picked * kinds.count(CSA)
        if length // csa > c.index_topk:
            total += index * all_csa * kinds.count(CSA)
    return total / tokens


def _up_to(length: int, most: int) -> int:
    """The sum of min(t, most) for t from 1 to length."""
    full = min(length, most)
    return full * (full + 1) // 2 + (length - full) * most


def _complete(length: int, rate: int) -> int:
    """The sum of t // rate for t from 1 to length."""
    whole, rest = divmod(length, rate)
    return rate * whole * (whole - 1) // 2 + whole * (rest + 1)
