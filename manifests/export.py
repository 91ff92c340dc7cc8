"""The manifest of an export: which rows it was made from, for whom, and the digests that prove it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from manifests.canonical import sha256_of
from manifests.model import Canonical, Count, Digest, Strict, read_proven

EXPORT_SCHEMA = "databuild/export/v1"

ConsumerName = Literal["miles", "bridge", "megatron", "hf", "olmo", "automodel", "torchtitan"]
ExportFileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class ParentRecord(Strict):
    """The build that an export was made from."""

    name: str
    manifest_sha256: Digest
    rows_sha256: Digest
    docs_sha256: Digest


class ArrayRecord(Strict):
    """One array of an export: all its values in order, little-endian. The same whatever wrote the file they are in."""

    name: str
    type: str
    values: Count
    sha256: Digest


class ExportFile(Strict):
    """One file. The digest of a parquet file depends on its writer; that of the arrays in it does not."""

    name: ExportFileName
    bytes: Count
    sha256: Digest


class ExportManifest(Canonical):
    """export.json.

    pairs_sha256: sha256 over, for each row in order, its row_tokens input ids and then its row_tokens labels, both as
    little-endian int32: label t is the token that is trained to follow token t, -100 where none is. It is computed from the
    files the way the consumer reads them, and is the same for every consumer of the same rows. num_targets counts those
    labels. content_sha256: sha256 of the canonical JSON of content. export_sha256: that of everything else here.
    """

    schema_: Annotated[Literal["databuild/export/v1"], Field(alias="schema")]
    name: str
    consumer: ConsumerName
    options: dict[str, str]
    parent: ParentRecord
    rows: Count
    row_tokens: Annotated[int, Field(ge=2)]
    num_targets: Count
    pairs_sha256: Digest
    content: Annotated[list[ArrayRecord], Field(min_length=1)]
    content_sha256: Digest
    files: Annotated[list[ExportFile], Field(min_length=1)]
    export_sha256: Digest

    @classmethod
    def make(cls, *, content: list[ArrayRecord], **fields: Any) -> ExportManifest:
        """A manifest with its schema and its two own digests filled in."""
        arrays = [array.model_dump() for array in content]
        plain = {key: _plain(value) for key, value in fields.items()}
        plain |= {"schema": EXPORT_SCHEMA, "content": arrays, "content_sha256": sha256_of(arrays)}
        return cls.model_validate({**plain, "export_sha256": sha256_of(plain)})


def _plain(value: Any) -> Any:
    if isinstance(value, Strict):
        return value.model_dump(by_alias=True)
    return [_plain(item) for item in value] if isinstance(value, list) else value


def read_export(data: bytes) -> ExportManifest:
    """Parse and prove the manifest of an export: canonical bytes, known keys, both digests. ManifestError otherwise."""
    return read_proven(data, ExportManifest, "the manifest of an export", own="export_sha256", part="content")
