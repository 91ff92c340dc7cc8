"""Which rows make a step, and what a trainer sees of a row. Pure numpy: the trainer and every export agree through this."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from databuild.reading.rowviews import shifted


def step_rows(
    step: int, *, global_batch_size: int, micro_batch_size: int, dp_size: int, dp_rank: int
) -> npt.NDArray[np.int64]:
    """int64[micro_batches, micro_batch_size]: the rows of one data-parallel rank in a step, in file order.

    Step k takes rows [k * global_batch_size, (k + 1) * global_batch_size); micro-batch j of rank r is rows
    k * global_batch_size + j * dp_size * micro_batch_size + r * micro_batch_size + i, the order of Megatron's single
    loader. ValueError if the batch cannot be divided so.
    """
    per_round = dp_size * micro_batch_size
    if min(global_batch_size, micro_batch_size, dp_size) < 1 or global_batch_size % per_round:
        raise ValueError(
            f"global_batch_size {global_batch_size} must be a multiple of dp_size {dp_size} x "
            f"micro_batch_size {micro_batch_size}"
        )
    if not 0 <= dp_rank < dp_size:
        raise ValueError(f"dp_rank {dp_rank} must be in 0..{dp_size - 1}")
    first = step * global_batch_size + dp_rank * micro_batch_size
    rounds = np.arange(global_batch_size // per_round, dtype=np.int64)[:, None] * per_round
    return first + rounds + np.arange(micro_batch_size, dtype=np.int64)


def labels_and_mask(
    input_ids: npt.NDArray[np.int32], loss_mask: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """(labels int64[..., R], label_mask float32[..., R]): labels[t] = input_ids[t + 1]; the last position has none.

    The label of the last position is 0 with mask 0: a valid id, never trained.
    """
    return shifted(input_ids).astype(np.int64), shifted(loss_mask).astype(np.float32)
