"""Proves an export: its files, what its consumer reads from them, and that its build gives the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from databuild.errors import SourceError, UsageError
from databuild.export.common import Plan, not_whole, read_back
from databuild.export.make import CONSUMERS, check_content, make, wanted_fields
from databuild.export.place import EXPORT
from databuild.outdir import temporary_folder
from databuild.sources.spooled import sha256_file
from databuild.verify import load_manifest
from manifests.export import ExportManifest, read_export
from manifests.model import ManifestError

Say = Callable[[str], None]


def is_export(folder: Path) -> bool:
    """Whether a directory says that it is an export."""
    return (folder / EXPORT).is_file()


def load_export(folder: Path) -> ExportManifest:
    """The proven manifest of an export."""
    if not is_export(folder):
        raise SourceError("there is no export here", where=str(folder), expected=f"a directory with {EXPORT}")
    try:
        return read_export((folder / EXPORT).read_bytes())
    except ManifestError as error:
        raise not_whole("the manifest is damaged", EXPORT, None, str(error)) from error


def verify_export(
    folder: Path, *, level: int = 2, sources: list[str] | None = None, say: Say = lambda _: None
) -> dict[str, Any]:
    """Is this directory the export that its manifest says? Levels: 1 files; 2 its pairs; 4 made again from sources[0].

    Level 2 reads it the way its consumer does. From whole rows it computes the rows_sha256 of the build, without the build.
    """
    manifest = load_export(folder)
    checked: list[str] = []

    def passed(number: int, text: str) -> None:
        checked.append(text)
        say(f"level {number}: {text}")

    if level == 3:
        raise UsageError("an export has the levels 1, 2 and 4", found="level 3")
    if bool(sources) != (level == 4) or len(sources or []) > 1:
        raise UsageError("level 4 of an export makes it again: it needs --source, the build, once", where=str(folder))
    passed(1, check_files(folder, manifest))
    if level >= 2:
        plan = _plan(folder, manifest)
        found = read_back(CONSUMERS[manifest.consumer], plan)
        check_content(str(folder), manifest, found)
        passed(2, f"{found.rows:,} rows, {found.num_targets:,} pairs, pairs_sha256 {found.pairs_sha256}")
    if sources:
        _make_again(Path(sources[0]), manifest)
        passed(4, "made again from the build: every array and every pair is equal")
    return {
        "level": level, "name": manifest.name, "rows": manifest.rows, "rows_sha256": manifest.parent.rows_sha256,
        "pairs_sha256": manifest.pairs_sha256, "consumer": manifest.consumer, "checked": checked,
    }  # fmt: skip


def _plan(folder: Path, manifest: ExportManifest) -> Plan:
    return Plan(
        folder=folder,
        name=manifest.name,
        rows=manifest.rows,
        row_tokens=manifest.row_tokens,
        rows_sha256=manifest.parent.rows_sha256,
        options=manifest.options,
    )


def check_files(folder: Path, manifest: ExportManifest) -> str:
    """Level 1: the files are those of the manifest."""
    known = CONSUMERS[manifest.consumer].options
    if manifest.options.keys() != known.keys() or any(manifest.options[n] not in known[n] for n in known):
        raise not_whole("the options are none that this version knows", EXPORT, str(known), str(manifest.options))
    names = [file.name for file in manifest.files]
    if names != sorted(CONSUMERS[manifest.consumer].files(_plan(folder, manifest))):
        raise not_whole("the list of files is not that of this consumer", EXPORT, None, ", ".join(names))
    present = {entry.name for entry in folder.iterdir()}
    if extra := sorted(present - {*names, EXPORT}):
        raise not_whole("there are files that the manifest does not know", str(folder), None, ", ".join(extra))
    for file in manifest.files:
        path = folder / file.name
        if path.is_symlink() or not path.is_file():
            raise not_whole("a file is missing", file.name, "a regular file", ", ".join(sorted(present)))
        if (size := path.stat().st_size) != file.bytes:
            raise not_whole("a file has another size", file.name, f"{file.bytes} bytes", f"{size} bytes")
        if (digest := sha256_file(path)) != file.sha256:
            raise not_whole("a file has another digest", file.name, f"sha256 {file.sha256}", f"sha256 {digest}")
    return f"manifest and {len(names)} file{'s' * (len(names) != 1)} are what they should be"


def _make_again(source: Path, manifest: ExportManifest) -> None:
    build = load_manifest(source)
    wanted = wanted_fields(build, manifest.consumer, manifest.options)
    if wanted["parent"] != manifest.parent:
        raise not_whole(
            "--source is another build than that of the export",
            str(source),
            str(manifest.parent),
            str(wanted["parent"]),
        )
    with temporary_folder("databuild-verify-") as scratch:
        again, _ = make(source, build, manifest.consumer, manifest.options, scratch)
    for key in ("rows", "num_targets", "pairs_sha256", "content"):
        if getattr(again, key) != getattr(manifest, key):
            raise not_whole(
                f"{key} is not what the build gives", key, str(getattr(again, key)), str(getattr(manifest, key))
            )
