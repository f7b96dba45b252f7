"""Notices on macOS and Windows, through desktop-notifier. Must not raise, nor import it before it starts."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from platformdirs import user_state_path

from island.desktop.notify import BUTTONS, SHOW, TITLE_WIDTH, Balloon, Health, OnNoticeAction, actions, lines
from island.manner import Sound
from island.notices import Notice
from island.text import safe
from island.tray.face import Face
from island.tray.icon import draw

log = logging.getLogger(__name__)

TIMEOUT = 10.0

#: Texts are arguments, never part of the script. The first is fixed, so that no text is read as an option.
SCRIPT = "on run argv\ndisplay notification (item 3 of argv) with title (item 2 of argv){}\nend run"
SOUNDING = " sound name (item 4 of argv)"

#: Our sounds, by the names that each system gives to its own.
SOUNDS: Mapping[str, Mapping[Sound, str]] = {
    "darwin": {Sound.ASK: "Ping", Sound.DONE: "Glass", Sound.TROUBLE: "Basso"},
    "win32": {Sound.ASK: "ms-winsoundevent:Notification.IM", Sound.DONE: "ms-winsoundevent:Notification.Default",
              Sound.TROUBLE: "ms-winsoundevent:Notification.Reminder"},
}


class PortableNotifier:
    """Notices through desktop-notifier, or in the simplest way that the system has where it does not start.

    On macOS, which wants a signed application, that is osascript; on Windows a balloon at the icon, if there is one.
    """

    def __init__(self, on_action: OnNoticeAction, balloon: Balloon | None = None) -> None:
        self._on_action = on_action
        self._balloon = balloon
        self._native: Any = None
        self._live: dict[str, Notice] = {}
        self._asking: asyncio.Task[None] | None = None
        self.health = Health.NO_DAEMON

    async def start(self) -> None:
        """Look for what the system offers."""
        try:
            self._native = await _open_native()
        except Exception as error:  # noqa: BLE001 - whatever it is, there is another way, or none
            log.error("notices: desktop-notifier does not start: %s", error)  # noqa: TRY400 - one line is enough
        if self._native:
            self.health = Health.READY
            # The system may ask the user, who may take his time.
            self._asking = asyncio.create_task(self._ask_leave(), name="notices")
        elif sys.platform == "darwin" or self._balloon:
            self.health = Health.SHOW_ONLY

    async def show(self, notice: Notice) -> None:
        """Show a notice, in the place of the one with the same key."""
        if self._live.get(notice.key) == notice:
            return
        title = safe(notice.title, TITLE_WIDTH)
        body = lines(notice.body)
        try:
            async with asyncio.timeout(TIMEOUT):
                if self._balloon and not self._native:
                    self._balloon(title, body)
                elif self.health is Health.SHOW_ONLY:
                    await _show_by_script(title, body, _sound(notice))
                elif self._native:
                    await self._native.send_notification(self._notification(notice, title, body))
                    self._live[notice.key] = notice
        except Exception:
            log.exception("notice not shown")

    async def withdraw(self, key: str) -> None:
        """Take the notice away, if the system lets us."""
        if self._live.pop(key, None) and self._native:
            with suppress(Exception):  # unknown once the user has closed it
                await self._native.clear(_identifier(key))

    async def stop(self) -> None:
        """Take all notices away."""
        if self._asking:
            self._asking.cancel()
        for key in list(self._live):
            await self.withdraw(key)

    async def _ask_leave(self) -> None:
        try:
            allowed = await self._native.request_authorisation()
        except Exception:
            log.exception("notices: cannot ask for permission")
            allowed = False
        if not allowed:
            self.health = Health.REFUSED

    def _notification(self, notice: Notice, title: str, body: str) -> Any:
        from desktop_notifier import Button, Notification, Urgency
        from desktop_notifier import Sound as Named

        key, name = notice.key, _sound(notice)
        loop = asyncio.get_running_loop()

        def act(action: str) -> None:
            self._live.pop(key, None)  # acting on a notice closes it
            self._on_action(key, action)

        def chosen(action: str) -> partial[Any]:
            # macOS calls back on the main thread, where the loop is not.
            return partial(loop.call_soon_threadsafe, act, action)

        wanted = [(action, BUTTONS[action]) for action in actions(notice)]
        return Notification(
            title, body,
            identifier=_identifier(key),
            buttons=tuple(Button(text, chosen(action), action) for action, text in wanted),
            on_clicked=chosen(SHOW) if wanted else None,
            urgency=Urgency(notice.urgency.value),
            sound=Named(name=name) if name else None,
        )


async def _open_native() -> Any:
    """Return desktop-notifier's notifier, or None where it would show nothing."""
    from desktop_notifier import DesktopNotifier, Icon

    native = DesktopNotifier(app_name="island", app_icon=Icon(path=_picture()))
    return native if await native.get_capabilities() else None  # a stand-in that shows nothing can do nothing


def _picture() -> Any:
    """Return a file with our icon: else notices would carry Python's."""
    path = user_state_path("island", appauthor=False, ensure_exists=True) / "notice.png"
    draw(Face.YOUR_TURN, 48).save(path)
    path.chmod(0o600)
    return path


def _identifier(key: str) -> str:
    """Return a name for the notice that Windows takes: at most 64 characters."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _sound(notice: Notice) -> str:
    return SOUNDS.get(sys.platform, {}).get(notice.sound, "")


async def _show_by_script(title: str, body: str, sound: str) -> None:
    script = SCRIPT.format(SOUNDING if sound else "")
    texts = (title, body, sound) if sound else (title, body)
    process = await asyncio.create_subprocess_exec("/usr/bin/osascript", "-e", script, "island", *texts)
    await process.wait()
