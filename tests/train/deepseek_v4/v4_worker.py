"""tests/train/layout_worker.py for DeepSeek-V4: the same cases, with whole weights put together as V4 cuts them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch.distributed as dist

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import layout_worker
from v4_models import TINY

# Longer than twice the 16 tokens of a heavily compressed entry, and no multiple of it.
BASE = {
    **{key: layout_worker.TINY[key] for key in ("global_batch_size", "precision", "lr", "adam_eps")},
    "steps": 6, "micro_batch_size": 2, "lr_warmup_fraction": 0.0, "seq_length": 40,
    "deepseek_v4": TINY | {"hc_sinkhorn_iters": 4},
}  # fmt: skip


def whole_weights(model) -> dict[str, np.ndarray]:
    """The whole parameters on every rank; parts that several ranks hold must be equal."""
    from train.deepseek_v4.weights import whole_tensors

    # Counts of float32 are exact here, and those of a table of ids too.
    parts = [(w.name, w.experts, w.tensor.detach().float().numpy()) for w in whole_tensors(model)]
    gathered: list = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, parts)
    whole: dict[str, np.ndarray] = {}
    for name, experts, part in (item for rank in gathered for item in rank):
        pieces = {name: part} if experts is None else {f"{name}.{e}": part[i] for i, e in enumerate(experts)}
        for key, value in pieces.items():
            np.testing.assert_array_equal(whole.setdefault(key, value), value, err_msg=f"replicas of {key} differ")
    return whole


if __name__ == "__main__":
    layout_worker.whole_weights = whole_weights
    layout_worker.main()
