"""`python -m masks.table`: every mask type on one worked example, as the table in masks/README.md."""

from __future__ import annotations

from masks import deepseek_v4, policy
from masks.conversation import Conversation
from masks.options import RenderOptions
from masks.parse import parse
from masks.segments import Segment

EXAMPLE = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is it cold in Oslo?"},
        {
            "role": "assistant",
            "reasoning_content": "Look it up.",
            "content": "One moment.",
            "tool_calls": [{"id": "c1", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "-3"},
        {"role": "assistant", "reasoning_content": "Cold.", "content": "Yes, -3."},
    ]
}


def table() -> str:
    """Markdown: one line for each segment of EXAMPLE in thinking mode, one column for each mask type."""
    conversation = parse(EXAMPLE)
    assert isinstance(conversation, Conversation)
    segments = deepseek_v4.render(conversation, RenderOptions(mode="thinking"))
    columns = [policy.trained(segments, mask_type) for mask_type in policy.MASK_TYPES.values()]
    lines = [
        "| segment | text | " + " | ".join(f"`{name}`" for name in policy.MASK_TYPES) + " |",
        "|---|---|" + ":-:|" * len(columns),
    ]
    # Neighbours of one kind and message are shown as one: a tool call is many segments, all alike.
    start = 0
    while start < len(segments):
        end = start + 1
        while end < len(segments) and _key(segments[end]) == _key(segments[start]):
            end += 1
        text = deepseek_v4.text_of(segments[start:end]).replace("\n", "\\n").replace("|", "\\|")
        marks = " | ".join("1" if column[start] else "·" for column in columns)
        lines.append(f"| {segments[start].kind.value} | `{text}` | {marks} |")
        start = end
    return "\n".join(lines)


def _key(segment: Segment) -> tuple[str, int | None]:
    return segment.kind.value, segment.message


if __name__ == "__main__":
    print(table())
