"""The layout of a recipe in the planner's words: whether it fits, and whether it was only inherited."""

from __future__ import annotations

import dataclasses

from databuild.errors import UsageError
from train.launch.recipe_view import RecipeView
from train.planner.legal import Wanted, refusals, stage_choices
from train.planner.memory import Layout
from train.planner.plan import Planned, inherited_rows_warning, judge
from train.planner.presets import find_model, names
from train.planner.text import assumptions


def preset_of(model: str) -> str | None:
    """The preset of a model as recipes name it; V4.1 before V4."""
    folded = model.lower().replace("_", "-").replace(" ", "-").rpartition("/")[2]
    return next((name for name in sorted(names(), key=len, reverse=True) if folded.startswith(name)), None)


def layout_of(view: RecipeView, layers: int) -> Layout:
    """The recipe's layout; stages from layer_split, else the evenest."""
    first, last, middles = view.first_layers, view.last_layers, view.pp - 2
    stages = stage_choices(layers, view.pp)[0] if view.pp <= layers else (layers,)
    if first and last and view.pp > 1:
        rest = layers - first - last
        if (middles and (rest % middles or rest < middles)) or (not middles and rest):
            raise UsageError(
                "layer_split does not add up",
                where=view.path,
                expected=f"{layers} layers in {view.pp} stages",
                found=f"first {first}, last {last}",
            )
        stages = (first, *((rest // middles,) * middles if middles else ()), last)
    return Layout(
        gpus=view.gpus,
        tp=view.tp,
        pp=view.pp,
        cp=view.cp,
        ep=view.ep,
        etp=view.etp,
        stages=stages,
        sequence_parallel=view.sequence_parallel,
        micro_batch_size=view.rows_per_microbatch,
    )


def judge_recipe(
    view: RecipeView, model_name: str | None, memory_gib: float | None = None
) -> tuple[Planned | None, list[str], list[str]]:
    """(the layout judged, or None if it is illegal; why it is refused; what was assumed)."""
    name = model_name or preset_of(view.model)
    if name is None:
        raise UsageError(
            "the recipe's model is no preset", where=view.path, found=view.model, next_step="give --model config.json"
        )
    model = find_model(name)
    if view.recompute is not None:
        model = dataclasses.replace(model, training=dataclasses.replace(model.training, recompute=view.recompute))
    want = Wanted(
        gpus=view.gpus,
        gpus_per_node=view.gpus_per_node,
        row_tokens=view.row_tokens,
        global_batch_size=view.global_batch_size,
        micro_batch_size=view.rows_per_microbatch,
    )
    layout = layout_of(view, len(model.shape.layers))
    reasons = refusals(model.shape, layout, want)
    memory = memory_gib or view.memory_gib
    if memory is None:
        raise UsageError(
            "the recipe does not say how much memory a GPU has", where=view.path, next_step="give --memory GIB"
        )
    assumed = assumptions(model)
    if model.training.recompute == "selective":
        assumed.append(
            "selective recompute and offload save what is not modelled: counted as none, so the peak is too high"
        )
    return (None if reasons else judge(model, layout, want, memory)), reasons, assumed


def inherited_warning(view: RecipeView, base: RecipeView) -> str | None:
    """See inherited_rows_warning."""
    return inherited_rows_warning(view.row_tokens, base.row_tokens, view.layout_key, base.layout_key)
