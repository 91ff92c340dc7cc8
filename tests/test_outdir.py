"""Where a build is written: DIR is a whole build or is not there, whatever happens, and nothing foreign is touched."""

import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from support import records, tree, write_jsonl

from databuild import build, outdir
from databuild.errors import BusyError, OutputError
from databuild.outdir import PartialDir
from databuild.verify import verify

pytestmark = pytest.mark.usefixtures("shared_tokenizer")

BUILD_FILES = ["environment.json", "manifest.json", "rows.parquet"]
CRASHES = Path(__file__).with_name("crashes.py")


@pytest.fixture(scope="module")
def jsonl(tmp_path_factory):
    return write_jsonl(tmp_path_factory.mktemp("source") / "source.jsonl", records(12))


@pytest.fixture
def fixed(cli, jsonl, tmp_path, shared_order):
    """Builds into tmp_path/rows."""

    def call(*arguments, row_tokens=32, out=tmp_path / "rows", source=jsonl):
        return cli("fixed", "--source", source, "--row-tokens", row_tokens, "--quiet", "--out", out, *arguments)

    return call


def content(folder):
    """What decides whether two builds are the same: all but the environment and the modes."""
    return {name: entry[2] for name, entry in tree(folder).items() if name != "environment.json"}


def test_dir_is_a_whole_build_and_nothing_else_is_left(fixed, tmp_path):
    assert fixed().code == 0
    assert sorted(tree(tmp_path)) == ["rows", *(f"rows/{name}" for name in BUILD_FILES)]
    verify(tmp_path / "rows")


def test_an_empty_directory_is_filled_and_missing_parents_are_made(fixed, tmp_path):
    (tmp_path / "rows").mkdir()
    assert fixed().code == 0
    assert fixed(out=tmp_path / "a" / "b" / "rows").code == 0
    assert content(tmp_path / "rows") == content(tmp_path / "a" / "b" / "rows")


def test_parents_that_a_failed_build_made_are_gone(fixed, tmp_path):
    assert fixed(out=tmp_path / "a" / "b" / "rows", source=tmp_path / "none.jsonl").code == 3
    assert tree(tmp_path) == {}


# What is not ours


def a_file(path):
    path.write_bytes(b"mine")


def a_link_to_a_directory(path):
    (path.parent / "elsewhere").mkdir()
    (path.parent / "elsewhere" / "manifest.json").write_text("{}")
    path.symlink_to("elsewhere")


def a_link_to_nothing(path):
    path.symlink_to("nowhere")


def a_directory_of_other_files(path):
    path.mkdir()
    (path / "thesis.tex").write_bytes(b"mine")


def rows_that_are_a_link(path):
    (path.parent / "rows of mine").write_bytes(b"mine")
    path.mkdir()
    (path / "manifest.json").write_text("{}")
    (path / "rows.parquet").symlink_to("../rows of mine")


def rows_that_are_a_directory(path):
    (path / "rows.parquet").mkdir(parents=True)
    (path / "rows.parquet" / "mine").write_bytes(b"mine")
    (path / "manifest.json").write_text("{}")


def a_build_and_more(path):
    path.mkdir()
    for name in (*BUILD_FILES, "notes.txt"):
        (path / name).write_bytes(b"mine")


FOREIGN = [
    a_file,
    a_link_to_a_directory,
    a_link_to_nothing,
    a_directory_of_other_files,
    rows_that_are_a_link,
    rows_that_are_a_directory,
    a_build_and_more,
]


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "overwrite"])
@pytest.mark.parametrize("name", ["rows", "rows.partial", "rows.partial.replaced"])
@pytest.mark.parametrize("make", FOREIGN)
def test_what_is_not_ours_is_refused_and_stays(fixed, tmp_path, make, name, overwrite):
    make(tmp_path / name)
    before = tree(tmp_path)
    block = fixed(*overwrite, source="/nonexistent.jsonl").error(5, "output")
    assert block["where"] == str(tmp_path / name)
    assert tree(tmp_path) == before


def test_rows_without_a_manifest_are_no_build(fixed, tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "rows.parquet").write_bytes(b"mine")
    before = tree(tmp_path)
    assert "never replaced" in fixed("--overwrite").error(5, "output")["what"]
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", [".", "..", "a/..", "rows.partial"])
def test_a_name_that_is_no_name(fixed, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    assert "names no directory of its own" in fixed(out=name).error(5, "output")["what"]
    assert tree(tmp_path) == {}


def test_a_name_that_is_too_long(fixed, tmp_path):
    assert fixed(out=tmp_path / ("x" * 300)).error(5, "output")["what"] == "cannot write"
    assert tree(tmp_path) == {}


def test_a_file_as_parent_is_refused_before_work_starts(fixed, tmp_path):
    (tmp_path / "file").write_bytes(b"mine")
    for out in (tmp_path / "file" / "rows", tmp_path / "file" / "a" / "rows"):
        assert "file" in fixed(out=out, source="/nonexistent.jsonl").error(5, "output")["where"]
    assert list(tree(tmp_path)) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_parent_that_cannot_be_written_is_refused_before_work_starts(fixed, tmp_path):
    (tmp_path / "locked").mkdir(mode=0o500)
    block = fixed(out=tmp_path / "locked" / "rows", source="/nonexistent.jsonl").error(5, "output")
    assert str(tmp_path / "locked") in block["where"]


# A build that is there already


def test_the_same_build_again_says_so_and_touches_nothing(fixed, tmp_path):
    fixed()
    before = tree(tmp_path), (tmp_path / "rows" / "rows.parquet").stat().st_mtime_ns
    again = fixed()
    assert again.code == 0 and "holds this build already" in again.out
    assert fixed("--json").json["existing"] is True
    assert fixed("--overwrite").code == 0
    assert before == (tree(tmp_path), (tmp_path / "rows" / "rows.parquet").stat().st_mtime_ns)


def test_the_same_build_again_finds_damage(fixed, tmp_path):
    fixed()
    whole = content(tmp_path / "rows")
    data = bytearray(whole["rows.parquet"])
    data[len(data) // 2] ^= 1
    (tmp_path / "rows" / "rows.parquet").write_bytes(data)
    before = tree(tmp_path)
    block = fixed().error(6, "integrity")
    assert block["where"] == "rows.parquet" and "--overwrite" in block["next"]
    assert tree(tmp_path) == before
    assert fixed("--overwrite").code == 0
    assert content(tmp_path / "rows") == whole


def test_a_damaged_manifest_is_replaced_with_overwrite_only(fixed, tmp_path):
    fixed()
    whole = content(tmp_path / "rows")
    (tmp_path / "rows" / "manifest.json").write_bytes(whole["manifest.json"][:-9])
    before = tree(tmp_path)
    assert "--overwrite" in fixed().error(5, "output")["next"]
    assert tree(tmp_path) == before
    assert fixed("--overwrite").code == 0
    assert content(tmp_path / "rows") == whole and os.listdir(tmp_path) == ["rows"]


def test_a_build_of_another_spec_is_refused_before_the_source_is_read(fixed, tmp_path):
    fixed()
    before = tree(tmp_path)
    block = fixed(row_tokens=33, source="/nonexistent.jsonl").error(5, "output")
    assert (block["expected"], block["found"]) == ("row_tokens 33", "row_tokens 32")
    assert tree(tmp_path) == before


def test_a_build_of_another_source_is_refused(fixed, tmp_path):
    fixed()
    before = tree(tmp_path)
    other = write_jsonl(tmp_path.parent / f"{tmp_path.name}-other.jsonl", records(13))
    assert fixed(source=other).error(5, "output")["found"].startswith("sources ")
    assert tree(tmp_path) == before


def test_overwrite_replaces_a_build_of_another_spec(fixed, tmp_path):
    fixed(out=tmp_path / "fresh", row_tokens=48)
    fixed()
    assert fixed("--overwrite", row_tokens=48).code == 0
    assert content(tmp_path / "rows") == content(tmp_path / "fresh")
    assert sorted(os.listdir(tmp_path)) == ["fresh", "rows"]


def fails_at(call, number, error):
    calls = []

    def failing(*args, **kwargs):
        calls.append(args)
        if len(calls) == number:
            raise error
        return call(*args, **kwargs)

    return failing


FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
BROKEN = OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize(
    ("owner", "name", "number", "error", "code"),
    [
        (build, "sha256_file", 1, BROKEN, 5),
        (build.RowWriter, "_write_group", 1, FULL, 5),
        (build.RowWriter, "finish", 1, MemoryError(), 1),
        (os, "fsync", 2, FULL, 5),  # 1 is the holder's
        (os, "fsync", 4, BROKEN, 5),
        (outdir, "sync", 2, OutputError("cannot write"), 5),
        (os, "rename", 2, BROKEN, 5),  # 1 is the shard's
        (os, "rename", 3, BROKEN, 5),  # between the two renames
        (os, "rename", 3, KeyboardInterrupt(), 130),
        (outdir, "_write_new", 3, FULL, 5),
    ],
)
def test_a_failure_near_the_end_leaves_the_old_build(fixed, tmp_path, monkeypatch, owner, name, number, error, code):
    fixed(row_tokens=48)
    before = tree(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fails_at(getattr(owner, name), number, error))
        ran = fixed("--overwrite")
    assert ran.code == code and "Traceback" not in ran.err
    assert tree(tmp_path) == before
    assert fixed("--overwrite").code == 0
    assert os.listdir(tmp_path) == ["rows"]


@pytest.mark.parametrize("make", FOREIGN)
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["", "overwrite"])
def test_what_appears_at_dir_during_the_build_stays(fixed, tmp_path, monkeypatch, make, overwrite):
    real = build.RowWriter.finish
    appeared = {}

    def finish(writer):
        make(tmp_path / "rows")
        appeared.update(tree(tmp_path / "rows"))
        return real(writer)

    monkeypatch.setattr(build.RowWriter, "finish", finish)
    fixed(*overwrite).error(5, "output")
    assert tree(tmp_path / "rows") == appeared and not (tmp_path / "rows.partial").exists()


def test_a_build_that_appears_at_dir_during_the_build_stays(fixed, tmp_path, monkeypatch):
    fixed(row_tokens=48, out=tmp_path / "other")
    real = build.RowWriter.finish
    monkeypatch.setattr(
        build.RowWriter,
        "finish",
        lambda writer: [shutil.copytree(tmp_path / "other", tmp_path / "rows"), real(writer)][1],
    )
    fixed().error(5, "output")
    assert content(tmp_path / "rows") == content(tmp_path / "other")


def test_an_old_build_that_cannot_be_removed_is_named(fixed, tmp_path, monkeypatch):
    fixed(row_tokens=48)
    monkeypatch.setattr(outdir, "_remove_build", fails_at(outdir._remove_build, 1, BROKEN))
    ran = fixed("--overwrite", "--json")
    assert ran.code == 0 and "rows.partial.replaced" in ran.json["warnings"][-1]
    verify(tmp_path / "rows")


def test_what_gets_a_name_is_durable_before(fixed, tmp_path, monkeypatch):
    done = []

    def logged(call, name):
        def logging(*args):
            path = os.readlink(f"/proc/self/fd/{args[0]}") if isinstance(args[0], int) else os.fspath(args[0])
            done.append(f"{name} {os.path.relpath(path, tmp_path)}")
            return call(*args)

        return logging

    for name in ("fsync", "rename"):
        monkeypatch.setattr(os, name, logged(getattr(os, name), name))
    monkeypatch.setattr(outdir, "_write_new", logged(outdir._write_new, "create"))
    assert fixed().code == 0
    assert done == [
        "create rows.partial/holder.json",
        "fsync rows.partial/holder.json",
        "fsync rows.partial/shard-00000.tmp",
        "rename rows.partial/shard-00000.tmp",
        "create rows.partial/environment.json",
        "fsync rows.partial/environment.json",
        "fsync rows.partial",
        "create rows.partial/manifest.json",
        "fsync rows.partial/manifest.json",
        "fsync rows.partial",
        "rename rows.partial",
        "fsync .",
        "fsync .",
    ]


# Two builders


@contextmanager
def another_builder(out):
    """A process that holds the directory."""
    code = (
        "import sys, pathlib\n"
        "from databuild.outdir import PartialDir\n"
        "with PartialDir(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"held\n"
        yield child
    finally:
        child.stdin.close()
        child.stdout.close()
        child.wait()


def test_the_second_builder_is_told_who_holds_the_directory(fixed, tmp_path):
    with another_builder(tmp_path / "rows") as child:
        before = tree(tmp_path)
        block = fixed().error(75, "busy")
        assert block["found"] == f"process {child.pid} on {socket.gethostname()}"
        assert block["where"] == str(tmp_path / "rows.partial")
        assert fixed("--overwrite").code == 75
        assert tree(tmp_path) == before
        child.send_signal(signal.SIGKILL)
    assert (tmp_path / "rows.partial" / "holder.json").exists()
    assert fixed().code == 0
    assert os.listdir(tmp_path) == ["rows"]


def test_a_builder_in_the_same_process(tmp_path):
    with PartialDir(tmp_path / "rows"):
        before = tree(tmp_path)
        with pytest.raises(BusyError, match=f"process {os.getpid()} on"), PartialDir(tmp_path / "rows"):
            pass
        assert tree(tmp_path) == before
    assert tree(tmp_path) == {}


def left_behind(path, **holder):
    path.mkdir()
    (path / "shard-00000.tmp").write_bytes(b"half")
    mine = {"pid": 1, "host": socket.gethostname(), "boot_id": outdir._boot_id()}
    (path / "holder.json").write_text(json.dumps(mine | holder))


def test_a_builder_on_another_host_may_live(fixed, tmp_path):
    left_behind(tmp_path / "rows.partial", pid=4711, host="elsewhere", boot_id="another")
    before = tree(tmp_path)
    block = fixed().error(75, "busy")
    assert block["found"] == "process 4711 on elsewhere" and "remove" in block["next"]
    assert tree(tmp_path) == before


@pytest.mark.parametrize("holder", [{"boot_id": "before the reboot"}, {"pid": 1}, {"host": "a container's"}])
def test_a_builder_of_this_machine_that_lost_its_lock_is_dead(fixed, tmp_path, holder):
    left_behind(tmp_path / "rows.partial", **holder)
    assert fixed().code == 0
    assert os.listdir(tmp_path) == ["rows"]


@pytest.mark.parametrize("text", [b"", b"{", b"[1]", b"\xff", b"[" * 4096, b'{"pid": "x"}'])
def test_a_holder_that_says_nothing(fixed, tmp_path, text):
    left_behind(tmp_path / "rows.partial")
    (tmp_path / "rows.partial" / "holder.json").write_bytes(text)
    ran = fixed()
    if text == b'{"pid": "x"}':
        assert ran.code == 75  # names no host: it may be another one's
    else:
        assert ran.code == 0 and os.listdir(tmp_path) == ["rows"]


def test_where_a_directory_cannot_be_locked_the_holder_decides(fixed, tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    left_behind(tmp_path / "rows.partial", pid=os.getppid())
    assert fixed().error(75, "busy")["found"].startswith(f"process {os.getppid()} on")
    left_behind(tmp_path / "other.partial", pid=2**22 + 1)  # above the highest pid
    ran = fixed("--json", out=tmp_path / "other")
    assert ran.code == 0 and "cannot be locked" in ran.json["warnings"][-1]


def test_the_holder_leaves_between_two_steps_of_the_next(tmp_path, monkeypatch):
    real, left = os.open, []

    def opening(path, *args, **kwargs):
        if not left:
            left.append(os.rmdir(path))  # DIR.partial is gone before it is opened
        elif len(left) == 1:
            descriptor = real(path, *args, **kwargs)
            left.append(os.rename(path, tmp_path / "rows"))  # or has got its name before it is locked
            return descriptor
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", opening)
    with PartialDir(tmp_path / "rows") as place:
        assert (place.path / "holder.json").exists()


# Builders that are stopped


def crash(*jobs):
    ran = subprocess.run(
        [sys.executable, str(CRASHES)], input=json.dumps(jobs), capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def arguments(jsonl, *more):
    return ["fixed", "--source", str(jsonl), "--row-tokens", "32", "--out", "rows", "--quiet", *more]


@pytest.mark.parametrize("old", [False, True], ids=["", "overwrite"])
def test_a_killed_builder_leaves_nothing_half_and_is_taken_over(fixed, jsonl, tmp_path, old):
    fixed(out=tmp_path / "whole")
    job = {
        "args": arguments(jsonl, "--workers", "1", "--overwrite"),
        "signal": "SIGKILL",
        "folder": str(tmp_path / "k"),
    }
    if old:
        fixed(row_tokens=48, out=tmp_path / "template" / "rows")
        job["template"] = str(tmp_path / "template")
    ((*killed, last),) = crash(job)
    assert last["status"] == 0 and all(result["status"] == -signal.SIGKILL for result in killed)
    steps = [result["step"] for result in killed]
    wanted = ["mkdir rows.partial", "add", "_write_group", "rename shard-00000.tmp", "rename rows.partial"]
    assert set(wanted) <= set(steps) and len(steps) > 20
    seen = set()
    new, before = content(tmp_path / "whole"), content(tmp_path / "template" / "rows") if old else None
    for result in killed:
        folder = Path(result["folder"])
        state = content(folder / "rows") if (folder / "rows").exists() else None
        assert state in (before, None, new), result["step"]
        seen.add("new" if state == new else "old" if state else "none")
        assert fixed("--overwrite", out=folder / "rows").code == 0, result["step"]
        assert content(folder / "rows") == new, result["step"]
        assert os.listdir(folder) == ["rows"], result["step"]
    assert seen == ({"old", "none", "new"} if old else {"none", "new"})


@pytest.mark.parametrize(
    ("name", "code", "workers", "old"), [("SIGTERM", 143, 2, False), ("SIGINT", 130, 1, True)], ids=["term", "int"]
)
def test_an_interrupted_builder_leaves_things_as_they_were(fixed, jsonl, tmp_path, name, code, workers, old):
    (tmp_path / "template").mkdir()
    if old:
        fixed(row_tokens=48, out=tmp_path / "template" / "rows")
    fixed(out=tmp_path / "whole")
    ((*stopped, last),) = crash(
        {
            "args": arguments(jsonl, "--workers", str(workers), "--overwrite"),
            "signal": name,
            "folder": str(tmp_path / "k"),
            "template": str(tmp_path / "template"),
            "stride": workers,
        }
    )
    assert last["status"] == 0
    for result in stopped:
        assert result["status"] == code, result
        assert result["stderr"].startswith("databuild: ") and "Traceback" not in result["stderr"]
        folder = Path(result["folder"])
        if tree(folder) != tree(tmp_path / "template"):
            assert content(folder / "rows") == content(tmp_path / "whole"), result["step"]
            assert os.listdir(folder) == ["rows"], result["step"]
            assert result["step"].split()[0] in ("fsync", "unlink", "rmdir"), "after the last rename only"


# Full disks


def assert_full(result, place):
    assert result["status"] == 5, result
    what, *rest = result["stderr"].splitlines()
    assert what.startswith("databuild: output error: ") and "Traceback" not in result["stderr"]
    assert any(line.startswith("  where: ") and place in line for line in rest), result["stderr"]
    assert any(line.startswith("  next: ") for line in rest)


def test_a_file_size_limit_leaves_things_as_they_were(fixed, jsonl, tmp_path):
    fixed(row_tokens=48, out=tmp_path / "template" / "rows")
    before = tree(tmp_path / "template")
    jobs = []
    for limit in (
        (0, "open holder.json"),
        (100, ""),
        (64, "finish"),
        (4, "_write_group"),
        (1500, "_close_shard"),
        (9, "open environment.json"),
        (9, "open manifest.json"),
    ):
        folder = shutil.copytree(tmp_path / "template", tmp_path / str(len(jobs)))
        jobs.append({"args": arguments(jsonl, "--overwrite"), "folder": str(folder), "limit": limit})
    for job, (result,) in zip(jobs, crash(*jobs), strict=True):
        assert_full(result, "rows.partial")
        assert tree(job["folder"]) == before, job


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a file system of a size."""
    places = []

    def mount(size):
        place = tmp_path / f"disk{len(places)}"
        place.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True)
        if done.returncode:
            pytest.skip("mounting a small file system is not allowed here")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("mount") is None, reason="only root mounts file systems")
def test_a_full_disk_leaves_things_as_they_were(fixed, tmp_path, small_disk):
    big = write_jsonl(tmp_path / "big.jsonl", records(300))
    fixed(source=big, out=tmp_path / "whole")
    disks, before, jobs = [], [], []
    for kib in (8, 48, 88, 108, 120):
        disk = small_disk(f"{kib}k")
        if kib > 8:
            fixed(row_tokens=48, out=disk / "rows")
        disks.append(disk)
        before.append(tree(disk))
        jobs.append({"args": arguments(big, "--overwrite"), "limit": [0, "never"], "folder": str(disk)})
    for disk, tree_before, (result,) in zip(disks, before, crash(*jobs), strict=True):
        print(disk, result["stderr"])
        assert_full(result, "rows.partial")
        assert tree(disk) == tree_before
