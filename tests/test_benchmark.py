"""The benchmark runs, and everybody in it makes the same rows. Its seconds are not looked at here."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_every_competitor_makes_the_same_rows(tmp_path):
    pytest.importorskip("datasets")
    pytest.importorskip("transformers")
    pytest.importorskip("fastokens")
    names = ["ours-1", "ours-2", "engine", "tokenizers", "datasets-1"]
    command = [sys.executable, "-m", "benchmarks.build", "--conversations", "400", "--repeats", "1", "--only", *names]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "left out" not in done.stderr
    assert "every digest equal" in done.stdout
    assert sum(line.startswith("| ") for line in done.stdout.splitlines()) >= 1 + len(names)
