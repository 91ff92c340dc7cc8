"""Conversations in memory as a source, and a build of them without files. For tests of the stream itself."""

import json
from dataclasses import dataclass
from functools import cache

import numpy as np

from databuild.build import Stream
from databuild.config import BuildSpec
from databuild.rows import Digests, concat
from databuild.sources.base import RAW, ConversationBatch
from databuild.sources.marks import marked
from databuild.sources.records import plain_entries
from databuild.sources.spool import NO_SOURCE
from databuild.tokenizer import load_tokenizer
from masks.parse import has_lone_surrogate


@cache
def tokenizer():
    return load_tokenizer()


class MemorySource:
    """Records as a Source: what the spool does on disk, in lists."""

    def __init__(self, records):
        self.records = records
        sources = [record.get("source") for record in records]
        self._sources = [s if isinstance(s, str) and not has_lone_surrogate(s) else NO_SOURCE for s in sources]
        self.source_names = list(dict.fromkeys(self._sources))
        ids = list(dict.fromkeys(record.get("id") for record in records))
        self._ids = [-1 if record.get("id") is None else ids.index(record["id"]) for record in records]
        self.num_ids = len(ids)
        self.num_rows = len(records)

    def take(self, indices):
        counts, roles, texts = [], [], []
        for index in indices.tolist():
            record = {"messages": None, "tools": None, **self.records[index]}
            kept = {key: record[key] for key in ("messages", "tools") if record[key] is not None}
            entries = plain_entries(record) or [(RAW, json.dumps(kept).encode())]
            counts.append(len(entries))
            roles += [role for role, _ in entries]
            texts += [text.decode("utf-8") for _, text in entries]
        return ConversationBatch(
            rows=indices,
            counts=np.array(counts, np.int64),
            roles=np.array(roles, np.uint8),
            texts=texts,
            marked=np.array(
                [
                    role == RAW or bool(marked(t.encode(), np.array([len(t.encode())]))[0])
                    for role, t in zip(roles, texts, strict=True)
                ],
                bool,
            ),
            source_codes=np.array([self.source_names.index(self._sources[i]) for i in indices.tolist()], np.int32),
            id_codes=np.array([self._ids[i] for i in indices.tolist()], np.int64),
        )


@dataclass
class Built:
    rows: list  # (input_ids, loss_mask) as lists
    doc_starts: list
    doc_rows: list
    rows_sha256: str
    docs_sha256: str
    counts: dict


def build_in_memory(records, *, row_tokens, seed, batch=1024, plain_way=True, **options) -> Built:
    """Rows of records, as `databuild fixed` makes them."""
    source = MemorySource(records)
    spec = BuildSpec(row_tokens=row_tokens, seed=seed, tokenizer_sha256="", sources=[], **{"rows": None, **options})
    stream = Stream(source, spec, tokenizer(), batch_conversations=batch, plain_way=plain_way)
    digests, parts = Digests(), []
    for rows in stream:
        digests.add(rows)
        parts.append(rows)
    counts = stream.tally.counts(stream.packer, source.source_names).model_dump()
    merged = concat(parts)
    spans = list(zip(merged.doc_offsets[:-1].tolist(), merged.doc_offsets[1:].tolist(), strict=True))
    return Built(
        rows=list(zip(merged.input_ids.tolist(), merged.loss_mask.tolist(), strict=True)),
        doc_starts=[merged.doc_starts[a:b].tolist() for a, b in spans],
        doc_rows=[merged.doc_rows[a:b].tolist() for a, b in spans],
        rows_sha256=digests.rows_sha256,
        docs_sha256=digests.docs_sha256,
        counts=counts,
    )
