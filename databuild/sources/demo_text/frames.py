"""What people say around a question, and system prompts."""

from __future__ import annotations

from databuild.sources.demo_text.rng import Rng
from databuild.sources.demo_text.script import Slots, Text
from databuild.sources.demo_text.words import POOLS

_BEFORE = [
    Text(text)
    for text in (
        "I am {first} {last}, a {job} in {city}. ",
        "{first} {last} from {city} asked me this: ",
        "Good [morning|evening|afternoon], {first} {last} here, {job} in {town}. ",
        "My [sister|brother|aunt|uncle|neighbour|cousin] {first} in {city} and I, a {job}, cannot agree. ",
        "For the {event} in {town} on {day}, {first} {last} needs this. ",
        "A {job} named {first} {last} wrote on the board of the {place} in {city}:¶",
        "[Quick|Small|Short] question from {first} {last} ({city}, {i_10_79}): ",
        "We are {i_2_30} people at the {place} in {town}, and {first} {last} wants to know something. ",
        "[Tomorrow|On {day}] I meet {first} {last} in {city}, so I need an answer. ",
        "This is question {i_2_400} from {first} {last}'s notebook. ",
        "[Since {month}|For {i_2_30} years] I have been a {job} in {city}, called {first} {last}, and I still wonder: ",
        "I teach at the {place} in {town}. {first} {last} in row {i_2_30} asked: ",
        "{first} {last}, {i_8_80}, {city}: ",
        "Hello from {city}! I am {first}, I like {hobby}, and my friend {last} sent me here. ",
        "While [waiting|having {food}] at the {place} in {town}, {first} {last} and I came up with this. ",
        "Task {i_2_900}, set by {first} {last} ({shop}, {city}).¶¶",
        "[Dear assistant|Hi|Hello|Hey there], this is {first} {last} from the {shop} in {town}. ",
        "On the train from {city} to {city2}, {first} {last} asked me: ",
        "I promised {first} {last}, the {job}, an answer by {day}, {i_1_28} {month}. ",
        "Between {hobby} and {hobby2}, {first} {last} of {town} found this one. ",
    )
]
_AFTER = [
    Text(text)
    for text in (
        " [Thank you|Thanks], {first} {last}, {city}",
        "¶¶[Best|Regards|Greetings], {first} {last} ({job}, {town})",
        " (It is for {first} {last} in {city}, {i_10_90} years old.)",
        " [I need it|It is needed] by {day}, {i_1_28} {month}, for {first} {last}.",
        "¶¶{first} {last}, {city}, {i_1_28} {month}",
        " [My friend|My colleague] {first} {last}, a {job} in {city}, will read it too.",
        " Asked by {first} {last} at the {place} of {town}, number {i_2_900}.",
        "¶- {first} {last}, {shop} in {town}",
        " {first} {last} in {city} is curious as well, and so is a {job} called {first2}.",
        " [Please|Kindly] answer before the {event} on {day}; {first} {last} from {town} waits.",
    )
]
_SYSTEM = [
    Text(text)
    for text in (
        "You are a [helpful|patient|friendly|careful] assistant for the {shop} in {city}.",
        "You help {job}s. [Be brief|Be clear|Stay polite|Answer plainly].",
        "Answer in the language of the question. The user's name is {first} {last}.",
        "You are a tutor called {first}. [Explain each step|Praise effort|Keep the tone calm].",
        "Today is {day}, {i_1_28} {month}. The user lives in {city}.",
        "[Write|Answer] as an experienced {job} from {city} would, without jargon.",
        "Service desk of {town}, shift {i_2_90}. [Do not guess|Say when you are unsure|Use whole sentences].",
        "You work for the library of {town}. Readers ask you all kinds of things; [help them|answer kindly].",
        "Assistant for the {event}. Contact for anything else: {first} {last}.",
        "[Keep answers correct and simple|Be exact with numbers|Use Markdown where it helps]. Audience: {job}s aged {i_18_70}.",
        "# Rules¶1. Be [friendly|honest|precise].¶2. Keep to the question.¶3. The user is a {job} named {first}.",
        "The assistant is called {first} and speaks for the {place} of {town}.",
    )
]


def frame(rng: Rng, question: str) -> str:
    """Return the question with a sentence before it or after it about who asks."""
    slots = Slots(rng, POOLS)
    # After a table or a block of code, a name would look like part of it.
    if rng.chance(62) or question[-1] not in ".?!":
        return rng.pick(_BEFORE).render(slots) + question
    return question + rng.pick(_AFTER).render(slots)


def system_prompt(rng: Rng) -> str:
    """Return a system prompt."""
    return rng.pick(_SYSTEM).render(Slots(rng, POOLS))
