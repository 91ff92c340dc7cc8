"""Two loss curves as a picture: one HTML file with an inline SVG and nothing from the network, or a PNG by matplotlib."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from databuild.errors import OutputError, UsageError
from train.convergence.curves import Curve

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 860, 420, 64, 44, 16, 16
COLOURS = ("#1f6feb", "#d1651b")
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:900px;margin:24px auto;padding:0 16px;color:#222}"
    "table{border-collapse:collapse}td,th{padding:2px 12px 2px 0;text-align:left}"
    "text{font:12px system-ui,sans-serif;fill:#444}"
)


def write_plot(path: Path, curves: Sequence[Curve], names: Sequence[str], facts: Sequence[tuple[str, str]]) -> None:
    """Write curves (at most two) to path: .html or .png. facts: lines of (what, value) under the picture.

    UsageError for another suffix or for PNG without matplotlib, OutputError if the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in (".html", ".png"):
        raise UsageError("a plot is .html or .png", where=str(path), found=suffix or "no suffix")
    try:
        if suffix == ".html":
            path.write_text(as_html(curves, names, facts), encoding="utf-8")
        else:
            _write_png(path, curves, names)
    except OSError as error:
        raise OutputError("the plot cannot be written", where=str(path), found=error.strerror or str(error)) from error


def as_html(curves: Sequence[Curve], names: Sequence[str], facts: Sequence[tuple[str, str]]) -> str:
    """The whole page."""
    rows = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in facts)
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Loss curves</title>'
        f"<style>{_STYLE}</style>\n<h1>Loss curves</h1>\n{as_svg(curves, names)}\n<table>{rows}</table></html>\n"
    )


def as_svg(curves: Sequence[Curve], names: Sequence[str]) -> str:
    """Both curves in one picture, the second dashed; points that are no numbers are left out and break the line."""
    points = [(s, v) for curve in curves for s, v in zip(curve.steps, curve.losses, strict=True) if math.isfinite(v)]
    low_x, high_x = _span([x for x, _ in points] or [0])
    low_y, high_y = _span([y for _, y in points] or [0])

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (x - low_x) / (high_x - low_x) * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - (y - low_y) / (high_y - low_y) * (HEIGHT - BOTTOM - TOP)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="loss by step">'
    ]
    for i in range(5):
        value = low_y + i * (high_y - low_y) / 4
        _, y = place(low_x, value)
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:.4g}</text>')
        step = low_x + i * (high_x - low_x) / 4
        x, _ = place(step, low_y)
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{step:.4g}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 6}" text-anchor="middle">step</text>')
    for i, (curve, name) in enumerate(zip(curves, names, strict=True)):
        dash = ' stroke-dasharray="6 4"' if i else ""
        for run in _runs(curve):
            line = " ".join("{:.2f},{:.2f}".format(*place(x, y)) for x, y in run)
            parts.append(
                f'<polyline points="{line}" fill="none" stroke="{COLOURS[i]}" stroke-width="2"{dash} '
                'stroke-linecap="round"/>'
            )
        at = TOP + 14 + 18 * i
        parts.append(
            f'<line x1="{WIDTH - 320}" y1="{at - 4}" x2="{WIDTH - 290}" y2="{at - 4}" stroke="{COLOURS[i]}" '
            f'stroke-width="2"{dash}/><text x="{WIDTH - 282}" y="{at}">{html.escape(name)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _runs(curve: Curve) -> list[list[tuple[float, float]]]:
    """The pieces of a curve between points that are no numbers."""
    runs: list[list[tuple[float, float]]] = [[]]
    for step, loss in zip(curve.steps, curve.losses, strict=True):
        if math.isfinite(loss):
            runs[-1].append((step, loss))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _write_png(path: Path, curves: Sequence[Curve], names: Sequence[str]) -> None:
    try:
        backend, figures = (import_module(f"matplotlib.{name}") for name in ("backends.backend_agg", "figure"))
    except ImportError as error:
        raise UsageError(
            "a PNG needs matplotlib",
            where=str(path),
            next_step="pip install 'databuild[report]' or matplotlib, or give a name that ends in .html, which needs nothing",
        ) from error
    figure = figures.Figure(figsize=(9, 4.5), layout="constrained")
    backend.FigureCanvasAgg(figure)
    axes = figure.subplots()
    for i, (curve, name) in enumerate(zip(curves, names, strict=True)):
        axes.plot(curve.steps, curve.losses, label=name, color=COLOURS[i], linestyle="--" if i else "-")
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=140, metadata={"Software": None})
