"""A finished run of train.sft as a recipe: filled from its files and nothing else, null where they say nothing."""

from __future__ import annotations

import math
import re
import shlex
from typing import Any

from train.config import TrainConfig, print_config
from train.flops import parameter_counts
from train.layout import data_parallel_size
from train.recipe import derive
from train.recipe.correctness import correctness_of
from train.recipe.evidence import level
from train.recipe.model import Recipe
from train.recipe.run_files import RunFiles
from train.yaml12 import parse_yaml

GPU_NAMES = re.compile(r"\b(GB300|GB200|B300|B200|B100|H800|H200|H100|H20|A800|A100|R100)\b")
# Where the run was made matters to nobody else; they stand in the command under their own names.
PATHS = {"load_hf": "$LOAD_HF"}


def recipe_from_run(run: RunFiles, golden: RunFiles | None = None) -> Recipe:
    """The recipe of a run; its status is the level that the run shows. What is missing is added to run.missing.

    golden: a run of the same configuration and rows, mostly in another layout, that its losses are judged by.
    """
    value = {
        "schema_version": 1,
        "model": _model_name(run.config),
        "gpu": _gpu(run),
        "author": {"name": None, "url": None},
        "status": "unverified",
        "stack": _stack(run),
        "workload": _workload(run),
        "layout": _layout(run),
        "result": _result(run),
        "correctness": None,
        "env": dict(run.stack.get("env", {})),
        "patches": _patches(run),
        "run": _command(run),
        "evidence": _evidence(run),
    }
    if "env" not in run.stack:
        run.missing.append("stack.json: the environment")
    recipe = Recipe.model_validate(value)
    if golden is None:
        run.missing.append("correctness: nothing was compared; --golden RUN names a run to be judged by")
    else:
        correctness = correctness_of(run, recipe, golden, recipe_from_run(golden))
        recipe = recipe.model_copy(update={"correctness": correctness})
    return recipe.model_copy(update={"status": level(recipe)[0]})


def gpu_type(run: RunFiles) -> str:
    """The public name of the GPU, CPU without one."""
    name = run.stack.get("gpu")
    match = GPU_NAMES.search(name or "")
    return match.group() if match else name or "CPU"


def _model_name(c: TrainConfig) -> str:
    kind = "MoE" if c.num_moe_experts else "dense"
    kind += ", MLA" if c.multi_latent_attention else ""
    return f"{kind}, {c.num_layers} layers of {c.hidden_size}"


def _gpu(run: RunFiles) -> dict[str, Any]:
    per_node = run.stack.get("gpus_per_node")
    if per_node is None:
        run.missing.append("stack.json: GPUs of a node")
    return {
        "type": gpu_type(run),
        "memory_gb": None,
        "count": run.num_gpus,
        "per_node": per_node,
        "instance": None,
    }


def _stack(run: RunFiles) -> dict[str, Any]:
    s = run.stack
    commit = s.get("git_commit")
    core = s.get("megatron_core")
    return {
        "framework": f"databuild {s['databuild']}, train.sft" if s.get("databuild") else None,
        "megatron_lm": f"megatron-core {core}" if core else None,
        "transformer_engine": s.get("transformer_engine"),
        "pytorch": s.get("torch"),
        "cuda": s.get("cuda"),
        "nccl": s.get("nccl"),
        "deepep": None,
        "python": s.get("python"),
        "network": None,
        "source": "stack.json of the run" + (f", commit {commit}" if commit else "") if s else None,
    }


def _patches(run: RunFiles) -> list[str]:
    changed = run.stack.get("git_clean") is False
    return [f"changes that are not committed, over {run.stack.get('git_commit')}"] if changed else []


def _workload(run: RunFiles) -> dict[str, Any]:
    c, manifest = run.config, run.manifest
    return {
        "row_tokens": c.seq_length,
        "rows": manifest.rows.rows if manifest else None,
        "global_batch": c.global_batch_size,
        "precision": c.precision,
        "dataset": _dataset(run),
    }


def _dataset(run: RunFiles) -> dict[str, Any] | None:
    m = run.manifest
    if m is None:
        if run.rows_sha256 is None:
            return None
        known = {"name": "rows of a build that is not recorded", "rows_sha256": run.rows_sha256}
        return known | dict.fromkeys(("source", "revision", "license", "build"))
    one = m.sources[0] if len(m.sources) == 1 else None
    file = m.files[0] if len(m.files) == 1 else None
    return {
        "name": m.name,
        "source": ", ".join(source.name or source.kind for source in m.sources),
        "revision": one.revision if one and re.fullmatch(r"[0-9a-f]{40}", one.revision or "") else None,
        "license": one.license if one else None,
        "rows_sha256": m.rows.rows_sha256,
        "build": {
            "name": m.name,
            "tokenizer": m.tokenizer.name,
            "loss_mask": m.spec.get("loss_mask_type"),
            "rows": m.rows.rows,
            "row_tokens": m.rows.row_tokens,
            "padding_tokens": 0,
            "seed": m.spec.get("seed"),
            "packing": f"cut, one stream of conversations every {m.rows.row_tokens} tokens",
            "supervised_token_ratio": round(m.rows.supervised_token_ratio, 6),
            "parquet_sha256": file.sha256 if file else None,
            "parquet_bytes": file.bytes if file else None,
            "builder": "databuild",
        },
    }


def _layout(run: RunFiles) -> dict[str, Any]:
    c, dp = run.config, data_parallel_size(run.config, run.num_gpus)
    sizes = {"TP": c.tp, "PP": c.pp, "CP": c.cp, "EP": c.ep, "ETP": c.etp, "DP": dp}
    sizes |= {"GBS": c.global_batch_size, "MBS": c.micro_batch_size, "SEQ": c.seq_length}
    full = c.recompute == "full"
    return {
        "label": " ".join(f"{name}{size}" for name, size in sizes.items()),
        "summary": f"processes: {run.num_gpus}, copies of the model: {dp}",
        "highlights": [f"attention: {c.attention}", *(["deterministic"] if c.deterministic else [])],
        "tp": c.tp,
        "pp": c.pp,
        "vpp": None,
        "cp": c.cp,
        "ep": c.ep,
        "etp": c.etp,
        "dp": dp,
        "sequence_parallel": c.sequence_parallel,
        "layer_split": _layer_split(c),
        "max_tokens_per_gpu": None,
        "rows_per_microbatch": c.micro_batch_size,
        "recompute": {
            "granularity": c.recompute,
            "method": "uniform" if full else None,
            "num_layers": 1 if full else None,
        },
        "offload": "none",
        "dispatcher": "alltoall" if c.num_moe_experts else None,
    }


def _layer_split(c: TrainConfig) -> dict[str, int] | None:
    first, last = c.first_stage_layers, c.last_stage_layers
    if first is None and last is None:
        return None
    even = (c.num_layers - (first or 0) - (last or 0)) // max(1, c.pp - (first is not None) - (last is not None))
    return {"first": first or even, "last": last or even}


def window_times(run: RunFiles) -> list[float]:
    """Step times of the window in seconds, to a microsecond."""
    first, last = run.summary["window"]
    return [round(line["step_time_s"], 6) for line in run.own if first <= line["step"] <= last]


def _result(run: RunFiles) -> dict[str, Any]:
    c, summary = run.config, run.summary
    first, last = summary["window"]
    times = window_times(run)
    tokens = len(times) * c.tokens_per_step
    # From the times that the recipe states, so that whoever has the recipe computes the same.
    speed = _digits(derive.tokens_per_s_per_gpu(tokens, sum(times), run.num_gpus))
    variation = derive.variation_percent(times, 0)
    matmul = parameter_counts(c).matmul
    whole = run.resumed_from is None
    if not whole:
        run.missing.append("GPU-hours: the run was resumed, and those before it are not recorded")
    wall = summary["figures"]["gpu_hours"]["inputs"]["wall_s"]
    measured = summary.get("finished_at")
    if measured is None:
        run.missing.append("summary.json: the date")
    return {
        "tokens_per_s_per_gpu": speed,
        "usd_per_million_tokens": (
            _digits(derive.usd_per_million_tokens(c.price_per_gpu_hour, speed)) if c.price_per_gpu_hour else None
        ),
        "step_time_cv_percent": round(variation, 2) if variation is not None else None,
        "mfu": _digits(derive.mfu(matmul, speed, c.peak_tflops), 4) if c.peak_tflops else None,
        "mfu_note": "6N over the stated peak; neither attention nor recomputation counted" if c.peak_tflops else None,
        "active_params": {
            "count": matmul,
            "source": "train.flops: matrices that a token is multiplied with, from the configuration",
            "revision": run.stack.get("git_commit"),
        },
        "measured": measured[:10] if measured else None,
        "steps_per_run": len(run.lines),
        "window": [first - 1, last - 1],
        "window_tokens": tokens,
        "runs": 1,
        "profiler": "torch.profiler, one step" if (run.folder / "profile").is_dir() else "none",
        "gpu_hours": _digits(derive.gpu_hours(run.num_gpus, round(wall, 3)), 4) if whole else None,
        "gpu_hours_note": "GPUs times the life of the process, start-up and saving included" if whole else None,
    }


def _digits(value: float, digits: int = 6) -> float:
    """A number with so many significant digits."""
    return round(value, digits - 1 - math.floor(math.log10(abs(value)))) if value else value


def _evidence(run: RunFiles) -> dict[str, Any]:
    c, wall = run.config, run.summary["figures"]["gpu_hours"]["inputs"]["wall_s"]
    return {
        "sources": [
            {
                "what": "all figures",
                "where": "config.yaml, metrics.jsonl, summary.json, stack.json, rows.json of the run",
            }
        ],
        "published_status": None,
        "inputs": {
            "peak_tflops": c.peak_tflops,
            "peak_source": "config.yaml of the run" if c.peak_tflops else None,
            "usd_per_gpu_hour": c.price_per_gpu_hour or None,
            "price_source": "config.yaml of the run" if c.price_per_gpu_hour else None,
            "num_layers": c.num_layers,
            "num_experts": c.num_moe_experts,
            "model_source": "config.yaml of the run",
            "pipeline_layout": None,
        },
        "observed": _observed(run),
        "step_times_s": window_times(run),
        "wall_s": round(wall, 3) if run.resumed_from is None else None,
        "measurements": _measurements(run),
    }


def _observed(run: RunFiles) -> dict[str, Any] | None:
    if run.resumed_from is not None and not run.same_layout:
        # Steps of another layout say nothing of this one, and a figure of 5 steps out of 105 would belong to neither.
        run.missing.append("checkpoints: the one it was resumed from, in this layout; the run shows nothing without it")
        return None
    resumed = run.resumed_from
    return {
        "row_tokens": run.config.seq_length,
        "steps": len(run.lines),
        "finite": True,  # read_run refuses others, and so does the trainer, which skips no step either
        "skipped_steps": 0,
        "natural_routing": True if run.config.num_moe_experts else None,
        "checkpoint_step": resumed,
        "resumed_to_step": len(run.lines) if resumed else None,
        "variants_compared": None,
    }


def _measurements(run: RunFiles) -> list[dict[str, Any]]:
    last = len(run.lines)
    chosen = [
        ("initial_loss", "nats per target token", f"step {run.lines[0]['step']}", run.lines[0]["loss"]),
        ("final_loss", "nats per target token", f"step {last}", run.lines[-1]["loss"]),
    ]
    for key in ("peak_allocated", "peak_reserved"):
        peaks = [line[f"{key}_gib"] for line in run.own if line.get(f"{key}_gib") is not None]
        if peaks:
            chosen.append((key, "GiB", "rank 0, over the whole process", max(peaks)))
    return [
        {"name": name, "unit": unit, "condition": condition, "outcome": "ran", "mean": _digits(value, 8)}
        for name, unit, condition, value in chosen
        if value > 0
    ]


def _command(run: RunFiles) -> str:
    """The command that makes this run again, every key that is not a default stated."""
    values = parse_yaml(print_config(run.config), "config", "the configuration")
    fields = TrainConfig.model_fields
    kept = {
        key: value
        for key, value in values.items()
        if value is not None and (fields[key].is_required() or value != fields[key].default or key in ALWAYS)
    }
    texts = [f"{key}={PATHS.get(key, _scalar(value))}" for key, value in kept.items()]
    per_node = run.stack.get("gpus_per_node") or run.num_gpus
    nodes = run.num_gpus // per_node
    lines = [f"torchrun --nnodes {nodes} --nproc-per-node {per_node} -m train.sft \\"]
    lines.append("  --rows $ROWS --config config.yaml --out $RUN \\")
    lines.append("  --set " + " ".join(shlex.quote(text) if "$" not in text else text for text in texts))
    return "\n".join(lines) + "\n"


ALWAYS = frozenset(
    (
        "steps",
        "seq_length",
        "micro_batch_size",
        "global_batch_size",
        "tp",
        "pp",
        "cp",
        "ep",
        "etp",
        "precision",
        "recompute",
    )
)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ",".join(map(_scalar, value)) + "]"
    return str(value)
