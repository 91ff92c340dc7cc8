"""Datasets on the hub: the files of one split at one commit, on this machine, checked before anybody opens them.

A file's sha256 is taken from the local bytes and compared with every statement there is about it: the lock's, the
hub's own (LFS digest, or git blob id for small files) at that commit, and the one the cache keeps as the name of the
blob. A file with another size or digest is never handed on.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databuild.errors import IntegrityError, SourceError, UsageError
from databuild.sources import hub_client
from databuild.sources.hub_client import HubDownError, ListedFile, Listing, Say
from databuild.sources.hub_files import check_names, missing_shards, natural_order, split_files
from manifests.locks import LockedFile, SourceLock

_CARD = "README.md"
_MAX_CARD_BYTES = 4_000_000
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,95}(/[A-Za-z0-9_][A-Za-z0-9_.-]{0,95})?")
_REVISION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+=-]*(/[A-Za-z0-9_][A-Za-z0-9_.+=-]*)*")
_SPLIT = re.compile(r"\w+([.-]\w+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A verified file. name is its path in the repository, bytes and sha256 are those of the local file at path."""

    name: str
    path: Path
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSnapshot:
    """The files of one split in reading order. revision is the commit, 40 hexadecimal digits."""

    name: str
    revision: str
    split: str
    license: str | None
    files: tuple[HubFile, ...]


def parse_hub_spec(text: str) -> tuple[str, str | None, str]:
    """`hf:NAME[@REV][:SPLIT]` -> (name, revision or None, split); the split is train unless one is named."""
    head, colon, split = text.removeprefix("hf:").partition(":")
    name, at, revision = head.partition("@")
    sound = (
        text.startswith("hf:")
        and _is_name(name)
        and (not at or (_REVISION.fullmatch(revision) is not None and ".." not in revision))
        and (not colon or _SPLIT.fullmatch(split) is not None)
    )
    if not sound:
        raise UsageError(
            f"--source cannot be read: {text[:200]!r}",
            expected="hf:NAME[@REVISION][:SPLIT]",
            next_step="for example hf:allenai/tulu-3-sft-mixture@b14afda60f1bbebe55d5d2fa1e4df5042f97f8be:train",
        )
    return name, revision if at else None, split if colon else "train"


def fetch_snapshot(
    name: str, *, revision: str | None, split: str, lock: SourceLock | None = None, say: Say | None = None
) -> HubSnapshot:
    """Bring the files of a split into the hub cache, and check every one of them.

    revision may be a branch, a tag or a commit; what it is at this moment is used from then on, and returned. With a
    lock its files are the split; without one the dataset's card or the usual layouts decide (hub_files). Files that
    are cached are not fetched again, and with HF_HUB_OFFLINE=1 no request is made. `say` is given lines of progress.

    SourceError: unreachable, refused, not there, or not in the cache when offline. IntegrityError: other bytes than
    stated. OutputError: the cache cannot be written.
    """
    say = say or _say_nothing
    if not _is_name(name):
        raise UsageError(
            f"not a name of a dataset: {name[:200]!r}",
            expected="OWNER/NAME",
            next_step="for example allenai/tulu-3-sft-mixture",
        )
    if lock is not None and (lock.name, lock.split, revision or lock.revision) != (name, split, lock.revision):
        raise UsageError(
            "the lock is of another source",
            expected=f"{lock.name}@{lock.revision}:{lock.split}",
            found=f"{name}@{revision}:{split}",
            next_step="leave the revision out, or use hf:NAME@REVISION:SPLIT, which needs no lock",
        )
    offline = hub_client.is_offline()
    if lock is None:
        plan = _plan_from_card(name, revision or "main", split=split, offline=offline, say=say)
    else:
        check_names((file.name for file in lock.files), dataset=name)
        plan = _plan_from_lock(lock, offline=offline, say=say)
    files = _bring(name, plan, say=say)
    return HubSnapshot(name=name, revision=plan.commit, split=split, license=plan.license, files=tuple(files))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """Which files of which commit, and what is stated about each by whom; fetch: missing ones may be downloaded."""

    commit: str
    license: str | None
    names: list[str]
    claims: Mapping[str, list[tuple[str, ListedFile]]]
    fetch: bool


def _plan_from_lock(lock: SourceLock, *, offline: bool, say: Say) -> _Plan:
    names = natural_order(file.name for file in lock.files)
    claims = {file.name: [("the lock", _locked(file))] for file in lock.files}
    cached = all(hub_client.find_cached(lock.name, lock.revision, name) for name in names)
    known = all(file.sha256 is not None for file in lock.files)
    listing: Listing | None = None
    if not offline and not (cached and known):
        try:
            listing = _listing(lock.name, lock.revision, say=say)
        except HubDownError as error:
            # A pinned commit cannot have changed, so a whole cache is as good as the hub.
            if not cached:
                raise
            say(f"{lock.name}: {error.what}; the files of this commit are in the cache and are used")
    if listing is not None:
        by = f"the hub, commit {lock.revision[:12]}"
        for name in names:
            stated = _stated(listing, name, dataset=lock.name)
            _check_agreement(lock.name, claims[name][0][1], stated, by=by)
            claims[name].append((by, stated))
    return _Plan(
        commit=lock.revision,
        license=lock.license,
        names=names,
        claims=claims,
        fetch=not offline and listing is not None,
    )


def _plan_from_card(name: str, revision: str, *, split: str, offline: bool, say: Say) -> _Plan:
    if offline:
        commit = revision if _COMMIT.fullmatch(revision) else hub_client.cached_commit(name, revision)
        present = hub_client.cached_names(name, commit) if commit else []
        if commit is None or not present:
            raise _not_cached(f"{name}@{revision}")
        card_path = hub_client.find_cached(name, commit, _CARD)
        card = _read_card(card_path, dataset=name) if card_path else {}
        names = split_files(present, split=split, card=card, dataset=name)
        if missing := missing_shards(names):
            raise _not_cached(f"{name}@{commit}, {missing[0]}")
        say(f"{name}: offline, so the files are taken to be those in the cache ({len(names)})")
        return _Plan(commit=commit, license=_license(card), names=names, claims={}, fetch=False)
    listing = _listing(name, revision, say=say)
    by = f"the hub, commit {listing.commit[:12]}"
    card = {}
    if _CARD in listing.files:
        about = listing.files[_CARD]
        path = hub_client.find_cached(name, listing.commit, _CARD) or hub_client.download(
            name, listing.commit, _CARD, say=say
        )
        _verify(path, about.name, [(by, about)], dataset=name)
        card = _read_card(path, dataset=name)
    names = split_files(listing.files, split=split, card=card, dataset=name)
    if revision != listing.commit:
        hub_client.note_commit(name, revision, listing.commit)
    claims = {file: [(by, listing.files[file])] for file in names}
    return _Plan(commit=listing.commit, license=_license(card), names=names, claims=claims, fetch=True)


def _bring(name: str, plan: _Plan, *, say: Say) -> list[HubFile]:
    files = []
    for number, file in enumerate(plan.names, 1):
        claims = plan.claims.get(file, [])
        size = next((claim.bytes for _, claim in reversed(claims) if claim.bytes is not None), None)
        path = hub_client.find_cached(name, plan.commit, file)
        if path is None and not plan.fetch:
            raise _not_cached(f"{name}@{plan.commit}, {file}")
        amount = "" if size is None else f", {size / 1e6:,.1f} MB"
        source = "downloading" if path is None else "in the cache"
        say(f"{name}@{plan.commit[:12]}: file {number} of {len(plan.names)}, {file}{amount}, {source}")
        if path is None:
            path = hub_client.download(name, plan.commit, file, say=say)
        if not any(claim.sha256 or claim.git_sha1 for _, claim in [*claims, *_blob_claim(path, file)]):
            say(f"{name}: nobody states a digest of {file}; the one found is recorded")
        files.append(_verify(path, file, claims, dataset=name))
    return files


def _listing(name: str, revision: str, *, say: Say) -> Listing:
    listing = hub_client.fetch_listing(name, revision, say=say)
    if _COMMIT.fullmatch(revision) and listing.commit != revision:
        raise IntegrityError(
            f"the hub answers with another commit of {name} than the one asked for",
            where=name,
            expected=revision,
            found=listing.commit,
            next_step="check HF_ENDPOINT: a mirror or proxy may serve the newest revision for all",
        )
    return listing


def _verify(path: Path, name: str, claims: list[tuple[str, ListedFile]], *, dataset: str) -> HubFile:
    """Read the local file once and compare it with everything that is stated about it."""
    claims = [*claims, *_blob_claim(path, name)]
    try:
        size = path.stat().st_size
        with path.open("rb") as handle:
            sha256 = hashlib.file_digest(handle, "sha256").hexdigest()
            git_sha1 = None
            if any(claim.git_sha1 for _, claim in claims):
                handle.seek(0)
                git = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
                while block := handle.read(1 << 20):
                    git.update(block)
                git_sha1 = git.hexdigest()
    except OSError as error:
        raise SourceError(
            f"a cached file of {dataset} cannot be read",
            where=str(path),
            found=error.strerror or type(error).__name__,
            next_step="check the disk and the rights of the cache folder",
        ) from error
    for by, claim in claims:
        for label, expected, found in (
            ("size", claim.bytes, size),
            ("sha256", claim.sha256, sha256),
            ("git blob id", claim.git_sha1, git_sha1),
        ):
            if expected is not None and expected != found:
                blob = os.path.realpath(path)
                raise IntegrityError(
                    f"{name} of {dataset} does not hold the bytes it should",
                    where=f"{name}, on this machine {blob}",
                    expected=f"{label} {expected} (stated by {by})",
                    found=f"{label} {found}",
                    next_step=f"delete {blob} and run again; if it comes back, the hub or a proxy sends other bytes",
                )
    return HubFile(name=name, path=path, bytes=size, sha256=sha256)


def _blob_claim(path: Path, name: str) -> list[tuple[str, ListedFile]]:
    """What the cache itself says: a snapshot is a link to a blob whose name is the digest that the hub stated."""
    try:
        blob = Path(os.readlink(path)).name
    except OSError:
        return []
    by = "the cache, in the name of the blob"
    if re.fullmatch(r"[0-9a-f]{64}", blob):
        return [(by, ListedFile(name=name, sha256=blob))]
    if re.fullmatch(r"[0-9a-f]{40}", blob):
        return [(by, ListedFile(name=name, git_sha1=blob))]
    return []


def _check_agreement(dataset: str, locked: ListedFile, stated: ListedFile, *, by: str) -> None:
    """The lock against the hub, before a byte is fetched."""
    for label, ours, theirs in (("sha256", locked.sha256, stated.sha256), ("size", locked.bytes, stated.bytes)):
        if ours is not None and theirs is not None and ours != theirs:
            raise IntegrityError(
                f"the lock and the hub disagree about {locked.name} of {dataset}",
                where=f"{dataset}, {locked.name}",
                expected=f"{label} {ours} (stated by the lock)",
                found=f"{label} {theirs} (stated by {by})",
                next_step="check HF_ENDPOINT: a mirror may serve other files; nothing was downloaded",
            )


def _stated(listing: Listing, name: str, *, dataset: str) -> ListedFile:
    if name not in listing.files:
        raise SourceError(
            f"{dataset} has no file {name} at the locked commit",
            where=f"{dataset}@{listing.commit}",
            expected=name,
            found=f"{len(listing.files)} files, none of that name",
            next_step="check HF_ENDPOINT: a mirror may hold a part only; " + hub_client.OTHER_SOURCES,
        )
    return listing.files[name]


def _locked(file: LockedFile) -> ListedFile:
    return ListedFile(name=file.name, bytes=file.bytes, sha256=file.sha256)


def _read_card(path: Path, *, dataset: str) -> Mapping[str, Any]:
    """The YAML head of the dataset's card; a card without one is an empty mapping."""
    from huggingface_hub.repocard import metadata_load

    try:
        if path.stat().st_size > _MAX_CARD_BYTES:
            raise ValueError("it is larger than 4 MB")
        return metadata_load(path) or {}
    except Exception as error:  # yaml's own errors among them, of a library that is not ours to import
        raise SourceError(
            f"the card of {dataset} cannot be read, and it says which files make up a split",
            where=f"{dataset}, {_CARD}",
            found=f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}",
            next_step="name another revision (hf:NAME@REVISION), or download the files and use --source PATH",
        ) from error


def _license(card: Mapping[str, Any]) -> str | None:
    value = card.get("license")
    if isinstance(value, list):
        value = ", ".join(str(part) for part in value)
    return value if isinstance(value, str) and value else None


def _not_cached(what: str) -> SourceError:
    return SourceError(
        "the hub is not asked because offline mode is on, and the cache does not hold what is needed",
        where=what,
        expected=f"in {hub_client.cache_dir()}",
        found="not there",
        next_step="unset HF_HUB_OFFLINE and run once with a network; " + hub_client.OTHER_SOURCES,
    )


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None and ".." not in name and "--" not in name


def _say_nothing(line: str) -> None:
    pass
