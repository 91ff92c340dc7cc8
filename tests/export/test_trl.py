"""TRL's SFTTrainer takes the hf export as it is: nothing tokenized, packed, cut or dropped again. Needs `pip install trl`."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from export.readers import canonical
from support import build_files, records, write_jsonl

from databuild.export.run import export

trl = pytest.importorskip("trl")
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def tiny_tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(WordLevel({"<pad>": 0, "<eos>": 1}, unk_token="<pad>")),
        pad_token="<pad>",
        eos_token="<eos>",
    )


def trainer_of(dataset, folder, tokenizer, length, **changed):
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=129280, hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        max_position_embeddings=length,
    )  # fmt: skip
    options = {
        "per_device_train_batch_size": 4, "max_length": length, "packing": False, "report_to": "none", "max_steps": 2,
        "use_cpu": True, "save_strategy": "no", "disable_tqdm": True, "bf16": False,
    }  # fmt: skip
    arguments = trl.SFTConfig(output_dir=str(folder), **(options | changed))
    return trl.SFTTrainer(
        model=LlamaForCausalLM(config), args=arguments, train_dataset=dataset, processing_class=tokenizer
    )


def fed_pairs(trainer, ids):
    """(row, position, token) of what the trainer's own batches train; rows are known by their ids."""
    row_of = {row.tobytes(): number for number, row in enumerate(ids)}
    assert len(row_of) == len(ids)
    found, rows = [], 0
    for batch in trainer.get_train_dataloader():
        assert batch["attention_mask"].all()
        shifted = batch["labels"][:, 1:]
        for some, labels in zip(batch["input_ids"].numpy().astype(np.int32), shifted.numpy(), strict=True):
            row = row_of[some.tobytes()]
            rows += 1
            found += [(row, int(t) + 1, int(labels[t])) for t in np.flatnonzero(labels != -100)]
    assert rows == len(ids)
    return np.array(sorted(found), np.int64)


def loaded(made):
    import datasets

    return datasets.load_dataset(str(made.out), split="train", cache_dir=str(made.out.parent / "cache"))


def test_sft_trainer_trains_the_pairs_of_the_build(tmp_path, tiny_tokenizer, shared_tokenizer):
    build = build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", records(60))])
    made = export(build.out, "hf", {}, tmp_path / "hf")
    dataset = loaded(made)
    trainer = trainer_of(dataset, tmp_path / "out", tiny_tokenizer, 64)
    assert len(trainer.train_dataset) == len(dataset) == build.manifest.rows.rows
    ids = np.array(pq.read_table(build.out / "rows.parquet")["input_ids"].to_pylist(), np.int32)
    assert np.array_equal(fed_pairs(trainer, ids), canonical(build.out))
    seen = []
    forward = trainer.model.forward
    trainer.model.forward = lambda *args, **kwargs: seen.append(kwargs["labels"]) or forward(*args, **kwargs)
    trainer.train()
    assert [tuple(labels.shape) for labels in seen] == [(4, 64)] * 2


def test_sft_trainer_prepares_the_demo_without_touching_it(demo_build, tmp_path, tiny_tokenizer, shared_tokenizer):
    made = export(demo_build.out, "hf", {}, tmp_path / "hf")
    dataset = loaded(made)
    prepared = trainer_of(dataset, tmp_path / "out", tiny_tokenizer, 8192).train_dataset
    assert prepared["input_ids"][:] == dataset["input_ids"][:] and prepared["labels"][:] == dataset["labels"][:]
    targets = sum(label != -100 for labels in prepared["labels"] for label in labels[1:])
    assert targets == demo_build.manifest.rows.num_targets


def test_a_shorter_max_length_would_be_noticed(tmp_path, tiny_tokenizer, shared_tokenizer):
    """TRL cuts rows to its default max_length without a word: the README tells to set it, and this sees it."""
    build = build_files(tmp_path / "rows", [write_jsonl(tmp_path / "s.jsonl", records(60))])
    made = export(build.out, "hf", {}, tmp_path / "hf")
    trainer = trainer_of(loaded(made), tmp_path / "out", tiny_tokenizer, 64, max_length=32)
    lengths = {batch["input_ids"].shape[1] for batch in trainer.get_train_dataloader()}
    assert lengths == {32}
