"""What all commands share: the typer app, the ways to print, and the number of threads."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import typer

app = typer.Typer(
    name="databuild",
    help="Chat data to fixed-length DeepSeek-V4 training rows: the same bytes for everyone, with loss masks that can be "
    "proven.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_result(value: dict[str, Any], text: str, as_json: bool) -> None:
    """Print a result: as one JSON object, or as text for people."""
    typer.echo(json.dumps(value, sort_keys=True) if as_json else text)


def progress_printer(quiet: bool) -> Any:
    """Return what a command says meanwhile with: lines on stderr, or nothing."""
    return (lambda _: None) if quiet else (lambda text: print(text, file=sys.stderr, flush=True))


def set_workers(workers: int | None) -> int:
    """The engines' thread pools read this once, at their first use."""
    from databuild.environment import usable_cpus

    chosen = workers if workers is not None else usable_cpus()
    os.environ["RAYON_NUM_THREADS"] = str(chosen)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if chosen > 1 else "false"
    import pyarrow as pa

    pa.set_cpu_count(chosen)
    return chosen
