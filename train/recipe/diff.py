"""Two recipes side by side: every setting that differs, classed by a list of rules.

layout     spreads the same computation over machines in another way; losses agree up to rounding
numerics   changes what is computed: the runs cannot be compared
neither    records, hardware and software beside the computation

A setting that no rule knows is numerics: an unknown difference must not pass for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from train.recipe.flags import TABLES, parse_run
from train.recipe.model import Recipe

Kind = Literal["layout", "numerics", "neither"]

# First match decides; patterns of fnmatch.
RULES: tuple[tuple[str, Kind, str], ...] = (
    ("model", "numerics", "another model"),
    ("workload.row_tokens", "numerics", "other rows"),
    ("workload.rows", "numerics", "other rows"),
    ("workload.global_batch", "numerics", "another batch a step"),
    ("workload.precision", "numerics", "another precision"),
    ("workload.dataset.rows_sha256", "numerics", "other rows, or the same in another order"),
    ("workload.dataset.name", "neither", "a name; rows_sha256 decides"),
    ("workload.dataset.license", "neither", "a record"),
    ("workload.dataset.build.parquet_*", "neither", "depends on the parquet writer; rows_sha256 decides"),
    ("workload.dataset.build.name", "neither", "a name; rows_sha256 decides"),
    ("workload.dataset.build.builder", "neither", "a name; rows_sha256 decides"),
    ("workload.dataset.build.packing", "neither", "words; rows_sha256 decides"),
    ("workload.dataset.*", "numerics", "other rows"),
    ("workload.dataset", "numerics", "rows that only one of them names"),
    ("layout.label", "neither", "words"),
    ("layout.summary", "neither", "words"),
    ("layout.highlights*", "neither", "words"),
    ("layout.*", "layout", "how the computation is spread; the loss is one sum over the targets of the global batch"),
    ("evidence.inputs.pipeline_layout", "layout", "how layers are spread over stages"),
    ("evidence.inputs.num_*", "numerics", "another model"),
    ("gpu.*", "neither", "hardware: rounding may differ, the computation does not"),
    ("stack.*", "neither", "software: rounding may differ, the computation should not"),
    ("patches*", "numerics", "changed code can compute anything"),
    ("env.NVTE_ALLOW_NONDETERMINISTIC_ALGO", "neither", "run-to-run noise"),
    ("env.*_CACHE_DIR", "neither", "where kernels are kept"),
    ("env.FI_*", "neither", "network"),
    ("env.NCCL_*", "neither", "network"),
    ("env.TORCH_NCCL_*", "neither", "network"),
    ("env.OMP_NUM_THREADS", "neither", "threads of the host"),
    ("env.CUBLAS_WORKSPACE_CONFIG", "neither", "run-to-run noise"),
    ("env.NUM_OF_*", "neither", "network"),
    ("env.NVLINK_DOMAIN_SIZE", "neither", "network"),
    ("env.USE_MNNVL", "neither", "network"),
    ("env.CUDA_DEVICE_MAX_CONNECTIONS", "neither", "order of launches"),
    ("env.PYTORCH_CUDA_ALLOC_CONF", "neither", "memory"),
    ("env.NVTE_CPU_OFFLOAD_V1", "layout", "where activations are kept"),
    ("env.NVTE_*_SM_MARGIN", "neither", "share of a GPU that kernels leave to communication"),
    ("schema_version", "neither", "a record"),
    ("author.*", "neither", "a record"),
    ("status", "neither", "follows from what was run"),
    ("result*", "neither", "what was measured"),
    ("correctness*", "neither", "what was measured"),
    ("evidence.*", "neither", "records and measurements"),
    # Flags of the run block that the schema has no key for.
    ("run.--hf-checkpoint", "neither", "a path"),
    ("run.--ref-load", "neither", "a path"),
    ("run.--prompt-data", "neither", "a path; rows_sha256 decides"),
    ("run.--rows", "neither", "a path; rows_sha256 decides"),
    ("run.--out", "neither", "a path"),
    ("run.--config", "neither", "a path; the keys after --set are compared"),
    ("run.--distributed-timeout-minutes", "neither", "waiting"),
    ("run.--use-distributed-optimizer", "layout", "where optimizer states are kept"),
    ("run.use_distributed_optimizer", "layout", "where optimizer states are kept"),
    ("run.--recipe", "neither", "a name of settings that stand above"),
    ("run.save_interval", "neither", "writing"),
    ("run.log_interval", "neither", "writing"),
    ("run.engine", "numerics", "another trainer"),
    ("run.--num-rollout", "numerics", "the learning rate is spread over all steps"),
    ("run.--max_steps", "numerics", "the learning rate is spread over all steps"),
    ("run.steps", "numerics", "the learning rate is spread over all steps"),
    ("run.--lr*", "numerics", "another learning rate"),
    ("run.--min-lr", "numerics", "another learning rate"),
    ("run.--optimizer", "numerics", "another optimizer"),
    ("run.--adam*", "numerics", "another optimizer"),
    ("run.--weight-decay", "numerics", "another optimizer"),
    ("run.--*loss*", "numerics", "another loss"),
    ("run.--*dropout*", "numerics", "another regularization"),
    ("run.--*freeze*", "numerics", "other weights are trained"),
    ("run.--*fp32*", "numerics", "another precision"),
    ("run.--qkv-format", "numerics", "what a token attends to"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One setting that differs; a, b: its values, null where it is not there."""

    key: str
    kind: Kind
    reason: str
    a: Any
    b: Any


def diff_recipes(a: Recipe, b: Recipe) -> list[Difference]:
    """All differences, numerics first, then layout."""
    left, right = _settings(a), _settings(b)
    keys = [*left, *(key for key in right if key not in left)]
    differences = [
        Difference(key=key, kind=kind, reason=reason, a=left.get(key), b=right.get(key))
        for key in keys
        if left.get(key) != right.get(key)
        for kind, reason in [classify(key)]
    ]
    order = ("numerics", "layout", "neither")
    return sorted(differences, key=lambda difference: order.index(difference.kind))


def comparable(differences: list[Difference]) -> bool:
    """Whether the losses of the two runs may be compared: nothing that is numerics differs."""
    return all(difference.kind != "numerics" for difference in differences)


def rows_known(a: Recipe, b: Recipe) -> bool:
    """Whether both recipes name their rows by rows_sha256; equal nulls say nothing."""
    return all(r.workload.dataset is not None and r.workload.dataset.rows_sha256 is not None for r in (a, b))


def classify(key: str) -> tuple[Kind, str]:
    """What kind of setting a key is, and why."""
    for pattern, kind, reason in RULES:
        if fnmatchcase(key, pattern):
            return kind, reason
    return "numerics", "no rule knows it"


def _settings(recipe: Recipe) -> dict[str, Any]:
    value = recipe.model_dump(mode="json")
    run = value.pop("run")
    return _flat(value, "") | _run_settings(run)


def _flat(value: Any, path: str) -> dict[str, Any]:
    if isinstance(value, dict):
        parts = [_flat(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        parts = [_flat(item, f"{path}[{index}]") for index, item in enumerate(value)]
    else:
        return {path: value}
    return {key: item for part in parts for key, item in part.items()}


def _run_settings(run: str | None) -> dict[str, Any]:
    """The flags that stand for no key of the schema; the others are compared there."""
    if run is None:
        return {}
    try:
        block = parse_run(run)
    except ValueError:
        return {"run": run}
    known = TABLES[block.engine] if block.engine else {}
    settings: dict[str, Any] = {"run.engine": block.engine}
    for flag, values in block.flags.items():
        # How many steps there are is a result, and a setting too: the schedule of the learning rate is spread over them.
        if flag != "--set" and known.get(flag, "result.steps_per_run") == "result.steps_per_run":
            settings[f"run.{flag}"] = " ".join(values) or True
    return settings
