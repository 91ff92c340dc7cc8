"""The command line `python -m train`: runs a command and maps errors to exit codes, as databuild's does."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NoReturn

import typer

from databuild.errors import DatabuildError
from train.commands.app import app

#: What typer raises for a usage error: its own copy of click's exception, or click's.
_ClickException: Any = typer.BadParameter.__mro__[2]
_STATE = {"debug": False}


@app.callback()
def _options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False) -> None:
    _STATE["debug"] = debug or _STATE["debug"]


def main(arguments: list[str] | None = None) -> NoReturn:
    """Always leaves through sys.exit. --debug may stand anywhere."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    _STATE["debug"] = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(_run(given))
    except _ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except DatabuildError as error:
        _fail(f"train: {error.title} error: {error}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("train: interrupted", 130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ModuleNotFoundError as error:
        if _STATE["debug"] or (error.name or "").partition(".")[0] in ("train", "databuild", "masks", "manifests"):
            raise
        package = "pyyaml" if error.name == "yaml" else "'databuild[train]'"
        _fail(f"train: {error.name} is not installed\n  next:     pip install {package}", 1)
    except Exception as error:
        if _STATE["debug"]:
            raise
        _fail(f"train: unexpected {type(error).__name__}: {error}\n  next:     run again with --debug and report it", 1)


def _run(arguments: list[str]) -> int:
    # Not app(...): it would end by itself, with exit codes of its own, on an interrupt and on a closed pipe.
    command = typer.main.get_command(app)
    code = 0
    try:
        with command.make_context("python -m train", arguments) as context:
            command.invoke(context)
    except typer.Exit as error:
        code = error.exit_code
    sys.stdout.flush()
    return code


def _fail(text: str, code: int) -> NoReturn:
    if _STATE["debug"]:
        import traceback

        traceback.print_exc()
    print(text, file=sys.stderr, flush=True)
    sys.exit(code)
