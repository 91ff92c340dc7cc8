"""A dataset folder for the hub: README.md, croissant.json, and the build, as it is, in rows/.

    README.md  croissant.json  rows/manifest.json  rows/rows.parquet

`databuild card` writes one, `databuild push` uploads the same files. rows/ is a build: it verifies wherever it is copied.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databuild.errors import OutputError, UsageError
from databuild.outdir import ENVIRONMENT
from databuild.rows import damaged, sync
from databuild.share.card import card
from databuild.share.croissant import croissant_json
from databuild.share.names import CARD_PATH, CROISSANT_PATH, ENVIRONMENT_PATH, MANIFEST_PATH, ROWS_FOLDER
from databuild.verify import Say, load_manifest, verify
from manifests.model import Manifest

_REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFile:
    """One file of a dataset folder. path: in the folder. content: its bytes, or the file that holds them."""

    path: str
    content: bytes | Path
    bytes: int
    sha256: str

    def git_sha1(self) -> str:
        """The id that git gives it: what the hub states of a file that is not in its large file storage."""
        data = self.content if isinstance(self.content, bytes) else self.content.read_bytes()
        return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def summary(self) -> dict[str, Any]:
        """For --json."""
        return {"path": self.path, "bytes": self.bytes, "sha256": self.sha256}


def check_repo(repo: str) -> str:
    """The name of a dataset on the hub, OWNER/NAME; UsageError for anything else."""
    name = repo.removeprefix("hf:")
    if not _REPO.fullmatch(name) or ".." in name or "--" in name or name.endswith((".git", ".ipynb", "-", ".")):
        raise UsageError("this is no name of a dataset", expected="OWNER/NAME, as hub names are", found=repr(repo))
    return name


def dataset_files(
    folder: Path, *, repo: str | None, environment: bool, say: Say = lambda _: None
) -> tuple[Manifest, list[FolderFile]]:
    """(manifest, files) of the dataset folder of a build, which is verified at level 2 first.

    environment: whether environment.json goes with it. It names versions of the builder's software and no digest covers
    it, so it stays where it is unless it is asked for. Errors as of `verify`.
    """
    verify(folder, level=2, say=say)
    manifest = load_manifest(folder)
    files = [
        _of_bytes(CARD_PATH, card(manifest, repo=repo)),
        _of_bytes(CROISSANT_PATH, croissant_json(manifest, repo=repo)),
        _of_bytes(MANIFEST_PATH, manifest.to_bytes()),
    ]
    if environment:
        path = folder / ENVIRONMENT
        if path.is_symlink() or not path.is_file():
            raise UsageError(f"the build has no {ENVIRONMENT}", where=str(folder), next_step="leave out --environment")
        files.append(_of_bytes(ENVIRONMENT_PATH, path.read_bytes()))
    files += [
        FolderFile(path=f"{ROWS_FOLDER}/{f.name}", content=folder / f.name, bytes=f.bytes, sha256=f.sha256)
        for f in manifest.files
    ]
    return manifest, files


def write_folder(out: Path, files: list[FolderFile]) -> None:
    """Write a new directory with these files: it appears whole or not at all. OutputError if there is one already."""
    if out.name in ("", "..") or out.name.endswith(".partial"):
        raise OutputError("--out names no directory of its own", where=str(out))
    partial = out.with_name(out.name + ".partial")
    if os.path.lexists(out):
        raise OutputError(
            "the output is taken", where=str(out), expected="no such path", next_step="choose another --out"
        )
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.mkdir()
        except FileExistsError as error:
            raise OutputError(
                "another command writes this folder, or one that died left it",
                where=str(partial),
                next_step="wait, or remove it",
            ) from error
        try:
            _fill(partial, files)
            os.rename(partial, out)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        sync(out.parent)
    except OSError as error:
        raise OutputError(
            "cannot write", where=str(error.filename or out), found=error.strerror, next_step="nothing was changed"
        ) from error


def _fill(partial: Path, files: list[FolderFile]) -> None:
    (partial / ROWS_FOLDER).mkdir()
    # The manifest last: what is cut off before it is no build.
    for file in sorted(files, key=lambda f: (f.path == MANIFEST_PATH, f.path)):
        path = partial / file.path
        if isinstance(file.content, bytes):
            path.write_bytes(file.content)
        else:
            shutil.copyfile(file.content, path, follow_symlinks=False)
        with open(path, "rb") as copy:
            digest = hashlib.file_digest(copy, "sha256").hexdigest()
        if digest != file.sha256:
            raise damaged("a file changed while it was copied", file.path, f"sha256 {file.sha256}", f"sha256 {digest}")
        sync(path)
    sync(partial / ROWS_FOLDER)
    sync(partial)


def _of_bytes(path: str, data: bytes) -> FolderFile:
    return FolderFile(path=path, content=data, bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
