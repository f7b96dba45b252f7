"""Where on the screen a process is: found by the processes above it and by its terminal. Shell, but asks nobody."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

import psutil

from island.desktop.tabs import BY_NAME, Tab, Terminal, known_as
from island.desktop.windows import Windows
from island.sources.terminals import UNREADABLE, Place, Window, place

#: On Windows no program has a terminal by name, and what shows one are consoles, each with a host of its own.
ON_WINDOWS = sys.platform == "win32"
HOSTS = frozenset({"conhost", "openconsole"})


@dataclass(frozen=True, slots=True)
class Spot:
    """The program that shows a process: the terminal program above it, or else nothing is known.

    program: its pid, 0 if unknown; name: for people; terminal: its row.
    """

    tab: Tab
    program: int = 0
    name: str = ""
    terminal: Terminal | None = None


def spot(pid: int) -> Spot:
    """Return where a process is. One that has ended, or may not be read, is nowhere."""
    where = _within_tmux(place(pid))
    tab = Tab(pid, where, _environ(pid))
    above = [(parent, known_as(_name(parent))) for parent in where.above]
    number = next((i for i, (_, name) in enumerate(above) if name in BY_NAME), None)
    if number is None:
        return _in_console(tab)
    terminal = BY_NAME[above[number][1]]
    if terminal.editor:  # it is several processes of one name, of which the outermost has the windows
        run = takewhile(lambda parent: parent[1] in terminal.names, above[number:])
        *_, (program, name) = run
    else:
        program, name = above[number]
    return Spot(tab, program, name, terminal)


def _in_console(tab: Tab) -> Spot:
    """Return the console that a process is in, where no terminal program shows it: that of the program it began with.

    Windows says of its window that it is that program's.
    """
    for pid in (tab.pid, *tab.place.above) if ON_WINDOWS else ():
        if any(known_as(_name(child)) in HOSTS for child in _children(pid)):
            return Spot(tab, pid, known_as(_name(pid)), BY_NAME["conhost"])
    return Spot(tab)


def _within_tmux(where: Place) -> Place:
    """Add the tmux around a process that was told not to know of it, as a tmux in a tmux is."""
    if where.server or not where.tty:
        return where
    around = next((p.server for p in map(place, where.above) if p.server and p.tty == where.tty), "")
    return replace(where, server=around)


def windows_of(spot: Spot, windows: Windows) -> list[Window]:
    """Return the windows that may show a process: the one that its environment names, or all of its program."""
    mine, named = windows.of(spot.program), spot.tab.place.window
    return [w for w in (*mine, *(windows.of(0) if named else ())) if w.ident == named] or mine


def lanes(spot: Spot, window: int = 0) -> set[str]:
    """Return the terminals that a program shows; with a window, those that may be in it.

    What runs in one of them may make more, for its commands or as another program: these are not shown in this one.
    """
    own, found, wave = place(spot.program).tty, {spot.tab.place.tty}, _children(spot.program)
    if ON_WINDOWS:
        return found | _others(spot, wave)
    while wave:
        where = place(pid := wave.pop())
        if where.tty in ("", own):
            wave += _children(pid)
        elif not window or where.window in (0, window):
            found.add(where.tty)
    return found


def _others(spot: Spot, shells: Iterable[int]) -> set[str]:
    """Return a name for each other terminal that a program shows on Windows: each has a program of its own below it."""
    mine = {spot.tab.pid, spot.program, *spot.tab.place.above}
    if spot.terminal is None or HOSTS & {*spot.terminal.names}:
        return set()  # all that runs in a console is in this one
    return {str(pid) for pid in shells if pid not in mine and known_as(_name(pid)) not in HOSTS}


def _children(pid: int) -> list[int]:
    try:
        return [process.pid for process in psutil.Process(pid).children()]
    except UNREADABLE:
        return []


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except UNREADABLE:
        return ""


def _environ(pid: int) -> Mapping[str, str]:
    try:
        return psutil.Process(pid).environ()
    except UNREADABLE:
        return {}

