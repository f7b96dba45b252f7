"""pystray's icon, mended for Windows: sharp, with one menu on both buttons that nothing pulls away.

Must not be imported elsewhere than on Windows.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

import pystray
from PIL import IcoImagePlugin  # noqa: F401 - else to save an icon, all formats are loaded
from pystray._util import win32

from island.tray.face import Face
from island.tray.icon import draw

Menu, MenuItem = pystray.Menu, pystray.MenuItem

SIZES = (16, 20, 24, 32, 40, 48)  # a small icon at 100, 125, 150, 200, 250 and 300 %

WM_LBUTTONUP, WM_RBUTTONUP = 0x0202, 0x0205
WM_WORK = 0x8001  # our own, from the range that Windows leaves to applications
SM_CXSMICON = 49
PER_MONITOR_AWARE_V2 = -4

WM_CLOSE, WM_QUERYENDSESSION, WM_ENDSESSION = 0x0010, 0x0011, 0x0016
CTRL_C, CTRL_BREAK = 0, 1

#: Seconds that the system grants a program whose console is closed, less a little.
LAST = 4.0

user32: Any = ctypes.WinDLL("user32")  # type: ignore[attr-defined,unused-ignore]
kernel32: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
told: Any = ctypes.WINFUNCTYPE(ctypes.c_int, ctypes.c_uint)  # type: ignore[attr-defined,unused-ignore]


class Icon(pystray.Icon):  # type: ignore[misc]
    """An icon whose picture is a face and a badge."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._acts: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._menu_open = False
        self._handles: dict[tuple[Face, int, int], Any] = {}
        super().__init__(*args, **options)
        self._message_handlers.update({
            WM_WORK: self._on_work, WM_CLOSE: lambda *_: self.stop(),
            # What pystray answers to messages that it does not know would forbid the user to log off.
            WM_QUERYENDSESSION: lambda *_: True, WM_ENDSESSION: lambda ends, _: ends and self.stop(),
        })

    def run(self, setup: Callable[[Any], None]) -> None:
        """Show the icon until it is stopped, or its console says that it should be."""
        # Before the first window, or the menu is blurred on every screen that is not at 100 %.
        user32.SetProcessDpiAwarenessContext(ctypes.c_void_p(PER_MONITOR_AWARE_V2))
        # Python would raise KeyboardInterrupt in whatever runs just now, and pystray would log it and go on.
        from_console = told(self._on_console)
        kernel32.SetConsoleCtrlHandler(from_console, True)
        try:
            super().run(setup)
        except OSError:
            if self._running:  # else it was told to end by somebody who had closed its windows already
                raise
        finally:
            kernel32.SetConsoleCtrlHandler(from_console, False)

    def _on_console(self, event: int) -> int:
        """End, as Ctrl-C or the end of the console says. The system calls this in a thread of its own."""
        self.post(self.stop)  # it may not run yet
        self.stop()  # its menu may be open
        if event not in (CTRL_C, CTRL_BREAK):  # the system ends the program as soon as this returns
            threading.main_thread().join(LAST)
        return 1

    def post(self, act: Callable[[], None]) -> None:
        """Call `act` in the thread of the message loop, from any thread, once no menu is open."""
        self._acts.put(act)
        if self._hwnd:
            win32.PostMessage(self._hwnd, WM_WORK, 0, 0)

    def _on_work(self, *_: int) -> None:
        while not self._menu_open and not self._acts.empty():
            self._acts.get()()

    def _on_notify(self, wparam: int, lparam: int) -> None:
        self._menu_open = True  # an open menu runs a message loop of its own in here
        try:
            super()._on_notify(wparam, WM_RBUTTONUP if lparam == WM_LBUTTONUP else lparam)
        finally:
            self._menu_open = False
            self._on_work()

    def _on_stop(self, wparam: int, lparam: int) -> None:
        user32.EndMenu()  # else its loop goes on, for as long as the user leaves it open
        super()._on_stop(wparam, lparam)

    def _assert_icon_handle(self) -> None:
        face, badge = self._icon
        size = user32.GetSystemMetricsForDpi(SM_CXSMICON, user32.GetDpiForSystem())
        if (face, badge, size) not in self._handles:
            self._handles[face, badge, size] = _load(ico(face, badge), size)
        self._icon_handle = self._handles[face, badge, size]

    def _release_icon(self) -> None:
        self._icon_handle = None  # the handles are kept: there are few faces, and they come back


def ico(face: Face, badge: int) -> bytes:
    """Return the face as an ICO file with every size drawn for itself."""
    *smaller, largest = (draw(face, size, badge) for size in SIZES)
    file = BytesIO()
    largest.save(file, "ICO", sizes=[(size, size) for size in SIZES], append_images=smaller)
    return file.getvalue()


def label(text: str) -> str:
    """Return a menu row's text as Windows wants it: one ampersand would mark a shortcut key."""
    return text.replace("&", "&&")


def _load(file: bytes, size: int) -> Any:
    with TemporaryDirectory(prefix="island") as folder:
        path = Path(folder, "island.ico")
        path.write_bytes(file)
        return win32.LoadImage(None, str(path), win32.IMAGE_ICON, size, size, win32.LR_LOADFROMFILE)
