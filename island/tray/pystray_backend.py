"""The icon on macOS and Windows, through pystray. Must not touch pystray outside the thread that runs it."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from island.tray.base import Health, OnAction, Work
from island.tray.entry import QUIT, MenuRow, RowKind
from island.tray.menu import TrayModel
from island.tray.pace import Pace

log = logging.getLogger(__name__)

GAP = 0.5
LONGEST_TIP = 127  # UTF-16 units that Windows takes; with one more pystray never shows the icon at all
LONGEST_HEAD, LONGEST_BODY = 63, 255  # those of a balloon


class PystrayTray:
    """The tray of macOS and Windows: pystray has the main thread, and `work` an event loop in another."""

    def __init__(self, on_action: OnAction, toolkit: Any = None) -> None:
        self._on_action = on_action
        self._toolkit = toolkit
        self._icon: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pace = Pace(GAP, self._post)
        # Written in one thread, read in the other; the reader is always called after the write.
        self._wanted = TrayModel()
        self._over = False
        self._shown: TrayModel | None = None
        self.health = Health.WAITING_FOR_HOST

    def run(self, work: Work) -> int:
        """Run `work` to its end in a thread of its own, and pystray in this one, the main thread."""
        results: list[int] = []
        thread = threading.Thread(target=self._run_work, args=(work, results), name="island")
        thread.start()
        try:
            self.run_main_loop()
        except Exception:
            log.exception("no icon can be shown; island goes on without")
        else:
            if not self._over:  # the icon was ended from outside, by Ctrl-C
                self._choose(QUIT)
        thread.join()
        return results[0] if results else 1

    def run_main_loop(self) -> None:
        """Show the icon until `stop`. macOS kills a process that does this in any thread but the main one."""
        self._toolkit = self._toolkit or _toolkit()
        self._icon = self._toolkit.Icon("island", menu=self._menu(self._wanted.rows))
        try:
            self._icon.run(setup=lambda icon: icon.post(self._flush))
        finally:
            self.health = Health.WAITING_FOR_HOST

    async def start(self) -> None:
        """Take this loop as the one to call back in."""
        self._loop = asyncio.get_running_loop()

    async def stop(self) -> None:
        """Take the icon away, which ends the main loop."""
        self._pace.stop()
        self._end()

    def apply(self, model: TrayModel) -> None:
        """Show this from now on."""
        if model != self._wanted:
            self._wanted = model
            self._pace.ask()

    @property
    def balloon(self) -> Callable[[str, str], None] | None:
        """What shows a text at the icon: on Windows it can."""
        return self._show_balloon if sys.platform == "win32" else None

    def _show_balloon(self, title: str, body: str) -> None:
        if self._icon is not None:
            texts = _cut(body, LONGEST_BODY), _cut(title, LONGEST_HEAD)
            self._icon.post(lambda: self._icon.notify(*texts))

    def _run_work(self, work: Work, results: list[int]) -> None:
        try:
            results.append(asyncio.run(work()))
        except Exception:
            log.exception("island failed")
        finally:
            self._end()

    def _end(self) -> None:
        self._over = True
        self._post()

    def _post(self) -> None:
        """Have the icon's thread look at what is wanted now. Before it runs, its own start does that."""
        if self._icon is not None:
            self._icon.post(self._flush)

    def _flush(self) -> None:
        """Bring the icon up to date; runs in the icon's thread, and never while its menu is open."""
        icon, new, old = self._icon, self._wanted, self._shown
        if self._over:
            icon.stop()
            return
        if old is None or (old.face, old.badge) != (new.face, new.badge):
            icon.icon = (new.face, new.badge)
        icon.title = tip(new)
        if old is None or old.rows != new.rows:
            icon.menu = self._menu(new.rows)
        if not icon.visible:
            icon.visible = True
        self._shown = new
        self.health = Health.SHOWN

    def _menu(self, rows: tuple[MenuRow, ...]) -> Any:
        return self._toolkit.Menu(*map(self._item, rows))

    def _item(self, row: MenuRow) -> Any:
        if row.kind is RowKind.SEPARATOR:
            return self._toolkit.Menu.SEPARATOR
        does = self._menu(row.rows) if row.rows else partial(self._choose, row.key)
        return self._toolkit.MenuItem(self._toolkit.label(row.text), does, enabled=row.enabled)

    def _choose(self, key: str, *_: object) -> None:
        """Hand the choice to the event loop, if there still is one."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._on_action, key)


def tip(model: TrayModel) -> str:
    """Return the tooltip: the title, and as many whole lines as Windows has room for."""
    text = _cut(model.title)
    for line in model.lines:
        longer = f"{text}\n{line}"
        if len(longer.encode("utf-16-le")) > 2 * LONGEST_TIP:
            break
        text = longer
    return text


def _cut(text: str, units: int = LONGEST_TIP) -> str:
    """Return what fits into a tooltip or a balloon, an emoji counted as the two units that it is."""
    return text.encode("utf-16-le")[: 2 * units].decode("utf-16-le", "ignore")


def _toolkit() -> Any:
    """Return pystray's menu, with the icon of this system mended."""
    if sys.platform == "darwin":
        from island.tray import darwin as toolkit
    else:
        from island.tray import win32 as toolkit
    return toolkit
