"""The status and what it stands on; measurements and what follows from them."""

from __future__ import annotations

import re
import statistics
from collections import Counter

from train.recipe import derive
from train.recipe.evidence import level
from train.recipe.facts import GPUS
from train.recipe.finding import Findings
from train.recipe.model import Measurement


def check_evidence(findings: Findings) -> None:
    """Add the findings of status and evidence."""
    recipe = findings.context.recipe
    computed, why = level(recipe)
    findings.rule("status", recipe.status == computed, why, stated=recipe.status, computed=computed)
    inputs, known = recipe.evidence.inputs, GPUS.get(recipe.gpu.type)
    if inputs.peak_tflops is not None and known is not None and recipe.workload.precision == "bf16":
        # 989 and 989.5 are both in use: half of 1,979, cut or not.
        near = abs(inputs.peak_tflops / known.peak_bf16_tflops - 1) <= 1e-3
        peak = known.peak_bf16_tflops
        findings.rule("evidence.inputs.peak_tflops", near, known.source, stated=inputs.peak_tflops, computed=peak)
    for number, source in (("peak_tflops", "peak_source"), ("usd_per_gpu_hour", "price_source")):
        if getattr(inputs, number) is not None:
            given = getattr(inputs, source)
            findings.rule(f"evidence.inputs.{source}", given is not None, f"{number} needs its source", stated=given)
    _observed(findings)
    for index, measurement in enumerate(recipe.evidence.measurements):
        _measurement(findings, measurement, f"evidence.measurements[{index}]")


def _observed(findings: Findings) -> None:
    recipe = findings.context.recipe
    seen, result, prefix = recipe.evidence.observed, recipe.result, "evidence.observed"
    if seen is None:
        return
    ends = [m.steps[1] for m in recipe.evidence.measurements if m.steps and m.outcome == "ran"]
    if result is not None and result.steps_per_run is not None:
        findings.figure(f"{prefix}.steps", result.steps_per_run, "result.steps_per_run")
    elif seen.resumed_to_step is None and ends:
        findings.figure(f"{prefix}.steps", max(ends), "the last step that was measured")
    if seen.resumed_to_step is not None:
        findings.figure(f"{prefix}.resumed_to_step", seen.steps, f"{prefix}.steps")
        saved = seen.checkpoint_step
        holds = saved is not None and saved < seen.resumed_to_step
        findings.rule(f"{prefix}.checkpoint_step", holds, "saved before it went on", stated=saved)
    if recipe.workload.row_tokens is not None and seen.row_tokens is not None:
        if seen.row_tokens != recipe.workload.row_tokens:
            findings.warn(
                f"{prefix}.row_tokens", f"no evidence for rows of {recipe.workload.row_tokens}", stated=seen.row_tokens
            )
        else:
            findings.figure(f"{prefix}.row_tokens", recipe.workload.row_tokens, "workload.row_tokens")
    if seen.variants_compared is not None:
        counts = Counter(m.name for m in recipe.evidence.measurements if m.outcome != "rejected")
        findings.figure(
            f"{prefix}.variants_compared", max(counts.values(), default=1), "measurements of the same quantity"
        )


def _measurement(findings: Findings, m: Measurement, prefix: str) -> None:
    recipe = findings.context.recipe
    mean = statistics.fmean(m.values) if m.values else m.mean
    if m.values:
        findings.figure(f"{prefix}.mean", mean, f"sum(values) / {len(m.values)}: {m.name}", name=f"{m.name}_mean")
    if m.baseline is not None and mean:
        findings.figure(f"{prefix}.saved", m.baseline - mean, f"baseline - mean: {m.name}", name=f"{m.name}_saved")
        findings.figure(f"{prefix}.ratio", m.baseline / mean, f"baseline / mean: {m.name}", name=f"{m.name}_ratio")
    else:
        for key in ("saved", "ratio"):
            if getattr(m, key) is not None:
                findings.rule(f"{prefix}.{key}", False, f"{key} needs a baseline", stated=getattr(m, key))
    if m.steps is not None:
        span = m.steps[1] - m.steps[0] + 1
        findings.rule(f"{prefix}.steps", span > 0, "first <= last", stated=m.steps)
        if m.values and len(m.values) > 1:
            findings.rule(f"{prefix}.steps", span == len(m.values), f"{len(m.values)} values", stated=m.steps)
        seen = recipe.evidence.observed
        if seen is not None and m.outcome == "ran":
            findings.rule(
                f"{prefix}.steps", m.steps[1] <= seen.steps, f"within {seen.steps} observed steps", stated=m.steps
            )
    _condition(findings, m, prefix)
    memory = recipe.gpu.memory_gb
    if m.unit == "GiB" and mean and memory is not None and m.outcome == "ran":
        # Makers write GB for what the driver shows as nearly as many GiB, so this bound is a little wide.
        findings.rule(f"{prefix}.mean", mean <= memory, f"a GPU has {memory:g} GB", stated=mean)
    per_rank = recipe.layout.dp * (recipe.layout.rows_per_microbatch or 1)
    if m.rows is not None:
        findings.figure(
            f"{prefix}.micro_batches_per_rank",
            derive.exact(m.rows, per_rank),
            f"rows / (dp * rows_per_microbatch) = {m.rows} / {per_rank}",
            name=f"{m.name}_micro_batches",
        )
    if m.unit == "s" and m.rows and m.row_tokens and mean:
        speed = derive.tokens_per_s_per_gpu(m.rows * m.row_tokens, mean, recipe.gpu.count)
        formula = f"rows * row_tokens / (s * gpus) = {m.rows} * {m.row_tokens} / ({mean} * {recipe.gpu.count})"
        findings.show(f"{m.name}_tokens_per_s_per_gpu", round(speed, 2), formula)


def _condition(findings: Findings, m: Measurement, prefix: str) -> None:
    """Numbers that the condition says in words."""
    if m.steps is not None and (match := re.search(r"steps (\d+) to (\d+)", m.condition)):
        said = [int(match.group(1)), int(match.group(2))]
        findings.rule(f"{prefix}.steps", m.steps == said, f"condition: {match.group()}", stated=m.steps, computed=said)
    if m.row_tokens is not None and (match := re.search(r"rows of (?:about )?([\d,]+) tokens", m.condition)):
        number = int(match.group(1).replace(",", ""))
        findings.rule(
            f"{prefix}.row_tokens",
            m.row_tokens == number,
            f"condition: {match.group()}",
            stated=m.row_tokens,
            computed=number,
        )
