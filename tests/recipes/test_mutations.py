"""No number of a shipped recipe, or of one that a card gives, is unproven without a listed reason."""

import copy
import re
from pathlib import Path

import pytest

from train.recipe.check import check_recipe, wrong
from train.recipe.load import load_recipe, numeric_leaves
from train.recipe.make_card import make_card
from train.recipe.model import Recipe
from train.recipe.mutate import is_caught, mutations, outcomes, replace, scalar_texts, unproven
from train.recipe.shipped import find_recipe, shipped_recipes
from train.recipe.underived import UNDERIVED, entry_for

GOLDEN_RUN = Path(__file__).parents[1] / "golden" / "run-tiny"


@pytest.fixture(scope="session")
def results(tmp_path_factory):
    """{recipe: {path of a number: [(wrong value, whether it is caught)]}}."""
    made = tmp_path_factory.mktemp("card") / "card"
    make_card(GOLDEN_RUN, made, overwrite=False)
    paths = [*shipped_recipes(), made / "recipe.yaml"]
    return {path.stem: outcomes(load_recipe(path).recipe) for path in paths}


def test_every_number_is_changed(results):
    for path in shipped_recipes():
        leaves = numeric_leaves(load_recipe(path).recipe.model_dump(mode="json"))
        assert results[path.stem].keys() == leaves.keys()
    assert sum(len(cases) for leaves in results.values() for cases in leaves.values()) > 2000


def test_every_change_is_caught_or_its_number_is_listed(results):
    silent = [
        (recipe, leaf, new)
        for recipe, leaves in results.items()
        for leaf, cases in leaves.items()
        for new, caught in cases
        if not caught and entry_for(recipe, leaf) is None
    ]
    assert silent == []


def test_the_list_says_no_more_than_is_so(results):
    for entry in UNDERIVED:
        cases = [
            case
            for recipe, leaves in results.items()
            for leaf, all_cases in leaves.items()
            if entry_for(recipe, leaf) is entry and not all(caught for _, caught in all_cases)
            for case in all_cases
            if case[0] > 0
        ]
        assert cases, f"nothing needs {entry}"
        caught = [new for new, caught in cases if caught]
        assert bool(caught) == (entry.kind == "bounded"), (entry, caught)


def test_a_price_proves_the_cost(published):
    for new in mutations(2.72):
        assert is_caught(replace(published, "result.usd_per_million_tokens", new), usd_per_gpu_hour=7.912)


def test_what_nothing_binds_is_named_in_any_recipe(published):
    """Without the run block, and with a label of sizes alone, less is bound: the answer follows the file."""
    layout = published["layout"] | {"recompute": None, "layer_split": None}
    loose = unproven(Recipe.model_validate(published | {"run": None, "layout": layout, "result": None, "correctness": None,
        "evidence": published["evidence"] | {"observed": None}, "status": "unverified"}))  # fmt: skip
    assert loose["workload.global_batch"] is True  # bounded: not any number divides
    assert "layout.tp" not in loose  # dp and the label bind it


@pytest.mark.parametrize(
    "name", ["deepseek-v4-flash-64h200-tp2-pp4-ep8", "deepseek-v4-flash-64h200-tp8-pp8-ep8-reference"]
)
def test_every_number_of_the_run_block_is_bound_or_an_input(name):
    content = load_recipe(find_recipe(name)).recipe.model_dump(mode="json")
    free = set()
    for match in re.finditer(r"(--[a-z0-9-]+) (\d[\d.e-]*)", content["run"]):
        start, end = match.span(2)
        text = content["run"]
        for new in ("3", "64", "7.5"):
            changed = text[:start] + new + text[end:]
            if new != match.group(2) and not is_caught(content | {"run": changed}):
                free.add(match.group(1))
    inputs = {"--lr", "--min-lr", "--lr-warmup-fraction", "--weight-decay", "--adam-beta1", "--adam-beta2"}
    inputs |= {"--attention-dropout", "--hidden-dropout", "--distributed-timeout-minutes"}
    # The reference arm has no result, so that nothing says how many steps it had.
    assert free == inputs | ({"--num-rollout"} if name.endswith("reference") else set())


@pytest.mark.parametrize(
    "flag",
    ["--tensor-model-parallel-size", "--sequence-parallel", "--expert-tensor-parallel-size", "--recompute-method"],
)
def test_a_flag_that_is_left_out_or_repeated_is_wrong(published, flag):
    pattern = rf"{flag}( [a-z0-9]+)?(?= |\n)" if flag != "--sequence-parallel" else flag
    left_out = re.sub(pattern, "", published["run"])
    assert left_out != published["run"]
    assert is_caught(published | {"run": left_out})
    assert is_caught(published | {"run": published["run"].rstrip() + f" {flag} 2\n"})


def test_exports_of_the_run_block_are_the_environment(published):
    exports = "".join(f"export {name}={value}\n" for name, value in published["env"].items())
    assert not is_caught(published | {"run": exports + published["run"]})
    assert is_caught(published | {"run": exports.replace("efa", "tcp") + published["run"]})
    assert is_caught(published | {"run": "export FI_PROVIDER=efa\n" + published["run"]})


def test_text_that_is_no_command_is_wrong(published):
    for run in ("echo 'hello\n", "echo hello\n"):
        stated = published | {"run": run}
        assert is_caught(stated)
        assert scalar_texts(stated)["run"] == run


def test_findings_are_the_same_twice(published):
    from train.recipe.load import Stated

    stated = Stated(recipe=Recipe.model_validate(published), texts=scalar_texts(published))
    assert check_recipe(stated) == check_recipe(stated)
    assert wrong(check_recipe(stated)) == []


def leaves(value, path=()):
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        yield path
        for key, item in pairs:
            yield from leaves(item, (*path, key))
    else:
        yield path


@pytest.mark.parametrize("path", shipped_recipes()[::3], ids=lambda path: path.stem)
def test_no_content_brings_the_check_down(path):
    """Null, text, huge numbers and empty things in the place of everything: refused, wrong or right, never a crash."""
    content = load_recipe(path).recipe.model_dump(mode="json")
    for way in list(leaves(content))[1:]:
        for new in (None, "", "x", "1/0", 0, 1, 10**30, 1e300, 1e-300, True, [], [1], {}, ["a"]):
            changed = copy.deepcopy(content)
            place = changed
            for part in way[:-1]:
                place = place[part]
            place[way[-1]] = new
            assert is_caught(changed) in (True, False)
