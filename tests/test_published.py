"""Is a build the published one? Compared where spec and source are the published ones, and never assumed."""

from pathlib import Path

import pytest
from support import manifest_of

from databuild.build import BuildResult
from databuild.published import compare_published, published_facts
from databuild.report_text import build_json, build_text

(FACTS,) = published_facts()
SOURCE = {"kind": "hub", **FACTS["source"]}
SPEC = {"row_tokens": 8192, "rows": 6400, "seed": 42}
ROWS = {"rows": 6400, "rows_sha256": FACTS["rows_sha256"], "supervised_token_ratio": 0.6749}


def a_build(**changes):
    parts = {"source": SOURCE, "spec": SPEC, "rows": ROWS}
    return manifest_of(**{key: value | changes.get(key, {}) for key, value in parts.items()})


def result_of(manifest):
    environment = {"engine": "tokenizers 1", "rechecked_conversations": 7}
    return BuildResult(
        out=Path("rows"),
        manifest=manifest,
        environment=environment,
        existing=False,
        seconds=1.0,
        published=compare_published(manifest),
    )


def test_the_published_facts():
    assert FACTS["name"] == "dsv4-tulu3-fixed8192-v1"
    assert FACTS["rows_sha256"] == "6c7dfdc9b7b8d16da518e994beff79d79d224c421b28a1d4350a6f21b547c6b2"
    assert (FACTS["rows"], FACTS["supervised_token_ratio"], FACTS["padding_tokens"]) == (6400, 0.67, 0)
    assert FACTS["source"]["revision"] == "b14afda60f1bbebe55d5d2fa1e4df5042f97f8be"


def test_an_equal_build_is_reported_as_equal():
    result = result_of(a_build())
    found = build_json(result)["published"]
    assert found["name"] == FACTS["name"]
    assert all(found[key]["equal"] is True for key in ("rows_sha256", "rows", "supervised_token_ratio"))
    assert found["supervised_token_ratio"] == {"expected": 0.67, "found": 0.67, "equal": True}
    text = build_text(result)
    assert f"against the published {FACTS['name']}:" in text and "differs" not in text
    assert f"equal ({FACTS['rows_sha256']})" in text


@pytest.mark.parametrize(
    ("key", "value", "shown"),
    [("rows_sha256", "e" * 64, "e" * 64), ("rows", 6399, 6399), ("supervised_token_ratio", 0.4449, 0.44)],
)
def test_a_difference_is_reported_with_both_sides(key, value, shown):
    result = result_of(a_build(rows={key: value}))
    found = build_json(result)["published"]
    assert found[key] == {"expected": FACTS[key], "found": shown, "equal": False}
    assert [k for k in ("rows_sha256", "rows", "supervised_token_ratio") if not found[k]["equal"]] == [key]
    assert f"differs: {shown}, published {FACTS[key]}" in build_text(result)


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"row_tokens": 4096}},
        {"spec": {"rows": 6401}},
        {"spec": {"rows": None}},
        {"spec": {"seed": 43}},
        {"source": {"revision": "0" * 40}},
        {"source": {"name": "allenai/tulu-3-sft-mixture-0225"}},
        {"source": {"split": "test"}},
        {"source": {"kind": "files", "name": None, "revision": None, "split": None}},
    ],
    ids=str,
)
def test_another_spec_or_source_is_not_compared(change):
    result = result_of(a_build(**change))
    assert result.published is None and build_json(result)["published"] is None
    assert "published" not in build_text(result)


def test_what_the_published_build_does_not_say_is_not_compared():
    """Its separator, its mode and its handling of BOS are unknown: a build with any of them is compared."""
    for unknown in ({"separator": "none"}, {"bos": "strip"}, {"unanswered": "keep"}):
        assert result_of(a_build(spec=unknown)).published is not None
