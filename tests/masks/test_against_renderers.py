"""The renderer against the PyPI package `renderers`: a second reading of the release encoder, with token masks.

It encodes text with the added vocabulary and takes tools beside the messages only. Its "high" effort is our "max", and
the tokens it calls sampled are the targets of deepseek_v4.
"""

import logging
from functools import cache

import chats
import pytest
from hypothesis import given
from streams import tokenizer
from tokenizers import Tokenizer

v4 = pytest.importorskip("renderers.deepseek_v4")

logging.getLogger("renderers").setLevel(logging.ERROR)


class _OurTokenizer:
    """The pinned tokenizer.json, as the package asks for one."""

    name_or_path = "deepseek-v4"
    unk_token_id = None
    eos_token_id = 1
    is_fast = True

    def __init__(self):
        self._tokenizer = Tokenizer.from_str(tokenizer().data.decode("utf-8"))

    def encode(self, text, add_special_tokens=False):
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(self, ids, **_):
        return self._tokenizer.decode(ids, skip_special_tokens=False)

    def convert_tokens_to_ids(self, tokens):
        return self._tokenizer.token_to_id(tokens)

    def __call__(self, text, add_special_tokens=False, return_offsets_mapping=True):
        encoding = self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        return {"input_ids": encoding.ids, "offset_mapping": encoding.offsets}


@cache
def _our_tokenizer():
    return _OurTokenizer()


@cache
def _renderer(mode, drop_thinking, reasoning_effort):
    config = v4.DeepSeekV4RendererConfig(
        enable_thinking=mode == "thinking",
        drop_thinking=drop_thinking,
        reasoning_effort="high" if reasoning_effort == "max" else "low",
    )
    return v4.DeepSeekV4Renderer(_our_tokenizer(), config)


def _theirs(record, options):
    rendered = _renderer(**options).render(record["messages"], tools=record.get("tools"), add_generation_prompt=True)
    return rendered.token_ids, [int(sampled) for sampled in rendered.sampled_mask]


@chats.examples(60)
@given(record=chats.usual_records(), options=chats.any_options)
def test_usual_conversations_agree_in_ids_and_mask(record, options):
    assert chats.encoded(record, full_vocabulary=True, **options) == _theirs(record, options)


@chats.examples(80)
@given(record=chats.any_records().filter(lambda record: record["messages"]), options=chats.any_options)
def test_any_conversation_agrees_in_ids(record, options):
    for message in record["messages"]:
        message.pop("tools", None)
    if any(message["role"] == "developer" for message in record["messages"]):
        record.pop("tools", None)  # it would put them on the developer message
    assert chats.ids(record, full_vocabulary=True, **options) == _theirs(record, options)[0]
