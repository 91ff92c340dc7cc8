"""Upload a build to the hub as a dataset: proven before, in one commit, and compared with what arrived after.

What a branch already holds is not changed unless that is asked for. huggingface_hub does the transfers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from databuild.errors import DatabuildError, IntegrityError, OutputError, UsageError
from databuild.outdir import ENVIRONMENT, MANIFEST
from databuild.share.folder import FolderFile, check_repo, dataset_files
from databuild.share.names import ENVIRONMENT_PATH, ROWS_FOLDER
from databuild.sources import hub_client as hub
from databuild.verify import Say

T = TypeVar("T")
_BRANCH = re.compile(r"[A-Za-z0-9][\w./-]{0,200}", re.ASCII)
_OURS = re.compile(rf"{ROWS_FOLDER}/(?:{MANIFEST}|{ENVIRONMENT}|rows\.parquet|rows-\d{{5}}-of-\d{{5}}\.parquet)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remote:
    """A branch as the hub states it."""

    commit: str
    private: bool
    files: dict[str, hub.ListedFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a commit has to do so that the branch holds these files, and no other build."""

    add: list[FolderFile]
    delete: list[str]
    replaced: list[str]
    """paths that are there and would be changed or deleted"""


def push(
    folder: Path,
    repo: str,
    *,
    branch: str = "main",
    private: bool = False,
    overwrite: bool = False,
    environment: bool = False,
    dry_run: bool = False,
    say: Say = lambda _: None,
) -> dict[str, Any]:
    """Verify a build at level 2, upload it to OWNER/NAME on a branch, and compare the digests that the hub then states.

    The repository and the branch are made if they are not there. private: it must be private; a public one is refused
    before anything is sent. overwrite: replace a card or another build that is there; other files stay in any case.
    dry_run: say what would be uploaded, without a request. Gives what --json prints.

    SourceError (exit 3) if there is no build; IntegrityError (6) if it is damaged, or if the hub states other digests after;
    OutputError (5) for everything between: no token, no right to write, no hub, something else in the place.
    """
    name = check_repo(repo)
    if not _BRANCH.fullmatch(branch) or branch.startswith("refs/") or ".." in branch or branch.endswith((".", "/")):
        raise UsageError("this is no name of a branch", found=repr(branch))
    if not dry_run:
        _ready()
    manifest, files = dataset_files(folder, repo=name, environment=environment, say=say)
    result = {
        "repo": name,
        "branch": branch,
        "name": manifest.name,
        "rows_sha256": manifest.rows.rows_sha256,
        "files": [file.summary() for file in files],
        "bytes": sum(file.bytes for file in files),
        "dry_run": dry_run,
    }
    if dry_run:
        return result
    remote = _find(name, branch, private=private, say=say)
    message = f"{manifest.name}: rows_sha256 {manifest.rows.rows_sha256}"

    def send() -> tuple[str, Changes]:
        # Asked anew each time: the answer to a commit can be lost although it was made.
        now = _state(name, branch)
        changes = compare(files, now.files)
        _may_replace(changes, now, name, branch, overwrite)
        if not changes.add and not changes.delete:
            return now.commit, changes
        say(f"{name}: sending {len(changes.add)} files, {sum(f.bytes for f in changes.add) / 1e6:,.1f} MB")
        return _commit(name, branch, changes, now.commit, message), changes

    _may_replace(compare(files, remote.files), remote, name, branch, overwrite)
    first = compare(files, remote.files)
    commit, _ = _persist(send, name, f"branch {branch}", say)
    arrived = _persist(lambda: _state(name, commit), name, f"commit {commit}", say)
    _arrived(files, arrived, name)
    return result | {
        "commit": commit,
        "private": arrived.private,
        "uploaded": [file.path for file in first.add],
        "deleted": first.delete,
        "url": f"{hub.shown_endpoint()}/datasets/{name}/tree/{commit}",
    }


def compare(files: Sequence[FolderFile], there: dict[str, hub.ListedFile]) -> Changes:
    """What is to be done so that these files are there, and in rows/ no other."""
    add = [file for file in files if file.path not in there or not _same(file, there[file.path])]
    wanted = {file.path for file in files}
    delete = sorted(path for path in there if path.startswith(f"{ROWS_FOLDER}/") and path not in wanted)
    if not add and delete == [ENVIRONMENT_PATH]:
        delete = []  # that of this build; no digest covers it
    return Changes(add=add, delete=delete, replaced=sorted([f.path for f in add if f.path in there] + delete))


def _same(file: FolderFile, listed: hub.ListedFile) -> bool:
    """Whether the hub states this content: by sha256 in its large file storage, by git's id elsewhere."""
    if listed.sha256 is not None:
        return (listed.sha256, listed.bytes) == (file.sha256, file.bytes)
    return listed.git_sha1 is not None and listed.git_sha1 == file.git_sha1()


def _may_replace(changes: Changes, now: Remote, name: str, branch: str, overwrite: bool) -> None:
    foreign = [path for path in changes.delete if not _OURS.fullmatch(path)]
    where = f"{name}, branch {branch}"
    if foreign:
        raise OutputError(
            f"{ROWS_FOLDER}/ of the dataset holds files that no build has; they are never removed",
            where=where,
            found=", ".join(foreign[:8]),
            next_step="move them away, or choose another dataset or --branch",
        )
    if changes.replaced and not overwrite:
        raise OutputError(
            "the dataset holds something else in the place of these files",
            where=f"{where}, commit {now.commit}",
            found=", ".join(changes.replaced[:8]),
            next_step="choose another dataset or --branch, or --overwrite (its history keeps what was there)",
        )


def _arrived(files: Sequence[FolderFile], remote: Remote, name: str) -> None:
    changes = compare(files, remote.files)
    for file in changes.add:
        listed = remote.files.get(file.path)
        raise IntegrityError(
            "the hub states another file than the one that was sent",
            where=f"{name} @ {remote.commit}, {file.path}",
            expected=f"{file.bytes} bytes, sha256 {file.sha256}",
            found="no such file" if listed is None else f"{listed.bytes} bytes, {listed.sha256 or listed.git_sha1}",
            next_step="do not use that commit; push again",
        )
    if changes.delete:
        raise IntegrityError(
            "the hub holds files that were to be removed",
            where=f"{name} @ {remote.commit}",
            found=", ".join(changes.delete[:8]),
            next_step="do not use that commit; push again",
        )


def _ready() -> None:
    from huggingface_hub import get_token

    if hub.is_offline():
        raise OutputError(
            "the hub is switched off",
            found="HF_HUB_OFFLINE",
            next_step="unset it to push; databuild card writes the same folder without a network",
        )
    if not get_token():
        raise OutputError(
            "there is no token to write to the hub with",
            where=hub.shown_endpoint(),
            next_step="set HF_TOKEN to a token with write access, or run `hf auth login`",
        )


def _api() -> Any:
    from huggingface_hub import HfApi

    return HfApi(endpoint=hub.endpoint(), library_name="databuild")


def _find(name: str, branch: str, *, private: bool, say: Say) -> Remote:
    """The branch, made if it is not there. Nothing is sent to a repository that is less private than asked for."""

    def find() -> Remote:
        kind = _missing(name, None)
        if kind == "no repo":
            say(f"{name}: making the dataset{' (private)' if private else ''}")
            _api().create_repo(name, repo_type="dataset", private=True if private else None, exist_ok=True)
        if private and not _state(name, None).private:
            raise OutputError(
                "the dataset is public, and --private was asked for",
                where=name,
                next_step="make it private on its settings page, or choose another name",
            )
        if branch != "main" and _missing(name, branch) == "no revision":
            say(f"{name}: making the branch {branch}")
            _api().create_branch(name, repo_type="dataset", branch=branch, exist_ok=True)
        return _state(name, branch)

    return _persist(find, name, f"branch {branch}", say)


def _missing(name: str, revision: str | None) -> str | None:
    """Whether the repository or the revision is not there: "no repo", "no revision" or None."""
    try:
        _state(name, revision)
    except DatabuildError:
        raise
    except Exception as error:
        failure = hub.diagnose(error)
        if failure.kind in ("no repo", "no revision"):
            return failure.kind
        raise
    return None


def _state(name: str, revision: str | None) -> Remote:
    def ask() -> Any:
        return _api().dataset_info(name, revision=revision, files_metadata=True, timeout=hub.REQUEST_SECONDS)

    info = hub.within(hub.CONTACT_SECONDS, ask)
    if not re.fullmatch(r"[0-9a-f]{40}", str(info.sha)):
        raise OutputError("the hub's answer names no commit", where=hub.shown_endpoint(), found=repr(info.sha)[:60])
    files = {}
    for entry in info.siblings or []:
        lfs = entry.lfs
        files[entry.rfilename] = hub.ListedFile(
            name=entry.rfilename,
            bytes=lfs.size if lfs else entry.size,
            sha256=str(lfs.sha256).lower() if lfs else None,
            git_sha1=None if lfs else entry.blob_id,
        )
    return Remote(commit=info.sha, private=bool(info.private), files=files)


def _commit(name: str, branch: str, changes: Changes, parent: str, message: str) -> str:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations: list[Any] = [
        CommitOperationAdd(
            path_in_repo=file.path,
            path_or_fileobj=file.content if isinstance(file.content, bytes) else str(file.content),
        )
        for file in changes.add
    ]
    operations += [CommitOperationDelete(path_in_repo=path, is_folder=False) for path in changes.delete]
    done = _api().create_commit(
        name, operations, repo_type="dataset", revision=branch, commit_message=message, parent_commit=parent
    )
    return str(done.oid)


def _persist(call: Callable[[], T], name: str, what: str, say: Say) -> T:
    """Run call; what fails in passing is tried again after waits that are bounded and said aloud."""
    waits = list(hub.RETRY_WAITS)
    with hub.quiet_library(), hub.no_waits_inside():
        while True:
            try:
                return call()
            except DatabuildError:
                raise
            except Exception as error:
                failure = hub.diagnose(error)
                asked = failure.retry_after or 0.0
                if not failure.passing or not waits or asked > hub.MAX_RETRY_AFTER:
                    raise _as_error(failure, name, what) from error
                wait = max(waits.pop(0), asked)
                say(f"{name}: {failure.text}; trying {what} again in {wait:g} s")
                hub.sleep(wait)


def _as_error(failure: hub.Failure, name: str, what: str) -> OutputError:
    found, status = failure.text, failure.status
    if failure.retry_after:
        found += f", and asks to wait {failure.retry_after:g} s"
    message, next_step = "the hub did not take it", "run again with --debug to see its whole answer"
    if "xet" in found.lower():
        message, next_step = "the hub's Xet storage did not take it", "run again, or with HF_HUB_DISABLE_XET=1"
    elif failure.kind == "unreachable":
        message, next_step = "the hub cannot be reached", "check the network, the proxy and HF_ENDPOINT"
    elif status == 401:
        message, next_step = "the hub does not know this token", "set HF_TOKEN to a valid one, or run `hf auth login`"
    elif status == 403 or failure.kind == "gated":
        message = f"this token may not write to {name}"
        next_step = "check the name; make a token with write access to it"
    elif failure.kind == "no repo":
        message, next_step = (
            f"the hub has no dataset {name}, or shows it to others only",
            "check the name and the token",
        )
    elif failure.kind == "no revision":
        message, next_step = f"{name} has no {what}", "check --branch"
    elif status in (409, 412):
        message, next_step = "the branch moved while it was written", "run again: it is compared anew"
    elif status == 429:
        message, next_step = "the hub limits our requests", "run again later: what it has already is not sent again"
    elif failure.passing:
        message, next_step = "the hub has a failure", "run again later: what it has already is not sent again"
    return OutputError(message, where=f"{name}, {what}, at {hub.shown_endpoint()}", found=found, next_step=next_step)
