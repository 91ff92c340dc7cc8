"""The command line: runs a command and maps errors to exit codes."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import sys
from typing import Annotated, Any

import typer

import databuild
import databuild.commands
from databuild.commands.app import app
from databuild.errors import DatabuildError


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
    _STATE["debug"] = debug or _STATE["debug"]


_STATE = {"debug": False}


class _Terminated(BaseException):
    pass


def _terminate(*_: object) -> None:
    raise _Terminated


#: What typer raises for a usage error. It has had its own copy of click since 0.26, and click itself before.
_ClickException: Any = typer.BadParameter.__mro__[2]


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the console script; always leaves through sys.exit."""
    # The options of a group stand before the command; people write --debug anywhere.
    given = list(sys.argv[1:] if arguments is None else arguments)
    _STATE["debug"] = "--debug" in given
    given = [argument for argument in given if argument != "--debug"]
    if "_DATABUILD_COMPLETE" in os.environ:
        app(args=given, prog_name="databuild")
    signal.signal(signal.SIGTERM, _terminate)
    _mend_streams()
    try:
        sys.exit(_run(given))
    except _ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except DatabuildError as error:
        _fail(f"databuild: {error.title} error: {error}", error.exit_code)
    except (KeyboardInterrupt, typer.Abort) as error:
        _fail(f"databuild: interrupted; {_what_is_left(error)}", 130)
    except _Terminated as error:
        _fail(f"databuild: terminated; {_what_is_left(error)}", 143)
    except BrokenPipeError:
        # `inspect | head`: the reader has what it wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail("databuild: out of memory", 1)
    except SystemExit:
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if full:
            _fail(f"databuild: output error: cannot write: {error}", 5)
        if _STATE["debug"]:
            raise
        _fail(
            f"databuild: unexpected {type(error).__name__}: {error}\n  next:     run again with --debug and report it",
            1,
        )


def _what_is_left(error: BaseException) -> str:
    return "; ".join(getattr(error, "__notes__", [])) or "nothing was written, run the same command again"


def _run(arguments: list[str]) -> int:
    # Not app(...): it would end by itself, with exit codes of its own, on an interrupt and on a closed pipe.
    command = typer.main.get_command(app)
    code = 0
    try:
        with command.make_context("databuild", arguments) as context:
            command.invoke(context)
    except typer.Exit as error:
        code = error.exit_code
    sys.stdout.flush()
    return code


def _mend_streams() -> None:
    """A stream that is closed, or not UTF-8, must not end a build."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  (for the rest of the process)
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _fail(text: str, code: int) -> None:
    if _STATE["debug"]:
        import traceback

        traceback.print_exc()
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
