"""Bring the terminal of a session to the front, to its tab and pane where that can be told. Shell.

It fails closed, with a word: a window is brought only if it is surely the right one. Nothing is ever typed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath

from island.desktop import tmux
from island.desktop.programs import ProgramError, start
from island.desktop.spots import Spot, lanes, spot, windows_of
from island.desktop.tabs import Terminal, select
from island.desktop.windows import Windows, open_windows
from island.sources.terminals import Window

log = logging.getLogger(__name__)

#: A tmux within a tmux within a tmux is enough.
DEEPEST = 3

#: What stands between the parts of an editor's title.
SEPARATORS = re.compile(r" [-\u2013\u2014] | \[|\]")


def jump(pids: Iterable[int], folder: str = "", opened: Callable[[], Windows | None] = open_windows) -> str:
    """Bring what shows one of these processes to the front; return what stood in the way, or nothing."""
    word, windows = "which process runs it is not known", None
    try:
        windows = opened()
        for pid in pids:
            word = _to(pid, folder, windows, 0)
            if not word:
                return ""
    except Exception as error:  # the desktop may fail in any way
        log.info("jump failed", exc_info=True)
        return f"the desktop does not answer: {error}"
    finally:
        if windows:
            windows.close()
    return word


def _to(pid: int, folder: str, windows: Windows | None, deep: int) -> str:
    where = spot(pid)
    if where.tab.place.server:
        return _to_pane(where, windows, deep)
    if where.terminal is None:
        return "no terminal on this screen shows it"
    if where.terminal.editor:
        return _to_editor(where, folder, windows)
    return _to_window(where, where.terminal, windows)


def _to_pane(where: Spot, windows: Windows | None, deep: int) -> str:
    """Bring the terminal that shows a pane, or else the one last used at this tmux, and have it show the pane."""
    place = where.tab.place
    panes = {pane.session: pane for pane in tmux.panes(place.server, place.tty)}
    if not panes:
        return "tmux does not answer for its pane"
    clients = [client for client in tmux.clients(place.server) if not client.control]
    showing = [client for client in clients if client.session in panes] or clients
    first = next(iter(panes.values()))
    if not showing or deep >= DEEPEST:
        return f"no terminal shows its tmux session: tmux attach -t {first.name}"
    client = showing[0]
    word = _to(client.pid, "", windows, deep + 1)
    if not word or client.session in panes:
        tmux.show(place.server, client, panes.get(client.session, first))
    return word


def _to_window(where: Spot, terminal: Terminal, windows: Windows | None) -> str:
    """Bring the window of a terminal program, if it is surely the right one, with its tab in front."""
    several = len(lanes(where)) > 1
    own = windows_of(where, windows) if windows else []
    sure = len(own) == 1 and (windows is None or windows.each or not several)
    if not sure and not terminal.raises:
        return _unsure(where, windows, own)
    word = select(terminal, where.tab)
    if not sure:
        return word
    if windows and not windows.bring(own[0]):
        return f"the desktop did not bring the window of {where.name} to the front"
    return f"its window is in front, but not surely its tab: {word}" if word and several else ""


def _unsure(where: Spot, windows: Windows | None, own: Sequence[Window]) -> str:
    if windows is None:
        return "this desktop lets no program bring a window to the front"
    if not own:
        return f"no window of {where.name} is on this screen"
    return f"{where.name} shows several terminals, and which is the right one cannot be told"


def _to_editor(where: Spot, folder: str, windows: Windows | None) -> str:
    """Bring the window of an editor that has a session's folder open: by its title, or by the editor's command."""
    own = windows.of(where.program) if windows and windows.each else []
    named = titled(own, folder) or (own[0] if len(own) == 1 else None)
    if named and windows:
        return "" if windows.bring(named) else f"the desktop did not bring the window of {where.name} to the front"
    if not folder:
        return f"which window of {where.name} it is cannot be told"
    try:
        # Not with --reuse-window: where no window has the folder, that takes one away from another.
        start(where.name, folder)
    except ProgramError as error:
        return f"which window of {where.name} it is cannot be told, and {error}"
    return ""


def titled(windows: Sequence[Window], folder: str) -> Window | None:
    """Return the only window whose title names a folder, or the nearest folder above that one names."""
    for name in PurePath(folder).parts[:0:-1]:
        named = [window for window in windows if name in map(str.strip, SEPARATORS.split(window.title))]
        if named:
            return named[0] if len(named) == 1 else None
    return None
