"""A raw record -> a Conversation, or a Rejection with exactly one reason. Pure; text is never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """Why a record is skipped. The first that applies, in reading order, is the one that is counted."""

    SOURCE_EXCLUDED = "source_excluded"
    MESSAGES_NULL = "messages_null"
    MESSAGES_NOT_LIST = "messages_not_list"
    MESSAGES_EMPTY = "messages_empty"
    MESSAGE_NOT_OBJECT = "message_not_object"
    ROLE_UNKNOWN = "role_unknown"
    CONTENT_NULL = "content_null"
    CONTENT_NOT_TEXT = "content_not_text"
    LONE_SURROGATE = "lone_surrogate"


class Note(StrEnum):
    """What is worth counting in a conversation that is used all the same."""

    CONTENT_EMPTY = "content_empty"
    ENDS_WITHOUT_ASSISTANT = "ends_without_assistant"
    NO_ASSISTANT = "no_assistant"
    HEADERLESS_ASSISTANT = "headerless_assistant"
    SPECIAL_TEXT = "special_text"
    LONGER_THAN_ROW = "longer_than_row"
    ID_DUPLICATE = "id_duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message: who speaks, and the text as it came."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages that can be rendered."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A record that is not a conversation: one reason, the message it is about (None: the whole record), and words."""

    reason: Reason
    message: int | None
    detail: str

    def __str__(self) -> str:
        where = "" if self.message is None else f"message {self.message}: "
        return f"{self.reason.value}: {where}{self.detail}"


ROLES = ("system", "user", "assistant")


def parse(record: Mapping[str, Any], *, lenient: bool = False) -> Conversation | Rejection:
    """Check a record `{"messages": [{"role", "content"}, ...]}` and type it.

    Keys other than role and content are left alone; nothing is stripped, normalised or repaired. lenient lets through
    what the format can render though nobody would train on it: an empty list.
    """
    raw = record.get("messages")
    if raw is None:
        return Rejection(reason=Reason.MESSAGES_NULL, message=None, detail="there are no messages")
    if not isinstance(raw, list):
        return Rejection(
            reason=Reason.MESSAGES_NOT_LIST, message=None, detail=f"messages is {_name(raw)}, expected a list"
        )
    if not raw and not lenient:
        return Rejection(reason=Reason.MESSAGES_EMPTY, message=None, detail="messages is an empty list")
    messages = []
    for index, item in enumerate(raw):
        checked = _message(item, index)
        if isinstance(checked, Rejection):
            return checked
        messages.append(checked)
    return Conversation(messages=tuple(messages))


def _message(item: Any, index: int) -> Message | Rejection:
    def reject(reason: Reason, detail: str) -> Rejection:
        return Rejection(reason=reason, message=index, detail=detail)

    if not isinstance(item, Mapping):
        return reject(Reason.MESSAGE_NOT_OBJECT, f"is {_name(item)}, expected an object with role and content")
    role = item.get("role")
    if not isinstance(role, str) or role not in ROLES:
        return reject(Reason.ROLE_UNKNOWN, f"role {_short(role)}, expected one of {', '.join(ROLES)}")
    content = item.get("content")
    if content is None:
        return reject(Reason.CONTENT_NULL, f"content of the {role} message is null or missing")
    if not isinstance(content, str):
        return reject(Reason.CONTENT_NOT_TEXT, f"content of the {role} message is {_name(content)}, expected text")
    if has_lone_surrogate(content):
        return reject(Reason.LONE_SURROGATE, f"content of the {role} message holds a lone surrogate (not Unicode text)")
    return Message(role=role, content=content)


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
    if value is None:
        return "null"
    return {dict: "an object", list: "a list", str: "text", bool: "a boolean", int: "a number", float: "a number"}.get(
        type(value), type(value).__name__
    )


def _short(value: Any) -> str:
    text = ascii(value) if isinstance(value, str) else _name(value)
    return text if len(text) <= 40 else text[:37] + "..."
