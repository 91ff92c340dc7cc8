"""Write recipe.yaml and card.yaml of a run: the folder is whole or not there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from databuild.errors import OutputError
from databuild.rows import sync

FILES = ("card.yaml", "recipe.yaml")


def write_folder(out: Path, texts: Mapping[str, str], *, overwrite: bool) -> None:
    """Write texts by file name into out. OutputError if out is taken, or if it cannot be written.

    overwrite: replaces a folder that holds nothing but such files.
    """
    if os.path.lexists(out):
        names = sorted(entry.name for entry in out.iterdir()) if out.is_dir() and not out.is_symlink() else None
        foreign = names is None or not set(names) <= set(FILES)
        if foreign or (names and not overwrite):
            raise OutputError(
                "the output is taken",
                where=str(out),
                found=", ".join((names or [])[:8]) or "no folder",
                next_step="choose another --out" if foreign else "--overwrite replaces it",
            )
    partial = out.with_name(out.name + ".partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, text in texts.items():
            (partial / name).write_text(text, encoding="utf-8")
            sync(partial / name)
        sync(partial)
        if out.exists():
            shutil.rmtree(out)
        os.rename(partial, out)
        sync(out.parent)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise OutputError("cannot write", where=str(out), found=error.strerror or str(error)) from error
