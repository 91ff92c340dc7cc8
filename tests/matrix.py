"""The same rows in every environment: `python -m tests.matrix [--quick] [--sample FILE]`.

Makes a virtual environment for each line of ENVIRONMENTS whose Python is on this machine (pip, in a temporary folder; nothing
else is touched), builds the demo and a sample of real conversations in each of RUNS, and prints what came out. Exit 1 unless
rows_sha256, docs_sha256 and the counts are equal everywhere. --quick: the oldest supported versions, and this environment.
"""

from __future__ import annotations

import argparse
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT.parent / "shared" / "samples" / "oasst_tree_paths.jsonl"

#: (Python, versions); the first is the oldest that pyproject.toml allows.
ENVIRONMENTS = [
    ("3.11", {"numpy": "1.26.4", "pyarrow": "18.0.0", "tokenizers": "0.21.0"}),
    ("3.12", {"numpy": "2.1.3", "pyarrow": "21.0.0", "tokenizers": "0.22.2"}),
    ("3.13", {"numpy": "2.4.6", "pyarrow": "26.0.1", "tokenizers": "0.23.3"}),
    ("3.11", {"numpy": "2.4.6", "pyarrow": "24.0.0", "tokenizers": "0.22.0"}),
]

#: What must not matter: (name, options, environment).
RUNS = [
    ("1 worker, C", ["--workers", "1"], {"LC_ALL": "C", "PYTHONHASHSEED": "0"}),
    ("2 workers, batches of 7, tr_TR", ["--workers", "2", "--batch-conversations", "7"],
     {"LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati"}),
    ("3 workers, batches of 999, C.UTF-8", ["--workers", "3", "--batch-conversations", "999"],
     {"LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "random", "TZ": "America/St_Johns"}),
    ("reference engine, 2 workers", ["--workers", "2"], {"DATABUILD_ENGINE": "reference", "PYTHONHASHSEED": "4294967295"}),
]  # fmt: skip


def python(version: str) -> str | None:
    """An interpreter of this version that runs, None if there is none."""
    root = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    found = [shutil.which(f"python{version}"), *sorted(glob.glob(f"{root}/versions/{version}.*/bin/python"))]
    for path in filter(None, [sys.executable, *found]):
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        ran = subprocess.run([path, "-c", code], capture_output=True, text=True)
        if ran.returncode == 0 and ran.stdout.strip() == version:
            return path
    return None


def installed(path: str, folder: Path, versions: dict[str, str]) -> str:
    """The Python of a new environment with the project and these versions."""
    subprocess.run([path, "-m", "venv", str(folder)], check=True)
    mine = str(folder / "bin" / "python")
    wanted = [f"{name}=={version}" for name, version in versions.items()]
    command = [mine, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", str(ROOT), *wanted]
    subprocess.run(command, check=True)
    return mine


def built(
    path: str, source: str, run: tuple[str, list[str], dict[str, str]], folder: Path, *, here: bool
) -> dict[str, str]:
    """Build a source, and give what must be equal (`same`), what need not be, and the seconds."""
    out = folder / "rows"
    shutil.rmtree(out, ignore_errors=True)
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "DATABUILD_ENGINE")}
    environment |= run[2] | ({"PYTHONPATH": str(ROOT)} if here else {})
    begun = time.monotonic()
    command = [path, "-m", "databuild.cli", "fixed", "--source", source, "--out", str(out), "--quiet", *run[1]]
    ran = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    seconds = f"{time.monotonic() - begun:.1f}"
    if ran.returncode:
        return {
            "same": f"exit {ran.returncode}: {ran.stderr.strip()[-300:]}",
            "file": "",
            "seconds": seconds,
            "engine": "",
        }
    manifest = json.loads((out / "manifest.json").read_bytes())
    what = {key: value for key, value in manifest.items() if key not in ("files", "manifest_sha256")}
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
    return {
        "same": f"{manifest['rows']['rows_sha256'][:16]} {digest[:8]}",
        "file": manifest["files"][0]["sha256"][:8],
        "engine": json.loads((out / "environment.json").read_bytes())["engine"],
        "seconds": seconds,
    }


def main() -> None:
    """Build everything everywhere and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="this environment, and the oldest versions")
    parser.add_argument("--sample", type=Path, default=SAMPLE, help="real conversations, beside the demo")
    options = parser.parse_args()
    sources = ["demo", *([str(options.sample)] if options.sample.exists() else [])]
    print(
        f"{'Python':7} {'numpy':7} {'pyarrow':8} {'tokenizers':10} {'run':36} "
        + " ".join(f"{Path(s).stem + ': rows, all else':26} {'parquet':8}" for s in sources)
        + " engine, s"
    )
    seen: list[set[str]] = [set() for _ in sources]
    with tempfile.TemporaryDirectory(prefix="matrix-") as scratch:
        places: list[tuple[str, dict[str, str], str, bool]] = []
        if options.quick:
            places.append((sys.executable, {}, "{}.{}".format(*sys.version_info[:2]), True))
        for version, versions in ENVIRONMENTS[:1] if options.quick else ENVIRONMENTS:
            path = python(version)
            if path is None:
                print(f"{version:7} there is no such Python on this machine")
                continue
            places.append((path, versions, version, False))
        for index, (path, versions, version, here) in enumerate(places):
            mine = path if here else installed(path, Path(scratch, f"venv{index}"), versions)
            shown = [versions.get(name, "") or "(this)" for name in ("numpy", "pyarrow", "tokenizers")]
            for run in RUNS:
                results = [built(mine, source, run, Path(scratch), here=here) for source in sources]
                cells = " ".join(f"{result['same']:26} {result['file']:8}" for result in results)
                ends = f"{results[0]['engine']}, {' '.join(result['seconds'] for result in results)}"
                print(f"{version:7} {shown[0]:7} {shown[1]:8} {shown[2]:10} {run[0]:36} {cells} {ends}", flush=True)
                for found, result in zip(seen, results, strict=True):
                    found.add(result["same"])
            if not here:
                shutil.rmtree(Path(scratch, f"venv{index}"))
    equal = all(len(found) == 1 and not next(iter(found)).startswith("exit") for found in seen)
    print("equal everywhere" if equal else "NOT EQUAL")
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
