"""The recipes that come with the package."""

from __future__ import annotations

import difflib
from pathlib import Path

from databuild.errors import UsageError

FOLDER = Path(__file__).resolve().parent.parent / "recipes"


def shipped_recipes() -> list[Path]:
    """All of them, by name."""
    return sorted(FOLDER.glob("*.yaml"))


def find_recipe(name: str) -> Path:
    """The file of that path, or the shipped recipe of that name. UsageError if there is neither."""
    path = Path(name)
    if path.exists():
        return path
    known = {recipe.stem: recipe for recipe in shipped_recipes()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, 1, 0.5)
    raise UsageError(
        "there is no such recipe",
        where=name,
        expected="a file, or one of " + ", ".join(known),
        next_step=f"did you mean {near[0]}?" if near else None,
    )
