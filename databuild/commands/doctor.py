"""`databuild doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app, show_result


@app.command(epilog="Example: databuild doctor")
def doctor(
    out: Annotated[Path, typer.Option(help="Where a build would be written: its disk is looked at.")] = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Look at this machine: versions, engine, tokenizer, hub, disk, memory, extras. Exit 6 if a build cannot work."""
    from databuild import doctor as examining

    checks = examining.examine(out)
    show_result(examining.as_json(checks), examining.as_text(checks), as_json)
    if not examining.is_well(checks):
        raise typer.Exit(6)
