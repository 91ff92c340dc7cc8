"""The small columns of all rows of a build at once: targets and documents, without the tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from databuild.arrow import UNREADABLE, column_values, first_line
from databuild.rows import damaged
from databuild.verify import row_paths
from manifests.model import Manifest

_COLUMNS = ["num_targets", "doc_starts", "doc_rows"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """r rows with d documents in all; a document that goes on in the next row counts in each.

    num_targets: int64[r]. doc_counts: int64[r]. Of each document its row, its start in it, its tokens there and its
    source row: doc_row, doc_start, doc_tokens, source_row, all int64[d].
    """

    row_tokens: int
    num_targets: npt.NDArray[np.int64]
    doc_counts: npt.NDArray[np.int64]
    doc_row: npt.NDArray[np.int64]
    doc_start: npt.NDArray[np.int64]
    doc_tokens: npt.NDArray[np.int64]
    source_row: npt.NDArray[np.int64]

    @property
    def ratios(self) -> npt.NDArray[np.float64]:
        """float64[r]: the supervised ratio of each row."""
        result: npt.NDArray[np.float64] = self.num_targets / self.row_tokens
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversations:
    """c conversations by rising source row, as far as they lie in rows; examples of one conversation count as one.

    source_row: int64[c]. tokens: int64[c]. rows: int64[c], how many rows each touches. first: int64[c], the index of
    its first document in the survey.
    """

    source_row: npt.NDArray[np.int64]
    tokens: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]


def survey(folder: Path, manifest: Manifest) -> Survey:
    """Read the small columns of a build whose files have been checked."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    try:
        table = pa.concat_tables(
            [pq.ParquetFile(path).read(columns=_COLUMNS) for path in row_paths(folder, manifest)]
        ).combine_chunks()
        starts = column_values(table.column("doc_starts").combine_chunks().flatten()).astype(np.int64)
        sources = column_values(table.column("doc_rows").combine_chunks().flatten()).astype(np.int64)
        counts = column_values(pc.list_value_length(table.column("doc_starts"))).astype(np.int64)
        targets = column_values(table.column("num_targets")).astype(np.int64)
    except (*UNREADABLE, KeyError) as error:
        raise damaged("a row file cannot be read", str(folder), None, first_line(error)) from error
    if len(targets) != manifest.rows.rows or len(starts) != len(sources):
        raise damaged("the row files do not hold the rows of the manifest", str(folder))
    row_tokens = manifest.rows.row_tokens
    owner = np.repeat(np.arange(len(counts)), counts)
    ends = np.append(starts[1:], row_tokens)
    ends[np.cumsum(counts) - 1] = row_tokens
    return Survey(
        row_tokens=row_tokens,
        num_targets=targets,
        doc_counts=counts,
        doc_row=owner,
        doc_start=starts,
        doc_tokens=ends - starts,
        source_row=sources,
    )


def conversations(of: Survey) -> Conversations:
    """Documents of the same source row, added up."""
    names, first, owner = np.unique(of.source_row, return_index=True, return_inverse=True)
    order = np.lexsort((of.doc_row, owner))
    owner_sorted, rows_sorted = owner[order], of.doc_row[order]
    fresh = np.append(True, (np.diff(owner_sorted) != 0) | (np.diff(rows_sorted) != 0))[: len(order)]
    return Conversations(
        source_row=names,
        tokens=np.bincount(owner, weights=of.doc_tokens, minlength=len(names)).astype(np.int64),
        rows=np.bincount(owner_sorted[fresh], minlength=len(names)),
        first=first.astype(np.int64),
    )
