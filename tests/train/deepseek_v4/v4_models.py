"""A tiny DeepSeek-V4 with every kind of layer, and its twin of Hugging Face."""

from __future__ import annotations

from functools import partial
from typing import Any

TINY: dict[str, Any] = {
    "vocab_size": 98, "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "head_dim": 16,
    "layer_types": [
        "sliding_attention", "compressed_sparse_attention", "heavily_compressed_attention", "compressed_sparse_attention",
    ],
    "mlp_layer_types": ["hash_moe", "hash_moe", "moe", "moe"], "partial_rotary_factor": 0.5, "q_lora_rank": 16, "o_groups": 2,
    "o_lora_rank": 8, "sliding_window": 6,
    "compress_rates": {"compressed_sparse_attention": 4, "heavily_compressed_attention": 16},
    "index_n_heads": 16, "index_head_dim": 8, "index_topk": 4, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 16, "swiglu_limit": 0.5, "initializer_range": 0.1,
    "rope_scaling": {"factor": 4.0, "original_max_position_embeddings": 32},
}  # fmt: skip
LENGTH = 75  # more than four windows of 16 and no multiple of any rate


def small_blocks(monkeypatch: Any, rows: int = 36) -> None:
    """Blocks of 9 queries of four heads, so that a short row has many."""
    import train.deepseek_v4.compress
    import train.deepseek_v4.scores

    monkeypatch.setattr(train.deepseek_v4.scores, "BLOCK_ROWS", rows)
    monkeypatch.setattr(train.deepseek_v4.compress, "BLOCK_ROWS", 4 * rows)


def our_model(seed: int = 3, **keys: Any) -> Any:
    """The tiny model with drawn weights, and what starts at 0 or 1 a little off it."""
    import torch

    from train.deepseek_v4.config import V4Config
    from train.deepseek_v4.model import V4Model
    from train.deepseek_v4.weights import draw, fill

    c = V4Config.model_validate(TINY | keys)
    model = V4Model(c)
    fill(model, partial(draw, c, seed))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if tensor.ndim == 1 or name.endswith("position_bias"):
                tensor.add_(0.3 * torch.randn(tensor.shape, generator=generator))
    return model


def their_model(model: Any, folder: Any) -> Any:
    """transformers' model out of the checkpoint that ours writes to folder."""
    from transformers import DeepseekV4ForCausalLM

    from train.deepseek_v4.hf import export_hf
    from train.deepseek_v4.weights import whole_tensors

    export_hf({item.name: item.tensor for item in whole_tensors(model)}, model.c, folder, shard_bytes=30_000)
    return DeepseekV4ForCausalLM.from_pretrained(folder, dtype="float32")


def their_name(name: str) -> str:
    """The name of our parameter in transformers' model in memory."""
    for ours, theirs in (
        ("embedding.word_embeddings", "model.embed_tokens"),
        ("decoder.layers", "model.layers"),
        ("decoder.final_layernorm", "model.norm"),
        ("hc_head", "model.hc_head"),
        ("output_layer", "lm_head"),
        ("expert_bias", "e_score_correction_bias"),
    ):
        name = name.replace(ours, theirs)
    return name
