"""What differs between two recipes is layout, numerics or neither, and one difference of numerics ends the comparison."""

import pytest
from pydantic import ValidationError

from train.recipe.diff import RULES, classify, comparable, diff_recipes, rows_known
from train.recipe.load import load_recipe, numeric_leaves
from train.recipe.model import Recipe
from train.recipe.mutate import replace
from train.recipe.shipped import find_recipe, shipped_recipes


def shipped(name):
    return load_recipe(find_recipe(name)).recipe


CANDIDATE = "deepseek-v4-flash-64h200-tp2-pp4-ep8"
REFERENCE = "deepseek-v4-flash-64h200-tp8-pp8-ep8-reference"


def test_the_two_arms_of_the_published_run_differ_in_layout_alone():
    differences = diff_recipes(shipped(CANDIDATE), shipped(REFERENCE))
    layout = {d.key: (d.a, d.b) for d in differences if d.kind == "layout"}
    assert layout == {
        "layout.tp": (2, 8), "layout.pp": (4, 8), "layout.dp": (8, 1), "layout.layer_split.first": (11, 4),
        "layout.layer_split.last": (10, 3),
    }  # fmt: skip
    assert comparable(differences)
    assert rows_known(shipped(CANDIDATE), shipped(REFERENCE))


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("--lr 1e-5", "--lr 2e-5", "run.--lr"),
        ("--num-rollout 20", "--num-rollout 40", "run.--num-rollout"),
        ("--calculate-per-token-loss", "", "run.--calculate-per-token-loss"),
        ("--moe-router-freeze-gate", "", "run.--moe-router-freeze-gate"),
        ("--qkv-format bshd", "--qkv-format thd", "run.--qkv-format"),
        ("--hf-checkpoint", "--something-new 1 --hf-checkpoint", "run.--something-new"),
    ],
)
def test_a_flag_that_changes_what_is_computed_is_numerics(published, old, new, key):
    assert old in published["run"]
    other = published | {"run": published["run"].replace(old, new)}
    (difference,) = diff_recipes(Recipe.model_validate(published), Recipe.model_validate(other))
    assert (difference.key, difference.kind) == (key, "numerics")


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("workload.global_batch", 64, "numerics"),
        ("workload.row_tokens", 4096, "numerics"),
        ("layout.cp", 2, "layout"),
        ("layout.rows_per_microbatch", 2, "layout"),
        ("gpu.count", 128, "neither"),
        ("result.mfu", 0.5, "neither"),
        ("workload.dataset.build.parquet_bytes", 5, "neither"),
        ("workload.dataset.build.seed", 5, "numerics"),
    ],
)
def test_keys(published, path, value, kind):
    other = Recipe.model_validate(replace(published, path, value))
    differences = diff_recipes(Recipe.model_validate(published), other)
    assert [(d.key, d.kind) for d in differences] == [(path, kind)]
    assert comparable(differences) == (kind != "numerics")


def test_what_no_rule_knows_is_numerics(published):
    assert classify("env.SOMETHING_NEW") == ("numerics", "no rule knows it")
    other = Recipe.model_validate(published | {"env": published["env"] | {"SOMETHING_NEW": "1"}})
    assert not comparable(diff_recipes(Recipe.model_validate(published), other))


def test_a_recipe_equals_itself_and_the_other_way_round_is_the_same():
    recipes = [load_recipe(path).recipe for path in shipped_recipes()]
    for a in recipes:
        assert diff_recipes(a, a) == []
        for b in recipes:
            there = {(d.key, d.kind) for d in diff_recipes(a, b)}
            assert there == {(d.key, d.kind) for d in diff_recipes(b, a)}


def test_every_number_that_differs_is_found(published):
    a, seen = Recipe.model_validate(published), 0
    for path, number in numeric_leaves(published).items():
        try:
            b = Recipe.model_validate(replace(published, path, number + 1))
        except ValidationError:
            continue
        seen += 1
        assert [d.key for d in diff_recipes(a, b)] == [path.partition("[")[0]]
    assert seen > 30


def test_rows_that_are_not_named_are_said():
    a, b = shipped("deepseek-v4.1-flash-16h200-tp4-8k"), shipped("deepseek-v4.1-flash-16h200-tp1-8k")
    assert comparable(diff_recipes(a, b))
    assert not rows_known(a, b)


def test_every_rule_has_a_reason():
    assert all(reason and kind in ("layout", "numerics", "neither") for _, kind, reason in RULES)
