"""Rewriting: tone, tense, voice, length and small corrections."""

from __future__ import annotations

from databuild.sources.demo_text.script import Setup, Slots, parse, parse_pools
from databuild.sources.demo_text.words import POOLS as WORDS

# Regular verbs with their past, so that a sentence can be turned around without a dictionary.
_VERBS = (
    "carry carries carried,clean cleans cleaned,collect collects collected,paint paints painted,move moves moved,"
    "open opens opened,pack packs packed,polish polishes polished,repair repairs repaired,sketch sketches sketched,"
    "wash washes washed,wrap wraps wrapped,inspect inspects inspected,deliver delivers delivered,check checks checked"
)
_TYPOS = {
    "because": "becuase",
    "received": "recieved",
    "tomorrow": "tommorow",
    "definitely": "definately",
    "separate": "seperate",
    "until": "untill",
    "which": "wich",
    "their": "thier",
}
POOLS = WORDS | parse_pools(
    """
informal: Hey {first}, can't make it {day}, sorry! | Hi {first}, the {object} is broken again. Send someone? |
  Yo {first}, need the {item} by {day}, ok? | {first}, where's my {object}? Been waiting {i_2_9} weeks. |
  Hey, the {event} was great, let's do it again in {month}! | Hi {first}, could you lend me the {object} till {day}?
"""
)
_FORMAL = {
    "Hey": "Dear {first},\n\nUnfortunately I am unable to attend on {day}. Please accept my apologies.",
    "Hi": "Dear {first},\n\nThe {object} is out of order once more. Would you kindly send someone to repair it?",
    "Yo": "Dear {first},\n\nWe require the {item} by {day}. Please let me know whether this is possible.",
    "where": "Dear {first},\n\nI have been waiting for my {object} for {i_2_9} weeks. Could you tell me when to expect it?",
    "great": "Dear all,\n\nThe {event} was a great success, and I would be glad to see it repeated in {month}.",
    "lend": "Dear {first},\n\nWould it be possible for me to borrow the {object} until {day}?",
}


def _formal(s: Slots) -> None:
    text = s.text("informal")
    key = next(k for k in ("where", "great", "lend", "Yo", "broken", "make it") if k in text)
    s["formal"] = _FORMAL[{"broken": "Hi", "make it": "Hey"}.get(key, key)].format_map(s)
    s["to"] = s.text("first")


def _verb(s: Slots) -> None:
    base, present, past = s.r.pick(_VERBS.split(",")).split()
    _, present2, past2 = s.r.pick([v for v in _VERBS.split(",") if not v.startswith(base + " ")]).split()
    s.update(base=base, present=present, past=past, present2=present2, past2=past2)
    adverbs = ("slowly", "quickly", "with care", "without a word", "before lunch", "after work", "in the rain")
    s["adv"], s["adv2"] = s.r.sample(adverbs, 2)


def _typos(s: Slots) -> None:
    good = [
        f"{s['first']} {s['last']} received the {s['object']} on {s['day']}, because the {s['shop']} was open.",
        f"We will definitely meet tomorrow at the {s['place']} in {s['town']}.",
        f"The {s['item']} are in a separate box, which stays closed until {s['month']}.",
        f"Their {s['animal']} sleeps in the {s['place2']} until {s['i_6_11']} in the morning.",
        f"I ordered {s['i_2_90']} {s['item2']}, which were for the {s['event']}.",
    ]
    text = " ".join(s.r.sample(good, 3))
    wrong, fixes = text, []
    for right, typo in _TYPOS.items():
        if right in wrong:
            wrong = wrong.replace(right, typo)
            fixes.append(f"- {typo} → {right}")
        if right.capitalize() in wrong:
            wrong = wrong.replace(right.capitalize(), typo.capitalize())
            fixes.append(f"- {typo.capitalize()} → {right.capitalize()}")
    s.update(good=text, wrong=wrong, fixes="\n".join(fixes), n=len(fixes))


def _words(s: Slots) -> None:
    words = [s.text(key) for key in ("town", "animal", "item", "hobby", "city", "object", "shop")]
    picked = s.r.sample(words, s.r.between(4, 7))
    ordered = sorted(picked, key=str.lower)
    s.update(list=", ".join(picked), sorted="\n".join(ordered), back="\n".join(reversed(ordered)), n=len(picked))
    s.update(first_word=ordered[0], last_word=ordered[-1], upper=", ".join(picked).upper())
    s["lengths"] = "\n".join(f"- {word}: {len(word.replace(' ', ''))} letters" for word in picked)


SETUPS: dict[str, Setup] = {"formal": _formal, "verb": _verb, "typos": _typos, "words": _words}

SCRIPT = """
@ formal! formal
? Make this message polite and formal: "{informal}"
? Rewrite for a business letter:¶¶{informal}
? How would one say this to a stranger, in writing?¶{informal}
= {formal}¶¶[Kind regards|Yours sincerely|With best regards]¶{first2} {last2}
= [A formal version|More politely]:¶¶{formal}¶¶[Yours sincerely|Kind regards],¶{first2} {last2}
@ past verb
? Put into the past tense: {first} {present} the {object} {adv} and {present2} the {object2} {adv2}.
? Change to the past, {first2}'s homework for {day}: "{first} {present} the {object} {adv} and {present2} the
  {object2}
  {adv2}."
= "{present}" becomes "{past}", and "{present2}" becomes "{past2}": {first} {past} the {object} {adv} and {past2}
  the {object2} {adv2}.
= {first} {past} the {object} {adv} and {past2} the {object2} {adv2}.
@ passive! verb
? Turn into the passive voice: {first} {last} {past} the {object} {adv}.
? "The {job} of {town} {past} the {object} {adv}." Passive, please; leave out the {job}.
? Make the {object} the subject: the {job} {past} the {object} {adv}.
= The {object} was {past} {adv}. (Name the doer with "by" if it matters.)
= Passive: the {object} was {past} {adv}. The doer can follow with "by".
@ active verb
? Use the active voice: The {object} was {past} by {first} {last} at the {place}, and the {object2} was {past2} by
  {first2}.
? Who did what? Rewrite actively.¶¶The {object} was {past} by {first} {last} at the {place}. The {object2} was
  {past2} by
  {first2}.
= {first} {last} {past} the {object} at the {place}, and {first2} {past2} the {object2}.
= Active: "{first} {last} {past} the {object} at the {place}, while {first2} {past2} the {object2}."
@ question! verb
? Turn this statement into a question: {first} {past} the {object} at the {place} {adv}.
? Ask for the thing: "{first} {last} {past} the {object} {adv}."
= Did {first} {base} the {object}? And to ask for the thing itself: What did {first} {base} {adv}?
= As a yes-or-no question: Did {first} {base} the {object}? Asking for the object: What did {first} {base} {adv}?
@ negative! verb
? Say the opposite with "not": {first} {present} the {object}.
? Negate the sentence "{first} {present} the {object}."
= {first} does not {base} the {object}. The verb goes back to its basic form, "{base}", after "does not".
= With "does not": {first} does not {base} the {object}.
@ typos typos
? Correct the spelling:¶¶{wrong}
? Find the spelling mistakes and list them: {wrong}
? Proofread this for me, please.¶¶"{wrong}"
= {good}¶¶Changes:¶{fixes}
= I found {n} kinds of mistakes:¶¶{fixes}¶¶Corrected: {good}
> Was it bad?
< Not at all: {n} slips of the pen, and all of them are common ones.
@ sort words
? Put these in alphabetical order, one per line: {list}
? Sort from A to Z:¶{list}
? Alphabetise this list for {first} from {town2}, please. {list}
= {sorted}
= From {first_word} to {last_word}:¶¶{sorted}
@ reverse words
? Sort from Z to A: {list}
? I need these {n} entries in reverse alphabetical order.¶{list}
= {back}
= Starting with {last_word}:¶¶{back}
@ upper words
? Write in capital letters: {list}
? ALL CAPS please, for a sign at the {place} of {town2}: {list}
= {upper}
= For the sign:¶¶{upper}
@ lengths words
? How many letters does each of these have, without spaces? {list}
? Count the letters:¶{list}
= {lengths}
= Spaces left out, the {n} entries have:¶¶{lengths}
@ shorten
? Make this shorter: Due to the fact that the {place} in {town} is at this point in time closed for repairs, we
  have come
  to the decision to hold the {event} at the {place2} on {day}, {i_1_28} {month}.
? Cut the padding, please. "It has been decided that, owing to repairs at the {place} in {town}, the {event} is to
  take
  place at the {place2}, namely on {day}, {i_1_28} {month}."
= As the {place} in {town} is under repair, the {event} moves to the {place2}: {day}, {i_1_28} {month}.
= Short: {event} on {day}, {i_1_28} {month}, at the {place2}, because the {place} of {town} is being repaired.
@ late
? Trim this: In the event that you should happen to be late for the {event} at the {place} in {town} on {day},
  please do not
  hesitate to give {first} {last} a call at your earliest convenience.
? Fewer words, same meaning: "Should it prove to be the case that lateness on your part for {day}'s {event} at the
  {place} in
  {town} cannot be avoided, kindly get into contact with {first} {last} by means of the telephone."
= If you are late for the {event} at the {place} in {town} on {day}, please call {first} {last}.
= Late for {day}'s {event} ({place}, {town})? Please call {first} {last}.
@ bullets
? As bullet points: For the {event} we need {i_2_90} {item}, {i_2_90_b} {item2} and {i_2_90_c} {item3}. {first}
  brings the
  {object}. We start at {i_2_8} o'clock on {day}.
? Turn this note into a checklist. "{first} brings the {object}. {i_2_90} {item}, {i_2_90_b} {item2}, {i_2_90_c}
  {item3}.
  {event}, {day}, {i_2_8} o'clock."
= - {event}: {day}, {i_2_8} o'clock¶- {i_2_90} {item}¶- {i_2_90_b} {item2}¶- {i_2_90_c} {item3}¶- {object} ({first})
= Checklist for the {event}:¶¶1. {i_2_90} {item}¶2. {i_2_90_b} {item2}¶3. {i_2_90_c} {item3}¶4. {object}, brought
  by {first}
  ¶5. be there on {day} at {i_2_8}
@ simple
? Say it in plain words: "Commencing on {day}, patrons of the {place} in {town} are requested to refrain from the
  consumption of {food} within the premises, save for the designated area near the {place2}."
? Simplify for learners of English: Patrons of the {place} of {town} must, commencing {day}, abstain from consuming
  {food}
  on the premises, with the exception of the area adjacent to the {place2}.
= From {day} on, please do not eat {food} in the {place} of {town}. You may eat it near the {place2}.
= Please do not eat {food} in the {place} any more, starting {day}. [There is a place for that|It is still fine]
  near the
  {place2} of {town}.
@ join
? Join into one sentence: {first} lives in {city}. {first} is a {job}. {first} likes {hobby}. {first} owns a {animal}.
? Write one smooth sentence from these: {first} {last}, {job}, {city}, hobby: {hobby}, pet: a {animal}.
= {first}, a {job} from {city} who likes {hobby}, owns a {animal}.
= In {city} lives {first}, a {job} with a {animal} and a love of {hobby}.
@ split
? Split this long sentence: {first}, who is a {job} in {city} and who spends every {day} with {hobby}, bought a
  {object} from
  a {shop} because the old one, a present from {first2}, had been lost at the {place}.
? Two or three short sentences instead of one, please: Because the old {object}, a present from {first2}, had been
  lost at
  the {place}, {first}, a {job} in {city}, bought another from a {shop}.
= {first} is a {job} in {city}. The old {object}, a present from {first2}, was lost at the {place}. So {first} bought
  another from a {shop}.
= The {object} from {first2} was lost at the {place}. {first}, a {job} in {city}, has bought a new one from a {shop}.
"""

TOPICS = parse(SCRIPT, "demo/rewriting", POOLS, SETUPS)
