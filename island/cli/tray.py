"""`island`: the icon, its menu and the notices, until it is told to end."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from island.cli.watch import Screen
from island.desktop import notify
from island.desktop.away import open_away
from island.desktop.notify import open_notifier
from island.instance import Instance, LockError, RunsAlreadyError
from island.model import Snapshot
from island.notices import Notice, Withdraw
from island.running import Running, Spoken, until_told
from island.tray.base import Health, open_tray
from island.tray.menu import QUIT, SEEN, SHOW, model

log = logging.getLogger(__name__)

#: Seconds that a tray may take to appear at login before it counts as absent.
PATIENCE = 5.0


def run(arguments: argparse.Namespace) -> int:
    """Run until quit, Ctrl-C or SIGTERM; 3 if island runs already."""
    try:
        with Instance():
            desk = Desk(panes=arguments.panes)
            return desk.tray.run(desk.work)
    except RunsAlreadyError:
        print("island: runs already; nothing was changed", file=sys.stderr)
        return 3
    except LockError as error:
        print(f"island: {error}", file=sys.stderr)
        return 2


class Desk:
    """What the user sees, bound to what is observed."""

    def __init__(self, *, panes: bool = False) -> None:
        self._panes = panes
        self.tray = open_tray(self._chosen)
        self._notifier = open_notifier(self._answered)
        self._away = open_away(lambda away: self.running.went(away) if self.running else None)
        self.running: Running | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self._screen: Screen | None = None

    async def work(self) -> int:
        """Observe and show, until told to end."""
        self._over = asyncio.Event()
        self.running = Running(self._publish, panes=self._panes)
        await self.tray.start()
        await self._notifier.start()
        await self._away.start()
        try:
            self._begin(self._tell_if_unseen())
            await until_told(self.running.run(), self._over)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._away.stop()
            await self._notifier.stop()
            await self.tray.stop()
        return 0

    # -- out --------------------------------------------------------------------------------------------------

    def _publish(self, snapshot: Snapshot, spoken: Spoken) -> None:
        self.tray.apply(model(snapshot, snapshot.at))
        for one in spoken:
            self._begin(self._say(one))
        if self._screen:
            self._screen.show(snapshot)

    async def _say(self, one: Notice | Withdraw) -> None:
        if isinstance(one, Notice):
            await self._notifier.show(one)
        else:
            await self._notifier.withdraw(one.key)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell_if_unseen(self) -> None:
        """Say once that there is no icon, and show the table meanwhile where there is a terminal."""
        await asyncio.sleep(PATIENCE)
        if self._shown():
            return
        self._say_missing()
        if sys.stdout.isatty() and self.running:
            self._screen = Screen(note="no tray to show the icon in; it appears as soon as there is one")
            self.running.publish_now()
            while not self._shown():  # noqa: ASYNC110 - a tray's health is a state, not an event
                await asyncio.sleep(PATIENCE)
            self._screen = None
            print("island: the icon is in the tray now")

    def _shown(self) -> bool:
        return self.tray.health is Health.SHOWN

    def _say_missing(self) -> None:
        why = {Health.NO_BUS: "there is no session bus", Health.WAITING_FOR_HOST: "no tray takes icons here"}
        what = why.get(self.tray.health, "the icon cannot be shown")
        notices = "notices still work" if self._notifier.health is notify.Health.READY else "notices do not work"
        print(f"island: {what}; {notices}. `island doctor` says more.", file=sys.stderr, flush=True)

    # -- in ---------------------------------------------------------------------------------------------------

    def _chosen(self, key: str) -> None:
        """Do what was chosen in the menu: silence something, or mark a session's row seen."""
        if key == QUIT:
            self._over.set()
        elif self.running and key != SHOW and not self.running.silence(key):
            self._seen(lambda name: key in (SEEN, name))

    def _answered(self, key: str, _: str) -> None:
        """Take a click on a notice as having seen what it speaks for."""
        shown = self.running.book.shown if self.running else {}
        self._seen({key, *(name for name, (_, notice) in shown.items() if notice == key)}.__contains__)

    def _seen(self, wanted: Callable[[str], bool]) -> None:
        if self.running:
            sessions = self.running.observer.sessions
            for key in filter(lambda key: wanted("/".join(key)), sessions.verdicts):
                sessions.mark_seen(key)
            self.running.publish_now()
