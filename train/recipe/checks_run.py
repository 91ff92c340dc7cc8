"""The run block and the environment against the rest of the file: what is run must be what is described."""

from __future__ import annotations

import re
from typing import Any

from pydantic import ValidationError

from databuild.errors import UsageError
from train.config import TrainConfig
from train.flops import parameter_counts
from train.layout import check_layout as layout_reasons
from train.recipe.finding import Findings
from train.recipe.flags import DEFAULTS, TABLES, RunBlock, parse_run
from train.yaml12 import parse_yaml

# Megatron's kernels and communication of tensor and context parallelism rely on one queue there; not on Blackwell.
ONE_QUEUE_GPUS = ("A100", "H100", "H200", "H800", "H20")


def check_run(findings: Findings) -> None:
    """Add the findings of env and run."""
    recipe = findings.context.recipe
    queues = recipe.env.get("CUDA_DEVICE_MAX_CONNECTIONS")
    if queues is not None and recipe.gpu.type in ONE_QUEUE_GPUS and (recipe.layout.tp > 1 or recipe.layout.cp > 1):
        findings.rule(
            "env.CUDA_DEVICE_MAX_CONNECTIONS", queues == "1", "1 with tp > 1 or cp > 1 before Blackwell", stated=queues
        )
    if recipe.run is None:
        return
    try:
        block = parse_run(recipe.run)
    except ValueError as error:
        findings.rule("run", False, f"a command that a shell can read: {error}", stated=recipe.run[:40])
        return
    if block.engine is None:
        findings.rule(
            "run", False, "train.py (miles), train.sh (Megatron-Bridge) or -m train.sft", stated=recipe.run[:40]
        )
        return
    for name in block.repeated:
        findings.rule("run", False, "each flag once; the last one would win", stated=name)
    _flags(findings, block)
    _exports(findings, block)
    if block.engine == "bridge":
        _bridge_name(findings, block)
    if block.engine == "train.sft":
        _config(findings, block)


def value_at(findings: Findings, key: str) -> Any:
    """The value of a recipe at a dotted key; None where a part of the way is null."""
    gpu = findings.context.recipe.gpu
    if key == "nodes":
        return gpu.count // gpu.per_node if gpu.per_node else None
    value: Any = findings.context.recipe
    for part in key.split("."):
        value = getattr(value, part, None)
    return value


def _flags(findings: Findings, block: RunBlock) -> None:
    assert block.engine is not None
    table, defaults = TABLES[block.engine], DEFAULTS[block.engine]
    said: set[str] = set()
    for flag, key in table.items():
        if flag not in block.flags:
            continue
        said.add(key)
        found, wanted = _read(block.flags[flag]), value_at(findings, key)
        if wanted is None and key in ("result.steps_per_run", "nodes", "gpu.per_node", "layout.max_tokens_per_gpu"):
            continue  # not stated, so there is nothing to contradict
        if wanted is None and found in ("none", None):
            continue
        findings.rule(key, found == wanted, f"run: {flag} {found}", stated=wanted, computed=found)
    for key, default in defaults.items():
        wanted = value_at(findings, key)
        usual = value_at(findings, default) if isinstance(default, str) else default
        if key not in said and wanted is not None and wanted != usual:
            flag = next(flag for flag, target in table.items() if target == key)
            findings.rule(
                key, False, f"the run block leaves out {flag}, which means {usual}", stated=wanted, computed=usual
            )
    samples = block.flags.get("--n-samples-per-prompt")
    if samples is not None:
        findings.rule("run", _read(samples) == 1, "one sample a row: --n-samples-per-prompt 1", stated=_read(samples))


def _read(values: tuple[str, ...]) -> Any:
    """A flag's value as the recipe would hold it; True for a flag alone."""
    if not values:
        return True
    text = values[0]
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if re.fullmatch(r"-?\d+\.\d*(?:[eE][-+]?\d+)?", text):
        return float(text)
    return {"true": True, "false": False, "null": None}.get(text, text)


def _exports(findings: Findings, block: RunBlock) -> None:
    """Exports in the run block and env must agree; without any, env stands for itself."""
    env = findings.context.recipe.env
    for name in sorted(block.exports.keys() | (env.keys() if block.exports else set())):
        found, wanted = block.exports.get(name), env.get(name)
        findings.rule(f"env.{name}", found == wanted, f"run exports {name}={found}", stated=wanted, computed=found)


def _bridge_name(findings: Findings, block: RunBlock) -> None:
    """Bridge recipes are named MODEL_TASK_64gpu_b200_...: both must be true."""
    gpu = findings.context.recipe.gpu
    for name in block.flags.get("--recipe", ()):
        if match := re.search(r"_(\d+)gpu_([a-z]+\d+)_", name):
            count, kind = int(match.group(1)), match.group(2).upper()
            findings.rule("gpu.count", count == gpu.count, f"run: --recipe {name}", stated=gpu.count, computed=count)
            findings.rule("gpu.type", kind == gpu.type, f"run: --recipe {name}", stated=gpu.type, computed=kind)


def run_config(block: RunBlock) -> TrainConfig | str:
    """The configuration that the --set keys of a train.sft run block make, or why they make none."""
    values = {}
    for name, given in block.flags.items():
        if name in TrainConfig.model_fields and given:
            try:
                values[name] = parse_yaml(given[0], "run", "a --set")
            except UsageError as error:
                return f"{name}: {error.found}"
    try:
        return TrainConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _config(findings: Findings, block: RunBlock) -> None:
    recipe = findings.context.recipe
    processes = 1
    for flag in ("--nnodes", "--nproc-per-node"):
        given = _read(block.flags[flag]) if flag in block.flags else 1
        processes *= given if isinstance(given, int) else 0
    formula = "run: nnodes * nproc-per-node, one process a GPU"
    findings.rule("gpu.count", processes == recipe.gpu.count, formula, stated=recipe.gpu.count, computed=processes)
    config = run_config(block)
    if isinstance(config, str):
        findings.unknown("run", f"the --set keys alone are no configuration: {config}")
        return
    reasons = layout_reasons(config, recipe.gpu.count)
    findings.rule("layout", not reasons, "; ".join(reasons) or "the trainer refuses nothing")
    result = recipe.result
    if result is not None and result.active_params is not None:
        matmul = parameter_counts(config).matmul
        findings.figure("result.active_params.count", matmul, "train.flops: matrices that a token is multiplied with")
