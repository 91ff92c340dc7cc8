"""From a run to its card and its recipe, and the proof that the recipe is right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from databuild.errors import IntegrityError
from train.recipe.card import verification_card
from train.recipe.check import check_recipe, wrong
from train.recipe.evidence import level
from train.recipe.from_run import recipe_from_run
from train.recipe.load import dump_recipe, dump_yaml, parse_recipe
from train.recipe.run_files import read_run
from train.recipe.write import write_folder


def make_card(folder: Path, out: Path, *, overwrite: bool, golden: Path | None = None) -> dict[str, Any]:
    """Write recipe.yaml and card.yaml of a run into out; {folder, status, reason, right, missing}.

    golden: the run that its loss curve is judged by.
    UsageError, IntegrityError: see read_run. IntegrityError too if the recipe does not pass the check: then the run's own
    figures contradict each other.
    """
    run = read_run(folder)
    recipe = recipe_from_run(run, read_run(golden) if golden is not None else None)
    text = dump_recipe(recipe)
    findings = check_recipe(parse_recipe(text, "recipe.yaml"), manifest=run.manifest)
    if bad := wrong(findings):
        raise IntegrityError(
            f"the run's figures contradict each other: {bad[0].key}, {bad[0].formula}",
            where=str(folder),
            expected=str(bad[0].computed),
            found=str(bad[0].stated),
        )
    card = verification_card(run, recipe)
    header = "# Written by `python -m train card` from the files of a run.\n"
    write_folder(out, {"card.yaml": header + dump_yaml(card), "recipe.yaml": header + text}, overwrite=overwrite)
    return {
        "folder": str(out),
        "status": recipe.status,
        "reason": level(recipe)[1],
        "right": sum(finding.verdict == "right" for finding in findings),
        "missing": run.missing,
    }
