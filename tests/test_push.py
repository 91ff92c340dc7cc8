"""`databuild push`: what is uploaded is the build, proven before and after, and nothing that is there is lost. On 127.0.0.1."""

import functools
import hashlib
import json
import shutil
import socket
from pathlib import Path

import pytest
from hub_server import HubServer
from hypothesis import given
from hypothesis import strategies as st
from support import build_files, records, tree, use_shared_tokenizer, write_jsonl

import databuild
from databuild import build as building
from databuild import verify as verifying
from databuild.errors import IntegrityError, OutputError, UsageError
from databuild.rows import RowWriter
from databuild.share.card import card
from databuild.share.folder import FolderFile, dataset_files
from databuild.share.push import compare, push
from databuild.sources import hub_client
from databuild.sources.hub_client import ListedFile

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # huggingface_hub's own

NAME = "acme/rows"
FILES = ["README.md", "croissant.json", "rows/manifest.json", "rows/rows.parquet"]


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """Two builds of other rows, one build in three files."""
    folder = tmp_path_factory.mktemp("builds")
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        patch.setattr("databuild.build.check_permutation", lambda *, full: None)
        source = write_jsonl(folder / "s.jsonl", records(200))
        build_files(folder / "one", [source], row_tokens=40, rows=20)
        build_files(folder / "other", [source], row_tokens=40, rows=21)
        patch.setattr(building, "RowWriter", functools.partial(RowWriter, rows_per_shard=128))
        patch.setattr(verifying, "ROWS_PER_SHARD", 128)
        build_files(folder / "many", [source], row_tokens=40)
        yield folder


@pytest.fixture(autouse=True)
def bench(monkeypatch, tmp_path, shared_tokenizer):
    """A hub that can be written to, no cache, and no waits."""
    from huggingface_hub import constants

    with HubServer() as hub:
        hub.waits = []
        monkeypatch.setenv("HF_TOKEN", hub.token)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True, raising=False)
        monkeypatch.setattr(hub_client, "endpoint", lambda: hub.url)
        monkeypatch.setattr(hub_client, "cache_dir", lambda: tmp_path / "cache")
        monkeypatch.setattr(hub_client, "is_offline", lambda: False)
        monkeypatch.setattr(hub_client, "sleep", hub.waits.append)
        yield hub


def on(hub, branch="main", name=NAME):
    """path -> bytes of a branch."""
    return {path: file.data for path, file in hub.commits[name, hub.refs[name, branch]].items()}


def writes(hub):
    """Requests that change something."""
    return [
        seen.where
        for seen in hub.requests
        if seen.where in ("create", "branch", "store", "commit") and seen.status == 200
    ]


def refused(kind, *arguments, **options):
    """The error of a push; checks that it says what to do and keeps secrets."""
    with pytest.raises(kind) as caught:
        push(*arguments, **options)
    text = str(caught.value)
    assert "hf_writer" not in text and "secret" not in text and caught.value.next_step, text
    return text


# What arrives


def test_a_push_makes_the_dataset_and_every_byte_arrives_once(bench, builds):
    before = tree(builds)
    result = push(builds / "one", NAME)
    assert writes(bench) == ["create", "store", "commit"]
    arrived = on(bench)
    assert set(arrived) == {".gitattributes", *FILES}
    for name in ("manifest.json", "rows.parquet"):
        assert arrived[f"rows/{name}"] == (builds / "one" / name).read_bytes()
    manifest = verifying.load_manifest(builds / "one")
    assert arrived["README.md"] == card(manifest, repo=NAME)
    assert result["commit"] == bench.refs[NAME, "main"] and result["commit"] in result["url"]
    assert (result["uploaded"], result["deleted"], result["private"]) == (FILES, [], False)
    assert {f["path"]: f["sha256"] for f in result["files"]} == {
        path: hashlib.sha256(arrived[path]).hexdigest() for path in FILES
    }
    assert tree(builds) == before, "a build stays what it is"


@pytest.mark.parametrize("name", ["one", "many"])
def test_a_downloaded_copy_verifies_and_loads(bench, builds, tmp_path, name):
    from huggingface_hub import snapshot_download

    push(builds / name, NAME)
    options = {"repo_type": "dataset", "endpoint": bench.url, "cache_dir": tmp_path / "cache"}
    copy = Path(snapshot_download(NAME, local_dir=tmp_path / "copy", **options))
    assert verifying.verify(copy / "rows", level=2)["rows_sha256"] == databuild.load(builds / name).rows_sha256
    cached = Path(snapshot_download(NAME, **options))
    assert (cached / "rows" / "manifest.json").is_symlink()
    first = databuild.load(builds / name).read_all()
    for folder in (copy, cached):
        assert (databuild.load(folder / "rows").read_all().input_ids == first.input_ids).all()


def test_the_same_push_again_sends_nothing(bench, builds):
    first = push(builds / "one", NAME)
    bench.requests.clear()
    again = push(builds / "one", NAME)
    assert writes(bench) == [] and again["uploaded"] == []
    assert again["commit"] == first["commit"]


def test_a_branch_is_made_and_main_stays(bench, builds):
    push(builds / "one", NAME)
    main = on(bench)
    push(builds / "other", NAME, branch="v2/x", overwrite=True)
    assert on(bench) == main
    assert on(bench, "v2/x")["rows/manifest.json"] == (builds / "other" / "manifest.json").read_bytes()


def test_environment_json_goes_only_when_it_is_asked_for(bench, builds):
    push(builds / "one", NAME, environment=True)
    assert on(bench)["rows/environment.json"] == (builds / "one" / "environment.json").read_bytes()
    push(builds / "one", NAME)  # what is there of the same build stays
    assert "rows/environment.json" in on(bench)
    push(builds / "other", NAME, overwrite=True)
    assert "rows/environment.json" not in on(bench)


def test_a_private_dataset_is_private_from_the_start(bench, builds):
    assert push(builds / "one", NAME, private=True)["private"]
    assert NAME in bench.private
    bench.commit("acme/public", {".gitattributes": b""})
    bench.requests.clear()
    assert "is public" in refused(OutputError, builds / "one", "acme/public", private=True)
    assert writes(bench) == []


def test_a_dry_run_asks_the_hub_nothing(bench, builds, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    result = push(builds / "one", NAME, dry_run=True)
    assert bench.requests == [] and [file["path"] for file in result["files"]] == FILES
    assert result["bytes"] == sum(file["bytes"] for file in result["files"])


# What is there already


def test_what_is_there_is_changed_only_with_overwrite(bench, builds):
    push(builds / "many", NAME)
    old = bench.refs[NAME, "main"]
    bench.requests.clear()
    text = refused(OutputError, builds / "one", NAME)
    assert "--overwrite" in text and "rows/manifest.json" in text and old in text
    assert writes(bench) == [] and bench.refs[NAME, "main"] == old
    result = push(builds / "one", NAME, overwrite=True)
    assert result["deleted"] == [f"rows/rows-0000{i}-of-00003.parquet" for i in range(3)]
    assert set(on(bench)) == {".gitattributes", *FILES}
    assert len(bench.commits[NAME, old]) == 7, "the history keeps what was there"


def test_other_files_stay_and_a_card_of_someone_is_not_replaced(bench, builds):
    bench.commit(NAME, {"README.md": b"my own", "notes/a.txt": b"x", "data/train.parquet": b"PAR1"})
    assert "README.md" in refused(OutputError, builds / "one", NAME)
    push(builds / "one", NAME, overwrite=True)
    assert on(bench)["notes/a.txt"] == b"x" and on(bench)["data/train.parquet"] == b"PAR1"
    assert on(bench)["README.md"].startswith(b"---\n")


def test_a_file_in_rows_that_no_build_has_is_never_removed(bench, builds):
    bench.commit(NAME, {"rows/my.txt": b"x"})
    for overwrite in (False, True):
        assert "rows/my.txt" in refused(OutputError, builds / "one", NAME, overwrite=overwrite)
    assert on(bench) == {"rows/my.txt": b"x"}


def test_a_branch_that_moves_meanwhile_is_not_overwritten(bench, builds, monkeypatch):
    bench.commit(NAME, {".gitattributes": b""})
    from databuild.share import push as pushing

    real = pushing._commit

    def commit(*arguments):
        bench.commit(NAME, {"README.md": b"theirs"})
        return real(*arguments)

    monkeypatch.setattr(pushing, "_commit", commit)
    assert "moved" in refused(OutputError, builds / "one", NAME)
    assert on(bench) == {"README.md": b"theirs"}


contents = st.binary(max_size=6)


@given(
    st.dictionaries(st.sampled_from(FILES), contents),
    st.dictionaries(st.sampled_from([*FILES, "rows/rows-00000-of-00002.parquet", "x"]), contents),
)
def test_after_the_changes_the_folder_is_there_and_nothing_else_in_rows(mine, there):
    sha256 = lambda data: hashlib.sha256(data).hexdigest()  # noqa: E731
    files = [FolderFile(path=p, content=d, bytes=len(d), sha256=sha256(d)) for p, d in mine.items()]
    git = {file.path: file.git_sha1() for file in files}

    def listed(path, data):
        if path.endswith(".parquet"):
            return ListedFile(name=path, bytes=len(data), sha256=sha256(data))
        sha1 = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        return ListedFile(name=path, bytes=len(data), git_sha1=sha1)

    changes = compare(files, {path: listed(path, data) for path, data in there.items()})
    after = {path: data for path, data in there.items() if path not in changes.delete}
    after |= {file.path: file.content for file in changes.add}
    assert {p: d for p, d in after.items() if p in mine or p.startswith("rows/")} == mine
    assert {p: d for p, d in there.items() if p not in after or after[p] != d}.keys() == set(changes.replaced)
    assert all(there.get(file.path) != file.content for file in changes.add) and len(git) == len(mine)


# What is refused, and what fails


def test_a_damaged_build_is_not_sent(bench, builds, tmp_path):
    shutil.copytree(builds / "one", tmp_path / "copy")
    data = bytearray((tmp_path / "copy" / "rows.parquet").read_bytes())
    data[500] ^= 1
    (tmp_path / "copy" / "rows.parquet").write_bytes(bytes(data))
    refused(IntegrityError, tmp_path / "copy", NAME)
    assert bench.requests == []


def test_what_the_hub_did_not_receive_right_is_said(bench, builds):
    bench.fail("store", lie=True)
    text = refused(IntegrityError, builds / "one", NAME)
    assert "rows/rows.parquet" in text and "another file" in text
    sha256 = hashlib.sha256((builds / "one" / "rows.parquet").read_bytes()).hexdigest()
    assert sha256 in text


def test_no_token(bench, builds, monkeypatch):
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    assert "HF_TOKEN" in refused(OutputError, builds / "one", NAME)
    assert bench.requests == []


def test_a_token_that_the_hub_does_not_know(bench, builds, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnop")
    for name in (NAME, "acme/there"):
        bench.commit("acme/there", {".gitattributes": b""})
        text = refused(OutputError, builds / "one", name)
        assert "does not know this token" in text and "hf_abc" not in text
    assert writes(bench) == [] and bench.waits == []


@pytest.mark.parametrize("where", ["create", "preupload", "lfs", "store", "commit"])
def test_a_token_that_may_not_write(bench, builds, where):
    bench.fail(where, status=403, times=None)
    assert f"may not write to {NAME}" in refused(OutputError, builds / "one", NAME)
    assert "commit" not in writes(bench) and bench.waits == []


def test_a_hub_that_is_off_or_cannot_be_reached(bench, builds, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(hub_client, "endpoint", lambda: nobody)
    assert "cannot be reached" in refused(OutputError, builds / "one", NAME)
    monkeypatch.setattr(hub_client, "is_offline", lambda: True)
    assert "HF_HUB_OFFLINE" in refused(OutputError, builds / "one", NAME)
    assert bench.requests == []


def test_a_hub_without_xet_storage_says_how_to_do_without(bench, builds, monkeypatch):
    pytest.importorskip("hf_xet")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False, raising=False)
    assert "HF_HUB_DISABLE_XET=1" in refused(OutputError, builds / "one", NAME)
    assert "commit" not in writes(bench)


@pytest.mark.parametrize("where", ["info", "create", "yaml", "preupload", "lfs", "store", "commit"])
@pytest.mark.parametrize(("status", "headers"), [(429, {"Retry-After": "7"}), (503, {})])
def test_what_fails_in_passing_is_tried_again(bench, builds, where, status, headers):
    bench.fail(where, status=status, headers=headers)
    push(builds / "one", NAME)
    assert bench.waits == ([7.0] if headers else [1.0])
    assert writes(bench).count("commit") == writes(bench).count("create") == 1


def test_an_answer_that_is_lost_after_the_commit_makes_no_second_one(bench, builds):
    bench.fail("commit", status=504, after=True)
    result = push(builds / "one", NAME)
    assert bench.count("commit") == 1 and result["commit"] == bench.refs[NAME, "main"]
    assert result["uploaded"] == FILES


def test_a_hub_that_stays_busy_ends_with_a_message(bench, builds):
    bench.fail("commit", status=429, headers={"Retry-After": "20"}, times=None)
    text = refused(OutputError, builds / "one", NAME)
    assert "limits our requests" in text and "wait 20 s" in text and bench.waits == [20.0] * 3
    bench.faults.clear()
    bench.fail("preupload", status=429, headers={"Retry-After": "3600"}, times=None)
    bench.waits.clear()
    assert "wait 3600 s" in refused(OutputError, builds / "one", NAME) and bench.waits == []


@pytest.mark.parametrize("branch", ["", "refs/pr/1", "a b", "../x", "x..y", "-x", "a/"])
def test_what_is_no_branch(bench, builds, branch):
    with pytest.raises(UsageError):
        push(builds / "one", NAME, branch=branch)
    assert bench.requests == []


# The command


def test_the_command(bench, builds, cli, tmp_path):
    dry = cli("push", builds / "one", NAME, "--dry-run")
    assert dry.code == 0 and "nothing was sent" in dry.out and all(path in dry.out for path in FILES)
    ran = cli("push", builds / "one", NAME, "--private", "--json")
    assert ran.code == 0 and ran.err == ""
    assert (ran.json["repo"], ran.json["branch"], ran.json["private"], ran.json["dry_run"]) == (
        NAME,
        "main",
        True,
        False,
    )
    again = cli("push", builds / "one", f"hf:{NAME}", "--revision", "main")
    assert again.code == 0 and "nothing was sent" in again.out and ran.json["rows_sha256"] in again.out
    assert "rows/manifest.json" in cli("push", builds / "other", NAME, "--quiet").error(5, "output")["found"]
    other = cli("push", builds / "other", NAME, "--overwrite", "--branch", "b")
    assert other.code == 0 and "files sent" in other.out and "level 2" in other.err
    cli("push", builds / "one", "rows").error(2, "usage")
    cli("push", tmp_path, NAME).error(3, "source")
    (tmp_path / "copy").mkdir()
    for path in (builds / "one").iterdir():
        shutil.copy(path, tmp_path / "copy")
    (tmp_path / "copy" / "manifest.json").write_text(json.dumps({}))
    cli("push", tmp_path / "copy", NAME).error(6, "integrity")


def test_card_and_push_give_the_same_files(bench, builds):
    push(builds / "one", NAME, environment=True)
    _, files = dataset_files(builds / "one", repo=NAME, environment=True)
    arrived = on(bench)
    assert set(arrived) - {".gitattributes"} == {file.path for file in files}
    for file in files:
        assert arrived[file.path] == (file.content if isinstance(file.content, bytes) else file.content.read_bytes())
