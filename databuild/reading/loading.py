"""A build as numpy arrays, for Python programs: `databuild.load(DIR)`. Proven when it is opened, read when it is used."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args, overload

import numpy as np
import numpy.typing as npt

from databuild.errors import SourceError, UsageError
from databuild.outdir import MANIFEST
from databuild.pack import Rows
from databuild.reading.groups import GroupReader, freeze, proven_groups, read_everything
from databuild.reading.iterate import Order, Plan, RowIterator
from databuild.reading.rowviews import Row, RowBatch
from databuild.rows import damaged, select
from databuild.share.names import ROWS_FOLDER
from databuild.verify import check_arithmetic, check_row_file, load_manifest, row_file_names
from manifests.model import Manifest, ManifestError, read_manifest

Check = Literal["rows", "files", "none"]


class RowSet:
    """The rows of one build. `len`, `rows[3]` (a Row), `rows[8:16]` (a RowBatch), iteration, `take`, `iterate`.

    Read lazily, a row group of 128 rows at a time; the cache_groups last ones stay in memory, each 640 bytes x row_tokens
    (5.2 MB at 8,192). Make one with `databuild.load`.
    """

    def __init__(self, folder: Path, manifest: Manifest, *, check: Check, in_memory: bool, cache_groups: int) -> None:
        self.folder = folder
        self.manifest = manifest
        paths = [folder / file.name for file in manifest.files]
        self._everything: Rows | None = None
        if in_memory:
            self._everything = freeze(read_everything(paths, manifest, check=check == "rows"))
        elif check == "rows":
            for _ in proven_groups(paths, manifest):
                pass
        num_rows = [file.rows for file in manifest.files]
        self._reader = GroupReader(paths, num_rows, manifest.rows.row_tokens, keep=cache_groups, check=check != "none")

    def __repr__(self) -> str:
        return (
            f"<RowSet {self.manifest.name}: {len(self):,} rows of {self.row_tokens:,} tokens, {self.rows_sha256[:16]}>"
        )

    @property
    def rows_sha256(self) -> str:
        """The identity of the rows."""
        return self.manifest.rows.rows_sha256

    @property
    def row_tokens(self) -> int:
        """Tokens of a row."""
        return self.manifest.rows.row_tokens

    @property
    def num_targets(self) -> int:
        """Tokens that are trained, in all rows."""
        return self.manifest.rows.num_targets

    def __len__(self) -> int:
        return self.manifest.rows.rows

    def __iter__(self) -> Iterator[Row]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> RowBatch: ...
    def __getitem__(self, index: int | slice) -> Row | RowBatch:
        """A row by its number (negative: from the end; IndexError if there is none), or a slice as a batch."""
        if isinstance(index, slice):
            return self.take(np.arange(len(self), dtype=np.int64)[index])
        number = operator.index(index)
        if not -len(self) <= number < len(self):
            raise IndexError(f"row {number} of {len(self)}")
        return self.take([number % len(self)])[0]

    def take(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> RowBatch:
        """These rows, in this order, as one batch. IndexError for a number that no row has."""
        chosen = np.asarray(rows, np.int64).reshape(-1)
        if chosen.size and not 0 <= int(chosen.min()) <= int(chosen.max()) < len(self):
            raise IndexError(f"rows {int(chosen.min())} to {int(chosen.max())} of {len(self)}")
        if self._everything is not None:
            return _gather([(self._everything, np.arange(len(chosen)), chosen)], chosen, self.row_tokens)
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for at, number in enumerate(chosen.tolist()):
            key, place = self._reader.locate(number)
            found.setdefault(key, []).append((at, place))
        # A group at a time, lazily: a batch may touch more groups than are kept.
        parts = ((self._reader.group(key), *np.array(pairs, np.int64).T) for key, pairs in found.items())
        return _gather(parts, chosen, self.row_tokens)

    def read_all(self) -> RowBatch:
        """Every row as one batch: 5 bytes a token in memory."""
        if self._everything is None:
            paths = [self.folder / file.name for file in self.manifest.files]
            return _whole(freeze(read_everything(paths, self.manifest)))
        return _whole(self._everything)

    def iterate(
        self,
        batch_size: int,
        *,
        order: Order = "file",
        seed: int = 42,
        epochs: int | None = 1,
        rank: int = 0,
        world_size: int = 1,
        drop_last: bool = False,
    ) -> RowIterator:
        """Batches of batch_size rows (of this rank), with `state_dict` and `load_state_dict`.

        order "file" is training order; "shuffled" draws each epoch's order from seed and the number of the epoch. epochs
        None goes on for ever. See databuild.reading.iterate for how the ranks divide a step. UsageError for what cannot be.
        """
        plan = Plan(
            num_rows=len(self), batch_size=batch_size, order=order, seed=seed, epochs=epochs, rank=rank,
            world_size=world_size, drop_last=drop_last,
        )  # fmt: skip
        return RowIterator(self.take, self.rows_sha256, plan)


def load(
    folder: str | os.PathLike[str], *, check: Check = "rows", in_memory: bool = False, cache_groups: int = 64
) -> RowSet:
    """Open a build; see `databuild.load`."""
    if check not in get_args(Check):
        raise UsageError("there is no such check", expected=", ".join(get_args(Check)), found=repr(check))
    path = Path(folder)
    manifest = _manifest(path)
    _check_files(path, manifest, digests=check != "none")
    return RowSet(path, manifest, check=check, in_memory=in_memory, cache_groups=cache_groups)


def _manifest(folder: Path) -> Manifest:
    """The proven manifest. Links are followed: the cache of the hub libraries is made of them, and digests decide."""
    path = folder / MANIFEST
    if path.is_symlink() and path.is_file():
        try:
            return read_manifest(path.read_bytes())
        except ManifestError as error:
            raise damaged("the manifest is damaged", MANIFEST, None, str(error)) from error
    if not path.exists() and (folder / ROWS_FOLDER / MANIFEST).is_file():
        raise SourceError(
            "this is a dataset folder, the build is in it",
            where=str(folder),
            next_step=f"open {folder / ROWS_FOLDER}",
        )
    return load_manifest(folder)


def _check_files(folder: Path, manifest: Manifest, *, digests: bool) -> None:
    """Only what the manifest names is read, so other files beside it are none of a reader's business."""
    row_file_names(manifest)
    check_arithmetic(manifest)
    for file in manifest.files:
        if not (folder / file.name).is_file():
            raise damaged("a row file is missing", str(folder / file.name))
        check_row_file(folder, file, manifest.rows.row_tokens, digest=digests)


def _whole(rows: Rows) -> RowBatch:
    return RowBatch(
        rows=np.arange(len(rows), dtype=np.int64), input_ids=rows.input_ids, loss_mask=rows.loss_mask,
        doc_starts=rows.doc_starts, doc_rows=rows.doc_rows, doc_offsets=rows.doc_offsets,
    )  # fmt: skip


def _gather(
    parts: Iterable[tuple[Rows, npt.NDArray[np.int64], npt.NDArray[np.int64]]],
    chosen: npt.NDArray[np.int64],
    row_tokens: int,
) -> RowBatch:
    """The batch whose rows at[i] are rows places[i] of each (rows, at, places): a view if it is one run of one part."""
    num = len(chosen)
    ids, mask = np.empty((0, row_tokens), np.int32), np.empty((0, row_tokens), np.uint8)
    starts, doc_rows = [np.zeros(0, np.int32)] * num, [np.zeros(0, np.int64)] * num
    for rows, at, places in parts:
        if num and len(at) == num and places[-1] - places[0] == num - 1 and np.all(np.diff(places) == 1):
            part = select(rows, int(places[0]), int(places[-1]) + 1)
            return RowBatch(
                rows=chosen, input_ids=part.input_ids, loss_mask=part.loss_mask, doc_starts=part.doc_starts,
                doc_rows=part.doc_rows, doc_offsets=part.doc_offsets,
            )  # fmt: skip
        if not len(ids):
            ids, mask = np.empty((num, row_tokens), np.int32), np.empty((num, row_tokens), np.uint8)
        ids[at], mask[at] = rows.input_ids[places], rows.loss_mask[places]
        for i, place in zip(at.tolist(), places.tolist(), strict=True):
            docs = slice(int(rows.doc_offsets[place]), int(rows.doc_offsets[place + 1]))
            starts[i], doc_rows[i] = rows.doc_starts[docs], rows.doc_rows[docs]
    counts = np.fromiter(map(len, starts), np.int64, num)
    batch = RowBatch(
        rows=chosen,
        input_ids=ids,
        loss_mask=mask,
        doc_starts=np.concatenate([np.zeros(0, np.int32), *starts]),
        doc_rows=np.concatenate([np.zeros(0, np.int64), *doc_rows]),
        doc_offsets=np.append(0, np.cumsum(counts)).astype(np.int64),
    )
    for array in (batch.input_ids, batch.loss_mask, batch.doc_starts, batch.doc_rows):
        array.flags.writeable = False
    return batch
