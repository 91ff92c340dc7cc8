"""The wording of the exercises in :mod:`~databuild.sources.demo_text.maths_pure`."""

from __future__ import annotations

from databuild.sources.demo_text.maths_pure import SETUPS
from databuild.sources.demo_text.script import parse
from databuild.sources.demo_text.words import POOLS

SCRIPT = """
@ linear! linear
? Solve for x: {a}x {b} = {c}
? What is x if {a}x {b} = {c}?
? {first} is stuck on the equation {a}x {b} = {c}. Can you solve it [step by step|slowly]?
= {a}x {b} = {c}¶{a}x = {c} {move} = {ax}¶x = {ax} ÷ {a} = **{x}**
= Move the constant to the right: {a}x = {c} {move} = {ax}. Then divide by {a}: x = {x}.¶¶Check: {a} × ({x}) {b} =
  {c}.
> How do I check that myself?
< Put x = {x} into the left side: {a} × ({x}) = {ax}, and {ax} {b} = {c}, which is the right side.
@ quadratic! quadratic
? Solve x² {b}x {c} = 0 by factoring.
? Find both roots of x² {b}x {c}.
= We look for two numbers with sum {sum} and product {product}: they are {p} and {q}.¶¶So x² {b}x {c} = (x - {p})(x +
  {minus_q}), and the roots are **x = {p}** and **x = {q}**.
= (x - {p})(x + {minus_q}) = 0, hence x = {p} or x = {q}. The roots add up to {sum} and multiply to {product}, as the
  coefficients ask.
@ euclid! euclid
? Find the greatest common divisor of {a} and {b} with the Euclidean algorithm.
? What are gcd and lcm of {a} and {b}?
? Show me, line by line, how Euclid would find the gcd of {a} and {b}.
= Divide again and again, keeping the remainder:¶¶{steps}¶¶The last remainder that is not zero is **{g}**, so gcd({a},
  {b}) = {g}. The least common multiple is {product} ÷ {g} = {lcm}.
= {steps}¶¶Hence the gcd is {g} and the lcm is {a} × {b} ÷ {g} = {lcm}.
@ fractions! fractions
? What is {a}/{b} + {c}/{d}?
? Add the fractions {a}/{b} and {c}/{d} and simplify.
? {first} eats {a}/{b} of a pie and then {c}/{d} of another of the same size. How much pie is that?
= The common denominator is {m}.¶¶{a}/{b} = {ta}/{m} and {c}/{d} = {tc}/{m}.¶¶{ta}/{m} + {tc}/{m} = {top}/{m} =
  **{res}**
= {res}. With {m} as common denominator, the sum is ({ta} + {tc})/{m} = {top}/{m}.
@ series! series
? What is the sum of the first {n} terms of {start}, ...?
? An arithmetic sequence starts {start}. Find term number {n} and the sum up to it.
? A hall has {n} rows of seats; the first has {a} seats and each row has {d} more than the one before. How many
  seats are
  there?
= The first term is {a} and the difference {d}.¶Term {n}: {a} + {n1} × {d} = {last}.¶Sum: {n} × ({a} + {last}) ÷ 2
  = {n} ×
  {ends} ÷ 2 = **{sum}**.
= {sum} in all. Pair the first with the last: each pair gives {a} + {last} = {ends}, and there are {n}/2 pairs.
  (The last
  term is {a} + {n1} × {d} = {last}.)
@ geometric! geometric
? Continue {start}, ... until there are {n} terms, and add them up.
? A geometric sequence begins {start}. What are term {n} and the sum of the first {n} terms?
= Each term is {ratio} times the one before: {terms}.¶¶Term {n} is {last}, and the sum is **{sum}**.
= Term {n}: {a} × {ratio}^{n1} = {last}. Written out, the terms are {terms}; their sum is {sum}.
@ marbles! marbles
? A bag holds {red} red, {blue} blue and {green} green marbles. How likely is it to draw a red one? And two red
  ones in a
  row, without putting back?
? {red} red, {blue} blue, {green} green counters are in a box. What is the probability that a counter drawn blindly is
  red, and that two are?
= There are {red} + {blue} + {green} = {all} in all, so one draw gives red with probability {red}/{all} = {p}, about
  {pct}%.¶¶Two in a row: {red}/{all} × {red1}/{all1} = **{two}**.
= P(red) = {red}/{all} = {p} (roughly {pct} percent). After one red, {red1} of {all1} are red, hence P(two red) =
  {two}.
@ choose! choose
? In how many ways can a team of {k} be chosen from {n} people?
? How many different groups of {k} can {first} pick from {n} {item}?
? Compute "{n} choose {k}".
= {n} choose {k} = ({top}) ÷ ({bottom}) = **{res}**.¶¶The numerator counts ordered picks ({ordered}); the denominator
  takes out the order.
= {res} ways. Picking one after the other gives {top} = {ordered} ordered picks, and each group was counted {bottom}
  times.
@ modulo! modulo
? What is {b}^{e} mod {m}?
? Compute the remainder of {b} to the power {e} when divided by {m}. Please show every step.
= Multiply and reduce modulo {m} at every step:¶¶{steps}¶¶The remainder is **{res}**.
= {steps}¶¶So {b}^{e} leaves the remainder {res} when divided by {m}.
@ primes! primes
? Factor {n} into primes.
? What is the prime factorisation of {n}?
? Is {n} a prime number? If not, what are its prime factors?
= {steps}¶¶So {n} = **{res}**, which makes it {verdict}.
= {n} = {res} ({verdict}). Dividing by the smallest possible prime each time:¶¶{steps}
@ system! system
? Solve: {a}x + {b}y = {e} and {c}x + y = {f}
? Find x and y with {a}x + {b}y = {e}, {c}x + y = {f}.
= From the second equation y = {f} - {c}x. Put into the first: {a}x + {b}({f} - {c}x) = {e}, that is ({a} - {cb})x
  + {fb} =
  {e}, so ({k})x = {rest} and x = **{x}**.¶¶Then y = {f} - {cx} = **{y}**.
= x = {x}, y = {y}. Multiply the second equation by {b} and subtract it from the first: ({k})x = {rest}, so x =
  {x}; then
  y = {f} - {c} × {x} = {y}.
@ binary! binary
? Write {n} in binary.
? Convert the decimal number {n} to base 2, and to hexadecimal.
? How does one turn {n} into a binary number by hand?
= Divide by 2 and collect the remainders:¶¶{steps}¶¶Read from the bottom up: **{bits}**. (In hexadecimal: {hex}.)
= {n} is {bits} in binary, a number of {digits} bits; in octal it is {oct} and in hexadecimal {hex}. The remainders of
  the repeated division show it:¶¶{steps}
@ derive! derive
? Differentiate f(x) = {a}x³ + {b}x² + {c}x + {d}.
? What is the slope of y = {a}x³ + {b}x² + {c}x + {d} at x = {x}?
= Term by term with the power rule: f'(x) = {a3}x² + {b2}x + {c}.¶¶At x = {x} that gives {t1} + {t2} + {c} = **{at}**.
= The derivative is {a3}x² + {b2}x + {c}; the constant {d} disappears. For example, the slope at x = {x} is {t1} +
  {t2} +
  {c} = {at}.
@ median! median
? What is the median of {list}?
? Sort these and give me the median: {list}
? {first} noted these numbers: {list}. Which is the middle value?
= In order: {sorted}.¶There are {n} numbers; {how}. The median is **{median}**.
= The median is {median}. Sorted, the list is {sorted}, and {how}.
@ product! product
? Multiply {a} × {b} without a calculator.
? What is {a} times {b}? Show how to split it up.
= Split {b} into {h} + {t} + {o}:¶¶{a} × {h} = {ah}¶{a} × {t} = {at}¶{a} × {o} = {ao}¶¶{ah} + {at} + {ao} = **{res}**
= {a} × {b} = {res}, because {ah} + {at} + {ao} = {res} (that is {a} times {h}, {t} and {o}).
@ divide! divide
? Divide {a} by {b} with remainder.
? What is {a} ÷ {b} as a whole number with remainder?
= {b} × {q} = {bq}, and {a} - {bq} = {r}. So {a} ÷ {b} = **{q} remainder {r}**.
= {q} remainder {r}: {b} fits {q} times into {a}, which uses {bq}, and {r} is left.
@ pythagoras! pythagoras
? A right triangle has legs of {a} cm and {b} cm. How long is the hypotenuse?
? The legs of a right-angled triangle measure {a} and {b}. Find the third side, the perimeter and the area.
? A ladder stands {a} dm from a wall and reaches {b} dm high. How long is the ladder?
= By Pythagoras, c² = {a}² + {b}² = {aa} + {bb} = {cc}, so c = **{c}**.¶¶(The perimeter is {around} and the area
  {a} × {b}
  ÷ 2 = {area}.)
= {c}. {a}² + {b}² is {aa} + {bb} = {cc}, and the square root of {cc} is {c}. The sides {a}, {b} and {c} add up to
  {around}; half of {a} × {b} is {area}.
@ matrix! matrix
? Multiply the matrices {m1} and {m2}.
? What is {m1} × {m2}? Rows are separated by semicolons.
= {steps}¶¶The product is **{res}**.
= The product is {res}. Entry by entry:¶¶{steps}
> What is the determinant of the first matrix?
< {m1} has determinant ({a})({d}) - ({b})({c}) = {ad} - ({bc}) = {det}.
@ order! order
? Evaluate {a} + {b} × {c} - ({d} + {e})²
? What does {a} + {b} × {c} - ({d} + {e})² equal? I keep getting the order wrong.
= Brackets first: {d} + {e} = {de}. Powers next: {de}² = {sq}. Then the product: {b} × {c} = {bc}. Last, from left to
  right: {a} + {bc} - {sq} = **{res}**.
= {res}. The order is brackets, powers, multiplication, then plus and minus: {a} + {bc} - {sq} = {ab} - {sq} = {res}.
@ roman! roman
? Write {n} in Roman numerals.
? How would {n} look in Roman numerals on a clock tower?
? Which number is {roman}?
= Taken apart, {n} = {sum}.¶¶{steps}¶¶Together: {n} = **{roman}**.
= {roman} and {n} are the same number. Piece by piece:¶¶{steps}
@ triangle! triangle
? Two angles of a triangle are {a}° and {b}°. What is the third?
? A triangle has angles of {a} and {b} degrees. Find the missing angle and say what kind of triangle it is.
= The three angles add up to 180°. {a} + {b} = {ab}, so the third is 180 - {ab} = **{c}°**. The triangle is {kind}.
= {c} degrees, because 180 - {a} - {b} = {c}; that makes it a triangle of the {kind} kind.
@ dot! dot
? Compute the dot product of ({u}) and ({v}).
? Are the vectors ({u}) and ({v}) perpendicular?
= Multiply place by place and add: {steps} = {terms} = **{res}**. {right}
= The dot product is {res}. {right}¶¶{steps} = {terms} = {res}
"""

TOPICS = parse(SCRIPT, "demo/maths", POOLS, SETUPS)
