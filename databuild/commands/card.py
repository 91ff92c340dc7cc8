"""`databuild card`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app, progress_printer, show_result


@app.command(epilog="Example: databuild card rows-demo --out dataset-demo")
def card(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    out: Annotated[
        Path | None, typer.Option(help="Directory to write; a new one.", show_default="print the card alone")
    ] = None,
    repo: Annotated[
        str | None, typer.Option(help="OWNER/NAME where it will be published; the commands in the card then name it.")
    ] = None,
    environment: Annotated[
        bool, typer.Option("--environment", help="Take environment.json along; it names the builder's versions.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the result.")] = False,
) -> None:
    """Write a dataset folder for the hub: a card and croissant.json from the manifest, and the build in rows/."""
    from databuild.share.folder import check_repo, dataset_files, write_folder
    from databuild.share.names import CARD_PATH

    name = check_repo(repo) if repo is not None else None
    say = progress_printer(quiet or as_json)
    manifest, files = dataset_files(folder, repo=name, environment=environment, say=say)
    if out is not None:
        write_folder(out, files)
    text = next(f.content for f in files if f.path == CARD_PATH)
    assert isinstance(text, bytes)
    result = {
        "out": None if out is None else str(out),
        "name": manifest.name,
        "rows_sha256": manifest.rows.rows_sha256,
        "files": [file.summary() for file in files],
    }
    shown = text.decode().rstrip("\n") if out is None else f"{out}: {len(files)} files, for load_dataset and the hub"
    show_result(result, shown, as_json)
