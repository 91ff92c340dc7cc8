"""Runs databuild in forked children with a journal after every batch and small row groups. Jobs as JSON on stdin.

A job is one of tests/crashes.py; or {"args", "folder", "kill_at": n, "where": NAME, "signal"}: one child that is killed at the
n-th call of a step (a key of STEPS), never with n = 0; or {"args", "folder", "race": n}: n children at once. Results as there.
"""

import json
import os
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import crashes

from databuild import build, encode, journal, rows, shards

journal.FIRST_SECONDS = journal.COMMIT_SECONDS = 0.0
rows.ROWS_PER_GROUP = build.ROWS_PER_GROUP = 4

STEPS = {
    "encode": (encode.Encoder, "encode"),
    "group": (rows.RowWriter, "_write_group"),
    "pages": (shards.ShardFile, "add"),
    "footer": (shards.ShardFile, "finish"),
    "commit": (journal.Journal, "_commit"),
    "log": (journal, "_line"),
}


def run_and_kill(job):
    owner, name = STEPS[job["where"]]
    real = getattr(owner, name)
    seen = 0

    def counted(*args, **kwargs):
        nonlocal seen
        seen += 1
        if seen == job["kill_at"]:
            os.kill(os.getpid(), signal.Signals[job.get("signal", "SIGKILL")])
        return real(*args, **kwargs)

    setattr(owner, name, counted)
    try:
        status, errors = crashes.run(job["args"], job["folder"], lambda _: None)
    finally:
        setattr(owner, name, real)
    return [{"folder": job["folder"], "step": name, "status": status, "stderr": errors}]


def race(job):
    """`race` builders at once in one folder; status and stderr of each."""
    children = []
    for number in range(job["race"]):
        errors = Path(job["folder"], f"errors{number}")
        if not (child := os.fork()):
            os.chdir(job["folder"])
            os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            try:
                crashes.cli.main(job["args"])
            except SystemExit as end:
                sys.stderr.flush()
                os._exit(end.code)
            os._exit(99)
        children.append((child, errors))
    statuses = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child, _ in children]
    texts = [errors.read_text() for _, errors in children]
    for _, errors in children:
        errors.unlink()
    return [
        {"folder": job["folder"], "step": "", "status": s, "stderr": t} for s, t in zip(statuses, texts, strict=True)
    ]


def run(job):
    if "race" in job:
        return race(job)
    if "limit" in job:
        return crashes.run_limited(job)
    return run_and_kill(job) if "kill_at" in job else crashes.run_until_whole(job)


if __name__ == "__main__":
    print(json.dumps([run(job) for job in json.load(sys.stdin)]))
