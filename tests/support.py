"""Helpers of the tests: conversations to build from, and a look at everything in a directory."""

import json
import os
import random
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

_WORDS = [
    "the",
    "of",
    "and",
    "to",
    "alpha",
    "beta",
    "delta",
    "東京",
    "naïve",
    "code",
    "42",
    "3.14",
    "don't",
    "ça",
    "日本語",
    "👩\u200d👩\u200d👧",
    "<tag>",
    "[x]",
    "snake_case",
    "…",
]


def records(count, *, seed=1, words=30):
    """Short conversations of many shapes: systems, several turns, empty answers, answers without a header, open ends."""
    random_words = random.Random(seed)

    def text(most):
        return " ".join(random_words.choice(_WORDS) for _ in range(random_words.randint(1, most)))

    def turn(role, most=words):
        return {"role": role, "content": text(most)}

    result = []
    for number in range(count):
        messages = [turn("user"), turn("assistant")]
        if number % 5 == 0:
            messages = [turn("system", 6), *messages, turn("user"), turn("assistant")]
        if number % 11 == 0:
            messages += [turn("system", 4), turn("assistant", 5)]
        if number % 13 == 0:
            messages.append(turn("user", 4))
        if number % 17 == 0:
            messages = [turn("user", 4), turn("system", 4), turn("assistant", 6)]
        if number % 19 == 0:
            messages = [turn("user"), turn("user"), {"role": "assistant", "content": ""}]
        if number % 23 == 0:
            messages = [turn("assistant"), turn("assistant")]
        result.append({"id": f"c{number}", "messages": messages, "source": f"s{number % 3}"})
    return result


def write_jsonl(path, lines):
    """Write records as a JSONL file; gives its path."""
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def tree(folder):
    """Everything below a directory: name -> what it is and holds. Equal trees are equal to the byte."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        found[path.relative_to(folder).as_posix()] = (stat.S_IFMT(mode), stat.S_IMODE(mode), content)
    return found


class Ran(NamedTuple):
    """What a call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """The one JSON object on stdout."""
        assert self.out.count("\n") == 1 and self.out.endswith("\n"), self.out
        return json.loads(self.out)

    def error(self, code, title):
        """The readable block of an error, by its labels; checks that there is nothing else."""
        assert self.code == code, self.err
        assert "Traceback" not in self.err
        first, *rest = self.err[self.err.index("databuild: ") :].rstrip("\n").split("\n")
        assert first.startswith(f"databuild: {title} error: "), self.err
        block = {"what": first.removeprefix(f"databuild: {title} error: ")}
        for line in rest:
            label, _, value = line.strip().partition(":")
            assert line.startswith("  ") and label in ("where", "expected", "found", "next"), self.err
            block[label] = value.strip()
        return block


def build_files(out, paths, *, workers=2, rows="all", columns=None, batch_conversations=1024, **options):
    """`databuild fixed --source PATH…` without the command line."""
    from databuild.build import build
    from databuild.config import RunOptions
    from databuild.recipe import fixed_options
    from databuild.sources.columns import parse_columns
    from databuild.sources.open import parse_source

    defaults = {
        "row_tokens": 64, "seed": 42, "loss_mask_type": "deepseek_v4", "mode": "chat", "separator": "ensure",
        "bos": "keep", "tokens": "literal", "on_invalid": "skip", "unanswered": "keep", "include_sources": None,
        "exclude_sources": [],
    }  # fmt: skip
    mapping = parse_columns(columns)
    request = parse_source([str(path) for path in paths], mapping)
    run = RunOptions(out=Path(out), workers=workers, batch_conversations=batch_conversations, quiet=True)
    chosen = fixed_options(rows=str(rows), default_rows=None, columns=mapping, **(defaults | options))
    return build(request.open, chosen, run, name=lambda _: "test")


def use_shared_tokenizer(monkeypatch):
    """One tokenizer with its engines for the whole run: they take two seconds to load."""
    from streams import tokenizer

    from databuild import build, conversations, inspect, verify

    for module in (build, conversations, inspect, verify):
        monkeypatch.setattr(module, "load_tokenizer", tokenizer)


@contextmanager
def opened(*paths, columns=None):
    """Files as a source, with its spool in a directory of its own."""
    from databuild.sources.columns import parse_columns
    from databuild.sources.files import open_files

    with tempfile.TemporaryDirectory() as folder:
        mapping = parse_columns(columns)
        source = open_files(list(map(str, paths)), folder=Path(folder, "spool"), mapping=mapping, say=lambda _: None)
        try:
            yield source
        finally:
            source.close()


def refusal(*paths, columns=None):
    """The SourceError of files that cannot be a source."""
    from databuild.errors import SourceError

    with pytest.raises(SourceError) as caught, opened(*paths, columns=columns):
        pass
    return caught.value


def everything(source):
    """All conversations of a source or a spool, in its order."""
    return source.take(np.arange(source.num_rows))


def conversations(batch, source_names):
    """(row, source, id code, [(role code, text), ...]) of each conversation of a batch."""
    entries = iter(list(zip(batch.roles.tolist(), batch.texts, strict=True)))
    taken = [[next(entries) for _ in range(count)] for count in batch.counts.tolist()]
    assert next(entries, None) is None
    names = [source_names[code] for code in batch.source_codes.tolist()]
    return list(zip(batch.rows.tolist(), names, batch.id_codes.tolist(), taken, strict=True))


def read(*paths, columns=None):
    """All conversations of files: see `conversations`."""
    with opened(*paths, columns=columns) as source:
        return conversations(everything(source), source.source_names)


def reasons(*paths, columns=None):
    """Why each record of files is skipped: a reason, or None for one that is used."""
    from databuild.pieces import REASONS, How, make_pieces
    from masks.policy import MASK_TYPES

    with opened(*paths, columns=columns) as source:
        status = make_pieces(everything(source), How(mask_type=MASK_TYPES["deepseek_v4"])).status
    return [None if code == 0 else REASONS[code - 1].value for code in status.tolist()]


def manifest_of(*, spec=None, source=None, rows=None, **fields):
    """A manifest without a build. fields: of its counts, and its name."""
    from databuild.config import BuildSpec
    from manifests.canonical import sha256_of
    from manifests.model import Manifest, SourceFileRecord, SourceRecord

    file = SourceFileRecord(name="s.jsonl", bytes=9, sha256="3" * 64)
    plain = {"kind": "files", "name": None, "revision": None, "split": None, "rows": 3, "license": None}
    record = SourceRecord.make(**(plain | (source or {})), files=[file])
    tokenizer = {"name": "t", "revision": "0" * 40, "tokenizer_json_sha256": "4" * 64}
    chosen = {"row_tokens": 64, "seed": 42, "rows": None} | (spec or {})
    recipe = BuildSpec(**chosen, tokenizer_sha256="4" * 64, sources=[record.identity_sha256]).to_dict()
    name = fields.pop("name", "test")
    counts = {
        "conversations": 3, "used": 3, "skipped": {}, "noted": {}, "tokens": 400, "rows_cut": 6,
        "rows_without_targets": 0, "tail_tokens": 16,
        "by_source": {"s": {"used": 3, "skipped": 0, "tokens": 400, "targets": 200}},
    }  # fmt: skip
    summary = {
        "rows": 6, "row_tokens": chosen["row_tokens"], "num_targets": 192, "supervised_token_ratio": 0.5,
        "rows_sha256": "1" * 64, "docs_sha256": "2" * 64,
    }  # fmt: skip
    return Manifest.make(
        name=name,
        spec=recipe,
        spec_sha256=sha256_of(recipe),
        sources=[record],
        tokenizer=tokenizer,
        counts=counts | fields,
        rows=summary | (rows or {}),
        files=[{"name": "rows.parquet", "rows": 6, "bytes": 9, "sha256": "5" * 64}],
    )
