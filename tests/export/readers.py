"""Reads each export as its consumer does, without databuild.export: written from the consumers' own loaders.

Each gives int64[k, 3], sorted: (row, position in the row, token) of everything that is trained.
"""

import gzip
import importlib
import itertools
import struct
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq


def canonical(folder):
    """The pairs of a build: loss_mask[t] = 1 means that token t is trained."""
    found = []
    for path in sorted(folder.glob("rows*.parquet")):
        for record in pq.read_table(path).to_pylist():
            found.append((record["row"], record["input_ids"], record["loss_mask"]))
    return pairs((row, [(t, ids[t]) for t in range(1, len(ids)) if mask[t]]) for row, ids, mask in found)


def pairs(of_rows):
    """(row, [(position, token), ...]) of rows as one array."""
    listed = [(row, position, token) for row, some in of_rows for position, token in some]
    return np.array(sorted(listed), np.int64).reshape(-1, 3)


class Status:
    COMPLETED = "completed"


class Sample(SimpleNamespace):
    """What miles makes of a row of the index, as far as it matters here."""

    Status = Status


class DataSource:
    """miles' RolloutDataSource: file order, then from the start again."""

    def __init__(self, path, *, copies=1):
        self.samples = []
        for batch in pq.ParquetFile(path).iter_batches():
            for record in batch.to_pylist():
                metadata = record.get("metadata") or {}
                self.samples.append({"prompt": record["messages"], "metadata": metadata, "tokens": [], "reward": None})
        self.offset, self.copies = 0, copies

    def get_samples(self, count):
        taken = [self.samples[(self.offset + i) % len(self.samples)] for i in range(count)]
        self.offset = (self.offset + count) % len(self.samples)
        return [[Sample(**fields) for _ in range(self.copies)] for fields in taken]


def miles_arguments(folder, **changed):
    defaults = {
        "prompt_data": str(folder / "rows.miles.parquet"), "rollout_global_dataset": True, "rollout_batch_size": 4,
        "global_batch_size": 4, "apply_chat_template": False, "loss_type": "sft_loss", "rollout_temperature": 1.0,
        "n_samples_per_prompt": 1, "calculate_per_token_loss": True, "vocab_size": 129280,
    }  # fmt: skip
    return SimpleNamespace(**(defaults | changed))


def fresh_rollout_module():
    """train/miles/pretokenized_sft_rollout.py, without the rows of an earlier test."""
    return importlib.reload(importlib.import_module("train.miles.pretokenized_sft_rollout"))


def miles_sample_pairs(sample):
    """miles get_responses, bshd, one row: logits[start - 1 : end - 1] against tokens[-response_length:], weighed by loss_mask."""
    length, response = len(sample.tokens), sample.response_length
    assert len(sample.loss_mask) == response
    start = length - response
    # start 0 would take logits[-1:], which is empty, or of the row before.
    assert start >= 1, "the response has nothing before it"
    return [(start + j, sample.tokens[start + j]) for j in range(response) if sample.loss_mask[j]]


def miles(folder):
    path = folder / "rows.miles.parquet"
    source, count = DataSource(path), pq.ParquetFile(path).metadata.num_rows
    arguments = miles_arguments(folder, rollout_batch_size=count, global_batch_size=count)
    groups = fresh_rollout_module().generate_rollout(arguments, 0, source)
    assert [group[0].metadata["row"] for group in groups] == list(range(count))
    return pairs((row, miles_sample_pairs(group[0])) for row, group in enumerate(groups))


def bridge(folder):
    """GPTSFTPackedParquetDataset and its collate_fn, answer_only_loss: of a segment all but the last token are inputs."""
    (path,) = folder.glob("training_*.idx.parquet")
    found = []
    for row, record in enumerate(pq.read_table(path).to_pylist()):
        ids, stored = record["input_ids"], record["loss_mask"]
        boundaries = [*record["seq_start_id"], len(ids)]
        assert len(stored) == len(ids) and boundaries[0] == 0 and boundaries == sorted(boundaries)
        some = []
        for a, b in itertools.pairwise(boundaries):
            labels, mask = ids[a + 1 : b], stored[a : b - 1]
            some += [(a + 1 + i, label) for i, label in enumerate(labels) if mask[i]]
        found.append((row, some))
    return pairs(found)


def indexed(prefix):
    """megatron.core's IndexedDataset: the sequences of prefix.bin, by the header of prefix.idx."""
    index = Path(f"{prefix}.idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, code, count, documents = struct.unpack_from("<QBQQ", index, 9)
    dtype = {1: np.uint8, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 8: np.uint16}[code]
    at = 9 + 8 + 1 + 8 + 8
    lengths = np.frombuffer(index, "<i4", count, at)
    pointers = np.frombuffer(index, "<i8", count, at + 4 * count)
    bounds = np.frombuffer(index, "<i8", documents, at + 12 * count)
    assert version == 1 and bounds.tolist() == list(range(count + 1)) and len(index) == at + 12 * count + 8 * documents
    data = Path(f"{prefix}.bin").read_bytes()
    return [np.frombuffer(data, dtype, length, pointer) for length, pointer in zip(lengths, pointers, strict=True)]


def megatron(folder):
    """labels and loss_mask one to the left, as GPT datasets give them."""
    found = []
    for row, (ids, mask) in enumerate(zip(indexed(folder / "rows_ids"), indexed(folder / "rows_mask"), strict=True)):
        labels, weights = [*ids[1:].tolist(), 0], [*mask[1:].tolist(), 0]
        found.append((row, [(t + 1, label) for t, label in enumerate(labels) if weights[t]]))
    return pairs(found)


def hf(folder):
    """The model's own loss: logits[t] against labels[t + 1]."""
    found = []
    for row, record in enumerate(pq.read_table(folder / "rows.hf.parquet").to_pylist()):
        assert record["attention_mask"] == [1] * len(record["input_ids"])
        shifted = [*record["labels"][1:], -100]
        found.append((row, [(t + 1, label) for t, label in enumerate(shifted) if label != -100]))
    return pairs(found)


def olmo(folder):
    """OLMo-core: memmaps cut by the bounds; labels are the ids where the mask is true, then one to the left."""
    ids = np.memmap(folder / "token_ids_part_0000.npy", np.uint32, "r")
    mask = np.memmap(folder / "labels_mask_part_0000.npy", np.bool_, "r")
    found = []
    with gzip.open(folder / "token_ids_part_0000.csv.gz", "rt") as lines:
        for row, line in enumerate(lines):
            start, end = map(int, line.split(","))
            labels = np.where(mask[start:end], ids[start:end].astype(np.int64), -100)[1:]
            found.append((row, [(t + 1, int(label)) for t, label in enumerate(labels) if label != -100]))
    return pairs(found)


def _shifted(path):
    """A trainer that does not shift: logits[t] against labels[t]."""
    found = []
    for row, record in enumerate(pq.read_table(path).to_pylist()):
        assert len(record["labels"]) == len(record["input_ids"])
        found.append((row, [(t + 1, label) for t, label in enumerate(record["labels"]) if label != -100]))
    return pairs(found)


def automodel(folder):
    return _shifted(folder / "rows.automodel.parquet")


def torchtitan(folder):
    return _shifted(folder / "rows.torchtitan.parquet")


READERS = {
    "miles": miles, "bridge": bridge, "megatron": megatron, "hf": hf, "olmo": olmo, "automodel": automodel,
    "torchtitan": torchtitan,
}  # fmt: skip
