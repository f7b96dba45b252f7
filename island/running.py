"""The running program: the clock, the watch, the processes, and what must be told. Shell.

One event loop, one thread. Everything that comes in ends in the observer; everything that changes goes out
through `publish`.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from dataclasses import replace
from glob import has_magic
from itertools import takewhile
from pathlib import PurePath
from typing import Any

from island.agents import AGENTS
from island.attention import GLANCE, Attention, LookedAt
from island.hooks.command import prune
from island.hooks.records import HOME, STATUS
from island.look import matters, watched
from island.manner import Ear
from island.model import Snapshot, State
from island.notices import Book, Notice, Withdraw, advance, stepped
from island.observer import HORIZON, Observer
from island.sources.followed import replaced
from island.sources.processes import Change, SystemTable
from island.sources.sweep import Found, sweep
from island.sources.terminals import Terminals
from island.sources.watch import Root, Watch
from island.wishes import Wishes

log = logging.getLogger(__name__)

#: Seconds between looks at the processes: a crash is seen within the first while anything works.
POLL_BUSY, POLL_CALM = 0.5, 1.0

#: A wall clock that runs away from the monotonic one by more than this was set, or the machine slept.
CLOCK_STEP = 5.0

#: The ages in the menu are told anew this often, though nothing else changed.
REFRESH = 30.0

#: No output can be written any more: nobody reads it, or its disk is full.
FINAL = frozenset({errno.EPIPE, errno.ENOSPC, errno.EDQUOT})

Spoken = tuple[Notice | Withdraw, ...]
Publish = Callable[[Snapshot, Spoken], None]


class Running:
    """Observes for as long as `run` runs, as the settings say.

    panes: read the text of terminals, where nothing else tells, whatever the settings say; exported: what is published
    goes to other programs; looked_at: tells which processes the user looks at: what he sees waiting is not told.
    """

    def __init__(self, publish: Publish, where: Mapping[str, str] | None = None, *, panes: bool = False,
                 exported: bool = False, looked_at: LookedAt | None = None) -> None:
        self.where = dict(where or watched())
        self.table = SystemTable(matters)
        self.terminals = Terminals()
        self.wishes = Wishes()
        self._panes = panes
        self._exported = exported
        self._away = False
        self._trouble: dict[str, str] = {}
        self._attention = Attention(looked_at) if looked_at else None
        now = time.time()
        self.observer = self._observe(now, self.wishes.seen)
        self.book = Book(since=now)
        self.watch = Watch(self._roots, self._hot, self._sweep, busy=self._busy, wanted=self._wants)
        self._publish = publish
        self._skew = time.time() - time.monotonic()
        self._told_at = 0.0
        self._looked = False  # whether all files that were there at the start have been looked at
        self._last: Snapshot | None = None

    async def run(self) -> None:
        """Observe until cancelled."""
        self.observer.processes_changed(self.table.poll(), time.time())
        await self._look_at_terminals()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.watch.run())
            tasks.create_task(self._follow_files())
            tasks.create_task(self._follow_processes())
            if self._attention:
                tasks.create_task(self._follow_the_user(self._attention))

    def publish_now(self) -> None:
        """Tell what is known now, whether it changed or not: something else than the evidence did."""
        self._last = None
        self._tell(time.time())

    # -- what the user wants --------------------------------------------------------------------------------

    @property
    def ear(self) -> Ear:
        """How the user listens just now."""
        ear = replace(self.wishes.ear, away=self._away)
        if not self._exported:
            return ear
        return replace(ear, manner=replace(ear.manner, titles=self.wishes.settings.exports))

    def went(self, away: bool) -> None:
        """Take note that the user has left the screen, or is back."""
        self._away = away
        self._tell(time.time())

    def silence(self, action: str) -> bool:
        """Do one of the actions of `quiet`, and tell; False if it is none of them."""
        done = self.wishes.silence(action, time.time())
        if done:
            self.publish_now()
        return done

    def _wishes_changed(self, now: float) -> None:
        """Do as the user wants from now on."""
        if set(self.observer.sessions.agents) != set(self.wishes.settings.agents):
            self.observer = self._observe(now, self.wishes.seen)
            self.observer.processes_changed(Change(started=tuple(self.table.all())), now)
            self.watch.begin_anew()
            self._looked = False
        self.observer.sessions.seen = self.wishes.seen
        self._last = None  # what is shown may be another thing, too

    def _observe(self, now: float, seen: Mapping[str, None]) -> Observer:
        agents = {name: AGENTS[name] for name in AGENTS if name in self.wishes.settings.agents}
        observer = Observer(self.where, self.table, now, agents=agents)
        observer.sessions.seen = seen
        return observer

    # -- what comes in --------------------------------------------------------------------------------------

    async def _follow_files(self) -> None:
        while True:
            hints = await self._hints()
            async with self._contained("looking at files"):
                now = time.time()
                self.observer.changed(hints, now)
                self.observer.tick(now)
                self._tell(now)

    async def _hints(self) -> frozenset[str]:
        """Wait for hints, but no longer than until something lapses."""
        due = min(self.observer.sessions.due, self.book.due, self._told_at + REFRESH) - time.time()
        try:
            async with asyncio.timeout(max(0.0, due) if self._looked else None):
                hints = await self.watch.changed()
        except TimeoutError:
            return frozenset()
        self._looked = self.watch.swept  # in the same step as its hints: nothing is told before they are looked at
        return hints

    async def _follow_processes(self) -> None:
        while True:
            await asyncio.sleep(POLL_BUSY if self._busy() else POLL_CALM)
            async with self._contained("looking at processes"):
                now = time.time()
                self._check_clock(now)
                if self.wishes.changed():
                    self._wishes_changed(now)
                change = self.table.poll()
                stopped = self.table.stopped()
                if change.started or change.exited or stopped:
                    self.observer.processes_changed(change, now)
                    self.observer.stopped(stopped, now)
                await self._look_at_terminals()
                now = time.time()
                self.observer.tick(now)
                self._tell(now)

    async def _look_at_terminals(self) -> None:
        titled, read = self.observer.titled(), self.observer.screened() if self._reads_panes() else set[int]()
        if titled or read or self.terminals.places:
            seen = await asyncio.to_thread(self.terminals.poll, titled, read)
            self.observer.terminals(seen.titles, seen.screens, time.time())

    async def _follow_the_user(self, attention: Attention) -> None:
        while True:
            await asyncio.sleep(GLANCE)
            async with self._contained("looking at what the user looks at"):
                sessions = self.observer.sessions
                due = not self.ear.away and attention.due(sessions, time.time())
                seen = await attention.seen(sessions) if due else []
                for key in seen:
                    sessions.mark_seen(key)
                if seen:
                    self._tell(time.time())

    @contextlib.asynccontextmanager
    async def _contained(self, what: str) -> AsyncIterator[None]:
        """Let one look fail alone: it is shown as trouble until one succeeds, and the next is a moment later."""
        try:
            yield
        except Exception as error:
            if final(error):
                raise
            if what not in self._trouble:
                log.exception("%s failed", what)
            self._trouble[what] = f"{what} failed: {type(error).__name__}: {error}"
            await asyncio.sleep(POLL_BUSY)  # what was due still is: without a pause it would be tried without end
        else:
            self._trouble.pop(what, None)

    def _check_clock(self, now: float) -> None:
        """Notice that the clock was set, or that the machine slept: what lapsed, and what is to be read."""
        skew = now - time.monotonic()
        step, self._skew = skew - self._skew, skew
        if step < -CLOCK_STEP:
            self.observer.refold(now)
        elif step > CLOCK_STEP:
            self.watch.sweep_soon()
        self.book = stepped(self.book, step, now)

    # -- what the watch asks --------------------------------------------------------------------------------

    def _roots(self) -> Iterable[Root]:
        """Yield the folders to watch, written as the sweep writes them: or one file would be followed by two names."""
        for agent in self.observer.sessions.agents.values():
            for source in agent.sources:
                if source.project:
                    continue  # a few files with full names: they are looked at often instead
                if replaced(source, self.where[agent.name]):
                    continue
                *folders, _ = source.pattern.split("/")
                named = list(takewhile(lambda part: not has_magic(part), folders))
                # A file with a full name needs but its own folder; what lies below that may be huge.
                exact = named == folders and not has_magic(source.pattern)
                yield Root(str(PurePath(self.where[agent.name], *named)), deep=not exact)
        yield from (Root(str(PurePath(self.where[HOME], name))) for name in STATUS if HOME in self.where)

    def _hot(self) -> set[str]:
        return self.observer.hot()  # another one, perhaps, than at the last look

    def _wants(self, path: str) -> bool:
        return self.observer.wants(path)

    def _sweep(self) -> list[Found]:
        if HOME in self.where:
            prune(self.where[HOME], time.time())
        return sweep(self.observer.patterns, time.time() - HORIZON)

    def _reads_panes(self) -> bool:
        return self._panes or self.wishes.settings.panes

    def _busy(self) -> bool:
        return any(v.state is State.WORKING for v in self.observer.sessions.verdicts.values())

    # -- what goes out --------------------------------------------------------------------------------------

    def _tell(self, now: float) -> None:
        if not self._looked:
            return  # what is not looked at yet would be told as not there
        self.wishes.saw(self.observer.sessions.seen)
        trouble = (*self.wishes.trouble, *self.watch.trouble, *self._trouble.values())
        snapshot = self.observer.snapshot(now, trouble)
        self.book, spoken = advance(self.book, snapshot.rows, now, self.ear)
        snapshot = self.wishes.veil(snapshot, exported=self._exported)
        same = self._last is not None and same_but_for_time(self._last, snapshot)
        if spoken or not same or now >= self._told_at + REFRESH:
            self._told_at, self._last = now, snapshot
            try:
                self._publish(snapshot, spoken)
            except Exception as error:  # what fails to show is shown anew at the next change
                if final(error):
                    raise
                log.exception("something could not be shown")


async def until_told(work: Coroutine[Any, Any, None], over: asyncio.Event) -> None:
    """Run `work` until it ends, or until `over` is set: by the caller, Ctrl-C or SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows; not the main thread
            asyncio.get_running_loop().add_signal_handler(number, over.set)
    tasks = [asyncio.create_task(work), asyncio.create_task(over.wait())]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def final(error: Exception) -> bool:
    """Tell whether an error means that there is no output to write to any more."""
    return isinstance(error, OSError) and error.errno in FINAL


def same_but_for_time(one: Snapshot, other: Snapshot) -> bool:
    """Tell whether two snapshots show the same."""
    return (one.icon, one.calm, one.rows, one.trouble) == (other.icon, other.calm, other.rows, other.trouble)
