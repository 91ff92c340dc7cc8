"""Numbers as text, by integer arithmetic alone, and the calendar."""

from __future__ import annotations

import datetime
from math import gcd

from databuild.sources.demo_text.words import DAYS, MONTHS


def money(cents: int) -> str:
    """Return an amount with two decimals: 1234 gives ``12.34``."""
    return f"{cents // 100}.{cents % 100:02d}"


def decimal(numerator: int, denominator: int, places: int) -> str:
    """Return a fraction rounded half up (away from zero) to a number of decimal places."""
    sign = "-" if numerator < 0 else ""
    scale = 10**places
    scaled = (2 * abs(numerator) * scale + denominator) // (2 * denominator)
    if not scaled:
        sign = ""
    if not places:
        return f"{sign}{scaled}"
    return f"{sign}{scaled // scale}.{str(scaled % scale).zfill(places)}"


def fraction(numerator: int, denominator: int) -> str:
    """Return a positive fraction in lowest terms: 6, 4 gives ``3/2`` and 4, 2 gives ``2``."""
    common = gcd(numerator, denominator)
    top, bottom = numerator // common, denominator // common
    return str(top) if bottom == 1 else f"{top}/{bottom}"


def signed(value: int) -> str:
    """Return a term to append to a sum: 3 gives ``+ 3`` and -3 gives ``- 3``."""
    return f"- {-value}" if value < 0 else f"+ {value}"


def plus(values: list[int]) -> str:
    """Return a sum as text: ``1 + 2 + 3``."""
    return " + ".join(map(str, values))


def listing(words: list[str]) -> str:
    """Return an English list: ``a, b and c``."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def factors(number: int) -> list[int]:
    """Return the prime factors in rising order, repeated as often as they divide."""
    found = []
    prime = 2
    while prime * prime <= number:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime += 1
    if number > 1:
        found.append(number)
    return found


def roman(number: int) -> str:
    """Return a number from 1 to 3999 in Roman numerals."""
    text = ""
    for value, letters in (
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ):
        text += letters * (number // value)
        number %= value
    return text


def leap(year: int) -> bool:
    """Return whether a year of the Gregorian calendar is a leap year."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def long_date(day: datetime.date) -> str:
    """Return a date in words: ``3 May 2024``; the calendar's own names depend on the locale, so ours are used."""
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def weekday(day: datetime.date) -> str:
    """Return the English name of the day of the week."""
    return DAYS[day.weekday()]


def clock(minutes: int) -> str:
    """Return minutes after midnight as ``HH:MM``."""
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"
