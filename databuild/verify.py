"""Is this directory the build that its manifest says? Four levels, each with all before it.

1 the manifest and the digest of every file; 2 every row, and rows_sha256 and docs_sha256; 3 a sample of rows decoded and
encoded again by the reference engine; 4 the whole build made again from its source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from pydantic import ValidationError

from databuild.arrow import column_values
from databuild.config import BuildSpec
from databuild.environment import versions
from databuild.errors import SourceError, UsageError
from databuild.locate import place_of_damage
from databuild.outdir import ENVIRONMENT, MANIFEST, temporary_folder
from databuild.pack import Rows
from databuild.rows import (
    ROWS_PER_GROUP,
    ROWS_PER_SHARD,
    Digests,
    canonical_bytes,
    check_totals,
    damaged,
    read_groups,
    select,
    shard_name,
)
from databuild.sources.base import Source
from databuild.sources.open import SourceRequest, request_of_record
from databuild.sources.spooled import sha256_file
from databuild.tokenizer import PinnedTokenizer, load_tokenizer
from manifests.model import (
    FileRecord,
    Manifest,
    ManifestError,
    SourceRecord,
    TokenizerRecord,
    first_error,
    read_manifest,
)
from masks.policy import MASK_TYPES

Say = Callable[[str], None]


def verify(
    folder: Path, *, level: int = 2, paths: Sequence[str] = (), workers: int = 2, say: Say = lambda _: None
) -> dict[str, Any]:
    """Check a build; IntegrityError (exit 6) at the first thing that is not as it should be.

    paths: where the files of a PATH build are, for level 4. Gives {"level", "rows", "rows_sha256", "checked": [...]}.
    """
    manifest = load_manifest(folder)
    if paths and (level < 4 or manifest.sources[0].kind != "files"):
        raise UsageError("--source is for --level 4 of a build that was made from files")
    request = request_of_record(manifest.sources[0], manifest.spec.get("columns"), paths) if level >= 4 else None
    checked: list[str] = []

    def passed(text: str) -> None:
        checked.append(text)
        say(f"level {len(checked)}: {text}")

    passed(_files(folder, manifest))
    if level >= 2:
        tokenizer = load_tokenizer()
        passed(_rows(folder, manifest, tokenizer))
    if level >= 3:
        _known_mask(manifest)
        passed(_sample(folder, manifest, tokenizer))
    if request is not None:
        passed(_rebuild(folder, manifest, request, workers, say))
    return {
        "level": level,
        "name": manifest.name,
        "rows": manifest.rows.rows,
        "rows_sha256": manifest.rows.rows_sha256,
        "checked": checked,
    }


def load_manifest(folder: Path) -> Manifest:
    """The proven manifest of a build. SourceError if there is no build, IntegrityError if the manifest is damaged."""
    path = folder / MANIFEST
    if path.is_symlink() or not path.is_file():
        partial = folder.name.endswith(".partial")
        raise SourceError(
            "there is no build here" + (": this is what an unfinished one left" if partial else ""),
            where=str(folder),
            expected=f"a directory with {MANIFEST}",
            found="no such directory" if not folder.is_dir() else "a directory without it",
            next_step="databuild fixed --source demo --out DIR makes one",
        )
    try:
        return read_manifest(path.read_bytes())
    except ManifestError as error:
        raise damaged("the manifest is damaged", MANIFEST, None, str(error)) from error


def row_paths(folder: Path, manifest: Manifest) -> list[Path]:
    """The row files, in order."""
    return [folder / file.name for file in manifest.files]


def _files(folder: Path, manifest: Manifest) -> str:
    names = row_file_names(manifest)
    present = {entry.name for entry in folder.iterdir()}
    for name in names:
        if name not in present or (folder / name).is_symlink() or not (folder / name).is_file():
            raise damaged("a row file is missing", name, "a regular file", ", ".join(sorted(present)))
    if extra := sorted(present - {*names, MANIFEST, ENVIRONMENT}):
        raise damaged("there are files that the manifest does not know", str(folder), None, ", ".join(extra))
    check_arithmetic(manifest)
    for file in manifest.files:
        check_row_file(folder, file, manifest.rows.row_tokens)
    return f"manifest and {len(names)} row file{'s' * (len(names) != 1)} are what they should be"


def row_file_names(manifest: Manifest) -> list[str]:
    """The names of the row files, which must be those of shards in order: nothing else is opened."""
    names = [file.name for file in manifest.files]
    if names != [shard_name(i, len(names)) for i in range(len(names))]:
        raise damaged("the list of row files is not in order", MANIFEST, None, ", ".join(names))
    return names


def check_row_file(folder: Path, file: FileRecord, row_tokens: int, *, digest: bool = True) -> None:
    """IntegrityError unless a row file has the size of the manifest and, where it is asked for, the digest."""
    path = folder / file.name
    if (size := path.stat().st_size) != file.bytes:
        raise damaged("a row file has another size", file.name, f"{file.bytes} bytes", f"{size} bytes")
    if digest and (found := sha256_file(path)) != file.sha256:
        place = place_of_damage(path, row_tokens)
        raise damaged(
            "a row file has another digest",
            file.name,
            f"sha256 {file.sha256}",
            f"sha256 {found}; damaged: {place}",
        )


def check_arithmetic(manifest: Manifest) -> None:
    """What a manifest says twice it must say alike."""
    try:
        spec = BuildSpec.model_validate(manifest.spec)
    except ValidationError as error:
        raise damaged("the spec is none that this version knows", MANIFEST, None, first_error(error)) from error
    if spec.sha256 != manifest.spec_sha256:
        raise damaged("the spec leaves out fields", MANIFEST, ", ".join(spec.to_dict()), ", ".join(manifest.spec))
    counts, rows = manifest.counts, manifest.rows
    sources = counts.by_source.values()
    whole, last = divmod(rows.rows, ROWS_PER_SHARD)
    shards = [ROWS_PER_SHARD] * whole + [last] * (last > 0)
    for name, expected, found in (
        ("rows of the files", shards, [file.rows for file in manifest.files]),
        ("conversations = used + skipped", counts.conversations, counts.used + sum(counts.skipped.values())),
        ("used by source", counts.used, sum(s.used for s in sources)),
        ("skipped by source", sum(counts.skipped.values()), sum(s.skipped for s in sources)),
        ("tokens by source", counts.tokens, sum(s.tokens for s in sources)),
        (
            "tokens = rows_cut * row_tokens + tail",
            counts.tokens,
            counts.rows_cut * rows.row_tokens + counts.tail_tokens,
        ),
        ("rows = rows_cut - rows_without_targets", rows.rows, counts.rows_cut - counts.rows_without_targets),
        ("row_tokens of the spec", spec.row_tokens, rows.row_tokens),
        ("supervised_token_ratio", rows.supervised_token_ratio, rows.num_targets / max(1, rows.rows * rows.row_tokens)),
        ("tokenizer of the spec", spec.tokenizer_sha256, manifest.tokenizer.tokenizer_json_sha256),
        ("sources of the spec", spec.sources, [s.identity_sha256 for s in manifest.sources]),
    ):
        if expected != found:
            raise damaged(f"the manifest contradicts itself: {name}", MANIFEST, str(expected), str(found))
    for source in manifest.sources:
        fields = source.model_dump(exclude={"identity_sha256", "files"})
        if SourceRecord.make(**fields, files=source.files).identity_sha256 != source.identity_sha256:
            raise damaged("the identity of a source is not its digest", MANIFEST, None, source.identity_sha256)


def _same_tokenizer(manifest: Manifest, tokenizer: PinnedTokenizer) -> None:
    if manifest.tokenizer != tokenizer.record:
        raise damaged(
            "the build was made with another tokenizer than the pinned one",
            MANIFEST,
            _tokenizer(tokenizer.record),
            _tokenizer(manifest.tokenizer),
        )


def _tokenizer(record: TokenizerRecord) -> str:
    return f"{record.name} @ {record.revision}, sha256 {record.tokenizer_json_sha256}"


def _known_mask(manifest: Manifest) -> None:
    name, version = manifest.spec["loss_mask_type"], manifest.spec["loss_mask_version"]
    if name not in MASK_TYPES or MASK_TYPES[name].version != version:
        known = ", ".join(f"{mask.name} version {mask.version}" for mask in MASK_TYPES.values())
        raise damaged("the mask type is none that this version knows", MANIFEST, known, f"{name} version {version}")


def _rows(folder: Path, manifest: Manifest, tokenizer: PinnedTokenizer) -> str:
    for _ in verified_groups(folder, manifest, tokenizer):
        pass
    rows = manifest.rows
    return f"{rows.rows:,} rows, {rows.num_targets:,} targets, rows_sha256 {rows.rows_sha256}"


def verified_groups(folder: Path, manifest: Manifest, tokenizer: PinnedTokenizer) -> Iterator[Rows]:
    """The rows of a build, a row group at a time, each checked by itself; IntegrityError for the first that is wrong.

    That they are all there, and what rows_sha256 and docs_sha256 say, is known only at the end: what was made from them must
    not be used before.
    """
    _same_tokenizer(manifest, tokenizer)
    vocab_size = tokenizer.vocab_size
    num_source_rows = sum(source.rows for source in manifest.sources)
    digests, first, targets = Digests(), 0, 0
    for file in manifest.files:
        before = first
        for table, rows, where in read_groups([folder / file.name], manifest.rows.row_tokens):
            size = min(ROWS_PER_GROUP, file.rows - (first - before))
            if len(rows) != size:
                raise damaged("a row group has another size", where, f"{size} rows", f"{len(rows)}")
            canonical = canonical_bytes(rows.input_ids, rows.loss_mask)
            _check_group(table, rows, canonical, first, vocab_size, num_source_rows)
            digests.add(rows, canonical)
            yield rows
            first += len(rows)
            targets += int(rows.loss_mask.sum(dtype=np.int64))
        if first - before != file.rows:
            raise damaged("a row file has another number of rows", file.name, str(file.rows), str(first - before))
    check_totals(manifest.rows, digests, rows=first, targets=targets, where=str(folder))


def _check_group(
    table: Any, rows: Rows, canonical: np.ndarray, first: int, vocab_size: int, num_source_rows: int
) -> None:
    """Everything that must hold of each row by itself."""

    def refuse(bad: Any, what: str, expected: str, found: Callable[[int], Any]) -> None:
        if np.any(bad):
            i = int(np.flatnonzero(bad)[0])
            documents = rows.doc_rows[rows.doc_offsets[i] : rows.doc_offsets[i + 1]].tolist()
            where = f"row {first + i} (source rows {', '.join(map(str, documents[:6]))})"
            raise damaged(what, where, expected, str(found(i)))

    mask, ids = rows.loss_mask, rows.input_ids
    numbers = column_values(table.column("row"))
    targets = column_values(table.column("num_targets"))
    refuse(numbers != first + np.arange(len(rows)), "a row is out of place", "rows in order", lambda i: numbers[i])
    out_of_range = (ids < 0) | (ids >= vocab_size)
    refuse(
        out_of_range.any(1),
        "a token id is out of range",
        f"0 to {vocab_size - 1}",
        lambda i: ids[i][out_of_range[i]][0],
    )
    refuse((mask > 1).any(1), "loss_mask is neither 0 nor 1", "0 or 1", lambda i: mask[i].max())
    refuse(mask[:, 0] != 0, "loss_mask[0] is not 0", "0", lambda i: mask[i, 0])
    sums = mask.sum(1, dtype=np.int64)
    refuse(
        targets != sums, "num_targets is not the sum of loss_mask", "the sum", lambda i: f"{targets[i]}, sum {sums[i]}"
    )
    refuse(sums < 1, "a row has nothing to train", "at least 1 target", lambda i: sums[i])
    stored = column_values(table.column("xxh3"))
    computed = np.array([xxhash.xxh3_64_intdigest(row) for row in canonical], np.uint64)
    refuse(stored != computed, "a row is damaged: its xxh3 differs", "xxh3 of its bytes", lambda i: f"{stored[i]:016x}")
    counts = np.diff(rows.doc_offsets)
    refuse(counts < 1, "a row names no document", "at least 1", lambda i: counts[i])
    owner = np.repeat(np.arange(len(rows)), counts)
    starts = rows.doc_starts
    is_first = np.zeros(len(starts), bool)
    is_first[rows.doc_offsets[:-1]] = True
    falls = np.append(False, np.diff(starts) <= 0) & ~is_first
    wrong = falls | (is_first & (starts != 0)) | (starts < 0) | (starts >= ids.shape[1])
    refuse(np.bincount(owner[wrong], minlength=len(rows)) > 0, "doc_starts is not 0 and rising", "0 < ... < row length",
           lambda i: starts[rows.doc_offsets[i] : rows.doc_offsets[i + 1]].tolist()[:8])  # fmt: skip
    foreign = (rows.doc_rows < 0) | (rows.doc_rows >= num_source_rows)
    refuse(np.bincount(owner[foreign], minlength=len(rows)) > 0, "doc_rows names no row of the source",
           f"0 to {num_source_rows - 1}", lambda i: rows.doc_rows[rows.doc_offsets[i]])  # fmt: skip


def _sample(folder: Path, manifest: Manifest, tokenizer: PinnedTokenizer) -> str:
    from databuild.recheck import check_rows, sampled

    wanted = sampled(manifest.rows.rows)
    first, documents, tokens = 0, 0, 0
    for _, rows, _ in read_groups(row_paths(folder, manifest), manifest.rows.row_tokens):
        chosen = [i - first for i in wanted if first <= i < first + len(rows)]
        noted = manifest.counts.noted
        more_documents, more_tokens = check_rows(rows, chosen, first, manifest.spec, tokenizer, noted)
        documents, tokens, first = documents + more_documents, tokens + more_tokens, first + len(rows)
    return f"{tokens:,} tokens of {documents:,} conversations in {len(wanted)} rows encode to the same ids and mask"


def _rebuild(folder: Path, manifest: Manifest, request: SourceRequest, workers: int, say: Say) -> str:
    from databuild.build import build
    from databuild.config import RunOptions

    options = {k: v for k, v in manifest.spec.items() if k not in ("tokenizer_sha256", "sources")}

    def open_same(spool: Path, say: Say) -> Source:
        source = request.open(spool, say)
        if source.record != manifest.sources[0]:
            source.close()
            raise damaged(
                "the source is another one than that of the build",
                str(folder),
                _files_of(manifest.sources[0]),
                _files_of(source.record),
            )
        return source

    with temporary_folder("databuild-verify-") as scratch:
        say(f"level 4: building again in {scratch}")
        run = RunOptions(out=scratch / "again", workers=workers, quiet=True)
        again = build(open_same, options, run, name=lambda _: manifest.name).manifest
        _compare(folder, manifest, run.out, again)
    same_files = again.files == manifest.files
    if not same_files and _made_here(folder):
        raise damaged(
            "a row file has the right rows in other bytes than this environment writes",
            next(a.name for a, b in zip(manifest.files, again.files, strict=True) if a != b),
            f"sha256 {', '.join(file.sha256 for file in again.files[:3])}",
            f"sha256 {', '.join(file.sha256 for file in manifest.files[:3])}",
        )
    return "built again from the source: every row, count and digest is equal" + (
        "" if same_files else " (the parquet files differ: another writer version)"
    )


def _made_here(folder: Path) -> bool:
    """Whether environment.json names the platform and the versions of this process. It has no digest: a hint, no proof."""
    try:
        theirs = json.loads((folder / ENVIRONMENT).read_bytes()[: 1 << 16])
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(theirs, dict) and all(theirs.get(key) == value for key, value in versions().items())


def _files_of(source: SourceRecord) -> str:
    files = "; ".join(f"{file.name} sha256 {file.sha256}" for file in source.files[:3])
    return f"{source.rows:,} rows of {source.name or source.kind}: {files}"


def _compare(folder: Path, manifest: Manifest, again_folder: Path, again: Manifest) -> None:
    if again.rows.rows_sha256 != manifest.rows.rows_sha256 or again.rows.docs_sha256 != manifest.rows.docs_sha256:
        raise damaged(
            "the rows are not what the source gives",
            _first_difference(folder, manifest, again_folder, again),
            f"rows_sha256 {again.rows.rows_sha256}, docs_sha256 {again.rows.docs_sha256}",
            f"rows_sha256 {manifest.rows.rows_sha256}, docs_sha256 {manifest.rows.docs_sha256}",
        )
    for name, expected, found in (
        ("spec", again.spec, manifest.spec),
        ("counts", again.counts, manifest.counts),
        ("rows", again.rows, manifest.rows),
        ("tokenizer", again.tokenizer, manifest.tokenizer),
    ):
        if expected != found:
            raise damaged(f"{name} of the manifest is not what the source gives", MANIFEST, str(expected), str(found))


def _first_difference(folder: Path, manifest: Manifest, again_folder: Path, again: Manifest) -> str:
    mine = read_groups(row_paths(folder, manifest), manifest.rows.row_tokens)
    theirs = read_groups(row_paths(again_folder, again), again.rows.row_tokens)
    first = 0
    for (_, a, _), (_, b, _) in zip(mine, theirs, strict=False):
        num = min(len(a), len(b))
        differs = (a.input_ids[:num] != b.input_ids[:num]) | (a.loss_mask[:num] != b.loss_mask[:num])
        for i in range(num):
            row, other = select(a, i, i + 1), select(b, i, i + 1)
            if differs[i].any():
                token = int(np.flatnonzero(differs[i])[0])
                document = int(np.searchsorted(row.doc_starts, token, side="right")) - 1
                return f"row {first + i}, token {token}, source row {row.doc_rows[document]}"
            if not (np.array_equal(row.doc_starts, other.doc_starts) and np.array_equal(row.doc_rows, other.doc_rows)):
                return f"row {first + i}, its doc_starts or doc_rows"
        first += num
    return f"row {first}, where one of the two ends"
