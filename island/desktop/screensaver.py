"""The lock of the screen on desktops that tell it over the session bus: as screensavers once did. Shell."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from dbus_fast import Message
from dbus_fast.aio import MessageBus

from island.desktop.away import OnAway
from island.desktop.bus import BUS, BusError, Peer, call, keep, listen, owner

#: Who locks screens: KDE and others, GNOME, Cinnamon, MATE, Xfce.
LOCKERS = tuple(Peer(name, path, name) for name, path in (
    ("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver"), ("org.freedesktop.ScreenSaver", "/ScreenSaver"),
    ("org.gnome.ScreenSaver", "/org/gnome/ScreenSaver"), ("org.cinnamon.ScreenSaver", "/org/cinnamon/ScreenSaver"),
    ("org.mate.ScreenSaver", "/org/mate/ScreenSaver"), ("org.xfce.ScreenSaver", "/org/xfce/ScreenSaver"),
))


class ScreensaverAway:
    """Follows all lockers there are, through any restart of them or of the bus."""

    def __init__(self, on_away: OnAway) -> None:
        self._on_away = on_away
        self._active: set[Peer] = set()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to follow them."""
        self._task = asyncio.create_task(keep(self._serve), name="away")

    async def stop(self) -> None:
        """Follow them no more."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _serve(self, bus: MessageBus) -> None:
        try:
            for peer in LOCKERS:
                await listen(bus, peer, "ActiveChanged", partial(self._told, peer))
                await listen(bus, BUS, "NameOwnerChanged", partial(self._went, peer), peer.name)
                if await owner(bus, peer.name):
                    with suppress(BusError):  # it has no such object, or answers nobody
                        self._set(peer, bool((await call(bus, peer, "GetActive"))[0]))
            await asyncio.Event().wait()
        finally:
            for peer in LOCKERS:
                self._set(peer, active=False)

    def _told(self, peer: Peer, message: Message) -> None:
        self._set(peer, bool(message.body[0]))

    def _went(self, peer: Peer, _: Message) -> None:
        self._set(peer, active=False)  # what comes in its place says so when it locks

    def _set(self, peer: Peer, active: bool) -> None:
        before = bool(self._active)
        (self._active.add if active else self._active.discard)(peer)
        if bool(self._active) != before:
            self._on_away(not before)
