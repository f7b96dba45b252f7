"""Where on the screen a process is: found by the processes above it and by its terminal. Shell, but asks nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile

import psutil

from island.desktop.tabs import BY_NAME, Tab, Terminal, known_as
from island.desktop.windows import Windows
from island.sources.terminals import UNREADABLE, Place, Window, place


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
        return Spot(tab)
    terminal = BY_NAME[above[number][1]]
    if terminal.editor:  # it is several processes of one name, of which the outermost has the windows
        run = takewhile(lambda parent: parent[1] in terminal.names, above[number:])
        *_, (program, name) = run
    else:
        program, name = above[number]
    return Spot(tab, program, name, terminal)


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
    while wave:
        where = place(pid := wave.pop())
        if where.tty in ("", own):
            wave += _children(pid)
        elif not window or where.window in (0, window):
            found.add(where.tty)
    return found


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

