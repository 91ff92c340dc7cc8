"""Check a recipe: every derived figure beside what the file says."""

from __future__ import annotations

from manifests.model import Manifest
from train.recipe.checks_evidence import check_evidence
from train.recipe.checks_layout import check_layout
from train.recipe.checks_result import check_result
from train.recipe.checks_run import check_run
from train.recipe.checks_workload import check_workload
from train.recipe.facts import GPUS
from train.recipe.finding import Context, Finding, Findings
from train.recipe.load import Stated
from train.recipe.model import Recipe


def check_recipe(
    stated: Stated,
    *,
    usd_per_gpu_hour: float | None = None,
    peak_tflops: float | None = None,
    manifest: Manifest | None = None,
) -> list[Finding]:
    """All findings of a recipe, in the order of its keys.

    usd_per_gpu_hour, peak_tflops: given by the reader; they go before those of the file, and those before the peak that
    facts.GPUS has for bf16. manifest: of a build that the recipe must describe.
    """
    recipe = stated.recipe
    inputs, known = recipe.evidence.inputs, GPUS.get(recipe.gpu.type)
    peak, peak_source = peak_tflops, "given"
    if peak is None and inputs.peak_tflops is not None:
        peak, peak_source = inputs.peak_tflops, inputs.peak_source or "the file"
    if peak is None and known is not None and recipe.workload.precision == "bf16":
        peak, peak_source = known.peak_bf16_tflops, known.source
    price, price_source = usd_per_gpu_hour, "given"
    if price is None:
        price, price_source = inputs.usd_per_gpu_hour, inputs.price_source or "the file"
    findings = Findings(
        Context(
            stated=stated,
            usd_per_gpu_hour=price,
            usd_source=price_source,
            peak_tflops=peak,
            peak_source=peak_source,
            manifest=manifest,
        )
    )
    for check in (check_evidence, check_layout, check_workload, check_result, check_run):
        check(findings)
    order = list(Recipe.model_fields)
    rank = {key: number for number, key in enumerate(order)}
    return sorted(findings, key=lambda finding: rank.get(finding.key.partition(".")[0].partition("[")[0], len(order)))


def wrong(findings: list[Finding]) -> list[Finding]:
    """The findings that make a recipe wrong."""
    return [finding for finding in findings if finding.verdict == "wrong"]
