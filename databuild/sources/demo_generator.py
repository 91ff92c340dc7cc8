"""The built-in ``demo`` source: conversations that a seeded generator makes up, without network or data files.

The text of a conversation depends on its index alone. Only integers decide what is written, so every Python version and
platform gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

from databuild.sources.demo_text import compose, odd
from databuild.sources.demo_text.catalog import HUGE, WHEEL, Way
from databuild.sources.demo_text.frames import frame, system_prompt
from databuild.sources.demo_text.languages import signed
from databuild.sources.demo_text.rng import Rng

NUM_CONVERSATIONS = 3000
"""The number of conversations in the demo source."""

Form: TypeAlias = Literal["one", "several", "again", "versions"]

_SEED = 3_000_009
_HUGE_EVERY, _HUGE_AT = 700, 350
_ONE_PERCENT = 30
# How many questions come on top of the first when there are several.
_MORE_PARTS = (1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 7)
_EXERCISES = ("demo/maths", "demo/dates-units")
# Topics whose answers may differ, so that one can ask for two of them.
_FREE = frozenset(
    (
        "story",
        "beginning",
        "poem",
        "character",
        "place",
        "invite",
        "thanks",
        "complaint",
        "apology",
        "sick",
        "application",
        "reschedule",
        "advert",
        "toast",
        "review",
        "status",
        "agenda",
        "recipe",
        "trip",
        "study",
        "tips",
        "packing",
        "gift",
        "proscons",
        "workshop",
        "letter",
        "image",
        "long",
    )
)


def conversation(index: int) -> dict[str, Any]:
    """Return the conversation of an index, which may be any integer from 0 up.

    The shape is ``{"id": str, "messages": [{"content": str, "role": str}, ...], "source": str}``. A few conversations are
    odd on purpose, as in real data: without messages, with a content of ``None`` or an unknown role, and the like (see
    :mod:`~databuild.sources.demo_text.odd`).
    """
    kind = odd.kind_of(index)
    if not kind:
        source, messages = _ordinary(index)
        return {"id": _id(index), "messages": messages, "source": source}
    rng = Rng(~index)
    texts = odd.replacement(kind, rng)
    if texts is not None:
        return {"id": _id(index), "messages": _messages(texts), "source": "demo/characters"}
    source, messages = _ordinary(index - 1 if kind == "repeat" else index)
    name = _id(index - 1 if kind == "duplicate id" else index)
    return {"id": name, "messages": odd.bend(kind, messages, rng), "source": source}


def conversations(start: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` conversations from index ``start`` on."""
    for index in range(start, start + count):
        yield conversation(index)


def _id(index: int) -> str:
    return f"demo_{index:06d}"


def _messages(texts: list[str]) -> list[dict[str, str | None]]:
    return [{"content": text, "role": "assistant" if turn % 2 else "user"} for turn, text in enumerate(texts)]


def _pick(index: int) -> tuple[list[Way], Form, Rng]:
    """Return the ways to ask that make up a conversation, its form, and the generator to go on with."""
    rng = Rng(index + _SEED)
    if index % _HUGE_EVERY == _HUGE_AT:
        return [rng.pick(HUGE)], "one", rng
    group = rng.pick(WHEEL)
    first = rng.pick(group)
    topic, way = first[1:]
    if topic.build is not None or rng.chance(_ONE_PERCENT):
        return [first], "one", rng
    if len(topic.answers) > 1 and way not in topic.own and topic.name.rpartition("_")[2] in _FREE and rng.chance(75):
        return [first], "versions", rng
    if topic.setup is not None and topic.source in _EXERCISES and rng.chance(40):
        return [first], "again", rng
    return [first, *rng.sample(group, rng.pick(_MORE_PARTS))], "several", rng


def _ordinary(index: int) -> tuple[str, list[dict[str, str | None]]]:
    ways, form, rng = _pick(index)
    _, topic, way = ways[0]
    framed = topic.framed or rng.chance(25)
    if form == "several":
        parts = [part.turns(rng, part_way) for _, part, part_way in ways]
        texts = compose.several(rng, topic.language, topic.pools, parts)
    elif form == "again":
        first, second = topic.turns(rng, way), topic.turns(rng, way)
        texts = compose.second_example(rng, topic.language, topic.pools, first, second)
    elif form == "versions":
        texts = compose.two_versions(rng, topic.language, topic.pools, topic.turns(rng, way, versions=2))
    else:
        follow = rng.between(1, len(topic.more)) if topic.more and rng.chance(35) else 0
        texts = topic.turns(rng, way, follow)
    if framed and form != "several":
        # What people say around a question is in English, so other languages get only a name and a date.
        english = topic.language == "en"
        texts[0] = frame(rng, texts[0]) if english else signed(rng, topic.pools, texts[0])
    messages = _messages(texts)
    if rng.chance(5):
        messages.insert(0, {"content": system_prompt(rng), "role": "system"})
    return topic.source, messages


def _template_of(index: int) -> str:
    """Return the names of the question's templates, before slots are filled and without what is said around them.

    The first comes first; a question of several parts joins theirs with ``|``.
    """
    kind = odd.kind_of(index)
    if kind == "repeat":
        return _template_of(index - 1)
    if odd.replacement(kind, Rng(0)):
        return f"odd/{kind}"
    ways, form, _ = _pick(index)
    return "|".join([name for name, _, _ in ways] + ([] if form in ("one", "several") else [form]))
