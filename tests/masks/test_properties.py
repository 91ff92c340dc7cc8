"""What a rendered conversation promises: prompts as served, growth by appending, masks by emission, a way back."""

import json
import re
from itertools import groupby

import chats
import pytest
from hypothesis import given
from hypothesis import strategies as st
from slow_v4 import calls_text, slow_text

from masks.deepseek_v4 import EOS, TOKEN_TEXT
from masks.fixed_texts import fixed_texts
from masks.policy import MASK_TYPES

pytest.importorskip("deepseek_recipe", reason="the fixed paragraphs of the format come from it")

EOS_TEXT = TOKEN_TEXT[EOS]
_question = st.fixed_dictionaries({"role": st.just("user"), "content": chats.texts})
_answer = st.fixed_dictionaries(
    {"role": st.just("assistant"), "content": chats.texts},
    optional={"reasoning_content": chats.texts, "tool_calls": chats.calls()},
)


# ------------------------------------------------------------------------------------------------- prompts as served


@chats.examples(150)
@given(record=chats.any_records(), question=_question, answer=_answer, options=chats.any_options)
def test_what_comes_before_an_answer_is_what_serving_would_send(record, question, answer, options):
    asked = [*record["messages"], question]
    prompt = chats.ids({**record, "messages": asked}, **options)
    answered = {**record, "messages": [*asked, answer]}
    ids, mask = chats.encoded(answered, mask_type="deepseek_v4_last_turn", **options)
    first = mask.index(1)
    assert ids[:first] == prompt
    assert mask[first:] == [1] * (len(ids) - first)


@chats.examples(60)
@given(record=chats.usual_records(), options=chats.any_options)
def test_it_is_so_for_every_answer_of_a_conversation(record, options):
    for place, message in enumerate(record["messages"]):
        if message["role"] != "assistant":
            continue
        until = {**record, "messages": record["messages"][: place + 1]}
        before = {**record, "messages": record["messages"][:place]}
        ids, mask = chats.encoded(until, mask_type="deepseek_v4_last_turn", **options)
        assert ids[: mask.index(1)] == chats.ids(before, **options)


# ---------------------------------------------------------------------------------------------- growth by appending


@chats.examples(100)
@given(
    record=chats.any_records(),
    turns=st.lists(st.tuples(_question, _answer), min_size=2, max_size=2),
    options=chats.any_options.filter(lambda o: o["mode"] == "chat" or not o["drop_thinking"]),
)
def test_a_conversation_is_a_prefix_of_its_extension(record, turns, options):
    shorter = [*record["messages"], *turns[0]]
    ids, mask = chats.encoded({**record, "messages": shorter}, **options)
    longer_ids, longer_mask = chats.encoded({**record, "messages": [*shorter, *turns[1]]}, **options)
    assert ids[-1] == EOS
    assert longer_ids[: len(ids)] == ids
    assert longer_mask[: len(ids)] == mask


def test_with_drop_thinking_history_changes_as_a_conversation_grows():
    turn = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "a", "reasoning_content": "r"},
    ]
    options = {"mode": "thinking", "drop_thinking": True}
    assert chats.text({"messages": turn}, **options).endswith(f"<｜Assistant｜><think>r</think>a{EOS_TEXT}")
    longer = chats.text({"messages": turn + turn}, **options)
    assert longer.startswith(f"<｜begin▁of▁sentence｜><｜User｜>q<｜Assistant｜></think>a{EOS_TEXT}")
    ids, longer_ids = chats.ids({"messages": turn}, **options), chats.ids({"messages": turn + turn}, **options)
    assert longer_ids[: len(ids)] != ids
    # Tools keep the reasoning, and with it the property.
    tool = {"type": "function", "function": {"name": "f"}}
    ids = chats.ids({"messages": turn, "tools": [tool]}, **options)
    assert chats.ids({"messages": turn + turn, "tools": [tool]}, **options)[: len(ids)] == ids


# ------------------------------------------------------------------------------------------------- masks by emission

#: mask type -> what it trains of an assistant message.
TRAINS = {
    "deepseek_v4": ("reasoning", "reasoning_end", "content", "calls", "eos"),
    "deepseek_v4_last_turn": ("reasoning", "reasoning_end", "content", "calls", "eos"),
    "deepseek_v4_think_prefix": ("mark", "reasoning", "reasoning_end", "content", "calls", "eos"),
    "deepseek_v4_content": ("content", "eos_after_content"),
    "deepseek_v4_no_reasoning": ("content", "calls", "eos"),
    "deepseek_v4_no_eos": ("reasoning", "reasoning_end", "content", "calls"),
}


def test_every_mask_type_is_described_here():
    assert {*TRAINS, "all_but_system", "full"} == set(MASK_TYPES)


def _own_texts(record, thinking, drop_thinking):
    """For each assistant message, its parts as they are rendered."""
    messages = record["messages"]
    last_user = max(place for place, message in enumerate(messages) if message["role"] in ("user", "tool"))
    for place, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        shown = thinking and (not drop_thinking or "tools" in record or place > last_user)
        calls = calls_text(message.get("tool_calls", []))
        content = message["content"]
        yield {
            "place": place,
            "mark": "<think>" if shown else "</think>",
            "reasoning": message.get("reasoning_content", "") if shown else "",
            "reasoning_end": "</think>" if shown else "",
            "content": content,
            "calls": calls,
            "eos": EOS_TEXT,
            "eos_after_content": EOS_TEXT if content and not calls else "",
        }


def _whole_tokens(text, following):
    """The text of those tokens of `text + following` that end inside text: a token that straddles is not trained."""
    engine = chats.tokenizer().reference
    sizes = chats.tokenizer().token_bytes
    token_ids, _ = engine.encode([text + following])
    inside, end = [], 0
    for token in token_ids.tolist():
        end += int(sizes[token])
        if end <= len(text.encode()):
            inside.append(token)
    return chats.decode(inside)


def _trained_texts(ids, mask):
    """The text of each unbroken stretch of trained tokens."""
    stretches = groupby(zip(ids, mask, strict=True), key=lambda pair: pair[1])
    return [chats.decode([token for token, _ in pairs]) for flag, pairs in stretches if flag]


@chats.examples(80)
@given(
    record=chats.usual_records(), thinking=chats.maybe, drop_thinking=chats.maybe, silence=st.sets(st.integers(0, 12))
)
def test_what_is_trained_is_what_each_answer_says(record, thinking, drop_thinking, silence):
    for place in silence:
        if place < len(record["messages"]) and record["messages"][place]["role"] == "assistant":
            record["messages"][place]["step_loss_mask"] = 0
    options = {"mode": "thinking" if thinking else "chat", "drop_thinking": drop_thinking}
    answers = list(_own_texts(record, thinking, drop_thinking))
    for name, parts in TRAINS.items():
        expected = []
        for answer in answers[-1:] if name == "deepseek_v4_last_turn" else answers:
            own = {part: answer[part] for part in parts}
            if record["messages"][answer["place"]].get("step_loss_mask") == 0:
                own = {"mark": own["mark"]} if "mark" in own else {}
            elif name == "deepseek_v4_content" and answer["calls"]:
                own["content"] = _whole_tokens(own["content"], "\n\n<")
            expected.append("".join(own.values()))
        ids, mask = chats.encoded(record, mask_type=name, **options)
        assert _trained_texts(ids, mask) == [text for text in expected if text], name


@chats.examples(50)
@given(record=chats.usual_records(), options=chats.any_options)
def test_what_the_wide_masks_train(record, options):
    text = slow_text(record, **options)
    ids, mask = chats.encoded(record, mask_type="full", **options)
    assert _trained_texts(ids, mask) == [text]
    head = {**record, "messages": [message for message in record["messages"][:1] if message["role"] == "system"]}
    ids, mask = chats.encoded(record, mask_type="all_but_system", **options)
    (trained,) = _trained_texts(ids, mask)
    # An effort paragraph stands at the front of whatever there is.
    head = slow_text(head, **{**options, "mode": "chat"})
    effort = len(slow_text(record, **options)) - len(slow_text(record, **{**options, "reasoning_effort": None}))
    assert trained == text[len(head) + effort :]


# ------------------------------------------------------------------------------------------------------ a way back

_MARK = re.compile(r"(<｜User｜>|<｜latest_reminder｜>|<｜Assistant｜>(?:<think>|</think>))")
_INVOKE = re.compile(r'<｜DSML｜invoke name="([^"]*)">\n(.*?)\n</｜DSML｜invoke>', re.DOTALL)
_PARAMETER = re.compile(r'<｜DSML｜parameter name="([^"]*)" string="(true|false)">(.*?)</｜DSML｜parameter>', re.DOTALL)


def _read(ids):
    """Token ids -> (messages, tools). Tool results carry no call id, and stand in the order of the calls."""
    head, *rest = _MARK.split(chats.decode(ids).removeprefix("<｜begin▁of▁sentence｜>"))
    messages, tools = [], []
    before, after = (
        "".join(text for _, text in parts) for parts in (fixed_texts().before_tools, fixed_texts().after_tools)
    )
    if before in head:
        head, schemas = head.removesuffix(after).split(before)
        tools = [json.loads(schema) for schema in schemas.split("\n")]
    if head:
        messages.append({"role": "system", "content": head})
    for mark, body in zip(rest[::2], rest[1::2], strict=True):
        if mark == "<｜User｜>":
            messages += [_read_block(block) for block in body.split("\n\n")]
        elif mark == "<｜latest_reminder｜>":
            messages.append({"role": "latest_reminder", "content": body})
        else:
            messages.append(_read_answer(body, thinks=mark.endswith("<think>")))
    return messages, tools


def _read_block(block):
    if block.startswith("<tool_result>"):
        return {"role": "tool", "content": block.removeprefix("<tool_result>").removesuffix("</tool_result>")}
    return {"role": "user", "content": block}


def _read_answer(body, thinks):
    assert body.endswith(EOS_TEXT)
    message = {"role": "assistant"}
    body = body.removesuffix(EOS_TEXT)
    if thinks:
        message["reasoning_content"], body = body.split("</think>")
    message["content"], *calls = body.split("\n\n<｜DSML｜tool_calls>\n")
    if calls:
        message["tool_calls"] = [
            (
                name,
                {key: value if flag == "true" else json.loads(value) for key, flag, value in _PARAMETER.findall(text)},
            )
            for name, text in _INVOKE.findall(calls[0])
        ]
    return message


def _said(record, thinking):
    """The messages of a record as far as their rendering can tell them."""
    order = {}
    for message in record["messages"]:
        if message["role"] == "system" and not message["content"]:
            continue
        said = {"role": message["role"], "content": message["content"]}
        if message["role"] == "assistant":
            if thinking:
                said["reasoning_content"] = message.get("reasoning_content", "")
            functions = [call["function"] for call in message.get("tool_calls", [])]
            if functions:
                said["tool_calls"] = [(f["name"], json.loads(f["arguments"])) for f in functions]
                order = {call["id"]: place for place, call in enumerate(message["tool_calls"])}
        yield order.get(message.get("tool_call_id"), 0), said


def _in_call_order(numbered):
    messages = []
    for role, group in groupby(numbered, key=lambda pair: pair[1]["role"]):
        group = sorted(group, key=lambda pair: pair[0]) if role == "tool" else group
        messages += [message for _, message in group]
    return messages


@chats.examples(120)
@given(
    record=chats.usual_records(
        chats.clear_texts,
        answers=st.lists(chats.clear_texts, max_size=3).map("\n".join),
        numbers=chats.plain_numbers,
    ),
    thinking=chats.maybe,
)
def test_a_clear_conversation_can_be_read_back_from_its_tokens(record, thinking):
    ids = chats.ids(record, mode="thinking" if thinking else "chat")
    messages, tools = _read(ids)
    assert messages == _in_call_order(_said(record, thinking))
    assert tools == [tool["function"] for tool in record.get("tools", [])]


# ------------------------------------------------------------------------------------------------------ split turns


@chats.examples(80)
@given(record=chats.usual_records(), options=chats.any_options, rest=st.sampled_from(["", "user", "latest_reminder"]))
def test_each_split_turn_is_what_serving_would_send_and_its_answer(record, options, rest):
    answered = [place for place, message in enumerate(record["messages"]) if message["role"] == "assistant"]
    if rest:
        record["messages"].append({"role": rest, "content": "more"})
    made = chats.encoded_examples(record, history="split_turns", **options)
    assert len(made) == len(answered)
    for (ids, mask), place in zip(made, answered, strict=True):
        prompt = chats.ids({**record, "messages": record["messages"][:place]}, **options)
        until = {**record, "messages": record["messages"][: place + 1]}
        assert ids[: len(prompt)] == prompt
        assert mask == [0] * len(prompt) + [1] * (len(ids) - len(prompt))
        assert ids == chats.ids(until, **options)
        assert ids[-1] == EOS


def test_a_split_turn_with_several_answers_trains_them_all():
    turns = [("user", "q"), ("assistant", "a"), ("assistant", "b"), ("system", "s"), ("user", "p"), ("assistant", "c")]
    record = {"messages": [{"role": role, "content": content} for role, content in turns]}
    first, second = chats.encoded_examples(record, history="split_turns")
    assert chats.decode(first[0]).endswith(f"</think>a{EOS_TEXT}b{EOS_TEXT}")
    assert _trained_texts(*first) == [f"a{EOS_TEXT}b{EOS_TEXT}"]
    assert second[0] == chats.ids(record)
    assert _trained_texts(*second) == [f"c{EOS_TEXT}"]
