"""How a model is spread over processes: which layouts are refused and why, and Megatron's process groups."""

from __future__ import annotations

from train.config import TrainConfig
from train.deepseek_v4.config import layout_problems


def data_parallel_size(config: TrainConfig, world_size: int) -> int:
    """How many copies of the model read different rows."""
    return world_size // (config.tp * config.pp * config.cp)


def check_layout(config: TrainConfig, world_size: int) -> list[str]:
    """Why these processes cannot train this configuration, one reason each; empty when they can.

    What does not depend on the number of processes, or on what Megatron gets right, TrainConfig has refused before.
    """
    c = config
    reasons = []
    model_ranks = c.tp * c.pp * c.cp
    if world_size % model_ranks:
        reasons.append(f"{world_size} processes are not a multiple of tp x pp x cp = {model_ranks}")
    else:
        per_round = c.micro_batch_size * data_parallel_size(c, world_size)
        if c.global_batch_size % per_round:
            reasons.append(
                f"global_batch_size {c.global_batch_size} is not a multiple of micro_batch_size {c.micro_batch_size} x "
                f"{data_parallel_size(c, world_size)} data-parallel ranks"
            )
    if c.deepseek_v4:
        reasons += layout_problems(c)
    elif not c.multi_latent_attention and c.query_groups % c.tp:
        reasons.append(
            f"num_query_groups {c.query_groups} is not a multiple of tp {c.tp}: key heads are not copied over ranks"
        )
    if c.multi_latent_attention and c.tp > 1 and not c.sequence_parallel:
        reasons.append(
            "multi-latent attention with tp > 1 needs sequence_parallel: without it Megatron sums the gradient of the "
            "query norm over tp ranks that each hold all of it"
        )
    if c.tie_embeddings and c.mtp_num_layers and c.pp > 1:
        reasons.append(
            "tie_embeddings with mtp_num_layers and pp > 1 trains wrong: the last stage holds the embedding twice, for its "
            "output and for the MTP layer, and Megatron sums the gradient of one of them"
        )
    if c.num_moe_experts:
        reasons += _expert_reasons(c, world_size)
    return reasons


def _expert_reasons(c: TrainConfig, world_size: int) -> list[str]:
    reasons = []
    expert_ranks = c.etp * c.ep * c.pp
    if world_size % expert_ranks:
        reasons.append(f"{world_size} processes are not a multiple of etp x ep x pp = {expert_ranks}")
    if (c.moe_shared_expert_intermediate_size or 0) % c.tp:
        reasons.append(
            f"moe_shared_expert_intermediate_size {c.moe_shared_expert_intermediate_size} is not a multiple of tp {c.tp}"
        )
    if c.etp not in (1, c.tp):
        reasons.append(f"etp {c.etp} must be 1 or tp {c.tp}: nothing else has been compared with one process")
    elif c.ep == 1 and c.etp != c.tp:
        reasons.append(
            "experts with tp > 1, ep = 1 and etp = 1 train wrong: Megatron keeps their gradients in the dense data-parallel "
            "group then, and they are off by 1e-2; use ep > 1 or etp = tp"
        )
    return reasons


def start_groups(config: TrainConfig) -> None:
    """Megatron's process groups and random states; torch.distributed is up."""
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed

    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=config.tp,
        pipeline_model_parallel_size=config.pp,
        context_parallel_size=config.cp,
        expert_model_parallel_size=config.ep,
        expert_tensor_parallel_size=config.etp if config.num_moe_experts else None,
        create_gloo_process_groups=True,
    )
    # Nothing is random after the start, but Megatron wants its states to exist.
    model_parallel_cuda_manual_seed(config.seed)
