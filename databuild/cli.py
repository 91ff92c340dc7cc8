"""The command line: parse, call, print, map errors to exit codes. No logic, and nothing slow is imported before its use."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import databuild
from databuild.errors import DatabuildError

app = typer.Typer(
    name="databuild",
    help="Chat data to fixed-length DeepSeek-V4 training rows: the same bytes for everyone, with loss masks that can be "
    "proven.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


Mode = Literal["chat", "thinking"]
Separator = Literal["ensure", "always", "none"]
Bos = Literal["keep", "first", "strip"]
Tokens = Literal["literal", "full_vocab"]
OnInvalid = Literal["skip", "error"]
Unanswered = Literal["keep", "trim", "skip"]
Effort = Literal["high", "max"]
Headerless = Literal["reference", "official", "reject"]
History = Literal["whole", "split_turns"]

_MODE = Annotated[Mode, typer.Option(help="chat: answers alone; thinking: with their reasoning_content.")]
_DROP = Annotated[
    bool,
    typer.Option(
        "--drop-thinking/--no-drop-thinking", help="Thinking mode: history loses its reasoning, as in serving."
    ),
]
_EFFORT = Annotated[Effort | None, typer.Option(help="Thinking mode: max puts its paragraph first.")]
_HEADERLESS = Annotated[
    Headerless,
    typer.Option(
        help="An assistant that follows no user turn: no header (reference), a header (official), or skipped (reject)."
    ),
]
_TOKENS = Annotated[Tokens, typer.Option(help="literal: the text of a message never becomes a special token.")]
_MASK = Annotated[str, typer.Option(help="Which tokens are trained; masks/README.md shows them all.")]
_FORMAT = Annotated[str, typer.Option("--format", help="The chat format.")]


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

_Source = Annotated[
    list[str],
    typer.Option(
        "--source",
        help="tulu3, demo (built in, no network), hf:NAME[@REV][:SPLIT], or a parquet/JSONL file or a directory of them "
        "(may be repeated).",
        show_default="tulu3",
    ),
]


@app.command(epilog="Example: databuild fixed --source demo --row-tokens 8192 --seed 42 --out rows-demo")
def fixed(
    source: _Source = [],
    row_tokens: Annotated[int, typer.Option(help="Tokens of a row.", min=2, max=1 << 23)] = 8192,
    seed: Annotated[int, typer.Option(help="Seed of the permutation of all conversations.", min=0)] = 42,
    rows: Annotated[
        str | None, typer.Option(help="Stop at this many rows, or 'all'.", show_default="6400 for tulu3, else all")
    ] = None,
    loss_mask_type: _MASK = "deepseek_v4",
    mode: _MODE = "chat",
    drop_thinking: _DROP = False,
    reasoning_effort: _EFFORT = None,
    headerless: _HEADERLESS = "reference",
    history: Annotated[
        History, typer.Option(help="split_turns: one example per user turn, each with its own last turn trained.")
    ] = "whole",
    chat_format: _FORMAT = "deepseek_v4",
    separator: Annotated[
        Separator,
        typer.Option(help="EOS after a conversation: where it has none of its own, one more always, or none."),
    ] = "ensure",
    bos: Annotated[Bos, typer.Option(help="Which conversations keep their BOS.")] = "keep",
    tokens: _TOKENS = "literal",
    on_invalid: Annotated[OnInvalid, typer.Option(help="Count and skip, or stop with exit 4.")] = "skip",
    unanswered: Annotated[Unanswered, typer.Option(help="Conversations that do not end with an assistant.")] = "keep",
    include_source: Annotated[list[str], typer.Option(help="Only these values of the source column.")] = [],
    exclude_source: Annotated[list[str], typer.Option(help="All but these values of the source column.")] = [],
    columns: Annotated[
        str | None,
        typer.Option(
            help="Shape of the records: sharegpt, openmath, alpaca, or pairs such as prompt=question,response=answer."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Directory to write.", show_default="./NAME")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a build of another spec, once the new one is whole.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(help="Threads; never changes the bytes.", min=1, max=1024, show_default="all cores")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be built, write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
    batch_conversations: Annotated[int, typer.Option(hidden=True, min=1)] = 1024,
) -> None:
    """Build rows of fixed length, with their loss masks and a manifest."""
    workers = _set_workers(workers)
    from databuild import build as building
    from databuild.config import RunOptions
    from databuild.recipe import check_format, fixed_options, name_of
    from databuild.report_text import build_json, build_text, dry_run_text
    from databuild.sources.columns import parse_columns
    from databuild.sources.open import parse_source

    check_format(chat_format)
    values = source or ["tulu3"]
    mapping = parse_columns(columns)
    request = parse_source(values, mapping)
    options = fixed_options(
        row_tokens=row_tokens, seed=seed, rows=rows, default_rows=6400 if request.short_name == "tulu3" else None,
        loss_mask_type=loss_mask_type, mode=mode, separator=separator, bos=bos, tokens=tokens,
        drop_thinking=drop_thinking, reasoning_effort=reasoning_effort, headerless=headerless, history=history,
        on_invalid=on_invalid, unanswered=unanswered, include_sources=sorted(set(include_source)) or None,
        exclude_sources=sorted(set(exclude_source)), columns=mapping,
    )  # fmt: skip
    name = name_of(request.short_name, row_tokens, seed)
    run = RunOptions(
        out=out if out is not None else Path(name),
        workers=workers,
        batch_conversations=batch_conversations,
        overwrite=overwrite,
        quiet=quiet or as_json,
    )
    if dry_run:
        estimate = building.dry_run(request.open, options, run)
        _print(estimate, dry_run_text(estimate), as_json)
        return
    result = building.build(request.open, options, run, name=lambda _: name)
    _print(build_json(result), build_text(result), as_json)


@app.command(epilog="Example: databuild verify rows-demo --level 4")
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    level: Annotated[
        int,
        typer.Option(
            help="1 files; 2 rows and rows_sha256; 3 re-encode a sample; 4 build again and compare.", min=1, max=4
        ),
    ] = 2,
    source: Annotated[list[str], typer.Option("--source", help="Level 4 of a build from files: where they are.")] = [],
    workers: Annotated[int | None, typer.Option(help="Threads.", min=1, max=1024, show_default="all cores")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Only the result.")] = False,
) -> None:
    """Prove that a build is what its manifest says."""
    workers = _set_workers(workers)
    from databuild.verify import verify as run_verify

    result = run_verify(folder, level=level, paths=source, workers=workers, say=_sayer(quiet or as_json))
    _print(
        result,
        f"{folder} is whole (level {level}): {result['rows']:,} rows, rows_sha256 {result['rows_sha256']}",
        as_json,
    )


@app.command(epilog="Example: databuild inspect rows-demo --row 0 | less -R")
def inspect(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A build.")],
    row: Annotated[int, typer.Option(help="Which row.", min=0)] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Show one row: its conversations, and which of their text is trained."""
    from databuild import inspect as inspecting

    if as_json:
        _print(inspecting.as_json(folder, row), "", True)
    else:
        inspecting.show(folder, row)


@app.command(epilog="Example: databuild encode conversations.jsonl | head -1")
def encode(
    file: Annotated[Path, typer.Argument(metavar="FILE.jsonl", help="One conversation a line.")],
    mode: _MODE = "chat",
    drop_thinking: _DROP = False,
    reasoning_effort: _EFFORT = None,
    headerless: _HEADERLESS = "reference",
    tokens: _TOKENS = "literal",
    loss_mask_type: _MASK = "deepseek_v4",
    chat_format: _FORMAT = "deepseek_v4",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the segments instead, and why each is trained or not.")
    ] = False,
) -> None:
    """Print text, ids and mask of each conversation, as one line of ASCII JSON."""
    from databuild.conversations import encode_file, explain_file
    from databuild.pieces import How
    from databuild.recipe import check_format, check_options
    from masks.options import RenderOptions
    from masks.policy import MASK_TYPES

    check_format(chat_format)
    options = {"mode": mode, "drop_thinking": drop_thinking, "reasoning_effort": reasoning_effort}
    check_options({**options, "loss_mask_type": loss_mask_type})
    how = How(
        mask_type=MASK_TYPES[loss_mask_type],
        options=RenderOptions(
            mode=mode, drop_thinking=drop_thinking, reasoning_effort=reasoning_effort, headerless=headerless
        ),
        full_vocabulary=tokens == "full_vocab",
    )
    if explain:
        from databuild.explain import show_explained

        for line in explain_file(file, how):
            show_explained(line)
        return
    for line in encode_file(file, how):
        typer.echo(json.dumps(line))


def _print(value: dict[str, Any], text: str, as_json: bool) -> None:
    typer.echo(json.dumps(value, sort_keys=True) if as_json else text)


def _sayer(quiet: bool) -> Any:
    return (lambda _: None) if quiet else (lambda text: print(text, file=sys.stderr, flush=True))


def _set_workers(workers: int | None) -> int:
    """The engines' thread pools read this once, at their first use."""
    chosen = workers if workers is not None else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    os.environ["RAYON_NUM_THREADS"] = str(chosen)
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if chosen > 1 else "false"
    import pyarrow as pa

    pa.set_cpu_count(chosen)
    return chosen


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
    except (KeyboardInterrupt, typer.Abort):
        _fail("databuild: interrupted; nothing was written, run the same command again", 130)
    except _Terminated:
        _fail("databuild: terminated; nothing was written, run the same command again", 143)
    except BrokenPipeError:
        # `inspect | head`: the reader has what it wanted.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _fail("databuild: out of memory", 1)
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if full:
            _fail(f"databuild: output error: cannot write: {error}", 5)
        if _STATE["debug"]:
            raise
        _fail(
            f"databuild: unexpected {type(error).__name__}: {error}\n  next:     run again with --debug and report it",
            1,
        )


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
