"""Every command of docs/ is run, in order, and prints what the page says; `...` stands for anything."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted(path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))


def blocks(page):
    """(language, file name, text) of each block of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```(\w+) ?(\S*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(text):
    """(command, exit code, expected output) of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, expected = part.partition("\n")
        command, _, code = line.partition("   # exit ")
        yield command, int(code or 0), expected


def matches(expected, found):
    """Whether an output is what is expected; `...` on a line of its own stands for any number of lines."""
    lines = ["(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
             for line in expected.split("\n")[:-1]]  # fmt: skip
    return re.fullmatch("".join(lines), found) is not None


def test_the_matching_can_fail():
    assert matches("a\n...\nb\n", "a\nb\n") and matches("a\n...\nb\n", "a\nx\ny\nb\n") and matches("a ...\n", "a 1 s\n")
    assert matches("x 9...\nb\n", "x 95\nb\n") and matches("a ..., b\n", "a 1, b\n")
    assert not matches("a\n", "b\n") and not matches("a ...\n", "a b\nc\n") and not matches("a\n...\nb\n", "a\nc\n")
    assert not matches("a.b\n", "axb\n")


@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page(cli, page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    num = 0
    for language, name, text in blocks(page):
        if language == "jsonl":
            Path(name).write_text(text, encoding="utf-8")
        elif language == "python":
            subprocess.run([sys.executable, "-c", text], check=True, timeout=60, env=os.environ)
            num += 1
        elif language == "bash":
            assert text.strip() in (ROOT / "README.md").read_text(encoding="utf-8"), "CI runs what the README says"
        else:
            assert language == "console"
            for command, code, expected in commands(text):
                line, _, head = command.partition(" | head -")
                program, *arguments = shlex.split(line)
                assert program == "databuild"
                ran = cli(*arguments)
                found = ran.err if code and not ran.out else ran.out
                if head:
                    found = "".join(found.splitlines(keepends=True)[: int(head)])
                assert ran.code == code, (command, ran.err)
                assert matches(expected, found), f"{command}\n{found}"
                num += 1
    assert num >= 3


def test_links_of_the_pages_lead_somewhere():
    for page in PAGES:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([^)#]+)\)", text):
            assert link.startswith("https://") or (ROOT / "docs" / page).parent.joinpath(link).exists(), link
