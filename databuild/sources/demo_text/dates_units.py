"""Dates, times and conversions of units."""

from __future__ import annotations

import datetime

from databuild.sources.demo_text.numbers import clock, decimal, leap, long_date, weekday
from databuild.sources.demo_text.script import Setup, Slots, parse
from databuild.sources.demo_text.words import MONTHS, POOLS

_DAY = datetime.timedelta(days=1)


def _some_day(s: Slots) -> datetime.date:
    return datetime.date(s.r.between(1951, 2049), 1, 1) + s.r.below(365) * _DAY


def _add_days(s: Slots) -> None:
    day, n = _some_day(s), s.r.between(12, 400)
    end = day + n * _DAY
    s.update(date=long_date(day), iso=day.isoformat(), n=n, end=long_date(end), end_iso=end.isoformat())
    s.update(wd=weekday(day), end_wd=weekday(end), weeks=n // 7, extra=n % 7)


def _between(s: Slots) -> None:
    first, second = _some_day(s), _some_day(s)
    if first > second:
        first, second = second, first
    second += 3 * _DAY
    n = (second - first).days
    s.update(a=long_date(first), b=long_date(second), n=n, weeks=n // 7, extra=n % 7, wa=weekday(first))
    s.update(wb=weekday(second), ia=first.isoformat(), ib=second.isoformat())


def _weekday(s: Slots) -> None:
    day = _some_day(s)
    start = datetime.date(day.year, 1, 1)
    passed = (day - start).days
    s.update(date=long_date(day), iso=day.isoformat(), wd=weekday(day), year=day.year, start=weekday(start), n=passed)
    s.update(weeks=passed // 7, extra=passed % 7, number=passed + 1)


def _leap(s: Slots) -> None:
    year = s.r.between(1600, 2800)
    if s.r.chance(30):
        year = year // 100 * 100
    if year % 400 == 0:
        why = f"{year} can be divided by 400"
    elif year % 100 == 0:
        why = f"{year} can be divided by 100 but not by 400"
    elif year % 4 == 0:
        why = f"{year} can be divided by 4 and not by 100"
    else:
        why = f"{year} cannot be divided by 4; the remainder is {year % 4}"
    after = year + 1
    while not leap(after):
        after += 1
    s.update(year=year, why=why, yes="Yes" if leap(year) else "No", days=366 if leap(year) else 365, next=after)
    s["feb"] = 29 if leap(year) else 28


def _zones(s: Slots) -> None:
    here, there, start = s.r.between(-8, 3), s.r.between(4, 11), s.r.between(0, 95) * 15
    end = start + (there - here) * 60
    s.update(here=f"UTC{here:+d}", there=f"UTC{there:+d}", start=clock(start), end=clock(end), diff=there - here)
    s["when"] = "the next day" if end >= 1440 else "the same day"


def _minutes(s: Slots) -> None:
    n = s.r.between(130, 9999)
    s.update(n=n, h=n // 60, m=n % 60, d=n // 1440, dh=n % 1440 // 60, full=n // 60 * 60, sec=n * 60)


def _lesson(s: Slots) -> None:
    start, length, gap, count = (
        s.r.between(30, 42) * 15,
        s.r.between(5, 18) * 5,
        s.r.between(1, 4) * 5,
        s.r.between(3, 7),
    )
    at, lines = start, []
    for number in range(1, count + 1):
        lines.append(f"{number}. {clock(at)} to {clock(at + length)}")
        at += length + gap
    s.update(start=clock(start), length=length, gap=gap, count=count, plan="\n".join(lines), end=clock(at - gap))
    s["total"] = at - gap - start


def _unit(s: Slots, low: int, high: int, factor: tuple[int, int], places: int = 2) -> None:
    n = s.r.between(low, high)
    s.update(n=n, res=decimal(n * factor[0], factor[1], places))


def _miles(s: Slots) -> None:
    _unit(s, 3, 2600, (1609344, 1000000))


def _pounds(s: Slots) -> None:
    _unit(s, 2, 900, (45359237, 100000000))


def _inches(s: Slots) -> None:
    _unit(s, 2, 400, (254, 100), 1)


def _celsius(s: Slots) -> None:
    n = s.r.between(-40, 230)
    s.update(n=n, res=decimal(n * 9 + 160, 5, 1), nine=n * 9, fifth=decimal(n * 9, 5, 1))


def _fahrenheit(s: Slots) -> None:
    n = s.r.between(-20, 450)
    s.update(n=n, less=n - 32, res=decimal((n - 32) * 5, 9, 1), five=(n - 32) * 5)


def _bytes(s: Slots) -> None:
    n = s.r.between(3, 4000)
    s.update(n=n, kib=n * 1024, b=n * 1024 * 1024, mb=decimal(n * 1024 * 1024, 1000000, 2))


def _speed(s: Slots) -> None:
    n = s.r.between(4, 330)
    s.update(n=n, res=decimal(n * 10, 36, 2), per_min=decimal(n * 1000, 60, 1))


def _money(s: Slots) -> None:
    rate, n = s.r.between(52, 1899), s.r.between(5, 900)
    s.update(n=n, rate=decimal(rate, 100, 2), res=decimal(n * rate, 100, 2))
    s["back"] = decimal(n * 100, rate, 2)


def _age(s: Slots) -> None:
    born, today = _some_day(s), datetime.date(s.r.between(2050, 2069), s.r.between(1, 12), s.r.between(1, 28))
    had = (today.month, today.day) >= (born.month, born.day)
    s.update(born=long_date(born), today=long_date(today), diff=today.year - born.year, m=MONTHS[born.month - 1])
    s["age"] = today.year - born.year - (0 if had else 1)
    s["why"] = "has already come round in that year" if had else "is still to come in that year, so one is taken off"


SETUPS: dict[str, Setup] = {
    "add": _add_days,
    "between": _between,
    "weekday": _weekday,
    "leap": _leap,
    "zones": _zones,
    "minutes": _minutes,
    "lesson": _lesson,
    "miles": _miles,
    "pounds": _pounds,
    "inches": _inches,
    "celsius": _celsius,
    "fahrenheit": _fahrenheit,
    "bytes": _bytes,
    "speed": _speed,
    "money": _money,
    "age": _age,
}

SCRIPT = """
@ add add
? What date is {n} days after {date}?
? {first} borrows a {object} on {date} and must return it within {n} days. What is the last day?
? Add {n} days to {iso}.
= {n} days are {weeks} weeks and {extra} days. Counting on from {wd}, {date}, we reach **{end_wd}, {end}**.
= {end_iso}, a {end_wd}. ({iso} is a {wd}; {n} days = {weeks} × 7 + {extra}.)
> Which day of the week does that fall on?
< On a {end_wd}. The start, {date}, is a {wd}, and {n} leaves the remainder {extra} when divided by 7.
@ between between
? How many days lie between {a} and {b}?
? Count the days from {ia} to {ib}, please.
? {first} moved to {city} on {a} and left on {b}. How many days was that?
= From {a} to {b} there are **{n} days**, which is {weeks} weeks and {extra} days.
= {n}. The first date is a {wa}, the second a {wb}, and {n} = {weeks} × 7 + {extra} fits with that.
@ weekday! weekday
? On which day of the week does {date} fall?
? What weekday is {iso}?
= {date} is a **{wd}**. The year {year} begins on a {start}; {n} days later, which is {weeks} weeks and {extra}
  days, it
  is {wd}.
= A {wd}. It is day number {number} of {year}, and that year starts on a {start}.
@ leap! leap
? Is {year} a leap year?
? How many days does the year {year} have, and why?
? Does {month} change anything in {year}, or rather: is {year} a leap year?
= {yes}, because {why}. It therefore has {days} days.
= {days} days. The rule: {why}. The next leap year after it is {next}.
= February has {feb} days in {year}, since {why}.
@ zones! zones
? It is {start} at {here}. What time is it at {there}?
? {first} calls {first2} at {start} local time ({here}). {first2} lives at {there}. What does the clock there show?
= The difference is {diff} hours, and {there} is ahead. {start} + {diff} h = **{end}**, {when}.
= {end} ({when}). Going from {here} to {there} adds {diff} hours.
@ minutes! minutes
? How long are {n} minutes in hours and minutes?
? A film marathon at the {place} lasts {n} minutes. Express that in hours.
= {n} ÷ 60 = {h} remainder {m}, so {n} minutes are **{h} hours and {m} minutes**.
= {h} h {m} min, since {h} × 60 = {full}. (In days that is {d} d {dh} h {m} min; in seconds {sec}.)
@ lesson! lesson
? Plan {count} lessons of {length} minutes with breaks of {gap} minutes, starting at {start}.
? The first of {count} talks at the {event} in {town} starts at {start}; each takes {length} minutes, with {gap}
  minutes
  between them. List the times.
= {plan}¶¶Everything ends at {end}, {total} minutes after the start.
= Starting at {start}:¶¶{plan}¶¶With {gap} minutes after each but the last, you are done at {end}.
@ miles! miles
? How many kilometres are {n} miles?
? Convert a distance of {n} miles to km.
? {first} ran {n} miles over the year. What is that in kilometres?
= One mile is 1.609344 km, so {n} miles are {n} × 1.609344 ≈ **{res} km**.
= About {res} kilometres ({n} × 1.609344).
@ pounds! pounds
? What are {n} pounds in kilograms?
? A parcel weighs {n} lb. Convert to kg.
= 1 lb = 0.45359237 kg, hence {n} lb ≈ **{res} kg**.
= Roughly {res} kg: multiply {n} by 0.45359237.
@ inches! inches
? Convert {n} inches to centimetres.
? The {object} measures {n} inches. How many centimetres is that?
= An inch is exactly 2.54 cm. {n} × 2.54 = **{res} cm** (one decimal).
= {res} cm, because every inch has 2.54 centimetres.
@ celsius! celsius
? What is {n} °C in Fahrenheit?
? The thermometer shows {n} degrees Celsius. What would it show in Fahrenheit?
= F = C × 9/5 + 32 = {fifth} + 32 = **{res} °F**
= {res} °F. First {n} × 9 = {nine}, then divided by 5 gives {fifth}, then plus 32.
@ fahrenheit! fahrenheit
? Convert {n} °F to Celsius.
? An old cookbook says {n} degrees Fahrenheit. What is that in Celsius?
= C = (F - 32) × 5/9 = {less} × 5/9 = {five}/9 ≈ **{res} °C**
= About {res} °C. Subtract 32 to get {less}, then take five ninths.
@ bytes! bytes
? How many bytes are {n} MiB?
? A file has {n} MiB. What is that in KiB, in bytes and in decimal megabytes?
= {n} MiB = {n} × 1024 = {kib} KiB = {kib} × 1024 = **{b} bytes**, or {mb} MB in powers of ten.
= {b} bytes ({kib} KiB). Decimal megabytes are a little smaller, so there are more of them: {mb} MB.
@ speed! speed
? How fast is {n} km/h in metres per second?
? A {animal} in a cartoon runs at {n} km/h. Convert that to m/s.
= Divide by 3.6: {n} ÷ 3.6 ≈ **{res} m/s**.
= {res} m/s (rounded), or {per_min} metres in a minute.
@ money! money
? With a rate of {rate} crowns to the euro, how many crowns are {n} euros?
? Exchange {n} euros at {rate} crowns each. And what are {n} crowns in euros?
= {n} × {rate} = **{res} crowns**. The other way round, {n} crowns are {n} ÷ {rate} ≈ {back} euros.
= You get {res} crowns for {n} euros; {n} crowns would be about {back} euros.
@ age age
? {first} was born on {born}. How old is {first} on {today}?
? Born {born}, today is {today}: what is the age in full years?
= {diff} years lie between the two year numbers. The birthday in {m} {why}. So the age is **{age}**.
= {age} years. The birthday {why}.
"""

TOPICS = parse(SCRIPT, "demo/dates-units", POOLS, SETUPS)
