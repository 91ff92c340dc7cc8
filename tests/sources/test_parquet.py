"""Parquet: the Tulu-3 shape goes over by columns, everything else record by record, and both ways give the same."""

import datetime
import decimal
import errno
import json
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import conversations, everything, opened, read, reasons, refusal, write_jsonl

from databuild.errors import OutputError, SourceError
from databuild.sources import parquet
from databuild.sources.base import RAW
from databuild.sources.records import RecordSpooler
from databuild.sources.spool import SpoolWriter

MESSAGE = pa.struct([("content", pa.string()), ("role", pa.string())])
TULU = pa.schema([("id", pa.string()), ("messages", pa.list_(MESSAGE)), ("source", pa.string())])
SYSTEM, USER, ASSISTANT = 0, 1, 2


def say(role, content, **more):
    return {"content": content, "role": role, **more}


def row(*messages, id="i", source="s", **more):
    return {"id": id, "messages": list(messages), "source": source, **more}


def records(count):
    """Plain records of growing length; every fourth begins with a system message."""
    return [
        row(
            *[say("system", "Be brief. 中")][: number % 4 == 0],
            *[say("user", f"question {number} é"), say("assistant", "a" * number)] * (1 + number % 3),
            id=f"i{number % 7}",
            source=f"s{number % 2}",
        )
        for number in range(count)
    ]


def write(folder, rows, schema=TULU, **options):
    path = Path(folder, "file.parquet")
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows, schema=schema), path, **options)
    return path


def of_message(*fields):
    return pa.schema([("messages", pa.list_(pa.struct(fields)))])


def by_columns():
    """Fails when a record becomes a Python object."""
    return patch.object(parquet, "RecordSpooler", side_effect=AssertionError("not by columns"))


def entries_of(path):
    return [entries for _, _, _, entries in read(path)]


CODES = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}


def expected(rows):
    """What plain records must give, in loops."""
    ids = sorted({r["id"] for r in rows if r.get("id") is not None})
    found = []
    for number, record in enumerate(rows):
        entries = [(CODES[message["role"]], message["content"]) for message in record["messages"]]
        found.append((number, record.get("source") or "(none)", record.get("id") in ids, entries))
    return found


def seen(path):
    return [(number, source, code >= 0, entries) for number, source, code, entries in read(path)]


# -------------------------------------------------------------------------------------------------- by columns


@pytest.mark.parametrize("options", [{}, {"row_group_size": 7}, {"compression": "zstd"}, {"use_dictionary": False},
                                     {"data_page_size": 64}, {"data_page_version": "2.0"}, {"version": "1.0"}])  # fmt: skip
@pytest.mark.parametrize("batch_rows", [1, 3, 8192])
def test_the_tulu_shape(tmp_path, monkeypatch, options, batch_rows):
    monkeypatch.setattr(parquet, "_BATCH_ROWS", batch_rows)
    rows = records(40)
    with by_columns():
        assert seen(write(tmp_path, rows, **options)) == expected(rows)
    assert [code for _, _, code, _ in read(tmp_path / "file.parquet")] == [
        code for _, _, code, _ in read(write_jsonl(tmp_path / "file.jsonl", rows))
    ]


@pytest.mark.parametrize("text", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("of", [pa.list_, pa.large_list])
@pytest.mark.parametrize("order", [("content", "role"), ("role", "content")])
def test_wide_types_and_any_order_of_fields(tmp_path, text, of, order):
    schema = pa.schema([("source", text), ("messages", of(pa.struct([(name, text) for name in order]))), ("id", text)])
    rows = records(12)
    with by_columns():
        assert seen(write(tmp_path, rows, schema)) == expected(rows)


@pytest.mark.parametrize("role", [pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.string()])
@pytest.mark.parametrize("content", [pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.string()])
def test_views_and_dictionaries(tmp_path, role, content):
    """Types of Arrow that a file may ask for."""
    schema = pa.schema([("id", role), ("messages", pa.list_(pa.struct([("content", content), ("role", role)])))])
    rows = records(4)
    for number, one in enumerate(rows):  # pyarrow writes views in pieces of one row only
        write(tmp_path, [one], schema).rename(tmp_path / f"{number}.parquet")
    assert pq.read_schema(tmp_path / "0.parquet") == schema
    assert seen(tmp_path) == [(n, "(none)", known, entries) for n, _, known, entries in expected(rows)]


def test_a_sliced_and_chunked_table(tmp_path):
    rows = records(30)
    table = pa.concat_tables([pa.Table.from_pylist(part, schema=TULU) for part in (rows[:4], [], rows[4:5], rows[5:])])
    with by_columns():
        assert seen(write(tmp_path, table.slice(3, 20))) == expected(rows[3:23])


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
def test_codecs(tmp_path, codec):
    rows = records(9)
    assert seen(write(tmp_path, rows, compression=codec)) == expected(rows)


def test_several_files(tmp_path):
    (tmp_path / "a").mkdir()
    rows = records(9)
    paths = [write(tmp_path, rows[:4]), write(tmp_path / "a", rows[4:])]
    assert seen(paths[0]) == expected(rows[:4])
    assert read(*paths) == read(write_jsonl(tmp_path / "file.jsonl", rows))


def test_text_is_never_changed(tmp_path):
    texts = [
        "",
        " ",
        "\x00",
        "\r\n",
        "\u2028",
        "a\u0085",
        "\ufeff",
        "e\u0301",
        "é",
        "👩‍👩‍👧",
        "\U0010ffff",
        "\ufdd0",
        "x" * 100_000,
    ]
    rows = [row(say("user", text), say("assistant", text[::-1])) for text in texts]
    with by_columns():
        assert seen(write(tmp_path, rows)) == expected(rows)


# ------------------------------------------------------------------------------------------- record by record


def test_rows_that_are_not_plain(tmp_path):
    """One of them sends its batch the other way; the plain ones around it stay the same."""
    odd = [
        (None, "messages_null"),
        ([], "messages_empty"),
        ([None], "message_not_object"),
        ([say("user", "a"), None], "message_not_object"),
        ([say("narrator", "a")], "role_unknown"),
        ([say("User", "a")], "role_unknown"),
        ([say(None, "a")], "role_unknown"),
        ([say("user", None)], "content_null"),
        ([say("user", "a"), say("assistant", None)], "content_null"),
    ]
    plain = row(say("user", "a"), say("assistant", "b"))
    for messages, reason in odd:
        path = write(tmp_path, [plain, {**plain, "messages": messages}, plain])
        assert reasons(path) == [None, reason, None]
        found = read(path)
        assert found[0][3] == found[2][3] == [(USER, "a"), (ASSISTANT, "b")]
        assert [code for code, _ in found[1][3]] == [RAW]
    path = write(tmp_path, [{**plain, "messages": messages} for messages, _ in odd])
    assert reasons(path) == [reason for _, reason in odd]


def test_only_empty_lists(tmp_path):
    assert (
        reasons(write(tmp_path, [{"messages": []}] * 2, pa.schema([("messages", pa.list_(pa.null()))])))
        == ["messages_empty"] * 2
    )
    assert reasons(write(tmp_path, [row(), row()])) == ["messages_empty"] * 2
    assert reasons(write(tmp_path, [{"messages": None}] * 2)) == ["messages_null"] * 2


def test_other_fields_that_are_null_do_not_matter(tmp_path):
    schema = of_message(("content", pa.string()), ("name", pa.string()), ("role", pa.string()), ("n", pa.int64()))
    rows = [{"messages": r["messages"]} for r in records(9)]
    with by_columns():
        assert [entries for *_, entries in seen(write(tmp_path, rows, schema))] == [e for *_, e in expected(rows)]


OTHER_FIELDS = {
    "text": (pa.string(), "x"),
    "number": (pa.int64(), 7),
    "nan": (pa.float64(), float("nan")),
    "bytes": (pa.binary(), b"\xff"),
    "decimal": (pa.decimal128(9, 2), decimal.Decimal("1.50")),
    "date": (pa.date32(), datetime.date(2024, 1, 1)),
    "time": (pa.time64("ns"), 1_001),
    "moment": (pa.timestamp("us", tz="UTC"), datetime.datetime(2024, 1, 1)),
    "nanoseconds": (pa.timestamp("ns"), 1),
    "far moment": (pa.timestamp("s"), 10**15),
    "unknown zone": (pa.timestamp("s", tz="Nowhere/Land"), 1),
    "span": (pa.duration("ns"), 1),
    "list": (pa.list_(pa.timestamp("ns")), [1, None]),
    "struct": (pa.struct([("a", pa.struct([("b", pa.large_list(pa.date64()))]))]), {"a": {"b": [None]}}),
    "map": (pa.map_(pa.string(), pa.int64()), [("k", 1)]),
}


@pytest.mark.parametrize("name", OTHER_FIELDS)
def test_other_fields_of_any_type_are_left_alone(tmp_path, name):
    """WildChat keeps a timestamp in each message."""
    kind, value = OTHER_FIELDS[name]
    schema = of_message(("content", pa.string()), ("role", pa.string()), ("extra", kind))
    rows = [
        {"messages": [say("user", "a", extra=value), say("assistant", "b")]},
        {"messages": [say("x", "a", extra=value)]},
    ]
    path = write(tmp_path, rows, schema)
    assert reasons(path) == [None, "role_unknown"]
    assert json.loads(entries_of(path)[0][0][1])["messages"][0]["content"] == "a"


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.list_(pa.string()), pa.list_(pa.struct([("name", pa.string())])), pa.timestamp("ns")]
)
def test_tools(tmp_path, kind):
    """A record with tools is not plain, even with none in the list; what is no list of tools rejects it."""
    value = {pa.string(): "[]", pa.timestamp("ns"): 1}.get(kind, [])
    schema = TULU.append(pa.field("tools", kind))
    rows = records(5)
    assert seen(write(tmp_path, rows, schema)) == expected(rows)
    path = write(tmp_path, [{**record, "tools": value} for record in rows], schema)
    assert reasons(path) == ["tools_malformed" if pa.types.is_timestamp(kind) else None] * 5
    assert [code for [(code, _)] in entries_of(path)] == [RAW] * 5


# ---------------------------------------------------------------------------------------------- ids and sources


def test_without_ids_and_sources(tmp_path):
    rows = records(5)
    schema = pa.schema([TULU.field("messages")])
    with by_columns(), opened(write(tmp_path, rows, schema)) as source:
        assert source.source_names == ["(none)"] and source.num_ids == 0
        assert everything(source).id_codes.tolist() == [-1] * 5


IDS = {
    "whole": (pa.int32(), [3, 3, None], [0, 0, -1]),
    "unsigned": (pa.uint64(), [(1 << 64) - 1, None, (1 << 64) - 1], [0, -1, 0]),
    "text": (pa.large_string(), ["a", None, "a"], [0, -1, 0]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), ["a", None, "a"], [0, -1, 0]),
    "empty": (pa.string(), ["", None, ""], [0, -1, 0]),
    "float": (pa.float64(), [1.0, 1.0, None], [-1] * 3),
    "bool": (pa.bool_(), [True, True, None], [-1] * 3),
    "bytes": (pa.binary(), [b"a", b"a", None], [-1] * 3),
    "decimal": (pa.decimal128(9, 2), [decimal.Decimal(1)] * 3, [-1] * 3),
    "list": (pa.list_(pa.int64()), [[1], [1], None], [-1] * 3),
    "null": (pa.null(), [None] * 3, [-1] * 3),
    "nanoseconds": (pa.timestamp("ns"), [1, 1, None], [0, 0, -1]),
}


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("column", ["id", "source"])
@pytest.mark.parametrize("plain", [True, False])
def test_ids_and_sources_of_any_type(tmp_path, name, column, plain):
    kind, values, codes = IDS[name]
    content = "b" if plain else None
    rows = [{"messages": [say("user", content)], column: value} for value in values]
    found = read(write(tmp_path, rows, pa.schema([TULU.field("messages"), (column, kind)])))
    if column == "id":
        assert [code for _, _, code, _ in found] == codes
    else:
        names = [value if isinstance(value, str) else "(none)" for value in values]
        assert [source for _, source, _, _ in found] == names


# --------------------------------------------------------------------------------------------------- wrong columns


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.int64(), pa.list_(pa.string()), MESSAGE, pa.null(), pa.list_(MESSAGE, 2),
             pa.map_(pa.string(), pa.string())],
)  # fmt: skip
def test_messages_of_another_type(tmp_path, kind):
    error = refusal(write(tmp_path, [{"messages": None}], pa.schema([("messages", kind)])))
    assert error.what == "the column messages has another type" and error.where == "file.parquet"
    assert "role: string" in error.expected and str(kind.id)


@pytest.mark.parametrize(
    ("kind", "value"), [(pa.int64(), 1), (pa.binary(), b"text"), (pa.list_(pa.string()), ["text"]), (pa.bool_(), True),
                        (pa.timestamp("ns"), 1), (pa.decimal128(9, 2), decimal.Decimal(1)), (pa.date32(), 1)],
)  # fmt: skip
def test_content_and_role_of_another_type(tmp_path, kind, value):
    """Never turned into text."""
    content = of_message(("content", kind), ("role", pa.string()))
    assert reasons(write(tmp_path, [{"messages": [say("user", value)]}], content)) == ["content_not_text"]
    role = of_message(("content", pa.string()), ("role", kind))
    assert reasons(write(tmp_path, [{"messages": [say(value, "text")]}], role)) == ["role_unknown"]


def test_a_struct_without_role_or_content(tmp_path):
    rows = [{"messages": [say("user", "a")]}]
    assert reasons(write(tmp_path, rows, of_message(("content", pa.string())))) == ["role_unknown"]
    assert reasons(write(tmp_path, rows, of_message(("role", pa.string())))) == ["content_null"]


def test_a_missing_column(tmp_path):
    error = refusal(write(tmp_path, [{"conversations": [], "id": 1}], None))
    assert error.what == "there is no column messages" and error.found == "conversations, id"
    assert "--columns" in error.next_step
    assert refusal(write(tmp_path, pa.table({}))).found == "no columns"


def test_a_missing_column_in_a_later_file(tmp_path):
    (tmp_path / "a").mkdir()
    write(tmp_path, [{"x": 1}], None)
    write(tmp_path / "a", records(2))
    error = refusal(tmp_path)
    assert error.where == "file.parquet"


@pytest.mark.parametrize("name", ["messages", "id", "source"])
def test_two_columns_of_one_name(tmp_path, name):
    table = pa.Table.from_pylist(records(2), schema=TULU)
    path = write(tmp_path, table.append_column(name, table.column(name)))
    assert refusal(path).found == name


def test_two_fields_of_one_name(tmp_path):
    texts = pa.array(["a"]), pa.array(["user"]), pa.array(["b"])
    structs = pa.StructArray.from_arrays(texts, names=["content", "role", "content"])
    path = write(tmp_path, pa.table({"messages": pa.ListArray.from_arrays([0, 1], structs)}))
    assert refusal(path).found == "content"


def test_other_columns_are_not_read(tmp_path):
    """A million other columns, or a damaged one, cost nothing and change nothing."""
    rows = records(5)
    table = pa.Table.from_pylist(rows, schema=TULU)
    table = table.append_column("messages_extra", pa.array([1] * 5)).append_column("x", pa.array([b"\xff"] * 5))
    with by_columns():
        assert seen(write(tmp_path, table)) == expected(rows)


def test_a_custom_map_with_one_column_twice(tmp_path):
    rows = [{"q": "question"}]
    path = write(tmp_path, rows, None)
    assert [entries for *_, entries in read(path, columns="prompt=q,response=q")] == [
        [(USER, "question"), (ASSISTANT, "question")]
    ]


# ------------------------------------------------------------------------------------------------------ damage


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1PAR1", b"not parquet at all", b'{"messages": []}\n', b"\0" * 64]
)
def test_a_file_that_is_not_parquet(tmp_path, content):
    path = tmp_path / "file.parquet"
    path.write_bytes(content)
    error = refusal(path)
    assert error.what == "the file is not parquet, or is cut off" and error.where == "file.parquet"


def test_a_file_cut_anywhere(tmp_path):
    path = write(tmp_path, records(8), row_group_size=4)
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        assert refusal(path).where.startswith("file.parquet")


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_a_flipped_byte_anywhere(tmp_path, compression):
    """Refused, or read as other text: then the digest is another. Never a crash, never another number of rows."""
    path = write(tmp_path, records(12), row_group_size=5, compression=compression)
    whole = path.read_bytes()
    refused = 0
    for place in range(0, len(whole), 9):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ (0x01, 0x80)[place % 2]]) + whole[place + 1 :])
        try:
            with opened(path) as source:
                assert source.num_rows == 12, place
                everything(source)
        except SourceError as error:
            assert error.where.startswith("file.parquet")
            refused += 1
    assert refused > 50


def test_rows_that_do_not_come_are_missed(tmp_path, monkeypatch):
    """A damaged footer can say that a column ends early, and no error is raised."""
    path = write(tmp_path, records(12), row_group_size=5)
    original = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *a, **k: (b.slice(1) for b in original(*a, **k)))
    error = refusal(path)
    assert (error.where, error.expected, error.found) == ("file.parquet, row group 0", "5", "4")


def test_a_flipped_byte_in_a_page_with_a_checksum(tmp_path):
    path = write(tmp_path, [row(say("user", "needle"))] * 3, compression="none", write_page_checksum=True)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"needle", b"noodle", 1))
    assert path.read_bytes() != whole
    error = refusal(path)
    assert error.what == "a row group cannot be read" and error.where == "file.parquet, row group 0"
    assert "CRC" in error.found


def test_the_row_group_of_a_damaged_page(tmp_path):
    rows = [row(say("user", f"needle {number}")) for number in range(6)]
    path = write(tmp_path, rows, row_group_size=2, compression="none", write_page_checksum=True)
    path.write_bytes(path.read_bytes().replace(b"needle 4", b"needle 9", 1))
    assert refusal(path).where == "file.parquet, row group 2"


@pytest.mark.parametrize("column", ["content", "role", "id", "source"])
def test_text_that_is_not_utf8(tmp_path, column):
    bad = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 3], np.int32)), pa.py_buffer(b"a\xffb"))
    columns = {"content": pa.array(["a"]), "role": pa.array(["user"]), "id": pa.array(["i"]), "source": pa.array(["s"])}
    columns[column] = bad
    structs = pa.StructArray.from_arrays([columns["content"], columns["role"]], names=["content", "role"])
    messages = pa.ListArray.from_arrays([0, 1], structs)
    table = pa.table({"id": columns["id"], "messages": messages, "source": columns["source"]})
    error = refusal(write(tmp_path, table))
    assert error.where == "file.parquet, row group 0" and "UTF8" in error.found


def test_zero_rows(tmp_path):
    assert refusal(write(tmp_path, [])).what == "the source has no rows"
    assert refusal(write(tmp_path, [], row_group_size=1)).where == "file.parquet"
    write_jsonl(tmp_path / "a.jsonl", records(2))
    assert len(read(tmp_path)) == 2


def test_a_full_disk_is_not_called_damage(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SpoolWriter, "add", full)
    for rows in (records(3), [row(say("user", None))]):
        with pytest.raises(OutputError), opened(write(tmp_path, rows)):
            pass


# ----------------------------------------------------------------------------------------- both ways are the same

texts = st.one_of(st.text(max_size=12), st.sampled_from(["", "\u2028", "\x00", "é" * 9]))
plain_message = st.builds(say, st.sampled_from(["system", "user", "assistant"]), texts)
odd_message = st.one_of(
    plain_message,
    st.none(),
    st.builds(
        say, st.one_of(st.none(), st.sampled_from(["user", "tool", "Assistant", ""])), st.one_of(st.none(), texts)
    ),
)
names = st.one_of(st.none(), st.sampled_from(["", "a", "b", "(none)"]), st.text(max_size=3))
plain_records = st.builds(row, plain_message, plain_message, id=names, source=names) | st.lists(
    plain_message, min_size=1, max_size=5
).map(lambda messages: row(*messages, id=None))
odd_records = st.fixed_dictionaries(
    {"id": names, "messages": st.one_of(st.none(), st.lists(odd_message, max_size=4)), "source": names}
)
schemas = st.builds(
    lambda text, of, order: pa.schema(
        [("id", text), ("messages", of(pa.struct([(name, text) for name in order]))), ("source", text)]
    ),
    st.sampled_from([pa.string(), pa.large_string()]),
    st.sampled_from([pa.list_, pa.large_list]),
    st.permutations(["content", "role"]),
)


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(st.lists(plain_records, max_size=8), st.lists(odd_records | plain_records, max_size=8)),
    schemas,
    st.data(),
)
def test_columns_and_records_give_equal_spools(rows, schema, data):
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    begin = data.draw(st.integers(0, len(rows)))
    batch = batch.slice(begin, data.draw(st.integers(0, len(rows) - begin)))
    cut = data.draw(st.integers(0, len(batch)))
    mapping = data.draw(st.sampled_from([None, {}, {"id": "source", "source": "id"}, {"id": "none", "source": "none"}]))
    with tempfile.TemporaryDirectory() as folder:
        writers = [SpoolWriter(Path(folder, name)) for name in ("columns", "records")]
        parquet._add_batch(batch.slice(0, cut), writers[0], mapping, "")
        parquet._add_batch(batch.slice(cut), writers[0], mapping, "")
        spooler = RecordSpooler(writers[1], mapping)
        for record in parquet.without_nulls(batch.to_pylist()):
            spooler.add(record)
        spooler.flush()
        columns, records_ = (writer.finish() for writer in writers)
        try:
            assert columns.num_rows == records_.num_rows == len(batch)
            assert columns.source_names == records_.source_names
            assert columns.num_ids == records_.num_ids
            order = data.draw(st.lists(st.integers(0, len(batch) - 1), max_size=9)) if len(batch) else []
            taken = [spool.take(np.array(order, np.int64)) for spool in (columns, records_)]
            assert conversations(taken[0], columns.source_names) == conversations(taken[1], columns.source_names)
        finally:
            columns.close()
            records_.close()


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(plain_records, odd_records), min_size=1, max_size=8), schemas, st.integers(1, 5))
def test_parquet_and_jsonl_give_the_same(rows, schema, group):
    """A mix of shapes; in JSONL the fields stand in the order of the schema, and null fields are left out."""
    fields = [field.name for field in schema.field("messages").type.value_type]
    ordered = [
        {
            **r,
            "messages": r["messages"] and [m and {f: m[f] for f in fields if m[f] is not None} for m in r["messages"]],
        }
        for r in rows
    ]
    with tempfile.TemporaryDirectory() as folder:
        a = read(write(folder, rows, schema, row_group_size=group))
        b = read(write_jsonl(Path(folder, "file.jsonl"), ordered))
    assert a == b


def test_a_field_that_a_struct_fills_with_null_is_not_there(tmp_path):
    """Two tools with other parameters share one struct type; neither gets the other's parameters."""
    tools = [
        {"function": {"name": "f", "parameters": {"properties": {"city": {"type": "string"}}}}},
        {"function": {"name": "g", "parameters": {"properties": {"days": {"type": "integer"}}}}},
    ]
    rows = [{"id": "a", "messages": [say("user", "hi"), say("assistant", "yes")], "source": "s", "tools": tools}]
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    ((_, text),) = entries_of(path)[0]
    assert json.loads(text)["tools"] == tools


def test_one_odd_row_does_not_slow_its_neighbours(tmp_path):
    """Only the rows that are not plain become Python objects."""
    odd = {"id": "x", "messages": [say("user", None)], "source": "s"}
    rows = [*records(50), odd, *records(50)]
    path = write(tmp_path, rows, TULU)
    with patch.object(parquet, "_add_records", wraps=parquet._add_records) as one_by_one:
        assert reasons(path) == [None] * 50 + ["content_null"] + [None] * 50
    assert [len(call.args[0]) for call in one_by_one.call_args_list] == [1]
