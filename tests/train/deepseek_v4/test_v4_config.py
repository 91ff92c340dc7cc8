"""The architecture section of a run's configuration, its counts, and what is refused. Needs no torch but for the meta model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

yaml = pytest.importorskip("yaml")

from v4_models import TINY  # noqa: E402

from databuild.errors import SourceError, UsageError  # noqa: E402
from train.config import TrainConfig, load_config, print_config  # noqa: E402
from train.deepseek_v4.config import CSA, HCA, SLIDING, V4Config, layout_problems  # noqa: E402
from train.deepseek_v4.counts import attention_flops  # noqa: E402
from train.deepseek_v4.hf import hf_config, section_from_hf  # noqa: E402
from train.deepseek_v4.stages import stage_layers  # noqa: E402
from train.flops import attention_flops_per_token, parameter_counts  # noqa: E402
from train.layout import check_layout  # noqa: E402

CONFIGS = Path(__file__).parents[3] / "train" / "configs"
FLASH = CONFIGS / "v4-flash.yaml"
WHERE = Path("config.json")


def write(folder: Path, values: dict[str, Any]) -> Path:
    path = folder / "run.yaml"
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.mark.parametrize("name", ["v4-tiny", "v4-mini", "v4-flash"])
def test_a_config_is_printed_and_read_back(name: str, tmp_path: Path) -> None:
    config = load_config(CONFIGS / f"{name}.yaml")
    (tmp_path / "again.yaml").write_text(print_config(config))
    assert load_config(tmp_path / "again.yaml") == config


def test_the_published_counts_of_flash() -> None:
    config = load_config(FLASH)
    assert config.deepseek_v4 is not None
    kinds = config.deepseek_v4.attention_types
    assert [kinds.count(kind) for kind in (SLIDING, CSA, HCA)] == [2, 21, 20]
    counts = parameter_counts(config)
    assert counts.matmul == counts.matmul_with_mtp == 13_268_221_952
    assert counts.total == 284_332_230_231
    assert [len(stage_layers(config, i)) for i in range(4)] == [11, 11, 11, 10]
    assert check_layout(config, 64) == []


@pytest.mark.parametrize("name", ["v4-tiny", "v4-mini", "v4-flash"])
def test_counts_are_those_of_the_model(name: str) -> None:
    torch = pytest.importorskip("torch")
    from train.deepseek_v4.model import V4Model

    config = load_config(CONFIGS / f"{name}.yaml")
    c = config.deepseek_v4
    assert c is not None
    with torch.device("meta"):
        model = V4Model(c)
    sizes = {name: p.numel() for name, p in model.named_parameters()}
    assert sum(sizes.values()) == parameter_counts(config).total
    matrices = 0
    for name_, p in model.named_parameters():
        if p.ndim == 3:
            matrices += p.numel() * c.num_experts_per_tok // c.n_routed_experts
        elif p.ndim == 2 and not name_.endswith("position_bias") and not name_.startswith("embedding"):
            matrices += p.numel()
    assert matrices == parameter_counts(config).matmul


@given(st.lists(st.integers(1, 400), min_size=1, max_size=5), st.integers(1, 20), st.integers(1, 9))
def test_attention_flops_are_a_sum_over_keys(segments: list[int], window: int, topk: int) -> None:
    c = V4Config.model_validate(TINY | {"sliding_window": window, "index_topk": topk})
    scores = 2 * 2 * c.num_attention_heads * c.head_dim
    total = 0
    for length in segments:
        for seen in range(1, length + 1):
            near = len(range(max(seen - window, 0), seen))
            entries = [len(range(rate - 1, seen, rate)) for rate in (4, 16)]
            total += 3 * scores * (4 * near + entries[1] + 2 * min(entries[0], topk))
            if length // 4 > topk:
                total += 2 * 2 * c.index_n_heads * c.index_head_dim * entries[0]
    assert attention_flops(c, segments) == pytest.approx(total / sum(segments))


def test_flops_of_a_run_are_those_of_whole_rows_unless_told() -> None:
    config = load_config(FLASH)
    assert config.deepseek_v4 is not None
    assert attention_flops_per_token(config) == attention_flops(config.deepseek_v4, [8192])
    assert attention_flops_per_token(config, [100] * 81 + [92]) < attention_flops_per_token(config) / 3


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"mtp_num_layers": 1}, "leaves the prediction layers out"),
        ({"tie_embeddings": True}, "matrix of its own"),
        ({"moe_aux_loss_coeff": 0.1}, "correction bias"),
        ({"recompute": "selective"}, "selective"),
        ({"hidden_size": 31}, "contradicts"),
        ({"deepseek_v4": TINY | {"layer_types": [SLIDING]}}, "layer_types has 1 entries"),
        ({"deepseek_v4": TINY | {"head_size": 3}}, "deepseek_v4.head_size"),
        ({"deepseek_v4": TINY | {"head_dim": "16"}}, "deepseek_v4.head_dim"),
        ({"deepseek_v4": TINY | {"num_experts_per_tok": 5}}, "exceeds n_routed_experts"),
        ({"deepseek_v4": TINY | {"partial_rotary_factor": 0.2}}, "must be even"),
        ({"deepseek_v4": TINY | {"o_groups": 3}}, "multiple of o_groups"),
        ({"deepseek_v4": [1]}, "deepseek_v4"),
        ({"ep": 3}, "ep 3"),
        ({"pp": 3}, "pipeline stages"),
    ],
)
def test_what_makes_no_sense_is_refused(keys: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        load_config(write(tmp_path, {"deepseek_v4": TINY} | keys))
    assert says in str(error.value)


def test_a_key_of_the_section_is_set_alone(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, {"deepseek_v4": TINY}), ["deepseek_v4.index_topk=9", "steps=3"])
    assert config.deepseek_v4 == V4Config.model_validate(TINY | {"index_topk": 9})
    with pytest.raises(UsageError) as error:
        load_config(write(tmp_path, {"deepseek_v4": TINY}), ["deepseek_v4.index_topp=9"])
    assert "did you mean deepseek_v4.index_topk" in str(error.value)


def test_compile_is_for_this_architecture_only(tmp_path: Path) -> None:
    dense = {"num_layers": 1, "hidden_size": 8, "ffn_hidden_size": 8, "num_attention_heads": 1, "compile": True}
    with pytest.raises(UsageError, match="compile needs deepseek_v4"):
        load_config(write(tmp_path, dense))


def test_tensor_and_context_parallel_are_refused_with_a_reason() -> None:
    config = TrainConfig.model_validate({"deepseek_v4": TINY, "tp": 2, "sequence_parallel": True, "ep": 2})
    assert "share one key" in layout_problems(config)[0]
    assert "row in order" in layout_problems(TrainConfig.model_validate({"deepseek_v4": TINY, "cp": 2}))[0]


def test_config_json_round_trips() -> None:
    for c in (V4Config.model_validate(TINY), V4Config(), load_config(FLASH).deepseek_v4):
        assert c is not None
        again = V4Config.model_validate(section_from_hf(hf_config(c, "bfloat16"), WHERE))
        assert again == c.model_copy(
            update={
                "layer_types": c.attention_types,
                "mlp_layer_types": ["hash_moe" if flag else "moe" for flag in c.hash_layers],
            }
        )


def test_config_json_of_deepseek_is_read() -> None:
    raw = {
        "model_type": "deepseek_v4", "num_hidden_layers": 43, "hidden_size": 4096, "head_dim": 512, "qk_rope_head_dim": 64,
        "compress_ratios": [0, 0] + [4, 128] * 20 + [4, 0], "num_hash_layers": 3, "n_routed_experts": 256,
        "rope_scaling": {
            "type": "yarn", "factor": 16, "original_max_position_embeddings": 65536, "beta_fast": 32, "beta_slow": 1,
        },
    }  # fmt: skip
    found = V4Config.model_validate(section_from_hf(raw, WHERE))
    flash = load_config(FLASH).deepseek_v4
    assert flash is not None
    assert found.attention_types == flash.attention_types
    assert found.hash_layers == flash.hash_layers
    assert (found.rope_dim, found.rope_scaling) == (64, flash.rope_scaling)


@pytest.mark.parametrize(
    ("keys", "error", "says"),
    [
        ({"scoring_func": "sigmoid"}, UsageError, "scoring_func"),
        ({"n_shared_experts": 2}, UsageError, "n_shared_experts"),
        ({"rope_parameters": {"rope_type": "linear"}}, UsageError, "rope_type"),
        ({"num_hidden_layers": None}, SourceError, "TypeError"),
        ({"head_dim": "many"}, SourceError, "head_dim"),
        ({"layer_types": None, "compress_ratios": [5] * 4}, SourceError, "KeyError"),
    ],
)
def test_config_json_of_another_model_is_refused(keys: dict[str, Any], error: type, says: str) -> None:
    raw = hf_config(V4Config.model_validate(TINY), "float32") | keys
    with pytest.raises(error) as refused:
        section_from_hf(raw, WHERE)
    assert says in str(refused.value)
