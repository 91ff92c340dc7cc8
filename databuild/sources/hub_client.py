"""The conversation with the hub, through huggingface_hub: one listing, downloads, bounded waiting, clear errors.

huggingface_hub is imported inside functions: it is slow to import and most commands do not need it. Its settings
(HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, HF_HUB_OFFLINE, HF_TOKEN, proxies) work as they do everywhere, because it reads
them itself.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

from databuild.errors import DatabuildError, OutputError, SourceError

T = TypeVar("T")
Say = Callable[[str], None]

#: An unreachable hub is given up after this many seconds, name resolution included.
CONTACT_SECONDS = 15.0
#: Longest silence within one request of the listing.
REQUEST_SECONDS = 6.0
#: Seconds before each further try of a request that failed in passing (429, 5xx, a cut connection).
RETRY_WAITS = (1.0, 3.0, 9.0)
#: A Retry-After up to this many seconds is waited for; a longer one ends the run with a message.
MAX_RETRY_AFTER = 60.0

OTHER_SOURCES = "--source demo (built in) and --source PATH (parquet or jsonl files on this machine) need no hub"

_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG})
_NETWORK_MODULES = frozenset({"httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3"})

sleep = time.sleep  # a name of this module, so that tests need not wait


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """What the hub states of a file at a commit: sha256 for LFS files, git_sha1 (the blob id) for the others."""

    name: str
    bytes: int | None = None
    sha256: str | None = None
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The files of a repository at one commit."""

    commit: str
    files: dict[str, ListedFile]


class HubDownError(SourceError):
    """The hub gave no answer, or kept answering that it is busy: what is in the cache may still do."""


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE is on."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def endpoint() -> str:
    """The address of the hub, from HF_ENDPOINT."""
    from huggingface_hub import constants

    return constants.ENDPOINT


def cache_dir() -> Path:
    """The cache of the hub libraries, from HF_HUB_CACHE or HF_HOME."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def repo_dir(dataset: str) -> Path:
    """The folder of a dataset in the cache."""
    return cache_dir() / ("datasets--" + dataset.replace("/", "--"))


def fetch_listing(dataset: str, revision: str | None, *, say: Say) -> Listing:
    """Ask the hub which commit a revision is now, and which files it has there."""

    def ask() -> Any:
        from huggingface_hub import HfApi

        api = HfApi(endpoint=endpoint(), library_name="databuild")
        return api.dataset_info(dataset, revision=revision, files_metadata=True, timeout=REQUEST_SECONDS)

    with quiet_library():
        info = _patiently(lambda: within(CONTACT_SECONDS, ask), dataset=dataset, what=f"revision {revision}", say=say)
    files = {}
    for entry in info.siblings or []:
        lfs = entry.lfs
        sha256 = str(lfs.sha256).lower() if lfs else None
        size = lfs.size if lfs else entry.size
        files[entry.rfilename] = ListedFile(
            name=entry.rfilename, bytes=size, sha256=sha256, git_sha1=None if lfs else entry.blob_id
        )
    commit = str(info.sha or "")
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise SourceError(
            f"the hub's answer about {dataset} names no commit",
            where=shown_endpoint(),
            expected="40 hexadecimal digits",
            found=repr(commit[:60]),
            next_step="check HF_ENDPOINT; " + OTHER_SOURCES,
        )
    return Listing(commit=commit, files=files)


def find_cached(dataset: str, commit: str, name: str) -> Path | None:
    """Return the cached file of that commit, or None; makes no request."""
    path = repo_dir(dataset) / "snapshots" / commit / name
    return path if path.is_file() else None


def download(dataset: str, commit: str, name: str, *, say: Say) -> Path:
    """Bring one file of a commit into the cache; a cut connection is resumed or tried again, within bounds."""

    def get() -> str:
        from huggingface_hub import hf_hub_download

        with no_waits_inside():
            return hf_hub_download(
                dataset,
                name,
                repo_type="dataset",
                revision=commit,
                cache_dir=cache_dir(),
                endpoint=endpoint(),
                library_name="databuild",
            )

    with quiet_library():
        return Path(_patiently(get, dataset=dataset, what=name, say=say))


def cached_commit(dataset: str, revision: str) -> str | None:
    """Return the commit that the cache noted for a branch or tag, or None."""
    try:
        text = (repo_dir(dataset) / "refs" / revision).read_text("ascii").strip()
    except (OSError, ValueError):
        return None
    return text if re.fullmatch(r"[0-9a-f]{40}", text) else None


def note_commit(dataset: str, revision: str, commit: str) -> None:
    """Note in the cache which commit a branch or tag is, where the hub libraries keep it, for later offline use."""
    path = repo_dir(dataset) / "refs" / revision
    if cached_commit(dataset, revision) == commit:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(commit, "ascii")
    except OSError:
        pass  # a read-only cache still serves; only offline use by branch name is lost


def cached_names(dataset: str, commit: str) -> list[str]:
    """Return the paths of the files that the cache holds of a commit."""
    top = repo_dir(dataset) / "snapshots" / commit
    found = [Path(folder, name) for folder, _, names in os.walk(top) for name in names]
    return sorted(path.relative_to(top).as_posix() for path in found if path.is_file())


def within(seconds: float, call: Callable[[], T]) -> T:
    """Run call, but give up after some seconds: socket timeouts do not cover name resolution or lists of addresses."""
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=work, daemon=True, name="databuild-hub")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise TimeoutError(f"no answer within {seconds:g} seconds")
    return results[0]


def _patiently(call: Callable[[], T], *, dataset: str, what: str, say: Say) -> T:
    """Run call; what fails in passing is tried again after RETRY_WAITS, anything else ends as one of our errors."""
    waits = list(RETRY_WAITS)
    while True:
        try:
            return call()
        except DatabuildError:
            raise
        except Exception as error:
            failure = diagnose(error)
            asked = failure.retry_after or 0.0
            if not failure.passing or not waits or asked > MAX_RETRY_AFTER:
                raise _as_error(failure, dataset=dataset, what=what) from error
            wait = max(waits.pop(0), asked)
            say(f"{dataset}: {failure.text}; trying {what} again in {wait:g} s")
            sleep(wait)


Kind = Literal["unreachable", "cut", "status", "gated", "no revision", "no file", "no repo", "no room", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a call to the hub failed, in words for the user."""

    kind: Kind
    text: str
    status: int | None = None
    retry_after: float | None = None

    @property
    def passing(self) -> bool:
        """Whether trying again can help."""
        return self.kind == "cut" or (self.kind == "status" and self.status in _BUSY)


def diagnose(error: Exception) -> Failure:
    """Say what kind of failure this is: by names and attributes, since the HTTP library differs between versions."""
    chain = list(_causes(error))
    names = [kind.__name__ for link in chain for kind in type(link).__mro__]
    text = _clean(str(error))
    if (isinstance(error, OSError) and error.errno in _NO_ROOM) or "No space left on device" in str(error):
        return Failure(kind="no room", text=text)
    if "GatedRepoError" in names:
        return Failure(kind="gated", text="access to it must be asked for")
    if "RevisionNotFoundError" in names:
        return Failure(kind="no revision", text="there is no such revision")
    if "RemoteEntryNotFoundError" in names or type(error).__name__ == "EntryNotFoundError":
        return Failure(kind="no file", text="there is no such file at that commit")
    for link in chain:
        response = getattr(link, "response", None)
        status = getattr(response, "status_code", None)
        if isinstance(status, int):
            after = _retry_after(getattr(response, "headers", {}))
            kind: Kind = "no repo" if status == 404 or "RepositoryNotFoundError" in names else "status"
            return Failure(kind=kind, status=status, text=f"the hub answers {status}", retry_after=after)
    if "JSONDecodeError" in names:
        return Failure(kind="other", text="an answer that is not the hub's (no JSON)")
    for link in chain:
        module = type(link).__module__.partition(".")[0]
        name = type(link).__name__
        if module in _NETWORK_MODULES or isinstance(link, (ConnectionError, TimeoutError)):
            # "ConnectError", "ConnectTimeout", "ConnectionError", "ReadTimeout", "ProxyError": there is nobody to
            # talk to, and huggingface_hub has tried again by itself where that made sense.
            gone = re.search(r"^Connect|Timeout|Proxy|UnsupportedProtocol", name) is not None and "Reset" not in name
            return Failure(kind="unreachable" if gone else "cut", text=_clean(f"{name}: {link}" if str(link) else name))
    if isinstance(error, OSError) and "onsistency check failed" in str(error):
        return Failure(kind="cut", text="the file came shorter or longer than stated")
    return Failure(kind="other", text=_clean(f"{type(error).__name__}: {error}"))


def _as_error(failure: Failure, *, dataset: str, what: str) -> DatabuildError:
    where = f"{dataset}, {what}, at {shown_endpoint()}"
    if failure.kind == "no room":
        return OutputError(
            "the download cache cannot be written",
            where=str(cache_dir()),
            found=failure.text,
            next_step="free space there, or set HF_HOME to a disk that has room, and run again",
        )
    if failure.kind == "unreachable":
        return HubDownError(
            "the hub cannot be reached",
            where=where,
            found=failure.text,
            next_step=f"check the network, the proxy and HF_ENDPOINT; {OTHER_SOURCES}; "
            "what was fetched before is used with HF_HUB_OFFLINE=1",
        )
    if failure.kind == "cut":
        return HubDownError(
            f"the download from the hub was cut off {len(RETRY_WAITS) + 1} times",
            where=where,
            found=failure.text,
            next_step=f"run again: whole files are kept in the cache; {OTHER_SOURCES}",
        )
    if failure.kind == "status" and failure.status in _BUSY:
        asked = f", and asks to wait {failure.retry_after:g} s" if failure.retry_after else ""
        limited = failure.status == 429
        return HubDownError(
            "the hub limits our requests" if limited else "the hub has a failure",
            where=where,
            found=failure.text + asked,
            next_step=("run again later; a token in HF_TOKEN has a higher limit; " if limited else "run again later; ")
            + OTHER_SOURCES,
        )
    if failure.kind == "gated" or failure.status in (401, 403):
        return SourceError(
            f"the hub gives no access to {dataset}",
            where=where,
            expected="a public dataset, or a token that may read it",
            found=failure.text,
            next_step="check the name; accept the terms on the dataset's page; set HF_TOKEN or run `hf auth login`",
        )
    what_is_missing = {
        "no repo": (f"the hub has no dataset {dataset}", "check the name (OWNER/NAME); a private one needs HF_TOKEN"),
        "no revision": (f"{dataset} has no {what}", "name a branch, tag or commit that is there: hf:NAME@REVISION"),
        "no file": (f"{dataset} has no file {what} at that commit", "name another revision: hf:NAME@REVISION"),
    }
    message, next_step = what_is_missing.get(
        failure.kind, ("the hub's answer cannot be used", f"check HF_ENDPOINT and the proxy; {OTHER_SOURCES}")
    )
    return SourceError(message, where=where, found=failure.text, next_step=next_step)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen and len(seen) < 12:
        seen.append(link)
        yield link
        link = link.__cause__ or link.__context__


def _retry_after(headers: Any) -> float | None:
    """Seconds to wait from Retry-After (seconds or a date) or from the hub's `ratelimit: "api";r=0;t=55`."""
    value = str(headers.get("retry-after") or "").strip()
    if value.isdigit():
        return float(value)
    if value:
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except (TypeError, ValueError):
            return None
    limit = re.search(r";\s*r=0\s*;\s*t=(\d+)", str(headers.get("ratelimit") or ""))
    return float(limit[1]) if limit else None


def _clean(text: str) -> str:
    """First line, short, without what could be a secret: credentials and query strings of URLs, and tokens."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    line = re.sub(r"(://)[^/@\s]+@", r"\1", line)
    line = re.sub(r"(://[^\s?'\"]+)\?[^\s'\"]*", r"\1", line)
    line = re.sub(r"\bhf_[A-Za-z0-9]{8,}", "hf_***", line)
    line = re.sub(r"(?i)\b(bearer)\s+\S+", r"\1 ***", line)
    line = "".join(char if char.isprintable() else " " for char in line)
    return line if len(line) <= 300 else line[:297] + "..."


def shown_endpoint() -> str:
    """The hub's address without the name and password that it may hold."""
    parts = urlsplit(endpoint())
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@contextmanager
def quiet_library() -> Iterator[None]:
    """No bars unless a person watches, and no log lines: they repeat our messages and may hold signed URLs."""
    from huggingface_hub import constants
    from huggingface_hub import utils as hub_utils

    utils: Any = hub_utils  # these names are public, but not typed as exported
    logging = utils.logging
    level = logging.get_verbosity()
    hide = (
        constants.HF_HUB_DISABLE_PROGRESS_BARS is None
        and not sys.stderr.isatty()
        and not utils.are_progress_bars_disabled()
    )
    if level != logging.DEBUG:
        logging.set_verbosity(logging.CRITICAL)
    if hide:
        utils.disable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if hide:
            utils.enable_progress_bars()


@contextmanager
def no_waits_inside() -> Iterator[None]:
    """Let answers such as 429 fail at once: the library would sleep as long as Retry-After says, several times over.

    The waiting is done in `_patiently`, where it is bounded and said aloud. Versions before 1.0 have no such hooks
    and do not wait.
    """
    from huggingface_hub import utils as hub_utils

    utils: Any = hub_utils

    def refuse(response: Any) -> None:
        if response.status_code in _BUSY:
            response.read()
            utils.hf_raise_for_status(response)

    session = utils.get_session()
    hooks = getattr(session, "event_hooks", None)
    if hooks is None:
        yield
        return
    session.event_hooks = {**hooks, "response": [*hooks.get("response", []), refuse]}
    try:
        yield
    finally:
        session.event_hooks = hooks
