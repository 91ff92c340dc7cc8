"""`--columns`: how records of another shape become `{"id", "messages", "source", "tools"}`. Part of the spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from databuild.errors import UsageError

ColumnMap = dict[str, Any]

#: The role names of ShareGPT exports. `human`/`gpt` are the norm; the rest occur in the public files.
SHAREGPT_ROLES = {
    "system": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "assistant": "assistant",
}

PRESETS: dict[str, ColumnMap] = {
    "sharegpt": {"messages": "conversations", "role": "from", "content": "value", "roles": SHAREGPT_ROLES},
    "openmath": {"prompt": ["problem"], "response": "generated_solution"},
    "alpaca": {"prompt": ["instruction", "input"], "response": "output"},
}

_KEYS = ("messages", "role", "content", "prompt", "response", "system", "id", "source", "tools")
_HELP = (
    f"a name ({', '.join(PRESETS)}) or pairs such as messages=conversations,role=from,content=value "
    "or prompt=question,response=answer (prompt=a+b joins two columns with a blank line)"
)


def parse_columns(text: str | None) -> ColumnMap | None:
    """The value of --columns -> the map that stands in the spec; None for the plain shape."""
    if text is None:
        return None
    name, _, more = text.partition(",")
    mapping: ColumnMap = {}
    if name in PRESETS:
        mapping.update(PRESETS[name])
        text = more
    said: set[str] = set()
    for pair in filter(None, text.split(",")):
        key, equals, column = pair.partition("=")
        names = column.split("+") if key == "prompt" else [column]
        if not equals or not all(names) or key not in _KEYS:
            raise UsageError(
                f"--columns does not know {pair!r}", expected=_HELP, next_step=f"keys are {', '.join(_KEYS)}"
            )
        if key in said:
            raise UsageError(f"--columns says {key} twice", expected=_HELP)
        said.add(key)
        mapping[key] = names if key == "prompt" else column
    if not mapping:
        raise UsageError(
            "--columns names nothing", expected=_HELP, next_step="leave it out for messages, role, content"
        )
    pairs = {"prompt", "response"} & mapping.keys()
    if pairs and (len(pairs) == 1 or {"messages", "role", "content"} & mapping.keys()):
        raise UsageError("--columns needs prompt and response together, and no messages with them", expected=_HELP)
    if "system" in mapping and not pairs:
        raise UsageError("--columns system=… goes with prompt and response", expected=_HELP)
    return mapping


def needed_columns(mapping: ColumnMap | None) -> tuple[list[str], list[str]]:
    """(columns that must be there, columns that are read when they are there)."""
    mapping = mapping or {}
    optional = [mapping.get(key, key) for key in ("id", "source", "tools")]
    if "prompt" in mapping:
        # The first prompt column and the response make the record; the other parts may be missing (Alpaca's input).
        return [mapping["prompt"][0], mapping["response"]], [
            *mapping["prompt"][1:],
            *([mapping["system"]] if "system" in mapping else []),
            *optional,
        ]
    return [mapping.get("messages", "messages")], optional


def named_columns(mapping: ColumnMap | None) -> list[str]:
    """The columns that --columns names though a record may lack them; a file that has none of such a name is a mistake."""
    return [mapping[key] for key in ("system", "id", "source", "tools") if key in mapping] if mapping else []


def map_record(record: Mapping[str, Any], mapping: ColumnMap | None) -> dict[str, Any]:
    """A record of the user's shape -> `{"id", "messages", "source", "tools"}`; values are moved, never changed."""
    mapping = mapping or {}
    mapped = {key: record.get(mapping.get(key, key)) for key in ("id", "source", "tools")}
    mapped["messages"] = _pair(record, mapping) if "prompt" in mapping else _messages(record, mapping)
    return mapped


def _messages(record: Mapping[str, Any], mapping: ColumnMap) -> Any:
    messages = record.get(mapping.get("messages", "messages"))
    role, content, roles = mapping.get("role", "role"), mapping.get("content", "content"), mapping.get("roles")
    if (role == "role" and content == "content" and not roles) or not isinstance(messages, list):
        return messages
    return [_message(item, role, content, roles) for item in messages]


def _message(item: Any, role: str, content: str, roles: Mapping[str, str] | None) -> Any:
    if not isinstance(item, Mapping):
        return item
    name = item.get(role)
    if roles is not None and isinstance(name, str):
        name = roles.get(name, name)
    rest = {k: v for k, v in item.items() if k not in (role, content)}
    return {**rest, "role": name, "content": item.get(content)}


def _pair(record: Mapping[str, Any], mapping: ColumnMap) -> Any:
    first, *others = (record.get(column) for column in mapping["prompt"])
    parts = [first, *(part for part in others if part not in (None, ""))]
    # A part that is not text must be seen and refused, so it is passed on as it is.
    wrong = next((part for part in parts if not isinstance(part, str)), None)
    prompt = "\n\n".join(parts) if all(isinstance(part, str) for part in parts) else wrong
    messages = [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": record.get(mapping["response"])},
    ]
    system = record.get(mapping["system"]) if "system" in mapping else None
    return [{"role": "system", "content": system}, *messages] if system not in (None, "") else messages
