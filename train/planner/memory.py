"""How much memory a layout takes on the GPU that holds the most: what is known exactly, and three fitted coefficients.

peak = weights + gradients + optimizer + stored activations + max(logits, one layer at work)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from train.planner.shape import Layer, Shape

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """What train.planner.fit gives; bytes."""

    saved: float
    """per number that a layer keeps for its backward pass, without recompute"""
    logit: float
    """per logit of the rows in flight through the loss"""
    working: float
    """per number of one layer that is computed again, with its gradients"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What training keeps for each parameter, in bytes, and how.

    Weights are bf16. gradient: 4 for fp32 main gradients. optimizer: 12 for fp32 weights and two moments, cut over the
    data-parallel ranks if distributed; 0 if it lives on the CPU.
    """

    weight: float = 2
    gradient: float = 4
    optimizer: float = 12
    distributed: bool = True
    recompute: str = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A layout of gpus processes; stages: layers of each pipeline stage."""

    gpus: int
    tp: int = 1
    pp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    stages: tuple[int, ...]
    sequence_parallel: bool = False
    micro_batch_size: int = 1

    @property
    def dp(self) -> int:
        """Copies of the model that read different rows."""
        return self.gpus // (self.tp * self.pp * self.cp)

    @property
    def expert_dp(self) -> int:
        """Copies of each expert."""
        return self.gpus // (self.etp * self.ep * self.pp)

    def micro_batches(self, global_batch_size: int) -> int:
        """Micro-batches of each rank in a step."""
        return global_batch_size // (self.dp * self.micro_batch_size)

    def bubble(self, global_batch_size: int) -> float:
        """Share of a step that a pipeline stage waits, 1F1B: (pp - 1) / (m + pp - 1)."""
        return (self.pp - 1) / (self.micro_batches(global_batch_size) + self.pp - 1)

    def __str__(self) -> str:
        parts = [f"TP{self.tp}", f"PP{self.pp}", f"CP{self.cp}"]
        parts += [f"EP{self.ep}"] if self.ep > 1 else []
        parts += [f"ETP{self.etp}"] if self.etp > 1 else []
        parts += [f"DP{self.dp}"]
        if len(set(self.stages)) > 1:
            parts.append(f"({'/'.join(map(str, self.stages))})")
        return " ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """GiB on a GPU of one pipeline stage."""

    stage: int
    weights: float
    gradients: float
    optimizer: float
    activations: float
    logits: float
    working: float

    @property
    def peak(self) -> float:
        """Logits and a layer at work are not there at the same time."""
        states = self.weights + self.gradients + self.optimizer
        return states + self.activations + max(self.logits, self.working)


def memory(
    shape: Shape, layout: Layout, training: Training, row_tokens: int, num_micro_batches: int, fitted: Coefficients
) -> Memory:
    """The stage that needs the most. num_micro_batches: of each rank in a step."""
    stages = [_stage(shape, layout, training, row_tokens, num_micro_batches, fitted, i) for i in range(layout.pp)]
    return max(stages, key=lambda m: m.peak)


def _stage(
    shape: Shape,
    layout: Layout,
    training: Training,
    row_tokens: int,
    micro_batches: int,
    fitted: Coefficients,
    stage: int,
) -> Memory:
    first = sum(layout.stages[:stage])
    layers: Sequence[Layer] = shape.layers[first : first + layout.stages[stage]]
    is_last = stage == layout.pp - 1
    extra = shape.extra if is_last else ()
    table = shape.vocab_size * shape.hidden_size / layout.tp
    tables = (stage == 0) + is_last
    if shape.tied and layout.pp == 1:
        tables = 1
    elif extra and stage != 0:
        tables += 1  # a prediction layer embeds its tokens
    dense = tables * table + sum(x.sharded / layout.tp + x.replicated for x in (*layers, *extra))
    experts = sum(x.experts for x in (*layers, *extra)) / (layout.ep * layout.etp)
    share = (layout.dp * layout.cp, layout.expert_dp) if training.distributed else (1, 1)
    tokens = layout.micro_batch_size * row_tokens / layout.cp
    # 1F1B: a stage starts as many micro-batches as there are stages behind it before the first comes back.
    in_flight = min(micro_batches, layout.pp - stage)
    # Streams of hyper-connections are not cut over the sequence.
    cut = layout.tp if layout.sequence_parallel and shape.streams == 1 else 1
    numbers = [x.residual / cut + x.inner / layout.tp for x in (*layers, *extra)]
    if training.recompute == "full":
        stored = 2 * shape.streams * shape.hidden_size / cut * len(numbers) * tokens * in_flight
        working = fitted.working * max(numbers) * tokens
    else:
        stored, working = fitted.saved * sum(numbers) * tokens * in_flight, 0.0
    return Memory(
        stage=stage,
        weights=training.weight * (dense + experts) / GIB,
        gradients=training.gradient * (dense + experts) / GIB,
        optimizer=training.optimizer * (dense / share[0] + experts / share[1]) / GIB,
        activations=stored / GIB,
        logits=fitted.logit * tokens * shape.vocab_size / layout.tp * is_last / GIB,
        working=working / GIB,
    )
