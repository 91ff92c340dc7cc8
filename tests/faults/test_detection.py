"""One changed byte anywhere in a build is found; with every digest made to fit, by what the bytes mean."""

import json
import os
import shutil
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support import build_files, records, use_shared_tokenizer, write_jsonl

from databuild.errors import DatabuildError, IntegrityError
from databuild.locate import place_of_damage
from databuild.rows import SCHEMA
from databuild.verify import load_manifest, verify
from manifests.canonical import canonical_json, sha256_of
from manifests.model import read_manifest

pytestmark = pytest.mark.usefixtures("shared_tokenizer", "shared_order")


#: Every byte under `python -m tests.faults`, every fifth in a plain test run.
STEP = 1 if os.environ.get("DATABUILD_EVERY_BYTE") else 5


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """source.jsonl, its build `rows`, and a tiny one, `tiny`, whose bytes can be tried one by one."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        patch.setattr("os.fsync", lambda _: None)
        source = write_jsonl(folder / "source.jsonl", records(120))
        build_files(folder / "rows", [source])
        build_files(folder / "tiny", [source], row_tokens=16, rows=3)
        build_files(folder / "again", [source], row_tokens=16, rows=3)
    return folder


@pytest.fixture(scope="module")
def damaged_copy(made, tmp_path_factory):
    """damaged(build, file, place, bits) gives a copy of a build with one byte changed; the same folder each time."""
    place_of = {name: shutil.copytree(made / name, tmp_path_factory.mktemp("copy") / name) for name in ("rows", "tiny")}

    def damaged(build, name, place, bits):
        for file in ("rows.parquet", "manifest.json"):
            shutil.copyfile(made / build / file, place_of[build] / file)
        data = bytearray((made / build / name).read_bytes())
        data[place % len(data)] ^= bits
        (place_of[build] / name).write_bytes(data)
        return place_of[build]

    return damaged


@settings(max_examples=150, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["rows.parquet", "manifest.json"]), st.integers(0, 1 << 30), st.integers(1, 255))
def test_any_changed_byte_is_found_by_level_1(damaged_copy, name, place, bits):
    with pytest.raises(IntegrityError) as caught:
        verify(damaged_copy("rows", name, place, bits), level=1)
    assert caught.value.where.startswith(name)


def test_every_byte_of_a_tiny_build_is_found_by_level_1(made, damaged_copy):
    for name, check in (("rows.parquet", lambda folder: verify(folder, level=1)), ("manifest.json", load_manifest)):
        for place in range(0, (made / "tiny" / name).stat().st_size, STEP):
            with pytest.raises(IntegrityError):
                check(damaged_copy("tiny", name, place, 1 << place % 8))


def test_level_1_says_which_row_group_is_damaged(made, damaged_copy):
    metadata = pq.read_metadata(made / "rows" / "rows.parquet")
    assert metadata.num_row_groups > 1
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(1)
        folder = damaged_copy("rows", "rows.parquet", chunk.data_page_offset + chunk.total_compressed_size // 2, 1)
        with pytest.raises(IntegrityError) as caught:
            verify(folder, level=1)
        assert f"row group {group}" in caught.value.found and caught.value.expected.startswith("sha256 ")


@pytest.mark.parametrize(
    ("column", "rows"), [("input_ids", [70]), ("loss_mask", [70]), ("input_ids", [70, 71, 72]), ("num_targets", [])]
)
def test_level_1_says_which_row_and_which_conversations(made, damaged_copy, column, rows):
    folder = damaged_copy("rows", "rows.parquet", 0, 0)
    table = pq.read_table(folder / "rows.parquet").to_pylist()
    for row in rows or [3]:
        if column == "num_targets":
            table[row][column] += 1
        else:
            table[row][column][5] ^= 1
    pq.write_table(pa.Table.from_pylist(table, schema=SCHEMA), folder / "rows.parquet", row_group_size=128)
    where = place_of_damage(folder / "rows.parquet", 64)
    if rows:
        sources = ", ".join(map(str, table[rows[0]]["doc_rows"]))
        assert where.startswith(f"row {rows[0]} (source rows {sources})")
        assert ("2 more" in where) == (len(rows) == 3)
    else:
        assert "outside of ids and masks" in where


def sealed(folder, change=lambda raw: None):
    """Make every digest of the manifest fit."""
    from databuild.sources.spooled import sha256_file

    raw = json.loads((folder / "manifest.json").read_bytes())
    path = folder / "rows.parquet"
    raw["files"] = [{**raw["files"][0], "bytes": path.stat().st_size, "sha256": sha256_file(path)}]
    change(raw)
    raw.pop("manifest_sha256", None)
    for source in raw["sources"]:
        source["identity_sha256"] = sha256_of({k: v for k, v in source.items() if k != "identity_sha256"})
    raw["spec"]["sources"] = [source["identity_sha256"] for source in raw["sources"]]
    raw["spec_sha256"] = sha256_of(raw["spec"])
    (folder / "manifest.json").write_bytes(canonical_json(raw | {"manifest_sha256": sha256_of(raw)}))


@pytest.fixture
def built_once(made, monkeypatch):
    """Level 4 builds again each time; the same source and spec give the same build, so here one is enough."""
    spec = json.loads((made / "again" / "manifest.json").read_bytes())["spec"]

    def build(open_source, options, run, *, name):
        if options != {k: v for k, v in spec.items() if k not in ("tokenizer_sha256", "sources")}:
            return real(open_source, options, run, name=name)
        open_source(run.out.with_name("spool"), lambda _: None).close()
        shutil.copytree(made / "again", run.out)
        raw = json.loads((run.out / "manifest.json").read_bytes())
        raw.pop("manifest_sha256")
        raw["name"] = name(None)
        data = canonical_json(raw | {"manifest_sha256": sha256_of(raw)})
        return SimpleNamespace(manifest=read_manifest(data))

    from databuild import build as building

    real = building.build
    monkeypatch.setattr(building, "build", build)


def level_that_finds(folder, source):
    for level in (1, 2, 3, 4):
        try:
            verify(folder, level=level, paths=[str(source)] if level == 4 else [])
        except DatabuildError:
            return level
    return None


def test_every_byte_of_the_rows_is_found_when_all_digests_fit(made, damaged_copy, built_once):
    found = {2: 0, 3: 0, 4: 0}
    for place in range(0, (made / "tiny" / "rows.parquet").stat().st_size, STEP):
        folder = damaged_copy("tiny", "rows.parquet", place, 1 << place % 8)
        sealed(folder)
        level = level_that_finds(folder, made / "source.jsonl")
        assert level in found, f"byte {place}: level {level}"
        found[level] += 1
    assert (
        found[2] * STEP > 500 and found[4] * STEP > 100
    )  # what no reader sees, such as the writer's name, only another build shows


def test_every_value_of_the_manifest_is_found_when_all_digests_fit(made, damaged_copy, built_once):
    data = (made / "tiny" / "manifest.json").read_bytes()
    tried = 0
    for place in range(0, len(data), 5):
        changed = bytearray(data)
        changed[place] ^= 1
        try:
            raw = json.loads(changed)
        except ValueError:
            continue
        folder = damaged_copy("tiny", "rows.parquet", 0, 0)
        (folder / "manifest.json").write_bytes(canonical_json(raw))
        before = json.loads(data)
        try:
            sealed(folder)
            same = json.loads((folder / "manifest.json").read_bytes()) == before  # a digest that was made to fit again
        except (KeyError, TypeError):
            same = False
        if same or raw.get("name") != before["name"]:  # nothing follows from the name
            continue
        tried += 1
        assert level_that_finds(folder, made / "source.jsonl"), (place, data[place - 30 : place + 10])
    assert tried > 100


def test_other_bytes_of_the_same_rows_pass_where_another_writer_may_have_made_them(made, damaged_copy):
    folder = damaged_copy("tiny", "rows.parquet", 0, 0)
    data = (folder / "rows.parquet").read_bytes()
    place = data.rindex(b"parquet-cpp-arrow")
    (folder / "rows.parquet").write_bytes(data[:place] + b"P" + data[place + 1 :])
    sealed(folder)
    with pytest.raises(IntegrityError, match="other bytes than this environment writes"):
        verify(folder, level=4, paths=[str(made / "source.jsonl")])
    environment = json.loads((folder / "environment.json").read_bytes())
    for other in (json.dumps(environment | {"platform": "another"}), "[]", "{"):
        (folder / "environment.json").write_text(other)
        result = verify(folder, level=4, paths=[str(made / "source.jsonl")])
        assert "another writer version" in result["checked"][-1]
    shutil.copyfile(made / "tiny" / "environment.json", folder / "environment.json")


def test_load_manifest_proves_it(damaged_copy):
    with pytest.raises(IntegrityError, match="the manifest is damaged"):
        load_manifest(damaged_copy("tiny", "manifest.json", 100, 1))
