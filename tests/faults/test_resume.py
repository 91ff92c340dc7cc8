"""A build that was killed goes on from what it had finished, and ends with the bytes of one that nobody disturbed."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from fault_support import children, content, encoded
from support import records, write_jsonl

NUM = 200


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    return write_jsonl(tmp_path_factory.mktemp("source") / "s.jsonl", records(NUM))


def job(source, folder, where="encode", kill_at=0, *more, batch=8, workers=1):
    folder.mkdir(parents=True, exist_ok=True)
    args = ["fixed", "--source", str(source), "--row-tokens", "64", "--out", "rows", "--workers", str(workers)]
    args += ["--batch-conversations", str(batch), *more]
    return {"args": args, "folder": str(folder), "where": where, "kill_at": kill_at}


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """The build that nobody disturbs."""
    folder = tmp_path_factory.mktemp("whole")
    ((result,),) = children(job(source, folder))
    assert result["status"] == 0, result
    assert encoded(folder / "rows") == NUM
    assert not (folder / "rows" / "journal").exists()
    return content(folder / "rows")


def test_killed_at_80_percent_it_encodes_less_than_30_percent_again(source, whole, tmp_path):
    batches = NUM // 8
    killed, resumed = (
        job(source, tmp_path, "encode", int(batches * 0.8)),
        job(source, tmp_path, batch=17, workers=2),  # other batches and threads, the same bytes
    )
    (first,), (second,) = children(killed, resumed)
    assert first["status"] == -signal.SIGKILL and second["status"] == 0, second
    assert "going on after" in second["stderr"]
    assert 0.2 * NUM <= encoded(tmp_path / "rows") <= 0.3 * NUM
    assert content(tmp_path / "rows") == whole
    assert os.listdir(tmp_path) == ["rows"]


# Where a builder is killed, and at which call of it.
PLACES = [("encode", 2), ("group", 9), ("pages", 20), ("footer", 1), ("commit", 1), ("commit", 7), ("log", 1), ("log", 2),
          ("log", 9)]  # fmt: skip


def test_killed_anywhere_it_ends_with_the_same_bytes(source, whole, tmp_path):
    jobs, folders = [], []
    for index, (where, kill_at) in enumerate(PLACES):
        folders.append(tmp_path / str(index))
        workers = 1 + index % 2
        jobs += [job(source, folders[-1], where, kill_at, workers=workers), job(source, folders[-1], workers=workers)]
    results = [result for (result,) in children(*jobs)]
    counts = []
    for folder, killed, after in zip(folders, results[::2], results[1::2], strict=True):
        assert killed["status"] == -signal.SIGKILL and after["status"] == 0, (killed, after)
        assert content(folder / "rows") == whole, killed["step"]
        counts.append(encoded(folder / "rows"))
    assert counts[3] < 20, "killed before its last footer, it has next to nothing to encode"
    assert counts[4] == NUM, "killed before its first commit, it starts anew"


def test_killed_again_and_again_it_gets_there(source, whole, tmp_path):
    jobs = [job(source, tmp_path, "encode", 6) for _ in range(8)]
    results = [result for (result,) in children(*jobs)]
    statuses = [result["status"] for result in results]
    done = statuses.index(0)
    assert set(statuses[:done]) == {-signal.SIGKILL} and 4 <= done <= 6
    assert content(tmp_path / "rows") == whole


@pytest.fixture(scope="module")
def left(source, tmp_path_factory):
    """What a builder leaves that was killed at 80 %."""
    folder = tmp_path_factory.mktemp("left")
    ((result,),) = children(job(source, folder, "encode", 20))
    assert result["status"] == -signal.SIGKILL
    return folder


def flipped(name, place):
    def flip(folder):
        path = folder / name
        data = bytearray(path.read_bytes())
        data[int(place * (len(data) - 1))] ^= 0x10
        path.write_bytes(data)

    return flip


def last_state(folder):
    """The state that the last line of the log proves; not the newest file, which may be one that no line names yet."""
    lines = (folder / "journal" / "log.jsonl").read_bytes().count(b"\n")
    return folder / "journal" / f"state-{lines % 2}.npz"


def change_state(folder):
    path = last_state(folder)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def linked(name):
    def link(folder):
        os.rename(folder / name, folder.parent / "elsewhere")
        os.link(folder.parent / "elsewhere", folder / name)

    return link


def of_another_version(folder):
    import hashlib

    log = folder / "journal" / "log.jsonl"
    first, rest = log.read_bytes().split(b"\n", 1)
    identity = json.loads(first[65:]) | {"databuild": "0.0.0"}
    text = json.dumps(identity, sort_keys=True).encode()
    log.write_bytes(hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n" + rest)


def one_byte_less(name):
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - 1)


DAMAGES = {
    "pages flipped": (flipped("shard-00000.tmp", 0.3), False),
    "first byte of the pages": (flipped("shard-00000.tmp", 0), None),
    "pages cut off": (lambda folder: os.truncate(folder / "shard-00000.tmp", 5000), False),
    "shard gone": (lambda folder: (folder / "shard-00000.tmp").unlink(), False),
    "shard with a second name": (linked("shard-00000.tmp"), False),
    "state flipped": (change_state, False),
    "state gone": (lambda folder: last_state(folder).unlink(), False),
    "log: first line": (flipped("journal/log.jsonl", 0.001), False),
    "log: half": (flipped("journal/log.jsonl", 0.5), False),
    "log: last byte cut off": (one_byte_less("journal/log.jsonl"), True),
    "another version": (of_another_version, False),
    "log of garbage": (lambda folder: (folder / "journal/log.jsonl").write_bytes(b"\xff\0" * 999), False),
    "untouched": (lambda folder: None, True),
}  # fmt: skip


def test_nothing_that_was_damaged_meanwhile_is_trusted(source, whole, left, tmp_path):
    jobs = []
    for name, (damage, _) in DAMAGES.items():
        folder = Path(shutil.copytree(left, tmp_path / name))
        damage(folder / "rows.partial")
        jobs.append(job(source, folder))
    for (name, (_, kept)), (result,) in zip(DAMAGES.items(), children(*jobs), strict=True):
        assert result["status"] == 0, (name, result)
        assert content(tmp_path / name / "rows") == whole, name
        if kept is not None:
            assert (encoded(tmp_path / name / "rows") < NUM) == kept, name


def test_another_spec_or_source_starts_anew(source, whole, left, tmp_path):
    other = write_jsonl(tmp_path / "s.jsonl", records(NUM, seed=2))
    jobs = []
    for name, path, more in (("seed", source, ["--seed", "7"]), ("source", other, [])):
        folder = Path(shutil.copytree(left, tmp_path / name))
        jobs.append(job(path, folder, "encode", 0, *more))
    for (result,), name in zip(children(*jobs), ("seed", "source"), strict=True):
        assert result["status"] == 0, result
        assert encoded(tmp_path / name / "rows") == NUM
        assert content(tmp_path / name / "rows") != whole


def test_a_link_in_place_of_the_journal_is_refused(source, left, tmp_path):
    folder = Path(shutil.copytree(left, tmp_path / "x"))
    os.rename(folder / "rows.partial" / "journal", tmp_path / "journal")
    (folder / "rows.partial" / "journal").symlink_to(tmp_path / "journal")
    ((result,),) = children(job(source, folder))
    assert result["status"] == 5 and "holds something else" in result["stderr"]


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
def test_an_interrupted_build_says_what_is_kept_and_goes_on(source, whole, tmp_path, name, code):
    stop = job(source, tmp_path / "stop", "encode", 18) | {"signal": name}
    (first,), (second,) = children(stop, job(source, tmp_path / "stop"))
    assert first["status"] == code and "is kept in" in first["stderr"] and "Traceback" not in first["stderr"]
    assert second["status"] == 0 and encoded(tmp_path / "stop" / "rows") < 0.5 * NUM
    assert content(tmp_path / "stop" / "rows") == whole
