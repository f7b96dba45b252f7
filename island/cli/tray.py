"""`island`: the icon, its menu and the notices, until it is told to end."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections.abc import Coroutine, Mapping
from typing import Any

from island.cli.actions import Actions
from island.cli.watch import Screen
from island.desktop import notify
from island.desktop.away import open_away
from island.desktop.focus import Focus
from island.desktop.notify import open_notifier
from island.instance import Instance, LockError, RunsAlreadyError
from island.model import Reason, Snapshot, State
from island.notices import Book, Notice, Withdraw
from island.quiet import MUTE_SESSION
from island.running import Running, Spoken, until_told
from island.tray.base import Health, open_tray
from island.tray.entry import JUMP, QUIT, SEEN_ONE, SHOW
from island.tray.listing import needs
from island.tray.menu import EAR, model

log = logging.getLogger(__name__)

#: What island tried, by the verb of the action, for a sentence that says it failed.
ATTEMPTS: Mapping[str, str] = {
    "jump": "show the session", "explain": "show the explanation", "copy": "copy the id", "folder": "open the folder",
    "settings": "open the settings", "quiet-hours": "open the settings", "doctor": "show what the doctor says",
    "about": "show what it is", "seen": "mark it seen",
}

#: Seconds that such a sentence stays.
READING = 15.0

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


def meant(book: Book, key: str) -> str:
    """Return the session that a notice is about: of many the first."""
    names = [name for name, (_, notice) in book.shown.items() if notice == key]
    return next((name for name in names if name.endswith("/" + key.partition(":")[2])), key)


class Desk:
    """What the user sees, bound to what is observed."""

    def __init__(self, *, panes: bool = False) -> None:
        self._panes = panes
        self.tray = open_tray(self._chosen)
        self._notifier = open_notifier(self._answered, getattr(self.tray, "balloon", None))
        self._away = open_away(lambda away: self.running.went(away) if self.running else None)
        self.running: Running | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._over = asyncio.Event()
        self._screen: Screen | None = None
        self._actions: Actions | None = None
        self._words = 0
        self._first = ""  # the session that needs the user most, if one does

    async def work(self) -> int:
        """Observe and show, until told to end."""
        self._over = asyncio.Event()
        self.running = Running(self._publish, panes=self._panes, looked_at=Focus().look)
        self._actions = Actions(self.running)
        await self.tray.start()
        now = time.time()
        self.tray.apply(model(Snapshot(now, State.IDLE), now))  # a first look may take long; the menu has a way out
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
            self._actions.leave()
            await self._notifier.stop()
            await self.tray.stop()
        return 0

    # -- out --------------------------------------------------------------------------------------------------

    def _publish(self, snapshot: Snapshot, spoken: Spoken) -> None:
        self.tray.apply(model(snapshot, snapshot.at, self.running.ear if self.running else EAR))
        self._first = next((f"{row.agent}/{row.session}" for row in snapshot.rows if needs(row)), "")
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

    def _chosen(self, action: str) -> None:
        """Do what was chosen in the menu; a click on the icon itself shows the session that needs the user most."""
        if action == QUIT:
            self._over.set()
        elif action == SHOW:
            self._act(JUMP + self._first if self._first else "")
        else:
            self._act(action)

    def _answered(self, key: str, action: str) -> None:
        """Do what was chosen on a notice: show its session, the first of many, or mute it."""
        if self.running is None or key == notify.WORD:
            return
        first = meant(self.running.book, key)
        if action == notify.MUTE:
            self._act(MUTE_SESSION + first)
        else:
            self._act(SEEN_ONE + first)
            self._act(JUMP + first)

    def _act(self, action: str) -> None:
        if self.running and self._actions and not self.running.silence(action) and self._actions.knows(action):
            self._begin(self._do(self._actions, action))

    async def _do(self, actions: Actions, action: str) -> None:
        """Do something, and say what stood in the way if anything did."""
        try:
            word = await actions.do(action)
        except Exception as error:  # what one action meets must not end the others
            log.exception("%s failed", action)
            word = f"{type(error).__name__}: {error}"
        if word:
            log.info("%s: %s", action, word)
            title = f"island could not {ATTEMPTS[action.partition(':')[0]]}"
            self._words += 1
            mine = self._words
            await self._notifier.show(Notice(notify.WORD, "island", "", Reason.SEEN, title, word))
            await asyncio.sleep(READING)
            if mine == self._words:  # else a newer one stands in its place
                await self._notifier.withdraw(notify.WORD)
