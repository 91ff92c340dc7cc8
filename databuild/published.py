"""Is this build the published one? Compared and reported, never assumed."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from manifests.model import Manifest


def published_facts() -> list[dict[str, Any]]:
    """What is known of published builds: manifests/published/*.json."""
    folder = resources.files("manifests").joinpath("published")
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".json"))
    return [json.loads(folder.joinpath(name).read_bytes()) for name in names]


def compare_published(manifest: Manifest) -> dict[str, Any] | None:
    """How the build compares with the published one of the same spec; None if there is none.

    Keys: name, and for each of rows_sha256, rows and supervised_token_ratio {"expected", "found", "equal"}.
    """
    source = manifest.sources[0]
    for facts in published_facts():
        same = (source.name, source.revision, source.split) == tuple(
            facts["source"][k] for k in ("name", "revision", "split")
        )
        if not same or any(manifest.spec[key] != value for key, value in facts["spec"].items()):
            continue
        ratio = facts["supervised_token_ratio"]  # published with two digits
        found = round(manifest.rows.supervised_token_ratio, 2)
        return {
            "name": facts["name"],
            "rows_sha256": _compared(facts["rows_sha256"], manifest.rows.rows_sha256),
            "rows": _compared(facts["rows"], manifest.rows.rows),
            "supervised_token_ratio": _compared(ratio, found),
        }
    return None


def _compared(expected: Any, found: Any) -> dict[str, Any]:
    return {"expected": expected, "found": found, "equal": expected == found}
