"""The two fixed paragraphs of the V4 format, taken at run time from the official `deepseek-recipe` package.

They are not ours to write down. What is here is their digest: another text would be another format, and is refused.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from typing import Any

#: A stretch of a fixed text: (whether it is one special token, its spelling).
Part = tuple[bool, str]

_PROBE = "databuild_probe"

TOOLS_SHA256 = "8df79201647d8607ac17bff60acaf785e841080e2978c245951b4789c4268480"
EFFORT_SHA256 = "e1cadc7e133a73f7843110fdff17037a3bd6ccf1933ed94b522f1cd8314c325d"


class FixedTextsError(Exception):
    """The package is not there, or gives another text than the one this format stands on."""

    def __init__(self, what: str, *, expected: str | None = None, found: str | None = None) -> None:
        super().__init__(what)
        self.expected = expected
        self.found = found


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTexts:
    """before_tools and after_tools: the tools section around the schemas, which stand one a line. effort: of "max"."""

    before_tools: tuple[Part, ...]
    after_tools: tuple[Part, ...]
    effort: tuple[Part, ...]


@cache
def fixed_texts() -> FixedTexts:
    """Ask the official encoder, and check what it says; FixedTextsError otherwise."""
    try:
        import deepseek_recipe as recipe
    except ImportError as error:
        raise FixedTextsError("this conversation needs the official texts of the format") from error
    user = recipe.UserMessage("")
    probe = recipe.ToolDefinition(_PROBE)
    with_tools = _parts(recipe, recipe.Conversation([user], thinking_mode=False, tools=[probe]))
    # What the serving encoder calls "high" is what the release encoder calls "max".
    with_effort = _parts(recipe, recipe.Conversation([user], thinking_mode=True, reasoning_effort="high"))
    before, after = _around_schema(_before_user(with_tools))
    texts = FixedTexts(before_tools=before, after_tools=after, effort=_before_user(with_effort))
    for name, parts, expected in (
        ("tools section", (*texts.before_tools, (True, "\0"), *texts.after_tools), TOOLS_SHA256),
        ("effort paragraph", texts.effort, EFFORT_SHA256),
    ):
        found = hashlib.sha256(json.dumps(parts).encode("ascii")).hexdigest()
        if found != expected:
            raise FixedTextsError(
                f"deepseek-recipe {recipe.__version__} has another {name} than the V4 format",
                expected=f"sha256 {expected}",
                found=f"sha256 {found}",
            )
    return texts


def _parts(recipe: Any, conversation: Any) -> list[Part]:
    """The prompt of a conversation; the encoder itself says which stretches are special tokens."""
    rendered = recipe.DeepseekV4Encoding().render_conversation(conversation)
    parts: list[Part] = []
    place = 0
    for start, end in rendered.special_ranges:
        parts += [(False, rendered.prompt[place:start]), (True, rendered.prompt[start:end])]
        place = end
    parts.append((False, rendered.prompt[place:]))
    return [part for part in parts if part[1]]


def _before_user(parts: list[Part]) -> tuple[Part, ...]:
    """What stands between BOS and the first user turn."""
    return tuple(parts[1 : parts.index((True, "<｜User｜>"))])


def _around_schema(parts: tuple[Part, ...]) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
    """The section without the line of the one schema that was asked for."""
    at = next(i for i, (special, text) in enumerate(parts) if not special and _PROBE in text)
    lines = parts[at][1].split("\n")
    line = next(i for i, text in enumerate(lines) if _PROBE in text)
    before = "\n".join([*lines[:line], ""])
    after = "\n".join(["", *lines[line + 1 :]])
    return (*parts[:at], (False, before)), ((False, after), *parts[at + 1 :])
