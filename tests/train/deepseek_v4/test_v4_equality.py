"""Our DeepSeek-V4 and transformers': the same numbers in, the same numbers out; and no token sees what it must not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("safetensors")
if not hasattr(transformers, "DeepseekV4ForCausalLM"):
    pytest.skip("transformers has no DeepSeek-V4", allow_module_level=True)

from safetensors.torch import load_file, save_file  # noqa: E402
from v4_models import LENGTH, TINY, our_model, small_blocks, their_model, their_name  # noqa: E402

from databuild.errors import SourceError, UsageError  # noqa: E402
from train.config import load_config  # noqa: E402
from train.deepseek_v4.config import V4Config  # noqa: E402
from train.deepseek_v4.hf import Checkpoint, export_hf, read_section, stored_shapes  # noqa: E402
from train.deepseek_v4.model import V4Model  # noqa: E402
from train.deepseek_v4.weights import fill, whole_tensors  # noqa: E402


@pytest.fixture(autouse=True)
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hf") / "v4"
    their_model(our_model(), path)
    return path


def twins(folder: Path):
    from transformers import DeepseekV4ForCausalLM

    ours = our_model()
    return ours, DeepseekV4ForCausalLM.from_pretrained(folder, dtype=torch.float32)


def tokens(rows: int, seed: int):
    return torch.randint(0, TINY["vocab_size"], (rows, LENGTH), generator=torch.Generator().manual_seed(seed))


def their_loss(model, batch, labels):
    logits = model(batch, use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())


def test_logits_loss_and_every_gradient(folder: Path) -> None:
    ours, theirs = twins(folder)
    batch, labels = tokens(3, 1), tokens(3, 2)
    with torch.no_grad():
        logits = theirs(batch, use_cache=False).logits
        assert logits.abs().max() > 1
        assert (ours(batch) - logits).abs().max() <= 1e-5
    loss = ours(batch, labels=labels).mean()
    expected = their_loss(theirs, batch, labels)
    assert abs(loss.item() - expected.item()) <= 1e-5 * abs(expected.item())
    loss.backward()
    expected.backward()
    found = dict(theirs.named_parameters())
    trained = 0
    for name, parameter in ours.named_parameters():
        wanted = found.pop(their_name(name)).grad
        if wanted is None:
            assert ".indexer." in name and not parameter.requires_grad
            continue
        trained += 1
        assert wanted.abs().max() > 0, name
        assert (parameter.grad - wanted).abs().max() <= 1e-5, name
        assert (parameter.grad - wanted).abs().max() <= 1e-4 * wanted.abs().max(), name
    assert not found and trained == 122 - 4 - 12  # without buffers and the two indexers


def test_twenty_training_steps_stay_together(folder: Path) -> None:
    ours, theirs = twins(folder)
    optimizers = [torch.optim.SGD([p for p in m.parameters() if p.requires_grad], lr=0.1) for m in (ours, theirs)]
    first, last = [], []
    for step in range(20):
        batch, labels = tokens(2, step % 2), tokens(2, 100 + step % 2)
        losses = [ours(batch, labels=labels).mean(), their_loss(theirs, batch, labels)]
        for loss, optimizer in zip(losses, optimizers, strict=True):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert abs(losses[0].item() - losses[1].item()) <= 1e-5 * losses[1].item(), step
        first, last = first or losses, losses
    assert last[0] < first[0] - 0.2
    found = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        assert (parameter - found[their_name(name)]).abs().max() <= 1e-5, name


def test_bf16_is_as_near_to_fp32_as_theirs(folder: Path) -> None:
    from transformers import DeepseekV4ForCausalLM

    whole = our_model()
    c = V4Config.model_validate(TINY)
    theirs = DeepseekV4ForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    torch.set_default_dtype(torch.bfloat16)
    try:
        ours = V4Model(c)
    finally:
        torch.set_default_dtype(torch.float32)
    fill(ours, Checkpoint(folder, c).weight)
    kept = {their_name(n): t.dtype for n, t in ours.state_dict().items()}
    assert kept == {name: tensor.dtype for name, tensor in theirs.state_dict().items()}
    rounded = ours.state_dict()
    errors = torch.zeros(2)
    with torch.no_grad():
        for name, tensor in whole.state_dict().items():
            tensor.copy_(rounded[name])
        for seed in range(8):
            batch = tokens(3, seed)
            exact = whole(batch)
            errors += torch.stack([(x.float() - exact).abs().mean() for x in (ours(batch), theirs(batch).logits)])
    assert 0 < errors[0] < 1.2 * errors[1]


def test_a_later_token_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model = our_model()
    batch = tokens(2, 7)
    with torch.no_grad():
        whole = model(batch)
        for change in (1, 17, 32, 40, LENGTH - 1):
            other = batch.clone()
            other[:, change:] = (other[:, change:] + 1) % TINY["vocab_size"]
            assert torch.equal(model(other)[:, :change], whole[:, :change])


def random_documents(seed: int, rows: int):
    """int[rows, LENGTH]: the number of each token's document in its row; documents have 1 to 50 tokens."""
    generator = torch.Generator().manual_seed(seed)
    begins = torch.zeros(rows, LENGTH, dtype=torch.int32)
    for row in begins:
        place = 0
        while (place := place + int(torch.randint(1, 50, (1,), generator=generator))) < LENGTH:
            row[place] = 1
    return begins.cumsum(1)


def bounds_of(docs):
    """The doc_bounds of documents that are numbered row by row."""
    begins = torch.ones_like(docs, dtype=torch.bool)
    begins[:, 1:] = docs[:, 1:] != docs[:, :-1]
    return torch.cat([begins.flatten().nonzero()[:, 0], torch.tensor([docs.numel()])]).int()


@pytest.mark.parametrize("seed", range(6))
def test_a_document_is_alone_in_its_row(seed: int) -> None:
    model, docs, batch = our_model(), random_documents(seed, 2), tokens(2, seed)
    with torch.no_grad():
        whole = model(batch, None, bounds_of(docs))
        for number in range(int(docs.max()) + 1):
            changed = torch.where(docs == number, tokens(2, 50 + seed), batch)
            rest = docs != number
            assert torch.equal(model(changed, None, bounds_of(docs))[rest], whole[rest])
        for row in range(2):
            for number in docs[row].unique():
                own = docs[row] == number
                assert (model(batch[row : row + 1, own])[0] - whole[row, own]).abs().max() <= 2e-5


def test_one_document_is_a_whole_row(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch, labels = our_model(), tokens(2, 3), tokens(2, 4)
    losses = []
    for docs in (None, torch.tensor([0, LENGTH, 2 * LENGTH], dtype=torch.int32)):
        model.zero_grad()
        loss = model(batch, None, docs, labels=labels).mean()
        loss.backward()
        losses.append((loss, [p.grad for p in model.parameters() if p.requires_grad]))
    assert torch.equal(losses[0][0], losses[1][0])
    for one, other in zip(losses[0][1], losses[1][1], strict=True):
        assert (one - other).abs().max() <= 1e-6


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch = our_model(), tokens(2, 3)
    with torch.no_grad():
        small = model(batch)
        small_blocks(monkeypatch, rows=16_384)
        assert (model(batch) - small).abs().max() <= 1e-5


def test_checkpoints_round_trip_bitwise(folder: Path, tmp_path: Path) -> None:
    ours, theirs = twins(folder)
    theirs.save_pretrained(tmp_path / "theirs")
    c = read_section(tmp_path / "theirs")
    assert c == V4Config.model_validate(TINY)
    read = V4Model(c)
    fill(read, Checkpoint(tmp_path / "theirs", c).weight)
    assert all(torch.equal(tensor, ours.state_dict()[name]) for name, tensor in read.state_dict().items())
    export_hf({item.name: item.tensor for item in whole_tensors(read)}, c, tmp_path / "again")
    saved, again = (load_file(tmp_path / name / "model.safetensors") for name in ("theirs", "again"))
    assert saved.keys() == again.keys() == stored_shapes(c).keys()
    assert all(torch.equal(tensor, again[name]) and tensor.dtype == again[name].dtype for name, tensor in saved.items())
    assert len(list(folder.glob("model-*.safetensors"))) > 5


def test_published_names_are_read(folder: Path, tmp_path: Path) -> None:
    theirs = {}
    for path in sorted(folder.glob("*.safetensors")):
        theirs |= load_file(path)
    published = {}
    for name, tensor in theirs.items():
        short = name.removeprefix("model.").replace("hc_head.hc_", "hc_head_").replace("embed_tokens", "embed")
        published[short.replace(".attn.norm.", ".attn.kv_norm.")] = tensor
    save_file(published | {"mtp.0.enorm.weight": torch.ones(2)}, tmp_path / "model.safetensors")
    c = V4Config.model_validate(TINY)
    read = V4Model(c)
    fill(read, Checkpoint(tmp_path, c).weight)
    assert all(torch.equal(tensor, our_model().state_dict()[name]) for name, tensor in read.state_dict().items())


def test_a_checkpoint_that_is_not_this_model_is_refused(folder: Path, tmp_path: Path) -> None:
    c = V4Config.model_validate(TINY)
    with pytest.raises(SourceError, match="missing"):
        Checkpoint(folder, V4Config.model_validate(TINY | {"n_routed_experts": 5}))
    with pytest.raises(SourceError, match="cannot be read"):
        Checkpoint(tmp_path, c)
    save_file({"head.weight": torch.ones(2).to(torch.float8_e4m3fn)}, tmp_path / "model.safetensors")
    with pytest.raises(SourceError, match="quantized"):
        Checkpoint(tmp_path, c)
    with pytest.raises(UsageError, match="missing"):
        export_hf({"output_layer.weight": torch.ones(98, 32)}, c, tmp_path / "new")


def test_a_run_takes_the_architecture_of_load_hf(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(f"load_hf: {json.dumps(str(folder))}\nprecision: fp32\n")
    config = load_config(tmp_path / "run.yaml")
    assert config.deepseek_v4 == V4Config.model_validate(TINY)
    assert (config.num_layers, config.num_moe_experts, config.vocab_size) == (4, 4, 98)
