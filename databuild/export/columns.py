"""Parquet files of lists of numbers: written a row group at a time, read back with every length checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from databuild.arrow import UNREADABLE, array_of, column_values, first_line
from databuild.export.common import not_whole


def lists(name: str, kind: pa.DataType) -> pa.Field:
    """A column of lists without nulls."""
    return pa.field(name, pa.list_(pa.field("element", kind, nullable=False)), nullable=False)


def fixed(values: npt.NDArray[Any], kind: pa.Field) -> pa.Array:
    """The rows of a matrix as a column of lists."""
    offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
    return ragged(values.reshape(-1), offsets, kind)


def ragged(values: npt.NDArray[Any], offsets: npt.NDArray[Any], kind: pa.Field) -> pa.Array:
    """values[offsets[i]:offsets[i + 1]] as list i of a column."""
    return pa.ListArray.from_arrays(array_of(offsets.astype(np.int32)), array_of(values), type=kind.type)


class TableFile:
    """Writes a parquet file; a row group each time. Plain encodings, which every reader knows; constants take a dictionary."""

    def __init__(self, path: Path, schema: pa.Schema, *, constants: Sequence[str] = ()) -> None:
        self._schema = schema
        self._writer: Any = pq.ParquetWriter(
            path,
            schema,
            version="2.6",
            compression="zstd",
            compression_level=1,
            use_dictionary=list(constants),
            write_statistics=False,
            store_schema=True,
        )

    def __enter__(self) -> TableFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()

    def write(self, columns: Sequence[pa.Array]) -> None:
        """Write one row group."""
        table = pa.Table.from_arrays(list(columns), schema=self._schema)
        self._writer.write_table(table, row_group_size=max(1, len(table)))


def read_tables(path: Path, schema: pa.Schema) -> Iterator[tuple[pa.Table, str]]:
    """(table, where) of each row group. IntegrityError for a file with other columns, or that cannot be read."""
    try:
        file = pq.ParquetFile(path)
        if file.schema_arrow.remove_metadata() != schema:
            raise not_whole(
                "the file has other columns",
                path.name,
                ", ".join(map(str, schema)),
                ", ".join(map(str, file.schema_arrow)),
            )
        for group in range(file.metadata.num_row_groups):
            yield file.read_row_group(group), f"{path.name}, row group {group}"
    except UNREADABLE as error:
        raise not_whole("the file cannot be read", path.name, None, first_line(error)) from error


def matrix(table: pa.Table, name: str, width: int, where: str) -> npt.NDArray[Any]:
    """[rows, width]: a column of lists that must all be `width` long."""
    values, lengths = ragged_values(table, name)
    if (wrong := np.flatnonzero(lengths != width)).size:
        at = int(wrong[0])
        raise not_whole(f"{name} has another length", f"{where}, its row {at}", str(width), str(lengths[at]))
    return values.reshape(-1, width)


def ragged_values(table: pa.Table, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """(all values, length of each list) of a column of lists."""
    import pyarrow.compute as pc

    column = table.column(name).combine_chunks()
    return column_values(column.flatten()), column_values(pc.list_value_length(column)).astype(np.int64)
