"""What a run has shown, as a level that is computed and never claimed.

unverified   less than a screen
screen       8 steps or more at the recipe's own row length: every loss finite, none skipped, the routing its own
candidate    a screen that was compared: with a reference's loss curve, which passed, or with another setting measured beside it
verified     100 steps or more, saved, resumed from that save, and 5 steps or more after it

Steps at another row length are no evidence: 1K rows show nothing of 8K. A thing that is not known has not been shown, with one
exception: routing counts as its own unless the file says otherwise, because most sources say it only when it is not.
"""

from __future__ import annotations

from train.recipe.model import Convergence, Level, Recipe

SCREEN_STEPS, VERIFIED_STEPS, STEPS_AFTER_RESUME = 8, 100, 5

# The looser value of the two sets that Megatron-Bridge's validate_convergence has, so that neither calls a pass a failure.
MIN_CORRELATION, MAX_FINAL_DIFFERENCE, MAX_POINTWISE_SHARE = 0.95, 0.05, 0.1
PIPELINE_SKIP = 0.2


def level(recipe: Recipe) -> tuple[Level, str]:
    """The level, and the reason that it is no higher."""
    seen, row_tokens = recipe.evidence.observed, recipe.workload.row_tokens
    if seen is None:
        return "unverified", "no steps are known"
    if row_tokens is None or seen.row_tokens != row_tokens:
        return "unverified", f"steps of rows of {seen.row_tokens} tokens show nothing of rows of {row_tokens}"
    if seen.steps < SCREEN_STEPS:
        return "unverified", f"{seen.steps} steps, a screen has {SCREEN_STEPS}"
    if not seen.finite or seen.skipped_steps != 0:
        return "unverified", "not every step is known to be finite and none to be skipped"
    if seen.natural_routing is False:
        return "unverified", "the routing was forced, or dropped tokens"
    saved, resumed = seen.checkpoint_step or 0, seen.resumed_to_step or 0
    if seen.steps >= VERIFIED_STEPS and saved >= VERIFIED_STEPS and resumed >= saved + STEPS_AFTER_RESUME:
        return "verified", f"{seen.steps} steps, saved at {saved}, resumed to {resumed}"
    short = f"verified needs {VERIFIED_STEPS} steps, a save, and {STEPS_AFTER_RESUME} more from it"
    convergence = recipe.correctness.convergence if recipe.correctness else None
    if convergence is not None and convergence_result(convergence) == "pass":
        return "candidate", short
    if (seen.variants_compared or 1) >= 2:
        return "candidate", short
    return "screen", "a candidate is compared with a reference or with another setting"


def points_judged(steps: int) -> int:
    """Steps that are left once the pipeline has dropped the first fifth."""
    return steps - int(steps * PIPELINE_SKIP)


def convergence_result(convergence: Convergence) -> str | None:
    """pass or fail by the three figures a recipe states; None if one is missing."""
    c = convergence
    if c.steps is None or c.correlation is None or c.final_loss_difference is None or c.pointwise_failures is None:
        return None
    passed = (
        c.correlation >= MIN_CORRELATION
        and c.final_loss_difference <= MAX_FINAL_DIFFERENCE
        and c.pointwise_failures <= MAX_POINTWISE_SHARE * points_judged(c.steps)
    )
    return "pass" if passed else "fail"
