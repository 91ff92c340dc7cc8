"""The table of README.md and the tests say the same."""

import ast
from functools import cache
from pathlib import Path

from table import NUM_FAULTS, TESTS, faults

HERE = Path(__file__).parent


@cache
def functions(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def test_every_fault_is_in_the_table_once():
    assert [fault.number for fault in faults()] == list(range(1, NUM_FAULTS + 1))


def test_every_named_test_exists():
    for fault in faults():
        assert fault.tests, fault.number
        for name in fault.tests:
            path, function = name.split("::")
            assert function in functions(TESTS / path), name


def test_every_test_of_this_folder_has_its_fault():
    named = {name for fault in faults() for name in fault.tests}
    for path in sorted(HERE.glob("test_*.py")):
        if path.name != "test_fault_table.py":
            assert any(name.startswith(f"faults/{path.name}::") for name in named), path.name
