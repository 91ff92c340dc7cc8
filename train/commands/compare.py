"""`python -m train compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from train.commands.app import app, show_result
from train.commands.table import as_table


@app.command(
    epilog="Exit code 0: passed; 1: failed; 2: a run cannot be read. Example: python -m train compare RUN-TP1 RUN-TP4 --perf"
)
def compare(
    current: Annotated[Path, typer.Argument(metavar="CURRENT", help="A RUN folder, a metrics.jsonl, or a text log.")],
    golden: Annotated[Path, typer.Argument(metavar="GOLDEN", help="The run to be judged by.")],
    thresholds: Annotated[
        Literal["function", "pipeline"],
        typer.Option(help="Which of Megatron-Bridge's two threshold sets judges; both are shown."),
    ] = "pipeline",
    perf: Annotated[bool, typer.Option("--perf", help="Step time, tokens/s and memory side by side.")] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Both curves as .html, or as .png with matplotlib.")
    ] = None,
    tokens_per_step: Annotated[
        int | None, typer.Option(min=1, help="For text logs: row tokens of a global batch.", show_default=False)
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=1, help="For text logs: how many GPUs.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Judge the loss curve of a run by another: the convergence rule of Megatron-Bridge, and what it leaves out."""
    from train.convergence.curves import read_curve
    from train.convergence.plot import write_plot
    from train.convergence.report import compare as run_compare
    from train.convergence.report import facts

    curves = [read_curve(p, tokens_per_step=tokens_per_step, gpus=gpus) for p in (current, golden)]
    result = run_compare(*curves, thresholds=thresholds, perf=perf)
    lines = facts(result)
    if plot is not None:
        write_plot(plot, curves, [f"current: {current}", f"golden: {golden}"], lines)
    show_result(result.as_dict(), as_table(lines), as_json)
    raise typer.Exit(0 if result.passed else 1)
