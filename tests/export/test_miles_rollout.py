"""train/miles/pretokenized_sft_rollout.py: the samples that miles gets, and everything that it refuses."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from export.readers import DataSource, canonical, fresh_rollout_module, miles_arguments, miles_sample_pairs, pairs
from support import build_files, records, write_jsonl

from databuild.export.run import export


@pytest.fixture(scope="session")
def made(exports):
    return exports["miles"]


@pytest.fixture
def rollout(monkeypatch):
    monkeypatch.delenv("DATABUILD_ROWS_SHA256", raising=False)
    return fresh_rollout_module()


@pytest.fixture
def source(made):
    return DataSource(made.out / "rows.miles.parquet")


def test_samples_are_the_rows_in_file_order_over_the_end_of_an_epoch(made, rollout, source):
    arguments = miles_arguments(made.out)
    num = made.manifest.rows
    order = []
    for step in range(num // 4 + 2):
        groups = rollout.generate_rollout(arguments, step, source, evaluation=False)
        order += [group[0].metadata["row"] for group in groups]
    assert order == [i % num for i in range(len(order))] and len(order) > num


def test_a_sample_is_a_response_after_one_token(made, rollout, source):
    (sample,) = rollout.generate_rollout(miles_arguments(made.out), 0, source)[2]
    row = pq.read_table(made.out / "rows.parquet").to_pylist()[2]
    assert sample.tokens == row["input_ids"] and sample.loss_mask == row["loss_mask"][1:]
    assert sample.response_length == len(sample.loss_mask) == 63 < len(sample.tokens)
    assert (sample.reward, sample.status, sample.response) == (0, sample.Status.COMPLETED, "")
    assert sum(sample.loss_mask) == row["num_targets"]
    assert sample.metadata == {"row": 2, "rows_file": "rows.parquet", "rows_sha256": made.manifest.parent.rows_sha256}
    assert all(type(value) is int for value in (*sample.tokens, *sample.loss_mask))


def test_the_index_holds_no_tokens_and_no_name_that_miles_interprets(made, source):
    table = pq.read_table(made.out / "rows.miles.parquet")
    assert table.column_names == ["messages", "metadata"]  # `tools` would be written into metadata
    assert not {"raw_reward", "round_number", "tools"} & set(source.samples[0]["metadata"])
    assert isinstance(source.samples[0]["prompt"], list)  # a str would be tokenized and filtered by length
    assert isinstance(source.samples[0]["metadata"], dict)


def test_the_rows_are_read_once(made, rollout, source, monkeypatch):
    rollout.generate_rollout(miles_arguments(made.out), 0, source)
    monkeypatch.setattr(rollout, "_read", lambda *_: pytest.fail("read again"))
    rollout.generate_rollout(miles_arguments(made.out), 1, source)


def test_a_slice_of_the_index_finds_its_rows(made, rollout, source):
    arguments = miles_arguments(made.out, prompt_data=f"{made.out}/rows.miles.parquet@[2:20]")
    source.offset = 2
    assert rollout.generate_rollout(arguments, 0, source)[0][0].metadata["row"] == 2


def test_rows_in_shards(tmp_path, rollout, monkeypatch, shared_tokenizer):
    from databuild import rows, verify
    from databuild.export import common, miles

    for module in (rows, verify, common, miles):
        monkeypatch.setattr(module, "ROWS_PER_SHARD", 128, raising=False)
    monkeypatch.setattr(rows.RowWriter.__init__, "__kwdefaults__", {"rows_per_shard": 128})
    build = build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", records(400))], row_tokens=32)
    assert len(build.manifest.files) >= 3
    folder = export(build.out, "miles", {}, tmp_path / "out").out
    num = build.manifest.rows.rows
    arguments = miles_arguments(folder, rollout_batch_size=num, global_batch_size=num)
    groups = rollout.generate_rollout(arguments, 0, DataSource(folder / "rows.miles.parquet"))
    found = pairs((group[0].metadata["row"], miles_sample_pairs(group[0])) for group in groups)
    assert np.array_equal(found, canonical(build.out))
    (folder / build.manifest.files[1].name).unlink()
    again = fresh_rollout_module()
    with pytest.raises(again.RefusedError, match="cannot be read"):
        again.generate_rollout(arguments, 0, DataSource(folder / "rows.miles.parquet"))


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"apply_chat_template": True}, "--apply-chat-template"),
        ({"loss_type": "policy_loss"}, "--loss-type"),
        ({"rollout_temperature": 0.7}, "--rollout-temperature"),
        ({"n_samples_per_prompt": 8}, "--n-samples-per-prompt"),
        ({"rollout_global_dataset": False}, "--rollout-global-dataset"),
        ({"global_batch_size": 3}, "drops the rows"),
        ({"vocab_size": 100}, "vocabulary"),
        ({"vocab_size": None, "padded_vocab_size": 100}, "vocabulary"),
        ({"rollout_max_context_len": 63}, "longer than --rollout-max-context-len"),
        ({"seq_length": 32, "variable_seq_lengths": False}, "longer than --seq-length"),
    ],
)
def test_arguments_that_would_train_something_else_are_refused(changed, told, made, rollout, source):
    with pytest.raises(rollout.RefusedError, match=told):
        rollout.generate_rollout(miles_arguments(made.out, **changed), 0, source)


def test_arguments_that_change_nothing_are_not_refused(made, rollout, source, caplog):
    harmless = {"vocab_size": None, "seq_length": 32, "variable_seq_lengths": True, "rollout_max_context_len": 64}
    rollout.generate_rollout(miles_arguments(made.out, **harmless, calculate_per_token_loss=False), 0, source)
    assert "--calculate-per-token-loss" in caplog.text


def test_evaluation_is_refused(made, rollout, source):
    with pytest.raises(rollout.RefusedError, match="evaluate"):
        rollout.generate_rollout(miles_arguments(made.out), 0, source, evaluation=True)


def test_a_group_of_several_samples_is_refused(made, rollout):
    source = DataSource(made.out / "rows.miles.parquet", copies=2)
    with pytest.raises(rollout.RefusedError, match="a group of 2"):
        rollout.generate_rollout(miles_arguments(made.out), 0, source)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (None, "does not name its row"),
        ("{}", "does not name its row"),
        ({"row": "1"}, "does not name its row"),
        ({"row": True}, "does not name its row"),
        ({"row": 10_000}, "names a row that there is not"),
        ({"row": -1}, "names a row that there is not"),
        ({"rows_file": "../rows.parquet"}, "no row file beside the index"),
        ({"rows_file": "rows-00003-of-00002.parquet"}, "no row file beside the index"),
        ({"rows_file": "rows-00000-of-00002.parquet"}, "cannot be read"),
        ({"rows_sha256": "0" * 64}, "damaged, or others"),
    ],
)
def test_an_index_of_something_else_is_refused(changed, told, made, rollout, source):
    metadata = source.samples[1]["metadata"]
    source.samples[1]["metadata"] = metadata | changed if isinstance(changed, dict) else changed
    source.offset = 1
    with pytest.raises(rollout.RefusedError, match=told):
        rollout.generate_rollout(miles_arguments(made.out), 0, source)


def test_an_index_that_changes_its_rows_later_is_refused(made, rollout, source):
    source.samples[1]["metadata"] = source.samples[1]["metadata"] | {"rows_sha256": "0" * 64}
    with pytest.raises(rollout.RefusedError, match="not of these rows"):
        rollout.generate_rollout(miles_arguments(made.out), 0, source)


def test_the_environment_pins_the_rows(made, rollout, source, monkeypatch):
    monkeypatch.setenv("DATABUILD_ROWS_SHA256", made.manifest.parent.rows_sha256)
    rollout.generate_rollout(miles_arguments(made.out), 0, source)
    monkeypatch.setenv("DATABUILD_ROWS_SHA256", "1" * 64)
    with pytest.raises(rollout.RefusedError, match="DATABUILD_ROWS_SHA256"):
        rollout.generate_rollout(miles_arguments(made.out), 0, source)


def changed_rows(made, folder, change):
    """A copy of the export whose rows are changed, under their own right digest."""
    import hashlib

    folder.mkdir()
    listed = pq.read_table(made.out / "rows.parquet").to_pylist()
    change(listed)
    schema = pq.read_schema(made.out / "rows.parquet")
    pq.write_table(pa.Table.from_pylist(listed, schema=schema), folder / "rows.parquet")
    sha = hashlib.sha256()
    for row in listed:
        sha.update(np.array(row["input_ids"], "<i4").tobytes() + np.array(row["loss_mask"], np.uint8).tobytes())
    source = DataSource(made.out / "rows.miles.parquet")
    for sample in source.samples:
        sample["metadata"] = sample["metadata"] | {"rows_sha256": sha.hexdigest()}
    return source


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: rows[3].update(loss_mask=[0] * 64), "nothing to train; found row 3"),
        (lambda rows: rows[3].update(loss_mask=[1] * 64), "its first is not 0"),
        (lambda rows: rows[3].update(loss_mask=[0, 2] * 32), "neither 0 nor 1"),
        (lambda rows: rows[3].update(input_ids=[129280] * 64), "not in the vocabulary"),
        (lambda rows: rows[3].update(input_ids=[-1] * 64), "not in the vocabulary"),
        (lambda rows: rows[3].update(input_ids=[5] * 63), "not lists of one length"),
        (lambda rows: [row.update(input_ids=[5] * 63) for row in rows], "differ in length"),
    ],
)
def test_rows_that_miles_cannot_train_are_refused(change, told, made, rollout, tmp_path):
    source = changed_rows(made, tmp_path / "changed", change)
    with pytest.raises(rollout.RefusedError, match=told):
        rollout.generate_rollout(miles_arguments(tmp_path / "changed"), 0, source)


def test_a_flipped_bit_of_the_rows_is_refused(made, rollout, tmp_path):
    changed_rows(
        made, tmp_path / "changed", lambda rows: rows[3]["input_ids"].__setitem__(5, rows[3]["input_ids"][5] ^ 1)
    )
    with pytest.raises(rollout.RefusedError, match="damaged, or others"):
        rollout.generate_rollout(miles_arguments(tmp_path / "changed"), 0, DataSource(made.out / "rows.miles.parquet"))


def test_it_is_loaded_by_its_bare_name_without_databuild_or_miles(tmp_path):
    """As miles loads it: from PYTHONPATH, in an environment that has neither databuild nor, here, miles."""
    from pathlib import Path

    import train.miles

    code = (
        "import sys, importlib; sys.modules['databuild'] = sys.modules['miles'] = None; "
        "module = importlib.import_module('pretokenized_sft_rollout'); "
        "assert callable(module.generate_rollout) and 'pyarrow' not in sys.modules"
    )
    folder = str(Path(train.miles.__file__).parent)
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env={"PYTHONPATH": folder}, check=True)
