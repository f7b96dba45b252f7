"""Which sessions the user is looking at: their terminal has the keyboard, and shows them. Shell.

Whoever looks at a session needs no notice of it. What is not sure is not looked at: a notice too many is better than
one too few.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from island.desktop import tmux
from island.desktop.spots import Spot, lanes, spot, windows_of
from island.desktop.tabs import in_front
from island.desktop.windows import Windows, open_windows
from island.sources.terminals import Window

log = logging.getLogger(__name__)

#: Who has touched nothing for so many seconds may have left; screens are locked not long after.
PRESENT = 300.0

#: A tmux within a tmux within a tmux is enough.
DEEPEST = 3


class Focus:
    """Looks at what the user looks at. A look may take milliseconds: it wants a thread."""

    def __init__(self, opened: Callable[[], Windows | None] = open_windows) -> None:
        self._opened = opened
        self._windows: Windows | None = None
        self._said = ""

    def look(self, pids: Collection[int]) -> frozenset[int]:
        """Return those of some processes that the user is surely looking at."""
        try:
            self._windows = self._windows or self._opened()
            active = self._windows.active() if self._windows else None
            if self._windows is None or active is None or (self._windows.idle() or 0.0) > PRESENT:
                return frozenset()
            return frozenset(pid for pid in pids if looked_at(pid, active, self._windows))
        except Exception as error:  # noqa: BLE001 - the desktop may fail in any way; it is asked anew at the next look
            self._forget(error)
            return frozenset()

    def _forget(self, error: Exception) -> None:
        why = f"{type(error).__name__}: {error}"
        if why != self._said:  # once for as long as it stays the same
            self._said = why
            log.info("what has the focus cannot be told: %s", why)
        self.close()

    def close(self) -> None:
        """Leave the desktop alone until the next look."""
        if self._windows:
            self._windows.close()
        self._windows = None


def looked_at(pid: int, active: Window, windows: Windows, deep: int = 0) -> bool:
    """Tell whether a process is surely what the active window shows."""
    where = spot(pid)
    if where.tab.place.server:
        return deep < DEEPEST and any(looked_at(c, active, windows, deep + 1) for c in _clients(where))
    terminal = where.terminal
    if terminal is None or terminal.editor or active.pid not in (0, where.program):
        return False
    own = windows_of(where, windows)
    if active.ident not in {window.ident for window in own}:
        return False
    window = where.tab.place.window if own[0].ident == where.tab.place.window else 0
    return lanes(where, window) == {where.tab.place.tty} or in_front(terminal, where.tab)


def _clients(where: Spot) -> list[int]:
    """Return the terminals attached to tmux that show a process's pane, as the active one."""
    place = where.tab.place
    sessions = {pane.session for pane in tmux.panes(place.server, place.tty) if pane.active}
    return [client.pid for client in tmux.clients(place.server) if client.session in sessions and not client.control]
