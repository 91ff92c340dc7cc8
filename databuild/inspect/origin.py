"""Where the tokens of a row come from: its source read again, each token traced to a segment of its conversation.

The conversation is rendered and encoded anew with the reference engine, and must give the stored ids and mask: what is
said of a token holds for the token that is there, or there is an error.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from databuild.config import BuildSpec
from databuild.encode import fixed_texts_error
from databuild.errors import IntegrityError
from databuild.outdir import temporary_folder
from databuild.recipe import how_of
from databuild.rows import damaged
from databuild.sources.base import RAW, ROLE_CODES, ConversationBatch, Source
from databuild.sources.open import parse_source, request_of_record
from databuild.tokenizer import PinnedTokenizer
from manifests.model import Manifest
from masks import deepseek_v4, policy
from masks.conversation import Rejection
from masks.fixed_texts import FixedTextsError
from masks.parse import parse
from masks.segments import Segment, SegmentKind

_AMBIGUOUS = "or what reads the same elsewhere in the conversation"
_ROLE_NAMES = {code: name for name, code in ROLE_CODES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Tokens start to stop of a row that come from one segment: its kind, its message (None for glue), and why."""

    start: int
    stop: int
    trained: bool
    kind: str
    message: int | None
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    kind: str
    message: int | None
    trained: bool
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One encoded example: its ids, its mask, and the entry of `tokens` that each token belongs to."""

    ids: npt.NDArray[np.int32]
    mask: npt.NDArray[np.uint8]
    owner: npt.NDArray[np.int64]
    tokens: list[_Token]


def source_missing(manifest: Manifest, paths: Sequence[str]) -> str | None:
    """Why the source of a build is not at hand, None if it is: it was given, or is built in."""
    if paths or manifest.sources[0].kind == "demo":
        return None
    if manifest.sources[0].kind == "hub":
        return "the source is on the hub and is not fetched for this; name it with --source tulu3 or --source hf:..."
    return "this build was made from files, and its manifest holds no paths; say where they are with --source PATH"


@contextlib.contextmanager
def opened_source(manifest: Manifest, paths: Sequence[str]) -> Iterator[Source]:
    """The source of a build, proven to be the one in its manifest. paths: the values of --source."""
    columns = manifest.spec.get("columns")
    request = parse_source(paths, columns) if paths else request_of_record(manifest.sources[0], columns, paths)
    with temporary_folder("databuild-look-") as folder:
        source = request.open(folder / "spool", lambda _: None)
        try:
            if source.record != manifest.sources[0]:
                raise IntegrityError(
                    "the source is another one than that of the build",
                    where=", ".join(paths) or None,
                    expected=_described(manifest.sources[0]),
                    found=_described(source.record),
                    next_step="give the files that the build was made from, in the same order",
                )
            yield source
        finally:
            source.close()


def _described(record: Any) -> str:
    files = "; ".join(f"{file.name} sha256 {file.sha256}" for file in record.files[:3])
    return f"{record.rows:,} rows of {record.name or record.kind}: {files}"


def record_of(batch: ConversationBatch, place: int) -> dict[str, Any]:
    """The record of one conversation of a batch, as it was spooled."""
    start = int(batch.counts[:place].sum())
    stop = start + int(batch.counts[place])
    if stop > start and batch.roles[start] == RAW:
        record: dict[str, Any] = json.loads(batch.texts[start])
        return record
    roles, texts = batch.roles[start:stop].tolist(), batch.texts[start:stop]
    return {"messages": [{"role": _ROLE_NAMES[r], "content": t} for r, t in zip(roles, texts, strict=True)]}


class Tracer:
    """Traces the documents of rows to their conversations; each is encoded once."""

    def __init__(self, source: Source, spec: BuildSpec, tokenizer: PinnedTokenizer) -> None:
        self._source = source
        self._spec = spec
        self._how = how_of(self._spec)
        self._tokenizer = tokenizer
        self._made: dict[int, list[Example]] = {}

    def trace(
        self,
        source_row: int,
        start: int,
        ids: npt.NDArray[np.int32],
        mask: npt.NDArray[np.uint8],
        where: str,
    ) -> list[Reason]:
        """The reasons of a document's tokens: ids int32[n] and mask uint8[n], which begin at `start` of their row.

        IntegrityError if its conversation gives no such tokens or another mask.
        """
        if source_row not in self._made:
            self._made[source_row] = self._examples(source_row)
        found: list[Reason] | None = None
        for example in self._made[source_row]:
            for offset in _offsets(example.ids, ids, anywhere=start == 0):
                expected = example.mask[offset : offset + len(ids)].copy()
                if start == 0:
                    expected[0] = 0
                if not np.array_equal(expected, mask):
                    continue
                reasons = _reasons(example, offset, start, len(ids))
                if found is not None and reasons != found:
                    # Short, or much repeated: a row's edge may have cut it out of either place.
                    return [replace(reason, why=f"{reason.why} ({_AMBIGUOUS})") for reason in found]
                found = reasons
        if found is not None:
            return found
        raise damaged("the row is not what its conversation gives", f"{where}, source row {source_row}")

    def _examples(self, source_row: int) -> list[Example]:
        batch = self._source.take(np.array([source_row], np.int64))
        parsed = parse(record_of(batch, 0), lenient=self._how.lenient)
        rendered = parsed if isinstance(parsed, Rejection) else None
        if not isinstance(parsed, Rejection):
            try:
                made = deepseek_v4.examples(parsed, self._how.options)
            except FixedTextsError as error:
                raise fixed_texts_error(error) from error
            if not isinstance(made, Rejection):
                return [
                    self._encoded(example.segments, example.only, parsed.silenced, with_bos)
                    for example in made[0]
                    # Which example is the first of the stream is not asked: a row's own tokens tell.
                    for with_bos in ([True, False] if self._spec.bos == "first" else [self._spec.bos == "keep"])
                ]
            rendered = made
        raise damaged("a row holds a conversation that is skipped", f"source row {source_row}", None, str(rendered))

    def _encoded(
        self, segments: list[Segment], only: frozenset[int] | None, silenced: frozenset[int], with_bos: bool
    ) -> Example:
        mask_type = self._how.mask_type
        flags = policy.trained(segments, mask_type, silenced=silenced, only=only)
        tokens = [
            _Token(
                kind=segment.kind.value,
                message=segment.message,
                trained=flag,
                why=policy.why(segment, mask_type, flag, silenced),
            )
            for segment, flag in zip(segments, flags, strict=True)
        ]
        ids, owner, straddles = self._tokens(segments, flags)
        mask = np.array(flags, np.uint8)[owner]
        mask[straddles] = 0
        extra = len(tokens)
        tokens.append(
            _Token(kind="edge", message=None, trained=False, why="this token reaches over the edge of what is trained")
        )
        owner[straddles] = extra
        if with_bos:
            bos = SegmentKind.BOS in mask_type.kinds
            ids, mask, owner = (np.append([deepseek_v4.BOS], ids), np.append([bos], mask), np.append([0], owner))
        ends = self._ends_in_eos(segments)
        if self._spec.separator == "always" or (self._spec.separator == "ensure" and not ends):
            tokens.append(
                _Token(kind="separator", message=None, trained=False, why="EOS between conversations, never trained")
            )
            ids, mask, owner = np.append(ids, deepseek_v4.EOS), np.append(mask, 0), np.append(owner, extra + 1)
        return Example(
            ids=ids.astype(np.int32), mask=mask.astype(np.uint8), owner=owner.astype(np.int64), tokens=tokens
        )

    def _ends_in_eos(self, segments: list[Segment]) -> bool:
        """As pieces.py decides it: by the last piece that is not empty, or by the text under full_vocab."""
        if self._how.full_vocabulary:
            return deepseek_v4.text_of(segments[1:]).endswith(deepseek_v4.TOKEN_TEXT[deepseek_v4.EOS])
        last = next((s for s in reversed(segments[1:]) if s.token_id is not None or s.text), None)
        return last is not None and last.token_id == deepseek_v4.EOS

    def _tokens(
        self, segments: list[Segment], flags: list[bool]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """(ids, segment of each, whether it reaches from trained into untrained text), BOS left out."""
        ids: list[npt.NDArray[np.int32]] = []
        owner: list[npt.NDArray[np.int64]] = []
        straddles: list[npt.NDArray[np.bool_]] = []
        trained = np.array(flags, bool)

        def add_run(places: list[int]) -> None:
            texts = [deepseek_v4.text_of([segments[place]]) for place in places]
            engine = self._tokenizer.full_vocabulary if self._how.full_vocabulary else self._tokenizer.reference
            run, _ = engine.encode(["".join(texts)])
            ends = np.cumsum([len(text.encode("utf-8")) for text in texts])
            token_ends = np.cumsum(self._tokenizer.token_bytes[run], dtype=np.int64)
            token_starts = token_ends - self._tokenizer.token_bytes[run]
            first = np.searchsorted(ends, token_starts, side="right")
            last = np.searchsorted(ends, token_ends - 1, side="right")
            ids.append(run)
            owner.append(np.array(places, np.int64)[first])
            # Between its first and its last segment a token may cover others, so count the untrained bytes' segments.
            untrained = np.append(0, np.cumsum(~trained[places] & (np.diff(ends, prepend=0) > 0)))
            mixed = trained[np.array(places)[first]] != trained[np.array(places)[last]]
            mixed |= trained[np.array(places)[first]] & (untrained[last + 1] > untrained[first])
            straddles.append(mixed)

        run: list[int] = []
        for place, segment in enumerate(segments):
            if place == 0:
                continue
            if segment.token_id is None or self._how.full_vocabulary:
                run.append(place)
                continue
            if run:
                add_run(run)
                run = []
            ids.append(np.array([segment.token_id], np.int32))
            owner.append(np.array([place], np.int64))
            straddles.append(np.zeros(1, bool))
        if run:
            add_run(run)
        if not ids:
            return np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, bool)
        return np.concatenate(ids), np.concatenate(owner), np.concatenate(straddles)


def _offsets(whole: npt.NDArray[np.int32], part: npt.NDArray[np.int32], *, anywhere: bool) -> Iterator[int]:
    """Where the part lies in the whole: at its start, or anywhere if a row's edge may have cut it."""
    last = len(whole) - len(part)
    if last < 0:
        return
    starts = np.flatnonzero(whole[: last + 1] == part[0]).tolist() if anywhere else [0]
    yield from (at for at in starts if np.array_equal(whole[at : at + len(part)], part))


def _reasons(example: Example, offset: int, start: int, num: int) -> list[Reason]:
    owner = example.owner[offset : offset + num]
    edges = [0, *(np.flatnonzero(np.diff(owner)) + 1).tolist(), num]
    if start == 0 and num > 1 and edges[1] > 1 and example.mask[offset]:
        edges.insert(1, 1)
    found = []
    for a, b in pairwise(edges):
        token = example.tokens[int(owner[a])]
        lost = start == 0 and a == 0 and bool(example.mask[offset])
        found.append(
            Reason(
                start=start + a,
                stop=start + b,
                trained=token.trained and not lost,
                kind=token.kind,
                message=token.message,
                why="the first token of a row: nothing before it in the row predicts it" if lost else token.why,
            )
        )
    return found
