"""`databuild encode`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from databuild.commands.app import app
from databuild.commands.options import (
    DropThinkingOption,
    EffortOption,
    FormatOption,
    HeaderlessOption,
    MaskOption,
    ModeOption,
    TokensOption,
)


@app.command(epilog="Example: databuild encode conversations.jsonl | head -1")
def encode(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="One conversation a line.")],
    mode: ModeOption = "chat",
    drop_thinking: DropThinkingOption = False,
    reasoning_effort: EffortOption = None,
    headerless: HeaderlessOption = "reference",
    tokens: TokensOption = "literal",
    loss_mask_type: MaskOption = "deepseek_v4",
    chat_format: FormatOption = "deepseek_v4",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the segments instead, and why each is trained or not.")
    ] = False,
) -> None:
    """Print text, ids and mask of each conversation, as one line of ASCII JSON."""
    from databuild.conversations import encode_file, explain_file
    from databuild.pieces import How
    from databuild.recipe import check_format, check_options
    from masks.options import RenderOptions
    from masks.policy import MASK_TYPES

    check_format(chat_format)
    options = {"mode": mode, "drop_thinking": drop_thinking, "reasoning_effort": reasoning_effort}
    check_options({**options, "loss_mask_type": loss_mask_type})
    how = How(
        mask_type=MASK_TYPES[loss_mask_type],
        options=RenderOptions(
            mode=mode, drop_thinking=drop_thinking, reasoning_effort=reasoning_effort, headerless=headerless
        ),
        full_vocabulary=tokens == "full_vocab",
    )
    if explain:
        from databuild.explain import show_explained

        for line in explain_file(file, how):
            show_explained(line)
        return
    for line in encode_file(file, how):
        typer.echo(json.dumps(line))
