"""Models by name, by a train.sft configuration, or by the config.json of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from databuild.errors import UsageError
from train.config import TrainConfig, load_config
from train.planner.deepseek_v4 import keys_of_section, shape_of_v4
from train.planner.memory import Training
from train.planner.shape import Shape, shape_of_config

CONFIGS = Path(__file__).parents[1] / "configs"
V4 = {"deepseek-v4-flash": 43, "deepseek-v4.1-flash": 40}
OWN = ("h200-dense-1b", "h200-moe-1b", "mla-moe-mtp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A shape with how it is trained, and what was assumed for either. only: sizes of a layout that its trainer allows alone."""

    shape: Shape
    training: Training
    assumptions: tuple[str, ...]
    only: Mapping[str, int] = field(default_factory=dict)


def names() -> list[str]:
    """The presets."""
    return [*V4, *OWN]


def find_model(name: str) -> Model:
    """A preset, a .yaml of train.sft, or a config.json of a checkpoint (or its folder). UsageError if it is none of these."""
    if name in V4:
        return _v4(name)
    if name in OWN:
        return _own(load_config(CONFIGS / f"{name}.yaml"), name)
    path = Path(name)
    if path.is_dir():
        path = path / "config.json"
    if path.suffix in (".yaml", ".yml"):
        return _own(load_config(path), path.stem)
    if path.suffix == ".json":
        return _checkpoint(path)
    raise UsageError(
        "the model is not known",
        where=name,
        expected=f"one of {', '.join(names())}, a .yaml of train.sft, or a checkpoint's config.json",
    )


def _own(config: TrainConfig, name: str) -> Model:
    v4 = config.deepseek_v4
    assumptions = [
        "bf16 weights, fp32 gradients, Adam with fp32 weights and two moments on the GPU: 18 bytes a parameter"
    ]
    return Model(
        shape=shape_of_config(config, name) if v4 is None else shape_of_v4(keys_of_section(v4), name),
        training=Training(recompute=config.recompute, distributed=config.use_distributed_optimizer),
        assumptions=(*assumptions, *([_STREAMS, "train.sft refuses tp > 1 and cp > 1"] if v4 else [])),
        only={"tp": 1, "cp": 1} if v4 else {},
    )


def _v4(name: str) -> Model:
    shape = shape_of_v4({"num_hidden_layers": V4[name]}, name)
    if name == "deepseek-v4-flash":
        return Model(
            shape=shape,
            training=Training(),
            assumptions=(
                "bf16 weights, fp32 gradients, Adam with fp32 weights and two moments on the GPU, full recompute",
                "no MTP layer",
                _STREAMS,
            ),
        )
    # Its published peaks of 71 to 84 GiB hold 17 B parameters a GPU: there is room for weights and bf16 gradients, not for more.
    return Model(
        shape=shape,
        training=Training(gradient=2, optimizer=0),
        assumptions=(
            "40 layers, otherwise the shape of V4-Flash: its own sizes are not published here",
            "bf16 weights and bf16 gradients, optimizer not on the GPU: what its published peaks leave room for",
            "full recompute, no MTP layer",
            _STREAMS,
        ),
    )


_STREAMS = "the 4 residual streams are whole on every tp rank, with sequence parallelism too"


def _checkpoint(path: Path) -> Model:
    try:
        keys: Any = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(
            "config.json cannot be read", where=str(path), found=getattr(error, "strerror", None) or str(error)
        ) from error
    if not isinstance(keys, dict):
        raise UsageError("config.json is not an object", where=str(path), found=type(keys).__name__)
    if keys.get("model_type") == "deepseek_v4":
        model = _v4("deepseek-v4-flash")
        return Model(
            shape=shape_of_v4(keys, str(path)),
            training=model.training,
            assumptions=(*model.assumptions, "keys that config.json leaves out are those of V4-Flash"),
        )
    from train.hf import config_from_hf

    return _own(TrainConfig.model_validate(config_from_hf(path.parent)), str(path))


def of_point(entry: dict[str, Any]) -> Model:
    """The model of an entry of points.yaml."""
    if "preset" in entry:
        return _v4(entry["preset"])
    if "config" in entry:
        return _own(load_config(CONFIGS / f"{entry['config']}.yaml"), entry["config"])
    return _own(TrainConfig.model_validate(entry["keys"]), "derived")


def read_points() -> dict[str, Any]:
    """points.yaml: models by name, and measured peaks."""
    text = (Path(__file__).parent / "points.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))
