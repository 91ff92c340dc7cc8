"""Headerless files of numbers, read a group of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.export.common import Plan, not_whole
from databuild.rows import ROWS_PER_GROUP


def read_raw(plan: Plan, kinds: dict[str, str]) -> Iterator[list[npt.NDArray[Any]]]:
    """The same rows of each file: [r, row_tokens] of the dtype in kinds. IntegrityError for another size."""
    paths = [plan.folder / name for name in kinds]
    dtypes = [np.dtype(kind) for kind in kinds.values()]
    for path, dtype in zip(paths, dtypes, strict=True):
        _check_size(path, plan.rows * plan.row_tokens * dtype.itemsize)
    for first in range(0, plan.rows, ROWS_PER_GROUP):
        num = min(ROWS_PER_GROUP, plan.rows - first)
        count = num * plan.row_tokens
        yield [
            np.fromfile(path, dtype, count, offset=first * plan.row_tokens * dtype.itemsize).reshape(
                num, plan.row_tokens
            )
            for path, dtype in zip(paths, dtypes, strict=True)
        ]


def _check_size(path: Path, expected: int) -> None:
    try:
        found = path.stat().st_size
    except OSError as error:
        raise not_whole("the file cannot be read", path.name, None, error.strerror) from error
    if found != expected:
        raise not_whole("the file has another size", path.name, f"{expected} bytes", f"{found} bytes")


def check_mask(mask: npt.NDArray[np.uint8], where: str) -> None:
    """A mask holds 0 and 1, and 0 for the first token of a row, which nothing predicts."""
    if mask.size and (mask.max() > 1 or mask[:, 0].any()):
        raise not_whole("a mask is neither 0 nor 1, or its first is not 0", where)
