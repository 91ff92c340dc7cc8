"""The renderer against a slow second version of the format, on every shape of record and every option."""

import chats
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from slow_v4 import slow_text

pytest.importorskip("deepseek_recipe", reason="the fixed paragraphs of the format come from it")


@chats.examples(400)
@given(record=chats.any_records(), options=chats.any_options, headerless=st.sampled_from(["reference", "official"]))
@example(record={"messages": []}, options={"mode": "thinking", "reasoning_effort": "max"}, headerless="official")
def test_both_give_the_same_text(record, options, headerless):
    options = {**options, "headerless": headerless}
    assert chats.text(record, **options) == slow_text(record, **options)


@chats.examples(60)
@given(record=chats.usual_records(), options=chats.any_options)
def test_both_give_the_same_text_for_usual_conversations(record, options):
    assert chats.text(record, **options) == slow_text(record, **options)
