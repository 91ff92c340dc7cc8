"""What `databuild diff` says: as JSON, and as lines for a person."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from databuild.diff import Diff, First, Side
from databuild.inspect.text import TokenText, printable

#: Tokens shown before and after the first difference.
_AROUND = 24

#: Fields of a manifest listed for a person.
_FIELDS = 16

_WHAT = {
    "token": "another token",
    "mask": "another mask",
    "boundary": "another boundary",
    "conversation": "another conversation (doc_rows)",
    "end": "one of the two ends before it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Tokens around the first difference on one side: their text before it, the token itself, and after it."""

    source_row: int | None
    token_id: int
    trained: bool
    before: str
    text: str
    after: str


def context(first: First, side: Side, text: TokenText) -> Context | None:
    """The text around the first difference on one side, None where it has no such row."""
    if side.rows is None:
        return None
    ids, mask, at = side.rows.input_ids[0], side.rows.loss_mask[0], first.token
    return Context(
        source_row=side.source_row,
        token_id=int(ids[at]),
        trained=bool(mask[at]),
        before=text.text_of(ids[max(0, at - _AROUND) : at]),
        text=text.token(int(ids[at])),
        after=text.text_of(ids[at + 1 : at + 1 + _AROUND]),
    )


def diff_json(found: Diff, text: TokenText | None) -> dict[str, Any]:
    """The object of `diff --json`. text is needed where rows differ."""
    rows = None
    if found.rows is not None:
        assert text is not None, "the text of the first difference needs a tokenizer"
        first = found.rows.first
        sides = {name: context(first, side, text) for name, side in (("a", first.a), ("b", first.b))}
        rows = {
            **{k: v for k, v in asdict(found.rows).items() if k != "first"},
            "other_order": found.rows.other_order,
            "first": {
                "row": first.row,
                "token": first.token,
                "what": first.what,
                **{name: None if side is None else asdict(side) for name, side in sides.items()},
            },
        }
    return {
        "equal": found.equal,
        "rows_equal": found.rows is None and found.a.rows.row_tokens == found.b.rows.row_tokens,
        "manifest": {name: list(pair) for name, pair in found.manifest.items()},
        "rows": rows,
        "conversations": None if found.conversations is None else asdict(found.conversations),
        "names": [found.a.name, found.b.name],
        "files_differ": found.files_differ,
    }


def diff_lines(found: Diff, a: Path | str, b: Path | str, text: TokenText | None) -> list[str]:
    """A few lines for a person."""
    lines = [f"A: {a} ({found.a.name})", f"B: {b} ({found.b.name})"]
    if found.equal:
        more = "" if not found.files_differ else "; the parquet bytes differ: another version wrote them"
        return [*lines, f"equal: {found.a.rows.rows:,} rows, rows_sha256 {found.a.rows.rows_sha256}{more}"]
    spec = {name: pair for name, pair in found.manifest.items() if not name.startswith(("counts.", "rows."))}
    counts = {name: pair for name, pair in found.manifest.items() if name not in spec}
    for title, pairs in (("spec", spec), ("counts and digests", counts)):
        if pairs:
            lines.append(f"{title}:")
            shown = list(pairs.items())[:_FIELDS]
            lines += [f"  {printable(name)}: {_value(pair[0])} | {_value(pair[1])}" for name, pair in shown]
            if len(pairs) > _FIELDS:
                lines.append(f"  and {len(pairs) - _FIELDS:,} more; --json has them all")
    return lines + _rows_lines(found, text) + _conversation_lines(found)


def _value(value: Any) -> str:
    shown = "-" if value is None else printable(str(value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else shown


def _rows_lines(found: Diff, text: TokenText | None) -> list[str]:
    if found.a.rows.row_tokens != found.b.rows.row_tokens:
        return ["rows: they have other lengths, so they are not compared one by one"]
    if found.rows is None:
        return [f"rows: all {found.a.rows.rows:,} are equal"]
    rows = found.rows
    lines = [f"rows: {rows.num_differ:,} of {max(found.a.rows.rows, found.b.rows.rows):,} places hold another row"]
    if rows.other_order:
        lines.append("  both hold the same rows, in another order")
    if rows.num_moved:
        pairs = ", ".join(f"{a} -> {b}" for a, b in rows.moved)
        lines.append(f"  {rows.num_moved:,} stand elsewhere: {pairs}{_more(rows.num_moved, rows.moved)}")
    for name, num, numbers in (("A", rows.num_only_a, rows.only_a), ("B", rows.num_only_b, rows.only_b)):
        if num:
            lines.append(f"  {num:,} in {name} only: {', '.join(map(str, numbers))}{_more(num, numbers)}")
    first = rows.first
    lines.append(f"first difference: row {first.row}, token {first.token}: {_WHAT[first.what]}")
    if text is not None:
        lines += [_side_line("A", context(first, first.a, text)), _side_line("B", context(first, first.b, text))]
    return lines


def _side_line(name: str, side: Context | None) -> str:
    if side is None:
        return f"  {name}: has no such row"
    mark = ("⟦", "⟧") if side.trained else ("[", "]")
    line = f"{side.before}{mark[0]}{side.text}{mark[1]}{side.after}"
    trained = "trained" if side.trained else "not trained"
    return f"  {name}: source row {side.source_row}, token id {side.token_id}, {trained}: {_one_line(line)}"


def _one_line(text: str) -> str:
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def _conversation_lines(found: Diff) -> list[str]:
    if found.conversations is None:
        return ["conversations: the sources differ, so their numbers do not mean the same"]
    c = found.conversations
    lines = []
    for name, num, numbers in (("A", c.num_only_a, c.only_a), ("B", c.num_only_b, c.only_b)):
        if num:
            listed = ", ".join(map(str, numbers))
            lines.append(f"  {num:,} lie in rows of {name} only: source rows {listed}{_more(num, numbers)}")
    if c.num_moved:
        listed = ", ".join(f"{s} (row {a[0]} -> {b[0]})" for s, a, b in c.moved)
        lines.append(f"  {c.num_moved:,} begin elsewhere: source rows {listed}{_more(c.num_moved, c.moved)}")
    return ["conversations:", *lines] if lines else ["conversations: the same ones, at the same places"]


def _more(num: int, shown: list[Any]) -> str:
    return ", ..." if num > len(shown) else ""
