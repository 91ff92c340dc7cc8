"""From a recipe to a run: preflight, the export the engine needs, the script, and the start where it can be started here."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from databuild.errors import OutputError, UsageError
from train.launch import checks
from train.launch.checks import Check
from train.launch.engines import ENGINES, Command, Inputs, command_of
from train.launch.recipe_view import RecipeView, load_recipe
from train.launch.script import local_words, render


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command line asks for. launcher None: the engine's default. other_rows: not the recipe's rows, on purpose.

    any_memory: whatever the planner says. cpu: our engine on the CPU.
    """

    recipe: Path
    rows: Path
    engine: str
    launcher: str | None
    out: Path
    config: Path | None
    checkpoint: str | None
    model: str | None
    other_rows: bool
    any_memory: bool
    cpu: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A launch before it starts. export: the export to make or reuse, None if the engine reads the build."""

    view: RecipeView
    launcher: str
    command: Command
    script: str
    checks: tuple[Check, ...]
    export: Path | None

    @property
    def ready(self) -> bool:
        """No check failed."""
        return all(check.state != "FAIL" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "ready": self.ready,
            "launcher": self.launcher,
            "checks": [{"name": c.name, "state": c.state, "reason": c.reason} for c in self.checks],
            "export": str(self.export) if self.export else None,
            "env": dict(self.command.env),
            "needs": list(self.command.needs),
            "script": self.script,
        }


def prepare(wish: Wish) -> Prepared:
    """Read, check and write down; nothing is changed on disk. UsageError where there is no command for this recipe."""
    engine = ENGINES[wish.engine]
    launcher = wish.launcher or engine.launchers[0]
    if launcher not in engine.launchers:
        raise UsageError(
            f"{wish.engine} does not start that way", expected=" or ".join(engine.launchers), found=launcher
        )
    if wish.cpu and (wish.engine, launcher) != ("megatron", "torchrun"):
        raise UsageError("only train.sft under torchrun runs on a CPU")
    view = load_recipe(wish.recipe)
    rows, out = wish.rows.resolve(), wish.out.resolve()
    export = rows.with_name(f"{rows.name}-{engine.export}") if engine.export else None
    config = wish.config.resolve() if wish.config else None
    command = command_of(
        wish.engine, view, Inputs(data=export or rows, out=out, config=config, checkpoint=wish.checkpoint)
    )
    memory = checks.check_memory(view, wish.model, any_memory=wish.any_memory)
    found = (
        *checks.check_rows(view, rows, other_rows=wish.other_rows),
        *checks.check_layout(view),
        *command.checks,
        *([] if wish.cpu else [memory]),
        *checks.check_gpus(
            view, here=launcher == "torchrun", cpu=wish.cpu, peak_gib=checks.planned_peak(view, wish.model)
        ),
    )
    return Prepared(
        view=view,
        launcher=launcher,
        command=command,
        script=render(wish.engine, launcher, view, command, wish.recipe.stem),
        checks=found,
        export=export,
    )


def make_export(wish: Wish, export: Path, say: Callable[[str], None]) -> None:
    """The export that the engine reads, made by databuild export; one that is there is proven by it, not made again.

    UsageError with what it said, if it fails.
    """
    to = ENGINES[wish.engine].export
    assert to is not None
    words = [
        sys.executable,
        "-m",
        "databuild.cli",
        "export",
        str(wish.rows.resolve()),
        "--to",
        to,
        "--out",
        str(export),
    ]
    say(f"export: databuild export {wish.rows} --to {to} --out {export}")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise UsageError(
            f"databuild export --to {to} failed, exit code {done.returncode}",
            where=str(export),
            found=(done.stderr.strip() or done.stdout.strip())[-600:],
        )


def write_script(out: Path, engine: str, text: str) -> Path:
    """OUT/launch-ENGINE.sh, executable; gives its path."""
    path = out / f"launch-{engine}.sh"
    try:
        out.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    except OSError as error:
        raise OutputError(
            "the script cannot be written", where=str(path), found=error.strerror or str(error)
        ) from error
    return path


def can_start(wish: Wish, prepared: Prepared) -> str | None:
    """Why the run is not started from here, None if it is."""
    engine = ENGINES[wish.engine]
    if prepared.launcher == "slurm":
        return "submit it: sbatch"
    if prepared.view.nodes > 1 and prepared.launcher == "torchrun":
        return "start it on every node, with MASTER_ADDR set"
    if not _importable(engine.package):
        return f"{engine.package} is not installed here"
    missing = [name for name in prepared.command.needs if not os.environ.get(name)]
    return f"set {', '.join(missing)}" if missing else None


def _importable(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def start(wish: Wish, prepared: Prepared, script: Path) -> int:
    """Run it to its end; gives its exit code. Our engine starts under this Python, the others by their script."""
    if wish.engine == "megatron":
        words = local_words(prepared.view, prepared.command.program)
        env = {key: os.path.expandvars(value) for key, value in prepared.command.env.items()}
        env = {**os.environ, **env, **({"CUDA_VISIBLE_DEVICES": ""} if wish.cpu else {})}
        return subprocess.run(words, env=env, check=False).returncode
    return subprocess.run(["bash", str(script)], check=False).returncode
