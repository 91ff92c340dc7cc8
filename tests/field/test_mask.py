"""Loss-mask faults that others have had. Each test names the reports it answers."""

import ast
import hashlib
import inspect
import json
import random
from dataclasses import replace

import numpy as np
import pytest
from field_support import (
    ASSISTANT,
    BOS,
    EOS,
    EOT,
    HEADER,
    OURS,
    PAD,
    ROOT,
    THINK_END,
    TOOL_TURN,
    USER,
    assistant,
    by_hand,
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

from databuild.encode import Encoder
from databuild.errors import IntegrityError
from databuild.pieces import How
from databuild.recheck import check_rows
from databuild.rows import read_groups
from masks.policy import MASK_TYPES
from train.batches import labels_and_mask

CALL = (
    '\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name="clock">\n'
    '<｜DSML｜parameter name="zone" string="true">Oslo</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>'
)
CUT_FILES = ("shards.py", "journal.py")  # they cut files off, not texts
EOS_TEXT = "<｜end▁of▁sentence｜>"


def test_only_what_the_assistant_wrote_is_trained():
    """https://github.com/NVIDIA-NeMo/Megatron-Bridge/issues/3359

    No mask falls back to all ones: of three roles and a tool result only the assistant's own text is trained.
    """
    made = whole(TOOL_TURN)
    assert made.trained == [f"I will look.{CALL}{EOS_TEXT}", f"It is half past nine.{EOS_TEXT}"]
    assert "".join(made.untrained) == (
        "<｜begin▁of▁sentence｜>Answer in one sentence.<｜User｜>What time is it in Oslo?<｜Assistant｜></think>"
        "<｜User｜><tool_result>half past nine</tool_result><｜Assistant｜></think>"
    )
    everything = whole(TOOL_TURN, mask_type="full")
    assert everything.mask == [0, *[1] * (len(everything.ids) - 1)]


def test_tool_results_are_never_trained():
    """https://github.com/RUC-NLPIR/ARPO/issues/9

    But where the name of the mask says so: `full`, and `all_but_system`.
    """
    trains_results = set()
    for name in MASK_TYPES:
        made = whole(TOOL_TURN, mask_type=name)
        text = "".join(made.trained)
        if "half past nine</tool_result>" in text:
            trains_results.add(name)
        else:
            assert "<tool_result>" not in text and text.count("half past nine") <= 1
            assert "half past nine</tool_result>" in "".join(made.untrained)
    assert trains_results == {"full", "all_but_system"}


def test_a_tool_call_turn_is_trained_to_stop():
    """https://github.com/PrimeIntellect-ai/prime-rl/pull/2644

    The stop token of a turn that only calls tools is a target of that turn, and the tool turn after it begins untrained.
    """
    call = {"role": "assistant", "content": "", "tool_calls": TOOL_TURN[2]["tool_calls"]}
    made = whole([*TOOL_TURN[:2], call, *TOOL_TURN[3:]])
    assert made.trained[0] == CALL + EOS_TEXT
    stop = made.ids.index(EOS)
    assert (made.ids[stop + 1], made.mask[stop], made.mask[stop + 1]) == (USER, 1, 0)


def test_the_first_answer_token_is_a_target_after_the_one_shift():
    """https://github.com/OpenRLHF/OpenRLHF/issues/973
    https://github.com/verl-project/verl/pull/3287

    By hand: the last token of the prompt has the first answer token as its label, EOS is the last label.
    """
    made = whole([user("Hi"), assistant("Yo")])
    assert made.ids == [BOS, USER, *plain("Hi"), ASSISTANT, THINK_END, *plain("Yo"), EOS]
    assert made.mask == [0, 0, 0, 0, 0, 1, 1]
    labels, label_mask = labels_and_mask(np.array(made.ids, np.int32), np.array(made.mask, np.uint8))
    assert label_mask.tolist() == [0, 0, 0, 0, 1, 1, 0]
    assert labels[4:6].tolist() == [*plain("Yo"), EOS]


def test_labels_and_mask_speak_of_the_same_token():
    """https://github.com/swiss-ai/Megatron-LM/pull/91

    In every row, wherever the label mask is set, the label is the next token and that token is a target.
    """
    built = build_in_memory(records(200), row_tokens=64, **options_of())
    ids, mask = (np.array(values) for values in zip(*built.rows, strict=True))
    labels, label_mask = labels_and_mask(ids.astype(np.int32), mask.astype(np.uint8))
    assert label_mask.sum() == mask.sum() > 1000
    for row, position in np.argwhere(label_mask == 1).tolist():
        assert labels[row, position] == ids[row, position + 1]
        assert mask[row, position + 1] == 1


def test_the_shift_lives_in_one_place():
    """https://github.com/verl-project/verl/pull/5362

    No other function slices masks or labels by one, but exports, whose alignments tests/export compares with each other.
    """
    found = []
    for path in OURS:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Subscript):
                continue
            sliced = {name for n in ast.walk(node.value) if (name := getattr(n, "id", getattr(n, "attr", None)))}
            if not any(part in name for name in sliced for part in ("mask", "label")):
                continue
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            if any(isinstance(p, ast.Slice) and ast.unparse(p) in ("1:", ":-1") for p in parts):
                found.append(path.relative_to(ROOT).as_posix())
    own = {name for name in found if not name.startswith(("databuild/export/", "train/miles/"))}
    assert own <= {"databuild/reading/rowviews.py"}
    assert "databuild/export/bridge.py" in found  # the search finds what it looks for


@pytest.mark.parametrize("num_words", [0, 3, 2000])
def test_the_length_of_the_system_prompt_moves_nothing(num_words):
    """https://github.com/THUDM/slime/issues/1476"""
    prompt = "rule " * num_words
    before = [system(prompt)] if num_words else []
    made = whole([*before, user("Which number?"), assistant("Seven.")])
    assert (made.ids, made.mask) == by_hand(BOS, prompt, USER, "Which number?", *HEADER, ("Seven.", EOS))


def test_another_tokenizer_is_refused(tmp_path):
    """https://github.com/THUDM/slime/pull/1742
    https://github.com/allenai/open-instruct/issues/1882

    One that differs in a few characters is no other model family to fall back for: its digest is not the pinned one.
    """
    altered = tokenizer().data.replace("<｜Assistant｜>".encode(), "<｜Assistent｜>".encode())
    assert altered != tokenizer().data
    done = encode_with_tokenizer(tmp_path, altered)
    assert done.returncode == 6
    assert "tokenizer.json is not the pinned one" in done.stderr
    assert tokenizer().record.tokenizer_json_sha256 in done.stderr
    assert encode_with_tokenizer(tmp_path, tokenizer().data).returncode == 0


def test_an_unknown_mask_is_refused_with_the_known_ones(cli, tmp_path):
    """https://github.com/THUDM/slime/pull/1742

    There is no fallback to a default mask.
    """
    path = write_jsonl(tmp_path / "c.jsonl", records(5))
    for command in (("encode", path), ("fixed", "--source", path, "--out", tmp_path / "rows")):
        error = cli(*command, "--loss-mask-type", "deepseek_v5").error(2, "usage")
        assert error["expected"] == " | ".join(MASK_TYPES)
    assert not (tmp_path / "rows").exists()


# The first 16 digits of the sha256 of the loss mask of `_pinned_conversations`. Who changes what is trained raises the
# version of the mask type in masks/policy.py, and only then the digest here.
PINNED = {
    ("deepseek_v4", 1): "3dd449eac78cc804",
    ("deepseek_v4_last_turn", 1): "7b356dd824958b4f",
    ("deepseek_v4_think_prefix", 1): "5aa4d026feff35b6",
    ("deepseek_v4_content", 1): "df4a6dba057555ba",
    ("deepseek_v4_no_reasoning", 1): "306cc1927ad69a23",
    ("deepseek_v4_no_eos", 1): "240dfda0720eaef0",
    ("all_but_system", 1): "0bb6d4984a6a7006",
    ("full", 1): "250aad0ac7d009d5",
}


def _pinned_conversations():
    thinking = [user("Is 7 prime?"), assistant("Yes.", reasoning_content="No divisor but 1 and 7.")]
    silenced = [user("Say a."), assistant("b", step_loss_mask=0), user("Again."), assistant("a")]
    return [*(record["messages"] for record in records(60)), TOOL_TURN, thinking, silenced]


def test_a_changed_mask_is_another_version():
    """https://github.com/karpathy/nanochat/issues/570
    https://github.com/allenai/open-instruct/issues/1882

    The masks of a small stream are pinned for every type, so no change of the code can lose one silently.
    """
    found = {}
    for name, mask_type in MASK_TYPES.items():
        made = whole(*_pinned_conversations(), mask_type=name, mode="thinking")
        found[name, mask_type.version] = hashlib.sha256(bytes(made.mask)).hexdigest()[:16]
    assert found == PINNED


VERIFIED = {
    "chat": [],
    "thinking": ["--mode", "thinking"],
    "split": ["--mode", "thinking", "--drop-thinking", "--history", "split_turns"],
    "strip": ["--bos", "strip", "--separator", "always"],
    "official": ["--headerless", "official", "--bos", "first"],
    "full_vocab": ["--tokens", "full_vocab"],
}


def _conversations_of_every_shape():
    thinking = [user("Is 7 prime?"), assistant("Yes.", reasoning_content="No divisor but 1 and 7."), user("And 9?")]
    silenced = [user("Say a."), assistant("b", step_loss_mask=0), user("Again."), assistant("a")]
    unfinished = [user("Count."), assistant("1, 2, ", wo_eos=True), system("Go on."), assistant("3")]
    task = [
        {**user("Tides."), "task": "title"},
        assistant("On tides"),
        {"role": "latest_reminder", "content": "Brief."},
    ]
    more = [TOOL_TURN, thinking, [*thinking, assistant("No.", reasoning_content="3 * 3.")], silenced, task]
    return [*records(60), *({"messages": messages} for messages in more)], {"messages": unfinished}


@pytest.mark.parametrize("name", VERIFIED)
def test_verify_accepts_what_is_right_in_every_mode(cli, tmp_path, name):
    """https://github.com/allenai/open-instruct/issues/1800

    A check of the transitions that refuses sound rows is switched off by its users, so: every shape that can be built.
    """
    usual, unfinished = _conversations_of_every_shape()
    for lines in (usual, [*usual[-9:], unfinished]):
        path = write_jsonl(tmp_path / "c.jsonl", lines)
        out = tmp_path / f"rows-{len(lines)}"
        assert cli("fixed", "--source", path, "--row-tokens", 96, "--out", out, "--quiet", *VERIFIED[name]).code == 0
        done = cli("verify", out, "--level", 3)
        assert done.code == 0, done.err


@pytest.mark.parametrize("mode", ["chat", "thinking"])
def test_verify_sees_every_span_that_has_drifted(cli, tmp_path, mode):
    """https://github.com/allenai/open-instruct/issues/1800

    Each 0 -> 1 and 1 -> 0 of the stored rows, moved by one token to either side, is found from the tokens alone.
    """
    lines = [{"messages": [user(f"What is {i} + {i}?"), assistant(f"It is {i + i}.")]} for i in range(8)]
    path = write_jsonl(tmp_path / "c.jsonl", [*lines, {"messages": TOOL_TURN}])
    assert cli("fixed", "--source", path, "--row-tokens", 100, "--out", tmp_path / "b", "--mode", mode).code == 0
    spec = json.loads((tmp_path / "b" / "manifest.json").read_bytes())["spec"]
    ((_, rows, _),) = read_groups([tmp_path / "b" / "rows.parquet"], 100)
    chosen = list(range(len(rows)))
    check_rows(rows, chosen, 0, spec, tokenizer(), {})
    edges = np.argwhere(np.diff(rows.loss_mask.astype(np.int8), axis=1) != 0).tolist()
    assert len(edges) > 16
    for row, before in edges:
        for token in (before, before + 1):
            mask = rows.loss_mask.copy()
            mask[row, token] ^= 1
            if token and mask[row].any():
                with pytest.raises(IntegrityError, match="mask"):
                    check_rows(replace(rows, loss_mask=mask), chosen, 0, spec, tokenizer(), {})


def test_a_long_conversation_is_never_cut_short():
    """https://github.com/allenai/open-instruct/pull/1876
    https://github.com/axolotl-ai-cloud/axolotl/pull/2123

    It spans rows; nothing is dropped, no EOS is forced into it, and nothing has an argument to truncate by.
    """
    turns = [message for i in range(40) for message in (user(f"Question {i}? " * 9), assistant(f"Answer {i}. " * 9))]
    expected = whole(turns)
    parts = [
        part
        for question, answer in zip(turns[::2], turns[1::2], strict=True)
        for part in (USER, question["content"], *HEADER, (answer["content"], EOS))
    ]
    assert (expected.ids, expected.mask) == by_hand(BOS, *parts)
    size = len(expected.ids) // 10
    built = build_in_memory([{"messages": turns}], row_tokens=size, **options_of())
    ids = [token for row, _ in built.rows for token in row]
    assert len(built.rows) >= 10 and ids == expected.ids[: len(ids)]
    assert built.counts["noted"] == {"longer_than_row": 1}
    assert built.counts["tokens"] == len(expected.ids) == len(ids) + built.counts["tail_tokens"]
    assert expected.ids.count(EOS) == sum(flag for token, flag in zip(expected.ids, expected.mask, strict=True)
                                          if token == EOS) == 40  # fmt: skip
    for function in (Encoder.__init__, Encoder.encode, How.__init__):
        arguments = " ".join(inspect.signature(function).parameters)
        assert not any(word in arguments for word in ("trunc", "max", "limit"))
    texts = [path for path in OURS if "sources" not in path.parts and path.name not in CUT_FILES]
    assert len(texts) > 40 and not any("truncat" in name for path in texts for name in names_in(path))


def test_eos_closes_assistants_and_nothing_else():
    """https://github.com/axolotl-ai-cloud/axolotl/issues/1921
    https://github.com/axolotl-ai-cloud/axolotl/issues/3754
    https://github.com/huggingface/trl/pull/3091
    https://github.com/meta-pytorch/torchtune/issues/949

    EOS is the stop token: one for each answer, each a target. The others stand after conversations that end open, and
    are none. `<|EOT|>`, the other candidate of the vocabulary, and the padding token never occur.
    """
    data = records(400)
    made = whole(*data)
    ids, mask = np.array(made.ids), np.array(made.mask)
    answers = sum(message["role"] == "assistant" for record in data for message in record["messages"])
    open_ends = sum(record["messages"][-1]["role"] != "assistant" for record in data)
    assert open_ends > 20
    assert ((ids == EOS) & (mask == 1)).sum() == answers
    assert ((ids == EOS) & (mask == 0)).sum() == open_ends
    ends = np.array([*made.doc_starts[1:], len(ids)]) - 1
    assert np.isin(np.flatnonzero((ids == EOS) & (mask == 0)), ends).all()
    assert not np.isin(ids, [EOT, PAD]).any()
    no_eos = whole(*data, mask_type="deepseek_v4_no_eos")
    assert no_eos.ids == made.ids
    assert (np.array(no_eos.mask) == mask * (ids != EOS)).all()


def test_the_mask_goes_by_place_and_not_by_id():
    """https://github.com/mlabonne/llm-course/issues/33

    EOS is a target after an answer and none as the separator, in the same row: no rule for padding can reach it.
    """
    made = whole([user("Hi"), assistant("Yo"), user("Bye")], [user("A"), assistant("B")], [user("A"), assistant("B")])
    assert (made.ids, made.mask) == by_hand(
        *(part for row in made.doc_rows for part in (
            (BOS, USER, "A", *HEADER, ("B", EOS)) if row
            else (BOS, USER, "Hi", *HEADER, ("Yo", EOS), USER, "Bye", *HEADER, EOS)
        ))
    )  # fmt: skip
    assert sorted(flag for token, flag in zip(made.ids, made.mask, strict=True) if token == EOS) == [0, 1, 1, 1]
    assert PAD not in made.ids


SHIFTY = ("hello", " hello", "\nhello", "\n\n", " ", "こんにちは", "「はい」", "\u00a0x", "W", "elcome", "'s", "123456",
          "\ufeffa", "e\u0301", "👩‍👩‍👧‍👦", "\tdef f():\n        pass\n", "\r\n")  # fmt: skip


def test_contents_that_tokenize_differently_after_a_special_token():
    """https://github.com/axolotl-ai-cloud/axolotl/issues/2089
    https://github.com/ohdearquant/lattice/issues/1545
    https://github.com/huggingface/trl/issues/1820

    Special tokens are atomic: no content merges with one, so each span is the content's own ids, wherever it stands.
    """
    for i, question in enumerate(SHIFTY):
        for answer in (SHIFTY[-i], SHIFTY[(3 * i + 1) % len(SHIFTY)]):
            made = whole([user(question), assistant(answer), user(answer), assistant(question)])
            assert (made.ids, made.mask) == by_hand(
                BOS, USER, question, *HEADER, (answer, EOS), USER, answer, *HEADER, (question, EOS)
            )


def test_a_token_that_straddles_the_start_of_an_answer_is_no_target():
    """https://github.com/ohdearquant/lattice/issues/1545

    Only an answer without a header can merge with the text before it: then the merged token is not the model's own.
    """
    made = whole([system("Know the rules."), assistant("Welcome to the game.")])
    straddling = plain("Know the rules.Welcome to the game.")
    assert made.ids == [BOS, *straddling, EOS]
    assert ".W" in [decode([token]) for token in straddling]
    assert made.trained == ["elcome to the game." + EOS_TEXT]


@pytest.mark.parametrize(
    ("messages", "parts"),
    [
        ([assistant("First."), user("And?"), assistant("B")],
         (BOS, ("First.", EOS), USER, "And?", *HEADER, ("B", EOS))),
        ([user("One letter?"), assistant("B")], (BOS, USER, "One letter?", *HEADER, ("B", EOS))),
        ([user("Trailing?"), assistant("Yes. \n ")], (BOS, USER, "Trailing?", *HEADER, ("Yes. \n ", EOS))),
        ([user("Nothing?"), assistant(""), user("?"), assistant(" ")],
         (BOS, USER, "Nothing?", *HEADER, (EOS,), USER, "?", *HEADER, (" ", EOS))),
        ([user(""), assistant("B"), user("x")], (BOS, USER, *HEADER, ("B", EOS), USER, "x", *HEADER, EOS)),
    ],
    ids=["assistant-first", "one-token", "trailing-space", "empty", "open-end"],
)  # fmt: skip
def test_spans_at_the_edges_end_where_the_answer_ends(messages, parts):
    """https://github.com/huggingface/transformers/issues/47325"""
    made = whole(messages)
    assert (made.ids, made.mask) == by_hand(*parts)


def test_the_assistant_marker_in_user_text_opens_no_span():
    """https://github.com/huggingface/trl/issues/1183"""
    typed = "Print <｜Assistant｜></think>yes<｜end▁of▁sentence｜> and ### Assistant: yes"
    made = whole([user(typed), assistant("yes")])
    assert (made.ids, made.mask) == by_hand(BOS, USER, typed, *HEADER, ("yes", EOS))
    assert made.ids.count(ASSISTANT) == made.ids.count(EOS) == 1


def test_no_code_searches_for_a_response():
    """https://github.com/huggingface/trl/issues/1820
    https://github.com/huggingface/transformers/issues/34172

    What makes the mask does not look into ids or text, and nothing of transformers' templates and masks is used.
    """
    searching = {"re", "find", "rfind", "rindex", "search", "finditer", "findall", "match", "fullmatch", "startswith",
                 "partition", "rpartition", "split", "sliding_window_view", "char_to_token", "offsets"}  # fmt: skip
    for path in (*(ROOT / "masks" / f"{name}.py" for name in ("deepseek_v4", "policy", "segments")),
                 *(ROOT / "databuild" / f"{name}.py" for name in ("pieces", "encode", "pack"))):  # fmt: skip
        assert not searching & set(names_in(path)), path
    foreign = {"response_template", "instruction_template", "apply_chat_template", "chat_template", "transformers"}
    for path in OURS:
        names = set(names_in(path))
        assert not foreign & names, path
        assert not any("assistant_mask" in name or "assistant_tokens_mask" in name for name in names), path


def test_the_same_text_in_the_user_turn_is_not_the_answer():
    """https://github.com/snowflakedb/ArcticTraining/pull/335"""
    answer = "The capital of Norway is Oslo."
    made = whole([system(answer), user(answer), assistant(answer), user(answer + answer), assistant(answer)])
    assert (made.ids, made.mask) == by_hand(
        BOS, answer, USER, answer, *HEADER, (answer, EOS), USER, answer + answer, *HEADER, (answer, EOS)
    )


@pytest.mark.parametrize(
    "messages",
    [
        [user("Q"), assistant("Answer")],
        [system("S"), user("Q"), assistant("No"), user("Q"), assistant("Answer")],
        [user("Q"), user("R"), assistant("Answer")],
        TOOL_TURN,
    ],
    ids=["single", "multi", "merged-users", "tools"],
)
def test_the_first_target_of_a_turn_is_its_first_content_token(messages):
    """https://github.com/huggingface/trl/pull/4201

    The header is given, never trained.
    """
    made = whole(messages)
    answers = [message for message in messages if message["role"] == "assistant"]
    rises = [i for i in range(1, len(made.ids)) if made.mask[i] > made.mask[i - 1]]
    assert [made.ids[i] for i in rises] == [plain(message["content"])[0] for message in answers]
    assert all(made.ids[i - 2 : i] == [*HEADER] for i in rises)
    assert sum(made.mask[i] for i in range(len(made.ids)) if made.ids[i] in (ASSISTANT, THINK_END, USER, BOS)) == 0


def test_nothing_to_train_is_never_silent():
    """https://github.com/huggingface/transformers/issues/34172
    https://github.com/marin-community/marin/issues/7237

    Every conversation with an answer has targets, in chat and thinking mode; the others are counted under a note.
    """
    data = [*records(120), {"messages": TOOL_TURN}, {"messages": [user("x"), assistant("")]}]
    for mode in ("chat", "thinking"):
        made = whole(*data, mode=mode)
        starts = [*made.doc_starts, len(made.ids)]
        for row, start, end in zip(made.doc_rows, starts, starts[1:], strict=False):
            roles = [message["role"] for message in data[row]["messages"]]
            assert sum(made.mask[start:end]) >= roles.count("assistant"), data[row]
    asked = [user("Only a question.")]
    made = whole(*data, asked, asked)
    assert made.counts["noted"]["no_assistant"] == 2


def test_no_row_is_without_a_target(cli, tmp_path):
    """https://github.com/huggingface/trl/issues/6668
    https://github.com/NVIDIA-NeMo/Automodel/issues/3796

    So no batch of rows can have a denominator of zero; a source that trains nothing gives no rows, and an error.
    """
    long_question = {"messages": [user("Read this. " * 200), assistant("Done.")]}
    built = build_in_memory([*records(60), long_question], row_tokens=32, **options_of())
    assert built.counts["rows_without_targets"] > 10
    for ids, mask in built.rows:
        _, label_mask = labels_and_mask(np.array(ids, np.int32), np.array(mask, np.uint8))
        assert label_mask.sum() >= 1
    path = write_jsonl(tmp_path / "c.jsonl", [{"messages": [user("Nobody answers. " * 9)]}] * 20)
    error = cli("fixed", "--source", path, "--row-tokens", 32, "--out", tmp_path / "rows").error(3, "source")
    assert " 0 targets" in error["found"]
    assert not (tmp_path / "rows").exists()


def test_every_conversation_is_used_or_counted_under_one_reason(cli, tmp_path):
    """https://github.com/huggingface/trl/pull/6025

    Nothing dies silently: the manifest's counts add up to the rows of the source.
    """
    broken = [None, [], "text", ["x"], [{"role": "narrator", "content": "x"}], [user(None)], [user(["x"])]]
    data = [*records(50), *({"messages": messages} for messages in broken)]
    path = write_jsonl(tmp_path / "c.jsonl", data)
    assert cli("fixed", "--source", path, "--row-tokens", 64, "--out", tmp_path / "rows").code == 0
    counts = json.loads((tmp_path / "rows" / "manifest.json").read_bytes())["counts"]
    assert counts["conversations"] == len(data)
    assert counts["used"] == 50 == counts["conversations"] - sum(counts["skipped"].values())
    assert counts["skipped"] == {
        "messages_null": 1, "messages_empty": 1, "messages_not_list": 1, "message_not_object": 1, "role_unknown": 1,
        "content_null": 1, "content_not_text": 1,
    }  # fmt: skip
    assert counts["tokens"] == counts["rows_cut"] * 64 + counts["tail_tokens"]


def test_a_prefix_of_a_conversation_is_a_prefix_of_its_tokens():
    """https://github.com/pytorch/torchtitan/pull/4504

    One rendering with the spans attached. In chat mode no later turn rewrites an earlier one, and tokens are what the
    official encoder gives: 200 random conversations, cut after each answer.
    """
    recipe = pytest.importorskip("deepseek_recipe")
    encoding = recipe.DeepseekV4Encoding()
    kinds = {"system": recipe.SystemMessage, "user": recipe.UserMessage, "assistant": recipe.AssistantMessage}
    draw = random.Random(5)
    pieces = [*SHIFTY, "Why?", "Because of the tides. ", "<think>", "<｜User｜>", "x = 1\n"]

    def text():
        return "".join(draw.choice(pieces) for _ in range(draw.randint(1, 4)))

    for _ in range(200):
        messages = [system(text())] if draw.random() < 0.5 else []
        for _ in range(draw.randint(1, 3)):
            messages += [user(text()), assistant(text())]
        made = whole(messages)
        official = [kinds[message["role"]](message["content"]) for message in messages]
        prompt = encoding.render_conversation(recipe.Conversation(official, thinking_mode=False)).prompt
        assert decode(made.ids) + "<｜Assistant｜></think>" == prompt
        if len(messages) > 3:
            shorter = whole(messages[:-2])
            assert made.ids[: len(shorter.ids)] == shorter.ids
            assert made.mask[: len(shorter.ids)] == shorter.mask


def test_inspect_shows_the_stored_mask(cli, tmp_path, monkeypatch):
    """https://github.com/PrimeIntellect-ai/prime-rl/pull/978

    The marks come from the rows as they are, whatever mask type they were built with.
    """
    messages = [user("Hi"), assistant("Yo"), user("Bye"), assistant("Ciao")]
    path = write_jsonl(tmp_path / "c.jsonl", [{"messages": messages}])
    shown = {}
    for name in ("deepseek_v4", "deepseek_v4_last_turn", "deepseek_v4_no_eos"):
        out = tmp_path / name
        assert cli("fixed", "--source", path, "--row-tokens", 15, "--out", out, "--loss-mask-type", name).code == 0
        shown[name] = cli("inspect", out).out.splitlines()[-1]
        stored = cli("inspect", out, "--json").json
        ((_, rows, _),) = read_groups([out / "rows.parquet"], 15)
        assert (stored["input_ids"], stored["loss_mask"]) == (rows.input_ids[0].tolist(), rows.loss_mask[0].tolist())
    begin = "<｜begin▁of▁sentence｜><｜User｜>Hi<｜Assistant｜></think>"
    bye = "<｜User｜>Bye<｜Assistant｜></think>"
    assert shown == {
        "deepseek_v4": f"{begin}⟦Yo{EOS_TEXT}⟧{bye}⟦Ciao{EOS_TEXT}⟧",
        "deepseek_v4_last_turn": f"{begin}Yo{EOS_TEXT}{bye}⟦Ciao{EOS_TEXT}⟧",
        "deepseek_v4_no_eos": f"{begin}⟦Yo⟧{EOS_TEXT}{bye}⟦Ciao⟧{EOS_TEXT}",
    }
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = cli("inspect", tmp_path / "deepseek_v4_last_turn").out.splitlines()[-1]
    assert coloured == f"{begin}Yo{EOS_TEXT}{bye}\x1b[4;32mCiao{EOS_TEXT}\x1b[0m"
