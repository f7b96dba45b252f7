"""A real desktop without a screen: Xvfb, a private bus, xfce4-panel as tray host, dunst for notices.

Usable outside the tests: `with Desk(folder) as desk: ... desk.screenshot(path)`, with `desk.environment`
for programs that are to appear on it. Nothing here waits for a time; it waits for what it wants to see.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Self

from .stage import PrivateBus, need, wait_until

#: The packages of Debian, for `apt-get install --no-install-recommends`.
PACKAGES = ("xvfb", "dbus", "dbus-bin", "xfce4-panel", "xfconf", "dunst", "xdotool", "imagemagick",
            "adwaita-icon-theme", "hicolor-icon-theme", "fonts-dejavu-core")
PROGRAMS = ("Xvfb", "dbus-daemon", "dbus-send", "xfce4-panel", "dunst", "xdotool", "import")

WATCHER = "org.kde.StatusNotifierWatcher"
NOTIFICATIONS = "org.freedesktop.Notifications"

ICON = (16, 15)  # the middle of the only icon in the panel
ROW, FIRST_ROW = 25, 46  # a menu row's height, and the middle of the first one below the panel

PANEL = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0"><property name="configver" type="int" value="2"/>
 <property name="panels" type="array"><value type="int" value="1"/>
  <property name="dark-mode" type="bool" value="{dark}"/>
  <property name="panel-1" type="empty"><property name="position" type="string" value="p=6;x=0;y=0"/>
   <property name="length" type="uint" value="100"/>
   <property name="position-locked" type="bool" value="true"/>
   <property name="icon-size" type="uint" value="22"/><property name="size" type="uint" value="30"/>
   <property name="plugin-ids" type="array"><value type="int" value="1"/></property></property></property>
 <property name="plugins" type="empty"><property name="plugin-1" type="string" value="systray">
   <property name="square-icons" type="bool" value="true"/></property></property></channel>
"""


class Desk:
    """A desktop of 1000 x 600 pixels with a panel at its top."""

    def __init__(self, folder: Path, *, dark: bool = True) -> None:
        need(*PROGRAMS)
        self._folder = folder
        self._dark = dark
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        runtime = folder / "run"
        for place in (folder / "home", runtime, folder / "config"):
            place.mkdir(mode=0o700, parents=True)
        self.bus = PrivateBus(runtime)
        self.environment = {
            name: value for name, value in os.environ.items()
            if name not in {"WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY"}
        } | {
            "DBUS_SESSION_BUS_ADDRESS": self.bus.address, "XDG_RUNTIME_DIR": str(runtime),
            "HOME": str(folder / "home"), "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_STATE_HOME": str(folder / "state"),
            "GSETTINGS_BACKEND": "memory", "NO_AT_BRIDGE": "1", "GDK_BACKEND": "x11", "LC_ALL": "C.UTF-8",
        }

    def __enter__(self) -> Self:
        try:
            self.environment["DISPLAY"] = self._start_screen()
            self.bus.start()
            self.start_panel()
            self.start_dunst()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End everything, the screen last."""
        for name in [*reversed(self._running)]:
            self._end(name)
        self.bus.kill()

    def start_panel(self) -> None:
        """Start the panel, and wait until icons can register."""
        place = self._folder / "config/xfce4/xfconf/xfce-perchannel-xml/xfce4-panel.xml"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(PANEL.format(dark=str(self._dark).lower()), encoding="ascii")
        self.start("xfconfd", _xfconfd())
        self.start("panel", "xfce4-panel", "--disable-wm-check")
        wait_until(lambda: self.has_owner(WATCHER))

    def pid(self, name: str) -> int:
        """Return the process of a program by its name here."""
        return self._running[name].pid

    def kill_panel(self) -> None:
        """Have the panel crash, with its plugins. (A polite end would make it forget the tray plugin.)"""
        self._end("panel")
        self._end("xfconfd")
        wait_until(lambda: not self.has_owner(WATCHER))

    def start_dunst(self) -> None:
        """Start the notification daemon, and wait until it takes notices."""
        self.start("dunst", "dunst", "-conf", "/dev/null")
        wait_until(lambda: self.has_owner(NOTIFICATIONS))

    def kill_dunst(self) -> None:
        """Have the notification daemon crash."""
        self._end("dunst")
        wait_until(lambda: not self.has_owner(NOTIFICATIONS))

    def has_owner(self, name: str) -> bool:
        """Say whether a service is on the bus."""
        return "boolean true" in self._output(
            "dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus", "/",
            "org.freedesktop.DBus.NameHasOwner", f"string:{name}")

    def screenshot(self, path: Path, crop: str = "") -> Path:
        """Save what is on the screen, or a part of it: WIDTHxHEIGHT+X+Y."""
        self._output("import", "-window", "root", *(["-crop", crop, "+repage"] if crop else []), str(path))
        return path

    def pixel(self, x: int, y: int) -> str:
        """Return a pixel's colour as rrggbb."""
        (colour,) = self.colours(1, 1, x, y)
        return colour

    def colours(self, width: int, height: int, x: int, y: int) -> set[str]:
        """Return the colours in a part of the screen."""
        part = f"{width}x{height}+{x}+{y}"
        text = self._output("import", "-window", "root", "-crop", part, "-depth", "8", "txt:-")
        return {line.split("#")[1][:6].lower() for line in text.splitlines()[1:]}

    def point(self, x: int, y: int) -> None:
        """Move the mouse there."""
        self._output("xdotool", "mousemove", str(x), str(y))

    def click(self, x: int, y: int, button: int = 1) -> None:
        """Click there."""
        self.point(x, y)
        self._output("xdotool", "click", str(button))

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        self._output("xdotool", "key", *keys)

    def windows(self, kind: str) -> int:
        """Count the visible windows of a class."""
        done = subprocess.run(["xdotool", "search", "--onlyvisible", "--class", kind], env=self.environment,
                              capture_output=True, check=False, timeout=20)
        return len(done.stdout.split())

    def _start_screen(self) -> str:
        read, write = os.pipe()
        self.start("screen", "Xvfb", "-displayfd", str(write), "-screen", "0", "1000x600x24",
                    "-nolisten", "tcp", "-noreset", pass_fds=(write,))
        os.close(write)
        with os.fdopen(read) as numbers:
            return f":{numbers.readline().strip()}"

    def start(self, name: str, *command: str, pass_fds: tuple[int, ...] = ()) -> None:
        """Start a program on this desktop, to be ended with it."""
        with (self._folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                command, env=self.environment, pass_fds=pass_fds, stdout=log, stderr=log,
                start_new_session=True)  # the panel's plugins are processes of their own, to be ended with it

    def _end(self, name: str) -> None:
        process = self._running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _output(self, *command: str) -> str:
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True,
                              timeout=20).stdout


def _xfconfd() -> str:
    """Return where the settings daemon is: not on the path, and in another folder on each kind of machine."""
    places = [Path(shutil.which("xfconf-query") or "/usr/bin/xfconf-query").parents[1] / "lib"]
    found = [path for place in places for path in place.glob("**/xfconfd")]
    return str(found[0])
