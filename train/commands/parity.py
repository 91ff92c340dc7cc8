"""`python -m train parity`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from train.commands.app import app, show_result
from train.commands.table import as_table


@app.command(
    epilog="Exit code 0: passed, or nothing to judge by; 1: failed; 2: not the same weights and rows. "
    "Example: python -m train parity RUN-TP1 RUN-TP4 --floor RUN-TP1-AGAIN"
)
def parity(
    a: Annotated[Path, typer.Argument(metavar="A", help="A RUN of train.sft --dump-logprobs.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The same weights and rows in another layout.")],
    floor: Annotated[
        Path | None, typer.Option(metavar="A2", help="The layout of A once more: how far runs differ anyway.")
    ] = None,
    factor: Annotated[float, typer.Option(min=1.0, help="How many floors apart still pass.")] = 1.5,
    tolerance: Annotated[float, typer.Option(min=0.0, help="What passes in any case, nats a token.")] = 1e-5,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Mean |difference of the log-probability| of each target token at step 0 between two layouts."""
    from train.convergence.parity import parity as run_parity
    from train.convergence.parity import read_dump

    result = run_parity(
        read_dump(a), read_dump(b), read_dump(floor) if floor else None, factor=factor, tolerance=tolerance
    )
    verdict = "not judged: give --floor A2, the layout of A once more"
    if result.passed is not None:
        words = "passed" if result.passed else "FAILED"
        verdict = f"{words}: {result.mean:.3e} against a limit of {result.limit:.3e} (floor {result.floor:.3e})"
    lines = [
        ("layouts", " against ".join(result.layouts)),
        ("target tokens", f"{result.num_targets:,}"),
        ("mean |difference|", f"{result.mean:.3e} nats"),
        ("99th percentile, largest", f"{result.percentile_99:.3e}, {result.largest:.3e}"),
        ("verdict", verdict),
    ]
    show_result(result.as_dict(), as_table(lines), as_json)
    raise typer.Exit(1 if result.passed is False else 0)
