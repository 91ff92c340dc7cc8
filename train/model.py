"""The model: Megatron's GPTModel from a TrainConfig, out of layers that need no Transformer Engine."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_mtp_block_spec
from megatron.core.transformer.module import Float16Module
from megatron.core.transformer.moe.router import TopKRouter
from megatron.core.transformer.transformer_config import MLATransformerConfig, TransformerConfig

from train.attention import CoreAttention
from train.config import TrainConfig
from train.experts import GroupedExperts
from train.init import init_weights
from train.norm import RMSNorm


def _leave(weight: torch.Tensor) -> torch.Tensor:
    return weight


def megatron_config(c: TrainConfig) -> TransformerConfig:
    """Megatron's configuration of the model and its layout."""
    dtype = torch.bfloat16 if c.precision == "bf16" else torch.float32
    fused = torch.cuda.is_available() and not c.deterministic
    values: dict[str, Any] = {
        "num_layers": c.num_layers,
        "hidden_size": c.hidden_size,
        "ffn_hidden_size": c.ffn_hidden_size,
        "num_attention_heads": c.num_attention_heads,
        "qk_layernorm": c.qk_layernorm,
        "add_qkv_bias": c.add_qkv_bias,
        "normalization": "RMSNorm",
        "layernorm_epsilon": c.norm_epsilon,
        "gated_linear_unit": True,
        "activation_func": F.silu,
        "add_bias_linear": False,
        "hidden_dropout": 0.0,
        "attention_dropout": 0.0,
        "tensor_model_parallel_size": c.tp,
        "pipeline_model_parallel_size": c.pp,
        "context_parallel_size": c.cp,
        "sequence_parallel": c.sequence_parallel,
        "num_layers_in_first_pipeline_stage": c.first_stage_layers,
        "num_layers_in_last_pipeline_stage": c.last_stage_layers,
        "bf16": c.precision == "bf16",
        "params_dtype": dtype,
        "pipeline_dtype": dtype,
        "calculate_per_token_loss": True,
        # train.init draws every weight; turned off altogether, Megatron would not mark the parameters it cuts.
        "init_method": _leave,
        "output_layer_init_method": _leave,
        "embedding_init_method": _leave,
        # Fusions that need Transformer Engine or Apex.
        "masked_softmax_fusion": False,
        "gradient_accumulation_fusion": False,
        "persist_layer_norm": False,
        "apply_rope_fusion": False,
        # Compiled ones: worth 7 % of a dense step on a GPU; strict runs go without.
        "bias_activation_fusion": fused,
        "bias_dropout_fusion": fused,
        "cross_entropy_loss_fusion": fused,
    }
    if c.recompute == "full":
        values |= {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    elif c.recompute == "selective":
        values |= {"recompute_granularity": "selective"}
    if c.num_moe_experts:
        values |= _expert_values(c)
    if c.mtp_num_layers:
        values |= {"mtp_num_layers": c.mtp_num_layers, "mtp_loss_scaling_factor": c.mtp_loss_scaling_factor}
    if c.multi_latent_attention:
        return MLATransformerConfig(
            **values,
            multi_latent_attention=True,
            q_lora_rank=c.q_lora_rank,
            kv_lora_rank=c.kv_lora_rank,
            qk_head_dim=c.qk_head_dim,
            qk_pos_emb_head_dim=c.qk_pos_emb_head_dim,
            v_head_dim=c.v_head_dim,
            rope_type="rope",
            rotary_base=c.rotary_base,
            rotary_percent=c.rotary_percent,
        )
    return TransformerConfig(**values, num_query_groups=c.query_groups, kv_channels=c.head_dim)


def _expert_values(c: TrainConfig) -> dict[str, Any]:
    return {
        "num_moe_experts": c.num_moe_experts,
        "expert_model_parallel_size": c.ep,
        "expert_tensor_parallel_size": c.etp,
        "moe_layer_freq": [int(flag) for flag in c.moe_layers],
        "moe_ffn_hidden_size": c.moe_ffn_size,
        "moe_shared_expert_intermediate_size": c.moe_shared_expert_intermediate_size,
        "moe_router_topk": c.moe_router_topk,
        "moe_router_score_function": c.moe_router_score_function,
        "moe_router_num_groups": c.moe_router_num_groups,
        "moe_router_group_topk": c.moe_router_group_topk,
        "moe_router_topk_scaling_factor": c.moe_router_topk_scaling_factor,
        "moe_router_enable_expert_bias": c.moe_router_enable_expert_bias,
        "moe_router_bias_update_rate": 0.0 if c.freeze_e_score_correction_bias else 1e-3,
        "moe_router_dtype": "fp32",
        "moe_router_load_balancing_type": "seq_aux_loss" if c.moe_aux_loss_coeff else "none",
        "moe_aux_loss_coeff": c.moe_aux_loss_coeff,
        "moe_token_dispatcher_type": "alltoall",
        "moe_grouped_gemm": False,
    }


def _layer_specs(c: TrainConfig, config: TransformerConfig) -> tuple[Any, Any]:
    """(decoder block, MTP block or None) of this pipeline stage, with our norm, attention and experts put in."""
    block = get_gpt_decoder_block_spec(config, use_transformer_engine=False, normalization="RMSNorm")
    block.layer_norm = RMSNorm
    # A stage of dense layers alone still needs the MTP layer's spec, which is that of the last layer.
    for layer in block.layer_specs:
        parts = layer.submodules
        parts.input_layernorm = parts.pre_mlp_layernorm = RMSNorm
        attention = parts.self_attention.submodules
        attention.core_attention = CoreAttention
        if c.multi_latent_attention:
            attention.q_layernorm = attention.kv_layernorm = RMSNorm
        elif c.qk_layernorm:
            attention.q_layernorm = attention.k_layernorm = RMSNorm
        if c.num_moe_experts:
            _use_grouped_experts(parts.mlp)
    mtp = get_gpt_mtp_block_spec(config, block, use_transformer_engine=False) if c.mtp_num_layers else None
    for layer in mtp.layer_specs if mtp else []:
        layer.submodules.enorm = layer.submodules.hnorm = layer.submodules.layer_norm = RMSNorm
    return block, mtp


def _use_grouped_experts(mlp: Any) -> None:
    """Put GroupedExperts into the spec of a layer's MLP; nothing to do for a dense one."""
    if isinstance(mlp, partial):  # 0.19 states a module as a partial, 0.16 as a ModuleSpec
        submodules: Any = mlp.keywords.get("submodules")
        if hasattr(submodules, "experts"):
            submodules.experts = partial(GroupedExperts, **submodules.experts.keywords)
    elif hasattr(mlp.submodules, "experts"):
        mlp.submodules.experts.module = GroupedExperts


def build_model(c: TrainConfig) -> DistributedDataParallel:
    """The part of the model on this rank, weights drawn, wrapped for data parallelism; fp32 main gradients."""
    config = megatron_config(c)
    if c.deepseek_v4:
        from train.deepseek_v4.build import build_model as build_v4

        return build_v4(c, config)
    block, mtp = _layer_specs(c, config)
    model = GPTModel(
        config=config,
        transformer_layer_spec=block,
        vocab_size=c.vocab_size,
        max_sequence_length=c.seq_length,
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        parallel_output=True,
        share_embeddings_and_output_weights=c.tie_embeddings,
        position_embedding_type="rope",
        rotary_percent=c.rotary_percent,
        rotary_base=c.rotary_base,
        mtp_block_spec=mtp,
    )
    model.to(torch.cuda.current_device())
    init_weights(model, c)
    if c.freeze_router:
        for name, parameter in model.named_parameters():
            if ".router." in name:
                parameter.requires_grad_(False)
    module = Float16Module(config, model) if c.precision == "bf16" else model
    _keep_routing_counts_exact(model)
    return DistributedDataParallel(
        config=config,
        ddp_config=DistributedDataParallelConfig(
            grad_reduce_in_fp32=True, use_distributed_optimizer=c.use_distributed_optimizer, average_in_collective=False
        ),
        module=module,
    )


def _keep_routing_counts_exact(model: torch.nn.Module) -> None:
    """Put the routers' buffers back to fp32: in bf16 a count stops at 256, and a saved correction bias loses bits."""
    for module in model.modules():
        if isinstance(module, TopKRouter):
            for name, buffer in module.named_buffers(recurse=False):
                setattr(module, name, buffer.float())


def unwrapped(model: Any) -> GPTModel:
    """The GPTModel inside its wrappers: the names of its parameters and checkpoint keys have no prefix."""
    while hasattr(model, "module"):
        model = model.module
    return model
