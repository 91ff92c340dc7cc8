import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import twin
from hypothesis import given, settings
from hypothesis import strategies as st

GOLDEN = Path(__file__).parents[2] / "shared" / "golden" / "deepseek_v4.jsonl"
B, E, U, A, T = 0, 1, 128803, 128804, 128822  # BOS, EOS, <｜User｜>, <｜Assistant｜>, </think>


def user(content):
    return {"role": "user", "content": content}


def assistant(content):
    return {"role": "assistant", "content": content}


def system(content):
    return {"role": "system", "content": content}


def encode(*messages):
    return twin.encode_conversation(list(messages), twin.load_tokenizer())


def token(text):
    """The id of a text that is one token."""
    ids = twin.load_tokenizer().encode(text, add_special_tokens=False).ids
    assert len(ids) == 1
    return ids[0]


def mask_spans(mask):
    spans = []
    for i, value in enumerate(mask):
        if value and spans and spans[-1][1] == i:
            spans[-1][1] = i + 1
        elif value:
            spans.append([i, i + 1])
    return spans


def seed_for(order):
    """A seed whose permutation visits the records in this order."""
    for seed in range(10_000):
        if np.random.default_rng(seed).permutation(len(order)).tolist() == list(order):
            return seed
    raise AssertionError(order)


def build(*conversations, **options):
    """Build from conversations (lists of messages, or records), visited in the order given."""
    records = [c if isinstance(c, dict) else {"messages": c} for c in conversations]
    options.setdefault("seed", seed_for(range(len(records))))
    return twin.twin_build(records, **options)


# ------------------------------------------------------------------------------------------------- golden vectors


def in_scope(vector):
    return (
        vector["mode"] == "chat"
        and vector["tools"] is None
        and all(
            set(m) == {"role", "content"}
            and m["role"] in ("system", "user", "assistant")
            and isinstance(m["content"], str)
            for m in vector["messages"]
        )
    )


def test_golden_vectors():
    if not GOLDEN.exists():
        pytest.skip(f"{GOLDEN} is not there")
    lines = GOLDEN.read_text(encoding="utf-8").split("\n")
    vectors = [v for v in (json.loads(line) for line in lines if line) if in_scope(v)]
    assert len([v for v in vectors if v["messages"]]) == 57
    assert len(vectors) == 58  # and the conversation without messages, which renders but is never used in a build
    for vector in vectors:
        expected = vector["recommended"]
        ids, mask = encode(*vector["messages"])
        assert twin.render_text(vector["messages"]) == expected["text"], vector["id"]
        assert ids == expected["ids"], vector["id"]
        assert mask_spans(mask) == expected["mask_spans"], vector["id"]


# --------------------------------------------------------------------------------------------- one conversation


def test_single_turn():
    a, b = token("a"), token("b")
    assert encode(system("b"), user("a"), assistant("b")) == ([B, b, U, a, A, T, b, E], [0, 0, 0, 0, 0, 0, 1, 1])


def test_consecutive_users_are_one_turn_and_an_open_header_ends_the_conversation():
    assert twin.render_text([user("x"), user(""), user("z")]) == (
        "<｜begin▁of▁sentence｜><｜User｜>x\n\n\n\nz<｜Assistant｜></think>"
    )
    ids, mask = encode(user("x"), user("z"))
    assert (ids[:2], ids[-2:], sum(mask)) == ([B, U], [A, T], 0)


def test_users_around_a_system_are_two_turns():
    assert twin.render_text([user("x"), system("s"), user("z"), assistant("a")]) == (
        "<｜begin▁of▁sentence｜><｜User｜>xs<｜User｜>z<｜Assistant｜></think>a<｜end▁of▁sentence｜>"
    )


def test_system_last_ends_bare():
    assert encode(user("a"), system("b")) == (
        [
            B,
            U,
            token("ab"),
        ],
        [0, 0, 0],
    )


def test_headerless_token_across_the_boundary_is_not_trained():
    # " the" is one token; the space comes from the system, the word from the assistant.
    assert encode(system(" "), assistant("the")) == ([B, token(" the"), E], [0, 0, 1])
    assert encode(system("a"), assistant(" the")) == ([B, token("a"), token(" the"), E], [0, 0, 1, 1])


def test_headerless_boundary_after_characters_of_many_bytes():
    left, right = "𝔘\u0e33\U0001f9ff", "\U0001f9ff x"
    ids, mask = encode(system(left), assistant(right))
    tokens = [twin.load_tokenizer().id_to_token(i) for i in ids[1:-1]]
    assert sum(len(t) for t in tokens) == len((left + right).encode())
    ends = np.cumsum([len(t) for t in tokens])
    starts = ends - [len(t) for t in tokens]
    assert mask == [0, *(starts >= len(left.encode())).astype(int).tolist(), 1]


def test_text_never_becomes_a_special_token():
    for text in twin.added_token_texts():
        ids, mask = encode(user(text), assistant(text))
        specials = [i for i in ids if i in (0, 1, 2) or i >= 128_000]
        assert specials == [B, U, A, T, E]
        assert mask_spans(mask) == [[ids.index(T) + 1, len(ids)]]


# ------------------------------------------------------------------------------------------- skipped and noted


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({}, "messages_null"),
        ({"messages": None}, "messages_null"),
        ({"messages": "x"}, "messages_not_list"),
        ({"messages": {}}, "messages_not_list"),
        ({"messages": []}, "messages_empty"),
        ({"messages": ["x"]}, "message_not_object"),
        ({"messages": [None]}, "message_not_object"),
        ({"messages": [{"content": "x"}]}, "role_unknown"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "role_unknown"),
        ({"messages": [{"role": "tool", "content": None}]}, "role_unknown"),
        ({"messages": [{"role": "user"}]}, "content_null"),
        ({"messages": [{"role": "user", "content": None}]}, "content_null"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "content_not_text"),
        ({"messages": [user("a\ud800")]}, "lone_surrogate"),
        ({"messages": [user("\udc00"), "x"]}, "lone_surrogate"),
        ({"messages": [user("a"), "x", user("\udc00")]}, "message_not_object"),
        ({"messages": [user("\U0001f9ff")]}, None),
        ({"messages": [user("")]}, None),
    ],
)
def test_reject_reason(record, reason):
    assert twin.reject_reason(record) == reason


def test_reject_reason_of_sources():
    record = {"source": "s", "messages": []}
    assert twin.reject_reason(record, include_sources=["t"]) == "source_excluded"
    assert twin.reject_reason(record, include_sources=["s"]) == "messages_empty"
    assert twin.reject_reason(record, include_sources=["s"], exclude_sources=["s"]) == "source_excluded"
    assert twin.reject_reason({"messages": []}, exclude_sources=["(none)"]) == "source_excluded"


@pytest.mark.parametrize(
    ("messages", "num_tokens", "kinds"),
    [
        ([user("a"), assistant("b")], 8, set()),
        ([user("a"), assistant("b")], 9, {"longer_than_row"}),
        ([user("a")], 1, {"no_assistant", "ends_without_assistant"}),
        ([user("a"), assistant("b"), user("c")], 1, {"ends_without_assistant"}),
        ([assistant("b")], 1, {"headerless_assistant"}),
        ([assistant("b"), user("a")], 1, {"headerless_assistant", "ends_without_assistant"}),
        ([user("a"), assistant("b"), assistant("")], 1, {"headerless_assistant", "content_empty"}),
        ([user("a"), system("s"), assistant("b")], 1, {"headerless_assistant"}),
        ([user("see <think>"), assistant("b")], 1, {"special_text"}),
        ([user("a"), assistant("<dsml:")], 1, {"special_text"}),
    ],
)
def test_notes(messages, num_tokens, kinds):
    assert twin.notes({"messages": messages}, num_tokens, 8) == kinds


# --------------------------------------------------------------------------------------------------------- rows

a, b, c = (token(text) for text in "abc")
QA = [user("a"), assistant("b")]  # 0 U a A T b 1: seven tokens, the last two trained
Q = [user("c")]  # 0 U c A T: five tokens, none trained


def test_rows_by_hand():
    # 0 U a A | T b 1 0 | U c A T | 1 0 U a | A T b 1      cut in fours
    # - - - - | - x x - | - - - - | - - - - | - - x x
    result = build(QA, Q, QA, row_tokens=4)
    assert result.rows == [([T, b, E, B], [0, 1, 1, 0]), ([A, T, b, E], [0, 0, 1, 1])]
    assert result.doc_starts == [[0, 3], [0]]
    assert result.doc_rows == [[0, 1], [2]]
    assert result.counts == {
        "conversations": 3,
        "used": 3,
        "skipped": {},
        "noted": {"ends_without_assistant": 1, "no_assistant": 1, "longer_than_row": 3},
        "by_source": {"(none)": {"used": 3, "skipped": 0, "tokens": 20, "targets": 4}},
        "tokens": 20,
        "rows_cut": 5,
        "rows_without_targets": 3,
        "tail_tokens": 0,
    }


def test_index_0_is_not_a_target_and_does_not_keep_a_row():
    # 0 U a A T b | 1 0 U c A T | 1
    result = build(QA, Q, row_tokens=6)
    assert result.rows == [([B, U, a, A, T, b], [0, 0, 0, 0, 0, 1])]
    assert (result.counts["rows_cut"], result.counts["rows_without_targets"], result.counts["tail_tokens"]) == (2, 1, 1)
    assert result.counts["by_source"]["(none)"]["targets"] == 2
    # 0 U a A T | b 1 0 U a | A T b 1
    result = build(QA, QA, row_tokens=5)
    assert result.rows == [([b, E, B, U, a], [0, 1, 0, 0, 0])]
    assert (result.doc_starts, result.doc_rows) == ([[0, 2]], [[0, 1]])
    assert build(QA, QA, row_tokens=1).rows == []


@pytest.mark.parametrize(
    ("separator", "bos", "stream", "starts"),
    [
        ("ensure", "keep", [B, U, c, A, T, E, B, U, a, A, T, b, E, B, U, a, A, T, b, E], [0, 6, 13]),
        ("always", "keep", [B, U, c, A, T, E, B, U, a, A, T, b, E, E, B, U, a, A, T, b, E, E], [0, 6, 14]),
        ("none", "keep", [B, U, c, A, T, B, U, a, A, T, b, E, B, U, a, A, T, b, E], [0, 5, 12]),
        ("ensure", "first", [B, U, c, A, T, E, U, a, A, T, b, E, U, a, A, T, b, E], [0, 6, 12]),
        ("none", "strip", [U, c, A, T, U, a, A, T, b, E, U, a, A, T, b, E], [0, 4, 10]),
        ("always", "strip", [U, c, A, T, E, U, a, A, T, b, E, E, U, a, A, T, b, E, E], [0, 5, 12]),
    ],
)
def test_separator_and_bos(separator, bos, stream, starts):
    result = build(Q, QA, QA, row_tokens=len(stream), separator=separator, bos=bos)
    ((ids, mask),) = result.rows
    assert ids == stream
    assert [i for i, value in enumerate(mask) if value] == [i + j for i, x in enumerate(ids) if x == b for j in (0, 1)]
    assert result.doc_starts == [starts]
    assert result.counts["tokens"] == result.counts["by_source"]["(none)"]["tokens"] == len(stream)


def test_bos_first_belongs_to_the_first_used_conversation():
    result = build({"messages": []}, QA, QA, row_tokens=13, bos="first")
    assert result.rows[0][0] == [B, U, a, A, T, b, E, U, a, A, T, b, E]
    assert (result.doc_starts, result.doc_rows) == ([[0, 7]], [[1, 2]])


def test_a_conversation_without_tokens_is_no_document():
    empty = [system("")]
    result = build(QA, empty, QA, row_tokens=12, separator="none", bos="strip")
    assert (result.doc_starts, result.doc_rows) == ([[0, 6]], [[0, 2]])
    assert result.counts["used"] == 3
    result = build(QA, empty, QA, row_tokens=13, separator="ensure", bos="strip")
    assert (result.doc_starts, result.doc_rows) == ([[0, 6, 7]], [[0, 1, 2]])


def test_a_document_that_ends_with_the_row_does_not_continue():
    result = build(QA, QA, row_tokens=7)
    assert (result.doc_starts, result.doc_rows) == ([[0], [0]], [[0], [1]])
    result = build(QA, QA, row_tokens=7, separator="always")  # 0 U a A T b 1 | 1 0 U a A T b | 1 1
    assert (result.doc_starts, result.doc_rows) == ([[0], [0, 1]], [[0], [0, 1]])
    assert result.counts["tail_tokens"] == 2


def test_rows_limit_reads_no_further():
    bad = {"messages": None, "source": "s"}
    result = build(bad, QA, bad, QA, row_tokens=7, rows=1)
    assert result.rows == [([B, U, a, A, T, b, E], [0, 0, 0, 0, 0, 1, 1])]
    assert result.counts == {
        "conversations": 2,
        "used": 1,
        "skipped": {"messages_null": 1},
        "noted": {},
        "by_source": {
            "s": {"used": 0, "skipped": 1, "tokens": 0, "targets": 0},
            "(none)": {"used": 1, "skipped": 0, "tokens": 7, "targets": 2},
        },
        "tokens": 7,
        "rows_cut": 1,
        "rows_without_targets": 0,
        "tail_tokens": 0,
    }
    # One conversation may fill many rows: those past the limit are tail, whatever they hold.
    result = build([user("a"), assistant("b" + " b" * 7)], QA, row_tokens=2, rows=1)
    assert result.rows == [([T, b], [0, 1])]  # 0 U | a A | T b | then seven times " b" and 1
    counts = result.counts
    assert (counts["conversations"], counts["tokens"], counts["rows_cut"], counts["tail_tokens"]) == (1, 14, 3, 8)
    # Fewer rows than asked for: everything is read.
    assert build(bad, QA, bad, row_tokens=7, rows=2).counts["conversations"] == 3


def test_the_order_is_the_permutation():
    order = [2, 0, 1]
    result = build(QA, QA, QA, row_tokens=7, seed=seed_for(order))
    assert result.doc_rows == [[i] for i in order]


def test_ids_used_twice():
    def record(identity, messages=QA):
        return {"id": identity, "messages": messages}

    records = [record("x", []), record("x"), record("x"), record(None), record(None), record("y"), record("x")]
    result = twin.twin_build(records, row_tokens=7, seed=0)
    assert result.counts["noted"] == {"id_duplicate": 2}
    assert result.counts["skipped"] == {"messages_empty": 1}


def test_sources():
    records = [{"source": s, "messages": QA} for s in ("s", "t", None)]
    counts = twin.twin_build(records, row_tokens=7, seed=0, include_sources=["s", "(none)"]).counts
    one = {"used": 1, "skipped": 0, "tokens": 7, "targets": 2}
    none = {"used": 0, "skipped": 1, "tokens": 0, "targets": 0}
    assert counts["by_source"] == {"s": one, "t": none, "(none)": one}
    assert counts["skipped"] == {"source_excluded": 1}
    assert twin.twin_build(records, row_tokens=7, seed=0, exclude_sources=["t"]).counts == counts


def test_no_records():
    result = twin.twin_build([], row_tokens=8, seed=42)
    assert result.rows == [] and result.counts["conversations"] == 0
    assert result.rows_sha256 == result.docs_sha256 == hashlib.sha256().hexdigest()


# -------------------------------------------------------------------------------------- permutation and hashes


def test_permutation_vectors():
    def order(n):
        return np.random.default_rng(42).permutation(n)

    assert order(10).tolist() == [5, 6, 0, 7, 3, 2, 4, 9, 1, 8]
    assert order(1000)[:5].tolist() == [978, 933, 859, 916, 127]
    full = order(939_343)
    assert full[:5].tolist() == [741378, 724234, 107024, 213324, 885092]
    assert hashlib.sha256(full.astype("<i8").tobytes()).hexdigest().startswith("64d16f4fc4f567ad")


def numpy_rows_sha256(result):
    ids, masks = (np.array([row[k] for row in result.rows], dtype=t) for k, t in ((0, "<i4"), (1, "u1")))
    raw = b"".join(i.tobytes() + m.tobytes() for i, m in zip(ids, masks, strict=True))
    return hashlib.sha256(raw).hexdigest()


def numpy_docs_sha256(result):
    docs = zip(result.doc_starts, result.doc_rows, strict=True)
    raw = [np.array([len(s), *s], dtype="<i4").tobytes() + np.array(r, dtype="<i8").tobytes() for s, r in docs]
    return hashlib.sha256(b"".join(raw)).hexdigest()


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from([" ", "the", "", "<think>"])
message = st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": text})
record = st.fixed_dictionaries(
    {"messages": st.none() | st.lists(message, max_size=5)}, optional={"source": st.sampled_from(["s", "t", None])}
)


@settings(deadline=None, max_examples=150)
@given(
    records=st.lists(record, max_size=8),
    row_tokens=st.integers(1, 16),
    seed=st.integers(0, 99),
    rows=st.none() | st.integers(1, 6),
    separator=st.sampled_from(["ensure", "always", "none"]),
    bos=st.sampled_from(["keep", "first", "strip"]),
)
def test_what_always_holds(records, row_tokens, seed, rows, separator, bos):
    result = twin.twin_build(records, row_tokens=row_tokens, seed=seed, rows=rows, separator=separator, bos=bos)
    counts = result.counts
    assert result.rows_sha256 == numpy_rows_sha256(result)
    assert result.docs_sha256 == numpy_docs_sha256(result)
    assert counts["conversations"] == counts["used"] + sum(counts["skipped"].values())
    assert counts["tokens"] == counts["rows_cut"] * row_tokens + counts["tail_tokens"]
    assert len(result.rows) == counts["rows_cut"] - counts["rows_without_targets"]
    for name in ("used", "tokens"):
        assert sum(source[name] for source in counts["by_source"].values()) == counts[name]
    for (ids, mask), starts, indices in zip(result.rows, result.doc_starts, result.doc_rows, strict=True):
        assert len(ids) == len(mask) == row_tokens
        assert mask[0] == 0 and any(mask)
        assert starts[0] == 0 and sorted(set(starts)) == starts and len(set(indices)) == len(starts)
    whole = twin.twin_build(records, row_tokens=row_tokens, seed=seed, separator=separator, bos=bos)
    assert result.rows == whole.rows[:rows]
    assert result.doc_rows == whole.doc_rows[:rows]
