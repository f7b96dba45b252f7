"""Windows on Windows. Shell. Must not be imported elsewhere: user32 is there alone."""

from __future__ import annotations

import ctypes
from typing import Any

import psutil

from island.sources.terminals import UNREADABLE, Window

user32: Any = ctypes.WinDLL("user32")  # type: ignore[attr-defined,unused-ignore]
kernel32: Any = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
callback: Any = ctypes.WINFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)  # type: ignore[attr-defined,unused-ignore]

SW_RESTORE = 9
LONGEST_TITLE = 512
WRAP = 1 << 32  # the system counts milliseconds in 32 bits


class LastInput(ctypes.Structure):
    """LASTINPUTINFO."""

    _fields_ = (("size", ctypes.c_uint), ("time", ctypes.c_uint))


class Win32Windows:
    """The top-level windows of this desktop."""

    each = True

    def of(self, pid: int) -> list[Window]:
        """Return the windows of a process that can be seen."""
        found: list[Window] = []

        def note(handle: int, _: int) -> bool:
            if user32.IsWindowVisible(handle):
                found.append(_window(handle))
            return True

        user32.EnumWindows(callback(note), 0)
        return [window for window in found if window.pid == pid and window.title]

    def active(self) -> Window | None:
        """Return the window that has the keyboard."""
        handle = user32.GetForegroundWindow()
        return _window(handle) if handle else None

    def idle(self) -> float | None:
        """Return the seconds since the last input."""
        last = LastInput(ctypes.sizeof(LastInput), 0)
        if not user32.GetLastInputInfo(ctypes.byref(last)):
            return None
        return float((kernel32.GetTickCount() - last.time) % WRAP) / 1000

    def bring(self, window: Window) -> bool:
        """Bring a window to the front. Windows lets a program do so that the user has just clicked on."""
        if user32.IsIconic(window.ident):
            user32.ShowWindow(window.ident, SW_RESTORE)
        return bool(user32.SetForegroundWindow(window.ident))

    def close(self) -> None:
        """Nothing is held open."""


def _window(handle: int) -> Window:
    pid = ctypes.c_uint()
    user32.GetWindowThreadProcessId(handle, ctypes.byref(pid))
    title = ctypes.create_unicode_buffer(LONGEST_TITLE)
    user32.GetWindowTextW(handle, title, LONGEST_TITLE)
    return Window(handle, _program(pid.value), title.value)


def _program(pid: int) -> int:
    """Return whose window it is: a console's is the program's that it began with, as Windows says; Wine says host."""
    try:
        process = psutil.Process(pid)
        return process.ppid() if process.name().casefold() == "conhost.exe" else pid
    except UNREADABLE:
        return pid
