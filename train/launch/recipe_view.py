"""What launching and planning need of a recipe file: the only place that reads its keys."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databuild.errors import UsageError
from train.recipe.load import load_recipe as strict_recipe
from train.yaml12 import parse_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeView:
    """The parts of a recipe that decide how it is started. Sizes are counts; None where the recipe does not say.

    recompute: none, selective or full.
    """

    path: str
    model: str
    gpus: int
    gpus_per_node: int
    gpu_memory_gb: float | None
    row_tokens: int
    rows: int | None
    rows_sha256: str | None
    global_batch_size: int
    steps: int | None
    tp: int
    pp: int
    vpp: int
    cp: int
    ep: int
    etp: int
    dp: int | None
    sequence_parallel: bool
    first_layers: int | None
    last_layers: int | None
    rows_per_microbatch: int
    recompute: str | None
    env: dict[str, str]
    run: str | None
    inherits: Path | None

    @property
    def nodes(self) -> int:
        """Machines."""
        return self.gpus // self.gpus_per_node

    @property
    def memory_gib(self) -> float | None:
        """What programs see of a GPU, GiB: an H200 sold as 141 GB shows 139."""
        return None if self.gpu_memory_gb is None else round(self.gpu_memory_gb * 139 / 141, 1)

    @property
    def data_parallel(self) -> int:
        """GPUs over tp x pp x cp; 0 where these do not divide."""
        ranks = self.tp * self.pp * self.cp
        return self.gpus // ranks if self.gpus % ranks == 0 else 0

    @property
    def layout_key(self) -> tuple[Any, ...]:
        """What makes two layouts the same."""
        sizes = (self.tp, self.pp, self.vpp, self.cp, self.ep, self.etp, self.gpus)
        return (
            *sizes,
            self.sequence_parallel,
            self.first_layers,
            self.last_layers,
            self.rows_per_microbatch,
            self.recompute,
        )


def load_recipe(path: str | Path) -> RecipeView:
    """Read a recipe. UsageError if it cannot be read or lacks what a start needs.

    A file with schema_version is held to the whole schema of train.recipe. One without is a sketch: the keys of the same
    names that a start needs, and `inherits: FILE` for the recipe whose layout it takes.
    """
    file = Path(path)
    try:
        raw: Any = parse_yaml(file.read_text(encoding="utf-8"), str(file), "the recipe")
    except (OSError, UnicodeDecodeError) as error:
        found = getattr(error, "strerror", None) or str(error)
        raise UsageError("the recipe cannot be read", where=str(file), found=found) from error
    if isinstance(raw, dict) and "schema_version" in raw:
        raw = strict_recipe(file).recipe.model_dump(mode="json")
    get = _Reader(raw, str(file))
    recompute = get("layout.recompute.granularity", default=get("layout.recompute", default=None))
    inherits = get("inherits", default=None)
    rows_per_mb = get("layout.rows_per_microbatch", int, default=1)
    count = get("gpu.count", int)
    steps = get("result.steps_per_run", int, default=None)
    return RecipeView(
        path=str(file),
        model=str(get("model")),
        gpus=count,
        gpus_per_node=min(get("gpu.per_node", int, default=count), count),
        gpu_memory_gb=get("gpu.memory_gb", float, default=None),
        row_tokens=get("workload.row_tokens", int),
        rows=get("workload.rows", int, default=None),
        rows_sha256=get("workload.dataset.rows_sha256", str, default=None),
        global_batch_size=get("workload.global_batch", int),
        steps=steps,
        tp=get("layout.tp", int, default=1),
        pp=get("layout.pp", int, default=1),
        vpp=get("layout.vpp", int, default=None) or 1,
        cp=get("layout.cp", int, default=1),
        ep=get("layout.ep", int, default=1),
        etp=get("layout.etp", int, default=1),
        dp=get("layout.dp", int, default=None),
        sequence_parallel=get("layout.sequence_parallel", bool, default=False),
        first_layers=get("layout.layer_split.first", int, default=None),
        last_layers=get("layout.layer_split.last", int, default=None),
        rows_per_microbatch=rows_per_mb,
        recompute=recompute if recompute in ("none", "selective", "full") else None,
        env={str(k): str(v) for k, v in (get("env", dict, default=None) or {}).items()},
        run=get("run", str, default=None),
        inherits=file.parent / str(inherits) if inherits else None,
    )


_MISSING = object()


class _Reader:
    """get("a.b", int): the value under a key path, of that type; numbers that stand for counts must be 1 or more."""

    def __init__(self, raw: Any, where: str) -> None:
        self.raw, self.where = raw, where

    def __call__(self, key: str, kind: type[Any] = object, default: Any = _MISSING) -> Any:
        value: Any = self.raw
        for part in key.split("."):
            value = value.get(part, _MISSING) if isinstance(value, dict) else _MISSING
            if value is _MISSING:
                break
        if value is _MISSING or value is None:
            if default is _MISSING:
                raise UsageError(f"the recipe has no {key}", where=self.where)
            return default
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        count = value if isinstance(value, int) and not isinstance(value, bool) else 0
        if not isinstance(value, kind) or (kind is int and count < 1):
            raise UsageError(f"{key} makes no sense", where=self.where, expected=kind.__name__, found=repr(value))
        return value
