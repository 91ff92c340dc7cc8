"""Classification and other questions with short answers."""

from __future__ import annotations

from databuild.sources.demo_text.script import Setup, Slots, parse, parse_pools
from databuild.sources.demo_text.words import POOLS as WORDS

POOLS = WORDS | parse_pools(
    """
good: I loved the {food} | the {job} was so kind | everything arrived on {day}, as promised | it works better than my
  old one | the colour is lovely | I would buy it again | my {animal} likes it too | worth every cent of {i_9_300}
  euros |
  the people of the {shop} in {city} were patient | it lasted for {i_3_30} years | we laughed all evening
bad: it broke after {i_2_20} days | the {food} was cold | nobody answered my {i_2_9} letters | the box was empty |
  it smells of glue | I waited {i_30_180} minutes | two screws were missing | the {shop} in {city} would not take
  it back |
  it is far too loud | {i_40_500} euros for this are a joke | the {colour} paint came off
flat: it is {colour} | it came on {day} | I bought it in {city} | there are {i_2_12} in a box | it weighs {i_2_30}
  kilos |
  it is for my {animal} | the label says {month} | it stands in the hall | I use it for {hobby}
sport: {town} beat {town2} by {i_20_60} points on {day} | {first} {last} won the rowing final in {city} |
  the swimming gala drew {i_90_900} athletes
food_news: the {shop} in {town} now bakes {food} | {first} {last} cooks {food} for {i_20_300} guests |
  a recipe for {food} won in {city}
travel: the night train to {city} stops in {town} again from {month} | {i_20_90} steps lead up to the {place} of
  {town} |
  walkers reach {town} in {i_2_9} hours
science: researchers in {city} measured how far a {animal} can hear | a telescope near {town} saw {i_3_40} new
  comets |
  {first} {last} found out why a {animal} sleeps so long
money: the {shop} in {town} raises its prices by {i_2_9} percent | {city} spends {i_2_90} million on the {place} |
  rents in {town} fell by {i_2_15} percent
urgent: the server in {city} is down | water runs into the {place} | nobody can log in since {i_6_11} o'clock
normal: printer {i_2_40} in {city} is out of paper | {first} {last} needs a new chair in room {i_100_400} |
  please move the {object} to the {place} by {day}
mammal: badger, cat, dog, donkey, fox, hare, hedgehog, mole, mouse, otter, pony, rabbit, seal, squirrel
bird: barn owl, blackbird, crow, heron, kingfisher, magpie, pigeon, puffin, raven, robin, sparrow, stork, swan
"""
)
_TOPIC_NAMES = {"sport": "sport", "food_news": "food", "travel": "travel", "science": "science", "money": "economy"}


def _review(s: Slots) -> None:
    kind = s.r.pick(("good", "bad", "flat"))
    parts = [s.text(kind), s.text(kind + "2"), s.text(kind + "3")]
    s["review"] = ". ".join(part[0].upper() + part[1:] for part in parts) + "."
    s["label"] = {"good": "positive", "bad": "negative", "flat": "neutral"}[kind]
    s["sign"] = {"good": "only praise", "bad": "only complaints", "flat": "plain facts without praise or blame"}[kind]
    s.update(a=parts[0], b=parts[1], number={"good": "+1", "bad": "-1", "flat": "0"}[kind])


def _news(s: Slots) -> None:
    kind = s.r.pick(tuple(_TOPIC_NAMES))
    head = s.text(kind)
    s.update(news=head[0].upper() + head[1:] + ".", label=_TOPIC_NAMES[kind])


def _ticket(s: Slots) -> None:
    kind = s.r.pick(("urgent", "normal"))
    s.update(ticket=s[kind], label=kind)
    s["why"] = "people cannot work until it is fixed" if kind == "urgent" else "it can wait for its turn"


def _odd(s: Slots) -> None:
    many, one = s.r.pick((("mammal", "bird"), ("bird", "mammal")))
    words = s.r.sample(POOLS[many], s.r.between(3, 5))
    odd = s.r.pick(POOLS[one])
    words.insert(s.r.below(len(words) + 1), odd)
    s.update(list=", ".join(words), odd=odd, many=many, one=one, n=len(words))


def _number(s: Slots) -> None:
    a, b = s.r.between(1000, 99999), s.r.between(1000, 99999)
    n = s.r.between(10000, 999999)
    s.update(n=n, parity="even" if n % 2 == 0 else "odd", a=a, b=b, larger=max(a, b), smaller=min(a, b), sum=a + b)
    s.update(three="yes" if n % 3 == 0 else "no", digits=sum(map(int, str(n))), next=n + 1, last=n % 10)
    s["same"] = "They are equal." if a == b else f"{max(a, b)} is larger."


def _count(s: Slots) -> None:
    text = f"{s['first']} {s['last']} saw a {s['animal']} near the {s['place']} of {s['town']}"
    letter = s.r.pick("aeinorst")
    s.update(text=text, letter=letter, n=text.lower().count(letter), words=len(text.split()))
    s["back"] = s.text("town")[::-1]


SETUPS: dict[str, Setup] = {
    "review": _review,
    "news": _news,
    "ticket": _ticket,
    "odd": _odd,
    "number": _number,
    "count": _count,
}

SCRIPT = """
@ review review
? Is this review positive, negative or neutral? Answer with one word.¶¶{review}
! {label}
? "{review}" - sentiment?
! [The sentiment is|I would call it|That reads as] {label}: {sign}.
? Label the review (positive / negative / neutral) and give the reason.¶{review}
! {label}. The text holds {sign}, for example "{a}".
? Rate the mood of this text as -1, 0 or +1. Just the number.¶¶{review}
! {number}
@ news news
? Which topic fits: sport, food, travel, science or economy?¶¶{news}
! {label}
? Sort this headline into a section of the paper (sport, food, travel, science, economy): "{news}"
! It belongs under **{label}**.
? Tag with one of ⟦sport, food, travel, science, economy⟧: {news}
! ⟦{label}⟧
@ ticket! ticket
? Urgent or normal? "{ticket}"
! {label}
? How should this ticket from {first2} {last2} in {city3} be ranked, urgent or normal? {ticket}
! As {label}, because {why}.
? Return JSON with the keys "priority" (urgent/normal) and "text" for this ticket: {ticket}
! {{"priority": "{label}", "text": "{ticket}"}}
@ odd! odd
? Which one does not belong: {list}?
! {odd}
? Find the odd one out and explain: {list}
! {odd}: it is a {one}, while each of the others is a {many}.
? {n} animals, but one is of another kind. Which? {list}
! The {odd}, the only {one} in the list.
@ parity number
? Is {n} even or odd? One word.
! {parity}
? Can {n} be divided by 3? [Explain briefly.|Why or why not?]
! {three}: its digits add up to {digits}, and a number can be divided by 3 exactly when its digit sum can.
? Which number comes after {n}?
! {next}
? What is the last digit of {n}, and is the number even?
! The last digit is {last}, so {n} is {parity}.
@ larger number
? Which is larger, {a} or {b}?
! {same}
? Give only the sum: {a} + {b}
! {sum}
? Order from small to large: {a}, {b}
! {smaller}, {larger}
@ letters count
? How often does the letter "{letter}" occur in "{text}"? Ignore case.
! {n} [times|in total] (counting small and capital letters).
? Count the words: {text}
! {words}
? Write the name of the town backwards: {text}
! {back}
? Who saw the animal? Give the full name only.¶{text}
! {first} {last}
? Where was it seen? "{text}"
! Near the {place} of {town}.
? Which animal is it? One or two words.¶¶{text}.
! {animal}
@ extract
? Extract name, date and place: "Dear team, {first} {last} will visit the {place} in {city} on {i_1_28} {month}."
? {first} {last} will be at the {place} in {city} on {i_1_28} {month}. Give name, date, place as a list.
= - Name: {first} {last}¶- Date: {i_1_28} {month}¶- Place: {place}, {city}
= Name: {first} {last}; date: {i_1_28} {month}; place: the {place} in {city}.
@ email
? Pull the e-mail address out of this: "Write to {first} at desk{i_2_9999}@{colour}-office.example before {day}."
! desk{i_2_9999}@{colour}-office.example
? Which phone extension and room are meant? "{first} {last} sits in room {i_100_900}, extension {i_1000_9999},
  until {day}."
! Room {i_100_900}, extension {i_1000_9999}.
? When does {first} arrive? "The train from {city} leaves at {i_6_11}:{i_10_59} and {first} gets in {i_2_9} hours
  later."
! {i_2_9} hours after {i_6_11}:{i_10_59}.
@ yesno!
? Yes or no: a {animal} is an animal, and {city} is a city.
! Yes
? Did {first} pay? "{first} {last} took {i_2_90} {item} from the {shop}, left {i_3_99} euros and went home to {town}."
! Yes, {i_3_99} euros.
? Was {first} late? "The {event} in {town} began at {i_2_4} in the afternoon. {first} came at {i_5_9} with a
  {object}."
! Yes; it began at {i_2_4} and {first} came at {i_5_9}.
"""

TOPICS = parse(SCRIPT, "demo/labels", POOLS, SETUPS)
