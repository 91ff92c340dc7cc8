"""What recipes need to know and rarely say: shapes of models, peaks of GPUs. Each with where it is from."""

from __future__ import annotations

from dataclasses import dataclass


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
    hidden, layers, heads_times_dim, latent = 4096, 43, 32768, 1024
    key_value, groups_out = 512, 8
    attention = layers * (
        hidden * latent  # query, down
        + latent * heads_times_dim  # query, up
        + hidden * key_value  # one shared key and value
        + groups_out * hidden * latent  # output, down: 8 groups
        + groups_out * latent * hidden  # output, up
    )
    experts = layers * ((6 + 1) * 3 * hidden * 2048 + 256 * hidden)  # six routed, one shared; the router
    # 21 layers compress 4 tokens to one and look up the best ones with an indexer of 64 heads of 128; 20 compress 128.
    ratio_4 = 21 * (2 * hidden * 1024 + (1024 * 8192 + hidden * 64 + 2 * hidden * 256))
    ratio_128 = 20 * (2 * hidden * 512)
    hyper_connections = layers * 2 * 24 * 4 * hidden + 4 * 4 * hidden
    output = 129_280 * hidden
    return attention + experts + ratio_4 + ratio_128 + hyper_connections + output


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
