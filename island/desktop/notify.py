"""What every notifier offers, and the choice of one. Must not decide when or with what to interrupt."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Protocol

from island.notices import Notice
from island.text import safe

#: Called in the event loop with a notice's key and the action that the user chose on it.
OnNoticeAction = Callable[[str, str], None]

#: Shows a title and a text at the icon in the tray.
Balloon = Callable[[str, str], None]

#: Actions on a notice. An observer never answers for the user, so there is no other.
SHOW, MUTE = "show", "mute"
BUTTONS: Mapping[str, str] = {SHOW: "Show", MUTE: "Mute"}

#: A word that island itself has for the user, which is about no session.
WORD = "island/word"

TITLE_WIDTH, BODY_WIDTH = 80, 200
MOST_LINES = 6


def lines(body: str) -> str:
    """Return a notice's body made safe, line by line: a merged one names each session on its own."""
    return "\n".join(safe(line, BODY_WIDTH) for line in body.strip().splitlines()[:MOST_LINES])


def actions(notice: Notice) -> tuple[str, ...]:
    """Return what can be done on a notice: a merged one shows its first session, and mutes none of the many."""
    if notice.key == WORD:
        return ()
    return (SHOW, MUTE) if len(notice.sessions) < 2 else (SHOW,)


class Health(StrEnum):
    """Whether notices reach the user."""

    READY = "ready"
    SHOW_ONLY = "show-only"  # shown, but neither clicks nor withdrawal work
    REFUSED = "refused"  # the user or the system forbids it
    NO_DAEMON = "no-daemon"
    NO_BUS = "no-bus"


class Notifier(Protocol):
    """Shows notices. Nothing here raises: a notice is never worth a crash."""

    @property
    def health(self) -> Health:
        """Whether notices reach the user."""

    async def start(self) -> None:
        """Look for whatever shows notices; does not wait for it."""

    async def show(self, notice: Notice) -> None:
        """Show a notice, in the place of the one with the same key if that is still up."""

    async def withdraw(self, key: str) -> None:
        """Take the notice away, if it is still up."""

    async def stop(self) -> None:
        """Take all notices away."""


def open_notifier(on_action: OnNoticeAction, balloon: Balloon | None = None) -> Notifier:
    """Return the notifier of this desktop; balloon: what the tray can do itself, where nothing better works."""
    if sys.platform in {"darwin", "win32"}:
        from island.desktop.portable import PortableNotifier

        return PortableNotifier(on_action, balloon)
    from island.desktop.freedesktop import FreedesktopNotifier

    return FreedesktopNotifier(on_action)
