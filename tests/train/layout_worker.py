"""Runs under torchrun: trains each case of a list in its own layout and writes losses, grad norms and whole weights.

    layout_worker.py CASES.json OUT

A case: name; config, keys of TrainConfig; steps to train to; save, resume: folders of checkpoints; rows_sha256; perturb: spoil a
gradient; target: the only token of each row that is trained; change: add 1 to the tokens from this one on.
OUT/NAME.npz: loss, grad_norm, num_targets and load of the experts of each step; start/WEIGHT and end/WEIGHT of each whole
weight; bias/ROUTER.
OUT/NAME.error: what a refused resume says.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

from databuild.errors import DatabuildError
from train import cpu_shim, process
from train.batches import labels_and_mask, step_rows
from train.config import TrainConfig
from train.data import MicroBatch

TINY = {
    "steps": 8, "seq_length": 32, "global_batch_size": 4, "precision": "fp32", "vocab_size": 128, "num_layers": 3,
    "hidden_size": 32, "ffn_hidden_size": 64, "num_attention_heads": 4, "num_query_groups": 2, "init_method_std": 0.1,
    # An epsilon far above the gradients makes an update proportional to its gradient: a wrong one shows, in its size.
    "lr": 0.05, "adam_eps": 0.1, "lr_warmup_fraction": 0.0,
}  # fmt: skip
TIED = {**TINY, "tie_embeddings": True, "qk_layernorm": True, "add_qkv_bias": True}
DOCUMENT = {**TINY, "attention": "document"}
MOE = {
    **TINY, "num_layers": 2, "num_moe_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 32,
    "moe_shared_expert_intermediate_size": 32, "moe_layer_freq": [0, 1], "moe_router_score_function": "sigmoid",
    "moe_router_enable_expert_bias": True, "moe_router_topk_scaling_factor": 1.5, "moe_aux_loss_coeff": 0.01,
}  # fmt: skip
MLA = {
    **{k: v for k, v in MOE.items() if k != "num_query_groups"}, "multi_latent_attention": True, "qk_layernorm": True,
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_head_dim": 8, "qk_pos_emb_head_dim": 4, "v_head_dim": 8, "mtp_num_layers": 1,
    "moe_router_num_groups": 2, "moe_router_group_topk": 1,
}  # fmt: skip
BASES = {"dense": TINY, "tied": TIED, "document": DOCUMENT, "moe": MOE, "mla": MLA}


class TinyRows:
    """Rows with something to learn, masks of very different size, and documents; the shape of train.data.RowData."""

    def __init__(
        self, config: TrainConfig, rows_sha256: str = "tiny", target: int | None = None, change: int | None = None
    ) -> None:
        self.rows_sha256 = rows_sha256
        num_rows = 24
        rng = np.random.default_rng(7)
        size, vocab = config.seq_length, config.vocab_size
        successor = rng.permutation(vocab)
        self.ids = np.empty((num_rows, size), np.int32)
        self.ids[:, 0] = rng.integers(0, vocab, num_rows)
        for t in range(1, size):
            noise = rng.integers(0, vocab, num_rows)
            self.ids[:, t] = np.where(rng.random(num_rows) < 0.2, noise, successor[self.ids[:, t - 1]] % (vocab // 4))
        share = rng.uniform(0.1, 0.9, (num_rows, 1))
        self.mask = (rng.random((num_rows, size)) < share).astype(np.uint8)
        self.mask[:, 0] = 0
        self.starts = rng.random((num_rows, size)) < 0.1  # where a document begins
        self.starts[:, 0] = True
        if target is not None:
            self.mask[:] = 0
            self.mask[:, target] = 1
        if change is not None:
            self.ids[:, change:] = (self.ids[:, change:] + 1) % vocab
        self.config = config

    def micro_batches(self, consumed_rows: int, dp_rank: int, dp_size: int) -> list[MicroBatch]:
        config = self.config
        rows = consumed_rows + step_rows(
            0,
            global_batch_size=config.global_batch_size,
            micro_batch_size=config.micro_batch_size,
            dp_size=dp_size,
            dp_rank=dp_rank,
        )
        return [self.batch(r) for r in rows % len(self.ids)]

    def batch(self, rows: np.ndarray) -> MicroBatch:
        ids, mask = self.ids[rows], self.mask[rows]
        labels, label_mask = labels_and_mask(ids, mask)
        return MicroBatch(
            tokens=torch.from_numpy(ids.astype(np.int64)),
            labels=torch.from_numpy(labels),
            label_mask=torch.from_numpy(label_mask),
            loss_mask=torch.from_numpy(mask.astype(np.float32)),
            position_ids=torch.arange(ids.shape[1]).expand(ids.shape).contiguous(),
            doc_bounds=torch.from_numpy(np.append(np.flatnonzero(self.starts[rows]), ids.size).astype(np.int32)),
        )


def whole_weights(model) -> dict[str, np.ndarray]:
    """The whole parameters on rank 0, put together from the parts of all ranks; parts that overlap must be equal."""
    from train.init import placed_parameters

    parts = [(place, parameter.detach().float().numpy()) for place, parameter in placed_parameters(model)]
    gathered: list = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, parts)
    whole: dict[str, np.ndarray] = {}
    for place, part in (item for rank in gathered for item in rank):
        positions = place.cut(torch.arange(int(np.prod(place.shape))).reshape(place.shape)).numpy()
        flat = whole.setdefault(place.name, np.full(place.shape, np.nan, np.float32)).reshape(-1)
        before = flat[positions.reshape(-1)]
        known = ~np.isnan(before)
        np.testing.assert_array_equal(
            before[known], part.reshape(-1)[known], err_msg=f"replicas of {place.name} differ"
        )
        flat[positions.reshape(-1)] = part.reshape(-1)
    return whole


def run_case(case: dict, out: Path) -> None:
    from train.model import unwrapped
    from train.run import Run

    config = TrainConfig.model_validate(case["config"])
    rows = TinyRows(config, **{key: case[key] for key in ("rows_sha256", "target", "change") if key in case})
    run = Run(config, rows)
    try:
        if "resume" in case:
            run.resume(Path(case["resume"]))
    except DatabuildError as error:
        (out / f"{case['name']}.error").write_text(f"{error.title}: {error}")
        run.close()
        return
    model = unwrapped(run.model)
    start = whole_weights(model)
    if case.get("perturb"):
        _spoil_a_gradient(run)
    results = [run.step() for _ in range(case.get("steps", config.steps) - run.progress.step)]
    if "save" in case:
        run.save(Path(case["save"]))
    end = whole_weights(model)
    biases = {name: value.numpy() for name, value in model.named_buffers() if name.endswith("expert_bias")}
    run.close()
    if dist.get_rank() == 0:
        np.savez(
            out / f"{case['name']}.npz",
            loss=[r.loss for r in results],
            grad_norm=[r.grad_norm for r in results],
            num_targets=[r.num_targets for r in results],
            load=[list((r.expert_load or {}).values()) for r in results],
            **{f"start/{name}": value for name, value in start.items()},
            **{f"end/{name}": value for name, value in end.items()},
            **{f"bias/{name}": value for name, value in biases.items()},
        )


def _spoil_a_gradient(run) -> None:
    """Make the gradient of one norm wrong by a part in a thousand, as a missing reduction of a small term would."""
    parameter = next(p for n, p in run.model.named_parameters() if "pre_mlp_layernorm" in n)
    finalize = run.model.config.finalize_model_grads_func

    def spoiled(*args, **kwargs):
        finalize(*args, **kwargs)
        parameter.main_grad.mul_(1.001)

    run.model.config.finalize_model_grads_func = spoiled


def main() -> None:
    process.quiet()
    cpu_shim.install()
    process.start(deterministic=True)
    for case in json.loads(Path(sys.argv[1]).read_text()):
        run_case(case, Path(sys.argv[2]))
        gc.collect()
    process.stop()


if __name__ == "__main__":
    main()
