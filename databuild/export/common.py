"""What all exports share: what a consumer is, what it reads, and the digests over that."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.errors import IntegrityError
from databuild.pack import Rows
from databuild.reading.rowviews import IGNORE, shifted_labels
from databuild.rows import ROWS_PER_SHARD, canonical_bytes, shard_name
from manifests.export import ArrayRecord, ConsumerName

Ids = npt.NDArray[np.int32]
Mask = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One export: of `rows` rows of row_tokens tokens, into folder. source: the folder of the build, to write from."""

    folder: Path
    name: str
    rows: int
    row_tokens: int
    rows_sha256: str
    options: dict[str, str]
    source: Path | None = None

    @property
    def row_files(self) -> list[str]:
        """The names of the build's row files."""
        count = max(1, -(-self.rows // ROWS_PER_SHARD))
        return [shard_name(index, count) for index in range(count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """r rows as their consumer reads them.

    input_ids: int32[r, R]. labels: int32[r, R], label t is the token trained to follow token t, or IGNORE. content: the
    arrays that the files hold, under names.
    """

    input_ids: Ids
    labels: Ids
    content: dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """How the rows are written for one consumer, and how it reads them.

    options: name -> allowed values, the default first. files: the names written under these options, without the manifest.
    write: row groups in order -> files, in memory that does not grow with them. read: the files, proven to be of the
    right form, the way the consumer's own loader reads them; IntegrityError otherwise.
    """

    name: ConsumerName
    files: Callable[[Plan], list[str]]
    write: Callable[[Iterator[Rows], Plan], None]
    read: Callable[[Plan], Iterator[Part]]
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)
    suffix: Callable[[dict[str, str]], str] = lambda options: ""


def mask_of(labels: Ids) -> Mask:
    """uint8[r, R]: the token-aligned mask that labels come from."""
    mask = np.zeros(labels.shape, np.uint8)
    mask[:, 1:] = labels[:, :-1] != IGNORE
    return mask


def starts_of(rows: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(row in the group, position) of each document of a row but its first."""
    row = np.repeat(np.arange(len(rows)), np.diff(rows.doc_offsets))
    later = rows.doc_starts > 0
    return row[later], rows.doc_starts[later].astype(np.int64)


def expected_labels(rows: Rows, options: dict[str, str]) -> Ids:
    """The labels that an export of these rows must give. Between segments nothing predicts."""
    labels = shifted_labels(rows.input_ids, rows.loss_mask)
    if options.get("segments") == "documents":
        row, start = starts_of(rows)
        labels[row, start - 1] = IGNORE
    return labels


class PairDigest:
    """pairs_sha256 and the number of pairs, of rows that come in order."""

    def __init__(self) -> None:
        self._sha = hashlib.sha256()
        self.num_targets = 0

    def add(self, input_ids: Ids, labels: Ids) -> None:
        """Add rows."""
        both = np.concatenate([input_ids.astype("<i4", copy=False), labels.astype("<i4", copy=False)], axis=1)
        self._sha.update(both.data)
        self.num_targets += int(np.count_nonzero(labels != IGNORE))

    @property
    def sha256(self) -> str:
        """Its hex."""
        return self._sha.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What an export was found to hold. rows_sha256: of the rows that its labels come from."""

    rows: int
    num_targets: int
    pairs_sha256: str
    rows_sha256: str
    arrays: list[ArrayRecord]


def read_back(consumer: Consumer, plan: Plan) -> Content:
    """Read an export the way its consumer does; IntegrityError where it is not of the right form."""
    pairs, rows_sha, num = PairDigest(), hashlib.sha256(), 0
    arrays: dict[str, tuple[Any, str, int]] = {}
    for part in consumer.read(plan):
        _proven(part, plan, num)
        pairs.add(part.input_ids, part.labels)
        rows_sha.update(canonical_bytes(part.input_ids, mask_of(part.labels)).data)
        num += len(part.input_ids)
        for name, array in part.content.items():
            sha, kind, values = arrays.get(name, (hashlib.sha256(), str(array.dtype), 0))
            sha.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)
            arrays[name] = (sha, kind, values + array.size)
    return Content(
        rows=num,
        num_targets=pairs.num_targets,
        pairs_sha256=pairs.sha256,
        rows_sha256=rows_sha.hexdigest(),
        arrays=[
            ArrayRecord(name=name, type=kind, values=values, sha256=sha.hexdigest())
            for name, (sha, kind, values) in sorted(arrays.items())
        ],
    )


def _proven(part: Part, plan: Plan, first: int) -> None:
    """A label is the next token, or none; at the last position there is none."""
    shape = (len(part.input_ids), plan.row_tokens)
    assert part.input_ids.shape == part.labels.shape == shape, "readers give whole rows"
    wrong = (part.labels[:, :-1] != IGNORE) & (part.labels[:, :-1] != part.input_ids[:, 1:])
    bad = np.flatnonzero(wrong.any(axis=1) | (part.labels[:, -1] != IGNORE))
    if bad.size:
        raise not_whole("a label is not the token that follows", f"row {first + int(bad[0])}")


def not_whole(what: str, where: str, expected: str | None = None, found: str | None = None) -> IntegrityError:
    """The error for an export that is not what it should be."""
    return IntegrityError(
        what,
        where=where,
        expected=expected,
        found=found,
        next_step="do not use this export; make it again with databuild export --overwrite",
    )
