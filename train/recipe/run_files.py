"""The files of a finished run of train.sft, read and held against each other.

The files have no digests. What can be computed twice is: every figure of summary.json again from the step lines and the
configuration. A run whose files contradict each other gives no card.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from databuild.errors import IntegrityError, UsageError
from manifests.canonical import strict_json
from manifests.model import Manifest, ManifestError, read_manifest
from train.config import TrainConfig
from train.logs import read_metrics
from train.summary import summarize
from train.yaml12 import parse_yaml

# What a checkpoint may differ in from the run that goes on from it, and still be a run of this layout.
NO_LAYOUT = frozenset(("save_interval", "log_interval", "load_hf", "price_per_gpu_hour", "peak_tflops"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFiles:
    """A finished run. lines: every step, 1 to the last. own: those of the process that finished, which summary is about."""

    folder: Path
    config: TrainConfig
    lines: list[dict[str, Any]]
    own: list[dict[str, Any]]
    summary: dict[str, Any]
    stack: dict[str, Any]
    manifest: Manifest | None
    rows_sha256: str | None
    checkpoints: dict[int, dict[str, Any]]
    """checkpoint.json of each whole checkpoint, by its step"""
    missing: list[str]
    """what the files do not say, for people"""

    @property
    def num_gpus(self) -> int:
        """Processes, one a GPU."""
        return int(self.summary["figures"]["gpu_hours"]["inputs"]["gpus"])

    @property
    def resumed_from(self) -> int | None:
        """Steps that were done when the process that finished started from a checkpoint."""
        before = len(self.lines) - len(self.own)
        return before or None

    @property
    def same_layout(self) -> bool:
        """Whether the steps before the resume are known to be of this configuration."""
        record = self.checkpoints.get(self.resumed_from or 0)
        now = self.config.model_dump(mode="json")
        return record is not None and all(
            record["config"].get(key) == value for key, value in now.items() if key not in NO_LAYOUT
        )


def read_run(folder: Path) -> RunFiles:
    """Read a run. UsageError if it is none or has not finished, IntegrityError if its files contradict each other."""
    if not (folder / "config.yaml").is_file():
        raise UsageError("there is no run here", where=str(folder), expected="config.yaml, as train.sft writes it")
    for name, why in (("metrics.jsonl", "no step was recorded"), ("summary.json", "the run has not finished")):
        if not (folder / name).is_file():
            raise UsageError(why, where=str(folder / name), next_step="finish it with --resume")
    config = _config(folder / "config.yaml")
    lines = read_metrics(folder / "metrics.jsonl")
    if lines and lines[-1]["step"] < config.steps:
        raise UsageError(
            "the run was stopped before its last step",
            where=str(folder),
            expected=f"{config.steps} steps",
            found=str(lines[-1]["step"]),
            next_step="finish it with --resume",
        )
    summary = _object(folder / "summary.json", required=True)
    own = _own_lines(folder, lines, summary)
    _prove_summary(folder, config, own, summary)
    _prove_lines(folder, config, lines, own, summary["figures"]["gpu_hours"]["inputs"]["gpus"])
    missing: list[str] = []
    stack = _object(folder / "stack.json", required=False)
    if not stack:
        missing.append("stack.json: versions and the GPU")
    manifest = _manifest(folder / "rows.json", missing)
    checkpoints = _checkpoints(folder / "checkpoints")
    digests = {record["rows_sha256"] for record in checkpoints.values()}
    digests |= {manifest.rows.rows_sha256} if manifest else set()
    if len(digests) > 1:
        raise IntegrityError("the run names two sets of rows", where=str(folder), found=", ".join(sorted(digests)))
    if not digests:
        missing.append("rows.json and checkpoints: which rows it was trained on")
    if manifest is not None and manifest.rows.row_tokens != config.seq_length:
        raise IntegrityError(
            "rows.json and config.yaml disagree on the row length",
            where=str(folder),
            expected=str(manifest.rows.row_tokens),
            found=str(config.seq_length),
        )
    return RunFiles(
        folder=folder,
        config=config,
        lines=lines,
        own=own,
        summary=summary,
        stack=stack,
        manifest=manifest,
        rows_sha256=next(iter(digests), None),
        checkpoints=checkpoints,
        missing=missing,
    )


def _config(path: Path) -> TrainConfig:
    # Not load_config: with load_hf that would ask the checkpoint again, and config.yaml holds every key already.
    try:
        return TrainConfig.model_validate(parse_yaml(path.read_text(encoding="utf-8"), str(path), "the configuration"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        found = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UsageError("config.yaml is of another version of the trainer", where=str(path), found=found) from error


def _object(path: Path, *, required: bool) -> dict[str, Any]:
    if not path.is_file() and not required:
        return {}
    try:
        value = strict_json(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"{path.name} is damaged", where=str(path), found=str(error)) from error
    if not isinstance(value, dict):
        raise IntegrityError(f"{path.name} is damaged", where=str(path), found=type(value).__name__)
    return value


def _own_lines(folder: Path, lines: list[dict[str, Any]], summary: dict[str, Any]) -> list[dict[str, Any]]:
    steps = [line["step"] for line in lines]
    if not steps or steps != list(range(1, len(steps) + 1)):
        raise IntegrityError(
            "metrics.jsonl does not hold every step once",
            where=str(folder / "metrics.jsonl"),
            found=f"{len(steps)} lines",
        )
    count = summary.get("steps")
    if not isinstance(count, int) or not 1 <= count <= len(lines):
        raise IntegrityError(
            "summary.json is not of these steps",
            where=str(folder / "summary.json"),
            expected=f"1 to {len(lines)} steps",
            found=str(count),
        )
    return lines[-count:]


def _prove_lines(
    folder: Path, config: TrainConfig, lines: list[dict[str, Any]], own: list[dict[str, Any]], gpus: int
) -> None:
    """What a line says twice must agree; the number of GPUs is known of the process that finished alone."""
    for line in lines:
        try:
            seconds, tokens = line["step_time_s"], line["tokens"]
            right = (
                tokens == config.tokens_per_step
                and line["consumed_rows"] == line["step"] * config.global_batch_size
                and math.isfinite(line["loss"])
                and seconds > 0
                and (line["step"] < own[0]["step"] or _close(tokens / (seconds * gpus), line["tokens_per_s_per_gpu"]))
            )
        except (KeyError, TypeError, ZeroDivisionError):
            right = False
        if not right:
            raise IntegrityError(
                "a step contradicts itself or config.yaml",
                where=f"{folder / 'metrics.jsonl'}, step {line['step']}",
                expected="tokens, consumed_rows and tokens_per_s_per_gpu that follow from the batch and the time",
            )


def _prove_summary(folder: Path, config: TrainConfig, own: list[dict[str, Any]], summary: dict[str, Any]) -> None:
    try:
        inputs = {name: figure["inputs"] for name, figure in summary["figures"].items()}
        again = summarize(
            own,
            config,
            num_gpus=inputs["gpu_hours"]["gpus"],
            wall_s=inputs["gpu_hours"]["wall_s"],
            window=tuple(summary["window"]),
            attention_flops=inputs["mfu_with_attention"]["attention_flops_per_token"],
        )
        wrong = [key for key in again if key != "figures" and again[key] != summary.get(key)]
        wrong += [name for name, value in again["figures"].items() if not _close(value, summary["figures"].get(name))]
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
        raise IntegrityError(
            "summary.json is not of this version of the trainer", where=str(folder / "summary.json"), found=repr(error)
        ) from error
    if wrong:
        name = wrong[0]
        figures = again["figures"]
        raise IntegrityError(
            f"{name} of summary.json does not follow from metrics.jsonl and config.yaml",
            where=str(folder / "summary.json"),
            expected=str(figures[name]["value"] if name in figures else again[name]),
            found=str(summary["figures"][name]["value"] if name in figures else summary.get(name)),
            next_step="the files are not of one run, or one was changed",
        )


def _close(a: Any, b: Any) -> bool:
    """Equal, but for the last bits of a float: statistics sums in another order in some versions of Python."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_close(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, int | float):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b))
    return bool(a == b)


def _manifest(path: Path, missing: list[str]) -> Manifest | None:
    if not path.is_file():
        missing.append("rows.json: the data set, its revision and how its rows were built")
        return None
    try:
        return read_manifest(path.read_bytes())
    except ManifestError as error:
        raise IntegrityError("rows.json is damaged", where=str(path), found=str(error)) from error


def _checkpoints(folder: Path) -> dict[int, dict[str, Any]]:
    records = {}
    for path in sorted(folder.glob("step-*/checkpoint.json")):
        record = _object(path, required=True)
        if {"step", "rows_sha256", "config"} <= record.keys():
            records[int(record["step"])] = record
    return records
