"""A real run gives a recipe that is right and a card; a real resume is seen."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("megatron.core")

from train.recipe.check import check_recipe, wrong
from train.recipe.load import load_recipe
from train.recipe.make_card import make_card

ROOT = Path(__file__).parents[2]


def run_python(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, *map(str, arguments)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_run_its_recipe_and_its_resume(tmp_path):
    rows, run = tmp_path / "rows", tmp_path / "run"
    run_python("-m", "databuild.cli", "fixed", "--source", "demo", "--row-tokens", 64, "--rows", 64, "--out", rows)
    train = (
        "-m", "train.sft", "--rows", rows, "--out", run, "--config", ROOT / "train" / "configs" / "tiny-dense.yaml",
        "--set", "steps=10", "save_interval=8", "hidden_size=16", "global_batch_size=2", "peak_tflops=1",
    )  # fmt: skip
    run_python(*train)
    made = make_card(run, tmp_path / "first", overwrite=False)
    stated = load_recipe(tmp_path / "first" / "recipe.yaml")
    recipe = stated.recipe
    assert wrong(check_recipe(stated)) == []
    assert made["status"] == "screen"
    assert (recipe.gpu.count, recipe.layout.dp, recipe.layout.rows_per_microbatch) == (1, 1, 1)
    assert any("GPUs of a node" in text for text in made["missing"])  # torchrun would have said it
    assert recipe.workload.rows == 64
    assert recipe.stack.pytorch is not None
    assert recipe.env["OMP_NUM_THREADS"] == "1"
    assert recipe.result.measured is not None

    # Back to the save before the last one, and on from there.
    shutil.rmtree(run / "checkpoints" / "step-00000010")
    (run / "checkpoints" / "latest").write_text("step-00000008\n")
    run_python(*train, "--resume")
    make_card(run, tmp_path / "second", overwrite=False)
    stated = load_recipe(tmp_path / "second" / "recipe.yaml")
    assert wrong(check_recipe(stated)) == []
    seen = stated.recipe.evidence.observed
    assert (seen.steps, seen.checkpoint_step, seen.resumed_to_step) == (10, 8, 10)
    assert stated.recipe.result.window == [9, 9]
    assert stated.recipe.status == "screen"
