"""Under `literal` no text of a record can become a special token, wherever it stands; under `full_vocab` it does."""

import json
from collections import Counter

import chats
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streams import tokenizer

from masks import deepseek_v4

pytest.importorskip("deepseek_recipe", reason="the fixed paragraphs of the format come from it")

ADDED = sorted(tokenizer().added_tokens)
#: The ones that tell something apart: all but the many numbered placeholders.
NAMED = [text for text in ADDED if not any(character.isdigit() for character in text)]


def test_the_vocabulary_has_as_many_added_tokens_as_is_known():
    assert len(ADDED) == 1283
    assert len(NAMED) > 30


# ---------------------------------------------------------------------------------------------------- hostile texts

_token = st.one_of(st.sampled_from(NAMED), st.sampled_from(NAMED), st.sampled_from(ADDED))


def _interleaved(pair):
    a, b = pair
    return a[: len(a) // 2] + b + a[len(a) // 2 :]


_cut = st.tuples(_token, st.integers(0, 30))
_piece = st.one_of(
    _token,
    _token.map(lambda token: token * 2),
    _cut.map(lambda cut: cut[0][: cut[1]]),
    _cut.map(lambda cut: cut[0][cut[1] :]),
    st.tuples(_token, _token).map(_interleaved),
    st.sampled_from(["", " ", "\n", "x", "<", "｜", ">", "\n\n"]),
)
hostile_texts = st.lists(_piece, min_size=1, max_size=4).map("".join)

FIELDS = [
    "system", "response_format_key", "response_format_value", "tool_name", "tool_description", "tool_schema_key",
    "tool_schema_value", "user", "reasoning", "content", "call_name", "argument_key", "argument_value",
    "argument_inner", "argument_not_json", "tool_result", "user_part", "reminder", "developer", "last",
]  # fmt: skip


def _record(of):
    """A record with a text in every field that takes one; of: field -> text."""
    tool = {
        "name": of("tool_name"),
        "description": of("tool_description"),
        "parameters": {of("tool_schema_key"): [of("tool_schema_value")]},
    }
    inner = {of("argument_key"): of("argument_value"), "y": [of("argument_inner")], "z": {of("argument_inner"): 1}}
    calls = [
        {"id": "a", "function": {"name": of("call_name"), "arguments": json.dumps(inner)}},
        {"id": "b", "function": {"name": of("call_name"), "arguments": "{" + of("argument_not_json")}},
    ]
    reasoning = {"reasoning_content": of("reasoning")}
    return {
        "messages": [
            {
                "role": "system",
                "content": of("system"),
                "tools": [{"type": "function", "function": tool}],
                "response_format": {of("response_format_key"): of("response_format_value")},
            },
            {"role": "user", "content": of("user")},
            {"role": "assistant", "content": of("content"), **reasoning, "tool_calls": calls},
            {"role": "tool", "tool_call_id": "b", "content": of("tool_result")},
            {"role": "tool", "tool_call_id": "a", "content": of("tool_result")},
            {"role": "user", "content": [{"type": "text", "text": of("user_part")}]},
            {"role": "assistant", "content": of("content"), **reasoning},
            {"role": "latest_reminder", "content": of("reminder")},
            {"role": "developer", "content": "d" + of("developer")},
            {"role": "assistant", "content": of("last"), **reasoning},
        ]
    }


def _harmless(field):
    return field.replace("_", " ")


def _special(ids):
    spelled = chats.spelling_of_token()
    return [token for token in ids if token in spelled]


def _runs(ids):
    """The texts between special tokens; empty ones too."""
    spelled, runs = chats.spelling_of_token(), [[]]
    for token in ids:
        if token in spelled:
            runs.append([])
        else:
            runs[-1].append(token)
    return [chats.decode(run) for run in runs]


def _placed(segments):
    """(special tokens, texts between them) as the renderer placed them."""
    tokens, runs = [], [""]
    for segment in segments:
        if segment.token_id is None:
            runs[-1] += segment.text
        else:
            tokens.append(segment.token_id)
            runs.append("")
    return tokens, runs


@chats.examples(150)
@given(
    texts=st.lists(hostile_texts, min_size=len(FIELDS), max_size=len(FIELDS)),
    mode=st.sampled_from(["chat", "thinking"]),
)
def test_no_text_in_any_field_becomes_a_special_token(texts, mode):
    record = _record(dict(zip(FIELDS, texts, strict=True)).__getitem__)
    ids = chats.ids(record, mode=mode)
    tokens, runs = _placed(chats.segments(record, mode=mode))
    assert _special(ids) == tokens
    assert _runs(ids) == runs
    # And the renderer placed them without looking at the texts.
    assert tokens == _special(chats.ids(_record(_harmless), mode=mode))


@chats.examples(100)
@given(record=chats.any_records(), options=chats.any_options)
def test_special_tokens_are_where_the_renderer_put_them_in_any_record(record, options):
    ids = chats.ids(record, **options)
    assert (_special(ids), _runs(ids)) == _placed(chats.segments(record, **options))


@pytest.mark.parametrize("field", FIELDS)
def test_every_added_token_stays_text_in_each_field(field):
    everything = "".join(ADDED) + " ".join(ADDED)
    record = _record(lambda asked: everything if asked == field else _harmless(asked))
    ids = chats.ids(record, mode="thinking")
    assert _special(ids) == _special(chats.ids(_record(_harmless), mode="thinking"))
    assert chats.text(record, mode="thinking") == chats.decode(ids)


def test_under_full_vocab_every_added_token_becomes_its_id():
    everything = "x".join(ADDED)
    messages = [{"role": "user", "content": everything}, {"role": "assistant", "content": everything}]
    ids = chats.ids({"messages": messages}, full_vocabulary=True)
    structure = [deepseek_v4.BOS, deepseek_v4.USER, deepseek_v4.ASSISTANT, deepseek_v4.THINK_END, deepseek_v4.EOS]
    assert Counter(_special(ids)) == Counter([*tokenizer().added_tokens.values()] * 2 + structure)


@chats.examples(60)
@given(texts=st.lists(hostile_texts, min_size=len(FIELDS), max_size=len(FIELDS)))
def test_under_full_vocab_the_text_is_the_same(texts):
    record = _record(dict(zip(FIELDS, texts, strict=True)).__getitem__)
    ids = chats.ids(record, full_vocabulary=True)
    assert chats.decode(ids) == chats.text(record)
    assert len(_special(ids)) >= len(_special(chats.ids(_record(_harmless))))
