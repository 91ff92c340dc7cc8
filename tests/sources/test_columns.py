"""`--columns`: its grammar, and what becomes of records of other shapes."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import opened, read, reasons, refusal, write_jsonl

from databuild.errors import UsageError
from databuild.sources.columns import PRESETS, SHAREGPT_ROLES, map_record, needed_columns, parse_columns

SYSTEM, USER, ASSISTANT, RAW = 0, 1, 2, 255
NAMES = {SYSTEM: "system", USER: "user", ASSISTANT: "assistant"}


@pytest.fixture(params=[".jsonl", ".json", ".parquet"])
def write(request, tmp_path):
    """Writes records as a file of each kind."""

    def call(*records):
        path = tmp_path / f"file{request.param}"
        if request.param == ".parquet":
            pq.write_table(pa.Table.from_pylist(list(records)), path)
        elif request.param == ".json":
            path.write_text(json.dumps(records))
        else:
            write_jsonl(path, records)
        return path

    return call


def turns(path, columns):
    return [[(NAMES[code], text) for code, text in entries] for _, _, _, entries in read(path, columns=columns)]


# ---------------------------------------------------------------------------------------------------------- grammar


@pytest.mark.parametrize(
    ("text", "mapping"),
    [
        (None, None),
        ("sharegpt", PRESETS["sharegpt"]),
        ("openmath", {"prompt": ["problem"], "response": "generated_solution"}),
        ("alpaca", {"prompt": ["instruction", "input"], "response": "output"}),
        ("messages=m", {"messages": "m"}),
        ("messages=m,role=r,content=c", {"messages": "m", "role": "r", "content": "c"}),
        ("role=from,content=value", {"role": "from", "content": "value"}),
        ("prompt=q,response=a", {"prompt": ["q"], "response": "a"}),
        ("response=a,prompt=q+r+s,system=t", {"prompt": ["q", "r", "s"], "response": "a", "system": "t"}),
        ("id=uuid,source=from,tools=f", {"id": "uuid", "source": "from", "tools": "f"}),
        ("sharegpt,id=uuid", {**PRESETS["sharegpt"], "id": "uuid"}),
        ("sharegpt,messages=items", {**PRESETS["sharegpt"], "messages": "items"}),
        ("openmath,prompt=a+b", {"prompt": ["a", "b"], "response": "generated_solution"}),
        ("messages=a=b", {"messages": "a=b"}),
        ("messages=Ä ö", {"messages": "Ä ö"}),
        ("id=a+b", {"id": "a+b"}),
        ("messages=m,", {"messages": "m"}),
    ],
)
def test_what_columns_means(text, mapping):
    assert parse_columns(text) == mapping


@pytest.mark.parametrize(
    "text",
    ["", ",", ",,", "shargpt", "ShareGPT", "messages", "messages=", "=m", "=", "message=m", "Messages=m", " messages=m",
     "roles=x", "id=a,sharegpt", "prompt=q", "response=a", "prompt=,response=a", "prompt=q+,response=a",
     "prompt=+q,response=a", "prompt=q++r,response=a", "prompt=q,response=a,messages=m", "prompt=q,response=a,role=r",
     "prompt=q,response=a,content=c", "openmath,messages=m", "sharegpt,prompt=q", "sharegpt,prompt=q,response=a",
     "system=s", "messages=m,system=s", "sharegpt,system=s", "id=a,id=b", "prompt=q,response=a,prompt=r",
     "sharegpt alpaca", "sharegpt;id=x"],
)  # fmt: skip
def test_what_columns_refuses(text):
    with pytest.raises(UsageError) as caught:
        parse_columns(text)
    assert caught.value.exit_code == 2 and "sharegpt, openmath, alpaca" in caught.value.expected


@given(st.text(max_size=20))
def test_no_text_crashes(text):
    try:
        assert parse_columns(text)
    except UsageError as error:
        assert error.expected


def test_presets_are_not_changed_by_what_follows_them():
    before = json.dumps(PRESETS)
    parse_columns("sharegpt,messages=m,role=r,content=c,id=i")
    parse_columns("openmath,prompt=a+b")
    assert json.dumps(PRESETS) == before


def test_exit_code_2(cli, tmp_path):
    for source in ("demo", "tulu3"):
        assert cli("fixed", "--source", source, "--columns", "sharegpt").error(2, "usage")
    block = cli("fixed", "--source", tmp_path, "--columns", "nothing").error(2, "usage")
    assert block["what"] == "--columns does not know 'nothing'"
    assert list(tmp_path.iterdir()) == []


def test_needed_columns():
    assert needed_columns(None) == (["messages"], ["id", "source", "tools"])
    assert needed_columns(parse_columns("sharegpt,id=uuid")) == (["conversations"], ["uuid", "source", "tools"])
    assert needed_columns(parse_columns("prompt=q+r,response=a,system=s")) == (
        ["q", "a"],
        ["r", "s", "id", "source", "tools"],
    )


@pytest.mark.parametrize("columns", ["sharegpt,id=uuid", "sharegpt,source=from_where", "sharegpt,tools=functions"])
def test_a_column_that_is_named_is_there(write, columns):
    """A typing error would otherwise lose the ids, or the tools, without a word."""
    name = columns.partition("=")[2]
    records = [{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]} for _ in range(3)]
    assert f"{name}" in str(refusal(write(*records), columns=columns))
    read(write({**records[0], name: None}, {**records[1], name: "x"}, records[2]), columns=columns)  # one is enough


# --------------------------------------------------------------------------------------------------------- sharegpt


def shared(*turns_, **more):
    return {"id": "x", "conversations": [{"from": who, "value": text} for who, text in turns_], **more}


def test_sharegpt_roles(write):
    expected = {
        "human": "user",
        "user": "user",
        "gpt": "assistant",
        "chatgpt": "assistant",
        "bing": "assistant",
        "bard": "assistant",
        "assistant": "assistant",
        "system": "system",
    }
    assert expected == SHAREGPT_ROLES
    path = write(*[shared((who, f"says {who}"), ("gpt", "yes")) for who in expected])
    assert turns(path, "sharegpt") == [[(role, f"says {who}"), ("assistant", "yes")] for who, role in expected.items()]


@pytest.mark.parametrize("who", ["Human", "function_call", "observation", "", "human ", None])
def test_sharegpt_roles_that_are_not_known(write, who):
    assert reasons(write(shared(("human", "a"), (who, "b"))), columns="sharegpt") == ["role_unknown"]


def test_sharegpt_records_that_are_not_conversations(write):
    path = write(shared(("human", "a")), shared(), {"id": "x", "conversations": None}, shared(("human", None)))
    assert reasons(path, columns="sharegpt") == [None, "messages_empty", "messages_null", "content_null"]


def test_sharegpt_keeps_ids_and_sources(write):
    found = read(write(shared(("human", "a"), source="s"), shared(("human", "b"), source="t")), columns="sharegpt")
    assert [(source, code) for _, source, code, _ in found] == [("s", 0), ("t", 0)]


def test_sharegpt_by_columns_and_by_records_are_the_same(write):
    """A record that is not plain sends those around it the other way."""
    plain = [shared(("system", "s"), ("human", "q"), ("bing", "a")), shared(("user", "é"), ("gpt", ""))]
    alone = turns(write(*plain), "sharegpt")
    assert alone == [[("system", "s"), ("user", "q"), ("assistant", "a")], [("user", "é"), ("assistant", "")]]
    mixed = read(write(*plain, shared(("nobody", "x"))), columns="sharegpt")
    assert [[(NAMES[code], text) for code, text in entries] for *_, entries in mixed[:2]] == alone
    assert mixed[2][3][0][0] == RAW


def test_a_role_field_beside_from_does_not_speak(write):
    path = write({"conversations": [{"from": "human", "value": "a", "role": "system", "content": "no"}]})
    assert turns(path, "sharegpt") == [[("user", "a")]]


def test_a_list_of_sharegpt_needs_its_preset(write):
    assert "sharegpt" in refusal(write(shared(("human", "a")))).next_step


# ------------------------------------------------------------------------------------------------ pairs of columns


def test_openmath(write):
    path = write({"problem": "1+1?", "generated_solution": "2", "problem_source": "x"})
    assert turns(path, "openmath") == [[("user", "1+1?"), ("assistant", "2")]]


@pytest.mark.parametrize(
    ("record", "prompt"),
    [
        ({"instruction": "Do", "input": "this"}, "Do\n\nthis"),
        ({"instruction": "Do", "input": ""}, "Do"),
        ({"instruction": "Do", "input": None}, "Do"),
        ({"instruction": "Do"}, "Do"),
        ({"instruction": "Do", "input": " "}, "Do\n\n "),
        ({"instruction": "Do\n", "input": "\nthis"}, "Do\n\n\n\nthis"),
        ({"instruction": "", "input": ""}, ""),
    ],
)
def test_alpaca(write, record, prompt):
    assert turns(write({**record, "output": "done"}), "alpaca") == [[("user", prompt), ("assistant", "done")]]


def test_alpaca_with_and_without_input_in_one_file(write):
    path = write({"instruction": "a", "input": "x", "output": "b"}, {"instruction": "a", "output": "b"})
    assert [entries[0] for entries in turns(path, "alpaca")] == [("user", "a\n\nx"), ("user", "a")]


@pytest.mark.parametrize("missing", ["instruction", "output"])
def test_alpaca_needs_its_columns(write, missing):
    record = {"instruction": "a", "input": "b", "output": "c"}
    del record[missing]
    assert missing in refusal(write(record), columns="alpaca").what


def test_a_prompt_of_columns_and_a_system(write):
    columns = "prompt=a+b+c,response=r,system=s,id=n,source=from"
    record = {"a": "1", "b": "", "c": "3", "r": "4", "s": "5", "n": 7, "from": "here"}
    path = write(record, {**record, "s": ""}, {**record, "s": None, "n": 8})
    pair = [("user", "1\n\n3"), ("assistant", "4")]
    assert turns(path, columns) == [[("system", "5"), *pair], pair, pair]
    found = read(path, columns=columns)
    assert [source for _, source, _, _ in found] == ["here"] * 3
    assert [code == found[0][2] for _, _, code, _ in found] == [True, True, False]


WRONG = [(None, "content_null"), (1, "content_not_text"), (1.5, "content_not_text"), (True, "content_not_text"),
         (["x"], "content_not_text"), ({"x": "y"}, "content_not_text")]  # fmt: skip


@pytest.mark.parametrize(("value", "reason"), WRONG)
@pytest.mark.parametrize("column", ["a", "b", "s", "r"])
def test_wrong_types_are_passed_on_and_rejected_with_one_reason(write, column, value, reason):
    record = {"a": "1", "b": "2", "s": "3", "r": "4", column: value}
    if column in "bs" and value is None:
        reason = None  # these may be missing
    assert reasons(write(record), columns="prompt=a+b,response=r,system=s") == [reason]


def test_several_wrong_values_are_one_reason(write):
    assert reasons(write({"a": 1, "b": [2], "r": None}), columns="prompt=a+b,response=r") == ["content_not_text"]
    assert reasons(write({"a": None, "b": None, "r": 3}), columns="prompt=a+b,response=r") == ["content_null"]


@pytest.mark.parametrize(("value", "reason"), WRONG)
def test_wrong_types_inside_messages(write, value, reason):
    for message, expected in (({"r": "user", "c": value}, reason), ({"r": value, "c": "x"}, "role_unknown")):
        assert reasons(write({"m": [message]}), columns="messages=m,role=r,content=c") == [expected]


def test_a_message_that_is_not_an_object(tmp_path):
    for messages in (["x"], [None], [[]], [3]):
        path = write_jsonl(tmp_path / "a.jsonl", [{"conversations": messages}])
        assert reasons(path, columns="sharegpt") == ["message_not_object"]
    for messages, reason in ((None, "messages_null"), ("x", "messages_not_list"), ({}, "messages_not_list")):
        path = write_jsonl(tmp_path / "a.jsonl", [{"conversations": messages}])
        assert reasons(path, columns="sharegpt") == [reason]


def test_values_are_moved_and_never_changed():
    values = {"a": object(), "b": object()}
    mapped = map_record(
        {"m": [{"r": values["a"], "c": values["b"], "x": 1}]}, parse_columns("messages=m,role=r,content=c")
    )
    assert mapped["messages"][0]["role"] is values["a"] and mapped["messages"][0]["content"] is values["b"]
    assert mapped["messages"][0]["x"] == 1
    record = {"messages": [{"role": "user", "content": "x"}], "id": 1, "source": "s", "tools": [], "other": 2}
    assert map_record(record, None) == {key: record[key] for key in ("id", "source", "tools", "messages")}


def test_columns_do_not_change_the_identity_of_the_source(tmp_path):
    """They are part of the spec, not of what is read."""
    path = write_jsonl(tmp_path / "a.jsonl", [{"problem": "a", "generated_solution": "b", "messages": []}])
    with opened(path, columns="openmath") as one, opened(path) as two:
        assert one.record == two.record
