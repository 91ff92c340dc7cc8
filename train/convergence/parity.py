"""Parity of two layouts: how far the log-probabilities of the same tokens are apart before anything was trained.

The figure is mean |A - B| over all target tokens of the first global batch, in nats. How much two runs of one layout differ
is the floor; kernels that are not deterministic make it larger than nothing.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from databuild.errors import UsageError

FILE = "logprobs-step0.npz"
FACTOR = 1.5
TOLERANCE = 1e-5
"""nats a token: far above the rounding of fp32 sums in another order (1e-7), far below that of bf16 (1e-2)"""

# Two runs that differ in anything else than these do not start from the same weights, or see other tokens.
FREE_KEYS = frozenset(
    (
        *("tp", "pp", "cp", "ep", "etp", "sequence_parallel", "first_stage_layers", "last_stage_layers", "recompute"),
        *("micro_batch_size", "deterministic", "use_distributed_optimizer", "save_interval", "log_interval", "steps"),
        *(
            "lr",
            "min_lr",
            "lr_warmup_fraction",
            "lr_decay_style",
            "weight_decay",
            "adam_beta1",
            "adam_beta2",
            "adam_eps",
        ),
        *("clip_grad", "price_per_gpu_hour", "peak_tflops", "freeze_router", "freeze_e_score_correction_bias"),
        *("moe_aux_loss_coeff", "mtp_loss_scaling_factor"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dump:
    """What train.sft --dump-logprobs wrote. row, position, logprob: one entry a target token, all of one length."""

    path: str
    row: npt.NDArray[np.int64]
    position: npt.NDArray[np.int32]
    logprob: npt.NDArray[np.float32]
    rows_sha256: str
    gpus: int
    config: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parity:
    """mean, largest and 99th percentile of |A - B| in nats; num_targets tokens.

    floor: mean |A - A2|, None if there is no second run. limit: max(factor * floor, tolerance). passed: mean <= limit, None
    without a floor.
    """

    num_targets: int
    mean: float
    largest: float
    percentile_99: float
    floor: float | None
    limit: float | None
    passed: bool | None
    layouts: tuple[str, str]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: getattr(self, name) for name in self.__slots__} | {"layouts": list(self.layouts)}


def read_dump(path: str | Path) -> Dump:
    """The log-probabilities of a RUN folder, or of the file itself. UsageError if it is not such a file."""
    given = Path(path)
    file = given / FILE if given.is_dir() else given
    try:
        with np.load(file, allow_pickle=False) as arrays:
            dump = Dump(
                path=str(path),
                row=arrays["row"],
                position=arrays["position"],
                logprob=arrays["logprob"],
                rows_sha256=str(arrays["rows_sha256"]),
                gpus=int(arrays["gpus"]),
                config=dict(yaml.safe_load(str(arrays["config"]))),
            )
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise UsageError(
            "the log-probabilities of the run cannot be read",
            where=str(file),
            found=getattr(error, "strerror", None) or str(error) or type(error).__name__,
            next_step="train with --dump-logprobs, from step 0",
        ) from error
    if not len(dump.row) == len(dump.position) == len(dump.logprob) > 0 or not np.isfinite(dump.logprob).all():
        raise UsageError("the log-probabilities are not whole, or not finite", where=str(file))
    return dump


def parity(a: Dump, b: Dump, a2: Dump | None = None, *, factor: float = FACTOR, tolerance: float = TOLERANCE) -> Parity:
    """Compare two layouts, and judge by a second run of A. UsageError if they are not the same weights and rows."""
    gap = _gap(a, b)
    floor = limit = passed = None
    if a2 is not None:
        if _layout(a2) != _layout(a):
            raise UsageError(
                "the floor is of another layout",
                where=a2.path,
                expected=_layout(a),
                found=_layout(a2),
                next_step="run the layout of A twice",
            )
        floor = float(_gap(a, a2).mean())
        limit = max(factor * floor, tolerance)
        passed = float(gap.mean()) <= limit
    return Parity(
        num_targets=len(gap),
        mean=float(gap.mean()),
        largest=float(gap.max()),
        percentile_99=float(np.quantile(gap, 0.99)),
        floor=floor,
        limit=limit,
        passed=passed,
        layouts=(_layout(a), _layout(b)),
    )


def _gap(a: Dump, b: Dump) -> npt.NDArray[np.float64]:
    """|A - B| of each target, float64[n]."""
    if a.rows_sha256 != b.rows_sha256:
        raise UsageError(
            "the runs did not train on the same rows", where=b.path, expected=a.rows_sha256, found=b.rows_sha256
        )
    keys = sorted((a.config.keys() | b.config.keys()) - FREE_KEYS)
    differing = [key for key in keys if a.config.get(key) != b.config.get(key)]
    if differing:
        raise UsageError(
            "the runs do not start from the same weights and tokens",
            where=b.path,
            expected=", ".join(f"{key} {a.config.get(key)}" for key in differing),
            found=", ".join(f"{key} {b.config.get(key)}" for key in differing),
        )
    if not (np.array_equal(a.row, b.row) and np.array_equal(a.position, b.position)):
        raise UsageError(
            "the runs have log-probabilities of other tokens",
            where=b.path,
            expected=f"{len(a.row)} targets of {len(np.unique(a.row))} rows",
            found=f"{len(b.row)} targets of {len(np.unique(b.row))} rows",
        )
    return np.abs(a.logprob.astype(np.float64) - b.logprob.astype(np.float64))


def _layout(dump: Dump) -> str:
    """The layout in words: `dp2`, `tp2 sp`; sizes of 1 are left out."""
    c = dump.config
    sizes = {"dp": dump.gpus // (c["tp"] * c["pp"] * c["cp"]), **{k: c[k] for k in ("tp", "pp", "cp", "ep", "etp")}}
    parts = [f"{key}{size}" for key, size in sizes.items() if size != 1]
    parts += ["sp"] if c["sequence_parallel"] else []
    parts += [f"recompute {c['recompute']}"] if c["recompute"] != "none" else []
    parts += [f"micro-batch {c['micro_batch_size']}"] if c["micro_batch_size"] != 1 else []
    return " ".join(parts) or "one GPU"
