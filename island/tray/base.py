"""What every tray backend offers, and the choice of one. Must not import a platform before it is chosen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from enum import StrEnum
from typing import Any, Protocol

from island.tray.menu import TrayModel

#: Called in the event loop with the key of the row or action that the user chose.
OnAction = Callable[[str], None]
Work = Callable[[], Coroutine[Any, Any, int]]


class Health(StrEnum):
    """Whether the user can see the icon."""

    SHOWN = "shown"
    WAITING_FOR_HOST = "waiting-for-host"
    NO_BUS = "no-bus"


class Tray(Protocol):
    """One icon with its menu. It goes on through the loss of whatever shows it."""

    @property
    def health(self) -> Health:
        """Whether the icon is on the screen."""

    def run(self, work: Work) -> int:
        """Run `work` in an event loop to its end, with what this desktop demands of the main thread."""

    async def start(self) -> None:
        """Begin to show the icon; does not wait until it is shown."""

    async def stop(self) -> None:
        """Take the icon away."""

    def apply(self, model: TrayModel) -> None:
        """Show this from now on. Call it in the event loop, as often as you like."""


def open_tray(on_action: OnAction) -> Tray:
    """Return the tray of this desktop."""
    if sys.platform in {"darwin", "win32"}:
        from island.tray.pystray_backend import PystrayTray

        return PystrayTray(on_action)
    from island.tray.sni import SniTray

    return SniTray(on_action)
