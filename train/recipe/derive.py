"""The formulas of recipes, each one line, pure. Sizes are counts; times in seconds; prices in dollars an hour."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from fractions import Fraction


def exact(numerator: int, denominator: int) -> int | None:
    """numerator / denominator if it is a whole number above 0, else None."""
    whole, rest = divmod(numerator, denominator)
    return whole if rest == 0 and whole > 0 else None


def bubble(pp: int, micro_batches: int, vpp: int = 1) -> Fraction:
    """Idle share of a 1F1B pipeline, interleaved over vpp chunks of layers a stage: (pp - 1) / (vpp * m + pp - 1)."""
    return Fraction(pp - 1, vpp * micro_batches + pp - 1)


def middle_layers(num_layers: int, pp: int, first: int, last: int) -> int | None:
    """Layers of each stage between the first and the last; 0 for two stages; None if they cannot be even."""
    rest, stages = num_layers - first - last, pp - 2
    if stages <= 0:
        return 0 if rest == 0 and stages == 0 else None
    return exact(rest, stages)


def pipeline_stages(notation: str) -> list[int]:
    """Transformer layers (t) of each stage of a Megatron pipeline layout: `Et*3|(tt|)*2tmL` is [3, 2, 2, 1].

    E, m and L stand for embedding, multi-token prediction and output. ValueError for anything else.
    """
    groups = re.sub(r"\(([^()]{0,99})\)\*(\d{1,3})", lambda m: m.group(1) * int(m.group(2)), notation.replace(" ", ""))
    letters = re.sub(r"([EtmL])\*(\d{1,3})", lambda m: m.group(1) * int(m.group(2)), groups)
    if not re.fullmatch(r"[EtmL|]+", letters):
        raise ValueError(f"{notation!r} is not a pipeline layout")
    return [stage.count("t") for stage in letters.split("|")]


def padding_unit(tp: int, cp: int, *, compress_ratio: int = 128, multiplier: int = 128) -> int:
    """What miles pads bshd rows to a multiple of, at its default data_pad_size_multiplier and V4's largest compress ratio."""
    return max(tp * multiplier, compress_ratio * (2 if cp > 1 else 1) * cp)


def padded_row(row_tokens: int, tp: int, cp: int) -> int:
    """Tokens of a row once miles has padded it."""
    unit = padding_unit(tp, cp)
    return -(-row_tokens // unit) * unit


def tokens_per_s_per_gpu(tokens: int, seconds: float, gpus: int) -> float:
    """All row tokens, trained or not."""
    return tokens / (seconds * gpus)


def variation_percent(times: Sequence[float], ddof: int) -> float | None:
    """100 * std / mean; None for too few."""
    if len(times) <= ddof:
        return None
    deviation = statistics.stdev(times) if ddof else statistics.pstdev(times)
    return 100 * deviation / statistics.fmean(times)


def mfu(active_params: int, speed: float, peak_tflops: float) -> float:
    """6 * N * tokens/s/GPU / peak: no attention FLOPs, no recomputation."""
    return 6 * active_params * speed / (peak_tflops * 1e12)


def usd_per_million_tokens(usd_per_gpu_hour: float, speed: float) -> float:
    """Price of a million row tokens."""
    return usd_per_gpu_hour * 1e6 / (3600 * speed)


def gpu_hours(gpus: int, seconds: float) -> float:
    """GPUs held for some seconds."""
    return gpus * seconds / 3600
