"""Stored rows, decoded and encoded again: the second look of `verify --level 3`. Needs no source.

What lies between two special tokens of a row is decoded and must encode to the same ids with the reference engine. The
mask is read back from the tokens, independently of how it was made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.errors import IntegrityError
from databuild.pack import Rows
from databuild.rows import damaged
from databuild.tokenizer import PinnedTokenizer
from masks import deepseek_v4 as v4
from masks.conversation import Note

MAX_SAMPLED_ROWS = 64

# Tokens that end one part of a conversation and begin another; of these a task token may stand before an answer, too.
_OPENERS = [v4.BOS, v4.EOS, v4.USER, v4.ASSISTANT, v4.REMINDER, *v4.TASKS.values()]
_ANSWER_OPENERS = {v4.ASSISTANT, *v4.TASKS.values()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exceptions:
    """What answers may be, by the counts of their build: not trained at all, or without their EOS."""

    be_silenced: bool
    leave_eos_out: bool


def sampled(num_rows: int) -> list[int]:
    """Rows to look at: all of a small build, else MAX_SAMPLED_ROWS spread evenly, the first and the last among them."""
    if num_rows <= MAX_SAMPLED_ROWS:
        return list(range(num_rows))
    return [int(row) for row in np.linspace(0, num_rows - 1, MAX_SAMPLED_ROWS)]


def check_rows(
    rows: Rows,
    chosen: list[int],
    first_row: int,
    spec: dict[str, Any],
    tokenizer: PinnedTokenizer,
    noted: Mapping[str, int],
) -> tuple[int, int]:
    """(conversations, tokens) that were checked; IntegrityError names the row and the token of the first that differs.

    noted: the notes of the build's counts.
    """
    may = Exceptions(
        be_silenced=Note.MESSAGE_SILENCED in noted or spec["history"] == "split_turns",
        leave_eos_out=Note.EOS_LEFT_OUT in noted,
    )
    documents = tokens = 0
    for i in chosen:
        starts = rows.doc_starts[rows.doc_offsets[i] : rows.doc_offsets[i + 1]].tolist()
        doc_rows = rows.doc_rows[rows.doc_offsets[i] : rows.doc_offsets[i + 1]].tolist()
        for start, end, doc_row in zip(starts, [*starts[1:], spec["row_tokens"]], doc_rows, strict=True):
            where = f"row {first_row + i}, source row {doc_row}"
            ids, mask = rows.input_ids[i, start:end], rows.loss_mask[i, start:end]
            _check_document(ids, mask, start, spec, tokenizer, may, where, cut_off=end == spec["row_tokens"])
            documents, tokens = documents + 1, tokens + end - start
    return documents, tokens


def _check_document(
    ids: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint8],
    offset: int,
    spec: dict[str, Any],
    tokenizer: PinnedTokenizer,
    may: Exceptions,
    where: str,
    *,
    cut_off: bool,
) -> None:
    special = np.isin(ids, list(tokenizer.added_tokens.values()))
    bounds = np.flatnonzero(special)
    begins, ends = np.append(-1, bounds) + 1, np.append(bounds, len(ids))
    texts, spans = [], []
    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        # A run that the row's edge may have cut in two cannot be encoded alone: a token may begin before it.
        if begin < end and not (begin == 0 and offset == 0) and not (cut_off and end == len(ids)):
            texts.append(tokenizer.reference.decode(ids[begin:end].tolist()))
            spans.append((begin, end))
    again, again_offsets = tokenizer.reference.encode(texts)
    for j, (begin, end) in enumerate(spans):
        expected, found = again[again_offsets[j] : again_offsets[j + 1]], ids[begin:end]
        if not np.array_equal(expected, found):
            raise damaged(
                "stored tokens are not what their text encodes to",
                f"{where}, tokens {offset + begin} to {offset + end - 1}: {texts[j][:40]!a}",
                str(expected.tolist()[:8]),
                str(found.tolist()[:8]),
            )
    # Under full_vocab the text itself may spell any of the tokens that tell what is an answer.
    if spec["loss_mask_type"] == "deepseek_v4" and spec["tokens"] == "literal":
        _check_mask(ids, mask, offset, spec, may, where)


def _check_mask(
    ids: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint8],
    offset: int,
    spec: dict[str, Any],
    may: Exceptions,
    where: str,
) -> None:
    """What the tokens say of the mask.

    After `<｜Assistant｜>` and its mark, or after a task token, stands an answer: it is trained to its EOS. All other text
    is no answer, but where EOS ends it, it may end in one that has no header: so there the mask never falls, and
    without EOS it never rises.
    """
    openers = np.flatnonzero(np.isin(ids, _OPENERS))
    # A part that begins inside a document has no opener; what it begins with may be anything.
    for begin, end in zip([-1, *openers.tolist()], [*openers.tolist(), len(ids)], strict=True):
        opener = int(ids[begin]) if begin >= 0 else None
        if opener is not None and opener != v4.EOS and mask[begin]:
            raise _wrong_mask(mask, begin, offset, where)
        if opener == v4.BOS and begin > 0:
            raise _wrong_start(f"{where}, token {offset + begin}", "no BOS inside a conversation", "one more BOS")
        begin += 1
        if opener == v4.ASSISTANT and begin < end:
            if mask[begin]:
                raise _wrong_mask(mask, begin, offset, where)
            begin += 1
        if may.leave_eos_out or begin >= end:
            continue  # an empty answer with its EOS and an open header with a separator are the same tokens
        closed = end < len(ids)
        run = mask[begin : end + (closed and ids[end] == v4.EOS)]
        if opener in _ANSWER_OPENERS:
            wrong = run != 1
            if may.be_silenced and not run.any():
                continue
        elif closed and ids[end] != v4.EOS:
            wrong = run != 0
        else:
            wrong = np.append(False, run[1:] < run[:-1])
        if wrong.any():
            raise _wrong_mask(mask, begin + int(np.flatnonzero(wrong)[0]), offset, where)
    if spec["bos"] == "keep" and offset and ids[0] != v4.BOS:
        raise _wrong_start(f"{where}, token {offset}", "BOS at the start of each conversation", f"token {ids[0]}")


def _wrong_mask(mask: npt.NDArray[np.uint8], token: int, offset: int, where: str) -> IntegrityError:
    return damaged(
        "a stored mask is not what the conversation says",
        f"{where}, token {offset + token}",
        f"loss_mask {1 - int(mask[token])}",
        f"loss_mask {int(mask[token])}",
    )


def _wrong_start(where: str, expected: str, found: str) -> IntegrityError:
    return damaged("a conversation does not begin as it should", where, expected, found)
