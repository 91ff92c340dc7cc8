"""`databuild export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from databuild.commands.app import app, progress_printer, set_workers, show_result

To = Literal["miles", "bridge", "megatron", "hf", "olmo", "automodel", "torchtitan"]
Segments = Literal["rows", "documents"]


@app.command(epilog="Example: databuild export rows-demo --to hf --out rows-demo-hf")
def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    to: Annotated[To, typer.Option(help="Who reads it; hf is TRL, axolotl and open-instruct.")],
    segments: Annotated[
        Segments | None,
        typer.Option(help="bridge: a row is one segment, or each conversation of it is one.", show_default="rows"),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory to write.", show_default="./NAME-TO")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace another export, once the new one is whole.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> None:
    """Write the rows of a build as another trainer reads them: the same pairs for all."""
    set_workers(None)
    from databuild.export.make import options_of
    from databuild.export.run import export as run_export

    options = options_of(to, {"segments": segments})
    say = progress_printer(quiet or as_json)
    say(f"proving {folder}, writing it for {to} and reading it back")
    result = run_export(folder, to, options, out, overwrite=overwrite)
    manifest = result.manifest
    value: dict[str, Any] = {
        **manifest.model_dump(by_alias=True),
        "out": str(result.out),
        "existing": result.existing,
        "warnings": result.warnings,
    }
    lines = [f"{result.out} holds this export already (files checked); nothing to do"] if result.existing else []
    lines += [
        f"{result.out}: {manifest.rows:,} rows of {manifest.row_tokens:,} tokens for {manifest.consumer}, "
        f"{manifest.num_targets:,} trained",
        f"  files          {', '.join(f'{file.name} ({file.bytes:,} bytes)' for file in manifest.files)}",
        f"  rows_sha256    {manifest.parent.rows_sha256}",
        f"  pairs_sha256   {manifest.pairs_sha256}",
        *(f"warning: {warning}" for warning in result.warnings),
    ]
    show_result(value, "\n".join(lines), as_json)
