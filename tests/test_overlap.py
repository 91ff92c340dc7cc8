"""Work beside other work keeps its order and loses no error."""

import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from databuild.overlap import Background, Sink, ahead


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=20), st.booleans())
def test_order_is_that_of_one_thread(delays, overlapped):
    def slowly(item):
        time.sleep(item[1] / 5000)
        return item

    items = list(enumerate(delays))
    assert list(ahead(slowly, items, overlapped=overlapped)) == items
    seen = []
    with Sink(lambda item: seen.append(slowly(item)), overlapped=overlapped) as sink:
        for item in items:
            sink.add(item)
    assert seen == items


@pytest.mark.parametrize("overlapped", [True, False])
def test_errors_come_to_the_caller(overlapped):
    def fail(item):
        if item == 3:
            raise OSError(28, "full")
        return item

    got = []
    with pytest.raises(OSError, match="full"):
        for value in ahead(fail, range(10), overlapped=overlapped):
            got.append(value)
    assert got == [0, 1, 2]

    def fill():
        with Sink(fail, overlapped=overlapped) as sink:
            for item in range(1000):
                sink.add(item)

    with pytest.raises(OSError, match="full"):
        fill()
    with pytest.raises(OSError, match="full"):
        Background(lambda: fail(3), overlapped=overlapped).result()
    Background(lambda: fail(3), overlapped=overlapped).cancel()


def test_an_error_of_the_caller_does_not_wait_for_ever():
    def interrupted():
        with Sink(lambda _: time.sleep(0.01), overlapped=True) as sink:
            for item in range(10):
                sink.add(item)
                if item == 5:
                    raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert threading.active_count() <= before


def test_closing_early_ends_the_thread():
    before = threading.active_count()
    values = ahead(lambda item: item, range(1000), overlapped=True)
    assert next(values) == 0
    values.close()
    assert threading.active_count() <= before
