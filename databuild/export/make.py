"""Which consumers there are, and how the files of one are written and proven."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from databuild.errors import SourceError, UsageError
from databuild.export.automodel import AUTOMODEL
from databuild.export.bridge import BRIDGE, num_after_eos
from databuild.export.common import Consumer, Content, PairDigest, Plan, expected_labels, not_whole, read_back
from databuild.export.hf import HF
from databuild.export.megatron import MEGATRON
from databuild.export.miles import MILES
from databuild.export.olmo import OLMO
from databuild.export.torchtitan import TORCHTITAN
from databuild.pack import Rows
from databuild.rows import sync
from databuild.sources.spooled import sha256_file
from databuild.tokenizer import load_tokenizer
from databuild.verify import verified_groups, verify
from manifests.export import ExportFile, ExportManifest, ParentRecord
from manifests.model import Manifest

CONSUMERS: dict[str, Consumer] = {
    consumer.name: consumer for consumer in (MILES, BRIDGE, MEGATRON, HF, OLMO, AUTOMODEL, TORCHTITAN)
}


def options_of(to: str, given: dict[str, str | None]) -> dict[str, str]:
    """All options of a consumer, its defaults filled in. UsageError for a consumer, option or value that there is not."""
    if to not in CONSUMERS:
        raise UsageError("there is no such consumer", expected=", ".join(CONSUMERS), found=to)
    known = CONSUMERS[to].options
    for name, value in given.items():
        if value is not None and name not in known:
            others = [other for other, consumer in CONSUMERS.items() if name in consumer.options]
            raise UsageError(f"--{name} is not for {to}", expected=f"--to {' or '.join(others)}")
        if value is not None and value not in known[name]:
            raise UsageError(f"--{name} has no such value", expected=", ".join(known[name]), found=value)
    return {name: given.get(name) or values[0] for name, values in known.items()}


def export_name(build_name: str, to: str, options: dict[str, str]) -> str:
    """The name of an export; also where it is written by default."""
    return f"{build_name}-{to}{CONSUMERS[to].suffix(options)}"


def make(
    folder: Path, build: Manifest, to: str, options: dict[str, str], target: Path
) -> tuple[ExportManifest, list[str]]:
    """Write and prove the files; (their manifest, warnings)."""
    if not build.rows.rows:
        raise SourceError("the build has no rows", where=str(folder))
    verify(folder, level=1)
    consumer, tokenizer = CONSUMERS[to], load_tokenizer()
    plan = Plan(
        folder=target,
        name=export_name(build.name, to, options),
        rows=build.rows.rows,
        row_tokens=build.rows.row_tokens,
        rows_sha256=build.rows.rows_sha256,
        options=options,
        source=folder,
    )
    expected, after_eos = PairDigest(), 0

    def groups() -> Iterator[Rows]:
        nonlocal after_eos
        for rows in verified_groups(folder, build, tokenizer):
            expected.add(rows.input_ids, expected_labels(rows, options))
            after_eos += num_after_eos(rows) if to == "bridge" else 0
            yield rows

    consumer.write(groups(), plan)
    found = read_back(consumer, plan)
    if (found.pairs_sha256, found.num_targets) != (expected.sha256, expected.num_targets):
        raise not_whole(
            "the files do not give the pairs of the build", str(target), f"{expected.num_targets:,} targets, {expected.sha256}",
            f"{found.num_targets:,} targets, {found.pairs_sha256}",
        )  # fmt: skip
    files = sorted(consumer.files(plan))
    for name in files:
        sync(target / name)
    manifest = ExportManifest.make(
        **wanted_fields(build, to, options),
        rows=found.rows,
        row_tokens=plan.row_tokens,
        num_targets=found.num_targets,
        pairs_sha256=found.pairs_sha256,
        content=found.arrays,
        files=[
            ExportFile(name=name, bytes=(target / name).stat().st_size, sha256=sha256_file(target / name))
            for name in files
        ],
    )
    check_content(str(target), manifest, found)
    lost = build.rows.num_targets - found.num_targets
    warnings = [f"{lost:,} targets that begin a document have nothing before them in their segment"] if lost else []
    if after_eos:
        warnings.append(
            f"{after_eos:,} targets follow an EOS: Megatron-Bridge 0.6.2 leaves them out, later versions train them"
        )
    return manifest, warnings


def wanted_fields(build: Manifest, to: str, options: dict[str, str]) -> dict[str, Any]:
    """What decides the content of an export."""
    parent = ParentRecord(
        name=build.name,
        manifest_sha256=build.manifest_sha256,
        rows_sha256=build.rows.rows_sha256,
        docs_sha256=build.rows.docs_sha256,
    )
    return {"name": export_name(build.name, to, options), "consumer": to, "options": options, "parent": parent}


def check_content(where: str, manifest: ExportManifest, found: Content) -> None:
    """What was read from the files must be what the manifest says, and, for whole rows, the rows of the build."""
    for name, expected, value in (
        ("rows", manifest.rows, found.rows),
        ("num_targets", manifest.num_targets, found.num_targets),
        ("pairs_sha256", manifest.pairs_sha256, found.pairs_sha256),
        ("content", [a.model_dump() for a in manifest.content], [a.model_dump() for a in found.arrays]),
    ):
        if expected != value:
            raise not_whole(f"{name} is not what the manifest says", where, str(expected), str(value))
    whole_rows = manifest.options.get("segments", "rows") == "rows"
    if whole_rows and found.rows_sha256 != manifest.parent.rows_sha256:
        raise not_whole(
            "the pairs are not those of the build", where, f"rows_sha256 {manifest.parent.rows_sha256}",
            f"rows_sha256 {found.rows_sha256}",
        )  # fmt: skip
