"""Canonical JSON: one value, one sequence of bytes. And the readers that refuse everything else."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> bytes:
    """Sorted keys, two-space indent, UTF-8 as it is, a newline at the end; NaN and infinity are errors."""
    text = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8") + b"\n"


def sha256_of(value: Any) -> str:
    """sha256 of the canonical JSON, as hex."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def strict_json(data: bytes) -> Any:
    """Parse JSON that says each key once and holds only finite numbers; ValueError otherwise."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError(f"a key occurs twice among {sorted(key for key, _ in pairs)}")
        return result

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not a JSON number")

    return json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
