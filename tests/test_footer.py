"""A row file made group by group has the bytes of one that pyarrow writes in one go."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from databuild import footer
from databuild.pack import Rows
from databuild.rows import SCHEMA, RowWriter, canonical_bytes, read_groups, select, to_table

OPTIONS = {
    "version": "2.6", "compression": "zstd", "compression_level": 1, "use_dictionary": False, "write_statistics": False,
    "column_encoding": {"input_ids.list.element": "BYTE_STREAM_SPLIT"}, "store_schema": True,
}  # fmt: skip


def some_rows(num, size=24):
    random = np.random.default_rng(num)
    documents = random.integers(1, 4, num)
    return Rows(
        input_ids=random.integers(0, 129_280, (num, size)).astype(np.int32),
        loss_mask=random.integers(0, 2, (num, size)).astype(np.uint8),
        doc_starts=np.concatenate([np.arange(n) * 5 for n in documents]).astype(np.int32),
        doc_rows=random.integers(0, 1 << 40, int(documents.sum())),
        doc_offsets=np.append(0, np.cumsum(documents)).astype(np.int64),
    )


def in_one_go(rows, group, shard):
    """The bytes of each shard, by one writer of pyarrow each."""
    files = []
    for begin in range(0, len(rows), shard):
        sink = io.BytesIO()
        with pq.ParquetWriter(sink, SCHEMA, **OPTIONS) as writer:
            for start in range(begin, min(begin + shard, len(rows)), group):
                part = select(rows, start, min(start + group, begin + shard, len(rows)))
                writer.write_table(
                    to_table(part, start, canonical_bytes(part.input_ids, part.loss_mask)), row_group_size=group
                )
        files.append(sink.getvalue())
    return files


@pytest.mark.parametrize(
    ("num", "group", "shard"), [(1, 128, 1024), (300, 128, 1024), (300, 3, 600), (300, 3, 99), (64, 4, 32)]
)
def test_the_bytes_are_those_of_one_writer(tmp_path, monkeypatch, num, group, shard):
    monkeypatch.setattr("databuild.rows.ROWS_PER_GROUP", group)
    rows = some_rows(num)
    writer = RowWriter(tmp_path, rows_per_shard=shard)
    for start in range(0, num, 7):
        writer.add(select(rows, start, min(start + 7, num)))
    paths = [path for path, _ in writer.finish()]
    assert [path.read_bytes() for path in paths] == in_one_go(rows, group, shard)
    back = [part for _, part, _ in read_groups(paths, 24)]
    assert np.array_equal(np.concatenate([part.input_ids for part in back]), rows.input_ids)


def test_a_file_without_rows(tmp_path):
    ((path, num),) = RowWriter(tmp_path).finish()
    assert num == 0 and pq.read_table(path).schema.equals(SCHEMA)


def test_what_is_taken_apart_goes_together_again():
    (file,) = in_one_go(some_rows(50), 10, 50)
    pages, end = footer.split(memoryview(file))
    assert footer.alone(bytes(pages), end) == file
    for bad in (b"", b"PAR1PAR1", file[:-1], file[1:], b"PAR1" + b"\xff" * 4 + b"PAR1"):
        with pytest.raises(ValueError, match="not a parquet file"):
            footer.split(memoryview(bad))


FILES = [
    {"use_dictionary": True, "write_statistics": True, "write_page_index": True, "data_page_version": "2.0"},
    {"compression": {"a": "gzip", "b.list.element": "none"}, "use_dictionary": False, "write_page_checksum": True},
    {"sorting_columns": [pq.SortingColumn(0, descending=True, nulls_first=True)]},
]


@pytest.mark.parametrize("options", FILES)
def test_any_footer_is_written_back_to_the_byte(options):
    sink = io.BytesIO()
    table = pa.table({"a": [1.5, None, -2.0] * 30, "b": [[True], None, []] * 30, "ü": ["x", "y" * 99, ""] * 30})
    pq.write_table(table.replace_schema_metadata({"key": "value"}), sink, row_group_size=20, **options)
    _, end = footer.split(memoryview(sink.getvalue()))
    fields, stop = footer._read_struct(end, 0)
    out = bytearray()
    footer._write_struct(out, fields)
    assert stop == len(end) and bytes(out) == end


@settings(max_examples=200, deadline=None)
@given(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.binary(max_size=40),
    st.floats(allow_nan=False),
    st.lists(st.integers(0, 1 << 40), max_size=40),
)
def test_any_value_is_read_as_it_was_written(number, data, real, numbers):
    fields = [
        (1, 6, number),
        (2, 1, None),
        (40, 8, data),
        (41, 7, real),
        (42, 9, (6, numbers)),
        (43, 12, [(7, 2, None)]),
        (44, 3, 200),
    ]
    out = bytearray()
    footer._write_struct(out, fields)
    assert footer._read_struct(bytes(out), 0) == (fields, len(out))
