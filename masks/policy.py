"""Mask types: named tables of the segment kinds that are trained."""

from __future__ import annotations

from dataclasses import dataclass

from masks.segments import Segment, SegmentKind


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskType:
    """A named rule: a token is a target iff its segment's kind is in `kinds`. `version` is part of a build's spec."""

    name: str
    version: int
    kinds: frozenset[SegmentKind]


MASK_TYPES = {
    mask_type.name: mask_type
    for mask_type in (MaskType(name="deepseek_v4", version=1, kinds=frozenset({SegmentKind.CONTENT, SegmentKind.EOS})),)
}


def trained(segments: list[Segment], mask_type: MaskType) -> list[bool]:
    """Which segments are trained, one answer for each. A mask is decided here and nowhere else."""
    return [segment.kind in mask_type.kinds for segment in segments]
