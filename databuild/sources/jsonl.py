"""JSON Lines (also .gz, .zst) and JSON arrays of records. A record that is not JSON stops the build, with its position.

Lines end at b"\\n" and nowhere else: U+2028 and U+0085 occur inside real texts.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from databuild.errors import SourceError
from databuild.sources.records import RecordSpooler

SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".json")
MAX_LINE_BYTES = 256 << 20
#: Far below what any of the parsers gives up at, so what is refused depends on no parser and no version.
MAX_NESTING = 256
_BLOCK = 1 << 20
_BOM = b"\xef\xbb\xbf"


def read_jsonl(path: Path, spooler: RecordSpooler, required: list[str], named: Iterable[str] = ()) -> None:
    """Add every record of the file; SourceError (exit 3) names file, line and byte of what cannot be read.

    required: what the first record must have. named: what one of them must have.
    """
    seen_required = False
    unseen = set(named)
    for position, record in read_records(path):
        if not isinstance(record, dict):
            raise SourceError(
                "a record is not a JSON object",
                where=f"{path.name}, {position}",
                expected='{"messages": [...], ...}',
                found=_kind(record),
            )
        if not seen_required:
            _check_keys(path, position, record, required)
            seen_required = True
        if unseen:
            unseen -= record.keys()
        spooler.add(record)
    if unseen and seen_required:
        raise SourceError(
            f"no record has {' or '.join(sorted(unseen))}",
            where=path.name,
            next_step="--columns names it: leave it out, or correct the name",
        )


def read_records(path: Path) -> Iterator[tuple[str, Any]]:
    """(position, parsed value) of every record."""
    return _array_records(path) if path.name.endswith(".json") else _line_records(path)


def _check_keys(path: Path, position: str, record: dict[str, Any], required: list[str]) -> None:
    missing = [key for key in required if key not in record]
    if missing:
        raise SourceError(
            f"the first record has no {' and no '.join(missing)}",
            where=f"{path.name}, {position}",
            expected=", ".join(required),
            found=", ".join(map(ascii, sorted(record)[:12])) or "no keys",
            next_step="name the columns: --columns sharegpt | openmath | alpaca | messages=…,role=…,content=…",
        )


def _line_records(path: Path) -> Iterator[tuple[str, Any]]:
    offset = 0
    for number, line in enumerate(_lines(path), start=1):
        position = f"line {number}, byte {offset}"
        offset += len(line) + 1
        if number == 1 and line.startswith(_BOM):
            line = line[len(_BOM) :]
            position = f"line 1, byte {len(_BOM)}"
        if line.strip():
            yield position, _parse(line, path, position)


def _lines(path: Path) -> Iterator[bytes]:
    """Lines without their b"\\n"; bounded, so that a file without line ends cannot fill the memory."""
    begun: list[bytes] = []  # what has been read of a line whose end has not
    start, number = 0, 1
    for block in _blocks(path):
        *ends, rest = block.split(b"\n")
        for end in ends:
            line = b"".join([*begun, end])
            _check_length(len(line), path, number, start)
            yield line
            begun = []
            start += len(line) + 1
            number += 1
        begun.append(rest)
        _check_length(sum(map(len, begun)), path, number, start)
    if last := b"".join(begun):
        yield last


def _check_length(length: int, path: Path, number: int, start: int) -> None:
    if length > MAX_LINE_BYTES:
        raise SourceError(
            "a line is too long to be one conversation",
            where=f"{path.name}, line {number}, byte {start}",
            expected=f"at most {MAX_LINE_BYTES:,} bytes",
            next_step="check that the file has one record a line",
        )


def _blocks(path: Path) -> Iterator[bytes]:
    """Decompressed blocks of a file. A damaged or cut-off stream is a SourceError."""
    compression = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    try:
        with pa.input_stream(str(path), compression=compression) as file:
            buffer = bytearray(_BLOCK)  # read() of pyarrow loses its memory when it fails
            while size := file.readinto(buffer):
                yield bytes(memoryview(buffer)[:size])
    except (OSError, pa.ArrowException) as error:
        raise SourceError(
            "a file cannot be read" if compression is None else "a compressed file is damaged or cut off",
            where=path.name,
            found=str(error),
            next_step="nothing was written; fetch or write the file again",
        ) from error


def _parse(line: bytes, path: Path, position: str) -> Any:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = _parse_slowly(line, path, position)
    if line.count(b"{") + line.count(b"[") > MAX_NESTING and _is_too_deep(value):
        raise _too_deep(path, position)
    return value


def _parse_slowly(line: bytes, path: Path, position: str) -> Any:
    """orjson refuses lone surrogates and very large numbers, which are JSON all the same. The rest is an error."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceError(
            "a line is not UTF-8",
            where=f"{path.name}, {position} + {error.start}",
            found=f"byte 0x{line[error.start]:02x}",
            next_step="write the file again as UTF-8",
        ) from error
    try:
        return _DECODER.decode(text)
    except RecursionError as error:
        raise _too_deep(path, position) from error
    except ValueError as error:
        within = len(text[: error.pos].encode()) if isinstance(error, json.JSONDecodeError) else 0
        raise SourceError(
            "a line is not JSON (cut off, or damaged)",
            where=f"{path.name}, {position} + {within}",
            expected="one JSON object a line",
            found=f"{_words(error)}; the line begins {text[:60]!a}",
            next_step="nothing was written; mend or remove the line",
        ) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _whole(digits: str) -> int | float:
    """Whole numbers beyond 64 bits are floats, as in orjson: a record means the same in every kind of file."""
    if len(digits) <= 20 and -(1 << 63) <= (value := int(digits)) < 1 << 64:
        return value
    return float(digits)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_whole)


def _words(error: Exception) -> str:
    """What is wrong, without the place in the piece of text that the parser had."""
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_NESTING + 1):
        lists = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list))]
        level = [child for children in lists for child in children]
        if not lists:
            return False
    return True


def _too_deep(path: Path, position: str) -> SourceError:
    return SourceError(
        "a record is nested too deeply to be a conversation",
        where=f"{path.name}, {position}",
        expected=f"at most {MAX_NESTING} levels",
    )


class _Text:
    """The text of a file, decoded piece by piece, with a place in it."""

    def __init__(self, path: Path) -> None:
        self._blocks = _text_blocks(path)
        self._text = ""
        self._place = 0

    def _grow(self, characters: int) -> bool:
        """Read on by at least this much; False at the end of the file."""
        pieces, have = [self._text[self._place :]], 0
        while have < characters and (block := next(self._blocks, None)) is not None:
            pieces.append(block)
            have += len(block)
        self._text, self._place = "".join(pieces), 0
        return have > 0

    def peek(self) -> str:
        """The next character that is not white space; empty at the end."""
        while True:
            while self._place < len(self._text) and self._text[self._place] in " \t\r\n":
                self._place += 1
            if self._place < len(self._text) or not self._grow(1):
                return self._text[self._place : self._place + 1]

    def step(self) -> None:
        """Past the character that peek gave."""
        self._place += 1

    def value(self) -> Any:
        """The next JSON value; ValueError if there is none or it is cut off, RecursionError if it is nested too deeply."""
        while True:
            have = len(self._text) - self._place
            try:
                value, end = _DECODER.raw_decode(self._text, self._place)
            except json.JSONDecodeError:
                if have > MAX_LINE_BYTES or not self._grow(max(have, 1)):
                    raise
                continue
            read = end - self._place
            if read > MAX_LINE_BYTES:
                raise ValueError(f"a record of more than {MAX_LINE_BYTES:,} characters")
            # A number may go on: `1e+` is read as 1 until its next digit is there.
            if isinstance(value, (int, float)) and have - read < 3 and self._grow(1):
                continue
            begin, self._place = self._place, self._place + read
            brackets = self._text.count("{", begin, self._place) + self._text.count("[", begin, self._place)
            if brackets > MAX_NESTING and _is_too_deep(value):
                raise RecursionError
            return value


def _array_records(path: Path) -> Iterator[tuple[str, Any]]:
    """Records of a file that is one JSON array, read piece by piece."""
    text = _Text(path)
    if text.peek() != "[":
        raise SourceError(
            "a .json file must be one array of records",
            where=path.name,
            expected="[{...}, ...]",
            found=f"{text.peek()!a} at the start",
            next_step="name a file with one record a line .jsonl",
        )
    text.step()
    number = 0
    while text.peek() != "]" or number:  # `[]` is a whole array, `[{...},]` is not
        try:
            record = text.value()
        except RecursionError as error:
            raise _too_deep(path, f"record {number + 1}") from error
        except ValueError as error:
            raise _cut_off(path, number, _words(error) if text.peek() else "the end of the file") from error
        number += 1
        yield f"record {number}", record
        if text.peek() == "]":
            break
        if text.peek() != ",":
            raise _cut_off(path, number, f"{text.peek()!a}" if text.peek() else "the end of the file")
        text.step()
    text.step()
    if text.peek():
        raise SourceError("there is more after the JSON array", where=path.name, expected="the end of the file")


def _cut_off(path: Path, number: int, found: str) -> SourceError:
    return SourceError(
        "the JSON array is cut off or damaged",
        where=f"{path.name}, after record {number}",
        expected="`, {...}` or `]`",
        found=found,
        next_step="nothing was written; fetch the file again, or mend it",
    )


def _text_blocks(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    end = 0
    begun = False
    blocks = _blocks(path)
    while True:
        block = next(blocks, b"")
        end += len(block)
        try:
            text = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            at = end - len(error.object) + error.start
            raise SourceError(
                "the file is not UTF-8",
                where=f"{path.name}, byte {at}",
                found=f"byte 0x{error.object[error.start]:02x}",
                next_step="write the file again as UTF-8",
            ) from error
        yield text if begun else text.removeprefix("\ufeff")
        begun = begun or bool(text)
        if not block:
            return


def _kind(value: Any) -> str:
    names = {
        list: "an array",
        str: "a string",
        type(None): "null",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return names[type(value)]
