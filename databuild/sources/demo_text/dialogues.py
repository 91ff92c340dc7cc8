"""Conversations of many turns, in which each turn builds on the ones before."""

from __future__ import annotations

from collections.abc import Callable

from databuild.sources.demo_text.numbers import decimal, listing, money
from databuild.sources.demo_text.script import Slots, Text, Topic
from databuild.sources.demo_text.stories import POOLS

_WORDS = {
    "Spanish": "agua water,árbol tree,casa house,ciudad city,flor flower,gato cat,libro book,luz light,mar sea",
    "French": "arbre tree,chat cat,eau water,fleur flower,livre book,lumière light,maison house,mer sea,pain bread",
    "German": "Baum tree,Blume flower,Brot bread,Buch book,Haus house,Katze cat,Licht light,Meer sea,Stadt city",
    "Italian": "acqua water,albero tree,casa house,città city,fiore flower,gatto cat,libro book,luce light,mare sea",
    "Turkish": "ağaç tree,çiçek flower,deniz sea,ekmek bread,ev house,ışık light,kedi cat,kitap book,su water",
}
_ASK = {
    name: [Text(text) for text in texts]
    for name, texts in {
        "quiz": (
            "Quiz me on multiplication, {n} questions, one at a time. I am {first} from {city}.",
            "Can you test my mental arithmetic with {n} questions? My name is {first}, and I like the number {table}.",
            "{first} here. Ask me {n} times-table questions, please, and tell me after each if I am right.",
            "I have {i_5_30} minutes before my train to {city}. Give {first}, that is me, {n} products to work out.",
        ),
        "budget": (
            "Please keep track of my spending today in {city}. I start with {start} euros.",
            "I have {start} euros for the {event}. I will tell you what I buy and you tell me what is left.",
            "{first} gave me {start} euros for {town}. Be my purse: subtract what I name.",
            "Let us do a running total: {start} euros in the jar for {hobby}, and I take money out.",
        ),
        "chain": (
            "Let us calculate step by step. Start with {start}.",
            "Be my calculator for {first}'s homework. The first number is {start}.",
            "I will give you one operation at a time. Begin at {start}, please, it is for the {event}.",
            "Take {start}, {first} says, and then do what I tell you.",
        ),
        "list": (
            "Start a shopping list for the {event}: {x} and {y}.",
            "Keep a list for me, please. First entries: {x}, {y}. It is for {first} in {city}.",
            "I am packing for {town}. Note down {x} and {y}.",
            'Make a list called "{first}" with {x} and {y} on it.',
        ),
        "words": (
            "Test my {lang} vocabulary, please, {n} words. I am {first}, a {job}.",
            "I move to {city} in {month} and learn {lang}. Ask me {n} words?",
            "{lang} words, please: you say one, I translate, {n} times. {first}",
            "Can we practise {lang}? {n} easy nouns are enough for a {job} on {day}.",
        ),
        "tale": (
            "Let us tell a story together, sentence by sentence. I begin: {lead}",
            "You write one sentence, then I write one. Mine: {lead}",
            "A story game for {city}: we take turns. {lead}",
            "Continue, one or two sentences at a time, please. {lead}",
        ),
        "help": (
            "My {thing} does not turn on. What can I do? I am in {city}.",
            "Hello, {first} {last} here. The {thing} I bought in {month} is dead.",
            "The {thing} in our {place} stopped working on {day}. Can you help me find out why?",
            "I need help with a {thing}, number {i_1000_9999}: no light, no sound.",
        ),
        "units": (
            "How many kilometres are {a} miles? I am planning a trip from {city} to {city2}.",
            "I read that {town} is {a} miles from {town2}. What is that in km?",
            "{a} miles in kilometres, please. {first} wants to know.",
            "Convert {a} miles to kilometres for a {job} who thinks in metres.",
        ),
    }.items()
}


def _rounds(s: Slots) -> int:
    """Return how many exchanges follow the first: most dialogues are short and a few reach twenty messages."""
    return s.r.pick((2, 2, 2, 3, 3, 3, 4, 4, 5, 7, 9))


def _say(s: Slots, texts: str) -> str:
    return s.r.pick(texts.split("|")).format_map(s)


def _quiz(s: Slots, way: int) -> list[str]:
    r, right, n = s.r, 0, _rounds(s)
    table, factor = r.between(6, 29), r.between(3, 30)
    s.update(n=n, table=table)
    turns = [_ASK["quiz"][way].render(s)]
    reply = _say(s, "Gladly, {first}!|With pleasure.|Ready, {first}? Here we go.|All right.|A good idea, {first}!")
    reply += f" What is {factor} × {table}?"
    for number in range(1, n + 1):
        turns.append(reply)
        truth = factor * table
        guess = truth if r.chance(75) else truth + r.pick((-table, table, 10, -10, 1))
        turns.append(_say(s, "#|#?|I say #.|That is #.|Hmm, #.|It must be #.").replace("#", str(guess)))
        if guess == truth:
            right += 1
            reply = r.pick(("Correct", "Right", "Exactly", "Yes", "Well done")) + f": {factor} × {table} = {truth}."
        else:
            reply = f"Not quite: {factor} × {table} is {truth}, so {guess} is off by {abs(guess - truth)}."
        factor, table = r.between(3, 30), r.between(6, 29)
        reply += f" That makes {right} of {n} right." if number == n else f" Next: what is {factor} × {table}?"
    return [*turns, reply]


def _budget(s: Slots, way: int) -> list[str]:
    left = s.r.between(40, 400) * 100
    s["start"] = left // 100
    turns = [
        _ASK["budget"][way].render(s),
        _say(s, "Noted: {start}.00 euros.|We begin with {start}.00 euros.|{start}.00 it is."),
    ]
    spent = []
    for number in range(_rounds(s)):
        cost = s.r.between(80, left // 4)
        left -= cost
        spent.append(cost)
        what = s.text(("item", "food", "object", "shop")[number % 4] + str(number + 2))
        turns.append(
            _say(s, "# for * .|I spent # on * .|* : #|Then # for * .").replace("#", money(cost)).replace("* ", what)
        )
        turns.append(f"{money(left + cost)} - {money(cost)} = {money(left)} euros left.")
    turns.append(_say(s, "What did I spend in all?|Give me the total, please.|How much is gone?|And the sum?"))
    turns.append(f"{' + '.join(map(money, spent))} = {money(sum(spent))} euros, so {money(left)} euros remain.")
    return turns


def _chain(s: Slots, way: int) -> list[str]:
    value = s.r.between(3, 500)
    s["start"] = value
    turns = [
        _ASK["chain"][way].render(s),
        _say(s, "Start: {start}.|{start}. What next?|We stand at {start}.|{start}, ready."),
    ]
    for _ in range(_rounds(s)):
        n, kind = s.r.between(2, 60), s.r.below(3)
        if kind == 0 or value > 10**7:
            word, line, value = "Add", f"{value} + {n} = {value + n}", value + n
        elif kind == 1:
            word, line, value = "Subtract", f"{value} - {n} = {value - n}", value - n
        else:
            word, line, value = "Multiply by", f"{value} × {n} = {value * n}", value * n
        turns += [_say(s, "# .|Now # .|# , please.|Then # .").replace("# ", f"{word} {n}").capitalize(), line]
    return turns


def _list(s: Slots, way: int) -> list[str]:
    entries = [f"{s['i_2_30']} {s['item']}", f"a {s['object']}"]
    s.update(x=entries[0], y=entries[1])
    turns = [_ASK["list"][way].render(s), "- " + "\n- ".join(entries)]
    for number in range(_rounds(s)):
        if len(entries) > 2 and s.r.chance(35):
            gone = s.r.pick(entries)
            entries.remove(gone)
            turns.append(
                _say(s, "Take off * .|Remove * again.|We no longer need * .|Without * , please.").replace("* ", gone)
            )
        else:
            new = s.text(("food", "item", "object")[number % 3] + str(number + 2))
            new = f"a {new}" if number % 3 == 2 else f"{s.r.between(2, 40)} {new}" if number % 3 else new
            entries.append(new)
            turns.append(_say(s, "Add * .|Also * .|And * , please.|* , too.").replace("* ", new))
        turns.append("- " + "\n- ".join(entries))
    turns += [
        _say(s, "How many entries are there?|Count them.|Is that all? How many?"),
        f"{len(entries)}: {listing(entries)}.",
    ]
    return turns


def _vocabulary(s: Slots, way: int) -> list[str]:
    lang = s.r.pick(tuple(_WORDS))
    words = _WORDS[lang].split(",")
    n = min(_rounds(s), len(words))
    s.update(lang=lang, n=n)
    picked = [word.split() for word in s.r.sample(words, n)]
    turns, right = [_ASK["words"][way].render(s)], 0
    reply = _say(s, "Fine, {first}.|Let us go.|Ready?|Good luck!")
    for number, (word, english) in enumerate(picked):
        turns.append(f'{reply} What does "{word}" mean?')
        guess = english if s.r.chance(75) else s.text("animal" + str(number + 2))
        turns.append(_say(s, "#|# ?|I think # .|A # ?|It means # .").replace("# ", guess).replace("#", guess))
        right += guess == english
        reply = f"Yes, {english}." if guess == english else f'No, "{word}" is {english}.'
    return [*turns, f"{reply} You knew {right} of {n}, {s['first']}."]


def _tale(s: Slots, way: int) -> list[str]:
    turns = [_ASK["tale"][way].render(s), f"{s['middle']} {s['middle2']}"]
    rounds = min(_rounds(s), 5)
    for number in range(rounds - 1):
        turns += [s.text(("turn", "middle")[number % 2] + str(number + 3)), s.text("turn" + str(number + 8))]
    return [*turns, _say(s, "And how does it end?|The end, please.|Now the last sentence!|Finish it."), s.text("end")]


_CHECKS = (
    (
        "Is it plugged in, and does another device work at the same socket?",
        "Yes, a lamp works there.|The socket is fine.",
    ),
    ("Is there a small switch at the back, and which way does it point?", "It points to 1.|It is on, I think."),
    ("Please unplug it for {i_20_90} seconds and try again.", "Still nothing.|No change, I am afraid."),
    ("What does the label at the bottom say about the voltage?", "It says 230 volts.|230, it seems."),
    ("Can you see dust or something loose in the opening?", "A little dust, yes.|Only a {object}, how odd."),
    ("Has it been near water, or in the cold, since {day}?", "It was in the garage.|No, always in the {place}."),
)


def _help(s: Slots, way: int) -> list[str]:
    s["thing"] = s.r.pick(
        ("fan", "kettle", "lamp", "mixer", "printer", "radio", "sewing machine", "toaster", "drill", "heater")
    )
    turns = [_ASK["help"][way].render(s)]
    lead = _say(s, "Let us look together.|I am sorry to hear that.|We will find out.|Thank you, that helps.")
    for question, answers in s.r.sample(_CHECKS, s.r.between(2, 5)):
        turns += [f"{lead} {question.format_map(s)}", _say(s, answers)]
        lead = _say(s, "Good.|I see.|Thank you.|All right.|That rules one thing out.|Understood.")
    turns.append(
        f"{lead} Then the fuse inside or the cable of the {s['thing']} is the likely cause. Please do not open it yourself; "
        + _say(
            s,
            "a {shop2} in {city} can test it.|ask {first2} at the repair cafe.|the maker repairs it within {i_5_20} days.",
        )
    )
    return turns


def _units(s: Slots, way: int) -> list[str]:
    a = s.r.between(3, 900)
    s["a"] = a
    turns = [
        _ASK["units"][way].render(s),
        f"{a} miles are about {decimal(a * 1609344, 1000000, 1)} km (1 mile = 1.609344 km).",
    ]
    for _ in range(_rounds(s)):
        n = s.r.between(2, 990)
        turns.append(
            _say(s, "And #?|What about # miles?|# miles?|Next: #.|The same for #, please.").replace("#", str(n))
        )
        turns.append(f"{n} miles are about {decimal(n * 1609344, 1000000, 1)} km.")
    return turns


_BUILD: dict[str, Callable[[Slots, int], list[str]]] = {
    "quiz": _quiz,
    "budget": _budget,
    "chain": _chain,
    "list": _list,
    "words": _vocabulary,
    "tale": _tale,
    "help": _help,
    "units": _units,
}

TOPICS = [Topic("talk_" + name, "demo/dialogues", POOLS, build=build, built_ways=4) for name, build in _BUILD.items()]
