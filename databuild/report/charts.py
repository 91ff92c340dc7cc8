"""Charts as inline SVG, drawn by matplotlib: the same numbers, the same bytes. Colours and fonts come from the page."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.errors import UsageError
from databuild.inspect.text import printable
from databuild.page import escape

# Colours that are drawn with, and what the page puts in their place: so a chart follows light and dark.
_COLOURS = {"#010101": "var(--ink)", "#020202": "var(--c1)", "#030303": "var(--c2)", "#040404": "var(--line)"}
_INK, _ONE, _TWO, _LINE = _COLOURS

_STYLE = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "databuild",
    "font.family": ["DejaVu Sans"],  # comes with matplotlib, so the layout is the same everywhere
    "font.size": 10.0,
    "text.parse_math": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "axes.edgecolor": _INK,
    "axes.labelcolor": _INK,
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
}


def require_matplotlib() -> None:
    """UsageError, with what to install, where matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "a report draws with matplotlib, which is not installed",
            found=str(error),
            next_step="pip install matplotlib (the extra `report`)",
        ) from error


def bars(name: str, title: str, labels: Sequence[str], values: Sequence[float], *, unit: str, share: bool) -> str:
    """Horizontal bars, one a label, each with its value; share: values are 0 to 1, shown in percent."""
    require_matplotlib()
    from matplotlib.ticker import MaxNLocator

    def draw(axes: Any) -> None:
        places = np.arange(len(values))
        axes.barh(places, values, color=_ONE, height=0.7)
        axes.set_yticks(places, labels=[_short(label) for label in labels])
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set_xlim(0, 1.15 if share else (max(values, default=0) or 1) * 1.22)
        if share:
            axes.set_xticks([0, 0.25, 0.5, 0.75, 1], labels=["0%", "25%", "50%", "75%", "100%"])
        else:
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
            axes.xaxis.set_major_formatter(_thousands)
        axes.set_xlabel(unit)
        for place, value in zip(places, values, strict=True):
            shown = f"{value:.0%}" if share else f"{value:,.0f}"
            axes.annotate(shown, (value, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=9)

    return _svg(name, title, draw, height=0.9 + 0.26 * max(2, len(values)))


def histogram(
    name: str, title: str, edges: npt.NDArray[Any], counts: npt.NDArray[Any], *, x: str, y: str, log: bool = False
) -> str:
    """Counts between edges."""

    def draw(axes: Any) -> None:
        axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=_ONE, edgecolor=_ONE, linewidth=0.2)
        if log:
            axes.set_xscale("log")
            ticks = [t for t in (1, 10, 100, 1000, 10_000, 100_000, 1_000_000) if edges[0] <= t <= edges[-1]]
            axes.set_xticks(ticks, labels=[f"{t:,}" for t in ticks])
            axes.minorticks_off()
        axes.set_xlim(edges[0], edges[-1])
        axes.yaxis.set_major_formatter(_thousands)
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    return _svg(name, title, draw)


def band(
    name: str,
    title: str,
    places: npt.NDArray[Any],
    low: npt.NDArray[Any],
    mean: npt.NDArray[Any],
    high: npt.NDArray[Any],
    *,
    x: str,
    y: str,
) -> str:
    """A line within the band of the lowest and highest value."""

    def draw(axes: Any) -> None:
        axes.fill_between(places, low, high, color=_ONE, alpha=0.25, linewidth=0)
        axes.plot(places, mean, color=_TWO, linewidth=1.6)
        axes.set_ylim(0, 1)
        axes.margins(x=0)
        axes.xaxis.set_major_formatter(_thousands)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 1], labels=["0%", "25%", "50%", "75%", "100%"])
        axes.set_xlabel(x)
        axes.set_ylabel(y)

    return _svg(name, title, draw)


def _svg(name: str, title: str, draw: Callable[[Any], None], *, height: float = 2.9) -> str:
    require_matplotlib()
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    buffer = io.StringIO()
    # The user's own matplotlibrc must not reach the bytes; labels may have characters that the font has not.
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matplotlib.rcParams.update(matplotlib.rcParamsDefault)
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(figsize=(4.8, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure.subplots())
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(buffer.getvalue(), name, title)


def _inline(svg: str, name: str, title: str) -> str:
    """The drawing for use inside a page: no prologue, no fixed size, names of its own, colours of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    head, body = svg.split(">", 1)
    box = re.search(r'viewBox="([^"]*)"', head)
    assert box is not None, "an SVG has a view box"
    # Only inside tags: what stands between them is a label, and stays as it is.
    body = re.sub(r"<[^>]*>", lambda tag: _restyled(tag.group(), name), body)
    body = re.sub(r"\s*\n\s*", "\n", body)
    return (
        f'<svg role="img" aria-labelledby="{name}-t" viewBox="{box.group(1)}" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{name}-t">{escape(title)}</title>{body.strip()}'
    )


def _restyled(tag: str, name: str) -> str:
    tag = re.sub(r'\bid="', f'id="{name}-', tag)
    tag = tag.replace("url(#", f"url(#{name}-").replace('xlink:href="#', f'href="#{name}-')
    tag = re.sub(r"font-family: [^;\"]*;? ?|font-style: [^;\"]*;? ?", "", tag)
    for drawn, shown in _COLOURS.items():
        tag = tag.replace(drawn, shown)
    return tag


def _thousands(value: float, _: int) -> str:
    return f"{value:,.0f}"


def _short(label: str) -> str:
    shown = " ".join(printable(label).split())
    return shown if len(shown) <= 26 else shown[:12] + "…" + shown[-13:]
