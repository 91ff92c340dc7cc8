"""Every figure of the published runs, recomputed here in another way, and the rounding rule."""

from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from manifests.model import read_manifest
from train.recipe import derive
from train.recipe.check import check_recipe, wrong
from train.recipe.facts import deepseek_v4_flash_matmul_params
from train.recipe.finding import agrees
from train.recipe.load import Stated, load_recipe, parse_recipe
from train.recipe.model import Recipe
from train.recipe.mutate import scalar_texts
from train.recipe.shipped import find_recipe, shipped_recipes

GOLDEN = Path(__file__).parents[1] / "golden"
H200 = "deepseek-v4-flash-64h200-tp2-pp4-ep8"


def findings_of(name, **given):
    return check_recipe(load_recipe(find_recipe(name)), **given)


def checked(content, **given):
    return check_recipe(Stated(recipe=Recipe.model_validate(content), texts=scalar_texts(content)), **given)


def by_key(findings, verdict):
    return {finding.key: finding.computed for finding in findings if finding.verdict == verdict}


@pytest.mark.parametrize("path", shipped_recipes(), ids=lambda path: path.stem)
def test_the_shipped_recipes_are_right(path):
    findings = check_recipe(load_recipe(path))
    assert wrong(findings) == []
    assert sum(finding.verdict == "right" for finding in findings) >= 15


def test_the_figures_of_the_published_run():
    shown = by_key(findings_of(H200), "computed")
    assert shown["expert_dp"] == 2
    assert shown["experts_per_rank"] == 32
    assert shown["micro_batches_per_rank"] == 16
    assert shown["pipeline_split"] == "11/11/11/10"
    assert shown["pipeline_bubble_percent"] == pytest.approx(300 / 19, abs=0.01)
    assert shown["tokens"] == 52_428_800
    assert shown["step_time_mean_s"] == pytest.approx(20.27, abs=0.01)
    assert shown["model_tflops_per_gpu"] == 64.342
    assert shown["seconds_beside_steps"] == pytest.approx(279, abs=1)
    assert deepseek_v4_flash_matmul_params() == 13_268_221_952


def test_the_price_that_a_figure_stands_for():
    (finding,) = [f for f in findings_of(H200) if f.key == "result.usd_per_million_tokens"]
    assert finding.verdict == "unknown"
    assert "7.8995 to 7.9286" in finding.formula
    for price, right in ((7.90, True), (7.912, True), (7.9286, True), (7.89, False), (7.93, False)):
        assert (wrong(findings_of(H200, usd_per_gpu_hour=price)) == []) is right


@pytest.mark.parametrize(
    ("peak", "right"), [(987.6, True), (989.0, True), (989.11, True), (987.5, False), (989.4, False)]
)
def test_the_peak_that_the_mfu_stands_for(peak, right):
    assert (wrong(findings_of(H200, peak_tflops=peak)) == []) is right


def test_a_wrong_figure_is_an_error_with_both_numbers(published):
    content = published | {"result": published["result"] | {"mfu": 0.0751}}
    (finding,) = wrong(checked(content))
    assert (finding.key, finding.stated) == ("result.mfu", "0.0751")
    assert finding.computed == pytest.approx(0.0650575, abs=1e-7)
    assert "989" in finding.formula


def test_a_pipeline_that_megatron_refuses_is_told():
    (warning,) = [f for f in findings_of("deepseek-v4-pro-256gb300-pp4") if f.verdict == "warning"]
    assert warning.key == "layout.vpp"
    assert "2 micro-batches, 4 stages" in warning.formula


@pytest.mark.parametrize(("tp", "micro_batches", "speedup"), [("tp4", 32, None), ("tp2", 16, 2.11), ("tp1", 8, 4.86)])
def test_the_v41_layouts(tp, micro_batches, speedup):
    name = f"deepseek-v4.1-flash-16h200-{tp}-8k"
    assert by_key(findings_of(name), "computed")["micro_batches_per_rank"] == micro_batches
    assert load_recipe(find_recipe(name)).recipe.evidence.measurements[0].ratio == speedup
    if tp == "tp1":
        shown = by_key(findings_of(name), "computed")
        assert shown["forward_backward_8k_tokens_per_s_per_gpu"] == pytest.approx(678, abs=0.5)


def test_more_rules(published):
    def with_layout(**changes):
        return published | {"layout": published["layout"] | changes, "run": None}

    def keys(content):
        return {finding.key for finding in wrong(checked(content))}

    assert keys(with_layout(label="TP2 PP4 EP8")) == {"layout.label"}  # DP is not said
    assert "layout.ep" in keys(with_layout(ep=3, label="TP2 PP4 EP3 DP8"))
    assert "layout.layer_split" in keys(with_layout(layer_split={"first": 11, "last": 11}))
    assert "workload.row_tokens" in keys(with_layout(tp=64, pp=1, dp=1, label="TP64 PP1 EP8 DP1") | {
        "workload": published["workload"] | {"row_tokens": 8200}})  # fmt: skip
    assert keys(published | {"env": published["env"] | {"CUDA_DEVICE_MAX_CONNECTIONS": "8"}}) == {
        "env.CUDA_DEVICE_MAX_CONNECTIONS"
    }
    assert keys(published | {"status": "verified"}) == {"status"}
    dataset = published["workload"]["dataset"]
    short = {"dataset": dataset | {"rows_sha256": dataset["rows_sha256"][:-1]}}
    assert "workload.dataset.rows_sha256" in keys(published | {"workload": published["workload"] | short})


def test_against_a_build(published):
    manifest = read_manifest((GOLDEN / "run-tiny" / "rows.json").read_bytes())
    found = wrong(checked(published, manifest=manifest))
    assert {"workload.rows", "workload.dataset.rows_sha256"} <= {finding.key for finding in found}
    workload = published["workload"]
    same = {"rows_sha256": manifest.rows.rows_sha256, "build": None}
    changes = {
        "rows": manifest.rows.rows,
        "row_tokens": manifest.rows.row_tokens,
        "dataset": workload["dataset"] | same,
    }
    found = wrong(checked(published | {"workload": workload | changes}, manifest=manifest))
    # 64 tokens are too few for miles and too few for the rest of the recipe, but they are the rows of this build.
    assert not any("manifest" in finding.formula for finding in found)


@given(
    st.decimals(min_value="0.001", max_value="99999", places=9),
    st.integers(0, 6),
)
def test_a_number_is_right_exactly_if_it_is_the_rounded_one(value, places):
    unit = Decimal(1).scaleb(-places)
    printed = value.quantize(unit, ROUND_HALF_UP)
    assume(abs(abs(value - printed) - unit / 2) > unit / 10**6 + value / 10**11)  # a tie may go either way
    if places == 0:  # whole numbers are exact, unless they are written with a point
        assert agrees(float(value), f"{printed}.")
    else:
        assert agrees(float(value), str(printed))
        assert agrees(float(value), f"{printed:e}")
        assert not agrees(float(value), str(printed + unit))
        assert not agrees(float(value), str(printed - unit))


@given(st.integers(1, 10**12), st.integers(1, 10**12))
def test_whole_numbers_are_exact(a, b):
    assert agrees(a, str(b)) == (a == b)


@given(st.integers(1, 6), st.integers(1, 12))
def test_the_bubble_is_that_of_a_simulated_pipeline(pp, micro_batches):
    # A stage can do a forward pass once the stage before it has, a backward pass once the stage behind it has; 1F1B keeps as
    # few micro-batches in flight as it can, which costs nothing in time: forward and backward of equal length.
    done = {}

    def finish(stage, kind, number):
        if (stage, kind, number) in done:
            return done[stage, kind, number]
        warmup = min(pp - stage, micro_batches)
        order = [("F", i) for i in range(warmup)]
        for i in range(micro_batches):
            order.append(("B", i))
            if warmup + i < micro_batches:
                order.append(("F", warmup + i))
        place = order.index((kind, number))
        before = finish(stage, *order[place - 1]) if place else 0
        if kind == "F":
            ready = finish(stage - 1, "F", number) if stage else 0
        else:
            ready = finish(stage + 1, "B", number) if stage < pp - 1 else finish(stage, "F", number)
        done[stage, kind, number] = max(before, ready) + 1
        return done[stage, kind, number]

    total = max(finish(stage, "B", micro_batches - 1) for stage in range(pp))
    assert Fraction(total - 2 * micro_batches, total) == derive.bubble(pp, micro_batches)


@given(st.integers(1, 80), st.integers(2, 10), st.integers(1, 20), st.integers(1, 20))
def test_the_middle_stages_add_up(layers, pp, first, last):
    middle = derive.middle_layers(layers, pp, first, last)
    options = [n for n in range(81) if first + last + n * (pp - 2) == layers and (n > 0 or pp == 2)]
    assert middle == (options[0] if pp > 2 and options else 0 if options else None)


def test_the_notation_of_pipelines():
    assert derive.pipeline_stages("Et*11|t*11|t*11|t*10mL") == [11, 11, 11, 10]
    assert derive.pipeline_stages("Et*4|(tttt|)*14tmL") == [4] * 15 + [1]
    for text in ("", "Etx|L", "Et*|L", "t(t", "t*9999999999", "(t)*9999999999"):
        with pytest.raises(ValueError, match="is not a pipeline layout"):
            derive.pipeline_stages(text)


@given(st.integers(1, 70000), st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1, 2, 4]))
def test_rows_are_padded_to_the_next_multiple(tokens, tp, cp):
    padded = derive.padded_row(tokens, tp, cp)
    unit = derive.padding_unit(tp, cp)
    assert padded == next(n for n in range(unit, tokens + 2 * unit, unit) if n >= tokens)


def test_a_recipe_in_text_is_checked_by_its_digits():
    text = find_recipe(H200).read_text(encoding="utf-8")
    for old, new, right in (
        ("mfu: 0.0651", "mfu: 0.065", True),
        ("mfu: 0.0651", "mfu: 0.06506", True),
        ("mfu: 0.0651", "mfu: 0.0650", False),
        ("mfu: 0.0651", "mfu: 0.06510", False),
        ("gpu_hours: 12.16", "gpu_hours: 5.0", False),
    ):
        stated = parse_recipe(text.replace(old, new).replace("6.5 %, ", ""), "r")
        assert (wrong(check_recipe(stated)) == []) is right, new
