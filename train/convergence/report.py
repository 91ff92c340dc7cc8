"""Two runs compared: both threshold sets, one of which judges, and the words for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from train.convergence.curves import Curve
from train.convergence.perf import Speed, speed
from train.convergence.rule import THRESHOLDS, Verdict, judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """verdicts: by the name of the threshold set; chosen judges. speeds: of (current, golden), or None if not asked."""

    current: Curve
    golden: Curve
    chosen: str
    verdicts: dict[str, Verdict]
    speeds: tuple[Speed, Speed] | None

    @property
    def passed(self) -> bool:
        """What the chosen threshold set says."""
        return self.verdicts[self.chosen].passed

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        runs = (("current", self.current), ("golden", self.golden))
        value: dict[str, Any] = {
            "passed": self.passed,
            "thresholds": self.chosen,
            "verdicts": {name: verdict.as_dict() for name, verdict in self.verdicts.items()},
            **{k: {"name": c.name, "format": c.format, "steps": len(c.steps)} for k, c in runs},
        }
        if self.speeds:
            value["perf"] = {"current": self.speeds[0].as_dict(), "golden": self.speeds[1].as_dict()}
        return value


def compare(current: Curve, golden: Curve, *, thresholds: str = "pipeline", perf: bool = False) -> Comparison:
    """Judge current by golden with every threshold set; thresholds names the one that decides."""
    verdicts = {n: judge(n, current.steps, current.losses, golden.steps, golden.losses) for n in THRESHOLDS}
    return Comparison(
        current=current,
        golden=golden,
        chosen=thresholds,
        verdicts=verdicts,
        speeds=(speed(current), speed(golden)) if perf else None,
    )


def facts(comparison: Comparison) -> list[tuple[str, str]]:
    """What a person reads, as (what, value)."""
    c = comparison
    lines = [
        ("current", f"{c.current.name} ({c.current.format}, {len(c.current.steps)} steps)"),
        ("golden", f"{c.golden.name} ({c.golden.format}, {len(c.golden.steps)} steps)"),
    ]
    for name, v in c.verdicts.items():
        judging = " (judges)" if name == c.chosen else ""
        verdict = "passed" if v.passed else f"FAILED: {', '.join(v.failed)}"
        lines.append((f"{name} thresholds{judging}", verdict))
        if v.correlation is not None or v.pointwise_failures is not None:
            lines.append(
                (
                    f"  {v.points} points",
                    f"correlation {_number(v.correlation, 5)}, final loss difference "
                    f"{_number(v.final_loss_difference, 5)}, {v.pointwise_failures} pointwise failures, "
                    f"{v.outliers} outliers, max difference {_number(v.max_abs_difference, 6)}",
                )
            )
    if c.speeds:
        lines += [(f"  {label}", f"current {a}, golden {b}") for label, a, b in _speed_rows(*c.speeds)]
    return lines


def _speed_rows(current: Speed, golden: Speed) -> list[tuple[str, str, str]]:
    rows = [("window of steps", f"{current.first} to {current.last}", f"{golden.first} to {golden.last}")]
    for label, name, digits in (
        ("step time, mean (s)", "step_time_mean_s", 4),
        ("step time, median (s)", "step_time_median_s", 4),
        ("step time, CV (%, ddof 0)", "step_time_cv_percent", 2),
        ("tokens/s/GPU", "tokens_per_s_per_gpu", 1),
        ("peak memory (GiB)", "peak_gib", 2),
    ):
        rows.append((label, _number(getattr(current, name), digits), _number(getattr(golden, name), digits)))
    return rows


def _number(value: float | None, digits: int) -> str:
    return "not known" if value is None else f"{value:.{digits}f}"
