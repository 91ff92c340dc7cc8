"""Runs under torchrun: trains the same tiny model in several layouts, each with its log-probabilities and step lines.

    parity_worker.py OUT

OUT/NAME/ is a RUN folder: metrics.jsonl, logprobs-step0.npz.
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from layout_worker import MOE, TINY, TinyRows

from train import cpu_shim, process
from train.config import TrainConfig

SP = {"tp": 2, "sequence_parallel": True}
CASES = {
    "dp2": TINY,
    "dp2_again": TINY,
    "dp2_mbs2": {**TINY, "micro_batch_size": 2},
    "tp2_sp_full": {**TINY, **SP, "recompute": "full"},
    "pp2": {**TINY, "pp": 2, "first_stage_layers": 1},
    "cp2": {**TINY, "cp": 2},
    "moved": {**TINY, "tp": 2},
    "moe_dp2": MOE,
    "moe_ep2_tp2": {**MOE, **SP, "ep": 2},
}
STEPS = 6


def run_case(name: str, keys: dict, out: Path) -> None:
    from train import logprobs
    from train.logs import RunLog
    from train.model import unwrapped
    from train.run import Run

    config = TrainConfig.model_validate({**keys, "steps": STEPS})
    run = Run(config, TinyRows(config), watch_first=True)
    log = RunLog(out / name, config, dist.get_rank(), dist.get_world_size(), tensorboard=False)
    if name == "moved":  # one weight of many, by a hundredth
        with torch.no_grad():
            unwrapped(run.model).decoder.layers[0].input_layernorm.weight[0] += 0.01
    for step in range(1, STEPS + 1):
        started = time.perf_counter()
        result = run.step()
        log.step(
            step=step, loss=result.loss, grad_norm=result.grad_norm, lr=result.lr, num_targets=result.num_targets,
            tokens=config.tokens_per_step, step_time_s=time.perf_counter() - started,
            consumed_rows=run.progress.consumed_rows,
        )  # fmt: skip
    assert (run.first_logprobs is None) == (dist.get_rank() != 0)
    if run.first_logprobs is not None:
        logprobs.write(out / name, run.first_logprobs, run.rows.rows_sha256, config)
    run.close()


def main() -> None:
    process.quiet()
    cpu_shim.install()
    process.start(deterministic=True)
    for name, keys in CASES.items():
        run_case(name, keys, Path(sys.argv[1]))
        gc.collect()
    process.stop()


if __name__ == "__main__":
    main()
