"""What a run leaves to read: one line a step, figures with their formulas, the versions it stood on, TensorBoard.

OUT/metrics.jsonl    one JSON object a step; a resumed run goes on after the step it resumed from
OUT/summary.json     written at the end: see train.summary
OUT/stack.json       see train.stack
OUT/config.yaml      the whole configuration
OUT/rows.json        the manifest of the rows, byte for byte
OUT/tensorboard/     where torch.utils.tensorboard is there
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from databuild.errors import DatabuildError
from train.config import TrainConfig, print_config
from train.stack import describe_stack
from train.summary import summarize

_IMPORTED = time.time()
GIB = 2**30


class TrainError(DatabuildError):
    """Training that cannot go on: its numbers are no longer numbers, or there is nothing to train."""

    exit_code = 1
    title = "training"


class Phases:
    """How long the parts of a run took besides its steps, in seconds, since the process began at started_at.

    started_at: seconds since the epoch; found out where it is left out.
    """

    def __init__(self, started_at: float | None = None) -> None:
        self.started_at = started_at if started_at is not None else _process_start()
        self.seconds: dict[str, float] = {"imports": time.time() - self.started_at}

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time inside to a phase."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


class RunLog:
    """The records of one run. Every rank makes one and calls it alike; rank 0 writes, all ranks refuse bad steps.

    phases: what came before, and goes on being timed. tensorboard: False leaves it out. Use finish() at the end; without it
    the step lines are there all the same.
    """

    def __init__(
        self,
        out_dir: str | Path,
        config: TrainConfig,
        rank: int,
        world_size: int,
        *,
        phases: Phases | None = None,
        tensorboard: bool = True,
    ) -> None:
        self.folder = Path(out_dir)
        self.config = config
        self.rank = rank
        self.world_size = world_size
        self._phases = phases or Phases()
        self._lines: list[dict[str, Any]] = []
        self._file: TextIO | None = None
        self._board: Any = None
        self._tensorboard = tensorboard
        self._finished = False
        if rank == 0:
            self.folder.mkdir(parents=True, exist_ok=True)
            _write(self.folder / "config.yaml", print_config(config))
            _write(self.folder / "stack.json", _json(describe_stack(), indent=2))

    def rows(self, folder: Path) -> None:
        """Keep the manifest of the build that is trained on: the run says what it ate when the build is gone."""
        if self.rank == 0:
            _write(self.folder / "rows.json", (folder / "manifest.json").read_text(encoding="utf-8"))

    def step(
        self,
        *,
        step: int,
        loss: float,
        grad_norm: float | None,
        lr: float,
        num_targets: int,
        tokens: int,
        step_time_s: float,
        consumed_rows: int,
        peak_allocated_gib: float | None = None,
        peak_reserved_gib: float | None = None,
        expert_load: Mapping[str, Sequence[float]] | None = None,
        profiled: bool = False,
    ) -> None:
        """Record one step; TrainError if it had no targets, or its loss or gradient norm is not finite.

        tokens: row tokens of the global batch. Peaks: of this rank's GPU since the process began, asked from torch where
        left out. expert_load: for each layer with experts, how many tokens each of them got. profiled: the step ran under
        the profiler, so that its time says nothing.
        """
        self._refuse(step, loss, grad_norm, num_targets)
        if self.rank != 0:
            return
        if not self._lines and self._file is None:
            self._open(step)
        if peak_allocated_gib is None and peak_reserved_gib is None:
            peak_allocated_gib, peak_reserved_gib = _peaks()
        line: dict[str, Any] = {
            "step": step,
            "loss": loss,
            "grad_norm": grad_norm,
            "lr": lr,
            "num_targets": num_targets,
            "tokens": tokens,
            "step_time_s": step_time_s,
            "tokens_per_s_per_gpu": tokens / (step_time_s * self.world_size),
            "consumed_rows": consumed_rows,
            "peak_allocated_gib": peak_allocated_gib,
            "peak_reserved_gib": peak_reserved_gib,
        }
        if expert_load is not None:
            line["expert_load"] = {
                name: {"max": float(max(load)), "mean": sum(load) / len(load)} for name, load in expert_load.items()
            }
        if profiled:
            line["profiled"] = True
        assert self._file is not None
        self._file.write(_json(line))
        self._file.flush()
        self._lines.append(line)
        self._to_board(line)
        if len(self._lines) % self.config.log_interval == 0 or step >= self.config.steps:
            print(progress_line(line, self.config.steps), file=sys.stderr, flush=True)

    def finish(self, *, window: tuple[int, int] | None = None, attention_flops: float | None = None) -> None:
        """Write summary.json; window, attention_flops: see train.summary.summarize.

        The figures are of the steps of this process: those before a resume may have run in another layout.
        """
        if self.rank != 0 or self._finished:
            return
        self._finished = True
        wall_s = time.time() - self._phases.started_at
        summary = summarize(
            self._lines,
            self.config,
            num_gpus=self.world_size,
            wall_s=wall_s,
            window=window,
            attention_flops=attention_flops,
        )
        finished_at = datetime.now(UTC).isoformat(timespec="seconds")
        record = summary | {"phases_s": self._phases.seconds, "finished_at": finished_at}
        _write(self.folder / "summary.json", _json(record, indent=2))
        if self._file is not None:
            self._file.close()
        if self._board is not None:
            self._board.close()

    def _refuse(self, step: int, loss: float, grad_norm: float | None, num_targets: int) -> None:
        if num_targets < 1:
            raise TrainError(
                "a step has nothing to train",
                where=f"step {step}",
                expected="at least 1 target in the global batch",
                found=str(num_targets),
                next_step="databuild verify DIR --level 2 checks the rows",
            )
        for name, value in (("loss", loss), ("gradient norm", grad_norm)):
            if value is not None and not math.isfinite(value):
                raise TrainError(
                    f"the {name} is not a finite number",
                    where=f"step {step}",
                    expected="a finite number",
                    found=str(value),
                    next_step="resume from the last checkpoint with a smaller lr, or with precision: fp32 to find out why",
                )

    def _open(self, first: int) -> None:
        """Open metrics.jsonl behind the steps before this one; later lines are of a run that was given up."""
        path = self.folder / "metrics.jsonl"
        kept = [line for line in read_metrics(path) if line["step"] < first]
        _write(path, "".join(map(_json, kept)))
        self._file = path.open("a", encoding="utf-8")
        self._phases.seconds["to_first_step_end"] = time.time() - self._phases.started_at
        self._board = _open_board(self.folder / "tensorboard", first) if self._tensorboard else None

    def _to_board(self, line: Mapping[str, Any]) -> None:
        if self._board is None:
            return
        for key, value in line.items():
            if key != "step" and isinstance(value, (int, float)):
                self._board.add_scalar(f"train/{key}", value, line["step"])
        for layer, load in line.get("expert_load", {}).items():
            self._board.add_scalar(
                f"experts/{layer}/max_over_mean", load["max"] / max(load["mean"], 1e-9), line["step"]
            )


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The step lines of a metrics.jsonl, in order; a last line that was cut off is left out. Empty if there is no file.

    TrainError for any other line that is not a step.
    """
    if not path.exists():
        return []
    lines: list[dict[str, Any]] = []
    raw = path.read_bytes().split(b"\n")
    for number, text in enumerate(raw[:-1], 1):  # what follows the last newline is empty or cut off
        try:
            line = json.loads(text)
            if not isinstance(line["step"], int):
                raise TypeError("step is not a whole number")
        except (ValueError, KeyError, TypeError) as error:
            raise TrainError(
                "metrics.jsonl holds a line that is not a step",
                where=f"{path}, line {number}",
                found=text[:80].decode("utf-8", "replace"),
                next_step="move the file away, or train into another directory",
            ) from error
        lines.append(line)
    return lines


def progress_line(line: Mapping[str, Any], steps: int) -> str:
    """A step as a person reads it."""
    parts = [f"step {line['step']}/{steps}", f"loss {line['loss']:.4f}"]
    if line["grad_norm"] is not None:
        parts.append(f"grad norm {line['grad_norm']:.3f}")
    parts += [f"lr {line['lr']:.2e}", f"{line['num_targets']:,} targets", f"{line['step_time_s']:.3f} s"]
    parts.append(f"{line['tokens_per_s_per_gpu']:,.1f} tokens/s/GPU")
    if line["peak_allocated_gib"] is not None:
        parts.append(f"{line['peak_allocated_gib']:.1f} GiB")
    return "  ".join(parts)


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent, allow_nan=False) + "\n"


def _write(path: Path, text: str) -> None:
    """Write a file so that at any time it is the old or the new one."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def _process_start() -> float:
    try:
        import psutil
    except ImportError:
        return _IMPORTED
    return float(psutil.Process().create_time())


def _peaks() -> tuple[float | None, float | None]:
    # Whoever trains has imported torch; whoever only reads logs need not.
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None, None
    return torch.cuda.max_memory_allocated() / GIB, torch.cuda.max_memory_reserved() / GIB


def _open_board(folder: Path, first: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    writer: Any = SummaryWriter  # has no types in some versions of torch
    return writer(str(folder), purge_step=first)
