"""Parameter and FLOP counts, against lists of modules written out by hand and sums over every pair of tokens."""

import math

import pytest

pytest.importorskip("yaml")

from train.config import TrainConfig
from train.flops import (
    attention_flops_per_token,
    mfu_6n,
    mfu_with_attention,
    parameter_counts,
)

# name -> shape; "x3" in front of a name: three of them. A matrix has two dimensions. Written out, not computed.
DENSE = TrainConfig(
    num_layers=2, hidden_size=8, ffn_hidden_size=12, num_attention_heads=4, num_query_groups=2, kv_channels=6,
    vocab_size=50, seq_length=16,
)  # fmt: skip
DENSE_LAYER = {
    "input_layernorm": (8,),
    "linear_qkv": (48, 8),  # 24 query + 12 key + 12 value
    "linear_proj": (8, 24),
    "pre_mlp_layernorm": (8,),
    "linear_fc1": (24, 8),
    "linear_fc2": (8, 12),
}
ENDS = {"word_embeddings": (50, 8), "final_layernorm": (8,), "output_layer": (50, 8)}


def size(modules, keep=lambda name, shape: True):
    return sum(math.prod(shape) for name, shape in modules if keep(name, shape))


def is_matmul(name, shape):
    return len(shape) == 2 and "embeddings" not in name


def test_a_dense_model():
    modules = [*ENDS.items(), *DENSE_LAYER.items(), *DENSE_LAYER.items()]
    counts = parameter_counts(DENSE)
    assert counts.total == counts.active == size(modules)
    assert counts.matmul == counts.matmul_with_mtp == size(modules, is_matmul)


def test_tied_embeddings_are_counted_once_and_multiplied_with_once():
    tied = parameter_counts(DENSE.model_copy(update={"tie_embeddings": True}))
    plain = parameter_counts(DENSE)
    assert (tied.total, tied.matmul) == (plain.total - 50 * 8, plain.matmul)


def test_norms_of_queries_and_keys_and_biases_are_parameters_but_no_matrices():
    changed = parameter_counts(DENSE.model_copy(update={"qk_layernorm": True, "add_qkv_bias": True}))
    plain = parameter_counts(DENSE)
    assert changed.total - plain.total == 2 * (6 + 6 + 48)
    assert changed.matmul == plain.matmul


MOE = TrainConfig(
    num_layers=3, hidden_size=8, ffn_hidden_size=12, num_attention_heads=4, vocab_size=50, seq_length=16,
    num_moe_experts=5, moe_router_topk=2, moe_ffn_hidden_size=4, moe_shared_expert_intermediate_size=6,
    moe_layer_freq=[0, 1, 1], moe_router_score_function="sigmoid", moe_router_enable_expert_bias=True,
)  # fmt: skip
ATTENTION = {"input_layernorm": (8,), "linear_qkv": (24, 8), "linear_proj": (8, 8), "pre_mlp_layernorm": (8,)}
EXPERT = {"linear_fc1": (8, 8), "linear_fc2": (8, 4)}
MOE_LAYER = [
    *ATTENTION.items(),
    ("router", (5, 8)),
    ("shared.linear_fc1", (12, 8)),
    ("shared.linear_fc2", (8, 6)),
]


def moe_modules(experts):
    dense = [*ATTENTION.items(), ("linear_fc1", (24, 8)), ("linear_fc2", (8, 12))]
    return [*ENDS.items(), *dense, *(2 * (MOE_LAYER + experts * list(EXPERT.items())))]


def test_a_model_with_experts():
    counts = parameter_counts(MOE)
    assert counts.total == size(moe_modules(5))
    assert counts.active == size(moe_modules(2))
    assert counts.matmul == size(moe_modules(2), is_matmul)


def test_a_layer_for_multi_token_prediction_is_like_the_last_layer_with_a_head_of_its_own():
    counts = parameter_counts(MOE.model_copy(update={"mtp_num_layers": 2}))
    own = [("enorm", (8,)), ("hnorm", (8,)), ("eh_proj", (8, 16)), ("final_layernorm", (8,))]

    def layers(experts):
        return 2 * (own + MOE_LAYER + experts * list(EXPERT.items()))

    plain = parameter_counts(MOE)
    assert counts.total - plain.total == size(layers(5))
    assert counts.active - plain.active == size(layers(2))
    assert counts.matmul == plain.matmul
    assert counts.matmul_with_mtp - plain.matmul == size(layers(2), is_matmul) + 2 * 50 * 8


MLA = TrainConfig(
    num_layers=1, hidden_size=8, ffn_hidden_size=12, num_attention_heads=2, vocab_size=50, seq_length=16,
    multi_latent_attention=True, q_lora_rank=6, kv_lora_rank=5, qk_head_dim=4, qk_pos_emb_head_dim=2, v_head_dim=3,
)  # fmt: skip
MLA_LAYER = {
    "input_layernorm": (8,),
    "linear_q_down_proj": (6, 8),
    "q_layernorm": (6,),
    "linear_q_up_proj": (12, 6),
    "linear_kv_down_proj": (7, 8),
    "kv_layernorm": (5,),
    "linear_kv_up_proj": (14, 5),
    "linear_proj": (8, 6),
    "pre_mlp_layernorm": (8,),
    "linear_fc1": (24, 8),
    "linear_fc2": (8, 12),
}


def test_multi_latent_attention():
    modules = [*ENDS.items(), *MLA_LAYER.items()]
    counts = parameter_counts(MLA)
    assert counts.total == size(modules)
    assert counts.matmul == size(modules, is_matmul)
    direct = [m for m in modules if not m[0].startswith(("linear_q_", "q_"))] + [("linear_q_proj", (12, 8))]
    assert parameter_counts(MLA.model_copy(update={"q_lora_rank": None})).total == size(direct)


def pairs(config, segments, width):
    """FLOPs of all tokens of a row by going over every (query, key) pair: forward and backward, per token."""
    flops = 0
    for length in segments:
        for query in range(length):
            for key in range(length):
                share = 1 if key < query else 0.5 if key == query else 0  # the diagonal is cut in half by "half"
                flops += share * 3 * 2 * config.num_attention_heads * width
    return flops / sum(segments)


@pytest.mark.parametrize(("config", "width"), [(DENSE, 6 + 6), (MLA, 4 + 2 + 3)])
def test_attention_is_half_of_all_pairs(config, width):
    assert attention_flops_per_token(config) == pytest.approx(pairs(config, [16], width) * config.num_layers)
    documents = [5, 1, 10]
    expected = pairs(config, documents, width) * config.num_layers
    assert attention_flops_per_token(config, documents) == pytest.approx(expected)


def test_attention_of_prediction_layers_counts():
    both = attention_flops_per_token(DENSE.model_copy(update={"mtp_num_layers": 1}))
    assert both == pytest.approx(1.5 * attention_flops_per_token(DENSE))


def test_utilization_is_flops_over_peak():
    n = parameter_counts(DENSE).matmul
    assert mfu_6n(DENSE, 1e6, 100.0) == pytest.approx(6 * n * 1e6 / 100e12)
    attention = attention_flops_per_token(DENSE)
    assert mfu_with_attention(DENSE, 1e6, 100.0) == pytest.approx((6 * n + attention) * 1e6 / 100e12)
    assert mfu_with_attention(DENSE, 1e6, 100.0, 0.0) == pytest.approx(6 * n * 1e6 / 100e12)


def test_the_matrices_of_a_published_model_are_counted_as_its_recipe_counts_them():
    """Experts, router, shared expert and output layer of DeepSeek-V4-Flash; its attention is another and left out."""
    c = TrainConfig(
        num_layers=43, hidden_size=4096, ffn_hidden_size=2048, num_attention_heads=64, num_moe_experts=256,
        moe_router_topk=6, moe_ffn_hidden_size=2048, moe_shared_expert_intermediate_size=2048,
    )  # fmt: skip
    attention = 43 * (3 * 4096 * 4096 + 4096 * 4096)
    experts = 43 * (7 * 3 * 4096 * 2048 + 256 * 4096)
    assert parameter_counts(c).matmul - attention == experts + 129_280 * 4096
