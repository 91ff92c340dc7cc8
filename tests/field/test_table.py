"""The table of README.md and the tests say the same."""

import ast
import json
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = HERE.parent
CASES = Path(__file__).parents[3] / "shared" / "specs" / "field_cases.jsonl"
URL = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(?:issues|pull)/\d+")
TESTED_HERE = ("mask", "deepseek_v4", "tokenizer")


def _rows():
    """(url, area, essence, last cell) of each line of the table."""
    text = (HERE / "README.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("| https://")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def _named(cell):
    return re.findall(r"`([^`]+::[^`]+)`", cell)


def _functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_named_test_exists():
    for url, _, _, cell in _rows():
        for name in _named(cell):
            path, function = name.split("::")
            assert function.startswith("test_") and function in _functions(TESTS / path), (url, name)


def test_every_row_names_a_test_or_says_why_not():
    for url, area, essence, cell in _rows():
        assert URL.fullmatch(url) and area and len(essence) > 10, url
        assert _named(cell) or re.match(r"(not applicable|not covered yet): \w", cell), url
    urls = [row[0] for row in _rows()]
    assert len(urls) == len(set(urls)) == 109


def test_table_and_docstrings_name_each_other():
    named = {url: _named(cell) for url, _, _, cell in _rows()}
    told = {}
    for path in sorted(HERE.glob("test_*.py")):
        if path.name == "test_table.py":
            continue
        for function, docstring in _functions(path).items():
            if function.startswith("test_"):
                assert URL.match(docstring), f"{function} begins with no report"
                told |= {(url, f"field/{path.name}::{function}"): None for url in URL.findall(docstring)}
    for url, test in told:
        assert test in named.get(url, ()), (url, test)
    for url, area, _, cell in _rows():
        if area in TESTED_HERE:
            # What belongs to training is tested beside it, without the reports.
            assert all((url, test) in told or test.startswith("train/") for test in _named(cell)), url


@pytest.mark.skipif(not CASES.exists(), reason="the list of cases is not on this machine")
def test_the_table_has_exactly_the_known_cases():
    cases = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines() if line]
    assert {(case["url"], case["area"]) for case in cases} == {(url, area) for url, area, _, _ in _rows()}
