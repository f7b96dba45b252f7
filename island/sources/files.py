"""Follow one file that an agent writes: bytes in, records out. Never writes, decides nothing, knows no clock.

A file is opened for reading, briefly, and closed before a look returns. Three kinds of file:

* `Follower`: a log that grows at its end. It is read by byte offset, so the work is the bytes appended.
* `Document`: a small file that is written anew as a whole.
* `Presence`: a file that says something by being there; it is never opened.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from typing import NamedTuple

from island.model import Record

BLOCK = 64 * 1024  # of a backwards read: smaller costs more calls, larger reads more than is wanted
MARK = 1024  # bytes remembered at either end of what was seen, to notice a rewrite in place
BACKLOG = 16 * 1024 * 1024  # more than this at once is read backwards, as at first sight
DOCUMENT = 32 * 1024 * 1024  # a whole history may be one document; so much is parsed in a tenth of a second


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at a file found.

    records: what is new, oldest first; restart: forget what this file said before, and read it backwards;
    gone: it is not there; error: why it could not be read, in plain words.
    """

    records: tuple[Record, ...] = ()
    restart: bool = False
    gone: bool = False
    error: str = ""


class Stamp(NamedTuple):
    """What changes when a file does, as far as the system tells without reading it."""

    device: int
    inode: int
    size: int
    mtime_ns: int


class _Place(NamedTuple):
    """Where a follower stands: everything up to `seen` was looked at, whole lines end at `offset`."""

    device: int
    inode: int
    offset: int
    seen: int
    mark: int
    mtime: float


if sys.platform == "win32":
    import _winapi
    import msvcrt

    def _open(path: str, _flags: int) -> int:
        """Open so that the writer may still rename or delete the file, which os.open would forbid."""
        share = 0x1 | 0x2 | 0x4  # read, write, delete
        null, opening = _winapi.NULL, _winapi.OPEN_EXISTING
        handle = _winapi.CreateFile(path, _winapi.GENERIC_READ, share, null, opening, 0, null)
        return msvcrt.open_osfhandle(handle, os.O_RDONLY)
else:

    def _open(path: str, flags: int) -> int:
        """Open without waiting: a pipe in the place of a file must not hold island up."""
        return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def stamp(path: str, *, by_opening: bool = sys.platform == "win32") -> Stamp | None:
    """Return the file's stamp, or None if it cannot be had.

    Windows keeps the folder's copy of size and time stale while a writer holds the file open; opening
    the file refreshes it. Elsewhere stat is exact, and opening would only cost.
    """
    try:
        if not by_opening:
            return _stamp(os.stat(path))
        with _reading(path) as (_, status):
            return _stamp(status)
    except OSError:
        return None


def _stamp(status: os.stat_result) -> Stamp:
    return Stamp(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@contextmanager
def _reading(path: str) -> Iterator[tuple[FileIO, os.stat_result]]:
    with open(path, "rb", buffering=0, opener=_open) as file:
        yield file, os.fstat(file.fileno())


def beginning(path: str, size: int) -> bytes:
    """Return the first bytes of a file; none if it is not there, or may not be read."""
    try:
        with _reading(path) as (file, _):
            return file.read(size)
    except OSError:
        return b""


def _look(path: str, take: Callable[[FileIO, os.stat_result], Look]) -> Look:
    """Open, let `take` read, close; what goes wrong becomes part of the look."""
    try:
        with _reading(path) as (file, status):
            return take(file, status) if stat.S_ISREG(status.st_mode) else Look(error="not a regular file")
    except OSError as error:
        return _missed(error)


def _missed(error: OSError) -> Look:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return Look(gone=True)
    return Look(error=(error.strerror or str(error)).lower())


def _read(file: FileIO, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size) if size > 0 else b""


class Follower:
    """A file of lines that grows at its end.

    A line counts once its newline is there. Whatever was seen must still be there at the next look: if
    the file was replaced, cut (even by part of a line) or rewritten in place, the look says `restart`.
    """

    def __init__(self, path: str, *, block: int = BLOCK, backlog: int = BACKLOG) -> None:
        self.path = path
        self._block = block
        self._backlog = backlog
        self._place: _Place | None = None

    def look(self) -> Look:
        """Return the whole lines added since the last look.

        At first sight and on restart there are none: what the caller wants of the lines that are there,
        it reads with `backwards`; the next look goes on behind them.
        """
        look = _look(self.path, self._take)
        if look.gone:
            self._place = None
        return look

    def backwards(self) -> Iterator[Record]:
        """Yield the whole lines up to the last look, newest first, reading no more than is asked for."""
        later: list[bytes] = []  # of the line whose start is not read yet: joined once, or it is quadratic
        end = self._place.offset if self._place else 0
        while end:
            start = max(0, end - self._block)
            block = self._again(start, end - start)
            if len(block) < end - start:
                return  # replaced or cut meanwhile: the next look says so
            first, *rest = block.split(b"\n")
            for part in reversed(rest):
                end -= len(part) + 1
                yield from self._lines(b"".join([part, *reversed(later)]), end + 1)
                later = []
            later.append(first)
            end = start
        yield from self._lines(b"".join(reversed(later)), 0)

    def head(self) -> Record | None:
        """Return the first line, if the last look saw it whole."""
        pieces: list[bytes] = []
        end = self._place.offset if self._place else 0
        for start in range(0, end, self._block):
            block = self._again(start, min(self._block, end - start))
            first, newline, _ = block.partition(b"\n")
            pieces.append(first)
            if newline:
                return next(self._lines(b"".join(pieces), 0), None)
        return None

    def _take(self, file: FileIO, status: os.stat_result) -> Look:
        place, size = self._place, status.st_size
        if place is None or place[:2] != (status.st_dev, status.st_ino):
            return self._restart(file, status)
        if size - place.seen > self._backlog:
            return self._restart(file, status)
        start = max(0, place.seen - MARK)
        head, recent = _read(file, 0, MARK), _read(file, start, size - start)
        old, fresh = recent[: place.seen - start], recent[place.seen - start :]
        if place.mark != _mark(head[: place.seen], old):  # rewritten, or cut: then `old` is too short
            return self._restart(file, status)
        whole = fresh.rfind(b"\n") + 1
        torn = _read(file, place.offset, place.seen - place.offset) if whole else b""
        seen = place.seen + len(fresh)
        self._place = place._replace(
            offset=place.seen + whole if whole else place.offset,
            seen=seen,
            mark=_mark(head[:seen], recent[-MARK:]),
            mtime=status.st_mtime,
        )
        return Look(tuple(self._lines(torn + fresh[:whole], place.offset)))

    def _restart(self, file: FileIO, status: os.stat_result) -> Look:
        size = status.st_size
        mark = _mark(_read(file, 0, MARK)[:size], _read(file, max(0, size - MARK), min(size, MARK)))
        offset = _end_of_lines(file, size, self._block)
        self._place = _Place(status.st_dev, status.st_ino, offset, size, mark, status.st_mtime)
        return Look(restart=True)

    def _again(self, start: int, size: int) -> bytes:
        """Read from the file that was looked at, opened anew: an idle iterator holds no file open."""
        try:
            with _reading(self.path) as (file, status):
                known = self._place and self._place[:2] == (status.st_dev, status.st_ino)
                return _read(file, start, size) if known else b""
        except OSError:
            return b""

    def _lines(self, data: bytes, offset: int) -> Iterator[Record]:
        mtime = self._place.mtime if self._place else 0.0
        for line in data.split(b"\n"):
            if line.strip():
                yield Record(self.path, line.rstrip(b"\r"), offset, mtime)
            offset += len(line) + 1


def _mark(head: bytes, tail: bytes) -> int:
    return hash((head, tail))


def _end_of_lines(file: FileIO, size: int, block: int) -> int:
    """Return the offset behind the last newline: what follows is a line still being written."""
    while size:
        start = max(0, size - block)
        newline = _read(file, start, size - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        size = start
    return 0


class Document:
    """A small file that is written anew as a whole, perhaps in place.

    A reader may find it empty or cut, as its writer is at work. Empty says nothing, and gives no record;
    of one that is cut, the agent's reader must say so.
    """

    def __init__(self, path: str, *, most: int = DOCUMENT) -> None:
        self.path = path
        self._most = most
        self._seen: tuple[Stamp, int] | None = None

    def look(self) -> Look:
        """Return the whole content as one record if the file was touched since the last look."""
        look = _look(self.path, self._take)
        if look.gone:
            self._seen = None
        return look

    def _take(self, file: FileIO, status: os.stat_result) -> Look:
        if status.st_size > self._most:
            return Look(error="too large")
        data = _read(file, 0, status.st_size)
        # The content too: one size and one tick of the file system's clock can hold two versions.
        last, self._seen = self._seen, (_stamp(status), hash(data))
        if not data or self._seen == last:
            return Look()
        return Look((Record(self.path, data, 0, status.st_mtime),))


class Presence:
    """A file that says something by being there. Only its place in the folder is looked at."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: Stamp | None = None

    def look(self) -> Look:
        """Return an empty record if the file came or was touched since the last look."""
        try:
            status = os.stat(self.path)
        except OSError as error:
            self._seen = None
            return _missed(error)
        last, self._seen = self._seen, _stamp(status)
        return Look() if self._seen == last else Look((Record(self.path, b"", 0, status.st_mtime),))
