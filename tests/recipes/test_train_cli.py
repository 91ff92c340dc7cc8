"""`python -m train`: exit codes, readable errors, JSON, and a help that loads nothing heavy."""

import json
import subprocess
import sys

from train.recipe.shipped import find_recipe, shipped_recipes

H200 = "deepseek-v4-flash-64h200-tp2-pp4-ep8"


def wrong_recipe(folder):
    path = folder / "mine.yaml"
    path.write_text(
        find_recipe(H200).read_text(encoding="utf-8").replace("mfu: 0.0651", "mfu: 0.0751"), encoding="utf-8"
    )
    return path


def test_help_loads_neither_torch_nor_yaml_nor_pydantic():
    code = (
        "import sys; from train.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(sorted({'torch', 'megatron', 'yaml', 'pydantic', 'numpy', 'pyarrow'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    assert "recipe" in done.stdout and "card" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_it_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "train", "recipe", "check", "--quiet"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len([line for line in done.stdout.splitlines() if line.endswith("0 wrong")]) >= len(shipped_recipes()) - 1


def test_check_prints_both_numbers_the_formula_and_the_rounding_rule(train_cli, tmp_path):
    ran = train_cli("recipe", "check", wrong_recipe(tmp_path))
    assert ran.code == 1
    (line,) = [line for line in ran.out.splitlines() if "result.mfu " in line]
    assert "file 0.0751" in line and "computed 0.0650575" in line and "6 * N * tokens/s/GPU / peak" in line
    assert "rounding:" in ran.out


def test_check_as_json(train_cli, tmp_path):
    ran = train_cli("recipe", "check", wrong_recipe(tmp_path), H200, "--json")
    assert ran.code == 1
    mine, shipped = json.loads(ran.out)
    assert (mine["wrong"], shipped["wrong"]) == (1, 0)
    assert "result.usd_per_million_tokens" in shipped["taken_as_stated"]
    ran = train_cli("recipe", "check", H200, "--json", "--price-per-gpu-hour", "7.912")
    assert "result.usd_per_million_tokens" not in json.loads(ran.out)[0]["taken_as_stated"]


def test_check_against_no_build(train_cli):
    ran = train_cli("recipe", "check", H200, "--rows", "nowhere")
    assert ran.code == 3
    assert ran.err.startswith("train: source error: there is no build here")


def test_numbers_that_are_none_are_refused(train_cli):
    for value in ("nan", "inf", "0", "-1", "x"):
        ran = train_cli("recipe", "check", H200, "--price-per-gpu-hour", value)
        assert (ran.code, ran.out) == (2, "")


def test_a_package_that_is_not_there_is_named(train_cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    for name in [name for name in sys.modules if name.startswith("train.")]:
        if name.startswith(("train.recipe", "train.yaml12", "train.config")):
            monkeypatch.delitem(sys.modules, name)
    ran = train_cli("recipe", "check", H200)
    assert ran.code == 1
    assert ran.err == "train: yaml is not installed\n  next:     pip install pyyaml\n"


def test_what_is_no_recipe_is_a_usage_error(train_cli, tmp_path):
    (tmp_path / "r.yaml").write_text("a: 1\na: 2\n")
    for arguments in (
        ["check", tmp_path / "r.yaml"],
        ["show", "nothing"],
        ["diff", H200, "nothing"],
        ["check", "--bad"],
    ):
        ran = train_cli("recipe", *arguments)
        assert ran.code == 2
        assert ran.out == ""
        assert "Traceback" not in ran.err
    assert train_cli("recipe", "show", "nothing").err.startswith("train: usage error: there is no such recipe")
    assert "Traceback" in train_cli("recipe", "show", "nothing", "--debug").err


def test_diff(train_cli):
    ran = train_cli("recipe", "diff", H200, "deepseek-v4-flash-64h200-tp8-pp8-ep8-reference")
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == "comparable: 5 settings of layout differ, none of numerics"
    ran = train_cli("recipe", "diff", H200, "deepseek-v4-flash-64b200-pp8")
    assert ran.code == 1
    assert ran.out.splitlines()[-1].startswith("NOT comparable: ")
    value = json.loads(train_cli("recipe", "diff", H200, "deepseek-v4-flash-64b200-pp8", "--json").out)
    assert value["comparable"] is False
    assert {d["kind"] for d in value["differences"]} == {"layout", "numerics", "neither"}
    ran = train_cli("recipe", "diff", "deepseek-v4.1-flash-16h200-tp4-8k", "deepseek-v4.1-flash-16h200-tp1-8k")
    assert "which they do not say" in ran.out


def test_show_gives_a_recipe_back(train_cli, tmp_path):
    text = train_cli("recipe", "show", H200).out
    (tmp_path / "shown.yaml").write_text(text, encoding="utf-8")
    assert train_cli("recipe", "show", tmp_path / "shown.yaml").out == text
    assert train_cli("recipe", "check", tmp_path / "shown.yaml", "--quiet").code == 0
    assert json.loads(train_cli("recipe", "show", H200, "--json").out)["layout"]["tp"] == 2


def test_card(train_cli, golden_run, tmp_path):
    ran = train_cli("card", golden_run, "--out", tmp_path / "card")
    assert ran.code == 0
    assert "status  screen" in ran.out and "missing" in ran.out
    assert sorted(path.name for path in (tmp_path / "card").iterdir()) == ["card.yaml", "recipe.yaml"]
    assert train_cli("recipe", "check", tmp_path / "card" / "recipe.yaml", "--quiet").code == 0
    assert train_cli("card", golden_run, "--out", tmp_path / "card").code == 5
    assert (
        json.loads(train_cli("card", golden_run, "--out", tmp_path / "card", "--overwrite", "--json").out)["status"]
        == "screen"
    )
    assert train_cli("card", tmp_path / "nothing").code == 2
