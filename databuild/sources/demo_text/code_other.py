"""Tasks in SQL, shell, JavaScript, Rust, Go and some configuration formats."""

from __future__ import annotations

from databuild.sources.demo_text.code_python import POOLS as WORDS
from databuild.sources.demo_text.code_python import fill
from databuild.sources.demo_text.script import Setup, Slots, parse, parse_pools

POOLS = WORDS | parse_pools(
    """
table: bookings, parcels, lessons, invoices, visits, loans, matches, recipes, sensors, shipments, tickets, tours
col: price, weight, rating, duration, stock, distance, score, capacity
key: city, season, category, colour, supplier, region, teacher, status
dir: archive, backup, drafts, exports, inbox, logs, notes, photos, reports, scans, uploads, data
ext: csv, jpg, json, log, md, pdf, png, tmp, txt, wav, xml, yaml
branch: search-box, dark-theme, price-table, login-page, map-view, csv-export, new-footer, unit-tests, faster-start
"""
)


def _code(template: str, *keys: str) -> Setup:
    def setup(s: Slots) -> None:
        s["code"] = fill(template, s, *keys)

    return setup


def _regex(s: Slots) -> None:
    letters = "".join(s.r.sample("ABCDEFGHKLMNPRSTUVWXYZ", 2))
    digits, tail = s.r.between(3, 7), s.r.between(1, 4)
    number = "".join(str(s.r.below(10)) for _ in range(digits))
    s.update(letters=letters, digits=digits, tail=tail, yes=f"{letters}-{number}{'x' * tail}")
    s.update(no=f"{letters}-{number[1:]}{'x' * tail}", regex=f"^{letters}-[0-9]{{{digits}}}[a-z]{{{tail}}}$")


SETUPS: dict[str, Setup] = {
    "regex": _regex,
    "sql_where": _code(
        "SELECT id, name, $col\nFROM $table\nWHERE $col > $i_5_900\n  AND city = '$city'\nORDER BY $col DESC\n"
        "LIMIT $i_3_50;",
        *("table", "col", "city", "i_5_900", "i_3_50"),
    ),
    "sql_group": _code(
        "SELECT $key, COUNT(*) AS n, AVG($col) AS mean_$col\nFROM $table\nGROUP BY $key\nHAVING COUNT(*) >= $i_2_90\n"
        "ORDER BY mean_$col DESC;",
        *("table", "key", "col", "i_2_90"),
    ),
    "sql_join": _code(
        "SELECT c.name, SUM(t.$col) AS total\nFROM customers AS c\nLEFT JOIN $table AS t ON t.customer_id = c.id\n"
        "WHERE c.joined >= DATE '$i_2001_2024-01-01'\nGROUP BY c.id, c.name\nORDER BY total DESC;",
        *("table", "col", "i_2001_2024"),
    ),
    "sql_create": _code(
        "CREATE TABLE $table (\n    id INTEGER PRIMARY KEY,\n    name VARCHAR($i_20_250) NOT NULL,\n"
        "    $key VARCHAR($i_8_64),\n    $col INTEGER NOT NULL CHECK ($col BETWEEN 0 AND $i_100_9000)\n);",
        *("table", "key", "col", "i_20_250", "i_8_64", "i_100_9000"),
    ),
    "sql_update": _code(
        "BEGIN;\nUPDATE $table\nSET $col = $col + $i_1_60\nWHERE town = '$town'\n  AND $col < $i_70_900;\n"
        "-- look at the row count before this\nCOMMIT;",
        *("table", "col", "town", "i_1_60", "i_70_900"),
    ),
    "sh_old": _code(
        "find ~/$dir -type f -name '*.$ext' -mtime +$i_2_400 -size +$i_1_900k -print",
        *("dir", "ext", "i_2_400", "i_1_900"),
    ),
    "sh_rename": _code(
        'cd ~/$dir || exit 1\nn=$i_1_900\nfor file in *.$ext; do\n    [ -e "$file" ] || continue\n'
        '    mv -n -- "$file" "$row-$(printf \'%04d\' "$n").$ext"\n    n=$((n + 1))\ndone',
        *("dir", "ext", "row", "i_1_900"),
    ),
    "sh_backup": _code(
        "#!/usr/bin/env bash\nset -euo pipefail\nstamp=$(date +%Y-%m-%d)\n"
        'tar -czf "$HOME/$dir2/$dir-$stamp.tar.gz" -C "$HOME" $dir\n'
        'ls -1t "$HOME/$dir2"/$dir-*.tar.gz | tail -n +$keep | xargs -r rm --',
        *("dir2", "dir", "keep"),
    ),
    "sh_count": _code(
        "cut -d ',' -f $i_2_9 ~/$dir/$table.csv | tail -n +2 | sort | uniq -c | sort -rn | head -n $i_3_60",
        *("i_2_9", "dir", "table", "i_3_60"),
    ),
    "js_filter": _code(
        "function cheap$Table(rows, limit = $i_5_900) {\n  return rows\n    .filter((row) => row.$col <= limit)\n"
        "    .sort((a, b) => a.$col - b.$col)\n    .slice(0, $i_3_40)\n    .map((row) => row.name);\n}",
        *("Table", "col", "i_5_900", "i_3_40"),
    ),
    "js_debounce": _code(
        "function debounce(action, wait = $i_100_900) {\n  let timer;\n  return (...args) => {\n"
        "    clearTimeout(timer);\n    timer = setTimeout(() => action(...args), wait);\n  };\n}\n\n"
        'document.querySelector("#$row-search").addEventListener("input", debounce(load$Table));',
        *("row", "Table", "i_100_900"),
    ),
    "rust": _code(
        "fn total_$col(values: &[u32], at_least: u32) -> u32 {\n"
        "    values.iter().filter(|&&v| v >= at_least).sum()\n}\n\n"
        "fn main() {\n    let $table = [$i_1_30, $i_31_60, $i_61_99];\n"
        '    println!("{}", total_$col(&$table, $i_31_60));\n}',
        *("col", "table", "i_1_30", "i_31_60", "i_61_99"),
    ),
    "go": _code(
        'package main\n\nimport "fmt"\n\nfunc count$Table(values []int, limit int) int {\n\tn := 0\n'
        "\tfor _, v := range values {\n\t\tif v > limit {\n\t\t\tn++\n\t\t}\n\t}\n\treturn n\n}\n\nfunc main() {\n"
        "\tfmt.Println(count$Table([]int{$i_1_20, $i_21_50, $i_51_99}, $limit))\n}",
        *("Table", "limit", "i_1_20", "i_21_50", "i_51_99"),
    ),
    "git": _code(
        'git switch -c $branch-$i_2_999\ngit add src/$row.py\ngit commit -m "Limit $col to $i_10_90"\n'
        "git push -u origin $branch-$i_2_999",
        *("branch", "row", "col", "i_2_999", "i_10_90"),
    ),
    "yaml": _code(
        "service: $table-api\nport: $i_3000_9999\nworkers: $i_2_32\nlog:\n  level: info\n  file: /var/log/$table.log\n"
        "limits:\n  $col: $i_10_900\n  timeout_seconds: $i_5_90",
        *("table", "col", "i_3000_9999", "i_2_32", "i_10_900", "i_5_90"),
    ),
    "css": _code(
        ".$row-list {\n  display: grid;\n  grid-template-columns: repeat(auto-fill, minmax($i_90_400px, 1fr));\n"
        "  gap: $i_4_40px;\n}\n\n@media (max-width: $i_420_900px) {\n  .$row-list {\n    gap: $i_2_3px;\n  }\n}",
        *("row", "i_90_400", "i_4_40", "i_420_900", "i_2_3"),
    ),
}


def _named(inner: Setup) -> Setup:
    def setup(s: Slots) -> None:
        s["Table"] = s.text("table").capitalize()
        s["limit"] = s.r.between(1, 98)
        s["hits"] = sum(int(s.text(key)) > int(s.text("limit")) for key in ("i_1_20", "i_21_50", "i_51_99"))
        s["rust_sum"] = int(s.text("i_31_60")) + int(s.text("i_61_99"))
        s["kept"] = s.r.between(2, 60)
        s["keep"] = int(s.text("kept")) + 1
        inner(s)

    return setup


SETUPS = {name: _named(inner) for name, inner in SETUPS.items()}

SCRIPT = """
@ regex! regex
? I need a regular expression for codes that start with {letters}, a hyphen, {digits} digits and {tail} small
  letter(s).
? Which regex matches {yes} but not {no}?
= `{regex}`¶¶It wants {letters}, a hyphen, exactly {digits} digits and {tail} small letter(s). `{yes}` matches;
  `{no}` has one digit too few.
= Use `{regex}`. The anchors `^` and `$` make sure that nothing stands before or after, so `{no}` is refused.
@ sql_where! sql_where
? Write SQL: the {i_3_50} {table} with the highest {col} over {i_5_900} where city is {city}.
? In my table {table} I want rows of {city} (column city) with {col} above {i_5_900}, best first, {i_3_50} rows.
= ```sql¶{code}¶```¶¶`LIMIT` is applied after the sorting, so these are the largest values.
= This query does it:¶¶```sql¶{code}¶```
> How do I get the next {i_3_50} rows?
< Add `OFFSET {i_3_50}` after the `LIMIT`. Sort by `id` as well, so that rows with equal {col} do not change pages.
@ sql_group! sql_group
? For each {key} in {table}, give count and mean {col}, but only for groups of at least {i_2_90}. SQL please.
? Which SQL shows the average {col} of {table} per {key}, leaving out groups smaller than {i_2_90}?
= ```sql¶{code}¶```¶¶`WHERE` filters rows before grouping; `HAVING` filters the groups afterwards.
= Group first, then filter with `HAVING`:¶¶```sql¶{code}¶```
@ sql_join! sql_join
? Sum the {col} of {table} for every customer who joined since {i_2001_2024}, also those without any. SQL?
? How do I list all customers (joined {i_2001_2024} or later) with their total {col} from {table}?
= ```sql¶{code}¶```¶¶The `LEFT JOIN` keeps customers without {table}; their total is NULL.
= A left join is needed, since an inner join would drop customers without {table}:¶¶```sql¶{code}¶```
@ sql_create! sql_create
? Create an SQL table {table} with id, name (up to {i_20_250} characters), {key} and a {col} from 0 to {i_100_9000}.
? Give me a CREATE TABLE for {table}; {col} must never exceed {i_100_9000} and {key} has at most {i_8_64} characters.
= ```sql¶{code}¶```¶¶The `CHECK` makes the database refuse a {col} out of range.
= Here is the table with its constraints:¶¶```sql¶{code}¶```
@ sql_update! sql_update
? Raise the {col} of all {table} in {town} by {i_1_60} where it is under {i_70_900}. How, safely?
? I must change {table}: town {town}, {col} below {i_70_900}, plus {i_1_60}. What SQL would you run?
= ```sql¶{code}¶```¶¶Inside a transaction you can still `ROLLBACK` if the number of changed rows looks wrong.
= Wrap it in a transaction:¶¶```sql¶{code}¶```
@ sh_old! sh_old
? How do I list .{ext} files in ~/{dir} that are older than {i_2_400} days and larger than {i_1_900} kB?
? Shell one-liner: find big (over {i_1_900}k) and old (over {i_2_400} days) {ext} files below {dir} in my home.
= ```bash¶{code}¶```¶¶Replace `-print` by `-delete` only when the list is what you expect.
= `find` can test age and size at once:¶¶```bash¶{code}¶```¶¶`-mtime +{i_2_400}` means more than {i_2_400} whole days.
@ sh_rename! sh_rename
? Rename all .{ext} files in ~/{dir} to {row}-0001.{ext} and so on, beginning at {i_1_900}. Bash.
? A bash loop, please: number the {ext} files of {dir} from {i_1_900}, with the prefix {row}.
= ```bash¶{code}¶```¶¶`mv -n` never overwrites a file, and the quotes protect names with spaces.
= This loop counts up from {i_1_900}:¶¶```bash¶{code}¶```
@ sh_backup! sh_backup
? Write a bash script that packs ~/{dir} into ~/{dir2} with the date in the name and keeps the newest {kept} archives.
? I want daily backups of {dir} into {dir2}, the last {kept} of them kept. Shell script?
= ```bash¶{code}¶```¶¶`tail -n +{keep}` skips the newest {kept} and passes the rest to `rm`.
= Save this and call it from cron:¶¶```bash¶{code}¶```¶¶With `set -euo pipefail` it stops at the first error.
@ sh_count! sh_count
? Count how often each value of column {i_2_9} occurs in ~/{dir}/{table}.csv and show the top {i_3_60}.
? What pipeline gives the {i_3_60} most frequent entries in field {i_2_9} of {table}.csv (it lies in {dir}, with a
  header)?
= ```bash¶{code}¶```¶¶`uniq -c` needs sorted input, hence the first `sort`. Fields with quoted commas need a CSV tool.
= A short pipeline:¶¶```bash¶{code}¶```¶¶`tail -n +2` drops the header line.
@ js_filter! js_filter
? JavaScript: from an array of {table}, the names of at most {i_3_40} with {col} up to {i_5_900}, lowest first.
? How do I filter and sort {table} by {col} in JS? Limit {i_5_900}, and {i_3_40} names are enough.
= ```js¶{code}¶```¶¶`filter` makes a new array, so the sort does not disturb the one you passed in.
= Chain the array methods:¶¶```js¶{code}¶```
@ js_debounce! js_debounce
? My {row} search box sends a request for each key. Make it wait {i_100_900} ms in plain JavaScript.
? Explain debouncing in JS with {i_100_900} milliseconds and a search for {table}.
= ```js¶{code}¶```¶¶Each key press restarts the timer; only after {i_100_900} ms of silence the {table} are loaded.
= Debouncing means waiting until the typing stops:¶¶```js¶{code}¶```
@ rust! rust
? Write a Rust function that sums the {col} values of at least a limit; try it on {i_1_30}, {i_31_60} and {i_61_99}
  with
  the limit {i_31_60}.
? Rust: add up those of {i_1_30}, {i_31_60}, {i_61_99} ({col} of {table}) that are at least {i_31_60}.
= ```rust¶{code}¶```¶¶It prints {rust_sum}, that is {i_31_60} + {i_61_99}; {i_1_30} lies below the limit of {i_31_60}.
= The filter keeps {i_31_60} and {i_61_99}, since the limit is {i_31_60}, so the program prints
  {rust_sum}:¶¶```rust¶{code}¶```
@ go! go
? Count the {table} above {limit} in Go, with the values {i_1_20}, {i_21_50}, {i_51_99} as an example.
? What is printed by this Go program?¶¶```go¶{code}¶```
= ```go¶{code}¶```¶¶The output is {hits}.
= It prints {hits}: of {i_1_20}, {i_21_50} and {i_51_99}, that many are greater than {limit}. For
  reference:¶¶```go¶{code} ¶```
@ git! git
? Which git commands put my change to src/{row}.py on a new branch {branch}-{i_2_999}? It limits {col} to {i_10_90}.
? Step by step: new branch {branch}-{i_2_999}, commit {row}.py, push it.
= ```bash¶{code}¶```¶¶`-u` links the branch to the remote, so later a plain `git push` is enough.
= Run these in order:¶¶```bash¶{code}¶```
> I made a typo in the message. What now?
< If nobody has pulled it yet: `git commit --amend` to correct the message, then `git push --force-with-lease`.
@ yaml! yaml
? Write a YAML config for a {table} service: port {i_3000_9999}, {i_2_32} workers, {col} limit {i_10_900}, timeout
  {i_5_90} s.
? I need YAML for {table}-api on port {i_3000_9999} with {i_2_32} workers; cap {col} at {i_10_900} and time out
  after {i_5_90} seconds.
= ```yaml¶{code}¶```¶¶Indent with spaces; YAML does not allow tabs there.
= Like this:¶¶```yaml¶{code}¶```
@ css! css
? CSS for a responsive list of {row} cards, each at least {i_90_400} px wide with {i_4_40} px between them?
? How can I lay out {row} cards in a grid ({i_90_400}px minimum, gap {i_4_40}px, tighter below {i_420_900}px)?
= ```css¶{code}¶```¶¶`auto-fill` makes as many columns as fit, so most widths need no media query.
= A grid does this with little code:¶¶```css¶{code}¶```
"""

TOPICS = parse(SCRIPT, "demo/code-other", POOLS, SETUPS)
