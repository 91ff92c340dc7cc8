"""`databuild report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app, show_result


@app.command(epilog="Example: databuild report rows-demo --out report.html")
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    compare: Annotated[
        Path | None, typer.Option(metavar="DIR2", help="Another build: what differs from it is in the report.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("report.html"),
    seed: Annotated[int, typer.Option(help="Seed of the rows drawn at random.", min=0)] = 0,
    rows_shown: Annotated[int, typer.Option(help="How many rows can be looked at.", min=1, max=200)] = 24,
    source: Annotated[
        list[str], typer.Option("--source", help="The source of a build that is not the demo, for examples of skips.")
    ] = [],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Write one HTML page about a build, to open without network: what is in it, charts, and rows with their masks."""
    from databuild import inspect as inspecting
    from databuild.report import charts, write_report

    charts.require_matplotlib()  # before anything slow
    size = write_report(
        folder,
        out,
        tokenizer=inspecting.load_tokenizer(),
        other=compare,
        seed=seed,
        rows_shown=rows_shown,
        sources=source,
    )
    show_result({"out": str(out), "bytes": size}, f"{out}: {size:,} bytes", as_json)
