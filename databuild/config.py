"""BuildSpec: everything that decides bytes. RunOptions: everything that must not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from manifests.canonical import sha256_of

#: A row group's tokens must stay below 2^31, the reach of an Arrow list.
MAX_ROW_TOKENS = 1 << 23


class BuildSpec(BaseModel):
    """The recipe of a build, as it stands in the manifest: same spec, same bytes.

    rows None means all. sources holds the identity digest of each source. A field whose only value is one constant is
    here so that other values can join later without changing the schema.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: Literal["fixed"] = "fixed"
    row_tokens: int = Field(ge=2, le=MAX_ROW_TOKENS)
    seed: int = Field(ge=0)
    rows: int | None = Field(ge=1)
    format: Literal["deepseek_v4"] = "deepseek_v4"
    format_version: Literal[1] = 1
    mode: Literal["chat", "thinking"] = "chat"
    drop_thinking: bool = False
    reasoning_effort: Literal["high", "max"] | None = None
    headerless: Literal["reference", "official", "reject"] = "reference"
    history: Literal["whole", "split_turns"] = "whole"
    tokens: Literal["literal", "full_vocab"] = "literal"
    separator: Literal["ensure", "always", "none"] = "ensure"
    bos: Literal["keep", "first", "strip"] = "keep"
    unanswered: Literal["keep", "trim", "skip"] = "keep"
    on_invalid: Literal["skip", "error"] = "skip"
    loss_mask_type: str = "deepseek_v4"
    loss_mask_version: int = 1
    permutation: Literal["numpy-pcg64"] = "numpy-pcg64"
    include_sources: list[str] | None = None
    exclude_sources: list[str] = []
    columns: dict[str, Any] | None = None
    tokenizer_sha256: str
    sources: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The spec as it stands in the manifest."""
        return self.model_dump()

    @property
    def sha256(self) -> str:
        """spec_sha256."""
        return sha256_of(self.to_dict())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How to run: never reaches the bytes.

    workers: threads in all. batch_conversations: how many conversations are encoded at a time.
    """

    out: Path
    workers: int = 2
    batch_conversations: int = 1024
    overwrite: bool = False
    quiet: bool = False
