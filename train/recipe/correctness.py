"""Why the numbers of a run may be believed: its loss curve and its first log-probabilities beside those of a golden run."""

from __future__ import annotations

from typing import Any

from databuild.errors import UsageError
from train.convergence.parity import FILE as LOGPROBS
from train.convergence.parity import parity, read_dump
from train.convergence.rule import judge
from train.recipe.diff import diff_recipes, rows_known
from train.recipe.evidence import convergence_result
from train.recipe.model import Convergence, Correctness, Recipe
from train.recipe.run_files import RunFiles


def correctness_of(run: RunFiles, recipe: Recipe, golden: RunFiles, golden_recipe: Recipe) -> Correctness:
    """The correctness section of a run's recipe. UsageError where the two runs are not to be compared."""
    numerics = [d for d in diff_recipes(recipe, golden_recipe) if d.kind == "numerics"]
    if numerics or not rows_known(recipe, golden_recipe):
        first = numerics[0] if numerics else None
        raise UsageError(
            "the golden run is not comparable with this one",
            where=f"{run.folder}, {golden.folder}",
            expected=f"{first.key} {first.b}" if first else "rows that both runs name",
            found=f"{first.key} {first.a}: {first.reason}" if first else "no rows.json",
        )
    verdict = judge("pipeline", *_curve(run), *_curve(golden))
    convergence = Convergence(
        steps=len(run.lines),
        result=None,
        correlation=_rounded(verdict.correlation),
        final_loss_difference=_rounded(verdict.final_loss_difference),
        pointwise_failures=verdict.pointwise_failures,
        note=f"{verdict.points} points after the first fifth; largest difference {verdict.max_abs_difference}",
    )
    result: Any = "fail" if not verdict.passed else convergence_result(convergence)
    convergence = convergence.model_copy(update={"result": result})
    return Correctness(
        result=result,
        summary="the loss curve against that of the same configuration and rows in the reference layout",
        reference=golden_recipe.layout.label,
        configuration="no setting that is numerics differs: train/recipe/diff.py",
        component_tests=_parity(run, golden),
        convergence=convergence,
        rules="Megatron-Bridge's validate_convergence, pipeline thresholds, and what it leaves out: train/convergence/rule.py",
    )


def _curve(run: RunFiles) -> tuple[list[int], list[float]]:
    return [line["step"] for line in run.lines], [line["loss"] for line in run.lines]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 8)


def _parity(run: RunFiles, golden: RunFiles) -> str | None:
    if not all((side.folder / LOGPROBS).is_file() for side in (run, golden)):
        return None
    found = parity(read_dump(run.folder), read_dump(golden.folder))
    return f"step 0: mean |difference of the log-probability| {found.mean:.3e} nats over {found.num_targets} targets"
