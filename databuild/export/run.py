"""Makes an export: a directory that is whole or not there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from databuild.errors import IntegrityError, OutputError
from databuild.export.check import check_files
from databuild.export.make import export_name, make, wanted_fields
from databuild.export.place import ExportDir
from databuild.verify import load_manifest
from manifests.export import ExportManifest


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """An export that is whole. existing: it was there already."""

    out: Path
    manifest: ExportManifest
    existing: bool
    warnings: list[str] = field(default_factory=list)


def export(
    folder: Path, to: str, options: dict[str, str], out: Path | None = None, *, overwrite: bool = False
) -> ExportResult:
    """Write the rows of a build for a consumer, into a directory that is whole or not there.

    Nothing is published before the digests of the build are proven, and before the files, read back the way the consumer
    reads them, give exactly the pairs of the build. IntegrityError (6) otherwise; OutputError (5) if out is taken.
    """
    build = load_manifest(folder)
    out = out if out is not None else Path(export_name(build.name, to, options))
    if folder.resolve() in out.resolve().parents:
        raise OutputError("an export cannot be inside the build", where=str(out), next_step="choose another --out")
    with ExportDir(out, overwrite=overwrite) as place:
        there = place.existing_export()
        if there is not None and _identity(there) == wanted_fields(build, to, options):
            if (problem := _problem(out, there)) is None:
                return ExportResult(out=out, manifest=there, existing=True)
            if not overwrite:
                problem.next_step = "do not use this export; --overwrite makes it anew"
                raise problem
        elif there is not None and not overwrite:
            raise _another(out, there, wanted_fields(build, to, options))
        manifest, warnings = make(folder, build, to, options, place.path)
        place.publish_export(manifest)
    return ExportResult(out=out, manifest=manifest, existing=False, warnings=[*warnings, *place.warnings])


def _identity(manifest: ExportManifest) -> dict[str, Any]:
    return {key: getattr(manifest, key) for key in ("name", "consumer", "options", "parent")}


def _another(out: Path, there: ExportManifest, wanted: dict[str, Any]) -> OutputError:
    found = _identity(there)
    different = [key for key in wanted if wanted[key] != found[key]]
    return OutputError(
        "the directory holds another export",
        where=str(out),
        expected="; ".join(f"{key} {wanted[key]}" for key in different),
        found="; ".join(f"{key} {found[key]}" for key in different),
        next_step="choose another --out, or replace the export with --overwrite",
    )


def _problem(out: Path, there: ExportManifest) -> IntegrityError | None:
    try:
        check_files(out, there)
    except IntegrityError as error:
        return error
    return None
