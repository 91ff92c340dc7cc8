"""The speed of a run from its curve: step time, tokens/s/GPU and memory over a window, as train.summary defines them."""

from __future__ import annotations

import dataclasses
import statistics
from dataclasses import dataclass
from typing import Any

from train.convergence.curves import Curve
from train.summary import WARMUP_STEPS


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Figures over the steps first to last (0-based, both count); None where the log does not say."""

    first: int
    last: int
    steps: int
    step_time_mean_s: float | None
    step_time_median_s: float | None
    step_time_cv_percent: float | None
    """100 * population standard deviation / mean"""
    tokens_per_s_per_gpu: float | None
    """tokens of the window / (time of the window * GPUs); of all row tokens"""
    peak_gib: float | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self)


def speed(curve: Curve) -> Speed:
    """Figures of all steps but the first five, or but the first half of a short run."""
    start = min(WARMUP_STEPS, len(curve.steps) // 2)
    chosen = range(start, len(curve.steps))
    times = [t for i in chosen if (t := curve.step_time_s[i]) is not None]
    pairs = [
        (t, v)
        for i in chosen
        if (t := curve.step_time_s[i]) is not None and (v := curve.tokens_per_s_per_gpu[i]) is not None
    ]
    mean = statistics.fmean(times) if times else None
    return Speed(
        first=curve.steps[start],
        last=curve.steps[-1],
        steps=len(chosen),
        step_time_mean_s=mean,
        step_time_median_s=statistics.median(times) if times else None,
        step_time_cv_percent=100 * statistics.pstdev(times) / mean if mean else None,
        # Not the mean of the speeds: a slow step counts for as long as it took.
        tokens_per_s_per_gpu=sum(t * v for t, v in pairs) / sum(t for t, _ in pairs) if pairs else None,
        peak_gib=curve.peak_gib,
    )
