"""What a build has finished, so that a killed one can go on: DIR.partial/journal.

Every two seconds the row groups written so far are made durable, then a state (where the stream stands, and rows that are
in no group yet), then one line of the log that names them with their digests. A build of the same spec, with the same
versions, takes over the groups that the log proves and encodes from there on; the bytes in the end are those of a build
that nobody disturbed. Whatever does not fit, the build starts anew. A short build ends before its first commit.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.outdir import JOURNAL
from databuild.overlap import Background
from databuild.pack import Rows
from databuild.rows import RowWriter
from databuild.shards import Group

_LOG = "log.jsonl"
_MAX_LOG_BYTES = 256 << 20
#: Work that is worth a journal, and a commit after the first; nothing but speed depends on them.
FIRST_SECONDS = 5.0
COMMIT_SECONDS = 2.0

State = dict[str, npt.NDArray[Any]]
_PENDING = "pending."


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The last thing that a journal proves: row groups on disk, rows in none of them, and the state of the stream."""

    groups: list[Group]
    pending: Rows | None
    state: State


class Journal:
    """The journal of one build. identity: what must be equal for another builder to go on."""

    def __init__(self, place: Path, identity: dict[str, Any], *, overlapped: bool) -> None:
        self._folder = place / JOURNAL
        self._identity = identity
        self._overlapped = overlapped
        self._running: Background[None] | None = None
        self._num_groups = 0
        self._log_bytes = 0
        self._last = time.monotonic()
        self.num_commits = 0

    def load(self) -> Commit | None:
        """What a killed builder with this identity left, None if there is nothing or it cannot be trusted."""
        try:
            return self._load()
        except (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError):
            return None

    def _load(self) -> Commit | None:
        groups: list[Group] = []
        entry: dict[str, Any] = {}
        lines = _proven_lines(_read(self._folder / _LOG))
        if not lines or json.loads(lines[0][1]) != self._identity:
            return None
        for end, text in lines[1:]:
            entry = json.loads(text)
            groups += [Group(**{**group, "footer": base64.b64decode(group["footer"])}) for group in entry["groups"]]
            self._log_bytes = end
        if not entry:
            return None
        data = _read(self._folder / _state_name(len(lines)))
        if hashlib.sha256(data).hexdigest() != entry["state_sha256"]:
            return None
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            state = {name: arrays[name] for name in arrays.files}
        self.num_commits = len(lines) - 1
        self._num_groups = len(groups)
        pending = {k.removeprefix(_PENDING): state.pop(k) for k in list(state) if k.startswith(_PENDING)}
        return Commit(groups=groups, pending=Rows(**pending) if pending else None, state=state)

    def forget(self) -> None:
        """Remove everything; the next commit is the first."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._folder)
        self._num_groups = self._log_bytes = self.num_commits = 0

    def due(self) -> bool:
        """Whether the work since the last commit is worth one."""
        return time.monotonic() - self._last >= (COMMIT_SECONDS if self.num_commits else FIRST_SECONDS)

    def started(self) -> None:
        """Work begins, or a state has been taken for the next commit."""
        self._last = time.monotonic()

    def commit(self, writer: RowWriter, state: State) -> None:
        """Make durable what `writer` has; state: of the stream, after the last batch that it was given."""
        self.wait()
        groups = writer.groups[self._num_groups :]
        pending = writer.pending
        arrays = dict(state)
        if pending is not None:
            arrays |= {_PENDING + name: getattr(pending, name) for name in Rows.__dataclass_fields__}
        shard = writer.shard
        descriptor = None if shard is None else os.dup(shard.fileno())  # the writer may close its own meanwhile
        self._num_groups = len(writer.groups)
        self._running = Background(lambda: self._commit(groups, arrays, descriptor), overlapped=self._overlapped)
        if not self._overlapped:
            self.wait()

    def wait(self) -> None:
        """Until the last commit is done; its error is raised here."""
        if self._running is not None:
            running, self._running = self._running, None
            running.result()

    def abandon(self) -> None:
        """Wait without a look at how the last commit ended: the build has failed otherwise."""
        if self._running is not None:
            self._running.cancel()
            self._running = None

    def _commit(self, groups: list[Group], arrays: State, descriptor: int | None) -> None:
        if descriptor is not None:
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        if not self.num_commits:
            self._folder.mkdir()
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        data = buffer.getvalue()
        # The state of the commit before stays until the line that replaces it is there.
        _write(self._folder / _state_name(self.num_commits + 2), data, at=0)
        entry = {
            "groups": [{**_fields(group), "footer": base64.b64encode(group.footer).decode()} for group in groups],
            "state_sha256": hashlib.sha256(data).hexdigest(),
        }
        text = b"" if self.num_commits else _line(self._identity)
        text += _line(entry)
        _write(self._folder / _LOG, text, at=self._log_bytes)
        self._log_bytes += len(text)
        self.num_commits += 1


def _fields(group: Group) -> dict[str, Any]:
    return {name: getattr(group, name) for name in Group.__dataclass_fields__}


def _state_name(lines: int) -> str:
    return f"state-{lines % 2}.npz"


def _line(value: dict[str, Any]) -> bytes:
    text = json.dumps(value, sort_keys=True)
    return f"{hashlib.sha256(text.encode()).hexdigest()} {text}\n".encode()


def _proven_lines(data: bytes) -> list[tuple[int, str]]:
    """(end in bytes, text) of each line up to the first that is cut off or damaged."""
    found, end = [], 0
    for line in data.split(b"\n")[:-1]:
        digest, _, text = line.partition(b" ")
        if hashlib.sha256(text).hexdigest().encode() != digest:
            break
        end += len(line) + 1
        found.append((end, text.decode()))
    return found


def _read(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(_MAX_LOG_BYTES + 1)
    if len(data) > _MAX_LOG_BYTES:
        raise ValueError("too long to be a journal")
    return data


def _write(path: Path, data: bytes, *, at: int) -> None:
    """Write data at a place in a file, cut off what follows, and fsync."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        if os.fstat(descriptor).st_nlink != 1:
            raise OSError(errno.EMLINK, "the file has another name", str(path))
        file.seek(at)
        file.truncate()
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
