"""Token ids -> bytes and text, for looking: what each token stands for, where its bytes lie, which are special."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from databuild.tokenizer import PinnedTokenizer

Ids = npt.NDArray[np.int32]


def _byte_of_character() -> dict[int, int]:
    """The alphabet of byte-level BPE: printable bytes spell themselves, the other 68 follow from U+0100 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return {byte: byte for byte in shown} | {0x100 + place: byte for place, byte in enumerate(hidden)}


class TokenText:
    """The bytes of every token of a vocabulary, side by side. A token may be part of a character only."""

    def __init__(self, tokenizer: PinnedTokenizer) -> None:
        alphabet = _byte_of_character()
        table = [b""] * tokenizer.vocab_size
        for text, token in json.loads(tokenizer.data)["model"]["vocab"].items():
            # A few entries are added tokens, spelled as they are; they are set below.
            table[token] = text.translate(alphabet).encode("latin-1", "ignore")
        for text, token in tokenizer.added_tokens.items():
            table[token] = text.encode("utf-8")
        self._table = table
        self._flat = np.frombuffer(b"".join(table), np.uint8)
        self._sizes = np.array([len(part) for part in table], np.int64)
        self._starts = np.cumsum(self._sizes) - self._sizes
        self.is_special = np.zeros(len(table), bool)
        self.is_special[list(tokenizer.added_tokens.values())] = True
        # Longest first: of two tokens that begin alike the longer one is meant.
        names = sorted(tokenizer.added_tokens, key=lambda name: (-len(name), name))
        self.special_text = re.compile("|".join(map(re.escape, names)))
        self.special_bytes = re.compile(b"|".join(re.escape(name.encode("utf-8")) for name in names))
        self._line_end = table.index(b"\n")

    def ends(self, ids: Ids) -> npt.NDArray[np.int64]:
        """int64[n]: where the bytes of each token end."""
        result: npt.NDArray[np.int64] = np.cumsum(self._sizes[ids])
        return result

    def bytes_of(self, ids: Ids) -> bytes:
        """The bytes of n tokens."""
        sizes = self._sizes[ids]
        ends = np.cumsum(sizes)
        places = np.arange(ends[-1] if len(ends) else 0) + np.repeat(self._starts[ids] - (ends - sizes), sizes)
        result: bytes = self._flat[places].tobytes()
        return result

    def text_of(self, ids: Ids) -> str:
        """The text of n tokens; bytes that are not UTF-8 become U+FFFD."""
        return self.bytes_of(ids).decode("utf-8", "replace")

    def without_special(self, ids: Ids) -> Ids:
        """The same tokens, a line end in the place of each special one."""
        result: Ids = np.where(self.is_special[ids], self._line_end, ids).astype(np.int32)
        return result

    def token(self, token_id: int) -> str:
        """The text of one token; bytes that are no whole character are spelled as \\xNN."""
        return self._table[token_id].decode("utf-8", "backslashreplace")


@cache
def token_text(tokenizer: PinnedTokenizer) -> TokenText:
    """The TokenText of a tokenizer, made once."""
    return TokenText(tokenizer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Tokens start to stop of a row that are alike: trained or not, special tokens or text."""

    start: int
    stop: int
    trained: bool
    special: bool
    text: str


def runs(ids: Ids, mask: npt.NDArray[np.uint8], start: int, stop: int, text: TokenText) -> list[Run]:
    """The runs of tokens start to stop of a row (ids int32[R], mask uint8[R])."""
    special = text.is_special[ids[start:stop]]
    changes = (np.diff(mask[start:stop]) != 0) | (special[1:] != special[:-1])
    edges = [start, *(np.flatnonzero(changes) + start + 1).tolist(), stop]
    return [
        Run(
            start=a,
            stop=b,
            trained=bool(mask[a]),
            special=bool(special[a - start]),
            text=text.text_of(ids[a:b]),
        )
        for a, b in pairwise(edges)
        if a < b
    ]


def spelled(text: TokenText, value: str) -> list[tuple[str, bool]]:
    """(part, whether it spells a special token) of a text that holds none: the parts add up to the text."""
    parts, last = [], 0
    for found in text.special_text.finditer(value):
        parts += [(value[last : found.start()], False), (found.group(), True)]
        last = found.end()
    return [part for part in [*parts, (value[last:], False)] if part[0]]


def printable(text: str) -> str:
    """Control characters but the line ends as escapes: a terminal must show data, not obey it."""
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)
