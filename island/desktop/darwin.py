"""Applications on macOS: it tells a program of whole applications, and brings them to the front whole. Shell.

Must not be imported elsewhere than on macOS, where AppKit and Quartz come with pystray. Everything is asked on the
main thread, which belongs to the tray: AppKit's answers are up to date there alone.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import AppKit
import Quartz
from PyObjCTools import AppHelper

from island.sources.terminals import Window

T = TypeVar("T")

PATIENCE = 2.0
ANY_INPUT = 0xFFFFFFFF  # kCGAnyInputEventType
COMBINED = 0  # kCGEventSourceStateCombinedSessionState
ALL_WINDOWS = 1  # NSApplicationActivateAllWindows


class DarwinWindows:
    """The applications of this login: one stands for all its windows."""

    each = False

    def of(self, pid: int) -> list[Window]:
        """Return the application of a process."""
        app = on_main(lambda: AppKit.NSRunningApplication.runningApplicationWithProcessIdentifier_(pid))
        return [_window(app)] if app else []

    def active(self) -> Window | None:
        """Return the application that has the keyboard."""
        app = on_main(lambda: AppKit.NSWorkspace.sharedWorkspace().frontmostApplication())
        return _window(app) if app else None

    def idle(self) -> float | None:
        """Return the seconds since the last input."""
        return float(Quartz.CGEventSourceSecondsSinceLastEventType(COMBINED, ANY_INPUT))

    def bring(self, window: Window) -> bool:
        """Bring an application to the front."""
        def activate() -> bool:
            app = AppKit.NSRunningApplication.runningApplicationWithProcessIdentifier_(window.pid)
            return bool(app and app.activateWithOptions_(ALL_WINDOWS))

        return on_main(activate)

    def close(self) -> None:
        """Nothing is held open."""


def on_main(act: Callable[[], T]) -> T:
    """Return what `act` says on the main thread; TimeoutError if that is busy."""
    said: Future[T] = Future()

    def run() -> None:
        try:
            said.set_result(act())
        except Exception as error:  # noqa: BLE001 - goes to whoever asked
            said.set_exception(error)

    AppHelper.callAfter(run)
    return said.result(PATIENCE)


def _window(app: Any) -> Window:
    pid = int(app.processIdentifier())
    return Window(pid, pid, str(app.localizedName() or ""))
