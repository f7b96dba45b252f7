"""The terminals that agents run in: their titles (tmux panes, X11 windows) and, if wanted, their text (tmux). Shell.

Some agents put into the title what stands nowhere on the disk: that they ask for a permission. A title is bound to a
process by its terminal (tmux), by the window that its environment names, or by the window of the terminal program
above it (X11). What cannot be bound for sure says nothing. Nothing is asked of any agent, and nothing is changed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import psutil
from psutil import _psposix

#: Seconds that a tmux server may take to answer.
PATIENCE = 1.0

#: What psutil raises for what is not there, may not be read, or is no pid.
UNREADABLE = (psutil.Error, OSError, ValueError, OverflowError)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a process runs: its terminal, the tmux server that owns this, the X11 window, and the processes above."""

    tty: str = ""
    server: str = ""
    window: int = 0
    above: tuple[int, ...] = ()


class Seen(NamedTuple):
    """What the terminals of some processes show, by pid: titles that may be its own; the visible text of its pane."""

    titles: Mapping[int, tuple[str, ...]] = {}
    screens: Mapping[int, str] = {}


class Pane(NamedTuple):
    """A pane of tmux: its id, which is stable, and its title."""

    ident: str
    title: str


@dataclass(slots=True)
class Terminals:
    """Looks at the terminals of some processes. A look may take milliseconds: it wants a thread."""

    places: dict[int, Place] = field(default_factory=dict)
    screen: Screen | None = None

    def poll(self, titled: Collection[int], read: Collection[int] = ()) -> Seen:
        """Return the titles of some processes' terminals, and of others the text, without what has scrolled away."""
        self.places = {pid: self.places.get(pid) or place(pid) for pid in {*titled, *read}}
        panes = self._panes()
        titles = {pid: (panes[pid].title,) for pid in titled if pid in panes}
        outside = {pid: self.places[pid] for pid in titled if not self.places[pid].server}
        screens = {pid: self._text(pid, panes[pid]) for pid in read if pid in panes}
        return Seen(titles | (self._windows(outside) if outside else {}), screens)

    def _panes(self) -> dict[int, Pane]:
        found = {}
        for server in sorted({p.server for p in self.places.values() if p.server}):
            for line in tmux(server, "list-panes", "-a", "-F", "#{pane_tty} #{pane_id} #{pane_title}").splitlines():
                tty, ident, title = line.split(" ", 2)
                found[server, tty] = Pane(ident, title)
        return {pid: found[p.server, p.tty] for pid, p in self.places.items() if (p.server, p.tty) in found}

    def _text(self, pid: int, pane: Pane) -> str:
        return tmux(self.places[pid].server, "capture-pane", "-p", "-t", pane.ident)

    def _windows(self, places: Mapping[int, Place]) -> dict[int, tuple[str, ...]]:
        if not sys.platform.startswith("linux") or not os.environ.get("DISPLAY"):
            return {}
        try:
            self.screen = self.screen or Screen()
            return bound(places, self.screen.windows())
        except Exception:  # noqa: BLE001 - Xlib raises what it likes when its server goes; it is asked anew
            if self.screen:
                self.screen.close()
            self.screen = None
            return {}


@dataclass(frozen=True, slots=True)
class Window:
    """A window of the screen: its id, the process that made it (0: unknown), its title."""

    ident: int
    pid: int
    title: str


def bound(places: Mapping[int, Place], windows: Iterable[Window]) -> dict[int, tuple[str, ...]]:
    """Return the titles that may be each process's. A program that shows several terminals says nothing of any."""
    by_ident, by_pid = {}, defaultdict(list)
    for window in windows:
        by_ident[window.ident] = window
        by_pid[window.pid].append(window.title)
    shown = defaultdict(set)  # by terminal program or window: the terminals in it
    owners: dict[int, tuple[tuple[str, int], tuple[str, ...]]] = {}
    for pid, p in places.items():
        program = next((q for q in p.above if q in by_pid), 0)
        if p.window in by_ident:
            owners[pid] = ("window", p.window), (by_ident[p.window].title,)
        elif program:
            owners[pid] = ("program", program), tuple(by_pid[program])
        if pid in owners:
            shown[owners[pid][0]].add(p.tty)
    return {pid: titles for pid, (owner, titles) in owners.items() if len(shown[owner]) == 1}


def place(pid: int) -> Place:
    """Return where a process runs, as far as it may be known."""
    try:
        p = psutil.Process(pid)
        environ = p.environ()
        window = environ.get("WINDOWID", "")
        return Place(_tty(p), environ.get("TMUX", "").partition(",")[0],
                     int(window) if window.isdecimal() else 0, tuple(q.pid for q in p.parents()))
    except UNREADABLE:
        return Place()


def _tty(p: psutil.Process) -> str:
    if sys.platform == "win32":
        return ""
    tty = p.terminal()
    if tty is None:  # psutil remembers for good which terminals there are, and this one may be newer
        _psposix.get_terminal_map.cache_clear()  # type: ignore[attr-defined,unused-ignore]
        tty = p.terminal()
    return tty or ""


def tmux(server: str, *command: str) -> str:
    """Ask a tmux server; no answer is an empty one."""
    program = shutil.which("tmux")
    if not program:
        return ""
    try:
        asked = subprocess.run([program, "-N", "-S", server, *command], stdin=subprocess.DEVNULL, capture_output=True,
                               timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return asked.stdout.decode(errors="replace")


class Screen:
    """The X11 screen, as its window manager tells of it (https://specifications.freedesktop.org/wm-spec/)."""

    def __init__(self) -> None:
        from Xlib.display import Display  # noqa: PLC0415 - opens a connection, and is there on Linux alone

        self._display = Display()
        self._root = self._display.screen().root
        self._atoms = {name: self._display.intern_atom(name)
                       for name in ("_NET_CLIENT_LIST", "_NET_WM_NAME", "_NET_WM_PID", "WM_NAME")}

    def windows(self) -> list[Window]:
        """Return all windows of programs. Raises Xlib's errors if the server is gone."""
        return [self._window(ident) for ident in self._property(self._root, "_NET_CLIENT_LIST") or ()]

    def close(self) -> None:
        """Leave the server, which may be gone."""
        with contextlib.suppress(Exception):
            self._display.display.socket.close()

    def _window(self, ident: int) -> Window:
        window = self._display.create_resource_object("window", ident)
        title = self._property(window, "_NET_WM_NAME") or self._property(window, "WM_NAME") or b""
        pid = self._property(window, "_NET_WM_PID")
        return Window(ident, int(pid[0]) if pid else 0, title.decode(errors="replace"))

    def _property(self, window: Any, name: str) -> Any:
        from Xlib import X  # noqa: PLC0415 - as above
        from Xlib.error import BadWindow  # noqa: PLC0415 - as above

        try:
            found = window.get_full_property(self._atoms[name], X.AnyPropertyType)
        except BadWindow:  # closed meanwhile
            return None
        return found.value if found else None
