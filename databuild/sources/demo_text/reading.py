"""Short passages about made-up people and places, with questions, summaries and headlines."""

from __future__ import annotations

from databuild.sources.demo_text.script import Setup, Slots, parse, parse_texts
from databuild.sources.demo_text.words import POOLS

_PASSAGES = parse_texts(
    """
museum: [The small museum of {town} opened its doors again on {day}|On {day} the museum of {town} opened again]
  after {i_3_30} months of repairs. [Its director, {first} {last}, led|{first} {last}, who runs it, led] the first
  {i_40_900} visitors through the new rooms. The best-loved piece, a {object} from {i_1620_1910}, now stands [by
  the window|near the stairs|under a glass roof|in a room of its own]. [Entry is free for children|School classes
  enter free of charge|Children pay nothing]; adults pay {i_3_14} euros. A {shop} in the courtyard [sells
  {food}|offers tea and {food}] until {i_4_7} in the afternoon.
storm: [A storm passed over {town} in the night to {day}|In the night to {day} a storm crossed {town}]. Wind of
  {i_85_150} kilometres an hour [tore|lifted] the roof off the {place} and blocked {i_2_19} roads. Nobody was hurt.
  [{first} {last}, a {job}, opened the {place2} to neighbours|The {place2} stayed open all night, thanks to {first}
  {last}, a {job}], and {i_20_400} people [slept there|spent the night there|found a bed there]. The repairs will
  cost about {i_20_900} thousand euros and should be done by {month}.
race: {first} {last} has won the {town} {i_5_42} kilometre race for the {nth} time. [The {job} from {city}|The
  runner, a {job} in {city},] was ahead from kilometre {i_2_4} on and had trained for {i_10_40} weeks. {first2}
  {last2} came second, {i_3_55} seconds later. [Rain|Heat|A strong wind] made it hard for the {i_120_4000} runners,
  but {i_80_99} percent reached the {place}. Next year the course will [be longer|pass the {place2}|start in the
  evening].
farm: On a farm near {town}, {first} {last} keeps {i_12_90} goats and {i_2_9} dogs. The milk becomes cheese, about
  {i_40_300} kilos a month, which a {shop} in {city} sells. [Work begins at {i_4_6} in the morning|The day starts
  at {i_4_6}]. In {month} school classes visit; last year {i_200_900} children came. [The hardest part, says
  {first},|{first} finds that the hardest part] is the winter, when the road is closed for {i_5_40} days.
bridge: The bridge between {town} and {town2} is {i_150_190} years old and {i_60_400} metres long. [Engineers found
  cracks|Cracks were found] in {i_2_9} of its pillars in {month}. From {day} on, [lorries|buses and lorries] must
  take the road by {town3}, a detour of {i_6_38} kilometres. {first} {last}, who plans the work, expects it to take
  {i_5_20} months and to cost {i_2_19} million euros. [Walkers and cyclists may still cross|It stays open to people
  on foot and bicycles].
library: Since {month} the library of {town} has lent more than books. [A {object}, a drill or a tent|Tools, a
  {object} or even a tent] can be taken home for {i_5_28} days. {first} {last}, a former {job}, had the idea after
  [moving house|a walk with a neighbour|an evening at the repair cafe]. The shelves hold {i_60_800} things by now,
  and {i_100_2000} people have signed up. The most wanted piece is a {object2}: its waiting list has {i_8_70} names.
bird: A {animal} with a number on its leg has been seen at the {place} of {town}. [{first} {last}, a {job} who
  watches animals at weekends,|The {job} {first} {last}] noticed it on {day}. The number shows that it was marked
  {i_3_19} years ago, {i_200_2800} kilometres away in {city}. [Such a journey is rare|Few travel so far]: of
  {i_400_3000} marked animals, only {i_2_9} were ever met again. It stayed for {i_2_12} days, and {i_30_700} people
  came to look.
"""
)


def _passage(kind: str) -> Setup:
    def setup(s: Slots) -> None:
        s["nth"] = s.r.pick(("second", "third", "fourth", "fifth"))
        s["text"] = _PASSAGES[kind].render(s)

    return setup


SETUPS: dict[str, Setup] = {kind: _passage(kind) for kind in _PASSAGES}

SCRIPT = """
@ museum museum
? {text}¶¶How long did the repairs take, and what do adults pay?
! The repairs took {i_3_30} months, and adults pay {i_3_14} euros.
? Read this and say in one sentence what it is about.¶¶{text}
! The museum of {town} is open again after {i_3_30} months of repairs, with a {object} from {i_1620_1910} as its best-loved
  piece.
? Give three bullet points for this text: {text}
! - {town}'s museum reopened after {i_3_30} months.¶- {first} {last} showed {i_40_900} visitors around; adult entry costs
  {i_3_14} euros.¶- Its best-loved piece is a {object} from {i_1620_1910}.
? {text}¶¶Write a headline for it.
! [Museum of {town} Opens Again After {i_3_30} Months|{i_40_900} First Visitors in the Renewed Museum of {town}]
> Who runs it?
< {first} {last} does, according to the text.
@ storm storm
? {text}¶¶What damage did the storm do? Was anyone hurt?
! Nobody was hurt. The wind took the roof off the {place} and blocked {i_2_19} roads in {town}.
? Summarise in one or two sentences: {text}
! A storm with winds of {i_85_150} km/h took the roof off the {place} of {town}. No one was hurt, and thanks to {first}
  {last} {i_20_400} people could spend the night in the {place2}.
? "{text}"¶¶Who helped, and how many people were helped?
! {first} {last}, a {job}, opened the {place2}, where {i_20_400} people [slept|stayed the night].
> What about the cost?
< About {i_20_900} thousand euros, and the work should be over by {month}.
@ race race
? {text}¶¶Who won and who came second?
! {first} {last} won for the {nth} time; {first2} {last2} was second, {i_3_55} seconds behind.
? Here is a sports report. Which facts about the winner does it give?¶¶{text}
! The winner is {first} {last}, a {job} from {city}, who led from kilometre {i_2_4} on after {i_10_40} weeks of training. It
  is the {nth} victory.
? Shorten to a single sentence.¶¶{text}
! {first} {last}, a {job} from {city}, won the {i_5_42} km race of {town} for the {nth} time, {i_3_55} seconds ahead of
  {first2} {last2}.
@ farm farm
? {text}¶¶How much cheese is made, and where is it sold?
! About {i_40_300} kilos a month, sold by a {shop} in {city}.
? Make a fact sheet with animals, product, visitors and the hard part.¶¶{text}
! - Animals: {i_12_90} goats, {i_2_9} dogs¶- Product: about {i_40_300} kilos of cheese a month, sold in {city}¶- Visitors:
  {i_200_900} children last year¶- Hard part: winter, with the road closed for {i_5_40} days
? What does this person do for a living? {text}
! {first} {last} keeps {i_12_90} goats near {town} and makes a living from their cheese, about {i_40_300} kilos a month.
@ bridge bridge
? {text}¶¶Which detour must lorries take, and how long is it?
! They must go by {town3}, which is {i_6_38} kilometres longer.
? Explain this news to a child of {i_8_11}.¶¶{text}
! The old bridge from {town} to {town2} has cracks in {i_2_9} of its legs, so it needs to be mended. That takes about
  {i_5_20} months. Until then lorries drive around by {town3}, which is {i_6_38} kilometres longer.
? From the text below, list every number with its meaning.¶¶{text}
! - {i_150_190}: age of the bridge in years¶- {i_60_400}: its length in metres¶- {i_2_9}: pillars with cracks¶- {i_6_38}:
  kilometres of detour by {town3}¶- {i_5_20}: months of work¶- {i_2_19}: cost in millions of euros
@ library library
? {text}¶¶What can be borrowed, and for how long?
! Besides books, things such as a {object}, a drill or a tent, for {i_5_28} days.
? Write one friendly sentence for the town's website based on this: {text}
! In {town} you can take home a {object} as easily as a novel: {i_60_800} useful things wait in the library, each yours for
  {i_5_28} days!
? True or false: the library only lends books. Explain with the text.¶¶{text}
! False. Since {month}, {town}'s library also lends things such as a {object}, for {i_5_28} days; it has {i_60_800} of
  them.
> Who thought of it?
< {first} {last}, who used to be a {job}.
@ bird bird
? {text}¶¶Where was the animal marked, and how far is that?
! It was marked in {city}, {i_200_2800} kilometres away from the {place} of {town}.
? Why is this a special sighting?¶¶{text}
! Because the {animal} had come {i_200_2800} kilometres from {city}, and of {i_400_3000} marked animals only {i_2_9} were
  ever met again.
? Retell in two short sentences, please. {text}
! {first} {last} saw a {animal} at the {place} of {town} that had been marked {i_3_19} years before in {city}. It had come
  {i_200_2800} kilometres and drew {i_30_700} visitors.
"""

TOPICS = parse(SCRIPT, "demo/reading", POOLS, SETUPS)
