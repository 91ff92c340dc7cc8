"""A finished run as a verification card, in the layout of Megatron-Bridge's examples/model_verification_cards.

The layout wants an entry for every kind of verification. A run of train.sft shows one of them, sft; all others stay
unverified, with nothing filled in. Null stands where the layout asks for what no run file says.
"""

from __future__ import annotations

import math
import statistics
from typing import Any

from train.flops import parameter_counts
from train.recipe.from_run import gpu_type
from train.recipe.model import Recipe
from train.recipe.run_files import RunFiles

MODEL_ITEMS = (
    "hf_to_megatron_cpu",
    "hf_to_megatron_gpu",
    "megatron_to_hf_cpu",
    "megatron_to_hf_gpu",
    "manual_forward_pass",
    "inference",
)
TRAINING_ITEMS = ("pretrain", "sft", "sft_export_inference", "sft_long_context", "peft", "checkpoint_resume")
WITH_FEATURES = ("pretrain", "sft", "sft_long_context", "peft")
PUBLIC_HARDWARE = frozenset(
    ("A100", "A800", "B100", "B200", "B300", "GB200", "GB300", "H20", "H100", "H200", "H800", "R100")
)
# The layout asks every card without a tuned pretraining recipe to begin with this sentence, to the letter.
DISCLAIMER = (
    "Performance disclaimer: this model has not been performance-tuned; reported timing and throughput metrics are "
    "sanity checks, not optimized performance results."
)
LAST = 10
LOSS_RELATIVE, LOSS_ABSOLUTE = 1.0e-2, 1.0e-6


def verification_card(run: RunFiles, recipe: Recipe) -> dict[str, Any]:
    """The card, keys in the order of the layout. What it asks for and the run does not say is added to run.missing."""
    hardware = gpu_type(run)
    status = "verified" if recipe.status == "verified" else "unverified"
    if hardware not in PUBLIC_HARDWARE:
        run.missing.append(f"card: public hardware; the run was on {hardware}")
    if run.config.precision != "bf16":
        run.missing.append(f"card: precision; the layout has no {run.config.precision}")
    run.missing.append(
        "card: hf_id, hf_revision, min_transformers_version, base_container, bridge_commit are not of a run"
    )
    others = [item for item in TRAINING_ITEMS if item != "sft"]
    training: dict[str, list[str]] = {"verified": ["sft"]} if status == "verified" else {}
    training["unverified"] = others if status == "verified" else list(TRAINING_ITEMS)
    items: dict[str, Any] = {name: _empty(name) for name in MODEL_ITEMS}
    for name in TRAINING_ITEMS:
        items[name] = {hardware: _sft(run, recipe, status) if name == "sft" else _empty(name)}
    return {
        "title": "databuild_train_sft",
        "summary": f"{DISCLAIMER} One SFT run of train.sft: {recipe.model}. The run shows the level {recipe.status}.",
        "verification_index": {"model_level": {"unverified": list(MODEL_ITEMS)}, "training": {hardware: training}},
        "model": {
            "hf_id": None,
            "hf_revision": None,
            "architecture": recipe.model,
            "min_transformers_version": None,
        },
        "verification_environment": {"base_container": None, "bridge_commit": None},
        "items": items,
    }


def _empty(name: str) -> dict[str, Any]:
    command = "commands" if name == "sft_export_inference" else "command"
    item: dict[str, Any] = {"status": "unverified", "precision": None}
    if name in WITH_FEATURES:
        item["enabled_features"] = {}
    if name in ("sft_export_inference", "checkpoint_resume"):
        item["depends_on"] = "sft" if name == "sft_export_inference" else "pretrain"
    item |= {command: None, "last_verified": None}
    if name in TRAINING_ITEMS and name != "sft_export_inference":
        item["metrics"] = dict.fromkeys(_metrics_names())
    if name == "checkpoint_resume":
        item["resume_comparison"] = {
            "reference_item": "pretrain",
            "sentinel_steps": None,
            "loss_relative_tolerance": LOSS_RELATIVE,
            "loss_absolute_tolerance": LOSS_ABSOLUTE,
            "sentinels_match": False,
        }
    return item | {"expected_result": None}


def _metrics_names() -> list[str]:
    return [
        "initial_loss",
        "final_loss",
        f"last_{LAST}_steps_step_time_ms_avg",
        f"last_{LAST}_steps_model_tflops_per_gpu_avg",
        f"last_{LAST}_steps_tokens_per_second_per_gpu_avg",
    ]


def _sft(run: RunFiles, recipe: Recipe, status: str) -> dict[str, Any]:
    c = run.config
    features: dict[str, Any] = {"sequence_packing": "offline"} if c.attention == "document" else {}
    features |= {"context_parallel_size": c.cp} if c.cp > 1 else {}
    finished = run.summary.get("finished_at")
    return {
        "status": status,
        "precision": "bf16" if c.precision == "bf16" else None,
        "enabled_features": features,
        "command": f"torchrun --nproc-per-node {recipe.gpu.per_node or recipe.gpu.count} -m train.sft --rows rows "
        "--config config.yaml --out run",
        "last_verified": finished[:10] if finished and status == "verified" else None,
        "metrics": card_metrics(run),
        "expected_result": _expected(run, recipe),
    }


def card_metrics(run: RunFiles) -> dict[str, float | None]:
    """The metrics of the layout; the averages are null for fewer than ten steps of this layout.

    tokens/s/GPU is that of the mean step: tokens/s/GPU * GPUs * step time = global batch * row length, as the public cards have
    it. Model FLOPs count attention and multi-token prediction, and no recomputation.
    """
    c = run.config
    own = (run.lines if run.resumed_from is None or run.same_layout else run.own)[-LAST:]
    step_ms = tflops = speed = None
    if len(own) == LAST:
        seconds = statistics.fmean(line["step_time_s"] for line in own)
        speed = c.tokens_per_step / (seconds * run.num_gpus)
        step_ms = 1000 * seconds
        attention = run.summary["figures"]["mfu_with_attention"]["inputs"]["attention_flops_per_token"]
        if attention is not None:
            tflops = (6 * parameter_counts(c).matmul_with_mtp + attention) * speed / 1e12
    values = (run.lines[0]["loss"], run.lines[-1]["loss"], step_ms, tflops, speed)
    metrics = {name: _rounded(value) for name, value in zip(_metrics_names(), values, strict=True)}
    for key in ("allocated", "reserved"):
        peaks = [line[f"peak_{key}_gib"] for line in run.own if line.get(f"peak_{key}_gib") is not None]
        if peaks:
            metrics[f"peak_{key}_memory_gib"] = _rounded(max(peaks))
    return metrics


def _rounded(value: float | None) -> float | None:
    """Three decimals, as the public cards have them, or six significant digits of what is smaller than one."""
    if not value or abs(value) >= 1:
        return round(value, 3) if value else value
    return round(value, 5 - math.floor(math.log10(abs(value))))


def _expected(run: RunFiles, recipe: Recipe) -> str:
    label, count = recipe.layout.label, len(run.lines)
    parts = [f"On {run.num_gpus} {recipe.gpu.type}, {label}: {count} steps with finite loss, none skipped."]
    if run.rows_sha256:
        parts.append(f"rows_sha256 {run.rows_sha256}.")
    observed = recipe.evidence.observed
    if observed is not None and observed.checkpoint_step is not None:
        parts.append(
            f"Saved at step {observed.checkpoint_step} and resumed from it to step {observed.resumed_to_step}."
        )
    elif run.checkpoints:
        parts.append(f"Whole checkpoints at steps {', '.join(map(str, sorted(run.checkpoints)))}; not resumed.")
    return " ".join(parts)
