"""`databuild export`: whole or not there, never of an unproven build; and `databuild verify` of what it wrote."""

import gzip
import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from support import build_files, records, tree, write_jsonl

from databuild.export.make import CONSUMERS, options_of
from databuild.export.run import export
from manifests.canonical import canonical_json
from manifests.export import ExportManifest, read_export
from manifests.model import ManifestError


@pytest.mark.parametrize("to", CONSUMERS)
def test_the_manifest_names_its_parent_and_every_file(to, build, exports):
    folder, manifest = exports[to].out, exports[to].manifest
    raw = json.loads((folder / "export.json").read_bytes())
    assert read_export((folder / "export.json").read_bytes()) == manifest
    assert raw["schema"] == "databuild/export/v1" and raw["consumer"] == to
    assert raw["parent"] == {
        "name": "test", "manifest_sha256": build.manifest.manifest_sha256,
        "rows_sha256": build.manifest.rows.rows_sha256, "docs_sha256": build.manifest.rows.docs_sha256,
    }  # fmt: skip
    rows = build.manifest.rows
    assert (raw["rows"], raw["row_tokens"], raw["num_targets"]) == (rows.rows, 64, rows.num_targets)
    assert {file["name"] for file in raw["files"]} | {"export.json"} == {path.name for path in folder.iterdir()}


def test_the_files_have_the_names_that_consumers_are_told():
    names = {
        "miles": ["rows.miles.parquet", "rows.parquet"],
        "bridge": ["metadata.json", "training_8192.idx.parquet"],
        "megatron": ["rows_ids.bin", "rows_ids.idx", "rows_mask.bin", "rows_mask.idx"],
        "hf": ["README.md", "rows.hf.parquet"],
        "olmo": ["labels_mask_part_0000.npy", "token_ids_part_0000.csv.gz", "token_ids_part_0000.npy"],
        "automodel": ["rows.automodel.parquet"],
        "torchtitan": ["rows.torchtitan.parquet"],
    }
    from databuild.export.common import Plan

    for to, consumer in CONSUMERS.items():
        fields = {"name": "x", "rows": 6400, "row_tokens": 8192, "rows_sha256": "", "options": options_of(to, {})}
        assert sorted(consumer.files(Plan(folder=None, **fields))) == names[to]


def test_pairs_sha256_is_three_lines_of_numpy(build, exports):
    import hashlib

    rows = pq.read_table(build.out / "rows.parquet")
    ids = np.array(rows["input_ids"].to_pylist(), "<i4")
    labels = np.where(np.array(rows["loss_mask"].to_pylist())[:, 1:] == 1, ids[:, 1:], -100)
    both = np.concatenate([ids, labels, np.full((len(ids), 1), -100)], axis=1).astype("<i4")
    assert {e.manifest.pairs_sha256 for e in exports.values()} == {hashlib.sha256(both.tobytes()).hexdigest()}


@pytest.mark.parametrize("to", CONSUMERS)
def test_two_exports_are_equal_to_the_byte(to, build, exports, tmp_path):
    again = export(build.out, to, options_of(to, {}), tmp_path / "again")
    assert tree(again.out) == tree(exports[to].out)


def test_content_does_not_depend_on_how_parquet_is_written(build, exports, tmp_path, monkeypatch):
    from databuild.export import columns

    original = columns.pq.ParquetWriter

    def other(*args, **kwargs):
        return original(
            *args, **(kwargs | {"compression": "snappy", "compression_level": None, "use_dictionary": True})
        )

    monkeypatch.setattr(columns.pq, "ParquetWriter", other)
    for to in ("bridge", "hf", "automodel", "torchtitan"):
        there, again = exports[to].manifest, export(build.out, to, options_of(to, {}), tmp_path / to).manifest
        assert again.files != there.files
        assert (again.content_sha256, again.pairs_sha256) == (there.content_sha256, there.pairs_sha256)


def test_the_bounds_of_olmo_are_gzip_without_time_or_name(exports):
    data = (exports["olmo"].out / "token_ids_part_0000.csv.gz").read_bytes()
    assert data[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
    lines = gzip.decompress(data).decode().splitlines()
    assert lines == [f"{64 * row},{64 * row + 64}" for row in range(exports["olmo"].manifest.rows)]


def test_bounds_longer_than_a_block_of_deflate(tmp_path):
    from databuild.export.olmo import _StoredGzip

    text = b"".join(b"%d,%d\n" % (i, i + 1) for i in range(40_000))
    with open(tmp_path / "x", "wb") as file:
        packed = _StoredGzip(file)
        for line in text.splitlines(keepends=True):
            packed.write(line)
        packed.finish()
    assert gzip.decompress((tmp_path / "x").read_bytes()) == text


@pytest.mark.parametrize("to", ["hf", "automodel", "torchtitan", "bridge", "miles"])
def test_datasets_loads_every_parquet_file(to, exports, tmp_path):
    import datasets

    folder = exports[to].out
    for path in sorted(folder.glob("*.parquet")):
        loaded = datasets.load_dataset("parquet", data_files=str(path), split="train", cache_dir=str(tmp_path))
        assert len(loaded) == exports[to].manifest.rows
        assert loaded[3] == pq.read_table(path).slice(3, 1).to_pylist()[0]
    if to == "hf":
        assert len(datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path))) == len(loaded)


def test_an_export_that_is_there_is_said_and_kept(cli, build, tmp_path):
    first = cli("export", build.out, "--to", "hf", "--out", tmp_path / "out", "--json").json
    assert not first["existing"] and first["consumer"] == "hf"
    before = tree(tmp_path)
    again = cli("export", build.out, "--to", "hf", "--out", tmp_path / "out", "--json")
    assert (again.code, again.json["existing"]) == (0, True)
    assert "already" in cli("export", build.out, "--to", "hf", "--out", tmp_path / "out").out
    assert tree(tmp_path) == before


def test_the_default_place_is_its_name(cli, build, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("export", build.out, "--to", "bridge", "--quiet").code == 0
    assert cli("export", build.out, "--to", "bridge", "--segments", "documents").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test-bridge", "test-bridge-documents"]
    names = {path.name for path in (tmp_path / "test-bridge-documents").iterdir()}
    assert names == {"export.json", "metadata.json", "training_64_documents.idx.parquet"}


def test_another_export_is_replaced_only_when_told(cli, build, tmp_path):
    cli("export", build.out, "--to", "hf", "--out", tmp_path / "out")
    before = tree(tmp_path)
    block = cli("export", build.out, "--to", "olmo", "--out", tmp_path / "out").error(5, "output")
    assert "consumer olmo" in block["expected"] and "consumer hf" in block["found"]
    assert tree(tmp_path) == before
    assert cli("export", build.out, "--to", "olmo", "--out", tmp_path / "out", "--overwrite").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert json.loads((tmp_path / "out" / "export.json").read_bytes())["consumer"] == "olmo"


@pytest.mark.parametrize("name", ["note.txt", "manifest.json"])
def test_anything_else_is_never_replaced(cli, build, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    before = tree(tmp_path)
    for more in ((), ("--overwrite",)):
        cli("export", build.out, "--to", "hf", "--out", tmp_path / "out", *more).error(5, "output")
    assert tree(tmp_path) == before


def test_what_a_killed_build_left_is_not_taken_over(cli, build, tmp_path):
    """Its row files have a name that an export for miles has, too, and its journal would be published with them."""
    partial = tmp_path / "out.partial"
    (partial / "journal").mkdir(parents=True)
    (partial / "rows.parquet").write_bytes(b"PAR1")
    ran = cli("export", build.out, "--to", "miles", "--out", tmp_path / "out", "--quiet")
    assert ran.code == 5 and "journal" in ran.err
    assert (partial / "journal").is_dir() and not (tmp_path / "out").exists()


def test_an_export_is_not_written_into_its_build(cli, build):
    before = tree(build.out)
    cli("export", build.out, "--to", "hf", "--out", build.out / "hf").error(5, "output")
    cli("export", build.out, "--to", "hf", "--out", build.out, "--overwrite").error(5, "output")
    assert tree(build.out) == before


def test_options_of_another_consumer_are_refused(cli, build, tmp_path):
    block = cli("export", build.out, "--to", "hf", "--segments", "rows", "--out", tmp_path / "out").error(2, "usage")
    assert block["expected"] == "--to bridge"
    assert cli("export", build.out, "--to", "trl").code == 2
    cli("export", tmp_path, "--to", "hf").error(3, "source")


@pytest.mark.parametrize("to", CONSUMERS)
def test_a_damaged_build_is_never_exported(to, build, tmp_path, cli):
    damaged = tmp_path / "rows"
    shutil.copytree(build.out, damaged)
    data = bytearray((damaged / "rows.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (damaged / "rows.parquet").write_bytes(data)
    cli("export", damaged, "--to", to, "--out", tmp_path / "out").error(6, "integrity")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


def test_rows_that_are_not_those_of_their_digest_are_never_exported(build, tmp_path, cli):
    """The file has the digest that its manifest says; the rows in it have not."""
    from databuild.rows import RowWriter, read_groups
    from databuild.sources.spooled import sha256_file
    from manifests.model import Manifest

    (tmp_path / "rows").mkdir()
    writer = RowWriter(tmp_path / "rows")
    for _, rows, _ in read_groups([build.out / "rows.parquet"], 64):
        ids = rows.input_ids.copy()
        ids[-1, 5] ^= 1
        writer.add(type(rows)(**{f: getattr(rows, f) for f in rows.__slots__} | {"input_ids": ids}))
    ((path, num),) = writer.finish()
    fields = {
        key: getattr(build.manifest, key)
        for key in ("name", "spec", "spec_sha256", "sources", "tokenizer", "counts", "rows")
    }
    file = {"name": path.name, "rows": num, "bytes": path.stat().st_size, "sha256": sha256_file(path)}
    (tmp_path / "rows" / "manifest.json").write_bytes(Manifest.make(**fields, files=[file]).to_bytes())
    for to in CONSUMERS:
        block = cli("export", tmp_path / "rows", "--to", to, "--out", tmp_path / "out").error(6, "integrity")
        assert "rows_sha256" in block["what"]
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


@pytest.mark.parametrize("to", CONSUMERS)
def test_verify_proves_an_export(to, build, exports, cli):
    folder = exports[to].out
    for level in (1, 2):
        result = cli("verify", folder, "--level", level, "--json").json
        assert (result["consumer"], len(result["checked"])) == (to, level)
    assert len(cli("verify", folder, "--level", 4, "--source", build.out, "--json").json["checked"]) == 3
    cli("verify", folder, "--level", 4).error(2, "usage")
    cli("verify", folder, "--level", 3).error(2, "usage")
    cli("verify", folder, "--source", build.out).error(2, "usage")


@pytest.mark.parametrize("to", CONSUMERS)
def test_verify_names_every_damaged_file(to, exports, tmp_path, cli):
    for name in [file.name for file in exports[to].manifest.files]:
        folder = tmp_path / name.replace(".", "-")
        shutil.copytree(exports[to].out, folder)
        data = bytearray((folder / name).read_bytes())
        data[len(data) // 2] ^= 1
        (folder / name).unlink()
        (folder / name).write_bytes(data)
        assert cli("verify", folder, "--level", 1).error(6, "integrity")["where"] == name
        (folder / name).unlink()
        assert "missing" in cli("verify", folder).error(6, "integrity")["what"]
    (folder / name).write_bytes(data[:-1])
    assert "size" in cli("verify", folder).error(6, "integrity")["what"]
    (folder / "more.txt").write_text("")
    assert "more.txt" in cli("verify", folder).error(6, "integrity")["found"]


@pytest.mark.parametrize("to", [to for to in CONSUMERS if to != "miles"])
def test_level_2_does_not_believe_the_manifest(to, build, exports, tmp_path, cli):
    """A consistent forgery: other rows, with digests of files, pairs and content made to fit; rows_sha256 betrays it."""
    import dataclasses

    from databuild.export.common import Plan, read_back
    from databuild.rows import read_groups
    from databuild.sources.spooled import sha256_file
    from manifests.export import ExportFile

    def full(rows):
        mask = np.ones_like(rows.loss_mask)
        mask[:, 0] = 0
        return dataclasses.replace(rows, loss_mask=mask)

    there = exports[to].manifest
    plan = Plan(
        folder=tmp_path, name=there.name, rows=there.rows, row_tokens=64, rows_sha256=there.parent.rows_sha256,
        options=there.options,
    )  # fmt: skip
    groups = (full(rows) for _, rows, _ in read_groups([build.out / "rows.parquet"], 64))
    CONSUMERS[to].write(groups, plan)
    found = read_back(CONSUMERS[to], plan)
    files = [
        ExportFile(name=f.name, bytes=(tmp_path / f.name).stat().st_size, sha256=sha256_file(tmp_path / f.name))
        for f in there.files
    ]
    kept = {key: getattr(there, key) for key in ("name", "consumer", "options", "parent", "rows", "row_tokens")}
    forged = ExportManifest.make(
        **kept, num_targets=found.num_targets, pairs_sha256=found.pairs_sha256, content=found.arrays, files=files
    )
    (tmp_path / "export.json").write_bytes(forged.to_bytes())
    assert cli("verify", tmp_path, "--level", 1).code == 0
    assert "pairs are not those of the build" in cli("verify", tmp_path, "--level", 2).error(6, "integrity")["what"]


def test_verify_of_an_export_against_another_build_says_so(build, exports, tmp_path, cli):
    other = build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", records(40, seed=2))])
    block = cli("verify", exports["hf"].out, "--level", 4, "--source", other.out).error(6, "integrity")
    assert "another build" in block["what"]


def test_a_manifest_that_is_not_its_digest_is_refused(exports, tmp_path, cli):
    data = (exports["hf"].out / "export.json").read_bytes()
    raw = json.loads(data)
    for changed in (raw | {"num_targets": 1}, raw | {"more": 1}, raw | {"consumer": "trl"}):
        with pytest.raises(ManifestError):
            read_export(canonical_json(changed))
    with pytest.raises(ManifestError, match="canonical"):
        read_export(data + b"\n")
    shutil.copytree(exports["hf"].out, tmp_path / "out")
    (tmp_path / "out" / "export.json").write_bytes(canonical_json(raw | {"num_targets": 1}))
    assert "damaged" in cli("verify", tmp_path / "out").error(6, "integrity")["what"]


def test_a_file_system_without_links_gets_copies(build, exports, tmp_path, monkeypatch):
    def no_links(*args, **kwargs):
        raise OSError("no links here")

    monkeypatch.setattr("os.link", no_links)
    made = export(build.out, "miles", {}, tmp_path / "out")
    assert tree(made.out) == tree(exports["miles"].out)


def test_a_failure_while_writing_leaves_nothing(build, tmp_path, monkeypatch, cli):
    import errno

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("databuild.export.make.read_back", full)
    cli("export", build.out, "--to", "olmo", "--out", tmp_path / "out").error(5, "output")
    assert list(tmp_path.iterdir()) == []
