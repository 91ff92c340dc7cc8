"""Where an export is written: DIR.partial, renamed to DIR when it is whole, as a build is."""

from __future__ import annotations

import re

from databuild.outdir import PartialDir
from manifests.export import ExportManifest, read_export

EXPORT = "export.json"
_FILE = re.compile(
    r"export\.json|README\.md|metadata\.json|rows(-\d{5}-of-\d{5}|\.miles|\.hf|\.automodel|\.torchtitan)?\.parquet"
    r"|training_\d+(_documents)?\.idx\.parquet|rows_(ids|mask)\.(bin|idx)"
    r"|(token_ids|labels_mask)_part_0000\.npy|token_ids_part_0000\.csv\.gz"
)


class ExportDir(PartialDir):
    """The directory of an export; see PartialDir."""

    noun = "export"
    manifest_name = EXPORT
    own_files = _FILE
    partial_files = re.compile(_FILE.pattern + r"|holder\.json")
    partial_folders = ()  # an unfinished build, with its spool and its journal, is not ours to take over

    def existing_export(self) -> ExportManifest | None:
        """The manifest of the export at DIR, None if nothing is there; OutputError for anything else."""
        found = self._existing(read_export)
        return found if isinstance(found, ExportManifest) else None

    def publish_export(self, manifest: ExportManifest) -> None:
        """Write the manifest last, make everything durable, and give the directory its name."""
        self._publish(manifest.to_bytes(), lambda: self.existing_export() is not None)
