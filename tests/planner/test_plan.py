"""Plans: only legal layouts, what the published runs found, and the command around it."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from train.deepseek_v4.counts import counts
from train.planner.legal import Wanted, refusals, stage_choices
from train.planner.memory import Layout
from train.planner.plan import USABLE, make_plan
from train.planner.presets import find_model

V41 = find_model("deepseek-v4.1-flash")


@pytest.fixture
def call(train_cli):
    return train_cli


def published(row_tokens, tp):
    """The V4.1 layout of 16 H200 with this tp: EP16, no pipeline."""
    want = Wanted(gpus=16, gpus_per_node=8, row_tokens=row_tokens, global_batch_size=128)
    return make_plan(V41, want, 139, {"pp": 1, "cp": 1, "ep": 16, "etp": 1}).best(tp)


def test_the_published_finding_comes_out():
    assert published(8192, 1).status in USABLE
    assert published(32768, 1).status == published(32768, 2).status == published(32768, 4).status == "no"
    assert published(16384, 1).status == "no"
    # "TP4 fits to about 24K", and rows of 32K went to TP8: both within the error of the limit.
    assert published(22528, 4).status in USABLE
    assert published(24576, 4).status == "over"
    assert published(32768, 8).status == "over"


def test_short_rows_prefer_fewer_micro_batches_over_tp():
    want = Wanted(gpus=16, gpus_per_node=8, row_tokens=576, global_batch_size=128)
    plan = make_plan(V41, want, 139, {"pp": 1, "cp": 1, "ep": 16, "etp": 1})
    # The order of the published step times: 16.0, 36.8 and 77.7 s.
    assert [(p.layout.tp, p.micro_batches) for p in plan.usable] == [(1, 8), (2, 16), (4, 32), (8, 64)]


def test_published_splits_of_43_layers_are_found():
    assert (11, 11, 11, 10) in stage_choices(43, 4)
    assert stage_choices(43, 8)[0] == (4, 6, 6, 6, 6, 6, 6, 3)


@settings(max_examples=60, deadline=None)
@given(
    gpus=st.sampled_from([1, 2, 6, 8, 16, 24]),
    rows=st.sampled_from([1000, 4096, 8192]),
    batch=st.sampled_from([8, 24, 128]),
    name=st.sampled_from(["h200-dense-1b", "h200-moe-1b", "mla-moe-mtp", "deepseek-v4-flash"]),
)
def test_every_planned_layout_obeys_the_rules(gpus, rows, batch, name):
    model = find_model(name)
    plan = make_plan(model, Wanted(gpus=gpus, gpus_per_node=8, row_tokens=rows, global_batch_size=batch), 139)
    for p in plan.legal:
        x = p.layout
        assert x.tp * x.pp * x.cp * x.dp == gpus
        assert x.dp * p.micro_batches == batch
        assert x.tp <= 8
        assert sum(x.stages) == len(model.shape.layers)
        assert min(x.stages) > 0
        if model.shape.num_experts:
            assert x.etp * x.ep * x.pp * x.expert_dp == gpus
            assert model.shape.num_experts % x.ep == 0
        else:
            assert x.ep == x.etp == 1
        assert p.passes == (p.micro_batches + x.pp - 1) * max(x.stages)
        assert p.bubble == pytest.approx((x.pp - 1) / (p.micro_batches + x.pp - 1))
        assert (p.status in USABLE) == (p.memory.peak <= plan.limit)


@pytest.mark.parametrize(("keys", "reason"), [
    ({"gpus": 12, "tp": 8}, "tp x pp x cp does not divide"),
    ({"gpus": 16, "tp": 16}, "tp leaves a node"),
    ({"gpus": 8, "tp": 8}, "key heads"),
    ({"gpus": 2, "tp": 2}, "experts with tp > 1"),
    ({"gpus": 8, "ep": 8, "etp": 2, "tp": 2}, "etp x ep x pp does not divide"),
    ({"gpus": 16, "ep": 16}, "global batch"),
    ({"gpus": 8, "ep": 2, "etp": 2, "tp": 4, "sequence_parallel": True}, "etp is neither 1 nor tp"),
    ({"gpus": 4, "ep": 4, "tp": 4}, "need sequence parallelism"),
])  # fmt: skip
def test_what_is_illegal_says_why(keys, reason):
    shape = find_model("h200-moe-1b").shape
    want = Wanted(gpus=keys["gpus"], gpus_per_node=8, row_tokens=8192, global_batch_size=8)
    assert any(reason in text for text in refusals(shape, Layout(stages=(12,), **keys), want))


def test_the_trainers_own_rules_refuse_nothing_that_is_planned():
    from train.config import load_config
    from train.layout import check_layout
    from train.planner.presets import CONFIGS, OWN

    for name in OWN:
        plan = make_plan(find_model(name), Wanted(gpus=8, gpus_per_node=8, row_tokens=8192, global_batch_size=32), 139)
        assert plan.legal
        for x in (p.layout for p in plan.legal):
            sets = [f"{k}={getattr(x, k)}" for k in ("tp", "pp", "cp", "ep", "etp")] + ["global_batch_size=32"]
            sets += ["sequence_parallel=true"] if x.sequence_parallel else []
            if x.pp > 1:
                sets += [f"first_stage_layers={x.stages[0]}", f"last_stage_layers={x.stages[-1]}"]
            assert check_layout(load_config(CONFIGS / f"{name}.yaml", sets), 8) == [], (name, str(x))


ARGUMENTS = [
    "layout",
    "--model",
    "deepseek-v4.1-flash",
    "--gpus",
    "16",
    "--global-batch-size",
    "128",
    "--pp",
    "1",
    "--cp",
    "1",
]


def test_the_command_prints_assumptions_and_the_table(call):
    code, out, _ = call(*ARGUMENTS, "--row-tokens", "576,8192,32768")
    assert code == 0
    assert "optimizer not on the GPU" in out
    assert "peak of the best layout by tp and row length" in out
    assert "refused" in out
    code, out, _ = call(*ARGUMENTS, "--row-tokens", "8192", "--json")
    found = json.loads(out)
    assert found["plans"][0]["best_by_tp"]["1"]["status"] == "tight"


def test_a_config_and_a_checkpoint_are_models(call, tmp_path):
    code, out, _ = call(
        "layout", "--model", "h200-dense-1b", "--gpus", "8", "--row-tokens", "8192", "--global-batch-size", "32"
    )
    assert code == 0
    assert "1.62 B parameters" in out
    config = {"model_type": "deepseek_v4", "num_hidden_layers": 6, "n_routed_experts": 16, "hidden_size": 1024}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert (
        call("layout", "--model", tmp_path, "--gpus", "8", "--row-tokens", "4096", "--global-batch-size", "16")[0] == 0
    )
    for model in ("gpt-5", tmp_path / "none.json", tmp_path / "x.yaml"):
        code, _, err = call("layout", "--model", model, "--gpus", "8", "--row-tokens", "1", "--global-batch-size", "1")
        assert code == 2
        assert "Traceback" not in err
    assert call(*ARGUMENTS, "--row-tokens", "8k")[0] == 2
    assert call(*ARGUMENTS)[0] == 2


def recipe(path, row_tokens, tp, **more):
    keys = {
        "model": "DeepSeek-V4.1-Flash",
        "gpu": {"type": "H200", "memory_gb": 141, "count": 16, "per_node": 8},
        "workload": {"row_tokens": row_tokens, "global_batch": 128},
        "layout": {"tp": tp, "pp": 1, "cp": 1, "ep": 16, "etp": 1, "dp": 16 // tp, "sequence_parallel": tp > 1},
        **more,
    }
    path.write_text(yaml.safe_dump(keys))
    return path


def test_a_recipe_that_only_raises_the_row_length_is_warned_of_and_judged(call, tmp_path):
    base = recipe(tmp_path / "8k.yaml", 8192, 1)
    longer = recipe(tmp_path / "32k.yaml", 32768, 1, inherits="8k.yaml")
    other = recipe(tmp_path / "32k-tp8.yaml", 32768, 8, inherits="8k.yaml")
    assert call("layout", "--recipe", base)[0] == 0
    code, out, _ = call("layout", "--recipe", longer)
    assert code == 1
    assert "the layout is inherited" in out
    code, out, _ = call("layout", "--recipe", longer, "--json", "--inherits", base)
    assert json.loads(out)["warnings"]
    code, out, _ = call("layout", "--recipe", other)
    assert "the layout is inherited" not in out
    assert call("layout", "--recipe", base, "--inherits", longer, "--json")[1].count('"warnings": []') == 1


@pytest.mark.parametrize(("rows", "measured"), [(1, 34.0), (2, 49.7)])
def test_v4_mini_is_planned_as_what_it_is(rows, measured):
    """Peaks of one H200, GiB: train/deepseek_v4/README.md. They took no part in the fit."""
    from train.config import load_config
    from train.planner.presets import CONFIGS

    model = find_model(str(CONFIGS / "v4-mini.yaml"))
    section = load_config(CONFIGS / "v4-mini.yaml").deepseek_v4
    assert model.shape.parameters == pytest.approx(counts(section)[0], rel=1e-3)
    want = Wanted(gpus=1, gpus_per_node=1, row_tokens=8192, global_batch_size=4, micro_batch_size=rows)
    (planned,) = make_plan(model, want, 139).legal
    assert planned.memory.peak == pytest.approx(measured, rel=0.05)
    spread = make_plan(model, Wanted(gpus=8, gpus_per_node=8, row_tokens=8192, global_batch_size=16), 139)
    assert {(p.layout.tp, p.layout.cp) for p in spread.legal} == {(1, 1)}  # what train.sft refuses is not offered
