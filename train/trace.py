"""A profiler trace of one step, and in a sentence what bounds it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from train.profile import bound_by


@dataclass(slots=True)
class Traced:
    """What the step under the trace tells besides: for each layer with experts, how many tokens each of them got."""

    expert_load: Mapping[str, Sequence[float]] | None = None


@contextmanager
def traced(out: Path, wanted: bool, step_time_s: float | None) -> Iterator[Traced]:
    """Trace what runs inside into OUT/profile/rank-R.json.gz, where wanted. step_time_s: of the step before, untraced.

    On a GPU, rank 0 says what bounds the step and writes the figures to OUT/profile/bound_by.json.
    """
    step = Traced()
    if not wanted:
        yield step
        return
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
        torch.cuda.synchronize()  # what is still running belongs to the step before
    with torch.profiler.profile(activities=activities) as profiler:
        yield step
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    path = out / "profile" / f"rank-{dist.get_rank()}.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    profiler.export_chrome_trace(str(path))
    if dist.get_rank() != 0:
        return
    sentence = "no GPU, no verdict."
    if torch.cuda.is_available():
        verdict = bound_by(path, expert_load=step.expert_load, step_time_s=step_time_s)
        (path.parent / "bound_by.json").write_text(json.dumps(verdict, indent=2) + "\n", encoding="utf-8")
        sentence = verdict["sentence"]
    print(f"trace of this step: {path}. {sentence}", file=sys.stderr)
