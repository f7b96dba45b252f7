"""What a choice in the menu, or on a notice, does. Shell: each may fail, and says why in a word."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from island import __version__
from island.cli.explain import explanation
from island.desktop.clipboard import copy
from island.desktop.jump import jump
from island.desktop.opening import open_path
from island.manner import Ear
from island.observer import Observer
from island.sessions import Key
from island.settings import Settings, show
from island.store import settings_path, state_path, write
from island.tray.entry import (
    ABOUT,
    COPY,
    DOCTOR,
    EXPLAIN,
    FOLDER,
    JUMP,
    QUIET_HOURS,
    SEEN,
    SEEN_ONE,
    SETTINGS,
)

#: Seconds that the doctor may take: it reads everything anew.
LONGEST_EXAMINATION = 60.0

PAGES = ("explanation.txt", "doctor.txt", "about.txt")

Word = str  # what stood in the way, for the user; nothing if all went well


def blank_settings() -> str:
    """Return a settings file that sets nothing: to set something, its `#` is taken away."""
    lines = (line if line[:1] in ("", "#", "[") else f"#{line}" for line in show(Settings()).splitlines())
    head = "# To change a setting, take away the # before it. `island config` shows what counts."
    return "\n".join((head, "", *lines, ""))


class Observed(Protocol):
    """Sessions that are observed and shown: of a running island, or of a demonstration."""

    @property
    def observer(self) -> Observer:
        """Who observes them now."""

    @property
    def ear(self) -> Ear:
        """How the user listens just now."""

    def publish_now(self) -> None:
        """Show what is different, though nothing was written."""


class Actions:
    """What can be done about observed sessions, at the times that `clock` tells."""

    def __init__(self, running: Observed, open_: Callable[[Path], Word] = open_path,
                 clock: Callable[[], float] = time.time) -> None:
        self._running = running
        self._open = open_
        self._clock = clock
        self._all: Mapping[str, Callable[[Key], Awaitable[Word]]] = {
            JUMP: self._jump, SEEN_ONE: self._mark, EXPLAIN: self._explain, COPY: self._copy, FOLDER: self._folder,
            SEEN: self._mark_all, SETTINGS: self._settings, QUIET_HOURS: self._settings, DOCTOR: self._doctor,
            ABOUT: self._about,
        }

    def knows(self, action: str) -> bool:
        """Tell whether an action is one of these."""
        return self._parts(action)[0] in self._all

    async def do(self, action: str) -> Word:
        """Do what an action says; return what stood in the way, or nothing."""
        verb, about = self._parts(action)
        agent, _, session = about.partition("/")
        return await self._all[verb]((agent, session))

    @staticmethod
    def _parts(action: str) -> tuple[str, str]:
        verb, colon, about = action.partition(":")
        return verb + colon, about

    # -- one session ------------------------------------------------------------------------------------------

    async def _jump(self, key: Key) -> Word:
        sessions = self._running.observer.sessions
        folder = sessions.held[key].fact("cwd") if key in sessions.held else ""
        word = await asyncio.to_thread(jump, sessions.processes(key), folder)
        if not word:
            await self._mark(key)
        return word

    async def _mark(self, *keys: Key) -> Word:
        for key in keys:
            self._running.observer.sessions.mark_seen(key)
        self._running.publish_now()
        return ""

    async def _mark_all(self, _: Key) -> Word:
        return await self._mark(*self._running.observer.sessions.verdicts)

    async def _explain(self, key: Key) -> Word:
        observer = self._running.observer
        row = next((row for row in observer.sessions.rows() if (row.agent, row.session) == key), None)
        if row is None:
            return "island has forgotten it: it is long over"
        return await self._page("explanation.txt", "\n".join(
            explanation(observer, row, self._clock(), hidden=self._running.ear.hush.hidden)))

    async def _copy(self, key: Key) -> Word:
        return await asyncio.to_thread(copy, key[1])

    async def _folder(self, key: Key) -> Word:
        held = self._running.observer.sessions.held.get(key)
        folder = held.fact("cwd") if held else ""
        return await asyncio.to_thread(self._open, Path(folder)) if folder else "its folder is not known"

    # -- island itself ----------------------------------------------------------------------------------------

    async def _settings(self, _: Key) -> Word:
        return await asyncio.to_thread(self._open_settings)

    def _open_settings(self) -> Word:
        path = settings_path()
        if not path.exists():
            write(path, blank_settings().encode())
        return self._open(path)

    async def _doctor(self, _: Key) -> Word:
        doctor = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "island", "doctor", stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT)
        try:
            async with asyncio.timeout(LONGEST_EXAMINATION):
                said = (await doctor.communicate())[0]
        except TimeoutError:
            doctor.kill()
            await doctor.wait()
            return "the doctor came to no end"
        return await self._page("doctor.txt", said.decode(errors="replace"))

    async def _about(self, _: Key) -> Word:
        return await self._page("about.txt", "\n".join((
            f"island {__version__}", "", "One tray icon that says whether any of your coding agents needs you now.",
            "It only reads what the agents write, and sends nothing anywhere.", "",
            f"settings  {settings_path()}", f"state     {state_path('')}", f"Python    {sys.version.split()[0]}", "",
            "`island --help` lists its commands.")))

    async def _page(self, name: str, text: str) -> Word:
        """Show a text in whatever the desktop shows texts in."""
        path = state_path(name)
        await asyncio.to_thread(write, path, (text + "\n").encode(errors="replace"))
        return await asyncio.to_thread(self._open, path)

    @staticmethod
    def leave() -> None:
        """Take away the pages that were shown."""
        for name in PAGES:
            with contextlib.suppress(OSError):  # most were never shown
                state_path(name).unlink()
