"""Text in columns."""

from __future__ import annotations


def as_table(pairs: list[tuple[str, str]]) -> str:
    """Lines of `what  value`, the values under each other."""
    width = max((len(what) for what, _ in pairs), default=0)
    return "\n".join(f"{what:<{width}}  {value}" for what, value in pairs)
