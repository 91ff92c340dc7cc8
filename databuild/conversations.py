"""`databuild encode`: conversations of a JSONL file, one by one, with the reference engine. For looking and for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.encode import Encoder, fixed_texts_error
from databuild.pieces import How
from databuild.sources.base import RAW, ConversationBatch
from databuild.sources.columns import map_record
from databuild.sources.jsonl import read_records
from databuild.tokenizer import load_tokenizer
from masks import deepseek_v4, policy
from masks.conversation import Conversation, Rejection
from masks.fixed_texts import FixedTextsError
from masks.parse import parse
from masks.segments import Segment


def encode_file(path: Path, how: How) -> Iterator[dict[str, Any]]:
    """One object for each record, in order: {"id", "text", "input_ids", "mask_spans"} or {"id", "rejected"}.

    Renders whatever the format can render, an empty list of messages too.
    """
    how = replace(how, lenient=True)
    encoder = Encoder(load_tokenizer(), None, how, row_tokens=1 << 62, separator="none")
    for identity, record in _records(path):
        encoded = encoder.encode(_single(record))
        if encoded.rejections:
            yield {"id": identity, "rejected": str(encoded.rejections[0])}
            continue
        yield {
            "id": identity,
            "text": deepseek_v4.text_of(_segments(record, how)),
            "input_ids": encoded.ids.tolist(),
            "mask_spans": mask_spans(encoded.loss_mask),
        }


def explain_file(path: Path, how: How) -> Iterator[dict[str, Any]]:
    """For each record its segments and why each is trained or not: {"id", "segments": [...]} or {"id", "rejected"}."""
    for identity, record in _records(path):
        parsed = parse(record, lenient=True)
        if isinstance(parsed, Rejection):
            yield {"id": identity, "rejected": str(parsed)}
            continue
        yield {"id": identity, "segments": explained(parsed, how)}


def explained(conversation: Conversation, how: How) -> list[dict[str, Any]]:
    """The segments of a conversation: kind, message, text, special, trained, why."""
    try:
        segments = deepseek_v4.render(conversation, how.options)
    except FixedTextsError as error:
        raise fixed_texts_error(error) from error
    flags = policy.trained(segments, how.mask_type, silenced=conversation.silenced)
    return [
        {
            "kind": segment.kind.value,
            "message": segment.message,
            "text": deepseek_v4.text_of([segment]),
            "special": segment.token_id is not None,
            "trained": flag,
            "why": policy.why(segment, how.mask_type, flag, conversation.silenced),
        }
        for segment, flag in zip(segments, flags, strict=True)
    ]


def _records(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    for _, record in read_records(path):
        mapped = map_record(record, None) if isinstance(record, dict) else {"messages": None, "id": None}
        yield mapped["id"], mapped


def _segments(record: dict[str, Any], how: How) -> list[Segment]:
    parsed = parse(record, lenient=True)
    assert isinstance(parsed, Conversation), "a rejected record has no segments"
    rendered = deepseek_v4.examples(parsed, how.options)
    assert not isinstance(rendered, Rejection), "a rejected record has no segments"
    return [segment for example in rendered[0] for segment in example.segments]


def mask_spans(loss_mask: npt.NDArray[np.uint8]) -> list[list[int]]:
    """The trained stretches of a mask as [start, end) pairs."""
    edges = np.flatnonzero(np.diff(loss_mask.astype(np.int8), prepend=0, append=0))
    return edges.reshape(-1, 2).tolist()


def _single(record: dict[str, Any]) -> ConversationBatch:
    kept = {key: record[key] for key in ("messages", "tools") if record.get(key) is not None}
    return ConversationBatch(
        rows=np.zeros(1, np.int64),
        counts=np.ones(1, np.int64),
        roles=np.array([RAW], np.uint8),
        texts=[json.dumps(kept)],
        marked=np.ones(1, bool),
        source_codes=np.zeros(1, np.int32),
        id_codes=np.full(1, -1, np.int64),
    )
