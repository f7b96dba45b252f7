"""The full look: which files match the agents' patterns now. Opens no file, keeps nothing, decides nothing.

A pattern is an absolute path whose parts may hold `*`, `?` and `[...]`. A `*` never crosses a folder, so the
depth is bounded and a loop of links ends. Write a home folder with `glob.escape`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate
from functools import lru_cache, partial
from glob import has_magic
from math import inf
from pathlib import PurePath
from typing import NamedTuple


class Found(NamedTuple):
    """One file as the sweep saw it."""

    path: str
    mtime: float
    size: int


class _Level:
    """What is wanted in one folder. The patterns are merged, so a folder is listed once for all of them."""

    def __init__(self, patterns: Iterable[Sequence[str]]) -> None:
        files: set[str] = set()
        folders: dict[str, list[Sequence[str]]] = {}
        for name, *rest in patterns:
            if rest:
                folders.setdefault(name, []).append(rest)
            else:
                files.add(name)
        levels = {name: _Level(rests) for name, rests in folders.items()}
        self.file_names = {name for name in files if not has_magic(name)}
        self.file_matches = [_match(name) for name in files if has_magic(name)]
        self.folder_names = {name: level for name, level in levels.items() if not has_magic(name)}
        self.folder_matches = [(_match(name), level) for name, level in levels.items() if has_magic(name)]

    def admits(self, parts: Sequence[str]) -> bool:
        """Say whether the path with these parts is wanted."""
        name, *rest = parts
        if not rest:
            return name in self.file_names or any(match(name) for match in self.file_matches)
        named = self.folder_names.get(name)
        return (named is not None and named.admits(rest)) or any(
            level.admits(rest) for match, level in self.folder_matches if match(name)
        )


def _match(pattern: str) -> Callable[[str], re.Match[str] | None]:
    return re.compile(translate(pattern)).match


@lru_cache(maxsize=16)  # the agents' patterns are the same at every sweep
def _plan(patterns: tuple[str, ...]) -> _Level:
    return _Level(PurePath(pattern).parts for pattern in patterns)


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that says whether `sweep` with these patterns would find a file at a path."""
    plan = _plan(tuple(patterns))

    @lru_cache(maxsize=4096)  # hints name the same few files again and again
    def matches(path: str) -> bool:
        return plan.admits(PurePath(path).parts)

    return matches


def sweep(
    patterns: Iterable[str],
    newer_than: float = -inf,
    onerror: Callable[[OSError], object] | None = None,
) -> list[Found]:
    """Return the files that match and were modified after `newer_than`, each once, in no order.

    A missing folder holds nothing. One that cannot be read is told to `onerror`, and the rest goes on.
    On Windows, size and time of a file that is held open may be stale: see `files.stamp`.
    """
    found: list[Found | None] = []
    folders = [("", _plan(tuple(patterns)))]
    while folders:
        folder, level = folders.pop()
        folders += [(os.path.join(folder, name), below) for name, below in level.folder_names.items()]
        paths = [os.path.join(folder, name) for name in level.file_names]
        found += [_file(path, partial(os.stat, path), newer_than) for path in paths]
        entries = _entries(folder, onerror) if level.file_matches or level.folder_matches else []
        for match in level.file_matches:
            found += [_file(entry.path, entry.stat, newer_than) for entry in entries if match(entry.name)]
        for match, below in level.folder_matches:
            folders += [(entry.path, below) for entry in entries if _is_folder(entry) and match(entry.name)]
    return list({file.path: file for file in found if file}.values())


def _entries(folder: str, onerror: Callable[[OSError], object] | None) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if onerror:
            onerror(error)
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to where we may not look
        return False


def _file(path: str, status_of: Callable[[], os.stat_result], newer_than: float) -> Found | None:
    try:
        status = status_of()
    except OSError:  # it went away, or is a link to nowhere
        return None
    wanted = stat.S_ISREG(status.st_mode) and status.st_mtime > newer_than
    return Found(path, status.st_mtime, status.st_size) if wanted else None
