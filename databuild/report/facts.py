"""What a report says, gathered from a build: sums of its rows, rows worth a look, skips, texts that spell special tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from databuild.config import BuildSpec
from databuild.inspect import View, documents, read_row
from databuild.inspect.origin import opened_source, record_of, source_missing
from databuild.inspect.text import TokenText
from databuild.order import permutation
from databuild.pieces import NOTE_BIT, NOTES, make_pieces
from databuild.recipe import how_of
from databuild.rows import read_groups
from databuild.sources.base import Source
from databuild.survey import Conversations, Survey, conversations, survey
from databuild.tokenizer import SPECIAL_MARKS, PinnedTokenizer
from databuild.verify import row_paths
from manifests.model import Manifest
from masks.fixed_texts import FixedTextsError

#: Examples of each reason and note, and how many conversations are read again for them at most.
EXAMPLES = 3
MOST_READ = 200_000

SIGHTINGS = 20
_AROUND = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Text of a row that spells a special token: where, what, and the text around it."""

    row: int
    token: int
    trained: bool
    text: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A conversation that was skipped or noted: its source row, in words why, and the beginning of its record."""

    source_row: int
    detail: str
    record: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A row to show, and why it was chosen."""

    row: int
    why: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the page is made of. examples None: the source is not at hand, as `missing` says."""

    manifest: Manifest
    survey: Survey
    conversations: Conversations
    sightings: list[Sighting]
    num_sightings: int
    examples: dict[str, list[Example]] | None
    missing: str | None
    chosen: list[Chosen]


def gather(
    folder: Path, manifest: Manifest, text: TokenText, *, seed: int, rows_shown: int, sources: list[str]
) -> Facts:
    """The facts of a build whose files have been checked."""
    of = survey(folder, manifest)
    sightings, num_sightings = _sightings(folder, manifest, text)
    examples, missing = None, source_missing(manifest, sources)
    if missing is None:
        with opened_source(manifest, sources) as source:
            examples, missing = _examples(source, manifest)
    return Facts(
        manifest=manifest,
        survey=of,
        conversations=conversations(of),
        sightings=sightings,
        num_sightings=num_sightings,
        examples=examples,
        missing=missing,
        chosen=choose(of, seed=seed, most=rows_shown),
    )


def choose(of: Survey, *, seed: int, most: int) -> list[Chosen]:
    """At most `most` rows, in file order: of each kind of unusual row a sixth, the rest drawn by the seed."""
    num = len(of.num_targets)
    share = max(1, most // 6)
    whole = np.flatnonzero(of.doc_start + of.doc_tokens < of.row_tokens)  # not cut off by the end of their row
    whole = whole[of.doc_start[whole] > 0]
    spread = conversations(of)
    kinds: list[tuple[str, list[int]]] = [
        ("lowest ratio", np.lexsort((np.arange(num), of.num_targets)).tolist()),
        ("highest ratio", np.lexsort((np.arange(num), -of.num_targets)).tolist()),
        (
            "shortest conversation",
            of.doc_row[whole[np.lexsort((whole, of.doc_tokens[whole]))]].tolist(),
        ),
        (
            "longest conversation",
            of.doc_row[spread.first[np.lexsort((spread.source_row, -spread.tokens))]].tolist(),
        ),
    ]
    kinds = [(name, list(dict.fromkeys(order))[:share]) for name, order in kinds]
    kinds.append(("drawn at random", np.random.default_rng(seed).permutation(num).tolist()))
    found: dict[int, list[str]] = {}
    for name, order in kinds:
        for row in order:
            if row not in found and len(found) >= most:
                break
            if name != "drawn at random" or row not in found:
                found.setdefault(row, []).append(name)
    return [Chosen(row=row, why=why) for row, why in sorted(found.items())]


def view(folder: Path, manifest: Manifest, number: int, tokenizer: PinnedTokenizer) -> View:
    """One row to show, without reasons."""
    rows = read_row(folder, manifest, number)
    found = documents(rows, tokenizer)
    return View(
        row=number,
        ids=rows.input_ids[0],
        mask=rows.loss_mask[0],
        documents=found,
        num_documents=len(found),
        reasons=None,
    )


def _sightings(folder: Path, manifest: Manifest, text: TokenText) -> tuple[list[Sighting], int]:
    """(the first SIGHTINGS, how many there are) texts in the rows that spell a special token; over a row's edge unseen."""
    marks = [mark.encode("utf-8") for mark in SPECIAL_MARKS]
    found: list[Sighting] = []
    total = first = 0
    for _, rows, _ in read_groups(row_paths(folder, manifest), manifest.rows.row_tokens):
        for i in range(len(rows)):
            ids = text.without_special(rows.input_ids[i])
            data = text.bytes_of(ids)
            if not any(mark in data for mark in marks):
                continue
            for match in text.special_bytes.finditer(data):
                total += 1
                if len(found) == SIGHTINGS:
                    continue
                token = int(np.searchsorted(text.ends(ids), match.start(), side="right"))
                found.append(
                    Sighting(
                        row=first + i,
                        token=token,
                        trained=bool(rows.loss_mask[i, token]),
                        text=match.group().decode("utf-8"),
                        before=data[max(0, match.start() - _AROUND) : match.start()].decode("utf-8", "ignore"),
                        after=data[match.end() : match.end() + _AROUND].decode("utf-8", "ignore"),
                    )
                )
        first += len(rows)
    return found, total


def _examples(source: Source, manifest: Manifest) -> tuple[dict[str, list[Example]] | None, str | None]:
    """Examples of each reason and note, in the order of the build; or why there are none."""
    spec = BuildSpec.model_validate(manifest.spec)
    how = how_of(spec)
    names = source.source_names
    included = names if spec.include_sources is None else spec.include_sources
    excluded = np.array([name not in included or name in spec.exclude_sources for name in names], bool)
    order = permutation(source.num_rows, spec.seed)[: min(manifest.counts.conversations, MOST_READ)]
    # What an encoder notes beside the pieces is not looked for here.
    bits = {note.value: NOTE_BIT[note] for note in NOTES}
    wanted = {*manifest.counts.skipped, *(name for name in manifest.counts.noted if name not in _ELSEWHERE)}
    found: dict[str, list[Example]] = {}

    def add(kind: str, source_row: int, detail: str, record: dict[str, object]) -> None:
        shown = json.dumps(record, ensure_ascii=False)
        shown = shown if len(shown) <= 300 else shown[:300] + " ..."
        found.setdefault(kind, []).append(Example(source_row=source_row, detail=detail, record=shown))

    for start in range(0, len(order), 4096):
        missing = {kind for kind in wanted if len(found.get(kind, ())) < EXAMPLES}
        if not missing:
            break
        batch = source.take(order[start : start + 4096])
        try:
            pieces = make_pieces(batch, how, excluded[batch.source_codes])
        except FixedTextsError:
            return None, "some conversations need the official texts of the format: pip install deepseek-recipe==0.2.0"
        for place, rejection in sorted(pieces.rejections.items()):
            kind = rejection.reason.value
            if kind in missing and len(found.get(kind, ())) < EXAMPLES:
                add(kind, int(batch.rows[place]), str(rejection), record_of(batch, place))
        for kind in sorted(missing & bits.keys()):
            at = np.flatnonzero((pieces.notes & bits[kind] != 0) & (pieces.status == 0))
            for place in at[: EXAMPLES - len(found.get(kind, ()))].tolist():
                add(kind, int(batch.rows[place]), "", record_of(batch, place))
    return found, None


_ELSEWHERE = {"id_duplicate", "longer_than_row", "special_text"}
