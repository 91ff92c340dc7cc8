"""manifest.json: one value, one sequence of bytes; and nothing of the machine that made it."""

import getpass
import importlib.metadata
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import manifest_of, records, tree, write_jsonl

from manifests.canonical import canonical_json, sha256_of, strict_json
from manifests.model import Manifest, ManifestError, SourceRecord, read_manifest

MANIFEST = manifest_of(name="é", noted={"content_empty": 1})
DATA = MANIFEST.to_bytes()
RAW = json.loads(DATA)


def refused(data, *words):
    with pytest.raises(ManifestError) as caught:
        read_manifest(data)
    for word in words:
        assert word in str(caught.value)


def test_a_manifest_is_read_back():
    assert read_manifest(DATA) == MANIFEST
    assert read_manifest(DATA).to_bytes() == DATA


def test_the_canonical_bytes():
    assert canonical_json({"b": [1, {"z": None, "a": 0.5}], "a": 'é\u2028"\n'}) == (
        '{\n  "a": "é\u2028\\"\\n",\n  "b": [\n    1,\n    {\n      "a": 0.5,\n      "z": null\n    }\n  ]\n}\n'.encode()
    )


@pytest.mark.parametrize(
    "spelling",
    [
        json.dumps(RAW, sort_keys=True).encode(),
        json.dumps(RAW, sort_keys=True, indent=4, ensure_ascii=False).encode() + b"\n",
        json.dumps(dict(reversed(RAW.items())), indent=2, ensure_ascii=False).encode() + b"\n",
        json.dumps(RAW, sort_keys=True, indent=2).encode() + b"\n",  # é as an escape
        DATA[:-1],
        DATA + b"\n",
        b" " + DATA,
        DATA.replace(b"\n", b"\r\n"),
        DATA.replace(b"  ", b"\t", 1),
        DATA.replace(b'"supervised_token_ratio": 0.5', b'"supervised_token_ratio": 5e-1'),
        DATA.replace(b'"supervised_token_ratio": 0.5', b'"supervised_token_ratio": 0.50'),
        DATA.replace(b'"rows": 6', b'"rows": 6.0'),
        DATA.replace("é".encode(), "e\u0301".encode()),
        b"\xef\xbb\xbf" + DATA,
        DATA.decode().encode("utf-16"),
    ],
)
def test_every_other_spelling_is_refused(spelling):
    assert spelling != DATA
    refused(spelling)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a manifest"),
        (b"\xff\xfe", "not a manifest"),
        (b"[]\n", "not a manifest"),
        (b"{}\n", "schema: Field required"),
        (DATA.replace(b'  "name"', b'  "name": "x",\n  "name"', 1), "a key occurs twice"),
        (DATA.replace(b'"seed": 42', b'"seed": 41,\n    "seed": 42'), "a key occurs twice"),
        (DATA.replace(b'"seed": 42', b'"seed": NaN'), "NaN is not a JSON number"),
        (DATA.replace(b'"seed": 42', b'"seed": -Infinity'), "-Infinity is not a JSON number"),
        (DATA.replace(b'"seed": 42', b'"seed": 1e400'), "not a manifest"),
        (DATA.replace(b'"seed": 42', b'"seed": ' + b"9" * 5000), "not a manifest"),
        (DATA.replace(b'"seed": 42', b'"seed": "\\ud800"'), "not a manifest"),
        (DATA.replace(b'"name": "', b'"name": "\\ud800'), "name"),
        (DATA.replace(b'"seed": 42', b'"seed": 43'), "manifest_sha256: expected"),
    ],
)
def test_what_is_no_manifest(data, words):
    assert data != DATA
    refused(data, words)


@pytest.mark.parametrize("depth", [100, 900, 1100, 200_000])
@pytest.mark.parametrize(("begin", "end"), [(b"[", b"]"), (b'{"a": ', b"}")])
def test_a_nesting_bomb(depth, begin, end):
    refused(DATA.replace(b'"seed": 42', b'"seed": ' + begin * depth + b"1" + end * depth))
    refused(begin * depth)


def resealed(change):
    """The bytes of the manifest with a change and digests that fit it."""
    raw = json.loads(DATA)
    change(raw)
    if isinstance(raw.get("spec"), dict):
        raw["spec_sha256"] = sha256_of(raw["spec"])
    del raw["manifest_sha256"]
    return canonical_json(raw | {"manifest_sha256": sha256_of(raw)})


def test_resealed_is_fair():
    assert resealed(lambda raw: None) == DATA
    read_manifest(resealed(lambda raw: raw.update(name="other")))


PLACES = [(), ("sources", 0), ("sources", 0, "files", 0), ("tokenizer",), ("counts",), ("rows",), ("files", 0)]
PLACES += [("counts", "by_source", "s")]


def at(raw, place):
    for key in place:
        raw = raw[key]
    return raw


@pytest.mark.parametrize("place", PLACES)
def test_unknown_and_missing_keys(place):
    last = str(place[-1]) if place else ""
    refused(resealed(lambda raw: at(raw, place).update(more=1)), "more: Extra inputs", last)
    for key in at(RAW, place):
        if key not in ("spec_sha256", "manifest_sha256"):  # resealed puts them in again
            refused(resealed(lambda raw, key=key: at(raw, place).pop(key)), key)


@pytest.mark.parametrize(
    ("place", "values"),
    [
        (("rows", "rows"), ["6", 6.0, True, None, -1, [6]]),
        (("rows", "row_tokens"), [1, "64", 64.5]),
        (("rows", "supervised_token_ratio"), ["0.5", 1.5, -0.1, True]),
        (("rows", "rows_sha256"), ["0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 64 + "\n", None, 0]),
        (("counts", "tokens"), ["1", 1.0, False, -1]),
        (("counts", "skipped"), [[], None, {"content_null": "1"}, {"content_null": -1}, {"content_null": True}]),
        (("counts", "by_source"), [[], {"s": 1}]),
        (("schema",), ["databuild/manifest/v2", "", None, 1]),
        (("name",), [None, 1, ["x"]]),
        (("spec",), [None, [], "x"]),
        (("sources",), [[], {}, None]),
        (("sources", 0, "kind"), ["http", None]),
        (("sources", 0, "rows"), ["1", 1.0]),
        (("files",), [[], {}]),
        (
            ("files", 0, "name"),
            ["../rows.parquet", "/rows.parquet", "a/rows.parquet", "rows.parquet\n", "rows.parquet\0", "", "x", None],
        ),
        (
            ("files", 0, "name"),
            ["rows-0-of-1.parquet", "rows-00000-of-00001.parquet.exe"],
        ),
    ],
)
def test_wrong_types_and_values(place, values):
    for value in values:
        refused(resealed(lambda raw, value=value: at(raw, place[:-1]).__setitem__(place[-1], value)), str(place[-1]))


def test_a_digest_that_does_not_fit():
    raw = json.loads(DATA)
    raw["spec"]["seed"] = 43
    del raw["manifest_sha256"]
    refused(canonical_json(raw | {"manifest_sha256": sha256_of(raw)}), "spec_sha256: expected")


@given(place=st.integers(0, len(DATA) - 1), byte=st.integers(0, 255))
@settings(max_examples=400, deadline=None)
def test_a_change_of_any_byte_is_refused(place, byte):
    data = bytearray(DATA)
    data[place] = byte
    if data != DATA:
        refused(bytes(data))


@given(place=st.integers(0, len(DATA)), byte=st.binary(min_size=1, max_size=3), length=st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_more_and_fewer_bytes_are_refused(place, byte, length):
    data = DATA[:place] + byte + DATA[place + length :]
    if data != DATA:
        refused(data)
    refused(DATA[: min(place, len(DATA) - 1)])


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values.filter(lambda value: "\ud800" not in repr(value)))
@settings(max_examples=100, deadline=None)
def test_canonical_json_is_json_and_reads_back(value):
    try:
        data = canonical_json(value)
    except UnicodeEncodeError:
        return  # a lone surrogate: not Unicode text
    assert strict_json(data) == value
    assert canonical_json(strict_json(data)) == data
    assert sha256_of(value) == sha256_of(strict_json(data))


def test_the_identity_of_a_source_is_all_of_it():
    source = MANIFEST.sources[0]
    fields = source.model_dump(exclude={"identity_sha256", "files"})
    assert SourceRecord.make(**fields, files=source.files) == source
    seen = {source.identity_sha256}
    for key, value in {"kind": "demo", "name": "n", "revision": "r", "split": "s", "rows": 7, "license": "l"}.items():
        seen.add(SourceRecord.make(**(fields | {key: value}), files=source.files).identity_sha256)
    for key, value in {"name": "n", "bytes": 7, "sha256": "1" * 64}.items():
        changed = source.files[0].model_copy(update={key: value})
        seen.add(SourceRecord.make(**fields, files=[changed]).identity_sha256)
    assert len(seen) == 10


def test_a_manifest_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        MANIFEST.name = "other"
    assert isinstance(MANIFEST, Manifest)


def test_the_same_bytes_in_every_environment(cli, tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "thère is another place"
    for folder in (here, there):
        folder.mkdir()
        write_jsonl(folder / "source.jsonl", records(150))
    monkeypatch.chdir(here)
    arguments = ["fixed", "--source", "source.jsonl", "--row-tokens", "64"]
    assert cli(*arguments, "--out", "rows", "--workers", 2).code == 0
    surroundings = {
        "TZ": "Asia/Kathmandu",
        "LC_ALL": "C",
        "LANG": "tr_TR.UTF-8",
        "PYTHONHASHSEED": "7",
        "PYTHONIOENCODING": "ascii",
        "USER": "somebody",
        "HOME": str(there),
        "COLUMNS": "20",
    }
    code = "import sys; from databuild.cli import main; main(sys.argv[1:])"
    more = ["--out", str(there / "rows of mine"), "--workers", "1", "--batch-conversations", "7"]
    subprocess.run(
        [sys.executable, "-c", code, *arguments, *more],
        cwd=there, env=os.environ | surroundings, umask=0o077, check=True, capture_output=True,
    )  # fmt: skip
    mine, other = tree(here / "rows"), tree(there / "rows of mine")
    for name in ("manifest.json", "rows.parquet"):
        assert mine[name][2] == other[name][2], name
        assert (mine[name][1], other[name][1]) == (0o644, 0o600)
    text = mine["manifest.json"][2].decode()
    assert read_manifest(text.encode()).name == "dsv4-files-fixed64-seed42"
    strangers = [
        socket.gethostname(),
        str(tmp_path),
        "/tmp",
        time.strftime("%Y-%m"),
        platform.machine(),
        "rows of mine",
    ]
    strangers += [importlib.metadata.version(package) for package in ("numpy", "pyarrow", "tokenizers", "fastokens")]
    if getpass.getuser() not in ("root",):
        strangers.append(getpass.getuser())
    for stranger in strangers:
        assert stranger not in text, stranger
    shutil.rmtree(there)
