"""megatron.core's IndexedDataset reads the megatron export, and gives the pairs of the build."""

import numpy as np
import pytest
from export.readers import canonical, pairs
from support import build_files, records, write_jsonl

from databuild.export.run import export

indexed_dataset = pytest.importorskip("megatron.core.datasets.indexed_dataset")


@pytest.mark.parametrize("mmap", [True, False])
def test_indexed_datasets_hold_the_rows(tmp_path, mmap, shared_tokenizer):
    build = build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", records(60))])
    folder = export(build.out, "megatron", {}, tmp_path / "out").out
    ids = indexed_dataset.IndexedDataset(str(folder / "rows_ids"), mmap=mmap)
    mask = indexed_dataset.IndexedDataset(str(folder / "rows_mask"), mmap=mmap)
    num = build.manifest.rows.rows
    assert len(ids) == len(mask) == num
    assert ids.sequence_lengths.tolist() == mask.sequence_lengths.tolist() == [64] * num
    assert ids.document_indices.tolist() == list(range(num + 1))
    assert (ids[0].dtype, mask[0].dtype) == (np.int32, np.uint8)
    found = pairs(
        (row, [(t + 1, int(token)) for t, token in enumerate(ids[row][1:]) if mask[row][t + 1]]) for row in range(num)
    )
    assert np.array_equal(found, canonical(build.out))
    assert np.array_equal(ids.get(3, offset=10, length=5), ids[3][10:15])


def test_its_own_writer_makes_the_same_bytes(tmp_path, shared_tokenizer):
    import torch

    build = build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", records(60))])
    folder = export(build.out, "megatron", {}, tmp_path / "out").out
    for name, dtype in (("rows_ids", np.int32), ("rows_mask", np.uint8)):
        source = indexed_dataset.IndexedDataset(str(folder / name))
        builder = indexed_dataset.IndexedDatasetBuilder(str(tmp_path / f"{name}.bin"), dtype=dtype)
        for row in range(len(source)):
            builder.add_document(torch.from_numpy(source[row].copy()), [64])
        builder.finalize(str(tmp_path / f"{name}.idx"))
        for suffix in ("bin", "idx"):
            assert (tmp_path / f"{name}.{suffix}").read_bytes() == (folder / f"{name}.{suffix}").read_bytes()
