"""Checkpoints: whole or not there, proven before they are loaded, loadable in another layout.

RUN/checkpoints/step-00000010/    what megatron.core.dist_checkpointing writes, and checkpoint.json, written last
RUN/checkpoints/latest            the name of the newest whole one, written after it
"""

from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist
import xxhash
from megatron.core import dist_checkpointing, parallel_state

from databuild.errors import IntegrityError, OutputError, UsageError
from databuild.rows import sync
from train.config import TrainConfig
from train.model import unwrapped
from train.optim import parts, separate_steps

RUN_FILE = "checkpoint.json"
SCHEMA = "databuild/checkpoint/v1"
SHARDING = "fully_reshardable"
HASHING = 4  # files at a time

# What may differ between the run that saved and the run that resumes. All else decides the model or its course.
FREE_KEYS = frozenset(
    (
        *("tp", "pp", "cp", "ep", "etp", "sequence_parallel", "first_stage_layers", "last_stage_layers", "recompute"),
        *("micro_batch_size", "deterministic", "save_interval", "log_interval", "load_hf", "price_per_gpu_hour"),
        "peak_tflops",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a run is: steps done and rows consumed since its start, over all epochs."""

    step: int
    consumed_rows: int


def save(
    folder: Path, config: TrainConfig, rows_sha256: str, progress: Progress, model: Any, optimizer: Any, schedule: Any
) -> Path:
    """Save under folder; every rank calls it. The directory appears whole, then `latest` names it."""
    final = folder / f"step-{progress.step:08d}"
    partial = folder / f"{final.name}.partial"
    rank = dist.get_rank()
    if rank == 0:
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
        except OSError as error:
            raise OutputError("cannot write a checkpoint", where=str(partial), found=error.strerror) from error
    dist.barrier()
    dist_checkpointing.save(_sharded_state(config, model, optimizer, schedule, loading=False), str(partial))
    dist.barrier()
    digests = _digests_of_all_ranks(partial)
    if rank == 0:
        text = {
            "schema": SCHEMA,
            "step": progress.step,
            "consumed_rows": progress.consumed_rows,
            "rows_sha256": rows_sha256,
            "config": config.model_dump(mode="json"),
            "files": digests,
        }
        _write(partial / RUN_FILE, json.dumps(text, indent=2, sort_keys=True) + "\n")
        for name in digests:
            sync(partial / name)
        sync(partial)
        shutil.rmtree(final, ignore_errors=True)
        os.rename(partial, final)
        sync(folder)
        _write(folder / "latest.partial", final.name + "\n")
        os.rename(folder / "latest.partial", folder / "latest")
        sync(folder)
    dist.barrier()
    return final


def load(folder: Path, config: TrainConfig, rows_sha256: str, model: Any, optimizer: Any, schedule: Any) -> Progress:
    """Load the newest checkpoint of folder in this run's layout; every rank calls it.

    UsageError if there is none or it is of another configuration, IntegrityError if it is damaged or of other rows.
    """
    path = _latest(folder)
    record = _record(path)
    _same_run(path, record, config, rows_sha256)
    _undamaged(path, record)
    state = dist_checkpointing.load(_sharded_state(config, model, optimizer, schedule, loading=True), str(path))
    unwrapped(model).load_state_dict(state["model"])
    if config.use_distributed_optimizer:
        for index, part in enumerate(parts(optimizer)):
            part.load_state_dict(_whole_state(part, state["optimizer"][str(index)], record["step"]))
    else:
        optimizer.load_state_dict(state["optimizer"])
    separate_steps(optimizer)
    schedule.load_state_dict(state["schedule"])
    return Progress(step=record["step"], consumed_rows=record["consumed_rows"])


def _sharded_state(config: TrainConfig, model: Any, optimizer: Any, schedule: Any, *, loading: bool) -> dict[str, Any]:
    """What is saved, each tensor with its place in the whole one; the unwrapped model, so that keys have no prefix."""
    metadata: dict[str, Any] = {
        "dp_cp_group": parallel_state.get_data_parallel_group(with_context_parallel=True),
        "singleton_local_shards": False,
        "chained_optim_avoid_prefix": True,
    }
    weights = unwrapped(model).sharded_state_dict(metadata=metadata)
    state: dict[str, Any] = {"model": weights, "schedule": schedule.state_dict()}
    if not config.use_distributed_optimizer:
        return state | {"optimizer": optimizer.sharded_state_dict(weights, is_loading=loading, metadata=metadata)}
    # The one sharding of 0.16 that another layout can load. Only the tensors are saved, which go by the names of weights: the
    # rest is laid out by optimizer, of which there is one, or with ep > 1 one more for the experts.
    metadata |= {"distrib_optim_sharding_type": SHARDING, "distrib_optim_fully_reshardable_mem_efficient": False}
    state["optimizer"] = {
        str(index): part.sharded_state_dict(weights, is_loading=loading, metadata=metadata)["param_state"]
        for index, part in enumerate(parts(optimizer))
    }
    return state


def _whole_state(part: Any, tensors: Any, step: int) -> dict[str, Any]:
    """What one of the distributed optimizers loads: its own groups, at this step, and the tensors of the checkpoint."""
    state: dict[str, Any] = part.state_dict()
    for group in state["optimizer"]["param_groups"]:
        group["step"] = float(step)
    return state | {"param_state": tensors, "param_state_sharding_type": SHARDING}


def _latest(folder: Path) -> Path:
    try:
        name = (folder / "latest").read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(
            "there is no checkpoint to resume from", where=str(folder), next_step="start the run without --resume"
        ) from error
    return folder / name


def _record(path: Path) -> dict[str, Any]:
    try:
        record = json.loads((path / RUN_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _damaged(path, f"{RUN_FILE} cannot be read", str(error)) from error
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise _damaged(path, f"{RUN_FILE} is not of this program", None)
    return record


def _same_run(path: Path, record: dict[str, Any], config: TrainConfig, rows_sha256: str) -> None:
    if record["rows_sha256"] != rows_sha256:
        raise IntegrityError(
            "the checkpoint was trained on other rows",
            where=str(path),
            expected=record["rows_sha256"],
            found=rows_sha256,
            next_step="give --rows the build it was trained on, or start again",
        )
    now, then = config.model_dump(mode="json"), record["config"]
    for key in sorted((now.keys() | then.keys()) - FREE_KEYS):
        if now.get(key) != then.get(key):
            raise UsageError(
                f"the checkpoint is of a run with another {key}",
                where=str(path),
                expected=str(then.get(key)),
                found=str(now.get(key)),
            )
    if not config.use_distributed_optimizer and config.num_moe_experts and (now["ep"] > 1) != (then["ep"] > 1):
        raise UsageError(
            "without use_distributed_optimizer a checkpoint does not change between ep = 1 and ep > 1",
            where=str(path),
            expected=f"ep {then['ep']}",
            found=f"ep {now['ep']}",
        )


def _undamaged(path: Path, record: dict[str, Any]) -> None:
    found = _digests_of_all_ranks(path)
    found.pop(RUN_FILE, None)
    for name in sorted(record["files"].keys() | found.keys()):
        if record["files"].get(name) != found.get(name):
            raise _damaged(path / name, "a file of the checkpoint is not what was saved", found.get(name, "no file"))


def _damaged(where: Path, what: str, found: str | None) -> IntegrityError:
    return IntegrityError(
        what, where=str(where), found=found, next_step="name an older checkpoint in the file `latest`, or start again"
    )


def _digests_of_all_ranks(path: Path) -> dict[str, str]:
    """{file name: xxh3 digest}, the files shared out over the ranks."""
    names = sorted(entry.name for entry in path.iterdir() if entry.is_file())
    own = names[dist.get_rank() :: dist.get_world_size()]
    with ThreadPoolExecutor(HASHING) as pool:  # reading and hashing both leave the interpreter's lock
        mine = dict(zip(own, pool.map(lambda name: _digest(path / name), own), strict=True))
    gathered: list[dict[str, str]] = [{} for _ in range(dist.get_world_size())]
    dist.all_gather_object(gathered, mine)
    return {name: digest for part in gathered for name, digest in part.items()}


def _digest(path: Path) -> str:
    state = xxhash.xxh3_128()
    with path.open("rb") as file:
        while block := file.read(1 << 24):
            state.update(block)
    return state.hexdigest()


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    sync(path)
