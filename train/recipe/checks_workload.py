"""Figures of the workload: rows, batch, data set, digests."""

from __future__ import annotations

import functools
import re
from typing import Any

from databuild.published import published_facts
from manifests.model import Manifest
from train.recipe.finding import Findings
from train.recipe.model import Build

HEX = {"workload.dataset.rows_sha256": 64, "workload.dataset.build.parquet_sha256": 64, "workload.dataset.revision": 40}
NUMBERS_IN_NAMES = {"fixed": "row_tokens", "seed": "seed", "rows": "rows"}


def check_workload(findings: Findings) -> None:
    """Add the findings of workload."""
    workload = findings.context.recipe.workload
    texts = findings.context.stated.texts
    for key, length in HEX.items():
        text = texts.get(key)
        if text not in (None, "null", "~", ""):
            whole = re.fullmatch(rf"[0-9a-f]{{{length}}}", text or "") is not None
            findings.rule(key, whole, f"{length} hex digits", stated=text)
    rows, tokens, batch = workload.rows, workload.row_tokens, workload.global_batch
    if rows and tokens:
        findings.show("tokens", rows * tokens, f"rows * row_tokens = {rows} * {tokens}")
    if rows and batch:
        findings.show("steps_per_epoch", round(rows / batch, 4), f"rows / global_batch = {rows} / {batch}")
        result = findings.context.recipe.result
        if result is not None and result.steps_per_run:
            used = result.steps_per_run * batch
            formula = f"steps_per_run * global_batch / rows = {result.steps_per_run} * {batch} / {rows}"
            findings.show("epochs", round(used / rows, 4), formula)
    dataset = workload.dataset
    if dataset is not None and dataset.build is not None:
        _build(findings, dataset.build)
        for facts in _facts():
            if facts["name"] == dataset.build.name:
                _published(findings, facts)
    if findings.context.manifest is not None:
        _manifest(findings, findings.context.manifest)


def _build(findings: Findings, build: Build) -> None:
    workload, prefix = findings.context.recipe.workload, "workload.dataset.build"
    rows, tokens = workload.rows, workload.row_tokens
    for name, value in (("rows", rows), ("row_tokens", tokens)):
        if value is not None and getattr(build, name) is not None:
            findings.figure(f"{prefix}.{name}", value, f"workload.{name}")
    if build.name is not None:
        for word, key in NUMBERS_IN_NAMES.items():
            for number in re.findall(rf"(?:^|-){word}(\d+)", build.name):
                findings.figure(f"{prefix}.{key}", int(number), f"the name says {word}{number}: {build.name}")
    if build.packing is not None and build.packing.startswith("cut"):
        findings.figure(f"{prefix}.padding_tokens", 0, "rows that are cut from one stream hold no padding")
    if not (rows and tokens):
        return
    if build.supervised_token_ratio is not None:
        findings.rule(
            f"{prefix}.supervised_token_ratio",
            0 < build.supervised_token_ratio <= (tokens - 1) / tokens,
            "above 0, and the first token of a row is never trained",
            stated=build.supervised_token_ratio,
        )
        findings.show(
            "trained_tokens", round(build.supervised_token_ratio * rows * tokens), "ratio * rows * row_tokens"
        )
    if build.parquet_bytes is not None:
        each = build.parquet_bytes / (rows * tokens)
        formula = f"parquet_bytes / tokens = {build.parquet_bytes} / {rows * tokens}"
        # Ids below 131072 take 17 bits and a mask one; text compresses to a third of that, random ids to no less.
        findings.rule(
            f"{prefix}.parquet_bytes", 0.25 <= each <= 5, f"{formula}: 0.25 to 5 bytes a token", stated=round(each, 4)
        )


@functools.cache
def _facts() -> tuple[dict[str, Any], ...]:
    return tuple(published_facts())


def _published(findings: Findings, facts: dict[str, Any]) -> None:
    """A build that says it is a published one has that one's figures."""
    build, why = "workload.dataset.build", f"published build {facts['name']}"
    findings.figure("workload.rows", facts["rows"], why)
    findings.figure("workload.row_tokens", facts["spec"]["row_tokens"], why)
    findings.figure(f"{build}.seed", facts["spec"]["seed"], why)
    findings.figure(f"{build}.padding_tokens", facts["padding_tokens"], why)
    findings.figure(f"{build}.supervised_token_ratio", facts["supervised_token_ratio"], why)
    findings.figure(f"{build}.parquet_bytes", facts["parquet"]["bytes"], why)
    for key, value in (
        ("workload.dataset.source", facts["source"]["name"]),
        ("workload.dataset.revision", facts["source"]["revision"]),
        ("workload.dataset.rows_sha256", facts["rows_sha256"]),
        (f"{build}.parquet_sha256", facts["parquet"]["sha256"]),
        (f"{build}.tokenizer", facts["tokenizer"]["name"]),
        (f"{build}.loss_mask", facts["spec"]["loss_mask_type"]),
    ):
        _same(findings, key, value, why)


def _manifest(findings: Findings, manifest: Manifest) -> None:
    """Against a build at hand: what the recipe says of its rows must be theirs."""
    build, rows, why = "workload.dataset.build", manifest.rows, "manifest of the rows"
    findings.figure("workload.rows", rows.rows, why)
    findings.figure("workload.row_tokens", rows.row_tokens, why)
    findings.figure(f"{build}.supervised_token_ratio", rows.supervised_token_ratio, why)
    _same(findings, "workload.dataset.rows_sha256", rows.rows_sha256, why)
    _same(findings, f"{build}.loss_mask", manifest.spec.get("loss_mask_type"), why)
    _same(findings, f"{build}.tokenizer", manifest.tokenizer.name, why)
    if "seed" in manifest.spec:
        findings.figure(f"{build}.seed", manifest.spec["seed"], why)
    if len(manifest.files) == 1:
        # Its bytes depend on the parquet writer, so another file of the same rows is no error: rows_sha256 decides.
        stated = findings.context.stated.texts.get(f"{build}.parquet_sha256")
        if stated == manifest.files[0].sha256:
            findings.figure(f"{build}.parquet_bytes", manifest.files[0].bytes, why)
        elif stated not in (None, "null", "~", ""):
            findings.warn(f"{build}.parquet_sha256", "another parquet file of these rows", stated=stated)


def _same(findings: Findings, key: str, value: Any, why: str) -> None:
    stated = findings.context.stated.texts.get(key)
    if stated not in (None, "null", "~", ""):
        findings.rule(key, stated == value, why, stated=stated, computed=value)
