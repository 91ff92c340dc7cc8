"""Row groups that were written one by one -> one parquet file, with the footer that a single writer would have written.

A parquet writer keeps the footer to itself until the end, so what a killed one leaves cannot be read. Here every row
group is made as a small parquet file of its own in memory; its pages go to the shard as they are, its footer is kept, and
the footer of the shard is all of them together. Pages hold no positions; footers do, and each is moved by where its group
stands. pyarrow cannot move them, hence the codec below: Thrift's compact protocol, values and their order kept as they
were read, so what is not moved is written back to the byte. tests/test_footer.py compares with pyarrow's own files.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)

#: A struct: (field id, type, value) of each field, in order. A list: (type of its items, items).
Struct = list[tuple[int, int, Any]]

# parquet.thrift: fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_META_DATA = 3
_CHUNK_OFFSETS = (2, 4, 6)  # file_offset, offset_index_offset, column_index_offset
_PAGE_OFFSETS = (9, 10, 11, 14)  # data page, index page, dictionary page, bloom filter


def split(file: memoryview) -> tuple[memoryview, bytes]:
    """(pages, footer) of a whole parquet file in memory; the footer without its length and the magic after it."""
    size = int.from_bytes(file[-8:-4], "little")
    if bytes(file[:4]) != MAGIC or bytes(file[-4:]) != MAGIC or size > len(file) - 12:
        raise ValueError("not a parquet file")
    return file[4 : -8 - size], bytes(file[-8 - size : -8])


def alone(pages: bytes, footer: bytes) -> bytes:
    """What `split` took apart, put together again."""
    return b"".join([MAGIC, pages, footer, len(footer).to_bytes(4, "little"), MAGIC])


def end_of_file(footers: Sequence[bytes], starts: Sequence[int]) -> bytes:
    """All that follows the pages: footers of files of one row group each, whose pages stand at `starts` in the shard."""
    first, _ = _read_struct(footers[0], 0)
    groups, num_rows = [], 0
    kind = _STRUCT
    for index, (footer, start) in enumerate(zip(footers, starts, strict=True)):
        fields = {number: value for number, _, value in _read_struct(footer, 0)[0]}
        kind, (group,) = fields[_ROW_GROUPS]
        groups.append(_moved(group, index, start - len(MAGIC)))
        num_rows += fields[_NUM_ROWS]
    new = {_NUM_ROWS: num_rows, _ROW_GROUPS: (kind, groups)}
    whole = bytearray()
    _write_struct(whole, [(number, kind, new.get(number, value)) for number, kind, value in first])
    return bytes(whole) + len(whole).to_bytes(4, "little") + MAGIC


def _moved(group: Struct, ordinal: int, by: int) -> Struct:
    def moved(fields: Struct, offsets: Sequence[int]) -> Struct:
        return [(n, kind, value + by if n in offsets and value > 0 else value) for n, kind, value in fields]

    def chunk(fields: Struct) -> Struct:
        return [
            (n, kind, moved(value, _PAGE_OFFSETS) if n == _META_DATA else value)
            for n, kind, value in moved(fields, _CHUNK_OFFSETS)
        ]

    result = []
    for number, kind, value in moved(group, (_GROUP_OFFSET,)):
        if number == _COLUMNS:
            value = (value[0], [chunk(column) for column in value[1]])
        result.append((number, kind, ordinal if number == _ORDINAL else value))
    return result


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _read_integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _read_number(data, at)
    return (value >> 1) ^ -(value & 1), at


def _read_struct(data: bytes, at: int) -> tuple[Struct, int]:
    fields: Struct = []
    number = 0
    while header := data[at]:
        at += 1
        kind = header & 15
        if header >> 4:
            number += header >> 4
        else:
            number, at = _read_integer(data, at)
        value: Any = None
        if kind not in (_TRUE, _FALSE):  # of these the type is the value
            value, at = _read(data, at, kind)
        fields.append((number, kind, value))
    return fields, at + 1


def _read(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _read_integer(data, at)
    if kind == _STRUCT:
        return _read_struct(data, at)
    if kind == _BINARY:
        size, at = _read_number(data, at)
        return data[at : at + size], at + size
    if kind in (_LIST, _SET):
        header, at = data[at], at + 1
        size, inner = header >> 4, header & 15
        if size == 15:
            size, at = _read_number(data, at)
        items = []
        for _ in range(size):
            item, at = _read(data, at, inner)
            items.append(item)
        return (inner, items), at
    if kind in (_BYTE, _TRUE, _FALSE):  # a truth value inside a list is a byte
        return data[at], at + 1
    if kind == _DOUBLE:
        return struct.unpack_from("<d", data, at)[0], at + 8
    raise ValueError(f"a footer with a value of type {kind}")


def _write_number(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_integer(out: bytearray, value: int) -> None:
    _write_number(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_struct(out: bytearray, fields: Struct) -> None:
    before = 0
    for number, kind, value in fields:
        if 0 < number - before < 16:
            out.append((number - before) << 4 | kind)
        else:
            out.append(kind)
            _write_integer(out, number)
        before = number
        if kind not in (_TRUE, _FALSE):
            _write(out, kind, value)
    out.append(0)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind in _INTEGERS:
        _write_integer(out, value)
    elif kind == _STRUCT:
        _write_struct(out, value)
    elif kind == _BINARY:
        _write_number(out, len(value))
        out += value
    elif kind in (_LIST, _SET):
        inner, items = value
        out.append(min(len(items), 15) << 4 | inner)
        if len(items) >= 15:
            _write_number(out, len(items))
        for item in items:
            _write(out, inner, item)
    elif kind == _DOUBLE:
        out += struct.pack("<d", value)
    else:
        out.append(value)
