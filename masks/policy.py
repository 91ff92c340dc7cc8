"""Mask types: named tables of the segment kinds that are trained, and in which turns. To add one is to add an entry."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from masks.segments import Segment, SegmentKind

K = SegmentKind

#: What an assistant message contributes: what the model itself writes when it is served.
ASSISTANT = frozenset(
    {K.REASONING, K.REASONING_END, K.CONTENT, K.TOOL_CALLS, K.EOS, K.EOS_AFTER_CALLS, K.EOS_AFTER_NOTHING}
)
_EOS = frozenset({K.EOS, K.EOS_AFTER_CALLS, K.EOS_AFTER_NOTHING})
_EVERY = frozenset(SegmentKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskType:
    """A named rule: a token is a target iff its segment's kind is in `kinds`, in every turn or the last one only.

    The last turn is the last assistant message. `version` is part of a build's spec: a changed table is a new version.
    """

    name: str
    version: int
    kinds: frozenset[SegmentKind]
    turns: Literal["all", "last"] = "all"
    about: str


MASK_TYPES = {
    mask_type.name: mask_type
    for mask_type in (
        MaskType(
            name="deepseek_v4",
            version=1,
            kinds=ASSISTANT,
            about="What the model writes: reasoning, its </think>, content, tool calls, EOS. The default.",
        ),
        MaskType(
            name="deepseek_v4_last_turn",
            version=1,
            kinds=ASSISTANT,
            turns="last",
            about="The same, of the last assistant message only: right where history has lost its reasoning.",
        ),
        MaskType(
            name="deepseek_v4_think_prefix",
            version=1,
            kinds=ASSISTANT | {K.HEADER_MARK},
            about="And the </think> or <think> that opens an answer, as Megatron-Bridge trains.",
        ),
        MaskType(
            name="deepseek_v4_content",
            version=1,
            kinds=frozenset({K.CONTENT, K.EOS}),
            about="Content and an EOS directly after it; no reasoning, no tool calls.",
        ),
        MaskType(
            name="deepseek_v4_no_reasoning",
            version=1,
            kinds=ASSISTANT - {K.REASONING, K.REASONING_END},
            about="All but the reasoning and its </think>.",
        ),
        MaskType(name="deepseek_v4_no_eos", version=1, kinds=ASSISTANT - _EOS, about="All but EOS."),
        MaskType(
            name="all_but_system",
            version=1,
            kinds=_EVERY - {K.BOS, K.EFFORT, K.SYSTEM, K.TOOLS, K.RESPONSE_FORMAT},
            about="Everything but BOS and what stands in system messages; users, tool results and headers too.",
        ),
        MaskType(name="full", version=1, kinds=_EVERY, about="Every token, as in pre-training."),
    )
}


def trained(
    segments: list[Segment],
    mask_type: MaskType,
    *,
    silenced: Collection[int] = (),
    only: Collection[int] | None = None,
) -> list[bool]:
    """Which segments are trained, one answer for each. A mask is decided here and nowhere else.

    silenced: indices of messages that say of themselves that they are not to be trained (the mark that opens an answer
    is not part of its message). only: train no other messages
    than these (an example of split history trains its own last turn).
    """
    if only is None and mask_type.turns == "last":
        only = [max((s.message for s in segments if s.kind in ASSISTANT and s.message is not None), default=-1)]
    return [
        segment.kind in mask_type.kinds
        and (segment.message not in silenced or segment.kind is K.HEADER_MARK)
        and (only is None or segment.message in only)
        for segment in segments
    ]


def why(segment: Segment, mask_type: MaskType, flag: bool, silenced: Collection[int] = ()) -> str:
    """One clause for a person: why a segment is trained, or not."""
    if flag:
        return f"{segment.kind.value} is in {mask_type.name}"
    if segment.kind not in mask_type.kinds:
        return f"{segment.kind.value} is not in {mask_type.name}"
    if segment.message in silenced:
        return "its message says so (step_loss_mask or loss)"
    return "only the last turn is trained"
