"""The manifest: what was built, from what, and the digests that prove it. Holds no time, host, path, user or version."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from manifests.canonical import canonical_json, sha256_of, strict_json

SCHEMA = "databuild/manifest/v1"

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
FileName = Annotated[str, Field(pattern=r"^(rows\.parquet|rows-\d{5}-of-\d{5}\.parquet)$")]
Count = Annotated[int, Field(ge=0)]


class Strict(BaseModel):
    """Immutable; unknown keys and silent conversions are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Canonical(Strict):
    """A model that is stored as canonical JSON."""

    def to_bytes(self) -> bytes:
        """The only bytes that are this manifest."""
        return canonical_json(self.model_dump(by_alias=True))


AnyCanonical = TypeVar("AnyCanonical", bound=Canonical)


class SourceFileRecord(Strict):
    """One file of a source. name is its name in the source, never a path of a machine."""

    name: str
    bytes: Count
    sha256: Digest


class SourceRecord(Strict):
    """The identity of a source: the same record, the same conversations."""

    kind: Literal["hub", "files", "demo"]
    name: str | None
    revision: str | None
    split: str | None
    rows: Count
    license: str | None
    files: list[SourceFileRecord]
    identity_sha256: Digest

    @classmethod
    def make(cls, **fields: Any) -> SourceRecord:
        """A record with its own digest filled in: sha256 of the canonical JSON of the other fields."""
        files = [file.model_dump() for file in fields.pop("files")]
        return cls(**fields, files=files, identity_sha256=sha256_of({**fields, "files": files}))


class TokenizerRecord(Strict):
    """The pinned tokenizer."""

    name: str
    revision: str
    tokenizer_json_sha256: Digest


class SourceCounts(Strict):
    """Counts of one value of the `source` column. tokens and targets are of the stream, before rows are cut."""

    used: Count
    skipped: Count
    tokens: Count
    targets: Count


class Counts(Strict):
    """What was read and what became of it.

    conversations = used + sum(skipped); tokens = rows_cut * row_tokens + tail_tokens; rows = rows_cut -
    rows_without_targets. The tokens of by_source add up to tokens.
    """

    conversations: Count
    used: Count
    skipped: dict[str, Count]
    noted: dict[str, Count]
    by_source: dict[str, SourceCounts]
    tokens: Count
    rows_cut: Count
    rows_without_targets: Count
    tail_tokens: Count


class RowsRecord(Strict):
    """The rows. supervised_token_ratio = num_targets / (rows * row_tokens)."""

    rows: Count
    row_tokens: Annotated[int, Field(ge=2)]
    num_targets: Count
    supervised_token_ratio: Annotated[float, Field(ge=0, le=1)]
    rows_sha256: Digest
    docs_sha256: Digest


class FileRecord(Strict):
    """One row file. Its digest depends on the parquet writer; rows_sha256 does not."""

    name: FileName
    rows: Count
    bytes: Count
    sha256: Digest


class Manifest(Canonical):
    """manifest.json."""

    schema_: Annotated[Literal["databuild/manifest/v1"], Field(alias="schema")]
    name: str
    spec: dict[str, Any]
    spec_sha256: Digest
    sources: Annotated[list[SourceRecord], Field(min_length=1)]
    tokenizer: TokenizerRecord
    counts: Counts
    rows: RowsRecord
    files: Annotated[list[FileRecord], Field(min_length=1)]
    manifest_sha256: Digest

    @classmethod
    def make(cls, **fields: Any) -> Manifest:
        """A manifest with its schema and its own digest filled in."""
        plain = {key: _plain(value) for key, value in fields.items()} | {"schema": SCHEMA}
        return cls.model_validate({**plain, "manifest_sha256": sha256_of(plain)})


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(by_alias=True)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


class ManifestError(ValueError):
    """A manifest that is not one; the text says what was expected and found."""


def first_error(error: ValidationError) -> str:
    """The first thing that a model refuses, in one line."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def read_proven(data: bytes, model: type[AnyCanonical], what: str, *, own: str, part: str) -> AnyCanonical:
    """Parse and prove canonical JSON of a model that says its digests: canonical bytes, known keys, both digests.

    what: a noun with its article. own: the key of the digest of everything else. part: a key whose value has a digest of its
    own, under part_sha256. ManifestError for anything else.
    """
    try:
        raw = strict_json(data)
        manifest = model.model_validate(raw)
        canonical = manifest.to_bytes()
    except ValidationError as error:
        raise ManifestError(f"not {what}: {first_error(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"not {what}: {error}") from error
    if canonical != data:
        raise ManifestError("the bytes are not canonical JSON (sorted keys, two-space indent, newline at the end)")
    rest = {key: value for key, value in raw.items() if key != own}
    for key, found in ((own, sha256_of(rest)), (f"{part}_sha256", sha256_of(raw[part]))):
        if raw[key] != found:
            raise ManifestError(f"{key}: expected {raw[key]}, found {found}")
    return manifest


def read_manifest(data: bytes) -> Manifest:
    """Parse and prove a manifest: canonical bytes, known keys, both digests. ManifestError otherwise."""
    return read_proven(data, Manifest, "a manifest", own="manifest_sha256", part="spec")
