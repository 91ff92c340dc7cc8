"""Builds to look at: made once, and rewritten with other rows as a whole build of their own."""

from pathlib import Path

import numpy as np

from databuild.outdir import MANIFEST
from databuild.pack import Rows
from databuild.rows import RowWriter, concat, read_groups
from databuild.sources.spooled import sha256_file
from databuild.verify import load_manifest, row_paths
from manifests.model import FileRecord, Manifest, RowsRecord


def rows_of(folder):
    """All rows of a build."""
    manifest = load_manifest(folder)
    return concat([rows for _, rows, _ in read_groups(row_paths(folder, manifest), manifest.rows.row_tokens)])


def copied(rows):
    """The same rows in arrays of their own, to be changed."""
    return Rows(**{name: getattr(rows, name).copy() for name in Rows.__slots__})


def taken(rows, order):
    """Rows in another order, or fewer of them."""
    spans = [slice(int(rows.doc_offsets[i]), int(rows.doc_offsets[i + 1])) for i in order]
    return Rows(
        input_ids=rows.input_ids[order],
        loss_mask=rows.loss_mask[order],
        doc_starts=np.concatenate([rows.doc_starts[s] for s in spans]),
        doc_rows=np.concatenate([rows.doc_rows[s] for s in spans]),
        doc_offsets=np.append(0, np.cumsum([s.stop - s.start for s in spans])).astype(np.int64),
    )


def rewritten(original, new, out, **changes):
    """A whole build at `out` that holds these new rows; its manifest is the original's where rows do not decide it.

    changes: other fields of the manifest.
    """
    out = Path(out)
    out.mkdir()
    writer = RowWriter(out)
    writer.add(new)
    shards = writer.finish()
    old = load_manifest(original)
    lost = old.rows.rows - len(new)
    counts = old.counts.model_copy(update={"rows_without_targets": old.counts.rows_without_targets + lost})
    fields = {
        "name": old.name,
        "spec": old.spec,
        "spec_sha256": old.spec_sha256,
        "sources": old.sources,
        "tokenizer": old.tokenizer,
        "counts": counts,
        "rows": RowsRecord(
            rows=len(new),
            row_tokens=old.rows.row_tokens,
            num_targets=writer.num_targets,
            supervised_token_ratio=writer.num_targets / (len(new) * old.rows.row_tokens),
            rows_sha256=writer.digests.rows_sha256,
            docs_sha256=writer.digests.docs_sha256,
        ),
        "files": [
            FileRecord(name=path.name, rows=num, bytes=path.stat().st_size, sha256=sha256_file(path))
            for path, num in shards
        ],
    }
    (out / MANIFEST).write_bytes(Manifest.make(**(fields | changes)).to_bytes())
    return out
