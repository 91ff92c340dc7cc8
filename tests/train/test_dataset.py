"""The torch datasets over `databuild.load`: the same items as RowData gives, in order, and resumable."""

import json
from itertools import islice

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("yaml")

from torch.utils.data import DataLoader  # noqa: E402

import databuild  # noqa: E402
from databuild.errors import UsageError  # noqa: E402
from train.config import TrainConfig  # noqa: E402
from train.data import RowData, RowDataset  # noqa: E402
from train.dataset import RowStream  # noqa: E402

S = 64


@pytest.fixture(scope="module")
def rows(build):
    return databuild.load(build)


@pytest.fixture
def data(build, monkeypatch):
    from streams import tokenizer

    monkeypatch.setattr("train.data.load_tokenizer", tokenizer)
    base = {"num_layers": 1, "hidden_size": 8, "ffn_hidden_size": 8, "num_attention_heads": 1}
    return RowData(build, TrainConfig(**base, seq_length=S, global_batch_size=8, micro_batch_size=2))


def equal(a, b):
    return set(a) == set(b) and all(torch.equal(a[key], b[key]) and a[key].dtype == b[key].dtype for key in a)


def test_the_dataset_over_loaded_rows_is_that_over_row_data(rows, data):
    loaded, in_memory = RowDataset(rows), RowDataset(data)
    assert len(loaded) == len(in_memory) == 30
    assert all(equal(loaded[i], in_memory[i]) for i in range(-30, 30))
    with pytest.raises(IndexError):
        loaded[30]
    batches = list(DataLoader(loaded, batch_size=4, num_workers=2))
    assert np.array_equal(torch.cat([b["tokens"] for b in batches]).numpy(), rows.read_all().input_ids)


def test_the_stream_gives_the_micro_batches_of_the_trainer(rows, data):
    for rank in range(2):
        stream = RowStream(rows, 2, rank=rank, world_size=2, epochs=None)
        seen = iter(DataLoader(stream, batch_size=None))
        for consumed in range(0, 64, 8):  # past the end of the epoch
            for micro_batch in data.micro_batches(consumed, rank, 2):
                item = next(seen)
                for key, field in (("tokens", "tokens"), ("labels", "labels"), ("loss_mask", "label_mask"),
                                   ("position_ids", "position_ids")):  # fmt: skip
                    assert torch.equal(item[key], getattr(micro_batch, field))


def test_the_targets_of_the_stream_are_the_labels_of_the_rows(rows):
    (batch,) = RowStream(rows, 30)
    labels = torch.where(batch["loss_mask"] > 0, batch["labels"], -100)
    assert np.array_equal(labels.numpy(), rows.read_all().labels)
    assert batch["loss_mask"].sum() == rows.num_targets


@pytest.mark.parametrize("stop", [0, 1, 4, 5, 12])
def test_a_saved_stream_gives_exactly_the_rest(rows, build, stop):
    def start():
        return RowStream(databuild.load(build, check="files"), 8, order="shuffled", seed=5, epochs=3)

    whole = [batch["tokens"] for batch in start()]
    assert [len(batch) for batch in whole] == [8] * 11 + [2]
    stream = start()
    taken = [batch["tokens"] for batch in islice(DataLoader(stream, batch_size=None), stop)]
    state = json.loads(json.dumps(stream.state_dict()))
    assert state["consumed"] == min(90, 8 * stop)
    again = start()
    again.load_state_dict(state)
    seen = [*taken, *(batch["tokens"] for batch in DataLoader(again, batch_size=None))]
    assert all(torch.equal(a, b) for a, b in zip(seen, whole, strict=True))
    assert list(again) == [], "it never starts again by itself"


def test_a_worker_of_a_loader_is_refused(rows):
    with pytest.raises(UsageError, match="num_workers=0"):
        next(iter(DataLoader(RowStream(rows, 4), batch_size=None, num_workers=1)))


def test_a_place_in_another_stream_is_refused(rows):
    stream = RowStream(rows, 4, order="shuffled", seed=1)
    next(iter(stream))
    with pytest.raises(UsageError, match="seed differs"):
        RowStream(rows, 4, order="shuffled", seed=2).load_state_dict(stream.state_dict())
