"""Conversations -> token ids and loss mask, a batch at a time. The mask is placed with the tokens, never searched for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from databuild.gate import engines_differ
from databuild.pieces import NOTE_BIT, REASONS, TEXT, Pieces, make_pieces
from databuild.sources.base import ConversationBatch
from databuild.tokenizer import Engine, FastEngine, PinnedTokenizer
from masks import deepseek_v4
from masks.conversation import Note, Reason, Rejection
from masks.policy import MaskType

#: Every conversation whose source row is a multiple of this is encoded once more by the reference engine, and
#: so are the first ones of a build.
RECHECK_EVERY = 512
RECHECK_FIRST = 64

# Every added token's text holds one of these, so text without them spells none (a test holds this to the vocabulary).
_SPECIAL_MARKS = ("｜", "<|", "think>", "dsml:")


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatch:
    """k conversations as tokens, n in all, in reading order.

    ids: int32[n]. loss_mask: uint8[n], token-aligned. ends: int64[k], where each conversation (with its separator) ends
    in ids; a rejected one adds nothing. status: uint8[k], 0 for used, else 1 + index into pieces.REASONS. notes:
    uint16[k], sums of pieces.NOTE_BIT. num_targets: int64[k]. rejections: by position in the batch.
    """

    rows: npt.NDArray[np.int64]
    ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    status: npt.NDArray[np.uint8]
    notes: npt.NDArray[np.uint16]
    num_targets: npt.NDArray[np.int64]
    rejections: dict[int, Rejection]


class Encoder:
    """Encodes batches of one stream, in order: it remembers whether the stream has begun (`--bos first`)."""

    def __init__(
        self,
        tokenizer: PinnedTokenizer,
        fast: FastEngine | None,
        *,
        mask_type: MaskType,
        row_tokens: int,
        separator: str = "ensure",
        bos: str = "keep",
        plain_way: bool = True,
        lenient: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._fast = fast
        self._engine: Engine = fast if fast is not None else tokenizer.reference
        self._mask_type = mask_type
        self._row_tokens = row_tokens
        self._separator = separator
        self._bos = bos
        self._plain_way = plain_way
        self._lenient = lenient
        self._stream_begun = False
        self._num_read = 0
        self.num_rechecked = 0

    @property
    def engine_name(self) -> str:
        """The engine that made the ids."""
        return self._engine.name

    def encode(self, batch: ConversationBatch, excluded: npt.NDArray[np.bool_] | None = None) -> EncodedBatch:
        """Encode a batch. Conversations with excluded[i] are rejected before they are looked at."""
        pieces = make_pieces(batch, self._mask_type, plain_way=self._plain_way, lenient=self._lenient)
        if excluded is not None and excluded.any():
            pieces = _without(pieces, excluded)
        return self._assembled(batch, pieces)

    def _assembled(self, batch: ConversationBatch, body: Pieces) -> EncodedBatch:
        used = body.status == 0
        has_bos = self._has_bos(used)
        has_separator = self._has_separator(body, used)
        counts = body.counts + has_bos + has_separator
        ends = np.cumsum(counts)
        starts = ends - counts
        place = np.ones(int(counts.sum()), bool)  # where the body's pieces go
        place[starts[has_bos]] = False
        place[ends[has_separator] - 1] = False
        tokens = np.empty(len(place), np.int32)
        tokens[starts[has_bos]] = deepseek_v4.BOS
        tokens[ends[has_separator] - 1] = deepseek_v4.EOS
        tokens[place] = body.tokens
        trained = np.zeros(len(place), np.uint8)
        trained[place] = body.trained

        text_ids, text_offsets = self._engine.encode(body.texts)
        text_lengths = np.diff(text_offsets)
        is_text = tokens == TEXT
        lengths = np.ones(len(tokens), np.int64)
        lengths[is_text] = text_lengths
        token_ends = np.cumsum(lengths)
        total = int(token_ends[-1]) if len(token_ends) else 0

        special_at = token_ends[~is_text] - 1
        ids = np.empty(total, np.int32)
        text_place = np.ones(total, bool)
        text_place[special_at] = False
        ids[special_at] = tokens[~is_text]
        ids[text_place] = text_ids
        loss_mask = np.repeat(trained, lengths)
        targets = trained * lengths
        if body.parts:
            body_index = np.flatnonzero(place)
            for piece, parts in body.parts.items():
                at = int(body_index[piece])
                span = slice(int(token_ends[at] - lengths[at]), int(token_ends[at]))
                loss_mask[span] = self._partly_trained(ids[span], parts)
                targets[at] = int(loss_mask[span].sum())

        conversation_ends = np.append(0, token_ends)[ends]
        num_tokens = np.diff(conversation_ends, prepend=0)
        notes = body.notes | self._text_notes(body, used)
        # A conversation's own length: its separator does not count, a BOS that the stream leaves out does.
        own = num_tokens - has_separator + (used & ~has_bos)
        notes |= np.where(own > self._row_tokens, NOTE_BIT[Note.LONGER_THAN_ROW], 0).astype(np.uint16)
        self._recheck(batch, body, text_ids, text_offsets)
        self._num_read += len(batch)
        self._stream_begun |= bool(used.any())
        target_sums = np.append(0, np.cumsum(targets))
        return EncodedBatch(
            rows=batch.rows,
            ids=ids,
            loss_mask=loss_mask,
            ends=conversation_ends,
            status=body.status,
            notes=notes,
            num_targets=target_sums[ends] - target_sums[starts],
            rejections=body.rejections,
        )

    def _has_bos(self, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        if self._bos == "keep":
            return used.copy()
        has_bos = np.zeros(len(used), bool)
        if self._bos == "first" and not self._stream_begun:
            has_bos[np.flatnonzero(used)[:1]] = True
        return has_bos

    def _has_separator(self, body: Pieces, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The separator ends its conversation, the last one's too: what a stream holds never depends on what follows."""
        if self._separator == "none":
            return np.zeros(len(used), bool)
        return used.copy() if self._separator == "always" else used & ~body.ends_in_eos

    def _partly_trained(self, ids: npt.NDArray[np.int32], parts: list[tuple[int, bool]]) -> npt.NDArray[np.bool_]:
        """Which tokens of a run lie wholly inside its trained bytes; one that straddles a boundary does not."""
        sizes = np.array([size for size, _ in parts], np.int64)
        bounds = np.append(0, np.cumsum(sizes))
        trained_before = np.append(0, np.cumsum(sizes * np.array([flag for _, flag in parts])))
        token_ends = np.cumsum(self._tokenizer.token_bytes[ids], dtype=np.int64)
        assert len(ids) == 0 or token_ends[-1] == bounds[-1], "the tokens of a run must cover its bytes"
        edges = np.append(0, token_ends)
        # Between two bounds the count of trained bytes is a straight line, so interpolation is exact here.
        before = np.interp(edges, bounds, trained_before)
        inside: npt.NDArray[np.bool_] = np.diff(before) == np.diff(edges)
        return inside

    def _text_notes(self, body: Pieces, used: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint16]:
        notes = np.zeros(len(used), np.uint16)
        joined = "\n".join(body.texts)
        if not any(mark in joined for mark in _SPECIAL_MARKS):
            return notes
        owner = np.repeat(np.arange(len(used)), body.counts)[body.tokens == TEXT]
        spelled = self._tokenizer.added_tokens
        for i, text in enumerate(body.texts):
            if any(mark in text for mark in _SPECIAL_MARKS) and any(token in text for token in spelled):
                notes[owner[i]] |= NOTE_BIT[Note.SPECIAL_TEXT]
        return notes

    def _recheck(
        self,
        batch: ConversationBatch,
        body: Pieces,
        text_ids: npt.NDArray[np.int32],
        text_offsets: npt.NDArray[np.int64],
    ) -> None:
        """Encode a fixed share of the conversations with the reference as well; any difference stops the build."""
        if self._fast is None:
            return
        position = np.arange(self._num_read, self._num_read + len(batch))
        chosen = ((batch.rows % RECHECK_EVERY == 0) | (position < RECHECK_FIRST)) & (body.status == 0)
        owner = np.repeat(np.arange(len(batch)), body.counts)[body.tokens == TEXT]
        which = np.flatnonzero(chosen[owner]).tolist()
        expected_ids, expected_offsets = self._tokenizer.reference.encode([body.texts[i] for i in which])
        for j, i in enumerate(which):
            found = text_ids[text_offsets[i] : text_offsets[i + 1]]
            expected = expected_ids[expected_offsets[j] : expected_offsets[j + 1]]
            if not np.array_equal(found, expected):
                where = f"source row {batch.rows[owner[i]]}, text {body.texts[i][:40]!a}"
                raise engines_differ(self._fast, self._tokenizer.reference, where, expected.tolist(), found.tolist())
        self.num_rechecked += int(chosen.sum())


def _without(pieces: Pieces, excluded: npt.NDArray[np.bool_]) -> Pieces:
    """Pieces without those of the excluded conversations, which are rejected as source_excluded."""
    owner = np.repeat(np.arange(len(excluded)), pieces.counts)
    keep = ~excluded[owner]
    text_keep = keep[pieces.tokens == TEXT]
    new_index = np.cumsum(keep) - 1
    return Pieces(
        counts=np.where(excluded, 0, pieces.counts),
        tokens=pieces.tokens[keep],
        trained=pieces.trained[keep],
        texts=[text for text, kept in zip(pieces.texts, text_keep.tolist(), strict=True) if kept],
        parts={int(new_index[i]): parts for i, parts in pieces.parts.items() if keep[i]},
        status=np.where(excluded, 1 + REASONS.index(Reason.SOURCE_EXCLUDED), pieces.status).astype(np.uint8),
        notes=np.where(excluded, 0, pieces.notes).astype(np.uint16),
        ends_in_eos=pieces.ends_in_eos,
        rejections={i: r for i, r in pieces.rejections.items() if not excluded[i]},
    )
