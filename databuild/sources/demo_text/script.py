"""The script format in which topics are written, and how one of them becomes a conversation.

A script is lines, each with a mark in front; a line that begins with two spaces continues the one before it::

    @ name setup      a topic, and the function (if any) that computes its slots; ``name!`` makes it framed
    ? text            one way to ask
    ! text            an answer to the question before it, and to no other
    = text            one way to answer any question that has no answer of its own
    > text            a follow-up question
    < text            its answer

In a text ``[a|b]`` is one of the alternatives, ``{word}`` is a slot ``¶`` is a line break and ``⟦ ⟧`` are
plain brackets. A slot that the setup
did not compute is drawn from the word list of that name; ``{word2}`` is a second, different word from the same list
and ``{i_3_9}`` an integer from 3 to 9.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from databuild.sources.demo_text.rng import Rng

Pools: TypeAlias = Mapping[str, Sequence[str]]
Setup: TypeAlias = "Callable[[Slots], None]"


class Slots(dict[str, object]):
    """The slot values of one conversation; what is missing is drawn at its first use and kept."""

    __slots__ = ("pools", "r")

    def __init__(self, rng: Rng, pools: Pools) -> None:
        super().__init__()
        self.r = rng
        self.pools = pools

    def __missing__(self, key: str) -> object:
        if key[:2] == "i_":
            parts = key.split("_")
            number = self.r.between(int(parts[1]), int(parts[2]))
            self[key] = number
            return number
        pool = self.pools[key.rstrip("0123456789")]
        at = self.r.below(len(pool))
        value = pool[at]
        for _ in range(len(pool)):
            # The same word twice in one text reads badly: walk on to one that is not used yet.
            if value not in self.values():
                break
            at = (at + 1) % len(pool)
            value = pool[at]
        if "{" in value:
            # The entry as listed is kept too, under a key that no text can name, for the walk above to see.
            self["\0" + key] = value
            value = value.format_map(self)
        self[key] = value
        return value

    def text(self, key: str) -> str:
        """Return a slot as text."""
        return str(self[key])


def _brackets(text: str) -> str:
    return text.replace("⟦", "[").replace("⟧", "]")


class Text:
    """A compiled text: fixed parts and tuples of alternatives."""

    __slots__ = ("_parts", "_slots")

    def __init__(self, source: str) -> None:
        parts: list[str | tuple[str, ...]] = []
        rest = re.sub(" +¶", "¶", source).replace("¶", "\n")
        while rest:
            before, bracket, after = rest.partition("[")
            if before:
                parts.append(before)
            if not bracket:
                break
            inside, end, rest = after.partition("]")
            if not end or "[" in inside:
                raise ValueError(f"unbalanced [alternatives] in {source!r}")
            parts.append(tuple(inside.split("|")))
        self._parts = [_brackets(part) if isinstance(part, str) else tuple(map(_brackets, part)) for part in parts]
        self._slots = "{" in source

    def render(self, slots: Slots) -> str:
        """Return the text with alternatives chosen and slots filled in."""
        below = slots.r.below
        text = "".join([part if type(part) is str else part[below(len(part))] for part in self._parts])
        return text.format_map(slots) if self._slots else text


@dataclass
class Topic:
    """One task: its ways to ask, its ways to answer and its follow-ups.

    ``framed`` topics have few different slot values; their questions always come with a sentence about who asks. A topic
    with ``build`` has no script: the function returns its turns, given the slots and the way to ask.
    """

    name: str
    source: str
    pools: Pools
    setup: Setup | None = None
    prompts: list[Text] = field(default_factory=list)
    answers: list[Text] = field(default_factory=list)
    own: dict[int, list[Text]] = field(default_factory=dict)
    more: list[tuple[Text, Text]] = field(default_factory=list)
    framed: bool = False
    build: Callable[[Slots, int], list[str]] | None = None
    built_ways: int = 1

    @property
    def language(self) -> str:
        """The language of the texts; the names of topics in other languages than English begin with it."""
        return self.name[:2] if self.source == "demo/multilingual" else "en"

    @property
    def ways(self) -> int:
        """The number of ways to ask."""
        return self.built_ways if self.build else len(self.prompts)

    def turns(self, rng: Rng, way: int, follow: int = 0, versions: int = 1) -> list[str]:
        """Return the texts of the turns, user first, asked in the given way with up to ``follow`` follow-ups.

        With ``versions`` above one, that many answers to the question come after it.
        """
        slots = Slots(rng, self.pools)
        if self.setup is not None:
            self.setup(slots)
        if self.build is not None:
            return self.build(slots, way)
        answers = self.own.get(way) or self.answers
        at = rng.below(len(answers))
        texts = [self.prompts[way].render(slots)]
        texts += [answers[(at + i) % len(answers)].render(slots) for i in range(versions)]
        for question, answer in self.more[:follow]:
            texts += [question.render(slots), answer.render(slots)]
        return texts


def _unfold(text: str, joiner: str = " ") -> list[str]:
    lines: list[str] = []
    for line in text.strip("\n").split("\n"):
        if line.startswith("  "):
            lines[-1] += ("" if lines[-1].endswith("¶") else joiner) + line.strip()
        elif line:
            lines.append(line)
    return lines


def parse_texts(text: str) -> dict[str, Text]:
    """Return named texts from lines ``name: text``, continued by two spaces."""
    return {name: Text(rest) for name, _, rest in (line.partition(": ") for line in _unfold(text))}


def parse_pools(text: str, joiner: str = " ") -> dict[str, list[str]]:
    """Return word lists from lines ``name: word, word``.

    A line that begins with two spaces continues the one before it; a list with a ``|`` in it is split there instead.
    """
    pools: dict[str, list[str]] = {}
    for line in _unfold(text, joiner):
        name, _, words = line.partition(": ")
        pools[name] = [word.strip() for word in words.split("|" if "|" in words else ",")]
    return pools


def parse(
    script: str,
    source: str,
    pools: Pools,
    setups: Mapping[str, Setup] | None = None,
    prefix: str = "",
    joiner: str = " ",
) -> list[Topic]:
    """Return the topics of a script.

    ``joiner`` stands between a line and its continuation; it is empty for languages written without spaces.
    """
    topics: list[Topic] = []
    question = ""
    for line in _unfold(script, joiner):
        mark, text = line[0], line[2:].strip()
        if mark == "@":
            name, _, setup = text.partition(" ")
            topics.append(Topic(prefix + name.rstrip("!"), source, pools, (setups or {})[setup] if setup else None))
            topics[-1].framed = name.endswith("!")
        elif mark == "?":
            topics[-1].prompts.append(Text(text))
        elif mark == "!":
            topics[-1].own.setdefault(len(topics[-1].prompts) - 1, []).append(Text(text))
        elif mark == "=":
            topics[-1].answers.append(Text(text))
        elif mark == ">":
            question = text
        elif mark == "<":
            topics[-1].more.append((Text(question), Text(text)))
        else:
            raise ValueError(f"a script line needs one of the marks @ ? ! = > < in front: {line!r}")
    return topics
