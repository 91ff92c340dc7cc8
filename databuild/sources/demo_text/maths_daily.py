"""Word problems from daily life, solved step by step."""

from __future__ import annotations

from databuild.sources.demo_text.numbers import clock, decimal, money, plus
from databuild.sources.demo_text.script import Setup, Slots, parse
from databuild.sources.demo_text.words import POOLS


def _shop(s: Slots) -> None:
    n, price = s.r.between(3, 19), s.r.between(45, 940)
    total = n * price
    note = (total // 1000 + 1) * 1000
    s.update(n=n, price=money(price), total=money(total), note=note // 100, change=money(note - total))


def _discount(s: Slots) -> None:
    price, pct = s.r.between(12, 480) * 100, s.r.between(1, 15) * 5
    off = price * pct // 100
    s.update(price=money(price), pct=pct, off=money(off), final=money(price - off), rest=100 - pct)


def _tip(s: Slots) -> None:
    people, share = s.r.between(2, 9), s.r.between(900, 4200)
    pct = s.r.pick((10, 15, 20, 25))
    bill = people * share * 100 // (100 + pct)
    tip = (2 * bill * pct + 100) // 200
    all_in = bill + tip
    s.update(people=people, pct=pct, bill=money(bill), tip=money(tip), all=money(all_in))
    s["each"] = decimal(all_in, people * 100, 2)


def _average(s: Slots) -> None:
    values = [s.r.between(40, 100) for _ in range(s.r.between(4, 7))]
    count = len(values)
    s.update(list=", ".join(map(str, values)), sum=plus(values), total=sum(values), count=count)
    s.update(mean=decimal(sum(values), count, 2), low=min(values), high=max(values), span=max(values) - min(values))


def _travel(s: Slots) -> None:
    speed, quarters, start = s.r.between(12, 120), s.r.between(3, 22), s.r.between(20, 56) * 15
    s.update(speed=speed, h=quarters // 4, m=quarters % 4 * 15, start=clock(start), end=clock(start + quarters * 15))
    s.update(hours=decimal(quarters, 4, 2), km=decimal(speed * quarters, 4, 2))


def _ratio(s: Slots) -> None:
    a, b, c, unit = s.r.between(2, 7), s.r.between(1, 6), s.r.between(1, 5), s.r.between(7, 90)
    parts = a + b + c
    s.update(a=a, b=b, c=c, unit=unit, parts=parts, total=parts * unit, ua=a * unit, ub=b * unit, uc=c * unit)


def _ages(s: Slots) -> None:
    young, factor, ahead = s.r.between(3, 14), s.r.between(2, 5), s.r.between(2, 12)
    old = young * factor
    s.update(young=young, old=old, factor=factor, sum=young + old, parts=factor + 1, ahead=ahead)
    s.update(later_young=young + ahead, later_old=old + ahead)


def _fence(s: Slots) -> None:
    width, length, gate, price = s.r.between(6, 40), s.r.between(10, 70), s.r.between(1, 4), s.r.between(7, 48)
    around = 2 * (width + length)
    s.update(w=width, l=length, gate=gate, price=price, half=width + length, around=around, area=width * length)
    s.update(fence=around - gate, cost=(around - gate) * price)


def _workers(s: Slots) -> None:
    rate, first, days = s.r.between(3, 15), s.r.between(2, 9), s.r.between(2, 8)
    second = first + s.r.between(1, 6)
    s.update(rate=rate, n=first, days=days, k=second, made=rate * first * days, new=rate * second * days)
    s.update(per_day=rate * first)


def _saving(s: Slots) -> None:
    have, weekly, weeks = s.r.between(10, 150), s.r.between(4, 35), s.r.between(5, 30)
    goal = have + weekly * weeks - s.r.below(weekly)
    s.update(have=have, weekly=weekly, weeks=weeks, goal=goal, gap=goal - have, reached=have + weekly * weeks)
    s["before"] = have + weekly * (weeks - 1)


def _interest(s: Slots) -> None:
    amount, rate, years = s.r.between(4, 160) * 100, s.r.between(1, 9), s.r.between(2, 12)
    yearly = amount * rate // 100
    s.update(amount=amount, rate=rate, years=years, yearly=yearly, interest=yearly * years)
    s["final"] = amount + yearly * years


def _change(s: Slots) -> None:
    old = s.r.between(8, 240) * 5
    pct = s.r.between(1, 12) * 20
    new = old + old * pct // 100
    s.update(old=old, new=new, diff=new - old, pct=pct)


def _recipe(s: Slots) -> None:
    serves, scale = s.r.between(2, 6), s.r.between(2, 6)
    flour, milk, eggs = s.r.between(8, 30) * 10, s.r.between(5, 25) * 10, s.r.between(2, 6)
    s.update(serves=serves, guests=serves * scale, scale=scale, flour=flour, milk=milk, eggs=eggs)
    s.update(flour2=flour * scale, milk2=milk * scale, eggs2=eggs * scale)


def _boxes(s: Slots) -> None:
    size, full, rest = s.r.between(6, 24), s.r.between(5, 40), s.r.between(1, 5)
    s.update(size=size, full=full, rest=rest, total=size * full + rest, packed=size * full, need=full + 1)
    s["missing"] = size - rest


def _tank(s: Slots) -> None:
    fill, drain, minutes = s.r.between(12, 40), s.r.between(2, 10), s.r.between(5, 60)
    net = fill - drain
    s.update(fill=fill, drain=drain, net=net, minutes=minutes, litres=net * minutes)


def _two_trains(s: Slots) -> None:
    a, b, hours = s.r.between(50, 130), s.r.between(50, 130), s.r.between(2, 6)
    s.update(a=a, b=b, sum=a + b, hours=hours, dist=(a + b) * hours, da=a * hours, db=b * hours)


SETUPS: dict[str, Setup] = {
    "shop": _shop,
    "discount": _discount,
    "tip": _tip,
    "average": _average,
    "travel": _travel,
    "ratio": _ratio,
    "ages": _ages,
    "fence": _fence,
    "workers": _workers,
    "saving": _saving,
    "interest": _interest,
    "change": _change,
    "recipe": _recipe,
    "boxes": _boxes,
    "tank": _tank,
    "trains": _two_trains,
}

SCRIPT = """
@ shop shop
? {first} buys {n} {item} at {price} euros each and pays with {note} euros. How much change comes back?
? At the {shop} in {city}, {item} cost {price} euros apiece. What do I get back from {note} euros if I take {n} of
  them?
? I paid for {n} {item} ({price} euros each) with {note} euros in cash. [Is there|Should there be] any change, and how
  much?
= First the cost of all the {item}: {n} × {price} = {total} euros.¶¶Then the change: {note}.00 - {total} = {change}.
  ¶¶[The change is|That leaves|So the till gives back] **{change} euros**.
= [Two steps|Let us take it in two steps].¶¶1. Cost: {n} × {price} euros = {total} euros.¶2. Change: {note}.00 -
  {total}
  = {change} euros.¶¶Answer: {change} euros.
= {change} euros. The {n} {item} cost {n} × {price} = {total} euros together, and {note}.00 - {total} = {change}.
> And what would the {item} cost without any change, for just one of them?
< One costs {price} euros, as the label says; {n} of them cost {total} euros, and {total} ÷ {n} = {price} brings us
  back
  to the price of one.
@ discount discount
? A {object} costs {price} euros and is reduced by {pct} percent. What is the sale price?
? How much do I pay for a {object} of {price} euros after {pct}% off?
? The {shop} gives {pct} % off everything today. {first} wants the {object} marked {price} euros. What will it cost?
= [{pct} percent of|The reduction first: {pct} percent of] {price} is {price} × {pct} ÷ 100 = {off} euros.¶¶{price}
  - {off} =
  **{final} euros**.
= A discount of {pct}% means that {rest}% of the price [remains|is left to pay].¶¶{price} × {rest} ÷ 100 =
  {final}.¶¶So
  the {object} costs {final} euros, which saves {off} euros.
> How much is saved?
< The saving is {off} euros: {price} - {final} = {off}.
@ tip tip
? {people} friends share a bill of {bill} euros and add a {pct}% tip. What does each of them pay?
? Dinner for {people} in {city} came to {bill}. With {pct} percent for the waiter, how much is it per person?
? Split {bill} euros plus {pct}% tip between {people} people, please.
= Tip: {pct}% of {bill} is {tip} euros (rounded to the cent).¶Total: {bill} + {tip} = {all} euros.¶Each: {all} ÷
  {people}
  = **{each} euros** (rounded to the cent).
= Each person pays {each} euros.¶¶- The tip is {bill} × {pct} ÷ 100 = {tip}.¶- Bill and tip together are {all}.¶-
  Divided
  by {people}, rounded to the cent, that is {each}.
@ average average
? {first} scored {list} in {count} tests. What is the average?
? Find the mean of these numbers: {list}. [Also give the range.|I also need the range.]
? My {count} measurements are {list}. What are mean and range?
= Add the numbers: {sum} = {total}.¶Divide by how many there are: {total} ÷ {count} = **{mean}** (two decimals).¶¶The
  range is {high} - {low} = {span}.
= The mean is {mean}, rounded to two decimals.¶¶Sum: {total}. Count: {count}. {total} ÷ {count} ≈ {mean}.¶The smallest
  value is {low} and the largest {high}, so the range is {span}.
@ travel travel
? A [bus|van|train|coach] leaves {city} at {start} and drives for {h} hours and {m} minutes at {speed} km/h. How
  far does
  it go, and when does it arrive?
? How many kilometres does {first} cover in {h} h {m} min at a steady {speed} km/h? The trip begins at {start}.
? I set off at {start} and keep {speed} km/h for {h} hours {m} minutes. Where does the clock stand then, and how
  far am I?
= {h} hours {m} minutes are {hours} hours.¶¶Distance = speed × time = {speed} × {hours} = **{km} km**.¶¶Arrival:
  {start}
  plus {h} h {m} min is **{end}**.
= [Distance first|Start with the distance]: {speed} km/h × {hours} h = {km} km. [Now the clock|Then the time]:
  {start} +
  {h}:{m} = {end}.¶¶So it is {km} km, and the arrival is at {end}.
@ ratio! ratio
? {first}, {first2} and {first3} share {total} euros in the ratio {a}:{b}:{c}. How much does each get?
? Divide {total} [stickers|marbles|points|grams of seed] in the ratio {a} : {b} : {c}.
? {total} is to be split {a}:{b}:{c}. Show the three shares.
= The ratio has {a} + {b} + {c} = {parts} parts, and one part is {total} ÷ {parts} = {unit}.¶¶- {a} × {unit} =
  {ua}¶- {b}
  × {unit} = {ub}¶- {c} × {unit} = {uc}¶¶Check: {ua} + {ub} + {uc} = {total}.
= Shares: **{ua}, {ub} and {uc}**.¶¶Why: {parts} parts in all, each worth {total} / {parts} = {unit}; multiply by {a},
  {b} and {c}.
@ ages ages
? {first} is {factor} times as old as {first2}. Together they are {sum}. How old are they, and in {ahead} years?
? Two cousins, {first} and {first2}, are {sum} years old together; {first} is {factor} times as old. Find both ages
  now
  and {ahead} years from now.
= Let {first2} be x years old. Then {first} is {factor}x, and x + {factor}x = {sum}, so {parts}x = {sum} and x =
  {young}.¶¶{first2} is {young} and {first} is {factor} × {young} = {old}.¶In {ahead} years they will be {later_young}
  and {later_old}.
= {first} is {old} and {first2} is {young}. ¶¶There are {parts} equal parts in {sum}, so one part is {young}. In
  {ahead}
  years: {old} + {ahead} = {later_old} and {young} + {ahead} = {later_young}.
@ fence fence
? A garden is {l} m long and {w} m wide. A fence with a {gate} m gap for the gate costs {price} euros a metre. What
  is the
  cost?
? {first} wants to fence a rectangular field of {w} m by {l} m, leaving {gate} m open. At {price} euros per metre,
  what
  will the fence cost? And what is the area?
= Perimeter: 2 × ({l} + {w}) = 2 × {half} = {around} m.¶Without the gate: {around} - {gate} = {fence} m.¶Cost:
  {fence} ×
  {price} = **{cost} euros**.¶¶The area inside is {l} × {w} = {area} m².
= [We need|You need] {fence} m of fence, because the way round is {around} m and {gate} m stay open. That costs
  {fence} ×
  {price} = {cost} euros. The field itself measures {w} × {l} = {area} square metres.
@ workers! workers
? {n} [potters|bakers|printers|joiners] make {made} pieces in {days} days. How many would {k} make in the same time?
? If {n} machines produce {made} {item} in {days} days, what do {k} machines produce in {days} days?
= One day of {n} gives {made} ÷ {days} = {per_day}.¶One alone gives {per_day} ÷ {n} = {rate} a day.¶So {k} give {k}
  × {rate}
  × {days} = **{new}** in {days} days.
= {new}. Each one makes {made} ÷ ({n} × {days}) = {rate} a day, and {k} × {days} × {rate} = {new}.
@ saving saving
? {first} has {have} euros and saves {weekly} euros a week. After how many weeks is there enough for a {object}
  that costs
  {goal} euros?
? I have {have} in my money box and add {weekly} every {day}. When can I afford a {object} for {goal}?
= Missing: {goal} - {have} = {gap} euros.¶{gap} ÷ {weekly} gives {weeks} weeks when rounded up.¶¶Check: after
  {weeks} weeks
  there are {have} + {weeks} × {weekly} = {reached} euros, which is enough; a week earlier there were only {before}.
= It takes **{weeks} weeks**. The gap is {gap} euros, and {weeks} payments of {weekly} bring the box to {reached},
  while
  one payment fewer stops at {before}.
@ interest! interest
? {amount} euros are put away at {rate}% simple interest a year. What are they worth after {years} years?
? Compute the simple interest on {amount} euros at {rate} percent for {years} years.
= Interest a year: {amount} × {rate} ÷ 100 = {yearly} euros.¶In {years} years: {years} × {yearly} = {interest}
  euros.¶Final
  amount: {amount} + {interest} = **{final} euros**.
= The interest comes to {interest} euros: {amount} × {rate}/100 × {years}. Added to the {amount} at the start, that
  makes
  {final} euros.
@ change! change
? The number of visitors to the {place} rose from {old} to {new}. By how many percent is that?
? What is the percentage increase from {old} to {new}?
? Last year {town} sold {old} tickets for the {event}, this year {new}. How large is the increase in percent?
= The increase is {new} - {old} = {diff}.¶Compared with the old value: {diff} ÷ {old} × 100 = **{pct}%**.
= {pct} percent. {new} is {diff} more than {old}, and {diff}/{old} of a hundred is {pct}.
@ recipe! recipe
? A recipe for {food} serves {serves} and needs {flour} g of flour, {milk} ml of milk and {eggs} eggs. What do I
  need for
  {guests} people?
? Scale this up from {serves} to {guests} guests: {flour} g flour, {milk} ml milk, {eggs} eggs.
= {guests} ÷ {serves} = {scale}, so everything is taken {scale} times:¶¶- flour: {flour} g × {scale} = {flour2} g¶-
  milk:
  {milk} ml × {scale} = {milk2} ml¶- eggs: {eggs} × {scale} = {eggs2}
= For {guests} people: {flour2} g of flour, {milk2} ml of milk and {eggs2} eggs, because {guests} is {scale} times
  {serves}.
@ boxes! boxes
? {total} {item} go into boxes of {size}. How many boxes are needed, and how many are in the last one?
? {first} packs {total} {item}, {size} to a box. How many boxes does that take?
= {total} ÷ {size} = {full} remainder {rest}.¶¶So {full} boxes are full and the last one holds {rest}: **{need}
  boxes** in
  all.
= We need {need} boxes. {full} full ones hold {full} × {size} = {packed}; the remaining {rest} go into one more, which
  still has room for {missing}.
@ tank! tank
? Water runs into a tank at {fill} litres a minute and out at {drain}. How much is in it after {minutes} minutes?
? A pump adds {fill} l/min while a leak loses {drain} l/min. The tank starts empty. What is the level after
  {minutes} min?
= Each minute the tank gains {fill} - {drain} = {net} litres.¶After {minutes} minutes: {minutes} × {net} = **{litres}
  litres**.
= {litres} litres, since the net flow is {net} litres a minute and {net} × {minutes} = {litres}.
@ trains! trains
? Two trains start {dist} km apart and travel towards each other at {a} and {b} km/h. When and where do they meet?
? Trains leave {city} and {city2}, {dist} km apart, at {a} km/h and {b} km/h,
  towards each other. After how long do they meet?
= Together they close {a} + {b} = {sum} km every hour.¶{dist} ÷ {sum} = {hours}, so they meet after **{hours} hours**.
  ¶¶The first has then gone {a} × {hours} = {da} km and the second {b} × {hours} = {db} km.
= They meet after {hours} hours, {da} km from the start of the first train. The gap of {dist} km shrinks by {sum}
  km an
  hour.
"""

TOPICS = parse(SCRIPT, "demo/maths", POOLS, SETUPS)
