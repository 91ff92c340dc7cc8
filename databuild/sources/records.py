"""Records as Python objects -> the spool. The path for whatever is not plain text turns in Arrow columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from databuild.sources.base import RAW, ROLE_CODES
from databuild.sources.columns import ColumnMap, map_record
from databuild.sources.spool import SpoolWriter
from masks.parse import has_lone_surrogate

_FLUSH_BYTES = 8 << 20


class RecordSpooler:
    """Collects records and hands them to the spool in blocks."""

    def __init__(self, spool: SpoolWriter, mapping: ColumnMap | None) -> None:
        self._spool = spool
        self._mapping = mapping
        self._clear()

    def _clear(self) -> None:
        self._texts: list[bytes] = []
        self._roles: list[int] = []
        self._counts: list[int] = []
        self._sources: list[str | None] = []
        self._ids: list[Any] = []
        self._bytes = 0

    def add(self, record: Mapping[str, Any]) -> None:
        """Add one record of the user's shape."""
        mapped = map_record(record, self._mapping)
        entries = plain_entries(mapped)
        if entries is None:
            kept = {key: mapped[key] for key in ("messages", "tools") if mapped[key] is not None}
            entries = [(RAW, json.dumps(kept, default=_not_json).encode("ascii"))]
        for role, text in entries:
            self._roles.append(role)
            self._texts.append(text)
            self._bytes += len(text)
        self._counts.append(len(entries))
        source = mapped["source"]
        self._sources.append(source if isinstance(source, str) and not has_lone_surrogate(source) else None)
        self._ids.append(mapped["id"])
        if self._bytes > _FLUSH_BYTES or len(self._counts) >= 65_536:
            self.flush()

    def flush(self) -> None:
        """Write what has been collected."""
        if self._counts:
            self._spool.add(
                text=b"".join(self._texts),
                message_lengths=np.array([len(text) for text in self._texts], np.int64),
                roles=np.array(self._roles, np.uint8),
                counts=np.array(self._counts, np.int64),
                sources=self._sources,
                ids=self._ids,
            )
        self._clear()


def _not_json(value: Any) -> dict[str, str]:
    """What stands for a value that parquet has and JSON has not (bytes, decimals): never text, so never trained."""
    return {"not JSON": type(value).__name__}


def plain_entries(record: Mapping[str, Any]) -> list[tuple[int, bytes]] | None:
    """(role code, UTF-8) of each message if the record is nothing but text turns, else None.

    Plain: a non-empty list of objects with a known role and text content, and nothing else that is not null.
    """
    messages = record["messages"]
    if not isinstance(messages, list) or not messages or record.get("tools") is not None:
        return None
    entries = []
    for message in messages:
        if not isinstance(message, Mapping):
            return None
        role, content = message.get("role"), message.get("content")
        code = ROLE_CODES.get(role) if isinstance(role, str) else None
        if code is None or not isinstance(content, str):
            return None
        if len(message) > 2 and any(v is not None for k, v in message.items() if k not in ("role", "content")):
            return None
        try:
            entries.append((code, content.encode("utf-8")))
        except UnicodeEncodeError:
            return None
    return entries
