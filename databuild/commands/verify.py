"""`databuild verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app, progress_printer, set_workers, show_result


@app.command(epilog="Example: databuild verify rows-demo --level 4")
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build, or an export.")],
    level: Annotated[
        int,
        typer.Option(
            help="1 files; 2 rows and rows_sha256; 3 re-encode a sample; 4 build again and compare.", min=1, max=4
        ),
    ] = 2,
    source: Annotated[
        list[str],
        typer.Option("--source", help="Level 4 of a build from files: where they are. Of an export: the build."),
    ] = [],
    workers: Annotated[int | None, typer.Option(help="Threads.", min=1, max=1024, show_default="all cores")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the result.")] = False,
) -> None:
    """Prove that a build is what its manifest says."""
    workers = set_workers(workers)
    say = progress_printer(quiet or as_json)
    if (folder / "export.json").is_file():
        from databuild.export.check import verify_export

        result = verify_export(folder, level=level, sources=source, say=say)
    else:
        from databuild.verify import verify as run_verify

        result = run_verify(folder, level=level, paths=source, workers=workers, say=say)
    show_result(
        result,
        f"{folder} is whole (level {level}): {result['rows']:,} rows, rows_sha256 {result['rows_sha256']}",
        as_json,
    )
