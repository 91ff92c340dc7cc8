"""What the command lines share: one app is run, and how it ended is said in a readable block."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import typer

#: What typer raises for a usage error. It has had its own copy of click since 0.26, and click itself before.
UsageException: Any = typer.BadParameter.__mro__[2]


class Console:
    """One program. debug: whether errors show their traceback."""

    def __init__(self, app: typer.Typer, program: str) -> None:
        self._app = app
        self._program = program
        self.debug = False

    def take_debug(self, arguments: Sequence[str] | None) -> list[str]:
        """The arguments without --debug, which people write anywhere; the options of a group stand before the command."""
        given = list(sys.argv[1:] if arguments is None else arguments)
        self.debug = "--debug" in given
        return [argument for argument in given if argument != "--debug"]

    def run(self, arguments: list[str]) -> int:
        """Run a command; its exit code."""
        # Not app(...): it would end by itself, with exit codes of its own, on an interrupt and on a closed pipe.
        command = typer.main.get_command(self._app)
        code = 0
        try:
            with command.make_context(self._program, arguments) as context:
                command.invoke(context)
        except typer.Exit as error:
            code = error.exit_code
        sys.stdout.flush()
        return code

    def fail(self, text: str, code: int) -> NoReturn:
        """Say it on stderr and leave."""
        if self.debug:
            import traceback

            traceback.print_exc()
        with contextlib.suppress(OSError):
            print(text, file=sys.stderr, flush=True)
        sys.exit(code)


def mend_streams() -> None:
    """A stream that is closed, or not UTF-8, must not end a run."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (for the rest of the process)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def leave_quietly() -> NoReturn:
    """The reader of a pipe has what it wanted, as with `inspect | head`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)
