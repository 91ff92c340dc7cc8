"""A recipe is read strictly: what is not understood is refused with its key, and what is written is read back as it was."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from databuild.errors import UsageError
from train.recipe.load import dump_recipe, dump_yaml, load_recipe, parse_recipe
from train.recipe.model import Recipe
from train.recipe.shipped import find_recipe, shipped_recipes
from train.yaml12 import parse_yaml, parse_yaml_scalars

ORDER = [
    "schema_version", "model", "gpu", "author", "status", "stack", "workload", "layout", "result", "correctness", "env",
    "patches", "run",
]  # fmt: skip


def text_of(name="deepseek-v4-flash-64h200-tp2-pp4-ep8"):
    return find_recipe(name).read_text(encoding="utf-8")


def refusal(text):
    with pytest.raises(UsageError) as caught:
        parse_recipe(text, "r.yaml")
    return str(caught.value)


@pytest.mark.parametrize("path", shipped_recipes(), ids=lambda path: path.stem)
def test_shipped_recipes_have_every_key_in_the_published_order(path):
    content = parse_yaml(path.read_text(encoding="utf-8"), "r", "the recipe")

    def same_order(value, dumped):
        if isinstance(value, dict):
            assert list(value) == [key for key in dumped if key in value]
            for key, item in value.items():
                same_order(item, dumped[key])

    recipe = load_recipe(path).recipe
    assert list(content) == [*ORDER, "evidence"]
    same_order(content, recipe.model_dump(mode="json"))
    assert recipe.evidence.sources


@pytest.mark.parametrize("path", shipped_recipes(), ids=lambda path: path.stem)
def test_a_written_recipe_is_read_back_by_any_reader(path):
    recipe = load_recipe(path).recipe
    text = dump_recipe(recipe)
    assert parse_recipe(text, "r").recipe == recipe
    assert Recipe.model_validate(yaml.safe_load(text)) == recipe  # YAML 1.1


@given(
    st.dictionaries(
        st.text(min_size=1),
        st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.none() | st.booleans()
        | st.lists(st.text()) | st.lists(st.integers()),
    )
)  # fmt: skip
def test_what_is_dumped_is_parsed_back(content):
    assert parse_yaml(dump_yaml(content), "r", "the text") == content


@pytest.mark.parametrize(
    "word", ["010", "1e5", "1_0", "0x10", "on", "no", "null", "~", "", "2026-10-13", "1:30", ".5", "true"]
)
def test_words_that_look_like_something_else_stay_words(word):
    text = dump_yaml({"key": word})
    assert parse_yaml(text, "r", "the text") == yaml.safe_load(text) == {"key": word}


def test_the_text_of_a_number_is_kept():
    value, texts = parse_yaml_scalars("a: 2.50\nb: [1, 1e-5]\nc: {d: null}\n", "r", "the text")
    assert value == {"a": 2.5, "b": [1, 1e-5], "c": {"d": None}}
    assert texts == {"a": "2.50", "b[0]": "1", "b[1]": "1e-5", "c.d": "null"}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("  tp: 2\n", "  tp: 2\n  tpp: 2\n", "there is no key layout.tpp"),
        ("  tp: 2\n", "  tp: 2\n  tp: 2\n", "'tp' is there twice"),
        ("  tp: 2\n", "", "layout.tp is missing"),
        ("  tp: 2\n", "  tp: '2'\n", "layout.tp has a value that makes no sense"),
        ("  tp: 2\n", "  tp: 2.0\n", "layout.tp has a value that makes no sense"),
        ("  tp: 2\n", "  tp: 0\n", "layout.tp has a value that makes no sense"),
        ("  cuda: '13.0'\n", "  cuda: 13.0\n", "put quotes around it"),
        ("schema_version: 1\n", "schema_version: 2\n", "schema_version has a value that makes no sense"),
        ("  mfu: 0.0651\n", "  mfu: .nan\n", "result.mfu has a value that makes no sense"),
        ("  mfu: 0.0651\n", "  mfu: 1e999\n", "result.mfu has a value that makes no sense"),
        ("status: candidate\n", "status: great\n", "status has a value that makes no sense"),
        ("patches: []\n", "patches: !!python/object/apply:os.getcwd []\n", "could not determine a constructor"),
        ("patches: []\n", "patches: &a [*a]\n", "an alias of a list or mapping"),
        ("  tp: 2\n", "  tp: [\n", "r.yaml, line"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_key(old, new, says):
    text = text_of()
    assert old in text
    assert says in refusal(text.replace(old, new, 1))


@pytest.mark.parametrize("text", ["", "- 1\n", "just text\n", "a: 1\n--- \nb: 2\n"])
def test_what_is_no_mapping_is_refused(text):
    assert "r.yaml" in refusal(text)


def test_a_misspelled_key_gets_a_suggestion():
    assert "did you mean dispatcher?" in refusal(text_of().replace("dispatcher: alltoall", "dispacher: alltoall"))


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path):
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "large.yaml").write_bytes(b"#" * (1 << 21))
    for path in (tmp_path, tmp_path / "none.yaml", tmp_path / "binary.yaml", tmp_path / "large.yaml"):
        with pytest.raises(UsageError, match="recipe"):
            load_recipe(path)
    with pytest.raises(UsageError, match="did you mean"):
        find_recipe("deepseek-v4-flash-64h200-tp2-pp4-ep9")
