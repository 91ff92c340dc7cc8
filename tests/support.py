"""Helpers of the tests: conversations to build from, and a look at everything in a directory."""

import json
import os
import random
import stat
from dataclasses import dataclass
from pathlib import Path

_WORDS = [
    "the",
    "of",
    "and",
    "to",
    "alpha",
    "beta",
    "delta",
    "東京",
    "naïve",
    "code",
    "42",
    "3.14",
    "don't",
    "ça",
    "日本語",
    "👩\u200d👩\u200d👧",
    "<tag>",
    "[x]",
    "snake_case",
    "…",
]


def records(count, *, seed=1, words=30):
    """Short conversations of many shapes: systems, several turns, empty answers, answers without a header, open ends."""
    random_words = random.Random(seed)

    def text(most):
        return " ".join(random_words.choice(_WORDS) for _ in range(random_words.randint(1, most)))

    def turn(role, most=words):
        return {"role": role, "content": text(most)}

    result = []
    for number in range(count):
        messages = [turn("user"), turn("assistant")]
        if number % 5 == 0:
            messages = [turn("system", 6), *messages, turn("user"), turn("assistant")]
        if number % 11 == 0:
            messages += [turn("system", 4), turn("assistant", 5)]
        if number % 13 == 0:
            messages.append(turn("user", 4))
        if number % 17 == 0:
            messages = [turn("user", 4), turn("system", 4), turn("assistant", 6)]
        if number % 19 == 0:
            messages = [turn("user"), turn("user"), {"role": "assistant", "content": ""}]
        if number % 23 == 0:
            messages = [turn("assistant"), turn("assistant")]
        result.append({"id": f"c{number}", "messages": messages, "source": f"s{number % 3}"})
    return result


def write_jsonl(path, lines):
    """Write records as a JSONL file; gives its path."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def tree(folder):
    """Everything below a directory: name -> what it is and holds. Equal trees are equal to the byte."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[path.relative_to(folder).as_posix()] = (stat.S_IFMT(mode), stat.S_IMODE(mode), content)
    return found


@dataclass(frozen=True)
class Ran:
    """What a call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1 and self.out.endswith("\n"), self.out
        return json.loads(self.out)

    def error(self, code, title):
        """The readable block of an error, by its labels; checks that there is nothing else."""
        assert self.code == code, self.err
        assert "Traceback" not in self.err
        first, *rest = self.err[self.err.index("databuild: ") :].rstrip("\n").split("\n")
        assert first.startswith(f"databuild: {title} error: "), self.err
        block = {"what": first.removeprefix(f"databuild: {title} error: ")}
        for line in rest:
            label, _, value = line.strip().partition(":")
            assert line.startswith("  ") and label in ("where", "expected", "found", "next"), self.err
            block[label] = value.strip()
        return block
