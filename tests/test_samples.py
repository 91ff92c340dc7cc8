"""Real conversations in Tulu-3 shape: every row equals the slow twin, at any number of workers."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import twin

from databuild.cli import main
from databuild.inspect import load_row
from databuild.rows import read_groups
from databuild.verify import verify

SAMPLES = Path(__file__).parents[2] / "shared" / "samples"
pytestmark = pytest.mark.skipif(not SAMPLES.exists(), reason="the sample conversations are not on this machine")


def _fixed(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(["fixed", "--quiet", *map(str, arguments)])
        raise SystemExit(0)
    return stop.value.code or 0


def test_tulu3_shape_equals_the_twin_row_for_row(tmp_path):
    folder = SAMPLES / "tulu3_shape"
    records = [record for path in sorted(folder.glob("*.parquet")) for record in pq.read_table(path).to_pylist()]
    assert len(records) == 3925
    assert _fixed("--source", folder, "--row-tokens", 4096, "--seed", 7, "--out", tmp_path / "rows") == 0
    expected = twin.twin_build(records, row_tokens=4096, seed=7)
    manifest = json.loads((tmp_path / "rows" / "manifest.json").read_bytes())
    assert manifest["counts"] == expected.counts
    found = [
        (ids.tolist(), mask.tolist())
        for _, rows, _ in read_groups([tmp_path / "rows" / "rows.parquet"], 4096)
        for ids, mask in zip(rows.input_ids, rows.loss_mask, strict=True)
    ]
    assert found == [(list(ids), list(mask)) for ids, mask in expected.rows]
    assert manifest["rows"]["rows_sha256"] == expected.rows_sha256
    assert manifest["rows"]["docs_sha256"] == expected.docs_sha256
    verify(tmp_path / "rows", level=4, paths=[str(folder)])


def test_the_jsonl_with_the_same_conversations_gives_the_same_rows(tmp_path):
    for name, source in (("a", SAMPLES / "tulu3_shape"), ("b", SAMPLES / "tulu3_shape_permissive.jsonl")):
        assert _fixed("--source", source, "--row-tokens", 2048, "--out", tmp_path / name) == 0
    a, b = (json.loads((tmp_path / name / "manifest.json").read_bytes()) for name in "ab")
    assert a["rows"] == b["rows"] and a["counts"] == b["counts"]
    assert a["sources"] != b["sources"]
    assert np.array_equal(load_row(tmp_path / "a", 3)[0].input_ids, load_row(tmp_path / "b", 3)[0].input_ids)


@pytest.mark.parametrize(
    "name",
    ["fastchat_dummy", "gsm8k_test", "oasst_sampling_pythia12b", "oasst_tree_paths", "t0_p3_flanlike"],
)
def test_every_plain_sample_builds_and_equals_the_twin(tmp_path, name):
    path = SAMPLES / f"{name}.jsonl"
    records = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    assert _fixed("--source", path, "--row-tokens", 512, "--out", tmp_path / "rows", "--rows", 40) == 0
    expected = twin.twin_build(records, row_tokens=512, seed=42, rows=40)
    manifest = json.loads((tmp_path / "rows" / "manifest.json").read_bytes())
    assert manifest["rows"]["rows_sha256"] == expected.rows_sha256
    assert manifest["counts"] == expected.counts
