"""The run block: which command of which engine it is, and what its flags say of the layout."""

from __future__ import annotations

import functools
import re
import shlex
from dataclasses import dataclass
from typing import Literal

Engine = Literal["miles", "bridge", "train.sft"]

# Flag -> key of the recipe. `nodes` is gpu.count / gpu.per_node.
MILES = {
    "--actor-num-nodes": "nodes",
    "--actor-num-gpus-per-node": "gpu.per_node",
    "--num-gpus-per-node": "gpu.per_node",
    "--tensor-model-parallel-size": "layout.tp",
    "--pipeline-model-parallel-size": "layout.pp",
    "--context-parallel-size": "layout.cp",
    "--expert-model-parallel-size": "layout.ep",
    "--expert-tensor-parallel-size": "layout.etp",
    "--sequence-parallel": "layout.sequence_parallel",
    "--decoder-first-pipeline-num-layers": "layout.layer_split.first",
    "--decoder-last-pipeline-num-layers": "layout.layer_split.last",
    "--recompute-granularity": "layout.recompute.granularity",
    "--recompute-method": "layout.recompute.method",
    "--recompute-num-layers": "layout.recompute.num_layers",
    "--micro-batch-size": "layout.rows_per_microbatch",
    "--global-batch-size": "workload.global_batch",
    "--rollout-batch-size": "workload.global_batch",
    "--num-rollout": "result.steps_per_run",
    "--max-tokens-per-gpu": "layout.max_tokens_per_gpu",
}
BRIDGE = {
    "--nodes": "nodes",
    "--gpus-per-node": "gpu.per_node",
    "--max_steps": "result.steps_per_run",
    "--seq_length": "workload.row_tokens",
    "--tensor_model_parallel_size": "layout.tp",
    "--pipeline_model_parallel_size": "layout.pp",
    "--context_parallel_size": "layout.cp",
    "--expert_model_parallel_size": "layout.ep",
    "model.tensor_model_parallel_size": "layout.tp",
    "model.pipeline_model_parallel_size": "layout.pp",
    "model.virtual_pipeline_model_parallel_size": "layout.vpp",
    "model.context_parallel_size": "layout.cp",
    "model.expert_model_parallel_size": "layout.ep",
    "model.expert_tensor_parallel_size": "layout.etp",
    "model.pipeline_model_parallel_layout": "evidence.inputs.pipeline_layout",
    "dataset.seq_length": "workload.row_tokens",
}
SFT = {
    "--nnodes": "nodes",
    "--nproc-per-node": "gpu.per_node",
    "tp": "layout.tp",
    "pp": "layout.pp",
    "cp": "layout.cp",
    "ep": "layout.ep",
    "etp": "layout.etp",
    "sequence_parallel": "layout.sequence_parallel",
    "first_stage_layers": "layout.layer_split.first",
    "last_stage_layers": "layout.layer_split.last",
    "recompute": "layout.recompute.granularity",
    "micro_batch_size": "layout.rows_per_microbatch",
    "global_batch_size": "workload.global_batch",
    "seq_length": "workload.row_tokens",
    "steps": "result.steps_per_run",
    "precision": "workload.precision",
    "num_layers": "evidence.inputs.num_layers",
    "num_moe_experts": "evidence.inputs.num_experts",
    "peak_tflops": "evidence.inputs.peak_tflops",
    "price_per_gpu_hour": "evidence.inputs.usd_per_gpu_hour",
}
TABLES: dict[Engine, dict[str, str]] = {"miles": MILES, "bridge": BRIDGE, "train.sft": SFT}

# What an engine takes where the flag is left out; a recipe that states something else needs the flag. Expert tensor parallel
# size follows tp in Megatron. A Bridge recipe sets its own layout, so that nothing needs a flag there.
DEFAULTS: dict[Engine, dict[str, object]] = {
    "miles": {
        **{f"layout.{key}": 1 for key in ("tp", "pp", "cp", "ep", "rows_per_microbatch")},
        "layout.etp": "layout.tp",
        "layout.sequence_parallel": False,
        "layout.layer_split.first": None,
        "layout.layer_split.last": None,
        "layout.recompute.granularity": None,
        "layout.recompute.method": None,
        "layout.recompute.num_layers": None,
    },
    "bridge": {},
    "train.sft": {},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBlock:
    """A run block. flags: their values, `--set` and `key=value` overrides under their bare key; exports: NAME=VALUE."""

    engine: Engine | None
    flags: dict[str, tuple[str, ...]]
    repeated: tuple[str, ...]
    exports: dict[str, str]


@functools.lru_cache(maxsize=64)
def parse_run(text: str) -> RunBlock:
    """Read a run block. ValueError if a shell could not."""
    words = shlex.split(text.replace("\\\n", " "), comments=True)
    flags: dict[str, tuple[str, ...]] = {}
    repeated: list[str] = []
    exports: dict[str, str] = {}
    engine: Engine | None = None
    current: str | None = None

    def put(name: str, values: tuple[str, ...]) -> None:
        if name in flags and name != "--set":
            repeated.append(name)
        flags[name] = values

    for word in words:
        engine = engine or _engine_of(word)
        override = re.fullmatch(r"\+{0,2}([A-Za-z_][A-Za-z0-9_.]*)=(.*)", word, re.DOTALL)
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            # torchrun takes either spelling.
            name = name.replace("_", "-") if name.startswith(("--nproc", "--nnodes")) else name
            put(name, (value,) if equals else ())
            current = None if equals else name
        elif override and current in (None, "--set"):
            name, value = override.groups()
            if engine is None and name.isupper():
                exports[name] = value
            else:
                put(name, (value,))
        elif current is not None:
            flags[current] = (*flags[current], word)
    return RunBlock(engine=engine, flags=flags, repeated=tuple(repeated), exports=exports)


def _engine_of(word: str) -> Engine | None:
    name = word.rpartition("/")[2]
    engines: dict[str, Engine] = {"train.py": "miles", "train.sh": "bridge", "train.sft": "train.sft"}
    return engines.get(name)
