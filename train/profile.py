"""What bounds a training step, from a torch profiler trace: launches, idle time, communication, uneven experts.

Reads the Chrome trace that `torch.profiler.profile(...).export_chrome_trace` writes (times in microseconds); no torch needed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from databuild.errors import SourceError

Interval = tuple[float, float]

KERNEL = "kernel"
DEVICE_WORK = (KERNEL, "gpu_memcpy", "gpu_memset")
STEP_NAME = "ProfilerStep#"

IDLE_SHARE = 0.3  # of the window: above it the GPU waits for the host
LAUNCH_US = 20.0  # of host time for a kernel that PyTorch launches, backward and Python included: 20 to 50 seen
COMMUNICATION_SHARE = 0.2  # of the window, with nothing else running
IMBALANCE = 1.5  # largest over mean load of the experts of a layer


def load_trace(path: str | Path) -> dict[str, Any]:
    """A trace file, plain or .gz. SourceError if it is none."""
    file = Path(path)
    try:
        raw = file.read_bytes()
        trace = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (OSError, EOFError, ValueError) as error:
        reason = str(error) or type(error).__name__
        raise SourceError("the trace cannot be read", where=str(file), found=reason.splitlines()[0]) from error
    if not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise SourceError("this is no trace of torch.profiler", where=str(file), expected="an object with traceEvents")
    return trace


def bound_by(
    trace: Mapping[str, Any] | str | Path,
    *,
    expert_load: Mapping[str, Sequence[float]] | None = None,
    window: Interval | None = None,
    step_time_s: float | None = None,
) -> dict[str, Any]:
    """What a step waits for: figures of the window, `bound_by` as one word, and `sentence` for a person.

    window: (start, end) in microseconds; else from the first to the last ProfilerStep, else all work of the GPU.
    Shares are of the window, averaged over the GPUs in the trace. step_time_s: how long the step takes without the profiler,
    which makes the host slower and not the GPU; where it is shorter than the window, shares are of it. expert_load: for
    each layer, tokens of each expert.
    SourceError if the trace has no work of a GPU in the window.
    """
    if isinstance(trace, (str, Path)):
        trace = load_trace(trace)
    events = [event for event in trace["traceEvents"] if event.get("ph") == "X" and "dur" in event]
    work = [event for event in events if event.get("cat") in DEVICE_WORK]
    span = window or _step_window(events) or _hull(map(_interval, work))
    inside = [event for event in work if clip([_interval(event)], span)] if span else []
    if span is None or not inside:
        raise SourceError(
            "the trace has no work of a GPU" + (" in the window" if work else ""),
            next_step="profile with ProfilerActivity.CUDA, at least one whole step",
        )
    whole = span[1] - span[0]
    if step_time_s is not None:
        whole = min(whole, step_time_s * 1e6)
    shares = [
        _shares([e for e in inside if _device(e) == device], span, whole)
        for device in sorted(set(map(_device, inside)))
    ]
    idle, communication, exposed = (sum(values) / len(shares) for values in zip(*shares, strict=True))
    kernels = [event for event in inside if event["cat"] == KERNEL]
    mean_us = sum(event["dur"] for event in kernels) / len(kernels) if kernels else 0.0
    imbalance = {name: load_imbalance(load) for name, load in (expert_load or {}).items()}
    figures = {
        "window_us": span[1] - span[0],
        "step_us": whole,
        "gpus": len(shares),
        "kernel_launches": len(kernels),
        "kernel_mean_us": mean_us,
        "idle_share": idle,
        "communication_share": communication,
        "exposed_communication_share": exposed,
        "expert_imbalance": imbalance,
    }
    name, sentence = _verdict(len(kernels) / len(shares), mean_us, idle * whole, idle, exposed, imbalance)
    return {"bound_by": name, "sentence": sentence, **figures}


def load_imbalance(load: Sequence[float]) -> float:
    """Largest over mean load of the experts of a layer: 1 is even. 1 for a layer that got nothing."""
    total = sum(load)
    return max(load) * len(load) / total if total else 1.0


def merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The union of intervals as intervals that do not touch, in order; empty ones vanish."""
    result: list[Interval] = []
    for start, end in sorted(interval for interval in intervals if interval[1] > interval[0]):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def clip(intervals: Iterable[Interval], span: Interval) -> list[Interval]:
    """The parts of intervals inside a span."""
    cut = ((max(start, span[0]), min(end, span[1])) for start, end in intervals)
    return [(start, end) for start, end in cut if end > start]


def length(intervals: Iterable[Interval]) -> float:
    """How long the union of intervals is."""
    return sum(end - start for start, end in merged(intervals))


def _shares(events: Sequence[Mapping[str, Any]], span: Interval, whole: float) -> tuple[float, float, float]:
    """(idle, communication, communication with nothing else running) of one GPU in a span, as shares of whole us."""
    communication = clip((_interval(e) for e in events if _is_communication(e)), span)
    other = clip((_interval(e) for e in events if not _is_communication(e)), span)
    busy = length([*communication, *other])
    return max(0.0, 1 - busy / whole), length(communication) / whole, (busy - length(other)) / whole


def _verdict(
    launches: float, mean_us: float, idle_us: float, idle: float, exposed: float, imbalance: Mapping[str, float]
) -> tuple[str, str]:
    worst = max(imbalance, key=lambda name: imbalance[name], default=None)
    uneven = ""
    if worst is not None and imbalance[worst] > IMBALANCE:
        uneven = f" The busiest expert of {worst} gets {imbalance[worst]:.1f} times the mean."
    if idle > IDLE_SHARE and launches * LAUNCH_US > idle_us / 2:
        return "launches", (
            f"The GPU is idle {idle:.0%} of the step, between {launches:,.0f} kernels of {mean_us:.1f} us: the host cannot "
            f"launch them fast enough. Larger micro-batches, less tensor parallelism or fewer, grouped kernels help.{uneven}"
        )
    if idle > IDLE_SHARE:
        return "host", (
            f"The GPU is idle {idle:.0%} of the step though it has only {launches:,.0f} kernels: it waits for the host, for "
            f"data, or for a pipeline stage.{uneven}"
        )
    if exposed > COMMUNICATION_SHARE:
        return "communication", (
            f"Communication takes {exposed:.0%} of the step with nothing else running. Overlap it, or use a layout that "
            f"sends less.{uneven}"
        )
    if uneven:
        return "imbalance", f"The GPU is busy {1 - idle:.0%} of the step, but the experts are loaded unevenly.{uneven}"
    return "compute", f"The GPU computes: idle {idle:.0%}, waiting for communication {exposed:.0%} of the step."


def _interval(event: Mapping[str, Any]) -> Interval:
    start = float(event["ts"])
    return start, start + float(event["dur"])


def _step_window(events: Iterable[Mapping[str, Any]]) -> Interval | None:
    """From the start of the first profiled step to the end of the last, as the host saw them."""
    steps = [e for e in events if str(e.get("name", "")).startswith(STEP_NAME) and e.get("cat") == "user_annotation"]
    return _hull(map(_interval, steps))


def _hull(intervals: Iterable[Interval]) -> Interval | None:
    found = list(intervals)
    if not found:
        return None
    return min(start for start, _ in found), max(end for _, end in found)


def _device(event: Mapping[str, Any]) -> str:
    return str(event.get("args", {}).get("device", event.get("pid", 0)))


def _is_communication(event: Mapping[str, Any]) -> bool:
    return event["cat"] == KERNEL and "nccl" in str(event.get("name", "")).lower()
