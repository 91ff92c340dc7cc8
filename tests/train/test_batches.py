"""Step rows and the shift, against what they must be by definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from train.batches import labels_and_mask, step_rows


@given(st.integers(0, 50), st.integers(1, 5), st.integers(1, 6), st.integers(1, 5))
def test_the_ranks_of_a_step_share_its_rows_without_rest_or_overlap(step, rounds, dp_size, micro_batch_size):
    size = rounds * dp_size * micro_batch_size
    seen = {}
    for rank in range(dp_size):
        rows = step_rows(step, global_batch_size=size, micro_batch_size=micro_batch_size, dp_size=dp_size, dp_rank=rank)
        for (j, i), row in np.ndenumerate(rows):
            assert row == step * size + j * dp_size * micro_batch_size + rank * micro_batch_size + i
            seen[int(row)] = rank
    assert sorted(seen) == list(range(step * size, (step + 1) * size))


def test_a_batch_that_does_not_divide_is_refused():
    with pytest.raises(ValueError, match="multiple"):
        step_rows(0, global_batch_size=6, micro_batch_size=2, dp_size=2, dp_rank=0)
    with pytest.raises(ValueError, match="dp_rank"):
        step_rows(0, global_batch_size=4, micro_batch_size=2, dp_size=2, dp_rank=2)


@given(st.lists(st.tuples(st.integers(0, 129_279), st.booleans()), min_size=2, max_size=20))
def test_the_shift_trains_exactly_the_targets_of_the_row(tokens):
    ids = np.array([[token for token, _ in tokens]], np.int32)
    mask = np.array([[int(flag) for _, flag in tokens]], np.uint8)
    labels, label_mask = labels_and_mask(ids, mask)
    trained = {(t + 1, int(labels[0, t])) for t in np.flatnonzero(label_mask[0]).tolist()}
    assert trained == {(t, tokens[t][0]) for t in range(1, len(tokens)) if tokens[t][1]}
    assert label_mask[0, -1] == 0
