"""`python -m train launch`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from train.commands.app import app, show_result

Engine = Literal["megatron", "miles", "bridge"]


@app.command(
    epilog="Exit code 0: done, or written and not to be started here; 1: a check failed; else that of the run. "
    "Example: python -m train launch recipe.yaml --rows rows-demo --engine miles --dry-run"
)
def launch(
    recipe: Annotated[Path, typer.Argument(metavar="RECIPE", help="A recipe in the published schema.")],
    rows: Annotated[Path, typer.Option(metavar="DIR", help="A build.")],
    engine: Annotated[Engine, typer.Option(help="Who trains; megatron is train.sft.")],
    slurm: Annotated[bool, typer.Option("--slurm", help="A job script for sbatch.")] = False,
    torchrun: Annotated[bool, typer.Option("--torchrun", help="torchrun, here or on every node.")] = False,
    ray: Annotated[bool, typer.Option("--ray", help="A job of a Ray cluster (miles).")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="RUN", help="Folder of the run.", show_default="./RECIPE-ENGINE")
    ] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="megatron: the model's sizes.")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="DIR", help="Weights to start from, as the engine reads them.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model for the memory plan, if the recipe's is no preset.")] = None,
    other_rows: Annotated[
        bool, typer.Option("--other-rows", help="Rows that are not the recipe's, on purpose.")
    ] = False,
    any_memory: Annotated[bool, typer.Option("--any-memory", help="Start although the plan does not fit.")] = False,
    cpu: Annotated[bool, typer.Option("--cpu", help="megatron: on the CPU, for trials.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and print the script; write and start nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --dry-run: one JSON object on stdout.")] = False,
) -> None:
    """Check a recipe against a build and this machine, make the export its engine reads, write its script and start it."""
    from databuild.errors import UsageError
    from train.launch.start import Wish, can_start, make_export, prepare, start, write_script

    chosen = [name for name, given in (("slurm", slurm), ("torchrun", torchrun), ("ray", ray)) if given]
    if len(chosen) > 1:
        raise UsageError("--slurm, --torchrun and --ray exclude each other")
    if as_json and not dry_run:
        raise UsageError("--json goes with --dry-run")
    wish = Wish(
        recipe=recipe,
        rows=rows,
        engine=engine,
        launcher=chosen[0] if chosen else None,
        out=out or Path(f"{recipe.stem}-{engine}"),
        config=config,
        checkpoint=checkpoint,
        model=model,
        other_rows=other_rows,
        any_memory=any_memory,
        cpu=cpu,
    )
    prepared = prepare(wish)
    width = max(len(c.name) for c in prepared.checks)
    table = "\n".join(f"{c.state}  {c.name:<{width}}  {c.reason}" for c in prepared.checks)
    if dry_run:
        note = f"\n# export: databuild export {rows} --to {engine} --out {prepared.export}" if prepared.export else ""
        show_result(prepared.as_dict(), f"{table}\n{note}\n{prepared.script}".rstrip("\n"), as_json)
        raise typer.Exit(0 if prepared.ready else 1)

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    say(table)
    if not prepared.ready:
        say("not started: a check failed")
        raise typer.Exit(1)
    if prepared.export is not None:
        make_export(wish, prepared.export, say)
    script = write_script(wish.out, wish.engine, prepared.script)
    say(f"script: {script}")
    if reason := can_start(wish, prepared):
        say(f"not started from here: {reason}")
        return
    raise typer.Exit(start(wish, prepared, script))
