"""Conversations -> token ids and loss mask, a batch at a time. The mask is placed with the tokens, never searched for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from databuild.errors import IntegrityError, UsageError
from databuild.gate import engines_differ
from databuild.pieces import NOTE_BIT, TEXT, How, Parts, Pieces, make_pieces
from databuild.sources.base import ConversationBatch
from databuild.tokenizer import Engine, FastEngine, PinnedTokenizer
from masks import deepseek_v4
from masks.conversation import Note, Rejection
from masks.fixed_texts import FixedTextsError
from masks.segments import SegmentKind

#: Every conversation whose source row is a multiple of this is encoded once more by the reference engine, and
#: so are the first ones of a build.
RECHECK_EVERY = 1024
RECHECK_FIRST = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedBatch:
    """k conversations as e examples of n tokens in all, in reading order.

    ids: int32[n]. loss_mask: uint8[n], token-aligned. doc_ends: int64[e], where each example (with its separator) ends
    in ids; doc_rows: int64[e], its source row. ends: int64[k], where each conversation ends; a rejected one adds
    nothing. status: uint8[k], 0 for used, else 1 + index into pieces.REASONS. notes: uint16[k], sums of
    pieces.NOTE_BIT. num_targets: int64[k]. rejections: by position in the batch.
    """

    ids: npt.NDArray[np.int32]
    loss_mask: npt.NDArray[np.uint8]
    doc_ends: npt.NDArray[np.int64]
    doc_rows: npt.NDArray[np.int64]
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
        how: How,
        *,
        row_tokens: int,
        separator: str = "ensure",
        bos: str = "keep",
    ) -> None:
        self._tokenizer = tokenizer
        self._fast = fast
        self._reference = tokenizer.full_vocabulary if how.full_vocabulary else tokenizer.reference
        self._engine: Engine = fast if fast is not None else self._reference
        self._how = how
        self._row_tokens = row_tokens
        self._separator = separator
        self._bos = bos
        self._stream_begun = False
        self._num_read = 0
        self.num_rechecked = 0
        self.num_encoded = 0  # by this object, whatever was restored

    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        """What `restore` needs to go on from here."""
        return {"numbers": np.array([self._stream_begun, self._num_read, self.num_rechecked], np.int64)}

    def restore(self, state: dict[str, npt.NDArray[np.int64]]) -> None:
        """Go on from a state."""
        begun, self._num_read, self.num_rechecked = state["numbers"].tolist()
        self._stream_begun = bool(begun)

    @property
    def engine_name(self) -> str:
        """The engine that made the ids."""
        return self._engine.name

    def encode(self, batch: ConversationBatch, excluded: npt.NDArray[np.bool_] | None = None) -> EncodedBatch:
        """Encode a batch. Conversations with excluded[i] are rejected before they are looked at."""
        try:
            body = make_pieces(batch, self._how, excluded)
        except FixedTextsError as error:
            raise fixed_texts_error(error) from error
        has_bos, has_separator = self._has_bos(len(body.counts)), self._has_separator(body)
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
        trained[starts[has_bos]] = SegmentKind.BOS in self._how.mask_type.kinds
        trained[place] = body.trained

        text_ids, text_offsets = self._engine.encode(body.texts)
        is_text = tokens == TEXT
        lengths = np.ones(len(tokens), np.int64)
        lengths[is_text] = np.diff(text_offsets)
        token_ends = np.cumsum(lengths)
        ids = _placed(tokens, is_text, token_ends, text_ids)
        loss_mask = np.repeat(trained, lengths)
        targets = trained * lengths
        if body.parts:
            self._train_parts(body, np.flatnonzero(place), token_ends, lengths, ids, loss_mask, targets)

        zero_token_ends, target_sums = np.append(0, token_ends), np.append(0, np.cumsum(targets))
        examples = np.bincount(body.owner, minlength=len(batch))
        last = np.append(0, ends)[np.cumsum(examples)]  # pieces up to the end of each conversation
        notes = body.notes | self._text_notes(body)
        # An example's own length: its separator does not count, a BOS that the stream leaves out does.
        own = np.diff(zero_token_ends[ends], prepend=0) - has_separator + ~has_bos
        notes[body.owner[own > self._row_tokens]] |= NOTE_BIT[Note.LONGER_THAN_ROW]
        self._recheck(batch, body, text_ids, text_offsets)
        self._num_read += len(batch)
        self.num_encoded += len(batch)
        self._stream_begun |= len(body.counts) > 0
        return EncodedBatch(
            ids=ids,
            loss_mask=loss_mask,
            doc_ends=zero_token_ends[ends],
            doc_rows=batch.rows[body.owner],
            ends=zero_token_ends[last],
            status=body.status,
            notes=notes,
            num_targets=np.diff(target_sums[last], prepend=0),
            rejections=body.rejections,
        )

    def _has_bos(self, num_examples: int) -> npt.NDArray[np.bool_]:
        has_bos = np.full(num_examples, self._bos == "keep")
        if self._bos == "first" and not self._stream_begun:
            has_bos[:1] = True
        return has_bos

    def _has_separator(self, body: Pieces) -> npt.NDArray[np.bool_]:
        """A separator ends its example, the last one's too: what a stream holds never depends on what follows."""
        if self._separator == "none":
            return np.zeros(len(body.counts), bool)
        return np.ones(len(body.counts), bool) if self._separator == "always" else ~body.ends_in_eos

    def _train_parts(
        self,
        body: Pieces,
        body_index: npt.NDArray[np.intp],
        token_ends: npt.NDArray[np.int64],
        lengths: npt.NDArray[np.int64],
        ids: npt.NDArray[np.int32],
        loss_mask: npt.NDArray[np.uint8],
        targets: npt.NDArray[np.int64],
    ) -> None:
        """Decide the tokens of the runs that are trained in part."""
        for piece, parts in body.parts.items():
            at = int(body_index[piece])
            span = slice(int(token_ends[at] - lengths[at]), int(token_ends[at]))
            loss_mask[span] = self._partly_trained(ids[span], parts)
            targets[at] = int(loss_mask[span].sum())

    def _partly_trained(self, ids: npt.NDArray[np.int32], parts: Parts) -> npt.NDArray[np.bool_]:
        """Which tokens of a run lie wholly inside its trained bytes; one that straddles a boundary does not."""
        sizes = np.array([size for size, _ in parts], np.int64)
        bounds = np.append(0, np.cumsum(sizes))
        trained_before = np.append(0, np.cumsum(sizes * np.array([flag for _, flag in parts])))
        edges = np.append(0, np.cumsum(self._tokenizer.token_bytes[ids], dtype=np.int64))
        assert edges[-1] == bounds[-1], "the tokens of a run must cover its bytes"
        # Between two bounds the count of trained bytes is a straight line, so interpolation is exact here.
        before = np.interp(edges, bounds, trained_before)
        inside: npt.NDArray[np.bool_] = np.diff(before) == np.diff(edges)
        return inside

    def _text_notes(self, body: Pieces) -> npt.NDArray[np.uint16]:
        notes = np.zeros(len(body.status), np.uint16)
        if self._how.full_vocabulary or not body.marked.any():
            return notes
        owner = body.owner[_owners(body)]
        families = self._tokenizer.added_token_families
        for i in np.flatnonzero(body.marked).tolist():
            text = body.texts[i]
            if any(mark in text and any(token in text for token in tokens) for mark, tokens in families):
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
        owner = body.owner[_owners(body)]
        which = np.flatnonzero(chosen[owner]).tolist()
        expected_ids, expected_offsets = self._reference.encode([body.texts[i] for i in which])
        for j, i in enumerate(which):
            found = text_ids[text_offsets[i] : text_offsets[i + 1]]
            expected = expected_ids[expected_offsets[j] : expected_offsets[j + 1]]
            if not np.array_equal(found, expected):
                where = f"source row {batch.rows[owner[i]]}, text {body.texts[i][:40]!a}"
                raise engines_differ(self._fast, self._reference, where, expected.tolist(), found.tolist())
        self.num_rechecked += int(chosen.sum())


def _placed(
    tokens: npt.NDArray[np.int32],
    is_text: npt.NDArray[np.bool_],
    token_ends: npt.NDArray[np.int64],
    text_ids: npt.NDArray[np.int32],
) -> npt.NDArray[np.int32]:
    """The ids of all pieces: each special token at its place, the ids of the texts in order everywhere else."""
    ids = np.empty(int(token_ends[-1]) if len(token_ends) else 0, np.int32)
    special_at = token_ends[~is_text] - 1
    text_place = np.ones(len(ids), bool)
    text_place[special_at] = False
    ids[special_at] = tokens[~is_text]
    ids[text_place] = text_ids
    return ids


def _owners(body: Pieces) -> npt.NDArray[np.int64]:
    """int64[texts]: the example of each text."""
    owners: npt.NDArray[np.int64] = np.repeat(np.arange(len(body.counts)), body.counts)[body.tokens == TEXT]
    return owners


def fixed_texts_error(error: FixedTextsError) -> UsageError | IntegrityError:
    """The error for a user whose conversations need the official texts, which are missing or other ones."""
    if error.found is None:
        return UsageError(
            "tools and the max reasoning effort need the official texts of the V4 format",
            expected="the package deepseek-recipe",
            next_step="pip install deepseek-recipe==0.2.0 (the extra `tools`)",
        )
    return IntegrityError(
        str(error), expected=error.expected, found=error.found, next_step="pip install deepseek-recipe==0.2.0"
    )
