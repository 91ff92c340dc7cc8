"""README.md of a dataset folder, from the manifest alone. Pure: the same manifest, the same bytes."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from databuild.share.croissant import COLUMNS
from databuild.share.names import MANIFEST_PATH, ROWS_FOLDER, description, hub_url, rows_pattern
from manifests.model import Manifest, SourceRecord
from masks.policy import MASK_TYPES

#: Licence names as they are written elsewhere -> the identifiers that the hub knows.
_LICENSES = {
    "apache-2.0": "apache-2.0", "mit": "mit", "bsd-3-clause": "bsd-3-clause", "odc-by": "odc-by", "odc-by-1.0": "odc-by",
    "odbl": "odbl", "odbl-1.0": "odbl", "pddl": "pddl", "pddl-1.0": "pddl", "cc0-1.0": "cc0-1.0",
    "cc-by-3.0": "cc-by-3.0", "cc-by-4.0": "cc-by-4.0", "cc-by-sa-3.0": "cc-by-sa-3.0", "cc-by-sa-4.0": "cc-by-sa-4.0",
    "cc-by-nc-4.0": "cc-by-nc-4.0", "cc-by-nc-sa-4.0": "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0": "cc-by-nc-nd-4.0",
    "cc-by-nd-4.0": "cc-by-nd-4.0", "cdla-permissive-2.0": "cdla-permissive-2.0", "other": "other", "unknown": "unknown",
}  # fmt: skip
_SIZES = (
    (1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"),
)  # fmt: skip
_MOST = 40
_TAGS = ("sft", "tokenized", "loss-mask", "deepseek-v4", "databuild")


@dataclass(frozen=True, slots=True, kw_only=True)
class DataConfig:
    """A named set of parquet files that `datasets.load_dataset(folder, name)` reads. path: a glob from the folder."""

    name: str
    path: str
    split: str = "train"


def rows_config(manifest: Manifest) -> DataConfig:
    """The row files as they are."""
    return DataConfig(name="default", path=rows_pattern(manifest))


def card(manifest: Manifest, *, repo: str | None = None, configs: Sequence[DataConfig] | None = None) -> bytes:
    """The bytes of README.md.

    repo: OWNER/NAME where it is published, if that is known; the commands then say how to fetch it. configs: what
    `load_dataset` offers, the row files by default; another form of the same rows in the folder would be one more.
    """
    parts = [
        _front_matter(manifest, list(configs) if configs is not None else [rows_config(manifest)]),
        f"# {_text(manifest.name)}\n\n{description(manifest)}",
        _build(manifest),
        _sources(manifest),
        _counts(manifest),
        _columns(manifest),
        _use(manifest, repo),
        _verify(manifest, repo),
    ]
    return ("\n\n".join(parts) + "\n").encode()


def size_category(rows: int) -> str:
    """The hub's name for a number of rows."""
    return next((name for limit, name in _SIZES if rows < limit), "n>1B")


def _front_matter(manifest: Manifest, configs: Sequence[DataConfig]) -> str:
    lines = ["---", *_license_lines(manifest), f"pretty_name: {_quoted(_line(manifest.name))}"]
    lines += ["size_categories:", f"- {size_category(manifest.rows.rows)}", "task_categories:", "- text-generation"]
    lines += ["tags:", *(f"- {tag}" for tag in _TAGS), "configs:"]
    for config in configs:
        lines += [
            f"- config_name: {_quoted(config.name)}",
            "  data_files:",
            f"  - split: {_quoted(config.split)}",
            f"    path: {_quoted(config.path)}",
        ]
    return "\n".join([*lines, "---"])


def _license_lines(manifest: Manifest) -> list[str]:
    """One licence for all sources, or `other`; nothing where one of them is not known."""
    names = [source.license for source in manifest.sources]
    if not all(names):
        return []
    known = sorted({_LICENSES.get(str(name).lower(), "other") for name in names})
    if len(known) == 1 and known[0] != "other":
        return [f"license: {known[0]}"]
    shown = sorted({re.sub(r"[^a-z0-9.]+", "-", str(name).lower()).strip("-") for name in names})
    return ["license: other", f"license_name: {_quoted('-and-'.join(filter(None, shown)) or 'see-sources')}"]


def _build(manifest: Manifest) -> str:
    spec = manifest.spec
    mask = MASK_TYPES.get(str(spec.get("loss_mask_type")))
    trained = f"Loss mask `{_code(spec.get('loss_mask_type'))}` version {_code(spec.get('loss_mask_version'))}"
    about = f": {_text(mask.about)}" if mask is not None and mask.version == spec.get("loss_mask_version") else ""
    table = _table(
        ("option", "value"),
        ((f"`{_code(key)}`", f"`{_code(_json(value))}`") for key, value in sorted(spec.items()) if key != "sources"),
        "|---|---|",
    )
    tokenizer = manifest.tokenizer
    return (
        "## What was built\n\n"
        "Conversations in a seeded global permutation, rendered in the DeepSeek-V4 chat format, tokenized, concatenated and "
        f"cut every {manifest.rows.row_tokens:,} tokens. No padding, no truncation; rows without a target are left out. "
        f"{trained}{about}{'' if about.endswith('.') else '.'}\n\n"
        f"Tokenizer: `{_code(tokenizer.name)}` @ `{_code(tokenizer.revision)}`, tokenizer.json sha256 "
        f"`{tokenizer.tokenizer_json_sha256}`.\n\n{table}\n\nspec_sha256 `{manifest.spec_sha256}`"
    )


def _sources(manifest: Manifest) -> str:
    rows = [
        (_source_name(s), f"`{_code(s.revision)}`" if s.revision else "", _text(s.split or ""), f"{s.rows:,}",
         _text(s.license) if s.license else "not known")
        for s in manifest.sources
    ]  # fmt: skip
    files = [(_text(f.name), f"{f.bytes:,}", f"`{f.sha256}`") for s in manifest.sources for f in s.files]
    more = f"\n\nand {len(files) - _MOST:,} more, in `{MANIFEST_PATH}`." if len(files) > _MOST else ""
    return (
        "## Sources\n\n"
        + _table(("source", "revision", "split", "rows", "licence"), rows, "|---|---|---|--:|---|")
        + "\n\nThe rows keep the licence of what they were made from.\n\n"
        + _table(("file", "bytes", "sha256"), files[:_MOST], "|---|--:|---|")
        + more
    )


def _source_name(source: SourceRecord) -> str:
    if source.kind == "hub" and source.name:
        # The address of a commit does not move; a name that is none stays text.
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", source.name, re.ASCII):
            return f"[{_text(source.name)}]({hub_url(source.name)})"
        return _text(source.name)
    return _text(source.name) if source.name else source.kind


def _counts(manifest: Manifest) -> str:
    counts, rows = manifest.counts, manifest.rows
    lines = [
        ("conversations read", counts.conversations),
        ("used", counts.used),
        *((f"skipped: {_text(reason)}", count) for reason, count in sorted(counts.skipped.items())),
        *((f"used, noted: {_text(kind)}", count) for kind, count in sorted(counts.noted.items())),
        ("tokens of the stream", counts.tokens),
        ("rows cut", counts.rows_cut),
        ("rows without a target, left out", counts.rows_without_targets),
        ("tokens left over at the end", counts.tail_tokens),
        ("rows", rows.rows),
        ("tokens trained", rows.num_targets),
    ]
    text = "## Counts\n\n" + _table(("", "number"), ((name, f"{count:,}") for name, count in lines), "|---|--:|")
    text += f"\n\nTrained: {rows.supervised_token_ratio:.2%} of all tokens."
    by_source = sorted(counts.by_source.items(), key=lambda item: (-item[1].tokens, item[0]))
    if len(by_source) > 1:
        shown = by_source[:_MOST]
        table = _table(
            ("`source` of a record", "used", "skipped", "tokens", "targets"),
            ((_text(n) or "(none)", f"{c.used:,}", f"{c.skipped:,}", f"{c.tokens:,}", f"{c.targets:,}") for n, c in shown),
            "|---|--:|--:|--:|--:|",
        )  # fmt: skip
        text += f"\n\n{table}"
        if len(by_source) > len(shown):
            text += f"\n\nand {len(by_source) - len(shown):,} more, in `{MANIFEST_PATH}`."
    return text


def _columns(manifest: Manifest) -> str:
    size = f"{manifest.rows.row_tokens:,}"
    length = {"row": f"list of exactly {size}", "any": "list"}
    rows = [
        (f"`{name}`", f"{length[elements]} {_type(kind)}" if elements else _type(kind), about)
        for name, kind, elements, about in COLUMNS
    ]
    return (
        "## Columns\n\n"
        + _table(("column", "type", ""), rows, "|---|---|---|")
        + "\n\n`loss_mask[t] = 1` means that token t is a target. Shift once, in the trainer: `labels[t] = input_ids[t + 1]`, "
        "`label_mask[t] = loss_mask[t + 1]`, nothing for the last position. There is no column `labels` on purpose."
    )


def _type(kind: str) -> str:
    return kind.removeprefix("cr:").lower()


def _use(manifest: Manifest, repo: str | None) -> str:
    place = json.dumps(repo) if repo else '"."'
    return (
        "## Use\n\n"
        f'```python\nfrom datasets import load_dataset\n\nrows = load_dataset({place}, split="train")\n```\n\n'
        "or as numpy arrays, with every digest checked, and batches that can be resumed:\n\n"
        "```python\nimport databuild\n\n"
        f'rows = databuild.load("{ROWS_FOLDER}")\n'
        "for batch in rows.iterate(8):\n    batch.input_ids, batch.labels  # int32[8, "
        f"{manifest.rows.row_tokens}]; labels are shifted, -100 where nothing is trained\n    break\n```"
    )


def _verify(manifest: Manifest, repo: str | None) -> str:
    fetch = f"hf download {repo} --repo-type dataset --local-dir copy && cd copy\n" if repo else ""
    return (
        "## Verify\n\n"
        f"`rows_sha256` is the identity of the rows, whatever wrote the parquet files:\n\n"
        f"    rows_sha256 {manifest.rows.rows_sha256}\n    docs_sha256 {manifest.rows.docs_sha256}\n\n"
        "With databuild, in a copy of this folder (level 3 encodes a sample again, level 4 builds it again from its "
        f"source):\n\n```bash\n{fetch}databuild verify {ROWS_FOLDER} --level 2\n```\n\n"
        "Without it, in three lines of numpy:\n\n"
        "```python\nimport glob, hashlib, numpy as np, pyarrow as pa, pyarrow.parquet as pq\n\n"
        f'files, digest = sorted(glob.glob("{ROWS_FOLDER}/rows*.parquet")), hashlib.sha256()\n'
        'for ids, mask in (pair for f in files for b in pq.ParquetFile(f).iter_batches(columns=["input_ids", "loss_mask"]) '
        "for pair in zip(*b)):\n"
        '    digest.update(np.asarray(ids.values, "<i4").tobytes() + np.asarray(mask.values, "u1").tobytes())\n'
        "print(digest.hexdigest())\n```\n\n"
        f"`{MANIFEST_PATH}` holds the digest of every file, of every source file, and its own."
    )


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], rule: str) -> str:
    return "\n".join([f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)])


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _quoted(text: str) -> str:
    """A YAML string: that of JSON, but YAML does not join the halves of an escaped character."""
    return json.dumps(text, ensure_ascii=False)


def _line(text: str) -> str:
    """Text on one line: what cannot be seen, or would turn the line around, as escapes."""
    return "".join(
        c if c == " " or unicodedata.category(c)[0] not in "CZ" else c.encode("unicode_escape").decode() for c in text
    )


def _text(value: str) -> str:
    """Text of the data as Markdown that shows it: no markup, no link, no new cell, no new line."""
    if re.fullmatch(r"[A-Za-z0-9]+(?:[A-Za-z0-9 ,.;/'()-]|_(?=[A-Za-z0-9]))*", value):
        return value
    return re.sub(r"([\\`*_{}\[\]<>#+!|~&$@]|(?<=:)/|(?<=^)[-.:])", r"\\\1", _line(value))


def _code(value: Any) -> str:
    """A value inside backticks in a table."""
    return _line(str(value)).replace("`", "'").replace("|", "\\|")
