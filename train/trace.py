"""A profiler trace of one step, and in a sentence what bounds it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.distributed as dist

from train.profile import bound_by


@contextmanager
def traced(out: Path, wanted: bool) -> Iterator[None]:
    """Trace what runs inside into OUT/profile/rank-R.json.gz, where wanted; rank 0 says what bounds a step on a GPU."""
    if not wanted:
        yield
        return
    activities = [torch.profiler.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profiler:
        yield
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    path = out / "profile" / f"rank-{dist.get_rank()}.json.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    profiler.export_chrome_trace(str(path))
    if dist.get_rank() == 0:
        sentence = bound_by(path)["sentence"] if torch.cuda.is_available() else "no GPU, no verdict."
        print(f"trace of this step: {path}. {sentence}", file=sys.stderr)
