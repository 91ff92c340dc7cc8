"""What hypothesis draws: conversations of every shape that occurs, and of some that should not."""

from hypothesis import strategies as st

ODD_TEXTS = (
    "", " ", "\n\n", "a", "Hello there", " leading", "trailing \n", "x" * 40, "12345", "é", "e\u0301", "中文。",
    "👩‍👩‍👧‍👦", "\u2028",
    "<think>", "</think>", "<｜User｜>", "<｜end▁of▁sentence｜>", "｜DSML｜", "<|EOT|>", "\r\n", "\x00", "𠮷",
    "don't", "def f(x):\n    return x",
)  # fmt: skip
texts = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.text(max_size=30),
    st.lists(st.sampled_from(ODD_TEXTS), max_size=4).map("".join),
)
roles = st.sampled_from(["system", "user", "assistant"])
messages = st.fixed_dictionaries({"role": roles, "content": texts})
usual_messages = st.lists(st.tuples(texts, texts), min_size=1, max_size=3).map(
    lambda turns: [
        message
        for question, answer in turns
        for message in ({"role": "user", "content": question}, {"role": "assistant", "content": answer})
    ]
)
valid_messages = st.one_of(usual_messages, st.lists(messages, min_size=1, max_size=6))
broken_messages = st.one_of(
    st.none(),
    st.just([]),
    st.just("text"),
    st.lists(
        st.one_of(
            messages,
            st.just({"role": "narrator", "content": "x"}),
            st.just({"role": "user", "content": None}),
            st.just({"role": "user", "content": ["x"]}),
            st.just({"role": "assistant", "content": "\ud800"}),
            st.just("hello"),
        ),
        min_size=1,
        max_size=4,
    ),
)
sources = st.sampled_from(["one", "two", "three", None])
ids = st.one_of(st.none(), st.integers(0, 5).map(str))


def records(of=None, *, max_size=25):
    """Lists of records; of: a strategy for their messages."""
    return st.lists(
        st.fixed_dictionaries({"id": ids, "messages": valid_messages if of is None else of, "source": sources}),
        min_size=1,
        max_size=max_size,
    )


any_records = records(st.one_of(valid_messages, valid_messages, broken_messages))
