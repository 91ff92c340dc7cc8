"""Every consumer trains exactly the same (row, position, token); each export is read here as its consumer reads it."""

import dataclasses
import tempfile
from pathlib import Path

import numpy as np
import pytest
from export.readers import READERS, bridge, canonical
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.strategies import records
from streams import MemorySource, tokenizer

from databuild.build import Stream
from databuild.config import BuildSpec
from databuild.errors import IntegrityError
from databuild.export import make
from databuild.export.bridge import num_after_eos
from databuild.export.common import Plan, expected_labels, read_back
from databuild.export.make import CONSUMERS, options_of
from databuild.export.run import export
from databuild.pack import Rows
from databuild.reading.rowviews import shifted_labels
from databuild.rows import RowWriter, concat, read_groups
from masks.deepseek_v4 import EOS

WRITERS = [name for name in CONSUMERS if name != "miles"]  # miles gets the row files as they are


@pytest.fixture(scope="module")
def demo_pairs(demo_build):
    return canonical(demo_build.out)


@pytest.mark.parametrize("to", CONSUMERS)
def test_every_consumer_trains_the_pairs_of_the_build(to, demo_build, demo_exports, demo_pairs):
    found = READERS[to](demo_exports[to].out)
    assert np.array_equal(found, demo_pairs)
    assert len(found) == demo_exports[to].manifest.num_targets == demo_build.manifest.rows.num_targets


def test_all_exports_have_one_pairs_sha256(demo_exports):
    assert len({result.manifest.pairs_sha256 for result in demo_exports.values()}) == 1


def stream_rows(data, size, bos):
    """The rows of a stream of conversations; None if there is none."""
    source = MemorySource(data)
    spec = BuildSpec(row_tokens=size, seed=1, tokenizer_sha256="", sources=[], rows=None, bos=bos)
    parts = [rows for rows in Stream(source, spec, tokenizer(), batch_conversations=1024) if len(rows)]
    return concat(parts) if parts else None


@st.composite
def any_rows(draw):
    """Rows of any ids, masks and documents, far from what conversations give."""
    num, size = draw(st.integers(1, 5)), draw(st.sampled_from([2, 3, 8, 17]))
    token = st.one_of(st.sampled_from([0, EOS, 129279]), st.integers(0, 129279))
    ids = np.array(draw(st.lists(token, min_size=num * size, max_size=num * size)), np.int32).reshape(num, size)
    bits = st.lists(st.integers(0, 1), min_size=num * size, max_size=num * size)
    mask = np.array(draw(bits), np.uint8).reshape(num, size)
    mask[:, 0], mask[:, -1] = 0, 1
    later = [sorted(draw(st.sets(st.integers(1, size - 1), max_size=4))) for _ in range(num)]
    starts = [start for some in later for start in [0, *some]]
    return Rows(
        input_ids=ids,
        loss_mask=mask,
        doc_starts=np.array(starts, np.int32),
        doc_rows=np.arange(len(starts), dtype=np.int64),
        doc_offsets=np.append(0, np.cumsum([1 + len(some) for some in later])).astype(np.int64),
    )


def write_and_read(rows, folder, to, options):
    """(the pairs that the consumer reads, what databuild reads back) of rows written for it."""
    built = folder / "build"
    built.mkdir()
    writer = RowWriter(built)
    writer.add(rows)
    writer.finish()
    plan = Plan(
        folder=folder, name="x", rows=len(rows), row_tokens=rows.input_ids.shape[1],
        rows_sha256=writer.digests.rows_sha256, options=options, source=built,
    )  # fmt: skip
    CONSUMERS[to].write(iter([rows]), plan)
    return READERS[to](folder), read_back(CONSUMERS[to], plan), plan


def pairs_of(rows, documents=False):
    starts = set()
    for row, (a, b) in enumerate(zip(rows.doc_offsets[:-1], rows.doc_offsets[1:], strict=True)):
        starts |= {(row, int(start)) for start in rows.doc_starts[a:b]}
    listed = [
        (row, t, int(rows.input_ids[row, t]))
        for row, t in np.argwhere(rows.loss_mask).tolist()
        if t > 0 and not (documents and (row, t) in starts)
    ]
    return np.array(sorted(listed), np.int64).reshape(-1, 3)


STREAMS = st.builds(
    stream_rows, records(max_size=12), st.sampled_from([2, 7, 16, 64]), st.sampled_from(["keep", "strip"])
)


@settings(max_examples=40, deadline=None)
@given(st.one_of(any_rows(), STREAMS), st.sampled_from(sorted(CONSUMERS)))
def test_any_rows_are_read_as_they_are(rows, to):
    if rows is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        found, content, plan = write_and_read(rows, Path(folder), to, options_of(to, {}))
    assert np.array_equal(found, pairs_of(rows))
    assert (content.rows, content.num_targets, content.rows_sha256) == (len(rows), len(found), plan.rows_sha256)


@settings(max_examples=40, deadline=None)
@given(st.one_of(any_rows(), STREAMS))
def test_segments_of_documents_lose_only_targets_with_nothing_before_them(rows):
    if rows is None:
        return
    options = {"segments": "documents"}
    with tempfile.TemporaryDirectory() as folder:
        found, content, _ = write_and_read(rows, Path(folder), "bridge", options)
    assert np.array_equal(found, pairs_of(rows, documents=True))
    assert content.num_targets == np.count_nonzero(expected_labels(rows, options) != -100) == len(found)


def unshifted(rows):
    """A mask that is aligned with the labels where one aligned with the tokens is wanted, or the other way round."""
    mask = np.roll(rows.loss_mask, -1, axis=1)
    mask[:, 0] = mask[:, -1] = 0
    return dataclasses.replace(rows, loss_mask=mask)


def full_row(rows):
    """Everything is trained."""
    mask = np.ones_like(rows.loss_mask)
    mask[:, 0] = 0
    return dataclasses.replace(rows, loss_mask=mask)


def off_by_one(rows):
    """Ids one to the right, under the same mask."""
    return dataclasses.replace(rows, input_ids=np.roll(rows.input_ids, 1, axis=1))


def swapped(rows):
    """Two rows in each other's place."""
    order = np.arange(len(rows))[::-1]
    return dataclasses.replace(rows, input_ids=rows.input_ids[order], loss_mask=rows.loss_mask[order])


@pytest.mark.parametrize("mutation", [unshifted, full_row, off_by_one, swapped])
@pytest.mark.parametrize("to", WRITERS)
def test_a_wrong_export_is_caught_by_the_comparison_and_never_published(to, mutation, build, tmp_path, monkeypatch):
    right = CONSUMERS[to]
    wrong = dataclasses.replace(right, write=lambda groups, plan: right.write(map(mutation, groups), plan))
    monkeypatch.setitem(make.CONSUMERS, to, wrong)
    with pytest.raises(IntegrityError, match="pairs of the build"):
        export(build.out, to, options_of(to, {}), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
    groups = [rows for _, rows, _ in read_groups([build.out / "rows.parquet"], 64)]
    record = build.manifest.rows
    plan = Plan(
        folder=tmp_path,
        name="x",
        rows=record.rows,
        row_tokens=64,
        rows_sha256=record.rows_sha256,
        options=options_of(to, {}),
    )
    right.write(map(mutation, groups), plan)
    assert not np.array_equal(READERS[to](tmp_path), canonical(build.out))


def test_a_mask_of_the_whole_row_is_caught_for_miles(build, tmp_path, monkeypatch):
    from export import readers

    made = export(build.out, "miles", {}, tmp_path / "out")
    assert np.array_equal(readers.miles(made.out), canonical(build.out))
    module = readers.fresh_rollout_module()
    monkeypatch.setattr(readers, "fresh_rollout_module", lambda: module)

    def whole_row(sample, row, rows):
        sample.tokens, sample.loss_mask = rows.ids[row].tolist(), rows.mask[row].tolist()
        sample.response_length = len(sample.tokens)

    def unshifted(sample, row, rows):
        sample.tokens, sample.loss_mask = rows.ids[row].tolist(), rows.mask[row, :-1].tolist()
        sample.response_length = len(sample.tokens) - 1

    monkeypatch.setattr(module, "_fill", whole_row)
    with pytest.raises(AssertionError, match="nothing before it"):
        readers.miles(made.out)
    monkeypatch.setattr(module, "_fill", unshifted)
    assert not np.array_equal(readers.miles(made.out), canonical(build.out))


def test_a_mask_that_megatron_bridge_would_shift_again_is_caught(build, tmp_path):
    """The stored mask as the row file has it: same length, same count, other tokens."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = export(build.out, "bridge", options_of("bridge", {}), tmp_path / "out")
    path = made.out / "training_64.idx.parquet"
    table = pq.read_table(path)
    stored = [[*record["loss_mask"], 0] for record in pq.read_table(build.out / "rows.parquet").to_pylist()]
    wrong = table.set_column(2, table.schema.field(2), pa.array(stored, table.schema.field(2).type))
    pq.write_table(wrong, path)
    found = bridge(made.out)
    assert not np.array_equal(found, canonical(build.out))
    lost = sum(row[63] for row in stored)  # the last position of a row has no label
    assert abs(len(found) - made.manifest.num_targets) <= lost


def test_labels_are_never_at_the_last_position_and_always_the_next_token():
    ids, mask = np.array([[5, 6, 7, 8]], np.int32), np.array([[0, 1, 0, 1]], np.uint8)
    assert shifted_labels(ids, mask).tolist() == [[6, -100, 8, -100]]


def one_row(ids, mask, starts=(0,)):
    return Rows(
        input_ids=np.array([ids], np.int32),
        loss_mask=np.array([mask], np.uint8),
        doc_starts=np.array(starts, np.int32),
        doc_rows=np.arange(len(starts), dtype=np.int64),
        doc_offsets=np.array([0, len(starts)], np.int64),
    )


def test_targets_after_an_eos_are_counted_for_megatron_bridge():
    assert num_after_eos(one_row([0, 5, EOS, 7, EOS, EOS], [0, 1, 1, 1, 0, 1])) == 2
    assert num_after_eos(one_row([EOS, 5, 6, EOS], [0, 0, 1, 1])) == 0


def test_what_an_export_leaves_out_is_said(build, tmp_path, monkeypatch):
    """Documents as segments: targets that begin one have nothing before them, and export says how many."""
    rows = one_row([5] * 64, [0] + [1] * 63, starts=(0, 7, 30))
    groups = [part for _, part, _ in read_groups([build.out / "rows.parquet"], 64)]
    lost = [*groups, rows]
    monkeypatch.setattr(make, "verified_groups", lambda *_: iter(lost))
    record = build.manifest.rows.model_copy(update={"num_targets": build.manifest.rows.num_targets + 63})
    other = build.manifest.model_copy(update={"rows": record})
    manifest, warnings = make.make(build.out, other, "bridge", {"segments": "documents"}, tmp_path)
    assert manifest.num_targets == record.num_targets - 2
    assert any(text.startswith("2 targets that begin a document") for text in warnings)
