"""Which records are conversations: each reason, their order, and agreement with a second implementation."""

import json

import pytest
import twin
from hypothesis import example, given, settings
from hypothesis import strategies as st

from masks import deepseek_v4
from masks.conversation import Conversation, Reason, Rejection
from masks.options import RenderOptions
from masks.parse import ROLES, has_lone_surrogate, parse

LONE = "\ud800"


def said(role, content, **more):
    return {"role": role, "content": content, **more}


GOOD = said("user", "a")

# (messages, reason, the message it is about)
REJECTED = [
    (None, "messages_null", None),
    ("text", "messages_not_list", None),
    ("", "messages_not_list", None),
    ({}, "messages_not_list", None),
    ({"role": "user", "content": "a"}, "messages_not_list", None),
    (0, "messages_not_list", None),
    (False, "messages_not_list", None),
    (1.5, "messages_not_list", None),
    ([], "messages_empty", None),
    ([None], "message_not_object", 0),
    (["user: hi"], "message_not_object", 0),
    ([[]], "message_not_object", 0),
    ([[["role", "user"], ["content", "a"]]], "message_not_object", 0),
    ([GOOD, 3], "message_not_object", 1),
    ([{}], "role_unknown", 0),
    ([{"content": "a"}], "role_unknown", 0),
    ([said(None, "a")], "role_unknown", 0),
    ([said(1, "a")], "role_unknown", 0),
    ([said(["user"], "a")], "role_unknown", 0),
    ([said({"user": 1}, "a")], "role_unknown", 0),
    ([said("", "a")], "role_unknown", 0),
    ([said("User", "a")], "role_unknown", 0),
    ([said("user ", "a")], "role_unknown", 0),
    ([said("human", "a")], "role_unknown", 0),
    ([said("function", "a")], "role_unknown", 0),
    ([said(LONE, "a")], "role_unknown", 0),
    ([{"role": "user"}], "content_null", 0),
    ([GOOD, said("assistant", None)], "content_null", 1),
    ([said("assistant", None, tool_calls=[])], "content_null", 0),
    ([said("user", 1)], "content_not_text", 0),
    ([said("user", 0.5)], "content_not_text", 0),
    ([said("user", False)], "content_not_text", 0),
    ([said("user", [])], "content_not_text", 0),
    ([said("user", [{"type": "text", "text": None}])], "content_not_text", 0),
    ([said("user", [{"text": "a"}])], "content_not_text", 0),
    ([said("user", {"text": "a"})], "content_not_text", 0),
    ([said("user", b"a")], "content_not_text", 0),
    ([said("user", LONE)], "lone_surrogate", 0),
    ([GOOD, GOOD, said("user", "a\udfff")], "lone_surrogate", 2),
    ([said("user", "\udc00\ud800")], "lone_surrogate", 0),
    ([said("user", "\ud83d\ude00")], "lone_surrogate", 0),  # two code points, not the pair that JSON would have made
]

# The same for what only the whole format has, which the twin does not know.
REJECTED_BEYOND_TEXT = [
    ([said("tool", None)], "content_null", 0),
    ([said("user", [{"type": "text", "text": "a"}, {"type": "image_url"}])], "content_part_unsupported", 0),
    ([said("user", [{"type": "text", "text": LONE}])], "lone_surrogate", 0),
    ([said("developer", "")], "developer_empty", 0),
    ([said("user", "a", task="sing")], "task_unknown", 0),
    ([said("user", "a", task=3)], "task_unknown", 0),
    ([said("assistant", "a", reasoning_content=3)], "content_not_text", 0),
    ([said("assistant", "a", reasoning_content=LONE)], "lone_surrogate", 0),
    ([said("assistant", None, tool_calls="x")], "tool_calls_malformed", 0),
    ([said("assistant", None, tool_calls=[{}])], "tool_calls_malformed", 0),
    ([said("assistant", None, tool_calls=[{"function": {"name": 1}}])], "tool_calls_malformed", 0),
    ([said("assistant", None, tool_calls=[{"name": "f", "arguments": "[1]"}])], "tool_arguments_not_object", 0),
    ([said("assistant", None, tool_calls=[{"name": "f", "arguments": 1}])], "tool_arguments_not_object", 0),
    ([said("assistant", None, tool_calls=[{"name": "f", "arguments": LONE}])], "lone_surrogate", 0),
    ([said("assistant", None, tool_calls=[{"name": "f", "arguments": '{"a": "\\ud800"}'}])], "lone_surrogate", 0),
    ([said("system", "a", tools="[")], "tools_malformed", 0),
    ([said("system", "a", tools=[1])], "tools_malformed", 0),
    ([said("system", "a", tools=[{"type": "function", "function": {}}])], "tools_malformed", 0),
    ([said("user", "a", tools=[{"name": "f"}])], "tools_malformed", 0),
    ([said("system", "a", tools={"name": "f"})], "tools_malformed", 0),
]


@pytest.mark.parametrize(("messages", "reason", "message"), REJECTED)
def test_each_reason(messages, reason, message):
    found = parse({"messages": messages})
    assert isinstance(found, Rejection)
    assert (found.reason, found.message) == (reason, message)
    assert str(found).startswith(f"{reason}: ") and str(found).isprintable()
    assert len(str(found)) < 150
    if not isinstance(messages, list) or not any(isinstance(m, dict) and b"a" in m.values() for m in messages):
        assert twin.reject_reason({"messages": messages}) == reason


@pytest.mark.parametrize(("messages", "reason", "message"), REJECTED_BEYOND_TEXT)
def test_each_reason_beyond_text(messages, reason, message):
    found = parse({"messages": messages})
    assert isinstance(found, Rejection)
    assert (found.reason, found.message) == (reason, message)
    assert str(found).startswith(f"{reason}: ") and str(found).isprintable()


def test_tools_on_a_message_and_beside_them_are_refused():
    tools = [{"name": "f"}]
    found = parse({"messages": [said("system", "a", tools=tools)], "tools": tools})
    assert (found.reason, found.message) == (Reason.TOOLS_MALFORMED, None)


@pytest.mark.parametrize(("headerless", "unanswered"), [("reject", "keep"), ("reference", "skip")])
def test_options_that_reject(headerless, unanswered):
    conversation = parse({"messages": [said("assistant", "a"), said("user", "b")]})
    options = RenderOptions(headerless=headerless, unanswered=unanswered)
    found = deepseek_v4.examples(conversation, options)
    assert found.reason is (Reason.HEADERLESS_ASSISTANT if headerless == "reject" else Reason.UNANSWERED)


def test_unanswered_turns_can_be_trimmed():
    conversation = parse({"messages": [said("user", "a"), said("assistant", "b"), said("user", "c")]})
    ((example,), _) = deepseek_v4.examples(conversation, RenderOptions(unanswered="trim"))
    assert deepseek_v4.text_of(example.segments).endswith("b<｜end▁of▁sentence｜>")
    nobody = parse({"messages": [said("user", "a")]})
    assert deepseek_v4.examples(nobody, RenderOptions(unanswered="trim")).reason is Reason.UNANSWERED


def test_every_reason_is_tested():
    """Whether a source is left out is not decided here; two reasons are options of the rendering."""
    tested = {reason for _, reason, _ in [*REJECTED, *REJECTED_BEYOND_TEXT]}
    assert tested == {r.value for r in Reason} - {"source_excluded", "headerless_assistant", "unanswered"}


def test_a_record_without_messages():
    for record in ({}, {"conversations": [GOOD]}, {"Messages": [GOOD]}):
        assert parse(record).reason is Reason.MESSAGES_NULL


@pytest.mark.parametrize(
    ("messages", "reason", "message"),
    [
        ([said("x", None)], "role_unknown", 0),
        ([said("x", LONE)], "role_unknown", 0),
        ([said(None, 3)], "role_unknown", 0),
        ([said("user", LONE), "x"], "lone_surrogate", 0),
        (["x", said("user", LONE)], "message_not_object", 0),
        ([GOOD, said("user", None), said("x", "a"), None], "content_null", 1),
        ([GOOD, said("user", 3), said("user", None)], "content_not_text", 1),
        ([said("assistant", ""), said("bot", "a"), []], "role_unknown", 1),
    ],
)
def test_the_first_fault_in_reading_order_is_the_reason(messages, reason, message):
    found = parse({"messages": messages})
    assert (found.reason, found.message) == (reason, message)
    assert twin.reject_reason({"messages": messages}) == reason


@pytest.mark.parametrize(
    "text", ["", " ", "\x00", "\r\n", "\ufeff", "\ufffd", "\ufdd0", "\ue000", "\U0010ffff", "😀", "\ud7ff\ue000"]
)
@pytest.mark.parametrize("role", ROLES)
def test_text_is_never_changed_and_never_refused(role, text):
    if role == "developer" and not text:
        return  # the one role whose text must not be empty
    found = parse({"messages": [said(role, text)]})
    assert isinstance(found, Conversation)
    assert [(m.role, m.content) for m in found.messages] == [(role, text)]


def test_other_keys_are_left_alone():
    record = {"messages": [said("user", "a", name=3, tool_calls=[LONE])], "id": [], "source": LONE, "tools": {}}
    before = json.dumps(record)
    found = parse(record)
    assert [(m.role, m.content) for m in found.messages] == [("user", "a")]
    assert json.dumps(record) == before


def test_any_order_of_roles_is_a_conversation():
    roles = ["assistant", "assistant", "system", "user", "user", "system"]
    found = parse({"messages": [said(role, role) for role in roles]})
    assert [m.role for m in found.messages] == roles


def test_lenient_lets_an_empty_list_and_null_through_and_nothing_else():
    assert parse({"messages": []}, lenient=True) == Conversation(messages=())
    assert parse({"messages": [said("user", None)]}, lenient=True).messages[0].content == ""
    for messages, reason, _ in REJECTED:
        if messages != [] and reason != "content_null":
            assert parse({"messages": messages}, lenient=True).reason == reason


def test_the_words_of_a_long_role_are_few():
    found = parse({"messages": [said("x" * 10_000, "a")]})
    assert len(str(found)) < 150


# ------------------------------------------------------------------------------------- any JSON value whatsoever

text = st.text(max_size=6) | st.sampled_from(["", LONE, "a\udc00", "é", "😀"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(text, children, max_size=3),
    max_leaves=6,
)
PLAIN = ("system", "user", "assistant")
roles = st.sampled_from([*PLAIN, *PLAIN, "function", "User", ""]) | json_values
near_messages = st.dictionaries(
    st.sampled_from(["role", "content", "x"]), json_values, max_size=3
) | st.fixed_dictionaries({"role": roles, "content": text | text | json_values})
near_records = st.fixed_dictionaries({}, optional={"messages": st.lists(near_messages | json_values, max_size=4)})
good_records = st.fixed_dictionaries(
    {"messages": st.lists(st.fixed_dictionaries({"role": st.sampled_from(PLAIN), "content": text}), max_size=4)}
)
anything = st.fixed_dictionaries({"messages": json_values}) | st.dictionaries(text | st.just("messages"), json_values)


@settings(max_examples=400, deadline=None)
@given(st.one_of(good_records, near_records, anything))
@example({"messages": [said("user", "a"), said("assistant", LONE)]})
def test_any_json_value_is_a_conversation_or_has_one_reason(record):
    found = parse(record)
    reason = twin.reject_reason(record)
    if reason is None:
        assert isinstance(found, Conversation)
        assert [(m.role, m.content) for m in found.messages] == [(m["role"], m["content"]) for m in record["messages"]]
    else:
        assert isinstance(found, Rejection) and found.reason.value == reason
        assert str(found).isascii() and str(found).isprintable()


@given(st.text(st.characters(), max_size=20) | text)
def test_lone_surrogates_are_seen(value):
    assert has_lone_surrogate(value) == any("\ud800" <= character <= "\udfff" for character in value)
