"""`databuild inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from databuild.commands.app import app, show_result

Worst = Literal["ratio", "docs", "long"]


@app.command(epilog="Example: databuild inspect rows-demo --worst ratio --why | less -R")
def inspect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    row: Annotated[int | None, typer.Option(help="Which row.", min=0, show_default="0")] = None,
    doc: Annotated[
        int | None, typer.Option(metavar="SOURCE_ROW", help="All of one conversation, by its row in the source.", min=0)
    ] = None,
    find: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Rows that hold this text, special tokens spelled out.")
    ] = None,
    worst: Annotated[
        Worst | None,
        typer.Option(help="The lowest supervised ratio, the most documents, or the longest conversations."),
    ] = None,
    ids: Annotated[bool, typer.Option("--ids", help="Each token with its id, a line each.")] = False,
    why: Annotated[bool, typer.Option("--why", help="Why each part is trained or not; reads the source.")] = False,
    source: Annotated[
        list[str], typer.Option("--source", help="For --why of a build that is not the demo: its source.")
    ] = [],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write one page instead of printing.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show rows: their conversations, and which of their text is trained."""
    from databuild import inspect as inspecting
    from databuild.errors import UsageError

    question = inspecting.Question(row=row, doc=doc, find=find, worst=worst, ids=ids, why=why, sources=source)
    if html is not None and as_json:
        raise UsageError("--html and --json are two outputs")
    if html is not None:
        from databuild.inspect.html import write_look

        typer.echo(f"{html}: {write_look(inspecting.look(folder, question), folder, html):,} bytes")
    elif as_json:
        show_result(inspecting.as_json(folder, question), "", True)
    else:
        inspecting.show(folder, question)
