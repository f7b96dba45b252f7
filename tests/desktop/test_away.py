"""Whether the screen is locked: told by a locker on a private bus, or asked of stand-ins for macOS and Windows."""

import ctypes
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace

import pytest
from dbus_fast.annotations import DBusBool
from dbus_fast.service import ServiceInterface, dbus_method, dbus_signal

from island.desktop import away as module
from island.desktop.away import PolledAway, locked_on_macos, locked_on_windows, open_away
from island.desktop.screensaver import LOCKERS, ScreensaverAway

from .fakes import Peer
from .stage import eventually, play


class Saver(ServiceInterface):
    def __init__(self, name, active):
        super().__init__(name)
        self.active = active

    @dbus_method("GetActive")
    def get_active(self) -> DBusBool:
        return self.active

    @dbus_signal("ActiveChanged")
    def active_changed(self) -> DBusBool:
        return self.active


class Locker(Peer):
    """A program that locks the screen."""

    def __init__(self, peer=LOCKERS[0], active=False):
        super().__init__(peer.name, peer.path, Saver(peer.interface, active))

    def lock(self, active):
        self.service.active = active
        self.service.active_changed()


@asynccontextmanager
async def followed(make=ScreensaverAway):
    told = []
    away = make(told.append)
    await away.start()
    try:
        yield told
    finally:
        await away.stop()


@pytest.mark.desktop
@pytest.mark.usefixtures("bus")
@pytest.mark.parametrize("peer", LOCKERS, ids=lambda peer: peer.path)
@play
async def test_a_lock_is_heard_from_every_kind_of_locker(peer):
    async with Locker(peer) as locker, followed() as told:
        def says(active, want):
            locker.lock(active)  # said until it is heard: nobody listens at the beginning
            return told == want

        await eventually(lambda: says(True, [True]))
        await eventually(lambda: says(False, [True, False]))


@pytest.mark.desktop
@pytest.mark.usefixtures("bus")
@play
async def test_a_screen_that_is_locked_at_the_start_is_locked():
    async with Locker(active=True), followed() as told:
        await eventually(lambda: told == [True])


@pytest.mark.desktop
@pytest.mark.usefixtures("bus")
@play
async def test_a_locker_that_crashes_locks_nothing_any_more():
    async with Locker(active=True) as locker, followed() as told:
        await eventually(lambda: told == [True])
        locker.bus.disconnect()
        await eventually(lambda: told == [True, False])


@pytest.mark.desktop
@play
async def test_the_loss_of_the_bus_is_no_lock(bus):
    async with Locker(active=True), followed() as told:
        await eventually(lambda: told == [True])
        bus.kill()
        await eventually(lambda: told == [True, False])


@play
async def test_a_system_that_has_to_be_asked_is_asked():
    answers = [False, True, True, False, RuntimeError(), True, RuntimeError(), False]

    def locked():
        answer = answers.pop(0) if answers else False
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with followed(lambda on_away: PolledAway(on_away, locked, every=0)) as told:
        await eventually(lambda: not answers)
        assert told == [True, False, True, False]


@pytest.mark.parametrize(("session", "locked"), [
    ({}, False), ({"CGSSessionScreenIsLocked": 1}, True), ({"CGSSessionScreenIsLocked": 0}, False), (None, True),
])
def test_macos_is_asked_for_its_session(monkeypatch, session, locked):
    quartz = SimpleNamespace(CGSessionCopyCurrentDictionary=lambda: session)
    monkeypatch.setitem(sys.modules, "Quartz", quartz)
    assert locked_on_macos() is locked


@pytest.mark.parametrize(("desktop", "locked"), [(42, False), (None, True)])
def test_windows_is_asked_for_the_desktop_of_the_input(monkeypatch, desktop, locked):
    closed = []

    class Open:
        restype = None

        def __call__(self, flags, inherit, access):
            assert (flags, inherit, access) == (0, False, 0x100)
            return desktop

    user32 = SimpleNamespace(OpenInputDesktop=Open(), CloseDesktop=lambda handle: closed.append(handle.value))
    monkeypatch.setattr(ctypes, "WinDLL", lambda name: user32, raising=False)
    assert locked_on_windows() is locked
    assert closed == ([42] if desktop else [])


@pytest.mark.parametrize(("platform", "kind"), [("darwin", PolledAway), ("win32", PolledAway),
                                                ("linux", ScreensaverAway)])
def test_each_platform_has_its_way(monkeypatch, platform, kind):
    monkeypatch.setattr(module.sys, "platform", platform)
    assert isinstance(open_away(print), kind)
