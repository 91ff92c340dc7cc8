"""`databuild inspect`: which rows a question finds, what is shown of them, on every kind of output."""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import Page
from streams import tokenizer
from support import build_files, records, use_shared_tokenizer, write_jsonl

from databuild.inspect.text import runs, spelled, token_text
from databuild.survey import conversations, survey
from databuild.verify import load_manifest

HOSTILE = '<script>alert(1)</script> & "quotes" \x1b[31m \u202e <｜User｜> </mark></details><!-- -->'


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with source.jsonl, its build `rows`, and another source."""
    folder = tmp_path_factory.mktemp("made")
    hostile = [{"messages": [{"role": "user", "content": HOSTILE}, {"role": "assistant", "content": HOSTILE}]}]
    long = [{"messages": [{"role": "user", "content": "Count."}, {"role": "assistant", "content": "one two " * 600}]}]
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        source = write_jsonl(folder / "source.jsonl", records(60) + hostile + long)
        build_files(folder / "rows", [source])
        write_jsonl(folder / "other.jsonl", records(60, seed=5))
    return folder


@pytest.fixture(scope="module")
def table(made):
    return pq.read_table(made / "rows" / "rows.parquet").to_pylist()


# Text


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 129_279), max_size=20))
def test_text_of_tokens_is_what_the_reference_decodes(ids):
    text = token_text(tokenizer())
    ids = [i for i in ids if i < tokenizer().vocab_size and text.token(i)]
    array = np.array(ids, np.int32)
    data = text.bytes_of(array)
    assert text.text_of(array) == tokenizer().full_vocabulary.decode(ids) == data.decode("utf-8", "replace")
    assert len(data) == sum(tokenizer().token_bytes[ids].tolist())
    assert text.ends(array).tolist() == np.cumsum(tokenizer().token_bytes[ids]).tolist()
    assert not text.is_special[text.without_special(array)].any()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([0, 1, 128803, 128804, 19923, 5, 300, 1000]), st.booleans()), min_size=1))
def test_runs_are_alike_and_cover_the_tokens(tokens):
    ids, mask = (np.array(part) for part in zip(*tokens, strict=True))
    text = token_text(tokenizer())
    found = runs(ids.astype(np.int32), mask.astype(np.uint8), 0, len(ids), text)
    assert [r.start for r in found] == [0, *(r.stop for r in found[:-1])] and found[-1].stop == len(ids)
    for run in found:
        assert set(mask[run.start : run.stop]) == {run.trained}
        assert set(text.is_special[ids[run.start : run.stop]]) == {run.special}
    assert all((a.trained, a.special) != (b.trained, b.special) for a, b in pairwise(found))


@given(st.lists(st.sampled_from(["<｜User｜>", "<｜", "x", "</think>", "think>", "<think>", "｜DSML｜"])).map("".join))
def test_spelled_special_tokens_are_found(value):
    parts = spelled(token_text(tokenizer()), value)
    assert "".join(part for part, _ in parts) == value
    names = tokenizer().added_tokens
    assert all((part in names) == spells for part, spells in parts if spells)
    assert not any(name in part for part, spells in parts if not spells for name in names)


# Questions


def test_a_conversation_is_shown_whole(cli, made, table):
    for source_row in (61, 60, 4):
        parts = [
            (row["row"], start, stop)
            for row in table
            for start, stop, s in zip(row["doc_starts"], [*row["doc_starts"][1:], 64], row["doc_rows"], strict=True)
            if s == source_row
        ]
        shown = cli("inspect", made / "rows", "--doc", source_row, "--json").json
        assert [(m["row"], m["start"], m["stop"]) for m in shown["matches"]] == parts
        assert {d["source_row"] for d in shown["documents"]} == {source_row}
        out = cli("inspect", made / "rows", "--doc", source_row).out
        assert out.count(f"── source row {source_row}") == min(len({row for row, *_ in parts}), 16)
    assert "places" not in out
    assert "the first 16 are shown" in cli("inspect", made / "rows", "--doc", 61).out


def test_a_conversation_that_is_not_there(cli, made):
    assert "source row from 0 to 61" in cli("inspect", made / "rows", "--doc", 62).error(2, "usage")["expected"]


@pytest.mark.parametrize("wanted", ["alpha", "<｜User｜>", "日本語", "one two one", "don't", "\u202e"])
def test_text_is_found_where_it_is(cli, made, table, wanted):
    places = []
    decode = tokenizer().full_vocabulary.decode
    for row in table:
        text, at = decode(row["input_ids"]), -1
        for _ in range(text.count(wanted)):
            at = text.index(wanted, at + 1 if at < 0 else at)
            before = next(t for t in range(65) if len(decode(row["input_ids"][:t])) > at) - 1
            places.append((row["row"], before))
            at += len(wanted)
    found = cli("inspect", made / "rows", "--find", wanted, "--json").json["matches"]
    assert [(m["row"], m["start"]) for m in found] == places[:20] and places
    for match in found:
        ids = table[match["row"]]["input_ids"][match["start"] : match["stop"]]
        assert wanted in decode(ids) and wanted not in decode(ids[1:]) + "\0" + decode(ids[:-1])
    shown = cli("inspect", made / "rows", "--find", wanted)
    assert shown.code == 0 and f"row {places[0][0]} of" in shown.out


def test_text_that_is_not_there(cli, made):
    assert "no row holds" in cli("inspect", made / "rows", "--find", "no such words").error(2, "usage")["what"]
    assert "looks for nothing" in cli("inspect", made / "rows", "--find", "").error(2, "usage")["what"]


def test_the_most_unusual_rows(cli, made, table):
    def asked(what):
        return [m["row"] for m in cli("inspect", made / "rows", "--worst", what, "--json").json["matches"]]

    assert asked("ratio") == [r["row"] for r in sorted(table, key=lambda r: (r["num_targets"], r["row"]))][:20]
    by_docs = sorted(table, key=lambda r: (-len(r["doc_rows"]), r["row"]))
    assert asked("docs") == [r["row"] for r in by_docs][:20]
    tokens, first = {}, {}
    for row in table:
        for start, stop, s in zip(row["doc_starts"], [*row["doc_starts"][1:], 64], row["doc_rows"], strict=True):
            tokens[s] = tokens.get(s, 0) + stop - start
            first.setdefault(s, row["row"])
    assert asked("long") == [first[s] for s in sorted(tokens, key=lambda s: (-tokens[s], s))][:20]
    assert "source row 61" in cli("inspect", made / "rows", "--worst", "long").out.split("\n")[1]


def test_the_survey_adds_up_conversations(made, table):
    of = survey(made / "rows", load_manifest(made / "rows"))
    tokens, rows = {}, {}
    for row in table:
        for start, stop, s in zip(row["doc_starts"], [*row["doc_starts"][1:], 64], row["doc_rows"], strict=True):
            tokens[s] = tokens.get(s, 0) + stop - start
            rows.setdefault(s, set()).add(row["row"])
    found = conversations(of)
    assert found.source_row.tolist() == sorted(tokens)
    assert found.tokens.tolist() == [tokens[s] for s in sorted(tokens)]
    assert found.rows.tolist() == [len(rows[s]) for s in sorted(tokens)]
    assert of.doc_counts.tolist() == [len(row["doc_rows"]) for row in table]
    assert of.num_targets.tolist() == [row["num_targets"] for row in table]


def test_one_question_at_a_time(cli, made):
    for pair in (["--row", 1, "--doc", 2], ["--find", "x", "--worst", "docs"], ["--doc", 1, "--find", "x"]):
        assert "two questions" in cli("inspect", made / "rows", *pair).error(2, "usage")["what"]
    assert cli("inspect", made / "rows", "--worst", "best").code == 2
    assert "--why" in cli("inspect", made / "rows", "--source", made / "source.jsonl").error(2, "usage")["what"]


# Why


def test_why_of_a_build_from_files(cli, made, table):
    row = next(r["row"] for r in table if len(r["doc_rows"]) > 2)
    shown = cli("inspect", made / "rows", "--row", row, "--why", "--source", made / "source.jsonl", "--json").json
    said = np.zeros(64, int)
    for document in shown["documents"]:
        for reason in document["reasons"]:
            said[reason["start"] : reason["stop"]] = reason["trained"]
    assert said.tolist() == table[row]["loss_mask"]
    out = cli("inspect", made / "rows", "--row", row, "--why", "--source", made / "source.jsonl").out
    assert "content is in deepseek_v4" in out and "user_header is not in deepseek_v4" in out


def test_why_without_the_source_says_so_and_shows_the_mask(cli, made):
    ran = cli("inspect", made / "rows", "--row", 7, "--why")
    assert ran.code == 0 and "note: no reasons, the mask alone" in ran.out and "⟦" in ran.out
    assert "--source PATH" in cli("inspect", made / "rows", "--row", 7, "--why", "--json").json["notes"][0]


def test_why_with_another_source_is_refused(cli, made):
    ran = cli("inspect", made / "rows", "--why", "--source", made / "other.jsonl")
    assert "another one" in ran.error(6, "integrity")["what"] and ran.out == ""


def test_why_of_the_demo_needs_nothing(cli, demo_build):
    out = cli("inspect", demo_build.out, "--doc", 3, "--why").out
    assert "message 0, user_header is not in deepseek_v4" in out and "note:" not in out


# Outputs


def test_ids_line_by_line(cli, made, table):
    out = cli("inspect", made / "rows", "--row", 5, "--ids").out
    lines = [line.split() for line in out.split("\n") if re.match(r" +\d+ +\d+ ", line)]
    assert [(int(a), int(b)) for a, b, *_ in lines] == list(enumerate(table[5]["input_ids"]))
    marks = [re.match(r" +\d+ +\d+ (.)", line).group(1) for line in out.split("\n") if re.match(r" +\d+ +\d+ ", line)]
    assert ["+" if flag else " " for flag in table[5]["loss_mask"]] == marks


def test_a_page_says_what_the_terminal_says(cli, made, table, tmp_path):
    number = next(r["row"] for r in table if 60 in r["doc_rows"] and r["doc_starts"][r["doc_rows"].index(60)] < 30)
    ran = cli("inspect", made / "rows", "--row", number, "--html", tmp_path / "row.html")
    assert ran.code == 0 and ran.err == ""
    data = (tmp_path / "row.html").read_text("utf-8")
    page = Page(data)
    page.check_closed()
    assert "<script>alert(1)</script>" in "".join(page.text)
    assert "\x1b" not in data and "\u202e" not in data and "\\x1b[31m" in data
    row, decode = table[number], tokenizer().full_vocabulary.decode
    trained = decode([i for i, flag in zip(row["input_ids"], row["loss_mask"], strict=True) if flag])
    shown = "".join(page.marked).removeprefix("Trained text")
    assert shown == "".join(
        c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in trained
    )


def test_pages_with_ids_and_reasons(cli, made, tmp_path):
    options = ["--row", 3, "--ids", "--why", "--source", made / "source.jsonl"]
    assert cli("inspect", made / "rows", *options, "--html", tmp_path / "a.html").code == 0
    page = Page((tmp_path / "a.html").read_text("utf-8"))
    assert sum(tag == "tr" for tag, _ in page.tags) >= 65 and "is in deepseek_v4" in "".join(page.text)
    assert cli("inspect", made / "rows", *options, "--html", tmp_path / "b.html").code == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_page_never_replaces_what_is_not_a_page(cli, made, tmp_path):
    (tmp_path / "mine.html").write_text("my own page")
    assert cli("inspect", made / "rows", "--html", tmp_path / "mine.html").error(5, "output")
    assert (tmp_path / "mine.html").read_text() == "my own page"
    assert cli("inspect", made / "rows", "--html", made / "rows" / "x.html").error(5, "output")
    assert cli("inspect", made / "rows", "--html", tmp_path / "no" / "x.html").error(5, "output")
    assert cli("inspect", made / "rows", "--html", tmp_path).error(5, "output")
    assert cli("verify", made / "rows", "--level", 1).code == 0
    for _ in range(2):  # our own page is replaced
        assert cli("inspect", made / "rows", "--html", tmp_path / "ours.html").code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["mine.html", "ours.html"]
    assert cli("inspect", made / "rows", "--html", tmp_path / "ours.html", "--json").error(2, "usage")


@pytest.mark.parametrize("options", [["--why"], ["--ids"], ["--doc", "60"], ["--find", "quotes"], ["--worst", "docs"]])
def test_terminals_of_every_kind(cli, made, monkeypatch, options):
    options = [*options, *(["--source", made / "source.jsonl"] if "--why" in options else [])]
    for terminal in (
        {},
        {"FORCE_COLOR": "1", "COLUMNS": "20"},
        {"FORCE_COLOR": "1", "NO_COLOR": "1"},
        {"TERM": "dumb"},
    ):
        with monkeypatch.context() as patch:
            for name in ("FORCE_COLOR", "NO_COLOR"):
                patch.delenv(name, raising=False)
            for name, value in terminal.items():
                patch.setenv(name, value)
            ran = cli("inspect", made / "rows", *options)
        assert ran.code == 0 and ran.err == "" and "Traceback" not in ran.out
        assert "\x1b[31m" not in ran.out.replace("\x1b[1;31m", "") and "\u202e" not in ran.out
        if "FORCE_COLOR" not in terminal:
            assert "\x1b" not in ran.out


def test_text_that_spells_a_special_token_is_told_apart(cli, made, table, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    out = cli("inspect", made / "rows", "--doc", 60).out
    assert "⟪<｜User｜>⟫" in out and "only spells a special token" in out
    assert re.search(r"(?<!⟪)<｜User｜>", out)


def test_a_pipe_that_is_not_utf_8(made):
    code = "import sys; from databuild.cli import main; main(sys.argv[1:])"
    ran = subprocess.run(
        [sys.executable, "-c", code, "inspect", str(made / "rows"), "--find", "quotes", "--ids"],
        capture_output=True,
        timeout=60,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert ran.returncode == 0 and ran.stderr == b"" and ran.stdout.isascii() and b"\\uff5c" in ran.stdout


def test_json_is_one_object(cli, made):
    for options in (["--doc", 3], ["--find", "alpha"], ["--worst", "long"], []):
        assert json.loads(cli("inspect", made / "rows", *options, "--json").out)["name"] == "test"
