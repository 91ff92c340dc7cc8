"""Which texts may spell an added token of the vocabulary: a look at bytes, for many texts at once.

Every added token's text begins with `<|`, `<th`, `<ds`, `</th`, `</ds`, or holds the full-width bar U+FF5C; a text without them
spells none (a test holds this to the vocabulary). What is marked is looked at closely later.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_LESS, _SLASH, _BAR = ord("<"), ord("/"), ord("|")
_WIDE_BAR = "｜".encode()


def marked(text: Any, lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """bool[m]: of m texts that lie back to back as UTF-8, which may spell an added token."""
    data = np.frombuffer(text, np.uint8)
    flags = np.zeros(len(lengths), bool)
    places = np.concatenate([_less(data), _wide_bar(data)])
    if len(places):
        flags[np.searchsorted(np.cumsum(lengths), places, side="right")] = True
    return flags


def _less(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    places = np.flatnonzero(data == _LESS)
    first = _at(data, places + 1)
    slashed = first == _SLASH
    name = np.where(slashed, places + 2, places + 1)
    a, b = _at(data, name), _at(data, name + 1)
    opens = ((a == ord("t")) & (b == ord("h"))) | ((a == ord("d")) & (b == ord("s")))
    result: npt.NDArray[np.intp] = places[opens | (first == _BAR)]
    return result


def _wide_bar(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    places = np.flatnonzero(data == _WIDE_BAR[0])
    result: npt.NDArray[np.intp] = places[
        (_at(data, places + 1) == _WIDE_BAR[1]) & (_at(data, places + 2) == _WIDE_BAR[2])
    ]
    return result


def _at(data: npt.NDArray[np.uint8], places: npt.NDArray[np.intp]) -> npt.NDArray[np.uint8]:
    """The bytes there; 0 past the end."""
    inside = places < len(data)
    result = np.zeros(len(places), np.uint8)
    result[inside] = data[places[inside]]
    return result
