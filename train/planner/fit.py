"""Fit the coefficients of the memory model on some measured peaks and judge it on the others: python -m train.planner.fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from train.planner.memory import GIB, Coefficients, Layout, Memory, Training, memory
from train.planner.presets import of_point, read_points

DIGITS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A measured peak beside what the model says; peaks in GiB."""

    name: str
    use: str
    source: str
    derived: bool
    measured: float
    predicted: Memory

    @property
    def error(self) -> float:
        """(predicted - measured) / measured."""
        return (self.predicted.peak - self.measured) / self.measured


def predict(points: dict[str, Any], coefficients: Coefficients) -> list[Point]:
    """All points of points.yaml with these coefficients."""
    return [
        Point(
            name=p["name"],
            use=p["use"],
            source=p["source"],
            derived=points["models"][p["model"]].get("derived", False),
            measured=float(p["peak"]),
            predicted=_predicted(points["models"][p["model"]], p, coefficients),
        )
        for p in points["points"]
    ]


def _predicted(entry: dict[str, Any], p: dict[str, Any], coefficients: Coefficients) -> Memory:
    model = of_point(entry)
    base = model.training
    training = Training(gradient=base.gradient, optimizer=base.optimizer, recompute=p.get("recompute", base.recompute))
    pp, layers = p.get("pp", 1), len(model.shape.layers)
    layout = Layout(
        gpus=p.get("gpus", 1),
        tp=p.get("tp", 1),
        pp=pp,
        cp=p.get("cp", 1),
        ep=p.get("ep", 1),
        stages=(layers // pp,) * pp,
        sequence_parallel=p.get("sequence_parallel", False),
    )
    batches = layout.micro_batches(p.get("global_batch_size", 4))
    return memory(model.shape, layout, training, p.get("row_tokens", 8192), batches, coefficients)


def fit(points: dict[str, Any]) -> Coefficients:
    """Least squares of the relative errors of the points to fit, rounded to DIGITS; bytes.

    ValueError if a point to fit lies in the other branch of the maximum than the fit takes it for.
    """
    chosen = {**points, "points": [p for p in points["points"] if p["use"] == "fit"]}
    unit = predict(chosen, Coefficients(saved=1, logit=1, working=1))
    rows, rest = [], []
    for point in unit:
        m = point.predicted
        states = m.weights + m.gradients + m.optimizer
        recomputed = m.working > 0
        # Under recompute what is stored is known; what works outweighs the logits (checked below).
        known = states + (m.activations if recomputed else 0.0)
        rows.append([0 if recomputed else m.activations, 0 if recomputed else m.logits, m.working])
        rows[-1] = [x / point.measured for x in rows[-1]]
        rest.append((point.measured - known) / point.measured)
    found, *_ = np.linalg.lstsq(np.asarray(rows), np.asarray(rest), rcond=None)
    saved, logit, working = (round(float(x), DIGITS) for x in found)
    coefficients = Coefficients(saved=saved, logit=logit, working=working)
    for point in predict(chosen, coefficients):
        m = point.predicted
        if m.working and m.working < m.logits:
            raise ValueError(f"{point.name}: logits outweigh the layer at work")
    return coefficients


def report() -> str:
    """Coefficients, and measured beside predicted, as a table."""
    points = read_points()
    found = fit(points)
    lines = [
        f"saved    {found.saved:.2f} bytes per number kept by a layer",
        f"logit    {found.logit:.2f} bytes per logit",
        f"working  {found.working:.2f} bytes per number of a layer computed again",
        "",
        f"{'peak, GiB':<28} {'use':<6} {'measured':>8} {'predicted':>9} {'error':>7}",
    ]
    judged = predict(points, found)
    for p in sorted(judged, key=lambda p: p.use):
        mark = " (shape derived)" if p.derived else ""
        lines.append(
            f"{p.name:<28} {p.use:<6} {p.measured:>8.0f} {p.predicted.peak:>9.1f} {100 * p.error:>+6.1f}%{mark}"
        )
    errors = [abs(p.error) for p in judged if p.use == "judge"]
    lines.append(
        f"held out: median {100 * float(np.median(errors)):.1f} %, mean {100 * float(np.mean(errors)):.1f} %, "
        f"largest {100 * max(errors):.1f} % of {len(errors)} points"
    )
    return "\n".join(lines)


__all__ = ["GIB", "Point", "fit", "predict", "report"]

if __name__ == "__main__":
    print(report())
