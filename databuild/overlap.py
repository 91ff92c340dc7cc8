"""Work beside other work. The order of results is that of one thread, so nothing here can reach the bytes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Background(Generic[R]):
    """A call that goes on beside the caller when overlapped, and happens at `result` otherwise."""

    def __init__(self, call: Callable[[], R], *, overlapped: bool) -> None:
        self._call = call
        self._future: Future[R] | None = None
        if overlapped:
            executor = ThreadPoolExecutor(1)
            self._future = executor.submit(call)
            executor.shutdown(wait=False)

    def result(self) -> R:
        """What the call gives; its error is raised here."""
        return self._call() if self._future is None else self._future.result()

    def cancel(self) -> None:
        """Wait for the call to end and forget what it gave."""
        if self._future is not None:
            self._future.exception()


def ahead(call: Callable[[T], R], items: Iterable[T], *, overlapped: bool) -> Iterator[R]:
    """call(item) for each item in order; when overlapped the next one is made while the caller has the last."""
    if not overlapped:
        yield from map(call, items)
        return
    with ThreadPoolExecutor(1) as executor:
        pending: Future[R] | None = None
        for item in items:
            following = executor.submit(call, item)
            if pending is not None:
                yield pending.result()
            pending = following
        if pending is not None:
            yield pending.result()


class Sink(Generic[T]):
    """Hands items to a function, in a thread of its own when overlapped; in the order of `add` either way."""

    def __init__(self, function: Callable[[T], None], *, overlapped: bool) -> None:
        self._function = function
        self._queue: queue.Queue[T | None] = queue.Queue(maxsize=4)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True) if overlapped else None

    def add(self, item: T) -> None:
        """Hand over one item; an error of an earlier one is raised here."""
        if self._thread is None:
            self._function(item)
            return
        self._queue.put(item)
        self._raise()

    def __enter__(self) -> Sink[T]:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
        if kind is None:
            self._raise()

    def _work(self) -> None:
        while (item := self._queue.get()) is not None:
            if self._error is None:
                try:
                    self._function(item)
                except BaseException as error:
                    self._error = error  # raised in the main thread; the queue is drained meanwhile

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
