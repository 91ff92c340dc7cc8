"""Conversations -> pieces: one array entry for each special token and each run of text, for a whole batch.

A run is everything between two special tokens of one conversation and is tokenized as one. Two ways lead here and must
give the same: the plain one, by columns, for turns that alternate as usual; and the general one, through
`masks.deepseek_v4`, which defines the format.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from databuild.sources.base import ASSISTANT, RAW, ROLE_CODES, SYSTEM, USER, ConversationBatch
from masks import conversation as conv
from masks import deepseek_v4, policy
from masks.conversation import Note, Reason, Rejection
from masks.segments import Segment, SegmentKind

#: Value of Pieces.tokens for a run of text, and of Pieces.trained for a run that is trained in part.
TEXT = -1
MIXED = 2

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
class Pieces:
    """The pieces of k conversations, BOS and separators not among them.

    counts: int64[k], 0 for a rejected one. tokens: int32[p], a special token's id or TEXT. trained: uint8[p], 0, 1 or
    MIXED. texts: one for each TEXT, in order. parts: for each MIXED piece (by piece index) the bytes and the flag of
    each of its segments. status: uint8[k], 0 or 1 + index into REASONS. notes: uint16[k], NOTE_BIT sums.
    ends_in_eos: bool[k]. rejections: by conversation.
    """

    counts: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int32]
    trained: npt.NDArray[np.uint8]
    texts: list[str]
    parts: dict[int, list[tuple[int, bool]]]
    status: npt.NDArray[np.uint8]
    notes: npt.NDArray[np.uint16]
    ends_in_eos: npt.NDArray[np.bool_]
    rejections: dict[int, Rejection] = field(default_factory=dict)


def make_pieces(
    batch: ConversationBatch, mask_type: policy.MaskType, *, plain_way: bool = True, lenient: bool = False
) -> Pieces:
    """Pieces of a batch. plain_way False sends everything the general way (the result is the same).

    lenient: see conversation.parse.
    """
    first = np.cumsum(batch.counts) - batch.counts
    plain = _is_plain(batch, first) if plain_way else np.zeros(len(batch), bool)
    if plain.all():
        return _plain_pieces(batch.roles, batch.counts, batch.texts, mask_type)
    general = {
        int(i): _general(_record(batch, int(first[i]), int(batch.counts[i])), mask_type, lenient)
        for i in np.flatnonzero(~plain)
    }
    return _merged(batch, plain, general, mask_type)


def _is_plain(batch: ConversationBatch, first: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    if not len(batch):
        return np.zeros(0, bool)
    roles = np.where(batch.roles == RAW, _START, batch.roles).astype(np.intp)
    before = np.empty_like(roles)
    before[1:] = roles[:-1]
    before[first] = _START
    return np.logical_and.reduceat(_PLAIN_NEXT[before, roles], first)


def _plain_pieces(
    roles: npt.NDArray[np.uint8], counts: npt.NDArray[np.int64], texts: list[str], mask_type: policy.MaskType
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
        tokens=tokens,
        trained=trained,
        texts=texts,
        parts={},
        status=np.zeros(len(counts), np.uint8),
        notes=notes.astype(np.uint16),
        ends_in_eos=last == ASSISTANT,
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
class _General:
    tokens: list[int]
    trained: list[int]
    texts: list[str]
    parts: dict[int, list[tuple[int, bool]]]
    notes: int


def _general(record: dict[str, object], mask_type: policy.MaskType, lenient: bool) -> _General | Rejection:
    parsed = conv.parse(record, lenient=lenient)
    if isinstance(parsed, Rejection):
        return parsed
    segments = deepseek_v4.render(parsed)
    pieces = segment_pieces(segments[1:], policy.trained(segments, mask_type)[1:])
    return _General(*pieces, sum(NOTE_BIT[note] for note in deepseek_v4.notes(parsed)))


def segment_pieces(
    segments: list[Segment], flags: list[bool]
) -> tuple[list[int], list[int], list[str], dict[int, list[tuple[int, bool]]]]:
    """(tokens, trained, texts, parts) of segments: neighbouring texts become one run."""
    tokens: list[int] = []
    trained: list[int] = []
    texts: list[str] = []
    parts: dict[int, list[tuple[int, bool]]] = {}
    run: list[tuple[str, bool]] = []

    def end_run() -> None:
        if not any(text for text, _ in run):
            run.clear()  # no token comes of it, and what stands before it is what stands at the end
            return
        flags_of_text = {flag for text, flag in run if text}
        if len(flags_of_text) > 1:
            parts[len(tokens)] = [(len(text.encode("utf-8")), flag) for text, flag in run]
        tokens.append(TEXT)
        trained.append(MIXED if len(flags_of_text) > 1 else int(True in flags_of_text))
        texts.append("".join(text for text, _ in run))
        run.clear()

    for segment, flag in zip(segments, flags, strict=True):
        if segment.token_id is None:
            run.append((segment.text, flag))
        else:
            end_run()
            tokens.append(segment.token_id)
            trained.append(int(flag))
    end_run()
    return tokens, trained, texts, parts


def _merged(
    batch: ConversationBatch,
    plain: npt.NDArray[np.bool_],
    general: dict[int, _General | Rejection],
    mask_type: policy.MaskType,
) -> Pieces:
    """Plain and general conversations, in the order of the batch."""
    k = len(batch)
    message_plain = np.repeat(plain, batch.counts)
    plain_texts = [batch.texts[i] for i in np.flatnonzero(message_plain).tolist()]
    columns = _plain_pieces(batch.roles[message_plain], batch.counts[plain], plain_texts, mask_type)
    used = {i: g for i, g in general.items() if isinstance(g, _General)}
    counts = np.zeros(k, np.int64)
    counts[plain] = columns.counts
    text_counts = np.zeros(k, np.int64)
    text_counts[plain] = batch.counts[plain]
    status, notes, ends_in_eos = np.zeros(k, np.uint8), np.zeros(k, np.uint16), np.zeros(k, bool)
    notes[plain], ends_in_eos[plain] = columns.notes, columns.ends_in_eos
    for i, g in general.items():
        if isinstance(g, Rejection):
            status[i] = 1 + REASONS.index(g.reason)
            continue
        counts[i], text_counts[i], notes[i] = len(g.tokens), len(g.texts), g.notes
        ends_in_eos[i] = g.tokens[-1:] == [deepseek_v4.EOS]
    starts = np.cumsum(counts) - counts
    text_starts = np.cumsum(text_counts) - text_counts
    tokens, trained = np.empty(int(counts.sum()), np.int32), np.empty(int(counts.sum()), np.uint8)
    texts = np.empty(int(text_counts.sum()), object)
    piece_plain, text_plain = np.repeat(plain, counts), np.repeat(plain, text_counts)
    tokens[piece_plain], trained[piece_plain] = columns.tokens, columns.trained
    texts[text_plain] = np.array([*plain_texts, None], object)[:-1]
    parts: dict[int, list[tuple[int, bool]]] = {}
    for i, g in used.items():
        at, text_at = int(starts[i]), int(text_starts[i])
        tokens[at : at + len(g.tokens)] = g.tokens
        trained[at : at + len(g.tokens)] = g.trained
        texts[text_at : text_at + len(g.texts)] = g.texts
        parts.update({at + piece: value for piece, value in g.parts.items()})
    return Pieces(
        counts=counts,
        tokens=tokens,
        trained=trained,
        texts=texts.tolist(),
        parts=parts,
        status=status,
        notes=notes,
        ends_in_eos=ends_in_eos,
        rejections={i: g for i, g in general.items() if isinstance(g, Rejection)},
    )
