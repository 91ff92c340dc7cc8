"""`databuild verify`: every damage is found, at the level that promises it, and named."""

import functools
import json
import os
import shutil
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import build_files, records, tree, use_shared_tokenizer, write_jsonl

from databuild import build, rows
from databuild import verify as verifying
from databuild.errors import IntegrityError, SourceError
from databuild.inspect import as_json
from databuild.rows import SCHEMA, RowWriter, concat, read_groups, select
from databuild.sources.spooled import sha256_file
from databuild.verify import verify
from manifests.canonical import canonical_json, sha256_of
from manifests.model import read_manifest
from masks import deepseek_v4 as v4

pytestmark = pytest.mark.usefixtures("shared_tokenizer", "shared_order")

NO_CONVERSATIONS = [{"messages": []}, {"messages": [{"role": "user", "content": None}]}]


@pytest.fixture(autouse=True)
def no_sync(monkeypatch):
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with source.jsonl and its build, rows."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        source = write_jsonl(folder / "source.jsonl", [*records(200), *NO_CONVERSATIONS])
        build_files(folder / "rows", [source])
    return folder


@pytest.fixture
def copy(made, tmp_path):
    """The build, to be damaged."""
    return shutil.copytree(made / "rows", tmp_path / "copy")


@pytest.fixture
def refused(made):
    """Checks that a build passes the levels below and is refused at this one, with words that say what and where."""

    def check(folder, level, *words):
        def run(at):
            return verify(folder, level=at, paths=[str(made / "source.jsonl")] if at == 4 else [])

        if level > 1:
            run(level - 1)
        with pytest.raises(IntegrityError) as caught:
            run(level)
        assert caught.value.exit_code == 6 and caught.value.next_step
        for word in words:
            assert word in str(caught.value), str(caught.value)

    return check


def test_a_whole_build_passes_every_level(made):
    said = []
    result = verify(made / "rows", level=4, paths=[str(made / "source.jsonl")], say=said.append)
    manifest = json.loads((made / "rows" / "manifest.json").read_bytes())
    assert result["rows_sha256"] == manifest["rows"]["rows_sha256"] and result["rows"] == manifest["rows"]["rows"] > 128
    assert len(result["checked"]) == 4 and [line[:8] for line in said[:3]] == ["level 1:", "level 2:", "level 3:"]


# Level 1: files


def regions(path):
    """A byte of the middle of everything that a parquet file holds."""
    size = path.stat().st_size
    metadata = pq.read_metadata(path)
    footer = size - 8 - metadata.serialized_size
    places = {
        "magic": 1,
        "footer": footer + 100,
        "footer's end": size - 9,
        "footer's length": size - 7,
        "end": size - 1,
    }
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            places[f"{chunk.path_in_schema} {group}"] = start + chunk.total_compressed_size // 2
    return places


def test_a_flipped_bit_anywhere_in_the_rows_is_found(copy, refused):
    path = copy / "rows.parquet"
    whole = path.read_bytes()
    places = regions(path)
    assert len(places) == 5 + 2 * 7
    for place in places.values():
        data = bytearray(whole)
        data[place] ^= 0x10
        path.write_bytes(data)
        refused(copy, 1, "another digest", "rows.parquet")


def test_a_flipped_bit_in_the_manifest_is_found(copy, refused):
    path = copy / "manifest.json"
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        data = bytearray(whole)
        data[place] ^= 0x01
        path.write_bytes(data)
        refused(copy, 1, "the manifest is damaged", "manifest.json")


def resized(change):
    return lambda copy: (copy / "rows.parquet").write_bytes(change((copy / "rows.parquet").read_bytes()))


def moved(old, new):
    return lambda copy: os.rename(copy / old, copy / new)


def linked(name):
    def link(copy):
        os.rename(copy / name, copy.parent / name)
        (copy / name).symlink_to(copy.parent / name)

    return link


def a_folder_for_rows(copy):
    (copy / "rows.parquet").unlink()
    (copy / "rows.parquet").mkdir()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (resized(lambda data: data[:-1]), ["another size", "rows.parquet"]),
        (resized(lambda data: b""), ["another size", "found:    0 bytes"]),
        (resized(lambda data: data + b"\0"), ["another size", "rows.parquet"]),
        (moved("rows.parquet", "rows-00000-of-00001.parquet"), ["missing", "rows.parquet"]),
        (lambda copy: (copy / "rows.parquet").unlink(), ["missing", "rows.parquet"]),
        (a_folder_for_rows, ["missing", "rows.parquet"]),
        (linked("rows.parquet"), ["missing", "rows.parquet"]),
        (lambda copy: (copy / "more.parquet").write_bytes(b""), ["does not know", "more.parquet"]),
        (lambda copy: (copy / ".hidden").write_bytes(b""), ["does not know", ".hidden"]),
        (lambda copy: (copy / "holder.json").write_bytes(b""), ["does not know", "holder.json"]),
        (lambda copy: (copy / "folder").mkdir(), ["does not know", "folder"]),
    ],
)
def test_files_that_are_not_what_they_should_be(copy, refused, damage, words):
    damage(copy)
    refused(copy, 1, *words)


def test_rows_of_another_build(made, copy, refused, tmp_path):
    build_files(tmp_path / "other", [made / "source.jsonl"], seed=7)
    shutil.copy(tmp_path / "other" / "rows.parquet", copy / "rows.parquet")
    refused(copy, 1, "rows.parquet")
    shutil.copy(tmp_path / "other" / "manifest.json", copy / "manifest.json")
    verify(copy)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (shutil.rmtree, "no such directory"),
        (lambda copy: (copy / "manifest.json").unlink(), "a directory without it"),
        (linked("manifest.json"), "a directory without it"),
    ],
)
def test_what_is_no_build(copy, damage, found):
    damage(copy)
    with pytest.raises(SourceError, match="there is no build here") as caught:
        verify(copy)
    assert caught.value.found == found and caught.value.where == str(copy)


def test_an_unfinished_build_is_called_so(copy):
    shutil.rmtree(copy)
    os.mkdir(f"{copy}.partial")
    with pytest.raises(SourceError, match="unfinished"):
        verify(copy.with_name("copy.partial"))


def test_the_environment_may_change(made, copy):
    before = verify(made / "rows", level=3)
    (copy / "environment.json").write_bytes(b"\xff anything")
    assert verify(copy, level=3) == before
    (copy / "environment.json").unlink()
    assert verify(copy, level=3) == before


# The manifest edited, with every digest of it computed again


def edit_manifest(folder, change):
    path = folder / "manifest.json"
    raw = json.loads(path.read_bytes())
    change(raw)
    del raw["manifest_sha256"]
    raw["spec_sha256"] = sha256_of(raw["spec"])
    path.write_bytes(canonical_json(raw | {"manifest_sha256": sha256_of(raw)}))
    read_manifest(path.read_bytes())


def put(value, *keys):
    def change(raw):
        *folder, last = keys
        for key in folder:
            raw = raw[key]
        raw[last] = value(raw[last]) if callable(value) else value

    return change


def together(*changes):
    def change(raw):
        for one in changes:
            one(raw)

    return change


def one_more(*keys):
    return put(lambda number: number + 1, *keys)


def another_source(raw):
    source = raw["sources"][0]
    source["rows"] += 1
    source["identity_sha256"] = sha256_of({k: v for k, v in source.items() if k != "identity_sha256"})
    raw["spec"]["sources"] = [source["identity_sha256"]]


def more_targets(raw):
    raw["rows"]["num_targets"] += 1
    raw["rows"]["supervised_token_ratio"] = raw["rows"]["num_targets"] / (raw["rows"]["rows"] * 64)


NO_DIGEST = "0" * 64
CONTRADICTS = "the manifest contradicts itself"
NO_SPEC = "the spec is none that this version knows"


@pytest.mark.parametrize(
    ("level", "change", "words"),
    [
        (1, one_more("counts", "conversations"), [CONTRADICTS, "conversations = used + skipped"]),
        (1, one_more("counts", "used"), [CONTRADICTS]),
        (1, one_more("counts", "tokens"), [CONTRADICTS, "tokens"]),
        (1, one_more("counts", "tail_tokens"), [CONTRADICTS, "rows_cut * row_tokens + tail"]),
        (1, one_more("counts", "rows_without_targets"), [CONTRADICTS, "rows_cut - rows_without_targets"]),
        (1, one_more("counts", "by_source", "s0", "skipped"), [CONTRADICTS, "skipped by source"]),
        (1, one_more("rows", "rows"), [CONTRADICTS, "rows of the files"]),
        (1, one_more("files", 0, "rows"), [CONTRADICTS, "rows of the files"]),
        (1, one_more("files", 0, "bytes"), ["another size", "rows.parquet"]),
        (1, put(NO_DIGEST, "files", 0, "sha256"), ["another digest", "rows.parquet"]),
        (1, put("rows-00000-of-00001.parquet", "files", 0, "name"), ["not in order"]),
        (1, put(0.5, "rows", "supervised_token_ratio"), [CONTRADICTS, "supervised_token_ratio"]),
        (1, one_more("rows", "num_targets"), [CONTRADICTS, "supervised_token_ratio"]),
        (1, put(65, "spec", "row_tokens"), [CONTRADICTS, "row_tokens"]),
        (1, put(64.0, "spec", "row_tokens"), [NO_SPEC, "row_tokens"]),
        (1, put("42", "spec", "seed"), [NO_SPEC, "seed"]),
        (1, put(True, "spec", "seed"), [NO_SPEC, "seed"]),
        (1, put("packed", "spec", "kind"), [NO_SPEC, "kind"]),
        (1, lambda raw: raw["spec"].update(more=1), [NO_SPEC, "more"]),
        (1, lambda raw: raw["spec"].pop("seed"), [NO_SPEC, "seed"]),
        (1, lambda raw: raw["spec"].pop("history"), ["leaves out"]),
        (1, lambda raw: raw["spec"].clear(), [NO_SPEC]),
        (1, put([NO_DIGEST], "spec", "sources"), [CONTRADICTS, "sources"]),
        (1, one_more("sources", 0, "rows"), ["the identity of a source is not its digest"]),
        (1, put(NO_DIGEST, "sources", 0, "files", 0, "sha256"), ["the identity of a source is not its digest"]),
        (1, put(NO_DIGEST, "spec", "tokenizer_sha256"), [CONTRADICTS, "tokenizer"]),
        (
            2,
            together(put(NO_DIGEST, "spec", "tokenizer_sha256"), put(NO_DIGEST, "tokenizer", "tokenizer_json_sha256")),
            ["another tokenizer", NO_DIGEST, "8f9f37ca"],
        ),
        (2, put("1" * 40, "tokenizer", "revision"), ["another tokenizer", "1" * 40]),
        (2, more_targets, ["num_targets is not what the manifest says"]),
        (2, put(NO_DIGEST, "rows", "rows_sha256"), ["rows_sha256 is not", NO_DIGEST]),
        (2, put(NO_DIGEST, "rows", "docs_sha256"), ["docs_sha256 is not", NO_DIGEST]),
        (3, put(2, "spec", "loss_mask_version"), ["mask type", "deepseek_v4 version 2"]),
        (3, put("all", "spec", "loss_mask_type"), ["mask type", "all version 1"]),
        (4, put(43, "spec", "seed"), ["the rows are not what the source gives", "row 0, token"]),
        (4, put("none", "spec", "separator"), ["the rows are not what the source gives", "row "]),
        (4, put(7, "spec", "rows"), ["the rows are not what the source gives", "row 7, where one"]),
        (4, another_source, ["the source is another one", "202 rows", "203 rows"]),
        (4, one_more("counts", "noted", "headerless_assistant"), ["counts of the manifest"]),
        (4, put({}, "counts", "noted"), ["counts of the manifest"]),
        (4, put({"content_null": 2}, "counts", "skipped"), ["counts of the manifest"]),
        (
            4,
            together(*map(one_more, ["counts"] * 2, ["conversations", "used"]), one_more("counts", "by_source", "s0", "used")),
            ["counts of the manifest"],
        ),
        (4, one_more("counts", "by_source", "s0", "targets"), ["counts of the manifest"]),
    ],
)  # fmt: skip
def test_a_manifest_that_was_edited(copy, refused, level, change, words):
    edit_manifest(copy, change)
    refused(copy, level, *words)


# Rows edited, with every digest computed again


def read(folder):
    manifest = read_manifest((folder / "manifest.json").read_bytes())
    groups = read_groups([folder / file.name for file in manifest.files], manifest.rows.row_tokens)
    return concat([group for _, group, _ in groups])


def write(folder, kept):
    """Write rows as the builder does, and a manifest that agrees with them."""
    for path in folder.glob("rows*.parquet"):
        path.unlink()
    writer = RowWriter(folder)
    writer.add(kept)
    ((path, num_rows),) = writer.finish()

    def change(raw):
        counts, more = raw["counts"], num_rows - raw["rows"]["rows"]
        counts["rows_cut"] += more
        if more < 0:
            counts["tail_tokens"] -= more * 64
        else:
            counts["tokens"] += more * 64
            counts["by_source"]["s0"]["tokens"] += more * 64
        raw["rows"] |= {
            "rows": num_rows,
            "num_targets": writer.num_targets,
            "supervised_token_ratio": writer.num_targets / (num_rows * 64),
            "rows_sha256": writer.digests.rows_sha256,
            "docs_sha256": writer.digests.docs_sha256,
        }
        raw["files"] = [
            {"name": path.name, "rows": num_rows, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
        ]

    edit_manifest(folder, change)


def spans(kept, row):
    """(begin, end) of each run of text of a row between two special tokens, the cut-off ones left out."""
    special = np.flatnonzero((kept.input_ids[row] < 3) | (kept.input_ids[row] >= 128_000))
    return [(a + 1, b) for a, b in pairwise(special.tolist()) if b > a + 1]


def find(kept, row, before, after=None):
    """The first run of a row that stands between these tokens."""
    ids = kept.input_ids[row]
    for begin, end in spans(kept, row):
        if ids[begin - 1] == before and after in (None, ids[end]):
            return begin, end
    raise AssertionError("no such run in the row")


def row_with(kept, *ids):
    """A row, neither the first nor the last, whose inside has these special tokens one after another around runs."""
    for row in range(1, len(kept) - 1):
        try:
            find(kept, row, *ids)
        except AssertionError:
            continue
        return row
    raise AssertionError("no such row")


def flip_in_answer(kept):
    row = row_with(kept, v4.THINK_END, v4.EOS)
    begin, end = find(kept, row, v4.THINK_END, v4.EOS)
    kept.loss_mask[row, (begin + end) // 2] ^= 1
    return row, (begin + end) // 2


def flip_in_question(kept):
    row = row_with(kept, v4.USER, v4.ASSISTANT)
    begin, _ = find(kept, row, v4.USER, v4.ASSISTANT)
    kept.loss_mask[row, begin] ^= 1
    return row, begin


def flip_eos(kept):
    row = row_with(kept, v4.THINK_END, v4.EOS)
    _, end = find(kept, row, v4.THINK_END, v4.EOS)
    kept.loss_mask[row, end] ^= 1
    return row, end


def flip_header(token):
    def flip(kept):
        row, at = next((r, i) for r, i in np.argwhere(kept.input_ids == token).tolist() if r > 0 and i > 0)
        kept.loss_mask[row, at] ^= 1
        return row, at

    return flip


def answer_like_question(kept):
    """A whole answer untrained, its EOS too."""
    row = row_with(kept, v4.THINK_END, v4.EOS)
    begin, end = find(kept, row, v4.THINK_END, v4.EOS)
    kept.loss_mask[row, begin : end + 1] = 0
    return row, begin


def split_token(kept):
    """The same text in other tokens: what a wrong merge gives."""
    from streams import tokenizer

    vocabulary = tokenizer()._parsed["model"]["vocab"]
    text_of = {token: text for text, token in vocabulary.items()}
    for row in range(1, len(kept) - 1):
        for begin, end in spans(kept, row):
            for at in range(begin, end - 1):
                text = text_of[int(kept.input_ids[row, at])] + text_of[int(kept.input_ids[row, at + 1])]
                for cut in range(1, len(text)):
                    new = [vocabulary.get(text[:cut]), vocabulary.get(text[cut:])]
                    if None not in new and new != kept.input_ids[row, at : at + 2].tolist():
                        kept.input_ids[row, at : at + 2] = new
                        return row, f"s {begin} to {end - 1}"
    raise AssertionError("nothing to split")


@pytest.mark.parametrize(
    "edit",
    [
        flip_in_answer,
        flip_in_question,
        flip_eos,
        flip_header(v4.BOS),
        flip_header(v4.USER),
        flip_header(v4.ASSISTANT),
        flip_header(v4.THINK_END),
        answer_like_question,
        split_token,
    ],
)
def test_a_row_that_contradicts_itself_is_found_without_the_source(copy, refused, monkeypatch, edit):
    monkeypatch.setattr("databuild.recheck.MAX_SAMPLED_ROWS", 1000)  # the sample is all rows
    kept = read(copy)
    row, token = edit(kept)
    write(copy, kept)
    refused(copy, 3, f"row {row}, source row ", f"token{token}" if edit is split_token else f"token {token}")


def first_token(kept):
    """Of a run that the row's edge cuts: level 3 cannot know it."""
    row = next(r for r in range(1, len(kept)) if 3 < kept.input_ids[r, 0] < 128_000)
    kept.input_ids[row, 0] += 1
    return f"row {row}, token 0, source row {select(kept, row, row + 1).doc_rows[0]}"


def swapped_words(kept):
    """Two words of a sentence: each order is as good as the other."""
    row, at = next(
        (r, a + 1) for r in range(len(kept)) for a, b in spans(kept, r) if b - a > 4 and words(kept.input_ids[r, a:b])
    )
    kept.input_ids[row, [at, at + 1]] = kept.input_ids[row, [at + 1, at]]
    return f"row {row}, token {at}"


def words(ids):
    from streams import tokenizer

    first, second = (tokenizer().reference.decode([token]) for token in ids[1:3].tolist())
    return first != second and first.isascii() and second.isascii() and first[0] == second[0] == " "


def exchanged(kept):
    order = np.arange(len(kept))
    order[[2, 3]] = [3, 2]
    return concat([select(kept, i, i + 1) for i in order.tolist()]), "row 2, token "


def one_less(kept):
    return concat([select(kept, 0, 5), select(kept, 6, len(kept))]), "row 5, token "


def last_one_less(kept):
    return select(kept, 0, len(kept) - 1), f"row {len(kept) - 1}, where one of the two ends"


def once_more(kept):
    return concat([kept, select(kept, 0, 1)]), f"row {len(kept)}, where one of the two ends"


def another_document(kept):
    kept.doc_rows[-1] = (kept.doc_rows[-1] + 1) % 200
    return kept, f"row {len(kept) - 1}, its doc_starts or doc_rows"


def another_start(kept):
    at = next(i for i in range(1, len(kept.doc_starts)) if 1 < kept.doc_starts[i] < 63)
    row = int(np.searchsorted(kept.doc_offsets, at, side="right")) - 1
    kept.doc_starts[at] -= 1
    return kept, f"row {row}, its doc_starts or doc_rows"


@pytest.mark.parametrize(
    "edit", [swapped_words, exchanged, one_less, last_one_less, once_more, another_document, another_start, first_token]
)
def test_rows_that_are_not_what_the_source_gives(made, copy, edit):
    kept = read(copy)
    where = edit(kept)
    kept, where = where if isinstance(where, tuple) else (kept, where)
    write(copy, kept)
    verify(copy, level=2)
    with pytest.raises(
        IntegrityError, match=r"the rows are not what the source gives|stored tokens|does not begin as it should"
    ) as caught:
        verify(copy, level=4, paths=[str(made / "source.jsonl")])
    assert where.split(",")[0] in caught.value.where
    if "rows are not" in caught.value.what:
        assert caught.value.where.startswith(where)


# Row files that no builder writes


def write_table(folder, table, *, row_group_size=128):
    path = folder / "rows.parquet"
    pq.write_table(table, path, row_group_size=row_group_size)
    entry = {"name": path.name, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
    edit_manifest(folder, lambda raw: raw["files"][0].update(entry))


@pytest.mark.parametrize("size", [1, 64, 127, 129, 1000])
def test_row_groups_of_another_size(copy, refused, size):
    write_table(copy, pq.read_table(copy / "rows.parquet"), row_group_size=size)
    refused(copy, 2, "a row group has another size", "rows.parquet, row group 0", "expected: 128 rows")


def reordered(table):
    return table.select(["row", "loss_mask", "input_ids", *table.column_names[3:]])


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.append_column("more", pa.array(range(len(table)))),
        lambda table: table.drop_columns(["xxh3"]),
        lambda table: table.rename_columns([*table.column_names[:2], "labels", *table.column_names[3:]]),
        lambda table: table.set_column(0, "row", table.column("row").cast(pa.int32())),
        lambda table: pa.table(dict(zip(table.column_names, table.columns, strict=True))),  # all may be null
        reordered,
    ],
)
def test_other_columns(copy, refused, change):
    write_table(copy, change(pq.read_table(copy / "rows.parquet")))
    refused(copy, 2, "other columns than a row file", "rows.parquet")


def test_a_row_file_that_is_no_parquet(copy, refused):
    (copy / "rows.parquet").write_bytes(b"PAR1 no PAR1")
    entry = {"bytes": 12, "sha256": sha256_file(copy / "rows.parquet")}
    edit_manifest(copy, lambda raw: raw["files"][0].update(entry))
    refused(copy, 2, "a row file cannot be read", "rows.parquet")


def test_other_pages_hold_the_same_rows(copy):
    """The rows are what counts: another writer's bytes, with the manifest's digest of them, are the same build."""
    path = copy / "rows.parquet"
    table = pq.read_table(path)
    pq.write_table(table, path, row_group_size=128, compression="snappy")
    entry = {"bytes": path.stat().st_size, "sha256": sha256_file(path)}
    edit_manifest(copy, lambda raw: raw["files"][0].update(entry))
    verify(copy, level=3)


def row_edit(**changes):
    def change(row):
        for key, value in changes.items():
            row[key] = value(row[key]) if callable(value) else value

    return change


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (row_edit(row=lambda n: n + 1), "a row is out of place"),
        (row_edit(input_ids=lambda ids: [*ids[:-1], 129_280]), "a token id is out of range"),
        (row_edit(input_ids=lambda ids: [*ids[:-1], -1]), "a token id is out of range"),
        (row_edit(input_ids=lambda ids: ids[:-1]), "input_ids of a row has another length"),
        (row_edit(loss_mask=lambda mask: [*mask, 0]), "loss_mask of a row has another length"),
        (row_edit(input_ids=[], loss_mask=[]), "input_ids of a row has another length"),
        (row_edit(loss_mask=lambda mask: [*mask[:-1], 2]), "loss_mask is neither 0 nor 1"),
        (row_edit(loss_mask=lambda mask: [1, *mask[1:]]), "loss_mask[0] is not 0"),
        (row_edit(num_targets=lambda n: n - 1), "num_targets is not the sum of loss_mask"),
        (row_edit(loss_mask=[0] * 64, num_targets=0), "a row has nothing to train"),
        (row_edit(xxh3=lambda n: n ^ 1), "its xxh3 differs"),
        (row_edit(input_ids=lambda ids: [*ids[:-1], ids[-1] ^ 1]), "its xxh3 differs"),
        (row_edit(doc_starts=[], doc_rows=[]), "a row names no document"),
        (row_edit(doc_starts=lambda starts: [*starts, 64], doc_rows=lambda r: [*r, 1]), "doc_starts is not 0 and rising"),
        (row_edit(doc_starts=[0, 5, 5], doc_rows=[1, 2, 3]), "doc_starts is not 0 and rising"),
        (row_edit(doc_starts=[1], doc_rows=[1]), "doc_starts is not 0 and rising"),
        (row_edit(doc_starts=[0, -1], doc_rows=[1, 2]), "doc_starts is not 0 and rising"),
        (row_edit(doc_rows=lambda r: [*r, 1]), "differ in length"),
        (row_edit(doc_rows=lambda r: [202, *r[1:]]), "doc_rows names no row of the source"),
        (row_edit(doc_rows=lambda r: [-1, *r[1:]]), "doc_rows names no row of the source"),
    ],
)  # fmt: skip
def test_a_row_that_breaks_a_rule_is_named(copy, refused, change, what):
    table = pq.read_table(copy / "rows.parquet").to_pylist()
    change(table[130])
    write_table(copy, pa.Table.from_pylist(table, schema=SCHEMA))
    refused(copy, 2, what, "rows.parquet, row group 1" if "differ in length" in what else "row 13")


def test_rows_that_are_missing_in_the_file(copy, refused):
    write_table(copy, pq.read_table(copy / "rows.parquet").slice(0, 128))
    refused(copy, 2, "rows.parquet", "128")


# Level 4 and its source


def test_a_changed_source_is_called_another_one(made, copy, tmp_path):
    lines = (made / "source.jsonl").read_bytes()
    other = tmp_path / "source.jsonl"
    for changed in (lines.replace(b"alpha", b"alphA", 1), lines[: lines.rindex(b"\n", 0, -1) + 1], lines + lines):
        other.write_bytes(changed)
        with pytest.raises(IntegrityError, match="the source is another one than that of the build"):
            verify(copy, level=4, paths=[str(other)])


def test_a_source_of_another_name_is_another_one(made, copy, tmp_path):
    shutil.copy(made / "source.jsonl", tmp_path / "renamed.jsonl")
    with pytest.raises(IntegrityError, match=r"renamed\.jsonl"):
        verify(copy, level=4, paths=[str(tmp_path / "renamed.jsonl")])


def test_level_4_needs_the_files_of_a_path_build(cli, copy):
    block = cli("verify", copy, "--level", "4").error(2, "usage")
    assert "--source" in block["next"] and block["expected"] == "source.jsonl"
    assert cli("verify", copy, "--level", "4", "--source", "/nonexistent.jsonl").code == 3


def test_a_source_that_would_not_be_looked_at_is_refused(cli, copy):
    assert "--source is for --level 4" in cli("verify", copy, "--source", "x.jsonl").error(2, "usage")["what"]


def test_level_4_leaves_nothing_behind(made, copy, tmp_path, monkeypatch):
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    before = tree(copy)
    verify(copy, level=4, paths=[str(made / "source.jsonl")])
    edit_manifest(copy, put(43, "spec", "seed"))
    with pytest.raises(IntegrityError):
        verify(copy, level=4, paths=[str(made / "source.jsonl")])
    assert os.listdir(tmp_path / "scratch") == [] and tree(copy).keys() == before.keys()


def test_scratch_that_cannot_be_written(made, copy, cli, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    ran = cli("verify", copy, "--level", "4", "--source", made / "source.jsonl", "--quiet")
    assert ran.error(5, "output")["where"].startswith(str(tmp_path / "gone"))


@pytest.mark.parametrize(
    "options",
    [
        {"separator": "always"},
        {"separator": "none", "bos": "strip"},
        {"separator": "none", "bos": "first"},
        {"bos": "strip"},
        {"bos": "first", "rows": 20},
        {"row_tokens": 2},
        {"row_tokens": 5, "separator": "always", "bos": "strip"},
        {"row_tokens": 4096},
        {"include_sources": ["s0", "s2"], "exclude_sources": ["s2"]},
        {"rows": 129},
    ],
    ids=str,
)
def test_no_whole_build_is_refused(made, tmp_path, monkeypatch, options):
    monkeypatch.setattr("databuild.recheck.MAX_SAMPLED_ROWS", 250)
    build_files(tmp_path / "rows", [made / "source.jsonl"], **options)
    verify(tmp_path / "rows", level=4, paths=[str(made / "source.jsonl")])


def test_a_question_an_instruction_and_an_answer_without_a_header_are_one_run(tmp_path):
    turns = [("user", "a question about it"), ("system", "an instruction"), ("assistant", "an answer to that")]
    source = write_jsonl(tmp_path / "s.jsonl", [{"messages": [{"role": r, "content": c} for r, c in turns]}] * 3)
    build_files(tmp_path / "rows", [source], row_tokens=14)
    assert 0 < read_manifest((tmp_path / "rows" / "manifest.json").read_bytes()).rows.supervised_token_ratio < 1
    verify(tmp_path / "rows", level=4, paths=[str(source)])


# Many shards


@pytest.fixture
def shards(made, tmp_path, monkeypatch):
    """A build of three row files, the last one not full."""
    monkeypatch.setattr(build, "RowWriter", functools.partial(RowWriter, rows_per_shard=128))
    monkeypatch.setattr(verifying, "ROWS_PER_SHARD", 128)
    result = build_files(tmp_path / "rows", [made / "source.jsonl"], row_tokens=40)
    names = [f"rows-0000{i}-of-00003.parquet" for i in range(3)]
    assert [file.name for file in result.manifest.files] == names
    assert [file.rows for file in result.manifest.files][:2] == [128, 128]
    return tmp_path / "rows"


def test_many_shards_pass_every_level(made, shards, tmp_path, monkeypatch):
    result = verify(shards, level=4, paths=[str(made / "source.jsonl")])
    monkeypatch.undo()
    monkeypatch.setattr(rows, "ROWS_PER_SHARD", 65_536)
    use_shared_tokenizer(monkeypatch)
    one = build_files(tmp_path / "one", [made / "source.jsonl"], row_tokens=40)
    assert one.manifest.rows.rows_sha256 == result["rows_sha256"] and len(one.manifest.files) == 1
    with pytest.raises(IntegrityError, match="rows of the files"):
        verify(shards, level=1)  # where a shard is longer, these are no shards
    for row in (0, 127, 128, 255, 256, one.manifest.rows.rows - 1):
        with monkeypatch.context() as patch:
            patch.setattr(verifying, "ROWS_PER_SHARD", 128)
            in_shards = as_json(shards, row)
        assert in_shards == as_json(tmp_path / "one", row)


def exchange_shards(folder):
    names = [folder / f"rows-0000{i}-of-00003.parquet" for i in range(2)]
    os.rename(names[0], folder / "x")
    os.rename(names[1], names[0])
    os.rename(folder / "x", names[1])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (exchange_shards, ["rows-00000-of-00003.parquet"]),
        (lambda folder: (folder / "rows-00001-of-00003.parquet").unlink(), ["missing", "rows-00001-of-00003.parquet"]),
        (moved("rows-00002-of-00003.parquet", "rows-00003-of-00003.parquet"), ["missing", "rows-00002-of-00003"]),
    ],
)
def test_shards_that_are_not_what_they_should_be(shards, refused, damage, words):
    damage(shards)
    refused(shards, 1, *words)


def test_exchanged_shards_whose_digests_were_exchanged_too(shards, refused):
    exchange_shards(shards)

    def change(raw):
        first, second = raw["files"][:2]
        for key in ("bytes", "sha256"):
            first[key], second[key] = second[key], first[key]

    edit_manifest(shards, change)
    refused(shards, 2, "a row is out of place", "row 0 ", "found:    128")
