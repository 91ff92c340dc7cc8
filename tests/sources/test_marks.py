"""The look at bytes misses no text that spells an added token."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from streams import tokenizer

from databuild.sources.marks import marked

ADDED = sorted(tokenizer().added_tokens)
pieces = st.one_of(
    st.sampled_from(ADDED),
    st.sampled_from(ADDED).map(lambda token: token[1:]),
    st.sampled_from(ADDED).map(lambda token: token[:-1]),
    st.sampled_from(["<", "</", "<|", "<th", "<td>", "</div>", "｜", "\uff5b", "é", ""]),
    st.text(max_size=5),
)
texts = st.lists(st.lists(pieces, max_size=4).map("".join), max_size=8)


def _marked(some):
    data = [text.encode() for text in some]
    return marked(b"".join(data), np.array([len(text) for text in data], np.int64)).tolist()


def test_every_added_token_is_marked():
    assert all(_marked(ADDED))
    assert all(_marked([f"x{token}y" for token in ADDED]))


@settings(max_examples=300, deadline=None)
@given(texts)
def test_what_is_not_marked_spells_none(some):
    for text, flag in zip(some, _marked(some), strict=True):
        assert flag or not any(token in text for token in ADDED)


def test_ordinary_texts_are_not_marked():
    assert _marked(["a < b", "<b>bold</b>", "x <= y", "<div></div>", "fn() -> T<T>", "中文，好。", ""]) == [False] * 7
