"""Every layout of a model on a number of GPUs, and why the illegal ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from train.planner.memory import Layout
from train.planner.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to plan for. gpus_per_node bounds tp: its all-reduces must not leave a node."""

    gpus: int
    gpus_per_node: int
    row_tokens: int
    global_batch_size: int
    micro_batch_size: int = 1


def refusals(shape: Shape, layout: Layout, want: Wanted) -> list[str]:
    """Why a layout cannot be trained, whatever memory it takes; empty if it can. Rules of Megatron-core."""
    x, reasons = layout, []

    def need(condition: bool, reason: str) -> None:
        if not condition:
            reasons.append(reason)

    need(x.gpus % (x.tp * x.pp * x.cp) == 0, "tp x pp x cp does not divide the GPUs")
    need(x.tp <= want.gpus_per_node, "tp leaves a node")
    need(shape.heads % x.tp == 0, "tp does not divide the attention heads")
    need(shape.query_groups is None or shape.query_groups % x.tp == 0, "tp does not divide the key heads")
    need(shape.vocab_size % x.tp == 0, "tp does not divide the vocabulary")
    need(not x.sequence_parallel or want.row_tokens % (x.tp * x.cp) == 0, "tp x cp does not divide the row")
    sequence = x.tp == 1 or x.sequence_parallel or not shape.needs_sequence_parallel
    need(sequence, "experts and latent attention with tp > 1 need sequence parallelism")
    need(x.cp == 1 or want.row_tokens % (2 * x.cp) == 0, "2 x cp does not divide the row")
    need(len(x.stages) == x.pp and sum(x.stages) == len(shape.layers) and min(x.stages) > 0, "fewer layers than stages")
    if shape.num_experts is None:
        need(x.ep == x.etp == 1, "ep and etp need experts")
    else:
        need(x.gpus % (x.etp * x.ep * x.pp) == 0, "etp x ep x pp does not divide the GPUs")
        need(shape.num_experts % x.ep == 0, "ep does not divide the experts")
        need((shape.moe_ffn_size or 0) % x.etp == 0, "etp does not divide the experts' size")
        need(x.etp in (1, x.tp), "etp is neither 1 nor tp")
        need(x.tp == 1 or x.ep > 1 or x.etp == x.tp, "experts with tp > 1, ep 1 and etp 1 train wrong")
    if not reasons:
        rounds = x.dp * x.micro_batch_size
        need(want.global_batch_size % rounds == 0, "dp x micro-batch does not divide the global batch")
    return reasons


def stage_choices(layers: int, pp: int) -> list[tuple[int, ...]]:
    """Splits that Megatron can state: a first and a last stage of their own size, equal ones between; the evenest first.

    At most four: the largest stage sets the pace, so of more uneven ones only memory could speak for them.
    """
    if pp == 1:
        return [(layers,)]
    found = []
    for middle in {layers // pp, -(-layers // pp)} if pp > 2 else {0}:
        rest = layers - middle * (pp - 2)
        found += [(first, *(middle,) * (pp - 2), rest - first) for first in range(1, rest)]
    # The last stage has the logits: of two equal splits the one with fewer layers there.
    return sorted(found, key=lambda s: (max(s), max(s) - min(s), s[-1]))[:4]


def candidates(shape: Shape, want: Wanted) -> Iterator[Layout]:
    """All combinations of powers of two (and of divisors for pp), legal or not."""
    has_experts = shape.num_experts is not None
    tps = [t for t in _powers(want.gpus) if t <= want.gpus_per_node]
    for tp in tps:
        for pp in _divisors(want.gpus):
            if pp > len(shape.layers):
                continue
            for cp in _powers(min(8, want.gpus)):
                for ep in _powers(want.gpus) if has_experts else [1]:
                    for etp in sorted({1, tp}) if has_experts else [1]:
                        for stages in stage_choices(len(shape.layers), pp):
                            yield Layout(
                                gpus=want.gpus,
                                tp=tp,
                                pp=pp,
                                cp=cp,
                                ep=ep,
                                etp=etp,
                                stages=stages,
                                sequence_parallel=tp > 1,
                                micro_batch_size=want.micro_batch_size,
                            )


def _powers(most: int) -> list[int]:
    return [2**i for i in range(most.bit_length()) if 2**i <= most]


def _divisors(n: int) -> list[int]:
    return [i for i in range(1, n + 1) if n % i == 0]
