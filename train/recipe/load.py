"""Recipe files: read strictly, written in the order of the schema."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from databuild.errors import UsageError
from train.recipe.model import Recipe
from train.yaml12 import Loader, parse_yaml_scalars

MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A recipe and how its scalars are written: texts by path, `result.window[0]`."""

    recipe: Recipe
    texts: dict[str, str]


def load_recipe(path: Path) -> Stated:
    """Read a recipe. UsageError for a file that cannot be read or is not a recipe, with the key and what it should be."""
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise UsageError("the recipe is too large", where=str(path), expected=f"at most {MAX_BYTES:,} bytes")
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError("the recipe cannot be read", where=str(path), found=reason) from error
    return parse_recipe(text, str(path))


def parse_recipe(text: str, where: str) -> Stated:
    """As load_recipe, of a text."""
    value, texts = parse_yaml_scalars(text, where, "the recipe")
    if not isinstance(value, dict):
        raise UsageError(
            "the recipe is not a mapping",
            where=where,
            expected="schema_version, model, ...",
            found=type(value).__name__,
        )
    try:
        return Stated(recipe=Recipe.model_validate(value), texts=texts)
    except ValidationError as error:
        raise _refusal(error, where) from error


def _refusal(error: ValidationError, where: str) -> UsageError:
    errors = error.errors(include_url=False)
    # A misspelled key is missing under its right name too; what was written says more.
    first = next((e for e in errors if e["type"] == "extra_forbidden"), errors[0])
    key = path_text(first["loc"])
    if first["type"] == "missing":
        return UsageError(
            f"{key} is missing", where=where, next_step=f"write `{key.rpartition('.')[2]}: null` if unknown"
        )
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(first["loc"][-1]), sorted(_all_keys()), 1, 0.6)
        step = f"did you mean {near[0]}?" if near else "train/recipes/README.md has the schema"
        return UsageError(f"there is no key {key}", where=where, next_step=step)
    quotes = (
        "put quotes around it" if first["type"] == "string_type" and isinstance(first["input"], int | float) else None
    )
    return UsageError(
        f"{key} has a value that makes no sense",
        where=where,
        expected=first["msg"],
        found=repr(first["input"])[:200],
        next_step=quotes,
    )


def _all_keys() -> set[str]:
    keys: set[str] = set()

    def walk(schema: Any) -> None:
        for part in schema.get("$defs", {}).values():
            keys.update(part.get("properties", {}))
        keys.update(schema.get("properties", {}))

    walk(Recipe.model_json_schema())
    return keys


def path_text(loc: tuple[int | str, ...]) -> str:
    """('a', 'b', 0) as a.b[0]."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc).lstrip(".")


class _Dumper(yaml.SafeDumper):
    """Quotes what our reader or a YAML 1.1 reader would take for something else than text; blocks for long text."""


_Dumper.yaml_implicit_resolvers = {
    first: [*yaml.SafeDumper.yaml_implicit_resolvers.get(first, []), *Loader.yaml_implicit_resolvers.get(first, [])]
    for first in {*yaml.SafeDumper.yaml_implicit_resolvers, *Loader.yaml_implicit_resolvers}
}


def _text(dumper: Any, value: str) -> Any:
    style = "|" if re.fullmatch(r"(?:[!-~](?:[ -~]*[!-~])?\n| {2,}[!-~](?:[ -~]*[!-~])?\n)+", value) else None
    if style is None and not value.isprintable():
        style = '"'  # PyYAML writes some line ends of Unicode as they are, and reads them as spaces
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _list(dumper: Any, value: list[Any]) -> Any:
    """A list of numbers, or an empty one, on one line."""
    numbers = all(isinstance(item, int | float) for item in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=numbers)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)


def dump_yaml(value: Any) -> str:
    """YAML with the keys in their order."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, width=120, allow_unicode=True, default_flow_style=False
    )
    return text


def dump_recipe(recipe: Recipe) -> str:
    """The recipe as YAML; load_recipe reads it back as it was."""
    value = recipe.model_dump(mode="json")
    for measurement in value["evidence"]["measurements"]:  # keys that may be left out are left out
        for key in [key for key, item in measurement.items() if item is None]:
            del measurement[key]
    return dump_yaml(value)


def numeric_leaves(value: Any, path: str = "") -> dict[str, int | float]:
    """Every number of a parsed recipe by its path; true and false are none."""
    if isinstance(value, dict):
        parts = [numeric_leaves(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()]
    elif isinstance(value, list):
        parts = [numeric_leaves(item, f"{path}[{index}]") for index, item in enumerate(value)]
    else:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return {path: value} if number else {}
    return {key: number for part in parts for key, number in part.items()}
