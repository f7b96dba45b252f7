"""Windows on GNOME's Wayland session, which tells of them through the Window Calls extension alone. Shell."""

from __future__ import annotations

import json
from typing import Any

from island.desktop.bus import BusError, Peer, ask
from island.sources.terminals import Window

SHELL = Peer("org.gnome.Shell", "/org/gnome/Shell/Extensions/Windows", "org.gnome.Shell.Extensions.Windows")
IDLE = Peer("org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", "org.gnome.Mutter.IdleMonitor")


class Gnome:
    """The windows of GNOME Shell. Without the extension each question is an error."""

    each = True

    def of(self, pid: int) -> list[Window]:
        """Return the windows of a process."""
        return [self._window(one) for one in self._list() if one.get("pid") == pid]

    def active(self) -> Window | None:
        """Return the window that has the keyboard."""
        return next((self._window(one) for one in self._list() if one.get("focus")), None)

    def idle(self) -> float | None:
        """Return the seconds since the last input."""
        try:
            return float(ask(IDLE, "GetIdletime")[0]) / 1000
        except BusError:
            return None

    def bring(self, window: Window) -> bool:
        """Focus a window, on whatever workspace it is."""
        ask(SHELL, "Activate", "u", window.ident)
        return True

    def close(self) -> None:
        """Nothing is held open."""

    @staticmethod
    def _list() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(ask(SHELL, "List")[0])
        return found

    @staticmethod
    def _window(one: dict[str, Any]) -> Window:
        return Window(int(one["id"]), int(one.get("pid") or 0), str(one.get("title") or ""))
