"""Figures of the result and of its correctness."""

from __future__ import annotations

import re

from train.recipe import derive
from train.recipe.evidence import (
    MAX_FINAL_DIFFERENCE,
    MAX_POINTWISE_SHARE,
    MIN_CORRELATION,
    convergence_result,
    points_judged,
)
from train.recipe.facts import MODELS
from train.recipe.finding import Findings, half_unit
from train.recipe.model import Result


def check_result(findings: Findings) -> None:
    """Add the findings of result and correctness."""
    result = findings.context.recipe.result
    if result is not None:
        _window(findings, result)
        _speed(findings, result)
        _variation(findings)
        _utilization(findings, result)
        _price(findings, result)
        _gpu_hours(findings, result)
    _convergence(findings)


def window_steps(result: Result) -> int | None:
    """Steps in the window, if it is one."""
    if result.window is None or result.window[1] < result.window[0]:
        return None
    return result.window[1] - result.window[0] + 1


def _window(findings: Findings, result: Result) -> None:
    recipe = findings.context.recipe
    if result.window is None:
        return
    first, last = result.window
    findings.rule("result.window", first <= last, "first <= last", stated=f"{first}..{last}")
    if result.steps_per_run is not None:
        findings.figure("result.window[1]", result.steps_per_run - 1, f"steps_per_run - 1 = {result.steps_per_run} - 1")
    steps, batch, tokens = window_steps(result), recipe.workload.global_batch, recipe.workload.row_tokens
    if steps and batch and tokens:
        formula = f"steps * global_batch * row_tokens = {steps} * {batch} * {tokens}"
        findings.figure("result.window_tokens", steps * batch * tokens, formula)


def window_seconds(findings: Findings) -> tuple[float, str] | None:
    """Seconds of the window, and whether they are measured or follow from the stated tokens/s."""
    recipe = findings.context.recipe
    if recipe.evidence.step_times_s is not None:
        return sum(recipe.evidence.step_times_s), "sum(step_times_s)"
    result = recipe.result
    if result is None or result.tokens_per_s_per_gpu is None or result.window_tokens is None:
        return None
    return result.window_tokens / (
        result.tokens_per_s_per_gpu * recipe.gpu.count
    ), "window_tokens / (tokens/s/GPU * gpus)"


def _speed(findings: Findings, result: Result) -> None:
    recipe, times = findings.context.recipe, findings.context.recipe.evidence.step_times_s
    if times is not None and result.window_tokens is not None:
        seconds, gpus = sum(times), recipe.gpu.count
        formula = f"window_tokens / (sum(step_times_s) * gpus) = {result.window_tokens} / ({seconds:.6g} * {gpus})"
        findings.figure(
            "result.tokens_per_s_per_gpu", derive.tokens_per_s_per_gpu(result.window_tokens, seconds, gpus), formula
        )
        steps = window_steps(result)
        findings.rule("evidence.step_times_s", len(times) == steps, f"{steps} steps in the window", stated=len(times))
    elif result.tokens_per_s_per_gpu is not None:
        findings.unknown(
            "result.tokens_per_s_per_gpu", "no step times; mfu binds it", stated=result.tokens_per_s_per_gpu
        )
    seconds_and_source, steps = window_seconds(findings), window_steps(result)
    if seconds_and_source and steps:
        seconds, source = seconds_and_source
        findings.show("step_time_mean_s", round(seconds / steps, 4), f"{source} / {steps} steps")


def _variation(findings: Findings) -> None:
    """The published schema does not say which ddof: the figure may be either, and both are printed."""
    key, times = "result.step_time_cv_percent", findings.context.recipe.evidence.step_times_s
    stated = findings.context.stated.texts.get(key)
    result = findings.context.recipe.result
    steps = window_steps(result) if result else None
    if times is None:
        if stated not in (None, "null", "~", "") and steps and steps > 1:
            factor = (steps / (steps - 1)) ** 0.5
            findings.unknown(
                key, f"no step times; ddof 1 is {factor:.4f} times ddof 0 over {steps} steps", stated=stated
            )
        return
    for ddof in (0, 1):
        value = derive.variation_percent(times, ddof)
        formula = f"100 * std(step_times_s, ddof={ddof}) / mean(step_times_s)"
        if ddof == 0:
            findings.figure(key, value, formula)
        elif value is not None:
            findings.show("step_time_cv_percent_ddof1", round(value, 4), formula)


def _utilization(findings: Findings, result: Result) -> None:
    recipe, context, known = findings.context.recipe, findings.context, MODELS.get(findings.context.recipe.model)
    if result.active_params is not None and known is not None and known.active_matmul_params is not None:
        findings.figure(
            "result.active_params.count", known.active_matmul_params, f"matrices of {recipe.model}: facts.py"
        )
    speed, count = result.tokens_per_s_per_gpu, result.active_params.count if result.active_params else None
    if speed is None or count is None or context.peak_tflops is None:
        findings.unknown("result.mfu", "tokens/s/GPU, active_params and the peak are needed", stated=result.mfu)
        return
    peak = context.peak_tflops
    value = derive.mfu(count, speed, peak)
    formula = f"6 * N * tokens/s/GPU / peak = 6 * {count} * {speed} / {peak:g}e12, peak: {context.peak_source}"
    findings.figure("result.mfu", value, formula)
    findings.show("model_tflops_per_gpu", round(6 * count * speed / 1e12, 3), "6 * N * tokens/s/GPU")
    for percent in re.findall(r"(\d+(?:\.\d+)?) ?%", result.mfu_note or ""):
        unit = half_unit(percent) or 0.5
        holds = abs(100 * value - float(percent)) <= unit * (1 + 1e-6)
        findings.rule("result.mfu_note", holds, formula, stated=f"{percent} %", computed=round(100 * value, 4))


def _price(findings: Findings, result: Result) -> None:
    key, speed, price = "result.usd_per_million_tokens", result.tokens_per_s_per_gpu, findings.context.usd_per_gpu_hour
    if speed is None:
        return
    if price is not None:
        formula = f"price * 1e6 / (3600 * tokens/s/GPU) = {price} * 1e6 / (3600 * {speed}), price: "
        value = derive.usd_per_million_tokens(price, speed)
        findings.figure(key, value, formula + findings.context.usd_source)
        return
    text = findings.context.stated.texts.get(key)
    if text in (None, "null", "~", ""):
        findings.unknown(key, "no price is given: --price-per-gpu-hour")
        return
    assert text is not None
    half, hour = half_unit(text) or 0.5, 3600 * speed / 1e6
    low, high = (float(text) - half) * hour, (float(text) + half) * hour
    findings.unknown(
        key, f"the price is not in the file; the figure means {low:.4f} to {high:.4f} dollars a GPU-hour", stated=text
    )


def _gpu_hours(findings: Findings, result: Result) -> None:
    recipe, key = findings.context.recipe, "result.gpu_hours"
    if result.gpu_hours is None:
        return
    if recipe.evidence.wall_s is not None:
        formula = f"gpus * wall_s / 3600 = {recipe.gpu.count} * {recipe.evidence.wall_s} / 3600"
        findings.figure(key, derive.gpu_hours(recipe.gpu.count, recipe.evidence.wall_s), formula)
    seconds_and_source, steps = window_seconds(findings), window_steps(result)
    if seconds_and_source is None or steps is None or result.steps_per_run is None:
        return
    mean = seconds_and_source[0] / steps
    # The steps of the window are a part of the run: they bound it. All steps at their mean are an estimate of its training.
    least = derive.gpu_hours(recipe.gpu.count, seconds_and_source[0])
    findings.rule(
        key,
        result.gpu_hours + (half_unit(findings.context.stated.texts[key]) or 0.5) >= least,
        f"at least gpus * seconds of the window / 3600 = {recipe.gpu.count} * {seconds_and_source[0]:.2f} / 3600",
        stated=result.gpu_hours,
        computed=f">= {least:.4g}",
    )
    rest = result.gpu_hours * 3600 / recipe.gpu.count - mean * result.steps_per_run
    formula = f"wall - {result.steps_per_run} steps of {mean:.3f} s: start-up, saving"
    findings.show("seconds_beside_steps", round(rest, 1), formula)
    if rest < 0 and recipe.evidence.wall_s is None:
        findings.rule(
            key, False, "gpu_hours is less than all steps at the mean of the window take", stated=result.gpu_hours
        )


def _convergence(findings: Findings) -> None:
    correctness = findings.context.recipe.correctness
    c = correctness.convergence if correctness else None
    if correctness is None or c is None:
        return
    prefix, result = "correctness.convergence", findings.context.recipe.result
    if result is not None and result.steps_per_run is not None and c.steps is not None:
        findings.figure(f"{prefix}.steps", result.steps_per_run, "result.steps_per_run: the candidate arm is this run")
    outcome = convergence_result(c)
    if outcome is None:
        findings.unknown(f"{prefix}.result", "a figure of the comparison is missing", stated=c.result)
        return
    assert c.steps is not None
    formula = (
        f"correlation >= {MIN_CORRELATION}, final difference <= {MAX_FINAL_DIFFERENCE}, pointwise failures <= "
        f"{MAX_POINTWISE_SHARE} of {points_judged(c.steps)} steps (Megatron-Bridge, pipeline thresholds)"
    )
    findings.rule(f"{prefix}.result", c.result == outcome, formula, stated=c.result, computed=outcome)
    if correctness.result is not None:
        findings.rule(
            "correctness.result", correctness.result == outcome, formula, stated=correctness.result, computed=outcome
        )
