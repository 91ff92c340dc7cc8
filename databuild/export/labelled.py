"""Rows as a parquet table of ids and labels: what hf, automodel and torchtitan read, each in its own alignment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from databuild.export.columns import TableFile, fixed, lists, matrix, read_tables
from databuild.export.common import Part, Plan, not_whole
from databuild.pack import Rows
from databuild.reading.rowviews import IGNORE, shifted_labels

IDS, MASK, LABELS = lists("input_ids", pa.int32()), lists("attention_mask", pa.int8()), lists("labels", pa.int32())


def write_labelled(groups: Iterator[Rows], path: Path, *, shifted: bool, attention_mask: bool) -> None:
    """Write input_ids, labels, and an attention_mask of ones where it is wanted.

    shifted: label t is the token to predict after token t. Else it is token t itself, and the trainer shifts.
    """
    schema = pa.schema([IDS, MASK, LABELS] if attention_mask else [IDS, LABELS])
    with TableFile(path, schema, constants=["attention_mask.list.element"] if attention_mask else []) as file:
        for rows in groups:
            labels = shifted_labels(rows.input_ids, rows.loss_mask)
            if not shifted:
                labels = np.concatenate([np.full((len(rows), 1), IGNORE, np.int32), labels[:, :-1]], axis=1)
            columns = [fixed(rows.input_ids, IDS), fixed(labels, LABELS)]
            if attention_mask:
                columns.insert(1, fixed(np.ones(rows.input_ids.shape, np.int8), MASK))
            file.write(columns)


def read_labelled(plan: Plan, name: str, *, shifted: bool, attention_mask: bool) -> Iterator[Part]:
    """Read them as the trainer does; where it shifts, the label of the first token is never reached."""
    schema = pa.schema([IDS, MASK, LABELS] if attention_mask else [IDS, LABELS])
    for table, where in read_tables(plan.folder / name, schema):
        content = {column: matrix(table, column, plan.row_tokens, where) for column in schema.names}
        if attention_mask and not (content["attention_mask"] == 1).all():
            raise not_whole("attention_mask is not 1 everywhere: no token is padding", where)
        labels = content["labels"]
        if not shifted:
            if (labels[:, 0] != IGNORE).any():
                raise not_whole("the first label of a row is one", where, str(IGNORE))
            labels = np.concatenate([labels[:, 1:], np.full((len(labels), 1), IGNORE, np.int32)], axis=1)
        yield Part(input_ids=content["input_ids"], labels=labels, content=content)
