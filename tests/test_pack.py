"""The packer against a brute-force cut, for any batches."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from databuild.pack import Packer
from databuild.rows import concat

documents = st.lists(st.lists(st.booleans(), max_size=12), max_size=30)


@settings(max_examples=300, deadline=None)
@given(documents, st.integers(2, 9), st.lists(st.integers(1, 7), max_size=10), st.one_of(st.none(), st.integers(1, 6)))
def test_rows_are_the_stream_cut_every_row_tokens(masks, size, batches, max_rows):
    ids = list(range(sum(map(len, masks))))
    flat = [int(flag) for mask in masks for flag in mask]
    owner = [document for document, mask in enumerate(masks) for _ in mask]
    packer, parts, position, read_all = Packer(size, max_rows), [], 0, 0
    at = 0
    for width in [*batches, len(masks)]:
        if packer.full:
            break
        batch = masks[at : at + width]
        length = sum(map(len, batch))
        ends = np.cumsum([len(mask) for mask in batch]).astype(np.int64)
        rows, read = packer.add(
            np.array(ids[position : position + length], np.int32),
            np.array(flat[position : position + length], np.uint8),
            ends,
            np.arange(at, at + len(batch), dtype=np.int64),
            ends,
        )
        parts.append(rows)
        read_all += read
        at, position = at + len(batch), position + length
    expected = []
    cut = 0
    for start in range(0, len(ids) - size + 1, size):
        if max_rows is not None and len(expected) == max_rows:
            break
        cut += 1
        mask = [0, *flat[start + 1 : start + size]]
        if any(mask):
            owners = owner[start : start + size]
            starts = [i for i in range(size) if i == 0 or owners[i] != owners[i - 1]]
            expected.append((ids[start : start + size], mask, starts, [owners[i] for i in starts]))
    rows = concat(parts)
    spans = list(zip(rows.doc_offsets[:-1].tolist(), rows.doc_offsets[1:].tolist(), strict=True))
    found = [
        (
            rows.input_ids[i].tolist(),
            rows.loss_mask[i].tolist(),
            rows.doc_starts[a:b].tolist(),
            rows.doc_rows[a:b].tolist(),
        )
        for i, (a, b) in enumerate(spans)
    ]
    assert found == expected
    assert packer.num_cut == cut
    if packer.full:
        last = owner[cut * size - 1]
        assert read_all == last + 1
        assert packer.num_tokens == sum(len(mask) for mask in masks[: last + 1])
    else:
        assert packer.num_tokens == len(ids)
    assert packer.tail_tokens == packer.num_tokens - cut * size
