"""Two layouts of one model give the same log-probability of each target token and the same curve; a strict rerun is bitwise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("megatron.core")

from layout_worker import TINY, TinyRows

from train.config import TrainConfig
from train.convergence.curves import read_curve
from train.convergence.parity import parity, read_dump
from train.convergence.plot import write_plot
from train.convergence.report import compare, facts

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("parity")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [*command, str(Path(__file__).with_name("parity_worker.py")), str(out)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return out


def test_the_dump_holds_every_target_of_the_first_batch_once_and_adds_up_to_the_loss(runs):
    config = TrainConfig.model_validate(TINY)
    rows, positions = np.nonzero(TinyRows(config).mask[: config.global_batch_size])
    for name in ("dp2", "dp2_mbs2", "tp2_sp_full", "pp2", "cp2"):
        dump = read_dump(runs / name)
        np.testing.assert_array_equal(dump.row, rows, err_msg=name)
        np.testing.assert_array_equal(dump.position, positions, err_msg=name)
        assert -dump.logprob.astype(np.float64).mean() == pytest.approx(read_curve(runs / name).losses[0], abs=1e-9)


@pytest.mark.parametrize("name", ["dp2_mbs2", "tp2_sp_full", "pp2", "cp2"])
def test_layouts_agree_on_each_token_and_on_the_curve(runs, name):
    base, other = runs / "dp2", runs / name
    found = parity(read_dump(base), read_dump(other), read_dump(runs / "dp2_again"))
    assert found.passed
    assert found.mean < 1e-6
    assert found.largest < 1e-5
    judged = compare(read_curve(other), read_curve(base), perf=True)
    assert all(verdict.passed for verdict in judged.verdicts.values())
    assert judged.verdicts["function"].max_abs_difference < 1e-5
    assert judged.speeds is not None
    assert all(s.tokens_per_s_per_gpu for s in judged.speeds)


def test_experts_over_tensor_and_expert_parallel_ranks_agree(runs):
    assert parity(read_dump(runs / "moe_dp2"), read_dump(runs / "moe_ep2_tp2")).mean < 1e-6


def test_a_strict_rerun_has_correlation_one_and_no_difference(runs, tmp_path):
    base, again = (read_curve(runs / name) for name in ("dp2", "dp2_again"))
    judged = compare(again, base)
    for verdict in judged.verdicts.values():
        assert verdict.passed
        assert verdict.correlation == pytest.approx(1, abs=1e-12)
        assert verdict.max_abs_difference == verdict.final_loss_difference == verdict.pointwise_failures == 0
    assert parity(read_dump(runs / "dp2"), read_dump(runs / "dp2_again")).largest == 0
    write_plot(tmp_path / "curves.html", [again, base], ["again", "first"], facts(judged))
    assert (tmp_path / "curves.html").read_text().count("<polyline") == 2


def test_a_weight_that_is_a_hundredth_off_shows(runs):
    found = parity(read_dump(runs / "dp2"), read_dump(runs / "moved"), read_dump(runs / "dp2_again"))
    assert found.passed is False
    assert found.mean > 1e-5
