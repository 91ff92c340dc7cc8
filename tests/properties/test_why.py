"""Why a token is trained: every token of every row gets a reason, and the reason agrees with the mask that is stored."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.strategies import records
from streams import MemorySource, tokenizer

from databuild.build import Stream
from databuild.config import BuildSpec
from databuild.conversations import explained
from databuild.errors import IntegrityError
from databuild.inspect.origin import Tracer
from databuild.inspect.text import token_text
from databuild.recipe import how_of
from databuild.rows import concat, select
from masks.conversation import Conversation
from masks.parse import parse
from masks.policy import MASK_TYPES

SOME = settings(max_examples=25, deadline=None)


def spec_of(**options):
    return BuildSpec(tokenizer_sha256="", sources=[], **{"rows": None, "seed": 3, "row_tokens": 64, **options})


def documents(source, spec):
    """(row, source row, start, ids, mask) of every document of every row."""
    parts = list(Stream(source, spec, tokenizer(), batch_conversations=1024))
    if not parts:
        return
    rows = concat(parts)
    for i in range(len(rows)):
        row = select(rows, i, i + 1)
        starts = row.doc_starts.tolist()
        for start, stop, source_row in zip(starts, [*starts[1:], spec.row_tokens], row.doc_rows.tolist(), strict=True):
            yield i, source_row, start, row.input_ids[0, start:stop], row.loss_mask[0, start:stop]


def check(reasons, start, ids, mask):
    """Reasons follow each other without a gap, and say what the mask says."""
    assert [r.start for r in reasons] == [start, *(r.stop for r in reasons[:-1])]
    assert reasons[-1].stop == start + len(ids)
    said = np.concatenate([np.full(r.stop - r.start, r.trained) for r in reasons])
    assert said.tolist() == mask.astype(bool).tolist()
    assert all(r.why for r in reasons)


@SOME
@given(
    records(max_size=4),
    st.sampled_from([3, 16, 64]),
    st.sampled_from(["ensure", "always", "none"]),
    st.sampled_from(["keep", "first", "strip"]),
    st.sampled_from(sorted(MASK_TYPES)),
    st.sampled_from(["literal", "full_vocab"]),
    st.sampled_from(["reference", "official"]),
)
def test_reasons_agree_with_the_rows(data, size, separator, bos, mask_type, tokens, headerless):
    spec = spec_of(
        row_tokens=size, separator=separator, bos=bos, loss_mask_type=mask_type, tokens=tokens, headerless=headerless
    )
    source = MemorySource(data)
    tracer = Tracer(source, spec, tokenizer())
    for _, source_row, start, ids, mask in documents(source, spec):
        check(tracer.trace(source_row, start, ids, mask, "here"), start, ids, mask)


@SOME
@given(records(max_size=6), st.sampled_from(sorted(MASK_TYPES)))
def test_reasons_are_the_segments_of_the_conversation(data, mask_type):
    spec = spec_of(loss_mask_type=mask_type, row_tokens=96)
    source, text, how = MemorySource(data), token_text(tokenizer()), how_of(spec)
    tracer = Tracer(source, spec, tokenizer())
    for _, source_row, start, ids, mask in documents(source, spec):
        reasons = tracer.trace(source_row, start, ids, mask, "here")
        if start == 0 or start + len(ids) == spec.row_tokens or any(r.kind == "edge" for r in reasons):
            continue  # cut off, or a token that belongs to two segments
        parsed = parse({"messages": None, **data[source_row]})
        assert isinstance(parsed, Conversation)
        expected = [
            (s["kind"], s["message"], s["trained"], s["why"], s["text"]) for s in explained(parsed, how) if s["text"]
        ]
        found = [
            (r.kind, r.message, r.trained, r.why, text.bytes_of(ids[r.start - start : r.stop - start]).decode())
            for r in reasons
            if r.kind != "separator"
        ]
        if [part[-1] for part in found] == [part[-1] for part in expected]:  # no token holds ends of two segments
            assert found == expected
        assert "".join(part[-1] for part in found) == "".join(part[-1] for part in expected)


THINKING = [
    {
        "messages": [
            {"role": "user", "content": f"Question {n}: is it cold?"},
            {"role": "assistant", "reasoning_content": "Look it up.", "content": "One moment."},
            {"role": "user", "content": "And now?"},
            {"role": "assistant", "reasoning_content": f"Cold, {n}.", "content": "Yes.", "loss": n % 2},
        ]
    }
    for n in range(12)
]


@pytest.mark.parametrize("options", [
    {"mode": "thinking"},
    {"mode": "thinking", "drop_thinking": True},
    {"mode": "thinking", "drop_thinking": True, "history": "split_turns"},
    {"mode": "thinking", "loss_mask_type": "deepseek_v4_last_turn"},
    {"mode": "chat", "loss_mask_type": "deepseek_v4_no_eos"},
], ids=json.dumps)  # fmt: skip
def test_reasoning_split_turns_and_silenced_messages(options):
    spec, source = spec_of(**options), MemorySource(THINKING)
    tracer = Tracer(source, spec, tokenizer())
    kinds, whys = set(), set()
    for _, source_row, start, ids, mask in documents(source, spec):
        reasons = tracer.trace(source_row, start, ids, mask, "here")
        check(reasons, start, ids, mask)
        kinds |= {r.kind for r in reasons}
        whys |= {r.why for r in reasons}
    assert {"user", "content", "eos"} <= kinds
    assert ("reasoning" in kinds) == (options["mode"] == "thinking")
    assert "its message says so (step_loss_mask or loss)" in whys


@SOME
@given(records(max_size=8), st.data())
def test_a_row_that_its_conversation_does_not_give_is_refused(data, draw):
    spec, source = spec_of(row_tokens=48), MemorySource(data)
    tracer = Tracer(source, spec, tokenizer())
    found = [d for d in documents(source, spec) if d[2] > 0]
    if not found:
        return
    _, source_row, start, ids, mask = draw.draw(st.sampled_from(found))
    place = draw.draw(st.integers(0, len(ids) - 1))
    ids, mask = ids.copy(), mask.copy()
    if draw.draw(st.booleans()):
        ids[place] = (ids[place] + 1) % 1000
    else:
        mask[place] ^= 1
    with pytest.raises(IntegrityError):
        tracer.trace(source_row, start, ids, mask, "here")


STRADDLING = [
    [{"role": "system", "content": "Hel"}, {"role": "assistant", "content": "lo there"}],
    [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": "Hel", "wo_eos": True},
        {"role": "system", "content": "l"},
        {"role": "assistant", "content": "o there"},
    ],
    [{"role": "assistant", "content": "Hel", "wo_eos": True}, {"role": "assistant", "content": "lo", "loss": 0}],
]


@pytest.mark.parametrize("messages", STRADDLING, ids=len)
@pytest.mark.parametrize("mask_type", sorted(MASK_TYPES))
def test_a_token_over_the_edge_of_trained_text_is_said_to_be_one(messages, mask_type):
    spec = spec_of(row_tokens=7, loss_mask_type=mask_type)
    source = MemorySource([{"messages": messages} for _ in range(20)])
    tracer = Tracer(source, spec, tokenizer())
    kinds = set()
    for _, source_row, start, ids, mask in documents(source, spec):
        reasons = tracer.trace(source_row, start, ids, mask, "here")
        check(reasons, start, ids, mask)
        kinds |= {r.kind for r in reasons}
    if kinds and mask_type != "full":  # where the second half is silenced there may be nothing to train, and so no row
        assert "edge" in kinds
