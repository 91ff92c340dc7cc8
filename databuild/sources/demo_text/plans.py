"""Plans, recipes, lists of ideas and advice."""

from __future__ import annotations

from databuild.sources.demo_text.script import parse, parse_pools
from databuild.sources.demo_text.words import POOLS as WORDS

POOLS = WORDS | parse_pools(
    """
veg: aubergines, beans, beetroot, broccoli, cabbage, carrots, celery, chickpeas, courgettes, fennel, leeks, lentils,
  mushrooms, parsnips, peas, peppers, potatoes, pumpkin, spinach, tomatoes, turnips
herb: basil, chives, coriander, cumin, dill, ginger, marjoram, mint, oregano, paprika, parsley, rosemary, sage, thyme
grain: barley, bulgur, couscous, millet, noodles, pasta, polenta, quinoa, rice, spelt
skill: knitting, sketching, touch typing, baking sourdough, first aid, reading music, juggling, swimming the crawl,
  chess openings, sign language, simple repairs, taking portraits, map reading, darning socks, calligraphy
step: warm up for {i_5_20} minutes, repeat what you did on {day}, try one thing that is new, teach it to {first},
  write down {i_2_5} words about it, stop before you are tired, film yourself once, ask a {job} for advice,
  do only the hardest part, play with it for {i_10_30} minutes
sight: walk to the {place} | eat {food} at the {shop} | walk along the {place2} | look for a {object} at the market |
  take a boat to {town} | visit the {event} | watch the {animal}s near the {place3} | sit in a {shop2} and read |
  listen to a choir | draw the {place}
tip: put the {item} where you can see them | do the worst task before {i_9_11} o'clock | ask {first} to remind you |
  start with five minutes | keep the {object} in another room | write tomorrow's list tonight | open a window |
  plan a free {day} | say no once a week | give every thing one place | take the stairs | drink a glass of water first
"""
)

SCRIPT = """
@ recipe
? I have {veg}, {veg2} and {grain} at home. What can I cook?
? A simple recipe for {i_2_8} people with {veg}, please.
? {first} does not eat meat. A warm dish with {veg} and {herb}?
= **{grain} with {veg} and {herb}** (for {i_2_8})¶¶1. Cook {i_150_600} g of {grain} as the packet says.¶2. Cut
  {i_200_900} g
  of {veg} and [an onion|two onions|a clove of garlic] small and fry gently for {i_6_15} minutes.¶3. Add {herb},
  salt and
  [a little lemon|a spoon of yoghurt|a handful of {veg2}].¶4. Mix everything and let it rest for {i_2_6}
  minutes.¶¶[Good with
  bread|It also tastes good cold|Leftovers keep for two days].
= [How about|I would make] a pan of {veg} and {veg2}: fry the {veg} in oil for {i_8_20} minutes, add the {veg2} and
  a cup of
  water, cover, and wait until all is soft. Season with {herb} and {herb2}, and serve it with {grain}.
> What could I use instead of {herb}?
< [Try|I would take] {herb3}; it goes well with {veg}.
@ trip
? Plan a day in {city} for a {job} who likes {hobby}.
? What can we do in {city} on {day} with {i_2_5} children and little money?
? A weekend in {city}: one plan for Saturday and one for Sunday, please.
! **Saturday**¶- Morning: {sight}¶- Afternoon: {sight2}¶¶**Sunday**¶- Morning: {sight3}¶- Before the train: {sight4}
= - {i_8_10}:00: {sight}¶- 11:00: {sight2}¶- 13:00: lunch, {food2}¶- 15:00: {sight3}¶- 18:00: {sight4}¶¶[Leave some
  time free|Wear
  good shoes|Take a jacket], {city} is [larger than it looks|best on foot].
@ study
? Make a plan to learn {skill} in {i_2_8} weeks.
? {first} wants to learn {skill} and has {i_15_60} minutes on {day} and {day2}. How to go about it?
? How can a {job} with little time learn {skill}?
= [A realistic plan|A small plan] for {skill}, with {i_15_60} minutes a time:¶¶1. [First days|At the start]:
  {step}.¶2. [After
  a week|Then]: {step2}.¶3. [In the middle|Halfway]: {step3}.¶4. [At the end|Last]: {step4}.¶¶[Short and often
  beats long and
  rarely|A missed day is no disaster].
= To learn {skill}, {step}, then {step2}. On {day3}, {step3}. [After some weeks|When it gets easier], {step4}.
@ tips
? How do I stop putting off {hobby}?
? Give me three tips to keep my {place} tidy.
? {first} forgets the {item} every {day}. Any advice?
= 1. [First|Before anything else], {tip}.¶2. [Then|Next], {tip2}.¶3. [And|Finally], {tip3}.
= [I would try two things|Two habits help]: {tip}, and {tip2}. [If that is not enough|For stubborn cases], {tip3}.
@ packing
? What should I pack for {i_2_9} days in {city} in {month}?
? A packing list for {hobby} in {town}, {i_2_9} days, please.
= - [clothes for|shirts for] {i_2_9} days¶- [a rain jacket|a warm jumper|a sun hat]¶- ticket and papers¶- a
  {object}¶- {i_2_9_b}
  [pairs of socks|handkerchiefs]¶- something to read¶- [plasters|a torch|a water bottle]¶¶[What you do not
  need|Leave at
  home]: {item}.
= [Pack lightly|Less is more]: clothes in layers for {i_2_9} days, [shoes that are already walked in|one good pair
  of shoes],
  soap, charger, a notebook, and a {object} [against boredom|for the evenings].
@ gift
? Gift ideas for {first}, a {job} who likes {hobby}? Up to {i_10_90} euros.
? What can I give a {trait} {job} who has everything?
= - a {colour} {object}¶- [a voucher for|an evening with] {food}¶- [a book about|a course in] {hobby}¶- {i_2_9}
  hours of your
  help¶¶[I would take|My favourite is] the last one: it costs nothing and is never forgotten.
= [Something small and personal|Something to use]: a {object} in {colour}, or {item} from a {shop}. [Along
  with|Together with] a
  card it costs well under {i_60_99} euros.
@ proscons
? Pros and cons of keeping a {animal} in a flat?
? Should {first} open a {shop} in {town}? List arguments for both sides.
? Is it a good idea to hold our {event} at the {place}?
! **For**: [it is easy to find|everybody knows the {place}|there is room for {i_40_300} people]; it fits a {event}.¶**Against**:
  [it may rain in|it is cold in|it is often booked in] {month}; the {item} must be carried there.¶¶[Ask early|Look
  at it on a
  {day} first].
= **[In favour|Pro]**¶- [It brings joy|It brings people together]¶- [There is nothing like it in {town}|{first}
  already knows a
  lot about it]¶¶**[Against|Contra]**¶- It costs time, about {i_3_30} hours a week¶- [It ties you down|Holidays get
  harder]¶¶[My advice|I would say]: try it for {i_2_6} weeks first.
@ week!
? A cleaning plan for {i_2_6} people and {i_2_6_b} rooms?
? Plan my week: {hobby}, {hobby2}, work as a {job}, and one free evening.
! - Monday: {hobby}¶- Tuesday: work, early night¶- Wednesday: {hobby2}¶- Thursday: {tip}¶- Friday: **free evening**¶- Saturday:
  shopping, {food}¶- Sunday: {hobby}, planning the week
= - Monday: kitchen¶- Tuesday: windows¶- Wednesday: nothing at all¶- Thursday: bathroom¶- Friday: floors¶- Weekend:
  whoever is free takes out the {item}¶¶Each week everybody moves on by one task, so that after {i_2_6} weeks all
  have done
  everything.
@ workshop
? I run a workshop on {skill} for {i_6_30} people. How should the {i_2_5} hours be used?
? Ideas for a class on {skill} at the {place}, {i_2_5} hours?
= [Divide the {i_2_5} hours into thirds|I would plan it in three parts].¶¶1. Show: a {job} demonstrates, all
  watch.¶2. Try: in
  pairs, {step}.¶3. Share: each group shows one result; {i_5_15} minutes for questions.¶¶Bring {i_6_30} {item} and
  something
  like {food} for the break.
= Start with a {object} as a riddle, then let people [begin at once|touch everything]. {skill} is learnt by doing:
  {step},
  then {step2}. End on time!
@ budget
? Help me plan {i_200_900} euros a month for {food}, {hobby} and rent, here in {city}.
? {first} earns little as a {job}. How can a month's money be divided?
= [A simple rule|A common rule] is half for what must be paid, three tenths for wishes such as {hobby}, and two
  tenths for
  savings. [Write everything down|Note each expense] for {i_2_6} weeks first; after that, {tip}.
= [Fixed costs first|Begin with what is fixed], then food, then {hobby}. What is left on {day} goes into a jar.
  [One more
  thing|And]: {tip}.
"""

TOPICS = parse(SCRIPT, "demo/plans", POOLS)
