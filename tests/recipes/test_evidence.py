"""Levels are what the run shows: never more, and never claimed."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.recipe.evidence import convergence_result, level, points_judged
from train.recipe.load import load_recipe
from train.recipe.model import Convergence, Recipe
from train.recipe.shipped import shipped_recipes

LEVELS = ["unverified", "screen", "candidate", "verified"]
BASE = load_recipe(next(p for p in shipped_recipes() if "128gb200-pp2" in p.stem)).recipe.model_dump(mode="json")
SEEN = {
    "row_tokens": 4096, "steps": 105, "finite": True, "skipped_steps": 0, "natural_routing": True, "checkpoint_step": 100,
    "resumed_to_step": 105, "variants_compared": None,
}  # fmt: skip


def level_of(correctness=None, row_tokens=4096, **seen):
    content = copy.deepcopy(BASE)
    content["evidence"]["observed"] = SEEN | seen
    content["correctness"] = correctness
    content["workload"]["row_tokens"] = row_tokens
    return level(Recipe.model_validate(content))[0]


def convergence(**changes):
    figures = {
        "steps": 20, "result": "pass", "correlation": 0.999, "final_loss_difference": 0.001, "pointwise_failures": 0,
        "note": None,
    }  # fmt: skip
    return figures | changes


def correctness(**changes):
    words = dict.fromkeys(("result", "summary", "reference", "configuration", "component_tests", "rules"))
    return words | {"convergence": convergence(**changes)}


NO_RESUME = {"checkpoint_step": None, "resumed_to_step": None}


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        ("verified", {}),
        ("screen", {"resumed_to_step": 104}),
        ("screen", {"checkpoint_step": 99}),
        ("screen", {"steps": 99}),
        ("screen", NO_RESUME),
        ("screen", NO_RESUME | {"steps": 8}),
        ("unverified", NO_RESUME | {"steps": 7}),
        ("candidate", NO_RESUME | {"steps": 8, "variants_compared": 2}),
        ("screen", NO_RESUME | {"steps": 8, "variants_compared": 1}),
        ("candidate", NO_RESUME | {"steps": 20, "correctness": correctness()}),
        ("screen", NO_RESUME | {"steps": 20, "correctness": correctness(correlation=0.94)}),
        ("screen", NO_RESUME | {"steps": 20, "correctness": correctness(pointwise_failures=2)}),
        ("screen", NO_RESUME | {"steps": 20, "correctness": correctness(final_loss_difference=None)}),
        ("unverified", {"finite": False}),
        ("unverified", {"finite": None}),
        ("unverified", {"skipped_steps": 1}),
        ("unverified", {"skipped_steps": None}),
        ("unverified", {"natural_routing": False}),
        ("verified", {"natural_routing": None}),
        ("unverified", {"row_tokens": 8192}),
    ],
)
def test_the_levels(expected, changes):
    changes = dict(changes)
    length = changes.pop("row_tokens", 4096)
    assert level_of(row_tokens=length, **changes) == expected


@given(
    st.integers(0, 120), st.one_of(st.none(), st.integers(1, 120)), st.one_of(st.none(), st.integers(1, 120)),
    st.integers(1, 3), st.integers(1, 3),
)  # fmt: skip
def test_showing_more_never_gives_less(steps, saved, resumed, variants, more):
    less = {"steps": steps, "checkpoint_step": saved, "resumed_to_step": resumed, "variants_compared": variants}
    greater = {
        "steps": steps + more,
        "resumed_to_step": resumed and resumed + more,
        "variants_compared": variants + more,
    }
    assert LEVELS.index(level_of(**less)) <= LEVELS.index(level_of(**(less | greater)))


def test_the_shipped_levels():
    found = {path.stem: load_recipe(path).recipe.status for path in shipped_recipes()}
    assert found == {
        "deepseek-v4-flash-128gb200-pp1": "candidate",
        "deepseek-v4-flash-128gb200-pp2": "verified",
        "deepseek-v4-flash-64b200-pp8": "screen",
        "deepseek-v4-flash-64h200-tp2-pp4-ep8": "candidate",
        "deepseek-v4-flash-64h200-tp8-pp8-ep8-reference": "unverified",
        "deepseek-v4-pro-256gb300-pp4": "unverified",
        "deepseek-v4.1-flash-16h200-tp1-8k": "unverified",
        "deepseek-v4.1-flash-16h200-tp2-8k": "unverified",
        "deepseek-v4.1-flash-16h200-tp4-8k": "unverified",
    }


def test_the_verdict_on_a_curve():
    assert points_judged(20) == 16
    for changes, verdict in (
        ({}, "pass"),
        ({"pointwise_failures": 1}, "pass"),
        ({"pointwise_failures": 2}, "fail"),
        ({"correlation": 0.95}, "pass"),
        ({"correlation": 0.9499}, "fail"),
        ({"final_loss_difference": 0.051}, "fail"),
        ({"correlation": None}, None),
        ({"steps": None}, None),
    ):
        assert convergence_result(Convergence.model_validate(convergence(**changes))) == verdict
