"""`--source PATH…`: which files are read, in which order, and what their identity is."""

import errno
import hashlib
import json
import locale
import os
import random
import resource

import pytest
from support import opened, read, refusal, write_jsonl

from databuild.errors import OutputError
from databuild.sources import jsonl
from databuild.sources.files import find_files, open_files
from databuild.sources.spool import SpoolWriter


def conversation(text):
    return {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": "ok"}]}


def files(folder, *names):
    """Files with one record each, whose user says the file's name."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_jsonl(path, [conversation(name)])
    return folder


def names(*paths):
    return [name for _, name in find_files(list(map(str, paths)))]


# ------------------------------------------------------------------------------------------------------------ order

IN_ORDER = [
    "10a/x.jsonl",
    "A/part1.jsonl",
    "B.jsonl",
    "a/part2.jsonl",
    "a/part10.jsonl",
    "part.jsonl",
    "part-1.jsonl",
    "part1.jsonl",
    "part01.jsonl",
    "part2.jsonl",
    "part2-1.jsonl",
    "part2-9.jsonl",
    "part2-10.jsonl",
    "part10.jsonl",
    "Ä.jsonl",
    "é.jsonl",
    "ı.jsonl",
    "日本.jsonl",
]


def test_a_directory_is_read_in_natural_order(tmp_path):
    shuffled = random.Random(3).sample(IN_ORDER, len(IN_ORDER))
    found = names(files(tmp_path, *shuffled))
    assert sorted(found) == sorted(IN_ORDER)
    numbers = [name for name in found if name.startswith("part")]
    assert numbers.index("part2.jsonl") < numbers.index("part10.jsonl")
    assert numbers.index("part2-9.jsonl") < numbers.index("part2-10.jsonl")
    assert found.index("a/part2.jsonl") < found.index("a/part10.jsonl")
    assert [text for _, _, _, [(_, text), _] in read(tmp_path)] == found


def test_the_order_depends_on_names_alone(tmp_path):
    """Not on the order in the directory, and not on the locale."""
    first = names(files(tmp_path / "one", *IN_ORDER))
    second = names(files(tmp_path / "two", *reversed(IN_ORDER)))
    assert first == second
    before = locale.setlocale(locale.LC_ALL)
    try:
        for name in ("C", "C.UTF-8", "tr_TR.UTF-8", "de_DE.UTF-8", "sv_SE.UTF-8"):
            try:
                locale.setlocale(locale.LC_ALL, name)
            except locale.Error:
                continue  # this machine has it not
            assert names(tmp_path / "one") == first
    finally:
        locale.setlocale(locale.LC_ALL, before)


def test_names_that_are_equal_as_numbers_have_an_order(tmp_path):
    same = ["x1.jsonl", "x01.jsonl", "x001.jsonl"]
    assert names(files(tmp_path, *same)) == names(files(tmp_path / "again", *reversed(same)))[:3] == sorted(same)


def test_several_sources_are_read_in_the_order_given(tmp_path):
    files(tmp_path, "a.jsonl", "z/2.jsonl", "z/1.jsonl", "b.jsonl")
    given = [tmp_path / "b.jsonl", tmp_path / "z", tmp_path / "a.jsonl"]
    assert names(*given) == ["b.jsonl", "1.jsonl", "2.jsonl", "a.jsonl"]
    assert [row for row, *_ in read(*given)] == [0, 1, 2, 3]


def test_files_of_all_kinds_in_one_directory(tmp_path):
    import gzip

    files(tmp_path, "1.jsonl")
    (tmp_path / "2.jsonl.gz").write_bytes(gzip.compress((tmp_path / "1.jsonl").read_bytes()))
    (tmp_path / "3.json").write_text(json.dumps([conversation("x"), conversation("y")]))
    assert names(tmp_path) == ["1.jsonl", "2.jsonl.gz", "3.json"]
    assert [text for _, _, _, [(_, text), _] in read(tmp_path)] == ["1.jsonl", "1.jsonl", "x", "y"]


# ------------------------------------------------------------------------------------------------- what is passed over


def test_hidden_and_foreign_files_of_a_directory_are_passed_over(tmp_path):
    files(tmp_path, "a.jsonl", ".hidden.jsonl", ".cache/b.jsonl", "sub/.c.jsonl", "sub/d.jsonl")
    for name in ("README.md", "a.jsonl.tmp", "a.csv", "jsonl", "x.jsonl.bak", "x.JSONL"):
        (tmp_path / name).write_text("not a source")
    assert names(tmp_path) == ["a.jsonl", "sub/d.jsonl"]


def test_a_hidden_file_or_directory_that_is_named_is_read(tmp_path):
    files(tmp_path, ".hidden.jsonl", ".cache/b.jsonl")
    assert names(tmp_path / ".hidden.jsonl", tmp_path / ".cache") == [".hidden.jsonl", "b.jsonl"]


def test_a_directory_may_be_named_like_a_file(tmp_path):
    assert names(files(tmp_path, "data.jsonl/a.jsonl")) == ["data.jsonl/a.jsonl"]


def test_links_to_files_are_read_and_links_to_directories_are_not_entered(tmp_path):
    files(tmp_path, "real/a.jsonl")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "b.jsonl").symlink_to(tmp_path / "real" / "a.jsonl")
    (tmp_path / "links" / "folder").symlink_to(tmp_path / "real")
    assert names(tmp_path / "links") == ["b.jsonl"]


# --------------------------------------------------------------------------------------------------------- refusals


def test_a_link_to_nothing_is_not_passed_over(tmp_path):
    files(tmp_path, "a.jsonl")
    (tmp_path / "b.jsonl").symlink_to(tmp_path / "gone")
    assert "b.jsonl" in refusal(tmp_path).where


def test_a_directory_that_cannot_be_listed_is_not_passed_over(tmp_path, monkeypatch):
    files(tmp_path, "a.jsonl", "closed/b.jsonl")
    scandir = os.scandir

    def refusing(path):
        if str(path).endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    error = refusal(tmp_path)
    assert error.where == str(tmp_path / "closed") and error.found == "Permission denied"


@pytest.mark.parametrize("same", ["a.jsonl", "./a.jsonl", "sub/../a.jsonl", "link.jsonl"])
def test_the_same_file_twice_is_refused(tmp_path, same):
    files(tmp_path, "a.jsonl", "sub/b.jsonl")
    (tmp_path / "link.jsonl").symlink_to("a.jsonl")
    error = refusal(tmp_path / "a.jsonl", f"{tmp_path}/{same}")
    assert "twice" in error.what and "a.jsonl" in error.where


def test_a_file_and_its_directory_are_refused(tmp_path):
    files(tmp_path, "sub/b.jsonl")
    assert "twice" in refusal(tmp_path, tmp_path / "sub" / "b.jsonl").what
    assert "twice" in refusal(tmp_path, tmp_path / "sub").what


def test_the_same_content_twice_is_not_refused(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [conversation("x")])
    write_jsonl(tmp_path / "b.jsonl", [conversation("x")])
    assert len(read(tmp_path)) == 2


@pytest.mark.parametrize("name", ["gone.jsonl", "gone", "", "a.jsonl/b.jsonl", "x" * 5000 + ".jsonl"])
def test_a_path_that_is_not_there(tmp_path, monkeypatch, name):
    monkeypatch.chdir(files(tmp_path, "a.jsonl"))
    error = refusal(name)
    assert "no such file" in error.what and error.where == name


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl.bz2", "a.JSONL", "a.zip", "jsonl", "a.parquet.gz"])
def test_a_file_of_an_unknown_type(tmp_path, name):
    (tmp_path / name).write_text("{}")
    error = refusal(tmp_path / name)
    assert error.where.endswith(name) and ".parquet" in error.expected and ".jsonl.zst" in error.expected


def test_directories_without_a_source(tmp_path):
    assert refusal(tmp_path).found == "an empty directory"
    (tmp_path / "readme.md").write_text("x")
    (tmp_path / "sub").mkdir()
    assert refusal(tmp_path).found == "readme.md, sub"


def test_what_is_not_a_file_is_refused(tmp_path):
    files(tmp_path, "a.jsonl")
    (tmp_path / "device.jsonl").symlink_to(os.devnull)
    for given in (tmp_path / "device.jsonl", tmp_path):
        error = refusal(given)
        assert error.what == "this is not a file that can be read" and "device.jsonl" in error.where


def test_a_name_that_is_not_utf8_is_refused(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.jsonl"
    with open(path, "w") as file:
        file.write(json.dumps(conversation("x")))
    assert "UTF-8" in refusal(tmp_path).what
    assert "UTF-8" in refusal(os.fsdecode(path)).what


@pytest.mark.parametrize("content", ["", "\n\n \r\n", "\ufeff"])
def test_a_source_without_rows_is_refused(tmp_path, content):
    (tmp_path / "a.jsonl").write_text(content, encoding="utf-8")
    error = refusal(tmp_path)
    assert error.what == "the source has no rows" and error.where == "a.jsonl"


def test_one_of_several_files_may_be_empty(tmp_path):
    files(tmp_path, "b.jsonl")
    (tmp_path / "a.jsonl").write_bytes(b"")
    assert len(read(tmp_path)) == 1


def test_exit_code_3(cli, tmp_path):
    block = cli("fixed", "--source", tmp_path / "gone.jsonl", "--out", tmp_path / "rows").error(3, "source")
    assert block["where"] == str(tmp_path / "gone.jsonl")
    assert list(tmp_path.iterdir()) == []


# --------------------------------------------------------------------------------------------------------- identity


def record_of(*paths, columns=None):
    with opened(*paths, columns=columns) as source:
        return source.record


def test_the_identity_holds_names_sizes_and_digests(tmp_path):
    files(tmp_path, "b/2.jsonl", "a.jsonl")
    record = record_of(tmp_path)
    assert [(f.name, f.bytes, f.sha256) for f in record.files] == [
        (name, len(data), hashlib.sha256(data).hexdigest())
        for name, data in ((name, (tmp_path / name).read_bytes()) for name in ("a.jsonl", "b/2.jsonl"))
    ]
    assert (record.kind, record.rows) == ("files", 2)
    assert (record.name, record.revision, record.split, record.license) == (None, None, None, None)
    assert tmp_path.name not in record.model_dump_json()


def test_the_same_files_elsewhere_are_the_same_source(tmp_path, monkeypatch):
    record = record_of(files(tmp_path / "one", "a.jsonl", "b.jsonl"))
    assert record_of(files(tmp_path / "some" / "where" / "else", "b.jsonl", "a.jsonl")) == record
    assert record_of(tmp_path / "one" / "a.jsonl", tmp_path / "one" / "b.jsonl") == record
    monkeypatch.chdir(tmp_path / "one")
    assert record_of(".") == record_of("a.jsonl", "b.jsonl") == record


def test_names_order_and_content_are_part_of_the_identity(tmp_path):
    files(tmp_path, "a.jsonl", "b.jsonl")
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    digests = [record_of(a, b).identity_sha256, record_of(b, a).identity_sha256, record_of(a).identity_sha256]
    (tmp_path / "c.jsonl").write_bytes(a.read_bytes())
    digests.append(record_of(tmp_path / "c.jsonl").identity_sha256)
    a.write_bytes(a.read_bytes() + b"\n")
    digests.append(record_of(a).identity_sha256)
    assert len(set(digests)) == len(digests)


# --------------------------------------------------------------------------------------- faults while it is read


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "a.jsonl", [conversation("x")] * 3)
    original = jsonl.read_records

    def appending(path):
        for number, record in enumerate(original(path)):
            if number == 1:
                write_jsonl(path, [conversation("x")] * 4)
            yield record

    monkeypatch.setattr(jsonl, "read_records", appending)
    error = refusal(tmp_path)
    assert error.what == "a file changed while it was read" and error.where == "a.jsonl"


def test_a_file_that_changes_between_digest_and_reading_is_refused(tmp_path, monkeypatch):
    """The same size, other content: b is replaced while a is read."""
    a, b = (
        write_jsonl(tmp_path / "a.jsonl", [conversation("x")]),
        write_jsonl(tmp_path / "b.jsonl", [conversation("x")]),
    )
    original = jsonl.read_records

    def replacing(path):
        if path == a:
            new = write_jsonl(tmp_path / "new", [conversation("y")])
            assert new.stat().st_size == b.stat().st_size
            new.replace(b)
        yield from original(path)

    monkeypatch.setattr(jsonl, "read_records", replacing)
    error = refusal(a, b)
    assert error.what == "a file changed while it was read" and error.where == "b.jsonl"


def test_a_file_that_vanishes_is_a_source_error(tmp_path, monkeypatch):
    a, b = (
        write_jsonl(tmp_path / "a.jsonl", [conversation("x")]),
        write_jsonl(tmp_path / "b.jsonl", [conversation("x")]),
    )
    original = jsonl.read_records

    def removing(path):
        b.unlink(missing_ok=True)
        yield from original(path)

    monkeypatch.setattr(jsonl, "read_records", removing)
    assert "b.jsonl" in refusal(a, b).where


def test_a_full_disk_is_an_output_error_that_leaves_nothing(tmp_path, monkeypatch):
    write_jsonl(tmp_path / "a.jsonl", [conversation("x")])

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SpoolWriter, "add", full)
    monkeypatch.setattr(SpoolWriter, "close", full)
    with pytest.raises(OutputError) as caught:
        open_files([str(tmp_path / "a.jsonl")], folder=tmp_path / "spool", mapping=None, say=lambda _: None)
    assert (caught.value.found, caught.value.where) == ("No space left on device", str(tmp_path / "spool"))
    assert os.listdir(tmp_path) == ["a.jsonl"]


@pytest.mark.parametrize("size", [3_000, 30_000, 3_000_000])
def test_a_write_that_takes_a_part_only_is_noticed(tmp_path, size):
    """A disk that fills up takes the first bytes of a write and refuses the next; here a limit on file size does so."""
    write_jsonl(tmp_path / "a.jsonl", [conversation("x" * size)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
        with pytest.raises(OutputError), opened(tmp_path / "a.jsonl"):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
