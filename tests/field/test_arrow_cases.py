"""Faults of Arrow and parquet that others have had. Each test names the reports it answers."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from databuild.config import MAX_ROW_TOKENS, BuildSpec
from databuild.pack import Rows
from databuild.rows import ROWS_PER_GROUP, RowWriter, read_groups, select
from databuild.sources.spool import Spool, SpoolWriter


def made(num, size=256):
    """Rows of tokens that do not compress."""
    random = np.random.default_rng(num)
    mask = np.ones((num, size), np.uint8)
    mask[:, 0] = 0
    return Rows(
        input_ids=random.integers(0, 129_280, (num, size)).astype(np.int32),
        loss_mask=mask,
        doc_starts=np.zeros(num, np.int32),
        doc_rows=np.arange(num, dtype=np.int64),
        doc_offsets=np.arange(num + 1, dtype=np.int64),
    )


def written(folder, all_rows, parts):
    """A row file, from parts of these sizes."""
    writer, start = RowWriter(folder), 0
    for part in parts:
        writer.add(select(all_rows, start, start + part))
        start += part
    assert start == len(all_rows)
    ((path, _),) = writer.finish()
    return path


@pytest.mark.parametrize(
    "parts",
    [[1] * 300, [300], [127, 1, 1, 171], [129, 128, 43]],
    ids=["one by one", "at once", "over the edge", "beyond the edge"],
)
def test_row_groups_have_their_size_whatever_came_at_a_time(tmp_path, parts):
    """https://github.com/apache/arrow/issues/43387

    Rows that come one by one make no row groups of one row.
    """
    metadata = pq.read_metadata(written(tmp_path, made(300), parts))
    sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert ROWS_PER_GROUP == 128 and sizes == [128, 128, 44]


def test_a_reader_holds_a_row_group_at_a_time(tmp_path):
    """https://github.com/apache/arrow/issues/39808, https://github.com/apache/arrow/issues/45439

    What Arrow holds while all row groups are read is that of a few, and does not grow with the file.
    """
    path = written(tmp_path, made(128 * 24), [128 * 24])
    group = 128 * 256 * 5
    start = pa.total_allocated_bytes()
    held = []
    for table, part, _ in read_groups([path], 256):
        held.append(pa.total_allocated_bytes() - start)
        assert len(part) == len(table) == 128
    assert len(held) == 24 and max(held[2:]) < 6 * group


def test_texts_beyond_two_gigabytes_are_found(tmp_path):
    """https://github.com/hiyouga/LlamaFactory/issues/7526

    The spool counts in 64 bits: a text that begins 3 GB into it is read as it is. (Of the texts before it there is only the
    length: a hole in the file.)
    """
    writer = SpoolWriter(tmp_path / "spool")
    one = np.ones(1, np.int64)
    for text in ("first", "x", "third 東京"):
        data = text.encode()
        writer.add(
            text=data, message_lengths=np.array([len(data)]), roles=np.array([1], np.uint8), counts=one, sources=[None], ids=None
        )  # fmt: skip
    writer.close()
    hole, third = 3 << 30, "third 東京".encode()
    lengths = np.fromfile(tmp_path / "spool" / "message_lengths", np.int64)
    lengths[1] = hole
    lengths.tofile(tmp_path / "spool" / "message_lengths")
    with open(tmp_path / "spool" / "text", "r+b") as file:
        file.seek(5 + hole)
        file.write(third)
        file.truncate()
    spool = Spool(tmp_path / "spool", ["(none)"])
    try:
        assert spool.take(np.array([2, 0])).texts == ["third 東京", "first"]
    finally:
        spool.close()


def test_the_offsets_of_a_row_group_fit(tmp_path):
    """https://github.com/huggingface/datasets/issues/6206

    Lists of a row group are counted in 32 bits, so row_tokens has a limit that keeps them below 2^31.
    """
    from databuild.cli import app

    assert ROWS_PER_GROUP * MAX_ROW_TOKENS < 1 << 31
    with pytest.raises(ValueError, match="row_tokens"):
        BuildSpec(row_tokens=MAX_ROW_TOKENS + 1, seed=0, rows=None, tokenizer_sha256="", sources=[])
    ran = CliRunner().invoke(app, ["fixed", "--source", "demo", "--row-tokens", str(MAX_ROW_TOKENS + 1)])
    assert ran.exit_code == 2
    huge = made(3, size=1 << 18)
    path = written(tmp_path, huge, [1, 2])
    ((_, back, _),) = read_groups([path], 1 << 18)
    assert np.array_equal(back.input_ids, huge.input_ids)
