"""RunLog: one line a step whatever happens, no step that is not a number, and figures that can be computed again."""

import json
import math
import statistics
import subprocess
import sys

import pytest

pytest.importorskip("yaml")

from train import stack
from train.config import TrainConfig, load_config
from train.flops import attention_flops_per_token, parameter_counts
from train.logs import Phases, RunLog, TrainError, read_metrics
from train.summary import default_window, summarize

CONFIG = TrainConfig(
    num_layers=2, hidden_size=8, ffn_hidden_size=12, num_attention_heads=2, steps=20, seq_length=16,
    global_batch_size=4, peak_tflops=989.0, price_per_gpu_hour=7.912,
)  # fmt: skip
KEYS = [
    "step", "loss", "grad_norm", "lr", "num_targets", "tokens", "step_time_s", "tokens_per_s_per_gpu", "consumed_rows",
    "peak_allocated_gib", "peak_reserved_gib",
]  # fmt: skip


@pytest.fixture(autouse=True)
def quick_stack(monkeypatch):
    monkeypatch.setattr("train.logs.describe_stack", lambda: {"python": "3"})


def record(log, step, **changes):
    fields = {
        "step": step, "loss": 2.0 - step / 100, "grad_norm": 1.0, "lr": 1e-5, "num_targets": 40, "tokens": 64,
        "step_time_s": 1.0 + step / 10, "consumed_rows": 4 * step,
    }  # fmt: skip
    log.step(**(fields | changes))


def run(folder, steps, **options):
    log = RunLog(folder, CONFIG, 0, 2, tensorboard=False, **options)
    for step in steps:
        record(log, step)
    return log


def steps_in(folder):
    return [line["step"] for line in read_metrics(folder / "metrics.jsonl")]


def test_one_line_a_step_at_once(tmp_path, capsys):
    log = RunLog(tmp_path, CONFIG, 0, 2, tensorboard=False)
    for step in range(1, 4):
        record(log, step)
        (line,) = [json.loads(text) for text in (tmp_path / "metrics.jsonl").read_text().splitlines()][step - 1 :]
        assert list(line) == KEYS
        assert line["tokens_per_s_per_gpu"] == 64 / (line["step_time_s"] * 2)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3 and said[0].startswith("step 1/20  loss 1.9900  grad norm 1.000  lr 1.00e-05  40 targets")


def test_the_load_of_experts(tmp_path):
    log = RunLog(tmp_path, CONFIG, 0, 1, tensorboard=False)
    record(log, 1, expert_load={"decoder.layers.0": [4, 0, 2, 2]})
    (line,) = read_metrics(tmp_path / "metrics.jsonl")
    assert line["expert_load"] == {"decoder.layers.0": {"max": 4.0, "mean": 2.0}}


def test_other_ranks_write_and_say_nothing(tmp_path, capsys):
    log = RunLog(tmp_path / "out", CONFIG, 1, 2)
    record(log, 1)
    log.finish()
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr() == ("", "")


def test_progress_is_said_every_log_interval_and_at_the_end(tmp_path, capsys):
    log = RunLog(tmp_path, CONFIG.model_copy(update={"log_interval": 8}), 0, 1, tensorboard=False)
    for step in range(1, 21):
        record(log, step)
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["8/20", "16/20", "20/20"]
    assert steps_in(tmp_path) == list(range(1, 21))


def test_a_resumed_run_cuts_what_came_after_its_step(tmp_path):
    run(tmp_path, range(1, 8))
    run(tmp_path, range(5, 7))
    assert steps_in(tmp_path) == [1, 2, 3, 4, 5, 6]
    run(tmp_path, range(1, 3))
    assert steps_in(tmp_path) == [1, 2]


def test_a_line_that_was_cut_off_by_a_kill_is_left_out(tmp_path):
    run(tmp_path, range(1, 5))
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert steps_in(tmp_path) == [1, 2, 3]
    run(tmp_path, range(4, 6))
    assert steps_in(tmp_path) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("text", ["nonsense\n", "7\n", '{"loss": 1}\n', '{"step": "1"}\n', "\n"])
def test_a_foreign_metrics_file_is_not_overwritten(tmp_path, text):
    (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(TrainError, match="not a step"):
        run(tmp_path, [1])
    assert (tmp_path / "metrics.jsonl").read_text() == text


@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"loss": math.nan}, "the loss is not a finite number"),
        ({"loss": math.inf}, "the loss is not a finite number"),
        ({"grad_norm": math.nan}, "the gradient norm is not a finite number"),
        ({"num_targets": 0, "loss": math.nan}, "nothing to train"),
    ],
)
def test_a_step_that_is_not_one_stops_every_rank(tmp_path, rank, changes, what):
    log = RunLog(tmp_path, CONFIG, rank, 2, tensorboard=False)
    record(log, 1)
    with pytest.raises(TrainError, match=what) as caught:
        record(log, 2, **changes)
    assert caught.value.where == "step 2" and caught.value.exit_code == 1
    log.finish()
    assert rank or (steps_in(tmp_path) == [1] and (tmp_path / "summary.json").exists())


def test_a_gradient_norm_may_be_missing(tmp_path):
    record(RunLog(tmp_path, CONFIG, 0, 1, tensorboard=False), 1, grad_norm=None)
    assert read_metrics(tmp_path / "metrics.jsonl")[0]["grad_norm"] is None


def test_the_summary_of_a_run(tmp_path):
    phases = Phases(started_at=0.0)
    with phases.timed("rows"):
        pass
    log = run(tmp_path, range(20), phases=phases)
    with phases.timed("save"):
        pass
    log.finish(window=(5, 19))
    log.finish()  # once is enough
    summary = json.loads((tmp_path / "summary.json").read_text())
    figures = summary["figures"]
    value = {name: entry["value"] for name, entry in figures.items()}
    times = [1.0 + step / 10 for step in range(5, 20)]
    speed = 15 * 64 / (sum(times) * 2)
    assert summary["window"] == [5, 19] and summary["steps"] == 20
    assert (summary["first_loss"], summary["final_loss"]) == (2.0, 2.0 - 0.19)
    assert value["tokens_per_s_per_gpu"] == pytest.approx(speed)
    assert figures["tokens_per_s_per_gpu"]["inputs"]["window_tokens"] == 15 * 64
    assert value["step_time_mean_s"] == pytest.approx(statistics.fmean(times))
    assert value["step_time_cv_percent_ddof0"] == pytest.approx(
        100 * statistics.pstdev(times) / statistics.fmean(times)
    )
    assert value["step_time_cv_percent_ddof1"] == pytest.approx(100 * statistics.stdev(times) / statistics.fmean(times))
    n = parameter_counts(CONFIG).matmul
    assert value["mfu_6n"] == pytest.approx(6 * n * speed / 989e12)
    assert summary["parameters"]["matmul"] == n
    attention = attention_flops_per_token(CONFIG)
    assert value["mfu_with_attention"] == pytest.approx((6 * n + attention) * speed / 989e12)
    assert value["usd_per_million_tokens"] == pytest.approx(7.912e6 / (3600 * speed))
    hours = figures["gpu_hours"]
    assert hours["value"] == pytest.approx(2 * hours["inputs"]["wall_s"] / 3600)
    assert list(summary["phases_s"]) == ["imports", "rows", "to_first_step_end", "save"]
    assert all(set(entry) == {"value", "formula", "inputs"} for entry in figures.values())
    assert load_config(tmp_path / "config.yaml") == CONFIG


@pytest.mark.parametrize(("profiled", "window"), [(6, (7, 20)), (18, (6, 17)), (20, (6, 19)), (3, (6, 20))])
def test_a_profiled_step_is_no_part_of_the_window(profiled, window):
    lines = [{"step": k, "loss": 1.0, "tokens": 64, "step_time_s": 1.0} for k in range(1, 21)]
    lines[profiled - 1] |= {"profiled": True, "step_time_s": 9.0}
    assert default_window(lines) == window
    figures = summarize(lines, CONFIG, num_gpus=1, wall_s=60.0)["figures"]
    assert figures["step_time_mean_s"]["value"] == 1.0
    assert figures["tokens_per_s_per_gpu"]["value"] == 64
    assert default_window([{**lines[0], "profiled": True}]) == (1, 1)


def test_figures_without_their_inputs_are_null():
    lines = [{"step": 3, "loss": 1.0, "tokens": 64, "step_time_s": 2.0}]
    bare = CONFIG.model_copy(update={"peak_tflops": None, "price_per_gpu_hour": None})
    figures = summarize(lines, bare, num_gpus=1, wall_s=9.0)["figures"]
    for name in ("mfu_6n", "mfu_with_attention", "usd_per_million_tokens", "step_time_cv_percent_ddof1"):
        assert figures[name]["value"] is None
    assert figures["tokens_per_s_per_gpu"]["value"] == 32
    documents = CONFIG.model_copy(update={"attention": "document"})
    assert summarize(lines, documents, num_gpus=1, wall_s=9.0)["figures"]["mfu_with_attention"]["value"] is None
    given = summarize(lines, documents, num_gpus=1, wall_s=9.0, attention_flops=10.0)
    assert given["figures"]["mfu_with_attention"]["value"] > 0
    empty = summarize([], CONFIG, num_gpus=1, wall_s=9.0)
    assert empty["window"] is None and empty["figures"]["tokens_per_s_per_gpu"]["value"] is None


@pytest.mark.parametrize(("count", "first"), [(1, 0), (2, 1), (9, 4), (10, 5), (20, 5)])
def test_the_window_leaves_out_the_first_steps(count, first):
    assert default_window([{"step": step} for step in range(count)]) == (first, count - 1)


def test_the_figures_of_a_published_run_come_out():
    """808.22 tokens/s/GPU on 64 GPUs over steps 5..19 of 128 rows of 8,192 tokens; 2.72 dollars; 12.16 GPU-hours."""
    config = TrainConfig(
        num_layers=2, hidden_size=8, ffn_hidden_size=12, num_attention_heads=2, price_per_gpu_hour=7.912
    )
    lines = [{"step": s, "loss": 1.0, "tokens": config.tokens_per_step, "step_time_s": 20.272} for s in range(20)]
    figures = summarize(lines, config, num_gpus=64, wall_s=684.0)["figures"]
    assert figures["tokens_per_s_per_gpu"]["inputs"]["window_tokens"] == 15_728_640
    assert figures["tokens_per_s_per_gpu"]["value"] == pytest.approx(808.22, abs=0.02)
    assert round(figures["usd_per_million_tokens"]["value"], 2) == 2.72
    assert figures["gpu_hours"]["value"] == pytest.approx(12.16)


def test_tensorboard_holds_the_same_numbers(tmp_path):
    pytest.importorskip("torch.utils.tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = RunLog(tmp_path, CONFIG, 0, 1)
    record(log, 1, expert_load={"layer": [3, 1]})
    record(log, 2)
    log.finish()
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(e.step, round(e.value, 4)) for e in events.Scalars("train/loss")] == [(1, 1.99), (2, 1.98)]
    assert events.Scalars("experts/layer/max_over_mean")[0].value == 1.5


def git(folder, *arguments):
    subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *arguments], cwd=folder, check=True)


def test_the_commit_is_that_of_the_code_and_of_no_repository_around_it(tmp_path):
    file = tmp_path / "code.py"
    file.write_text("1")
    git(tmp_path, "init", "-q")
    assert stack._git(file) == (None, None)
    git(tmp_path, "add", "code.py")
    git(tmp_path, "commit", "-q", "-m", "m")
    commit, clean = stack._git(file)
    assert len(commit) == 40 and clean is True
    (tmp_path / "new").write_text("")
    assert stack._git(file) == (commit, False)


def test_the_stack_names_what_is_there_and_null_for_what_is_not(monkeypatch):
    monkeypatch.setattr(stack, "PACKAGES", ("numpy", "no-such-package"))
    monkeypatch.setattr(stack, "_driver", lambda: None)
    found = stack.describe_stack()
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["numpy"] and found["no_such_package"] is None
    assert json.loads(json.dumps(found)) == found
    assert stack._output("no-such-command") is None
    assert stack._output("false") is None
