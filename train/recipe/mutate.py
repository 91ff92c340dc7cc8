"""Which numbers of a recipe are proven: each is changed, and a change that no check catches shows one that is not.

So a recipe never looks better checked than it is: what nothing binds is named, whatever file it is.
"""

from __future__ import annotations

import copy
import re
from typing import Any

from pydantic import ValidationError

from manifests.model import Manifest
from train.recipe.check import check_recipe, wrong
from train.recipe.load import Stated, numeric_leaves
from train.recipe.model import Recipe


def mutations(value: int | float) -> list[int | float]:
    """Wrong values near and far: one more, one less, 2 % off, a slipped point, swapped digits, another sign, nothing."""
    values: set[int | float]
    if isinstance(value, int):
        values = {value + 1, value - 1, value + 1000, value * 2, value * 10, value * 100, value // 2, -value, 0}
    else:
        values = {value * 1.02, value * 0.98, value * 2, value * 10, value * 100, value / 2, -value, 0.0}
    swapped = re.sub(r"^(\d)(\.?)(\d)", r"\3\2\1", str(value))
    return sorted((values | {type(value)(swapped)}) - {value})


def outcomes(recipe: Recipe, **given: Any) -> dict[str, list[tuple[int | float, bool]]]:
    """{path of a number: [(wrong value, whether it is caught)]}; given: as check_recipe takes it."""
    content = recipe.model_dump(mode="json")
    return {
        path: [(new, is_caught(replace(content, path, new), **given)) for new in mutations(number)]
        for path, number in numeric_leaves(content).items()
    }


def unproven(
    recipe: Recipe,
    *,
    usd_per_gpu_hour: float | None = None,
    peak_tflops: float | None = None,
    manifest: Manifest | None = None,
) -> dict[str, bool]:
    """{path of a number that some wrong value could replace unnoticed: whether large changes are caught all the same}."""
    given = {"usd_per_gpu_hour": usd_per_gpu_hour, "peak_tflops": peak_tflops, "manifest": manifest}
    return {
        path: any(caught for new, caught in results if new > 0)
        for path, results in outcomes(recipe, **given).items()
        if not all(caught for _, caught in results)
    }


def is_caught(content: dict[str, Any], **given: Any) -> bool:
    """Whether a recipe with this content is refused, or has a wrong figure."""
    try:
        recipe = Recipe.model_validate(content)
    except ValidationError:
        return True
    return bool(wrong(check_recipe(Stated(recipe=recipe, texts=scalar_texts(content)), **given)))


def replace(content: dict[str, Any], path: str, new: int | float) -> dict[str, Any]:
    """The content with another number at the path."""
    result = copy.deepcopy(content)
    *way, last = [int(part) if part.isdigit() else part for part in re.findall(r"[^.\[\]]+", path)]
    place: Any = result
    for part in way:
        place = place[part]
    place[last] = new
    return result


def scalar_texts(value: Any, path: str = "") -> dict[str, str]:
    """What parse_recipe gives beside the recipe, for content that never was text."""
    if isinstance(value, dict):
        parts = [scalar_texts(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()]
    elif isinstance(value, list):
        parts = [scalar_texts(item, f"{path}[{index}]") for index, item in enumerate(value)]
    else:
        return {path: "null" if value is None else str(value)}
    return {key: text for part in parts for key, text in part.items()}
