"""A short slice of the fuzzing of __main__.py, and the same readers under texts from hypothesis."""

import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from random import Random

import targets

from databuild.errors import DatabuildError

INPUTS = 2000


@pytest.mark.parametrize("name", targets.TARGETS)
def test_no_input_ends_in_anything_but_a_refusal(name):
    target, share = targets.TARGETS[name]
    ended = {"accepted": 0, "refused": 0}
    for number in range(round(INPUTS * share)):
        value = target.make(Random(f"{name} slice {number}"))
        try:
            target.run(value)
            ended["accepted"] += 1
        except target.refusals:
            ended["refused"] += 1
    assert sum(ended.values()) == round(INPUTS * share)
    assert all(ended.values()) or name == "conversations", (
        ended
    )  # both ways are walked; conversations are skipped, not refused


def test_the_same_number_gives_the_same_input():
    for target, _ in targets.TARGETS.values():
        assert target.make(Random("x 1")) == target.make(Random("x 1"))


@settings(max_examples=100, deadline=None, database=None)
@given(
    st.text(),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=12,
    ),
)
def test_texts_of_hypothesis(text, value):
    for name, given_value in (
        ("jsonl", (".jsonl", text.encode("utf-8", "surrogatepass"))),
        ("columns", (text, {"messages": value})),
    ):
        target, _ = targets.TARGETS[name]
        try:
            target.run(given_value)
        except DatabuildError as error:
            assert str(error)
