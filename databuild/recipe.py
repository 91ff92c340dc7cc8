"""The options of `databuild fixed` -> the user's part of a BuildSpec, checked; and the name of a build."""

from __future__ import annotations

from typing import Any

from databuild.config import check_built
from databuild.errors import UsageError
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
    """Refuse unknown mask types and values that are not built yet."""
    check_built(options)
    if options["loss_mask_type"] not in MASK_TYPES:
        raise UsageError(
            f"--loss-mask-type {options['loss_mask_type']} is not known",
            expected=" | ".join(MASK_TYPES),
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
