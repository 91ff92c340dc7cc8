"""`databuild.load`: what it gives is what the files hold, and nothing that its digests do not prove."""

import functools
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from itertools import islice

import numpy as np
import pyarrow.parquet as pq
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st
from support import build_files, records, use_shared_tokenizer, write_jsonl

import databuild
from databuild import build as building
from databuild import verify as verifying
from databuild.errors import IntegrityError, SourceError, UsageError
from databuild.order import permutation
from databuild.reading import groups, iterate
from databuild.reading.iterate import Plan, epoch_order
from databuild.rows import SCHEMA, RowWriter
from manifests.model import Manifest

SIZE = 40
SHARD = 128


@pytest.fixture(scope="module", autouse=True)
def short_shards():
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        patch.setattr("databuild.build.check_permutation", lambda *, full: None)
        patch.setattr(building, "RowWriter", functools.partial(RowWriter, rows_per_shard=SHARD))
        patch.setattr(verifying, "ROWS_PER_SHARD", SHARD)
        yield


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A build of three row files, the last one not full."""
    folder = tmp_path_factory.mktemp("many")
    build_files(folder / "rows", [write_jsonl(folder / "s.jsonl", records(200))], row_tokens=SIZE)
    assert len(list((folder / "rows").glob("*.parquet"))) == 3
    return folder / "rows"


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """A build of 20 rows in one file."""
    folder = tmp_path_factory.mktemp("one")
    build_files(folder / "rows", [write_jsonl(folder / "s.jsonl", records(40))], row_tokens=SIZE, rows=20)
    return folder / "rows"


@pytest.fixture(scope="module")
def truth(many):
    """The rows as another reader reads them: plain Python lists."""
    return [row for path in sorted(many.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def assert_row(row, true):
    assert (row.row, row.num_targets) == (true["row"], true["num_targets"])
    for name, dtype in (("input_ids", "int32"), ("loss_mask", "uint8"), ("doc_starts", "int32"), ("doc_rows", "int64")):
        array = getattr(row, name)
        assert array.dtype == dtype and array.tolist() == true[name]
        assert not array.flags.writeable
    ids, mask = true["input_ids"], true["loss_mask"]
    assert row.labels.tolist() == [ids[t + 1] if t + 1 < SIZE and mask[t + 1] else -100 for t in range(SIZE)]
    assert row.label_mask.tolist() == [*mask[1:], 0]


# What it gives


@pytest.mark.parametrize("options", [{}, {"check": "files"}, {"check": "none", "cache_groups": 1}, {"in_memory": True}])
def test_every_row_by_number_by_iteration_and_from_the_end(many, truth, options):
    rows = databuild.load(many, **options)
    assert len(rows) == len(truth) > 2 * SHARD
    for row, true in zip(rows, truth, strict=True):
        assert_row(row, true)
    assert_row(rows[-1], truth[-1])
    assert_row(rows[-len(truth)], truth[0])
    for number in (len(truth), -len(truth) - 1):
        with pytest.raises(IndexError):
            rows[number]


def test_batches_are_rows_in_any_order_across_groups_and_files(many, truth):
    rows, everything = databuild.load(many, cache_groups=1), databuild.load(many, in_memory=True)
    size = len(truth)

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(0, size - 1), max_size=12), st.slices(size))
    def check(numbers, cut):
        for wanted, batch in (
            (numbers, rows.take(numbers)),
            (numbers, everything.take(numbers)),
            (list(range(size))[cut], rows[cut]),
            (list(range(size))[cut], everything[cut]),
        ):
            assert batch.rows.tolist() == wanted and len(batch) == len(wanted)
            assert batch.input_ids.shape == batch.loss_mask.shape == batch.labels.shape == (len(wanted), SIZE)
            assert (batch.input_ids.dtype, batch.loss_mask.dtype) == (np.int32, np.uint8)
            for row, number in zip(batch, wanted, strict=True):
                assert_row(row, truth[number])
            assert batch.num_targets == sum(truth[number]["num_targets"] for number in wanted)
            assert not batch.input_ids.flags.writeable

    check()
    for numbers in ([size], [-1], [0, size]):
        with pytest.raises(IndexError):
            rows.take(numbers)


def test_everything_at_once_is_the_digest_of_the_manifest(many, truth):
    rows = databuild.load(many, check="files")
    batch = rows.read_all()
    digest = hashlib.sha256()
    for ids, mask in zip(batch.input_ids, batch.loss_mask, strict=True):
        digest.update(ids.astype("<i4").tobytes() + mask.tobytes())
    assert digest.hexdigest() == rows.rows_sha256 == rows.manifest.rows.rows_sha256
    assert rows.num_targets == batch.num_targets
    assert (rows.row_tokens, batch[7].doc_rows.tolist()) == (SIZE, truth[7]["doc_rows"])
    assert rows.rows_sha256[:16] in repr(rows)


def test_only_what_is_used_is_read_and_only_so_much_is_kept(many, monkeypatch):
    read = []
    original = groups.GroupReader._read
    monkeypatch.setattr(groups.GroupReader, "_read", lambda self, *key: read.append(key) or original(self, *key))
    rows = databuild.load(many, check="files", cache_groups=2)
    assert read == []
    for number in (0, 1, 127, 128, 5, 130):
        rows[number]
    assert read == [(0, 0), (1, 0)]
    rows[-1], rows[129], rows[0]
    assert read == [(0, 0), (1, 0), (2, 0), (0, 0)], "the one that was used least lately goes"
    rows.take([0, 256, 1, 257, 129])
    assert len(rows._reader._groups) == 2


def test_it_survives_a_pickle(many, truth):
    rows = databuild.load(many, check="files")
    assert_row(rows[3], truth[3])
    assert_row(pickle.loads(pickle.dumps(rows))[200], truth[200])


def test_no_rows_give_no_batches():
    plan = {"num_rows": 0, "batch_size": 4, "order": "file", "seed": 0, "rank": 0, "world_size": 1, "drop_last": False}
    iterator = iterate.RowIterator(lambda rows: rows.tolist(), "a" * 64, Plan(**plan, epochs=3))
    iterator.load_state_dict(iterator.state_dict())
    assert list(iterator) == []
    with pytest.raises(UsageError, match="without rows"):
        Plan(**plan, epochs=None)


def test_importing_databuild_is_light_and_load_stays_a_function():
    code = (
        "import sys, databuild; heavy = {'numpy', 'pyarrow', 'torch', 'pydantic'} & set(sys.modules); "
        "import databuild.reading.loading; assert callable(databuild.load), databuild.load; print(sorted(heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# What it refuses


@pytest.fixture
def copy(one, tmp_path):
    shutil.copytree(one, tmp_path / "copy")
    return tmp_path / "copy"


def rewrite(folder, change, *, honest=True, **write):
    """The rows of a build after change(columns), with a manifest whose file digests fit; its rows_sha256 stays."""
    import pyarrow as pa

    path = folder / "rows.parquet"
    columns = pq.read_table(path, schema=SCHEMA).to_pydict()
    change(columns)
    if honest:
        columns["xxh3"] = [
            xxhash.xxh3_64_intdigest(np.array(i, "<i4").tobytes() + bytes(m))
            for i, m in zip(columns["input_ids"], columns["loss_mask"], strict=True)
        ]
    pq.write_table(pa.Table.from_pydict(columns, schema=SCHEMA), path, **({"row_group_size": 128} | write))
    data = path.read_bytes()
    raw = json.loads((folder / "manifest.json").read_bytes())
    raw["files"][0] |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    fields = {key: value for key, value in raw.items() if key not in ("schema", "manifest_sha256")}
    (folder / "manifest.json").write_bytes(Manifest.make(**fields).to_bytes())


def flip(columns):
    columns["input_ids"][7][3] ^= 1


def exchange(columns):
    for values in columns.values():
        values[3], values[4] = values[4], values[3]


def test_a_changed_byte_is_refused_by_the_digest_of_the_file(copy):
    data = bytearray((copy / "rows.parquet").read_bytes())
    data[100] ^= 1
    (copy / "rows.parquet").write_bytes(bytes(data))
    for check in ("rows", "files"):
        with pytest.raises(IntegrityError, match="another digest"):
            databuild.load(copy, check=check)
    databuild.load(copy, check="none")


@pytest.mark.parametrize(
    ("change", "honest", "words"),
    [
        (flip, False, "row is damaged"),
        (flip, True, "rows_sha256 is not"),
        (exchange, True, "out of place"),
        (lambda c: [values.pop() for values in c.values()], True, "another size"),
        (lambda c: c["doc_rows"].__setitem__(2, [0] * len(c["doc_rows"][2])), True, "docs_sha256 is not"),
        (lambda c: c["doc_starts"].__setitem__(2, [SIZE] * len(c["doc_starts"][2])), True, "names no position"),
        (lambda c: c["loss_mask"][2].__setitem__(0, 1), True, "first is not 0"),
        (lambda c: c["loss_mask"][2].pop(), True, "another length"),
    ],
)
@pytest.mark.parametrize("in_memory", [False, True])
def test_rows_that_are_others_are_refused_though_the_files_digest_fits(copy, change, honest, words, in_memory):
    rewrite(copy, change, honest=honest)
    with pytest.raises(IntegrityError, match=words):
        databuild.load(copy, in_memory=in_memory)


def test_other_row_groups_are_refused(copy):
    rewrite(copy, lambda columns: None, row_group_size=7)
    with pytest.raises(IntegrityError, match="another size"):
        databuild.load(copy)
    rows = databuild.load(copy, check="files")
    with pytest.raises(IntegrityError, match="another size"):
        rows[0]


def test_a_file_that_changes_after_it_was_checked_is_noticed(copy):
    rows = databuild.load(copy)
    rewrite(copy, flip, honest=False)
    with pytest.raises(IntegrityError, match="row 7"):
        rows[7]


@pytest.mark.parametrize("name", ["rows.parquet", "manifest.json"])
def test_a_missing_file_is_refused(copy, name):
    (copy / name).unlink()
    with pytest.raises((IntegrityError, SourceError), match=r"missing|no build here"):
        databuild.load(copy, check="none")


def test_a_manifest_that_is_not_canonical_or_contradicts_itself_is_refused_with_every_check(copy):
    data = (copy / "manifest.json").read_bytes()
    (copy / "manifest.json").write_bytes(data + b"\n")
    with pytest.raises(IntegrityError, match="manifest is damaged"):
        databuild.load(copy, check="none")
    raw = json.loads(data)
    raw["counts"]["used"] += 1
    fields = {key: value for key, value in raw.items() if key not in ("schema", "manifest_sha256")}
    (copy / "manifest.json").write_bytes(Manifest.make(**fields).to_bytes())
    with pytest.raises(IntegrityError, match="contradicts itself"):
        databuild.load(copy, check="none")


def test_links_are_followed_and_other_files_do_not_matter(one, tmp_path):
    (tmp_path / "rows").mkdir()
    for name in ("manifest.json", "rows.parquet"):
        os.symlink(one / name, tmp_path / "rows" / name)
    (tmp_path / "rows" / "README.md").write_text("a card")
    assert len(databuild.load(tmp_path / "rows")) == 20
    with pytest.raises(SourceError) as caught:
        databuild.load(tmp_path)
    assert str(tmp_path / "rows") in caught.value.next_step
    (tmp_path / "rows" / "manifest.json").unlink()
    (tmp_path / "m").write_bytes(b"{}")
    os.symlink(tmp_path / "m", tmp_path / "rows" / "manifest.json")
    with pytest.raises(IntegrityError, match="manifest is damaged"):
        databuild.load(tmp_path / "rows")


def test_another_check_is_refused(one):
    with pytest.raises(UsageError, match="no such check"):
        databuild.load(one, check="all")


# Order and resume


def slow_stream(n, order, seed, epochs):
    """The stream of row numbers, the slow way."""
    for epoch in range(epochs):
        yield from range(n) if order == "file" else np.random.default_rng([seed, epoch]).permutation(n).tolist()


@settings(max_examples=300, deadline=None)
@given(
    n=st.integers(1, 23), batch_size=st.integers(1, 9), world_size=st.integers(1, 4), epochs=st.integers(0, 4),
    order=st.sampled_from(["file", "shuffled"]), seed=st.integers(0, 2**32 - 1), drop_last=st.booleans(),
    pick=st.randoms(use_true_random=False),
)  # fmt: skip
def test_the_ranks_together_see_the_stream_and_a_saved_place_gives_exactly_the_rest(
    n, batch_size, world_size, epochs, order, seed, drop_last, pick
):
    def start(rank, count=epochs):
        plan = Plan(
            num_rows=n, batch_size=batch_size, order=order, seed=seed, epochs=count, rank=rank, world_size=world_size,
            drop_last=drop_last,
        )  # fmt: skip
        return iterate.RowIterator(lambda rows: rows.tolist(), "a" * 64, plan)

    step, total = batch_size * world_size, n * epochs
    if world_size > 1 and total % step and not drop_last:
        with pytest.raises(UsageError, match="do not divide"):
            start(0)
        return
    stream = list(slow_stream(n, order, seed, epochs))
    steps = [stream[at : at + step] for at in range(0, total, step)]
    if drop_last and steps and len(steps[-1]) < step:
        steps.pop()
    expected = [[s[r * batch_size : (r + 1) * batch_size] for s in steps] for r in range(world_size)]
    assert [list(start(rank)) for rank in range(world_size)] == expected
    endless = start(0, None)
    assert [next(endless) for _ in steps[:-1]] == expected[0][:-1]

    rank, done = pick.randrange(world_size), pick.randint(0, len(steps))
    iterator = start(rank)
    assert iterator.__length_hint__() == len(steps)
    list(islice(iterator, done))
    state = json.loads(json.dumps(iterator.state_dict()))
    assert state["epoch"] * n + state["position"] == state["consumed"] == min(total, done * step)
    again = start(pick.randrange(world_size))  # every rank has the same state
    list(islice(again, pick.randint(0, len(steps))))  # wherever it was
    again.load_state_dict(state)
    assert again.state_dict() == state
    assert list(again) == expected[again.plan.rank][done:]
    assert list(iterator) == expected[rank][done:], "to save changes nothing"


def test_an_epochs_order_is_pinned_and_the_first_is_that_of_a_build(monkeypatch):
    iterate.check_epoch_order()
    assert epoch_order(10, 42, 0).tolist() == permutation(10, 42).tolist()
    assert epoch_order(10, 42, 1).tolist() == [0, 8, 7, 4, 3, 1, 2, 9, 6, 5]
    assert epoch_order(6400, 7, 3)[:8].tolist() == [5031, 2886, 3263, 6245, 2452, 2181, 4507, 837]
    assert sorted(epoch_order(6400, 7, 3).tolist()) == list(range(6400))
    assert len({tuple(epoch_order(50, 7, epoch)) for epoch in range(20)}) == 20
    monkeypatch.setattr(iterate, "epoch_order", lambda n, seed, epoch: np.arange(n))
    with pytest.raises(IntegrityError, match="another order"):
        iterate.check_epoch_order()


def test_an_iterator_over_a_build_resumes_in_a_new_process_of_reading(many, truth):
    options = {"batch_size": 50, "order": "shuffled", "seed": 3, "epochs": 2}
    first = databuild.load(many).iterate(**options)
    seen = [next(first) for _ in range(8)]
    state = json.loads(json.dumps(first.state_dict()))
    second = databuild.load(many, check="files", cache_groups=1).iterate(**options)
    second.load_state_dict(state)
    batches = [*seen, *second]
    order = list(slow_stream(len(truth), "shuffled", 3, 2))
    assert [number for batch in batches for number in batch.rows.tolist()] == order
    for batch in batches[6:9]:
        for row in batch:
            assert_row(row, truth[row.row])
    assert state["rows_sha256"] == databuild.load(many).rows_sha256 and state["epoch"] == 1


def test_a_place_in_another_stream_is_refused(one, many):
    rows = databuild.load(many)
    iterator = rows.iterate(8, order="shuffled", seed=3)
    next(iterator)
    state = iterator.state_dict()
    for other, field in (
        (databuild.load(one).iterate(8, order="shuffled", seed=3), "rows_sha256"),
        (rows.iterate(8), "order"),
        (rows.iterate(8, order="shuffled", seed=4), "seed"),
        (rows.iterate(9, order="shuffled", seed=3), "global_batch_size"),
    ):
        before = other.state_dict()
        with pytest.raises(UsageError, match=f"another stream: its {field} differs"):
            other.load_state_dict(state)
        assert other.state_dict() == before
    # Another layout of the same global batch goes on, with more epochs too.
    four = rows.iterate(2, order="shuffled", seed=3, rank=1, world_size=4, epochs=None)
    four.load_state_dict(state)
    assert next(four).rows.tolist() == epoch_order(len(rows), 3, 0)[10:12].tolist()
    for change in (
        {"consumed": 9}, {"position": 9}, {"epoch": -1}, {"consumed": "8"}, {"schema": "other"}, {"more": 1},
        {"position": len(rows), "consumed": len(rows)},
    ):  # fmt: skip
        with pytest.raises(UsageError):
            iterator.load_state_dict(state | change)
    for broken in ({}, {key: value for key, value in state.items() if key != "seed"}, [], None):
        with pytest.raises(UsageError, match="no state"):
            iterator.load_state_dict(broken)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 0}, {"batch_size": 2.0}, {"batch_size": True}, {"order": "random"}, {"seed": -1}, {"seed": 2**32},
        {"epochs": -1}, {"rank": 1}, {"rank": -1, "world_size": 2}, {"world_size": 0},
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_is_refused(one, options):
    with pytest.raises(UsageError):
        databuild.load(one).iterate(**({"batch_size": 4} | options))
