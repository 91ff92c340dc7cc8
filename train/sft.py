"""Train on the rows of a build: `torchrun --nproc-per-node N -m train.sft --rows DIR --config FILE --out RUN`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from databuild.errors import DatabuildError, UsageError
from train.config import TrainConfig, load_config, print_config

TERMINATED = 143


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line; abbreviations are off, because torchrun takes some of them for its own."""
    parser = argparse.ArgumentParser(prog="train.sft", description=__doc__, allow_abbrev=False)
    parser.add_argument("--rows", type=Path, metavar="DIR", help="a build of databuild")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the run as YAML")
    parser.add_argument(
        "--out", type=Path, metavar="RUN", help="where logs and checkpoints go; one folder for all ranks"
    )
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="keys over the file; repeatable"
    )
    parser.add_argument("--resume", action="store_true", help="go on from the newest checkpoint of RUN")
    parser.add_argument("--print-config", action="store_true", help="print the whole configuration and stop")
    parser.add_argument(
        "--dump-logprobs", action="store_true", help="write logprobs-step0.npz, for `python -m train parity`"
    )
    parser.add_argument("--profile", type=int, metavar="STEP", help="profile this step")
    arguments = parser.parse_args(argv)
    if not arguments.print_config and (arguments.rows is None or arguments.out is None):
        parser.error("--rows and --out are needed to train")
    if arguments.resume and arguments.dump_logprobs:
        parser.error("--dump-logprobs is of step 0: not with --resume")
    return arguments


def main(argv: Sequence[str] | None = None) -> int:
    """The command; gives the exit code."""
    arguments = parse(argv)
    try:
        config = load_config(arguments.config, arguments.set)
        if arguments.print_config:
            print(print_config(config), end="")
            return 0
        return train(
            config,
            arguments.rows,
            arguments.out,
            resume=arguments.resume,
            profile=arguments.profile,
            dump_logprobs=arguments.dump_logprobs,
        )
    except DatabuildError as error:
        rank = os.environ.get("RANK", "0")
        # All ranks meet most errors alike; one of them says it in full.
        print(f"{error.title}: {error}" if rank == "0" else f"rank {rank}: {error.what}", file=sys.stderr)
        return error.exit_code


def train(
    config: TrainConfig, rows_dir: Path, out: Path, *, resume: bool, profile: int | None, dump_logprobs: bool = False
) -> int:
    """Train to the last step, or to a SIGTERM, which saves; 0 or 143."""
    # Megatron takes seconds to import: not for a mistake in the configuration.
    from train import cpu_shim, process

    terminated = _watch_sigterm()
    process.quiet()
    cpu_shim.install()
    _, world_size = process.start(config.deterministic)
    try:
        from train.run import refuse_layout

        refuse_layout(config, world_size)
        return _train(config, rows_dir, out, resume, profile, dump_logprobs, terminated)
    finally:
        process.stop()


def _train(
    config: TrainConfig,
    rows_dir: Path,
    out: Path,
    resume: bool,
    profile: int | None,
    dump_logprobs: bool,
    terminated: list[int],
) -> int:
    import torch
    import torch.distributed as dist

    from train import logprobs
    from train.data import RowData
    from train.logs import Phases, RunLog
    from train.process import any_rank
    from train.run import Run
    from train.trace import traced

    checkpoints = out / "checkpoints"
    if not resume and (checkpoints / "latest").exists():
        raise UsageError(
            "the run has checkpoints already", where=str(out), next_step="go on with --resume, or give another --out"
        )
    phases = Phases()
    with phases.timed("rows"):
        rows = RowData(rows_dir, config)
    with phases.timed("model"):
        run = Run(config, rows, watch_first=dump_logprobs)
    saved_at = None
    if resume:
        with phases.timed("resume"):
            run.resume(checkpoints)
        saved_at = run.progress.step
    # Writes to RUN: only once nothing is refused any more.
    log = RunLog(out, config, dist.get_rank(), dist.get_world_size(), phases=phases)
    log.rows(rows_dir)
    stop, step_time_s = any_rank(bool(terminated)), None
    while run.progress.step < config.steps and not stop:
        started = time.perf_counter()
        profiled = profile == run.progress.step + 1
        with traced(out, profiled, step_time_s) as trace:
            result = run.step()
            trace.expert_load = result.expert_load
            torch.cuda.synchronize()
        step_time_s = time.perf_counter() - started
        log.step(
            step=run.progress.step,
            loss=result.loss,
            grad_norm=result.grad_norm,
            lr=result.lr,
            num_targets=result.num_targets,
            tokens=config.tokens_per_step,
            step_time_s=step_time_s,
            consumed_rows=run.progress.consumed_rows,
            expert_load=result.expert_load,
            profiled=profiled,
        )
        if run.first_logprobs is not None:
            logprobs.write(out, run.first_logprobs, run.rows.rows_sha256, config)
            run.first_logprobs = None
        stop = any_rank(bool(terminated))
        if config.save_interval and run.progress.step % config.save_interval == 0:
            with phases.timed("save"):
                run.save(checkpoints)
            saved_at = run.progress.step
    if saved_at != run.progress.step:
        with phases.timed("save"):
            run.save(checkpoints)
    log.finish()
    run.close()
    return TERMINATED if stop else 0


def _watch_sigterm() -> list[int]:
    """A list that is no longer empty once SIGTERM has come; the step under way is finished first."""
    seen: list[int] = []

    def note(number: int, _: Any) -> None:
        seen.append(number)

    signal.signal(signal.SIGTERM, note)
    return seen


if __name__ == "__main__":
    sys.exit(main())
