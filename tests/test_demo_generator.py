"""The demo source: the same for everyone, varied, correct where it computes, and odd where real data is odd."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from functools import cache
from typing import Any

import pytest

from databuild.sources import demo_generator as demo
from databuild.sources.demo_text import catalog, odd
from databuild.sources.demo_text.rng import Rng
from databuild.sources.demo_text.words import DAYS, MONTHS

MANY = 20_000
GOLDEN = "56097370e428018f9bd20d651151193871a7be1dc0f6430d9a04b02970d163ee"
ROLES = {"system", "user", "assistant"}


@cache
def rows() -> list[dict[str, Any]]:
    return list(demo.conversations(0, demo.NUM_CONVERSATIONS))


@cache
def many() -> list[dict[str, Any]]:
    return list(demo.conversations(0, MANY))


def kinds() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for index, row in enumerate(rows()):
        found.setdefault(odd.kind_of(index), []).append(row)
    return found


def text_of(row: dict[str, Any]) -> str:
    return "\n".join(message["content"] or "" for message in row["messages"])


def roles_of(row: dict[str, Any]) -> list[str]:
    return [message["role"] for message in row["messages"] if message["role"] != "system"]


def digest(some: list[dict[str, Any]]) -> str:
    lines = (json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":")) for row in some)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_every_byte_is_pinned() -> None:
    assert digest(rows()) == GOLDEN


def test_an_index_alone_decides_the_text() -> None:
    wanted = {index: demo.conversation(index) for index in (2999, 7, 350, 1411, 123, 10**6, 10**12)}
    for index in sorted(wanted):
        assert demo.conversation(index) == wanted[index]
    assert list(demo.conversations(120, 5)) == rows()[120:125]


def test_hash_seed_and_locale_do_not_matter() -> None:
    code = "import json; from databuild.sources.demo_generator import conversations as c; print(json.dumps(list(c(0, 200))))"
    env = os.environ | {"PYTHONHASHSEED": "4711", "LC_ALL": "tr_TR.UTF-8", "PYTHONPATH": os.pathsep.join(sys.path)}
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=True, text=True).stdout
    assert json.loads(out) == rows()[:200]


def test_shape() -> None:
    assert len({row["source"] for row in rows()}) >= 12
    for index, row in enumerate(rows()):
        assert set(row) == {"id", "messages", "source"}
        assert row["source"].startswith("demo/")
        if odd.kind_of(index) in ("no messages", "no content", "narrator"):
            continue
        assert row["messages"]
        for message in row["messages"]:
            assert set(message) == {"content", "role"}
            assert message["role"] in ROLES
            assert isinstance(message["content"], str)
            message["content"].encode("utf-8")


def test_texts_are_unique() -> None:
    texts = Counter(
        text_of(row) for index, row in enumerate(many()) if odd.kind_of(index) not in ("repeat", "no messages")
    )
    assert max(texts.values()) == 1


def test_no_template_in_more_than_one_percent() -> None:
    first = Counter(demo._template_of(index).split("|")[0] for index in range(MANY))
    assert len(first) > 600
    assert first.most_common(1)[0][1] <= MANY // 100
    whole = Counter(demo._template_of(index) for index in range(demo.NUM_CONVERSATIONS))
    assert len(whole) > 2000


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_no_beginning_in_more_than_one_percent(role: str) -> None:
    begins: Counter[str] = Counter()
    for row in many():
        texts = [message["content"] or "" for message in row["messages"] if message["role"] == role]
        if texts and texts[0]:
            begins[" ".join(texts[0].split()[:6])] += 1
    assert begins.most_common(1)[0][1] <= MANY // 100


def test_lengths_and_turns() -> None:
    lengths = sorted(len(text_of(row)) for row in rows())
    assert lengths[-1] > 35_000
    assert 300 < lengths[len(lengths) // 2] < 1000
    turns = [len(roles_of(row)) for row in rows()]
    assert 0.05 < sum(n > 2 for n in turns) / len(turns) < 0.10
    assert max(turns) >= 18
    systems = sum(row["messages"][:1] != [] and row["messages"][0]["role"] == "system" for row in rows())
    assert 0.03 < systems / len(turns) < 0.07


def test_two_thirds_are_english() -> None:
    share = sum(row["source"] == "demo/multilingual" for row in many()) / MANY
    assert 0.28 < share < 0.38


def test_scripts_are_filled_in() -> None:
    left = re.compile(r"¶|⟦|⟧|\{[a-z][a-z_0-9]*\}|\[[^\[\]\n]*\|[^\[\]\n]*\]")
    for ways in [*{id(group): group for group in catalog.WHEEL}.values(), catalog.HUGE]:
        for name, topic, way in ways:
            for seed in range(3):
                text = "\n".join(topic.turns(Rng(seed), way, 9))
                if not name.startswith(("python/window", "code/go")):
                    assert not left.search(text.replace("`", "")), (name, text)
                assert text == text.strip(), name


def test_odd_kinds() -> None:
    by = kinds()
    assert all(row["messages"] == [] for row in by["no messages"])
    assert all(row["messages"][-1]["content"] is None for row in by["no content"])
    assert all(row["messages"][-1]["role"] == "narrator" for row in by["narrator"])
    assert 3 <= sum(len(by[kind]) for kind in ("no messages", "no content", "narrator")) <= 6
    assert all(row["messages"][-1] == {"content": "", "role": "assistant"} for row in by["empty answer"])
    assert all(roles_of(row)[-1] == "user" for row in by["ends with user"])
    assert len(by["ends with user"]) == 9
    assert all("assistant" not in roles_of(row) for row in by["no assistant"])
    assert all(roles_of(row)[0] == "assistant" for row in by["assistant first"])
    assert all(roles_of(row)[:2] == ["user", "user"] for row in by["two users"])
    counts = Counter(row["id"] for row in rows())
    assert sorted(counts.values(), reverse=True)[:4] == [2, 2, 2, 1]
    assert all(counts[row["id"]] == 2 for row in by["duplicate id"])
    texts = Counter(text_of(row) for row in rows())
    assert all(texts[text_of(row)] == 2 for row in by["repeat"])


@pytest.mark.parametrize(
    ("kind", "holds"),
    [
        ("special in question", "<"),
        ("special in answer", "<｜end▁of▁sentence｜>"),
        ("think in question", "</think>"),
        ("crlf", "\r\n"),
        ("line separator", "\u2028"),
        ("next line", "\u0085"),
        ("byte order mark", "\ufeff"),
        ("combining", "e\u0301"),
        ("emoji", "👩‍👩‍👧‍👦"),
        ("zero width", "\u200b"),
        ("astral", "𓂀"),
    ],
)
def test_odd_characters(kind: str, holds: str) -> None:
    assert len(kinds()[kind]) == 3
    for row in kinds()[kind]:
        assert holds in text_of(row)
    if kind == "combining":
        assert unicodedata.normalize("NFC", "e\u0301") != "e\u0301"


def test_long_word_and_white_space() -> None:
    for row in kinds()["long word"]:
        assert max(map(len, text_of(row).split())) > 500
    for row in kinds()["white space"]:
        assert all(message["content"] != message["content"].strip() for message in row["messages"])


def test_sums_are_right() -> None:
    number = r"(?<![\d.,:\-×÷+·/^] )(?<![\d.,:\-/(^])(\d+)"
    pattern = re.compile(number + r" ([×·+\-]) (\d+) = (-?\d+)(?![\d.,:/]*\d)")
    checked = 0
    for row in rows():
        for a, sign, b, result in pattern.findall(text_of(row)):
            left, right = int(a), int(b)
            truth = {"×": left * right, "·": left * right, "+": left + right, "-": left - right}[sign]
            assert truth == int(result), (a, sign, b, result, row["id"])
            checked += 1
    assert checked > 2000


def test_weekdays_are_right() -> None:
    pattern = re.compile(rf"(\d+) ({'|'.join(MONTHS)}) (\d{{4}}) is a \**({'|'.join(DAYS)})")
    found = [match for row in many() for match in pattern.findall(text_of(row))]
    assert len(found) > 20
    for day, month, year, name in found:
        assert DAYS[datetime.date(int(year), MONTHS.index(month) + 1, int(day)).weekday()] == name


def test_code_runs() -> None:
    ran = compiled = 0
    for index in range(6000):
        template = demo._template_of(index)
        row = many()[index]
        if odd.kind_of(index) or not template.startswith("python/"):
            continue
        for block in re.findall(r"```python\n(.*?)\n```", text_of(row), flags=re.S):
            compile(block, "demo", "exec")
            compiled += 1
        if template in ("python/loop/0", "python/comprehension/0", "python/slicing/0"):
            question, answer = (m["content"] for m in row["messages"] if m["role"] != "system")
            program = re.findall(r"```python\n(.*?)\n```", question, flags=re.S)[0]
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(program, {})
            assert out.getvalue().strip() in answer
            ran += 1
    assert ran >= 5
    assert compiled > 200


def test_json_answers_parse() -> None:
    parsed = 0
    for row in rows():
        for message in row["messages"]:
            if message["role"] != "assistant" or "\r" in (message["content"] or ""):
                continue
            for block in re.findall(r"```json\n(.*?)\n```", message["content"] or "", flags=re.S):
                lines = block.split("\n")
                whole = block.startswith("[") or len(lines) == 1 or lines[0] == "{"
                for part in [block] if whole else lines:
                    json.loads(part)
                    parsed += 1
    assert parsed > 100
