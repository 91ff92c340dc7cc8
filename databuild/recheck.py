"""Stored rows, decoded and encoded again: the second look of `verify --level 3`. Needs no source.

What lies between two special tokens of a row is decoded and must encode to the same ids with the reference engine. The
mask is read back from the tokens, independently of how it was made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.pack import Rows
from databuild.rows import damaged
from databuild.tokenizer import PinnedTokenizer
from masks import deepseek_v4 as v4

MAX_SAMPLED_ROWS = 64


def sampled(num_rows: int) -> list[int]:
    """Rows to look at: all of a small build, else MAX_SAMPLED_ROWS spread evenly, the first and the last among them."""
    if num_rows <= MAX_SAMPLED_ROWS:
        return list(range(num_rows))
    return [int(row) for row in np.linspace(0, num_rows - 1, MAX_SAMPLED_ROWS)]


def check_rows(
    rows: Rows, chosen: list[int], first_row: int, spec: dict[str, Any], tokenizer: PinnedTokenizer
) -> tuple[int, int]:
    """(conversations, tokens) that were checked; IntegrityError names the row and the token of the first that differs."""
    documents = tokens = 0
    for i in chosen:
        starts = rows.doc_starts[rows.doc_offsets[i] : rows.doc_offsets[i + 1]].tolist()
        doc_rows = rows.doc_rows[rows.doc_offsets[i] : rows.doc_offsets[i + 1]].tolist()
        for start, end, doc_row in zip(starts, [*starts[1:], spec["row_tokens"]], doc_rows, strict=True):
            where = f"row {first_row + i}, source row {doc_row}"
            ids, mask = rows.input_ids[i, start:end], rows.loss_mask[i, start:end]
            _check_document(ids, mask, start, spec, tokenizer, where, cut_off=end == spec["row_tokens"])
            documents, tokens = documents + 1, tokens + end - start
    return documents, tokens


def _check_document(
    ids: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint8],
    offset: int,
    spec: dict[str, Any],
    tokenizer: PinnedTokenizer,
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
    if spec["loss_mask_type"] == "deepseek_v4":
        _check_mask(ids, mask, begins, ends, offset, where)


def _check_mask(
    ids: npt.NDArray[np.int32],
    mask: npt.NDArray[np.uint8],
    begins: npt.NDArray[np.intp],
    ends: npt.NDArray[np.intp],
    offset: int,
    where: str,
) -> None:
    """What the tokens say of the mask: a run of text is an answer, or it is not one, or it ends in one without a header.

    An answer begins after `<｜Assistant｜></think>`. Text that a header ends is no answer. Any other text may end in an
    answer without a header, if EOS ends it; so there the mask rises once and never falls.
    """

    def refuse(token: int) -> None:
        raise damaged(
            "a stored mask is not what the conversation says",
            f"{where}, token {offset + token}",
            f"loss_mask {1 - int(mask[token])}",
            f"loss_mask {int(mask[token])}",
        )

    for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
        if begin == end:
            continue  # an empty answer with its EOS and an open header with a separator are the same tokens
        run = mask[begin:end]
        next_token = int(ids[end]) if end < len(ids) else None
        if ids[max(begin - 2, 0) : begin].tolist() == [v4.ASSISTANT, v4.THINK_END]:
            wrong = np.flatnonzero(run == 0)
        elif next_token not in (None, v4.EOS):
            wrong = np.flatnonzero(run != 0)
        else:
            wrong = np.flatnonzero(np.diff(run.astype(np.int8)) < 0)
        if wrong.size:
            refuse(begin + int(wrong[0]))
        if next_token == v4.EOS and mask[end] < run[-1]:
            refuse(end)
    header = np.flatnonzero(np.isin(ids, [v4.BOS, v4.USER, v4.ASSISTANT, v4.THINK_END]) & (mask != 0))
    if header.size:
        refuse(int(header[0]))
