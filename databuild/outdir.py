"""Where a build is written: DIR.partial, held by one builder, renamed to DIR when it is whole.

So DIR either is a whole build or is not there. The lock is an advisory lock on the directory itself, which the kernel
drops with its process; holder.json says whose it is: for people, for other hosts, and where there are no such locks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from databuild.errors import BusyError, OutputError
from databuild.rows import sync
from databuild.shards import provisional_name
from manifests.model import Manifest, ManifestError, read_manifest

MANIFEST = "manifest.json"
ENVIRONMENT = "environment.json"
JOURNAL = "journal"
_HOLDER = "holder.json"
_UNFINISHED = ("shard-*.tmp", "rows*.parquet")  # what a journal speaks of
_BUILD_FILE = re.compile(r"manifest\.json|environment\.json|rows\.parquet|rows-\d{5}-of-\d{5}\.parquet")
_PARTIAL_FILE = re.compile(_BUILD_FILE.pattern + r"|holder\.json|shard-\d{5}\.tmp")
_HELD = (errno.EWOULDBLOCK, errno.EACCES)
# NFS and some parallel file systems cannot lock a directory.
_NO_LOCKS = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


class PartialDir:
    """DIR.partial as a context: entered by one builder at a time, removed on failure, renamed by `publish`.

    warnings: what the user should be told in the end. A subclass may write something else than a build: what it is called,
    its manifest, and the names that its files can have.
    """

    noun = "build"
    manifest_name = MANIFEST
    own_files = _BUILD_FILE
    partial_files = _PARTIAL_FILE
    partial_folders: tuple[str, ...] = ("spool", JOURNAL)

    def __init__(self, out: Path, *, overwrite: bool = False) -> None:
        if out.name in ("", "..") or out.name.endswith(".partial"):
            raise OutputError(
                "--out names no directory of its own", where=str(out), expected="a name that does not end in .partial"
            )
        self.out = out
        self.path = out.with_name(out.name + ".partial")
        self.warnings: list[str] = []
        self._replaced = out.with_name(out.name + ".partial.replaced")
        self._overwrite = overwrite
        self._descriptor: int | None = None
        self._made: list[Path] = []  # directories that were not there before
        self._owned = False  # whether what is in DIR.partial is ours
        self._published = False
        self.resumable = False  # whether what is here is worth keeping when the build is interrupted

    def __enter__(self) -> Self:
        try:
            self._make_parents()
            self._acquire()
            self._take_over()
        except BaseException as error:
            self._leave()
            if isinstance(error, OSError):
                raise _cannot_write(self.path, error) from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kept = self.resumable and not self._published and error is not None and not isinstance(error, Exception)
        self._leave(keep=kept)
        if kept and error is not None:
            error.add_note(f"what is finished is kept in {self.path}: the same command goes on from there")
        if isinstance(error, OSError):
            raise _cannot_write(self.path, error) from error

    def _make_parents(self) -> bool:
        """Whether there was something to make."""
        parents = (self.out.parent, *self.out.parent.parents)
        before = len(self._made)
        for folder in reversed([folder for folder in parents if not folder.exists()]):
            self._make(folder)
        return len(self._made) > before

    def _make(self, folder: Path) -> None:
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            self._made.append(folder)

    def _acquire(self) -> None:
        locked = True
        while self._descriptor is None:
            if not _may_become_folder(self.path):
                raise OutputError(
                    "the place for the unfinished output is taken", where=str(self.path), found="no directory"
                )
            try:
                self._make(self.path)
            except FileNotFoundError:  # one that failed has just removed the parents that it had made
                if not self._make_parents():
                    raise
                continue
            try:
                descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            except FileNotFoundError:
                continue  # its holder has just left
            self._descriptor = descriptor
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in _HELD:
                    raise self._busy(_read_holder(self.path)) from error
                if error.errno not in _NO_LOCKS:
                    raise
                locked = False
                self.warnings.append(
                    f"{self.path.parent} cannot be locked (a network file system?): start one build at a time there"
                )
            # The holder may have renamed the directory between the open and the lock: then this is another one.
            if not self._is_ours():
                self._release()
        holder = _read_holder(self.path)
        if holder and _may_live(holder, locked):
            raise self._busy(holder)

    def _take_over(self) -> None:
        """Clear away what a dead builder left; refuse what no builder writes."""
        _refuse_foreign(self.path, self.partial_files, f"unfinished {self.noun}", folders=self.partial_folders)
        if os.path.lexists(self._replaced):
            _refuse_foreign(self._replaced, self.own_files, f"replaced {self.noun}")
        self._owned = True
        self._restore()
        keep = (JOURNAL, *_UNFINISHED) if (self.path / JOURNAL).exists() else ()
        self._clear(keep)
        try:
            _write_new(self.path / _HOLDER, json.dumps(_me(), indent=2).encode() + b"\n")
        except FileExistsError as error:  # only where there are no locks
            self._owned = False
            raise self._busy(_read_holder(self.path)) from error

    def _clear(self, keep: tuple[str, ...]) -> None:
        for entry in list(self.path.iterdir()):
            if any(fnmatch(entry.name, name) for name in keep):
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()

    def unfinished(self) -> None:
        """Give the row files that a killed builder left their provisional names again."""
        for entry in list(self.path.glob("rows*.parquet")):
            os.rename(entry, self.path / provisional_name(int(entry.name[5:10]) if entry.name[4] == "-" else 0))

    def start_anew(self) -> None:
        """Clear away what a killed builder left of its rows."""
        self._clear((_HOLDER, "spool"))

    def _restore(self) -> None:
        """An --overwrite that was cut off between its two renames left the old build aside: put it back."""
        if not self._replaced.exists():
            return
        if self.out.exists() or not (self._replaced / self.manifest_name).exists():
            _remove_build(self._replaced, self.manifest_name, self.own_files)
        else:
            os.rename(self._replaced, self.out)

    def _is_ours(self) -> bool:
        """Whether DIR.partial still is the directory that was opened."""
        if self._descriptor is None:
            return False
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self.path, follow_symlinks=False))
        except FileNotFoundError:
            return False

    def _busy(self, holder: dict[str, Any]) -> BusyError:
        return BusyError(
            "another build holds the directory",
            where=str(self.path),
            found=f"process {holder.get('pid', '?')} on {holder.get('host', '?')}",
            next_step=f"wait for it, or choose another --out; if that process is dead, remove {self.path}",
        )

    def existing(self) -> Manifest | None:
        """The manifest of the build at DIR, None if nothing is there; OutputError for anything else.

        With overwrite a damaged manifest counts as none.
        """
        found = self._existing(read_manifest)
        return found if isinstance(found, Manifest) else None

    def _existing(self, read: Callable[[bytes], Any]) -> Any:
        """What `read` makes of the manifest at DIR, see `existing`; it raises ManifestError for a damaged one."""
        out, noun = self.out, self.noun
        if not os.path.lexists(out):
            return None
        if out.is_symlink() or not out.is_dir():
            raise OutputError("the output is taken", where=str(out), found="a file or a link", expected="no such path")
        names = sorted(entry.name for entry in out.iterdir())
        if not names:
            return None
        foreign = _foreign(out, self.own_files)
        if foreign or self.manifest_name not in names:
            raise OutputError(
                f"the directory holds something that is not {_a(noun)}; it is never replaced",
                where=str(out),
                expected=f"no such directory, an empty one, or {_a(noun)}",
                found=", ".join((foreign or names)[:8]),
                next_step="choose another --out, or move those files away",
            )
        try:
            return read((out / self.manifest_name).read_bytes())
        except ManifestError as error:
            if self._overwrite:
                return None
            raise OutputError(
                f"the directory holds a damaged {noun}",
                where=str(out / self.manifest_name),
                found=str(error),
                next_step="--overwrite makes it anew",
            ) from error

    def publish(self, manifest: Manifest, environment: dict[str, Any]) -> None:
        """Write the manifest last, make everything durable, and give the directory its name."""
        _write_new(self.path / ENVIRONMENT, json.dumps(environment, indent=2, sort_keys=True).encode() + b"\n")
        if (self.path / JOURNAL).exists():
            shutil.rmtree(self.path / JOURNAL)
        self._publish(manifest.to_bytes(), lambda: self.existing() is not None)

    def _publish(self, manifest: bytes, is_taken: Callable[[], bool]) -> None:
        sync(self.path)
        _write_new(self.path / self.manifest_name, manifest)
        os.unlink(self.path / _HOLDER)
        sync(self.path)
        if is_taken() and not self._overwrite:
            raise OutputError(f"another {self.noun} appeared while this one was made", where=str(self.out))
        old = self.out.exists() and any(self.out.iterdir())
        if old:
            os.rename(self.out, self._replaced)
        os.rename(self.path, self.out)  # an empty directory at DIR is replaced by this
        self._published = True
        for folder in (self.out, *self._made):
            sync(folder.parent)
        if old:
            try:
                _remove_build(self._replaced, self.manifest_name, self.own_files)
            except OSError as error:
                self.warnings.append(f"the old {self.noun} could not be removed: {self._replaced} ({error.strerror})")

    def _leave(self, *, keep: bool = False) -> None:
        """Let go. Unless a build was published, everything is as it was before, but for unfinished work to keep."""
        if self._owned:
            if not self._published and not keep and self._is_ours():
                shutil.rmtree(self.path, ignore_errors=True)
            with contextlib.suppress(OSError):
                self._restore()
        elif self.path in self._made:
            with contextlib.suppress(OSError):
                self._lock_again()
                self.path.rmdir()
        self._release()
        for folder in reversed(self._made) if not self._published else ():
            if folder != self.path:
                with contextlib.suppress(OSError):
                    folder.rmdir()

    def _lock_again(self) -> None:
        """OSError unless DIR.partial is ours to remove: another builder may hold it, and not have written anything yet."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not self._is_ours():
            raise FileNotFoundError(self.path)

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextlib.contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder for what is not kept, under TMPDIR. OutputError if it cannot be written."""
    try:
        with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        raise _cannot_write(Path(os.environ.get("TMPDIR", "/tmp")), error) from error


def _may_become_folder(path: Path) -> bool:
    """Whether a path is free or a directory. One look: it may come and go between two."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        return True


def _foreign(path: Path, known: re.Pattern[str], folders: tuple[str, ...] = ()) -> list[str]:
    """Names in a directory that no builder writes: other names, and links and folders where a file should be."""
    with os.scandir(path) as entries:
        return sorted(
            entry.name
            for entry in entries
            if not (
                entry.is_dir(follow_symlinks=False)
                if entry.name in folders
                else entry.is_file(follow_symlinks=False) and known.fullmatch(entry.name)
            )
        )


def _refuse_foreign(path: Path, known: re.Pattern[str], what: str, folders: tuple[str, ...] = ()) -> None:
    no_folder = path.is_symlink() or not path.is_dir()
    if foreign := ["no directory"] if no_folder else _foreign(path, known, folders):
        raise OutputError(
            f"the place for the {what} holds something else",
            where=str(path),
            found=", ".join(foreign[:8]),
            next_step="move it away, or choose another --out",
        )


def _remove_build(path: Path, manifest_name: str, known: re.Pattern[str]) -> None:
    """Remove a build, its manifest before its rows: what is left when this is cut off is no build."""
    for entry in sorted(path.iterdir(), key=lambda entry: (entry.name != manifest_name, entry.name)):
        if known.fullmatch(entry.name):
            entry.unlink()
    path.rmdir()


def _a(noun: str) -> str:
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _read_holder(path: Path) -> dict[str, Any]:
    try:
        holder = json.loads((path / _HOLDER).read_bytes()[:4096])
    except (OSError, ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _may_live(holder: dict[str, Any], locked: bool) -> bool:
    """Whether the builder that holder.json names may still run. A lock that was given answers for this machine."""
    other_host = holder.get("host") != socket.gethostname()
    if holder.get("boot_id") != _boot_id():
        return other_host  # the same host was started anew since
    return not locked and (other_host or _runs(holder.get("pid")))


def _runs(pid: Any) -> bool:
    if not isinstance(pid, int) or pid < 1:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _me() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "boot_id": _boot_id()}


def _boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return socket.gethostname()


def _cannot_write(path: Path, error: OSError) -> OutputError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return OutputError(
        "the disk is full" if full else "cannot write",
        where=str(error.filename or path),
        found=error.strerror or str(error),
        next_step=f"{'free some space, or ' if full else ''}choose another place (--out, or TMPDIR for scratch files); "
        "nothing was changed",
    )
