"""Whether the screen is locked: then nobody looks at it, and what comes is told when somebody does again. Shell."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

log = logging.getLogger(__name__)

#: Called in the event loop whenever the screen is locked or unlocked.
OnAway = Callable[[bool], None]

#: Seconds between looks, where the system tells nobody.
POLL = 2.0

DESKTOP_SWITCHDESKTOP = 0x0100


class Away(Protocol):
    """Follows the lock of the screen. What cannot be known is not locked: a notice too many is better than none."""

    async def start(self) -> None:
        """Begin to follow it."""

    async def stop(self) -> None:
        """Follow it no more."""


def open_away(on_away: OnAway) -> Away:
    """Return what follows the lock on this desktop."""
    if sys.platform == "darwin":
        return PolledAway(on_away, locked_on_macos)
    if sys.platform == "win32":
        return PolledAway(on_away, locked_on_windows)
    from island.desktop.screensaver import ScreensaverAway

    return ScreensaverAway(on_away)


class PolledAway:
    """The lock of a system that has to be asked."""

    def __init__(self, on_away: OnAway, locked: Callable[[], bool], every: float = POLL) -> None:
        self._on_away = on_away
        self._locked = locked
        self._every = every
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to ask."""
        self._task = asyncio.create_task(self._ask(), name="away")

    async def stop(self) -> None:
        """Ask no more."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _ask(self) -> None:
        before = False
        while True:
            try:
                now = self._locked()
            except Exception:  # what a system answers for once is not worth a crash, nor to ask for ever
                log.exception("the lock of the screen cannot be told")
                now = False
            if now != before:
                before = now
                self._on_away(now)
            await asyncio.sleep(self._every)


def locked_on_macos() -> bool:
    """Tell whether the session's screen is locked. Without a session on the screen, nobody looks either."""
    quartz: Any = import_module("Quartz")
    session = quartz.CGSessionCopyCurrentDictionary()
    return session is None or bool(session.get("CGSSessionScreenIsLocked", False))


def locked_on_windows() -> bool:
    """Tell whether the input belongs to a desktop that we may not open: that of the lock."""
    ctypes: Any = import_module("ctypes")
    user32 = ctypes.WinDLL("user32")
    user32.OpenInputDesktop.restype = ctypes.c_void_p
    desktop = user32.OpenInputDesktop(0, False, DESKTOP_SWITCHDESKTOP)
    if not desktop:
        return True
    user32.CloseDesktop(ctypes.c_void_p(desktop))
    return False
