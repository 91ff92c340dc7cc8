"""`python -m train launch` really starts our engine: the recipe's layout and rows, on a CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("torch")
pytest.importorskip("megatron.core")

ROOT = Path(__file__).parents[2]

RECIPE = {
    "model": "tiny-dense",
    "gpu": {"type": "none", "count": 1, "per_node": 1},
    "workload": {"row_tokens": 64, "global_batch": 2},
    "layout": {"tp": 1, "pp": 1, "cp": 1, "ep": 1, "etp": 1, "dp": 1, "recompute": {"granularity": "full"}},
    "result": {"steps_per_run": 2},
    "env": {"OMP_NUM_THREADS": "1"},
}


def test_a_recipe_becomes_a_run(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600, check=False
        )

    build = ("fixed", "--source", "demo", "--row-tokens", "64", "--rows", "4", "--out", "rows", "--quiet")
    assert call("databuild.cli", *build).returncode == 0
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    done = call("train", "launch", "recipe.yaml", "--rows", "rows", "--engine", "megatron", "--cpu", "--out", "run")
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2]
    config = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    assert {key: config[key] for key in ("global_batch_size", "seq_length", "recompute")} == {
        "global_batch_size": 2, "seq_length": 64, "recompute": "full",
    }  # fmt: skip
    assert (tmp_path / "run" / "launch-megatron.sh").exists()
    judged = call("train", "compare", "run", "run", "--json")
    # Two steps: the pipeline set leaves out none of them, and a curve equals itself.
    assert json.loads(judged.stdout)["passed"] is True
