"""What a run stood on: versions of everything that can change its speed or its numbers. null where it cannot be known."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

PACKAGES = ("torch", "megatron-core", "transformer-engine", "databuild", "numpy", "pyarrow")
TIMEOUT_S = 20
# Of the environment, what changes speed or numbers: names, or how they begin. No other variable is read.
ENVIRONMENT = ("CUDA_DEVICE_MAX_CONNECTIONS", "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF")
ENVIRONMENT_STARTS = ("NCCL_", "NVTE_", "FI_", "TORCH_NCCL_")


def describe_stack() -> dict[str, Any]:
    """Versions of python, the packages, CUDA, NCCL and the driver; the GPU's name; the commit of this code and its state.

    gpus_per_node: as torchrun says it. env: the variables that change speed or numbers.
    """
    commit, clean = _git(Path(__file__).resolve())
    return {
        "python": platform.python_version(),
        **{name.replace("-", "_"): _version(name) for name in PACKAGES},
        "cuda": _from_torch(lambda torch: torch.version.cuda),
        "nccl": _from_torch(_nccl),
        "driver": _driver(),
        "gpu": _from_torch(lambda torch: torch.cuda.get_device_name() if torch.cuda.is_available() else None),
        "gpus_per_node": _per_node(),
        "env": _environment(),
        "git_commit": commit,
        "git_clean": clean,
    }


def _per_node() -> int | None:
    text = os.environ.get("LOCAL_WORLD_SIZE", "")
    return int(text) if text.isdecimal() else None


def _environment() -> dict[str, str]:
    names = (name for name in os.environ if name in ENVIRONMENT or name.startswith(ENVIRONMENT_STARTS))
    return {name: os.environ[name] for name in sorted(names)}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _from_torch(ask: Callable[[Any], str | None]) -> str | None:
    try:
        import torch
    except ImportError:
        return None
    try:
        return ask(torch)
    except (RuntimeError, AttributeError):  # no such backend in this build of torch
        return None


def _nccl(torch: Any) -> str | None:
    if not torch.cuda.is_available():
        return None
    return ".".join(map(str, torch.cuda.nccl.version()))


def _driver() -> str | None:
    versions = _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    return versions.splitlines()[0].strip() if versions else None


def _git(file: Path) -> tuple[str | None, bool | None]:
    """(commit, whether tracked files are unchanged and none is untracked) of the repository that holds this file."""
    folder = str(file.parent)
    # Installed into an environment inside some other repository, this file is not part of that one.
    if _output("git", "-C", folder, "ls-files", "--error-unmatch", file.name) is None:
        return None, None
    commit = _output("git", "-C", folder, "rev-parse", "HEAD")
    status = _output("git", "-C", folder, "status", "--porcelain")
    return (commit.strip() if commit else None), (None if status is None else not status.strip())


def _output(*command: str) -> str | None:
    """What a command prints; None if it is not there, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout
