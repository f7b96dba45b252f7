"""One island at a time: a lock in the state folder. Shell."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import platformdirs


class RunsAlreadyError(Exception):
    """Another island of this user runs."""


class LockError(Exception):
    """The lock cannot be made: where, and why."""


def lock_path() -> Path:
    """Return where the lock lies: in the state folder, which is the same for every kind of login."""
    return platformdirs.user_state_path("island", appauthor=False) / "lock"


def runs() -> bool:
    """Tell whether an island runs, and change nothing. Raise LockError if none could."""
    if not os.path.lexists(lock_path()):
        _look_for_room(lock_path().parent)
        return False
    try:
        with Instance():
            return False
    except RunsAlreadyError:
        return True


def _look_for_room(folder: Path) -> None:
    """Raise LockError if nothing could be written into a folder, or it could not be made."""
    there = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not there.is_dir():
        raise LockError(f"its lock cannot be made in {folder}: {there} is no folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise LockError(f"its lock cannot be made in {folder}: {there} may not be written into")


class Instance:
    """Holds the lock for as long as the block runs. The system frees it whatever ends the process."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or lock_path()
        self._file = -1

    def __enter__(self) -> Self:
        """Take the lock. Raise RunsAlreadyError if it is held."""
        with contextlib.suppress(OSError):  # what is wrong with the folder is told by what follows
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LockError(f"its lock cannot be made: {error}") from error
        try:
            _lock(self._file)
        except OSError as error:
            os.close(self._file)
            if isinstance(error, BlockingIOError | PermissionError):  # as POSIX and Windows say "held"
                raise RunsAlreadyError from None
            raise LockError(f"its lock cannot be taken: {error}") from error
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Let go of the lock; the file stays, removing it would race with the next."""
        os.close(self._file)


if sys.platform == "win32":
    import ctypes
    import msvcrt

    def _lock(file: int) -> None:
        """Lock the first byte. msvcrt.locking would do the same, but not every C library then says what is wrong."""
        system = ctypes.WinDLL("kernel32", use_last_error=True)
        if not system.LockFile(ctypes.c_void_p(msvcrt.get_osfhandle(file)), 0, 0, 1, 0):
            raise ctypes.WinError(ctypes.get_last_error())
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
