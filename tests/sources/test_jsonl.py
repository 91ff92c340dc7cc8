"""JSON Lines and JSON arrays: every record as it stands, or an error that names its place. Never fewer records."""

import gzip
import json
import math
import re
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import everything, opened, read, reasons, refusal

from databuild.errors import SourceError
from databuild.sources import jsonl
from databuild.sources.jsonl import read_records

LINES = [".jsonl", ".jsonl.gz", ".jsonl.zst"]
ALL = [*LINES, ".json"]
USER = 1


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


COMPRESS = {".gz": gzip.compress, ".zst": zstd}


def write(folder, data, suffix=".jsonl"):
    """A file of these bytes; its name is in the error."""
    path = Path(folder, "file" + suffix)
    path.write_bytes(COMPRESS.get(path.suffix, bytes)(data if isinstance(data, bytes) else data.encode("utf-8")))
    return path


def write_records(folder, records, suffix):
    texts = [json.dumps(record) for record in records]
    return write(folder, f"[{', '.join(texts)}]" if suffix == ".json" else "\n".join(texts) + "\n", suffix)


def values(path):
    return [record for _, record in read_records(path)]


def error_of(path):
    with pytest.raises(SourceError) as caught:
        values(path)
    assert caught.value.exit_code == 3
    return caught.value


def conversation(user="hi", assistant="yo", **more):
    return {"messages": [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}], **more}


def texts_of(path):
    return [[text for _, text in entries] for _, _, _, entries in read(path)]


# --------------------------------------------------------------------------------- whatever is written is read back

json_values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 64) - 1), st.floats(allow_nan=False), st.text(),
        st.sampled_from(["\u2028", "a\u0085b", "\r\n", "\\", '"', "\x00", "\x7f", "\ufeff", "[", "}", "\U0001f600"]),
    ),
    lambda children: st.one_of(st.lists(children, max_size=4), st.dictionaries(st.text(max_size=4), children, max_size=4)),
    max_leaves=12,
)  # fmt: skip
json_records = st.lists(
    st.one_of(st.dictionaries(st.text(max_size=8), json_values, max_size=4), json_values), max_size=6
)
block_sizes = st.one_of(st.integers(1, 12), st.just(1 << 20))


@settings(max_examples=150, deadline=None)
@given(json_records, st.data())
def test_an_array_in_any_style_reads_back(tmp_path_factory, records, data):
    style = data.draw(
        st.fixed_dictionaries(
            {
                "indent": st.sampled_from([None, 0, 1, 4, "\t", " \r\n "]),
                "separators": st.sampled_from([None, (",", ":"), (" , ", " : "), (",\n", ":\t")]),
                "ensure_ascii": st.booleans(),
            }
        )
    )
    before, after = data.draw(st.sampled_from(["", "\ufeff", " \n"])), data.draw(st.sampled_from(["", "\n", " \r\n\t"]))
    text = before + _dumps(records, **style) + after
    path = write(tmp_path_factory.getbasetemp(), text, ".json")
    with patch.object(jsonl, "_BLOCK", data.draw(block_sizes)):
        assert _same(values(path), records)


@settings(max_examples=150, deadline=None)
@given(json_records, st.sampled_from(LINES), st.data())
def test_lines_in_any_style_read_back(tmp_path_factory, records, suffix, data):
    ends = st.sampled_from(["\n", "\r\n", "\n\n", " \t\n \r\n\n"])
    text = data.draw(st.sampled_from(["", "\ufeff", "\n", "\ufeff\n"]))
    for record in records:
        text += data.draw(st.sampled_from(["", " ", "\t"])) + _dumps(record, ensure_ascii=data.draw(st.booleans()))
        text += data.draw(ends)
    if text.endswith("\n") and data.draw(st.booleans()):
        text = text[:-1]
    path = write(tmp_path_factory.getbasetemp(), text, suffix)
    with patch.object(jsonl, "_BLOCK", data.draw(block_sizes)):
        assert _same(values(path), records)


def _dumps(value, **style):
    """json.dumps has no name for infinity in JSON; a number too large for a float is one."""
    text = json.dumps(value, **style)
    return re.sub(r'("(?:[^"\\]|\\.)*")|Infinity', lambda match: match[1] or "1e999", text)


def _same(found, expected):
    """Equal, and of equal types: true is not 1, 1 is not 1.0."""
    return repr(found) == repr(expected)


@pytest.mark.parametrize(
    "number", ["1", "-1", "12.5", "1e5", "1E+2", "-0.5e-3", "18446744073709551615", "true", "null"]
)
def test_scalars_are_never_read_in_part(tmp_path, number):
    """A number has no end of its own: a block that ends inside it must not make it another."""
    path = write(tmp_path, f"[{number},{number}]", ".json")
    for size in range(1, 12):
        with patch.object(jsonl, "_BLOCK", size):
            assert values(path) == [json.loads(number)] * 2


# ------------------------------------------------------------------------------------------------------ line ends


@pytest.mark.parametrize("suffix", ALL)
@pytest.mark.parametrize(
    "text", ["a\u2028b", "a\u2029b", "a\u0085b", "a\x1cb\x1d", "a\x0bb\x0c", "a\rb", "a\nb", "\ufeffa"]
)
@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_only_a_newline_ends_a_line(tmp_path, suffix, text, ensure_ascii):
    line = json.dumps(conversation(text, text * 2), ensure_ascii=ensure_ascii)
    path = write(tmp_path, f"[{line},{line}]" if suffix == ".json" else f"{line}\n{line}", suffix)
    assert texts_of(path) == [[text, text * 2]] * 2


@pytest.mark.parametrize("suffix", LINES)
def test_the_last_line_needs_no_newline(tmp_path, suffix):
    line = json.dumps(conversation())
    expected = read(write(tmp_path, f"{line}\n{line}\n", suffix))
    assert read(write(tmp_path, f"{line}\n{line}", suffix)) == expected
    assert read(write(tmp_path, f"\ufeff{line}\r\n\r\n \n{line}\r\n", suffix)) == expected


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_concatenated_members_are_one_file(tmp_path, suffix, size):
    """`cat a.gz b.gz > c.gz`; a member may end inside a line, or inside a character."""
    records = [conversation("é" * n, "日本" * n) for n in range(5)]
    data = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()
    path = tmp_path / f"file{suffix}"
    path.write_bytes(b"".join(COMPRESS[path.suffix](data[i : i + size]) for i in range(0, len(data), size)))
    assert values(path) == records


# -------------------------------------------------------------------------------------------- cut off and damaged

SMALL = [conversation("é", "日本"), {"messages": [], "x": [1, {"y": "\u2028"}]}, conversation("a b", "c\n")]


def test_lines_cut_anywhere(tmp_path):
    lines = [json.dumps(record, ensure_ascii=False).encode() for record in SMALL]
    data = b"\n".join(lines) + b"\n"
    starts = [0, len(lines[0]) + 1, len(lines[0]) + len(lines[1]) + 2, len(data)]
    whole_at = {start + len(line) for start, line in zip(starts, lines, strict=False)} | set(starts)
    for cut in range(len(data)):
        path = write(tmp_path, data[:cut])
        whole = sum(start + len(line) <= cut for start, line in zip(starts, lines, strict=False))
        if cut in whole_at:
            assert values(path) == SMALL[:whole]
        else:
            error = error_of(path)
            place, within = error.where.split(" + ")
            assert place == f"file.jsonl, line {whole + 1}, byte {starts[whole]}", cut
            assert 0 <= int(within) <= cut - starts[whole]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("block", [1, 5, 1 << 20])
def test_an_array_cut_anywhere(tmp_path, indent, block):
    data = json.dumps(SMALL, ensure_ascii=False, indent=indent).encode()
    with patch.object(jsonl, "_BLOCK", block):
        for cut in range(len(data)):
            assert error_of(write(tmp_path, data[:cut], ".json")).where.startswith("file.json"), cut
        for after in (b"", b"\n", b" \r\n"):
            assert values(write(tmp_path, data + after, ".json")) == SMALL


def test_the_place_where_an_array_is_cut_off(tmp_path):
    data = json.dumps(SMALL)
    error = error_of(write(tmp_path, data[:-1], ".json"))
    assert (error.where, error.found) == ("file.json, after record 3", "the end of the file")
    error = error_of(write(tmp_path, data[:-8], ".json"))
    assert (error.where, error.found) == ("file.json, after record 2", "Unterminated string starting at")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "'' at the start"),
        ('{"messages": []}', "'{' at the start"),
        ('{"a": 1}\n{"a": 1}', "'{' at the start"),
        ("[", "the end of the file"),
        ("[{},]", "Expecting value"),
        ("[,{}]", "Expecting value"),
        ("[{} {}]", "'{'"),
        ("[{}}", "'}'"),
        ("[{},", "the end of the file"),
        ("[{'a': 1}]", "Expecting property name enclosed in double quotes"),
        ('[{"a": NaN}]', "NaN is not JSON"),
        ('[{"a": -Infinity}]', "-Infinity is not JSON"),
        ('[{"a": "\n"}]', "Invalid control character at"),
    ],
)
def test_what_is_no_array(tmp_path, text, found):
    assert error_of(write(tmp_path, text, ".json")).found == found


@pytest.mark.parametrize("after", ["]", "{}", "x", "[]", "\ufeff"])
def test_more_after_an_array(tmp_path, after):
    assert "more after" in error_of(write(tmp_path, f"[{{}}]{after}", ".json")).what


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_a_compressed_file_cut_anywhere(tmp_path, suffix):
    data = json.dumps(conversation("é", "日本")).encode() + b"\n"
    path = write(tmp_path, data, suffix)
    whole = path.read_bytes()
    for cut in range(1, len(whole)):
        path.write_bytes(whole[:cut])
        assert "cut off" in error_of(path).what and error_of(path).where == path.name
    for cut in range(1, len(whole)):  # what is cut off is the second of two members
        path.write_bytes(whole + whole[:cut])
        assert "cut off" in error_of(path).what


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
@pytest.mark.parametrize("garbage", [b"\0" * 8, b"garbage", b"\n", b'{"messages": []}\n'])
def test_what_is_not_compressed_is_refused(tmp_path, suffix, garbage):
    path = write(tmp_path, json.dumps(conversation()), suffix)
    path.write_bytes(path.read_bytes() + garbage)
    assert "damaged" in error_of(path).what
    path.write_bytes(garbage)
    assert "damaged" in error_of(path).what


def test_a_gz_with_a_flipped_bit_is_refused_or_unharmed(tmp_path):
    path = write(tmp_path, json.dumps(conversation("é" * 40, "日本")), ".jsonl.gz")
    whole, expected = path.read_bytes(), values(path)
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        try:
            assert values(path) == expected  # the header holds bits that mean nothing
        except SourceError as error:
            assert error.where == path.name


@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xe2\x82"])
@pytest.mark.parametrize("block", [1, 3, 1 << 20])
def test_the_place_of_what_is_not_utf8(tmp_path, bom, bad, block):
    before = bom + '{"a": "é"}\n'.encode()
    data = before + b'{"b": "' + bad + b'"}\n'
    at = data.index(bad)
    with patch.object(jsonl, "_BLOCK", block):
        error = error_of(write(tmp_path, data))
        assert error.where == f"file.jsonl, line 2, byte {len(before)} + {at - len(before)}"
        assert error.found == f"byte 0x{bad[0]:02x}"
        array = data.replace(b"}\n{", b"}, {").replace(b'{"a"', b'[{"a"').replace(b'"}\n', b'"}]')
        error = error_of(write(tmp_path, array, ".json"))
        assert error.where == f"file.json, byte {array.index(bad)}"
        assert error.found == f"byte 0x{bad[0]:02x}"


def test_the_place_in_a_first_line_after_a_bom(tmp_path):
    assert error_of(write(tmp_path, b'\xef\xbb\xbf{"a": \xff}')).where == "file.jsonl, line 1, byte 3 + 6"
    assert error_of(write(tmp_path, b'\xef\xbb\xbf{"a": x}')).where == "file.jsonl, line 1, byte 3 + 6"
    assert error_of(write(tmp_path, b"\xef\xbb\xbf{}\n{")).where.startswith("file.jsonl, line 2, byte 6")


def test_utf16_is_refused(tmp_path):
    assert "UTF-8" in error_of(write(tmp_path, json.dumps(conversation()).encode("utf-16"))).what
    assert "UTF-8" in error_of(write(tmp_path, json.dumps([conversation()]).encode("utf-16"), ".json")).what


@pytest.mark.parametrize(
    "line",
    ["{", '{"a": 1,}', "{'a': 1}", '{"a": 01}', '{"a": NaN}', '{"a": Infinity}', '{"a": -Infinity}', "{} {}", "nul",
     '{"a": "\t"}', '{"a": "\\x"}', '{"a": "\\ud8"}', '{"a" 1}', "[1, 2", '"a', "\x00\x00", "{}\x00", "\ufeff{}", "# a"],
)  # fmt: skip
def test_a_line_that_is_not_json(tmp_path, line):
    error = error_of(write(tmp_path, f'{{"é": 1}}\n\n{line}\n{{}}\n'))
    assert error.where.startswith("file.jsonl, line 3, byte 11 + ")
    assert "line begins" in error.found


def test_the_error_of_a_long_line_is_short(tmp_path):
    error = error_of(write(tmp_path, '{"a": "' + "x" * 100_000))
    assert len(str(error)) < 600


# --------------------------------------------------------------------------------------------- odd, but JSON


def test_lone_surrogates_are_data(tmp_path):
    """Escaped in JSON they can be read, and no text can be made of them: counted later, with their reason."""
    records = [conversation("\ud800"), conversation("a\udc00b"), conversation(**{"\ud800": "\udfff"}), conversation()]
    for suffix in ALL:
        path = write_records(tmp_path, records, suffix)
        assert values(path) == records
        assert reasons(path) == ["lone_surrogate", "lone_surrogate", None, None]


def test_a_pair_of_escaped_surrogates_is_one_character(tmp_path):
    path = write(tmp_path, r'{"messages": [{"role": "user", "content": "\ud83d\ude00"}]}')
    assert read(path) == [(0, "(none)", -1, [(USER, "😀")])]


def test_lone_surrogates_in_sources_and_ids(tmp_path):
    same = [conversation(id="\ud800", source="\ud800"), conversation(id="\ud800", source="s"), conversation(id="?")]
    for suffix in ALL:
        found = read(write_records(tmp_path, same, suffix))
        assert [source for _, source, _, _ in found] == ["(none)", "s", "(none)"]
        assert found[0][2] == found[1][2] != found[2][2]


@pytest.mark.parametrize("suffix", ALL)
@pytest.mark.parametrize(
    ("number", "expected"),
    [
        ("18446744073709551615", (1 << 64) - 1),
        ("18446744073709551616", float(1 << 64)),
        ("-9223372036854775808", -(1 << 63)),
        ("-9223372036854775809", -float(1 << 63)),
        ("-" + "9" * 19, -1e19),
        ("1" * 400, math.inf),
        ("-" + "1" * 400, -math.inf),
        ("1" * 5000, math.inf),
        ("1e400", math.inf),
        ("0." + "1" * 5000, float("0." + "1" * 30)),
        ("1e-400", 0.0),
    ],
)
def test_a_number_is_the_same_in_every_kind_of_file(tmp_path, suffix, number, expected):
    line = f'{{"messages": [{{"role": "user", "content": {number}}}], "id": {number}, "source": {number}}}'
    path = write(tmp_path, f"[{line}]" if suffix == ".json" else line, suffix)
    assert _same(values(path)[0]["id"], expected)
    assert reasons(path) == ["content_not_text"]


def test_the_last_of_two_equal_keys_wins(tmp_path):
    line = (
        '{"messages": 1, "messages": [{"role": "x", "role": "user", "content": "a", "content": "b"}], "id": 1, "id": 2}'
    )
    surrogate = line.replace('"a"', r'"\ud800"')  # takes the other parser
    for suffix in ALL:
        for text in (line, surrogate):
            path = write(tmp_path, f"[{text}]" if suffix == ".json" else text, suffix)
            assert values(path) == [json.loads(line)]


@pytest.mark.parametrize("suffix", ALL)
@pytest.mark.parametrize("begin", ['{"messages": [], "x": ', r'{"messages": [], "s": "\ud800", "x": '])
@pytest.mark.parametrize(("open_", "close"), [("[", "]"), ('{"k": ', "}"), ('[1, {"k": ', "}]")])
def test_nesting(tmp_path, suffix, begin, open_, close):
    """256 levels are read; more are refused, whichever parser reads them."""
    step = len(close)

    def path(levels):
        text = begin + open_ * ((levels - 1) // step) + '"end"' + close * ((levels - 1) // step) + "}"
        return write(tmp_path, f"[{text}]" if suffix == ".json" else text, suffix)

    deepest = 256 if step == 1 else 255
    assert len(values(path(deepest))) == 1
    for levels in (deepest + step, 1001, 1501, 3001, 200_001):
        error = error_of(path(levels))
        assert "nested" in error.what and error.where.startswith(f"file{suffix}, "), levels


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
def test_the_deepest_content_goes_through_a_build(tmp_path, cli, suffix):
    content = json.loads("[" * 252 + "]" * 252)
    records = [conversation(content), *[conversation("a b c", "d e f")] * 9]
    path = write_records(tmp_path, records, suffix)
    ran = cli("fixed", "--source", path, "--row-tokens", 8, "--json", "--out", tmp_path / "rows")
    assert ran.code == 0, ran.err
    assert ran.json["counts"]["skipped"] == {"content_not_text": 1}


def test_many_brackets_are_not_deep(tmp_path):
    records = [{"messages": [], "x": [[]] * 5000, "y": "[{" * 5000}]
    for suffix in ALL:
        assert values(write_records(tmp_path, records, suffix)) == records


# ------------------------------------------------------------------------------------------- not a conversation


@pytest.mark.parametrize("suffix", ALL)
@pytest.mark.parametrize(
    ("value", "found"),
    [([], "an array"), ("x", "a string"), (None, "null"), (3, "a number"), (0.5, "a number"), (True, "true or false")],
)
def test_a_record_that_is_not_an_object(tmp_path, suffix, value, found):
    error = refusal(write_records(tmp_path, [conversation(), value], suffix))
    assert error.what == "a record is not a JSON object" and error.found == found
    assert error.where.startswith(f"file{suffix}, " + ("record 2" if suffix == ".json" else "line 2, byte "))


@pytest.mark.parametrize("suffix", ALL)
def test_the_first_record_must_have_messages(tmp_path, suffix):
    error = refusal(write_records(tmp_path, [{"id": 1, "conversations": []}, conversation()], suffix))
    assert error.what == "the first record has no messages"
    assert error.found == "'conversations', 'id'" and "sharegpt" in error.next_step
    assert refusal(write_records(tmp_path, [{}], suffix)).found == "no keys"


@pytest.mark.parametrize("suffix", ALL)
def test_a_later_record_without_messages_is_counted(tmp_path, suffix):
    records = [conversation(), {}, {"messages": None}, {"messages": "x"}, {"messages": []}, {"messages": [[]]}]
    assert reasons(write_records(tmp_path, records, suffix)) == [
        None,
        "messages_null",
        "messages_null",
        "messages_not_list",
        "messages_empty",
        "message_not_object",
    ]


def test_ids_and_sources(tmp_path):
    values_ = ["1", 1, "1", True, 1.0, None, [1], {"a": 1}, "", 0, -1, "é"]
    records = [conversation(id=value, source=value) for value in values_] + [conversation()]
    for suffix in ALL:
        found = read(write_records(tmp_path, records, suffix))
        codes = [code for _, _, code, _ in found]
        assert codes[0] == codes[2]
        named = [codes[i] for i in (0, 1, 8, 9, 10, 11)]
        assert len(set(named)) == 6 and min(named) == 0  # the text "1" and the number 1 are two ids
        assert [codes[i] for i in (3, 4, 5, 6, 7, 12)] == [-1] * 6
        texts = [value if isinstance(value, str) else "(none)" for value in values_] + ["(none)"]
        assert [source for _, source, _, _ in found] == texts


def test_num_ids_bounds_the_codes(tmp_path):
    for ids, expected in (([], 0), ([None], 0), (["a"], 1), (["a", None, "b", "a"], 2)):
        with opened(write_records(tmp_path, [conversation(id=i) for i in [None, *ids]], ".jsonl")) as source:
            assert source.num_ids == expected
            assert everything(source).id_codes.max() == expected - 1


# ------------------------------------------------------------------------------------------------------ too long


@pytest.mark.parametrize("block", [1, 7, 50, 1 << 20])
@pytest.mark.parametrize("end", ["\n", "\n{}\n", ""])
def test_a_line_that_is_too_long(tmp_path, monkeypatch, block, end):
    monkeypatch.setattr(jsonl, "_BLOCK", block)
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 60)
    fits = '{"a": "' + "x" * 51 + '"}'
    assert len(fits) == 60
    assert len(values(write(tmp_path, f"{fits}\n{fits}{end}"))) >= 2
    error = error_of(write(tmp_path, f"{fits}\n{fits.replace('x', 'xx', 1)}{end}"))
    assert error.what.startswith("a line is too long") and error.where == "file.jsonl, line 2, byte 61"


def test_a_file_without_line_ends_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "_BLOCK", 10)
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 1000)
    path = write(tmp_path, "x" * 100_000)
    taken = []
    blocks = jsonl._blocks
    monkeypatch.setattr(jsonl, "_blocks", lambda path: (taken.append(block) or block for block in blocks(path)))
    assert "too long" in error_of(path).what
    assert sum(map(len, taken)) < 1100
    taken.clear()
    assert error_of(write(tmp_path, '["' + "x" * 100_000, ".json")).where == "file.json, after record 0"
    assert sum(map(len, taken)) < 5000


def test_a_record_of_an_array_that_is_too_long(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonl, "MAX_LINE_BYTES", 60)
    fits = '{"a": "' + "x" * 51 + '"}'
    assert len(values(write(tmp_path, f"[{fits}, {fits}]", ".json"))) == 2
    error = error_of(write(tmp_path, f"[{fits}, {fits.replace('x', 'xx', 1)}]", ".json"))
    assert error.where == "file.json, after record 1" and "60 characters" in error.found


# ------------------------------------------------------------------------------------------------------- the spool


def test_any_rows_in_any_order(tmp_path):
    records = [conversation(f"q{i}", "a" * i) if i % 3 else {"messages": [], "i": i} for i in range(20)]
    path = write_records(tmp_path, records, ".jsonl")
    with opened(path) as source:
        whole = everything(source)
        texts = {}
        first = 0
        for row, count in enumerate(whole.counts.tolist()):
            texts[row] = whole.texts[first : first + count]
            first += count
        for order in ([], [19], [0, 19, 1], [5, 5, 3], list(range(19, -1, -1))):
            batch = source.take(np.array(order, np.int64))
            assert batch.rows.tolist() == order
            assert batch.texts == [text for row in order for text in texts[row]]
            assert len(batch.roles) == len(batch.texts) == batch.counts.sum()


def test_empty_texts_only(tmp_path):
    assert texts_of(write_records(tmp_path, [conversation("", "")], ".jsonl")) == [["", ""]]


def test_the_spool_is_gone_after_close(tmp_path):
    path = write_records(tmp_path, [conversation()], ".jsonl")
    with opened(path) as source:
        folder = source._spool.folder
        assert folder.exists()
        source.close()
        assert not folder.exists()
