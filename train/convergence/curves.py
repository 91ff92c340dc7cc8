"""The curve of a run: losses, step times and memory by step, from our metrics.jsonl or the text log of another trainer."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from databuild.errors import UsageError

Format = Literal["databuild", "miles", "megatron"]

_NUMBER = r"([-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN|Infinity))"
_MILES_STEP = re.compile(r"(?:^|\s)step (\d+): \{(.*)\}")
_MILES_PERF = re.compile(r"(?:^|\s)perf (\d+): \{(.*)\}")
_MEGATRON_STEP = re.compile(r"iteration\s+(\d+)/\s*(\d+)")
_MEGATRON = {
    "loss": re.compile(rf"lm loss:\s*{_NUMBER}"),
    "step_time_s": re.compile(rf"elapsed time per iteration \(ms\):\s*{_NUMBER}"),
}
_MEGATRON_MEMORY = re.compile(rf"mem-max-allocated-gigabytes:\s*{_NUMBER}|max allocated:\s*{_NUMBER}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What a run says of each of its steps; all sequences have one entry a step, in order, steps[i] strictly rising.

    steps are 0-based: the loss of step 0 is of the weights before any update. None where a log does not say.
    """

    name: str
    format: Format
    steps: tuple[int, ...]
    losses: tuple[float, ...]
    """may hold NaN and infinities: they are for the rule to refuse"""
    step_time_s: tuple[float | None, ...]
    tokens_per_s_per_gpu: tuple[float | None, ...]
    peak_gib: float | None
    """largest allocation on one GPU; of a text log as it names it (gigabytes of 10^9 bytes turned into GiB)"""


def read_curve(path: str | Path, *, tokens_per_step: int | None = None, gpus: int | None = None) -> Curve:
    """The curve of a run: a RUN folder, its metrics.jsonl, or the text log of miles or Megatron.

    tokens_per_step and gpus give tokens/s/GPU where the log has only step times. UsageError if nothing can be read, a step
    has two different losses, or no step has a loss.
    """
    given = Path(path)
    file = given / "metrics.jsonl" if given.is_dir() else given
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(
            "the run cannot be read",
            where=str(file),
            expected="a RUN folder with metrics.jsonl, or a text log of miles or Megatron",
            found=error.strerror or str(error),
        ) from error
    lines = text.split("\n")
    if text.lstrip().startswith("{") and file.suffix == ".jsonl":
        kind: Format = "databuild"
        rows = _ours(lines, str(file))
    elif any("train/loss" in line for line in lines):
        kind, rows = "miles", _miles(lines, str(file))
    else:
        kind, rows = "megatron", _megatron(lines, str(file))
    if not rows:
        raise UsageError(
            "the file has no steps with a loss",
            where=str(file),
            expected="lines of metrics.jsonl, `step N: {'train/loss': ...}` of miles, or `iteration N/M ... lm loss:`",
            next_step="give the log of the rank that prints the loss",
        )
    return _curve(str(path), kind, rows, tokens_per_step, gpus)


def _curve(
    name: str, kind: Format, rows: Mapping[int, Mapping[str, float]], tokens: int | None, gpus: int | None
) -> Curve:
    steps = tuple(sorted(rows))
    times = tuple(rows[s].get("step_time_s") for s in steps)
    speeds = tuple(rows[s].get("tokens_per_s_per_gpu") for s in steps)
    if tokens and gpus and all(speed is None for speed in speeds):
        speeds = tuple(tokens / (time * gpus) if time else None for time in times)
    peaks = [rows[s]["peak_gib"] for s in steps if rows[s].get("peak_gib") is not None]
    return Curve(
        name=name,
        format=kind,
        steps=steps,
        losses=tuple(rows[s]["loss"] for s in steps),
        step_time_s=times,
        tokens_per_s_per_gpu=speeds,
        peak_gib=max(peaks) if peaks else None,
    )


Rows = dict[int, dict[str, float]]


def _put(rows: Rows, step: int, values: dict[str, float], where: str) -> None:
    """Add what a line says; ranks may print the same line, but never another loss."""
    known = rows.setdefault(step, {})
    if "loss" in known and "loss" in values and not _same(known["loss"], values["loss"]):
        raise UsageError(
            "a step has two different losses",
            where=f"{where}, step {step}",
            found=f"{known['loss']} and {values['loss']}",
            next_step="give the log of one run, without the part before a restart",
        )
    rows[step] = {**known, **values}


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _ours(lines: Iterable[str], where: str) -> Rows:
    """metrics.jsonl counts finished steps, so line `step: 1` is step 0; a last line that was cut off is left out."""
    rows: Rows = {}
    listed = list(lines)
    for number, text in enumerate(listed[:-1], 1):
        try:
            line = json.loads(text)
            values = {"loss": float(line["loss"])}
            for key in ("step_time_s", "tokens_per_s_per_gpu"):
                if line.get(key) is not None and not line.get("profiled"):  # slowed down by the profiler
                    values[key] = float(line[key])
            if line.get("peak_allocated_gib") is not None:
                values["peak_gib"] = float(line["peak_allocated_gib"])
            step = int(line["step"]) - 1
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                "metrics.jsonl holds a line that is not a step", where=f"{where}, line {number}", found=text[:80]
            ) from error
        _put(rows, step, values, where)
    return rows


def _miles(lines: Iterable[str], where: str) -> Rows:
    """`step N: {'train/loss': x, ...}` and `perf N: {'perf/step_time': s, ...}`; N counts from 0."""
    rows: Rows = {}
    extra: dict[int, float] = {}
    for line in lines:
        if match := _MILES_STEP.search(line):
            loss = re.search(rf"'train/loss': {_NUMBER}", match[2])
            if loss:
                _put(rows, int(match[1]), {"loss": float(loss[1])}, where)
        elif match := _MILES_PERF.search(line):
            time = re.search(rf"'perf/step_time': {_NUMBER}", match[2])
            if time:
                extra[int(match[1])] = float(time[1])
    for step, seconds in extra.items():
        if step in rows:
            rows[step]["step_time_s"] = seconds
    return rows


def _megatron(lines: Iterable[str], where: str) -> Rows:
    """`iteration N/M | elapsed time per iteration (ms): t | lm loss: x`: iteration N is step N - 1, as Bridge counts."""
    rows: Rows = {}
    peak: float | None = None
    for line in lines:
        if memory := _MEGATRON_MEMORY.search(line):
            gib = _gib(memory)
            peak = gib if peak is None else max(peak, gib)
        iteration = _MEGATRON_STEP.search(line)
        if iteration is None:
            continue
        loss, time = (_MEGATRON[name].search(line) for name in ("loss", "step_time_s"))
        if loss is None and time is None:
            continue
        # Megatron leaves a loss out that is not >= 0: NaN, most of all.
        values = {"loss": float(loss[1]) if loss else math.nan}
        if time:
            values["step_time_s"] = float(time[1]) / 1000
        _put(rows, int(iteration[1]) - 1, values, where)
    if peak is not None and rows:
        rows[max(rows)]["peak_gib"] = peak
    return rows


def _gib(match: re.Match[str]) -> float:
    """Bridge prints 10^9 bytes, Megatron-LM MiB."""
    if match[1] is not None:
        return float(match[1]) * 1e9 / 2**30
    return float(match[2]) / 1024
