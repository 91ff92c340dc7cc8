"""What the tests of faults share."""

import json
import subprocess
import sys
from pathlib import Path

from support import tree

CHILD = Path(__file__).with_name("child.py")


def children(*jobs, **environment):
    """Results of jobs of child.py, a list for each."""
    import os

    ran = subprocess.run(
        [sys.executable, str(CHILD)],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def content(folder):
    """What decides whether two builds are the same: all but the environment and the modes."""
    return {name: entry[2] for name, entry in tree(folder).items() if name != "environment.json"}


def encoded(folder):
    """How many conversations the builder encoded that finished this build."""
    return json.loads((Path(folder) / "environment.json").read_bytes())["encoded_conversations"]
