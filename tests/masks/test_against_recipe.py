"""The renderer against the official package `deepseek-recipe`: where both speak the same format, and where they differ.

The package makes prompts for serving, in a later generation of the format. A training text comes from one so: in chat
mode the header it opens after the last answer is cut off; in thinking mode the last answer is given as a prefix to
continue, and EOS is added.
"""

import json
from functools import cache

import chats
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import tokenizer

from masks import deepseek_v4
from masks.conversation import Reason, Rejection
from masks.parse import parse

recipe = pytest.importorskip("deepseek_recipe")

BOS, EOS, USER, HEADER = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>"


@cache
def _encoding():
    return recipe.DeepseekV4Encoding().with_tokenizer(recipe.Tokenizer.from_str(tokenizer().data.decode("utf-8")))


def _theirs(record, *, thinking=False, prefix=False, effort="low", **options):
    """A record as the package's Conversation; the last answer as a prefix where asked, no reasoning in chat mode."""
    made = []
    for place, message in enumerate(record["messages"]):
        role, content = message["role"], message["content"]
        if role == "assistant":
            functions = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
            made.append(
                recipe.AssistantMessage(
                    content,
                    (message.get("reasoning_content") or "") if thinking else None,
                    [recipe.ToolCall(identity, f["name"], f["arguments"]) for identity, f in functions] or None,
                    prefix=prefix and place == len(record["messages"]) - 1,
                )
            )
        elif role == "tool":
            made.append(recipe.ToolMessage(content, message["tool_call_id"]))
        else:
            of_role = {
                "system": recipe.SystemMessage,
                "user": recipe.UserMessage,
                "latest_reminder": recipe.LatestReminderMessage,
            }
            made.append(of_role[role](content))
    functions = [tool["function"] for tool in record.get("tools", ())]
    return recipe.Conversation(
        made,
        thinking_mode=thinking,
        tools=[recipe.ToolDefinition(f["name"], f["description"], f["parameters"]) for f in functions],
        reasoning_effort=effort,
        **options,
    )


def _prompt(record, **how):
    return _encoding().render_conversation(_theirs(record, **how)).prompt


def _chat(*turns, **rest):
    """_chat("user", "q", "assistant", "a") -> a record."""
    pairs = zip(turns[::2], turns[1::2], strict=True)
    return {"messages": [{"role": role, "content": content} for role, content in pairs], **rest}


def _call(arguments):
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    record = _chat("user", "q", "assistant", "", "user", "x")
    record["messages"][1]["tool_calls"] = [call]
    return record


def _parameters(text):
    """What stands between the tags of the one invoke of a rendered text."""
    start = '<｜DSML｜invoke name="f">'
    return text[text.index(start) + len(start) : text.index("</｜DSML｜invoke>")]


def _special_places(segments):
    """[(start, end)] of the special tokens in the rendered text."""
    places, end = [], 0
    for segment in segments:
        start, end = end, end + len(deepseek_v4.text_of([segment]))
        if segment.token_id is not None:
            places.append((start, end))
    return places


# ------------------------------------------------------------------------------------------------ where they are alike


def _usual(**how):
    return chats.usual_records(numbers=chats.plain_numbers, **how)


@chats.examples(100)
@given(record=_usual())
def test_chat_mode_agrees_in_text_ids_and_special_places(record):
    rendered = _encoding().render_conversation(_theirs(record))
    assert chats.text(record) + "<｜Assistant｜></think>" == rendered.prompt
    assert _special_places(chats.segments(record)) == rendered.special_ranges[:-2]
    assert chats.ids(record) == _encoding().encode(_theirs(record))[:-2]


@chats.examples(100)
@given(record=_usual(answers=chats.texts.filter(bool)), effort=st.sampled_from([None, "high", "max"]))
def test_thinking_mode_agrees_in_text_ids_and_special_places(record, effort):
    options = {"mode": "thinking", "drop_thinking": True, "reasoning_effort": effort}
    conversation = _theirs(record, thinking=True, prefix=True, effort="high" if effort == "max" else "low")
    rendered = _encoding().render_conversation(conversation)
    assert chats.text(record, **options) == rendered.prompt + EOS
    ours = _special_places(chats.segments(record, **options))
    assert ours[:-1] == rendered.special_ranges
    assert chats.ids(record, **options) == [*_encoding().encode(conversation), deepseek_v4.EOS]


@chats.examples(40)
@given(record=_usual(), thinking=st.booleans())
def test_an_open_conversation_agrees_as_it_is_served(record, thinking):
    """Up to the answer, nothing needs to be derived: our text is the prompt."""
    record["messages"].pop()
    options = {"mode": "thinking" if thinking else "chat", "drop_thinking": True}
    conversation = _theirs(record, thinking=thinking)
    assert chats.text(record, **options) == _encoding().render_conversation(conversation).prompt
    assert chats.ids(record, **options) == _encoding().encode(conversation)


# ---------------------------------------------------------------------------------------------- where they are not
# One test for each row of the table of differences. A change on either side is to be noticed.


def test_last_message_is_assistant():
    record = _chat("user", "q", "assistant", "a")
    record["messages"][1]["reasoning_content"] = "r"
    assert chats.text(record) == f"{BOS}{USER}q{HEADER}</think>a{EOS}"
    assert _prompt(record) == f"{BOS}{USER}q{HEADER}</think>a{EOS}{HEADER}</think>"
    assert chats.text(record, mode="thinking") == f"{BOS}{USER}q{HEADER}<think>r</think>a{EOS}"
    assert _prompt(record, thinking=True) == f"{BOS}{USER}q{HEADER}</think>a{EOS}{HEADER}<think>"
    assert _prompt(record, thinking=True, prefix=True) == f"{BOS}{USER}q{HEADER}<think>r</think>a"


def test_effort():
    record = _chat("user", "q")

    def ours(effort):
        return chats.text(record, mode="thinking", reasoning_effort=effort)

    theirs = {e: _prompt(record, thinking=True, effort=e) for e in (None, "low", "high", "xhigh", "max")}
    assert ours(None) == ours("high") == theirs["low"] == f"{BOS}{USER}q{HEADER}<think>"
    assert ours("max") == theirs["high"] == theirs["xhigh"] == theirs[None]
    assert ours("max").startswith(BOS + "Reasoning Effort: Absolute maximum")
    assert theirs["max"].startswith(BOS + "Reasoning Effort: Beyond maximum")


def test_several_system_messages():
    record = _chat("system", "a", "system", "b", "user", "q")
    assert chats.text(record) == f"{BOS}ab{USER}q{HEADER}</think>"
    assert _prompt(record) == f"{BOS}a\n\nb{USER}q{HEADER}</think>"


def test_system_between_user_and_assistant():
    record = _chat("user", "q", "system", "s", "assistant", "a")
    assert chats.text(record) == f"{BOS}{USER}qsa{EOS}"
    assert chats.text(record, headerless="official") == f"{BOS}{USER}qs{HEADER}</think>a{EOS}"
    assert _prompt(record) == f"{BOS}s{USER}q{HEADER}</think>a{EOS}{HEADER}</think>"


def test_consecutive_assistants_and_assistant_first():
    record = _chat("assistant", "a", "assistant", "b", "user", "q")
    assert chats.text(record) == f"{BOS}a{EOS}b{EOS}{USER}q{HEADER}</think>"
    theirs = f"{BOS}{HEADER}</think>a{EOS}{HEADER}</think>b{EOS}{USER}q{HEADER}</think>"
    assert _prompt(record) == theirs
    assert chats.text(record, headerless="official") == theirs
    # In thinking mode it keeps the reasoning of the last of them only.
    record = _chat("user", "q", "assistant", "a", "assistant", "b")
    record["messages"][1]["reasoning_content"], record["messages"][2]["reasoning_content"] = "r", "s"
    thinking = {"mode": "thinking", "drop_thinking": True, "headerless": "official"}
    last = f"{HEADER}<think>s</think>b"
    assert chats.text(record, **thinking) == f"{BOS}{USER}q{HEADER}<think>r</think>a{EOS}{last}{EOS}"
    assert _prompt(record, thinking=True, prefix=True) == f"{BOS}{USER}q{HEADER}</think>a{EOS}{last}"


def test_latest_reminder_after_user():
    record = _chat("user", "q", "latest_reminder", "r", "assistant", "a")
    assert chats.text(record) == f"{BOS}{USER}q{HEADER}</think><｜latest_reminder｜>ra{EOS}"
    assert _prompt(record) == f"{BOS}{USER}q<｜latest_reminder｜>r{HEADER}</think>a{EOS}{HEADER}</think>"
    before = _chat("latest_reminder", "r", "user", "q", "assistant", "a")
    assert chats.text(before) == f"{BOS}<｜latest_reminder｜>r{USER}q{HEADER}</think>a{EOS}"
    assert _prompt(before) == chats.text(before) + HEADER + "</think>"


def test_latest_reminder_last():
    record = _chat("user", "q", "assistant", "a", "latest_reminder", "r")
    ours = f"{BOS}{USER}q{HEADER}</think>a{EOS}<｜latest_reminder｜>r"
    assert chats.text(record) == ours
    assert _prompt(record) == ours + HEADER + "</think>"


def test_empty_user_block_in_a_merge():
    record = _chat("user", "x", "user", "", "user", "z")
    assert chats.text(record) == f"{BOS}{USER}x\n\n\n\nz{HEADER}</think>"
    assert _prompt(record) == f"{BOS}{USER}x\n\nz{HEADER}</think>"


def test_empty_arguments():
    record = _call("{}")
    assert _parameters(chats.text(record)) == "\n\n"
    assert _parameters(_prompt(record)) == "\n"


def test_arguments_that_are_not_json():
    record = _call("not json")
    one = '\n<｜DSML｜parameter name="arguments" string="true">not json</｜DSML｜parameter>\n'
    assert _parameters(chats.text(record)) == _parameters(_prompt(record)) == one


@pytest.mark.parametrize("arguments", ["[1]", "3", '"s"', "null"])
def test_json_arguments_that_are_not_an_object(arguments):
    record = _call(arguments)
    rejection = parse(record)
    assert isinstance(rejection, Rejection)
    assert rejection.reason is Reason.TOOL_ARGUMENTS_NOT_OBJECT
    one = f'\n<｜DSML｜parameter name="arguments" string="true">{arguments}</｜DSML｜parameter>\n'
    assert _parameters(_prompt(record)) == one


@pytest.mark.parametrize(
    ("written", "ours", "theirs"),
    [
        ("1e5", "100000.0", "100000.0"),
        ("1E-7", "1e-07", "1e-7"),
        ("1e16", "1e+16", "1e+16"),
        ("18446744073709551616", "18446744073709551616", "1.8446744073709552e+19"),
    ],
)
def test_numbers_in_arguments(written, ours, theirs):
    """Not in the table: a number is spelled by the language that writes it, Python for the release encoder."""
    record = _call('{"n": ' + written + "}")
    for text, number in ((chats.text(record), ours), (_prompt(record), theirs)):
        assert _parameters(text) == f'\n<｜DSML｜parameter name="n" string="false">{number}</｜DSML｜parameter>\n'


def test_reasoning_in_chat_mode_with_tools():
    """Not in the table: the release encoder leaves it out, the package keeps any reasoning where tools are declared."""
    function = {"name": "f", "description": "d", "parameters": {}}
    record = _chat("user", "q", "assistant", "a", "user", "z", tools=[{"type": "function", "function": function}])
    record["messages"][1]["reasoning_content"] = "r"
    assert chats.text(record).endswith(f"{USER}q{HEADER}</think>a{EOS}{USER}z{HEADER}</think>")
    messages = [recipe.UserMessage("q"), recipe.AssistantMessage("a", "r"), recipe.UserMessage("z")]
    tools = [recipe.ToolDefinition("f", "d", {})]
    theirs = _encoding().render_conversation(recipe.Conversation(messages, thinking_mode=False, tools=tools)).prompt
    assert theirs.endswith(f"{USER}q{HEADER}<think>r</think>a{EOS}{USER}z{HEADER}</think>")


def test_keys_of_a_tool_schema():
    """Not in the table: the release encoder writes the schema as it is, the package its own keys in its own order."""
    function = {"parameters": {}, "name": "f", "x-own": 1}
    record = _chat("user", "q", tools=[{"type": "function", "function": function}])
    assert json.dumps(function) in chats.text(record)
    function["description"] = None
    assert '\n{"name": "f", "description": "", "parameters": {}}\n' in _prompt(record)


def test_nan_in_arguments():
    """Not in the table: Python reads NaN as JSON, the package does not."""
    record = _call('{"n": NaN}')
    assert 'name="n" string="false">NaN<' in chats.text(record)
    assert 'name="arguments" string="true">{"n": NaN}<' in _prompt(record)


@pytest.mark.parametrize(
    ("message", "ours"),
    [
        ({"role": "developer", "content": "d"}, f"{BOS}{USER}d{HEADER}</think>"),
        ({"role": "user", "content": "q", "task": "title"}, f"{BOS}{USER}q<｜title｜>"),
        ({"role": "assistant", "content": "a", "wo_eos": True}, f"{BOS}a"),
    ],
)
def test_developer_task_and_wo_eos(message, ours):
    assert chats.text({"messages": [message]}) == ours
    body = {"model": "DeepSeek-V4-Pro", "messages": [message], "thinking": {"type": "disabled"}}
    if message["role"] == "developer":
        with pytest.raises(ValueError, match="unknown variant `developer`"):
            recipe.ChatCompletionRequest(body)
        return
    request = recipe.ChatCompletionRequest(body).convert(recipe.ConversionOptions())
    plain = {key: message[key] for key in ("role", "content")}
    assert _encoding().render_conversation(request.conversation).prompt == _prompt({"messages": [plain]})


def test_drop_thinking_false_without_tools():
    record = _chat("user", "q", "assistant", "a", "user", "p", "assistant", "b")
    for message, reasoning in zip(record["messages"][1::2], "rs", strict=True):
        message["reasoning_content"] = reasoning
    last = f"{USER}p{HEADER}<think>s</think>b"
    kept = chats.text(record, mode="thinking", drop_thinking=False)
    assert kept == f"{BOS}{USER}q{HEADER}<think>r</think>a{EOS}{last}{EOS}"
    assert _prompt(record, thinking=True, prefix=True) == f"{BOS}{USER}q{HEADER}</think>a{EOS}{last}"


def test_response_format_json_object():
    record = _chat("system", "s", "user", "q")
    theirs = _prompt(record, response_format="json_object")
    assert theirs == (
        f"{BOS}s\n\nYou are a helpful assistant designed to output JSON.\n"
        f"## Response Format:\n\nReply with JSON object ONLY.{USER}q{HEADER}</think>"
    )
    schema = {"type": "json_object", "é": [1, None]}
    theirs = _prompt(record, response_schema=schema)
    record["messages"][0]["response_format"] = schema
    assert chats.text(record) == theirs


def test_empty_messages():
    record = {"messages": []}
    assert chats.text(record) == BOS
    assert parse(record).reason is Reason.MESSAGES_EMPTY  # a build skips it
    assert _prompt(record) == f"{BOS}{HEADER}</think>"
    with pytest.raises(recipe.ConversionError, match="Empty input messages"):
        recipe.ChatCompletionRequest({"model": "DeepSeek-V4-Pro", **record}).convert(recipe.ConversionOptions())


def test_tools_on_a_system_message():
    function = {"name": "f", "description": "d", "parameters": {}}
    record = _chat("system", "s", "user", "q")
    record["messages"][0]["tools"] = [{"type": "function", "function": function}]
    assert json.dumps(function) in chats.text(record)
    definition = recipe.ToolDefinition("f", "d", {})
    messages = [recipe.SystemMessage("s", tools=[definition]), recipe.UserMessage("q")]
    theirs = _encoding().render_conversation(recipe.Conversation(messages, thinking_mode=False))
    assert theirs.prompt == f"{BOS}s{USER}q{HEADER}</think>"
    on_the_record = _chat("system", "s", "user", "q", tools=record["messages"][0]["tools"])
    assert chats.text(record) == chats.text(on_the_record) == _prompt(on_the_record)


def test_an_empty_answer_in_thinking_mode():
    """The known exception of the derivation: the package leaves the reasoning of an empty prefix open."""
    record = _chat("user", "q", "assistant", "")
    record["messages"][1]["reasoning_content"] = "r"
    assert chats.text(record, mode="thinking") == f"{BOS}{USER}q{HEADER}<think>r</think>{EOS}"
    assert _prompt(record, thinking=True, prefix=True) == f"{BOS}{USER}q{HEADER}<think>r"
