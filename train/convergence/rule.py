"""The convergence rule of Megatron-Bridge's performance scripts, and what it leaves out.

Source: scripts/performance/utils/evaluate.py, validate_convergence, and the defaults of its command line. Four checks decide
there: correlation, point-wise tolerance, final loss, outliers. NaN passes all of them, as each comparison with NaN is false,
and curves of different steps are compared as they come; the checks under OWN_CHECKS close that.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """A threshold set. Tolerances are relative to the golden loss; ratios are shares of the points that count."""

    correlation: float = 0.95
    high: float = 0.10
    """where the golden loss is above 2.0"""
    medium: float = 0.05
    """above 0.5"""
    low: float = 0.02
    """the rest"""
    final: float
    outlier_ratio: float = 0.1
    """largest share of points outside their tolerance, and of points outside sigma"""
    sigma: float = 3.0
    skip: float
    """share of the steps left out at the start, rounded down"""


THRESHOLDS = {
    "function": Thresholds(final=0.03, skip=0.0),  # defaults of validate_convergence
    "pipeline": Thresholds(final=0.05, skip=0.20),  # defaults of the command line that calls it
}
BRIDGE_CHECKS = ("correlation", "point_wise_tolerance", "final_loss", "outliers")
OWN_CHECKS = ("equal_length", "equal_steps", "finite", "points", "variance", "golden_positive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one threshold set says of two curves. A metric is None where it cannot be computed.

    failed: names of BRIDGE_CHECKS, then of OWN_CHECKS, in that order. passed: nothing failed.
    """

    thresholds: str
    passed: bool
    failed: tuple[str, ...]
    points: int
    """how many steps count, after those left out"""
    correlation: float | None
    pointwise_failures: int | None
    final_loss_difference: float | None
    """|current - golden| / golden at the last step"""
    outliers: int | None
    max_abs_difference: float | None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return dataclasses.asdict(self) | {"failed": list(self.failed)}


def judge(
    name: str,
    current_steps: Sequence[int],
    current_losses: Sequence[float],
    golden_steps: Sequence[int],
    golden_losses: Sequence[float],
) -> Verdict:
    """Judge a current curve by a golden one with the threshold set of this name."""
    t = THRESHOLDS[name]
    own = []
    if len(current_losses) != len(golden_losses):
        own.append("equal_length")
    if tuple(current_steps) != tuple(golden_steps):
        own.append("equal_steps")
    if "equal_length" in own:
        return _verdict(name, 0, [], own)
    skipped = int(len(current_losses) * t.skip)
    c = np.asarray(current_losses, np.float64)
    g = np.asarray(golden_losses, np.float64)
    if not (np.isfinite(c).all() and np.isfinite(g).all()):
        own.append("finite")
    if len(g) and not (g > 0).all():
        own.append("golden_positive")
    c, g = c[skipped:], g[skipped:]
    if len(c) < 2:
        own.append("points")
    elif bool((c == c[0]).all()) or bool((g == g[0]).all()):
        own.append("variance")
    return _verdict(name, len(c), *_bridge(c, g, t, own))


def _bridge(
    c: npt.NDArray[np.float64], g: npt.NDArray[np.float64], t: Thresholds, own: list[str]
) -> tuple[list[str], list[str], dict[str, Any]]:
    """(failed checks of Bridge, ours, metrics). Without a point to look at Bridge divides by zero; nothing is said then."""
    if not len(c):
        return [], own, {}
    # Not finite and constant curves give NaN all the way, as they do there; ours has refused them by then.
    with np.errstate(all="ignore"):
        correlation = float(np.corrcoef(c, g)[0, 1]) if len(c) > 1 else float("nan")
        tolerance = np.where(g > 2.0, t.high, np.where(g > 0.5, t.medium, t.low))
        relative = np.where(g != 0, np.abs(c - g) / np.abs(np.where(g != 0, g, 1.0)), np.abs(c))
        pointwise = int((relative > tolerance).sum())
        final = float(abs(c[-1] - g[-1]) / g[-1]) if g[-1] != 0 else float(abs(c[-1]))
        residual = c - g
        outliers = int((np.abs(residual - residual.mean()) > t.sigma * residual.std()).sum())
        largest = float(np.abs(residual).max())
    failed = []
    if correlation < t.correlation:
        failed.append("correlation")
    if pointwise / len(c) > t.outlier_ratio:
        failed.append("point_wise_tolerance")
    if final > t.final:
        failed.append("final_loss")
    if outliers / len(c) > t.outlier_ratio:
        failed.append("outliers")
    if not np.isfinite(correlation) and not own:
        own = ["variance"]  # so small or large that the correlation is no number
    metrics = {
        "correlation": correlation if np.isfinite(correlation) else None,
        "pointwise_failures": pointwise,
        "final_loss_difference": final if np.isfinite(final) else None,
        "outliers": outliers,
        "max_abs_difference": largest if np.isfinite(largest) else None,
    }
    return failed, own, metrics


def _verdict(
    name: str, points: int, failed: list[str], own: list[str], metrics: dict[str, Any] | None = None
) -> Verdict:
    values = dict.fromkeys(
        ("correlation", "pointwise_failures", "final_loss_difference", "outliers", "max_abs_difference")
    )
    values |= metrics or {}
    names = (*failed, *(check for check in OWN_CHECKS if check in own))
    return Verdict(thresholds=name, passed=not names, failed=names, points=points, **values)
