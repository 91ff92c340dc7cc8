"""Which files of a dataset repository make up a split, and in which order. Pure: names in, names out.

Order of the answer: for each pattern of the card in the card's order, or once for the default layouts, the matching
names in natural order (`part-2` before `part-10`); a name is taken once. Sharded names of equal width sort the same
either way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from databuild.errors import SourceError

PARQUET_SUFFIXES = (".parquet",)
JSONL_SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.zst")
DATA_SUFFIXES = PARQUET_SUFFIXES + JSONL_SUFFIXES
#: What the hub's own libraries take for each split where a card says nothing.
SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
_WORD_BREAK = re.compile(r"[-._ 0-9]+")
_SHARDED = re.compile(r"data/(?P<split>.+)-\d{5}-of-\d{5}[^/]*")
_SHARD_OF = re.compile(r"(?P<stem>.*)-(?P<index>\d{5})-of-(?P<total>\d{5})(?P<rest>[^/]*)")
_MAX_LISTED = 12


def natural_order(names: Iterable[str]) -> list[str]:
    """Sort names so that numbers in them count as numbers; equal in that sense, then by code point."""
    from natsort import natsorted

    return natsorted(sorted(set(names)))


def is_safe_name(name: str) -> bool:
    """Whether a repository path stays below any folder it is joined to, on every system, and is printable."""
    parts = name.split("/")
    return (
        name.isprintable()
        and "\\" not in name
        and not any(part in ("", ".", "..") for part in parts)
        and re.match(r"[A-Za-z]:", name) is None
        and len(name) <= 1024
    )


def check_names(names: Iterable[str], *, dataset: str) -> None:
    """Refuse names that could leave the cache folder; they come from the other side of the network."""
    for name in names:
        if not is_safe_name(name):
            raise SourceError(
                f"{dataset} holds a file name that is not safe to write: {name[:200]!r}",
                where=dataset,
                expected="a relative path without '..', empty parts, backslashes or control characters",
                next_step="use another dataset or revision; nothing was downloaded",
            )


def matches(name: str, pattern: str) -> bool:
    """Whether a path matches a card's glob: `*` and `?` within one part of the path, `**` for any number of parts."""
    if name == pattern:
        return True
    if _is_hidden(name):
        return False
    globs = pattern.split("/")
    reached = {0}  # positions in globs that can be next
    for part in name.split("/"):
        reached = _skip_any_depth(reached, globs)
        reached = {at if globs[at] == "**" else at + 1 for at in reached if at < len(globs) and _fits(part, globs[at])}
    return len(globs) in _skip_any_depth(reached, globs)


def _skip_any_depth(reached: set[int], globs: Sequence[str]) -> set[int]:
    found = set(reached)
    for at in sorted(reached):
        while at < len(globs) and globs[at] == "**":
            at += 1
            found.add(at)
    return found


def _fits(part: str, glob: str) -> bool:
    return glob == "**" or fnmatchcase(part, glob)


def _is_hidden(name: str) -> bool:
    parts = [part for part in name.split("/") if part not in (".", "..")]  # those are for check_names to refuse
    return any(part.startswith(".") for part in parts) or any(part.startswith("__") for part in parts[:-1])


def split_files(names: Iterable[str], *, split: str, card: Mapping[str, Any], dataset: str) -> list[str]:
    """Return the data files of a split in reading order; SourceError lists what there is when there are none.

    The card's `configs:` decide when it has them (the default configuration, or the only one); otherwise the usual
    layouts: `data/SPLIT-00000-of-00001.parquet`, a folder named after the split, a file named after it, or, for train
    alone, every data file.
    """
    everything = [name for name in names if not name.endswith("/")]
    configs = card.get("configs")
    if isinstance(configs, list) and configs:
        by_split, prefix = _card_patterns(configs, dataset=dataset)
    else:
        by_split, prefix = None, ""
    if by_split is None:
        below = [name[len(prefix) :] for name in everything if name.startswith(prefix)]
        layout = _default_layout([name for name in below if name.endswith(DATA_SUFFIXES) and not _is_hidden(name)])
        chosen = [prefix + name for name in layout.get(split, [])]
        known = sorted(layout)
    else:
        chosen = []
        for pattern in by_split.get(split, []):
            chosen += [
                name for name in natural_order(n for n in everything if matches(n, pattern)) if name not in chosen
            ]
        known = sorted(by_split)
    data = [name for name in chosen if name.endswith(DATA_SUFFIXES)]
    if not data:
        raise SourceError(
            f"{dataset} has no {' or '.join(DATA_SUFFIXES)} files for split {split!r}",
            where=dataset,
            expected=f"splits found: {_listed(known)}",
            found=f"files: {_listed(chosen or everything)}",
            next_step="name a split that is there (hf:NAME@REVISION:SPLIT), or download the data and use --source PATH",
        )
    if any(name.endswith(PARQUET_SUFFIXES) for name in data) and any(name.endswith(JSONL_SUFFIXES) for name in data):
        raise SourceError(
            f"split {split!r} of {dataset} mixes parquet and jsonl files",
            where=dataset,
            found=_listed(data),
            next_step="download the files of one kind and use --source PATH",
        )
    check_names(data, dataset=dataset)
    return data


def missing_shards(names: Iterable[str]) -> list[str]:
    """Return the names that `-00000-of-00003` style names say should be there too."""
    present = set(names)
    wanted: set[str] = set()
    for match in filter(None, map(_SHARD_OF.fullmatch, present)):
        total = match["total"]
        wanted |= {f"{match['stem']}-{index:05d}-of-{total}{match['rest']}" for index in range(int(total))}
    return natural_order(wanted - present)


def _card_patterns(configs: list[Any], *, dataset: str) -> tuple[dict[str, list[str]] | None, str]:
    """Return (patterns by split, None when the card leaves them to the layout; the folder of the layout)."""
    config = _default_config([config for config in configs if isinstance(config, Mapping)], dataset=dataset)
    folder = config.get("data_dir")
    prefix = f"{_plain(folder)}/" if isinstance(folder, str) and _plain(folder) else ""
    data_files = config.get("data_files")
    if not data_files:
        return None, prefix
    by_split: dict[str, list[str]] = {}
    if isinstance(data_files, Mapping):
        entries = [{"split": key, "path": value} for key, value in data_files.items()]
    else:
        entries = data_files if isinstance(data_files, list) else [data_files]
    for entry in entries:
        named = isinstance(entry, Mapping)
        paths = entry.get("path") if named else entry
        paths = paths if isinstance(paths, list) else [paths]
        for path in paths:
            if not isinstance(path, str) or "://" in path:
                raise SourceError(
                    f"the card of {dataset} names data files in a way that is not read here",
                    where=f"{dataset}, README.md, configs",
                    expected="paths or patterns within the repository",
                    found=repr(path)[:200],
                    next_step="download the files of the split and use --source PATH",
                )
            split = str(entry.get("split", "train")) if named else "train"
            by_split.setdefault(split, []).append(prefix + _plain(path))
    return by_split, prefix


def _default_config(configs: list[Mapping[str, Any]], *, dataset: str) -> Mapping[str, Any]:
    if len(configs) == 1:
        return configs[0]
    for config in configs:
        if config.get("default") is True:
            return config
    for config in configs:
        if config.get("config_name") == "default":
            return config
    raise SourceError(
        f"{dataset} has {len(configs)} configurations and its card makes none of them the default",
        where=f"{dataset}, README.md, configs",
        found=_listed(str(config.get("config_name")) for config in configs),
        next_step="download the files of the one you want and use --source PATH",
    )


def _plain(path: str) -> str:
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _default_layout(names: list[str]) -> dict[str, list[str]]:
    """Return the files of each split where the card does not say: the first layout that any file follows."""
    sharded = [(match["split"], name) for name in names if (match := _SHARDED.fullmatch(name))]
    if sharded:
        return _grouped(sharded)
    for words_of in (_folder_words, _file_words):
        found = [(split, name) for name in names for split in SPLIT_WORDS if words_of(name) & set(SPLIT_WORDS[split])]
        if found:
            return _grouped(found)
    return {"train": natural_order(names)} if names else {}


def _folder_words(name: str) -> set[str]:
    return {word for folder in name.split("/")[:-1] for word in (folder, *_WORD_BREAK.split(folder))}


def _file_words(name: str) -> set[str]:
    # The last word is the suffix: a file must go on after the split's name.
    return set(_WORD_BREAK.split(name.rsplit("/", 1)[-1])[:-1])


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for split, name in pairs:
        groups.setdefault(split, []).append(name)
    return {split: natural_order(names) for split, names in groups.items()}


def _listed(names: Iterable[str]) -> str:
    shown = [name if name.isprintable() else ascii(name) for name in names]
    if not shown:
        return "none"
    more = f", and {len(shown) - _MAX_LISTED} more" if len(shown) > _MAX_LISTED else ""
    return ", ".join(name[:120] for name in shown[:_MAX_LISTED]) + more
