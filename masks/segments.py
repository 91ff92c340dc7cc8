"""A rendered conversation: a list of segments, each a run of text or one special token, with what it is and whose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SegmentKind(StrEnum):
    """What a segment is. Mask types are tables over these names (see `masks.policy`)."""

    BOS = "bos"
    EFFORT = "effort"  # the reasoning-effort paragraph before the first message
    SYSTEM = "system"
    DEVELOPER = "developer"
    TOOLS = "tools"  # the tools section of a system or developer message
    RESPONSE_FORMAT = "response_format"
    USER_HEADER = "user_header"  # <｜User｜>
    USER = "user"
    TOOL_RESULT = "tool_result"
    REMINDER_HEADER = "reminder_header"  # <｜latest_reminder｜>
    REMINDER = "reminder"
    TASK = "task"  # <｜action｜>, <｜query｜>, ...
    ASSISTANT_HEADER = "assistant_header"  # <｜Assistant｜>
    HEADER_MARK = "header_mark"  # the </think> or <think> after <｜Assistant｜> of an answer: given by the server
    HEADER_MARK_OPEN = "header_mark_open"  # the same where no answer follows
    REASONING = "reasoning"
    REASONING_END = "reasoning_end"  # the </think> that the model writes
    CONTENT = "content"
    TOOL_CALLS = "tool_calls"
    EOS = "eos"  # after content
    EOS_AFTER_CALLS = "eos_after_calls"
    EOS_AFTER_NOTHING = "eos_after_nothing"  # after an answer without content and calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run of text or one special token of a rendered conversation.

    kind says what it is for the reader and the mask policy; message is the index of the message it came from, None for
    glue (a header mark belongs to the answer it opens). Exactly one of text and token_id counts: token_id None means
    text (which may be empty).
    """

    kind: SegmentKind
    message: int | None
    text: str = ""
    token_id: int | None = None
