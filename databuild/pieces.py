"""Conversations -> pieces: one array entry for each special token and each run of text, for a whole batch.

A run is everything between two special tokens of one example and is tokenized as one. Two ways lead here and must give
the same: the plain one, by columns, for text turns that alternate as usual; and the general one, through
`masks.deepseek_v4`, which defines the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import numpy.typing as npt

from databuild.sources.base import ASSISTANT, RAW, ROLE_CODES, SYSTEM, USER, ConversationBatch
from masks import deepseek_v4, policy
from masks.conversation import Note, Reason, Rejection
from masks.options import RELEASE, RenderOptions
from masks.parse import parse
from masks.segments import Segment, SegmentKind

#: Value of Pieces.tokens for a run of text, and of Pieces.trained for a run that is trained in part.
TEXT = -1
MIXED = 2

#: Of a MIXED run, (bytes, trained) of each of its segments.
Parts = list[tuple[int, bool]]

REASONS = list(Reason)
NOTES = list(Note)
NOTE_BIT = {note: 1 << i for i, note in enumerate(NOTES)}
_ROLE_NAMES = {code: name for name, code in ROLE_CODES.items()}

_START = 3
# Which message may follow which on the plain way: a user turn after the start, a system or an assistant; an assistant
# after a user only. Everything else (merged user turns, headerless assistants, late systems) takes the general way.
_PLAIN_NEXT = np.zeros((4, 4), bool)
_PLAIN_NEXT[_START, [SYSTEM, USER]] = True
_PLAIN_NEXT[SYSTEM, USER] = _PLAIN_NEXT[ASSISTANT, USER] = _PLAIN_NEXT[USER, ASSISTANT] = True


@dataclass(frozen=True, slots=True, kw_only=True)
class How:
    """Everything that decides the pieces. plain_way False sends all the general way; lenient: see masks.parse."""

    mask_type: policy.MaskType
    options: RenderOptions = RELEASE
    full_vocabulary: bool = False
    plain_way: bool = True
    lenient: bool = False

    @property
    def plain_allowed(self) -> bool:
        """Whether the columns know all that these options ask for."""
        kinds, options = self.mask_type.kinds, self.options
        alike = (
            (SegmentKind.EOS, SegmentKind.EOS_AFTER_NOTHING),
            (SegmentKind.HEADER_MARK, SegmentKind.HEADER_MARK_OPEN),
        )
        return (
            self.plain_way
            and not self.full_vocabulary
            and (options.mode, options.history, options.unanswered) == ("chat", "whole", "keep")
            and self.mask_type.turns == "all"
            and all((a in kinds) == (b in kinds) for a, b in alike)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The pieces of e examples of k conversations, BOS and separators not among them.

    counts: int64[e]. owner: int64[e], the conversation of each example, rising. tokens: int32[p], a special token's id
    or TEXT. trained: uint8[p], 0, 1 or MIXED. texts: one for each TEXT, in order; marked: bool[texts], False where one
    surely spells no added token. parts: for each MIXED piece (by piece index) the bytes and the flag of each of its
    segments. ends_in_eos: bool[e]. status: uint8[k], 0 or 1 + index into REASONS. notes:
    uint16[k], NOTE_BIT sums. rejections: by conversation.
    """

    counts: npt.NDArray[np.int64]
    owner: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    trained: npt.NDArray[np.uint8]
    texts: list[str]
    marked: npt.NDArray[np.bool_]
    parts: dict[int, Parts]
    ends_in_eos: npt.NDArray[np.bool_]
    status: npt.NDArray[np.uint8]
    notes: npt.NDArray[np.uint16]
    rejections: dict[int, Rejection] = field(default_factory=dict)


def make_pieces(batch: ConversationBatch, how: How, excluded: npt.NDArray[np.bool_] | None = None) -> Pieces:
    """Pieces of a batch. Conversations with excluded[i] are rejected before they are looked at."""
    first = np.cumsum(batch.counts) - batch.counts
    plain = _is_plain(batch, first) if how.plain_allowed else np.zeros(len(batch), bool)
    if excluded is not None:
        plain &= ~excluded
    if plain.all():
        return _plain_pieces(batch.roles, batch.counts, batch.texts, batch.marked, how.mask_type)
    others: dict[int, list[_Example] | Rejection] = {}
    notes = np.zeros(len(batch), np.uint16)
    for i in np.flatnonzero(~plain).tolist():
        if excluded is not None and excluded[i]:
            others[i] = Rejection(reason=Reason.SOURCE_EXCLUDED, message=None, detail="its source is left out")
        else:
            others[i], notes[i] = _general(_record(batch, int(first[i]), int(batch.counts[i])), how)
    return _merged(batch, plain, others, notes, how.mask_type)


def _is_plain(batch: ConversationBatch, first: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    if not len(batch):
        return np.zeros(0, bool)
    roles = np.where(batch.roles == RAW, _START, batch.roles).astype(np.intp)
    before = np.empty_like(roles)
    before[1:] = roles[:-1]
    before[first] = _START
    return np.logical_and.reduceat(_PLAIN_NEXT[before, roles], first)


def _plain_pieces(
    roles: npt.NDArray[np.uint8],
    counts: npt.NDArray[np.int64],
    texts: list[str],
    marked: npt.NDArray[np.bool_],
    mask_type: policy.MaskType,
) -> Pieces:
    """system: text. user: <｜User｜> text <｜Assistant｜> </think>. assistant: text EOS."""
    kind = SegmentKind
    width = np.array([1, 4, 2], np.int64)[roles]
    ends = np.cumsum(width)
    start = ends - width
    total = int(ends[-1]) if len(ends) else 0
    tokens = np.full(total, TEXT, np.int32)
    trained = np.zeros(total, np.uint8)
    user, assistant = start[roles == USER], start[roles == ASSISTANT]
    tokens[user], tokens[user + 2], tokens[user + 3] = deepseek_v4.USER, deepseek_v4.ASSISTANT, deepseek_v4.THINK_END
    tokens[assistant + 1] = deepseek_v4.EOS
    for segment_kind, where in (
        (kind.SYSTEM, start[roles == SYSTEM]),
        (kind.USER_HEADER, user),
        (kind.USER, user + 1),
        (kind.ASSISTANT_HEADER, user + 2),
        (kind.HEADER_MARK, user + 3),
        (kind.CONTENT, assistant),
        (kind.EOS, assistant + 1),
    ):
        trained[where] = segment_kind in mask_type.kinds
    message_ends = np.cumsum(counts)
    message_starts = message_ends - counts
    last = roles[message_ends - 1]
    has_assistant = np.logical_or.reduceat(roles == ASSISTANT, message_starts) if len(counts) else np.zeros(0, bool)
    notes = np.where(last != ASSISTANT, NOTE_BIT[Note.ENDS_WITHOUT_ASSISTANT], 0)
    notes |= np.where(has_assistant, 0, NOTE_BIT[Note.NO_ASSISTANT])
    empty = np.fromiter((not text for text in texts), bool, count=len(texts))
    if empty.any():
        notes |= np.where(np.logical_or.reduceat(empty, message_starts), NOTE_BIT[Note.CONTENT_EMPTY], 0)
    return Pieces(
        counts=np.add.reduceat(width, message_starts) if len(counts) else np.zeros(0, np.int64),
        owner=np.arange(len(counts)),
        tokens=tokens,
        trained=trained,
        texts=texts,
        marked=marked,
        parts={},
        ends_in_eos=last == ASSISTANT,
        status=np.zeros(len(counts), np.uint8),
        notes=notes.astype(np.uint16),
    )


def _record(batch: ConversationBatch, start: int, count: int) -> dict[str, object]:
    """The record of one conversation, as it was spooled."""
    if batch.roles[start] == RAW:
        record: dict[str, object] = json.loads(batch.texts[start])
        return record
    roles = batch.roles[start : start + count].tolist()
    texts = batch.texts[start : start + count]
    return {"messages": [{"role": _ROLE_NAMES[r], "content": t} for r, t in zip(roles, texts, strict=True)]}


@dataclass(frozen=True, slots=True)
class _Example:
    tokens: list[int]
    trained: list[int]
    texts: list[str]
    parts: dict[int, Parts]
    ends_in_eos: bool


def _general(record: dict[str, object], how: How) -> tuple[list[_Example] | Rejection, int]:
    """(the examples of one record, its notes), or why it is rejected."""
    parsed = parse(record, lenient=how.lenient)
    if isinstance(parsed, Rejection):
        return parsed, 0
    rendered = deepseek_v4.examples(parsed, how.options)
    if isinstance(rendered, Rejection):
        return rendered, 0
    examples, notes = rendered
    made = []
    for example in examples:
        flags = policy.trained(example.segments, how.mask_type, silenced=parsed.silenced, only=example.only)
        made.append(_example(example.segments[1:], flags[1:], how.full_vocabulary))
    return made, sum(NOTE_BIT[note] for note in notes)


def _example(segments: list[Segment], flags: list[bool], full_vocabulary: bool) -> _Example:
    if full_vocabulary:
        # The whole text goes through the tokenizer with its added tokens, special or typed alike.
        texts = [(deepseek_v4.text_of([segment]), flag) for segment, flag in zip(segments, flags, strict=True)]
        ends_in_eos = "".join(text for text, _ in texts).endswith(deepseek_v4.TOKEN_TEXT[deepseek_v4.EOS])
        return _Example(*_run_pieces(texts), ends_in_eos)
    pieces = segment_pieces(segments, flags)
    return _Example(*pieces, pieces[0][-1:] == [deepseek_v4.EOS])


def _run_pieces(run: list[tuple[str, bool]]) -> tuple[list[int], list[int], list[str], dict[int, Parts]]:
    """(tokens, trained, texts, parts) of neighbouring texts, which are one run; nothing where there is no text."""
    flags = {flag for text, flag in run if text}
    if not flags:
        return [], [], [], {}
    parts = {0: [(len(text.encode("utf-8")), flag) for text, flag in run]} if len(flags) > 1 else {}
    trained = MIXED if parts else int(flags.pop())
    return [TEXT], [trained], ["".join(text for text, _ in run)], parts


def segment_pieces(
    segments: list[Segment], flags: list[bool]
) -> tuple[list[int], list[int], list[str], dict[int, Parts]]:
    """(tokens, trained, texts, parts) of segments. A run without any text gives no piece."""
    tokens: list[int] = []
    trained: list[int] = []
    texts: list[str] = []
    parts: dict[int, Parts] = {}
    for run, special in _runs(segments, flags):
        run_tokens, run_trained, run_texts, run_parts = _run_pieces(run)
        parts.update({len(tokens) + piece: value for piece, value in run_parts.items()})
        tokens += run_tokens
        trained += run_trained
        texts += run_texts
        if special is not None:
            tokens.append(special[0])
            trained.append(int(special[1]))
    return tokens, trained, texts, parts


def _runs(
    segments: list[Segment], flags: list[bool]
) -> Iterator[tuple[list[tuple[str, bool]], tuple[int, bool] | None]]:
    """(texts up to a special token, that token and its flag); the last has none."""
    run: list[tuple[str, bool]] = []
    for segment, flag in zip(segments, flags, strict=True):
        if segment.token_id is None:
            run.append((segment.text, flag))
        else:
            yield run, (segment.token_id, flag)
            run = []
    yield run, None


def _woven_texts(
    batch: ConversationBatch, others: dict[int, list[_Example] | Rejection]
) -> tuple[list[str], list[str]]:
    """(the texts of the plain conversations, the texts of all) in order, copied in stretches between the others."""
    message_ends = np.cumsum(batch.counts)
    plain_texts: list[str] = []
    texts: list[str] = []
    start = 0
    for i in sorted(others):
        end = int(message_ends[i])
        stretch = batch.texts[start : end - int(batch.counts[i])]
        plain_texts += stretch
        texts += stretch
        other = others[i]
        if not isinstance(other, Rejection):
            texts += chain.from_iterable(example.texts for example in other)
        start = end
    return plain_texts + batch.texts[start:], texts + batch.texts[start:]


def _merged(
    batch: ConversationBatch,
    plain: npt.NDArray[np.bool_],
    others: dict[int, list[_Example] | Rejection],
    notes: npt.NDArray[np.uint16],
    mask_type: policy.MaskType,
) -> Pieces:
    """Plain conversations and all others, in the order of the batch."""
    message_plain = np.repeat(plain, batch.counts)
    plain_texts, texts = _woven_texts(batch, others)
    columns = _plain_pieces(
        batch.roles[message_plain], batch.counts[plain], plain_texts, batch.marked[message_plain], mask_type
    )
    rejections = {i: other for i, other in others.items() if isinstance(other, Rejection)}
    status = np.zeros(len(batch), np.uint8)
    for i, rejection in rejections.items():
        status[i] = 1 + REASONS.index(rejection.reason)
    notes[plain] = columns.notes

    made = {i: other for i, other in others.items() if not isinstance(other, Rejection)}
    examples = [example for i in sorted(made) for example in made[i]]
    num_examples = plain.astype(np.int64)
    num_examples[list(made)] = [len(other) for other in made.values()]
    owner = np.repeat(np.arange(len(batch)), num_examples)
    is_plain = plain[owner]

    def placed(of_plain: npt.NDArray[np.int64], of_others: list[int]) -> npt.NDArray[np.int64]:
        values = np.zeros(len(owner), np.int64)
        values[is_plain], values[~is_plain] = of_plain, of_others
        return values

    counts = placed(columns.counts, [len(example.tokens) for example in examples])
    text_plain = np.repeat(is_plain, placed(batch.counts[plain], [len(example.texts) for example in examples]))
    marked = np.ones(len(texts), bool)
    marked[text_plain] = columns.marked
    ends_in_eos = placed(columns.ends_in_eos.astype(np.int64), [int(e.ends_in_eos) for e in examples]) > 0
    piece_plain = np.repeat(is_plain, counts)
    tokens, trained = np.empty(len(piece_plain), np.int32), np.empty(len(piece_plain), np.uint8)
    tokens[piece_plain], trained[piece_plain] = columns.tokens, columns.trained
    tokens[~piece_plain] = list(chain.from_iterable(example.tokens for example in examples))
    trained[~piece_plain] = list(chain.from_iterable(example.trained for example in examples))
    starts = (np.cumsum(counts) - counts)[~is_plain].tolist()
    parts = {
        start + piece: value
        for start, example in zip(starts, examples, strict=True)
        for piece, value in example.parts.items()
    }
    return Pieces(
        counts=counts,
        owner=owner,
        tokens=tokens,
        trained=trained,
        texts=texts,
        marked=marked,
        parts=parts,
        ends_in_eos=ends_in_eos,
        status=status,
        notes=notes,
        rejections=rejections,
    )
