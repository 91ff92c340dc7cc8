"""A layout changes how fast a model trains, never what it learns: every layout against one process, on a CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("megatron.core")

from layout_worker import BASES, MLA, MOE, TINY, TinyRows  # noqa: E402

from train.config import TrainConfig  # noqa: E402
from train.layout import check_layout  # noqa: E402

WORKER = Path(__file__).with_name("layout_worker.py")
ROOT = Path(__file__).parents[2]

SP = {"tp": 2, "sequence_parallel": True}
ALONE = {
    "dense": {"mbs2": {"micro_batch_size": 2}, "full": {"recompute": "full"}, "selective": {"recompute": "selective"},
              "plain": {"use_distributed_optimizer": False}},
    "document": {"mbs2": {"micro_batch_size": 2}},
    "moe": {"mbs2": {"micro_batch_size": 2}},
    "mla": {"mbs2": {"micro_batch_size": 2}, "full": {"recompute": "full"}, "selective": {"recompute": "selective"}},
}  # fmt: skip
PAIRS = {
    "dense": {
        "dp2": {}, "dp2_plain": {"use_distributed_optimizer": False}, "tp2": {"tp": 2},
        "tp2_sp_full": {**SP, "recompute": "full"}, "pp2": {"pp": 2, "first_stage_layers": 1}, "cp2": {"cp": 2},
    },
    "tied": {"tp2_sp": SP, "pp2": {"pp": 2, "first_stage_layers": 1}},
    "document": {"cp2": {"cp": 2}, "tp2": {"tp": 2}, "pp2": {"pp": 2, "first_stage_layers": 1}},
    "moe": {
        "dp2": {}, "ep2": {"ep": 2}, "tp2_sp_ep2_etp1": {**SP, "ep": 2}, "tp2_sp_etp2": {**SP, "etp": 2},
        "cp2_ep2": {"cp": 2, "ep": 2},
    },
    "mla": {"dp2": {}, "ep2": {"ep": 2}, "pp2": {"pp": 2}, "cp2": {"cp": 2}, "tp2_sp_ep2_etp1": {**SP, "ep": 2}},
}  # fmt: skip


def case(base: str, name: str, keys: dict, **more) -> dict:
    return {"name": f"{base}.{name}", "config": {**BASES[base], **keys}, **more}


def run_cases(processes: int, cases: list[dict], folder: Path, worker: Path = WORKER) -> None:
    listed = folder / f"cases-{processes}-{len(list(folder.iterdir()))}.json"
    listed.write_text(json.dumps(cases))
    program = [str(worker), str(listed), str(folder)]
    launcher = [sys.executable] if processes == 1 else [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    if processes > 1:
        launcher += ["--nproc-per-node", str(processes)]
    done = subprocess.run([*launcher, *program], env=environment(), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what all cases gave: one process, two processes, and one that resumes what two saved."""
    folder = tmp_path_factory.mktemp("layouts")
    checkpoints = {name: str(folder / f"saved-{name}") for name in ("dense", "moe", "mla", "moe_pair", "bf16")}
    dead = Path(checkpoints["dense"]) / "step-00000005.partial"
    dead.mkdir(parents=True)
    (dead / "__0_0.distcp").write_text("what a killed process left")
    frozen = {"freeze_router": True, "freeze_e_score_correction_bias": True}
    alone = [case(base, "alone", {}) for base in BASES]
    alone += [case(base, name, keys) for base, cases in ALONE.items() for name, keys in cases.items()]
    alone += [case(base, "half", {}, steps=5, save=checkpoints[base]) for base in ("dense", "moe", "mla")]
    alone += [case(base, "resumed", {}, resume=checkpoints[base]) for base in ("dense", "moe", "mla")]
    alone += [
        case("moe", "bf16", {"precision": "bf16"}),
        case("moe", "bf16_half", {"precision": "bf16"}, steps=5, save=checkpoints["bf16"]),
        case("moe", "bf16_resumed", {"precision": "bf16"}, resume=checkpoints["bf16"]),
        case("dense", "perturbed", {}, perturb=True),
        case("moe", "frozen", frozen),
        case("dense", "other_rows", {}, resume=checkpoints["dense"], rows_sha256="other"),
        case("dense", "other_model", {"norm_epsilon": 1e-5}, resume=checkpoints["dense"]),
        case("dense", "no_checkpoint", {}, resume=str(folder / "nothing")),
        *(case("dense", name, {"mtp_num_layers": 1}, steps=1, target=16, **keys) for name, keys in MTP_ROWS.items()),
    ]
    run_cases(1, alone, folder)
    pairs = [case(base, name, keys) for base, cases in PAIRS.items() for name, keys in cases.items()]
    pairs += [
        case("dense", "resumed_tp2_sp", SP, resume=checkpoints["dense"]),
        case("dense", "resumed_pp2", {"pp": 2, "first_stage_layers": 1}, resume=checkpoints["dense"]),
        case("mla", "resumed_ep2", {"ep": 2}, resume=checkpoints["mla"]),
        case("moe", "half_pair", {**SP, "ep": 2}, steps=5, save=checkpoints["moe_pair"]),
    ]
    run_cases(2, pairs, folder)
    damaged = next((folder / "saved-dense").glob("step-*/__0_0.distcp"))
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    last = [
        case("moe", "resumed_from_pair", {}, resume=checkpoints["moe_pair"]),
        case("dense", "damaged", {}, resume=checkpoints["dense"]),
    ]
    run_cases(1, last, folder)
    return folder


MTP_ROWS = {"one_target": {}, "changed_after": {"change": 17}, "changed_at": {"change": 16}}


def load(folder: Path, name: str) -> dict[str, np.ndarray]:
    with np.load(folder / f"{name}.npz") as file:
        return dict(file)


def weights(result: dict[str, np.ndarray], when: str = "end") -> dict[str, np.ndarray]:
    return {key.removeprefix(f"{when}/"): value for key, value in result.items() if key.startswith(f"{when}/")}


def differences(found: dict[str, np.ndarray], expected: dict[str, np.ndarray], floor: float = 0.0) -> list[str]:
    """What differs by more than 1e-6, relative: for a weight, relative to its largest element or to floor."""
    steps = len(found["loss"])
    wrong = []
    for key in ("loss", "grad_norm"):
        error = np.max(np.abs(found[key] / expected[key][-steps:] - 1))
        if not error <= 1e-6:
            wrong.append(f"{key}: {error:.1e}")
    if not np.array_equal(found["num_targets"], expected["num_targets"][-steps:]):
        wrong.append("num_targets")
    ours, theirs = weights(found), weights(expected)
    assert ours.keys() == theirs.keys()
    for name, weight in theirs.items():
        error = np.max(np.abs(ours[name] - weight)) / max(np.max(np.abs(weight)), floor)
        if not error <= 1e-6:
            wrong.append(f"{name}: {error:.1e}")
    return wrong


def same_bits(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> bool:
    steps = len(found["loss"])
    return all(np.array_equal(found[k], expected[k][-steps:]) for k in ("loss", "grad_norm")) and all(
        np.array_equal(weight, weights(expected)[name]) for name, weight in weights(found).items()
    )


@pytest.mark.parametrize(
    "name", [f"{base}.{name}" for table in (ALONE, PAIRS) for base, cases in table.items() for name in cases]
)
def test_layout_trains_what_one_process_trains(trained: Path, name: str) -> None:
    assert differences(load(trained, name), load(trained, f"{name.split('.')[0]}.alone")) == []


@pytest.mark.parametrize("name", ["dense.tp2", "dense.pp2", "moe.tp2_sp_ep2_etp1", "mla.cp2", "mla.pp2"])
def test_layouts_start_from_the_same_weights(trained: Path, name: str) -> None:
    ours, theirs = (weights(load(trained, n), "start") for n in (name, f"{name.split('.')[0]}.alone"))
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[key], theirs[key]) for key in ours)


def test_a_gradient_wrong_by_a_thousandth_is_found(trained: Path) -> None:
    assert differences(load(trained, "dense.perturbed"), load(trained, "dense.alone"))


@pytest.mark.parametrize("name", ["dense.full", "dense.selective", "mla.full", "mla.selective"])
def test_recompute_is_bitwise(trained: Path, name: str) -> None:
    assert same_bits(load(trained, name), load(trained, f"{name.split('.')[0]}.alone"))


@pytest.mark.parametrize(
    ("resumed", "whole"),
    [
        ("dense.resumed", "dense.alone"),
        ("moe.resumed", "moe.alone"),
        ("mla.resumed", "mla.alone"),
        ("moe.bf16_resumed", "moe.bf16"),
    ],
)
def test_resume_is_bitwise_in_the_same_layout_and_crosses_the_epoch(trained: Path, resumed: str, whole: str) -> None:
    found, expected = load(trained, resumed), load(trained, whole)
    assert len(found["loss"]) == 3  # steps 6 to 8 of 4 rows each; the rows end after step 6
    assert same_bits(found, expected)
    assert all(np.array_equal(found[key], expected[key]) for key in expected if key.startswith("bias/"))


@pytest.mark.parametrize(
    "name", ["dense.resumed_tp2_sp", "dense.resumed_pp2", "mla.resumed_ep2", "moe.resumed_from_pair"]
)
def test_resume_in_another_layout(trained: Path, name: str) -> None:
    assert differences(load(trained, name), load(trained, f"{name.split('.')[0]}.alone")) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("dense.other_rows", "other rows"),
        ("dense.other_model", "norm_epsilon"),
        ("dense.no_checkpoint", "no checkpoint"),
        ("dense.damaged", "not what was saved"),
    ],
)
def test_a_checkpoint_that_is_not_of_this_run_is_refused(trained: Path, name: str, says: str) -> None:
    assert says in (trained / f"{name}.error").read_text()


def test_a_save_replaces_what_a_killed_one_left(trained: Path) -> None:
    assert sorted(path.name for path in (trained / "saved-dense").iterdir()) == ["latest", "step-00000005"]


def test_a_frozen_router_stays_bitwise(trained: Path) -> None:
    frozen, free = load(trained, "moe.frozen"), load(trained, "moe.alone")
    router = "decoder.layers.1.mlp.router.weight"
    bias = "bias/decoder.layers.1.mlp.router.expert_bias"
    assert np.array_equal(weights(frozen)[router], weights(frozen, "start")[router])
    assert not np.array_equal(weights(free)[router], weights(free, "start")[router])
    assert not frozen[bias].any() and free[bias].any()


def test_an_mtp_layer_trains_the_targets_and_nothing_else(trained: Path) -> None:
    one, after, at = (weights(load(trained, f"dense.{name}")) for name in MTP_ROWS)
    mtp = [name for name in one if name.startswith("mtp.")]
    assert all(np.array_equal(one[name], after[name]) for name in one), (
        "a token after the only target changed the training"
    )
    assert any(not np.array_equal(one[name], at[name]) for name in mtp), "the MTP layer does not train the target"


@pytest.mark.parametrize("base", ["dense", "document"])
def test_first_loss_is_that_of_a_plain_reference(trained: Path, base: str) -> None:
    result = load(trained, f"{base}.alone")
    config = TrainConfig.model_validate(BASES[base])
    batch = TinyRows(config).batch(np.arange(config.global_batch_size))
    assert result["loss"][0] == pytest.approx(reference_loss(config, weights(result, "start"), batch), rel=1e-6)


def reference_loss(config: TrainConfig, stored: dict[str, np.ndarray], batch) -> float:
    """The loss of a dense model, written down plainly in fp64; positions and attention restart at documents, if asked to."""
    w = {name: torch.from_numpy(value).double() for name, value in stored.items()}
    rms = lambda x, name: torch.nn.functional.rms_norm(x, x.shape[-1:], w[f"{name}.weight"], config.norm_epsilon)  # noqa: E731
    heads, groups, dim = config.num_attention_heads, config.query_groups, config.head_dim
    starts = torch.zeros(batch.tokens.numel(), dtype=torch.int64)
    if config.attention == "document":
        starts[batch.doc_bounds[:-1].long()] = 1
    docs = starts.cumsum(0).view(batch.tokens.shape)
    seen = (docs[:, :, None] == docs[:, None]).tril()  # [rows, query, key]
    positions = seen.sum(-1) - 1
    angle = (positions[..., None] * config.rotary_base ** (-torch.arange(0, dim, 2).double() / dim)).repeat(1, 1, 2)
    turn = lambda x: x * angle.cos() + torch.cat([-x[..., dim // 2 :], x[..., : dim // 2]], -1) * angle.sin()  # noqa: E731
    x = w["embedding.word_embeddings.weight"][batch.tokens]
    for layer in (f"decoder.layers.{i}" for i in range(config.num_layers)):
        qkv = rms(x, f"{layer}.input_layernorm") @ w[f"{layer}.self_attention.linear_qkv.weight"].T
        out = []
        for group in qkv.unflatten(-1, (groups, heads // groups + 2, dim)).permute(
            2, 3, 0, 1, 4
        ):  # queries, key, value
            scores = [(turn(q) @ turn(group[-2]).mT) / dim**0.5 for q in group[:-2]]
            out += [score.masked_fill(~seen, -torch.inf).softmax(-1) @ group[-1] for score in scores]
        x = x + torch.cat(out, -1) @ w[f"{layer}.self_attention.linear_proj.weight"].T
        gate, up = (rms(x, f"{layer}.pre_mlp_layernorm") @ w[f"{layer}.mlp.linear_fc1.weight"].T).chunk(2, -1)
        x = x + (torch.nn.functional.silu(gate) * up) @ w[f"{layer}.mlp.linear_fc2.weight"].T
    logits = rms(x, "decoder.final_layernorm") @ w["output_layer.weight"].T
    losses = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), reduction="none")
    mask = batch.label_mask.flatten()
    return float((losses * mask).sum() / mask.sum())


@pytest.mark.parametrize("name", ["moe.tp2_sp_ep2_etp1", "moe.cp2_ep2", "mla.pp2", "mla.full"])
def test_expert_load_counts_each_token_once(trained: Path, name: str) -> None:
    found, alone = load(trained, name)["load"], load(trained, f"{name.split('.')[0]}.alone")["load"]
    assert np.array_equal(found, alone)
    assert (found.sum(-1) == MOE["global_batch_size"] * MOE["seq_length"] * MOE["moe_router_topk"]).all()


@pytest.mark.parametrize(
    ("base", "keys", "world", "says"),
    [
        (TINY, {"tp": 2}, 3, "tp x pp x cp"),
        (TINY, {}, 3, "global_batch_size 4"),
        (TINY, {"tp": 4}, 4, "num_query_groups"),
        (MOE, {**SP, "ep": 4}, 6, "etp x ep x pp"),
        (MOE, {"tp": 4, "sequence_parallel": True, "etp": 2, "num_query_groups": 4}, 4, "etp 2 must be 1 or tp 4"),
        (TINY, {"tie_embeddings": True, "mtp_num_layers": 1, "pp": 3}, 3, "holds the embedding twice"),
        (MLA, {"tp": 2, "num_moe_experts": None}, 2, "sequence_parallel"),
    ],
)
def test_a_layout_that_trains_wrong_is_refused(base: dict, keys: dict, world: int, says: str) -> None:
    values = {**base, **keys}
    if values.get("num_moe_experts", 0) is None:
        values = {k: v for k, v in values.items() if "moe" not in k}
    reasons = check_layout(TrainConfig.model_validate(values), world)
    assert any(says in reason for reason in reasons), reasons


def test_a_good_layout_has_no_reasons_against_it() -> None:
    assert check_layout(TrainConfig.model_validate({**MLA, **SP, "ep": 2}), 4) == []


@pytest.fixture(scope="session")
def demo_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows") / "rows"
    options = ["fixed", "--source", "demo", "--row-tokens", "64", "--rows", "64", "--quiet", "--out"]
    subprocess.run([sys.executable, "-m", "databuild.cli", *options, str(folder)], check=True, env=environment())
    return folder


def sft(rows: Path, out: Path, *more: str) -> list[str]:
    config = ROOT / "train" / "configs" / "tiny-dense.yaml"
    small = ["--set", "hidden_size=16", "--set", "num_query_groups=4", "--set", "lr=0.01"]
    return [
        sys.executable,
        "-m",
        "train.sft",
        "--rows",
        str(rows),
        "--config",
        str(config),
        "--out",
        str(out),
        *small,
        *more,
    ]


def test_demo_rows_train_and_sigterm_saves(demo_rows: Path, tmp_path: Path) -> None:
    command = sft(demo_rows, tmp_path / "run")
    running = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    for line in running.stderr:
        if line.startswith("step 3/"):
            running.send_signal(signal.SIGTERM)
            break
    running.stderr.read()
    assert running.wait() == 143
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["step"] < 10
    resumed = subprocess.run([*command, "--resume"], env=environment(), capture_output=True, text=True)
    assert resumed.returncode == 0, resumed.stderr
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, 11))
    assert [line["consumed_rows"] for line in lines] == list(range(8, 81, 8))
    assert lines[-1]["loss"] < lines[0]["loss"] - 0.1
    again = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert again.returncode == 2 and "--resume" in again.stderr
