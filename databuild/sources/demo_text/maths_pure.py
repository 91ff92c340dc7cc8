"""Exercises in arithmetic, algebra and a little more, with worked solutions."""

from __future__ import annotations

from math import comb, gcd

from databuild.sources.demo_text.numbers import decimal, factors, fraction, plus, roman, signed
from databuild.sources.demo_text.script import Setup, Slots


def _linear(s: Slots) -> None:
    a, x, b = s.r.between(2, 19), s.r.between(-25, 40), s.r.between(-60, 60) or 7
    s.update(a=a, x=x, b=signed(b), move=signed(-b), c=a * x + b, ax=a * x)


def _quadratic(s: Slots) -> None:
    p, q = s.r.between(1, 14), s.r.between(-14, -1)
    if p + q == 0:
        p += 1
    s.update(p=p, q=q, minus_q=-q, b=signed(-(p + q)), c=signed(p * q), sum=p + q, product=p * q)


def _euclid(s: Slots) -> None:
    common = s.r.between(2, 30)
    a, b = common * s.r.between(11, 40), common * s.r.between(3, 10)
    s.update(a=a, b=b, g=gcd(a, b), lcm=a * b // gcd(a, b), product=a * b)
    lines = []
    while b:
        lines.append(f"{a} = {a // b} × {b} + {a % b}")
        a, b = b, a % b
    s["steps"] = "\n".join(lines)


def _fractions(s: Slots) -> None:
    b, d = s.r.sample(range(2, 16), 2)
    a, c = s.r.between(1, b - 1), s.r.between(1, d - 1)
    bottom = b * d // gcd(b, d)
    top_a, top_c = a * bottom // b, c * bottom // d
    s.update(a=a, b=b, c=c, d=d, m=bottom, ta=top_a, tc=top_c, top=top_a + top_c, res=fraction(top_a + top_c, bottom))


def _series(s: Slots) -> None:
    first, step, n = s.r.between(1, 30), s.r.between(2, 15), s.r.between(8, 60)
    last = first + (n - 1) * step
    s.update(a=first, d=step, n=n, n1=n - 1, last=last, ends=first + last, sum=n * (first + last) // 2)
    s["start"] = ", ".join(str(first + i * step) for i in range(4))


def _geometric(s: Slots) -> None:
    first, ratio, n = s.r.between(1, 12), s.r.between(2, 5), s.r.between(4, 7)
    terms = [first * ratio**i for i in range(n)]
    s.update(start=", ".join(map(str, terms[:3])), ratio=ratio, n=n, terms=", ".join(map(str, terms)), last=terms[-1])
    s.update(sum=sum(terms), a=first, n1=n - 1)


def _marbles(s: Slots) -> None:
    red, blue, green = s.r.between(2, 15), s.r.between(2, 15), s.r.between(2, 15)
    total = red + blue + green
    s.update(red=red, blue=blue, green=green, all=total, p=fraction(red, total), pct=decimal(red * 100, total, 1))
    s.update(red1=red - 1, all1=total - 1, two=fraction(red * (red - 1), total * (total - 1)), other=blue + green)


def _choose(s: Slots) -> None:
    n, k = s.r.between(5, 16), s.r.between(2, 4)
    top = [n - i for i in range(k)]
    bottom = list(range(k, 0, -1))
    product = 1
    for value in top:
        product *= value
    s.update(n=n, k=k, top=" × ".join(map(str, top)), bottom=" × ".join(map(str, bottom)), res=comb(n, k))
    s.update(ordered=product)


def _modulo(s: Slots) -> None:
    base, power, m = s.r.between(2, 19), s.r.between(5, 13), s.r.between(7, 41)
    value, lines = base % m, [f"{base}^1 ≡ {base % m}"]
    for i in range(2, power + 1):
        lines.append(f"{base}^{i} ≡ {value} × {base} = {value * base} ≡ {value * base % m}")
        value = value * base % m
    s.update(b=base, e=power, m=m, res=value, steps="\n".join(lines))


def _primes(s: Slots) -> None:
    n = s.r.between(60, 5000)
    found = factors(n)
    rest, lines = n, []
    for prime in found[:-1]:
        lines.append(f"{rest} ÷ {prime} = {rest // prime}")
        rest //= prime
    lines.append(f"{rest} is prime")
    s.update(n=n, steps="\n".join(lines), res=" × ".join(map(str, found)), count=len(found))
    s["verdict"] = "a prime number itself" if len(found) == 1 else "not a prime number"


def _system(s: Slots) -> None:
    x, y, a, b, c = s.r.between(1, 20), s.r.between(1, 20), s.r.between(2, 9), s.r.between(2, 9), s.r.between(1, 8)
    s.update(x=x, y=y, a=a, b=b, c=c, e=a * x + b * y, f=c * x + y, cb=c * b, fb=(c * x + y) * b, cx=c * x)
    k = a - c * b
    if k == 0:
        a += 1
        k = 1
        s.update(a=a, e=a * x + b * y)
    s.update(k=k, rest=a * x + b * y - (c * x + y) * b)


def _binary(s: Slots) -> None:
    n = s.r.between(20, 2000)
    lines, rest = [], n
    while rest:
        lines.append(f"{rest} ÷ 2 = {rest // 2} remainder {rest % 2}")
        rest //= 2
    s.update(n=n, steps="\n".join(lines), bits=f"{n:b}", hex=f"{n:X}", oct=f"{n:o}", digits=len(f"{n:b}"))


def _derive(s: Slots) -> None:
    a, b, c, d, x = (s.r.between(2, 9), s.r.between(2, 12), s.r.between(2, 15), s.r.between(1, 40), s.r.between(1, 6))
    s.update(a=a, b=b, c=c, d=d, a3=3 * a, b2=2 * b, x=x, at=3 * a * x * x + 2 * b * x + c, t1=3 * a * x * x)
    s["t2"] = 2 * b * x


def _median(s: Slots) -> None:
    values = [s.r.between(1, 60) for _ in range(s.r.pick((5, 7, 9, 6, 8)))]
    ordered = sorted(values)
    n = len(values)
    low, high = ordered[(n - 1) // 2], ordered[n // 2]
    s.update(
        list=", ".join(map(str, values)), sorted=", ".join(map(str, ordered)), n=n, median=decimal(low + high, 2, 1)
    )
    s["how"] = f"the middle one is {low}" if n % 2 else f"the two in the middle are {low} and {high}"


def _product(s: Slots) -> None:
    a, b = s.r.between(12, 99), s.r.between(102, 989)
    hundreds, tens, ones = b // 100 * 100, b // 10 % 10 * 10, b % 10
    s.update(a=a, b=b, h=hundreds, t=tens, o=ones, ah=a * hundreds, at=a * tens, ao=a * ones, res=a * b)


def _divide(s: Slots) -> None:
    b, q = s.r.between(6, 48), s.r.between(21, 400)
    r = s.r.below(b)
    s.update(a=b * q + r, b=b, q=q, r=r, bq=b * q)


def _pythagoras(s: Slots) -> None:
    m, n = s.r.pick(((2, 1), (3, 2), (4, 1), (4, 3), (5, 2), (5, 4), (7, 2), (6, 1)))
    k = s.r.between(1, 12)
    a, b, c = k * (m * m - n * n), k * 2 * m * n, k * (m * m + n * n)
    s.update(a=a, b=b, c=c, aa=a * a, bb=b * b, cc=c * c, area=a * b // 2, around=a + b + c)


def _matrix(s: Slots) -> None:
    a, b, c, d, e, f, g, h = (s.r.between(-4, 9) for _ in range(8))
    s.update(m1=f"[{a}, {b}; {c}, {d}]", m2=f"[{e}, {f}; {g}, {h}]")
    s["res"] = f"[{a * e + b * g}, {a * f + b * h}; {c * e + d * g}, {c * f + d * h}]"
    lines = [
        f"row 1, column 1: ({a})({e}) + ({b})({g}) = {a * e + b * g}",
        f"row 1, column 2: ({a})({f}) + ({b})({h}) = {a * f + b * h}",
        f"row 2, column 1: ({c})({e}) + ({d})({g}) = {c * e + d * g}",
        f"row 2, column 2: ({c})({f}) + ({d})({h}) = {c * f + d * h}",
    ]
    s["steps"] = "\n".join(lines)
    s.update(det=a * d - b * c, a=a, b=b, c=c, d=d, ad=a * d, bc=b * c)


def _order(s: Slots) -> None:
    a, b, c, d, e = (s.r.between(2, 40), s.r.between(2, 12), s.r.between(2, 12), s.r.between(2, 9), s.r.between(2, 9))
    s.update(a=a, b=b, c=c, d=d, e=e, bc=b * c, de=d + e, sq=(d + e) ** 2, ab=a + b * c, res=a + b * c - (d + e) ** 2)


def _roman(s: Slots) -> None:
    n = s.r.between(14, 3999)
    parts = [(value, roman(value)) for value in (n // 1000 * 1000, n // 100 % 10 * 100, n // 10 % 10 * 10, n % 10)]
    s["steps"] = "\n".join(f"{value} = {letters}" for value, letters in parts if value)
    s.update(n=n, roman=roman(n), sum=plus([value for value, _ in parts if value]))


def _triangle(s: Slots) -> None:
    a, b = s.r.between(20, 85), s.r.between(20, 80)
    c = 180 - a - b
    s.update(a=a, b=b, c=c, ab=a + b, kind="right" if 90 in (a, b, c) else "obtuse" if c > 90 else "acute")


def _dot(s: Slots) -> None:
    u = [s.r.between(-9, 12) for _ in range(3)]
    v = [s.r.between(-9, 12) for _ in range(3)]
    total = sum(p * q for p, q in zip(u, v, strict=True))
    s.update(u=", ".join(map(str, u)), v=", ".join(map(str, v)), res=total)
    s["steps"] = " + ".join(f"({p})({q})" for p, q in zip(u, v, strict=True))
    s["terms"] = " + ".join(f"({p * q})" for p, q in zip(u, v, strict=True))
    s["right"] = "They are perpendicular." if total == 0 else "They are not perpendicular, as it is not zero."


SETUPS: dict[str, Setup] = {
    "linear": _linear,
    "quadratic": _quadratic,
    "euclid": _euclid,
    "fractions": _fractions,
    "series": _series,
    "geometric": _geometric,
    "marbles": _marbles,
    "choose": _choose,
    "modulo": _modulo,
    "primes": _primes,
    "system": _system,
    "binary": _binary,
    "derive": _derive,
    "median": _median,
    "product": _product,
    "divide": _divide,
    "pythagoras": _pythagoras,
    "matrix": _matrix,
    "order": _order,
    "roman": _roman,
    "triangle": _triangle,
    "dot": _dot,
}
