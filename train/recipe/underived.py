"""Numbers of recipes that no other number proves, each with the reason: what a reader has to take as stated.

mutate.py finds them. For the shipped recipes, and for those that `train card` writes, a test holds the two together: a number
that a wrong value could replace unnoticed must be listed here, and an entry that no number needs any more must go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Underived:
    """recipes, leaf: patterns of fnmatch, of the file's name and of the path, in which [] is any index.

    kind: stated (every other positive value passes), or bounded (large changes are caught, small ones are not).
    """

    recipes: str
    leaf: str
    kind: Literal["stated", "bounded"]
    reason: str


def _measured(recipes: str, leaf: str, reason: str) -> Underived:
    return Underived(recipes=recipes, leaf=f"evidence.measurements[].{leaf}", kind="stated", reason=reason)


def _bounded(recipes: str, leaf: str, reason: str) -> Underived:
    return Underived(recipes=recipes, leaf=leaf, kind="bounded", reason=reason)


H200 = "deepseek-v4-flash-64h200-tp2-pp4-ep8"
UNDERIVED = (
    # The published H200 run: its step times, its price and its log are not in the file.
    Underived(
        recipes=H200,
        leaf="result.usd_per_million_tokens",
        kind="stated",
        reason="the price is not published; with --price-per-gpu-hour it is proven",
    ),
    Underived(
        recipes=H200, leaf="result.step_time_cv_percent", kind="stated", reason="the step times are not published"
    ),
    Underived(recipes=H200, leaf="result.runs", kind="stated", reason="how often it was run is a record, not a result"),
    _bounded(H200, "result.gpu_hours", "the steps bound it from below; the start-up is not published"),
    _bounded(H200, "correctness.convergence.correlation", "the curves are not published; the verdict bounds it"),
    _bounded(
        H200, "correctness.convergence.final_loss_difference", "the curves are not published; the verdict bounds it"
    ),
    _bounded(H200, "correctness.convergence.pointwise_failures", "the curves are not published; the verdict bounds it"),
    # Megatron-Bridge's measurements: no batch of step times or allocator trace stands behind them in the file.
    _bounded("deepseek-v4-flash-128gb200-pp1", "evidence.observed.steps", "a screen has 8 steps at least"),
    _measured(
        "deepseek-v4-flash-128gb200-pp1", "mean", "measured; only the pairs with a saving are bound to each other"
    ),
    _measured("deepseek-v4-flash-128gb200-pp1", "values[]", "measured at early steps, without a mean"),
    _measured("deepseek-v4-flash-128gb200-pp1", "baseline", "measured; no ratio is published"),
    _measured(
        "deepseek-v4-flash-128gb200-pp2", "mean", "measured: TFLOP/s and step time, whose FLOP count is not published"
    ),
    _measured("deepseek-v4-flash-64b200-pp8", "mean", "measured: memory; only the mean of steps has its values"),
    # The V4.1 layouts: measured on the machine.
    _bounded(
        "deepseek-v4.1-flash-16h200-*", "evidence.measurements[].mean", "measured; memory is bound by that of the GPU"
    ),
    _measured("deepseek-v4.1-flash-16h200-*", "baseline", "measured: parity and KL, whose ratio means nothing"),
    # What `train card` writes.
    _bounded(
        "recipe", "workload.dataset.build.supervised_token_ratio", "--rows proves it, or rows.json when it is written"
    ),
    _bounded("recipe", "workload.dataset.build.parquet_bytes", "--rows proves it, or rows.json when it is written"),
    Underived(
        recipes="recipe", leaf="result.runs", kind="stated", reason="how often it was run is a record, not a result"
    ),
    _measured("recipe", "mean", "measured: losses and memory, as metrics.jsonl has them"),
)


def reason_for(recipe: str, leaf: str, *, bounded: bool) -> str:
    """Why nothing proves a number that mutate.unproven has found; recipe: the name of its file without .yaml."""
    entry = entry_for(recipe, leaf)
    if entry is not None:
        return f"{entry.kind}: {entry.reason}"
    return "bounded: only large changes contradict the rest" if bounded else "stated: nothing else in the file binds it"


def entry_for(recipe: str, leaf: str) -> Underived | None:
    """The entry of a number of a shipped recipe; recipe: its file name without .yaml."""
    plain = re.sub(r"\[\d+\]", "@", leaf)
    for entry in UNDERIVED:
        if fnmatchcase(recipe, entry.recipes) and fnmatchcase(plain, entry.leaf.replace("[]", "@")):
            return entry
    return None
