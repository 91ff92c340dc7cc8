"""The command line: runs a command and maps errors to exit codes."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import Annotated

import typer

import databuild
import databuild.commands
from databuild.commands.app import app
from databuild.console import Console, UsageException, leave_quietly, mend_streams
from databuild.errors import DatabuildError

_CONSOLE = Console(app, "databuild")


def _version(value: bool) -> None:
    if value:
        from manifests.locks import load_source_lock, load_tokenizer_lock

        tokenizer, source = load_tokenizer_lock(), load_source_lock("tulu3")
        typer.echo(f"databuild {databuild.__version__}")
        typer.echo(f"tokenizer {tokenizer.name} @ {tokenizer.revision}, sha256 {tokenizer.tokenizer_json_sha256}")
        typer.echo(f"source    {source.name} @ {source.revision}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Version and pins.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    _CONSOLE.debug = debug or _CONSOLE.debug


class _Terminated(BaseException):
    pass


def _terminate(*_: object) -> None:
    raise _Terminated


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the console script; always leaves through sys.exit."""
    given = _CONSOLE.take_debug(arguments)
    if "_DATABUILD_COMPLETE" in os.environ:
        app(args=given, prog_name="databuild")
    signal.signal(signal.SIGTERM, _terminate)
    mend_streams()
    try:
        sys.exit(_CONSOLE.run(given))
    except UsageException as error:
        error.show()
        sys.exit(error.exit_code)
    except DatabuildError as error:
        _CONSOLE.fail(f"databuild: {error.title} error: {error}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort) as error:
        _CONSOLE.fail(f"databuild: interrupted; {_what_is_left(error)}", 130)
    except _Terminated as error:
        _CONSOLE.fail(f"databuild: terminated; {_what_is_left(error)}", 143)
    except BrokenPipeError:
        leave_quietly()
    except MemoryError:
        _CONSOLE.fail("databuild: out of memory", 1)
    except SystemExit:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if full:
            _CONSOLE.fail(f"databuild: output error: cannot write: {error}", 5)
        if _CONSOLE.debug:
            raise
        _CONSOLE.fail(
            f"databuild: unexpected {type(error).__name__}: {error}\n  next:     run again with --debug and report it",
            1,
        )


def _what_is_left(error: BaseException) -> str:
    return "; ".join(getattr(error, "__notes__", [])) or "nothing was written, run the same command again"


if __name__ == "__main__":
    main()
