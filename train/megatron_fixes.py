"""What is wrong or missing in megatron-core without Transformer Engine, put right once, before a model is built."""

from __future__ import annotations

from typing import Any

import megatron.core
import megatron.core.transformer.moe.moe_utils as moe_utils
import megatron.core.transformer.multi_latent_attention as mla
import megatron.core.transformer.multi_token_prediction as mtp
import torch
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer
from megatron.core.transformer.moe.router import TopKRouter

_installed = False


def install() -> None:
    """Put the corrections in; once per process."""
    global _installed
    if _installed:
        return
    _installed = True
    # 0.16 asks for these without Transformer Engine too; the layers here never come from it.
    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None
    mla.HAVE_TE = False
    _count_aux_loss_tokens_of_the_whole_row()
    _keep_adam_step_on_load()
    _let_ranks_without_weights_save()
    _find_the_state_of_fp32_weights()
    _weigh_mtp_targets_equally()


def forget_model() -> None:
    """Drop what Megatron keeps of a model outside the model, in tables as long as that model's layers."""
    if hasattr(moe_utils, "_MOE_LAYER_WISE_LOGGING_TRACKER"):  # 0.16
        moe_utils._MOE_LAYER_WISE_LOGGING_TRACKER.clear()
    else:
        from megatron.core.transformer.moe.moe_logging import destroy_moe_metrics_tracker

        destroy_moe_metrics_tracker()
    mtp.MTPLossLoggingHelper.tracker.clear()


def _count_aux_loss_tokens_of_the_whole_row() -> None:
    """Scale the load-balancing loss by the tokens of the whole micro-batch.

    With a per-token loss, Megatron scales it by what one rank of the tp x cp group holds of one row, sums the gradients of those
    ranks, and divides by the targets of all. So the balancing gradient comes out tp x cp (0.16) x micro_batch_size (the loss by
    sequence, 0.16 and 0.19) times too small, and the layout changes the training.
    """
    attach = TopKRouter.attach_and_log_load_balancing_loss
    multiplies_by_ranks = tuple(map(int, megatron.core.__version__.split(".")[:2])) >= (0, 19)

    def attach_whole(self: Any, activation: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
        ranks = 1 if multiplies_by_ranks else self.tp_cp_group.size()
        named["valid_token_count"] = activation.shape[0] * ranks
        result: torch.Tensor = attach(self, activation, *args, **named)
        return result

    TopKRouter.attach_and_log_load_balancing_loss = attach_whole


def _keep_adam_step_on_load() -> None:
    """torch's Adam keeps a `step` per parameter, which a fully reshardable checkpoint does not carry: keep the one at hand."""
    load = DistributedOptimizer._set_main_param_and_optimizer_states

    def load_with_step(self: Any, model_param: Any, tensors: dict[str, torch.Tensor]) -> None:
        group, index = self.model_param_group_index_map[model_param]
        state = self.optimizer.state[self.optimizer.param_groups[group]["params"][index]]
        if "step" in state:
            tensors = {"step": state["step"].clone(), **tensors}
        load(self, model_param, tensors)

    DistributedOptimizer._set_main_param_and_optimizer_states = load_with_step


def _let_ranks_without_weights_save() -> None:
    """An optimizer without weights on a rank (experts, on a pipeline stage that has none) has no step and nothing to save."""
    state_dict, load_state_dict = DistributedOptimizer.state_dict, DistributedOptimizer.load_state_dict

    def has_weights(self: Any) -> bool:
        return any(group["params"] for group in self.optimizer.param_groups)

    def state_if_any(self: Any) -> dict[str, Any]:
        state: dict[str, Any] = state_dict(self) if has_weights(self) else {"optimizer": {"param_groups": []}}
        return state

    def load_if_any(self: Any, state: dict[str, Any]) -> None:
        if has_weights(self):
            load_state_dict(self, state)

    DistributedOptimizer.state_dict, DistributedOptimizer.load_state_dict = state_if_any, load_if_any


def _find_the_state_of_fp32_weights() -> None:
    """Say rightly where in its group the state of a weight is, for groups that hold fp32 and bf16 weights.

    Adam's groups list the fp32 weights first, but Megatron's map of them goes by the order of the model: a model that keeps some
    weights in fp32 would save, and load, the state of one weight as that of another.
    """
    build = DistributedOptimizer.__init__

    def build_and_map(self: Any, *args: Any, **named: Any) -> None:
        build(self, *args, **named)
        pairs = zip(getattr(self, "model_fp32_groups", []), getattr(self, "model_float16_groups", []), strict=True)
        for group, (fp32, float16) in enumerate(pairs):
            for index, parameter in enumerate([*fp32, *float16]):
                self.model_param_group_index_map[parameter] = (group, index)

    DistributedOptimizer.__init__ = build_and_map


def _weigh_mtp_targets_equally() -> None:
    """Let each target of an MTP layer weigh the same, whatever micro-batch and context-parallel rank it is in.

    0.19 multiplies the MTP loss by targets before / targets after the shift, of one rank's part of one micro-batch; both
    counts come from roll_tensor, so it is made to give the first one again. 0.16 uses its count for logs alone.
    """
    roll = mtp.roll_tensor

    def roll_keeping_count(tensor: torch.Tensor, *args: Any, **named: Any) -> tuple[torch.Tensor, torch.Tensor]:
        rolled, _ = roll(tensor, *args, **named)
        rolled.count_before = getattr(tensor, "count_before", None)
        if rolled.count_before is None:
            rolled.count_before = tensor.sum()
        return rolled, rolled.count_before

    mtp.roll_tensor = roll_keeping_count
