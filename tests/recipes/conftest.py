"""What the tests of recipes share."""

import shutil
from pathlib import Path

import pytest

GOLDEN_RUN = Path(__file__).parents[1] / "golden" / "run-tiny"


@pytest.fixture
def golden_run(tmp_path):
    """A copy of what a real run left."""
    return Path(shutil.copytree(GOLDEN_RUN, tmp_path / "run"))


@pytest.fixture(scope="session")
def published():
    """The shipped H200 recipe as plain content, to change."""
    from train.recipe.load import load_recipe
    from train.recipe.shipped import find_recipe

    return load_recipe(find_recipe("deepseek-v4-flash-64h200-tp2-pp4-ep8")).recipe.model_dump(mode="json")
