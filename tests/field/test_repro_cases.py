"""Builds of others that were not reproducible. Each test names the reports it answers."""

import json
import os
import subprocess
import sys

from field_support import ROOT

from databuild.config import BuildSpec
from manifests.canonical import sha256_of

FIELDS = {"row_tokens": 8192, "seed": 42, "rows": None, "tokenizer_sha256": "4" * 64, "sources": ["5" * 64]}

PROBE = """
import json, sys
from databuild.config import BuildSpec
fields = json.loads(sys.argv[1])
before = BuildSpec(**fields).sha256
from databuild.tokenizer import load_tokenizer
load_tokenizer().reference
spec = BuildSpec(**dict(reversed(fields.items())))
spec.rows, spec.seed, hash(spec.seed)
print(json.dumps([before, spec.sha256, BuildSpec.model_validate(spec.to_dict()).sha256]))
"""


def test_the_digest_of_a_spec_depends_on_the_spec_alone(tmp_path):
    """https://github.com/allenai/open-instruct/pull/1802

    Not on whether a tokenizer is loaded or cached, on the order in which fields are given or looked at, or on the process.
    """
    here = BuildSpec(**FIELDS)
    found = {here.sha256, sha256_of(here.to_dict())}
    environment = {**os.environ, "PYTHONHASHSEED": "1", "HF_HOME": str(tmp_path / "hub"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", PROBE, json.dumps(FIELDS)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    found |= set(json.loads(ran.stdout))
    assert len(found) == 1
    assert BuildSpec(**{**FIELDS, "tokenizer_sha256": "6" * 64}).sha256 not in found
