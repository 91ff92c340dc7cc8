"""What the topics in all languages other than English share: the numbers behind them."""

from __future__ import annotations

from databuild.sources.demo_text.rng import Rng
from databuild.sources.demo_text.script import Pools, Setup, Slots, Topic, parse, parse_pools


def _shop(s: Slots) -> None:
    # From 5 to 20, and prices in steps of five: these need one plural form only in every language used here.
    n, price = s.r.between(5, 20), s.r.between(1, 60) * 5
    total = n * price
    note = (total // 100 + s.r.between(1, 4)) * 100
    s.update(n=n, p=price, t=total, b=note, c=note - total)


def _travel(s: Slots) -> None:
    speed, hours, stop = s.r.between(6, 24) * 5, s.r.between(5, 12), s.r.between(5, 120)
    s.update(v=speed, h=hours, km=speed * hours, left=stop * 10, all=speed * hours + stop * 10)


def _area(s: Slots) -> None:
    a, b = s.r.between(5, 90), s.r.between(5, 60)
    s.update(a=a, b=b, area=a * b, per=2 * (a + b), sum=a + b)


def _mean(s: Slots) -> None:
    a, b, mean = s.r.between(5, 90), s.r.between(5, 90), s.r.between(50, 80)
    s.update(a=a, b=b, c=3 * mean - a - b + 60, sum=3 * mean + 60, mean=mean + 20)


def _discount(s: Slots) -> None:
    price, pct = s.r.between(2, 60) * 20, s.r.between(1, 12) * 5
    s.update(p=price, pct=pct, off=price * pct // 100, rest=price - price * pct // 100)


def _fact(s: Slots) -> None:
    s["term"], s["what"] = s.r.pick(s.pools["fact"]).split("=")


def _pairs(s: Slots) -> None:
    pairs = [pair.format_map(s).split("=") for pair in s.r.sample(s.pools["pair"], s.r.between(3, 5))]
    s.update(en=" ".join(pair[0].strip() for pair in pairs), own=s.pools["gap"][0].join(p[1].strip() for p in pairs))


def _review(s: Slots) -> None:
    good = s.r.chance(50)
    first, second = s.r.sample(s.pools["good" if good else "bad"], 2)
    text = (first + s.pools["gap"][0] + second).format_map(s)
    signed = f"{s.pools['gap'][0]}({s['first9']}, {s['city9']}, {s.r.between(1, 28)}.{s.r.between(1, 12)}.)"
    s.update(text=text, review=text + signed, label=s.pools["labels"][0 if good else 1])


SETUPS: dict[str, Setup] = {
    "shop": _shop,
    "travel": _travel,
    "area": _area,
    "mean": _mean,
    "discount": _discount,
    "fact": _fact,
    "pairs": _pairs,
    "review": _review,
}


def signed(rng: Rng, pools: Pools, question: str) -> str:
    """Return the question with the name and city of who asks and a date before it, written alike in every language."""
    day, month = rng.between(1, 28), rng.between(1, 12)
    return f"{rng.pick(pools['first'])} ({rng.pick(pools['city'])}, {day}.{month}.): {question}"


def language(name: str, pools: str, script: str, spaced: bool = True) -> list[Topic]:
    """Return the topics of a language; ``spaced`` says whether it writes spaces between words."""
    lists = parse_pools(pools, " " if spaced else "")
    lists["gap"] = [" " if spaced else ""]
    topics = parse(script, "demo/multilingual", lists, SETUPS, prefix=name + "_", joiner=" " if spaced else "")
    for topic in topics:
        topic.framed = topic.name[3:] in ("area", "fact", "recipe", "translate", "travel")
    return topics
