"""DeepSeek-V4 in a run: the part of the model on this rank, under Megatron's data, expert and pipeline parallelism."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import torch
from megatron.core import parallel_state
from megatron.core.dist_checkpointing import ShardedTensor
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig
from megatron.core.enums import ModelType
from megatron.core.tensor_parallel.random import checkpoint
from torch import Tensor

from train.config import TrainConfig
from train.deepseek_v4.experts import ExpertShare
from train.deepseek_v4.fused import compile_fused
from train.deepseek_v4.hf import Checkpoint
from train.deepseek_v4.model import V4Model
from train.deepseek_v4.stages import stage_layers
from train.deepseek_v4.weights import draw, fill, whole_tensors


class StageModel(V4Model):
    """V4Model with what Megatron asks of a model: its configuration, and where its tensors lie in the whole ones."""

    config: Any
    model_type = ModelType.encoder_or_decoder

    def sharded_state_dict(self, prefix: str = "", sharded_offsets: Any = (), metadata: Any = None) -> dict[str, Any]:
        """Each tensor with its place in the whole model; experts are cut by number, all else is the same on every rank."""
        state = {}
        replica = parallel_state.get_data_parallel_rank(with_context_parallel=True)
        expert_replica = parallel_state.get_expert_data_parallel_rank()
        for local, item in zip(self.state_dict(keep_vars=True), whole_tensors(self), strict=True):
            cut = [] if item.experts is None else [(0, self.share.rank, self.share.size)]
            copy_number = replica if item.experts is None else expert_replica
            state[prefix + local] = ShardedTensor.from_rank_offsets(
                prefix + item.name, item.tensor, *cut, replica_id=(0, 0, copy_number)
            )
        return state


def _recompute(function: Any, streams: Tensor) -> Tensor:
    result: Tensor = checkpoint(function, False, streams)
    return result


def build_model(c: TrainConfig, config: Any) -> DistributedDataParallel:
    """The part of the model on this rank, weights loaded or drawn, wrapped for data parallelism; config is Megatron's."""
    assert c.deepseek_v4 is not None
    v4 = c.deepseek_v4
    compile_fused(c.compile)
    share = ExpertShare(
        rank=parallel_state.get_expert_model_parallel_rank(),
        size=parallel_state.get_expert_model_parallel_world_size(),
        group=parallel_state.get_expert_model_parallel_group(),
    )
    stage = stage_layers(c, parallel_state.get_pipeline_model_parallel_rank())
    # Built where it stays: the layers of one stage of a large model fit there, and a host may not hold those of eight.
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16 if c.precision == "bf16" else torch.float32)
    try:
        with torch.device(torch.cuda.current_device()):
            model = StageModel(v4, stage, share, _recompute if c.recompute == "full" else None)
    finally:
        torch.set_default_dtype(usual)
    fill(model, Checkpoint(c.load_hf, v4).weight if c.load_hf else partial(draw, v4, c.seed))
    if c.freeze_router:
        for name, parameter in model.named_parameters():
            if name.endswith(".gate.weight"):
                parameter.requires_grad_(False)
    # Between stages Megatron sends hidden_size numbers a token: here all residual streams.
    config = copy.copy(config)
    config.hidden_size = v4.hc_mult * v4.hidden_size
    config.moe_router_enable_expert_bias = True
    model.config = config
    return DistributedDataParallel(
        config=config,
        ddp_config=DistributedDataParallelConfig(
            grad_reduce_in_fp32=True, use_distributed_optimizer=c.use_distributed_optimizer, average_in_collective=False
        ),
        module=model,
    )
