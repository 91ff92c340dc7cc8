"""The errors a user can meet: each says what, where, expected against found, and what to do next.

`exit_code` is the process exit status of the command line tool (README, "Exit codes").
"""

from __future__ import annotations


class DatabuildError(Exception):
    """Base of all errors that are about the user's input, machine or files; never raised itself.

    what: one sentence. where: file, row, id or position. expected/found: the two sides of a failed check.
    next_step: what the reader can do now.
    """

    exit_code = 1
    title = "error"

    def __init__(
        self,
        what: str,
        *,
        where: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        next_step: str | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.expected = expected
        self.found = found
        self.next_step = next_step

    def __str__(self) -> str:
        lines = [self.what]
        for label, value in (
            ("where", self.where),
            ("expected", self.expected),
            ("found", self.found),
            ("next", self.next_step),
        ):
            if value is not None:
                lines.append(f"  {label + ':':<9} {value}")
        return "\n".join(lines)


class UsageError(DatabuildError):
    """An option or a combination of options that makes no sense, or a value that is not built yet."""

    exit_code = 2
    title = "usage"


class SourceError(DatabuildError):
    """A source that cannot be read: unreachable, truncated, of another shape, or not what its lock says."""

    exit_code = 3
    title = "source"


class ConversationError(DatabuildError):
    """A conversation that cannot be used, under --on-invalid error."""

    exit_code = 4
    title = "conversation"


class OutputError(DatabuildError):
    """A place that cannot be written: full, read-only, or holding something that is not ours to replace."""

    exit_code = 5
    title = "output"


class IntegrityError(DatabuildError):
    """A hash, a pin or a row that is not what it should be."""

    exit_code = 6
    title = "integrity"


class BusyError(DatabuildError):
    """Another build holds the directory."""

    exit_code = 75
    title = "busy"
