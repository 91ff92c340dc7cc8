"""`databuild report`: one page that holds what the build holds, asks for nothing, and is the same every time."""

import json
import re
import sys
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from pages import Page
from streams import tokenizer
from support import build_files, records, use_shared_tokenizer, write_jsonl

from databuild.report.facts import choose
from databuild.report.sections import build_command
from databuild.survey import survey
from databuild.verify import load_manifest

HOSTILE = "</text></svg><script>alert(1)</script>\x1b[31m\u202e $x$ \\frac url(#a) #010101 &amp; \"'"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a build of hostile conversations, `rows`, and one of another seed, `other`."""
    folder = tmp_path_factory.mktemp("made")
    spelled = "a <｜User｜> b </think> c <|EOT|>"
    hostile = [
        {
            "source": HOSTILE,
            "messages": [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": spelled}],
        },
        {"source": HOSTILE, "messages": [{"role": HOSTILE, "content": HOSTILE}]},
        {"source": "broken", "messages": [{"role": "user", "content": "\ud800"}]},
        {"source": "broken", "messages": []},
        {
            "source": "s1",
            "messages": [{"role": "user", "content": "Count."}, {"role": "assistant", "content": "x y " * 200}],
        },
    ]
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        source = write_jsonl(folder / "source.jsonl", records(60) + hostile)
        build_files(folder / "rows", [source])
        build_files(folder / "other", [source], seed=7)
    return folder


def test_without_matplotlib_it_says_what_to_install(cli, made, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    block = cli("report", made / "rows", "--out", tmp_path / "r.html").error(2, "usage")
    assert "pip install matplotlib" in block["next"] and not list(tmp_path.iterdir())


def test_the_rows_that_are_chosen(made):
    of = survey(made / "rows", load_manifest(made / "rows"))
    table = pq.read_table(made / "rows" / "rows.parquet").to_pylist()
    for most in (1, 6, 12, 24, 200):
        chosen = choose(of, seed=0, most=most)
        numbers = [c.row for c in chosen]
        assert numbers == sorted(set(numbers)) and len(numbers) == min(most, len(table))
        assert chosen == choose(of, seed=0, most=most)
        named = {why: [c.row for c in chosen if why in c.why] for c in chosen for why in c.why}
        assert min(table, key=lambda r: (r["num_targets"], r["row"]))["row"] in named["lowest ratio"]
        if most >= 12:
            assert min(table, key=lambda r: (-r["num_targets"], r["row"]))["row"] in named["highest ratio"]
            assert next(r["row"] for r in table if 64 in r["doc_rows"]) in named["longest conversation"]
            whole = [
                (stop - start, row["row"])
                for row in table
                for start, stop in zip(row["doc_starts"][1:], row["doc_starts"][2:], strict=False)
            ]
            assert min(whole)[0] in {s for s, r in whole if r in named["shortest conversation"]}
    assert [c.row for c in choose(of, seed=0, most=24)] != [c.row for c in choose(of, seed=1, most=24)]


def test_the_command_that_makes_a_build(made, demo_build):
    assert build_command(demo_build.manifest) == "databuild fixed --source demo --row-tokens 8192 --seed 42 --out DIR"
    assert build_command(load_manifest(made / "rows")).startswith("databuild fixed --source PATH --row-tokens 64")


@pytest.fixture(scope="module")
def page(made, tmp_path_factory):
    """The report with everything in it: its bytes, and as read."""
    pytest.importorskip("matplotlib")
    from databuild.report import report_page

    data = report_page(
        made / "rows", tokenizer=tokenizer(), other=made / "other", seed=0, rows_shown=24,
        sources=[str(made / "source.jsonl")],
    )  # fmt: skip
    return data, Page(data.decode("utf-8"))


def test_the_page_is_closed_and_well_formed(page):
    data, read = page
    read.check_closed()
    assert b"http://" not in data.replace(b"http://www.w3.org/2000/svg", b"") and b"https://" not in data
    text = data.decode("utf-8")
    assert "@import" not in text and not re.search(r"url\((?!#)", text.replace("url(#a) #010101", ""))
    assert all(c in "\n\t" or c.isprintable() for c in text)


def test_hostile_text_is_shown_as_text(page):
    data, read = page
    assert b"<script" not in data and b"\x1b" not in data
    text = "".join(read.text)
    shown = HOSTILE.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")
    assert shown in text  # the table of sources
    assert "</text></svg><script>alert(1)</script>\\u001b[31m" in text  # the record that was skipped, as JSON


def test_readers_of_every_kind_find_their_way(page):
    _, read = page
    tags = read.tags
    levels = [int(tag[1]) for tag, _ in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels.count(1) == 1 and levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    assert [tag for tag, _ in tags if tag in ("header", "nav", "main")] == ["header", "nav", "main"]
    assert tags[0][0] == "html" and tags[0][1]["lang"] == "en"
    assert any(tag == "meta" and a.get("name") == "viewport" for tag, a in tags)
    first_link = next(a for tag, a in tags if tag == "a")
    assert first_link["href"] == "#main"
    identities = {a["id"] for _, a in tags if "id" in a}
    charts = [a for tag, a in tags if tag == "svg"]
    assert len(charts) == 7 and all(a["role"] == "img" and a["aria-labelledby"] in identities for a in charts)
    assert sum(tag == "figcaption" for tag, _ in tags) == sum(tag == "figure" for tag, _ in tags) == 7
    assert sum(tag == "caption" for tag, _ in tags) == sum(tag == "table" for tag, _ in tags)
    assert all(a.get("scope") == "col" for tag, a in tags if tag == "th")
    assert all(a.get("aria-labelledby") in identities for tag, a in tags if tag == "section")


def test_the_page_says_what_the_manifest_says(page, made):
    _, read = page
    text, manifest = "".join(read.text), load_manifest(made / "rows")
    for value in (
        manifest.rows.rows_sha256, manifest.rows.docs_sha256, manifest.spec_sha256, manifest.tokenizer.revision,
        manifest.sources[0].identity_sha256, manifest.files[0].sha256, f"{manifest.rows.num_targets:,}",
        "databuild verify DIR --level 4 --source PATH", *manifest.counts.skipped, *manifest.counts.noted,
    ):  # fmt: skip
        assert value in text
    assert "spec.seed: 42 | 7" in text and "The two builds differ." in text
    assert "role_unknown: message 0" in text and "\\ud800" in text


def test_sightings_are_those_of_the_rows(page, made):
    names = sorted(tokenizer().added_tokens, key=lambda n: -len(n))
    special = set(tokenizer().added_tokens.values())
    decode, found = tokenizer().reference.decode, 0
    for row in pq.read_table(made / "rows" / "rows.parquet").to_pylist():
        text = decode([i if i not in special else 201 for i in row["input_ids"]])
        found += len(re.findall("|".join(map(re.escape, names)), text))
    assert decode([201]) == "\n" and found >= 3
    assert f"{found:,} places in these rows" in "".join(page[1].text)


def test_charts_hold_the_numbers(page, made):
    _, read = page
    text = "".join(read.text)
    table = pq.read_table(made / "rows" / "rows.parquet").to_pylist()
    median = np.median([len(row["doc_rows"]) for row in table])
    assert f"from {min(len(r['doc_rows']) for r in table)} to {max(len(r['doc_rows']) for r in table)}" in text
    assert f"median {median:,.0f}" in text
    sources = json.loads((made / "rows" / "manifest.json").read_bytes())["counts"]["by_source"]
    for counts in sources.values():
        assert f"{counts['targets'] / max(1, counts['tokens']):.1%}" in text


def test_the_same_build_gives_the_same_bytes_whatever_the_user_has_set(page, made, monkeypatch, tmp_path):
    import matplotlib

    from databuild.report import report_page

    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30)
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", None)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    again = report_page(
        made / "rows", tokenizer=tokenizer(), other=made / "other", seed=0, rows_shown=24,
        sources=[str(made / "source.jsonl")],
    )  # fmt: skip
    assert again == page[0] and str(made).encode() not in again and str(tmp_path).encode() not in again
    assert matplotlib.rcParams["font.size"] == 30


def test_the_command(cli, made, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "r.html"
    ran = cli("report", made / "rows", "--out", out, "--rows-shown", 3, "--json")
    assert ran.code == 0 and ran.json == {"out": str(out), "bytes": out.stat().st_size}
    text = "".join(Page(out.read_text("utf-8")).text)
    assert "Counts alone, no examples" in text and "--source PATH" in text and "3 of " in text
    assert cli("report", made / "rows", "--out", made / "rows" / "r.html").error(5, "output")
    assert cli("report", made / "rows", "--out", made / "source.jsonl").error(5, "output")
    assert cli("report", tmp_path / "none", "--out", out).error(3, "source")
    assert cli("report", made / "rows", "--compare", tmp_path / "none", "--out", out).error(3, "source")
    assert cli("verify", made / "rows", "--level", 1).code == 0


def test_a_large_build_stays_small(made, monkeypatch):
    pytest.importorskip("matplotlib")
    from databuild import report

    monkeypatch.setattr(report, "ROWS_BYTES", 8000)
    data = report.report_page(
        made / "rows", tokenizer=tokenizer(), other=None, seed=0, rows_shown=24, sources=[]
    )  # fmt: skip
    assert b"Too large to be shown here: rows" in data


def test_the_demo_has_examples_of_what_was_skipped(demo_build):
    pytest.importorskip("matplotlib")
    from databuild.report import report_page

    data = report_page(demo_build.out, tokenizer=tokenizer(), other=None, seed=0, rows_shown=24, sources=[])
    assert len(data) < 5_000_000
    read = Page(data.decode("utf-8"))
    read.check_closed()
    text = "".join(read.text)
    for reason in demo_build.manifest.counts.skipped:
        assert f"Examples of {reason}" in text
