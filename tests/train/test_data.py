"""RowData: the batches are the rows of the file, in order, shifted once; nothing that does not fit is trained on."""

import dataclasses
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("yaml")


from databuild.errors import IntegrityError, SourceError, UsageError  # noqa: E402
from databuild.rows import Digests, canonical_bytes, concat, read_groups, to_table  # noqa: E402
from manifests.canonical import sha256_of  # noqa: E402
from manifests.model import Manifest  # noqa: E402
from train.config import TrainConfig  # noqa: E402
from train.data import RowData, RowDataset  # noqa: E402

S = 64


def make_config(**changes):
    base = {"num_layers": 1, "hidden_size": 8, "ffn_hidden_size": 8, "num_attention_heads": 1}
    return TrainConfig(**(base | {"seq_length": S, "global_batch_size": 8} | changes))


@pytest.fixture(scope="module")
def rows(build):
    return concat([part for _, part, _ in read_groups([build / "rows.parquet"], S)])


@pytest.fixture(autouse=True)
def one_tokenizer(monkeypatch):
    from streams import tokenizer

    monkeypatch.setattr("train.data.load_tokenizer", tokenizer)


def starts_of(rows, row):
    return rows.doc_starts[rows.doc_offsets[row] : rows.doc_offsets[row + 1]].tolist()


@pytest.mark.parametrize(("dp_size", "micro_batch_size"), [(1, 1), (2, 2), (4, 1), (8, 1)])
def test_the_ranks_of_a_step_see_each_row_of_the_global_batch_once(build, rows, dp_size, micro_batch_size):
    data = RowData(build, make_config(micro_batch_size=micro_batch_size))
    for consumed in (0, 8, 24, 27, 35, 300):  # 24 crosses the end of the epoch: 30 rows; the rest is no multiple of 8
        wanted = [(consumed + i) % 30 for i in range(8)]
        by_rank = [data.micro_batches(consumed, rank, dp_size) for rank in range(dp_size)]
        seen = [batch.tokens for j in range(len(by_rank[0])) for batch in (rank[j] for rank in by_rank)]
        assert np.array_equal(torch.cat(seen).numpy(), rows.input_ids[wanted])
        targets = sum(float(batch.label_mask.sum()) for rank in by_rank for batch in rank)
        assert data.num_targets(consumed) == targets == rows.loss_mask[wanted].sum()


def test_a_micro_batch_is_the_row_shifted_once(build, rows):
    data = RowData(build, make_config())
    (batch, *_) = data.micro_batches(5, 0, 1)
    starts = starts_of(rows, 5)
    assert {name: (getattr(batch, name).dtype, tuple(getattr(batch, name).shape)) for name in vars(batch)} == {
        "tokens": (torch.int64, (1, S)),
        "labels": (torch.int64, (1, S)),
        "label_mask": (torch.float32, (1, S)),
        "loss_mask": (torch.float32, (1, S)),
        "position_ids": (torch.int64, (1, S)),
        "doc_bounds": (torch.int32, (len(starts) + 1,)),
    }
    ids, mask = rows.input_ids[5].tolist(), rows.loss_mask[5].tolist()
    assert batch.labels[0].tolist() == [*ids[1:], 0]
    assert batch.label_mask[0].tolist() == [*mask[1:], 0]
    assert batch.loss_mask[0].tolist() == mask
    assert batch.position_ids[0].tolist() == list(range(S))
    assert batch.doc_bounds.tolist() == [*starts, S]
    both = data.batch([5, 6])
    assert both.doc_bounds.tolist() == [*starts, *(S + start for start in starts_of(rows, 6)), 2 * S]


def test_a_batch_is_its_takers_own(build):
    """Whoever changes a batch in place changes no other batch of the same rows."""
    data = RowData(build, make_config())
    first = data.batch([5, 6])
    kept = {name: value.clone() for name, value in vars(first).items()}
    for value in vars(first).values():
        value.zero_()
    again = data.batch([5, 6])
    assert all(torch.equal(value, kept[name]) for name, value in vars(again).items())


def test_documents_count_from_zero_under_document_attention(build, rows):
    data = RowData(build, make_config(attention="document"))
    assert any(len(starts_of(rows, row)) > 2 for row in range(30))
    for row in range(30):
        batch = data.batch([row])
        starts = starts_of(rows, row)
        expected = [t - max(s for s in starts if s <= t) for t in range(S)]
        assert batch.position_ids[0].tolist() == expected
        assert not batch.loss_mask[0][starts].any()
        assert data.document_lengths(row) == np.diff(batch.doc_bounds).tolist()


def test_a_document_never_trains_its_first_token_under_document_attention(build, rows, tmp_path):
    row = next(row for row in range(30) if len(starts_of(rows, row)) > 1)
    start = starts_of(rows, row)[1]
    assert rows.loss_mask[row, start] == 0
    mask = rows.loss_mask.copy()
    mask[row, start] = 1
    changed = dataclasses.replace(rows, loss_mask=mask)
    digests = Digests()
    digests.add(changed)
    targets = int(mask.sum())

    def change(manifest):
        ratio = targets / manifest["rows"]["rows"] / S
        manifest["rows"] |= {
            "rows_sha256": digests.rows_sha256, "num_targets": targets, "supervised_token_ratio": ratio
        }  # fmt: skip

    table = to_table(changed, 0, canonical_bytes(rows.input_ids, mask))
    copy = copy_with(build, tmp_path / "copy", table, change)
    as_row, as_documents = (RowData(copy, make_config(attention=a)).batch([row]) for a in ("causal_row", "document"))
    assert as_row.label_mask[0, start - 1] == 1
    assert as_documents.label_mask[0, start - 1] == 0
    assert as_row.label_mask.sum() - as_documents.label_mask.sum() == 1


def test_the_dataset_gives_the_items_that_megatron_reads(build, rows):
    dataset = RowDataset(RowData(build, make_config()))
    assert len(dataset) == 30
    loaded = list(torch.utils.data.DataLoader(dataset, batch_size=4))
    assert np.array_equal(torch.cat([b["tokens"] for b in loaded]).numpy(), rows.input_ids)
    assert np.array_equal(torch.cat([b["loss_mask"] for b in loaded]).numpy()[:, :-1], rows.loss_mask[:, 1:])
    assert set(loaded[0]) == {"tokens", "labels", "loss_mask", "position_ids"}
    assert torch.equal(dataset[-1]["tokens"], dataset[29]["tokens"])
    with pytest.raises(IndexError):
        dataset[30]


def test_what_it_knows_is_what_the_manifest_says(build):
    data = RowData(build, make_config())
    manifest = json.loads((build / "manifest.json").read_bytes())
    assert (data.rows_sha256, data.num_rows) == (manifest["rows"]["rows_sha256"], 30)


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"seq_length": 128}, "seq_length is not the length of the rows"),
        ({"global_batch_size": 31}, "too few rows"),
        ({"vocab_size": 1000}, "vocab_size is smaller"),
        ({"vocab_size": 129_279}, "vocab_size is smaller"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused(build, changes, what):
    with pytest.raises(UsageError, match=what):
        RowData(build, make_config(**changes))


def test_a_global_batch_that_does_not_divide_is_refused(build):
    data = RowData(build, make_config())
    with pytest.raises(ValueError, match="multiple"):
        data.micro_batches(0, 0, 3)
    with pytest.raises(ValueError, match="negative"):
        data.micro_batches(-8, 0, 1)


def test_no_build_is_refused(tmp_path):
    with pytest.raises(SourceError, match="no build here"):
        RowData(tmp_path, make_config())


def copy_with(build, folder, table=None, change=lambda manifest: None):
    """A copy of a build with other rows or another manifest, whose file digests and own digests are right again."""
    import hashlib

    import pyarrow.parquet as pq

    folder.mkdir()
    (folder / "rows.parquet").write_bytes((build / "rows.parquet").read_bytes())
    if table is not None:
        pq.write_table(table, folder / "rows.parquet", row_group_size=128)
    plain = json.loads((build / "manifest.json").read_bytes())
    data = (folder / "rows.parquet").read_bytes()
    plain["files"][0] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    change(plain)
    fields = {key: value for key, value in plain.items() if key not in ("schema", "manifest_sha256")}
    fields["spec_sha256"] = sha256_of(fields["spec"])
    (folder / "manifest.json").write_bytes(Manifest.make(**fields).to_bytes())
    return folder


def edited(build, *, honest_xxh3):
    """The rows with one token of row 7 changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    import xxhash

    from databuild.rows import SCHEMA

    table = pq.read_table(build / "rows.parquet", schema=SCHEMA)
    columns = table.to_pydict()
    columns["input_ids"][7][3] ^= 1
    if honest_xxh3:
        raw = np.array(columns["input_ids"][7], "<i4").tobytes() + bytes(columns["loss_mask"][7])
        columns["xxh3"][7] = xxhash.xxh3_64_intdigest(raw)
    return pa.Table.from_pydict(columns, schema=SCHEMA)


def test_a_changed_file_is_refused(build, tmp_path):
    copy = copy_with(build, tmp_path / "copy")
    RowData(copy, make_config())
    data = bytearray((copy / "rows.parquet").read_bytes())
    data[100] ^= 1
    (copy / "rows.parquet").write_bytes(bytes(data))
    with pytest.raises(IntegrityError, match="another digest"):
        RowData(copy, make_config())


def test_an_edited_row_is_refused_by_its_number(build, tmp_path):
    copy = copy_with(build, tmp_path / "copy", edited(build, honest_xxh3=False))
    with pytest.raises(IntegrityError, match="row is damaged") as caught:
        RowData(copy, make_config())
    assert caught.value.where.endswith("row 7")


def test_an_edited_row_is_refused_though_everything_else_was_made_to_fit(build, tmp_path):
    copy = copy_with(build, tmp_path / "copy", edited(build, honest_xxh3=True))
    with pytest.raises(IntegrityError, match="rows_sha256"):
        RowData(copy, make_config())


def test_rows_of_another_tokenizer_are_refused(build, tmp_path):
    def change(manifest):
        manifest["tokenizer"]["tokenizer_json_sha256"] = manifest["spec"]["tokenizer_sha256"] = "0" * 64

    with pytest.raises(IntegrityError, match="another tokenizer"):
        RowData(copy_with(build, tmp_path / "copy", change=change), make_config())
