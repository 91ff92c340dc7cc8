"""A card and a recipe say what the files of the run say, and files that contradict each other give neither."""

import json
import shutil
import statistics

import pytest
import yaml

from databuild.errors import DatabuildError, IntegrityError, OutputError, UsageError
from train.config import TrainConfig
from train.flops import attention_flops_per_token, parameter_counts
from train.recipe.card import card_metrics
from train.recipe.check import check_recipe, wrong
from train.recipe.load import load_recipe
from train.recipe.make_card import make_card
from train.recipe.run_files import read_run
from train.summary import summarize
from train.yaml12 import parse_yaml

# What the validator of the public cards allows and asks for.
TOP = {"title", "summary", "verification_index", "model", "verification_environment", "items"}
LEAF = {
    "status", "precision", "bridge_commit", "depends_on", "command", "commands", "last_verified", "expected_result",
    "enabled_features", "metrics", "resume_comparison", "variants",
}  # fmt: skip
ITEMS = {
    "hf_to_megatron_cpu", "hf_to_megatron_gpu", "megatron_to_hf_cpu", "megatron_to_hf_gpu", "manual_forward_pass",
    "inference", "pretrain", "sft", "sft_export_inference", "sft_long_context", "peft", "checkpoint_resume",
}  # fmt: skip
METRICS = {
    "initial_loss", "final_loss", "last_10_steps_step_time_ms_avg", "last_10_steps_model_tflops_per_gpu_avg",
    "last_10_steps_tokens_per_second_per_gpu_avg",
}  # fmt: skip


def lines_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def change_json(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def made(run, **options):
    result = make_card(run, run / "card", overwrite=options.pop("overwrite", False))
    card = yaml.safe_load((run / "card" / "card.yaml").read_text())
    return result, load_recipe(run / "card" / "recipe.yaml"), card


def resumed(run, *, steps, saved, own, **config_changes):
    """Make of a run one of more steps that was saved and resumed: lines, summary and checkpoints that fit together."""
    first = lines_of(run)
    lines = [first[k % len(first)] | {"step": k + 1, "consumed_rows": 8 * (k + 1)} for k in range(steps)]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    values = parse_yaml((run / "config.yaml").read_text(), "c", "c") | {"steps": steps}
    config = TrainConfig.model_validate(values | config_changes)
    from train.config import print_config

    (run / "config.yaml").write_text(print_config(config))
    summary = summarize(lines[-own:], config, num_gpus=1, wall_s=500.0)
    (run / "summary.json").write_text(json.dumps(summary | {"finished_at": "2026-11-30T10:00:00+00:00"}))
    record = json.loads((run / "checkpoints" / "step-00000012" / "checkpoint.json").read_text())
    shutil.rmtree(run / "checkpoints")
    folder = run / "checkpoints" / f"step-{saved:08d}"
    folder.mkdir(parents=True)
    saved_config = TrainConfig.model_validate(values).model_dump(mode="json")
    (folder / "checkpoint.json").write_text(json.dumps(record | {"step": saved, "config": saved_config}))


def test_the_recipe_of_a_real_run_is_right_and_says_what_its_files_say(golden_run):
    result, stated, _ = made(golden_run)
    lines, recipe = lines_of(golden_run), stated.recipe
    assert wrong(check_recipe(stated)) == []
    assert result["right"] > 50
    assert recipe.status == result["status"] == "screen"
    times = [line["step_time_s"] for line in lines[5:]]
    assert recipe.result.window == [5, 11]
    assert recipe.result.window_tokens == 7 * 8 * 64
    assert recipe.result.tokens_per_s_per_gpu == pytest.approx(7 * 8 * 64 / sum(times), rel=1e-5)
    assert recipe.result.step_time_cv_percent == pytest.approx(
        100 * statistics.pstdev(times) / statistics.fmean(times), abs=6e-3
    )
    summary = json.loads((golden_run / "summary.json").read_text())["figures"]
    assert recipe.result.mfu == pytest.approx(summary["mfu_6n"]["value"], rel=1e-3)
    assert recipe.result.usd_per_million_tokens == pytest.approx(summary["usd_per_million_tokens"]["value"], rel=1e-4)
    assert recipe.result.gpu_hours == pytest.approx(summary["gpu_hours"]["value"], rel=1e-3)
    manifest = json.loads((golden_run / "rows.json").read_text())
    assert recipe.workload.dataset.rows_sha256 == manifest["rows"]["rows_sha256"]
    assert recipe.workload.dataset.build.seed == manifest["spec"]["seed"] == 42
    assert recipe.evidence.observed.checkpoint_step is None  # saved, but never resumed
    assert recipe.correctness is None


def test_the_run_block_is_the_whole_configuration(golden_run):
    from train.recipe.checks_run import run_config
    from train.recipe.flags import parse_run

    _, stated, _ = made(golden_run)
    config = run_config(parse_run(stated.recipe.run))
    assert config == TrainConfig.model_validate(parse_yaml((golden_run / "config.yaml").read_text(), "c", "c"))


def test_the_card_has_the_public_layout_and_claims_nothing(golden_run):
    result, _, card = made(golden_run)
    assert card.keys() == TOP
    assert card["items"].keys() == ITEMS
    index = card["verification_index"]
    named = [*index["model_level"]["unverified"], *index["training"]["CPU"]["unverified"]]
    assert sorted(named) == sorted(ITEMS)
    for name, item in card["items"].items():
        leaf = item if "status" in item else item["CPU"]
        assert leaf["status"] == "unverified"
        assert leaf.keys() <= LEAF
        assert ("metrics" in leaf) == (
            name in index["training"]["CPU"]["unverified"] and name != "sft_export_inference"
        )
        if "metrics" in leaf:
            assert leaf["metrics"].keys() == METRICS
            assert any(leaf["metrics"].values()) == (name == "sft")
    assert any("CPU" in text for text in result["missing"])
    text = (golden_run / "card" / "card.yaml").read_text()
    assert "://" not in text and " /" not in text and "$" not in text  # the layout forbids addresses, paths, variables


def test_the_metrics_of_the_card(golden_run):
    run, lines = read_run(golden_run), lines_of(golden_run)
    metrics = card_metrics(run)
    seconds = sum(line["step_time_s"] for line in lines[-10:]) / 10
    assert metrics["last_10_steps_step_time_ms_avg"] == pytest.approx(1000 * seconds, abs=6e-4)
    speed = metrics["last_10_steps_tokens_per_second_per_gpu_avg"]
    # The identity that the public cards keep: tokens/s/GPU * GPUs * step time = global batch * row length.
    assert speed * 1 * seconds == pytest.approx(8 * 64, rel=1e-5)
    flops = 6 * parameter_counts(run.config).matmul_with_mtp + attention_flops_per_token(run.config)
    assert metrics["last_10_steps_model_tflops_per_gpu_avg"] == pytest.approx(flops * speed / 1e12, rel=1e-4)
    assert (metrics["initial_loss"], metrics["final_loss"]) == (round(lines[0]["loss"], 3), round(lines[-1]["loss"], 3))


def test_a_run_that_was_saved_and_resumed_is_verified(golden_run):
    resumed(golden_run, steps=105, saved=100, own=5)
    result, stated, card = made(golden_run)
    assert result["status"] == stated.recipe.status == "verified"
    assert card["items"]["sft"]["CPU"]["status"] == "verified"
    assert card["items"]["sft"]["CPU"]["last_verified"] == "2026-11-30"
    assert card["verification_index"]["training"]["CPU"]["verified"] == ["sft"]
    assert stated.recipe.evidence.observed.resumed_to_step == 105
    assert stated.recipe.result.gpu_hours is None  # those of the first process are not recorded


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"steps": 104, "saved": 100, "own": 4}, "screen"),
        ({"steps": 105, "saved": 99, "own": 6}, "screen"),
        ({"steps": 105, "saved": 100, "own": 5, "recompute": "full"}, "unverified"),  # 5 steps of this layout
        ({"steps": 110, "saved": 100, "own": 5}, "unverified"),  # the checkpoint that it went on from is gone
    ],
)
def test_less_than_that_is_less(golden_run, options, status):
    resumed(golden_run, **options)
    result, stated, card = made(golden_run)
    assert result["status"] == stated.recipe.status == status
    assert card["items"]["sft"]["CPU"]["status"] == "unverified"
    assert card["items"]["sft"]["CPU"]["last_verified"] is None
    assert wrong(check_recipe(stated)) == []


def test_what_is_not_there_is_said_and_left_null(golden_run):
    (golden_run / "stack.json").unlink()
    (golden_run / "rows.json").unlink()
    shutil.rmtree(golden_run / "checkpoints")
    result, stated, _ = made(golden_run)
    said = " ".join(result["missing"])
    assert "stack.json" in said and "rows.json" in said and "which rows" in said
    assert stated.recipe.stack.pytorch is None
    assert stated.recipe.workload.dataset is None
    assert wrong(check_recipe(stated)) == []


def test_rows_are_named_by_a_checkpoint_where_their_manifest_is_gone(golden_run):
    (golden_run / "rows.json").unlink()
    _, stated, _ = made(golden_run)
    assert stated.recipe.workload.dataset.rows_sha256.startswith("fc9c7303")
    assert stated.recipe.workload.dataset.build is None


def edit(name, old, new):
    def change(run):
        text = (run / name).read_text()
        assert old in text
        (run / name).write_text(text.replace(old, new, 1))

    return change


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (edit("metrics.jsonl", '"step_time_s": 1.', '"step_time_s": 2.'), IntegrityError, "a step contradicts itself"),
        (edit("metrics.jsonl", '"step_time_s": 0.92', '"step_time_s": 1.92'), IntegrityError, "does not follow from"),
        (edit("metrics.jsonl", '"tokens": 512', '"tokens": 513'), IntegrityError, "a step contradicts itself"),
        (
            edit("metrics.jsonl", '"consumed_rows": 8', '"consumed_rows": 9'),
            IntegrityError,
            "a step contradicts itself",
        ),
        (
            edit("metrics.jsonl", '"step": 3, "loss": 11', '"step": 3, "loss": 1e999, "l": 11'),
            IntegrityError,
            "a step contradicts itself",
        ),
        (edit("metrics.jsonl", '"loss": 11.77', '"loss": 11.70'), IntegrityError, "first_loss of summary.json"),
        (edit("summary.json", '"wall_s": 2', '"wall_s": 3'), IntegrityError, "does not follow from"),
        (edit("summary.json", '"window_tokens": 3', '"window_tokens": 4'), IntegrityError, "does not follow from"),
        (edit("summary.json", '"steps": 12', '"steps": 13'), IntegrityError, "not of these steps"),
        (edit("summary.json", '"final_loss"', '"last_loss"'), IntegrityError, "final_loss"),
        (edit("summary.json", '"figures"', '"numbers"'), IntegrityError, "not of this version"),
        (edit("summary.json", "{", "["), IntegrityError, "damaged"),
        (edit("config.yaml", "hidden_size: 64", "hidden_size: 128"), IntegrityError, "does not follow from"),
        (edit("config.yaml", "steps: 12", "steps: 24"), UsageError, "stopped before its last step"),
        (edit("config.yaml", "pp: 1", "ppp: 1"), UsageError, "another version"),
        (edit("rows.json", '"rows": 128', '"rows": 129'), IntegrityError, "rows.json is damaged"),
        (edit("checkpoints/step-00000006/checkpoint.json", "fc9c", "aaaa"), IntegrityError, "two sets of rows"),
        (lambda run: (run / "summary.json").unlink(), UsageError, "has not finished"),
        (lambda run: (run / "metrics.jsonl").unlink(), UsageError, "no step was recorded"),
        (lambda run: (run / "config.yaml").unlink(), UsageError, "no run here"),
    ],
)
def test_files_that_contradict_each_other_give_no_card(golden_run, change, error, says):
    change(golden_run)
    with pytest.raises(DatabuildError) as caught:
        make_card(golden_run, golden_run / "card", overwrite=False)
    assert isinstance(caught.value, error)
    assert says in str(caught.value)
    assert not (golden_run / "card").exists()


def test_a_step_that_is_gone_is_seen(golden_run):
    lines = (golden_run / "metrics.jsonl").read_text().splitlines(keepends=True)
    (golden_run / "metrics.jsonl").write_text("".join(lines[:3] + lines[4:]))
    with pytest.raises(IntegrityError, match="every step once"):
        read_run(golden_run)


def test_the_folder_is_whole_or_not_there(golden_run, monkeypatch):
    out = golden_run / "card"

    def full(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("train.recipe.write.sync", full)
        with pytest.raises(OutputError, match="No space left"):
            make_card(golden_run, out, overwrite=False)
    assert not out.exists() and not out.with_name("card.partial").exists()
    made(golden_run)
    with pytest.raises(OutputError, match="taken"):
        made(golden_run)
    first = (out / "recipe.yaml").read_bytes()
    made(golden_run, overwrite=True)
    assert (out / "recipe.yaml").read_bytes() == first
    (out / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="taken"):
        made(golden_run, overwrite=True)
    assert (out / "notes.txt").exists()


def test_a_gpu_is_named_as_the_public_cards_name_it(golden_run):
    for name, kind in (("NVIDIA H200", "H200"), ("NVIDIA GB200", "GB200"), ("NVIDIA H100 80GB HBM3", "H100")):
        change_json(golden_run / "stack.json", gpu=name)
        run = read_run(golden_run)
        from train.recipe.from_run import gpu_type

        assert gpu_type(run) == kind


def other_run(run, folder, change):
    """A copy of a run whose lines went through change, its summary computed again."""
    shutil.copytree(run, folder)
    lines = [change(line) for line in lines_of(folder)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    old = json.loads((folder / "summary.json").read_text())
    inputs = old["figures"]["gpu_hours"]["inputs"]
    config = TrainConfig.model_validate(parse_yaml((folder / "config.yaml").read_text(), "c", "c"))
    again = summarize(lines, config, num_gpus=inputs["gpus"], wall_s=inputs["wall_s"], window=tuple(old["window"]))
    change_json(folder / "summary.json", **again)
    return folder


@pytest.mark.parametrize(("factor", "result", "status"), [(1.0, "pass", "candidate"), (1.2, "fail", "screen")])
def test_a_golden_run_judges_the_loss_curve(golden_run, tmp_path, factor, result, status):
    current = other_run(golden_run, tmp_path / "current", lambda line: line | {"loss": line["loss"] * factor})
    found = make_card(current, tmp_path / "card", overwrite=False, golden=golden_run)
    stated = load_recipe(tmp_path / "card" / "recipe.yaml")
    correctness = stated.recipe.correctness
    assert (correctness.result, correctness.convergence.result, found["status"]) == (result, result, status)
    assert correctness.convergence.final_loss_difference == pytest.approx(factor - 1, abs=1e-6)
    assert correctness.convergence.steps == len(lines_of(current))
    assert wrong(check_recipe(stated)) == []


def test_a_golden_run_of_another_configuration_is_refused(golden_run, tmp_path):
    shutil.copytree(golden_run, tmp_path / "current")
    path = tmp_path / "current" / "config.yaml"
    lines = path.read_text().splitlines()
    changed = ["weight_decay: 0.3" if line.startswith("weight_decay") else line for line in lines]
    assert changed != lines
    path.write_text("\n".join(changed) + "\n")
    with pytest.raises(UsageError, match="not comparable") as caught:
        make_card(tmp_path / "current", tmp_path / "card", overwrite=False, golden=golden_run)
    assert "weight_decay 0.3" in str(caught.value)
    assert not (tmp_path / "card").exists()
