"""Stories, poems, dialogues and descriptions."""

from __future__ import annotations

from databuild.sources.demo_text.script import parse, parse_pools
from databuild.sources.demo_text.words import POOLS as WORDS

POOLS = WORDS | parse_pools(
    """
lead: {first}, a {trait} {job} in {town}, owned a {object} and, since {weather}, a {animal}. | In {town}, near the
  {place},
  lived {first}, a {trait} {job} with a {animal} and one treasure: a {object}. | On {weather} a {animal} carried a
  {object}
  past the {place} of {town}, and {first}, a {trait} {job}, ran after it. | "Has anyone seen my {object}?" asked
  {first}, the
  {trait} {job} of {town}. Only the {animal} by the {place} knew. | The {animal} of the {place} in {town} belonged
  to nobody,
  until {first}, a {job} as {trait} as can be, came by on {weather} with a {object}. | Every {job} loses something
  now and
  then, but {first} of {town}, {trait} as ever, had lost the {object} to a {animal} at the {place}.
opening: It was {weather}, and {first} could not find the {object}. | {first} had lived in {town} for {i_3_60} years
  before anything strange happened. | On {weather}, a {animal} knocked at the door of {first} {last}. |
  Nobody in {town} ever asked what {first} did at the {place} after dark. | The {object} had been on the shelf for
  {i_5_80} years when {first} first heard it hum. | {first}, a {trait} {job}, was late again. | There were
  {i_12_90} steps
  to the top of the {place}, and {first} counted every one. | The letter said only: "Come to the {place} in {town}." |
  {first} found the {object} on {weather}, behind the {place}. | "You are the new {job}," said the {animal}.
  "I am {first}."
middle: Inside it lay a note in a hand that {first} knew from long ago. | The {animal} looked up, then walked slowly
  towards the {place2}. | {first2}, the {job2} from next door, had seen it all and laughed. | A light went on in the
  {place2}, although it had been locked since {month}. | It smelled of {food} and rain. | "Not so fast," said
  {first2}, and
  held up a {object2}. | Under the {colour} paint there was a second lock. | For a while the only sound was the
  clock of
  the {place2}. | {first} thought of {city}, of the {i_3_9} friends left there, and of {food}. | Then the {animal} did
  something that no {animal} should be able to do: it bowed. | {first2} was {trait2} by nature, but now even
  {first2} took
  a step back.
turn: So they waited until {i_2_11} o'clock and went together. | "We should give it back," {first} said at last. |
  What
  looked like a mistake was in truth a map. | The {object2} fitted exactly. | It was not magic at all, only {i_2_9}
  very
  patient {item}. | They followed the sound for {i_2_9} streets, past the {shop}, and found the answer on a
  doorstep. |
  {first2} began to whistle, and the {animal} came back. | By morning half of {town} stood in front of the
  {place2}. | And
  then they understood who had left the {object} there. | It took {i_3_40} tries before it opened.
end: Since that day there is always {food} on the table when the {animal} comes by. | {first} still has the
  {object}, and
  on {weather2} it hums a little. | Nobody in {town} believes it, which suits {first} very well. | They never spoke
  of it
  again, but both smiled whenever they passed the {place}. | The {object2} hangs over the door of the {shop} now,
  and you
  may ask about it. | And the {animal}? It sleeps by the stove and dreams of the {place2}. | "Same time next year?"
  asked
  {first2}. {first} nodded. | That is how {first} became the best {job} in {town}. | Some doors, {first} learnt,
  open only
  when one knocks twice.
rhyme_a: The {animal} walks along the wall | {first} hums softly in the hall | A {object} waits beside the stall |
  The lamp is old, the room is small | A {colour} star is going to fall
rhyme_one: and hears the leaves of autumn fall, | and listens to the owl's low call, | and nobody is home at all, |
  the moon is round, the trees are tall, | and somewhere bounces, soft, a ball,
rhyme_b: The streets of {town} are full of light | In {town} a window burns all night | A {job} passes with a kite |
  From {city} comes the train at night | The {place} is a quiet sight
rhyme_two: and all that was so wrong is right. | and every distant star is bright. | and dreams are folded, warm
  and light. |
  and morning is not yet in sight. | and little boats sail out of sight.
"""
)

SCRIPT = """
@ story
? Write a short story about a {trait} {job} and a {animal}.
? Tell me a story set in {town}. There should be a {animal} and a {object} in it.
? A bedtime story about a {object}, please, for a child of {i_4_10}.
? Make up a tale in which {first} loses a {object} on {weather}.
? I need a very short story with {first}, {first2} and a {animal}, set near a {place}.
= {lead} {middle} {middle2}¶¶{turn} {middle3} {turn2}¶¶{end}
= {lead} {middle}¶¶{middle2} {turn}¶¶{turn2} {end}
= **The {object} of {town}**¶¶{lead} {middle} {middle2}¶¶{middle3} {turn} {turn2}¶¶{end}
> Add one more sentence at the end, please.
< {end2}
> And a title?
< [The {animal} and the {object}|What Happened at the {place}|{first} and the {object}|A Night in {town}]
@ beginning
? Give me the first lines of a mystery novel that plays in {town}.
? How could a novel about a {job} and a {object} begin?
? An opening paragraph, please: a {place}, {weather}, and someone called {first}.
= {lead} {middle} {turn}
= "{lead}" [After that I would slow down|Then let the place speak|Next comes the first clue]: "{middle} {middle2}"
@ ending
? My story about {first} and a {animal} lacks an ending. It plays at the {place} of {town}. Ideas?
? Suggest three different last sentences for a tale about a {object} in {town}.
= 1. {end}¶2. {end2}¶3. {end3}
= [Three possibilities|Perhaps one of these]:¶¶- {end}¶- {end2}¶- {end3}¶¶The first is warm, the second a little
  mysterious.
@ poem
? Write a four-line poem about evening in {town}.
? A little rhyme for {first2} about {town}, please.
? I would like a short rhyming poem to read at the {event} in {town}.
= {rhyme_a},¶{rhyme_one}¶{rhyme_b},¶{rhyme_two}
= *[Evening|Small Song|Lullaby|For {first}]*¶¶{rhyme_a},¶{rhyme_one}¶{rhyme_b},¶{rhyme_two}¶¶{rhyme_a2}.
@ scene
? Write a short dialogue between a {job} and a customer about a {object}.
? Give me a funny conversation: {first} wants to return a {object} to a {shop}.
= {first}: [Good morning|Hello|Excuse me]. It is about this {object}.¶{first2}: [Lovely piece|A fine one]. What is
  wrong
  with it?¶{first}: [Nothing|In truth, nothing]. Except that it hums when it sees a {animal}.¶{first2}: They all do
  that in
  {month}.¶{first}: And in {month2}?¶{first2}: Then they [whistle|sing|sulk].¶{first}: ...I will keep it.
? Two people argue, politely, about who may keep a {object}. Write the scene. They are {first} and {first2}.
! {first}: I found the {object} first, at the {place}.¶{first2}: But I lost it there, {i_2_30} years ago.¶{first}: Can you
  prove it?¶{first2}: There is a scratch in the shape of a {animal}.¶{first}: So there is. Well... half
  each?¶{first2}: You
  take it on weekdays. And there will be {food} on {day}.
@ character
? Describe a character for my novel: a {trait} {job} from {city}.
? Invent a side character who owns a {animal} and likes {hobby}.
? Character sketch, please: {first} {last}, {i_20_80} years old, {job}.
= {first} {last} is a {trait} {job} from {city}. [Friends|Neighbours] know {first} for {hobby} and for never
  leaving home
  without a {object}. [A {animal} follows wherever {first} goes|At home waits a {animal}]. [What hardly anyone knows|A
  secret]: {first} once lived in {town} and left after {weather}.
= **{first} {last}** ({i_20_80})¶¶- Work: {job} in {city}¶- Loves: {hobby}, {food}¶- Fears: being alone in a
  {place}¶- Always
  carries: a {object}¶- Way of speaking: {trait} and a little {trait2}
@ place
? Describe the {place} of {town} on {weather} in three sentences.
? Paint a picture in words: a {place}, {weather}.
= The {place} of {town} [lies quite still|seems to hold its breath|looks smaller than usual], for it is {weather}. [A
  {animal} crosses the path|Somewhere a {animal} calls], and from the {shop} comes the smell of {food}. [Someone
  has left a
  {object} on a bench|On a bench lies a {object}], as if to say: I will be back.
= [First there is the light|The light comes first]: {weather}, and the {place} turns {colour}. Then the sounds, a
  {animal}
  and {i_2_9} voices from the {shop}. Last, close by, a forgotten {object}.
@ names!
? Suggest names for a {animal} in a children's book.
! - {first}¶- {first2} {last}¶- Captain {last2}¶- Little {town}¶- {first3} the {trait}
? What could I call a {shop} in {town}?
! - {first}'s Corner¶- The Golden {town2}¶- At the {place}¶- {town} and Daughters¶- The {trait} {animal}
? Title ideas for a story about a {object} and a {animal}?
= [Five ideas|Some suggestions|Perhaps]: "The {animal} Who Lost a {object}", "Winter in {town}", "{first} and the
  {animal}", "Behind the {place}" or "A {trait} {animal}".
= 1. The {object} by the {place}¶2. The {trait} {animal}¶3. {first} Finds a {object}¶4. Last Train to {town}
"""

TOPICS = parse(SCRIPT, "demo/stories", POOLS)
