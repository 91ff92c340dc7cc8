"""A rendered conversation: a list of segments, each a run of text or one special token, with what it is and whose."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SegmentKind(StrEnum):
    """What a segment is. Mask types are tables over these names (see `masks.policy`)."""

    BOS = "bos"
    SYSTEM = "system"
    USER_HEADER = "user_header"  # <｜User｜>
    USER = "user"
    ASSISTANT_HEADER = "assistant_header"  # <｜Assistant｜>
    HEADER_MARK = (
        "header_mark"  # the </think> or <think> that follows <｜Assistant｜>: given by the server, not sampled
    )
    CONTENT = "content"
    EOS = "eos"


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A run of text or one special token of a rendered conversation.

    kind says what it is for the reader and the mask policy; message is the index of the message it came from, None for
    glue. Exactly one of text and token_id counts: token_id None means text (which may be empty).
    """

    kind: SegmentKind
    message: int | None
    text: str = ""
    token_id: int | None = None
