"""The permutation: pinned, and the same as the library everybody would use for it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from databuild.order import check_permutation, permutation


def test_the_pinned_vectors_hold():
    check_permutation(full=True)
    assert permutation(10, 42).tolist() == [5, 6, 0, 7, 3, 2, 4, 9, 1, 8]


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 500), st.integers(0, 2**32))
def test_it_is_the_order_of_datasets_shuffle(n, seed):
    import datasets

    shuffled = datasets.Dataset.from_dict({"row": list(range(n))}).shuffle(seed=seed)
    assert shuffled["row"][:] == permutation(n, seed).tolist()


@given(st.integers(0, 300), st.integers(0, 2**64))
def test_it_visits_every_row_once(n, seed):
    assert np.array_equal(np.sort(permutation(n, seed)), np.arange(n))
