"""Speed of a whole build, side by side with what a user would do instead.

`python -m benchmarks.build` makes its own input (demo conversations, whose texts are unique) and prints a table of
medians and ratios; files that you pass are used instead. Tokens and targets of every competitor are compared with ours.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from databuild.sources.demo_generator import conversations

_MESSAGE = pa.struct([("content", pa.string()), ("role", pa.string())])
SCHEMA = pa.schema(
    [("id", pa.string()), ("messages", pa.list_(pa.field("element", _MESSAGE))), ("source", pa.string())]
)
NAMES = {
    "ours-1": "databuild, 1 worker",
    "ours-2": "databuild, 2 workers",
    "engine": "fastokens alone, 1 thread (the floor)",
    "tokenizers": "tokenizers batch + numpy",
    "datasets-1": "datasets.map + transformers, 1 process",
    "datasets-2": "datasets.map + transformers, 2 processes",
    "trl-pack": "TRL pack_dataset (packing alone)",
}


def make_input(folder, count, shards=2):
    """Parquet shards in Tulu-3 shape with plain demo conversations."""
    paths = []
    for shard in range(shards):
        path = folder / f"train-{shard:05d}-of-{shards:05d}.parquet"
        first, last = count * shard // shards, count * (shard + 1) // shards
        with pq.ParquetWriter(path, SCHEMA, compression="snappy") as writer:
            for start in range(first, last, 10_000):
                rows = [c for c in conversations(start, min(10_000, last - start)) if _is_plain(c["messages"])]
                writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
        paths.append(path)
    return paths


def _is_plain(messages):
    """Turns that alternate as usual: the competitors render nothing else."""
    roles = [m["role"] for m in messages]
    if roles[:1] == ["system"]:
        roles = roles[1:]
    return (
        bool(roles)
        and all(role == ("user", "assistant")[i % 2] for i, role in enumerate(roles))
        and all(m["content"] is not None for m in messages)
    )


def measure(name, paths, folder):
    """One run of one competitor in a fresh process; None if what it needs is not installed."""
    command = [sys.executable, "-m", "benchmarks.competitors", name, *map(str, paths)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    environment |= {"HF_HOME": str(folder / "hf"), "TOKENIZERS_PARALLELISM": "true"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        print(f"{NAMES[name]}: left out ({last[0][:150]})", file=sys.stderr, flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def medians(name, paths, folder, repeats):
    """Medians of several runs; tokens and digests must not change between them."""
    runs = [measure(name, paths, folder) for _ in range(repeats)]
    if None in runs:
        return None
    assert len({run["digest"] for run in runs}) == 1, f"{name} gives other rows each time"
    return {
        **runs[0],
        **{key: statistics.median(run[key] for run in runs) for key in ("seconds", "cpu_seconds", "peak_mb")},
    }


def table(results):
    """Markdown: seconds, CPU seconds, ratios against ours with one worker."""
    base = results["ours-1"]
    lines = [
        "| | tokens | wall s | CPU s | M tokens / CPU s | CPU against ours | wall against ours | peak MB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, run in results.items():
        lines.append(
            f"| {NAMES[name]} | {run['tokens']:,} | {run['seconds']:.2f} | {run['cpu_seconds']:.2f} "
            f"| {run['tokens'] / run['cpu_seconds'] / 1e6:.2f} | {run['cpu_seconds'] / base['cpu_seconds']:.2f} x "
            f"| {run['seconds'] / base['seconds']:.2f} x | {run['peak_mb']:,.0f} |"
        )
    return "\n".join(lines)


def main():
    """Make the input, run everything, print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, help="parquet files in Tulu-3 shape with plain turns")
    parser.add_argument("--conversations", type=int, default=90_000, help="demo conversations to make (default 90,000)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of the fast ones (default 3)")
    parser.add_argument("--only", nargs="*", choices=list(NAMES), default=list(NAMES))
    parser.add_argument("--growth", action="store_true", help="also the cost as the input grows 1x, 4x, 16x")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="databuild-benchmark-", dir=".") as text:
        folder = Path(text).resolve()
        paths = [path.resolve() for path in options.files] or make_input(folder, options.conversations)
        results = {}
        for name in options.only:
            repeats = options.repeats if name in ("ours-1", "ours-2", "engine") else 1
            run = medians(name, paths, folder, repeats)
            if run is not None:
                results[name] = run
                print(
                    f"{NAMES[name]}: {run['seconds']:.1f} s, {run['cpu_seconds']:.1f} CPU s",
                    file=sys.stderr,
                    flush=True,
                )
        digests = {results[n]["digest"] for n in results if results[n]["digest"] is not None}
        assert len(digests) == 1, f"not everybody made the same rows: {digests}"
        packages = ("fastokens", "tokenizers", "transformers", "datasets", "pyarrow", "numpy")
        versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in packages)
        print(
            f"\n{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
        )
        print(f"{versions}; imports and tokenizer load apart; every digest equal\n")
        print(table(results))
        ours = results["ours-1"]
        print(f"\nengine {ours['engine']}, {ours['rechecked']} conversations encoded again by the reference, "
              f"{ours['bytes_per_token']:.3f} bytes a token")  # fmt: skip
        if options.growth:
            growth(folder, options.conversations)


def growth(folder, largest):
    """CPU seconds for each million tokens as the input grows."""
    print("\n| conversations | tokens | wall s | CPU s | CPU s / M tokens | peak MB |\n|--:|--:|--:|--:|--:|--:|")
    for factor in (16, 4, 1):
        count = largest // factor
        inside = folder / f"growth-{factor}"
        inside.mkdir()
        run = measure("ours-1", make_input(inside, count), folder)
        print(f"| {count:,} | {run['tokens']:,} | {run['seconds']:.2f} | {run['cpu_seconds']:.2f} "
              f"| {run['cpu_seconds'] / run['tokens'] * 1e6:.3f} | {run['peak_mb']:,.0f} |")  # fmt: skip


if __name__ == "__main__":
    main()
