"""A command as a script: for torchrun on one machine or each node, for Slurm, for Ray. Plain bash, `set -eu`."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping, Sequence

from train.launch.engines import Command
from train.launch.recipe_view import RecipeView

PORT = 29500
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]")
_UNQUOTED = "${MODEL_ARGS}"
_MEANING = {
    "MILES": "set it to a checkout of miles",
    "MEGATRON_LM": "set it to the Megatron-LM that miles uses",
    "MEGATRON_BRIDGE": "set it to a checkout of Megatron-Bridge",
    "HF_CHECKPOINT": "set it to the weights as published, or give --checkpoint",
    "MEGATRON_CHECKPOINT": "set it to the weights as Megatron reads them",
}


def quote(word: str) -> str:
    """A shell word; one that holds a variable is left to expand, whole, but for the model arguments of miles."""
    if word == _UNQUOTED:
        return word
    if _VARIABLE.search(word):
        return '"' + re.sub(r'(["\\`])', r"\\\1", word) + '"'
    return shlex.quote(word)


def torchrun_words(view: RecipeView, program: Sequence[str], *, rendezvous: bool) -> list[str]:
    """torchrun with a program for each process of a node. rendezvous: nodes find each other at $MASTER_ADDR."""
    start = ["torchrun", "--nproc-per-node", str(view.gpus_per_node)]
    if rendezvous:
        endpoint = f"${{MASTER_ADDR}}:{PORT}"
        start += [
            "--nnodes",
            str(view.nodes),
            "--rdzv-id",
            "run",
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            endpoint,
        ]
    else:
        start.append("--standalone")
    return [*start, *program]


def local_words(view: RecipeView, program: Sequence[str]) -> list[str]:
    """The same for this machine and this Python, to be started without a shell."""
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(view.gpus_per_node)]
    return [*start, *program]


def render(engine: str, launcher: str, view: RecipeView, command: Command, name: str) -> str:
    """The whole script."""
    parts = ["#!/usr/bin/env bash", *(_slurm_head(view, name) if launcher == "slurm" else []), "set -eu", ""]
    parts += [f"# {engine}: {view.model}, {view.gpus} GPUs in {view.nodes} nodes, from {view.path}"]
    meanings = [(name, _MEANING.get(name, "the env block of the recipe uses it")) for name in command.needs]
    parts += [f': "${{{name}:?{meaning}}}"' for name, meaning in meanings]
    parts += _exports(command.env)
    if engine == "miles":
        parts += _ray(launcher, view, command)
    elif launcher == "slurm":
        parts += [
            _MASTER,
            "export MASTER_ADDR",
            "srun " + _lines(torchrun_words(view, command.program, rendezvous=True)),
        ]
    else:
        many = view.nodes > 1
        parts += [': "${MASTER_ADDR:?set MASTER_ADDR to the first node; start this on every node}"'] if many else []
        parts.append("exec " + _lines(torchrun_words(view, command.program, rendezvous=many)))
    return "\n".join(parts) + "\n"


_MASTER = 'MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"'


def _slurm_head(view: RecipeView, name: str) -> list[str]:
    values = {
        "job-name": re.sub(r"[^A-Za-z0-9._-]", "-", name),
        "nodes": view.nodes,
        "ntasks-per-node": 1,
        "gpus-per-node": view.gpus_per_node,
        "exclusive": None,
        "output": "%x-%j.log",
    }
    return [f"#SBATCH --{key}" + ("" if value is None else f"={value}") for key, value in values.items()]


def _exports(env: Mapping[str, str]) -> list[str]:
    return [f"export {key}={quote(value)}" for key, value in env.items()]


def _ray(launcher: str, view: RecipeView, command: Command) -> list[str]:
    # The runtime environment reaches every actor; JSON is put together by Python, as values may hold anything.
    names = " ".join(command.env)
    gather = "import json, os, sys; print(json.dumps({'env_vars': {k: os.environ[k] for k in sys.argv[1:]}}))"
    model = re.sub(r"[^a-z0-9.-]", "-", view.model.lower())
    parts = [
        'MODEL_ARGS="$(PYTHONPATH="${MILES}/miles/utils/external_utils:${MILES}/scripts/models" python3 -c '
        f'\'import importlib; print(importlib.import_module("{model}").model_args())\')"',
        f'RUNTIME_ENV="$(python3 -c "{gather}" {names})"',
        'cd "${MILES}"',
    ]
    gpus = view.gpus_per_node
    if launcher == "slurm":
        parts += [
            _MASTER,
            "export MASTER_ADDR",
            f'srun --nodes=1 --ntasks=1 -w "$MASTER_ADDR" ray start --head --node-ip-address="$MASTER_ADDR" --port=6379 '
            f"--num-gpus={gpus} --disable-usage-stats --block &",
            'until ray job list --address="http://${MASTER_ADDR}:8265" >/dev/null 2>&1; do sleep 2; done',
        ]
        if view.nodes > 1:
            parts.append(
                f'srun --nodes={view.nodes - 1} --ntasks={view.nodes - 1} -x "$MASTER_ADDR" '
                f'ray start --address="$MASTER_ADDR:6379" --num-gpus={gpus} --disable-usage-stats --block &'
            )
        address = '--address="http://${MASTER_ADDR}:8265"'
    else:
        parts.append(
            "# The cluster is up: `ray start --head` here, `ray start --address=HEAD:6379` on the other nodes."
        )
        address = '--address="${RAY_ADDRESS:-http://127.0.0.1:8265}"'
    words = _lines(["python3", *command.program])
    return [*parts, f'ray job submit {address} --runtime-env-json="${{RUNTIME_ENV}}" -- {words}']


def _lines(words: Sequence[str]) -> str:
    """One option a line."""
    text = ""
    for word in words:
        option = word.startswith("-") and not re.fullmatch(r"-[0-9.e-]+", word)
        starts = option or re.match(r"[a-z_]+(\.[a-z_]+)+=", word) is not None
        text += (" \\\n  " if starts and text else " " if text else "") + quote(word)
    return text
