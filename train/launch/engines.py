"""The command of each engine for a recipe: what it runs, which export it reads, what only it can refuse.

megatron: train.sft. miles: radixark/miles 78527b91, train.py. bridge: NVIDIA-NeMo/Megatron-Bridge 067f987d,
scripts/training/run_recipe.py.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from databuild.errors import UsageError
from train.config import TrainConfig, load_config
from train.launch.checks import Check, check
from train.launch.recipe_view import RecipeView

CONFIGS = Path(__file__).parents[1] / "configs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine. export: what databuild export makes for it, None if it reads the build itself. package: imported to start it."""

    name: str
    export: str | None
    package: str
    launchers: tuple[str, ...]
    """the first is the default"""


ENGINES = {
    "megatron": Engine(name="megatron", export=None, package="megatron.core", launchers=("torchrun", "slurm")),
    "miles": Engine(name="miles", export="miles", package="miles", launchers=("ray", "slurm")),
    "bridge": Engine(name="bridge", export="bridge", package="megatron.bridge", launchers=("torchrun", "slurm")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Where things are. data: the build, or its export for this engine; out: the folder of the run."""

    data: Path
    out: Path
    config: Path | None
    checkpoint: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """program: what each node runs under its launcher, shell words; `$NAME` and `${NAME}` in them are left to the shell.

    needs: variables that the shell must have. checks: what the engine itself adds to the preflight.
    """

    program: tuple[str, ...]
    env: Mapping[str, str]
    needs: tuple[str, ...]
    checks: tuple[Check, ...]


def command_of(engine: str, view: RecipeView, inputs: Inputs) -> Command:
    """The command of an engine. UsageError where it cannot run this recipe at all."""
    command = {"megatron": _megatron, "miles": _miles, "bridge": _bridge}[engine](view, inputs)
    used = dict.fromkeys(name for value in view.env.values() for name in re.findall(r"\$\{?([A-Za-z_]\w*)", value))
    needs = (*command.needs, *(name for name in used if name not in view.env and name not in command.needs))
    return dataclasses.replace(command, needs=needs)


def config_file(view: RecipeView, given: Path | None) -> Path:
    """The train.sft configuration of a recipe: given, or the shipped one with the name of its model."""
    if given is not None:
        return given
    shipped = CONFIGS / f"{view.model}.yaml"
    if re.fullmatch(r"[a-z0-9.-]+", view.model) and shipped.exists():
        return shipped
    raise UsageError(
        "train.sft has no configuration for the recipe's model",
        where=view.path,
        found=view.model,
        next_step="give --config FILE with the model's sizes",
    )


def settings(view: RecipeView) -> dict[str, object]:
    """The keys of TrainConfig that a recipe decides."""
    found: dict[str, object] = {
        "seq_length": view.row_tokens,
        "global_batch_size": view.global_batch_size,
        "micro_batch_size": view.rows_per_microbatch,
        **{name: getattr(view, name) for name in ("tp", "pp", "cp", "ep", "etp")},
        "sequence_parallel": view.sequence_parallel,
        "first_stage_layers": view.first_layers,
        "last_stage_layers": view.last_layers,
    }
    if view.steps is not None:
        found["steps"] = view.steps
    if view.recompute is not None:
        found["recompute"] = view.recompute
    return {key: value for key, value in found.items() if value is not None}


def _megatron(view: RecipeView, inputs: Inputs) -> Command:
    from train.layout import check_layout

    config = config_file(view, inputs.config)
    sets = [f"{key}={_yaml(value)}" for key, value in settings(view).items()]
    if inputs.checkpoint:
        sets.append(f"load_hf={inputs.checkpoint}")
    loaded: TrainConfig = load_config(config, sets)
    reasons = check_layout(loaded, view.gpus)
    if view.vpp > 1:
        reasons.append("train.sft has no interleaved pipeline (vpp)")
    return Command(
        program=(
            *("-m", "train.sft", "--rows", str(inputs.data), "--config", str(config), "--out", str(inputs.out)),
            *("--set", *sets),
        ),
        env=view.env,
        needs=(),
        checks=(check("train.sft takes the layout", not reasons, "; ".join(reasons) or f"with {config.name}"),),
    )


def _yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_MILES_MODELS = ("deepseek-v4-flash", "deepseek-v4-pro")


def _folded(view: RecipeView) -> str:
    return view.model.lower().rpartition("/")[2]


# Flags of miles that a recipe's run block may set otherwise; all else below follows from its layout and workload.
_MILES_FREE = {
    "--optimizer": "adam",
    "--lr": "1e-5",
    "--lr-decay-style": "cosine",
    "--min-lr": "1e-6",
    "--lr-warmup-fraction": "0.1",
    "--weight-decay": "0.1",
    "--adam-beta1": "0.9",
    "--adam-beta2": "0.98",
    "--attention-dropout": "0.0",
    "--hidden-dropout": "0.0",
    "--distributed-timeout-minutes": "30",
    "--moe-router-freeze-gate": None,
    "--freeze-e-score-correction-bias": None,
    "--use-distributed-optimizer": None,
    "--accumulate-allreduce-grads-in-fp32": None,
    "--attention-softmax-in-fp32": None,
}


def _miles(view: RecipeView, inputs: Inputs) -> Command:
    multiple = max(view.tp * 128, 128 * view.cp * (2 if view.cp > 1 else 1))
    flags: dict[str, str | None] = {
        "--actor-num-nodes": str(view.nodes),
        "--actor-num-gpus-per-node": str(view.gpus_per_node),
        "--num-gpus-per-node": str(view.gpus_per_node),
        "--hf-checkpoint": inputs.checkpoint or "${HF_CHECKPOINT}",
        "--ref-load": "${MEGATRON_CHECKPOINT}",
        "--model-name": "deepseekv4",
        "--qkv-format": "bshd",
        "--rollout-function-path": "pretokenized_sft_rollout.generate_rollout",
        "--prompt-data": str(inputs.data / "rows.miles.parquet"),
        "--input-key": "messages",
        "--metadata-key": "metadata",
        "--num-rollout": str(view.steps or 20),
        "--rollout-batch-size": str(view.global_batch_size),
        "--global-batch-size": str(view.global_batch_size),
        "--micro-batch-size": str(view.rows_per_microbatch),
        "--loss-type": "sft_loss",
        "--calculate-per-token-loss": None,
        "--disable-compute-advantages-and-returns": None,
        "--debug-train-only": None,
        "--tensor-model-parallel-size": str(view.tp),
        "--pipeline-model-parallel-size": str(view.pp),
        "--context-parallel-size": str(view.cp),
        "--expert-model-parallel-size": str(view.ep),
        "--expert-tensor-parallel-size": str(view.etp),
    }
    if view.sequence_parallel:
        flags["--sequence-parallel"] = None
    if view.first_layers:
        flags["--decoder-first-pipeline-num-layers"] = str(view.first_layers)
    if view.last_layers:
        flags["--decoder-last-pipeline-num-layers"] = str(view.last_layers)
    if view.cp > 1:
        flags["--allgather-cp"] = None
    if view.recompute == "full":
        flags |= {"--recompute-granularity": "full", "--recompute-method": "uniform", "--recompute-num-layers": "1"}
    elif view.recompute == "selective":
        flags["--recompute-granularity"] = "selective"
    stated = run_flags(view.run) if view.run else {}
    # A run block is complete: a free flag that it leaves out is left out. Its own further flags are kept.
    free = {key: stated[key] for key in _MILES_FREE if key in stated} if stated else dict(_MILES_FREE)
    extra = {key: value for key, value in stated.items() if key not in flags and key not in free}
    words = [word for flag, value in (flags | free | extra).items() for word in (flag, *(value or "").split())]
    return Command(
        program=("train.py", "${MODEL_ARGS}", *words),
        # The rollout module runs in an actor of Ray: its folder must be on the path there.
        env={**view.env, "PYTHONPATH": f"{Path(__file__).parents[1] / 'miles'}:${{MEGATRON_LM}}:${{MILES}}"},
        needs=("MILES", "MEGATRON_LM", *(() if inputs.checkpoint else ("HF_CHECKPOINT",)), "MEGATRON_CHECKPOINT"),
        checks=(
            check("miles knows the model", _folded(view) in _MILES_MODELS, view.model),
            check(
                "miles pads nothing", view.row_tokens % multiple == 0, f"{view.row_tokens:,} in multiples of {multiple}"
            ),
        ),
    )


def run_flags(run: str) -> dict[str, str | None]:
    """The flags of a run block with their values (None: a switch), without the program and shell variables on their own."""
    text = re.sub(r"\\\n", " ", "\n".join(line for line in run.split("\n") if not line.lstrip().startswith("#")))
    words = [word for word in shlex.split(text) if word not in ("${MODEL_ARGS[@]}", "${MODEL_ARGS}")]
    flags: dict[str, str | None] = {}
    last = None
    for word in words:
        if word.startswith("--"):
            last, _, value = word.partition("=")
            flags[last] = value or None
        elif last is not None:
            flags[last] = f"{flags[last]} {word}" if flags[last] else word
    return flags


def _bridge(view: RecipeView, inputs: Inputs) -> Command:
    data = inputs.data / f"training_{view.row_tokens}.idx.parquet"
    flags = {
        "--recipe": "deepseek_v4_flash_no_mtp_sft_32gpu_h100_bf16_config",
        "--mode": "sft",
        "--step_func": "dsv4_step",
        "-ms": str(view.steps or 20),
        "-gb": str(view.global_batch_size),
        "-mb": str(view.rows_per_microbatch),
        "-sl": str(view.row_tokens),
        "-tp": str(view.tp),
        "-pp": str(view.pp),
        "-cp": str(view.cp),
        "-ep": str(view.ep),
        "-etp": str(view.etp),
        "--pretrained_checkpoint": inputs.checkpoint or "${MEGATRON_CHECKPOINT}",
        "--save_dir": str(inputs.out / "checkpoints"),
    }
    if view.vpp > 1:
        flags["-vp"] = str(view.vpp)
    overrides = {
        "dataset.dataset_root": str(inputs.data),
        "dataset.hf_dataset": "null",
        "dataset.enable_offline_packing": "true",
        "dataset.offline_packing_specs.packed_train_data_path": str(data),
        "dataset.offline_packing_specs.packed_metadata_path": str(inputs.data / "metadata.json"),
        # File order, the loss per token: what our engine and miles do.
        "dataset.dataloader_type": "single",
        "dataset.do_validation": "false",
        "dataset.do_test": "false",
        "model.sequence_parallel": _yaml(view.sequence_parallel),
        "model.calculate_per_token_loss": "true",
        "ddp.average_in_collective": "false",
    }
    if view.first_layers:
        overrides["model.num_layers_in_first_pipeline_stage"] = str(view.first_layers)
    if view.last_layers:
        overrides["model.num_layers_in_last_pipeline_stage"] = str(view.last_layers)
    if view.recompute == "full":
        overrides |= {
            "model.recompute_granularity": "full",
            "model.recompute_method": "uniform",
            "model.recompute_num_layers": "1",
        }
    words = [word for pair in flags.items() for word in pair]
    return Command(
        program=(
            "${MEGATRON_BRIDGE}/scripts/training/run_recipe.py",
            *words,
            *(f"{key}={value}" for key, value in overrides.items()),
        ),
        env=view.env,
        needs=("MEGATRON_BRIDGE", *(() if inputs.checkpoint else ("MEGATRON_CHECKPOINT",))),
        checks=(
            check("Bridge has a recipe for the model", _folded(view) == "deepseek-v4-flash", view.model),
            check(
                "Bridge packs one row a micro-batch", view.rows_per_microbatch == 1, f"{view.rows_per_microbatch} rows"
            ),
            check("Bridge's DeepSeek-V4 attention has no tp", view.tp == 1, f"tp {view.tp}"),
        ),
    )
