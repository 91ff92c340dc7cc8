"""Where in a row file the damage is: for the message of `verify`, when the digest of the file has already told that there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xxhash

from databuild.arrow import column_values
from databuild.errors import IntegrityError
from databuild.rows import canonical_bytes, read_groups


def place_of_damage(path: Path, row_tokens: int) -> str:
    """The first row whose xxh3 differs and its source rows, or the row group that cannot be read, or neither."""
    group = 0
    try:
        for table, rows, _ in read_groups([path], row_tokens):
            canonical = canonical_bytes(rows.input_ids, rows.loss_mask)
            computed = np.array([xxhash.xxh3_64_intdigest(row) for row in canonical], np.uint64)
            wrong = np.flatnonzero(column_values(table.column("xxh3")) != computed)
            if wrong.size:
                i = int(wrong[0])
                documents = rows.doc_rows[rows.doc_offsets[i] : rows.doc_offsets[i + 1]].tolist()
                number = table.column("row")[i].as_py()
                more = f", and {len(wrong) - 1} more in row group {group}" if len(wrong) > 1 else ""
                return f"row {number} (source rows {', '.join(map(str, documents[:6]))}){more}"
            group += 1
    except (IntegrityError, ValueError, OverflowError, MemoryError) as error:
        return f"row group {group} ({getattr(error, 'found', None) or error})"
    return "outside of ids and masks"
