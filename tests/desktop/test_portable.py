"""Notices on macOS and Windows, with a stand-in for desktop-notifier."""

import asyncio
import sys
from dataclasses import dataclass, field, replace
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

from island.desktop import notify, portable
from island.desktop.notify import Health, open_notifier
from island.desktop.portable import PortableNotifier
from island.manner import Sound, Urgency
from island.model import Reason
from island.notices import Notice

from .stage import eventually, play

NOTICE = Notice("claude/s1", "claude", "s1", Reason.PERMISSION, "claude needs permission", "web_shop\nmore")


@dataclass
class Button:
    title: str
    on_pressed: Any
    identifier: str


@dataclass
class Icon:
    path: Any


class NativeUrgency(Enum):
    Critical = "critical"
    Normal = "normal"
    Low = "low"


@dataclass
class NativeSound:
    name: str


@dataclass
class Notification:
    title: str
    message: str
    identifier: str
    buttons: tuple
    on_clicked: Any
    urgency: NativeUrgency
    sound: NativeSound | None


@dataclass
class DesktopNotifier:
    app_name: str
    app_icon: Icon
    allowed: bool = True
    able: tuple = ("title",)
    live: dict = field(default_factory=dict)
    fails: bool = False

    async def get_capabilities(self):
        return frozenset(self.able)

    async def request_authorisation(self):
        return self.allowed

    async def send_notification(self, notification):
        if self.fails:
            raise OSError
        self.live[notification.identifier] = notification

    async def clear(self, identifier):
        del self.live[identifier]  # raises KeyError, as the real one does


@pytest.fixture
def library(monkeypatch, tmp_path):
    """Stand-in for the library; `options` are given to the notifier it makes."""
    module = ModuleType("desktop_notifier")
    module.options = {}
    vars(module).update(
        Button=Button, Notification=Notification, Icon=Icon, Urgency=NativeUrgency, Sound=NativeSound,
        DesktopNotifier=lambda **given: DesktopNotifier(**given, **module.options))
    monkeypatch.setitem(sys.modules, "desktop_notifier", module)
    monkeypatch.setattr(portable, "user_state_path", lambda *_, **__: tmp_path)
    return module


async def started(chosen=None):
    notices = PortableNotifier(lambda *choice: chosen.append(choice))
    await notices.start()
    return notices


@pytest.mark.posix("modes")
@pytest.mark.usefixtures("library")
@play
async def test_a_notice_is_shown_replaced_clicked_and_withdrawn(tmp_path):
    chosen = []
    notices = await started(chosen)
    assert notices.health is Health.READY
    await notices.show(NOTICE)
    await notices.show(NOTICE)
    await notices.show(replace(NOTICE, body="b"))
    live = notices._native.live
    ((identifier, shown),) = live.items()
    assert (shown.title, shown.message, len(identifier)) == ("claude needs permission", "b", 32)
    assert [(b.identifier, b.title) for b in shown.buttons] == [("show", "Show"), ("mute", "Mute")]
    await asyncio.to_thread(shown.on_clicked)  # on macOS the main thread calls
    await asyncio.to_thread(shown.buttons[1].on_pressed)
    await eventually(lambda: chosen == [("claude/s1", "show"), ("claude/s1", "mute")])
    await notices.show(NOTICE)
    await notices.withdraw(NOTICE.key)
    await notices.withdraw(NOTICE.key)
    assert live == {}
    assert (tmp_path / "notice.png").stat().st_mode & 0o777 == 0o600
    await notices.stop()


@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("platform", "name"), [
    ("darwin", "Basso"), ("win32", "ms-winsoundevent:Notification.Reminder"),
])
@play
async def test_urgency_and_sound_are_told_in_the_words_of_the_system(monkeypatch, platform, name):
    monkeypatch.setattr(portable.sys, "platform", platform)
    notices = await started()
    await notices.show(NOTICE)
    await notices.show(replace(NOTICE, key="b", urgency=Urgency.LOW, sound=Sound.TROUBLE))
    quiet, loud = notices._native.live.values()
    assert (quiet.urgency, quiet.sound) == (NativeUrgency.Normal, None)
    assert (loud.urgency, loud.sound) == (NativeUrgency.Low, NativeSound(name))
    await notices.stop()


@pytest.mark.usefixtures("library")
@play
async def test_nothing_is_raised_when_the_system_fails(caplog):
    notices = await started()
    await notices.show(NOTICE)
    notices._native.live.clear()
    await notices.withdraw(NOTICE.key)
    notices._native.fails = True
    await notices.show(NOTICE)
    assert "not shown" in caplog.text
    await notices.stop()


@play
async def test_a_refusal_is_said(library):
    library.options = {"allowed": False}
    notices = await started()
    await eventually(lambda: notices.health is Health.REFUSED)
    await notices.stop()


@play
async def test_an_unsigned_macos_falls_back_to_a_script_that_holds_no_text(library, monkeypatch):
    library.options = {"able": ()}
    monkeypatch.setattr(portable.sys, "platform", "darwin")
    commands = []

    class Process:
        async def wait(self):
            return 0

    async def execute(*command):
        commands.append(command)
        return Process()

    monkeypatch.setattr(portable.asyncio, "create_subprocess_exec", execute)
    notices = await started()
    assert notices.health is Health.SHOW_ONLY
    evil = '-e "; do shell script'
    await notices.show(replace(NOTICE, title=evil, body="web\x00_shop"))
    await notices.withdraw(NOTICE.key)
    assert commands == [("/usr/bin/osascript", "-e", portable.SCRIPT.format(""), "island", evil, "web_shop")]
    await notices.show(replace(NOTICE, sound=Sound.ASK))
    assert commands[1][2:] == (portable.SCRIPT.format(portable.SOUNDING), "island", NOTICE.title, "web_shop\nmore",
                               "Ping")
    await notices.stop()


@play
async def test_windows_without_its_notices_shows_a_balloon_at_the_icon(library, monkeypatch):
    library.options = {"able": ()}
    monkeypatch.setattr(portable.sys, "platform", "win32")
    shown = []
    notices = PortableNotifier(print, lambda *texts: shown.append(texts))
    await notices.start()
    assert notices.health is Health.SHOW_ONLY
    await notices.show(replace(NOTICE, body="web\x00_shop"))
    await notices.withdraw(NOTICE.key)
    await notices.stop()
    assert shown == [(NOTICE.title, "web_shop")]


@play
async def test_without_the_library_there_is_no_daemon(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "desktop_notifier", None)
    notices = await started()
    assert notices.health is Health.NO_DAEMON
    await notices.show(NOTICE)
    await notices.stop()
    assert "does not start" in caplog.text


def test_open_notifier_takes_the_portable_one(monkeypatch):
    monkeypatch.setattr(notify.sys, "platform", "win32")
    assert isinstance(open_notifier(print), PortableNotifier)
