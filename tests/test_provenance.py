"""`databuild manifest`: statements about a build that other tools read."""

import hashlib
import json

import pytest
from support import build_files, records, use_shared_tokenizer, write_jsonl

from databuild.outdir import MANIFEST
from databuild.provenance import statement
from manifests.canonical import canonical_json
from manifests.model import Manifest, read_manifest

pytestmark = pytest.mark.usefixtures("shared_tokenizer", "shared_order")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        build_files(folder / "rows", [write_jsonl(folder / "s.jsonl", records(60))])
    return folder / "rows"


def test_the_subjects_are_the_files_on_disk(made):
    for form in ("slsa", "in-toto"):
        said = json.loads(statement(made, form))
        assert said["_type"] == "https://in-toto.io/Statement/v1"
        on_disk = {name: hashlib.sha256((made / name).read_bytes()).hexdigest() for name in ("rows.parquet", MANIFEST)}
        assert {item["name"]: item["digest"]["sha256"] for item in said["subject"]} == on_disk


def test_slsa_names_spec_and_locks(made):
    manifest = read_manifest((made / MANIFEST).read_bytes())
    said = json.loads(statement(made, "slsa"))
    assert said["predicateType"] == "https://slsa.dev/provenance/v1"
    definition = said["predicate"]["buildDefinition"]
    assert definition["buildType"] and said["predicate"]["runDetails"]["builder"]["id"]
    parameters = definition["externalParameters"]
    assert parameters | {k: manifest.spec[k] for k in ("sources", "tokenizer_sha256")} == manifest.spec
    digests = {item["name"]: item["digest"]["sha256"] for item in definition["resolvedDependencies"]}
    source = hashlib.sha256((made.parent / "s.jsonl").read_bytes()).hexdigest()
    assert digests == {"s.jsonl": source, "tokenizer.json": manifest.tokenizer.tokenizer_json_sha256}


def test_in_toto_links_materials_to_products(made):
    said = json.loads(statement(made, "in-toto"))
    assert said["predicateType"] == "https://in-toto.io/attestation/link/v0.3"
    link, slsa = said["predicate"], json.loads(statement(made, "slsa"))["predicate"]["buildDefinition"]
    assert (
        link["materials"] == slsa["resolvedDependencies"] and link["byproducts"]["spec"] == slsa["externalParameters"]
    )
    assert link["command"] == ["databuild", "fixed"]


def test_a_hub_source_is_named_by_commit_and_path(made, monkeypatch):
    raw = json.loads((made / MANIFEST).read_bytes())
    hub = raw["sources"][0] | {"kind": "hub", "name": "a/b", "revision": "1" * 40, "split": "train"}
    monkeypatch.setattr("databuild.provenance.verify", lambda folder, level: None)
    monkeypatch.setattr(
        "databuild.provenance.load_manifest", lambda folder: Manifest.model_validate(raw | {"sources": [hub]})
    )
    first, _ = json.loads(statement(made, "slsa"))["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert first["uri"] == f"hf://datasets/a/b@{'1' * 40}/s.jsonl"


def test_the_bytes_are_the_builds_alone(made, cli, tmp_path):
    moved = tmp_path / "elsewhere"
    moved.symlink_to(made)
    for form in ("slsa", "in-toto"):
        ran = cli("manifest", made, "--format", form)
        assert ran.code == 0 and ran.out.encode() == statement(made, form) == statement(moved, form)
        assert canonical_json(json.loads(ran.out)).decode() == ran.out
        assert str(made) not in ran.out
    assert cli("manifest", made).out.encode() == (made / MANIFEST).read_bytes()


def test_nothing_is_said_of_a_damaged_build(made, cli, tmp_path):
    import shutil

    copy = shutil.copytree(made, tmp_path / "copy")
    data = bytearray((copy / "rows.parquet").read_bytes())
    data[len(data) // 2] ^= 1
    (copy / "rows.parquet").write_bytes(data)
    for form in ("manifest", "slsa", "in-toto"):
        ran = cli("manifest", copy, "--format", form)
        assert ran.code == 6 and ran.out == ""
