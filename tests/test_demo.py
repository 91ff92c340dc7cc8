"""The demo build: pinned, and the same bytes whatever the machine is set to."""

import hashlib
import json
import os
import subprocess
import sys

import pytest

ROWS_SHA256 = "b164a14d55d664b86c0d3a815251d39fa8f3f14e7019d02e25b6a3214852de77"


def test_the_demo_is_pinned(demo_build):
    assert demo_build.manifest.rows.rows_sha256 == ROWS_SHA256
    assert demo_build.manifest.rows.rows >= 24  # dozens of rows


def test_the_demo_has_what_real_data_has(demo_build):
    counts = demo_build.manifest.counts
    assert {"content_null", "messages_empty", "role_unknown"} <= counts.skipped.keys()
    assert {
        "content_empty",
        "ends_without_assistant",
        "headerless_assistant",
        "id_duplicate",
        "longer_than_row",
        "no_assistant",
        "special_text",
    } <= counts.noted.keys()
    assert len(counts.by_source) >= 8


@pytest.mark.parametrize(
    ("arguments", "environment", "umask"),
    [
        (
            ["--workers", "1"],
            {"PYTHONHASHSEED": "1", "LANG": "tr_TR.UTF-8", "LC_ALL": "C", "TZ": "Pacific/Apia"},
            0o077,
        ),
        (["--workers", "2", "--batch-conversations", "37"], {"PYTHONHASHSEED": "2", "TZ": "Asia/Kolkata"}, 0o002),
        (["--workers", "3", "--batch-conversations", "5000"], {"PYTHONUTF8": "0", "LANG": "C"}, 0o027),
    ],
)
def test_nothing_of_the_machine_reaches_the_bytes(demo_build, tmp_path, arguments, environment, umask):
    out = tmp_path / "elsewhere"
    done = subprocess.run(
        [sys.executable, "-m", "databuild.cli", "fixed", "--source", "demo", "--out", str(out), "--json", *arguments],
        env={**os.environ, **environment},
        umask=umask,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["rows"]["rows_sha256"] == demo_build.manifest.rows.rows_sha256
    for name in ("manifest.json", "rows.parquet"):
        mine, theirs = ((folder / name).read_bytes() for folder in (out, demo_build.out))
        assert hashlib.sha256(mine).digest() == hashlib.sha256(theirs).digest(), name
