"""Long texts: work sheets, stories in chapters, logs and tables. Their length is a parameter, up to very long."""

from __future__ import annotations

import json
from collections.abc import Callable

from databuild.sources.demo_text.numbers import clock, decimal, listing
from databuild.sources.demo_text.script import Slots, Text, Topic
from databuild.sources.demo_text.stories import POOLS

_ASK = {
    name: [Text(text) for text in texts]
    for name, texts in {
        "sheet": (
            "Make a work sheet with {n} word problems and their solutions for {first}'s class in {city}.",
            "I need {n} exercises with full solutions, about {item}, {food} and a {shop}. Level: beginners.",
            "Write {n} practice problems in arithmetic, each with its answer, for a {job} who wants to refresh the basics.",
        ),
        "chapters": (
            "Write a story in {n} chapters about {first}, a {trait} {job}, and a {object}.",
            "A long tale, please: {n} short chapters, set in {town}, with a {animal}.",
            "I want to read aloud for {n} evenings, one part each. Tell me about {first} and the {place} of {town}.",
        ),
        "records": (
            "Convert these {n} lines into a JSON array. The columns are name, city, item, count.\n\n{csv}",
            "Here is the stock list of the {shop} in {town} ({n} rows). As JSON, please:\n\n{csv}",
            "{csv}\n\nTurn the {n} rows above into JSON objects with the keys name, city, item and count.",
        ),
        "log": (
            "This is the visitors' book of the {place} in {town}. Write an orderly report on it.\n\n{log}",
            "Please turn my rough notes of {n} visits into full sentences.\n\n{log}",
            "Below are {n} short entries from {first}. Make a readable diary of them.\n\n{log}",
        ),
        "plan": (
            "Make a training plan of {n} days for {hobby}, for {first} from {city}.",
            "{n} days in {city}, please: a plan for each of them.",
            "I have {n} days to get the {place} of {town} ready for the {event}. What should I do on each?",
        ),
    }.items()
}


def _problem(s: Slots, number: int) -> str:
    r = s.r
    a, b, c = r.between(4, 60), r.between(3, 40), r.between(2, 9)
    name, item = r.pick(POOLS["first"]), r.pick(POOLS["item"])
    place = r.pick(POOLS["town"])
    kind = r.below(5)
    if kind == 0:
        return (
            f"**{number}.** {name} packs {a} boxes with {b} {item} each and gives {c} of the {item} away. How many are "
            f"left?\n*Solution:* {a} × {b} = {a * b}, and {a * b} - {c} = {a * b - c}."
        )
    if kind == 1:
        return (
            f"**{number}.** A shop in {place} sells {item} at {c} euros each. {name} has {a * c + b} euros. How many can "
            f"be bought, and what is left?\n*Solution:* {a * c + b} ÷ {c} = {(a * c + b) // c} remainder "
            f"{(a * c + b) % c}, so {(a * c + b) // c} {item} and {(a * c + b) % c} euros."
        )
    if kind == 2:
        return (
            f"**{number}.** From {place} to the coast it is {a * c} km. {name} walks {c} km an hour. How long does the "
            f"way take?\n*Solution:* {a * c} ÷ {c} = {a} hours."
        )
    if kind == 3:
        return (
            f"**{number}.** {name} reads {b} pages a day, {r.pick(POOLS['first'])} reads {c} more. How many pages do both "
            f"read in {a} days?\n*Solution:* {b} + {b + c} = {2 * b + c} a day, and {a} × {2 * b + c} = {a * (2 * b + c)}."
        )
    return (
        f"**{number}.** The {item} of {place} weigh {a}, {b} and {a + b + c} kilos. What is their mean weight?\n"
        f"*Solution:* {a} + {b} + {a + b + c} = {2 * a + 2 * b + c}, divided by 3: {decimal(2 * a + 2 * b + c, 3, 2)} kg "
        "(two decimals)."
    )


def _sheet(s: Slots, n: int) -> str:
    lead = Text("[Here are|A sheet with|As you asked:] {n} problems, each with its solution.").render(s)
    return "\n\n".join([lead, *(_problem(s, i + 1) for i in range(n))])


def _chapters(s: Slots, n: int) -> str:
    parts = []
    for number in range(1, n + 1):
        inner = Slots(s.r, s.pools)
        inner.update(
            place=s["place"],
            first=s["first"],
            animal=s["animal"],
            object=s["object"],
            town=s["town"],
            trait=s["trait"],
            job=s["job"],
        )
        lead = inner.text("lead") if number == 1 else inner.text("opening")
        body = [inner.text(key) for key in ("middle", "turn", "middle2", "middle3", "turn2", "middle4", "turn3")]
        last = inner.text("end") if number == n else inner.text("turn4")
        title = Text("[The {place}|{weather}|{first2}|A {object2}|{month}|The {animal} again|{food}]").render(inner)
        head = f"## {number}. {title[0].upper()}{title[1:]}"
        parts.append(f"{head}\n\n{lead} {' '.join(body[:3])}\n\n{' '.join(body[3:])} {last}")
    return "\n\n".join(parts)


def _rows(s: Slots, n: int) -> list[tuple[str, str, str, int]]:
    r = s.r
    first, last, city, item = POOLS["first"], POOLS["last"], POOLS["city"], POOLS["item"]
    return [(f"{r.pick(first)} {r.pick(last)}", r.pick(city), r.pick(item), r.between(1, 500)) for _ in range(n)]


def _records(s: Slots, n: int) -> str:
    rows = _rows(s, n)
    s["csv"] = "\n".join(f"{a},{b},{c},{d}" for a, b, c, d in rows)
    data = [{"name": a, "city": b, "item": c, "count": d} for a, b, c, d in rows]
    return "```json\n[\n  " + ",\n  ".join(json.dumps(row) for row in data) + "\n]\n```"


def _log(s: Slots, n: int) -> str:
    lines, report, at, total = [], [], 480, 0
    for name, city, item, count in _rows(s, n):
        at += s.r.between(2, 19)
        total += count
        lines.append(f"{clock(at)} {name}, {city}: {count} {item}")
        report.append(
            s.r.pick(
                (
                    "At {0} {1} from {2} brought {3} {4}.",
                    "{1} came from {2} at {0} and left {3} {4}.",
                    "Then, at {0}, it was {1} of {2} with {3} {4}.",
                    "The next was {1} ({2}), with {3} {4}, at {0}.",
                )
            ).format(clock(at), name, city, count, item)
        )
    s["log"] = "\n".join(lines)
    return " ".join(report) + f"\n\nIn all there were {n} visits, and {total} things were counted."


_DAY = Text(
    "**Day {n}.** [In the morning|First|Until noon]: {i_10_90} minutes [outside, by the {place}|with {first}|at the "
    "{shop}|alone and without hurry]. [After lunch ({food})|Later|In the afternoon], [look at the {item}|write down what "
    "went well|prepare the {object}|repeat the part you liked least]. [In the evening|At the end], [rest|sleep early|read "
    "about {hobby}|call {first2}]."
)


def _plan(s: Slots, n: int) -> str:
    lines = []
    for number in range(1, n + 1):
        inner = Slots(s.r, s.pools)
        inner["n"] = number
        lines.append(_DAY.render(inner))
    words = listing([s.text("item2"), s.text("item3"), s.text("object2")])
    return "\n".join(lines) + f"\n\nWhat you need: {words}. Take every seventh day a little easier."


_BUILD: dict[str, tuple[Callable[[Slots, int], str], int]] = {
    # The number beside each: how many of its units make about seven hundred tokens.
    "sheet": (_sheet, 14),
    "chapters": (_chapters, 5),
    "records": (_records, 19),
    "log": (_log, 20),
    "plan": (_plan, 16),
}


def _builder(name: str, huge: bool) -> Callable[[Slots, int], list[str]]:
    make, unit = _BUILD[name]

    def build(s: Slots, way: int) -> list[str]:
        # Lengths spread over a wide range: a quarter to three thousand tokens, or nine to fifteen thousand.
        n = (
            unit * s.r.between(14 * 8, 22 * 8) // 8
            if huge
            else max(3, unit * s.r.pick((3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 22, 28)) // 8)
        )
        s["n"] = n
        answer = make(s, n)
        return [_ASK[name][way].render(s), answer]

    return build


TOPICS = [Topic("long_" + name, "demo/long", POOLS, build=_builder(name, huge=False), built_ways=3) for name in _BUILD]
HUGE = [Topic("huge_" + name, "demo/long", POOLS, build=_builder(name, huge=True), built_ways=3) for name in _BUILD]
