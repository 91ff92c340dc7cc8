"""The command line `python -m train`: runs a command and maps errors to exit codes, as databuild's does."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer

from databuild.console import Console, UsageException, leave_quietly, mend_streams
from databuild.errors import DatabuildError
from train.commands.app import app

_CONSOLE = Console(app, "python -m train")


@app.callback()
def _options(debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False) -> None:
    _CONSOLE.debug = debug or _CONSOLE.debug


def main(arguments: list[str] | None = None) -> NoReturn:
    """Always leaves through sys.exit. --debug may stand anywhere."""
    given = _CONSOLE.take_debug(arguments)
    mend_streams()
    try:
        sys.exit(_CONSOLE.run(given))
    except UsageException as error:
        error.show()
        sys.exit(error.exit_code)
    except DatabuildError as error:
        _CONSOLE.fail(f"train: {error.title} error: {error}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _CONSOLE.fail("train: interrupted", 130)
    except BrokenPipeError:
        leave_quietly()
    except ModuleNotFoundError as error:
        if _CONSOLE.debug or (error.name or "").partition(".")[0] in ("train", "databuild", "masks", "manifests"):
            raise
        package = "pyyaml" if error.name == "yaml" else "'databuild[train]'"
        _CONSOLE.fail(f"train: {error.name} is not installed\n  next:     pip install {package}", 1)
    except Exception as error:
        if _CONSOLE.debug:
            raise
        _CONSOLE.fail(
            f"train: unexpected {type(error).__name__}: {error}\n  next:     run again with --debug and report it", 1
        )
