"""A slow second version of the V4 chat format: one string, made message by message. To compare the renderer with.

It shares no code with `masks.deepseek_v4`. Only the two fixed paragraphs come from `masks.fixed_texts`, which is held to
their digests and to the official encoder elsewhere.
"""

import json

from masks.fixed_texts import fixed_texts

BOS = "<｜begin▁of▁sentence｜>"
EOS = "<｜end▁of▁sentence｜>"
USER = "<｜User｜>"
ASSISTANT = "<｜Assistant｜>"
REMINDER = "<｜latest_reminder｜>"
RESPONSE_FORMAT = "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n"


def slow_text(record, *, mode="chat", drop_thinking=False, reasoning_effort=None, headerless="reference"):
    """The text of a valid record."""
    thinking = mode == "thinking"
    turns = join_turns(with_record_tools(record))
    if any(turn.get("tools") for turn in turns):
        drop_thinking = False
    if thinking and drop_thinking:
        last = last_asking(turns)
        turns = [turn for place, turn in enumerate(turns) if turn["role"] != "developer" or place >= last]
    last = last_asking(turns)

    text = BOS
    if thinking and reasoning_effort == "max" and turns:
        text += spelled(fixed_texts().effort)
    for place, turn in enumerate(turns):
        shows_thinking = thinking and (not drop_thinking or place > last)
        if turn["role"] == "assistant":
            if headerless == "official" and lacks_header(turns, place):
                text += ASSISTANT + ("<think>" if shows_thinking else "</think>")
            follows_task = place > 0 and turns[place - 1].get("task")
            if shows_thinking and not follows_task:
                text += (turn.get("reasoning_content") or "") + "</think>"
            text += turn["text"] + calls_text(turn.get("tool_calls") or [])
            text += "" if turn.get("wo_eos") else EOS
        elif turn["role"] == "user":
            text += USER + turn["text"]
        elif turn["role"] == "latest_reminder":
            text += REMINDER + turn["text"]
        else:
            text += (USER if turn["role"] == "developer" else "") + turn["text"]
            if turn.get("tools"):
                fixed = fixed_texts()
                schemas = [json.dumps(tool.get("function", tool), ensure_ascii=False) for tool in turn["tools"]]
                text += spelled(fixed.before_tools) + "\n".join(schemas) + spelled(fixed.after_tools)
            if turn.get("response_format"):
                text += RESPONSE_FORMAT + json.dumps(turn["response_format"], ensure_ascii=False)

        following = turns[place + 1]["role"] if place + 1 < len(turns) else None
        if following in (None, "assistant", "latest_reminder"):
            opens_thinking = thinking and (not drop_thinking or place == last)
            text += transition(turn, thinking, opens_thinking)
    return text


def with_record_tools(record):
    """The messages; tools that stand beside them go to the first system message, or to a new one at the front."""
    messages = [dict(message) for message in record["messages"]]
    tools = record.get("tools")
    if not tools:
        return messages
    for message in messages:
        if message["role"] == "system":
            message["tools"] = tools
            return messages
    return [{"role": "system", "content": "", "tools": tools}, *messages]


def join_turns(messages):
    """One turn for each message, but neighbouring user and tool messages share one. A turn gets its "text"."""
    turns = []
    call_order = {}
    for message in messages:
        role = message["role"]
        content = text_of_content(message.get("content"))
        if role not in ("user", "tool"):
            turns.append({**message, "text": content})
            if role == "assistant" and message.get("tool_calls"):
                numbered = enumerate(message["tool_calls"])
                call_order = {call["id"]: number for number, call in numbered if call.get("id")}
            continue
        block = {"text": content, "number": None}
        if role == "tool":
            number = call_order.get(message.get("tool_call_id"), 0)
            block = {"text": "<tool_result>" + content + "</tool_result>", "number": number}
        joins = bool(turns) and turns[-1]["role"] == "user" and not (role == "user" and turns[-1].get("task"))
        if not joins:
            turns.append({"role": "user", "blocks": [], "task": message.get("task") if role == "user" else None})
        turns[-1]["blocks"].append(block)
    for turn in turns:
        if "blocks" in turn:
            results = sorted((b for b in turn["blocks"] if b["number"] is not None), key=lambda b: b["number"])
            in_order = iter(results)
            turn["text"] = "\n\n".join(
                b["text"] if b["number"] is None else next(in_order)["text"] for b in turn["blocks"]
            )
    return turns


def text_of_content(content):
    if isinstance(content, list):
        return "\n\n".join(part["text"] for part in content)
    return content or ""


def last_asking(turns):
    """The place of the last turn of a user or developer; -1 without any."""
    return max((place for place, turn in enumerate(turns) if turn["role"] in ("user", "developer")), default=-1)


def lacks_header(turns, place):
    """Whether nothing before this assistant has opened it."""
    if place and turns[place - 1].get("task"):
        return False
    before = [turn["role"] for turn in turns[:place] if turn["role"] != "latest_reminder"]
    return not before or before[-1] not in ("user", "developer")


def transition(turn, thinking, opens_thinking):
    """What opens the answer to a turn."""
    task = turn.get("task")
    if task == "action":
        return ASSISTANT + ("<think>" if thinking else "</think>") + "<｜action｜>"
    if task:
        return f"<｜{task}｜>"
    if turn["role"] in ("user", "developer"):
        return ASSISTANT + ("<think>" if opens_thinking else "</think>")
    return ""


def calls_text(calls):
    """Tool calls as DSML."""
    if not calls:
        return ""
    return "\n\n<｜DSML｜tool_calls>\n" + "\n".join(call_text(call) for call in calls) + "\n</｜DSML｜tool_calls>"


def call_text(call):
    function = call["function"]
    arguments = function["arguments"]
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            arguments = {"arguments": arguments}
    parameters = []
    for key, value in arguments.items():
        if isinstance(value, str):
            flag, value = "true", value
        else:
            flag, value = "false", json.dumps(value, ensure_ascii=False)
        parameters.append(f'<｜DSML｜parameter name="{key}" string="{flag}">{value}</｜DSML｜parameter>')
    return f'<｜DSML｜invoke name="{function["name"]}">\n' + "\n".join(parameters) + "\n</｜DSML｜invoke>"


def spelled(parts):
    return "".join(text for _, text in parts)
