"""`databuild push`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app, progress_printer, show_result


@app.command(epilog="Example: databuild push rows-demo OWNER/rows-demo --private")
def push(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    repo: Annotated[str, typer.Argument(metavar="OWNER/NAME", help="The dataset; it is made if it is not there.")],
    branch: Annotated[
        str, typer.Option("--branch", "--revision", help="Branch; it is made from main if it is not there.")
    ] = "main",
    private: Annotated[
        bool, typer.Option("--private", help="Make it private; a public one that is there is refused.")
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a card or another build in its place; other files stay.")
    ] = False,
    environment: Annotated[
        bool, typer.Option("--environment", help="Send environment.json too; it names the builder's versions.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Verify, say what would be sent, ask the hub nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the result.")] = False,
) -> None:
    """Upload a build to the hub with its card, verified before and compared after. The token comes from HF_TOKEN."""
    from databuild.share.push import push as run_push

    result = run_push(
        folder, repo, branch=branch, private=private, overwrite=overwrite, environment=environment, dry_run=dry_run,
        say=progress_printer(quiet or as_json),
    )  # fmt: skip
    where = f"{result['repo']}, branch {result['branch']}"
    if dry_run:
        lines = [f"{where}: {len(result['files'])} files, {result['bytes'] / 1e6:,.1f} MB; nothing was sent"]
        lines += [f"  {file['bytes']:>14,}  {file['sha256'][:16]}  {file['path']}" for file in result["files"]]
    elif result["uploaded"] or result["deleted"]:
        lines = [
            f"{where}: {len(result['uploaded'])} files sent; the hub states the digests of all {len(result['files'])}"
        ]
    else:
        lines = [f"{where} holds this build already, the digests are the same; nothing was sent"]
    if not dry_run:
        lines += [f"  rows_sha256  {result['rows_sha256']}", f"  {result['url']}"]
    show_result(result, "\n".join(lines), as_json)
