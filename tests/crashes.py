"""Runs databuild in forked children that are stopped at a step of their writing. Jobs as JSON on stdin, results on stdout.

A job: {"args": [...], "signal": "SIGKILL", "folder": F, "template": T}. For k = 0, 1, ... a child runs in F/k (a copy of
T, if there is one) and gets the signal just before its k-th step (or each "stride"-th), until one ends without having
come that far. Or, with
"limit": [bytes, step], one child in F whose files cannot grow beyond that from that step on ("" is the first). A result
is a list of {"folder", "step", "status", "stderr"}; status is negative for a signal.
"""

import json
import os
import resource
import shutil
import signal
import sys
from pathlib import Path

os.environ["DATABUILD_ENGINE"] = "reference"

from databuild import build, cli, recipe, report_text, rows, verify
from databuild.sources import files, spool
from databuild.tokenizer import load_tokenizer

SPOOL_FILES = ("text", "message_lengths", "roles", "counts", "sources")  # their removal is not worth a stop each
TOKENIZER = load_tokenizer()
assert (
    TOKENIZER.reference and TOKENIZER.vocab_size and recipe and report_text and files
)  # loaded once, for all children
build.load_tokenizer = verify.load_tokenizer = lambda: TOKENIZER
build.check_permutation = lambda *, full: None


def watch(step):
    """Call step(name) before everything that changes the disk, in this process."""

    def wrapped(call, name):
        def watched(*args, **kwargs):
            target = next((Path(arg).name for arg in args if isinstance(arg, (str, Path))), "")
            if target not in SPOOL_FILES:
                step(f"{name} {target}".strip())
            return call(*args, **kwargs)

        return watched

    os.fsync = lambda _: None  # the disk is not what is tested
    for name in ("mkdir", "rename", "unlink", "rmdir", "fsync"):
        setattr(os, name, wrapped(getattr(os, name), name))
    real_open = os.open

    def watched_open(path, flags, *args, **kwargs):
        if flags & os.O_CREAT or flags & os.O_DIRECTORY:
            step(f"open {Path(os.fsdecode(path)).name}")
        return real_open(path, flags, *args, **kwargs)

    os.open = watched_open
    for owner, name in (
        (spool.SpoolWriter, "add"),
        (spool.SpoolWriter, "finish"),
        (rows.RowWriter, "_write_group"),
        (rows.RowWriter, "_close_shard"),
    ):
        setattr(owner, name, wrapped(getattr(owner, name), name))


def run(args, folder, step):
    """(status, stderr) of a child that runs databuild in a folder."""
    reader, writer = os.pipe()  # not a file: a limit on files would stop the errors too
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.dup2(writer, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        watch(step)
        try:
            cli.main(args)
        except SystemExit as end:
            sys.stderr.flush()
            os._exit(end.code)
        os._exit(99)
    os.close(writer)
    with open(reader) as errors:
        text = errors.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text


def run_until_whole(job):
    number = signal.Signals[job["signal"]]
    results = []
    while True:
        folder = Path(job["folder"], str(len(results)))
        shutil.copytree(job["template"], folder) if "template" in job else folder.mkdir(parents=True)
        reader, writer = os.pipe()
        seen = 0

        def step(name, at=1 + len(results) * job.get("stride", 1), writer=writer):
            nonlocal seen
            seen += 1
            if seen == at:
                os.write(writer, name.encode())
                os.kill(os.getpid(), number)

        status, errors = run(job["args"], folder, step)
        os.close(writer)
        name = os.read(reader, 200).decode()
        os.close(reader)
        results.append({"folder": str(folder), "step": name, "status": status, "stderr": errors})
        if not name:
            return results


def run_limited(job):
    size, at = job["limit"]

    def step(name):
        if at in name:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    status, errors = run(job["args"], job["folder"], step)
    return [{"folder": job["folder"], "step": at, "status": status, "stderr": errors}]


if __name__ == "__main__":
    jobs = json.load(sys.stdin)
    print(json.dumps([run_limited(job) if "limit" in job else run_until_whole(job) for job in jobs]))
