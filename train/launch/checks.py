"""What is checked before a start: rows, layout, GPUs, memory. Each check says whether it passed, and why."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from databuild.errors import DatabuildError, UsageError
from manifests.model import Manifest
from train.launch.recipe_view import RecipeView

State = Literal["pass", "FAIL", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """state: skip is for what cannot be known here, reason says why."""

    name: str
    state: State
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU of this machine; GiB."""

    index: int
    total: float
    free: float


def check(name: str, good: bool, reason: str) -> Check:
    """A check with its outcome."""
    return Check(name=name, state="pass" if good else "FAIL", reason=reason)


def check_rows(view: RecipeView, rows: Path, *, other_rows: bool) -> list[Check]:
    """The build is whole, is the recipe's, and fits its row length and batch. other_rows: another build is meant."""
    from databuild.verify import load_manifest, verify

    try:
        manifest = load_manifest(rows)
        verify(rows, level=1)
    except DatabuildError as error:
        return [check("rows are whole", False, f"{error.what}: {error.found or error.where or ''}".rstrip(": "))]
    found = [check("rows are whole", True, f"manifest and {len(manifest.files)} file digests")]
    return [*found, _identity(view, manifest, other_rows), *_amounts(view, manifest)]


def _identity(view: RecipeView, manifest: Manifest, other_rows: bool) -> Check:
    own, wanted = manifest.rows.rows_sha256, view.rows_sha256
    if wanted is None:
        return Check(name="rows are the recipe's", state="skip", reason="the recipe names no rows_sha256")
    if own == wanted:
        return check("rows are the recipe's", True, f"rows_sha256 {own[:16]}…")
    if other_rows:
        reason = f"{own[:16]}… instead of {wanted[:16]}…, as --other-rows allows: losses are not those of the recipe"
        return Check(name="rows are the recipe's", state="skip", reason=reason)
    return check(
        "rows are the recipe's", False, f"{own[:16]}… instead of {wanted[:16]}…; --other-rows if that is meant"
    )


def _amounts(view: RecipeView, manifest: Manifest) -> list[Check]:
    tokens, rows = manifest.rows.row_tokens, manifest.rows.rows
    needed = (view.steps or 1) * view.global_batch_size
    return [
        check("row length", tokens == view.row_tokens, f"{tokens:,} tokens, the recipe has {view.row_tokens:,}"),
        check(
            "rows for a batch",
            rows >= view.global_batch_size,
            f"{rows:,} rows, batch {view.global_batch_size:,}; {needed / rows:.2f} epochs",
        ),
    ]


def check_layout(view: RecipeView) -> list[Check]:
    """Everything that must divide, whatever the engine."""
    ranks, experts, per_round = view.tp * view.pp * view.cp, view.etp * view.ep * view.pp, 0
    found = [
        check("tp x pp x cp divides the GPUs", view.gpus % ranks == 0, f"{view.gpus} GPUs, {ranks} ranks a copy"),
        check("etp x ep x pp divides the GPUs", view.gpus % experts == 0, f"{view.gpus} GPUs, {experts} ranks"),
        check("nodes", view.gpus % view.gpus_per_node == 0, f"{view.gpus} GPUs, {view.gpus_per_node} a node"),
        check("tp stays in a node", view.tp <= view.gpus_per_node, f"tp {view.tp}, {view.gpus_per_node} GPUs a node"),
    ]
    if view.data_parallel:
        per_round = view.data_parallel * view.rows_per_microbatch
        found.append(
            check(
                "dp x micro-batch divides the batch",
                view.global_batch_size % per_round == 0,
                f"batch {view.global_batch_size}, {view.data_parallel} x {view.rows_per_microbatch}",
            )
        )
        if view.dp is not None:
            reason = f"{view.dp} in the recipe, {view.data_parallel} by the GPUs"
            found.append(check("dp is what the GPUs give", view.dp == view.data_parallel, reason))
    cut = view.tp * view.cp if view.sequence_parallel else 1
    cut = max(cut, 2 * view.cp if view.cp > 1 else 1)
    return [
        *found,
        check("the row can be cut", view.row_tokens % cut == 0, f"{view.row_tokens:,} tokens in {cut} parts"),
    ]


def check_memory(view: RecipeView, model: str | None, *, any_memory: bool) -> Check:
    """The planner's peak against the recipe's GPU. any_memory: start although it says no."""
    from train.planner.recipes import judge_recipe, preset_of

    if (model or preset_of(view.model)) is None or view.memory_gib is None:
        return Check(
            name="memory of the plan", state="skip", reason="no preset for this model, or no memory in the recipe"
        )
    try:
        planned, reasons, _ = judge_recipe(view, model)
    except UsageError as error:
        return check("memory of the plan", False, f"{error.what}: {error.found}, expected {error.expected}")
    if planned is None:
        return check("memory of the plan", False, "; ".join(reasons))
    reason = (
        f"about {planned.memory.peak:.0f} of {planned.limit:.0f} GiB on stage {planned.memory.stage}: {planned.status}"
    )
    if planned.status == "no" and any_memory:
        return Check(name="memory of the plan", state="skip", reason=f"{reason}, as --any-memory allows")
    return check("memory of the plan", planned.status != "no", reason)


def planned_peak(view: RecipeView, model: str | None) -> float | None:
    """GiB that the plan needs on a GPU; None where there is no plan."""
    from train.planner.recipes import judge_recipe, preset_of

    if (model or preset_of(view.model)) is None or view.memory_gib is None:
        return None
    try:
        planned, _, _ = judge_recipe(view, model)
    except UsageError:
        return None
    return planned.memory.peak if planned else None


def check_gpus(view: RecipeView, *, here: bool, cpu: bool, peak_gib: float | None) -> list[Check]:
    """The GPUs of this machine, where the run starts on it. peak_gib: what the plan needs on each."""
    if cpu or not here:
        reason = "the run is on the CPU" if cpu else "the job starts on other machines"
        return [Check(name=name, state="skip", reason=reason) for name in ("GPUs", "free memory")]
    gpus, wanted = find_gpus(), view.gpus_per_node
    found = [check("GPUs", len(gpus) >= wanted, f"{len(gpus)} here, {wanted} needed")]
    if not gpus:
        return [*found, Check(name="free memory", state="skip", reason="no GPU here")]
    least = min(gpu.free for gpu in gpus[:wanted])
    needed = peak_gib if peak_gib is not None else 0.9 * min(gpu.total for gpu in gpus[:wanted])
    what = "the plan needs" if peak_gib is not None else "nine tenths of a GPU are"
    return [*found, check("free memory", least >= needed, f"{least:.0f} GiB free, {what} {needed:.0f}")]


def find_gpus() -> list[Gpu]:
    """What nvidia-smi lists; nothing where there is none."""
    query = ["nvidia-smi", "--query-gpu=index,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    gpus = []
    for line in done.stdout.splitlines() if done.returncode == 0 else []:
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3 and all(part.isdigit() for part in parts):
            gpus.append(Gpu(index=int(parts[0]), total=int(parts[1]) / 1024, free=int(parts[2]) / 1024))
    return gpus
