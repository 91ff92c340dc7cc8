"""Conversations that hypothesis draws, and ours rendered and encoded. For the tests of the format."""

import json
from functools import cache

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from streams import tokenizer

from databuild.encode import Encoder
from databuild.pieces import How
from databuild.sources.base import RAW, ConversationBatch
from masks import deepseek_v4
from masks.conversation import Conversation
from masks.options import RenderOptions
from masks.parse import parse
from masks.policy import MASK_TYPES

TASKS = ("action", "query", "authority", "domain", "title", "read_url")
CALL_IDS = ("a", "b", "c")


def examples(number):
    """Settings of a property test."""
    return settings(max_examples=number, deadline=None)


# -------------------------------------------------------------------------------------------------------------- texts

ODD_TEXTS = (
    "", " ", "\n", "\n\n", "a", "Hello there", " leading", "trailing \n", "x" * 40, "12345", "é", "e\u0301", "中文。",
    "👩‍👩‍👧‍👦", "\u2028", "\ufeff", "\r\n", "\x00", "𠮷", "{content}", "%s", "{{", '"', "\\", "<", ">", "&amp;",
    "<think>", "</think>", "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "｜DSML｜",
    "<｜latest_reminder｜>", "<｜title｜>", "<|EOT|>", "<｜", "｜>", "<tool_result>", "</tool_result>",
    "</｜DSML｜parameter>", "don't", "def f(x):\n    return x",
)  # fmt: skip
texts = st.one_of(
    st.sampled_from(ODD_TEXTS),
    st.text(max_size=20),
    st.lists(st.sampled_from(ODD_TEXTS), max_size=4).map("".join),
)
#: Text that no reader of a rendered conversation could take for a part of the format.
clear_texts = st.text(st.characters(codec="utf-8", exclude_characters='<>"｜\n'), max_size=20)
maybe = st.booleans()
seldom = st.sampled_from([False, False, False, False, False, True])


numbers = st.one_of(st.integers(), st.floats())
#: Numbers that every writer of JSON spells alike.
plain_numbers = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([0.5, -2.25, 100.0, 3.141592]))


def json_values(leaves=texts, *, numbers=numbers):
    """JSON of every kind, not deep."""
    flat = st.one_of(leaves, st.none(), st.booleans(), numbers)
    inner = st.one_of(flat, st.lists(flat, max_size=2), st.dictionaries(leaves, flat, max_size=2))
    return st.one_of(flat, st.lists(inner, max_size=3), st.dictionaries(leaves, inner, max_size=2))


def json_objects(leaves=texts, *, least=0, **kinds):
    return st.dictionaries(leaves, json_values(leaves, **kinds), min_size=least, max_size=3)


def _is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


# ----------------------------------------------------------------------------------------------------------- messages


def calls(names=texts, arguments=None):
    """Tool calls in the OpenAI shape, arguments as text."""
    if arguments is None:
        spelled = st.builds(json.dumps, json_objects(), ensure_ascii=maybe, indent=st.sampled_from([None, 2]))
        arguments = st.one_of(spelled, spelled, texts.filter(lambda text: not _is_json(text)))
    call = st.builds(
        lambda name, arguments: {"type": "function", "function": {"name": name, "arguments": arguments}},
        names,
        arguments,
    )
    return st.lists(call, min_size=1, max_size=3).map(
        lambda found: [{"id": identity, **call} for identity, call in zip(CALL_IDS, found, strict=False)]
    )


def tools(leaves=texts, **kinds):
    """Tool schemas in the OpenAI shape."""
    function = st.builds(
        lambda name, description, parameters: {"name": name, "description": description, "parameters": parameters},
        leaves,
        leaves,
        json_objects(leaves, **kinds),
    )
    return st.lists(function.map(lambda f: {"type": "function", "function": f}), min_size=1, max_size=2)


@st.composite
def any_messages(draw, role):
    """One message of a role, with whatever the format allows on it."""
    message = {"role": role, "content": draw(texts)}
    if role == "developer":
        message["content"] += draw(st.sampled_from(["x", "\n"]))
    if role in ("system", "developer") and draw(seldom):
        message["response_format"] = draw(json_objects(least=1))
    if role == "tool":
        message["tool_call_id"] = draw(st.sampled_from([*CALL_IDS, "nobody", ""]))
        if draw(seldom):
            message["content"] = [
                {"type": "text", "text": text} for text in draw(st.lists(texts, min_size=1, max_size=3))
            ]
    if role == "assistant":
        if draw(maybe):
            message["reasoning_content"] = draw(st.one_of(st.none(), texts))
        if draw(seldom):
            message["wo_eos"] = draw(maybe)
        if draw(maybe) and draw(maybe):
            message["tool_calls"] = draw(calls())
            if draw(maybe):
                message["content"] = None
    if draw(seldom) and draw(maybe):
        message["task"] = draw(st.sampled_from([None, *TASKS]))
    return message


_ROLES = ["system", "developer", *["user"] * 3, *["assistant"] * 3, *["tool"] * 2, "latest_reminder"]
_role = st.sampled_from(_ROLES)


@st.composite
def any_records(draw):
    """A valid record: all roles in any order, and tools in any of their places."""
    record = {"messages": [draw(any_messages(role)) for role in draw(st.lists(_role, max_size=7))]}
    holders = [message for message in record["messages"] if message["role"] in ("system", "developer")]
    where = draw(st.sampled_from(["nowhere", "nowhere", "message", "record"]))
    if where == "record":
        record["tools"] = draw(tools())
    elif where == "message" and holders:
        for message in holders:
            if draw(maybe):
                message["tools"] = draw(tools())
    return record


any_options = st.fixed_dictionaries(
    {
        "mode": st.sampled_from(["chat", "thinking", "thinking"]),
        "drop_thinking": maybe,
        "reasoning_effort": st.sampled_from([None, "high", "max"]),
    }
)


@st.composite
def usual_records(draw, of=texts, *, answers=None, turns=3, with_calls=None, **kinds):
    """A record that is served as it stands: a system message first, then answered turns, some with tool calls.

    of: the texts, answers: the contents of assistants; with_calls: True, False, or None for some.
    """
    answers = of if answers is None else answers
    record = {"messages": []}
    if draw(maybe):
        record["messages"].append({"role": "system", "content": draw(of)})
    if draw(maybe) if with_calls is None else with_calls:
        record["tools"] = draw(tools(of, **kinds))
    for _ in range(draw(st.integers(1, turns))):
        if draw(seldom):
            record["messages"].append({"role": "latest_reminder", "content": draw(of)})
        record["messages"] += draw(_questions(of))
        while "tools" in record and draw(maybe):
            spoken = draw(calls(of, st.builds(json.dumps, json_objects(of, least=1, **kinds))))
            record["messages"].append(draw(_answers(answers)) | {"tool_calls": spoken})
            results = [{"role": "tool", "tool_call_id": call["id"], "content": draw(of)} for call in spoken]
            record["messages"] += draw(st.permutations(results))
            if draw(seldom):
                record["messages"] += draw(_questions(of))
        record["messages"].append(draw(_answers(answers)))
    return record


def _questions(of):
    """One user message or two; the encoders differ about an empty one beside another block of its turn."""
    message = st.fixed_dictionaries({"role": st.just("user"), "content": of.filter(bool)})
    return st.lists(message, min_size=1, max_size=2)


def _answers(of):
    return st.fixed_dictionaries({"role": st.just("assistant"), "content": of}, optional={"reasoning_content": of})


# --------------------------------------------------------------------------------------------------------------- ours


def conversation(record) -> Conversation:
    """A record, checked; it must be valid."""
    parsed = parse(record, lenient=True)
    assert isinstance(parsed, Conversation), str(parsed)
    return parsed


def segments(record, **options):
    """Our rendering of a whole record."""
    return deepseek_v4.render(conversation(record), RenderOptions(**options))


def text(record, **options):
    return deepseek_v4.text_of(segments(record, **options))


def encoded_examples(record, *, mask_type="deepseek_v4", full_vocabulary=False, **options):
    """(ids, mask) of each example of a record, through the code that builds rows."""
    how = How(
        mask_type=MASK_TYPES[mask_type],
        options=RenderOptions(**options),
        full_vocabulary=full_vocabulary,
        lenient=True,
    )
    encoder = Encoder(tokenizer(), None, how, row_tokens=1 << 62, separator="none")
    batch = ConversationBatch(
        rows=np.zeros(1, np.int64),
        counts=np.ones(1, np.int64),
        roles=np.array([RAW], np.uint8),
        texts=[json.dumps(record)],
        marked=np.ones(1, bool),
        source_codes=np.zeros(1, np.int32),
        id_codes=np.full(1, -1, np.int64),
    )
    made = encoder.encode(batch)
    assert not made.rejections, made.rejections
    ids, mask = np.split(made.ids, made.doc_ends)[:-1], np.split(made.loss_mask, made.doc_ends)[:-1]
    return [(a.tolist(), b.tolist()) for a, b in zip(ids, mask, strict=True)]


def encoded(record, **how):
    """(ids, mask) of a record that is one example."""
    (example,) = encoded_examples(record, **how)
    return example


def ids(record, **how):
    return encoded(record, **how)[0]


@cache
def spelling_of_token():
    """How the vocabulary spells the added tokens: id -> text."""
    return {token: text for text, token in tokenizer().added_tokens.items()}


def decode(token_ids):
    return tokenizer().full_vocabulary.decode(token_ids)
