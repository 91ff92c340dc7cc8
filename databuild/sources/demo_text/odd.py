"""The odd conversations that real data has: missing turns, strange characters, special tokens in the text.

Which index is odd, and how, follows from its remainder alone, so that every kind turns up at a fixed rate.
"""

from __future__ import annotations

from collections.abc import Callable

from databuild.sources.demo_text.rng import Rng
from databuild.sources.demo_text.script import Slots, Text
from databuild.sources.demo_text.words import POOLS

_PER_THOUSAND = {
    17: "empty answer",
    101: "ends with user",
    229: "no assistant",
    307: "assistant first",
    389: "two users",
    433: "ends with user",
    457: "duplicate id",
    523: "repeat",
    571: "special in question",
    613: "special in answer",
    641: "think in question",
    659: "white space",
    701: "crlf",
    743: "line separator",
    787: "next line",
    811: "ends with user",
    823: "byte order mark",
    859: "combining",
    881: "emoji",
    907: "zero width",
    929: "astral",
    953: "long word",
}
_PER_THREE_THOUSAND = {733: "no messages", 1411: "no content", 2087: "narrator", 2753: "narrator"}

_SPECIAL = ("<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>")

# Kinds that replace the conversation: question and answer.
_TEXTS = {
    kind: (Text(question), Text(answer))
    for kind, (question, answer) in {
        "special in question": (
            "In line {i_2_9000} of my log from {city} stands {token}. What is it, and may {first} {last} delete it?",
            "It is a special token of a language model: it marks a place in the conversation and is not meant to be read. "
            "{first} can leave line {i_2_9000} alone; if the log goes into a data set, check that it is treated as text.",
        ),
        "special in answer": (
            "{first} {last} collects marks that chat models use in their input. Name some of them for the {place} in {town}.",
            "Some that people may meet are <｜begin▁of▁sentence｜> at the start, <｜User｜> before a question, <｜Assistant｜> "
            "before an answer, <think> and </think> around a line of thought, and <｜end▁of▁sentence｜> at the end. In {town} "
            "they are only letters.",
        ),
        "think in question": (
            "<think>{first} wants {food} on {day}.</think> What did I, {first2} {last}, just write in angle brackets?",
            "You wrote that {first} wants {food} on {day}. The words stand between <think> and </think>, {first2}.",
        ),
        "emoji": (
            "Which emoji fit {food}, {hobby} and {city}? 🙂 {first} {last} needs them for the {event} 🎉",
            "For {food} 🍽️, for {hobby} 🎨 and for {city} 🏙️. Together with a greeting: 👋🏽 {first}, see you at the {event} "
            "👩‍👩‍👧‍👦🎈🏳️‍🌈!",
        ),
        "zero width": (
            'Why does {first}\'s search not find "{object_hidden}" in the list of the {shop} in {city}, row {i_2_9000}?',
            'There is a zero-width space inside: "{object_hidden}" looks like "{object}" but holds one invisible '
            "character more. Type the word in row {i_2_9000} again and the search will work.",
        ),
        "astral": (
            "{first} {last} found these signs on a card from {city}: 𝒜𝓁𝓁 𓂀 𐍈 𝄞 𠮷. Where do they come from? ({i_2_9000})",
            "𝒜𝓁𝓁 is written in mathematical script letters, 𓂀 is an Egyptian hieroglyph, 𐍈 a Gothic letter, 𝄞 the treble "
            "clef and 𠮷 a rare form of a Chinese character. None of them has a code below 65,536, {first}.",
        ),
        "combining": (
            'Is "Cafe\u0301 {last}" in {city} the same as "Café {last}"? {first} sees no difference, the program does.',
            'They look alike, but "Cafe\u0301" is an e followed by a combining accent, while "Café" has one character for '
            'both. Bring both to one normal form, {first}, before comparing "{last}" and the like.',
        ),
        "long word": (
            "What is in this string, and how long is it? {first} {last} got it from {city}: {word}",
            'It has {length} characters and no space; the letters "{piece}" repeat {times} times. It carries no message, '
            "{first}.",
        ),
    }.items()
}


def kind_of(index: int) -> str:
    """Return how the conversation of an index is odd; an empty text if it is ordinary."""
    return _PER_THREE_THOUSAND.get(index % 3000) or _PER_THOUSAND.get(index % 1000, "")


def replacement(kind: str, rng: Rng) -> list[str] | None:
    """Return question and answer for kinds that have texts of their own, else None."""
    if kind not in _TEXTS:
        return None
    slots = Slots(rng, POOLS)
    hidden = slots.text("object")
    piece, times = slots.text("town").lower().replace(" ", ""), rng.between(150, 400)
    slots.update(object_hidden=hidden[:3] + "\u200b" + hidden[3:], token=rng.pick(_SPECIAL))
    slots.update(piece=piece, times=times, word=piece * times, length=len(piece) * times)
    question, answer = _TEXTS[kind]
    return [question.render(slots), answer.render(slots)]


def bend(kind: str, messages: list[dict[str, str | None]], rng: Rng) -> list[dict[str, str | None]]:
    """Return the messages of an ordinary conversation made odd in the given way."""
    name = rng.pick(POOLS["first"])
    thanks = (
        f"Thank you! {name} and I will try it in {rng.pick(POOLS['city'])}. One more thing, {rng.pick(POOLS['day'])}:"
    )
    if kind == "no messages":
        return []
    if kind == "no content":
        return [*messages[:-1], {"content": None, "role": "assistant"}]
    if kind == "narrator":
        told = f"{name} reads the answer and nods. It is {rng.pick(POOLS['weather'])}."
        return [*messages, {"content": told, "role": "narrator"}]
    if kind == "empty answer":
        return [*messages[:-1], {"content": "", "role": "assistant"}]
    if kind == "ends with user":
        return [*messages, {"content": thanks, "role": "user"}]
    if kind == "no assistant":
        return [message for message in messages if message["role"] != "assistant"]
    if kind == "assistant first":
        return [{"content": f"Hello {name}, what can I do for you?", "role": "assistant"}, *messages]
    if kind == "two users":
        return [{"content": f"{name} here, are you there?", "role": "user"}, *messages]
    changes: dict[str, Callable[[str], str]] = {
        "white space": lambda text: f"  \n\t{text} \n\n ",
        "crlf": lambda text: text.replace("\n", "\r\n") + "\r\n\r\n",
        "line separator": lambda text: text.replace(". ", ".\u2028") + "\u2028\u2029",
        "next line": lambda text: text.replace(". ", ".\u0085") + "\u0085",
        "byte order mark": lambda text: "\ufeff" + text,
    }
    change = changes.get(kind)
    if change is None:
        return messages
    return [{"content": change(message["content"] or ""), "role": message["role"]} for message in messages]
