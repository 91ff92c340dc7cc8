"""DeepSeek-V4 chat format: conversation -> segments.

V4 ships no Jinja template; the format is what the release encoder (`encoding/encoding_dsv4.py` beside the checkpoint)
prints. A chat turn is `BOS system <｜User｜>question<｜Assistant｜></think>answer EOS`; in thinking mode the answer is
`<think>reasoning</think>answer EOS`, and only `<think>` is given by the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from masks.conversation import Conversation, Message, Note, Reason, Rejection, ToolCall
from masks.fixed_texts import FixedTexts, Part, fixed_texts
from masks.options import RELEASE, RenderOptions
from masks.segments import Segment, SegmentKind

BOS = 0
EOS = 1
USER = 128803
ASSISTANT = 128804
THINK = 128821
THINK_END = 128822
DSML = 128825
REMINDER = 128828
TASKS = {
    "action": 128829,
    "query": 128830,
    "authority": 128831,
    "domain": 128832,
    "title": 128836,
    "read_url": 128845,
}

#: The text of each token that the renderer places, as the vocabulary spells it.
TOKEN_TEXT = {
    BOS: "<｜begin▁of▁sentence｜>",
    EOS: "<｜end▁of▁sentence｜>",
    USER: "<｜User｜>",
    ASSISTANT: "<｜Assistant｜>",
    THINK: "<think>",
    THINK_END: "</think>",
    DSML: "｜DSML｜",
    REMINDER: "<｜latest_reminder｜>",
    **{token: f"<｜{name}｜>" for name, token in TASKS.items()},
}
_TOKEN_ID = {text: token for token, text in TOKEN_TEXT.items()}

K = SegmentKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One rendered sequence. only: the messages that may be trained, None for all (see `policy.trained`)."""

    segments: list[Segment]
    only: frozenset[int] | None = None


@dataclass(slots=True, kw_only=True)
class _Turn:
    """One message as the format sees it; a user turn may hold several (blocks: kind, message, text, call id)."""

    role: str
    message: Message
    blocks: list[tuple[SegmentKind, int | None, str, str]] = field(default_factory=list)


def examples(
    conversation: Conversation, options: RenderOptions, fixed: Callable[[], FixedTexts] = fixed_texts
) -> tuple[list[Example], set[Note]] | Rejection:
    """Render a conversation into one example, or one for each answered user turn under split_turns.

    fixed gives the fixed paragraphs; it is called only where one is needed. The notes say what the rendering left out.
    """
    turns = _turns(conversation.messages)
    if options.unanswered != "keep" and (not turns or turns[-1].role != "assistant"):
        while turns and turns[-1].role != "assistant":
            turns.pop()
        if options.unanswered == "skip" or not turns:
            return Rejection(reason=Reason.UNANSWERED, message=None, detail="it does not end with an assistant")
    if options.headerless == "reject" and (place := _first_headerless(turns)) is not None:
        detail = "an assistant that follows no user turn has no header"
        return Rejection(reason=Reason.HEADERLESS_ASSISTANT, message=turns[place].message.index, detail=detail)
    found = _notes(conversation, turns)
    if options.history == "whole":
        return [Example(segments=_render(turns, options, fixed, found))], found
    made = []
    for end, answers in _answered(turns):
        part = _render(turns[:end], options, fixed, found)
        made.append(Example(segments=part, only=frozenset(answers)))
    return made or [Example(segments=_render(turns, options, fixed, found))], found


def render(
    conversation: Conversation, options: RenderOptions = RELEASE, fixed: Callable[[], FixedTexts] = fixed_texts
) -> list[Segment]:
    """Render a whole conversation as the release encoder does."""
    return _render(_turns(conversation.messages), options, fixed, set())


def text_of(segments: Iterable[Segment]) -> str:
    """The rendered text, special tokens spelled out."""
    return "".join(s.text if s.token_id is None else TOKEN_TEXT[s.token_id] for s in segments)


def _turns(messages: Iterable[Message]) -> list[_Turn]:
    """Messages -> turns: users and tool results that follow each other are one user turn, results in call order."""
    turns: list[_Turn] = []
    for message in messages:
        last = turns[-1] if turns and turns[-1].role == "user" else None
        if message.role == "tool":
            block = (
                K.TOOL_RESULT,
                message.index,
                f"<tool_result>{message.content}</tool_result>",
                message.tool_call_id,
            )
            if last is None:
                turns.append(_Turn(role="user", message=replace(message, task=None), blocks=[block]))
            else:
                last.blocks.append(block)
        elif message.role == "user":
            block = (K.USER, message.index, message.content, "")
            if last is None or last.message.task is not None:
                turns.append(_Turn(role="user", message=message, blocks=[block]))
            else:
                last.blocks.append(block)
        else:
            turns.append(_Turn(role=message.role, message=message))
    _sort_results(turns)
    return turns


def _sort_results(turns: list[_Turn]) -> None:
    order: dict[str, int] = {}
    for turn in turns:
        if turn.role == "assistant" and turn.message.tool_calls:
            order = {call.id: place for place, call in enumerate(turn.message.tool_calls) if call.id}
        results = [block for block in turn.blocks if block[0] is K.TOOL_RESULT]
        if len(results) > 1 and order:
            ordered = iter(sorted(results, key=lambda block: order.get(block[3], 0)))
            turn.blocks = [next(ordered) if block[0] is K.TOOL_RESULT else block for block in turn.blocks]


def _render(
    turns: list[_Turn], options: RenderOptions, fixed: Callable[[], FixedTexts], found: set[Note]
) -> list[Segment]:
    thinking = options.mode == "thinking"
    drop = thinking and options.drop_thinking and not any(turn.message.tools for turn in turns)
    if drop:
        turns = _without_history(turns, found)
    last_user = _last_user(turns)
    segments = [Segment(kind=K.BOS, message=None, token_id=BOS)]
    if thinking and options.reasoning_effort == "max" and turns:
        segments += _fixed_segments(fixed().effort, K.EFFORT, None)
    for place, turn in enumerate(turns):
        if options.headerless == "official" and _is_headerless(turns, place):
            mark = THINK if thinking and not (drop and place <= last_user) else THINK_END
            segments += _header(mark, turn.message.index)
        with_reasoning = thinking and (not drop or place > last_user)
        if with_reasoning and place and turns[place - 1].message.task is not None:
            with_reasoning = False
        if turn.message.reasoning and not with_reasoning:
            found.add(Note.REASONING_NOT_RENDERED)
        segments += _turn_segments(turn, with_reasoning, fixed)
        following = turns[place + 1].role if place + 1 < len(turns) else None
        if following in (None, "assistant", "latest_reminder"):
            opens_thinking = thinking and (not drop or place >= last_user)
            segments += _transition(turn, opens_thinking, thinking, _answer(turns, place))
    return segments


def _without_history(turns: list[_Turn], found: set[Note]) -> list[_Turn]:
    """What serving keeps of the turns before the last user or developer: no reasoning, no developer messages."""
    last_user = _last_user(turns)
    kept = []
    for place, turn in enumerate(turns):
        if place >= last_user:
            kept.append(turn)
        elif turn.role == "developer":
            found.add(Note.DEVELOPER_DROPPED)
        else:
            if turn.message.reasoning:
                found.add(Note.REASONING_NOT_RENDERED)
            kept.append(_Turn(role=turn.role, message=replace(turn.message, reasoning=None), blocks=turn.blocks))
    return kept


def _last_user(turns: list[_Turn]) -> int:
    return max((place for place, turn in enumerate(turns) if turn.role in ("user", "developer")), default=-1)


def _turn_segments(turn: _Turn, with_reasoning: bool, fixed: Callable[[], FixedTexts]) -> list[Segment]:
    message, index = turn.message, turn.message.index
    if turn.role == "user":
        segments = [Segment(kind=K.USER_HEADER, message=index, token_id=USER)]
        for number, (kind, owner, text, _) in enumerate(turn.blocks):
            if number:
                segments.append(Segment(kind=kind, message=owner, text="\n\n"))
            segments.append(Segment(kind=kind, message=owner, text=text))
        return segments
    if turn.role == "assistant":
        return _assistant(message, with_reasoning)
    if turn.role == "latest_reminder":
        return [
            Segment(kind=K.REMINDER_HEADER, message=index, token_id=REMINDER),
            Segment(kind=K.REMINDER, message=index, text=message.content),
        ]
    if turn.role == "developer":
        segments = [
            Segment(kind=K.USER_HEADER, message=index, token_id=USER),
            Segment(kind=K.DEVELOPER, message=index, text=message.content),
        ]
    else:
        segments = [Segment(kind=K.SYSTEM, message=index, text=message.content)]
    if message.tools:
        texts = fixed()
        segments += _fixed_segments(texts.before_tools, K.TOOLS, index)
        segments.append(Segment(kind=K.TOOLS, message=index, text="\n".join(message.tools)))
        segments += _fixed_segments(texts.after_tools, K.TOOLS, index)
    if message.response_format is not None:
        heading = "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"
        segments.append(Segment(kind=K.RESPONSE_FORMAT, message=index, text=heading + message.response_format))
    return segments


def _assistant(message: Message, with_reasoning: bool) -> list[Segment]:
    index = message.index
    segments = []
    if with_reasoning:
        segments.append(Segment(kind=K.REASONING, message=index, text=message.reasoning or ""))
        segments.append(Segment(kind=K.REASONING_END, message=index, token_id=THINK_END))
    segments.append(Segment(kind=K.CONTENT, message=index, text=message.content))
    if message.tool_calls:
        segments += _calls(message.tool_calls, index)
    if not message.wo_eos:
        after = K.EOS_AFTER_CALLS if message.tool_calls else K.EOS if message.content else K.EOS_AFTER_NOTHING
        segments.append(Segment(kind=after, message=index, token_id=EOS))
    return segments


def _calls(calls: tuple[ToolCall, ...], index: int | None) -> list[Segment]:
    """Tool calls in DSML, whose tags hold a real token; names and values stand in them without escapes."""
    segments: list[Segment] = []

    def tag(before: str, after: str) -> None:
        segments.append(Segment(kind=K.TOOL_CALLS, message=index, text=before))
        segments.append(Segment(kind=K.TOOL_CALLS, message=index, token_id=DSML))
        segments.append(Segment(kind=K.TOOL_CALLS, message=index, text=after))

    tag("\n\n<", "tool_calls>\n")
    for number, call in enumerate(calls):
        tag("\n<" if number else "<", f'invoke name="{call.name}">\n')
        for place, (key, is_string, text) in enumerate(call.parameters):
            flag = "true" if is_string else "false"
            tag("\n<" if place else "<", f'parameter name="{key}" string="{flag}">{text}')
            tag("</", "parameter>")
        tag("\n</", "invoke>")
    tag("\n</", "tool_calls>")
    return segments


def _transition(turn: _Turn, opens_thinking: bool, thinking: bool, answer: int | None) -> list[Segment]:
    """What stands between a turn and the answer to it."""
    task = turn.message.task
    if task is not None:
        token = Segment(kind=K.TASK, message=turn.message.index, token_id=TASKS[task])
        return [*_header(THINK if thinking else THINK_END, None), token] if task == "action" else [token]
    if turn.role in ("user", "developer"):
        return _header(THINK if opens_thinking else THINK_END, answer)
    return []


def _header(mark: int, answer: int | None) -> list[Segment]:
    kind = K.HEADER_MARK_OPEN if answer is None else K.HEADER_MARK
    return [
        Segment(kind=K.ASSISTANT_HEADER, message=None, token_id=ASSISTANT),
        Segment(kind=kind, message=answer, token_id=mark),
    ]


def _answer(turns: list[_Turn], place: int) -> int | None:
    """The message that answers a turn: the next one, reminders aside, if it is an assistant."""
    for turn in turns[place + 1 :]:
        if turn.role != "latest_reminder":
            return turn.message.index if turn.role == "assistant" else None
    return None


def _is_headerless(turns: list[_Turn], place: int) -> bool:
    if turns[place].role != "assistant":
        return False
    before = next((turn for turn in reversed(turns[:place]) if turn.role != "latest_reminder"), None)
    opened = place and turns[place - 1].message.task is not None
    return not opened and (before is None or before.role not in ("user", "developer"))


def _first_headerless(turns: list[_Turn]) -> int | None:
    return next((place for place in range(len(turns)) if _is_headerless(turns, place)), None)


def _answered(turns: list[_Turn]) -> list[tuple[int, list[int]]]:
    """(end, messages to train) of each user or developer turn that is answered before the next one.

    The end is that of its last answer: a reminder or a system message after it belongs to what follows.
    """
    users = [place for place, turn in enumerate(turns) if turn.role in ("user", "developer")]
    found = []
    for place, end in zip(users, [*users, len(turns)][1:], strict=True):
        answers = [answer for answer in range(place, end) if turns[answer].role == "assistant"]
        if answers:
            indices = [turns[answer].message.index for answer in answers]
            found.append((answers[-1] + 1, [index for index in indices if index is not None]))
    return found


def _fixed_segments(parts: Iterable[Part], kind: SegmentKind, index: int | None) -> list[Segment]:
    return [
        Segment(kind=kind, message=index, token_id=_TOKEN_ID[text])
        if special
        else Segment(kind=kind, message=index, text=text)
        for special, text in parts
    ]


def _notes(conversation: Conversation, turns: list[_Turn]) -> set[Note]:
    """What is worth counting about the shape of a conversation."""
    messages = [message for message in conversation.messages if message.index is not None]
    found = set(conversation.notes)
    if any(m.content == "" and not m.tool_calls for m in messages):
        found.add(Note.CONTENT_EMPTY)
    if not any(m.role == "assistant" for m in messages):
        found.add(Note.NO_ASSISTANT)
    if not messages or messages[-1].role != "assistant":
        found.add(Note.ENDS_WITHOUT_ASSISTANT)
    if _first_headerless(turns) is not None:
        found.add(Note.HEADERLESS_ASSISTANT)
    before = None
    for message in messages:
        joins = before is not None and before.role in ("user", "tool") and before.task is None
        if message.role == "user" and message.task is not None and joins:
            found.add(Note.TASK_DROPPED)  # it joins a turn that has none, and the format keeps the turn's
        before = message
    return found | _tool_notes(messages)


def _tool_notes(messages: list[Message]) -> set[Note]:
    found = set()
    waiting: list[str] = []
    for message in messages:
        if message.role == "assistant":
            if waiting:
                found.add(Note.TOOL_UNANSWERED)
            waiting = [call.id for call in message.tool_calls]
        elif message.role == "tool":
            if message.tool_call_id in waiting:
                waiting.remove(message.tool_call_id)
            else:
                found.add(Note.TOOL_ORPHAN)
    if waiting:
        found.add(Note.TOOL_UNANSWERED)
    return found
