"""Curves are read from our metrics.jsonl and from the logs of miles and Megatron, with the same numbering of steps."""

import json
import math

import pytest

from databuild.errors import UsageError
from train.convergence.curves import read_curve
from train.convergence.perf import speed

LOSSES = [3.5, 3.25, 3.0, 2.75, 2.5, 2.25, 2.0]


def ours(losses=LOSSES, **more):
    return "".join(
        json.dumps(
            {"step": i + 1, "loss": v, "step_time_s": 2.0 + i, "tokens_per_s_per_gpu": 100.0 / (2 + i),
             "peak_allocated_gib": 30.5, **more}
        ) + "\n"
        for i, v in enumerate(losses)
    )  # fmt: skip


def miles(losses=LOSSES):
    head = "[2026-10-13 11:02:33] (MegatronTrainRayActor pid=41, ip=10.0.0.1) "
    lines = []
    for i, v in enumerate(losses):
        lines.append(
            f"{head}perf {i}: {{'perf/train_wait_time': 0.5, 'perf/train_time': {1.5 + i}, 'perf/step_time': {2.0 + i}}}"
        )
        lines.append(
            f"{head}step {i}: {{'train/loss': {v!r}, 'train/grad_norm': 0.5, 'train/lr-pg_0': 1e-06, 'train/step': {i}}}"
        )
    return "\n".join(["starting", *lines, ""])


def megatron(losses=LOSSES):
    lines = [
        f" [2026-10-13 11:02:33] iteration {i + 1:8d}/{len(losses):8d} | consumed samples: {128 * (i + 1):12d} | "
        f"elapsed time per iteration (ms): {1000 * (2.0 + i):.1f} | learning rate: 1.000000E-05 | global batch size:   128 | "
        f"lm loss: {v:.6E} | loss scale: 1.0 | grad norm: 0.500 | number of skipped iterations:   0 |"
        for i, v in enumerate(losses)
    ]
    memory = "[Rank 0] (after 1 iterations) memory (GB) | mem-allocated-gigabytes: 20 | mem-max-allocated-gigabytes: 32.749 | "
    return "\n".join([lines[0], memory, *lines[1:], ""])


@pytest.mark.parametrize(("name", "text", "kind"), [
    ("metrics.jsonl", ours(), "databuild"), ("run.log", miles(), "miles"), ("log.out", megatron(), "megatron"),
])  # fmt: skip
def test_each_log_gives_the_same_curve_from_step_0(tmp_path, name, text, kind):
    (tmp_path / name).write_text(text)
    curve = read_curve(tmp_path / name)
    assert curve.format == kind
    assert curve.steps == tuple(range(7))
    assert curve.losses == tuple(LOSSES)
    assert curve.step_time_s == tuple(2.0 + i for i in range(7))


def test_a_run_folder_is_read_and_a_cut_off_line_left_out(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(ours() + '{"step": 8, "lo')
    assert read_curve(tmp_path).losses == tuple(LOSSES)


def test_nan_is_kept_for_the_rule_to_refuse(tmp_path):
    (tmp_path / "a.log").write_text(megatron([2.0, math.nan]).replace("NAN", "nan"))
    (tmp_path / "b.log").write_text(miles([2.0, math.nan]))
    for name in ("a.log", "b.log"):
        assert math.isnan(read_curve(tmp_path / name).losses[1])


def test_an_iteration_that_megatron_prints_without_its_loss_is_nan(tmp_path):
    (tmp_path / "a.log").write_text(megatron().replace("lm loss: 3.000000E+00 | ", ""))
    curve = read_curve(tmp_path / "a.log")
    assert curve.steps == tuple(range(7))
    assert math.isnan(curve.losses[2])


def test_lines_printed_by_several_ranks_count_once_and_a_restart_is_refused(tmp_path):
    (tmp_path / "twice.log").write_text(megatron() + megatron())
    assert read_curve(tmp_path / "twice.log").losses == tuple(LOSSES)
    (tmp_path / "restart.log").write_text(megatron() + megatron([9.0, 8.0]))
    with pytest.raises(UsageError, match="two different losses"):
        read_curve(tmp_path / "restart.log")


def test_speed_is_of_the_window_and_weighs_steps_by_their_time(tmp_path):
    (tmp_path / "metrics.jsonl").write_text(ours())
    (tmp_path / "run.log").write_text(miles())
    found = speed(read_curve(tmp_path))
    # Half of 7 steps are left out: steps 3 to 6 take 5, 6, 7, 8 seconds of 100 tokens each.
    assert (found.first, found.last, found.steps) == (3, 6, 4)
    assert found.step_time_mean_s == found.step_time_median_s == 6.5
    assert found.step_time_cv_percent == pytest.approx(100 * 1.25**0.5 / 6.5)
    assert found.tokens_per_s_per_gpu == pytest.approx(400 / 26)
    assert found.peak_gib == 30.5
    text = speed(read_curve(tmp_path / "run.log", tokens_per_step=800, gpus=8))
    assert text.tokens_per_s_per_gpu == pytest.approx(400 / 26)
    assert text.peak_gib is None


def test_gigabytes_of_bridge_are_turned_into_gib(tmp_path):
    (tmp_path / "log.out").write_text(megatron())
    assert read_curve(tmp_path / "log.out").peak_gib == pytest.approx(30.5, abs=1e-3)


@pytest.mark.parametrize("text", ["", "nothing here\n", '{"step": 1}\n', "[1]\n", '{"step": "x", "loss": 2}\n'])
def test_what_is_not_a_run_is_refused(tmp_path, text):
    (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(UsageError):
        read_curve(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        read_curve(tmp_path / "absent")
