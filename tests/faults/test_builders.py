"""Builders that meet each other, a full disk, a thread that dies, and sources at the edge of what a source can be."""

import fcntl
import os
from pathlib import Path

import pytest
from fault_support import children, content
from support import build_files, records, tree, write_jsonl

from databuild import build as building
from databuild import journal, rows
from databuild.errors import BusyError, SourceError
from databuild.outdir import PartialDir
from databuild.sources.spool import Spool
from databuild.verify import verify

pytestmark = pytest.mark.usefixtures("shared_tokenizer", "shared_order")


def arguments(source, *more):
    return ["fixed", "--source", str(source), "--row-tokens", "64", "--out", "rows", "--quiet", *more]


def test_builders_that_start_at_once_make_one_build(tmp_path):
    source = write_jsonl(tmp_path / "s.jsonl", records(120))
    (tmp_path / "alone").mkdir()
    jobs = [{"args": arguments(source), "folder": str(tmp_path / "alone"), "race": 1}]
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        jobs.append({"args": arguments(source), "folder": str(tmp_path / str(number)), "race": 4})
    (alone,), *races = children(*jobs)
    assert alone["status"] == 0
    for number, results in enumerate(races):
        statuses = [result["status"] for result in results]
        assert 0 in statuses and set(statuses) <= {0, 75}, results
        for result in results:
            assert "Traceback" not in result["stderr"]
            if result["status"] == 75:
                assert "another build holds the directory" in result["stderr"] and "process " in result["stderr"]
        assert os.listdir(tmp_path / str(number)) == ["rows"]
        assert content(tmp_path / str(number) / "rows") == content(tmp_path / "alone" / "rows")
    assert any(75 in [result["status"] for result in results] for results in races), "they never met"


def test_who_loses_the_race_does_not_take_the_directory_along(tmp_path, monkeypatch):
    """One makes DIR.partial, another locks it first and has not written to it yet."""
    winners, real = [], os.open

    def opening(path, flags, *more, **names):
        if not winners and str(path).endswith(".partial"):
            winners.append(real(path, flags))
            fcntl.flock(winners[0], fcntl.LOCK_EX)
        return real(path, flags, *more, **names)

    monkeypatch.setattr(os, "open", opening)
    with pytest.raises(BusyError), PartialDir(tmp_path / "rows"):
        pass
    os.close(winners[0])
    assert os.listdir(tmp_path) == ["rows.partial"]
    with PartialDir(tmp_path / "rows"):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("when", ["before the lock", "after the end"])
def test_who_fails_takes_only_its_own_parents_along(tmp_path, monkeypatch, when):
    """A builder that fails removes the parents that it made, just when another wants to use them."""
    out = tmp_path / "a" / "b" / "rows"
    if when == "after the end":
        with pytest.raises(ZeroDivisionError), PartialDir(out):
            raise ZeroDivisionError
        assert os.listdir(tmp_path) == []
        return
    out.parent.mkdir(parents=True)
    real, gone = Path.mkdir, []

    def mkdir(path, *more, **names):
        if path.name == "rows.partial" and not gone:
            gone.append([os.rmdir(out.parent), os.rmdir(tmp_path / "a")])
        return real(path, *more, **names)

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with PartialDir(out) as place:
        assert (place.path / "holder.json").exists()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("step", ["open state-0.npz", "open log.jsonl", "mkdir journal"])
def test_a_disk_that_is_full_at_the_journal_leaves_nothing(tmp_path, step):
    source = write_jsonl(tmp_path / "s.jsonl", records(60))
    folder = tmp_path / "x"
    folder.mkdir()
    job = {"args": arguments(source, "--batch-conversations", "4"), "folder": str(folder), "limit": [9, step]}
    ((result,),) = children(job)
    assert result["status"] == 5 and "Traceback" not in result["stderr"], result
    assert "rows.partial" in result["stderr"]
    assert tree(folder) == {}


class PanicError(BaseException):
    """What a panic of Rust is in Python: no Exception."""


def dying(owner, name, error, at):
    real, calls = getattr(owner, name), []

    def call(*args, **kwargs):
        calls.append(name)
        if len(calls) >= at:
            raise error
        return real(*args, **kwargs)

    return call


THREADS = {
    "reader": (Spool, "take"),
    "writer": (rows.RowWriter, "_write_group"),
    "journal": (journal.Journal, "_commit"),
}


@pytest.mark.parametrize("error", [PanicError("a panic"), MemoryError(), RuntimeError("died"), SystemExit(3)], ids=repr)
@pytest.mark.parametrize("thread", THREADS)
def test_a_thread_that_dies_takes_the_build_with_it(tmp_path, monkeypatch, thread, error):
    source = write_jsonl(tmp_path / "s.jsonl", records(200))
    monkeypatch.setattr(journal, "FIRST_SECONDS", 0.0)
    monkeypatch.setattr(journal, "COMMIT_SECONDS", 0.0)
    owner, name = THREADS[thread]
    monkeypatch.setattr(owner, name, dying(owner, name, error, 2))
    monkeypatch.setattr(rows, "ROWS_PER_GROUP", 8)
    with pytest.raises(type(error)):
        build_files(tmp_path / "rows", [source], batch_conversations=8)
    assert not (tmp_path / "rows").exists(), "a part of a build has the name of a whole one"
    monkeypatch.undo()
    left = tmp_path / "rows.partial"
    assert not left.exists() or (left / "journal").is_dir()


@pytest.mark.parametrize("name", ["load", "encode"])
def test_an_engine_that_dies_takes_the_build_with_it(tmp_path, monkeypatch, name):
    source = write_jsonl(tmp_path / "s.jsonl", records(50))
    owner, method = {"load": (building, "_engines"), "encode": (building.Encoder, "encode")}[name]
    monkeypatch.setattr(owner, method, dying(owner, method, PanicError("a panic"), 1))
    with pytest.raises(PanicError):
        build_files(tmp_path / "rows", [source])
    assert os.listdir(tmp_path) == ["s.jsonl"]


def test_a_panic_is_told_without_a_traceback(cli, tmp_path, monkeypatch):
    source = write_jsonl(tmp_path / "s.jsonl", records(50))
    monkeypatch.setattr(building.Encoder, "encode", dying(building.Encoder, "encode", PanicError("it broke"), 1))
    ran = cli("fixed", "--source", source, "--out", tmp_path / "rows", "--quiet")
    assert ran.code == 1 and "unexpected PanicError: it broke" in ran.err and "Traceback" not in ran.err


# Sources at the edge


def conversation(words):
    return {"messages": [{"role": "user", "content": "count"}, {"role": "assistant", "content": "one two " * words}]}


def test_one_conversation_is_a_build(tmp_path):
    result = build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", [conversation(20)])], row_tokens=16)
    assert result.manifest.rows.rows == 2 and result.manifest.counts.conversations == 1
    verify(tmp_path / "rows", level=4, paths=[str(tmp_path / "s.jsonl")])


@pytest.mark.parametrize("case", ["nothing is left", "nothing to train", "less than a row"])
def test_no_row_is_an_error_that_says_why(tmp_path, case):
    lines = {
        "nothing is left": [{"messages": []}, {"messages": None}],
        "nothing to train": [{"messages": [{"role": "user", "content": "a " * 100}]}] * 3,
        "less than a row": [conversation(1)],
    }[case]
    with pytest.raises(SourceError, match="the source gives no row") as caught:
        build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", lines)])
    assert "conversations read" in caught.value.found and caught.value.next_step
    assert os.listdir(tmp_path) == ["s.jsonl"]


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_conversation_of_a_row_and_one_token_more_or_less(tmp_path, more):
    whole = build_files(tmp_path / "probe", [write_jsonl(tmp_path / "p.jsonl", [conversation(20)])], row_tokens=2)
    tokens = whole.manifest.counts.tokens
    source = write_jsonl(tmp_path / "s.jsonl", [conversation(20)] * 2)
    result = build_files(tmp_path / "rows", [source], row_tokens=tokens + more)
    counts = result.manifest.counts
    assert counts.tokens == 2 * tokens and counts.rows_cut == (1 if more > 0 else 2)
    assert counts.noted.get("longer_than_row", 0) == (2 if more < 0 else 0)
    assert counts.tail_tokens == 2 * tokens - counts.rows_cut * (tokens + more)


def test_a_conversation_of_millions_of_tokens(tmp_path):
    source = write_jsonl(tmp_path / "s.jsonl", [conversation(1_000_000)])
    result = build_files(tmp_path / "rows", [source], row_tokens=8192)
    counts = result.manifest.counts
    assert counts.tokens > 2_000_000 and counts.rows_cut == counts.tokens // 8192 == result.manifest.rows.rows
    assert counts.noted == {"longer_than_row": 1}
    assert Path(tmp_path, "rows", "rows.parquet").stat().st_size < 2_000_000
