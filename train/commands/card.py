"""`python -m train card`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from train.commands.app import app, show_result


@app.command(epilog="Example: python -m train card RUN --golden RUN-TP1 --out RUN-card")
def card(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The --out of a finished run of train.sft.")],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to.", show_default="RUN/card")] = None,
    golden: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="A run of the same configuration and rows; its loss curve judges this one."),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a card that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Write a verification card and a recipe of a finished run, from its files and nothing else."""
    from train.recipe.make_card import make_card

    made = make_card(run, out or run / "card", overwrite=overwrite, golden=golden)
    lines = [f"{made['folder']}: recipe.yaml ({made['right']} figures right), card.yaml", f"  status  {made['status']}"]
    lines[-1] += f": {made['reason']}"
    lines += [f"  missing  {text}" for text in made["missing"]]
    show_result(made, "\n".join(lines), as_json)
