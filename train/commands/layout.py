"""`python -m train layout`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from train.commands.app import app, show_result


@app.command(
    epilog="Example: python -m train layout --model deepseek-v4.1-flash --gpus 16 --memory 139 "
    "--row-tokens 8192,24576,32768 --global-batch-size 128 --ep 16 --pp 1 --cp 1"
)
def layout(
    model: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="A preset, a .yaml of train.sft, or a checkpoint's config.json."),
    ] = None,
    gpus: Annotated[int | None, typer.Option(min=1, show_default=False)] = None,
    memory: Annotated[
        float | None,
        typer.Option(min=1, help="GiB of a GPU that programs can use.", show_default="139, an H200; the recipe's GPU"),
    ] = None,
    row_tokens: Annotated[
        str | None, typer.Option(metavar="N[,N...]", help="Row lengths; several give the table.", show_default=False)
    ] = None,
    global_batch_size: Annotated[int | None, typer.Option(min=1, help="Rows of a step.", show_default=False)] = None,
    micro_batch_size: Annotated[int, typer.Option(min=1, help="Rows of a forward pass.")] = 1,
    gpus_per_node: Annotated[int, typer.Option(min=1, help="tp stays within a node.")] = 8,
    pp: Annotated[int | None, typer.Option(min=1, help="Only this.", show_default=False)] = None,
    cp: Annotated[int | None, typer.Option(min=1, help="Only this.", show_default=False)] = None,
    ep: Annotated[int | None, typer.Option(min=1, help="Only this.", show_default=False)] = None,
    etp: Annotated[int | None, typer.Option(min=1, help="Only this.", show_default=False)] = None,
    recipe: Annotated[Path | None, typer.Option(metavar="FILE", help="Judge the layout of a recipe instead.")] = None,
    inherits: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The recipe that the recipe took its layout from.")
    ] = None,
    show: Annotated[int, typer.Option(min=1, help="How many layouts of each row length to show.")] = 8,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Which layouts of a model fit on these GPUs, and which limit refuses the others."""
    from databuild.errors import UsageError
    from train.planner.legal import Wanted
    from train.planner.plan import make_plan
    from train.planner.presets import find_model
    from train.planner.text import as_dict, assumptions, plan_text, sweep_table

    if recipe is not None:
        _judge_recipe(recipe, inherits, model, memory, as_json)
        return
    if inherits is not None:
        raise UsageError("--inherits needs --recipe")
    needed = {"--model": model, "--gpus": gpus, "--row-tokens": row_tokens, "--global-batch-size": global_batch_size}
    if missing := [name for name, value in needed.items() if value is None]:
        raise UsageError(f"{', '.join(missing)} is missing", next_step="or give --recipe FILE")
    assert model and gpus and row_tokens and global_batch_size
    found, memory = find_model(model), memory or 139.0
    fixed = {"pp": pp, "cp": cp, "ep": ep, "etp": etp}
    plans = []
    for tokens in _lengths(row_tokens):
        want = Wanted(
            gpus=gpus,
            gpus_per_node=min(gpus_per_node, gpus),
            row_tokens=tokens,
            global_batch_size=global_batch_size,
            micro_batch_size=micro_batch_size,
        )
        plans.append(make_plan(found, want, memory, {k: v for k, v in fixed.items() if v is not None}))
    tps = sorted({p.layout.tp for plan in plans for p in plan.legal})
    parts = ["\n".join(f"- {line}" for line in assumptions(found)), *(plan_text(found, p, show) for p in plans)]
    if len(plans) > 1:
        parts.append(sweep_table(plans, tps))
    show_result(as_dict(found, plans, memory, show), "\n\n".join(parts), as_json)


def _lengths(text: str) -> list[int]:
    from databuild.errors import UsageError

    try:
        lengths = [int(part) for part in text.split(",")]
    except ValueError:
        lengths = []
    if not lengths or min(lengths) < 2:
        raise UsageError("--row-tokens is not a list of row lengths", expected="8192 or 8192,16384", found=text)
    return lengths


def _judge_recipe(recipe: Path, inherits: Path | None, model: str | None, memory: float | None, as_json: bool) -> None:
    from train.commands.table import as_table
    from train.launch.recipe_view import load_recipe
    from train.planner.recipes import inherited_warning, judge_recipe

    view = load_recipe(recipe)
    planned, reasons, assumed = judge_recipe(view, model, memory)
    base = inherits or view.inherits
    warning = inherited_warning(view, load_recipe(base)) if base else None
    value: dict[str, Any] = {"recipe": str(recipe), "refused": reasons, "warnings": [warning] if warning else []}
    value |= {"layout": planned.as_dict() if planned else None, "assumptions": assumed}
    lines = [("recipe", str(recipe)), *((("refused", reason)) for reason in reasons)]
    if planned:
        m = planned.memory
        lines += [
            ("layout", str(planned.layout)),
            ("micro-batches per rank", f"{planned.micro_batches}, bubble {100 * planned.bubble:.1f} %"),
            ("peak", f"{m.peak:.1f} GiB of {planned.limit:.1f} on stage {m.stage}: {planned.status}"),
        ]
    lines += [("assumed", line) for line in assumed]
    lines += [("WARNING", warning)] if warning else []
    show_result(value, as_table(lines), as_json)
    raise typer.Exit(1 if reasons or (planned and planned.status == "no") else 0)
