"""The plan: every legal layout with its memory, judged and ranked; which limits refuse the rest; rows against tp."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from train.planner.coefficients import FITTED, MARGIN, RESERVE
from train.planner.legal import Wanted, candidates, refusals
from train.planner.memory import Layout, Memory, memory
from train.planner.presets import Model

RANKING = (
    "layouts that fit, then tight ones; among them the fewest layer passes a step, (micro-batches + pp - 1) x layers of the "
    "largest stage: with short rows a step is bound by launching kernels, so fewer micro-batches per rank beat tp; "
    "then the least tp x cp (fewer collectives), then the least ep, then the most memory left"
)

USABLE = ("fits", "tight")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A legal layout. status: fits; tight, over: within the model's error of the limit, under or above it; no."""

    layout: Layout
    micro_batches: int
    bubble: float
    passes: int
    memory: Memory
    limit: float
    status: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON; memory in GiB."""
        x, m = self.layout, self.memory
        sizes = {k: getattr(x, k) for k in ("tp", "pp", "cp", "ep", "etp", "dp", "sequence_parallel")}
        parts = ("weights", "gradients", "optimizer", "activations", "logits", "working", "peak")
        return {
            **sizes,
            "stages": list(x.stages),
            "micro_batches_per_rank": self.micro_batches,
            "bubble": self.bubble,
            "layer_passes": self.passes,
            "memory_gib": {k: round(getattr(m, k), 2) for k in parts} | {"stage": m.stage},
            "status": self.status,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """legal: ranked, one for each (tp, pp, cp, ep, etp), the best split of the layers. refused: how many for which reason."""

    want: Wanted
    limit: float
    legal: tuple[Planned, ...]
    refused: dict[str, int]

    @property
    def usable(self) -> list[Planned]:
        """Those that fit, tight ones included."""
        return [p for p in self.legal if p.status in USABLE]

    def best(self, tp: int) -> Planned | None:
        """The best layout with this tp: one that fits, else the one nearest to fitting."""
        same = [p for p in self.legal if p.layout.tp == tp]
        usable = [p for p in same if p.status in USABLE]
        return usable[0] if usable else min(same, key=lambda p: p.memory.peak, default=None)


def limit_of(memory_gib: float) -> float:
    """GiB that tensors may take on a GPU: what the allocator holds beside them is left out."""
    return memory_gib * (1 - RESERVE)


def judge(model: Model, layout: Layout, want: Wanted, memory_gib: float) -> Planned:
    """One legal layout with its memory and status."""
    batches = layout.micro_batches(want.global_batch_size)
    found = memory(model.shape, layout, model.training, want.row_tokens, batches, FITTED)
    limit = limit_of(memory_gib)
    status = "no"
    if found.peak <= limit * (1 - MARGIN):
        status = "fits"
    elif found.peak <= limit:
        status = "tight"
    elif found.peak <= limit * (1 + MARGIN):
        status = "over"
    return Planned(
        layout=layout,
        micro_batches=batches,
        bubble=layout.bubble(want.global_batch_size),
        passes=(batches + layout.pp - 1) * max(layout.stages),
        memory=found,
        limit=limit,
        status=status,
    )


def make_plan(model: Model, want: Wanted, memory_gib: float, fixed: Mapping[str, int] | None = None) -> Plan:
    """All layouts of a model on these GPUs; fixed: sizes (pp, cp, ep, etp) that are given."""
    refused: Counter[str] = Counter()
    best: dict[tuple[int, ...], Planned] = {}
    for layout in candidates(model.shape, want):
        if any(getattr(layout, name) != size for sizes in (fixed or {}, model.only) for name, size in sizes.items()):
            continue
        reasons = refusals(model.shape, layout, want)
        if reasons:
            refused[reasons[0]] += 1
            continue
        planned = judge(model, layout, want, memory_gib)
        key = (layout.tp, layout.pp, layout.cp, layout.ep, layout.etp)
        if key not in best or _rank(planned) < _rank(best[key]):
            best[key] = planned
    legal = sorted(best.values(), key=_rank)
    for planned in legal:
        if planned.status not in USABLE:
            refused[f"memory: {_largest(planned.memory)} take most"] += 1
    return Plan(
        want=want,
        limit=limit_of(memory_gib),
        legal=tuple(legal),
        refused=dict(sorted(refused.items(), key=lambda item: (-item[1], item[0]))),
    )


def _rank(p: Planned) -> tuple[Any, ...]:
    x = p.layout
    order = ("fits", "tight", "over", "no").index(p.status)
    return (order, p.passes, x.tp * x.cp, x.ep, x.etp, p.memory.peak, x.tp, x.pp)


def _largest(m: Memory) -> str:
    parts = {"weights, gradients and optimizer": m.weights + m.gradients + m.optimizer, "activations": m.activations}
    parts["logits"] = m.logits if m.logits > m.working else 0.0
    parts["a layer at work"] = m.working if m.working >= m.logits else 0.0
    return max(parts, key=lambda name: parts[name])


def inherited_rows_warning(
    row_tokens: int, inherited_row_tokens: int, layout: Sequence[Any], inherited: Sequence[Any]
) -> str | None:
    """A warning where a recipe takes over another's layout and only makes the rows longer; None if there is nothing to say."""
    if row_tokens <= inherited_row_tokens or tuple(layout) != tuple(inherited):
        return None
    return (
        f"rows grow from {inherited_row_tokens:,} to {row_tokens:,} tokens and the layout is inherited: a layout belongs to a "
        "row length and a GPU; what fitted before need not fit now"
    )
