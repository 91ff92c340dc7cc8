"""The figures of a run from its step lines: each with its formula and its inputs, so that anyone can compute it again."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from train.config import TrainConfig
from train.flops import (
    FORMULA_6N,
    FORMULA_WITH_ATTENTION,
    attention_flops_per_token,
    mfu_6n,
    mfu_with_attention,
    parameter_counts,
)

Line = Mapping[str, Any]
WARMUP_STEPS = 5


def default_window(lines: Sequence[Line]) -> tuple[int, int] | None:
    """(first, last) step to measure: all but the first five, or but the first half of a short run; None without steps.

    A profiled step says nothing of the speed: of the steps before and after it the longer stretch is taken.
    """
    if not lines:
        return None
    stretches: list[list[int]] = [[]]
    for line in lines[min(WARMUP_STEPS, len(lines) // 2) :]:
        if line.get("profiled"):
            stretches.append([])
        else:
            stretches[-1].append(line["step"])
    longest = max(stretches, key=len)
    return (longest[0], longest[-1]) if longest else (lines[-1]["step"], lines[-1]["step"])


def summarize(
    lines: Sequence[Line],
    config: TrainConfig,
    *,
    num_gpus: int,
    wall_s: float,
    window: tuple[int, int] | None = None,
    attention_flops: float | None = None,
) -> dict[str, Any]:
    """The figures of the steps in window (first, last; both count), and of the whole process.

    lines: of metrics.jsonl, in order. wall_s: seconds from the start of the process to its end. attention_flops: per token,
    for attention: document, where they depend on the rows. A figure whose inputs are not there has the value null.
    """
    window = window or default_window(lines)
    chosen = [line for line in lines if window and window[0] <= line["step"] <= window[1]]
    times = [float(line["step_time_s"]) for line in chosen]
    tokens, seconds = sum(line["tokens"] for line in chosen), sum(times)
    speed = tokens / (seconds * num_gpus) if chosen else None
    figures = {
        "step_time_mean_s": figure(
            seconds / len(times) if times else None, "sum(step_time_s) / steps", steps=len(times)
        ),
        "step_time_cv_percent_ddof0": _variation(times, 0),
        "step_time_cv_percent_ddof1": _variation(times, 1),
        "tokens_per_s_per_gpu": figure(
            speed,
            "window_tokens / (sum(step_time_s) * gpus); all row tokens, trained or not",
            window_tokens=tokens,
            step_time_sum_s=seconds,
            gpus=num_gpus,
        ),
        **_utilization(config, speed, attention_flops),
        "gpu_hours": figure(
            num_gpus * wall_s / 3600, "gpus * wall_s / 3600; start-up and saving included", gpus=num_gpus, wall_s=wall_s
        ),
        "usd_per_million_tokens": _price(config.price_per_gpu_hour, speed),
    }
    return {
        "steps": len(lines),
        "window": list(window) if window else None,
        "first_loss": lines[0]["loss"] if lines else None,
        "final_loss": lines[-1]["loss"] if lines else None,
        "parameters": dataclasses.asdict(parameter_counts(config)),
        "figures": figures,
    }


def figure(value: float | None, formula: str, **inputs: Any) -> dict[str, Any]:
    """A figure with what it was computed from."""
    return {"value": value, "formula": formula, "inputs": inputs}


def _variation(times: Sequence[float], ddof: int) -> dict[str, Any]:
    value = None
    if len(times) > ddof:
        deviation = statistics.stdev(times) if ddof else statistics.pstdev(times)
        value = 100 * deviation / statistics.fmean(times)
    return figure(value, "100 * std(step_time_s, ddof) / mean(step_time_s)", ddof=ddof, steps=len(times))


def _utilization(config: TrainConfig, speed: float | None, attention_flops: float | None) -> dict[str, Any]:
    counts, peak = parameter_counts(config), config.peak_tflops
    if attention_flops is None and config.attention == "causal_row":
        attention_flops = attention_flops_per_token(config)
    plain = whole = None
    if speed is not None and peak is not None:
        plain = mfu_6n(config, speed, peak)
        if attention_flops is not None:
            whole = mfu_with_attention(config, speed, peak, attention_flops)
    known = {"tokens_per_s_per_gpu": speed, "peak_tflops": peak}
    return {
        "mfu_6n": figure(plain, FORMULA_6N, matmul_parameters=counts.matmul, **known),
        "mfu_with_attention": figure(
            whole,
            FORMULA_WITH_ATTENTION,
            matmul_parameters_with_mtp=counts.matmul_with_mtp,
            attention_flops_per_token=attention_flops,
            **known,
        ),
    }


def _price(price: float | None, speed: float | None) -> dict[str, Any]:
    value = price * 1e6 / (3600 * speed) if price is not None and speed else None
    formula = "price_per_gpu_hour * 1e6 / (3600 * tokens_per_s_per_gpu)"
    return figure(value, formula, price_per_gpu_hour=price, tokens_per_s_per_gpu=speed)
