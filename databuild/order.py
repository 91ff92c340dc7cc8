"""The seeded global permutation, and the vectors that prove it is still the same one. Pure."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from databuild.errors import IntegrityError

#: (n, seed, first values). numpy may change `Generator.permutation` between versions; these say when it has.
VECTORS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (10, 42, (5, 6, 0, 7, 3, 2, 4, 9, 1, 8)),
    (1000, 42, (978, 933, 859, 916, 127, 608, 856, 260, 147, 810)),
)
TULU3_VECTOR = (939_343, 42, (741378, 724234, 107024, 213324, 885092))
TULU3_SHA256_PREFIX = "64d16f4fc4f567ad"


def permutation(n: int, seed: int) -> npt.NDArray[np.int64]:
    """int64[n]: the order in which the rows of a source are visited.

    The same order as `datasets.Dataset.shuffle(seed)`: `numpy.random.default_rng(seed).permutation(n)`.
    """
    return np.random.default_rng(seed).permutation(n).astype(np.int64, copy=False)


def check_permutation(*, full: bool = False) -> None:
    """IntegrityError unless this numpy draws the pinned permutations; full adds the one of Tulu-3 (20 ms)."""
    for n, seed, expected in (*VECTORS, *((TULU3_VECTOR,) if full else ())):
        order = permutation(n, seed)
        found = tuple(order[: len(expected)].tolist())
        if found != expected:
            _changed(n, seed, str(expected), str(found))
        if n == TULU3_VECTOR[0]:
            digest = hashlib.sha256(order.astype("<i8").tobytes()).hexdigest()
            if not digest.startswith(TULU3_SHA256_PREFIX):
                _changed(n, seed, f"sha256 {TULU3_SHA256_PREFIX}…", f"sha256 {digest}")


def _changed(n: int, seed: int, expected: str, found: str) -> None:
    raise IntegrityError(
        f"numpy {np.__version__} draws another permutation of {n} rows with seed {seed}",
        expected=expected,
        found=found,
        next_step="install a numpy that README lists as tested (1.26 to 2.4)",
    )
