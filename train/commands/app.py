"""What the commands share: the typer app and the way to print."""

from __future__ import annotations

import json
from typing import Any

import typer

app = typer.Typer(
    name="train",
    help="Recipes, layouts and proof of training runs. Training itself is `torchrun -m train.sft`.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def show_result(value: Any, text: str, as_json: bool) -> None:
    """Print a result: as one JSON value, or as text for people."""
    typer.echo(json.dumps(value, sort_keys=True, allow_nan=False) if as_json else text)
