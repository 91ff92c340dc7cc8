"""`databuild encode`: conversations of a JSONL file, one by one, with the reference engine. For looking and for tests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from databuild.encode import Encoder
from databuild.sources.base import RAW, ConversationBatch
from databuild.sources.columns import map_record
from databuild.sources.jsonl import read_records
from databuild.tokenizer import load_tokenizer
from masks import deepseek_v4
from masks.conversation import Rejection, parse
from masks.policy import MASK_TYPES


def encode_file(path: Path, *, loss_mask_type: str = "deepseek_v4") -> Iterator[dict[str, Any]]:
    """One object for each record, in order: {"id", "text", "input_ids", "mask_spans"} or {"id", "rejected"}.

    Renders whatever the format can render, an empty list of messages too.
    """
    encoder = Encoder(
        load_tokenizer(),
        None,
        mask_type=MASK_TYPES[loss_mask_type],
        row_tokens=1 << 62,
        separator="none",
        lenient=True,
    )
    for _, record in read_records(path):
        mapped = map_record(record, None) if isinstance(record, dict) else {"messages": None, "id": None}
        identity = mapped["id"]
        parsed = parse(mapped, lenient=True)
        if isinstance(parsed, Rejection):
            yield {"id": identity, "rejected": str(parsed)}
            continue
        encoded = encoder.encode(_single(mapped))
        yield {
            "id": identity,
            "text": deepseek_v4.text_of(deepseek_v4.render(parsed)),
            "input_ids": encoded.ids.tolist(),
            "mask_spans": mask_spans(encoded.loss_mask),
        }


def mask_spans(loss_mask: np.ndarray) -> list[list[int]]:
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
        source_codes=np.zeros(1, np.int32),
        id_codes=np.full(1, -1, np.int64),
    )
