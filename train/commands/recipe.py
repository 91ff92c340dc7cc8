"""`python -m train recipe check | diff | show`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from train.commands.app import app, show_result

recipe_app = typer.Typer(
    help="Recipe files: check every figure, tell two apart, show one.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(recipe_app, name="recipe")

JsonOption = Annotated[bool, typer.Option("--json", help="One JSON value on stdout.")]
WRONG, DIFFERENT = 1, 1


@recipe_app.command(epilog="Example: python -m train recipe check my.yaml --price-per-gpu-hour 7.912")
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="[FILE]...", help="Recipes, or names of shipped ones.", show_default="all shipped"),
    ] = [],
    price: Annotated[
        float | None, typer.Option("--price-per-gpu-hour", help="Dollars; proves usd_per_million_tokens.", min=1e-6)
    ] = None,
    peak: Annotated[float | None, typer.Option("--peak-tflops", help="Of one GPU, for MFU.", min=1e-6)] = None,
    rows: Annotated[
        Path | None, typer.Option("--rows", metavar="DIR", help="A build: proves what the data set says.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only what is wrong.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Recompute every derived figure and print it beside what the file says. Exit 1 if one is wrong, 2 if a file is no recipe."""
    import math

    from databuild.errors import UsageError
    from databuild.verify import load_manifest
    from train.recipe.check import check_recipe, wrong
    from train.recipe.load import load_recipe
    from train.recipe.mutate import unproven
    from train.recipe.report import check_json, check_text
    from train.recipe.shipped import find_recipe, shipped_recipes
    from train.recipe.underived import reason_for

    for option, value in (("--price-per-gpu-hour", price), ("--peak-tflops", peak)):
        if value is not None and not math.isfinite(value):
            raise UsageError(f"{option} is not a finite number", found=str(value))
    manifest = load_manifest(rows) if rows is not None else None
    paths = [find_recipe(name) for name in files] or shipped_recipes()
    stated = [load_recipe(path) for path in paths]  # all of them, before anything is printed
    values, texts, bad = [], [], False
    for path, recipe in zip(paths, stated, strict=True):
        findings = check_recipe(recipe, usd_per_gpu_hour=price, peak_tflops=peak, manifest=manifest)
        bad = bad or bool(wrong(findings))
        # Of a recipe that is wrong already, every change would look caught.
        loose = (
            {}
            if quiet or wrong(findings)
            else unproven(recipe.recipe, usd_per_gpu_hour=price, peak_tflops=peak, manifest=manifest)
        )
        taken = {leaf: reason_for(path.stem, leaf, bounded=bounded) for leaf, bounded in loose.items()}
        values.append(check_json(str(path), findings, taken))
        texts.append(check_text(str(path), findings, taken, quiet=quiet))
    show_result(values, "\n".join(texts), as_json)
    if bad:
        raise typer.Exit(WRONG)


@recipe_app.command(epilog="Example: python -m train recipe diff a.yaml b.yaml")
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="A recipe.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    as_json: JsonOption = False,
) -> None:
    """Class every differing setting as layout, numerics or neither. Exit 1 if the two runs cannot be compared."""
    import dataclasses

    from train.recipe.diff import comparable, diff_recipes, rows_known
    from train.recipe.load import load_recipe
    from train.recipe.report import diff_text, verdict_text
    from train.recipe.shipped import find_recipe

    left, right = find_recipe(a), find_recipe(b)
    one, other = load_recipe(left).recipe, load_recipe(right).recipe
    differences, known = diff_recipes(one, other), rows_known(one, other)
    value = {
        "comparable": comparable(differences),
        "rows_known": known,
        "verdict": verdict_text(differences, rows_known=known),
        "differences": [dataclasses.asdict(difference) for difference in differences],
    }
    show_result(value, diff_text(str(left), str(right), differences, rows_known=known), as_json)
    if not comparable(differences):
        raise typer.Exit(DIFFERENT)


@recipe_app.command(epilog="Example: python -m train recipe show deepseek-v4-flash-64h200-tp2-pp4-ep8")
def show(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A recipe, or the name of a shipped one.")],
    as_json: JsonOption = False,
) -> None:
    """Print a recipe as it is understood: every key, in the order of the schema."""
    from train.recipe.load import dump_recipe, load_recipe
    from train.recipe.shipped import find_recipe

    recipe = load_recipe(find_recipe(file)).recipe
    show_result(recipe.model_dump(mode="json"), dump_recipe(recipe).rstrip("\n"), as_json)
