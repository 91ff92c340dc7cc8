"""`databuild diff`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app, show_result


@app.command(epilog="Example: databuild diff rows-demo rows-of-a-colleague")
def diff(
    a: Annotated[Path, typer.Argument(metavar="A", help="A build.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Compare two builds: exit 0 if they are equal, 1 if they differ, 6 if one of them is damaged."""
    from databuild import inspect as inspecting
    from databuild.diff import compare
    from databuild.diff_text import diff_json, diff_lines
    from databuild.inspect.text import token_text

    found = compare(a, b)
    text = None if found.rows is None else token_text(inspecting.load_tokenizer())
    show_result(diff_json(found, text), "" if as_json else "\n".join(diff_lines(found, a, b, text)), as_json)
    if not found.equal:
        raise typer.Exit(1)
