"""The parts of the report's page, each from the facts. Pure."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from databuild.diff import Diff
from databuild.diff_text import diff_lines
from databuild.inspect.text import TokenText
from databuild.page import Html, escape, table
from databuild.report import charts
from databuild.report.facts import Example, Facts
from manifests.locks import load_source_lock
from manifests.model import Manifest

#: Sources that a chart names; a table names them all, up to MOST_LINES.
MOST_BARS = 18
MOST_LINES = 500

_SPEC_OF_OPTION = {
    "mode": "--mode", "reasoning_effort": "--reasoning-effort", "headerless": "--headerless", "history": "--history",
    "tokens": "--tokens", "separator": "--separator", "bos": "--bos", "unanswered": "--unanswered",
    "on_invalid": "--on-invalid", "loss_mask_type": "--loss-mask-type",
}  # fmt: skip
_DEFAULTS = {
    "mode": "chat", "reasoning_effort": None, "headerless": "reference", "history": "whole", "tokens": "literal",
    "separator": "ensure", "bos": "keep", "unanswered": "keep", "on_invalid": "skip", "loss_mask_type": "deepseek_v4",
}  # fmt: skip


def section(name: str, title: str, body: str) -> str:
    """One landmark of the page."""
    return (
        f'<section id="{name}" aria-labelledby="{name}-h">\n<h2 id="{name}-h">{escape(title)}</h2>\n{body}\n</section>'
    )


def figure(svg: str, caption: str, numbers: str) -> str:
    """A chart, what it shows in words, and its numbers as a table, unless they stand elsewhere."""
    folded = f"<details><summary>The numbers of this chart</summary>{numbers}</details>" if numbers else ""
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption>{folded}</figure>"


def headline(facts: Facts) -> str:
    """The first look: what is in it, in eight numbers."""
    m = facts.manifest
    pairs = [
        ("rows", f"{m.rows.rows:,}"),
        ("tokens in a row", f"{m.rows.row_tokens:,}"),
        ("tokens in rows", f"{m.rows.rows * m.rows.row_tokens:,}"),
        ("trained tokens", f"{m.rows.num_targets:,}"),
        ("supervised ratio", f"{m.rows.supervised_token_ratio:.2%}"),
        ("conversations read", f"{m.counts.conversations:,}"),
        ("used", f"{m.counts.used:,}"),
        ("skipped", f"{sum(m.counts.skipped.values()):,}"),
    ]
    return '<dl class="facts">' + "".join(f"<div><dt>{k}</dt><dd>{v}</dd></div>" for k, v in pairs) + "</dl>"


def what_was_built(facts: Facts) -> str:
    """Spec, sources, pins, digests, and the commands that prove it."""
    m = facts.manifest
    spec = [[key, _code(value)] for key, value in m.spec.items() if key not in ("sources", "tokenizer_sha256")]
    pins: list[list[object]] = []
    for source in m.sources:
        pins.append(["source", _code(source.name or source.kind)])
        pins += [
            [name, _code(value)]
            for name, value in (
                ("revision", source.revision),
                ("split", source.split),
                ("rows of the source", f"{source.rows:,}"),
                ("licence", source.license),
                ("identity", source.identity_sha256),
            )
            if value is not None
        ]
        pins += [
            [f"file {file.name}", _code(f"{file.bytes:,} bytes, sha256 {file.sha256}")] for file in source.files[:20]
        ]
        if len(source.files) > 20:
            pins.append(["more files", f"{len(source.files) - 20:,}"])
    pins += [
        ["tokenizer", _code(f"{m.tokenizer.name} @ {m.tokenizer.revision}")],
        ["tokenizer.json", _code(f"sha256 {m.tokenizer.tokenizer_json_sha256}")],
    ]
    digests = [
        ["rows_sha256", _code(m.rows.rows_sha256)],
        ["docs_sha256", _code(m.rows.docs_sha256)],
        ["spec_sha256", _code(m.spec_sha256)],
        ["manifest_sha256", _code(m.manifest_sha256)],
        *([file.name, _code(f"{file.rows:,} rows, {file.bytes:,} bytes, sha256 {file.sha256}")] for file in m.files),
    ]
    commands = "\n".join(verify_commands(m))
    return section(
        "built",
        "What was built",
        table("Digests: rows_sha256 names the rows, whatever wrote the files", ["what", "value"], digests)
        + "<h3>How to verify</h3>\n<p>DIR is the directory of the build. The first command checks every byte, the second "
        f'builds everything again and compares.</p>\n<pre tabindex="0"><code>{escape(commands)}</code></pre>'
        + "<h3>How to make it</h3>\n"
        + f'<pre tabindex="0"><code>{escape(build_command(m))}</code></pre>'
        + table("Pins: what it was made from", ["what", "value"], pins)
        + table("Spec: every option that decides bytes", ["option", "value"], spec),
    )


def _code(value: object) -> Html:
    shown = "-" if value is None else str(value)
    return Html(f"<code>{escape(shown)}</code>")


def verify_commands(manifest: Manifest) -> list[str]:
    """The commands that prove the build."""
    paths = " --source PATH" if manifest.sources[0].kind == "files" else ""
    return ["databuild verify DIR --level 2", f"databuild verify DIR --level 4{paths}"]


def build_command(manifest: Manifest) -> str:
    """The command that makes this build; options at their defaults are left out."""
    spec, source = manifest.spec, manifest.sources[0]
    lock = load_source_lock("tulu3")
    parts = ["databuild", "fixed"]
    default_rows = None
    if source.kind == "demo":
        parts += ["--source", "demo"]
    elif source.kind == "files":
        parts += ["--source", "PATH"]
    elif (source.name, source.revision, source.split) == (lock.name, lock.revision, lock.split):
        default_rows = 6400
    else:
        parts += ["--source", f"hf:{source.name}@{source.revision}:{source.split}"]
    parts += ["--row-tokens", str(spec["row_tokens"]), "--seed", str(spec["seed"])]
    if spec["rows"] != default_rows:
        parts += ["--rows", "all" if spec["rows"] is None else str(spec["rows"])]
    if spec["drop_thinking"]:
        parts.append("--drop-thinking")
    for key, option in _SPEC_OF_OPTION.items():
        if spec[key] != _DEFAULTS[key]:
            parts += [option, str(spec[key])]
    for option, names in (("--include-source", spec["include_sources"]), ("--exclude-source", spec["exclude_sources"])):
        for name in names or ():
            parts += [option, name]
    if spec["columns"]:
        parts += ["--columns", "COLUMNS"]
    return shlex.join([*parts, "--out", "DIR"])


def by_source(facts: Facts) -> str:
    """Tokens, targets and ratio of each source."""
    sources = facts.manifest.counts.by_source
    ordered = sorted(sources, key=lambda name: (-sources[name].tokens, name))
    ratio = {name: sources[name].targets / max(1, sources[name].tokens) for name in ordered}
    shown = [name for name in ordered if sources[name].tokens][:MOST_BARS]
    lines: list[list[object]] = [
        [
            name,
            sources[name].used,
            sources[name].skipped,
            sources[name].tokens,
            sources[name].targets,
            f"{ratio[name]:.1%}",
        ]
        for name in ordered[:MOST_LINES]
    ]
    which = f"the {len(shown)} largest of {len(ordered):,} sources" if len(shown) < len(ordered) else "each source"
    first = f"Supervised ratio of {which}: trained tokens over all tokens, in the stream before rows are cut."
    second = f"Tokens of {which}."
    numbers = table(
        f"Sources{'' if len(ordered) <= MOST_LINES else f' (the {MOST_LINES} largest)'}, by tokens",
        ["source", "used", "skipped", "tokens", "trained", "ratio"],
        lines,
        numbers=5,
    )
    ratios, tokens = [ratio[name] for name in shown], [float(sources[name].tokens) for name in shown]
    return section(
        "sources",
        "Sources",
        '<div class="charts">'
        + figure(charts.bars("c-src", first, shown, ratios, unit="trained tokens", share=True), first, "")
        + figure(charts.bars("c-tok", second, shown, tokens, unit="tokens", share=False), second, "")
        + f"</div><details><summary>The numbers of these charts</summary>{numbers}</details>",
    )


def over_rows(facts: Facts) -> str:
    """The supervised ratio of rows: in file order, and how it is spread; documents in a row."""
    ratios, num = facts.survey.ratios, len(facts.survey.ratios)
    size = -(-num // 60)
    parts = [ratios[start : start + size] for start in range(0, num, size)]
    low, mean, high = (np.array([f(part) for part in parts]) for f in (np.min, np.mean, np.max))
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    lines: list[list[object]] = [
        [f"{s:,} to {s + len(p) - 1:,}", f"{a:.1%}", f"{m:.1%}", f"{b:.1%}"]
        for s, p, a, m, b in zip(starts.tolist(), parts, low, mean, high, strict=True)
    ]
    edges = np.linspace(0, 1, 21)
    counts, _ = np.histogram(ratios, edges)
    documents, document_edges = _histogram(facts.survey.doc_counts)
    first = (
        f"Supervised ratio over the rows in file order, the order of training: mean (line), lowest and highest (band) "
        f"of every {size:,} rows. Over all rows it goes from {ratios.min():.1%} to {ratios.max():.1%}."
    )
    second = f"How many rows have which supervised ratio; the median is {np.median(ratios):.1%}."
    third = (
        f"Documents in a row, a conversation that goes on from the row before counted again: from "
        f"{facts.survey.doc_counts.min():,} to {facts.survey.doc_counts.max():,}, median "
        f"{np.median(facts.survey.doc_counts):,.0f}."
    )
    places = starts + np.array([len(part) for part in parts]) / 2
    return section(
        "rows",
        "Rows",
        '<div class="charts">'
        + figure(
            charts.band("c-order", first, places, low, mean, high, x="row", y="trained tokens"),
            first,
            table("Supervised ratio in file order", ["rows", "lowest", "mean", "highest"], lines, numbers=3),
        )
        + figure(
            charts.histogram("c-ratio", second, edges * 100, counts, x="supervised ratio, percent", y="rows"),
            second,
            table("Rows by supervised ratio", ["ratio", "rows"], [
                [f"{a:.0%} to {b:.0%}", int(c)] for a, b, c in zip(edges[:-1], edges[1:], counts, strict=True) if c
            ], numbers=1),
        )
        + figure(
            charts.histogram("c-docs", third, document_edges, documents, x="documents in a row", y="rows"),
            third,
            _ranges_table("Rows by number of documents", "documents", "rows", document_edges, documents),
        )
        + "</div>",
    )  # fmt: skip


def _histogram(values: Any) -> tuple[Any, Any]:
    """(counts, edges) of whole numbers, one bar a number where they are few."""
    low, high = int(values.min()), int(values.max())
    step = max(1, -(-(high - low + 1) // 40))
    edges = np.arange(low, high + step + 1, step)
    return np.histogram(values, edges)[0], edges


def _ranges_table(caption: str, left: str, right: str, edges: Any, counts: Any) -> str:
    lines: list[list[object]] = [
        [f"{int(a):,}" if b - a <= 1 else f"{int(a):,} to {int(b) - 1:,}", int(c)]
        for a, b, c in zip(edges[:-1], edges[1:], counts, strict=True)
        if c
    ]
    return table(caption, [left, right], lines, numbers=1)


def conversations_section(facts: Facts) -> str:
    """How long conversations are, and how many rows they touch."""
    lengths, rows = facts.conversations.tokens, facts.conversations.rows
    highest = int(lengths.max())
    edges = np.unique(np.round(np.geomspace(1, max(2, highest) + 1, 31)).astype(np.int64))
    counts = np.histogram(lengths, edges)[0]
    spans = np.bincount(rows)
    kinds = [n for n in range(1, len(spans)) if spans[n]]
    first = (
        f"Lengths of the {len(lengths):,} conversations in tokens, as far as they lie in rows, on a logarithmic scale: "
        f"median {np.median(lengths):,.0f}, longest {highest:,}."
    )
    over = int((rows > 1).sum())
    second = f"Rows that a conversation touches: {over:,} of {len(rows):,} lie in more than one, the widest in {rows.max():,}."
    shown = kinds[:MOST_BARS]
    return section(
        "conversations",
        "Conversations",
        '<div class="charts">'
        + figure(
            charts.histogram("c-len", first, edges, counts, x="tokens of a conversation", y="conversations", log=True),
            first,
            _ranges_table("Conversations by length", "tokens", "conversations", edges, counts),
        )
        + figure(
            charts.bars("c-span", second, [f"{n:,}" for n in shown], [float(spans[n]) for n in shown],
                        unit="conversations, by the number of rows they touch", share=False),
            second,
            table("Conversations by rows", ["rows", "conversations"],
                  [[f"{n:,}", int(spans[n])] for n in kinds[:MOST_LINES]], numbers=1),
        )
        + "</div>",
    )  # fmt: skip


def skipped(facts: Facts) -> str:
    """What was not used and why, and what was noted, with examples where the source is at hand."""
    counts = facts.manifest.counts
    parts = []
    if facts.missing is not None:
        parts.append(f"<p>Counts alone, no examples: {escape(facts.missing)}.</p>")
    for title, numbers, none in (
        ("Skipped", counts.skipped, "Nothing was skipped."),
        ("Used, and noted", counts.noted, "Nothing was noted."),
    ):
        parts.append(f"<h3>{title}</h3>")
        if not numbers:
            parts.append(f"<p>{none}</p>")
            continue
        lines: list[list[object]] = [
            [name, count] for name, count in sorted(numbers.items(), key=lambda item: (-item[1], item[0]))
        ]
        parts.append(table(f"{title}: conversations by reason", ["reason", "conversations"], lines, numbers=1))
        parts += [_example_list(name, facts.examples[name]) for name in sorted(numbers) if name in (facts.examples or {})
                  and facts.examples is not None]  # fmt: skip
    return section("skipped", "Skipped and noted", "\n".join(parts))


def _example_list(name: str, examples: list[Example]) -> str:
    items = "\n".join(
        f"<li>source row {e.source_row}{': ' + escape(e.detail) if e.detail else ''}"
        f'<pre class="x" tabindex="0">{escape(e.record)}</pre></li>'
        for e in examples
    )
    return f"<details><summary>Examples of {escape(name)}</summary><ul>{items}</ul></details>"


def special_text(facts: Facts) -> str:
    """Text that spells special tokens."""
    noted = facts.manifest.counts.noted.get("special_text", 0)
    if facts.manifest.spec["tokens"] == "full_vocab":
        body = "<p>Under <code>full_vocab</code> text that spells a special token becomes that token, as asked for.</p>"
    elif not facts.num_sightings:
        body = f"<p>No text in these rows spells a special token ({noted:,} conversations read were noted for it).</p>"
    else:
        lines: list[list[object]] = [
            [
                f"{s.row}", f"{s.token}", "yes" if s.trained else "no",
                Html(f'<span class="x">{_flat(s.before)}<b class="t">{escape(s.text)}</b>{_flat(s.after)}</span>'),
            ]
            for s in facts.sightings
        ]  # fmt: skip
        shown = "" if facts.num_sightings <= len(lines) else f", the first {len(lines)} listed"
        body = (
            f"<p>{facts.num_sightings:,} places in these rows{shown}; of the conversations read {noted:,} hold such text. "
            "It stays ordinary text in ordinary tokens: no special token was made of it.</p>"
            + table("Text that spells a special token", ["row", "token", "trained", "text"], lines)
        )
    return section("special", "Text that spells special tokens", body)


def _flat(text: str) -> str:
    return escape(text.replace("\n", " ⏎ "))


def compared(found: Diff, text: TokenText | None) -> str:
    """What differs from another build."""
    lines = diff_lines(found, "this build", "the other build", text)
    verdict = "The two builds are equal." if found.equal else "The two builds differ."
    return section(
        "compare",
        f"Compared with {found.b.name}",
        f'<p>{verdict}</p>\n<pre class="x" tabindex="0">{escape(chr(10).join(lines))}</pre>',
    )
