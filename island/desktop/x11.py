"""Windows on X11, as its window manager tells of them (https://specifications.freedesktop.org/wm-spec/). Shell."""

from __future__ import annotations

import time
from typing import Any

from island.sources.terminals import Screen, Window

FROM_A_PAGER = 2  # who asks: not the window itself, so window managers do not take it for a theft of the focus
PATIENCE = 1.0  # for a window manager to do what it is asked
PAUSE = 0.02


class X11Windows(Screen):
    """The windows of the X11 screen that DISPLAY names."""

    each = True

    def __init__(self) -> None:
        super().__init__()
        self._atoms["_NET_ACTIVE_WINDOW"] = self._display.intern_atom("_NET_ACTIVE_WINDOW")

    def of(self, pid: int) -> list[Window]:
        """Return the windows of a process."""
        return [window for window in self.windows() if window.pid == pid]

    def active(self) -> Window | None:
        """Return the window that has the keyboard."""
        ident = self._property(self._root, "_NET_ACTIVE_WINDOW")
        return self._window(int(ident[0])) if ident and ident[0] else None

    def idle(self) -> float | None:
        """Return the seconds since the last input, if the server counts them."""
        if not self._display.has_extension("MIT-SCREEN-SAVER"):
            return None
        return float(self._root.screensaver_query_info().idle) / 1000

    def bring(self, window: Window) -> bool:
        """Ask the window manager for a window, and wait until it has come."""
        from Xlib import X  # noqa: PLC0415 - is there on Linux alone
        from Xlib.protocol.event import ClientMessage  # noqa: PLC0415 - as above

        target = self._display.create_resource_object("window", window.ident)
        asked: Any = ClientMessage(window=target, client_type=self._atoms["_NET_ACTIVE_WINDOW"],
                                   data=(32, [FROM_A_PAGER, X.CurrentTime, 0, 0, 0]))
        self._root.send_event(asked, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            active = self.active()
            if active and active.ident == window.ident:
                return True
            time.sleep(PAUSE)
        return False
