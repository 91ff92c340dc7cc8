"""`databuild encode --explain`: one line for each segment, in colour where there is one, with the reason beside it."""

from __future__ import annotations

import sys
from typing import Any

from databuild.inspect import printable


def show_explained(line: dict[str, Any]) -> None:
    """Print the segments of one conversation."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
    console.print(Text(f"── {line['id']} ──", style="bold"))
    if "rejected" in line:
        console.print(Text(f"rejected: {line['rejected']}", style="red"))
        return
    for segment in line["segments"]:
        text = Text("+ " if segment["trained"] else "  ")
        shown = printable(segment["text"]) if segment["special"] else repr(segment["text"])
        text.append(shown, style="green" if segment["trained"] else "cyan" if segment["special"] else "")
        where = "" if segment["message"] is None else f"message {segment['message']}, "
        text.append(f"   {where}{segment['why']}", style="dim")
        console.print(text)
