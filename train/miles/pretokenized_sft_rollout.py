"""SFT in miles on the rows of `databuild export --to miles`, as they are: no tokenizer, no template, no mask generator.

    --rollout-function-path pretokenized_sft_rollout.generate_rollout  with this folder on the PYTHONPATH of the Ray job
    --prompt-data DIR/rows.miles.parquet --input-key messages --loss-type sft_loss --debug-train-only
    --calculate-per-token-loss

miles weighs log p(tokens[T - n + j] | all before it) with loss_mask[j], n = response_length. So each row of R tokens is R - 1
response tokens after a prompt of one, and its mask is the row's mask from position 1: token 0 has nothing before it. A mask of
all R tokens breaks miles, or trains token 0 on the end of another row.

This file stands alone: it needs numpy and pyarrow, nothing of databuild, and nothing of miles but the samples it is given. The
rows are read once, 5 bytes a token, and proven by their rows_sha256; DATABUILD_ROWS_SHA256 in the environment pins which.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["RefusedError", "generate_rollout"]

logger = logging.getLogger(__name__)

PIN = "DATABUILD_ROWS_SHA256"
_SHARD = re.compile(r"rows-(\d{5})-of-(\d{5})\.parquet")
_SLICE = re.compile(r"^(?P<path>.*)@\[-?\d*:-?\d*\]$", re.DOTALL)  # miles: --prompt-data PATH@[from:to]


class RefusedError(ValueError):
    """Something that would train other tokens than those of the rows, or with other weights."""

    def __init__(self, what: str, *, expected: object = None, found: object = None) -> None:
        told = [f"{label} {value}" for label, value in (("expected", expected), ("found", found)) if value is not None]
        super().__init__("; ".join([what, *told]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """All rows of a build. ids: int32[n, R]; mask: uint8[n, R], token-aligned, column 0 is 0."""

    folder: Path
    files: tuple[str, ...]
    rows_sha256: str
    ids: npt.NDArray[np.int32]
    mask: npt.NDArray[np.uint8]


_loaded: _Rows | None = None


def generate_rollout(args: Any, rollout_id: int, data_source: Any, evaluation: bool = False) -> list[list[Any]]:
    """The next args.rollout_batch_size rows of data_source, a group of one sample each, filled in for miles' sft_loss.

    RefusedError for arguments, samples or rows that would train something else than the rows.
    """
    del rollout_id
    if evaluation:
        raise RefusedError("there is nothing to evaluate: rows are trained", expected="no --eval-interval")
    _check_arguments(args)
    groups: list[list[Any]] = data_source.get_samples(args.rollout_batch_size)
    for group in groups:
        if len(group) != 1:
            raise RefusedError(
                "a row is one sample", expected="--n-samples-per-prompt 1", found=f"a group of {len(group)}"
            )
    for (sample,) in groups:
        metadata = _metadata(sample)
        rows = _rows_of(args, metadata)
        _fill(sample, metadata["row"], rows)
    return groups


def _fill(sample: Any, row: int, rows: _Rows) -> None:
    num, row_tokens = rows.ids.shape
    if not 0 <= row < num:
        raise RefusedError("the index names a row that there is not", expected=f"0 to {num - 1}", found=row)
    sample.tokens = rows.ids[row].tolist()
    sample.response_length = row_tokens - 1
    sample.loss_mask = rows.mask[row, 1:].tolist()
    sample.response = ""
    sample.reward = 0
    sample.status = type(sample).Status.COMPLETED


def _check_arguments(args: Any) -> None:
    """Refuse what changes the tokens or the weights. An argument that this version of miles has not is not asked for."""
    for name, wanted in (
        ("rollout_global_dataset", True),
        ("apply_chat_template", False),
        ("loss_type", "sft_loss"),
        ("rollout_temperature", 1),  # miles divides the logits by it, in SFT too
        ("n_samples_per_prompt", 1),
    ):
        found = getattr(args, name, wanted)
        if found != wanted:
            raise RefusedError(f"--{name.replace('_', '-')} would train something else", expected=wanted, found=found)
    batch, step = args.rollout_batch_size, getattr(args, "global_batch_size", None)
    if step and batch % step:
        raise RefusedError(
            "miles drops the rows that fill no global batch",
            expected=f"--rollout-batch-size a multiple of {step}",
            found=batch,
        )


def _metadata(sample: Any) -> dict[str, Any]:
    """The metadata of the index: {"row", "rows_file", "rows_sha256"}."""
    metadata = sample.metadata
    kinds = {"row": int, "rows_file": str, "rows_sha256": str}
    if not isinstance(metadata, dict) or any(type(metadata.get(key)) is not kind for key, kind in kinds.items()):
        raise RefusedError(
            "a sample does not name its row: is --prompt-data the rows.miles.parquet of an export, and --metadata-key metadata?",
            expected="metadata with row, rows_file, rows_sha256",
            found=f"{metadata!r:.200}",
        )
    return metadata


def _rows_of(args: Any, metadata: dict[str, Any]) -> _Rows:
    """The rows that a sample is one of, read and proven at the first call."""
    global _loaded
    matched = _SLICE.match(str(args.prompt_data))
    folder = Path(matched["path"] if matched else args.prompt_data).resolve().parent
    files = _files(metadata["rows_file"])
    pin = os.environ.get(PIN)
    if pin and pin != metadata["rows_sha256"]:
        raise RefusedError(f"these are not the rows that {PIN} names", expected=pin, found=metadata["rows_sha256"])
    known = _loaded
    if known is None or known.folder != folder or known.files != files:
        known = _read(folder, files, metadata["rows_sha256"])
        _check_rows(args, known)
        _loaded = known
    if known.rows_sha256 != metadata["rows_sha256"]:
        raise RefusedError("the index is not of these rows", expected=known.rows_sha256, found=metadata["rows_sha256"])
    return known


def _files(name: str) -> tuple[str, ...]:
    """All row files of the build that has this one."""
    if name == "rows.parquet":
        return (name,)
    matched = _SHARD.fullmatch(name)
    if not matched or not int(matched[1]) < int(matched[2]):
        raise RefusedError(
            "rows_file names no row file beside the index", expected="rows.parquet or a shard", found=name
        )
    return tuple(f"rows-{index:05d}-of-{matched[2]}.parquet" for index in range(int(matched[2])))


def _read(folder: Path, files: tuple[str, ...], rows_sha256: str) -> _Rows:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        opened = [pq.ParquetFile(folder / name) for name in files]
        num = sum(file.metadata.num_rows for file in opened)
        ids, mask = np.empty((0, 0), np.int32), np.empty((0, 0), np.uint8)
        digest, first = hashlib.sha256(), 0
        for file in opened:
            for group in range(file.metadata.num_row_groups):
                table = file.read_row_group(group, columns=["input_ids", "loss_mask"])
                some, some_mask = (
                    _matrix(table, "input_ids", np.dtype(np.int32)),
                    _matrix(table, "loss_mask", np.dtype(np.uint8)),
                )
                if not first:
                    ids, mask = np.empty((num, some.shape[1]), np.int32), np.empty((num, some.shape[1]), np.uint8)
                if not some.shape == some_mask.shape == (len(some), ids.shape[1]):
                    raise RefusedError(
                        "rows differ in length", expected=ids.shape[1], found=(some.shape, some_mask.shape)
                    )
                last = first + len(some)
                ids[first:last], mask[first:last] = some, some_mask
                for row in range(first, last):  # canonical bytes: ids as little-endian int32, then the mask
                    digest.update(ids[row].astype("<i4", copy=False).data)
                    digest.update(mask[row].data)
                first = last
    except (OSError, pa.ArrowException, KeyError) as error:
        raise RefusedError(f"the rows cannot be read: {folder / files[0]}: {error}") from error
    if digest.hexdigest() != rows_sha256:
        raise RefusedError(
            f"the rows in {folder} are damaged, or others", expected=rows_sha256, found=digest.hexdigest()
        )
    logger.info("%d rows of %d tokens, rows_sha256 %s", *ids.shape, rows_sha256)
    return _Rows(folder=folder, files=files, rows_sha256=rows_sha256, ids=ids, mask=mask)


def _matrix(table: Any, name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    column = table.column(name).combine_chunks()
    values = column.flatten().to_numpy(zero_copy_only=False)
    lengths = np.diff(column.offsets.to_numpy())
    if column.null_count or values.dtype != dtype or not len(lengths) or (lengths != lengths[0]).any():
        raise RefusedError(f"{name} is not lists of one length of {dtype}", found=f"{column.type}, {len(lengths)} rows")
    matrix: npt.NDArray[Any] = values.reshape(len(lengths), -1)
    return matrix


def _check_rows(args: Any, rows: _Rows) -> None:
    """Refuse rows that miles, or this model, cannot train."""
    ids, mask = rows.ids, rows.mask
    row_tokens = ids.shape[1]
    if (mask[:, 0] != 0).any() or mask.max() > 1:
        raise RefusedError("loss_mask is neither 0 nor 1, or its first is not 0")
    if (empty := np.flatnonzero(~mask[:, 1:].any(axis=1))).size:
        # miles counts such a row as one token in the denominator of the loss.
        raise RefusedError("a row has nothing to train", found=f"row {empty[0]}")
    vocab = getattr(args, "vocab_size", None) or getattr(args, "padded_vocab_size", None)
    if ids.min() < 0 or (vocab and ids.max() >= vocab):
        raise RefusedError(
            "a token id is not in the vocabulary",
            expected=f"0 to {(vocab or 0) - 1}",
            found=f"{ids.min()} to {ids.max()}",
        )
    limits = {"rollout_max_context_len": getattr(args, "rollout_max_context_len", None)}
    if not getattr(args, "variable_seq_lengths", True):
        limits["seq_length"] = getattr(args, "seq_length", None)
    for name, limit in limits.items():
        if limit is not None and row_tokens > limit:
            raise RefusedError(
                f"rows are longer than --{name.replace('_', '-')}", expected=f"at least {row_tokens}", found=limit
            )
    if not getattr(args, "calculate_per_token_loss", True):
        logger.warning("without --calculate-per-token-loss each row weighs the same, however many targets it has")
