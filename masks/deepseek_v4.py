"""DeepSeek-V4 chat format: conversation -> segments.

V4 ships no Jinja template; the format is what the release encoder (`encoding/encoding_dsv4.py` beside the checkpoint)
prints. A chat turn is `BOS system <｜User｜>question<｜Assistant｜></think>answer EOS`.
"""

from __future__ import annotations

from masks.conversation import Conversation, Message, Note
from masks.segments import Segment, SegmentKind

BOS = 0
EOS = 1
USER = 128803
ASSISTANT = 128804
THINK = 128821
THINK_END = 128822

#: The text of each token that the renderer places, as the vocabulary spells it.
TOKEN_TEXT = {
    BOS: "<｜begin▁of▁sentence｜>",
    EOS: "<｜end▁of▁sentence｜>",
    USER: "<｜User｜>",
    ASSISTANT: "<｜Assistant｜>",
    THINK: "<think>",
    THINK_END: "</think>",
}


def render(conversation: Conversation) -> list[Segment]:
    """Render a conversation in chat mode.

    Consecutive user messages are one turn, joined by a blank line. `<｜Assistant｜></think>` ends a user turn that is
    last or comes before an assistant. An assistant message is its content and EOS; one that follows no user turn has no
    header at all (the release encoder's reading), so its text may merge with the text before it.
    """
    kind = SegmentKind
    messages = conversation.messages
    segments = [Segment(kind=kind.BOS, message=None, token_id=BOS)]
    for index, message in enumerate(messages):
        following = messages[index + 1].role if index + 1 < len(messages) else None
        if message.role == "system":
            segments.append(Segment(kind=kind.SYSTEM, message=index, text=message.content))
        elif message.role == "user":
            if index and messages[index - 1].role == "user":
                segments.append(Segment(kind=kind.USER, message=index, text="\n\n"))
            else:
                segments.append(Segment(kind=kind.USER_HEADER, message=index, token_id=USER))
            segments.append(Segment(kind=kind.USER, message=index, text=message.content))
            if following in (None, "assistant"):
                segments.append(Segment(kind=kind.ASSISTANT_HEADER, message=None, token_id=ASSISTANT))
                segments.append(Segment(kind=kind.HEADER_MARK, message=None, token_id=THINK_END))
        else:
            segments.append(Segment(kind=kind.CONTENT, message=index, text=message.content))
            segments.append(Segment(kind=kind.EOS, message=index, token_id=EOS))
    return segments


def text_of(segments: list[Segment]) -> str:
    """The rendered text, special tokens spelled out."""
    return "".join(s.text if s.token_id is None else TOKEN_TEXT[s.token_id] for s in segments)


def notes(conversation: Conversation) -> set[Note]:
    """What is worth counting about the shape of a conversation."""
    roles = [m.role for m in conversation.messages]
    found = set()
    if any(_is_empty(m) for m in conversation.messages):
        found.add(Note.CONTENT_EMPTY)
    if "assistant" not in roles:
        found.add(Note.NO_ASSISTANT)
    if roles[-1:] != ["assistant"]:
        found.add(Note.ENDS_WITHOUT_ASSISTANT)
    if any(r == "assistant" and (i == 0 or roles[i - 1] != "user") for i, r in enumerate(roles)):
        found.add(Note.HEADERLESS_ASSISTANT)
    return found


def _is_empty(message: Message) -> bool:
    return message.content == ""
