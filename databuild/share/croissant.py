"""croissant.json: the dataset folder described for machines, as Croissant 1.1 JSON-LD. Pure: from the manifest alone.

Specification: https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1.html.
"""

from __future__ import annotations

import hashlib
from typing import Any

from databuild.share.names import MANIFEST_PATH, ROWS_FOLDER, description, hub_url, rows_pattern
from manifests.canonical import canonical_json
from manifests.model import Manifest

CONFORMS_TO = "http://mlcommons.org/croissant/1.1"

#: The @context that the specification prescribes.
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}

_PARQUET = "application/x-parquet"
_FILE_SET = "row-files"

#: (column, type, elements of its array: "row", "any", or None for a single value, what it is).
COLUMNS: tuple[tuple[str, str, str | None, str], ...] = (
    ("row", "cr:Int64", None, "Number of the row: file order is training order."),
    ("input_ids", "cr:Int32", "row", "Token ids, no padding."),
    (
        "loss_mask",
        "cr:UInt8",
        "row",
        "1: this token is a target, predicted from those before it. Not shifted: labels[t] = input_ids[t + 1], "
        "label_mask[t] = loss_mask[t + 1].",
    ),
    ("doc_starts", "cr:Int32", "any", "Where each conversation, or its continuation at 0, begins in the row."),
    ("doc_rows", "cr:Int64", "any", "Source row index of each of those."),
    ("num_targets", "cr:Int32", None, "sum(loss_mask), at least 1."),
    ("xxh3", "cr:UInt64", None, "xxh3_64 of the row's input_ids as little-endian int32, then its loss_mask as uint8."),
)


def croissant_json(manifest: Manifest, *, repo: str | None = None) -> bytes:
    """The bytes of croissant.json for a dataset folder; repo (OWNER/NAME) where it is published, if that is known."""
    licenses = sorted({source.license for source in manifest.sources if source.license})
    value: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": manifest.name,
        "description": description(manifest),
        "identifier": f"rows_sha256:{manifest.rows.rows_sha256}",
        "isBasedOn": [_source(source) for source in manifest.sources],
        "keywords": ["sft", "tokenized", "deepseek-v4", "loss-mask", "databuild"],
        "version": "1.0.0",
        "distribution": _distribution(manifest),
        "recordSet": [_record_set(manifest)],
    }
    if licenses:
        value["license"] = licenses if len(licenses) > 1 else licenses[0]
    if repo is not None:
        value["url"] = hub_url(repo)
    return canonical_json(value)


def _distribution(manifest: Manifest) -> list[dict[str, Any]]:
    raw = manifest.to_bytes()
    files = [
        {
            "@type": "cr:FileObject",
            "@id": MANIFEST_PATH,
            "name": MANIFEST_PATH,
            "description": "What was built, from what, and the digests that prove it.",
            "contentUrl": MANIFEST_PATH,
            "contentSize": f"{len(raw)} B",
            "encodingFormat": "application/json",
            "sha256": hashlib.sha256(raw).hexdigest(),
        }
    ]
    for file in manifest.files:
        path = f"{ROWS_FOLDER}/{file.name}"
        files.append(
            {
                "@type": "cr:FileObject",
                "@id": path,
                "name": path,
                "description": f"{file.rows:,} rows.",
                "contentUrl": path,
                "contentSize": f"{file.bytes} B",
                "encodingFormat": _PARQUET,
                "sha256": file.sha256,
            }
        )
    if len(manifest.files) > 1:
        files.append(
            {
                "@type": "cr:FileSet",
                "@id": _FILE_SET,
                "name": _FILE_SET,
                "description": "All row files, in the order of their names.",
                "encodingFormat": _PARQUET,
                "includes": rows_pattern(manifest),
            }
        )
    return files


def _record_set(manifest: Manifest) -> dict[str, Any]:
    only = manifest.files[0].name
    where = (
        {"fileSet": {"@id": _FILE_SET}} if len(manifest.files) > 1 else {"fileObject": {"@id": f"{ROWS_FOLDER}/{only}"}}
    )
    fields = []
    for name, kind, elements, about in COLUMNS:
        field: dict[str, Any] = {
            "@type": "cr:Field",
            "@id": f"rows/{name}",
            "name": name,
            "description": about,
            "dataType": kind,
            "source": {**where, "extract": {"column": name}},
        }
        if elements is not None:
            field |= {"isArray": True, "arrayShape": str(manifest.rows.row_tokens) if elements == "row" else "-1"}
        fields.append(field)
    return {
        "@type": "cr:RecordSet",
        "@id": "rows",
        "name": "rows",
        "description": f"{manifest.rows.rows:,} rows of {manifest.rows.row_tokens:,} tokens.",
        "key": {"@id": "rows/row"},
        "field": fields,
    }


def _source(source: Any) -> str:
    if source.kind == "hub":
        return f"{hub_url(source.name)}/tree/{source.revision}"
    return f"{source.name or source.kind}, identity_sha256 {source.identity_sha256}"
