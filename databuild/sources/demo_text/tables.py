"""Small tables: turn them into other formats, filter, sort and sum them."""

from __future__ import annotations

import json

from databuild.sources.demo_text.numbers import decimal
from databuild.sources.demo_text.script import Setup, Slots, parse
from databuild.sources.demo_text.words import POOLS

_COLUMNS = ("seats", "stock", "price", "weight", "points", "visits", "pages", "litres", "orders", "metres")


def _table(s: Slots) -> None:
    """Fill in a table of 3 to 8 rows and everything that a question about it may need."""
    r = s.r
    key = r.pick(("name", "town", "item", "animal", "shop"))
    words = r.sample(POOLS["first" if key == "name" else key], r.between(3, 8))
    col, col2 = r.sample(_COLUMNS, 2)
    rows = [(word, r.between(2, 990), r.between(1, 60)) for word in words]
    total = sum(row[1] for row in rows)
    limit = sorted(row[1] for row in rows)[len(rows) // 2]
    ordered = sorted(rows, key=lambda row: (-row[1], row[0]))
    records = [{key: row[0], col: row[1], col2: row[2]} for row in rows]
    s.update(key=key, col=col, col2=col2, n=len(rows), total=total, mean=decimal(total, len(rows), 1), limit=limit)
    s.update(total2=sum(row[2] for row in rows), top=ordered[0][0], top_n=ordered[0][1], last=ordered[-1][0])
    s.update(last_n=ordered[-1][1], span=ordered[0][1] - ordered[-1][1], one=rows[1][0], one_n=rows[1][1])
    s.update(one_m=rows[1][2], sums=" + ".join(str(row[1]) for row in rows))
    s["csv"] = "\n".join([f"{key},{col},{col2}"] + [f"{a},{b},{c}" for a, b, c in rows])
    s["tsv"] = "\n".join([f"{key};{col};{col2}"] + [f"{a};{b};{c}" for a, b, c in rows])
    s["plain"] = "\n".join(f"{a}: {b} {col}, {c} {col2}" for a, b, c in rows)
    s["markdown"] = _markdown(key, col, col2, rows)
    s["sorted"] = _markdown(key, col, col2, ordered)
    s["json"] = json.dumps(records, indent=2)
    s["lines"] = "\n".join(json.dumps(record) for record in records)
    s["short"] = json.dumps({row[0]: row[1] for row in rows})
    s["yaml"] = "\n".join(f"- {key}: {a}\n  {col}: {b}\n  {col2}: {c}" for a, b, c in rows)
    s["xml"] = "\n".join(f'<{key} {col}="{b}" {col2}="{c}">{a}</{key}>' for a, b, c in rows)
    kept = [row for row in rows if row[1] >= limit]
    s["kept"] = "\n".join([f"{key},{col},{col2}"] + [f"{a},{b},{c}" for a, b, c in kept])
    s["kept_n"] = len(kept)
    s["names"] = ", ".join(row[0] for row in ordered)
    s["broken"] = s.text("short").replace('"', "'", 2)[:-1] + ",}"


SETUPS: dict[str, Setup] = {"table": _table}

SCRIPT = """
@ csv_json table
? Convert this CSV to JSON:¶¶{csv}
? Please turn the table into a JSON array of objects, numbers as numbers.¶¶```csv¶{csv}¶```
= ```json¶{json}¶```
= [An array with {n} objects|Here are the {n} rows as objects]:¶¶```json¶{json}¶```
> Only {key} and {col}, please, as one object.
< ```json¶{short}¶```
@ json_csv table
? Make a CSV file from this JSON:¶{json}
? I need {key}, {col} and {col2} as CSV with a header. The data:¶¶{lines}
= ```csv¶{csv}¶```
= {n} rows and a header line:¶¶```csv¶{csv}¶```
@ markdown table
? Show these numbers as a Markdown table: ¶{plain}
? Format as a Markdown table, please.¶¶{tsv}
= {markdown}
= The table has {n} rows:¶¶{markdown}
> Which {key} has the highest {col}?
< {top}, with {top_n}.
@ sort table
? Sort this table by {col}, largest first:¶¶{csv}
? Put the rows in descending order of {col}.¶¶{markdown}
= {sorted}
= From {top} ({top_n}) down to {last} ({last_n}):¶¶{sorted}
@ filter table
? Keep only the rows with {col} of at least {limit}:¶¶{csv}
? Which of these have {limit} or more {col}? Answer in CSV.¶¶{csv}
= {kept}
= {kept_n} of the {n} rows remain:¶¶```csv¶{kept}¶```
@ sum table
? What is the total of {col} here?¶¶{csv}
? Add up the {col} column. And the mean?¶¶{plain}
= The total is **{total}**: {sums}. Over {n} rows that is a mean of {mean} (one decimal).
= {sums} = {total}.¶Mean: {total} ÷ {n} = {mean} (one decimal).
> And {col2}?
< The {col2} add up to {total2}.
@ extremes table
? Who or what has the most {col}, and the least?¶¶{markdown}
? Find the largest and smallest {col} and their difference.¶{csv}
= Most: {top} with {top_n}. Least: {last} with {last_n}. The difference is {span}.
= {top} leads with {top_n} {col}; {last} comes last with {last_n}, which is {span} fewer.
@ lookup table
? How many {col} does {one} have in this list? Just the number.¶¶{plain}
? Look up {one}: what is its {col}? One number only.¶¶{csv}
= {one_n}
@ lookup_two table
? Read the {col} and {col2} of {one} from the data below.¶¶{json}
? What do we know about {one} from this?¶¶{markdown}
= {one}: {one_n} {col} and {one_m} {col2}.
= The row for {one} gives {one_n} for {col} and {one_m} for {col2}.
@ yaml table
? Rewrite as YAML:¶¶{json}
? This CSV should become a YAML list.¶{csv}
= ```yaml¶{yaml}¶```
= Each row is one item of the list:¶¶```yaml¶{yaml}¶```
@ xml table
? Turn every line into an XML element called {key}, with {col} and {col2} as attributes.¶¶{csv}
? XML instead of JSON, please: one <{key}> per record.¶¶{lines}
= ```xml¶{xml}¶```
= {n} elements:¶¶```xml¶{xml}¶```
@ jsonl table
? I need this as JSON Lines:¶¶{csv}
? One JSON object per line, please.¶{markdown}
= ```json¶{lines}¶```
= {n} lines, each a complete JSON object:¶¶```json¶{lines}¶```
@ broken table
? My parser refuses this JSON. What is wrong?¶¶{broken}
? Repair this JSON: {broken}
= Two things: strings need double quotes, and there must be no comma before the closing brace.
  Corrected:¶¶```json¶{short} ¶```
= {short}¶¶I replaced the single quotes and removed the trailing comma.
@ rank table
? Rank by {col}, names only, highest first, separated by commas.¶¶{csv}
? List the {key} entries from most to fewest {col}:¶{plain}
= {names}
= In that order: {names}.
@ describe table
? Describe this table in two or three sentences.¶¶{markdown}
? What stands out in these numbers?¶¶{csv}
= The table lists {n} entries with {col} and {col2}. {top} has the highest {col} ({top_n}) and {last} the lowest
  ({last_n}). The mean {col} is {mean}.
= Most of all the distance between {top} and {last}: {top_n} against {last_n} {col}, with a mean of {mean}. In all,
  the {n} rows add up to {total} {col} and {total2} {col2}.
"""


def _markdown(key: str, col: str, col2: str, rows: list[tuple[str, int, int]]) -> str:
    lines = [f"| {key} | {col} | {col2} |", "| --- | ---: | ---: |"]
    return "\n".join(lines + [f"| {a} | {b} | {c} |" for a, b, c in rows])


TOPICS = parse(SCRIPT, "demo/tables", POOLS, SETUPS)
