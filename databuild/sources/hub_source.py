"""A dataset of the hub as a source: fetched, proven, then spooled like any other files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from databuild.errors import SourceError
from databuild.sources.columns import ColumnMap
from databuild.sources.hub import fetch_snapshot
from databuild.sources.spooled import LocalFile, SpooledSource, spool_files
from manifests.locks import SourceLock


def open_hub(
    name: str,
    *,
    revision: str | None,
    split: str,
    lock: SourceLock | None,
    folder: Path,
    mapping: ColumnMap | None,
    say: Callable[[str], None],
) -> SpooledSource:
    """The split of a dataset at a revision. With a lock, its digests, schema and number of rows are checked too."""
    snapshot = fetch_snapshot(name, revision=revision, split=split, lock=lock, say=say)
    files = [LocalFile(path=f.path, name=f.name, bytes=f.bytes, sha256=f.sha256) for f in snapshot.files]
    if lock is not None:
        for file in files:
            check_schema(file.path, lock)
    return spool_files(
        files,
        folder=folder,
        mapping=mapping,
        say=say,
        kind="hub",
        name=snapshot.name,
        revision=snapshot.revision,
        split=snapshot.split,
        license=snapshot.license,
        expected_rows=None if lock is None else lock.rows,
    )


def check_schema(path: Path, lock: SourceLock) -> None:
    """SourceError unless a shard has the columns that the lock says."""
    import pyarrow.parquet as pq

    from databuild.arrow import UNREADABLE, first_line

    try:
        schema = pq.read_schema(path)
    except UNREADABLE as error:
        raise SourceError("a shard is not parquet", where=path.name, found=first_line(error)) from error
    # The name of a list's child (element, item) is the writer's choice and says nothing.
    found = {field.name: re.sub(r"list<\w+: ", "list<element: ", str(field.type)) for field in schema}
    if found != lock.columns:
        raise SourceError(
            f"a shard of {lock.name} has other columns than its lock says",
            where=path.name,
            expected=", ".join(f"{k}: {v}" for k, v in lock.columns.items()),
            found=", ".join(f"{k}: {v}" for k, v in found.items()),
        )
