"""Findings and differences as text for people, and as JSON."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from train.recipe.diff import Difference, comparable
from train.recipe.finding import ROUNDING, Finding

ORDER = ("wrong", "warning", "right", "computed", "unknown")
TITLES = {
    "wrong": "wrong",
    "warning": "warnings",
    "right": "right",
    "computed": "computed, and not in the file",
    "unknown": "not computable from the file",
}


def check_text(name: str, findings: Sequence[Finding], taken: Mapping[str, str], *, quiet: bool) -> str:
    """A checked recipe; taken: numbers that nothing proves, with the reason. quiet: wrong figures and warnings alone."""
    counts = Counter(finding.verdict for finding in findings)
    lines = [f"{name}: {counts['right']} right, {counts['wrong']} wrong"]
    lines[0] += f", {counts['warning']} to know" if counts["warning"] else ""
    for verdict in ORDER[:2] if quiet else ORDER:
        chosen = [finding for finding in findings if finding.verdict == verdict]
        if chosen:
            lines.append(f"  {TITLES[verdict]}")
            lines += [f"    {_finding(finding)}" for finding in chosen]
    if not quiet:
        if taken:
            lines.append("  taken as stated")
            lines += [f"    {leaf}: {reason}" for leaf, reason in taken.items()]
        lines.append(f"  rounding: {ROUNDING}")
    return "\n".join(lines)


def _finding(finding: Finding) -> str:
    parts = [finding.key]
    if finding.verdict == "computed":
        parts.append(_value(finding.computed))
    else:
        if finding.stated is not None:
            parts.append(f"file {_value(finding.stated)}")
        if finding.computed is not None:
            parts.append(f"computed {_value(finding.computed)}")
    text = "  ".join(parts)
    return f"{text}  ({finding.formula})" if finding.formula else text


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def check_json(name: str, findings: Sequence[Finding], taken: Mapping[str, str]) -> dict[str, Any]:
    """A checked recipe as one object."""
    counts = Counter(finding.verdict for finding in findings)
    return {
        "recipe": name,
        "right": counts["right"],
        "wrong": counts["wrong"],
        "findings": [dataclasses.asdict(finding) for finding in findings],
        "taken_as_stated": dict(taken),
        "rounding": ROUNDING,
    }


def verdict_text(differences: Sequence[Difference], *, rows_known: bool) -> str:
    """Whether two runs may be compared, in one sentence. rows_known: both name their rows by rows_sha256."""
    kinds = Counter(difference.kind for difference in differences)
    if not comparable(list(differences)):
        keys = [difference.key for difference in differences if difference.kind == "numerics"]
        more = f" and {len(keys) - 5} more" if len(keys) > 5 else ""
        return f"NOT comparable: {len(keys)} settings decide what is computed and differ: {', '.join(keys[:5])}{more}"
    if not rows_known:
        return (
            f"comparable if the rows are the same, which they do not say: {kinds['layout']} settings of layout differ"
        )
    return f"comparable: {kinds['layout']} settings of layout differ, none of numerics"


def diff_text(a: str, b: str, differences: Sequence[Difference], *, rows_known: bool) -> str:
    """Two recipes side by side; what was measured or recorded is counted, not listed."""
    lines = [f"a: {a}", f"b: {b}"]
    for kind in ("numerics", "layout", "neither"):
        chosen = [difference for difference in differences if difference.kind == kind]
        counted = Counter(d.key.partition(".")[0] for d in chosen if d.key.startswith(RECORDS))
        if chosen:
            lines.append(f"  {kind}")
            listed = [d for d in chosen if not d.key.startswith(RECORDS)]
            lines += [f"    {d.key}  a {_short(d.a)}  b {_short(d.b)}  ({d.reason})" for d in listed]
            lines += [f"    {section}: {number} records" for section, number in counted.items()]
    return "\n".join([*lines, verdict_text(differences, rows_known=rows_known)])


RECORDS = ("result", "correctness", "evidence.measurements", "evidence.sources", "evidence.observed")


def _short(value: Any) -> str:
    text = "null" if value is None else _value(value)
    return text if len(text) <= 60 else text[:57] + "..."
