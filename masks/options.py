"""How a conversation is rendered: the options of the format, all of them part of a build's spec."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderOptions:
    """Options of the V4 format.

    mode: chat renders no reasoning. drop_thinking: in thinking mode, history loses its reasoning (and earlier
    developer messages), as serving does; never where tools are declared. reasoning_effort: "max" puts its paragraph
    first. headerless: what becomes of an assistant that follows no user turn: nothing ("reference", the release
    encoder), a header ("official", the serving encoder), or "reject". history: "split_turns" makes one example of each
    user turn. unanswered: a conversation that does not end with an assistant is kept, trimmed, or skipped.
    """

    mode: Literal["chat", "thinking"] = "chat"
    drop_thinking: bool = False
    reasoning_effort: Literal["high", "max"] | None = None
    headerless: Literal["reference", "official", "reject"] = "reference"
    history: Literal["whole", "split_turns"] = "whole"
    unanswered: Literal["keep", "trim", "skip"] = "keep"


#: Chat mode as the release encoder renders it.
RELEASE = RenderOptions()
