"""The wording of the Python tasks in :mod:`~databuild.sources.demo_text.code_python`."""

from __future__ import annotations

from databuild.sources.demo_text.code_python import POOLS, SETUPS
from databuild.sources.demo_text.script import parse

SCRIPT = """
@ loop! loop
? What does this Python program print?¶¶```python¶{code}¶```
? Trace this loop and tell me the output:¶¶```python¶{code}¶```
? Without running it, what is the last value the loop variable takes here, and what is printed?¶¶```¶{code}¶```
= It prints **{res}**. The loop runs over {list}, {n} numbers in all; {b} itself is never reached. Their sum is {res}.
= `range({a}, {b}, {step})` gives {list}. The last value is {last}, and adding them all up prints {res}.
@ comprehension comprehension
? What is the output of this snippet?¶¶```python¶{code}¶```
? Explain the list comprehension and its result:¶¶```python¶{code}¶```
= It prints `{res}`. Only numbers that {k} does not divide pass the test (`n % {k}` is not zero): {kept}. Those are
  squared.
= The condition `n % {k}` drops the multiples of {k} ({dropped} of them here); what stays is {kept}, and each is
  squared:
  `{res}`.
@ slicing slicing
? What will Python show here?¶¶```python¶{code}¶```
? I do not understand slices. What do these three print?¶¶```python¶{code}¶```
= The output is `{res}`.¶¶- `word⟦{a}:{b}⟧` takes positions {a} up to but not including {b}: `{one}`¶-
  `word⟦-{b}:⟧` takes
  the last {b} characters: `{two}`¶- `word⟦::-1⟧` runs backwards: `{three}`
= `{res}`. A slice stops before its end, a negative start counts from the right, and a step of -1 reverses the string.
@ above! above
? Write a Python function that keeps only the {things} above a limit, which should be {i_5_95} unless given.
? I have a list of {things} in Python. How do I {verb} those over {i_5_95}?
= ```python¶{code}¶```¶¶The default limit is {i_5_95}; pass another one as the second argument.
= A comprehension does it [nicely|in one line]:¶¶```python¶{code}¶```¶¶It returns a new list and leaves the old one
  alone.
> Can it also count how many were dropped?
< Yes: `len({things}) - len({verb}_{things}({things}))` gives the number of {things} that are not above {i_5_95}.
@ count! count
? Show me Python code for the {i_3_30} most frequent words in a {row} text, without words of up to {i_1_5} letters.
? How can I count words in a text about a {row} with the standard library? The top {i_3_30} are enough; skip words
  with
  {i_1_5} letters or fewer.
= ```python¶{code}¶```¶¶`Counter.most_common` sorts by count. The `strip` removes punctuation at the ends of words.
= [`collections.Counter` is made for this|The class `Counter` fits well here]:¶¶```python¶{code}¶```
@ group! group
? Group a list of {row} dictionaries by {attr}, in steps of {i_2_60}. Python, please.
? I need a Python function that sorts {row} records into classes of {attr}, each {i_2_60} wide.
= ```python¶{code}¶```¶¶Each key is the lower end of a class: with width {i_2_60}, the keys are multiples of {i_2_60}.
= Here it is for {row} rows:¶¶```python¶{code}¶```¶¶`defaultdict` saves the check whether a class is there already.
@ dataclass! dataclass
? Design a small Python class for a {row} with a name, {attr} and {attr2}. It should sort by {attr}.
? Model a {row} as a dataclass ({attr}, name, {attr2} with default {i_1_99}); a method tells if {attr} is over
  {i_100_900}.
= ```python¶{code}¶```¶¶`order=True` compares the fields from top to bottom, so {attr} comes first.
= A dataclass keeps this short:¶¶```python¶{code}¶```¶¶Since {attr} is the first field, `sorted` puts the smallest
  {attr}
  first.
> What does `is_large` return at exactly {i_100_900}?
< It returns `False`, because the comparison asks for more than {i_100_900}.
@ clamp! clamp
? How do I limit a {attr} to the range {i_1_20} to {i_50_400} in Python?
? Write clamp_{attr} in Python with the bounds {i_1_20} and {i_50_400}, and two assertions as a test.
= ```python¶{code}¶```¶¶`min` cuts at the top, `max` at the bottom.
= Combine `min` and `max`:¶¶```python¶{code}¶```
@ window! window
? Give me a moving average over {i_2_30} {things} in plain Python, fast enough for long lists.
? Smooth a list of {things} with a window of {i_2_30}. No libraries, please.
= ```python¶{code}¶```¶¶Each step adds the new value and takes off the oldest, so the run time does not depend on the
  window.
= The trick is a running total:¶¶```python¶{code}¶```¶¶With {i_2_30} as window, the first result belongs to the first
  {i_2_30} {things}.
@ caesar! caesar
? Write a Caesar cipher in Python that shifts small letters by {i_1_25}, for a {row} puzzle.
? For a treasure hunt about a {row}, encode text by moving each letter {i_1_25} places. Python code?
= ```python¶{code}¶```¶¶To decode, shift by the negative number: `by=-{i_1_25}` undoes the default.
= This handles a to z and leaves all else as it is:¶¶```python¶{code}¶```
@ bisect! bisect
? Implement binary search over sorted {things} in Python; return -1 if there is none.
? Can I see a correct binary search, say to find a {row} number among {things}?
= ```python¶{code}¶```¶¶Half of the range is dropped at each step, so a million {things} take about twenty steps.
= Keep the invariant that everything before `low` is too small:¶¶```python¶{code}¶```
@ csv! csv
? Read a CSV file of {row} data in Python and keep rows with {attr} of at least {i_1_500}.
? Which Python code loads {row} rows from a CSV, skipping those whose {attr} is below {i_1_500}?
= ```python¶{code}¶```¶¶`newline=""` lets the csv module deal with line ends itself.
= With the standard library only:¶¶```python¶{code}¶```¶¶The column is converted with `int`, so {attr} must be a whole
  number in the file.
@ retry! retry
? My {row} service fails now and then. Write Python that tries {i_2_9} times with growing pauses, starting at {i_1_30}
  seconds.
? Add retries to a call that loads a {row}: {i_2_9} attempts, first pause {i_1_30} s, doubling.
= ```python¶{code}¶```¶¶Only `OSError` is retried; other errors should surface at once. The last failure is raised.
= Exponential back-off in a few lines:¶¶```python¶{code}¶```
@ bug! bug
? This function should return the mean {attr}, but the result is wrong. Why?¶¶```python¶{code}¶```
? Find the bugs:¶¶```python¶{code}¶```
= There are two.¶¶1. The loop starts at index 1 and skips the first of the {things}.¶2. It divides by {i_2_9}
  instead of
  the number of values.¶¶```python¶def mean_{attr}({things}):¶    return sum({things}) / len({things})¶```
= The range begins at 1, so the first value is lost, and the divisor {i_2_9} is only right for lists of that length.
  Using `sum({things}) / len({things})` fixes both.
@ default! default
? Why does this function remember old calls?¶¶```python¶{code}¶```
? Each call of add_{row} seems to see the {things} of the call before. What is wrong?¶¶```python¶{code}¶```
= The default list is made once, when the function is defined, and all calls share it. Use `None`
  instead:¶¶```python¶def
  add_{row}(name, {things}=None):¶    {things} = ⟦⟧ if {things} is None else {things}¶    {things}.append((name,
  {i_1_99}))¶    return {things}¶```
= A mutable default is the cause: the empty list is evaluated a single time. Write `{things}=None` in the signature
  and create a
  fresh list inside.
@ tests! tests
? Write pytest tests for a function {attr}_class that returns low, middle or high, with {i_5_40} as middle and
  {i_50_99}
  as high.
? How would you test {attr}_class in the module {row}_tools? Zero is low, {i_5_40} is middle, {i_50_99} high, and
  negative
  values are refused.
= ```python¶{code}¶```¶¶The first test runs once per pair; the second checks the refusal.
= I would use one table of cases and one test for the error:¶¶```python¶{code}¶```
"""

TOPICS = parse(SCRIPT, "demo/code-python", POOLS, SETUPS)
