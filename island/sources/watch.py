"""Say which files may have changed: hints, never a truth. Reads no file, decides nothing.

No source of hints is enough alone, so there are three:

* the system's file watcher, through watchfiles: quick. But it loses events, silently, when a queue overflows,
  for files made together with their folder, and past the system's limit of watches; and macOS and Windows
  tell it nothing while a writer keeps its file open;
* a stat of the few hot files, several times a second;
* the sweep, a full look: once a minute, after each start of the watcher, and more often without one.

A hint too many costs one short look, so whatever is unsure is a hint.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from math import inf

from watchfiles import Change, awatch

from island.sources.files import Stamp, stamp
from island.sources.sweep import Found

Listen = Callable[..., AsyncGenerator[set[tuple[Change, str]], None]]
Heard = Callable[[Iterable[str], Iterable[str]], None]  # paths that changed; folders that are new

#: Milliseconds between wake-ups, by depth: a change is told after one to two of them. Each costs, also when
#: nothing happens; so what lies in a root that is not deep may wait a little longer.
STEP = {True: 20, False: 100}

#: debounce: how long many changes may wait for each other. force_polling: else watchfiles polls all files on
#: WSL, at a tenth of a core. ignore_permission_denied: true would hide every error, the watch limit too.
OPTIONS = {"debounce": 100, "watch_filter": None, "force_polling": False, "ignore_permission_denied": False}


@dataclass(frozen=True, slots=True)
class Root:
    """A folder to watch. deep: with all below it; not deep if huge folders of no interest lie below.

    A folder that has no folders should be deep: that costs nothing, and its hints come quicker.
    """

    path: str
    deep: bool = True


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between looks. While the watcher fails, `blind` replaces `sweep`, and `retry` doubles."""

    working: float = 0.25
    resting: float = 1.0
    sweep: float = 60.0
    blind: float = 10.0
    retry: float = 1.0
    retry_most: float = 60.0


class Watch:
    """Gathers hints while `run` runs; `changed` waits for them.

    roots, hot, busy and sweep are asked at each look, as folders and sessions come and go; sweep is asked in
    a thread, as a cold disk is slow. wanted: the paths worth a hint.
    """

    def __init__(  # noqa: PLR0913 -- each is one thing the watch must ask
        self,
        roots: Callable[[], Iterable[Root]],
        hot: Callable[[], Collection[str]],
        sweep: Callable[[], Iterable[Found]],
        *,
        busy: Callable[[], bool] = lambda: False,
        wanted: Callable[[str], bool] = lambda _: True,
        pace: Pace = Pace(),
        listen: Listen = awatch,
    ) -> None:
        self._roots, self._hot, self._sweep = roots, hot, sweep
        self._busy, self._wanted, self._pace = busy, wanted, pace
        self._ears = _Ears(self._heard, pace, listen)
        self._hints: set[str] = set()
        self._hinted = asyncio.Event()
        self._stamps: dict[str, Stamp | None] = {}
        self._begun = 0
        self.swept = False  # whether `changed` has told all that there was at the first sweep
        self._swept: frozenset[Found] = frozenset()
        self._swept_at = -inf
        self._new_folders: set[str] = set()

    @property
    def trouble(self) -> tuple[str, ...]:
        """What is wrong with the watch, in plain words."""
        return (self._ears.trouble,) if self._ears.trouble else ()

    async def run(self) -> None:
        """Watch until cancelled. The first hints are all that the sweep finds."""
        try:
            while True:
                await self._look(asyncio.get_running_loop().time())
                await asyncio.sleep(self._pace.working if self._busy() else self._pace.resting)
        finally:
            await self._ears.close()

    async def changed(self) -> frozenset[str]:
        """Wait until files may have changed, or were first looked for; return which. If cancelled, none are lost."""
        await self._hinted.wait()
        self._hinted.clear()
        hints, self._hints = frozenset(self._hints), set()
        return hints

    def sweep_soon(self) -> None:
        """Sweep at the next look: the machine slept."""
        self._swept_at = -inf

    def begin_anew(self) -> None:
        """Sweep at the next look as if for the first time: whoever takes the hints knows nothing yet."""
        self.swept, self._swept = False, frozenset()
        self._begun += 1
        self.sweep_soon()

    async def _look(self, now: float) -> None:
        if await self._ears.open(self._roots(), now):
            self.sweep_soon()
        self._hint(self._list_new_folders())
        self._hint(self._stat_hot())
        if now - self._swept_at >= (self._pace.blind if self.trouble else self._pace.sweep):
            self._swept_at = now
            await self._compare_sweep()

    def _list_new_folders(self) -> Iterator[str]:
        """List once more the folders heard of since the last look: the watcher may have been late on them."""
        folders, self._new_folders = self._new_folders, set()
        return (path for folder in folders for path in _files_below(folder))

    def _stat_hot(self) -> Iterator[str]:
        last, self._stamps = self._stamps, {path: stamp(path) for path in self._hot()}
        return (path for path, now in self._stamps.items() if path not in last or last[path] != now)

    async def _compare_sweep(self) -> None:
        begun, found = self._begun, frozenset(await asyncio.to_thread(self._sweep))
        if begun != self._begun:
            return  # other files are wanted by now
        last, self._swept = self._swept, found
        self._hint(file.path for file in last ^ found)
        if not self.swept:
            self.swept = True
            self._hinted.set()  # that there is nothing is worth knowing, too

    def _heard(self, paths: Iterable[str], new_folders: Iterable[str]) -> None:
        self._hint(paths)
        for folder in new_folders:
            self._new_folders.add(folder)
            self._hint(_files_below(folder))

    def _hint(self, paths: Iterable[str]) -> None:
        self._hints.update(filter(self._wanted, paths))
        if self._hints:
            self._hinted.set()


class _Ears:
    """The file watcher: started anew when roots come, go or are replaced, and some time after it failed."""

    def __init__(self, heard: Heard, pace: Pace, listen: Listen) -> None:
        self.trouble = ""
        self._heard, self._pace, self._listen = heard, pace, listen
        self._on: dict[Root, tuple[int, int]] | None = None  # None: start anew
        self._reals: dict[Root, str] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._started = self._retry_at = -inf
        self._delay = pace.retry

    async def open(self, roots: Iterable[Root], now: float) -> bool:
        """Be on the roots that are there; return whether listening began anew, so that a sweep is due."""
        there = {root: identity for root in roots if (identity := _identity(root.path))}
        if self._on == there or now < self._retry_at:
            return False
        await self.close()
        self.trouble, self._on, self._started = "", there, now
        self._reals = {root: _real(root) for root in there}
        for deep in (True, False):
            if paths := {real for root, real in self._reals.items() if root.deep is deep}:
                self._tasks.append(asyncio.create_task(self._follow(paths, self._stop, deep=deep)))
        await asyncio.sleep(0)  # the first step of a task sets its watcher up, or fails
        return not self.trouble

    async def close(self) -> None:
        """End listening, and leave no thread."""
        self._stop.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks, self._stop = [], asyncio.Event()

    async def _follow(self, paths: set[str], stop: asyncio.Event, *, deep: bool) -> None:
        try:
            stream = self._listen(*paths, recursive=deep, step=STEP[deep], stop_event=stop, **OPTIONS)
            async with aclosing(stream):
                async for changes in stream:
                    self._take(changes, deep=deep)
        except Exception as error:  # noqa: BLE001 -- whatever ails the watcher, looking goes on without it
            self._fail(error)

    def _take(self, changes: Iterable[tuple[Change, str]], *, deep: bool) -> None:
        if any(change is Change.deleted and path in self._reals.values() for change, path in changes):
            self._on = None  # a folder made in its place may even get the same inode
        added = {path for change, path in changes if change is Change.added and deep and os.path.isdir(path)}
        self._heard(self._given(path for _, path in changes), self._given(added))

    def _given(self, paths: Iterable[str]) -> Iterator[str]:
        """Name paths as the roots were given, under each root they lie in."""
        for path in paths:
            for root, real in self._reals.items():
                if path == real or path.startswith(real + os.sep):
                    yield root.path + path[len(real) :]

    def _fail(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._started > self._pace.retry_most:
            self._delay = self._pace.retry
        self._retry_at, self._on = now + self._delay, None
        self._delay = min(self._delay * 2, self._pace.retry_most)
        self.trouble = f"{_words(error)}; files are polled instead, which is slower"


def _real(root: Root) -> str:
    """Resolve links: macOS would report what lies behind one under this path only."""
    return os.path.realpath(root.path)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _words(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):  # watchfiles wraps what its thread raises
        error = error.exceptions[0]
    if "watch limit" in str(error) or "Too many open files" in str(error):
        return "the system's limit of file watches is reached"
    return f"the file watcher failed ({str(error)[:200]})"


def _files_below(folder: str) -> Iterator[str]:
    return (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
