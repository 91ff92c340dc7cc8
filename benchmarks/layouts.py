"""Layouts of one model on one row file, side by side: `python -m benchmarks.layouts --rows DIR --config FILE --gpus 8 --out OUT`.

Each layout trains the same steps of the same rows with strict determinism, one step profiled; the first one is the measure of
the others. Prints a table (Markdown) and writes it to OUT/layouts.md, with a run, a card and a recipe in a folder each.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databuild.errors import UsageError
from train.config import TrainConfig, load_config
from train.convergence.curves import read_curve
from train.convergence.parity import parity, read_dump
from train.convergence.report import compare
from train.planner.legal import Wanted
from train.planner.memory import Layout
from train.planner.plan import judge
from train.planner.presets import find_model
from train.recipe.make_card import make_card

PROFILED_STEP = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A layout by its sizes. Of two stages the first takes a layer or two more than the last, which has the head."""

    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1

    def name(self, gpus: int) -> str:
        """TP2-DP4-EP4."""
        sizes = {
            "TP": self.tp,
            "PP": self.pp,
            "CP": self.cp,
            "DP": gpus // (self.tp * self.pp * self.cp),
            "EP": self.ep,
        }
        return "-".join(f"{key}{n}" for key, n in sizes.items() if n > 1 or key in ("TP", "DP"))

    def keys(self, num_layers: int) -> dict[str, Any]:
        """What it sets in a configuration."""
        found: dict[str, Any] = {"tp": self.tp, "pp": self.pp, "cp": self.cp, "ep": self.ep}
        if self.tp > 1:
            found["sequence_parallel"] = True
        if self.pp == 2:
            last = max(1, (num_layers - 1) // 2)
            found |= {"first_stage_layers": num_layers - last, "last_stage_layers": last}
        return found


def cases(gpus: int, experts: bool) -> list[Case]:
    """Those that the GPUs allow: data parallel alone, two sizes of tp, a pipeline, context parallel."""
    ep = (lambda n: n) if experts else (lambda n: 1)
    wanted = [
        Case(ep=ep(gpus)), Case(tp=2, ep=ep(gpus // 2)), Case(tp=4, ep=ep(gpus // 4)), Case(tp=2, pp=2, ep=ep(gpus // 4)),
        Case(cp=2, ep=ep(gpus // 2)),
    ]  # fmt: skip
    return [case for case in wanted if case.tp * case.pp * case.cp <= gpus and gpus >= 2]


def train(
    case: Case, arguments: argparse.Namespace, config: TrainConfig, folder: Path, *, profile: bool = True
) -> None:
    """Run one layout, unless its run is there."""
    if (folder / "summary.json").exists():
        return
    settings = {
        "steps": arguments.steps, "global_batch_size": arguments.global_batch_size, "deterministic": True,
        **case.keys(config.num_layers),
    }  # fmt: skip
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(arguments.gpus), "-m", "train.sft",
        "--rows", str(arguments.rows), "--config", str(arguments.config), "--out", str(folder), "--dump-logprobs",
        *(["--profile", str(PROFILED_STEP)] if profile else []),
        "--set", *(f"{key}={json.dumps(value)}" for key, value in settings.items()), *arguments.set,
    ]  # fmt: skip
    print(f"{folder.name}: {' '.join(command[1:])}", file=sys.stderr, flush=True)
    subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")})


def line(
    case: Case, arguments: argparse.Namespace, config: TrainConfig, folder: Path, first: Path, floor: Path
) -> list[str]:
    """A row of the table."""
    summary = json.loads((folder / "summary.json").read_text())
    value = {name: figure["value"] for name, figure in summary["figures"].items()}
    verdict = compare(read_curve(folder), read_curve(first), perf=True)
    assert verdict.speeds is not None
    peak = verdict.speeds[0].peak_gib
    same = parity(read_dump(first), read_dump(folder), read_dump(floor))
    bound = folder / "profile" / "bound_by.json"
    trace = json.loads(bound.read_text()) if bound.exists() else {}
    judged = verdict.verdicts["pipeline"]
    try:
        status = make_card(folder, folder / "card", overwrite=True, golden=first)["status"]
    except UsageError as error:  # the runs stood on other code, say
        status = f"{make_card(folder, folder / 'card', overwrite=True)['status']}, not comparable: {error.found}"
    return [
        case.name(arguments.gpus),
        f"{arguments.global_batch_size // (config.micro_batch_size * arguments.gpus // (case.tp * case.pp * case.cp))}",
        f"{value['tokens_per_s_per_gpu']:,.0f}",
        f"{value['step_time_mean_s']:.3f}",
        f"{value['step_time_cv_percent_ddof0']:.1f} %",
        "" if peak is None else f"{peak:.1f}",
        f"{estimate(case, arguments, config):.1f}",
        f"{trace['kernel_launches']:,}, {trace['idle_share']:.0%}" if trace else "",
        f"{judged.correlation:.6f}, {judged.final_loss_difference:.1e}, {'passed' if judged.passed else 'FAILED'}",
        f"{same.mean:.1e}",
        str(status),
    ]


def estimate(case: Case, arguments: argparse.Namespace, config: TrainConfig) -> float:
    """What the planner says of the peak, GiB."""
    keys = case.keys(config.num_layers)
    ends = [keys[key] for key in ("first_stage_layers", "last_stage_layers") if key in keys]
    layout = Layout(
        gpus=arguments.gpus, tp=case.tp, pp=case.pp, cp=case.cp, ep=case.ep, stages=tuple(ends) or (config.num_layers,),
        sequence_parallel=case.tp > 1, micro_batch_size=config.micro_batch_size,
    )  # fmt: skip
    want = Wanted(
        gpus=arguments.gpus, gpus_per_node=arguments.gpus, row_tokens=config.seq_length,
        global_batch_size=arguments.global_batch_size, micro_batch_size=config.micro_batch_size,
    )  # fmt: skip
    return judge(find_model(str(arguments.config)), layout, want, 139.0).memory.peak


HEAD = (
    "layout", "micro-batches a rank", "tokens/s/GPU", "step s", "CV", "peak GiB", "planned GiB", "launches, idle",
    "correlation, final loss difference", "parity, nats", "evidence",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="benchmarks.layouts", description=__doc__, allow_abbrev=False)
    parser.add_argument("--rows", type=Path, required=True, metavar="DIR")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    parser.add_argument("--out", type=Path, required=True, metavar="OUT")
    parser.add_argument("--gpus", type=int, default=8, help="processes of one machine")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--global-batch-size", type=int, default=16)
    parser.add_argument("--set", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="keys over the file")
    arguments = parser.parse_args(argv)
    config = load_config(arguments.config, arguments.set)
    chosen = cases(arguments.gpus, config.num_moe_experts is not None)
    folders = [arguments.out / case.name(arguments.gpus) for case in chosen]
    for case, folder in zip(chosen, folders, strict=True):
        train(case, arguments, config, folder)
    again = arguments.out / f"{folders[0].name}-again"
    train(chosen[0], arguments, config, again, profile=False)
    rows = [line(case, arguments, config, f, folders[0], again) for case, f in zip(chosen, folders, strict=True)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [list(HEAD), ["---", *["--:"] * (len(HEAD) - 1)], *rows])
    (arguments.out / "layouts.md").write_text(table + "\n")
    print(table)


if __name__ == "__main__":
    main()
