"""Processes: which agents run, what runs below them, which have ended. Shell: reads, decides nothing.

Only new pids are looked at (a set difference, under a millisecond for 500 processes); the full look is at
launch. Other users' processes and those that may not be read are left out: unknown, not gone.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

import psutil

from island.agents import AGENTS
from island.model import Process

T = TypeVar("T")

#: Variables of a tool's process that say for which call it runs; nothing else of an environment is kept.
CALL_VARIABLES = tuple(agent.call_variable for agent in AGENTS.values() if agent.call_variable)

#: Looks at a new process until it is believed: it may be a copy of its parent, or a wrapper, at the first.
LOOKS = 3

#: What psutil raises for what is not there, may not be read, or is no pid.
UNREADABLE = (psutil.Error, OSError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Change:
    """What a look at the processes found new since the last one."""

    started: tuple[Process, ...] = ()
    exited: tuple[Process, ...] = ()


class Table(Protocol):
    """The processes that matter: agents, what they started, and those asked for by pid."""

    @property
    def complete(self) -> bool:
        """Whether a process that is not in the table does not run."""

    def get(self, pid: int) -> Process | None:
        """Return a running process; None if it has ended (a zombie has)."""

    def below(self, pid: int) -> Iterable[Process]:
        """Return the known descendants of a process."""

    def all(self) -> Iterable[Process]:
        """Return all known processes."""

    def foreign(self, guard: str) -> bool:
        """Tell whether a record was written in another pid namespace or on another machine."""

    def same(self, pid: int, guard: str, started: float) -> bool:
        """Tell whether the process with this pid runs, and is still the one that a record was written by."""


def descendants(pid: int, processes: Iterable[Process]) -> list[Process]:
    """Return the processes below one, by parent pids."""
    children: dict[int, list[Process]] = {}
    for p in processes:
        children.setdefault(p.ppid, []).append(p)
    found, wave = [], children.pop(pid, [])
    while wave:
        found.append(p := wave.pop())
        wave += children.pop(p.pid, [])
    return found


@dataclass(slots=True)
class SystemTable:
    """The real processes of this machine."""

    matters: Callable[[Process], bool]
    known: dict[int, Process] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)
    young: dict[int, int] = field(default_factory=dict)
    handles: dict[int, psutil.Process] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether all of this user's processes can be seen: after the first look they can."""
        return bool(self.seen)

    def poll(self) -> Change:
        """Look once: which processes that matter have started, changed or ended."""
        pids = set(psutil.pids())
        exited = [self._forget(pid) for pid in [*self.known] if pid not in pids or self._is_over(pid)]
        looks = LOOKS if self.seen else 1  # at launch nearly all are what they are
        self.young.update(dict.fromkeys(pids - self.seen | {p.pid for p in exited} & pids, looks))
        self.seen = pids
        looked = {pid: p for pid in sorted(self.young.keys() & pids) if (p := _read(pid))}
        self.young = {pid: left - 1 for pid, left in self.young.items() if left > 1 and pid in pids}
        return Change(tuple(self._admit(looked)), tuple(exited))

    def _admit(self, looked: Mapping[int, Process]) -> Iterable[Process]:
        """Take in those that matter or are below one that does, in whatever order of pids; tell what is new."""
        waiting = dict(looked)
        while taken := [p for p in waiting.values() if p.ppid in self.known or self.matters(p)]:
            for p in taken:
                del waiting[p.pid]
                held = self.known.get(p.pid)
                if held is None or (held.name, held.cmdline) != (p.name, p.cmdline):
                    yield self._know(p)

    def _know(self, p: Process) -> Process:
        self.known[p.pid] = _whole(p)
        if p.pid not in self.handles and (handle := _optional(lambda: psutil.Process(p.pid))):
            self.handles[p.pid] = handle
        return self.known[p.pid]

    def _forget(self, pid: int) -> Process:
        self.handles.pop(pid, None)
        return self.known.pop(pid)

    def _is_over(self, pid: int) -> bool:
        """Tell whether a process has ended, though its pid is there: as a zombie, or as another process."""
        handle = self.handles.get(pid)
        try:
            return handle is not None and (not handle.is_running() or handle.status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True
        except UNREADABLE:
            return False

    def stopped(self) -> tuple[Process, ...]:
        """Return the agents whose being suspended by a signal has changed."""
        changed = []
        for pid, p in self.known.items():
            if self.matters(p) and (now := _stopped(pid)) is not None and now != p.stopped:
                self.known[pid] = replace(p, stopped=now)
                changed.append(self.known[pid])
        return tuple(changed)

    def get(self, pid: int) -> Process | None:
        """Return a running process, also one that was not known to matter; from now on it does."""
        if pid not in self.known and (p := _read(pid)):
            self._know(p)
        return self.known.get(pid)

    def below(self, pid: int) -> Iterable[Process]:
        """Return the known descendants of a process."""
        return descendants(pid, self.known.values())

    def all(self) -> Iterable[Process]:
        """Return all known processes."""
        return self.known.values()

    def foreign(self, guard: str) -> bool:
        """Tell whether a record was written in another pid namespace or on another machine."""
        return not _is_here(guard.partition(" ")[2])

    def same(self, pid: int, guard: str, started: float) -> bool:
        """Compare start time and namespace with what the record says; what cannot be compared passes."""
        start = guard.partition(" ")[0]
        if self.foreign(guard):
            return True
        p = self.get(pid)
        if p is None:
            return False
        if start.rpartition(":")[2].isdecimal() and (mine := _start(pid, since_boot=":" in start)):
            return mine == start
        return p.created < 0 or p.created <= started + 5.0


def _read(pid: int) -> Process | None:
    """Read what tells whether a process matters; None if it has ended (a zombie has).

    One that may not be read is nobody's child and has no name: unknown is not gone.
    """
    try:
        p = psutil.Process(pid)
        with p.oneshot():
            status = p.status()
            if status == psutil.STATUS_ZOMBIE:
                return None
            return Process(pid, p.ppid(), p.name().removesuffix(".exe"), tuple(p.cmdline()), created=p.create_time(),
                           stopped=status in STOPPED)
    except psutil.AccessDenied:
        return Process(pid, -1, "")
    except UNREADABLE:
        return None


STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)


def _whole(p: Process) -> Process:
    """Add what only matters of a process that does."""
    one = _optional(lambda: psutil.Process(p.pid))
    if one is None:
        return p
    return replace(p, cwd=_optional(one.cwd) or "", environ=_calls(_optional(one.environ)))


def _optional(look: Callable[[], T]) -> T | None:
    try:
        return look()
    except UNREADABLE:
        return None


def _calls(environ: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return None if environ is None else {k: environ[k] for k in CALL_VARIABLES if k in environ}


def _stopped(pid: int) -> bool | None:
    """Tell whether a process is suspended by a signal; None if it may not be read."""
    return _optional(lambda: psutil.Process(pid).status() in STOPPED)


def _start(pid: int, *, since_boot: bool) -> str:
    """Return when a process started as records have it: ticks, perhaps after the id of the boot that they count from.

    They are field 22 of /proc/<pid>/stat, counted after the name, which may hold blanks.
    """
    with contextlib.suppress(OSError):
        ticks = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip() if since_boot else ""
        return f"{boot}:{ticks}" if boot else ticks
    return ""


def _is_here(domain: str) -> bool:
    """Tell whether a record's pids are ours: those of a container or another machine say nothing.

    Not every record names its machine. A container on macOS or Windows may write into the same home.
    """
    machine, _, namespace = domain.rpartition(":pid:")
    if not namespace:
        return True
    if not sys.platform.startswith("linux"):
        return not machine.startswith("linux:")
    with contextlib.suppress(OSError):
        if machine and machine != f"linux:{Path('/etc/machine-id').read_text().strip()}":
            return False
        return f"pid:{namespace}" == os.readlink("/proc/self/ns/pid")
    return True
