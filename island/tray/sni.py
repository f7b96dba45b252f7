"""The icon on desktops with a StatusNotifierItem host: Linux and its kin. Must not decide what is shown."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import replace
from itertools import count

from dbus_fast.aio import MessageBus

from island.desktop.bus import BUS, BusError, Peer, call, keep, listen, owner
from island.tray.base import Health, OnAction, Work
from island.tray.dbusmenu import DBusMenu
from island.tray.entry import SHOW
from island.tray.item import MENU_PATH, Item
from island.tray.menu import TrayModel
from island.tray.pace import Pace

WATCHER = Peer("org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher", "org.kde.StatusNotifierWatcher")
ITEM_PATH = "/StatusNotifierItem"

ICON_GAP = 0.5  # some hosts leak or blink when icons change faster
RETRY = 5.0  # a watcher may own its name before it answers

_items = count(1)


class SniTray:
    """The tray of desktops that speak StatusNotifierItem."""

    def __init__(self, on_action: OnAction) -> None:
        self._model = TrayModel()
        self._item = Item(lambda: on_action(SHOW))
        self._pace = Pace(ICON_GAP, self._send)
        self._tip = Pace(0.0, self._send)
        self._menu = DBusMenu(on_action, self._tip.fire)
        self._task: asyncio.Task[None] | None = None
        self._name = f"org.kde.StatusNotifierItem-{os.getpid()}-{next(_items)}"
        self._watcher = ""  # the connection that we are registered with
        self.health = Health.NO_BUS

    def run(self, work: Work) -> int:
        """Run `work` to its end: this tray demands nothing of the main thread."""
        return asyncio.run(work())

    async def start(self) -> None:
        """Begin to show the icon."""
        self._task = asyncio.create_task(keep(self._serve), name="tray")

    async def stop(self) -> None:
        """Take the icon away."""
        self._pace.stop()
        self._tip.stop()
        self._menu.stop()
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def apply(self, model: TrayModel) -> None:
        """Show this from now on."""
        if model != self._model:
            self._model = model
            self._pace.ask()

    def _send(self) -> None:
        """Show all that is new, but no new tooltip while the menu is open: some hosts lay it over the menu."""
        model, before = self._model, self._item.model
        if held := self._menu.held():
            model = replace(model, title=before.title, lines=before.lines)
            self._tip.wait(held)
        self._item.show(model)
        self._menu.show(self._model.rows)

    async def _serve(self, bus: MessageBus) -> None:
        """Be there for a host, whenever one comes, until the bus is lost."""
        hint = asyncio.Event()
        try:
            bus.export(ITEM_PATH, self._item)
            bus.export(MENU_PATH, self._menu)
            await call(bus, BUS, "RequestName", "su", self._name, 0)
            await listen(bus, BUS, "NameOwnerChanged", lambda _: hint.set(), WATCHER.name)
            await listen(bus, WATCHER, "StatusNotifierHostRegistered", lambda _: hint.set())
            await listen(bus, WATCHER, "StatusNotifierHostUnregistered", lambda _: hint.set())
            while True:
                hint.clear()
                self.health = await self._look(bus)
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self.health is Health.SHOWN else RETRY):
                        await hint.wait()
        finally:
            self.health, self._watcher = Health.NO_BUS, ""

    async def _look(self, bus: MessageBus) -> Health:
        """Register with the watcher if there is a new one; say whether the icon is shown."""
        try:
            watcher = await owner(bus, WATCHER.name)
            if watcher and watcher != self._watcher:
                await call(bus, WATCHER, "RegisterStatusNotifierItem", "s", self._name)
            self._watcher = watcher
            shown = bool(watcher) and await _has_host(bus)
        except BusError:
            return Health.WAITING_FOR_HOST
        return Health.SHOWN if shown else Health.WAITING_FOR_HOST


async def _has_host(bus: MessageBus) -> bool:
    """Ask whether somebody shows the items of the watcher; one that cannot say is its own host."""
    properties = Peer(WATCHER.name, WATCHER.path, "org.freedesktop.DBus.Properties")
    try:
        answer = await call(bus, properties, "Get", "ss", WATCHER.interface, "IsStatusNotifierHostRegistered")
    except BusError:
        return True
    return bool(answer[0].value)
