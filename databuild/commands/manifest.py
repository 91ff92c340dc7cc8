"""`databuild manifest`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from databuild.commands.app import app


@app.command(epilog="Example: databuild manifest rows-demo --format slsa > rows-demo.intoto.json")
def manifest(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    form: Annotated[
        Literal["manifest", "slsa", "in-toto"],
        typer.Option(
            "--format",
            help="manifest: as it is stored; slsa: an in-toto statement with SLSA provenance v1; in-toto: with a link v0.3.",
        ),
    ] = "manifest",
) -> None:
    """Check the files of a build and print its manifest, or a statement about it for other tools to sign."""
    from databuild.provenance import statement
    from databuild.verify import load_manifest, verify

    if form == "manifest":
        verify(folder, level=1)
        data = load_manifest(folder).to_bytes()
    else:
        data = statement(folder, form)
    typer.echo(data.decode("utf-8"), nl=False)
