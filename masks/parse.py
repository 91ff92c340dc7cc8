"""A raw record -> a Conversation, or a Rejection with exactly one reason. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from masks.conversation import Conversation, Message, Note, Reason, Rejection, ToolCall

ROLES = ("system", "developer", "user", "assistant", "tool", "latest_reminder")
TASKS = ("action", "query", "authority", "domain", "title", "read_url")


class _RejectedError(Exception):
    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def parse(record: Mapping[str, Any], *, lenient: bool = False) -> Conversation | Rejection:
    """Check a record `{"messages": [{"role", "content", ...}, ...], "tools": ...}` and type it.

    Keys that the format does not know are left alone; nothing is stripped, normalised or repaired. lenient lets through
    what the format can render though nobody would train on it: an empty list, and null for empty text.
    """
    raw = record.get("messages")
    if raw is None:
        return Rejection(reason=Reason.MESSAGES_NULL, message=None, detail="there are no messages")
    if not isinstance(raw, list):
        detail = f"messages is {_name(raw)}, expected a list"
        return Rejection(reason=Reason.MESSAGES_NOT_LIST, message=None, detail=detail)
    if not raw and not lenient:
        return Rejection(reason=Reason.MESSAGES_EMPTY, message=None, detail="messages is an empty list")
    messages: list[Message] = []
    notes: set[Note] = set()
    index: int | None = None
    try:
        for index, item in enumerate(raw):
            messages.append(_message(item, index, notes, lenient))
        index = None
        _attach_tools(messages, _tools(record.get("tools")))
    except _RejectedError as error:
        return Rejection(reason=error.reason, message=index, detail=error.detail)
    return Conversation(messages=tuple(messages), notes=frozenset(notes))


def _message(item: Any, index: int, notes: set[Note], lenient: bool) -> Message:
    if not isinstance(item, Mapping):
        raise _RejectedError(Reason.MESSAGE_NOT_OBJECT, f"is {_name(item)}, expected an object with role and content")
    role = item.get("role")
    if not isinstance(role, str) or role not in ROLES:
        raise _RejectedError(Reason.ROLE_UNKNOWN, f"role {_short(role)}, expected one of {', '.join(ROLES)}")
    has_calls = role == "assistant" and bool(item.get("tool_calls"))
    content = _content(item.get("content"), role, may_be_null=lenient or has_calls)
    if role == "developer" and not content:
        raise _RejectedError(Reason.DEVELOPER_EMPTY, "content of the developer message is empty")
    task = item.get("task")
    if task is not None and task not in TASKS:
        raise _RejectedError(Reason.TASK_UNKNOWN, f"task {_short(task)}, expected one of {', '.join(TASKS)}")
    silenced = any(item.get(key) is not None and item[key] != 1 for key in ("step_loss_mask", "loss"))
    if silenced:
        notes.add(Note.MESSAGE_SILENCED)
    wo_eos = role == "assistant" and bool(item.get("wo_eos"))
    if wo_eos:
        notes.add(Note.EOS_LEFT_OUT)
    tools = _tools(item.get("tools"))
    if tools and role not in ("system", "developer"):
        raise _RejectedError(Reason.TOOLS_MALFORMED, f"tools on the {role} message, expected on system or developer")
    response_format = item.get("response_format") if role in ("system", "developer") else None
    identity = item.get("tool_call_id") if role == "tool" else None
    return Message(
        index=index,
        role=role,
        content=content,
        reasoning=_reasoning(item.get("reasoning_content")) if role == "assistant" else None,
        tool_calls=_tool_calls(item["tool_calls"], notes) if has_calls else (),
        tool_call_id="" if identity is None else str(identity),
        tools=tools,
        response_format=_json(response_format, Reason.CONTENT_NOT_TEXT) if response_format else None,
        task=task,
        wo_eos=wo_eos,
        silenced=silenced,
    )


def _content(value: Any, role: str, *, may_be_null: bool) -> str:
    if value is None:
        if may_be_null:
            return ""
        raise _RejectedError(Reason.CONTENT_NULL, f"content of the {role} message is null or missing")
    if isinstance(value, list) and value:
        return "\n\n".join(_part(part, role) for part in value)
    if not isinstance(value, str):
        raise _RejectedError(Reason.CONTENT_NOT_TEXT, f"content of the {role} message is {_name(value)}, expected text")
    return _text(value, f"content of the {role} message")


def _part(part: Any, role: str) -> str:
    """A typed content part. Parts are joined by a blank line, as the format joins the blocks of a turn."""
    if not isinstance(part, Mapping) or not isinstance(part.get("type"), str):
        raise _RejectedError(
            Reason.CONTENT_NOT_TEXT, f"content of the {role} message is a list, expected text or typed parts"
        )
    if part["type"] != "text":
        raise _RejectedError(
            Reason.CONTENT_PART_UNSUPPORTED,
            f"content of the {role} message has a part of type {_short(part['type'])}, expected text",
        )
    if not isinstance(part.get("text"), str):
        raise _RejectedError(Reason.CONTENT_NOT_TEXT, f"a text part of the {role} message has no text")
    return _text(part["text"], f"content of the {role} message")


def _reasoning(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return None if value is None else _text(value, "reasoning_content")
    raise _RejectedError(Reason.CONTENT_NOT_TEXT, f"reasoning_content is {_name(value)}, expected text")


def _tools(value: Any) -> tuple[str, ...]:
    """OpenAI tools, as a list or as JSON text of one -> the JSON of each function."""
    if isinstance(value, str) and value:
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise _RejectedError(Reason.TOOLS_MALFORMED, "tools is text but not JSON") from error
    if not value:
        return ()
    if not isinstance(value, list):
        raise _RejectedError(Reason.TOOLS_MALFORMED, f"tools is {_name(value)}, expected a list")
    schemas = []
    for tool in value:
        function = tool.get("function", tool) if isinstance(tool, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise _RejectedError(Reason.TOOLS_MALFORMED, "a tool is not an object with a function that has a name")
        schemas.append(_json(function, Reason.TOOLS_MALFORMED))
    return tuple(schemas)


def _attach_tools(messages: list[Message], tools: tuple[str, ...]) -> None:
    """A record's tools go to its first system message, or to an empty one put before everything."""
    if not tools:
        return
    if any(message.tools for message in messages):
        raise _RejectedError(Reason.TOOLS_MALFORMED, "tools stand on a message and beside the messages")
    for place, message in enumerate(messages):
        if message.role == "system":
            messages[place] = replace(message, tools=tools)
            return
    messages.insert(0, Message(index=None, role="system", tools=tools))


def _tool_calls(value: Any, notes: set[Note]) -> tuple[ToolCall, ...]:
    """OpenAI tool calls; a call may also be flat: {"name", "arguments"}."""
    if not isinstance(value, list):
        raise _RejectedError(Reason.TOOL_CALLS_MALFORMED, f"tool_calls is {_name(value)}, expected a list")
    calls = []
    for call in value:
        function = call.get("function", call) if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise _RejectedError(Reason.TOOL_CALLS_MALFORMED, "a tool call is not an object with a function name")
        identity = call.get("id") or function.get("id")
        calls.append(
            ToolCall(
                id="" if identity is None else str(identity),
                name=_text(function["name"], "the name of a tool call"),
                parameters=_parameters(function.get("arguments"), notes),
            )
        )
    return tuple(calls)


def _parameters(arguments: Any, notes: set[Note]) -> tuple[tuple[str, bool, str], ...]:
    """Arguments as an object, or as JSON text of one. Text that is not JSON is one parameter, `arguments`."""
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            notes.add(Note.TOOL_ARGUMENTS_NOT_JSON)
            return (("arguments", True, _text(arguments, "the arguments of a tool call")),)
    else:
        parsed = arguments
    if not isinstance(parsed, Mapping):
        raise _RejectedError(
            Reason.TOOL_ARGUMENTS_NOT_OBJECT, f"the arguments of a tool call are {_name(parsed)}, expected an object"
        )
    return tuple(
        (
            _text(str(key), "the arguments of a tool call"),
            isinstance(value, str),
            _text(value, "the arguments of a tool call")
            if isinstance(value, str)
            else _json(value, Reason.TOOL_CALLS_MALFORMED),
        )
        for key, value in parsed.items()
    )


def _json(value: Any, reason: Reason) -> str:
    """JSON as the format spells it: Python's separators, keys in their order, no escapes for what is not ASCII."""
    try:
        return _text(json.dumps(value, ensure_ascii=False), "JSON")
    except (TypeError, ValueError, RecursionError) as error:
        raise _RejectedError(reason, "a value cannot be written as JSON") from error


def _text(value: str, what: str) -> str:
    if has_lone_surrogate(value):
        raise _RejectedError(Reason.LONE_SURROGATE, f"{what} holds a lone surrogate (not Unicode text)")
    return value


def has_lone_surrogate(text: str) -> bool:
    """Whether text cannot be written as UTF-8, which is so only for surrogates without their pair."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _name(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _short(value: Any) -> str:
    text = ascii(value) if isinstance(value, str) else _name(value)
    return text if len(text) <= 40 else text[:37] + "..."
