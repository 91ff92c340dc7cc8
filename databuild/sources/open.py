"""The value of --source -> a function that opens it, and the short name it gives a build."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from databuild.errors import UsageError
from databuild.sources.base import Source
from databuild.sources.columns import ColumnMap
from manifests.model import SourceRecord

Open = Callable[[Path, Callable[[str], None]], Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """What --source asked for. open(folder, say) gives the source; its temporary files go to folder."""

    short_name: str
    open: Open


def parse_source(values: Sequence[str], columns: ColumnMap | None) -> SourceRequest:
    """`tulu3`, `demo`, `hf:NAME[@REV][:SPLIT]`, or one or many paths."""
    if not values:
        raise UsageError("no source", next_step="--source tulu3 | demo | hf:NAME[@REVISION][:SPLIT] | PATH")
    named = [value for value in values if value in ("tulu3", "demo") or value.startswith("hf:")]
    if named and len(values) > 1:
        raise UsageError(f"--source {named[0]} cannot be joined with others", next_step="only paths may be repeated")
    value = values[0]
    if value == "demo":
        if columns is not None:
            raise UsageError("--columns is for sources of another shape; the demo has its own")
        return SourceRequest(short_name="demo", open=_open_demo)
    if value == "tulu3":
        if columns is not None:
            raise UsageError("--columns is for sources of another shape; tulu3 has its own")
        return SourceRequest(short_name="tulu3", open=_open_tulu3)
    if value.startswith("hf:"):
        return _hub_request(value, columns)
    paths = list(values)

    def open_paths(folder: Path, say: Callable[[str], None]) -> Source:
        from databuild.sources.files import open_files

        return open_files(paths, folder=folder, mapping=columns, say=say)

    return SourceRequest(short_name="files", open=open_paths)


def request_of_record(record: SourceRecord, columns: ColumnMap | None, paths: Sequence[str]) -> SourceRequest:
    """The source that a manifest names, to build it again. A manifest holds no paths: those of files must be given."""
    if record.kind == "demo":
        return parse_source(["demo"], columns)
    if record.kind == "hub":
        return _hub_request(f"hf:{record.name}@{record.revision}:{record.split}", columns)
    if not paths:
        raise UsageError(
            "this build was made from files, and its manifest holds no paths",
            expected=", ".join(file.name for file in record.files[:5]),
            next_step="say where they are: --source PATH",
        )
    return parse_source(paths, columns)


def _open_demo(folder: Path, say: Callable[[str], None]) -> Source:
    from databuild.sources.demo import open_demo

    return open_demo(folder=folder, say=say)


def _open_tulu3(folder: Path, say: Callable[[str], None]) -> Source:
    from databuild.sources.hub_source import open_hub
    from manifests.locks import load_source_lock

    lock = load_source_lock("tulu3")
    return open_hub(
        lock.name, revision=lock.revision, split=lock.split, lock=lock, folder=folder, mapping=None, say=say
    )


def _hub_request(value: str, columns: ColumnMap | None) -> SourceRequest:
    from databuild.sources.hub import parse_hub_spec
    from manifests.locks import load_source_lock

    name, revision, split = parse_hub_spec(value)
    lock = load_source_lock("tulu3")
    if (name, revision, split) == (lock.name, lock.revision, lock.split):
        return parse_source(["tulu3"], columns)  # the same files by another name get the same checks

    def open_name(folder: Path, say: Callable[[str], None]) -> Source:
        from databuild.sources.hub_source import open_hub

        return open_hub(name, revision=revision, split=split, lock=None, folder=folder, mapping=columns, say=say)

    short = re.sub(r"[^a-z0-9]+", "-", name.rsplit("/", 1)[-1].lower()).strip("-")
    return SourceRequest(short_name=short or "hub", open=open_name)
