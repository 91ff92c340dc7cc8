"""A tiny integer generator: the same numbers on every Python version and platform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_REFILL_BELOW = 1 << 34


def mix(value: int) -> int:
    """Return the splitmix64 finaliser of an integer: 64 well-mixed bits."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


class Rng:
    """Random numbers from one seed.

    Draws divide a pool of 64 bits until too few are left, then refill it: most draws cost one ``divmod``.
    """

    __slots__ = ("_pool", "_state")

    def __init__(self, seed: int) -> None:
        self._state = mix(seed)
        self._pool = 0

    def below(self, limit: int) -> int:
        """Return an integer in ``0 .. limit - 1``."""
        if self._pool < _REFILL_BELOW:
            self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
            self._pool = mix(self._state)
        self._pool, value = divmod(self._pool, limit)
        return value

    def between(self, low: int, high: int) -> int:
        """Return an integer in ``low .. high``, both ends included."""
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def chance(self, percent: int) -> bool:
        """Return True in about ``percent`` of a hundred draws."""
        return self.below(100) < percent

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """Return ``count`` different items, in drawn order."""
        pool = list(items)
        drawn = []
        for _ in range(count):
            at = self.below(len(pool))
            drawn.append(pool[at])
            pool[at] = pool[-1]
            pool.pop()
        return drawn
