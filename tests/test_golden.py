"""The format against vectors made with the official encoders: text, ids, masks, and what must be rejected."""

import json
from pathlib import Path

import pytest

from databuild.conversations import encode_file
from databuild.pieces import How
from masks.options import RenderOptions
from masks.policy import MASK_TYPES

GOLDEN = Path(__file__).parents[2] / "shared" / "golden" / "deepseek_v4.jsonl"
VECTORS = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()] if GOLDEN.exists() else []
pytestmark = [
    pytest.mark.skipif(not VECTORS, reason="the golden vectors are not on this machine"),
    pytest.mark.usefixtures("shared_tokenizer"),
]


def _encoded(tmp_path, vector, mask_type="deepseek_v4", full_vocabulary=False):
    path = tmp_path / "one.jsonl"
    path.write_text(json.dumps({key: vector[key] for key in ("id", "messages", "tools")}) + "\n")
    how = How(
        mask_type=MASK_TYPES[mask_type],
        options=RenderOptions(mode=vector["mode"], **vector["options"]),
        full_vocabulary=full_vocabulary,
    )
    (encoded,) = encode_file(path, how)
    return encoded


@pytest.mark.parametrize("vector", VECTORS, ids=[vector["id"] for vector in VECTORS])
def test_text_ids_and_every_mask_agree(tmp_path, vector):
    expected = vector["recommended"]
    encoded = _encoded(tmp_path, vector)
    if "error" in expected:
        assert set(encoded) == {"id", "rejected"}
        assert len(encoded["rejected"]) > 30
        return
    assert encoded["text"] == expected["text"]
    assert encoded["input_ids"] == expected["ids"]
    assert encoded["mask_spans"] == expected["mask_spans"]
    for name, spans in expected["variants"].items():
        assert _encoded(tmp_path, vector, f"deepseek_v4_{name}")["mask_spans"] == spans, name
    full = expected["full_vocab"] or {"ids": expected["ids"], "mask_spans": expected["mask_spans"]}
    encoded = _encoded(tmp_path, vector, full_vocabulary=True)
    assert encoded["input_ids"] == full["ids"]
    assert encoded["mask_spans"] == full["mask_spans"]


def test_all_are_there():
    assert len(VECTORS) == 101
    assert sum("error" in vector["recommended"] for vector in VECTORS) == 2
