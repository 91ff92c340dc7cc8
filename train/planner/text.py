"""A plan as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from train.planner.coefficients import FITTED, MARGIN
from train.planner.legal import Wanted
from train.planner.plan import RANKING, Plan, Planned
from train.planner.presets import Model


def assumptions(model: Model) -> list[str]:
    """Everything a figure stands on."""
    return [
        f"{model.shape.name}: {model.shape.parameters / 1e9:.2f} B parameters, {len(model.shape.layers)} layers",
        *model.assumptions,
        f"recompute {model.training.recompute}; sequence parallelism wherever tp > 1; 1F1B, no interleaving, no offload",
        f"fitted: {FITTED.saved} bytes per number kept, {FITTED.logit} per logit, {FITTED.working} per number of a layer "
        "computed again (train/planner/README.md)",
        f"tight, over: within {100 * MARGIN:.0f} % of the limit, under or above it: the error of the model on held-out peaks",
        f"order: {RANKING}",
    ]


def plan_text(model: Model, plan: Plan, most: int) -> str:
    """The best layouts of one row length, and what refuses the others."""
    lines = [f"rows of {plan.want.row_tokens:,} tokens, {plan.limit:.1f} GiB for tensors"]
    shown = (plan.usable or list(plan.legal))[:most]
    head = (
        f"  {'layout':<34} {'mb/rank':>7} {'bubble':>7} {'W+G+O':>6} {'act':>6} {'logits':>6} {'layer':>6} {'peak':>6}"
    )
    lines += [head, *(_row(p) for p in shown)] if shown else ["  no legal layout"]
    if not plan.usable and shown:
        lines.append("  none fits")
    lines.append(f"  {len(plan.usable)} of {len(plan.legal)} legal layouts fit; refused:")
    lines += [f"    {count:>5}  {reason}" for reason, count in list(plan.refused.items())[:8]]
    return "\n".join(lines)


def _row(p: Planned) -> str:
    m = p.memory
    states = m.weights + m.gradients + m.optimizer
    return (
        f"  {p.layout!s:<34} {p.micro_batches:>7} {100 * p.bubble:>6.1f}% {states:>6.1f} {m.activations:>6.1f} "
        f"{m.logits:>6.1f} {m.working:>6.1f} {m.peak:>6.1f}  {p.status}"
    )


def sweep_table(plans: Sequence[Plan], tps: Sequence[int]) -> str:
    """Which tp fits which rows: the peak of the best layout with that tp, in GiB."""
    lines = ["peak of the best layout by tp and row length, GiB (! tight, ? over but within the error, x does not fit)"]
    lines.append(f"  {'row tokens':>10} " + " ".join(f"{f'TP{tp}':>8}" for tp in tps))
    for plan in plans:
        cells = []
        for tp in tps:
            best = plan.best(tp)
            mark = {"fits": " ", "tight": "!", "over": "?", "no": "x"}[best.status] if best else ""
            cells.append(f"{best.memory.peak:>7.1f}{mark}" if best else f"{'-':>8}")
        lines.append(f"  {plan.want.row_tokens:>10,} " + " ".join(cells))
    return "\n".join(lines)


def as_dict(model: Model, plans: Sequence[Plan], memory_gib: float, most: int) -> dict[str, Any]:
    """The plans for JSON."""
    return {
        "model": model.shape.name,
        "parameters": model.shape.parameters,
        "memory_gib": memory_gib,
        "assumptions": assumptions(model),
        "plans": [_plan_dict(plan, plan.want, most) for plan in plans],
    }


def _plan_dict(plan: Plan, want: Wanted, most: int) -> dict[str, Any]:
    tps = sorted({p.layout.tp for p in plan.legal})
    return {
        "row_tokens": want.row_tokens,
        "limit_gib": round(plan.limit, 2),
        "layouts": [p.as_dict() for p in plan.legal[:most]],
        "best_by_tp": {str(tp): best.as_dict() for tp in tps if (best := plan.best(tp))},
        "legal": len(plan.legal),
        "usable": len(plan.usable),
        "refused": plan.refused,
    }
