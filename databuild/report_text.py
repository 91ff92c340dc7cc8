"""What the commands print of a result."""

from __future__ import annotations

from typing import Any

from databuild.build import BuildResult


def build_json(result: BuildResult) -> dict[str, Any]:
    """The object of `fixed --json`."""
    manifest = result.manifest
    return {
        "out": str(result.out),
        "name": manifest.name,
        "existing": result.existing,
        "rows": manifest.rows.model_dump(),
        "counts": manifest.counts.model_dump(),
        "manifest_sha256": manifest.manifest_sha256,
        "spec_sha256": manifest.spec_sha256,
        "engine": result.environment.get("engine"),
        "seconds": round(result.seconds, 3),
        "published": result.published,
        "warnings": result.warnings,
    }


def build_text(result: BuildResult) -> str:
    """A few lines for a person."""
    rows, counts = result.manifest.rows, result.manifest.counts
    lines = []
    if result.existing:
        lines.append(f"{result.out} holds this build already (same spec, files checked); nothing to do")
    lines += [
        f"{result.out}: {rows.rows:,} rows of {rows.row_tokens:,} tokens, {rows.num_targets:,} trained "
        f"({rows.supervised_token_ratio:.2%})",
        f"  conversations  {counts.conversations:,} read, {counts.used:,} used" + _listed(", skipped", counts.skipped),
    ]
    if counts.noted:
        lines.append(f"  noted         {_listed('', counts.noted)}")
    lines += [
        f"  stream         {counts.tokens:,} tokens, {counts.rows_cut:,} rows cut, {counts.rows_without_targets:,} without "
        f"targets, {counts.tail_tokens:,} tokens left over",
        f"  rows_sha256    {rows.rows_sha256}",
    ]
    if not result.existing:
        lines.append(
            f"  engine         {result.environment['engine']}, {result.environment['rechecked_conversations']:,} "
            f"conversations encoded again by the reference, {result.seconds:.1f} s"
        )
    if result.published:
        lines += _published(result.published)
    return "\n".join([*lines, *(f"warning: {warning}" for warning in result.warnings)])


def _published(found: dict[str, Any]) -> list[str]:
    lines = [f"  against the published {found['name']}:"]
    for key in ("rows_sha256", "rows", "supervised_token_ratio"):
        value = found[key]
        lines.append(
            f"    {key:<23}"
            + (
                f"equal ({value['found']})"
                if value["equal"]
                else f"differs: {value['found']}, published {value['expected']}"
            )
        )
    return lines


def _listed(title: str, numbers: dict[str, int]) -> str:
    if not numbers:
        return ""
    return f"{title} " + ", ".join(f"{count:,} {name}" for name, count in sorted(numbers.items()))


def dry_run_text(estimate: dict[str, Any]) -> str:
    """The answer of --dry-run."""
    about = "" if estimate["exact"] else "about "
    basis = "all of it" if estimate["exact"] else f"the first {estimate['encoded']:,} in the order of the build"
    return "\n".join(
        [
            f"{estimate['conversations']:,} conversations, measured on {basis}; nothing was written",
            f"  rows       {about}{estimate['rows']:,}, {estimate['supervised_token_ratio']:.2%} trained",
            f"  tokens     {about}{estimate['tokens']:,}",
            f"  disk       {about}{estimate['disk_bytes'] / 1e6:,.1f} MB",
            f"  seconds    {about}{estimate['seconds']:,}, reading the source not counted",
        ]
    )
