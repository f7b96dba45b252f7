"""Windows on KDE's Wayland session, where kdotool is installed: KWin itself lets only its scripts see them. Shell."""

from __future__ import annotations

from uuid import UUID

from island.desktop.programs import run
from island.sources.terminals import Window


class Kde:
    """The windows of KWin. Each question starts a program, so that nothing is asked but for a jump."""

    each = True

    def of(self, pid: int) -> list[Window]:
        """Return the windows of a process."""
        found = run("kdotool", "search", "--pid", str(pid)).split()
        return [Window(UUID(ident.strip("{}")).int, pid, "") for ident in found]

    def active(self) -> Window | None:
        """KWin tells nobody of the active window without a program at each look."""
        return None

    def idle(self) -> None:
        """As above."""

    def bring(self, window: Window) -> bool:
        """Focus a window, on whatever desktop it is."""
        run("kdotool", "windowactivate", f"{{{UUID(int=window.ident)}}}")
        return True

    def close(self) -> None:
        """Nothing is held open."""
