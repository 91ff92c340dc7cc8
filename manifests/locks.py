"""Locks: which upstream files a build stands on, by commit, name and digest.

The JSON files beside this module (`locks/`) are package data. A digest or a size that is null was not known when the
lock was written: the one the hub states for the locked commit is used in its place, and the digests really seen go
into the manifest of the build. A digest that is there is checked before anything opens the file.
"""

from __future__ import annotations

from importlib import resources

from pydantic import BaseModel, ConfigDict, Field

COMMIT_PATTERN = r"^[0-9a-f]{40}$"
SHA256_PATTERN = r"^[0-9a-f]{64}$"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class LockedFile(_Strict):
    """One file of a locked source: its path in the repository, and its size and digest where they are known."""

    name: str = Field(min_length=1)
    bytes: int | None = Field(default=None, ge=0)
    sha256: str | None = Field(default=None, pattern=SHA256_PATTERN)


class SourceLock(_Strict):
    """A dataset at one commit: the files of one split, the rows they hold, and the arrow type of each column."""

    name: str = Field(min_length=1)
    revision: str = Field(pattern=COMMIT_PATTERN)
    split: str = Field(min_length=1)
    license: str | None
    rows: int = Field(ge=0)
    columns: dict[str, str]
    files: list[LockedFile] = Field(min_length=1)


class TokenizerLock(_Strict):
    """The tokenizer.json that decides the ids: where it comes from, its digest, and the package that ships it."""

    name: str = Field(min_length=1)
    revision: str = Field(pattern=COMMIT_PATTERN)
    tokenizer_json_sha256: str = Field(pattern=SHA256_PATTERN)
    bytes: int = Field(gt=0)
    package: str = Field(min_length=1)
    version: str = Field(min_length=1)


def _read(name: str) -> bytes:
    return resources.files("manifests").joinpath("locks", f"{name}.json").read_bytes()


def source_lock_names() -> list[str]:
    """Return the names that load_source_lock knows."""
    names = (entry.name for entry in resources.files("manifests").joinpath("locks").iterdir())
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json") and name != "tokenizer.json")


def load_source_lock(name: str) -> SourceLock:
    """Read the lock of a named source, `tulu3` for one; ValueError names the known ones."""
    known = source_lock_names()
    if name not in known:
        raise ValueError(f"no lock named {name!r}; there are: {', '.join(known)}")
    return SourceLock.model_validate_json(_read(name))


def load_tokenizer_lock() -> TokenizerLock:
    """Read the lock of the tokenizer."""
    return TokenizerLock.model_validate_json(_read("tokenizer"))
