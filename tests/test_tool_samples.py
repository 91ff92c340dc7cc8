"""Real tool conversations: they build, and the mask read back from the rows by its transitions is the assistants' text."""

import json
from pathlib import Path

import pytest
from streams import build_in_memory, tokenizer

SAMPLES = Path(__file__).parents[2] / "shared" / "samples"
pytest.importorskip("deepseek_recipe")
pytestmark = pytest.mark.skipif(not SAMPLES.exists(), reason="the sample conversations are not on this machine")
EOS = "<｜end▁of▁sentence｜>"


def _records(name):
    return [json.loads(line) for line in (SAMPLES / name).read_bytes().split(b"\n") if line]


def _calls(message):
    """A message's tool calls as the format spells them, said once more."""
    if not message.get("tool_calls"):
        return ""
    invokes = []
    for call in message["tool_calls"]:
        arguments = json.loads(call["function"]["arguments"])
        parameters = [
            f'<｜DSML｜parameter name="{key}" string="{str(isinstance(value, str)).lower()}">'
            f"{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}</｜DSML｜parameter>"
            for key, value in arguments.items()
        ]
        invokes.append(
            f'<｜DSML｜invoke name="{call["function"]["name"]}">\n' + "\n".join(parameters) + "\n</｜DSML｜invoke>"
        )
    return "\n\n<｜DSML｜tool_calls>\n" + "\n".join(invokes) + "\n</｜DSML｜tool_calls>"


def _assistant_texts(record, mode):
    return [
        (f"{message.get('reasoning_content') or ''}</think>" if mode == "thinking" else "")
        + (message["content"] or "")
        + _calls(message)
        + EOS
        for message in record["messages"]
        if message["role"] == "assistant"
    ]


def _trained_texts(ids, mask):
    """Decoded stretches of ones, by nothing but the transitions of the mask."""
    texts, start = [], None
    for t, flag in enumerate([*mask, 0]):
        if flag and start is None:
            start = t
        elif not flag and start is not None:
            texts.append(tokenizer().full_vocabulary.decode(ids[start:t]))
            start = None
    return texts


@pytest.mark.parametrize("mode", ["chat", "thinking"])
@pytest.mark.parametrize("name", ["glaive_toolcall_en.jsonl", "reason_tool_use_50.jsonl"])
def test_the_mask_read_back_is_exactly_the_assistants_text(name, mode):
    records = _records(name)
    total = build_in_memory(records, row_tokens=2, seed=3, mode=mode).counts["tokens"]
    built = build_in_memory(records, row_tokens=total, seed=3, mode=mode)
    assert built.counts["used"] == len(records)
    ((ids, mask),) = built.rows
    expected = [text for row in built.doc_rows[0] for text in _assistant_texts(records[row], mode)]
    assert _trained_texts(ids, mask) == expected


@pytest.mark.parametrize("options", [{"tokens": "full_vocab"}, {"mode": "thinking", "drop_thinking": True}])
def test_nothing_is_lost_under_other_options(options):
    records = _records("reason_tool_use_50.jsonl")
    counts = build_in_memory(records, row_tokens=1024, seed=3, **options).counts
    assert counts["used"] == len(records)
    assert counts["tokens"] == counts["rows_cut"] * 1024 + counts["tail_tokens"]
