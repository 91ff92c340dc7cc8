"""The dataset folder: from the manifest alone, always the same bytes, true, and read by those it is made for."""

import ast
import functools
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support import build_files, manifest_of, records, tree, use_shared_tokenizer, write_jsonl

import databuild
from databuild import build as building
from databuild import verify as verifying
from databuild.errors import IntegrityError, OutputError, SourceError, UsageError
from databuild.rows import SCHEMA, RowWriter
from databuild.share import folder as dataset_folder
from databuild.share.card import DataConfig, card, size_category
from databuild.share.croissant import COLUMNS, croissant_json
from databuild.share.folder import check_repo, dataset_files, write_folder
from manifests.canonical import canonical_json, strict_json
from manifests.locks import load_source_lock

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def one(demo_build):
    return demo_build.out


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A build of three row files, and that number of rows a shard for as long as it is used."""
    folder = tmp_path_factory.mktemp("many")
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        patch.setattr("databuild.build.check_permutation", lambda *, full: None)
        patch.setattr(building, "RowWriter", functools.partial(RowWriter, rows_per_shard=128))
        patch.setattr(verifying, "ROWS_PER_SHARD", 128)
        build_files(folder / "rows", [write_jsonl(folder / "s.jsonl", records(200))], row_tokens=40)
        yield folder / "rows"


@pytest.fixture(params=["one", "many"])
def folder(request, tmp_path, shared_tokenizer):
    """The dataset folder of a build in one file and of one in three."""
    _, files = dataset_files(request.getfixturevalue(request.param), repo=None, environment=False)
    write_folder(tmp_path / "dataset", files)
    return tmp_path / "dataset"


def front_matter(text):
    return yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.DOTALL)[1])


def manifest_in(folder):
    return verifying.load_manifest(folder / "rows")


# The folder


def test_the_build_in_the_folder_is_a_build_and_loads(folder):
    assert verifying.verify(folder / "rows", level=2)["rows"] == len(databuild.load(folder / "rows"))
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "croissant.json", "rows"]


def test_load_dataset_reads_the_folder(folder, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True, raising=False)
    loaded = datasets.load_dataset(str(folder), split="train", cache_dir=str(tmp_path / "cache"))
    truth = [row for path in sorted((folder / "rows").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert loaded.num_rows == len(truth) == manifest_in(folder).rows.rows
    for number in (0, len(truth) // 2, len(truth) - 1):
        assert loaded[number] == truth[number]
    assert loaded["row"][:] == list(range(len(truth)))


def test_the_code_in_the_card_does_what_it_says(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    manifest = manifest_in(folder)
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (numpy_code,) = (block for block in blocks if "hashlib" in block)
    done = subprocess.run([sys.executable, "-c", numpy_code], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == manifest.rows.rows_sha256
    (load_code,) = (block for block in blocks if "databuild.load" in block)
    if len(manifest.files) == 1:  # another process does not know the short shards of this test
        checked = load_code + "print(batch.input_ids.shape)"
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", checked], cwd=folder, capture_output=True, text=True, check=True, env=environment
        )
        assert ast.literal_eval(done.stdout) == (8, manifest.rows.row_tokens)
    commands = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    assert commands == ["databuild verify rows --level 2\n"]


def test_the_card_says_what_the_manifest_says(folder):
    text = (folder / "README.md").read_text(encoding="utf-8")
    manifest = manifest_in(folder)
    for value in (
        manifest.name, manifest.rows.rows_sha256, manifest.rows.docs_sha256, manifest.spec_sha256,
        manifest.tokenizer.revision, manifest.tokenizer.tokenizer_json_sha256,
        *(file.sha256 for source in manifest.sources for file in source.files),
        *(f"| skipped: {reason} | {count:,} |" for reason, count in manifest.counts.skipped.items()),
        *(f"| used, noted: {kind} | {count:,} |" for kind, count in manifest.counts.noted.items()),
        f"| conversations read | {manifest.counts.conversations:,} |", f"| tokens trained | {manifest.rows.num_targets:,} |",
        *(f"| `{key}` | `{json.dumps(value)}` |" for key, value in manifest.spec.items() if key != "sources"),
        *(f"| `{name}` |" for name in SCHEMA.names),
    ):  # fmt: skip
        assert value in text, value
    matter = front_matter(text)
    assert matter["size_categories"] == [size_category(manifest.rows.rows)]
    assert matter["pretty_name"] == manifest.name
    assert "language" not in matter
    assert matter.get("license") == {"databuild/demo": "apache-2.0", None: None}[manifest.sources[0].name]


def test_the_hub_library_reads_the_card(folder):
    from huggingface_hub import DatasetCard

    data = DatasetCard.load(str(folder / "README.md")).data
    assert (data.task_categories, data.to_dict()["configs"][0]["config_name"]) == (["text-generation"], "default")


def test_the_same_manifest_gives_the_same_bytes(many, tmp_path):
    manifest = verifying.load_manifest(many)
    code = (
        "import sys; from pathlib import Path; from manifests.model import read_manifest; from databuild.share.card import card; "
        "from databuild.share.croissant import croissant_json; m = read_manifest(Path(sys.argv[1]).read_bytes()); "
        "sys.stdout.buffer.write(card(m, repo='a/b') + croissant_json(m, repo='a/b'))"
    )
    for environment in (
        {"PYTHONHASHSEED": "1", "LC_ALL": "C", "TZ": "UTC"},
        {"PYTHONHASHSEED": "2", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "HF_ENDPOINT": "http://127.0.0.1:9"},
    ):
        done = subprocess.run(
            [sys.executable, "-c", code, str(many / "manifest.json")], capture_output=True, check=True, cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        )  # fmt: skip
        assert done.stdout == card(manifest, repo="a/b") + croissant_json(manifest, repo="a/b")


# croissant.json


def test_croissant_names_every_file_with_its_digest_and_every_column(folder):
    data = (folder / "croissant.json").read_bytes()
    value = strict_json(data)
    assert canonical_json(value) == data
    assert value["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    files = {entry["contentUrl"]: entry for entry in value["distribution"] if entry["@type"] == "cr:FileObject"}
    assert set(files) == {f"rows/{path.name}" for path in (folder / "rows").iterdir()}
    for name, entry in files.items():
        content = (folder / name).read_bytes()
        assert (entry["sha256"], entry["contentSize"]) == (hashlib.sha256(content).hexdigest(), f"{len(content)} B")
    (record_set,) = value["recordSet"]
    size = manifest_in(folder).rows.row_tokens
    lengths = {name: str(size) if elements == "row" else "-1" for name, _, elements, _ in COLUMNS if elements}
    assert [field["name"] for field in record_set["field"]] == SCHEMA.names
    ids = {entry["@id"] for entry in value["distribution"]}
    for field in record_set["field"]:
        column = SCHEMA.field(field["name"])
        kind = column.type.value_type if field["name"] in lengths else column.type
        assert field["dataType"] == "cr:" + str(kind).replace("uint", "UInt").replace("int", "Int")
        assert field.get("arrayShape") == lengths.get(field["name"])
        source = field["source"]
        assert (source.get("fileObject") or source.get("fileSet"))["@id"] in ids
        assert source["extract"] == {"column": field["name"]}


def test_mlcroissant_accepts_and_reads_it(folder):
    mlc = pytest.importorskip("mlcroissant")
    dataset = mlc.Dataset(jsonld=str(folder / "croissant.json"))
    assert not dataset.metadata.ctx.issues.errors
    read = list(dataset.records("rows"))
    rows = databuild.load(folder / "rows")
    assert len(read) == len(rows)
    by_number = {int(record["rows/row"]): record for record in read}
    for row in rows:
        record = by_number[row.row]
        for name in ("input_ids", "loss_mask", "doc_starts", "doc_rows"):
            assert list(record[f"rows/{name}"]) == getattr(row, name).tolist()


# What a manifest may hold


@pytest.mark.parametrize(
    ("rows", "name"),
    [(1, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (6400, "1K<n<10K"), (10**6, "1M<n<10M"), (10**9, "n>1B")],
)
def test_the_size_category(rows, name):
    assert size_category(rows) == name


@pytest.mark.parametrize(
    ("license", "expected"),
    [
        ("ODC-By-1.0", {"license": "odc-by"}),
        ("odc-by", {"license": "odc-by"}),
        ("Apache-2.0", {"license": "apache-2.0"}),
        ("My own: #1", {"license": "other", "license_name": "my-own-1"}),
        (None, {}),
    ],
)
def test_the_licence_is_that_of_the_source(license, expected):
    manifest = manifest_of(source={"license": license})
    matter = front_matter(card(manifest).decode())
    assert {key: matter[key] for key in ("license", "license_name") if key in matter} == expected
    assert strict_json(croissant_json(manifest)).get("license") == license


def test_the_published_recipe_names_its_source():
    lock = load_source_lock("tulu3")
    source = {"kind": "hub", "name": lock.name, "revision": lock.revision, "split": "train", "rows": lock.rows}
    text = card(manifest_of(source=source | {"license": lock.license}), repo="acme/rows").decode()
    assert f"[{lock.name}](https://huggingface.co/datasets/{lock.name})" in text
    assert f"`{lock.revision}`" in text and "939,343" in text and "ODC-By-1.0" in text
    assert "hf download acme/rows --repo-type dataset --local-dir copy && cd copy" in text
    assert 'load_dataset("acme/rows", split="train")' in text


def seen(text):
    """What a reader of Markdown makes of a card: (kinds of its tokens, its links, its texts, its heading)."""
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    tokens = markdown.parse(text[text.index("\n---\n") + 5 :])
    inline = [child for token in tokens for child in token.children or []]
    links = [child.attrGet("href") for child in inline if child.type == "link_open"]
    texts = ["".join(c.content for c in token.children) for token in tokens if token.type == "inline"]
    return [token.type for token in tokens], {child.type for child in inline}, links, texts


ODD = [
    "a|b",
    "x\n\n# y",
    "---\nlicense: mit",
    "<b>",
    "[a](http://x)",
    "`code`",
    "~~~",
    "\u202e",
    "- a",
    "1. b",
    "&lt;",
    "\\|",
]


@settings(max_examples=80, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30) | st.sampled_from(ODD))
def test_names_of_the_data_stay_text(name):
    def text_of(name):
        counts = {"used": 1, "skipped": 0, "tokens": 200, "targets": 100}
        source = {"name": name, "license": name, "split": name, "revision": name}
        spec = {"exclude_sources": [name]}
        manifest = manifest_of(name=name, by_source={name: counts, "other": counts}, source=source, spec=spec)
        strict_json(croissant_json(manifest))
        return card(manifest).decode()

    text = text_of(name)
    kinds, _, links, texts = seen(text)
    plain_kinds, plain_inline, _, _ = seen(text_of("x"))
    assert kinds == plain_kinds and links == []
    assert seen(text)[1] <= plain_inline

    def shown(value):
        return "".join(c if c == " " or c.isprintable() else c.encode("unicode_escape").decode() for c in value)

    visible = shown(name)
    assert shown(json.dumps([name], ensure_ascii=False)).replace("`", "'") in texts
    assert texts[0] == visible.strip(" ")
    assert texts.count(visible.strip(" ")) >= 4
    matter = front_matter(text)
    assert matter["pretty_name"] == visible
    assert set(matter) - {"license_name"} == set(front_matter(text_of("x"))) - {"license_name"}


def test_very_many_sources_are_not_all_listed():
    by_source = {f"s{i:04}": {"used": 1, "skipped": 0, "tokens": i, "targets": 0} for i in range(500)}
    text = card(manifest_of(by_source=by_source)).decode()
    assert "| s0499 |" in text and "| s0001 |" not in text and "and 460 more, in `rows/manifest.json`" in text


def test_another_form_of_the_rows_gets_a_config_of_its_own():
    configs = [DataConfig(name="default", path="rows/rows.parquet"), DataConfig(name="hf", path="hf/rows.hf.parquet")]
    found = front_matter(card(manifest_of(), configs=configs).decode())["configs"]
    assert [(c["config_name"], c["data_files"][0]["path"]) for c in found] == [(c.name, c.path) for c in configs]


@pytest.mark.parametrize("name", ["a/b", "hf:acme/rows-1.0_x"])
def test_names_of_datasets(name):
    assert check_repo(name) == name.removeprefix("hf:")
    for bad in ("a", "a/b/c", "/b", "a/", "a/..", "a/b--c", "a/b c", "a/b.git", "-a/b", "a/b\n", "a/" + "b" * 97):
        with pytest.raises(UsageError):
            check_repo(bad)


# The command, and what goes wrong


def test_the_command(cli, one, tmp_path):
    ran = cli("card", one, "--out", tmp_path / "x" / "dataset", "--json")
    assert ran.code == 0 and ran.err == ""
    files = {file["path"]: file for file in ran.json["files"]}
    assert set(files) == {"README.md", "croissant.json", "rows/manifest.json", "rows/rows.parquet"}
    for path, file in files.items():
        data = (tmp_path / "x" / "dataset" / path).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])
    printed = cli("card", one, "--quiet")
    assert printed.out == (tmp_path / "x" / "dataset" / "README.md").read_text(encoding="utf-8")
    assert "hf download acme/rows" in cli("card", one, "--repo", "acme/rows").out
    cli("card", one, "--repo", "rows").error(2, "usage")
    with_environment = cli("card", one, "--out", tmp_path / "more", "--environment")
    assert with_environment.code == 0 and (tmp_path / "more" / "rows" / "environment.json").is_file()
    assert cli("verify", tmp_path / "more" / "rows").code == 0


def test_a_place_that_is_taken_is_left_alone(cli, one, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "other.partial").mkdir()
    before = tree(tmp_path)
    for out in ("taken", "other", "x.partial"):
        cli("card", one, "--out", tmp_path / out).error(5, "output")
    (tmp_path / "file").write_text("")
    cli("card", one, "--out", tmp_path / "file" / "x").error(5, "output")
    (tmp_path / "file").unlink()
    assert tree(tmp_path) == before


def test_a_build_that_is_not_whole_gets_no_card(one, tmp_path, shared_tokenizer):
    shutil.copytree(one, tmp_path / "copy")
    data = bytearray((tmp_path / "copy" / "rows.parquet").read_bytes())
    data[1000] ^= 1
    (tmp_path / "copy" / "rows.parquet").write_bytes(bytes(data))
    with pytest.raises(IntegrityError, match="another digest"):
        dataset_files(tmp_path / "copy", repo=None, environment=False)
    with pytest.raises(SourceError, match="no build here"):
        dataset_files(tmp_path, repo=None, environment=False)
    (tmp_path / "copy" / "environment.json").unlink()
    (tmp_path / "copy" / "rows.parquet").write_bytes((one / "rows.parquet").read_bytes())
    with pytest.raises(UsageError, match=r"no environment.json"):
        dataset_files(tmp_path / "copy", repo=None, environment=True)


@pytest.mark.parametrize("how", ["changed", "full"])
def test_a_folder_that_cannot_be_written_whole_is_not_there(one, tmp_path, monkeypatch, shared_tokenizer, how):
    _, files = dataset_files(one, repo=None, environment=False)

    def copy(source, target, **_):
        if how == "full":
            raise OSError(28, "No space left on device", str(target))
        target.write_bytes(source.read_bytes()[:-1] + b"x")

    monkeypatch.setattr(dataset_folder.shutil, "copyfile", copy)
    with pytest.raises(IntegrityError if how == "changed" else OutputError):
        write_folder(tmp_path / "dataset", files)
    assert list(tmp_path.iterdir()) == []
