"""Letters, messages, invitations, notices and other everyday writing."""

from __future__ import annotations

from databuild.sources.demo_text.script import parse
from databuild.sources.demo_text.words import POOLS

SCRIPT = """
@ invite
? Write an invitation to a {event} on {day}, {i_1_28} {month}, at the {place}.
? {first} is planning a {event} in {town}. Can you draft the invitation? {day}, {i_1_28} {month}, {i_2_8} o'clock.
? I want to invite my neighbours to a {event}. It is on {i_1_28} {month} at the {place}; {food} is provided.
= Dear [friends|neighbours|all],¶¶[You are warmly invited|It is my pleasure to invite you|Please come] to a {event}
  on {day},
  {i_1_28} {month}, at the {place}. We start at {i_2_8} o'clock; there will be {food}, and [children are
  welcome|you may bring
  a friend|there is room for everyone].¶¶Please tell me by the day before whether you can come.¶¶[Warm
  regards|Yours|See you
  there],¶{first}
= **{event}**¶{day}, {i_1_28} {month}, {i_2_8} o'clock¶{place}, {town}¶¶[Come as you are and bring a {object} if you
  like|Bring good spirits and something to sit on]. [The {food} is on us|For {food} we have taken care].¶¶{first}
  {last}
@ thanks
? A thank-you note to {first} for the {object}, please.
? How do I thank {first} {last}, the {job}, who lent me a {object} for {i_2_9} weeks?
? Write a short thank-you card. {first} gave me a {object} and we ate {food}.
= Dear {first},¶¶[thank you so much for|many thanks for|I was delighted with] the {object}. [It came at just the right
  moment|It has already been useful|I think of you whenever I see it], and [the evening with {food}|our talk over
  {food}]
  stays with me as well.¶¶[Yours|With love|Warmly],¶{first2}
= {first}, you made my {day}! The {object} [is perfect|could not be better], and so are you. Let me return the
  favour soon,
  with {food}.¶¶{first2}
@ complaint
? Write a complaint: I ordered {i_2_90} {item} from a {shop} in {city} and {i_2_30} of them arrived broken.
? My {object} from the {shop} in {city} broke after {i_2_20} days. Help me write to them, firmly but politely.
= Dear [Sir or Madam|team of the {shop}],¶¶on {i_1_28} {month} I received [my order|a delivery] from your {shop} in
  {city}.
  [Unfortunately|I am sorry to say that] part of it was [faulty|not in order]. I [kindly ask for a replacement|ask
  you to
  replace it or to refund the price] within {i_7_28} days. [Photographs are attached|I can send photographs].¶¶Yours
  faithfully,¶{first} {last}
= Subject: [Faulty delivery|Problem with order {i_1000_99999}]¶¶Dear team,¶¶I have to report a problem with order
  {i_1000_99999}, which came from {city} on {day}. It is not as it should be. [Please let me know|Could you tell
  me] by
  {day2} how you will put this right.¶¶Regards,¶{first} {last}
@ apology
? I forgot {first}'s {event}. Write an apology, please.
? I broke {first}'s {object} and want to say sorry in writing. How?
? Draft an apology to the guests of our {event}, which has to move from {day} to {day2}.
= Dear [{first}|all],¶¶I am [truly|very] sorry. [It was my fault alone|There is no excuse], and I can see how
  annoying it
  is. [As a small repair|To make up for it], let me [bring {food} on {day2}|invite you to {food} on {day2}]. [I
  hope you can
  forgive me|It will not happen again].¶¶{first2}
@ sick
? Write a message to my boss, {first} {last}: I am ill and will be back on {day}.
? How do I tell the {shop} where I work that I cannot come until {day}?
= Dear {first},¶¶I am ill and cannot come to work today. I expect to be back on {day}. [{first2} knows about|I have
  told
  {first2} about] the {item}, and [I can answer short questions by phone|urgent things can wait in my inbox until
  then].
  ¶¶[Best wishes|Kind regards],¶{first3}
= Good morning {first}, I have to stay in bed until {day}. [Everything about the {item} is in the blue
  folder|{first2} takes
  over the {item}]. Sorry for the trouble! {first3}
@ application
? Write a short cover letter for {first} {last}, a {job} with {i_2_30} years of experience, to a {shop} in {city}.
? I am a {job} and would like to work in {city}. A few lines for an application, please; I like {hobby}.
= Dear hiring team,¶¶I am a {job} with {i_2_30} years of experience and would [like to join|be glad to join] you in
  {city}.
  [In my present post|In my last position] I [trained {i_2_9} beginners|looked after {i_20_90} regular
  customers|reorganised
  the store room]. I work [carefully|calmly] and [enjoy it when others ask me for help|keep my promises]. In my
  free time I
  like {hobby}.¶¶I would be happy to meet you.¶¶Yours sincerely,¶{first} {last}
= To whom it may concern,¶¶for {i_2_30} years I have been a {job}, and I would now like to bring what I know to
  {city}. [You
  would get|With me you get] somebody who is {trait} with customers and exact with {item}. [My other passion|What I do
  after work] is {hobby}.¶¶Sincerely,¶{first} {last}
@ reschedule
? Ask {first} to move our meeting from {day} to {day2}, {i_9_16} o'clock.
? I cannot make {day} at {i_9_16}. Write to {first} {last} and suggest {day2}.
? An e-mail to postpone a {event} by a week, from {i_1_20} {month}, to {first}.
= Subject: [New date|Change of plan|Our meeting]¶¶Hi {first},¶¶[something has come up|I have a clash], and I would
  like to
  find a new date. Would {day2} at {i_9_16} o'clock [suit you|work for you]? If not, [I am free on|what about] {day3}.
  ¶¶[Sorry for the trouble|Thanks for understanding]¶{first2}
= Dear {first},¶¶may we move our date? I suggest {day2}, {i_9_16} o'clock, at the {place}. [Everything else stays as
  planned|Nothing else changes].¶¶[Best|Regards],¶{first2}
@ notice
? Text for a notice: the {place} is closed from {i_1_14} to {i_15_28} {month}.
! **Closed**¶¶The {place} stays closed from {i_1_14} to {i_15_28} {month}. [We are sorry for the trouble|Thank you for your
  patience]. [For questions|For keys and questions], please ask {first} {last} at the {shop}.
? I need a sign for the door of the {shop}: lost {object}, reward {i_5_90} euros.
! **Lost: a {colour} {object}**¶¶[Probably near the {place}|Last seen at the {place}], on {day}. Whoever brings it back gets
  {i_5_90} euros and {food}. [Please call|Please ask for] {first} {last} in the {shop}.
? Write a notice for the hall: water off on {day} from {i_7_9} to {i_10_13} o'clock.
! **No water on {day}**¶¶From {i_7_9} to {i_10_13} o'clock the water is turned off in the whole house. [Please fill a kettle
  in time|Please keep the taps closed]. If there are questions, ask {first} {last}.
@ advert
? Write a short advertisement for {item} from a {shop} in {town}.
? I sell a {colour} {object} for {i_5_300} euros. A few lines for the notice board?
= **[For sale|Look here|New in {town}]!** [A {colour} {object}, well kept|{item}, made with care], [from {i_5_300}
  euros|yours for {i_5_300} euros]. [Come and see|Look in] at the {shop}, {day} to {day2}. [Ask for|Your contact is]
  {first}.
= Why wait until {month}? The {shop} in {town} has what you need: {item} and a {colour} {object}, priced at
  {i_5_300} euros.
  {first} {last} is glad to show you everything.
@ toast
? A short toast for {first}, who retires after {i_20_45} years as a {job}.
? I must say a few words at the {event} about {first}, a {job} who likes {hobby}.
= Dear guests, [when I think of {first}|ask anyone in {town} about {first}, and] three things come to mind: {item},
  {hobby}
  and a laugh one can hear as far as the {place}. {i_20_45} years as a {job}, and never a day without {food}!
  [Please raise
  your glasses|Let us drink to that]: to {first}!
= {first}, they told me to be brief, so here is the short version: you are a {job} of the best kind, {trait} on
  {day}s and
  {trait2} for the rest of the week. [We will miss you|Thank you for everything]. Now go and enjoy {hobby}. Cheers!
@ review
? Write a friendly review of a {shop} in {town} where I bought {item}.
? Five stars for {first}'s {food}: help me write two or three sentences.
= [What a pleasant surprise|A lovely place]! At the {shop} in {town} {first} took time for me, although it was
  full. The
  {item} are [well made|just right], and the {food} one can eat there is [excellent|better than mine]. I will be
  back in
  {month}.
= [Warmly recommended|Five stars]. {first} makes {food} as it should be, and nobody minded my {animal}. [Do not leave
  without|Look also at] the {item}!
@ status
? Turn this into a status report: {item} ordered, {place} booked, {first} has not answered, {i_2_20} days left.
? Short progress report for the {event}: {i_20_90} percent done, the {item} are missing, {first} takes care of them.
= **Status of the {event}**¶¶- [Done|Finished]: the {place} is booked.¶- [Open|Still open]: the {item}; {first}
  takes care of
  them.¶- [Time left|Remaining]: {i_2_20} days.¶- [Next step|Next]: call {first} on {day}.
= [On the whole we are on time|We are about {i_20_90} percent through]. What is missing are the {item}. With
  {i_2_20} days to
  go, {first} and I will look at them again on {day}.
@ agenda
? Make an agenda for a meeting of {i_30_90} minutes about the {event} and the {item}.
? {first}, {first2} and I meet on {day} at {i_8_16} to talk about the {place}. Suggest an agenda, please.
= **[Agenda|Meeting], {day}, {i_8_16} o'clock**¶¶1. Welcome ({first})¶2. Where we stand with the {event}¶3. {item}:
  who buys
  them? ({first2})¶4. The {place}: keys and opening times¶5. Next meeting
= 1. [Round of greetings|Opening], 5 minutes¶2. The {event}: what went well¶3. Costs of the {item}, led by
  {first2}¶4. Wishes
  for the {place}¶5. [Who does what until when|Tasks and dates]
"""

TOPICS = parse(SCRIPT, "demo/letters", POOLS)
