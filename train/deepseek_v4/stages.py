"""Which layers a pipeline stage has."""

from __future__ import annotations

from train.config import TrainConfig


def stage_layers(c: TrainConfig, stage: int) -> range:
    """The layers of a stage, counted from 0: first_stage_layers, last_stage_layers, the rest in equal parts."""
    ends = [n for n in (c.first_stage_layers, c.last_stage_layers) if n is not None]
    if c.pp == 1:
        return range(c.num_layers)
    between = (c.num_layers - sum(ends)) // max(c.pp - len(ends), 1)
    sizes = [between] * c.pp
    if c.first_stage_layers is not None:
        sizes[0] = c.first_stage_layers
    if c.last_stage_layers is not None:
        sizes[-1] = c.last_stage_layers
    start = sum(sizes[:stage])
    return range(start, start + sizes[stage])
