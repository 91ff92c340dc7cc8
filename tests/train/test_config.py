"""TrainConfig: what is not understood is refused, with the key that was meant; what is printed reads back the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

yaml = pytest.importorskip("yaml")

from databuild.errors import UsageError  # noqa: E402
from train.config import TrainConfig, load_config, print_config  # noqa: E402

DENSE = {"num_layers": 4, "hidden_size": 64, "ffn_hidden_size": 128, "num_attention_heads": 4}
MOE = DENSE | {"num_moe_experts": 8}
MLA = DENSE | {
    "multi_latent_attention": True, "kv_lora_rank": 16, "qk_head_dim": 16, "qk_pos_emb_head_dim": 8, "v_head_dim": 16
}  # fmt: skip


def write(folder, text):
    path = folder / "run.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def dump(folder, values):
    return write(folder, yaml.safe_dump(values))


def test_a_file_and_sets_over_it(tmp_path):
    path = dump(tmp_path, DENSE | {"steps": 7, "lr": 0.5})
    config = load_config(path, ["steps=9", "recompute=full", "lr=1e-5", "min_lr=0", "tie_embeddings=true"])
    assert (config.steps, config.recompute, config.lr, config.min_lr) == (9, "full", 1e-5, 0)
    assert config.tie_embeddings is True
    assert load_config(path, ["steps=9"]).lr == 0.5
    assert load_config(dump(tmp_path, DENSE | {"save_interval": 3}), ["save_interval=null"]).save_interval is None


@pytest.mark.parametrize("text", ["1e-5", "1E-5", "1.0e-5", "0.00001", "+1e-5"])
def test_numbers_are_read_as_people_write_them(tmp_path, text):
    path = write(tmp_path, "".join(f"{k}: {v}\n" for k, v in DENSE.items()) + f"lr: {text}\n")
    assert load_config(path).lr == 1e-5


@pytest.mark.parametrize(
    "values",
    [
        DENSE,
        DENSE | {"load_hf": "/models/a b: c", "price_per_gpu_hour": 2.5, "lr": 3e-7, "adam_eps": 1e-15},
        MOE | {"moe_layer_freq": [0, 1, 1, 1], "moe_router_num_groups": 4, "moe_router_group_topk": 2},
        MLA | {"q_lora_rank": 8, "mtp_num_layers": 1},
    ],
)
def test_what_is_printed_reads_back_as_it_was(tmp_path, values):
    config = TrainConfig(**values)
    printed = print_config(config)
    again = write(tmp_path, printed)
    assert [line.split(":")[0] for line in printed.splitlines()] == list(TrainConfig.model_fields)
    if "load_hf" not in values:
        assert load_config(again) == config
    assert TrainConfig(**yaml.safe_load(printed)) == config  # any YAML reader sees the same


@given(st.floats(1e-300, 1e300), st.text(st.characters(codec="utf-8"), min_size=1))
@settings(max_examples=60, deadline=None)
def test_any_number_and_any_text_survive_printing(number, text):
    config = TrainConfig(**DENSE, lr=number, load_hf=text)
    read = yaml.safe_load(print_config(config))
    assert (read["lr"], read["load_hf"]) == (number, text)


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        (["stepz=3"], "did you mean steps"),
        (["tensor_parallel=2"], "there is no key 'tensor_parallel'"),
        (["micro_batchsize=2"], "did you mean micro_batch_size"),
        (["steps=1.0"], "valid integer"),
        (["steps=010"], "valid integer"),
        (["steps=1_000"], "valid integer"),
        (["steps=true"], "valid integer"),
        (["steps=0"], "greater than or equal to 1"),
        (["deterministic=yes"], "valid boolean"),
        (["deterministic=1"], "valid boolean"),
        (["recompute=fully"], "'none', 'selective' or 'full'"),
        (["lr=.nan"], "valid number"),
        (["lr=1e999"], "finite"),
        (["steps=[1"], "not readable YAML"),
        (["steps=!!python/object:os.system 3"], "not readable YAML"),
        (["steps="], "needs a value"),
        (["steps"], "needs a value"),
        (["steps=1", "steps=2"], "set twice"),
        (["num_layers=null"], "valid integer"),
    ],
)
def test_a_set_that_is_not_understood_is_refused(tmp_path, sets, said):
    with pytest.raises(UsageError) as caught:
        load_config(dump(tmp_path, DENSE), sets)
    assert said in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("steps: 1\nsteps: 2\n", "'steps' is there twice"),
        ("step: 1\n", "did you mean steps"),
        ("- steps\n", "not a list of keys"),
        ("7\n", "not a list of keys"),
        ("1: 2\n", "is not text"),
        ("? [a]\n: 1\n", "is not text"),
        ("a: &x 1\n<<: *x\n", "there is no key"),
        ("steps: 1\n---\nsteps: 2\n", "not readable YAML"),
        ("steps: [\n", "line 2"),
        ("", "num_layers is missing"),
        ("steps: {a: 1}\n" + "".join(f"{k}: {v}\n" for k, v in DENSE.items()), "valid integer"),
        ("a: " + "[" * 1500, "not readable YAML"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(tmp_path, text, said):
    with pytest.raises(UsageError) as caught:
        load_config(write(tmp_path, text))
    assert said in str(caught.value)
    assert "run.yaml" in caught.value.where


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(UsageError, match="cannot be read"):
            load_config(path)
    (tmp_path / "latin").write_bytes(b"\xe9: 1")
    with pytest.raises(UsageError, match="cannot be read"):
        load_config(tmp_path / "latin")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (DENSE | {"global_batch_size": 6, "micro_batch_size": 4}, "multiple of micro_batch_size"),
        (DENSE | {"seq_length": 1}, "greater than or equal to 2"),
        (DENSE | {"cp": 2, "seq_length": 6}, "multiple of 2 x cp"),
        (DENSE | {"sequence_parallel": True}, "sequence_parallel needs tp > 1"),
        (DENSE | {"sequence_parallel": True, "tp": 4, "seq_length": 66}, "multiple of tp x cp"),
        (DENSE | {"tp": 8}, "num_attention_heads 4 must be a multiple of tp"),
        (DENSE | {"tp": 4, "num_query_groups": 4, "vocab_size": 129_281}, "vocab_size"),
        (DENSE | {"num_query_groups": 3}, "multiple of num_query_groups"),
        (DENSE | {"hidden_size": 66}, "multiple of num_attention_heads"),
        (DENSE | {"first_stage_layers": 2}, "need pp > 1"),
        (DENSE | {"pp": 3}, "pipeline stages"),
        (DENSE | {"pp": 8}, "pipeline stages"),
        (DENSE | {"pp": 2, "first_stage_layers": 1, "last_stage_layers": 1}, "under pp 2"),
        (DENSE | {"pp": 3, "first_stage_layers": 1}, "3 of num_layers 4 are left for 2"),
        (DENSE | {"pp": 2, "first_stage_layers": 4}, "are left for 1"),
        (DENSE | {"lr": 1e-5, "min_lr": 1e-4}, "must not exceed lr"),
        (DENSE | {"ep": 2}, "ep needs num_moe_experts"),
        (DENSE | {"etp": 2}, "etp needs num_moe_experts"),
        (DENSE | {"freeze_router": True}, "freeze_router needs num_moe_experts"),
        (DENSE | {"moe_router_topk": 4, "moe_aux_loss_coeff": 0.1}, "moe_router_topk, moe_aux_loss_coeff needs"),
        (DENSE | {"kv_lora_rank": 4}, "kv_lora_rank needs multi_latent_attention"),
        (MLA | {"kv_lora_rank": None}, "multi_latent_attention needs kv_lora_rank"),
        (MLA | {"num_query_groups": 2}, "has no meaning"),
        (MLA | {"add_qkv_bias": True}, "has no meaning"),
        (MOE | {"moe_router_topk": 9}, "must not exceed num_moe_experts"),
        (MOE | {"ep": 3}, "multiple of ep"),
        (MOE | {"moe_layer_freq": [1, 0]}, "lists 2 layers"),
        (MOE | {"moe_layer_freq": [0, 0, 0, 0]}, "gives no layer experts"),
        (MOE | {"moe_layer_freq": [0, 1, 2, 1]}, "0 or 1"),
        (MOE | {"tp": 2, "sequence_parallel": True}, "needs ep > 1 or etp > 1"),
        (MOE | {"tp": 2, "ep": 2}, "needs sequence_parallel"),
        (MOE | {"moe_router_enable_expert_bias": True}, "sigmoid"),
        (MOE | {"freeze_e_score_correction_bias": True}, "moe_router_enable_expert_bias"),
        (MOE | {"moe_router_num_groups": 2}, "go together"),
        (MOE | {"moe_router_num_groups": 3, "moe_router_group_topk": 1}, "multiple of moe_router_num_groups"),
        (MOE | {"moe_router_num_groups": 8, "moe_router_group_topk": 1}, "fewer than moe_router_topk"),
        (MOE | {"moe_router_num_groups": 1, "moe_router_group_topk": 2}, "must not exceed"),
    ],
)
def test_keys_that_do_not_fit_together_are_refused(tmp_path, values, said):
    with pytest.raises(UsageError) as caught:
        load_config(dump(tmp_path, values))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        DENSE | {"pp": 2},
        DENSE | {"pp": 2, "first_stage_layers": 1},
        DENSE | {"pp": 2, "first_stage_layers": 1, "last_stage_layers": 3},
        # The published layout: 11/11/11/10 layers, and the one it is compared with, 4/6/6/6/6/6/6/3.
        MOE | {"num_layers": 43, "pp": 4, "first_stage_layers": 11, "last_stage_layers": 10},
        MOE | {"num_layers": 43, "pp": 8, "first_stage_layers": 4, "last_stage_layers": 3},
        DENSE | {"tp": 4, "num_query_groups": 2},
        MOE | {"tp": 2, "ep": 2, "sequence_parallel": True},
        MLA | {"mtp_num_layers": 2},
    ],
)
def test_what_fits_is_taken(values):
    TrainConfig(**values)


def test_a_configuration_cannot_change():
    with pytest.raises(ValueError, match="frozen"):
        TrainConfig(**DENSE).steps = 3


def test_usual_values_are_derived():
    plain = TrainConfig(**DENSE)
    assert (plain.query_groups, plain.head_dim, plain.moe_layers) == (4, 16, (False,) * 4)
    wide = TrainConfig(**MOE, kv_channels=32, num_query_groups=2, moe_layer_freq=2)
    assert (wide.query_groups, wide.head_dim, wide.moe_ffn_size) == (2, 32, 128)
    assert wide.moe_layers == (True, False, True, False)
    assert TrainConfig(**MOE, moe_layer_freq=[0, 1, 1, 1]).moe_layers == (False, True, True, True)
