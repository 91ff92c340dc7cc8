"""Faults that others have had with the DeepSeek-V4 format. Each test names the reports it answers."""

import hashlib
import json
from itertools import pairwise, product
from typing import get_args, get_type_hints

import numpy as np
import pytest
from field_support import (
    ASSISTANT,
    BOS,
    CLOCK,
    DSML,
    EOS,
    HEADER,
    OURS,
    THINK,
    THINK_END,
    TOOL_TURN,
    USER,
    assistant,
    by_hand,
    choices,
    decode,
    encode_with_tokenizer,
    names_in,
    options_of,
    plain,
    system,
    user,
    whole,
)
from streams import build_in_memory, tokenizer
from support import records, write_jsonl

from databuild.commands import fixed as command_line
from databuild.config import BuildSpec
from databuild.errors import UsageError
from databuild.recipe import check_options
from masks.policy import MASK_TYPES
from train.batches import labels_and_mask

BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
PRIMES = [
    system("Be exact."),
    user("Is 7 prime?"),
    assistant("Yes.", reasoning_content="Only 1 and 7 divide it."),
    user("And 9?"),
    assistant("No.", reasoning_content="3 * 3."),
]
FIRST = f"{BEGIN}Be exact.<｜User｜>Is 7 prime?<｜Assistant｜>"
THOUGHT = "<think>Only 1 and 7 divide it."


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], f"{FIRST}</think>Yes.{END}<｜User｜>And 9?<｜Assistant｜></think>"),
        (["--mode", "thinking"], f"{FIRST}{THOUGHT}</think>Yes.{END}<｜User｜>And 9?<｜Assistant｜><think>"),
        (
            ["--mode", "thinking", "--drop-thinking"],
            f"{FIRST}</think>Yes.{END}<｜User｜>And 9?<｜Assistant｜><think>",
        ),
        (
            ["--mode", "thinking", "--reasoning-effort", "high"],
            f"{FIRST}{THOUGHT}</think>Yes.{END}<｜User｜>And 9?<｜Assistant｜><think>",
        ),
        (
            ["--mode", "thinking", "--reasoning-effort", "max"],
            "sha256 db5548b59464fe4655a225b485503f7db95bf6e375e8ed126d663863e3e88cb6",
        ),
    ],
    ids=["chat", "thinking", "drop", "high", "max"],
)
def test_every_mode_renders_as_written_here(cli, tmp_path, options, expected):
    """https://github.com/GDzhu01/vllm-ascend-deepseekv4/issues/72

    Modes, effort and the open header of an unanswered turn are in the format; a turn with its answer adds just that.
    """
    if "max" in options:
        pytest.importorskip("deepseek_recipe")
    path = write_jsonl(tmp_path / "c.jsonl", [{"messages": PRIMES[:-1]}, {"messages": PRIMES}])
    asked, answered = (json.loads(line)["text"] for line in cli("encode", path, *options).out.splitlines())
    if expected.startswith("sha256 "):
        assert asked.startswith(f"{BEGIN}Reasoning Effort: Absolute maximum")
        assert hashlib.sha256(asked.encode()).hexdigest() == expected.removeprefix("sha256 ")
    else:
        assert asked == expected
    assert answered == f"{asked}{'3 * 3.</think>' if 'thinking' in options else ''}No.{END}"


def test_the_loss_of_a_first_step_is_that_of_the_targets():
    """https://github.com/NVIDIA/Megatron-LM/pull/5682

    The loss of a small bigram model over rows as a trainer sees them equals the mean over (token before, target) of the
    conversations; a packing that forgets the shift is far away from it.
    """
    built = build_in_memory(records(60), row_tokens=128, **options_of())
    ids = np.array([row for row, _ in built.rows], np.int32)
    mask = np.array([flags for _, flags in built.rows], np.uint8)
    vocabulary, compact = np.unique(ids, return_inverse=True)
    compact = compact.reshape(ids.shape)
    counts = np.ones((len(vocabulary),) * 2)
    np.add.at(counts, (compact[:, :-1], compact[:, 1:]), 5.0)  # it has learned which token follows which
    nll = -np.log(counts / counts.sum(1, keepdims=True))

    labels, label_mask = labels_and_mask(ids, mask)
    known = np.searchsorted(vocabulary, labels) % len(vocabulary)
    loss = (nll[compact, known] * label_mask).sum() / label_mask.sum()

    pairs = [nll[compact[r, t - 1], compact[r, t]] for r in range(len(ids)) for t in range(1, 128) if mask[r, t]]
    assert loss == pytest.approx(sum(pairs) / len(pairs), rel=1e-6)
    unshifted = (nll[compact, compact] * mask).sum() / mask.sum()
    assert abs(unshifted - loss) > 1


def test_text_is_encoded_in_one_pass_and_not_by_pieces():
    """https://github.com/PrimeIntellect-ai/renderers/pull/140

    Ids, not texts, are compared: those of the whole rendered string at once. Texts that join without a special token
    between them (system and tools, the users of one turn, tool results, a call's tags and arguments) are one run.
    """
    joined = [system("One. "), system("Two."), user("a"), user(" b"), user("\nc"), assistant("d"), assistant("efg")]
    data = [*records(150), {"messages": joined}, {"messages": TOOL_TURN}]
    try:
        import deepseek_recipe  # noqa: F401
    except ImportError:
        pass
    else:
        data.append({"messages": TOOL_TURN, "tools": [CLOCK]})
    made = whole(*data)
    assert tokenizer().full_vocabulary.encode([decode(made.ids)])[0].tolist() == made.ids
    by_pieces = [token for message in joined for token in plain(message["content"])]
    assert by_pieces != [token for token in whole(joined).ids if token not in (BOS, EOS, USER, *HEADER)]


RENDERING = (
    "mode",
    "drop_thinking",
    "reasoning_effort",
    "headerless",
    "history",
    "unanswered",
    "tokens",
    "separator",
    "bos",
)
DEFAULTS = tuple(BuildSpec.model_fields[name].default for name in RENDERING)


def _accepted(options):
    try:
        check_options({**options, "loss_mask_type": "deepseek_v4"})
    except UsageError:
        return False
    return True


def test_every_combination_of_options_is_checked():
    """https://github.com/PrimeIntellect-ai/renderers/pull/81

    The matrix is made from the spec, so no option can stay out of it: each combination builds, and each value of each
    option changes some stream, so none is ignored.
    """
    pytest.importorskip("deepseek_recipe")
    not_of_the_stream = {
        "kind", "row_tokens", "seed", "rows", "format", "format_version", "on_invalid", "loss_mask_type",
        "loss_mask_version", "permutation", "include_sources", "exclude_sources", "columns", "tokenizer_sha256", "sources",
    }  # fmt: skip
    assert set(RENDERING) | not_of_the_stream == set(BuildSpec.model_fields)
    probes = [
        PRIMES,
        PRIMES[:-1],
        [system("S"), assistant("headerless")],
        [user("</think>"), assistant("x")],
        PRIMES[:-1],
    ]
    streams = {}
    for values in product(*map(choices, RENDERING)):
        options = dict(zip(RENDERING, values, strict=True))
        # How conversations are joined is not combined with how they are rendered.
        if _accepted(options) and (values[:-2] == DEFAULTS[:-2] or values[-2:] == DEFAULTS[-2:]):
            records_of = [{"messages": messages} for messages in probes]
            built = build_in_memory(records_of, row_tokens=8, **options_of(**options))
            streams[values] = tuple((tuple(ids), tuple(mask)) for ids, mask in built.rows)
    assert len(streams) > 150
    for place, name in enumerate(RENDERING):
        by_rest = {}
        for values, stream in streams.items():
            by_rest.setdefault(values[:place] + values[place + 1 :], {})[values[place]] = stream
        for one in choices(name):
            for other in choices(name):
                if one == other or {one, other} == {None, "high"}:  # without a paragraph, high is the same as none
                    continue
                both = [found for found in by_rest.values() if one in found and other in found]
                assert any(found[one] != found[other] for found in both), (name, one, other)


@pytest.mark.parametrize("name", [n for n in RENDERING if n != "drop_thinking"])
def test_every_value_of_an_option_has_its_flag(name):
    """https://github.com/PrimeIntellect-ai/renderers/pull/81"""
    hints = get_type_hints(command_line.fixed)
    given = [v for value in (hints[name], *get_args(hints[name])) for v in get_args(value) if isinstance(v, str)]
    assert set(given) == {value for value in choices(name) if value is not None}


def test_typed_special_tokens_stay_text():
    """https://github.com/deepseek-ai/deepseek-recipe/issues/5

    All 1,283 added tokens spelled by the user, the system and the assistant: control ids stand only where the format puts
    them, no text is lost, and the conversation is counted.
    """
    spelled = list(tokenizer().added_tokens)
    assert len(spelled) == 1283
    special = set(tokenizer().added_tokens.values())
    for text in ("".join(spelled), " ".join(spelled)):
        made = whole([system(text), user(text), assistant(text)])
        assert [token for token in made.ids if token in special] == [BOS, USER, *HEADER, EOS]
        assert decode(made.ids) == f"{BEGIN}{text}<｜User｜>{text}<｜Assistant｜></think>{text}{END}"
        assert made.trained == [text + END]
        assert made.counts["noted"] == {"special_text": 1}
    typed = whole([user(spelled[3]), assistant("x")], [user("x"), assistant("x")])
    assert typed.counts["noted"] == {"special_text": 1}


def _flags_of(made, token):
    return [flag for found, flag in zip(made.ids, made.mask, strict=True) if found == token]


def test_each_token_of_a_turn_has_its_weight():
    """https://github.com/fw-ai/cookbook/pull/420

    EOS is trained, headers and the mark that opens an answer are not; the `</think>` that the model itself writes is; a
    tool call is trained with its tags, a tool result is not.
    """
    thinking = whole(PRIMES, mode="thinking")
    assert (thinking.ids, thinking.mask) == by_hand(
        BOS, "Be exact.", USER, "Is 7 prime?", ASSISTANT, THINK, ("Only 1 and 7 divide it.", THINK_END, "Yes.", EOS),
        USER, "And 9?", ASSISTANT, THINK, ("3 * 3.", THINK_END, "No.", EOS),
    )  # fmt: skip
    chat = whole(PRIMES)
    assert _flags_of(chat, EOS) == [1, 1] and _flags_of(chat, THINK_END) == [0, 0]
    empty = whole([user("Hi"), assistant("Yo")], mode="thinking")
    assert (empty.ids, empty.mask) == by_hand(BOS, USER, "Hi", ASSISTANT, THINK, (THINK_END, "Yo", EOS))
    tools = whole(TOOL_TURN)
    assert [_flags_of(tools, token) for token in (DSML, ASSISTANT, EOS)] == [[1] * 6, [0, 0], [1, 1]]
    assert "<tool_result>half past nine</tool_result>" in "".join(tools.untrained)


def _official(recipe, messages, *, thinking, prefix):
    """Messages for the official encoder. prefix: the last answer is rendered as far as it goes, so without EOS."""
    kinds = {"system": recipe.SystemMessage, "user": recipe.UserMessage}
    made = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            made.append(recipe.ToolMessage(message["content"], message["tool_call_id"]))
        elif message["role"] == "assistant":
            calls = [
                recipe.ToolCall(call["id"], call["function"]["name"], call["function"]["arguments"])
                for call in message.get("tool_calls", [])
            ]
            made.append(
                recipe.AssistantMessage(
                    message["content"],
                    message.get("reasoning_content", "") if thinking else None,
                    calls or None,
                    prefix=prefix and place == len(messages) - 1,
                )
            )
        else:
            made.append(kinds[message["role"]](message["content"]))
    return made


def _prompt(recipe, messages, *, thinking, prefix=False, tools=()):
    definitions = [recipe.ToolDefinition(**tool["function"]) for tool in tools]
    conversation = recipe.Conversation(
        _official(recipe, messages, thinking=thinking, prefix=prefix),
        thinking_mode=thinking,
        reasoning_effort="low" if thinking else None,
        tools=definitions or None,
    )
    return recipe.DeepseekV4Encoding().render_conversation(conversation).prompt


def test_history_without_its_thinking_is_one_example_for_each_turn(cli, tmp_path):
    """https://github.com/fw-ai/cookbook/pull/633

    Each example is what serving renders at that turn and trains only the turn's own answer. Without dropped thinking
    there is nothing to split, and the option is refused.
    """
    recipe = pytest.importorskip("deepseek_recipe")
    options = {"mode": "thinking", "drop_thinking": True, "history": "split_turns"}
    made = whole(PRIMES, **options)
    edges = [*made.doc_starts, len(made.ids)]
    assert len(made.doc_starts) == 2
    for (start, end), length in zip(pairwise(edges), (3, 5), strict=True):
        served = _prompt(recipe, PRIMES[: length - 1], thinking=True)
        last = PRIMES[length - 1]
        answer = f"{last['reasoning_content']}</think>{last['content']}{END}"
        assert decode(made.ids[start:end]) == served + answer
        trained = [token for token, flag in zip(made.ids[start:end], made.mask[start:end], strict=True) if flag]
        assert decode(trained) == answer
    path = write_jsonl(tmp_path / "c.jsonl", [{"messages": PRIMES}])
    for more in ([], ["--mode", "thinking"]):
        cli("fixed", "--source", path, "--out", tmp_path / "x", "--history", "split_turns", *more).error(2, "usage")


def test_the_format_of_v41_is_not_taken_for_that_of_v4(cli, tmp_path):
    """https://github.com/sgl-project/SpecForge/pull/887

    It is refused by name, and so is a tokenizer that has its `<｜System｜>` token. The format is part of every spec.
    """
    path = write_jsonl(tmp_path / "c.jsonl", records(3))
    for command in (("encode", path), ("fixed", "--source", path, "--out", tmp_path / "x")):
        assert "V4.1" in cli(*command, "--format", "deepseek_v41").error(2, "usage")["what"]
    parsed = json.loads(tokenizer().data)
    parsed["added_tokens"][-1]["content"] = "<｜System｜>"
    done = encode_with_tokenizer(tmp_path, json.dumps(parsed, ensure_ascii=False).encode())
    assert done.returncode == 6 and "not the pinned one" in done.stderr
    made = whole([system("Be brief."), user("Hi"), assistant("Yo")])
    assert (made.ids, made.mask) == by_hand(BOS, "Be brief.", USER, "Hi", *HEADER, ("Yo", EOS))
    spec = BuildSpec(row_tokens=8, seed=0, rows=None, tokenizer_sha256="", sources=[]).to_dict()
    assert (spec["format"], spec["format_version"]) == ("deepseek_v4", 1)


@pytest.mark.parametrize("thinking", [False, True], ids=["chat", "thinking"])
def test_the_bytes_are_those_of_the_official_encoder(thinking):
    """https://github.com/sgl-project/sglang/pull/23623

    V4 has no chat template that one could fall back to: tools, results, reasoning and turns as the official code prints
    them.
    """
    recipe = pytest.importorskip("deepseek_recipe")
    mode = "thinking" if thinking else "chat"
    with_reasoning = [*TOOL_TURN[:2], {**TOOL_TURN[2], "reasoning_content": "A tool knows."}, *TOOL_TURN[3:]]
    reasoned = with_reasoning if thinking else TOOL_TURN
    for messages, tools in ((PRIMES, ()), (reasoned, (CLOCK,)), (TOOL_TURN, (CLOCK, CLOCK))):
        # After a last answer the official code opens the next one; in thinking mode that would cost it its reasoning.
        expected = _prompt(recipe, messages, thinking=thinking, prefix=thinking, tools=tools)
        expected = expected + END if thinking else expected.removesuffix("<｜Assistant｜></think>")
        record = {"messages": messages, "tools": list(tools) or None}
        made = whole(record, mode=mode, drop_thinking=thinking)
        assert decode(made.ids) == expected
        assert made.ids == tokenizer().full_vocabulary.encode([expected])[0].tolist()
    for path in OURS:
        assert not {"apply_chat_template", "chat_template", "jinja2"} & set(names_in(path)), path


def test_developers_of_the_history_go_with_its_thinking():
    """https://github.com/vllm-project/vllm/pull/54854

    And only then: in chat mode, and where thinking is kept, they stay. What is dropped is counted.
    """
    developer = {"role": "developer", "content": "Answer in French."}
    messages = [
        user("Hello"),
        developer,
        assistant("Bonjour", reasoning_content="French."),
        user("Bye"),
        assistant("Salut"),
    ]
    dropped = whole(messages, mode="thinking", drop_thinking=True)
    assert decode(dropped.ids) == (
        f"{BEGIN}<｜User｜>Hello<｜Assistant｜></think>Bonjour{END}<｜User｜>Bye<｜Assistant｜><think></think>Salut{END}"
    )
    assert dropped.counts["noted"]["developer_dropped"] == 1
    for options in ({}, {"mode": "thinking"}):
        kept = whole(messages, **options)
        assert f"{BEGIN}<｜User｜>Hello<｜User｜>Answer in French.<｜Assistant｜>" in decode(kept.ids)
        assert "developer_dropped" not in kept.counts["noted"]
    last = whole([user("Hello"), assistant("Hi"), developer, assistant("Bonjour")], mode="thinking", drop_thinking=True)
    assert "<｜User｜>Answer in French.<｜Assistant｜><think></think>Bonjour" in decode(last.ids)


def test_masks_are_defined_for_every_mode():
    """https://github.com/PrimeIntellect-ai/renderers/pull/81

    The matrix of mask types and modes: all render the same ids, and none trains what no assistant wrote but the two that
    say so.
    """
    for mode in choices("mode"):
        ids = {name: whole(PRIMES, mask_type=name, mode=mode).ids for name in MASK_TYPES}
        assert all(found == ids["deepseek_v4"] for found in ids.values())
        for name in set(MASK_TYPES) - {"full", "all_but_system"}:
            trained = "".join(whole(PRIMES, mask_type=name, mode=mode).trained)
            assert not any(text in trained for text in ("Is 7 prime?", "And 9?", "Be exact."))
