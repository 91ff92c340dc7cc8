"""Hostile inputs from a random number generator: bytes that were mutated, and JSON values with a shape."""

import json

TOKENS = [
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b"\r\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xc2\x85",
    "\u2028".encode(), b"\\ud800", b"\\udc00\\ud800", b"NaN", b"-Infinity", b"1e400", b"-0", b"1" * 25, b"1.", b"1e+",
    b"null", b"true", b'"messages"', b'"role"', b'"content"', b'"assistant"', b'"tools"', b"[" * 300, b'{"a":' * 260,
    b"]" * 300, "<｜User｜>".encode(), b"\x80", b"\xf0\x9f\x98", b"PAR1", b"\x1f\x8b", b"\x28\xb5\x2f\xfd",
]  # fmt: skip


def mutated(rng, data, others):
    """Bytes with one to six changes: flipped, cut, repeated, overwritten, spliced with another, or with a token put in."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        at = rng.randrange(len(data) + 1)
        size = rng.choice([1, 1, 2, 4, 16, 200])
        match rng.randrange(8):
            case 0 if data:
                data[at % len(data)] ^= 1 << rng.randrange(8)
            case 1 if data:
                data[at % len(data)] = rng.randrange(256)
            case 2:
                del data[at : at + size]
            case 3:
                data[at:at] = data[at : at + size] * rng.choice([1, 2, 30])
            case 4:
                data[at:at] = rng.choice(TOKENS)
            case 5:
                token = rng.choice(TOKENS)
                data[at : at + len(token)] = token
            case 6:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                data[at : at + size] = other[start : start + size]
            case 7:
                del data[at:]
    return bytes(data)


ROLES = [
    "system",
    "user",
    "assistant",
    "tool",
    "developer",
    "latest_reminder",
    "function",
    "",
    "User",
    1,
    None,
    ["user"],
]
KEYS = [
    "role", "content", "reasoning_content", "tool_calls", "tool_call_id", "tools", "name", "task", "loss", "wo_eos",
    "step_loss_mask", "mask", "prefix", "type", "function", "id", "x", "response_format", "content_blocks", "",
]  # fmt: skip
TEXTS = [
    "", " ", "Hi", "a\n\nb", "<｜User｜>", "<｜end▁of▁sentence｜>", "</think>", "<think>x</think>", "naïve 東京 👩‍👧", "\x00",
    "\ufeff", "\ud800", "\udfff\ud800", "a" * 3000, "1" * 50, "^" * 200, "\u202e", "e\u0301", "{}",
    '{"a": 1}', "[1]", "True", "｜DSML｜", "\r\n" * 9,
]  # fmt: skip


def text(rng):
    """A text: one of those that are hard, or some of them joined."""
    return "".join(rng.choice(TEXTS) for _ in range(rng.choice([1, 1, 1, 2, 4])))


def value(rng, depth=0):
    """Any JSON value."""
    kind = rng.randrange(10 if depth < 4 else 6)
    if kind < 3:
        return text(rng)
    if kind < 6:
        return rng.choice([None, True, False, 0, -1, 1.5, 1e300, 2**63, 2**64, -(2**70)])
    if kind < 8:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(rng.randrange(4))}


def call(rng):
    """A tool call, mostly of the right shape."""
    arguments = rng.choice(['{"a": 1}', "{", {"a": [1, None]}, "", None, value(rng)])
    whole = {"id": text(rng), "type": "function", "function": {"name": text(rng), "arguments": arguments}}
    return rng.choice([whole, whole, whole["function"], value(rng)])


def message(rng):
    """A message, mostly of the right shape."""
    if rng.randrange(15) == 0:
        return value(rng)
    made = {"role": rng.choice(ROLES[:6] if rng.randrange(5) else ROLES)}
    if rng.randrange(12):
        made["content"] = rng.choice(
            [text(rng), text(rng), text(rng), None, value(rng), [{"type": "text", "text": text(rng)}]]
        )
    for key in rng.sample(KEYS, rng.choice([0, 0, 0, 1, 2])):
        made[key] = value(rng)
    if rng.randrange(6) == 0:
        made["reasoning_content"] = text(rng)
    if rng.randrange(6) == 0:
        made["tool_calls"] = [call(rng) for _ in range(rng.randrange(3))]
    if rng.randrange(12) == 0:
        made["task"] = rng.choice(["action", "query", "authority", "domain", "title", "read_url", "x", 1])
    return made


def record(rng):
    """A record, mostly of the right shape."""
    messages = [message(rng) for _ in range(rng.choice([0, 1, 2, 2, 3, 5, 9]))]
    made = {"messages": messages if rng.randrange(20) else value(rng)}
    if rng.randrange(3) == 0:
        made |= {"id": rng.choice([1, "1", None, value(rng)]), "source": rng.choice(["s", None, "\ud800", value(rng)])}
    if rng.randrange(8) == 0:
        made["tools"] = rng.choice(
            [[{"type": "function", "function": {"name": text(rng), "parameters": value(rng)}}], value(rng)]
        )
    return made


def lines(rng):
    """A JSONL file of records, in one of the styles that JSON allows."""
    style = {"ensure_ascii": rng.random() < 0.5, "separators": rng.choice([None, (",", ":"), (" , ", " : ")])}
    texts = [json.dumps(record(rng), **style) for _ in range(rng.randrange(1, 4))]
    return "\n".join(texts).encode("utf-8", "surrogatepass")
