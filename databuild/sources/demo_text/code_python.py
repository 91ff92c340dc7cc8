"""Python tasks: short programs whose names and numbers differ, and exercises in reading them."""

from __future__ import annotations

from databuild.sources.demo_text.script import Setup, Slots, parse_pools
from databuild.sources.demo_text.words import POOLS as WORDS

POOLS = WORDS | parse_pools(
    """
things: prices, scores, readings, weights, lengths, ages, marks, votes, orders, tickets, visits, deposits, heights,
  speeds, distances, ratings, pages, rooms, seats, samples
row: customer, parcel, invoice, booking, recipe, lesson, player, sensor, garden, ferry, ticket, library, song, planet,
  bakery, museum, vehicle, course, festival, harbour
attr: price, weight, rating, age, distance, duration, height, score, stock, capacity, temperature, balance, speed,
  volume
verb: collect, gather, select, extract, choose, filter, keep, find
"""
)


def fill(template: str, s: Slots, *keys: str) -> str:
    """Return a program text with ``$key`` replaced by the slot of that name."""
    for key in keys:
        template = template.replace("$" + key, str(s[key]))
    return template.strip("\n")


def _code(template: str, *keys: str) -> Setup:
    def setup(s: Slots) -> None:
        s["code"] = fill(template, s, *keys)

    return setup


def _loop(s: Slots) -> None:
    a, b, step = s.r.between(1, 9), s.r.between(20, 60), s.r.between(2, 7)
    name = s.text("things")
    s["code"] = f"total = 0\nfor {name[0]} in range({a}, {b}, {step}):\n    total += {name[0]}\nprint(total)"
    values = list(range(a, b, step))
    s.update(a=a, b=b, step=step, res=sum(values), list=", ".join(map(str, values)), n=len(values), last=values[-1])


def _comprehension(s: Slots) -> None:
    values, k = [s.r.between(1, 40) for _ in range(6)], s.r.between(2, 9)
    kept = [v * v for v in values if v % k]
    s["code"] = f"{s['things']} = {values}\nprint([n * n for n in {s['things']} if n % {k}])"
    s.update(res=kept, k=k, dropped=len(values) - len(kept), kept=", ".join(str(v) for v in values if v % k) or "none")


def _slicing(s: Slots) -> None:
    word = s.text("object").replace(" ", "_") + s.text("i_10_99")
    a, b = s.r.between(0, 2), s.r.between(3, 5)
    s["code"] = f'word = "{word}"\nprint(word[{a}:{b}], word[-{b}:], word[::-1])'
    s.update(res=f"{word[a:b]} {word[-b:]} {word[::-1]}", a=a, b=b, word=word, one=word[a:b], two=word[-b:])
    s["three"] = word[::-1]


SETUPS: dict[str, Setup] = {
    "loop": _loop,
    "comprehension": _comprehension,
    "slicing": _slicing,
    "above": _code(
        "def $verb_$things($things: list[int], limit: int = $i_5_95) -> list[int]:\n"
        '    """Return the $things above the limit, in their old order."""\n'
        "    return [value for value in $things if value > limit]\n",
        "verb",
        "things",
        "i_5_95",
    ),
    "count": _code(
        "from collections import Counter\n\n\n"
        "def top_$row_words(text: str, n: int = $i_3_30) -> list[tuple[str, int]]:\n"
        '    """Return the n most frequent words of a $row text with their counts."""\n'
        "    words = [word.strip('.,;:!?').lower() for word in text.split()]\n"
        "    return Counter(word for word in words if len(word) > $i_1_5).most_common(n)\n",
        "row",
        "i_3_30",
        "i_1_5",
    ),
    "group": _code(
        "from collections import defaultdict\n\n\n"
        "def $rows_by_$attr(rows: list[dict], width: int = $i_2_60) -> dict[int, list[dict]]:\n"
        '    """Group $row rows by $attr, in classes of the given width."""\n'
        "    groups = defaultdict(list)\n"
        "    for row in rows:\n"
        '        groups[row["$attr"] // width * width].append(row)\n'
        "    return dict(groups)\n",
        "rows",
        "row",
        "attr",
        "i_2_60",
    ),
    "dataclass": _code(
        "from dataclasses import dataclass\n\n\n"
        "@dataclass(order=True)\nclass $Row:\n"
        "    $attr: int\n    name: str\n    $attr2: int = $i_1_99\n\n"
        "    def is_large(self) -> bool:\n"
        '        """Say whether the $attr is over $i_100_900."""\n'
        "        return self.$attr > $i_100_900\n",
        "Row",
        "attr2",
        "attr",
        "i_1_99",
        "i_100_900",
    ),
    "clamp": _code(
        "def clamp_$attr(value: int, low: int = $i_1_20, high: int = $i_50_400) -> int:\n"
        '    """Return the value, or the nearer end if it lies outside low..high."""\n'
        "    return max(low, min(high, value))\n\n\n"
        "assert clamp_$attr($i_401_999) == $i_50_400\n"
        "assert clamp_$attr(-$i_2_9) == $i_1_20\n",
        "attr",
        "i_1_20",
        "i_50_400",
        "i_401_999",
        "i_2_9",
    ),
    "window": _code(
        "def smooth_$things(values: list[float], k: int = $i_2_30) -> list[float]:\n"
        '    """Return the averages of k neighbouring $things; the result is k - 1 shorter."""\n'
        "    if k < 1 or k > len(values):\n"
        '        raise ValueError(f"window {k} does not fit {len(values)} values")\n'
        "    total = sum(values[:k])\n"
        "    means = [total / k]\n"
        "    for i in range(k, len(values)):\n"
        "        total += values[i] - values[i - k]\n"
        "        means.append(total / k)\n"
        "    return means\n",
        "things",
        "i_2_30",
    ),
    "caesar": _code(
        "def shift_$row(text: str, by: int = $i_1_25) -> str:\n"
        '    """Shift every small letter of the text by a number of places."""\n'
        "    moved = []\n"
        "    for char in text:\n"
        '        if "a" <= char <= "z":\n'
        '            char = chr((ord(char) - ord("a") + by) % 26 + ord("a"))\n'
        "        moved.append(char)\n"
        '    return "".join(moved)\n',
        "row",
        "i_1_25",
    ),
    "bisect": _code(
        "def find_$row($things: list[int], wanted: int) -> int:\n"
        '    """Return where wanted stands in the sorted $things, or -1."""\n'
        "    low, high = 0, len($things)\n"
        "    while low < high:\n"
        "        middle = (low + high) // 2\n"
        "        if $things[middle] < wanted:\n"
        "            low = middle + 1\n"
        "        else:\n"
        "            high = middle\n"
        "    return low if low < len($things) and $things[low] == wanted else -1\n",
        "row",
        "things",
    ),
    "csv": _code(
        "import csv\nfrom pathlib import Path\n\n\n"
        "def read_$rows(path: Path, minimum: int = $i_1_500) -> list[dict[str, str]]:\n"
        '    """Return the rows of a $row file whose $attr is at least the minimum."""\n'
        '    with path.open(newline="", encoding="utf-8") as file:\n'
        '        return [row for row in csv.DictReader(file) if int(row["$attr"]) >= minimum]\n',
        "rows",
        "row",
        "attr",
        "i_1_500",
    ),
    "retry": _code(
        "import time\nfrom collections.abc import Callable\n\n\n"
        "def fetch_$row(call: Callable[[], str], tries: int = $i_2_9, wait: float = $i_1_30) -> str:\n"
        '    """Call until it succeeds; the pause doubles after every failure."""\n'
        "    for attempt in range(tries):\n"
        "        try:\n"
        "            return call()\n"
        "        except OSError:\n"
        "            if attempt == tries - 1:\n"
        "                raise\n"
        "            time.sleep(wait * 2**attempt)\n"
        '    raise ValueError("tries must be positive")\n',
        "row",
        "i_2_9",
        "i_1_30",
    ),
    "bug": _code(
        "def mean_$attr($things):\n    total = 0\n    for i in range(1, len($things)):\n"
        "        total += $things[i]\n    return total / $i_2_9",
        "attr",
        "things",
        "i_2_9",
    ),
    "default": _code(
        "def add_$row(name, $things=[]):\n    $things.append((name, $i_1_99))\n    return $things",
        "row",
        "things",
        "i_1_99",
    ),
    "tests": _code(
        "import pytest\n\nfrom $row_tools import $attr_class\n\n\n"
        '@pytest.mark.parametrize(("value", "wanted"), [(0, "low"), ($i_5_40, "middle"), ($i_50_99, "high")])\n'
        "def test_$attr_class(value, wanted):\n"
        "    assert $attr_class(value) == wanted\n\n\n"
        "def test_negative_$attr_is_refused():\n"
        "    with pytest.raises(ValueError):\n"
        "        $attr_class(-$i_1_4)\n",
        "row",
        "attr",
        "i_5_40",
        "i_50_99",
        "i_1_4",
    ),
}
for _name in ("group", "csv", "dataclass"):

    def _plural(s: Slots, inner: Setup = SETUPS[_name]) -> None:
        s["rows"] = s.text("row") + "_list"
        s["Row"] = s.text("row").capitalize()
        inner(s)

    SETUPS[_name] = _plural
