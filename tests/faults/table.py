"""The table of README.md, read."""

import re
from dataclasses import dataclass
from pathlib import Path

README = Path(__file__).with_name("README.md")
TESTS = Path(__file__).parents[1]
NUM_FAULTS = 32


@dataclass(frozen=True)
class Fault:
    """A line: its number, what goes wrong, what must happen, and the tests as `path::function` below tests/."""

    number: int
    what: str
    must: str
    tests: tuple


def faults():
    """The lines of the table, in order."""
    found = []
    for line in README.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| \d+ \|", line):
            number, what, must, tests = (cell.strip() for cell in line.strip("|").split("|"))
            found.append(Fault(int(number), what, must, tuple(re.findall(r"`([^`]+::[^`]+)`", tests))))
    return found
