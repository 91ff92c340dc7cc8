"""`databuild fixed`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app, set_workers, show_result
from databuild.commands.options import (
    Bos,
    DropThinkingOption,
    EffortOption,
    FormatOption,
    HeaderlessOption,
    History,
    MaskOption,
    ModeOption,
    OnInvalid,
    Separator,
    SourceOption,
    TokensOption,
    Unanswered,
)


@app.command(epilog="Example: databuild fixed --source demo --row-tokens 8192 --seed 42 --out rows-demo")
def fixed(
    source: SourceOption = [],
    row_tokens: Annotated[int, typer.Option(help="Tokens of a row.", min=2, max=1 << 23)] = 8192,
    seed: Annotated[int, typer.Option(help="Seed of the permutation of all conversations.", min=0)] = 42,
    rows: Annotated[
        str | None, typer.Option(help="Stop at this many rows, or 'all'.", show_default="6400 for tulu3, else all")
    ] = None,
    loss_mask_type: MaskOption = "deepseek_v4",
    mode: ModeOption = "chat",
    drop_thinking: DropThinkingOption = False,
    reasoning_effort: EffortOption = None,
    headerless: HeaderlessOption = "reference",
    history: Annotated[
        History, typer.Option(help="split_turns: one example per user turn, each with its own last turn trained.")
    ] = "whole",
    chat_format: FormatOption = "deepseek_v4",
    separator: Annotated[
        Separator,
        typer.Option(help="EOS after a conversation: where it has none of its own, one more always, or none."),
    ] = "ensure",
    bos: Annotated[Bos, typer.Option(help="Which conversations keep their BOS.")] = "keep",
    tokens: TokensOption = "literal",
    on_invalid: Annotated[OnInvalid, typer.Option(help="Count and skip, or stop with exit 4.")] = "skip",
    unanswered: Annotated[Unanswered, typer.Option(help="Conversations that do not end with an assistant.")] = "keep",
    include_source: Annotated[list[str], typer.Option(help="Only these values of the source column.")] = [],
    exclude_source: Annotated[list[str], typer.Option(help="All but these values of the source column.")] = [],
    columns: Annotated[
        str | None,
        typer.Option(
            help="Shape of the records: sharegpt, openmath, alpaca, or pairs such as prompt=question,response=answer."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory to write.", show_default="./NAME")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a build of another spec, once the new one is whole.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Threads; never changes the bytes.", min=1, max=1024, show_default="all cores")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be built, write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    batch_conversations: Annotated[int, typer.Option(hidden=True, min=1)] = 1024,
) -> None:
    """Build rows of fixed length, with their loss masks and a manifest."""
    workers = set_workers(workers)
    from databuild import build as building
    from databuild.config import RunOptions
    from databuild.recipe import check_format, fixed_options, name_of
    from databuild.report_text import build_json, build_text, dry_run_text
    from databuild.sources.columns import parse_columns
    from databuild.sources.open import parse_source

    check_format(chat_format)
    values = source or ["tulu3"]
    mapping = parse_columns(columns)
    request = parse_source(values, mapping)
    options = fixed_options(
        row_tokens=row_tokens, seed=seed, rows=rows, default_rows=6400 if request.short_name == "tulu3" else None,
        loss_mask_type=loss_mask_type, mode=mode, separator=separator, bos=bos, tokens=tokens,
        drop_thinking=drop_thinking, reasoning_effort=reasoning_effort, headerless=headerless, history=history,
        on_invalid=on_invalid, unanswered=unanswered, include_sources=sorted(set(include_source)) or None,
        exclude_sources=sorted(set(exclude_source)), columns=mapping,
    )  # fmt: skip
    name = name_of(request.short_name, row_tokens, seed)
    run = RunOptions(
        out=out if out is not None else Path(name),
        workers=workers,
        batch_conversations=batch_conversations,
        overwrite=overwrite,
        quiet=quiet or as_json,
    )
    if dry_run:
        estimate = building.dry_run(request.open, options, run)
        show_result(estimate, dry_run_text(estimate), as_json)
        return
    result = building.build(request.open, options, run, name=lambda _: name)
    show_result(build_json(result), build_text(result), as_json)
