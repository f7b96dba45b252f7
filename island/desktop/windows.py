"""The windows on the screen, as far as this desktop lets a program see them and bring one to the front."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Protocol

from island.sources.terminals import Window


class Windows(Protocol):
    """What a desktop tells of its windows. Anything may fail with any error: the desktop may be going.

    each: a window is one window, and not a whole application.
    """

    each: bool

    def of(self, pid: int) -> list[Window]:
        """Return the windows of a process; pid 0: those of which nobody knows whose they are."""

    def active(self) -> Window | None:
        """Return the window that has the keyboard; None if this is not known."""

    def idle(self) -> float | None:
        """Return the seconds since the user's last touch of keyboard or mouse; None if this is not known."""

    def bring(self, window: Window) -> bool:
        """Bring a window to the front; tell whether it came."""

    def close(self) -> None:
        """Leave the desktop alone."""


def open_windows(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Windows | None:
    """Return the windows of this desktop; None if it tells nothing. Raises any error if it cannot be reached."""
    kind = next((kind for there, kind in _DESKTOPS if there(environ, platform)), "")
    if not kind:
        return None
    module, _, name = kind.partition(":")
    opened: Windows = getattr(import_module(f"island.desktop.{module}"), name)()
    return opened


Test = Callable[[Mapping[str, str], str], bool]


def _has(variable: str) -> Test:
    return lambda env, _: bool(env.get(variable))


def _wayland(desktop: str) -> Test:
    return lambda env, _: bool(env.get("WAYLAND_DISPLAY")) and desktop in env.get("XDG_CURRENT_DESKTOP", "").split(":")


#: How each kind of desktop is known, in order. Other Wayland compositors let no program look at windows.
_DESKTOPS: tuple[tuple[Test, str], ...] = (
    (lambda _, platform: platform == "darwin", "darwin:DarwinWindows"),
    (lambda _, platform: platform == "win32", "win32:Win32Windows"),
    (_has("HYPRLAND_INSTANCE_SIGNATURE"), "compositors:Hyprland"),
    (_has("SWAYSOCK"), "compositors:Sway"),
    (_has("NIRI_SOCKET"), "compositors:Niri"),
    (_wayland("GNOME"), "gnome:Gnome"),
    (_wayland("KDE"), "kde:Kde"),
    (lambda env, _: bool(env.get("DISPLAY")) and not env.get("WAYLAND_DISPLAY"), "x11:X11Windows"),
)
