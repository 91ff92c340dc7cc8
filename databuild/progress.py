"""Progress for people: a bar with rate and ETA on a terminal, plain lines elsewhere, nothing under --quiet."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import Any


class Progress:
    """Says things on stderr. `total` is the number of rows or conversations that `done` counts up to."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty() and not quiet
        self._bar: Any = None
        self._task: Any = None
        self._began = time.monotonic()
        self._last = self._began

    def say(self, text: str) -> None:
        """One line."""
        if not self._quiet:
            with contextlib.suppress(OSError):  # nobody listens any more; that must not end a build
                print(text, file=sys.stderr, flush=True)

    def start(self, unit: str, total: int | None) -> Progress:
        """Begin to count up to total (None: unknown)."""
        self._unit, self._total, self._began = unit, total, time.monotonic()
        self._last = self._began
        if self._terminal:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            self._bar = Bar(
                TextColumn(unit),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(unit, total=total, rate="")
        return self

    def update(self, done: int, tokens: int) -> None:
        """done of total; tokens of the stream so far."""
        now = time.monotonic()
        rate = tokens / max(now - self._began, 1e-9)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, rate=f"{rate / 1e6:.2f} M tokens/s")
        elif not self._quiet and now - self._last >= 5:
            self._last = now
            left = ""
            if self._total and done:
                left = f" of {self._total:,}, {(now - self._began) * (self._total - done) / done:.0f} s left"
            self.say(f"{done:,} {self._unit}{left}, {rate / 1e6:.2f} M tokens/s")

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
