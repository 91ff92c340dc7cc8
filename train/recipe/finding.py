"""A finding: one figure or one rule, what the file says beside what it must be, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from manifests.model import Manifest
from train.recipe.load import Stated
from train.recipe.model import Recipe

Verdict = Literal["right", "wrong", "computed", "unknown", "warning"]
ROUNDING = (
    "a number is right if it is the computed one rounded to the digits that the file prints; whole numbers exactly"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """verdict: right or wrong against the file; computed: the file does not say it; unknown: cannot be computed; warning.

    key: the path in the file, or a name of a figure that has none. formula: with its numbers.
    """

    key: str
    verdict: Verdict
    stated: Any = None
    computed: Any = None
    formula: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the checks read: the recipe, how its scalars are written, and inputs that the reader gave beside it."""

    stated: Stated
    usd_per_gpu_hour: float | None
    usd_source: str
    peak_tflops: float | None
    peak_source: str
    manifest: Manifest | None

    @property
    def recipe(self) -> Recipe:
        """The recipe."""
        return self.stated.recipe


@dataclass(slots=True)
class Findings:
    """Collects findings; figure() decides between right, wrong and computed."""

    context: Context
    items: list[Finding] = field(default_factory=list)

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.items)

    def figure(self, key: str, computed: float | int | None, formula: str, *, name: str | None = None) -> None:
        """A number that the file may state at key. None: the formula gives no number, so a stated one is wrong."""
        text = self.context.stated.texts.get(key)
        stated = None if text in (None, "null", "~", "") else text
        if stated is None:
            verdict: Verdict = "computed" if computed is not None else "unknown"
            self.items.append(Finding(key=name or key, verdict=verdict, computed=computed, formula=formula))
            return
        right = computed is not None and agrees(computed, stated)
        self.items.append(
            Finding(key=key, verdict="right" if right else "wrong", stated=stated, computed=computed, formula=formula)
        )

    def show(self, name: str, computed: Any, formula: str) -> None:
        """A figure that recipes have no key for."""
        self.items.append(Finding(key=name, verdict="computed", computed=computed, formula=formula))

    def rule(self, key: str, holds: bool, formula: str, *, stated: Any = None, computed: Any = None) -> None:
        """Something that must hold of what the file says; computed: what it should be."""
        verdict: Verdict = "right" if holds else "wrong"
        self.items.append(Finding(key=key, verdict=verdict, stated=stated, computed=computed, formula=formula))

    def unknown(self, key: str, why: str, *, stated: Any = None) -> None:
        """A figure that cannot be computed from this file."""
        self.items.append(Finding(key=key, verdict="unknown", stated=stated, formula=why))

    def warn(self, key: str, text: str, *, stated: Any = None) -> None:
        """Something that is not wrong in the file but will bite."""
        self.items.append(Finding(key=key, verdict="warning", stated=stated, formula=text))


def half_unit(text: str) -> float | None:
    """Half of the last digit that a number prints: 0.005 for 2.72; None for a whole number."""
    match = re.fullmatch(r"[-+]?\d+(?:\.(\d*))?(?:[eE]([-+]?\d+))?", text)
    if match is None or (match.group(1) is None and match.group(2) is None):
        return None
    return 0.5 * float(10 ** (int(match.group(2) or 0) - len(match.group(1) or "")))


def agrees(computed: float | int, text: str) -> bool:
    """Whether a printed number is the computed one, rounded; see ROUNDING."""
    unit = half_unit(text)
    if unit is None:
        return computed == int(text)
    # The slack is for sums in another order, far below any digit that is printed.
    return abs(computed - float(text)) <= unit * (1 + 1e-9) + 1e-12 * abs(computed)
