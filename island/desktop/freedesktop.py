"""Notices on desktops with a freedesktop notification daemon: Linux and its kin. Must not raise."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from dbus_fast import Message, Variant
from dbus_fast.aio import MessageBus

from island.desktop.bus import BUS, BusError, Peer, call, keep, listen, owner
from island.desktop.notify import BUTTONS, SHOW, TITLE_WIDTH, Health, OnNoticeAction, actions, lines
from island.manner import Sound, Urgency
from island.notices import Notice
from island.text import markup, safe
from island.tray.face import face_of
from island.tray.icon import draw

log = logging.getLogger(__name__)

_NAME = "org.freedesktop.Notifications"
DAEMON = Peer(_NAME, "/org/freedesktop/Notifications", _NAME)

#: Our words in the daemon's numbers, and in the names of the freedesktop sound theme.
URGENCIES: Mapping[Urgency, int] = {Urgency.LOW: 0, Urgency.NORMAL: 1, Urgency.CRITICAL: 2}
SOUNDS: Mapping[Sound, str] = {Sound.ASK: "dialog-question", Sound.DONE: "complete", Sound.TROUBLE: "dialog-warning"}

#: A click on the text. Some daemons make a button of it as well, and then need no other that shows; of those with these
#: names it is known that they do not.
DEFAULT = "default"
PLAIN_DAEMONS = frozenset({"gnome-shell", "plasma", "dunst", "mako", "swaync", "cinnamon"})
PLAIN_DEFAULT = "x-island-plain-default"

PICTURE_SIZE = 48
GOODBYE = 1.0


class FreedesktopNotifier:
    """Notices on desktops with a notification daemon, through any restart of it or of the bus."""

    def __init__(self, on_action: OnNoticeAction) -> None:
        self._on_action = on_action
        self._bus: MessageBus | None = None
        self._abilities: frozenset[str] | None = None
        self._live: dict[str, tuple[int, Notice]] = {}  # by the notice's key; the daemon's number for it
        self._unsaid: dict[str, Notice] = {}
        self._one_by_one = asyncio.Lock()  # else a withdrawal could overtake its notice
        self._task: asyncio.Task[None] | None = None
        self.health = Health.NO_BUS

    async def start(self) -> None:
        """Begin to look for a daemon."""
        self._task = asyncio.create_task(keep(self._serve), name="notices")

    async def stop(self) -> None:
        """Take all notices away."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE):
                for key in list(self._live):
                    await self.withdraw(key)
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def show(self, notice: Notice) -> None:
        """Show a notice, in the place of the one with the same key."""
        async with self._one_by_one:
            bus = self._bus
            number, shown = self._live.get(notice.key, (0, None))
            if notice == shown:
                return
            self._unsaid[notice.key] = notice  # until it is on the screen: a daemon may come later
            if bus is None:
                return
            try:
                arguments = _arguments(notice, number, await self._read_abilities(bus))
                (number,) = await call(bus, DAEMON, "Notify", "susssasa{sv}i", *arguments)
            except BusError as error:
                log.warning("notice not shown: %s", error)
                return
            del self._unsaid[notice.key]
            if self._bus is bus:  # else the number belongs to a daemon that is gone
                self._live[notice.key] = (number, notice)

    async def withdraw(self, key: str) -> None:
        """Take the notice away, if it is still up."""
        async with self._one_by_one:
            self._unsaid.pop(key, None)
            number, _ = self._live.pop(key, (0, None))
            if number and self._bus:
                with suppress(BusError):  # it was closed at the same moment
                    await call(self._bus, DAEMON, "CloseNotification", "u", number)

    async def _serve(self, bus: MessageBus) -> None:
        """Follow the daemon until the bus is lost."""
        hint = asyncio.Event()

        def new_daemon(_: Message) -> None:
            self._forget()  # another daemon counts anew, and has none of our notices
            hint.set()

        try:
            await listen(bus, BUS, "NameOwnerChanged", new_daemon, DAEMON.name)
            await listen(bus, DAEMON, "ActionInvoked", self._acted)
            await listen(bus, DAEMON, "NotificationClosed", self._closed)
            self._bus = bus
            while True:
                hint.clear()
                self.health = await self._look(bus)
                if self.health is Health.READY:
                    for notice in list(self._unsaid.values()):
                        await self.show(notice)
                await hint.wait()
        finally:
            self._bus, self.health = None, Health.NO_BUS
            self._forget()

    def _forget(self) -> None:
        self._abilities = None
        self._live.clear()

    async def _look(self, bus: MessageBus) -> Health:
        """Find out whether there is a daemon, or one that starts when it is called."""
        try:
            if await owner(bus, DAEMON.name):
                await self._read_abilities(bus)
            elif DAEMON.name not in (await call(bus, BUS, "ListActivatableNames"))[0]:
                return Health.NO_DAEMON
        except BusError:
            return Health.NO_DAEMON
        return Health.READY

    async def _read_abilities(self, bus: MessageBus) -> frozenset[str]:
        if self._abilities is None:
            able = (await call(bus, DAEMON, "GetCapabilities"))[0]
            try:
                name = str((await call(bus, DAEMON, "GetServerInformation"))[0])
            except BusError:
                name = ""
            self._abilities = frozenset([*able, *([PLAIN_DEFAULT] if name.casefold() in PLAIN_DAEMONS else [])])
        return self._abilities

    def _acted(self, message: Message) -> None:
        number, action = message.body
        for key, (live, _) in self._live.items():
            if live == number:
                asyncio.get_running_loop().call_soon(self._on_action, key, SHOW if action == DEFAULT else action)

    def _closed(self, message: Message) -> None:
        number = message.body[0]
        self._live = {key: item for key, item in self._live.items() if item[0] != number}


def _arguments(notice: Notice, replaces: int, abilities: frozenset[str]) -> tuple[Any, ...]:
    """Return the arguments of Notify."""
    body = lines(notice.body)
    # Elsewhere escapes would be shown as they are; but some daemons read markup without saying so.
    body = markup(body) if "body-markup" in abilities else body.replace("<", "\u2039")
    title = notice.title if "body" in abilities else ": ".join(filter(None, (notice.title, body.partition("\n")[0])))
    hints = {
        "desktop-entry": Variant("s", "island"),
        "category": Variant("s", "im.received"),
        "urgency": Variant("y", URGENCIES[notice.urgency]),
        "image-data": Variant("(iiibiiay)", _picture(notice)),
        **_sound(notice.sound),
    }
    return "island", replaces, "", safe(title, TITLE_WIDTH), body, _offered(notice, abilities), hints, -1


def _offered(notice: Notice, abilities: frozenset[str]) -> list[str]:
    """Return the actions, each with its text; a daemon without any may turn them into a dialog that is in the way."""
    keys = actions(notice) if "actions" in abilities else ()
    offered = [(key, BUTTONS[key]) for key in keys]
    if keys and PLAIN_DEFAULT in abilities:
        offered.insert(0, (DEFAULT, BUTTONS[SHOW]))
    elif keys:
        offered[0] = (DEFAULT, BUTTONS[SHOW])
    return [text for pair in offered for text in pair]


def _sound(sound: Sound) -> dict[str, Variant]:
    """Return the hint for a sound; a daemon that knows none of its own passes over it."""
    return {"sound-name": Variant("s", SOUNDS[sound])} if sound in SOUNDS else {"suppress-sound": Variant("b", True)}


def _picture(notice: Notice) -> list[Any]:
    image = draw(face_of(notice.reason), PICTURE_SIZE)
    bits, channels = 8, 4
    return [image.width, image.height, image.width * channels, True, bits, channels, image.tobytes()]
