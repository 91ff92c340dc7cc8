"""Parquet shards -> the spool. Plain text turns go over as Arrow buffers, without a Python object for any row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from databuild.arrow import UNREADABLE, column_values, first_line
from databuild.errors import SourceError
from databuild.sources.base import RAW, ROLE_CODES
from databuild.sources.columns import ColumnMap, named_columns, needed_columns
from databuild.sources.records import RecordSpooler
from databuild.sources.spool import SpoolWriter

SUFFIXES = (".parquet",)
_BATCH_ROWS = 8192
#: Decompressed, as the file states it.
MAX_GROUP_BYTES = 4 << 30
# A batch that changes between plain and other rows more often than this goes over one by one.
_MAX_STRETCHES = 256


def read_parquet(path: Path, spool: SpoolWriter, mapping: ColumnMap | None) -> None:
    """Add every row of the file; SourceError (exit 3) names file and row group of what cannot be read."""
    file = _opened(path)
    columns = _columns(path, file.schema_arrow, mapping)
    first = 0
    for group in range(file.metadata.num_row_groups):
        where = f"{path.name}, row group {group}"
        begin = first
        _check_size(file.metadata.row_group(group), where)
        for batch in _batches(file, group, columns, where):
            _add_batch(batch, spool, mapping, f"{where}, rows {first} to {first + len(batch) - 1}")
            first += len(batch)
        expected = file.metadata.row_group(group).num_rows
        if first - begin != expected:
            raise _damaged(
                "a row group has another number of rows than it says", where, f"{first - begin:,}", f"{expected:,}"
            )
    if first != file.metadata.num_rows:
        raise _damaged(
            "the file has another number of rows than it says", path.name, f"{first:,}", f"{file.metadata.num_rows:,}"
        )


def _check_size(group: Any, where: str) -> None:
    """Refuse a row group before it is decoded if it claims more than a source of texts has at a time."""
    if group.total_byte_size > MAX_GROUP_BYTES:
        raise SourceError(
            "a row group is too large",
            where=where,
            expected=f"at most {MAX_GROUP_BYTES:,} bytes",
            found=f"{group.total_byte_size:,}",
            next_step="write the file again in smaller row groups",
        )


def _batches(file: Any, group: int, columns: list[str], where: str) -> Iterator[pa.RecordBatch]:
    try:
        for batch in file.iter_batches(batch_size=_BATCH_ROWS, row_groups=[group], columns=columns):
            # Parquet text is not checked on reading; what is not UTF-8 would reach the tokenizer as something else.
            batch.validate(full=True)
            schema = pa.schema([field.with_type(_timeless(field.type)) for field in batch.schema])
            yield batch if schema.equals(batch.schema) else batch.cast(schema)
    except UNREADABLE as error:
        raise _damaged("a row group cannot be read", where, first_line(error)) from error


def _timeless(kind: pa.DataType) -> pa.DataType:
    """The type with times as whole numbers, at any depth: Python has no value for some of them (nanoseconds)."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_timeless(field.type)) for field in map(kind.field, range(kind.num_fields))])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_timeless(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_timeless(kind.value_type)))
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind


def _opened(path: Path) -> Any:
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        _ = file.schema_arrow.names  # both are decoded only when asked for
        return file
    except UNREADABLE as error:
        raise _damaged("the file is not parquet, or is cut off", path.name, first_line(error)) from error


def _damaged(what: str, where: str, found: str, expected: str | None = None) -> SourceError:
    next_step = "nothing was written; fetch or write the file again"
    return SourceError(what, where=where, expected=expected, found=found, next_step=next_step)


def _columns(path: Path, schema: pa.Schema, mapping: ColumnMap | None) -> list[str]:
    required, optional = needed_columns(mapping)
    expected = [*required, *named_columns(mapping)]
    missing = [name for name in expected if name not in schema.names]
    if missing:
        raise SourceError(
            f"there is no column {' and no column '.join(missing)}",
            where=path.name,
            expected=", ".join(expected),
            found=", ".join(schema.names) or "no columns",
            next_step="name the columns: --columns sharegpt | openmath | alpaca | messages=…,role=…,content=…",
        )
    chosen = [name for name in dict.fromkeys([*required, *optional]) if name in schema.names]
    _refuse_repeated(path, chosen, schema.names)
    if "prompt" not in (mapping or {}):
        _check_messages_type(path, schema.field(required[0]))
    return chosen


def _refuse_repeated(path: Path, chosen: list[str], names: list[str]) -> None:
    repeated = [name for name in chosen if names.count(name) > 1]
    if repeated:
        raise SourceError("two columns have one name", where=path.name, found=", ".join(repeated))


def _check_messages_type(path: Path, field: pa.Field) -> None:
    kind = field.type
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    if not is_list or not (pa.types.is_struct(kind.value_type) or pa.types.is_null(kind.value_type)):
        raise SourceError(
            f"the column {field.name} has another type",
            where=path.name,
            expected="list<struct<content: string, role: string>>",
            found=str(kind),
            next_step="name the right column with --columns messages=NAME",
        )
    if pa.types.is_struct(kind.value_type):
        names = [kind.value_type.field(i).name for i in range(kind.value_type.num_fields)]
        _refuse_repeated(path, list(dict.fromkeys(names)), names)


def _add_batch(batch: pa.RecordBatch, spool: SpoolWriter, mapping: ColumnMap | None, where: str) -> None:
    """Add a batch: stretches of rows that are nothing but text turns by columns, all others one by one."""
    plain = _plain_rows(batch, mapping or {})
    edges = [0, *(np.flatnonzero(np.diff(plain)) + 1).tolist(), len(plain)]
    if len(edges) > _MAX_STRETCHES:
        _add_records(batch, spool, mapping, where)
        return
    for start, stop in pairwise(edges):
        stretch = batch.slice(start, stop - start)
        if len(stretch) and plain[start]:
            _add_columns(stretch, spool, mapping or {})
        elif len(stretch):
            _add_records(stretch, spool, mapping, where)


def _add_records(batch: pa.RecordBatch, spool: SpoolWriter, mapping: ColumnMap | None, where: str) -> None:
    spooler = RecordSpooler(spool, mapping)
    try:
        records = batch.to_pylist()
    except UNREADABLE as error:
        raise SourceError("a row has a value that cannot be read", where=where, found=first_line(error)) from error
    for record in records:
        spooler.add(without_nulls(record))
    spooler.flush()


def without_nulls(value: Any) -> Any:
    """The value without null fields of objects, at any depth.

    A struct of Arrow has every field in every row, so there a field that a row never had is null. Left in, it would be
    printed into tool schemas and arguments.
    """
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _plain_rows(batch: pa.RecordBatch, mapping: ColumnMap) -> npt.NDArray[np.bool_]:
    """bool for each row: whether it is nothing but text turns with known roles."""
    none = np.zeros(len(batch), bool)
    if "prompt" in mapping:
        return none
    lists = batch.column(mapping.get("messages", "messages"))
    role_name, content_name = mapping.get("role", "role"), mapping.get("content", "content")
    if not pa.types.is_struct(lists.type.value_type):
        return none
    structs = lists.flatten()
    names = [structs.type.field(i).name for i in range(structs.type.num_fields)]
    if role_name not in names or content_name not in names:
        return none
    contents, roles = structs.field(content_name), structs.field(role_name)
    if not (_is_text(contents.type) and _is_text(roles.type)):
        return none
    unusual = _is_null(structs) | _is_null(contents) | (_role_codes(roles, mapping) == RAW)
    for name in names:
        if name not in (role_name, content_name):
            unusual |= ~_is_null(structs.field(name))
    counts = _lengths(lists)
    ends = np.cumsum(counts)
    unusual_before = np.append(0, np.cumsum(unusual))
    plain: npt.NDArray[np.bool_] = (unusual_before[ends] == unusual_before[ends - counts]) & (counts > 0)
    tools = mapping.get("tools", "tools")
    if tools in batch.schema.names:
        plain &= _is_null(batch.column(tools))
    return plain


def _add_columns(batch: pa.RecordBatch, spool: SpoolWriter, mapping: ColumnMap) -> None:
    """Add rows that are all plain, without a Python object for any text."""
    lists = batch.column(mapping.get("messages", "messages"))
    structs = lists.flatten()
    text, lengths = _text_buffer(structs.field(mapping.get("content", "content")))
    spool.add(
        text=text,
        message_lengths=lengths,
        roles=_role_codes(structs.field(mapping.get("role", "role")), mapping),
        counts=_lengths(lists),
        sources=_values(batch, mapping.get("source", "source"), str),
        ids=_values(batch, mapping.get("id", "id"), (str, int)),
    )


def _is_null(values: pa.Array) -> npt.NDArray[np.bool_]:
    if values.null_count == 0:
        return np.zeros(len(values), bool)
    nulls: npt.NDArray[np.bool_] = column_values(values.is_null()) > 0
    return nulls


def _lengths(lists: pa.Array) -> npt.NDArray[np.int64]:
    """int64: the length of each list, 0 for null."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    result: npt.NDArray[np.int64] = column_values(lengths).astype(np.int64)
    return result


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _role_codes(roles: pa.Array, mapping: ColumnMap) -> npt.NDArray[np.uint8]:
    """uint8 codes; RAW for null and for what is no role of text turns."""
    encoded = roles.dictionary_encode()
    names = mapping.get("roles") or {}
    values = [names.get(value, value) for value in encoded.dictionary.to_pylist()]
    table = np.array([*(ROLE_CODES.get(value, RAW) for value in values), RAW], np.uint8)
    indices = column_values(pc.fill_null(encoded.indices, len(values)))
    codes: npt.NDArray[np.uint8] = table[indices]
    return codes


def _text_buffer(contents: pa.Array) -> tuple[memoryview, npt.NDArray[np.int64]]:
    """The UTF-8 of an array of strings without nulls, back to back, and the length of each."""
    wide = np.int64 if pa.types.is_large_string(contents.type) else np.int32
    _, offsets_buffer, data = contents.buffers()
    if offsets_buffer is None or len(contents) == 0:
        return memoryview(b""), np.zeros(0, np.int64)
    offsets = np.frombuffer(offsets_buffer, wide)[contents.offset : contents.offset + len(contents) + 1]
    text = memoryview(data)[int(offsets[0]) : int(offsets[-1])] if data is not None else memoryview(b"")
    return text, np.diff(offsets).astype(np.int64)


def _values(batch: pa.RecordBatch, name: str, kinds: Any) -> list[Any]:
    if name not in batch.schema.names:
        return [None] * len(batch)
    return [value if isinstance(value, kinds) else None for value in batch.column(name).to_pylist()]
