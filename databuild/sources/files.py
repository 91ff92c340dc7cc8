"""`--source PATH…`: parquet and JSON files, or directories of them, in a stated order."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from natsort import natsort_keygen, ns

from databuild.errors import SourceError
from databuild.sources.columns import ColumnMap
from databuild.sources.spooled import SUFFIXES, LocalFile, SpooledSource, spool_files
from masks.parse import has_lone_surrogate

# Natural order of names (part2 before part10) by code point: no locale decides, and the name itself breaks ties.
_natural = natsort_keygen(alg=ns.INT | ns.NUMAFTER)


def find_files(paths: Sequence[str]) -> list[tuple[Path, str]]:
    """(path, name) of each file: paths in the order given, a directory's files in natural order of their names.

    A file's name is its base name; in a directory, its path below it. Hidden files and files of other types in a
    directory are passed over; a path that was named must be readable and of a known type.
    """
    found: list[tuple[Path, str]] = []
    for text in paths:
        path = Path(text)
        if os.path.isdir(text):
            inside = [(file, file.relative_to(path).as_posix()) for file in _below(path)]
            if not inside:
                raise SourceError(
                    "the directory has no file to read",
                    where=text,
                    expected=f"files that end in {', '.join(SUFFIXES)}",
                    found=", ".join(sorted(entry.name for entry in path.iterdir())[:8]) or "an empty directory",
                )
            found += sorted(inside, key=lambda item: (_natural(item[1]), item[1]))
        elif not os.path.exists(text):
            raise SourceError(
                "there is no such file or directory",
                where=text,
                next_step="a source is tulu3, demo, hf:NAME[@REVISION][:SPLIT], or a path",
            )
        elif not path.name.endswith(SUFFIXES):
            raise SourceError(
                "the file is of no type that can be read",
                where=text,
                expected=f"a name that ends in {', '.join(SUFFIXES)}",
            )
        else:
            found.append((path, path.name))
    _refuse_unreadable(found)
    _refuse_twice(found)
    return found


def open_files(
    paths: Sequence[str], *, folder: Path, mapping: ColumnMap | None, say: Callable[[str], None]
) -> SpooledSource:
    """The source of `--source PATH…`. Digests are taken before anything is parsed."""
    files = [LocalFile.of(path, name) for path, name in find_files(paths)]
    return spool_files(files, folder=folder, mapping=mapping, say=say, kind="files")


def _below(folder: Path) -> list[Path]:
    """Files of known types in a directory, at any depth; what is hidden, and directories behind links, are not entered."""

    def refuse(error: OSError) -> None:
        raise SourceError("a directory cannot be read", where=str(error.filename), found=error.strerror) from error

    files = []
    for base, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(base, name) for name in names if name.endswith(SUFFIXES) and not name.startswith(".")]
    return files


def _refuse_unreadable(found: list[tuple[Path, str]]) -> None:
    for path, name in found:
        if not os.path.isfile(path):  # a link to nothing, a pipe: leaving it out would make another source
            raise SourceError("this is not a file that can be read", where=ascii(str(path)))
        if has_lone_surrogate(name):
            raise SourceError("the name of a file is not UTF-8", where=ascii(name), next_step="rename the file")


def _refuse_twice(found: list[tuple[Path, str]]) -> None:
    seen: dict[str, str] = {}
    for path, name in found:
        real = os.path.realpath(path)
        if real in seen:
            raise SourceError("a file is given twice", where=f"{seen[real]} and {name}", next_step="name it once")
        seen[real] = name
