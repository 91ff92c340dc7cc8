"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

Mode = Literal["chat", "thinking"]
Separator = Literal["ensure", "always", "none"]
Bos = Literal["keep", "first", "strip"]
Tokens = Literal["literal", "full_vocab"]
OnInvalid = Literal["skip", "error"]
Unanswered = Literal["keep", "trim", "skip"]
Effort = Literal["high", "max"]
Headerless = Literal["reference", "official", "reject"]
History = Literal["whole", "split_turns"]

ModeOption = Annotated[Mode, typer.Option(help="chat: answers alone; thinking: with their reasoning_content.")]
DropThinkingOption = Annotated[
    bool,
    typer.Option(
        "--drop-thinking/--no-drop-thinking", help="Thinking mode: history loses its reasoning, as in serving."
    ),
]
EffortOption = Annotated[Effort | None, typer.Option(help="Thinking mode: max puts its paragraph first.")]
HeaderlessOption = Annotated[
    Headerless,
    typer.Option(
        help="An assistant that follows no user turn: no header (reference), a header (official), or skipped (reject)."
    ),
]
TokensOption = Annotated[Tokens, typer.Option(help="literal: the text of a message never becomes a special token.")]


def _mask_types(incomplete: str) -> list[str]:
    """For the shell: the names that begin so. Imported only when it asks."""
    from masks.policy import MASK_TYPES

    return [name for name in MASK_TYPES if name.startswith(incomplete)]


MaskOption = Annotated[
    str,
    typer.Option(help="Which tokens are trained; masks/README.md shows them all.", autocompletion=_mask_types),
]
FormatOption = Annotated[str, typer.Option("--format", help="The chat format.")]
SourceOption = Annotated[
    list[str],
    typer.Option(
        "--source",
        help="tulu3, demo (built in, no network), hf:NAME[@REV][:SPLIT], or a parquet/JSONL file or a directory of them "
        "(may be repeated).",
        show_default="tulu3",
    ),
]
