"""`databuild inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app, show_result


@app.command(epilog="Example: databuild inspect rows-demo --row 0 | less -R")
def inspect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    row: Annotated[int, typer.Option(help="Which row.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show one row: its conversations, and which of their text is trained."""
    from databuild import inspect as inspecting

    if as_json:
        show_result(inspecting.as_json(folder, row), "", True)
    else:
        inspecting.show(folder, row)
