"""The rows of a build as batches for a trainer: read once, proven once, then sliced. No shuffling, padding or re-cutting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from databuild.errors import UsageError
from databuild.reading.groups import read_everything
from databuild.reading.loading import RowSet
from databuild.rows import damaged
from databuild.tokenizer import load_tokenizer
from databuild.verify import load_manifest, row_paths, verify
from manifests.locks import load_tokenizer_lock
from manifests.model import Manifest
from train.batches import labels_and_mask, step_rows
from train.config import TrainConfig


@dataclass(frozen=True, kw_only=True, eq=False)
class MicroBatch:
    """What one forward pass of one data-parallel rank sees: mbs rows of S tokens, on the CPU.

    label_mask[t] weighs the loss of predicting labels[t] = tokens[t + 1]; a multi-token prediction layer moves labels and
    label_mask on by itself. loss_mask is the mask of the row file, not shifted: whether token t is a target.
    """

    tokens: torch.Tensor
    """int64[mbs, S]"""
    labels: torch.Tensor
    """int64[mbs, S], always valid ids; 0 at the last position"""
    label_mask: torch.Tensor
    """float32[mbs, S], 0 or 1; 0 at the last position"""
    loss_mask: torch.Tensor
    """float32[mbs, S], 0 or 1; 0 at the first position"""
    position_ids: torch.Tensor
    """int64[mbs, S]: 0..S-1, or from 0 at each document under attention: document"""
    doc_bounds: torch.Tensor
    """int32[d + 1]: where the d documents of the rows, one row after another, begin, and the end of the last, mbs * S"""


class RowData:
    """The rows of one build in memory, for one training configuration.

    Memory: 5 bytes a token (int32 id, uint8 mask) and 4 bytes a document; 6,400 rows of 8,192 tokens are 262 MB a process.
    Opening reads every file twice (digest, rows). SourceError if there is no build, IntegrityError if it is not what its
    manifest says or was made with another tokenizer, UsageError if the configuration does not fit it.
    """

    def __init__(self, rows_dir: str | Path, config: TrainConfig) -> None:
        folder = Path(rows_dir)
        self.config = config
        self.manifest = load_manifest(folder)
        _fits(self.manifest, config, str(folder))
        verify(folder, level=1)
        rows = read_everything(row_paths(folder, self.manifest), self.manifest)
        self._ids, self._mask = rows.input_ids, rows.loss_mask
        self._doc_starts, self._doc_offsets = rows.doc_starts, rows.doc_offsets
        self._check_ids(str(folder))
        if config.attention == "document":
            # A document sees nothing before itself: its first token cannot be predicted, as that of the row cannot.
            owners = np.repeat(np.arange(len(self._ids)), np.diff(self._doc_offsets))
            self._mask[owners, self._doc_starts] = 0
        self._targets = self._mask.sum(axis=1, dtype=np.int64)

    @property
    def rows_sha256(self) -> str:
        """The identity of the rows."""
        return self.manifest.rows.rows_sha256

    @property
    def num_rows(self) -> int:
        """Rows of the build: one epoch."""
        return len(self._ids)

    def num_targets(self, consumed_rows: int) -> int:
        """Targets of the whole global batch that starts after consumed_rows: the sum of label_mask over all ranks."""
        rows = (consumed_rows + np.arange(self.config.global_batch_size, dtype=np.int64)) % self.num_rows
        return int(self._targets[rows].sum())

    def micro_batches(self, consumed_rows: int, dp_rank: int, dp_size: int) -> list[MicroBatch]:
        """The micro-batches of one rank for the global batch that starts after consumed_rows, in order.

        consumed_rows counts rows since the start of the run, over all epochs; after the last row of the file comes the
        first. ValueError if the global batch cannot be divided so.
        """
        if consumed_rows < 0:
            raise ValueError(f"consumed_rows {consumed_rows} must not be negative")
        rows = consumed_rows + step_rows(
            0,
            global_batch_size=self.config.global_batch_size,
            micro_batch_size=self.config.micro_batch_size,
            dp_size=dp_size,
            dp_rank=dp_rank,
        )
        return [self.batch(chosen) for chosen in rows % self.num_rows]

    def batch(self, rows: Sequence[int] | npt.NDArray[np.int64]) -> MicroBatch:
        """These rows of the file as one micro-batch."""
        chosen = np.asarray(rows, np.int64)
        ids, mask = self._ids[chosen], self._mask[chosen]
        labels, label_mask = labels_and_mask(ids, mask)
        size = ids.shape[1]
        bounds = [
            self._doc_starts[self._doc_offsets[row] : self._doc_offsets[row + 1]] + i * size
            for i, row in enumerate(chosen.tolist())
        ]
        doc_bounds = np.concatenate([*bounds, [ids.size]]).astype(np.int32)
        positions = np.broadcast_to(np.arange(size, dtype=np.int64), ids.shape)
        if self.config.attention == "document":
            flat = np.arange(ids.size, dtype=np.int64)
            positions = (flat - np.repeat(doc_bounds[:-1], np.diff(doc_bounds))).reshape(ids.shape)
        return MicroBatch(
            tokens=torch.from_numpy(ids.astype(np.int64)),
            labels=torch.from_numpy(labels),
            label_mask=torch.from_numpy(label_mask),
            loss_mask=torch.from_numpy(mask.astype(np.float32)),
            position_ids=torch.from_numpy(positions.copy()),
            doc_bounds=torch.from_numpy(doc_bounds),
        )

    def document_lengths(self, row: int) -> list[int]:
        """Tokens of each document in a row of the file; they add up to seq_length."""
        starts = self._doc_starts[self._doc_offsets[row] : self._doc_offsets[row + 1]]
        return [int(length) for length in np.diff(np.append(starts, self.config.seq_length))]

    def _check_ids(self, where: str) -> None:
        if int(self._ids.min()) < 0:
            raise damaged("a token id is negative", where, "0 or more", str(self._ids.min()))
        needed = max(int(self._ids.max()) + 1, load_tokenizer().vocab_size)
        if self.config.vocab_size < needed:
            raise UsageError(
                "vocab_size is smaller than the vocabulary of the rows",
                where=where,
                expected=f"at least {needed}",
                found=str(self.config.vocab_size),
                next_step=f"set vocab_size to {needed}, or to a larger multiple of what the layout needs",
            )


class RowDataset(Dataset[dict[str, torch.Tensor]]):
    """Rows as a map-style torch Dataset for other trainers, in file order: what Megatron's GPT datasets give.

    Item: tokens, labels, position_ids int64[S]; loss_mask float32[S], which is label-aligned here, as Megatron means it
    (loss_mask[t] weighs labels[t]). Use it with shuffle=False to keep the order of the rows. data is a RowData, in memory
    and under its configuration, or what `databuild.load` gives, read row group by row group.
    """

    def __init__(self, data: RowData | RowSet) -> None:
        self._data = data

    def __len__(self) -> int:
        return self._data.num_rows if isinstance(self._data, RowData) else len(self._data)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        if not isinstance(self._data, RowData):
            row = self._data[index]
            return items(row.input_ids, row.loss_mask)
        batch = self._data.batch([index % len(self)])
        return {
            "tokens": batch.tokens[0],
            "labels": batch.labels[0],
            "loss_mask": batch.label_mask[0],
            "position_ids": batch.position_ids[0],
        }


def items(input_ids: npt.NDArray[np.int32], loss_mask: npt.NDArray[np.uint8]) -> dict[str, torch.Tensor]:
    """The item of RowDataset for a row ([S]) or a batch ([B, S]) under causal_row attention."""
    labels, label_mask = labels_and_mask(input_ids, loss_mask)
    positions = np.broadcast_to(np.arange(input_ids.shape[-1], dtype=np.int64), input_ids.shape)
    return {
        "tokens": torch.from_numpy(input_ids.astype(np.int64)),
        "labels": torch.from_numpy(labels),
        "loss_mask": torch.from_numpy(label_mask),
        "position_ids": torch.from_numpy(positions.copy()),
    }


def _fits(manifest: Manifest, config: TrainConfig, where: str) -> None:
    """What the manifest alone tells, before anything large is read."""
    pinned, found = load_tokenizer_lock(), manifest.tokenizer.tokenizer_json_sha256
    if found != pinned.tokenizer_json_sha256:
        raise damaged(
            "the build was made with another tokenizer than the pinned one",
            where,
            f"sha256 {pinned.tokenizer_json_sha256}",
            f"sha256 {found}",
        )
    if manifest.rows.row_tokens != config.seq_length:
        raise UsageError(
            "seq_length is not the length of the rows",
            where=where,
            expected=f"row_tokens {manifest.rows.row_tokens}",
            found=f"seq_length {config.seq_length}",
            next_step=f"set seq_length={manifest.rows.row_tokens}, or build rows of {config.seq_length} tokens",
        )
    if manifest.rows.rows < config.global_batch_size:
        raise UsageError(
            "too few rows for one global batch",
            where=where,
            expected=f"at least global_batch_size {config.global_batch_size}",
            found=f"{manifest.rows.rows} rows",
            next_step="build more rows, or set a smaller global_batch_size",
        )
