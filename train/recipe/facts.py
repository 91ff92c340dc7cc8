"""What recipes need to know and rarely say: shapes of models, peaks of GPUs. Each with where it is from."""

from __future__ import annotations

from dataclasses import dataclass

from train.deepseek_v4.config import V4Config
from train.deepseek_v4.counts import counts


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """Sizes of a published model; None where no source that we trust says."""

    num_layers: int | None
    num_experts: int | None
    active_matmul_params: int | None
    """N of 6N"""
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """memory_gb as sold; peak_bf16_tflops: dense, in TFLOP/s."""

    memory_gb: float
    peak_bf16_tflops: float
    source: str


def deepseek_v4_flash_matmul_params() -> int:
    """N of DeepSeek-V4-Flash: the matrices that a token is multiplied with, of 6 + 1 of 256 experts, with the output layer.

    Neither the input embedding, norms, biases, sinks nor multi-token prediction. Sizes: config.json of the model at 60d8d707.
    """
    return counts(V4Config())[2]


MODELS = {
    "DeepSeek-V4-Flash": ModelFacts(
        num_layers=43,
        num_experts=256,
        active_matmul_params=deepseek_v4_flash_matmul_params(),
        source="deepseek-ai/DeepSeek-V4-Flash config.json",
    ),
    "DeepSeek-V4.1-Flash": ModelFacts(
        num_layers=40, num_experts=None, active_matmul_params=None, source="published V4.1 training layouts"
    ),
    "DeepSeek-V4-Pro": ModelFacts(
        num_layers=61,
        num_experts=None,
        active_matmul_params=None,
        source="pipeline layout of the Megatron-Bridge recipe",
    ),
}

# The peak is NVIDIA's figure with sparsity, halved and cut to whole TFLOP/s, as published MFU figures use it.
GPUS = {
    "H200": GpuFacts(
        memory_gb=141,
        peak_bf16_tflops=989,
        source="NVIDIA H200 data sheet: 141 GB; bf16 1,979 TFLOP/s with sparsity",
    ),
}
