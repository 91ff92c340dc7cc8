"""The built-in source: conversations made by our own generator. Needs no network and no file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from databuild.sources.demo_generator import NUM_CONVERSATIONS, conversations
from databuild.sources.records import RecordSpooler
from databuild.sources.spool import SpoolWriter
from databuild.sources.spooled import SpooledSource
from manifests.model import SourceFileRecord, SourceRecord

NAME = "databuild/demo"
LICENSE = "Apache-2.0"


def open_demo(*, folder: Path, say: Callable[[str], None], count: int = NUM_CONVERSATIONS) -> SpooledSource:
    """The demo source; its identity is the digest of what the generator gave."""
    say(f"making {count:,} demo conversations")
    writer = SpoolWriter(folder)
    spooler = RecordSpooler(writer, None)
    digest, size = hashlib.sha256(), 0
    for record in conversations(0, count):
        line = json.dumps(record, sort_keys=True).encode("ascii") + b"\n"
        digest.update(line)
        size += len(line)
        spooler.add(record)
    spooler.flush()
    record_of_source = SourceRecord.make(
        kind="demo",
        name=NAME,
        revision=None,
        split="train",
        rows=count,
        license=LICENSE,
        files=[SourceFileRecord(name="generated.jsonl", bytes=size, sha256=digest.hexdigest())],
    )
    return SpooledSource(record=record_of_source, spool=writer.finish())
