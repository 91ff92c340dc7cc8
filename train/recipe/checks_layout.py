"""Figures of the machines and the layout: sizes, nodes, micro-batches, pipeline, padding, the label."""

from __future__ import annotations

import re

from train.recipe import derive
from train.recipe.facts import GPUS, MODELS
from train.recipe.finding import Findings

LABEL_KEYS = ("tp", "pp", "vpp", "cp", "ep", "etp", "dp")
LABEL_WORKLOAD = {"gbs": "global_batch", "mbs": "rows_per_microbatch", "seq": "row_tokens"}
LABEL_NEEDED = ("tp", "pp", "ep", "dp")


def check_layout(findings: Findings) -> None:
    """Add the findings of gpu and layout."""
    _sizes(findings)
    _machines(findings)
    _micro_batches(findings)
    _pipeline(findings)
    _padding(findings)
    _recompute(findings)
    _label(findings)


def model_layers(findings: Findings) -> int | None:
    """Layers of the model: as the file says, or as published."""
    recipe = findings.context.recipe
    known = MODELS.get(recipe.model)
    return recipe.evidence.inputs.num_layers or (known.num_layers if known else None)


def micro_batches(findings: Findings) -> int | None:
    """Micro-batches of a data-parallel rank in a step; None if not known or not whole."""
    recipe = findings.context.recipe
    batch, rows = recipe.workload.global_batch, recipe.layout.rows_per_microbatch
    return derive.exact(batch, recipe.layout.dp * rows) if batch and rows else None


def _sizes(findings: Findings) -> None:
    recipe = findings.context.recipe
    c, gpus, known = recipe.layout, recipe.gpu.count, MODELS.get(recipe.model)
    findings.figure(
        "layout.dp",
        derive.exact(gpus, c.tp * c.pp * c.cp),
        f"gpus / (tp * pp * cp) = {gpus} / ({c.tp} * {c.pp} * {c.cp})",
    )
    inputs = recipe.evidence.inputs
    for name in ("num_layers", "num_experts"):
        if known is not None and getattr(known, name) is not None:
            findings.figure(f"evidence.inputs.{name}", getattr(known, name), f"{recipe.model}: {known.source}")
    experts = inputs.num_experts or (known.num_experts if known else None)
    shared = derive.exact(gpus, (c.etp or 1) * c.ep * c.pp)
    formula = f"gpus / (etp * ep * pp) = {gpus} / ({c.etp or 1} * {c.ep} * {c.pp})"
    if shared is None:
        findings.rule("layout.ep", False, f"{formula} must be whole", stated=c.ep)
    else:
        findings.show("expert_dp", shared, formula + ("" if c.etp else "; etp is not stated, 1 assumed"))
    if experts is not None:
        each = derive.exact(experts, c.ep)
        formula = f"num_experts / ep = {experts} / {c.ep}"
        if each is None:
            findings.rule("layout.ep", False, f"{formula} must be whole", stated=c.ep)
        else:
            findings.show("experts_per_rank", each, formula)


def _machines(findings: Findings) -> None:
    gpu = findings.context.recipe.gpu
    if gpu.per_node is not None:
        nodes = derive.exact(gpu.count, gpu.per_node)
        formula = f"gpu.count / gpu.per_node = {gpu.count} / {gpu.per_node}"
        if nodes is None:
            findings.rule("gpu.count", False, f"{formula} must be whole", stated=gpu.count)
        else:
            findings.show("nodes", nodes, formula)
    if known := GPUS.get(gpu.type):
        findings.figure("gpu.memory_gb", int(known.memory_gb), known.source)


def _micro_batches(findings: Findings) -> None:
    recipe = findings.context.recipe
    batch, rows, dp = recipe.workload.global_batch, recipe.layout.rows_per_microbatch, recipe.layout.dp
    if batch is None or rows is None:
        findings.unknown("micro_batches_per_rank", "global_batch or rows_per_microbatch is not stated")
        return
    count = micro_batches(findings)
    formula = f"global_batch / (dp * rows_per_microbatch) = {batch} / ({dp} * {rows})"
    if count is None:
        findings.rule("workload.global_batch", False, f"{formula} must be whole", stated=batch)
        return
    findings.show("micro_batches_per_rank", count, formula)
    tokens = recipe.workload.row_tokens
    if tokens is not None and recipe.layout.max_tokens_per_gpu is not None:
        cp = recipe.layout.cp
        findings.figure(
            "layout.max_tokens_per_gpu",
            derive.exact(rows * tokens, cp),
            f"rows_per_microbatch * row_tokens / cp = {rows} * {tokens} / {cp}",
        )


def _pipeline(findings: Findings) -> None:
    recipe = findings.context.recipe
    c, layers, count = recipe.layout, model_layers(findings), micro_batches(findings)
    vpp = c.vpp or 1
    if count is not None:
        share = derive.bubble(c.pp, count, vpp)
        formula = f"(pp - 1) / (vpp * micro_batches + pp - 1) = {c.pp - 1} / ({vpp} * {count} + {c.pp - 1})"
        findings.show("pipeline_bubble_percent", round(100 * float(share), 2), formula)
        if vpp > 1 and count < c.pp:
            findings.warn(
                "layout.vpp",
                f"an interleaved pipeline needs as many micro-batches as stages: {count} micro-batches, {c.pp} stages; "
                "Megatron-core refuses to start",
                stated=c.vpp,
            )
    if vpp > 1:
        findings.rule("layout.vpp", c.pp > 1, "vpp needs pp > 1", stated=c.vpp)
    if c.layer_split is not None:
        _split(findings, layers)
    elif c.pp > 1 and vpp == 1 and layers is not None and recipe.evidence.inputs.pipeline_layout is None:
        if layers % c.pp:
            findings.unknown(
                "pipeline_split", f"{layers} layers over {c.pp} stages are uneven and the split is not stated"
            )
        else:
            findings.show("pipeline_split", "/".join([str(layers // c.pp)] * c.pp), f"{layers} / {c.pp}")
    if (notation := recipe.evidence.inputs.pipeline_layout) is not None:
        _notation(findings, notation, layers)


def _split(findings: Findings, layers: int | None) -> None:
    c = findings.context.recipe.layout
    assert c.layer_split is not None
    first, last = c.layer_split.first, c.layer_split.last
    if layers is None:
        findings.unknown("layout.layer_split", "the layers of the model are not known", stated=f"{first}/.../{last}")
        return
    middle = derive.middle_layers(layers, c.pp, first, last)
    formula = f"(layers - first - last) / (pp - 2) = ({layers} - {first} - {last}) / {c.pp - 2}"
    if middle is None:
        findings.rule("layout.layer_split", False, f"{formula} must be whole", stated=f"{first}/.../{last}")
    else:
        stages = [first, *[middle] * (c.pp - 2), last]
        findings.show("pipeline_split", "/".join(map(str, stages)), formula)


def _notation(findings: Findings, notation: str, layers: int | None) -> None:
    c, key = findings.context.recipe.layout, "evidence.inputs.pipeline_layout"
    try:
        stages = derive.pipeline_stages(notation)
    except ValueError as error:
        findings.rule(key, False, str(error), stated=notation)
        return
    wanted = c.pp * (c.vpp or 1)
    findings.rule(
        key, len(stages) == wanted, f"pp * vpp = {wanted} stages", stated=f"{len(stages)} stages", computed=wanted
    )
    if layers is not None:
        total = sum(stages)
        findings.rule(key, total == layers, f"{layers} layers of the model", stated=f"{total} layers", computed=layers)


def _padding(findings: Findings) -> None:
    recipe = findings.context.recipe
    c, tokens = recipe.layout, recipe.workload.row_tokens
    if tokens is None:
        findings.unknown("padding_per_row", "row_tokens is not stated")
        return
    if c.sequence_parallel:
        findings.rule("layout.sequence_parallel", c.tp > 1, "sequence parallel needs tp > 1", stated=True)
        divides = tokens % (c.tp * c.cp) == 0
        findings.rule("workload.row_tokens", divides, f"a multiple of tp * cp = {c.tp * c.cp}", stated=tokens)
    if c.cp > 1:
        findings.rule(
            "workload.row_tokens", tokens % (2 * c.cp) == 0, f"a multiple of 2 * cp = {2 * c.cp}", stated=tokens
        )
    if "miles" in (recipe.stack.framework or ""):
        padded = derive.padded_row(tokens, c.tp, c.cp) - tokens
        formula = f"miles pads bshd rows to a multiple of {derive.padding_unit(c.tp, c.cp)} at tp {c.tp}, cp {c.cp}"
        findings.rule("workload.row_tokens", padded == 0, f"{formula}: {padded} padding tokens a row", stated=tokens)


def _recompute(findings: Findings) -> None:
    recompute = findings.context.recipe.layout.recompute
    if recompute is None or recompute.granularity is None:
        return
    whole = recompute.granularity == "full"
    given = recompute.method is not None and recompute.num_layers is not None
    none = recompute.method is None and recompute.num_layers is None
    findings.rule(
        "layout.recompute",
        given if whole else none,
        "full recomputation has a method and num_layers, the others have neither",
        stated=recompute.granularity,
    )


def _label(findings: Findings) -> None:
    """The label is what people read and copy; it must be the layout."""
    layout, workload = findings.context.recipe.layout, findings.context.recipe.workload
    named = {key.lower(): int(size) for key, size in re.findall(r"\b([A-Z]+)(\d+)\b", layout.label)}
    for key in LABEL_KEYS:
        if key in named:
            actual = getattr(layout, key) or 1
            findings.rule(
                "layout.label",
                named[key] == actual,
                f"layout.{key} is {actual}",
                stated=f"{key.upper()}{named[key]}",
                computed=f"{key.upper()}{actual}",
            )
        elif key in LABEL_NEEDED or (getattr(layout, key) or 1) > 1:
            findings.rule("layout.label", False, f"the label does not say {key}", stated=layout.label)
    for word, key in LABEL_WORKLOAD.items():
        if word in named:
            where = "layout" if word == "mbs" else "workload"
            actual = getattr(layout if word == "mbs" else workload, key)
            stated = f"{word.upper()}{named[word]}"
            findings.rule(
                "layout.label", named[word] == actual, f"{where}.{key} is {actual}", stated=stated, computed=actual
            )
