"""One island at a time: a lock in the runtime folder. Shell."""

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
    """Return where the lock lies: in the runtime folder, or where there is none, in the state folder."""
    if not sys.platform.startswith("linux") or _is_ours(os.environ.get("XDG_RUNTIME_DIR", "")):
        with contextlib.suppress(OSError):
            return platformdirs.user_runtime_path("island", ensure_exists=True) / "lock"
    folder = platformdirs.user_state_path("island")
    with contextlib.suppress(OSError):  # what is wrong with the folder is told when the lock is taken
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "lock"


def _is_ours(folder: str) -> bool:
    """Tell whether a runtime folder is what the standard says: there, of this user, and closed to others."""
    if sys.platform == "win32":
        return True
    with contextlib.suppress(OSError):
        status = Path(folder).stat() if folder else None
        return status is not None and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return False


class Instance:
    """Holds the lock for as long as the block runs. The system frees it whatever ends the process."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or lock_path()
        self._file = -1

    def __enter__(self) -> Self:
        """Take the lock. Raise RunsAlreadyError if it is held."""
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LockError(f"its lock cannot be made: {error}") from error
        try:
            _lock(self._file)
        except OSError:
            os.close(self._file)
            raise RunsAlreadyError from None
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        """Let go of the lock; the file stays, removing it would race with the next."""
        os.close(self._file)


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
