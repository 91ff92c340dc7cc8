"""A build's manifest as an attestation that other tools read: an in-toto Statement v1, the same bytes for the same build.

`slsa`: with the predicate of SLSA provenance v1, the spec as external parameters, sources and tokenizer as resolved
dependencies. `in-toto`: with the link predicate v0.3, the same facts as materials and products. Nothing is signed here, and
nothing is in it that the manifest does not prove: no time, host, user or version.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

from databuild.outdir import MANIFEST
from databuild.verify import load_manifest, verify
from manifests.canonical import canonical_json
from manifests.model import Manifest, SourceRecord

Format = Literal["slsa", "in-toto"]

STATEMENT = "https://in-toto.io/Statement/v1"
PROVENANCE = "https://slsa.dev/provenance/v1"
LINK = "https://in-toto.io/attestation/link/v0.3"
BUILD_TYPE = "urn:databuild:fixed:v1"
BUILDER = "urn:databuild"


def statement(folder: Path, form: Format) -> bytes:
    """The statement about a build, after `verify --level 1` of it, as canonical JSON."""
    verify(folder, level=1)
    manifest = load_manifest(folder)
    return canonical_json(
        {
            "_type": STATEMENT,
            "subject": _subjects(manifest),
            "predicateType": PROVENANCE if form == "slsa" else LINK,
            "predicate": _provenance(manifest) if form == "slsa" else _link(manifest),
        }
    )


def _subjects(manifest: Manifest) -> list[dict[str, Any]]:
    """What is vouched for: every row file, and the manifest itself."""
    files = [_resource(file.name, file.sha256) for file in manifest.files]
    return [*files, _resource(MANIFEST, hashlib.sha256(manifest.to_bytes()).hexdigest())]


def _provenance(manifest: Manifest) -> dict[str, Any]:
    return {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": _parameters(manifest),
            "internalParameters": {},
            "resolvedDependencies": _materials(manifest),
        },
        "runDetails": {"builder": {"id": BUILDER}, "byproducts": _byproducts(manifest)},
    }


def _link(manifest: Manifest) -> dict[str, Any]:
    return {
        "name": manifest.spec["kind"],
        "command": ["databuild", manifest.spec["kind"]],
        "materials": _materials(manifest),
        "byproducts": {"spec": _parameters(manifest), "digests": _byproducts(manifest)},
        "environment": {},
    }


def _parameters(manifest: Manifest) -> dict[str, Any]:
    """The spec without what names the dependencies."""
    return {key: value for key, value in manifest.spec.items() if key not in ("tokenizer_sha256", "sources")}


def _materials(manifest: Manifest) -> list[dict[str, Any]]:
    """Every file that decided bytes: those of the sources in their order, and the tokenizer."""
    tokenizer = manifest.tokenizer
    uri = f"hf://{tokenizer.name}@{tokenizer.revision}/tokenizer.json"
    return [
        *(item for source in manifest.sources for item in _source_files(source)),
        _resource("tokenizer.json", tokenizer.tokenizer_json_sha256, uri=uri),
    ]


def _source_files(source: SourceRecord) -> list[dict[str, Any]]:
    def uri(name: str) -> str | None:
        return f"hf://datasets/{source.name}@{source.revision}/{name}" if source.kind == "hub" else None

    return [_resource(file.name, file.sha256, uri=uri(file.name)) for file in source.files]


def _byproducts(manifest: Manifest) -> list[dict[str, Any]]:
    """The digests that no writer version moves; they are of content, not of files."""
    rows = manifest.rows
    return [_resource("rows_sha256", rows.rows_sha256), _resource("docs_sha256", rows.docs_sha256)]


def _resource(name: str, sha256: str, *, uri: str | None = None) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": sha256}} | ({} if uri is None else {"uri": uri})
