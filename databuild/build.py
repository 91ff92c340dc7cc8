"""The only module that wires the parts: source -> order -> encode -> pack -> rows -> manifest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.arrow import UNREADABLE, first_line
from databuild.config import BuildSpec, RunOptions
from databuild.counts import Tally
from databuild.encode import RECHECK_EVERY, RECHECK_FIRST, EncodedBatch, Encoder
from databuild.environment import versions
from databuild.errors import ConversationError, DatabuildError, IntegrityError, OutputError, SourceError, UsageError
from databuild.gate import gated_engine
from databuild.journal import Journal, State
from databuild.order import check_permutation, permutation
from databuild.outdir import PartialDir, temporary_folder
from databuild.overlap import Background, Sink, ahead
from databuild.pack import Packer, Rows
from databuild.progress import Progress
from databuild.published import compare_published
from databuild.recipe import how_of
from databuild.rows import ROWS_PER_GROUP, ROWS_PER_SHARD, RowWriter
from databuild.sources.base import ConversationBatch, Source
from databuild.sources.spooled import sha256_file
from databuild.tokenizer import FastEngine, PinnedTokenizer, engine_wanted, load_tokenizer
from manifests.model import FileRecord, Manifest, RowsRecord
from masks.conversation import Reason
from masks.policy import MASK_TYPES

#: Opens a source whose temporary files go to the folder given; the folder does not exist yet.
OpenSource = Callable[[Path, Callable[[str], None]], Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What a build came to. existing: it was there already, with this spec. seconds: wall time of the whole call."""

    out: Path
    manifest: Manifest
    environment: dict[str, Any]
    existing: bool
    seconds: float
    published: dict[str, Any] | None
    warnings: list[str] = field(default_factory=list)


class Stream:
    """The encoded conversations of a source in permuted order, cut into rows: the computation, without any file."""

    def __init__(
        self,
        source: Source,
        spec: BuildSpec,
        tokenizer: PinnedTokenizer,
        *,
        batch_conversations: int,
        plain_way: bool = True,
        overlapped: bool = False,
    ) -> None:
        self._source = source
        self._spec = spec
        self._batch = batch_conversations
        self._overlapped = overlapped
        self._excluded = _excluded_codes(source, spec)
        how = how_of(spec, plain_way=plain_way)
        fast, self.num_gate_texts = _engines(tokenizer, how.full_vocabulary)
        self.encoder = Encoder(
            tokenizer,
            fast,
            how,
            row_tokens=spec.row_tokens,
            separator=spec.separator,
            bos=spec.bos,
        )
        self.packer = Packer(spec.row_tokens, spec.rows)
        self.tally = Tally(source.num_ids)
        self.order = permutation(source.num_rows, spec.seed)
        self.position = 0  # conversations that have gone through

    def state(self) -> State:
        """Where the stream stands between two of its rows: what `restore` needs to go on from here."""
        parts = {"encoder": self.encoder.state(), "packer": self.packer.state(), "tally": self.tally.state()}
        state = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.items()}
        return state | {"position": np.array(self.position)}

    def restore(self, state: State) -> None:
        """Go on from a state of a stream of the same spec and source."""
        for part, owner in (("encoder", self.encoder), ("packer", self.packer), ("tally", self.tally)):
            owner.restore({k.removeprefix(part + "."): v for k, v in state.items() if k.startswith(part + ".")})
        self.position = int(state["position"])

    def __iter__(self) -> Iterator[Rows]:
        starts = range(self.position, len(self.order), self._batch)
        parts = (self.order[start : start + self._batch] for start in starts)
        for batch in ahead(self._source.take, parts, overlapped=self._overlapped):
            encoded = self.encoder.encode(batch, self._excluded[batch.source_codes])
            rows, read = self.packer.add(
                encoded.ids, encoded.loss_mask, encoded.doc_ends, encoded.doc_rows, encoded.ends
            )
            if self._spec.on_invalid == "error":
                _raise_first_rejection(batch, encoded, read)
            self.tally.add(batch, encoded, read)
            self.position += len(batch)
            yield rows
            if self.packer.full:
                return


def build(
    open_source: OpenSource, options: dict[str, Any], run: RunOptions, *, name: Callable[[BuildSpec], str]
) -> BuildResult:
    """Build rows into run.out. options: the fields of BuildSpec that the user decides.

    The result is a whole build at run.out; every error leaves what was there before as it was.
    """
    began = time.monotonic()
    progress = Progress(quiet=run.quiet)
    check_permutation(full=True)
    tokenizer = load_tokenizer()
    with PartialDir(run.out, overwrite=run.overwrite) as place:
        existing = place.existing()
        if existing is not None and not run.overwrite and (different := _different(existing, options)):
            raise _another_spec(run.out, existing, options, different)  # said before the source is read
        overlapped = run.workers > 1
        full_vocabulary = options.get("tokens") == "full_vocab"
        engines = Background(lambda: _engines(tokenizer, full_vocabulary), overlapped=overlapped)
        try:
            source = open_source(place.path / "spool", progress.say)
        finally:
            engines.cancel()  # loaded beside the reading; what it gave is kept by the tokenizer
        try:
            spec = _spec(options, source, tokenizer)
            if existing is not None and existing.spec_sha256 == spec.sha256 and _is_whole(run):
                return _already_there(run, existing, began)
            if existing is not None and not run.overwrite:
                new = spec.to_dict()
                raise _another_spec(run.out, existing, new, _different(existing, new))
            make = lambda: Stream(  # noqa: E731
                source, spec, tokenizer, batch_conversations=run.batch_conversations, overlapped=overlapped
            )
            journal = Journal(place.path, _identity(spec), overlapped=overlapped)
            stream, writer = _begin(make, place, journal, progress.say)
            try:
                _write(stream, writer, journal, place, progress, overlapped=overlapped)
                shards = writer.finish()
                journal.wait()
            finally:
                journal.abandon()
                writer.close()
            if writer.num_rows == 0:
                raise _no_rows(stream, spec)
            counts = stream.tally.counts(stream.packer, source.source_names)
        finally:
            source.close()
        manifest = Manifest.make(
            name=name(spec),
            spec=spec.to_dict(),
            spec_sha256=spec.sha256,
            sources=[source.record],
            tokenizer=tokenizer.record,
            counts=counts,
            rows=RowsRecord(
                rows=writer.num_rows,
                row_tokens=spec.row_tokens,
                num_targets=writer.num_targets,
                supervised_token_ratio=writer.num_targets / (writer.num_rows * spec.row_tokens),
                rows_sha256=writer.digests.rows_sha256,
                docs_sha256=writer.digests.docs_sha256,
            ),
            files=[
                FileRecord(name=path.name, rows=rows, bytes=path.stat().st_size, sha256=sha256_file(path))
                for path, rows in shards
            ],
        )
        environment = _environment(stream)
        place.publish(manifest, environment)
    return BuildResult(
        out=run.out,
        manifest=manifest,
        environment=environment,
        existing=False,
        seconds=time.monotonic() - began,
        published=compare_published(manifest),
        warnings=[*_warnings(stream, spec, writer.num_rows), *place.warnings],
    )


def _engines(tokenizer: PinnedTokenizer, full_vocabulary: bool) -> tuple[FastEngine | None, int]:
    """(the fast engine that passed the gate, number of gate texts), or (None, 0) for the reference alone."""
    return gated_engine(tokenizer, full_vocabulary) if engine_wanted() == "fast" else (None, 0)


def _spec(options: dict[str, Any], source: Source, tokenizer: PinnedTokenizer) -> BuildSpec:
    return BuildSpec(
        **options,
        tokenizer_sha256=tokenizer.record.tokenizer_json_sha256,
        sources=[source.record.identity_sha256],
    )


def _begin(
    make: Callable[[], Stream], place: PartialDir, journal: Journal, say: Callable[[str], None]
) -> tuple[Stream, RowWriter]:
    """The stream and its rows: from where a killed build of the same spec had come, or from the start."""
    stream, writer = make(), RowWriter(place.path)
    begun = journal.load()
    if begun is not None:
        try:
            place.unfinished()
            writer.resume(begun.groups, stream.packer.row_tokens)
            stream.restore(begun.state)
            if begun.pending is not None:
                writer.add(begun.pending)
        except (DatabuildError, *UNREADABLE, KeyError) as error:
            say(f"what a killed build left cannot be used ({first_line(error)}): starting anew")
            writer.close()
        else:
            place.resumable = True
            say(
                f"going on after {stream.position:,} conversations and {writer.num_rows:,} rows that a killed build left"
            )
            return stream, writer
        stream, writer = make(), RowWriter(place.path)
    journal.forget()
    place.start_anew()
    return stream, writer


def _write(
    stream: Stream, writer: RowWriter, journal: Journal, place: PartialDir, progress: Progress, *, overlapped: bool
) -> None:
    def put(item: tuple[Rows, State | None]) -> None:
        rows, state = item
        writer.add(rows)
        if state is not None:
            journal.commit(writer, state)
            place.resumable = True

    wanted = stream.packer.max_rows
    unit, total = ("rows", wanted) if wanted is not None else ("conversations", len(stream.order))
    journal.started()
    with progress.start(unit, total), Sink(put, overlapped=overlapped) as sink:
        for rows in stream:
            due = journal.due() and not stream.packer.full
            sink.add((rows, stream.state() if due else None))
            if due:
                journal.started()
            done = stream.packer.num_kept if wanted is not None else stream.tally.conversations
            progress.update(done, stream.packer.num_tokens)


def dry_run(
    open_source: OpenSource, options: dict[str, Any], run: RunOptions, *, sample_tokens: int = 4_000_000
) -> dict[str, Any]:
    """What a build would give, from its first conversations; exact when they are all. Writes nothing to keep.

    Keys: conversations, encoded, exact, tokens, rows, disk_bytes, seconds; what is estimated is scaled from the sample.
    """
    check_permutation(full=True)
    tokenizer = load_tokenizer()
    with temporary_folder("databuild-") as folder:
        source = open_source(folder / "spool", Progress(quiet=run.quiet).say)
        try:
            spec = _spec(options, source, tokenizer)
            stream = Stream(source, spec, tokenizer, batch_conversations=run.batch_conversations)
            writer = RowWriter(folder)
            began = time.monotonic()
            for rows in stream:
                writer.add(rows)
                if stream.packer.num_tokens >= sample_tokens:
                    break
            seconds = max(time.monotonic() - began, 1e-6)
            shards = writer.finish()
            size = sum(path.stat().st_size for path, _ in shards)
            return _estimate(stream, spec, writer, size, seconds, source.num_rows)
        finally:
            source.close()


def _estimate(
    stream: Stream, spec: BuildSpec, writer: RowWriter, size: int, seconds: float, num_rows: int
) -> dict[str, Any]:
    encoded, kept = stream.tally.conversations, writer.num_rows
    exact = encoded == num_rows or stream.packer.full
    scale = 1.0 if exact else num_rows / max(encoded, 1)
    if spec.rows is not None and kept and not exact:
        scale = min(scale, spec.rows / kept)
    tokens = stream.packer.num_tokens
    return {
        "conversations": num_rows,
        "encoded": encoded,
        "exact": exact,
        "tokens": round(tokens * scale),
        "rows": round(kept * scale),
        "disk_bytes": round(size * scale),
        "seconds": round(seconds * scale, 1),
        "supervised_token_ratio": round(writer.num_targets / max(kept * spec.row_tokens, 1), 4),
    }


def _excluded_codes(source: Source, spec: BuildSpec) -> npt.NDArray[np.bool_]:
    """bool for each source code: whether the spec leaves its conversations out."""
    names = source.source_names
    for option, wanted in (
        ("--include-source", spec.include_sources or []),
        ("--exclude-source", spec.exclude_sources),
    ):
        if unknown := [name for name in wanted if name not in names]:
            raise UsageError(
                f"{option} names a source that does not occur",
                found=", ".join(unknown),
                expected="one of " + ", ".join(sorted(names)[:40]),
            )
    included = names if spec.include_sources is None else spec.include_sources
    return np.array([name not in included or name in spec.exclude_sources for name in names], bool)


def _raise_first_rejection(batch: ConversationBatch, encoded: EncodedBatch, read: int) -> None:
    for position, rejection in sorted(encoded.rejections.items()):
        if position < read and rejection.reason is not Reason.SOURCE_EXCLUDED:
            raise ConversationError(
                "a conversation cannot be used, and --on-invalid is error",
                where=f"source row {batch.rows[position]}",
                found=str(rejection),
                next_step="mend the row, or let it be skipped and counted: --on-invalid skip",
            )


def _is_whole(run: RunOptions) -> bool:
    """Whether the build at run.out passes level 1. One that does not is an error, or a reason to replace it."""
    from databuild.verify import verify

    try:
        verify(run.out, level=1)
    except IntegrityError as error:
        if run.overwrite:
            return False
        error.next_step = "do not use this build; --overwrite builds it anew"
        raise
    return True


def _already_there(run: RunOptions, existing: Manifest, began: float) -> BuildResult:
    return BuildResult(
        out=run.out,
        manifest=existing,
        environment={},
        existing=True,
        seconds=time.monotonic() - began,
        published=compare_published(existing),
    )


def _different(existing: Manifest, new: dict[str, Any]) -> list[str]:
    return [key for key in new if existing.spec.get(key) != new[key]]


def _another_spec(out: Path, existing: Manifest, new: dict[str, Any], different: list[str]) -> OutputError:
    return OutputError(
        "the directory holds a build of another spec",
        where=str(out),
        expected="; ".join(f"{key} {_short(new[key])}" for key in different),
        found="; ".join(f"{key} {_short(existing.spec.get(key))}" for key in different),
        next_step="choose another --out, or replace the build with --overwrite",
    )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def _no_rows(stream: Stream, spec: BuildSpec) -> SourceError:
    packer = stream.packer
    return SourceError(
        "the source gives no row",
        expected=f"at least {spec.row_tokens:,} tokens with something to train",
        found=f"{packer.num_tokens:,} tokens, {packer.num_cut} rows cut, {stream.tally.targets:,} targets, "
        f"{stream.tally.conversations:,} conversations read",
        next_step="choose smaller rows with --row-tokens, or a larger source",
    )


def _warnings(stream: Stream, spec: BuildSpec, rows: int) -> list[str]:
    found = []
    if spec.rows is not None and rows < spec.rows:
        found.append(f"the source ended after {rows:,} of {spec.rows:,} rows")
    if spec.drop_thinking and spec.history == "whole" and MASK_TYPES[spec.loss_mask_type].turns == "all":
        found.append(
            "history loses its reasoning and is trained all the same, in a form that serving never produces: "
            "use --history split_turns, or --loss-mask-type deepseek_v4_last_turn"
        )
    if "fastokens" not in stream.encoder.engine_name:
        found.append(f"fastokens is not in use: everything was encoded with {stream.encoder.engine_name} (slow)")
    return found


def _identity(spec: BuildSpec) -> dict[str, Any]:
    """What must be equal for a build to go on with the rows of another."""
    return {"spec": spec.to_dict(), "row_groups": [ROWS_PER_GROUP, ROWS_PER_SHARD], **versions()}


def _environment(stream: Stream) -> dict[str, Any]:
    return {
        **versions(),
        "engine": stream.encoder.engine_name,
        "gate_texts": stream.num_gate_texts,
        "rechecked_conversations": stream.encoder.num_rechecked,
        "encoded_conversations": stream.encoder.num_encoded,  # fewer than there are where a killed build was taken over
        "recheck_rule": f"source row % {RECHECK_EVERY} == 0, and the first {RECHECK_FIRST} read",
    }
