"""Checkpoints of Hugging Face: every number arrives where it belongs, and comes back as it was."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("yaml")
safetensors = pytest.importorskip("safetensors.torch")

from databuild.errors import OutputError, SourceError, UsageError  # noqa: E402
from train.config import TrainConfig, load_config  # noqa: E402
from train.hf import config_from_hf, export_hf, join_qkv, load_hf, split_qkv  # noqa: E402

SIZES = {"num_layers": 2, "hidden_size": 32, "ffn_hidden_size": 48, "num_attention_heads": 4, "num_query_groups": 2}
LLAMA = TrainConfig(**SIZES, vocab_size=96, seq_length=64, rotary_base=5000.0, norm_epsilon=1e-5)
QWEN3 = LLAMA.model_copy(update={"kv_channels": 16, "qk_layernorm": True, "tie_embeddings": True})
QWEN2 = LLAMA.model_copy(update={"add_qkv_bias": True})
MODELS = {"llama": LLAMA, "qwen3": QWEN3, "qwen2": QWEN2}


def random_state(config, seed=1, dtype=torch.float32):
    """A state dict written out by Megatron's names."""
    torch.manual_seed(seed)
    h, f, d = config.hidden_size, config.ffn_hidden_size, config.head_dim
    rows = (config.num_attention_heads + 2 * config.query_groups) * d
    shapes = {"embedding.word_embeddings.weight": (config.vocab_size, h), "decoder.final_layernorm.weight": (h,)}
    if not config.tie_embeddings:
        shapes["output_layer.weight"] = (config.vocab_size, h)
    for i in range(config.num_layers):
        layer = {
            "input_layernorm.weight": (h,),
            "self_attention.linear_qkv.weight": (rows, h),
            "self_attention.linear_proj.weight": (h, config.num_attention_heads * d),
            "pre_mlp_layernorm.weight": (h,),
            "mlp.linear_fc1.weight": (2 * f, h),
            "mlp.linear_fc2.weight": (h, f),
        }
        if config.qk_layernorm:
            layer |= {"self_attention.q_layernorm.weight": (d,), "self_attention.k_layernorm.weight": (d,)}
        if config.add_qkv_bias:
            layer["self_attention.linear_qkv.bias"] = (rows,)
        shapes |= {f"decoder.layers.{i}.{name}": shape for name, shape in layer.items()}
    return {name: (0.3 * torch.randn(shape)).to(dtype) for name, shape in shapes.items()}


def same(left, right):
    assert left.keys() == right.keys()
    for name in left:
        assert left[name].dtype == right[name].dtype
        assert torch.equal(left[name], right[name]), name


def model_keys(config):
    keys = config_keys()
    return {key: value for key, value in config.model_dump().items() if key in keys} | {
        "num_query_groups": config.query_groups,
        "kv_channels": config.head_dim,
    }


def config_keys():
    return {
        "num_layers", "hidden_size", "ffn_hidden_size", "num_attention_heads", "num_query_groups", "kv_channels",
        "vocab_size", "rotary_base", "rotary_percent", "norm_epsilon", "init_method_std", "tie_embeddings",
        "qk_layernorm", "add_qkv_bias",
    }  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shard_bytes", [10**9, 20_000])
def test_the_round_trip_is_bitwise(tmp_path, name, dtype, shard_bytes):
    state = random_state(MODELS[name], dtype=dtype)
    export_hf(state, MODELS[name], tmp_path / "hf", shard_bytes=shard_bytes)
    assert (len(list((tmp_path / "hf").glob("*.safetensors"))) > 1) == (shard_bytes == 20_000)
    same(load_hf(tmp_path / "hf"), state)
    assert config_from_hf(tmp_path / "hf") == model_keys(MODELS[name])


def test_queries_keys_and_values_lie_group_by_group():
    config = LLAMA.model_copy(update={"hidden_size": 1, "kv_channels": 1})
    query, key, value = (torch.tensor(v)[:, None] for v in ([1, 2, 3, 4], [10, 20], [100, 200]))
    joined = join_qkv(query, key, value, config)
    assert joined[:, 0].tolist() == [1, 2, 10, 100, 3, 4, 20, 200]
    for part, whole in zip(split_qkv(joined, config), (query, key, value), strict=True):
        assert torch.equal(part, whole)


def reference_logits(state, config, tokens):
    """float[n, vocab]: a forward pass written out from Megatron's layout: groups, [gate; up], rotation of halves."""
    d, groups = config.head_dim, config.query_groups
    per_group = config.num_attention_heads // groups
    n = len(tokens)
    angles = torch.arange(n)[:, None] * config.rotary_base ** (-torch.arange(0, d, 2) / d)
    cos, sin = (torch.cat([f(angles), f(angles)], -1)[:, None] for f in (torch.cos, torch.sin))

    def norm(x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + config.norm_epsilon) * state[name]

    def rotated(x):
        return x * cos + torch.cat([-x[..., d // 2 :], x[..., : d // 2]], -1) * sin

    x = state["embedding.word_embeddings.weight"][tokens]
    for i in range(config.num_layers):
        layer = f"decoder.layers.{i}."
        qkv = norm(x, layer + "input_layernorm.weight") @ state[layer + "self_attention.linear_qkv.weight"].T
        qkv = (qkv + state.get(layer + "self_attention.linear_qkv.bias", 0)).view(n, groups, -1, d)
        q, k, v = qkv[:, :, :per_group], qkv[:, :, per_group], qkv[:, :, per_group + 1]
        q = q.reshape(n, -1, d)
        if config.qk_layernorm:
            q = norm(q, layer + "self_attention.q_layernorm.weight")
            k = norm(k, layer + "self_attention.k_layernorm.weight")
        q, k = rotated(q), rotated(k).repeat_interleave(per_group, 1)
        scores = torch.einsum("qhd,khd->hqk", q, k) / d**0.5
        scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf).softmax(-1)
        out = torch.einsum("hqk,khd->qhd", scores, v.repeat_interleave(per_group, 1)).reshape(n, -1)
        x = x + out @ state[layer + "self_attention.linear_proj.weight"].T
        h = norm(x, layer + "pre_mlp_layernorm.weight") @ state[layer + "mlp.linear_fc1.weight"].T
        gate, up = h.chunk(2, -1)
        x = x + (torch.nn.functional.silu(gate) * up) @ state[layer + "mlp.linear_fc2.weight"].T
    head = "embedding.word_embeddings.weight" if config.tie_embeddings else "output_layer.weight"
    return norm(x, "decoder.final_layernorm.weight") @ state[head].T


@pytest.mark.parametrize("name", MODELS)
def test_transformers_computes_what_megatrons_layout_means(tmp_path, name):
    transformers = pytest.importorskip("transformers")
    config = MODELS[name]
    state = random_state(config)
    export_hf(state, config, tmp_path / "hf")
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "hf", output_loading_info=True, dtype=torch.float32, attn_implementation="eager"
    )
    assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    tokens = torch.randint(0, config.vocab_size, (20,))
    with torch.no_grad():
        logits = model(tokens[None]).logits[0]
    assert torch.allclose(logits, reference_logits(state, config, tokens), atol=2e-5)


@pytest.mark.parametrize("name", ["Llama", "Qwen2", "Qwen3"])
def test_a_model_of_transformers_comes_back_with_the_same_logits(tmp_path, name):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(3)
    own = getattr(transformers, f"{name}Config")(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=96, max_position_embeddings=64, tie_word_embeddings=name == "Qwen2",
        **({"head_dim": 16} if name == "Qwen3" else {}),
    )  # fmt: skip
    before = getattr(transformers, f"{name}ForCausalLM")(own).eval()
    with torch.no_grad():
        for parameter in before.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))  # norms and biases are 1 and 0 otherwise
    before.save_pretrained(tmp_path / "theirs")
    config = TrainConfig(**config_from_hf(tmp_path / "theirs"), seq_length=64)
    state = load_hf(tmp_path / "theirs")
    export_hf(state, config, tmp_path / "ours")
    after = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours", dtype=torch.float32).eval()
    assert type(after) is type(before)
    tokens = torch.randint(0, 96, (2, 20))
    with torch.no_grad():
        assert torch.equal(before(tokens).logits, after(tokens).logits)
    for key, tensor in before.state_dict().items():
        assert torch.equal(after.state_dict()[key], tensor), key


@pytest.mark.parametrize(
    ("change", "kind", "what"),
    [
        ({"model_type": "mixtral"}, UsageError, "not built here"),
        ({"hidden_act": "gelu"}, UsageError, "hidden_act"),
        ({"attention_bias": True}, UsageError, "attention_bias"),
        ({"mlp_bias": True}, UsageError, "mlp_bias"),
        ({"use_sliding_window": True}, UsageError, "use_sliding_window"),
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 1.0}}, UsageError, "rope_type"),
        ({"rope_parameters": None, "rope_scaling": {"type": "yarn"}}, UsageError, "rope_type"),
        ({"rope_parameters": None, "partial_rotary_factor": 0.5}, UsageError, "partial_rotary_factor"),
        ({"hidden_size": None}, SourceError, "lacks a size"),
        ({"num_key_value_heads": 3}, UsageError, "make no model"),
        ({"hidden_size": 0}, UsageError, "make no model"),
        ({"vocab_size": 97}, SourceError, "another shape"),
        ({"num_hidden_layers": 3}, SourceError, "is missing"),
        ({"num_hidden_layers": 1}, SourceError, "does not belong"),
        ({"tie_word_embeddings": True}, None, ""),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(tmp_path, change, kind, what):
    export_hf(random_state(LLAMA), LLAMA, tmp_path / "hf")
    path = tmp_path / "hf" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    if kind is None:
        assert "output_layer.weight" not in load_hf(tmp_path / "hf")
        return
    with pytest.raises(kind) as caught:
        load_hf(tmp_path / "hf")
    assert what in str(caught.value)


def test_a_directory_that_is_no_checkpoint_is_refused(tmp_path):
    with pytest.raises(SourceError, match="no checkpoint"):
        config_from_hf(tmp_path)
    export_hf(random_state(LLAMA), LLAMA, tmp_path / "hf")
    weights = tmp_path / "hf" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(SourceError, match="weights cannot be read"):
        load_hf(tmp_path / "hf")
    weights.unlink()
    with pytest.raises(SourceError, match="weights cannot be read"):
        load_hf(tmp_path / "hf")
    (tmp_path / "hf" / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../x.safetensors"}}')
    with pytest.raises(SourceError, match="elsewhere"):
        load_hf(tmp_path / "hf")


def test_old_checkpoints_state_the_rotation_otherwise(tmp_path):
    config = {
        "model_type": "llama", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "vocab_size": 96, "rope_theta": 77.0, "rope_scaling": None,
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = config_from_hf(tmp_path)
    assert (found["rotary_base"], found["num_query_groups"], found["kv_channels"]) == (77.0, 4, 8)


@pytest.mark.parametrize(
    ("update", "what"),
    [
        ({"num_moe_experts": 4}, "dense"),
        ({"mtp_num_layers": 1}, "dense"),
        ({"qk_layernorm": True, "add_qkv_bias": True}, "both"),
        ({"rotary_percent": 0.5}, "part of a head"),
        ({"num_layers": 1}, "does not belong"),
        ({"num_layers": 3}, "is missing"),
        ({"vocab_size": 128}, "another shape"),
        ({"qk_layernorm": True}, "is missing"),
    ],
)
def test_a_model_without_such_a_form_is_not_exported(tmp_path, update, what):
    with pytest.raises(UsageError, match=what):
        export_hf(random_state(LLAMA), LLAMA.model_copy(update=update), tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


def test_megatrons_extra_states_are_left_out(tmp_path):
    state = random_state(LLAMA)
    export_hf(state | {"decoder.layers.0.mlp.linear_fc1._extra_state": None}, LLAMA, tmp_path / "hf")
    same(load_hf(tmp_path / "hf"), state)


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(OutputError, match="not empty"):
            export_hf(random_state(LLAMA), LLAMA, place)
    assert os.listdir(tmp_path) == ["file"]


def test_a_configuration_takes_the_model_from_the_checkpoint_it_loads(tmp_path):
    export_hf(random_state(QWEN3), QWEN3, tmp_path / "hf")
    path = tmp_path / "run.yaml"
    path.write_text(f"load_hf: {tmp_path / 'hf'}\nkv_channels: null\ninit_method_std: 0.01\n")
    config = load_config(path)
    assert (config.head_dim, config.qk_layernorm, config.num_layers) == (16, True, 2)
    assert load_config(path, ["hidden_size=32"]) == config
    with pytest.raises(UsageError, match="num_layers contradicts the checkpoint"):
        load_config(path, ["num_layers=3"])


MEGATRON = """
import sys
import torch
from train import cpu_shim, process
cpu_shim.install()
process.start(False)
from megatron.core import parallel_state
from train import megatron_fixes
from train.config import TrainConfig
from train.flops import parameter_counts
from train.hf import config_from_hf, load_hf
from train.layout import start_groups
from train.model import build_model, unwrapped
megatron_fixes.install()
for folder in sys.argv[1:]:
    values = config_from_hf(folder) | {"seq_length": 20, "precision": "fp32", "use_distributed_optimizer": False}
    config = TrainConfig(**values)
    start_groups(config)
    model = unwrapped(build_model(config))
    found = model.load_state_dict(load_hf(folder), strict=False)
    wrong = [name for name in found.missing_keys if not name.endswith("_extra_state")] + found.unexpected_keys
    assert wrong == [], wrong
    assert sum(parameter.numel() for parameter in model.parameters()) == parameter_counts(config).total
    case = torch.load(folder + "/case.pt")
    with torch.no_grad():
        positions = torch.arange(20)[None]
        logits = model(case["tokens"][None], positions, None)[0]
    difference = (logits - case["logits"]).abs().max().item()
    assert difference < 1e-5 * max(1.0, case["logits"].abs().max().item()), (folder, difference)
    parallel_state.destroy_model_parallel()
    print("equal", folder)
process.stop()
"""


def test_megatron_computes_what_its_layout_means(tmp_path):
    for module in ("megatron.core", "train.model", "train.cpu_shim"):
        if not importable(module):
            pytest.skip(f"{module} is not installed")
    folders = []
    for name, config in MODELS.items():
        state = random_state(config)
        export_hf(state, config, tmp_path / name)
        tokens = torch.randint(0, config.vocab_size, (20,))
        torch.save({"tokens": tokens, "logits": reference_logits(state, config, tokens)}, tmp_path / name / "case.pt")
        folders.append(str(tmp_path / name))
    # In a process of its own: Megatron and the stand-ins for CUDA change torch for good.
    done = subprocess.run([sys.executable, "-c", MEGATRON, *folders], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("equal") == len(folders)


def importable(module):
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False
