"""databuild turns chat data into fixed-length DeepSeek-V4 training rows with provable loss masks.

The way of the bytes, one direction, each arrow a typed value:
`Source -> permutation -> Conversation -> Segments -> EncodedBatch -> Rows -> shards + manifest -> verify | inspect`.
`databuild.build` is the only module that wires these together. Nothing here imports torch.

A build is read from Python with `databuild.load(DIR)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from typing import Literal

    from databuild.reading.loading import RowSet

__version__ = "0.1.0"


def load(
    folder: str | os.PathLike[str],
    *,
    check: Literal["rows", "files", "none"] = "rows",
    in_memory: bool = False,
    cache_groups: int = 64,
) -> RowSet:
    """Open a build for reading: numpy arrays by row or batch, and an iterator that can be resumed.

    The manifest is always proven. check says what else is, once, before anything is given: "rows" (default) the sha256 of
    every file, then every row, rows_sha256 and docs_sha256; "files" the sha256 of every file, which the rows then follow
    from; "none" nothing, for a build that was checked a moment ago. Except with "none" the xxh3 of each row is checked again
    whenever its row group is read. DIR may be a copy from the hub, links of its cache included.

    in_memory: read every row now (5 bytes a token) and none later. Else row groups of 128 rows are read when they are
    used, and the cache_groups used last are kept: 5.2 MB each at 8,192 tokens, 335 MB for all 64. A shuffled order jumps from
    group to group, so where not all of them are kept each row costs the reading of a whole one: use in_memory then.

    SourceError if there is no build; IntegrityError if it is not what its manifest says; UsageError for another check.
    """
    # The module has another name than the function: importing databuild.load would put itself in the function's place.
    from databuild.reading.loading import load as open_build

    return open_build(folder, check=check, in_memory=in_memory, cache_groups=cache_groups)
