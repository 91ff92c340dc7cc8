"""What is fuzzed. A target makes an input from a random number generator and runs it; any error but its own is a find."""

import gzip
import io
import json
import tempfile
from functools import cache
from pathlib import Path

import mutate
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from databuild.errors import DatabuildError
from databuild.rows import SCHEMA

CORPUS = Path(__file__).with_name("corpus")


@cache
def corpus(kind):
    """The seeds of a target, in the order of their names."""
    seeds = [path.read_bytes() for path in sorted((CORPUS / kind).iterdir())]
    assert seeds, kind
    return seeds


@cache
def scratch():
    folder = tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None)
    _KEEP.append(folder)
    return Path(folder.name)


_KEEP = []


def file_of(name, data):
    path = scratch() / name
    path.write_bytes(data)
    return path


class Target:
    """make(rng) gives an input, run(input) must end without an error, or with one of `refusals`."""

    refusals = (DatabuildError,)
    modules = ()

    def seed(self, rng):
        return rng.choice(corpus(self.name))

    def make(self, rng):
        return mutate.mutated(rng, self.seed(rng), corpus(self.name))


class NullSpool:
    """Takes what a reader gives and looks whether it fits together."""

    num_rows = 0

    def add(self, *, text, message_lengths, roles, counts, sources, ids):
        assert len(memoryview(text).cast("B")) == message_lengths.sum()
        assert len(message_lengths) == len(roles) == counts.sum()
        assert len(sources) == len(counts) and (ids is None or len(ids) == len(counts))
        bytes(text).decode("utf-8")
        self.num_rows += len(counts)


class Jsonl(Target):
    """The reader of .jsonl, .jsonl.gz, .jsonl.zst and .json files."""

    name = "jsonl"
    modules = ("databuild.sources.jsonl", "databuild.sources.records")
    suffixes = (".jsonl", ".jsonl", ".jsonl", ".json", ".jsonl.gz", ".jsonl.zst")

    def make(self, rng):
        data = mutate.lines(rng) if rng.random() < 0.4 else self.seed(rng)
        suffix = rng.choice(self.suffixes)
        if suffix == ".json" and not data.lstrip().startswith(b"["):
            data = b"[" + data.replace(b"\n", b",") + b"]"
        if rng.random() < 0.8:
            data = mutate.mutated(rng, data, corpus(self.name))
        if suffix.endswith((".gz", ".zst")):
            data = gzip.compress(data, 1) if suffix.endswith("gz") else pa.compress(data, "zstd", asbytes=True)
            if rng.random() < 0.5:
                data = mutate.mutated(rng, data, corpus(self.name))
        return suffix, data

    def run(self, value):
        from databuild.sources import jsonl
        from databuild.sources.records import RecordSpooler

        suffix, data = value
        spooler = RecordSpooler(NullSpool(), None)
        jsonl.read_jsonl(file_of(f"input{suffix}", data), spooler, ["messages"])
        spooler.flush()


class Conversations(Target):
    """The checks of a conversation, its rendering, the masks and the encoder, whose two engines must agree.

    Nothing is refused here: a conversation that cannot be used is skipped under a reason.
    """

    name = "conversations"
    refusals = ()
    modules = ("masks.parse", "masks.deepseek_v4", "masks.policy", "databuild.pieces", "databuild.encode")

    def make(self, rng):
        how = {
            "mode": rng.choice(["chat", "thinking"]), "drop_thinking": rng.random() < 0.3,
            "reasoning_effort": rng.choice([None, None, "high"]),
            "headerless": rng.choice(["reference", "official", "reject"]),
            "unanswered": rng.choice(["keep", "trim", "skip"]),
        }  # fmt: skip
        mask = rng.choice(["deepseek_v4", "deepseek_v4_last_turn"])
        if how["mode"] == "thinking" and how["drop_thinking"] and rng.random() < 0.5:
            how["history"] = "split_turns"
        return how, mask, rng.random() < 0.2, [mutate.record(rng) for _ in range(rng.randrange(1, 4))]

    def run(self, value):
        from streams import MemorySource, tokenizer

        from databuild.encode import Encoder
        from databuild.pieces import How
        from masks.options import RenderOptions
        from masks.policy import MASK_TYPES

        options, mask, full, records = value
        plain = []
        for record in records:  # what the spool does with names and ids that are none
            spooled = {key: record[key] for key in ("messages", "tools") if key in record}
            plain.append(json.loads(json.dumps(spooled)))
        how = How(mask_type=MASK_TYPES[mask], options=RenderOptions(**options), full_vocabulary=full)
        fast = tokenizer().fast_full_vocabulary if full else tokenizer().fast
        encoder = Encoder(tokenizer(), fast, how, row_tokens=64)
        encoded = encoder.encode(MemorySource(plain).take(np.arange(len(plain))))
        assert len(encoded.ids) == len(encoded.loss_mask) == (encoded.ends[-1] if len(plain) else 0)
        assert encoded.loss_mask.max(initial=0) <= 1 and encoded.ids.min(initial=0) >= 0
        assert encoded.ids.max(initial=0) < tokenizer().vocab_size
        assert encoded.num_targets.sum() == encoded.loss_mask.sum()
        assert set(encoded.rejections) == set(np.flatnonzero(encoded.status).tolist())


class Manifests(Target):
    """The reader of manifests."""

    name = "manifests"
    modules = ("manifests.model", "manifests.canonical")

    @property
    def refusals(self):
        from manifests.model import ManifestError

        return (ManifestError,)

    def make(self, rng):
        data = self.seed(rng)
        if rng.random() < 0.5:  # a changed value, with the digest of it
            raw = json.loads(data)
            for _ in range(rng.choice([1, 1, 2])):
                place = raw
                while True:
                    key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
                    if not (isinstance(place[key], (dict, list)) and place[key] and rng.random() < 0.8):
                        break
                    place = place[key]
                place[key] = mutate.value(rng)
            return self._sealed(raw)
        return mutate.mutated(rng, data, corpus(self.name))

    @staticmethod
    def _sealed(raw):
        from manifests.canonical import canonical_json, sha256_of

        raw.pop("manifest_sha256", None)
        try:
            return canonical_json(raw | {"spec_sha256": sha256_of(raw.get("spec")), "manifest_sha256": ""}).replace(
                b'"manifest_sha256": ""', f'"manifest_sha256": "{sha256_of(raw)}"'.encode()
            )
        except (ValueError, UnicodeEncodeError):
            return b"{}"

    def run(self, data):
        from manifests.model import read_manifest

        assert read_manifest(data).to_bytes() == data, "an accepted manifest has other bytes"


class RowFiles(Target):
    """The reader of row files, with the checks of `verify --level 2`."""

    name = "rows"
    modules = ("databuild.rows",)

    def make(self, rng):
        data = bytearray(self.seed(rng))
        kind = rng.random()
        if kind < 0.3:
            return mutate.mutated(rng, data, corpus(self.name))
        if kind < 0.7:  # pages and footer keep their places
            for _ in range(rng.choice([1, 1, 2, 5])):
                data[rng.randrange(len(data))] = rng.choice([0, 1, 255, rng.randrange(256)])
            return bytes(data)
        return self._edited(rng, bytes(data))

    @staticmethod
    def _edited(rng, data):
        """Rows with other values, in a file that is whole."""
        rows = pq.read_table(pa.BufferReader(data)).to_pylist()
        row = rng.choice(rows)
        key = rng.choice(list(row))
        number = rng.choice([0, 1, 2, -1, 31, 32, 127, 128, 255, 129_279, 129_280, 2**31 - 1, -(2**31)])
        if isinstance(row[key], list):
            at = rng.randrange(len(row[key]) + 1)
            row[key][at : at + rng.randrange(3)] = [number] * rng.randrange(3)
        else:
            row[key] = number
        sink = io.BytesIO()
        try:
            pq.write_table(
                pa.Table.from_pylist(rows, schema=SCHEMA), sink, row_group_size=rng.choice([1, 3, 128, 1000])
            )
        except (pa.ArrowException, OverflowError, ValueError):  # a value that its column cannot hold
            return data
        return sink.getvalue()

    def run(self, data):
        from databuild import rows, verify

        digests, first = rows.Digests(), 0
        for table, group, _ in rows.read_groups([file_of("rows.parquet", data)], 32):
            canonical = rows.canonical_bytes(group.input_ids, group.loss_mask)
            verify._check_group(table, group, canonical, first, 129_280, 1000)
            digests.add(group, canonical)
            first += len(group)


class Parquet(Target):
    """The reader of parquet sources."""

    name = "parquet"
    modules = ("databuild.sources.parquet",)

    def run(self, data):
        from databuild.sources.parquet import read_parquet

        read_parquet(file_of("input.parquet", data), NullSpool(), None)


class Columns(Target):
    """The value of --columns, and records that it maps."""

    name = "columns"
    modules = ("databuild.sources.columns",)
    words = ("messages", "role", "content", "prompt", "response", "system", "id", "source", "tools", "=", "=", "=", ",", ",",
             "+", "a", "b", "sharegpt", "alpaca", "openmath", "", " ", "\x00", "é", "==", ",,")  # fmt: skip

    def make(self, rng):
        if rng.random() < 0.5:
            given = "".join(rng.choice(self.words) for _ in range(rng.randrange(1, 12)))
        else:
            given = mutate.mutated(rng, self.seed(rng), corpus(self.name)).decode("utf-8", "replace")
        return given, mutate.record(rng) | {
            "a": mutate.value(rng),
            "b": mutate.value(rng),
            "conversations": mutate.value(rng),
        }

    def run(self, value):
        from databuild.sources.columns import map_record, needed_columns, parse_columns

        given, record = value
        mapping = parse_columns(given)
        required, optional = needed_columns(mapping)
        assert required and all(isinstance(name, str) for name in [*required, *optional])
        assert set(map_record(record, mapping)) == {"id", "messages", "source", "tools"}


#: name -> (target, its share of the inputs)
TARGETS = {
    target.name: (target, share)
    for target, share in (
        (Jsonl(), 0.3), (Conversations(), 0.3), (Manifests(), 0.2), (RowFiles(), 0.05), (Parquet(), 0.05), (Columns(), 0.1),
    )
}  # fmt: skip
