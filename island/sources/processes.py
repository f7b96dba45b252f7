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

from island.model import Process

T = TypeVar("T")

#: Variables of a tool's process that say for which call it runs; nothing else of an environment is kept.
CALL_VARIABLES = ("CODEX_TOOL_CALL_ID", "CODEX_THREAD_ID")


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

    def same(self, pid: int, guard: str, started: float) -> bool:
        """Tell whether the process with this pid runs, and is still the one that a record was written by."""


def descendants(pid: int, processes: Iterable[Process]) -> list[Process]:
    """Return the processes below one, by parent pids."""
    children: dict[int, list[Process]] = {}
    for p in processes:
        children.setdefault(p.ppid, []).append(p)
    found, wave = [], list(children.get(pid, ()))
    while wave:
        found.append(p := wave.pop())
        wave.extend(c for c in children.get(p.pid, ()) if c is not p)
    return found


@dataclass(slots=True)
class SystemTable:
    """The real processes of this machine."""

    matters: Callable[[Process], bool]
    known: dict[int, Process] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    @property
    def complete(self) -> bool:
        """Whether all of this user's processes can be seen: after the first look they can."""
        return bool(self.seen)

    def poll(self) -> Change:
        """Look once: which processes that matter have started, changed or ended."""
        pids = set(psutil.pids())
        exited = [self.known.pop(pid) for pid in [*self.known] if pid not in pids or _zombie(pid)]
        new = sorted(pids - self.seen)
        self.seen = pids
        started = [p for pid in new if (p := self._admit(pid))]
        return Change(tuple(started), tuple(exited))

    def stopped(self) -> tuple[Process, ...]:
        """Return the agents whose being suspended by a signal has changed."""
        changed = []
        for pid, p in self.known.items():
            if self.matters(p) and (now := _stopped(pid)) != p.stopped:
                self.known[pid] = replace(p, stopped=now)
                changed.append(self.known[pid])
        return tuple(changed)

    def get(self, pid: int) -> Process | None:
        """Return a running process, also one that was not known to matter; from now on it does."""
        if pid not in self.known and (p := _read(pid)):
            self.known[pid] = _whole(p)
        return self.known.get(pid)

    def below(self, pid: int) -> Iterable[Process]:
        """Return the known descendants of a process."""
        return descendants(pid, self.known.values())

    def all(self) -> Iterable[Process]:
        """Return all known processes."""
        return self.known.values()

    def same(self, pid: int, guard: str, started: float) -> bool:
        """Compare start time and namespace with what the record says; what cannot be compared passes."""
        ticks, _, domain = guard.partition(" ")
        if not _same_namespace(domain):
            return True
        p = self.get(pid)
        if p is None:
            return False
        if ticks.isdecimal() and (mine := _start_ticks(pid)):
            return mine == ticks
        return p.created < 0 or p.created <= started + 5.0

    def _admit(self, pid: int) -> Process | None:
        p = _read(pid)
        if p is None or not (p.ppid in self.known or self.matters(p)):
            return None
        self.known[pid] = _whole(p)
        return self.known[pid]


def _read(pid: int) -> Process | None:
    """Read what tells whether a process matters."""
    try:
        p = psutil.Process(pid)
        with p.oneshot():
            status = p.status()
            if status == psutil.STATUS_ZOMBIE:
                return None
            return Process(pid, p.ppid(), p.name(), tuple(p.cmdline()), created=p.create_time(),
                           stopped=status == psutil.STATUS_STOPPED)
    except (psutil.Error, OSError):
        return None


def _whole(p: Process) -> Process:
    """Add what only matters of a process that does."""
    one = _optional(lambda: psutil.Process(p.pid))
    if one is None:
        return p
    return replace(p, cwd=_optional(one.cwd) or "", environ=_calls(_optional(one.environ)))


def _optional(look: Callable[[], T]) -> T | None:
    try:
        return look()
    except (psutil.Error, OSError):
        return None


def _calls(environ: Mapping[str, str] | None) -> Mapping[str, str] | None:
    return None if environ is None else {k: environ[k] for k in CALL_VARIABLES if k in environ}


def _zombie(pid: int) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return False


def _stopped(pid: int) -> bool:
    with contextlib.suppress(psutil.Error, OSError):
        return psutil.Process(pid).status() in (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
    return False


def _start_ticks(pid: int) -> str:
    """Return field 22 of /proc/<pid>/stat, counted after the name, which may hold blanks."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    return ""


def _same_namespace(domain: str) -> bool:
    """Tell whether a record's pid namespace is ours: pids of a container or another machine say nothing."""
    if not sys.platform.startswith("linux") or ":pid:[" not in domain:
        return True
    with contextlib.suppress(OSError):
        return domain.endswith(os.readlink("/proc/self/ns/pid"))
    return True
