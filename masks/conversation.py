"""What a checked conversation is, and the reasons and notes that records are counted under. Text is never changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    CONTENT_PART_UNSUPPORTED = "content_part_unsupported"
    LONE_SURROGATE = "lone_surrogate"
    DEVELOPER_EMPTY = "developer_empty"
    TOOLS_MALFORMED = "tools_malformed"
    TOOL_CALLS_MALFORMED = "tool_calls_malformed"
    TOOL_ARGUMENTS_NOT_OBJECT = "tool_arguments_not_object"
    TASK_UNKNOWN = "task_unknown"
    HEADERLESS_ASSISTANT = "headerless_assistant"
    UNANSWERED = "unanswered"


class Note(StrEnum):
    """What is worth counting in a conversation that is used all the same."""

    CONTENT_EMPTY = "content_empty"
    ENDS_WITHOUT_ASSISTANT = "ends_without_assistant"
    NO_ASSISTANT = "no_assistant"
    HEADERLESS_ASSISTANT = "headerless_assistant"
    SPECIAL_TEXT = "special_text"
    LONGER_THAN_ROW = "longer_than_row"
    ID_DUPLICATE = "id_duplicate"
    EOS_LEFT_OUT = "eos_left_out"
    MESSAGE_SILENCED = "message_silenced"
    REASONING_NOT_RENDERED = "reasoning_not_rendered"
    DEVELOPER_DROPPED = "developer_dropped"
    TASK_DROPPED = "task_dropped"
    TOOL_ORPHAN = "tool_orphan"
    TOOL_UNANSWERED = "tool_unanswered"
    TOOL_ARGUMENTS_NOT_JSON = "tool_arguments_not_json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call: parameters are (name, is a string, text), where text is the string itself or JSON."""

    id: str
    name: str
    parameters: tuple[tuple[str, bool, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message. index is its place in the record; None for a system message that only carries the record's tools.

    tools and response_format are JSON texts. silenced: the message asks not to be trained.
    """

    index: int | None
    role: str
    content: str = ""
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    tools: tuple[str, ...] = ()
    response_format: str | None = None
    task: str | None = None
    wo_eos: bool = False
    silenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """Messages that can be rendered, and what was noted while they were read."""

    messages: tuple[Message, ...]
    notes: frozenset[Note] = frozenset()

    @property
    def silenced(self) -> frozenset[int]:
        """Indices of the messages that ask not to be trained."""
        return frozenset(m.index for m in self.messages if m.silenced and m.index is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A record that is not a conversation: one reason, the message it is about (None: the whole record), and words."""

    reason: Reason
    message: int | None
    detail: str

    def __str__(self) -> str:
        where = "" if self.message is None else f"message {self.message}: "
        return f"{self.reason.value}: {where}{self.detail}"
