"""The options of `databuild fixed` -> the user's part of a BuildSpec, checked; and the name of a build."""

from __future__ import annotations

from typing import Any

from databuild.config import BuildSpec
from databuild.errors import UsageError
from databuild.pieces import How
from masks.options import RenderOptions
from masks.policy import MASK_TYPES


def fixed_options(*, rows: str | None, default_rows: int | None, **options: Any) -> dict[str, Any]:
    """BuildSpec fields without tokenizer and sources; UsageError for what makes no sense or is not built yet."""
    check_options(options)
    return {
        **options,
        "rows": default_rows if rows is None else parse_rows(rows),
        "loss_mask_version": MASK_TYPES[options["loss_mask_type"]].version,
    }


def check_options(options: dict[str, Any]) -> None:
    """Refuse unknown mask types, formats that are not built yet, and combinations that make no sense."""
    if options["loss_mask_type"] not in MASK_TYPES:
        raise UsageError(
            f"--loss-mask-type {options['loss_mask_type']} is not known",
            expected=" | ".join(MASK_TYPES),
        )
    thinking = options.get("mode", "chat") == "thinking"
    for key, flag in (("drop_thinking", "--drop-thinking"), ("reasoning_effort", "--reasoning-effort")):
        if options.get(key) and not thinking:
            raise UsageError(f"{flag} is for --mode thinking; in chat mode there is no reasoning")
    if options.get("history") == "split_turns" and not (thinking and options.get("drop_thinking")):
        raise UsageError(
            "--history split_turns is for --mode thinking --drop-thinking: only there does history lose its reasoning",
            next_step="leave it out: the whole conversation is one example and every turn of it can be trained",
        )


def check_format(name: str) -> None:
    """Refuse formats other than deepseek_v4."""
    if name in ("deepseek_v41", "deepseek_v4.1", "deepseek_v4_1"):
        raise UsageError(
            "--format deepseek_v41 is not built yet: V4.1 is another format with another tokenizer",
            expected="deepseek_v4",
            next_step="the format is part of every spec, so builds of it will be told apart",
        )
    if name != "deepseek_v4":
        raise UsageError(f"--format {name} is not known", expected="deepseek_v4")


def how_of(spec: BuildSpec, *, plain_way: bool = True) -> How:
    """What a spec says about rendering and masks."""
    return How(
        mask_type=MASK_TYPES[spec.loss_mask_type],
        options=RenderOptions(
            mode=spec.mode,
            drop_thinking=spec.drop_thinking,
            reasoning_effort=spec.reasoning_effort,
            headerless=spec.headerless,
            history=spec.history,
            unanswered=spec.unanswered,
        ),
        full_vocabulary=spec.tokens == "full_vocab",
        plain_way=plain_way,
    )


def parse_rows(text: str) -> int | None:
    """A number of rows, or None for 'all'."""
    if text == "all":
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19) or int(text) < 1:
        raise UsageError(f"--rows {text} is not a number of rows", expected="a whole number from 1 on, or 'all'")
    return int(text)


def name_of(source: str, row_tokens: int, seed: int) -> str:
    """The name of a build; it is its default directory too."""
    return f"dsv4-{source}-fixed{row_tokens}-seed{seed}"
