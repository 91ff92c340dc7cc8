"""The format against vectors made with the official encoders: text, ids and mask."""

import json
from pathlib import Path

import pytest

from databuild.conversations import encode_file

GOLDEN = Path(__file__).parents[2] / "shared" / "golden" / "deepseek_v4.jsonl"
pytestmark = pytest.mark.skipif(not GOLDEN.exists(), reason="the golden vectors are not on this machine")


def _vectors():
    with open(GOLDEN, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _is_plain_chat(vector):
    return (
        vector["mode"] == "chat"
        and not vector["tools"]
        and all(
            set(message) <= {"role", "content"}
            and message["role"] in ("system", "user", "assistant")
            and isinstance(message["content"], str)
            for message in vector["messages"]
        )
    )


def test_plain_chat_vectors_agree_in_text_ids_and_mask(tmp_path):
    vectors = [vector for vector in _vectors() if _is_plain_chat(vector)]
    assert len(vectors) == 58  # 57 conversations and the empty one
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(json.dumps({"id": v["id"], "messages": v["messages"]}) + "\n" for v in vectors))
    for vector, encoded in zip(vectors, encode_file(path), strict=True):
        expected = vector["recommended"]
        assert encoded == {
            "id": vector["id"],
            "text": expected["text"],
            "input_ids": expected["ids"],
            "mask_spans": expected["mask_spans"],
        }
