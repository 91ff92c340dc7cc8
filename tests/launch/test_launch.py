"""`python -m train launch`: every check passes or says why, every script is whole and valid, exports are made if missing."""

import functools
import itertools
import json
import re
import shlex
import subprocess

import pytest
import yaml

from train.launch import checks
from train.launch.engines import run_flags
from train.launch.script import quote
from train.recipe.shipped import find_recipe


@pytest.fixture(scope="module")
def rows(demo_build):
    return demo_build.out if hasattr(demo_build, "out") else demo_build


@pytest.fixture
def call(train_cli):
    return functools.partial(train_cli, "launch")


RUN = """# MODEL_ARGS: of miles
python train.py ${MODEL_ARGS[@]} --lr 2e-5 --tensor-model-parallel-size 4 \\
  --num-rollout 20 --optimizer adam --use-distributed-optimizer --my-flag a b
"""


def recipe(path, *, tp=2, pp=4, gpus=64, row_tokens=8192, batch=64, **more):
    keys = {
        "model": "DeepSeek-V4-Flash",
        "gpu": {"type": "H200", "memory_gb": 141, "count": gpus, "per_node": min(8, gpus)},
        "workload": {"row_tokens": row_tokens, "rows": 110, "global_batch": batch, "dataset": {"rows_sha256": None}},
        "layout": {
            "tp": tp, "pp": pp, "vpp": None, "cp": 1, "ep": 8, "etp": 1, "dp": gpus // (tp * pp), "sequence_parallel": tp > 1,
            "layer_split": {"first": 11, "last": 10} if pp == 4 else None, "rows_per_microbatch": 1,
            "recompute": {"granularity": "full", "method": "uniform", "num_layers": 1},
        },
        "result": {"steps_per_run": 20},
        "env": {"CUDA_DEVICE_MAX_CONNECTIONS": "1", "TRITON_CACHE_DIR": "$KERNEL_CACHE/tri ton"},
        **more,
    }  # fmt: skip
    path.write_text(yaml.safe_dump(keys))
    return path


OWN = {
    "model": "tiny-dense",
    "gpu": {"type": "none", "count": 2, "per_node": 2},
    "layout": {
        "tp": 2,
        "pp": 1,
        "cp": 1,
        "ep": 1,
        "etp": 1,
        "dp": 1,
        "sequence_parallel": True,
        "rows_per_microbatch": 1,
    },
}


def test_a_file_that_says_it_is_a_recipe_is_held_to_the_schema(call, rows, tmp_path):
    shipped = find_recipe("deepseek-v4-flash-64h200-tp2-pp4-ep8").read_text()
    (tmp_path / "whole.yaml").write_text(shipped)
    (tmp_path / "wrong.yaml").write_text(shipped.replace("\n  pp: 4\n", "\n  pq: 4\n"))
    arguments = ("--rows", rows, "--engine", "miles", "--dry-run")
    assert "there is no key" not in call(tmp_path / "whole.yaml", *arguments)[2]
    code, _, err = call(tmp_path / "wrong.yaml", *arguments)
    assert (code, "there is no key layout.pq" in err) == (2, True)


def words_of(script, program):
    """The words of the script's command from the program on."""
    text = script[script.index(program) :].replace("\\\n", " ")
    return shlex.split(text.split("\n")[0])


def dry(call, *arguments):
    code, out, err = call(*arguments, "--dry-run", "--json")
    assert out, err
    return code, json.loads(out)


def failed(found):
    return [c["name"] for c in found["checks"] if c["state"] == "FAIL"]


@pytest.mark.parametrize(("engine", "launcher", "tp"), [
    ("miles", "--ray", 2), ("miles", "--slurm", 2), ("bridge", "--torchrun", 1), ("bridge", "--slurm", 1),
])  # fmt: skip
def test_scripts_are_valid_bash_with_every_layout_flag_and_the_env(call, rows, tmp_path, engine, launcher, tp):
    file = recipe(tmp_path / "r.yaml", tp=tp)
    code, found = dry(call, file, "--rows", rows, "--engine", engine, launcher, "--any-memory")
    assert code == 0 or failed(found) == ["GPUs"]
    script = found["script"]
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0
    assert 'export TRITON_CACHE_DIR="$KERNEL_CACHE/tri ton"' in script
    assert "KERNEL_CACHE" in found["needs"]
    assert ("#SBATCH --nodes=8" in script) == (launcher == "--slurm")
    assert found["export"].endswith(f"-{engine}")
    program = "train.py" if engine == "miles" else '"${MEGATRON_BRIDGE}'
    words = words_of(script, program)
    pairs = dict(itertools.pairwise(words))
    if engine == "miles":
        for flag, value in {
            "--tensor-model-parallel-size": "2", "--pipeline-model-parallel-size": "4", "--actor-num-nodes": "8",
            "--expert-model-parallel-size": "8", "--decoder-first-pipeline-num-layers": "11", "--num-rollout": "20",
            "--decoder-last-pipeline-num-layers": "10", "--global-batch-size": "64", "--rollout-batch-size": "64",
            "--prompt-data": f"{found['export']}/rows.miles.parquet", "--recompute-granularity": "full", "--lr": "1e-5",
        }.items():  # fmt: skip
            assert pairs[flag] == value, flag
        assert {"--sequence-parallel", "--calculate-per-token-loss", "--debug-train-only"} <= set(words)
        assert not {"--apply-chat-template", "--rollout-shuffle", "--use-dynamic-batch-size"} & set(words)
    else:
        wanted = {
            "-tp": "1",
            "-pp": "4",
            "-ep": "8",
            "-gb": "64",
            "-mb": "1",
            "-sl": "8192",
            "-ms": "20",
            "--mode": "sft",
        }
        assert {flag: pairs[flag] for flag in wanted} == wanted
        assert "dataset.dataloader_type=single" in words
        assert "model.calculate_per_token_loss=true" in words
        assert (
            f"dataset.offline_packing_specs.packed_train_data_path={found['export']}/training_8192.idx.parquet" in words
        )


def test_a_run_block_gives_the_flags_that_the_layout_does_not(call, rows, tmp_path):
    assert run_flags(RUN)["--my-flag"] == "a b"
    file = recipe(tmp_path / "r.yaml", run=RUN)
    _, found = dry(call, file, "--rows", rows, "--engine", "miles")
    words = words_of(found["script"], "train.py")
    pairs = dict(itertools.pairwise(words))
    assert pairs["--lr"] == "2e-5"
    assert words[words.index("--my-flag") + 1 :][:2] == ["a", "b"]
    # The layout decides what is the layout's; a run block that leaves the freeze out has no freeze.
    assert words.count("--tensor-model-parallel-size") == 1
    assert pairs["--tensor-model-parallel-size"] == "2"
    assert "--moe-router-freeze-gate" not in words


@pytest.mark.parametrize(("keys", "check"), [
    ({"row_tokens": 4096}, "row length"),
    ({"batch": 128}, "rows for a batch"),
    ({"batch": 60}, "dp x micro-batch divides the batch"),
    ({"gpus": 60}, "nodes"),
    ({"tp": 1}, "memory of the plan"),
    ({"workload": {"row_tokens": 8192, "global_batch": 64, "dataset": {"rows_sha256": "0" * 64}}}, "rows are the recipe's"),
    ({"model": "DeepSeek-V4.1-Flash", "pp": 2}, "miles knows the model"),
    ({"model": "DeepSeek-V4.1-Flash"}, "memory of the plan"),  # 11 and 10 of its 40 layers leave 19 for two stages
])  # fmt: skip
def test_each_check_fails_when_it_should_and_stops_the_launch(call, rows, tmp_path, keys, check):
    file = recipe(tmp_path / "r.yaml", **keys)
    code, found = dry(call, file, "--rows", rows, "--engine", "miles")
    assert code == 1
    assert check in failed(found)
    assert all(c["reason"] for c in found["checks"])
    code, _, err = call(file, "--rows", rows, "--engine", "miles", "--out", tmp_path / "out")
    assert code == 1
    assert "not started" in err
    assert not (tmp_path / "out").exists()


def test_other_rows_are_allowed_on_purpose_and_damaged_ones_never(call, rows, tmp_path):
    workload = {"row_tokens": 8192, "global_batch": 64, "dataset": {"rows_sha256": "0" * 64}}
    file = recipe(tmp_path / "r.yaml", workload=workload)
    assert dry(call, file, "--rows", rows, "--engine", "miles", "--other-rows")[0] == 0
    copy = tmp_path / "copy"
    copy.mkdir()
    for source in rows.iterdir():
        (copy / source.name).write_bytes(source.read_bytes())
    content = bytearray((copy / "rows.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (copy / "rows.parquet").write_bytes(content)
    code, found = dry(call, file, "--rows", copy, "--engine", "miles", "--other-rows")
    assert code == 1
    assert failed(found) == ["rows are whole"]


def test_the_export_is_made_by_databuild_if_missing(call, rows, tmp_path):
    pytest.importorskip("databuild.commands.export")
    link = tmp_path / "build"
    link.mkdir()
    for source in rows.iterdir():
        (link / source.name).write_bytes(source.read_bytes())
    file = recipe(tmp_path / "r.yaml")
    for _ in range(2):  # the second time it is there
        code, _, err = call(file, "--rows", link, "--engine", "miles", "--slurm", "--out", tmp_path / "out")
        assert code == 0, err
        assert "sbatch" in err
    assert (tmp_path / "build-miles" / "rows.miles.parquet").exists()
    assert (tmp_path / "out" / "launch-miles.sh").stat().st_mode & 0o100


def test_our_engine_gets_its_keys_and_refuses_what_it_cannot_train(call, rows, tmp_path):
    file = recipe(tmp_path / "r.yaml", **OWN, result={"steps_per_run": 3})
    code, found = dry(call, file, "--rows", rows, "--engine", "megatron", "--cpu")
    assert code == 0
    words = words_of(found["script"], "torchrun")
    assert words[:5] == ["torchrun", "--nproc-per-node", "2", "--standalone", "-m"]
    assert {"tp=2", "sequence_parallel=true", "seq_length=8192", "steps=3"} <= set(words)
    experts = {**OWN, "layout": {**OWN["layout"], "ep": 2}}
    assert call(recipe(tmp_path / "e.yaml", **experts), "--rows", rows, "--engine", "megatron", "--dry-run")[0] == 2
    three = {**OWN, "gpu": {"type": "none", "count": 3, "per_node": 3}}
    code, found = dry(call, recipe(tmp_path / "t.yaml", **three), "--rows", rows, "--engine", "megatron", "--cpu")
    assert code == 1
    assert "train.sft takes the layout" in failed(found)


def test_gpus_and_free_memory_are_those_of_nvidia_smi(call, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(checks, "find_gpus", lambda: [checks.Gpu(index=i, total=139, free=20 + i) for i in range(2)])
    file = recipe(tmp_path / "r.yaml", **OWN)
    code, found = dry(call, file, "--rows", rows, "--engine", "megatron")
    assert (code, failed(found)) == (1, ["free memory"])
    monkeypatch.setattr(checks, "find_gpus", lambda: [])
    assert failed(dry(call, file, "--rows", rows, "--engine", "megatron")[1]) == ["GPUs"]


def test_nvidia_smi_is_read_and_its_absence_is_no_gpu(tmp_path, monkeypatch):
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho '0, 143771, 143000'\necho '1, 143771, 2048'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert [(g.index, round(g.total), round(g.free)) for g in checks.find_gpus()] == [(0, 140, 140), (1, 140, 2)]
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert checks.find_gpus() == []
    tool.unlink()
    assert checks.find_gpus() == []


@pytest.mark.parametrize("arguments", [
    ["--engine", "miles", "--torchrun"], ["--engine", "megatron", "--ray"], ["--engine", "miles", "--cpu"],
    ["--engine", "bridge", "--slurm", "--ray"], ["--engine", "miles", "--json"],
])  # fmt: skip
def test_what_makes_no_sense_is_a_usage_error(call, rows, tmp_path, arguments):
    code, _, err = call(recipe(tmp_path / "r.yaml"), "--rows", rows, *arguments)
    assert code == 2
    assert "Traceback" not in err


@pytest.mark.parametrize("text", ["", "[1]", "model: x\n", "a: [", "model: x\ngpu: {count: 0}\n"])
def test_what_is_no_recipe_is_refused(call, rows, tmp_path, text):
    (tmp_path / "r.yaml").write_text(text)
    assert call(tmp_path / "r.yaml", "--rows", rows, "--engine", "miles", "--dry-run")[0] == 2


def test_words_are_quoted_so_that_only_variables_expand():
    for word in ("plain", "two words", "it's", 'a"b', "$(touch x)", "a;b"):
        assert shlex.split(quote(word)) == [word]
    assert quote("$HOME/a b") == '"$HOME/a b"'
    assert re.fullmatch(r'"\$\{A\}/\\`x\\`"', quote("${A}/`x`"))
