"""Explanations of everyday science, technology and language."""

from __future__ import annotations

import json

from databuild.sources.demo_text.script import Setup, Slots, parse
from databuild.sources.demo_text.words import POOLS

# term / what it is / how it works or why / an example / a comparison
_CONCEPTS = """
photosynthesis/the process by which green plants make sugar from light, water and carbon dioxide/Chlorophyll in the
  leaves catches the light, and the energy is stored in sugar while oxygen is given off/A house plant on a bright
  window sill grows faster than one in a dark corner/a kitchen that runs on sunlight
a rainbow/sunlight that raindrops have split into its colours/Each drop bends the light when it enters, reflects it
  at the back and bends it again on the way out, each colour by a slightly different angle/You see one when the sun
  stands low behind you and it rains in front of you/a crowd in which everybody steps to their own place by colour
the tide/the regular rise and fall of the sea/The pull of the moon, and less so of the sun, is stronger on the near
  side of the earth than on the far side, which stretches the sea into two bulges/Most coasts have high water about
  every twelve and a half hours/a blanket pulled gently from two ends
yeast/a tiny fungus that makes dough rise/It feeds on sugar and gives off carbon dioxide, and the bubbles are caught
  in the dough/Warm water wakes it up, boiling water kills it/thousands of little balloons being blown up
a hash function/a rule that turns data of any length into a short value of fixed length/The same input always gives
  the same value, while a small change gives a quite different one/Programs use it to check whether a file has arrived
  unchanged/a fingerprint, which names a person without describing them
an index in a database/an ordered extra structure that helps to find rows without reading them all/It is usually a
  tree, in which every step rules out most of the remaining rows/A column that is often searched should have one, but
  each one makes writing slower/the register at the end of a book
inflation/a general rise of prices over time/The same amount of money buys less than before, for instance because
  demand grows faster than supply or because costs go up/If bread cost two euros last year and costs two euros ten
  now, its price has risen by five percent/a ruler that shrinks a little every year
a catalyst/a substance that speeds up a reaction without being used up/It opens a path that needs less energy, so
  more particles can react in the same time/Cars have one in the exhaust that turns harmful gases into harmless ones/a
  tunnel through a mountain that one would otherwise have to climb
gravity/the attraction between all things that have mass/It grows with the masses and falls with the square of the
  distance/It keeps the moon on its path and the tea in the cup/a slope that everything rolls down by itself
an eclipse of the moon/the moon passing through the shadow of the earth/It can happen only at full moon, when sun,
  earth and moon stand in one line/The moon then looks copper red, as light bent by the air of the earth still reaches
  it/walking through the shadow of a house at sunset
the water cycle/the journey of water between sea, air and land/The sun makes water evaporate, clouds form as the air
  cools, and rain and rivers carry the water back/Drops on a cold glass show one part of it in your kitchen/a
  never-ending round trip
a vaccine/a training for the immune system/It shows the body harmless parts of a germ, so that the defence is ready
  before the real one comes/Some have to be refreshed after years, since the memory of the body fades/a fire drill
machine learning/a way of making programs that find rules in examples/The program adjusts many numbers until its
  answers fit the examples, and is then tried on new ones/A spam filter learns from messages that people have
  marked/learning to ride a bicycle by trying rather than by reading
overfitting/a model learning its examples by heart instead of the rule behind them/It then does very well on known
  data and badly on new data; more data or a simpler model helps/A student who memorises old exams may fail a new
  one/a suit so tight that it fits only one person on one day
recursion/a function or definition that uses itself on a smaller case/Each call waits for a smaller one until a case
  is so simple that it can be answered at once/The factorial of n is n times the factorial of n minus one, and that of
  zero is one/a set of nested dolls
a prime number/a whole number greater than one that only one and itself divide/If a number has no prime divisor up
  to its square root, it is prime/2, 3, 5 and 7 are prime, 9 is not, as 3 divides it/a brick that cannot be taken
  apart
compound interest/interest that is itself paid interest on/Every period the interest joins the capital, so the
  growth gets faster with time/One hundred euros at ten percent become 110 after a year and 121 after two/a snowball
  rolling downhill
the greenhouse effect/the warming of a planet by gases in its air/Sunlight comes in, but part of the heat that the
  ground sends out is held back by gases such as water vapour and carbon dioxide/Without it the earth would be far too
  cold for us; more of these gases make it warmer/a blanket that lets light in but keeps heat
a semiconductor/a material that conducts electricity better than glass and worse than copper/Small amounts of other
  atoms change how well it conducts, and that can be controlled/Silicon is the best known and sits in almost every
  chip/a tap for electric current
encryption/a way of writing a message so that only the holder of a key can read it/A rule mixes the message with the
  key; without the key, undoing it would take far too long/The lock in a browser's address bar means that it is in
  use/a locked box that may travel through many hands
a haiku/a short poem of Japanese origin/In its classic form it has three lines of five, seven and five sounds and
  catches one moment, often in nature/Many poets leave the counting aside and keep only the brevity/a photograph in
  words
a metaphor/a figure of speech that calls one thing by the name of another/It carries over a quality without the word
  "like"/"Her voice was honey" speaks of sweetness, not of food/a bridge between two pictures
the passive voice/a form of the verb in which the subject does not act but is acted upon/English builds it with a
  form of "be" and the past participle/"The window was broken" leaves open who did it/a stage on which the light falls
  on the thing instead of the person
sourdough/a dough raised by wild yeast and bacteria/Flour and water are left to ferment and are fed with more of
  both; acids give it its taste/A starter can live for decades if it is fed often enough/a pet that lives in a jar
the Doppler effect/the change of a wave's pitch when source and listener move/When they approach, the waves arrive
  closer together and sound higher; when they part, lower/The siren of an ambulance drops as it drives past/walking
  towards or away from somebody who throws balls at a steady pace
a leap year/a year with an extra day in February/The earth needs about 365 and a quarter days to go around the sun,
  so a day is added every four years, except in most century years/2000 was one, 1900 was not/giving a slow clock a
  little push now and then
an ecosystem/all living things of a place together with water, soil, air and light/They eat, shelter and feed one
  another, so a change in one part reaches others/A pond with frogs, reeds and insects is a small one/an orchestra
  without a conductor
version control/a record of all changes to a set of files/Every saved state has a number and a message; one can go
  back, compare and work in parallel/Git is the best known tool for it/a diary in which no page can be lost
latency/the time between asking and the first answer/It depends on distance, on the number of stations in between
  and on how busy they are; it is not the same as the amount per second/A video call with much of it makes people talk
  over each other/the time until the first drop comes out of a long hose
the immune system/the body's defence against germs/Some cells attack anything foreign at once, others learn to know
  one germ exactly and remember it/A cut that turns warm and red shows it at work/a town with guards at the gate and
  detectives inside
a comet/a lump of ice and dust on a long path around the sun/Near the sun some of the ice turns to gas, and light
  and solar wind push gas and dust into a tail/The tail always points away from the sun, even when the body flies
  outwards/a dirty snowball with a scarf
osmosis/the movement of water through a skin that holds back what is dissolved/Water goes to the side with more
  dissolved matter until both sides are balanced/Salted cucumber slices become wet because water leaves their
  cells/guests moving to the emptier room
supply and demand/the interplay of the two sides of a market, which sets a price/If many want what few have, the
  price goes up, which
  brings more sellers and fewer buyers until both sides meet/Umbrellas are dearer at the door of a concert when it
  rains/a pair of scales
a median/the middle value of an ordered list/Half of the values lie below and half above it, so a few extreme ones
  hardly move it/Of 1, 2, 3, 4 and 90 it is 3, while the mean is 20/the person in the middle of a row sorted by height
an algorithm/an exact list of steps that solves a kind of problem/Each step is clear, and it ends after finitely
  many of them/Long division, as taught at school, is one/a recipe that even a robot could cook by
a magnet/a body that attracts iron and has a north and a south pole/In it the tiny magnetic fields of many atoms
  point the same way/Cut one in two and each half has both poles again/a crowd in which everybody looks in the same
  direction
"""
_TABLE = [line.split("/") for line in _CONCEPTS.strip().replace("\n  ", " ").split("\n")]


def _concept(s: Slots) -> None:
    term, what, how, example, like = s.r.pick(_TABLE)
    s.update(term=term, what=what, how=how, example=example, like=like, Term=term[0].upper() + term[1:])
    bare = term.removeprefix("a ").removeprefix("an ").removeprefix("the ")
    s.update(bare=bare, json_what=json.dumps(what), json_like=json.dumps(like), json_example=json.dumps(example + "."))


SETUPS: dict[str, Setup] = {"concept": _concept}

SCRIPT = """
@ short! concept
? What is {term}? [Two or three sentences are enough|In short, please].
? Define {term} for a {job} in one sentence, then give an example.
? Someone in {city} asked me what {term} is. What should I say?
? [Briefly|In simple words]: {term}?
= {Term} is {what}. {example}.
= [In short|Simply put], {term} is {what}. {how}. [An example|For instance]: {example}.
= It is {what}. One could compare it with {like}.
@ long! concept
? Explain {term} to a class of {i_12_30} pupils aged {i_11_16}.
? How does {term} work, and where do we meet it?
? I must give a {i_3_10} minute talk on {term}. What are the main points?
? Write a paragraph about {term} for the newsletter of the {place} in {town}.
= {Term} is {what}.¶¶**How it works.** {how}.¶¶**Example.** {example}.¶¶**[A picture to remember|A comparison|Think of
  it as]:** {like}.
= [Start with the idea|The core first]: {term} is {what}. {how}.¶¶[To make it concrete|From daily life]: {example}.
  [If you need an
  image|As an image], take {like}.
> Can you say that in one line?
< {Term}: {what}.
> And an example once more?
< {example}.
@ image! concept
? Give me a comparison for {term} that a {trait} {job} would like.
? Is there a good picture for {term}? I want to explain it to {first} from {town}.
? Explain {term} like I'm {i_6_10}.
= [Think of|Imagine|Picture] {like}. {Term} is {what}; [that is the likeness|there lies the parallel]. {example}.
= [My favourite|A useful one]: {like}. [It fits, because|The idea behind it]: {term} is {what}.
@ quiz! concept
? Write one quiz question about {term}, with the answer, for the {event} in {town}.
? Make a flash card on {term}: front and back.
? I need a true-or-false statement on {term} for {first}'s class. The answer too.
! **Statement:** {Term} is {what}.¶**Answer:** true. {how}.
= **[Question|Front]:** What is {term}?¶**[Answer|Back]:** {Term} is {what}. {example}.
= **Q:** Which word is meant: {what}?¶**A:** {Term}. [A hint to give|Hint]: it is a bit like {like}.
@ points! concept
? Three facts about {term}, as bullet points.
? Sum up {term} in a list that fits on a card of {i_7_15} cm.
= - What: {what}¶- How: {how}¶- Example: {example}
= 1. {Term} is {what}.¶2. {how}.¶3. {example}.
@ json! concept
? Return a JSON object with "term", "definition" and "example" for {term}.
? I build an app for {job}s: give me {term} as JSON with the keys term, definition, comparison.
! {{"term": "{bare}", "definition": {json_what}, "comparison": {json_like}}}
= {{"term": "{bare}", "definition": {json_what}, "example": {json_example}}}
= ```json¶{{¶  "term": "{bare}",¶  "definition": {json_what},¶  "example": {json_example}¶}}¶```
"""

TOPICS = parse(SCRIPT, "demo/knowledge", POOLS, SETUPS)
