"""Starting with the desktop: one entry in the place that each platform has for it, and nothing else. Shell.

Nothing is written unasked, and whoever writes tells what. A switch that the user turned elsewhere is respected.
"""

from __future__ import annotations

import os
import plistlib
import re
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import platformdirs

from island.store import write

NAME = "island"
LABEL = "local.island"
RUN = r"Software\Microsoft\Windows\CurrentVersion\Run"
APPROVED = r"Software\Microsoft\Windows\CurrentVersion\Explorer\StartupApproved\Run"


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands in the platform's place: its text, empty if there is none, and who switched it off, if anybody."""

    text: str = ""
    switched_off: str = ""

    @property
    def on(self) -> bool:
        """Whether island starts with the desktop."""
        return bool(self.text) and not self.switched_off


class Autostart(Protocol):
    """The platform's place for what starts with the desktop."""

    @property
    def where(self) -> str:
        """The place, in words for people."""

    def text(self, command: Sequence[str]) -> str:
        """Return the entry that starts a command."""

    def read(self) -> Entry:
        """Return the entry that is there."""

    def write(self, text: str) -> None:
        """Make the entry. Raise OSError if that fails."""

    def remove(self) -> None:
        """Take the entry away, if it is there."""


def program() -> list[str]:
    """Return the command that starts island without a console: the script of this installation, if it has one."""
    python = Path(sys.executable)
    if sys.platform == "win32":
        scripts = [Path(folder, "island-tray.exe") for folder in (python.parent, sysconfig.get_path("scripts"))]
        python = python.with_name("pythonw.exe")
    else:
        scripts = [python.with_name("island")]
    found = next((script for script in scripts if script.is_file()), None)
    return [str(found)] if found else [str(python if python.is_file() else sys.executable), "-m", "island"]


def open_autostart() -> Autostart:
    """Return this platform's place."""
    if sys.platform == "darwin":
        return LaunchAgent(Path.home() / "Library/LaunchAgents")
    if sys.platform == "win32":
        return RunKey(import_module("winreg"))
    return Xdg(platformdirs.user_config_path() / "autostart")


class _File:
    """An entry that is a file."""

    def __init__(self, folder: Path, name: str) -> None:
        self.path = folder / name

    @property
    def where(self) -> str:
        return str(self.path)

    def write(self, text: str) -> None:
        write(self.path, text.encode())

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)

    def _text(self) -> str:
        try:
            return self.path.read_text("utf-8", "replace")
        except FileNotFoundError:
            return ""


class Xdg(_File):
    """A desktop entry in the autostart folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, f"{NAME}.desktop")

    def text(self, command: Sequence[str]) -> str:
        """Return the entry that starts a command."""
        return "\n".join([
            "[Desktop Entry]", "Type=Application", f"Name={NAME}", "Comment=Does any of my coding agents need me now?",
            f"Exec={' '.join(map(_argument, command))}", "Terminal=false", "X-GNOME-Autostart-enabled=true", "",
        ])

    def read(self) -> Entry:
        """Return the entry that is there."""
        text = self._text()
        off = re.search(r"^(Hidden\s*=\s*true|X-GNOME-Autostart-enabled\s*=\s*false)\s*$", text, re.MULTILINE)
        return Entry(text, f"the line {off[1]}" if off else "")


def _argument(text: str) -> str:
    """Quote an argument of Exec: once for the argument, and its backslashes once more for the value of a key."""
    quoted = re.sub(r'(["`$\\])', r"\\\1", text).replace("%", "%%")
    return '"' + quoted.replace("\\", "\\\\") + '"'


Ask = Callable[[Sequence[str]], str]


def _ask(command: Sequence[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


class LaunchAgent(_File):
    """A property list that launchd reads at the login."""

    def __init__(self, folder: Path, ask: Ask = _ask) -> None:
        super().__init__(folder, f"{LABEL}.plist")
        self._ask = ask

    def text(self, command: Sequence[str]) -> str:
        """Return the entry that starts a command, and again after a crash: an end with a code is one on purpose."""
        return plistlib.dumps({
            "Label": LABEL, "ProgramArguments": [*command], "RunAtLoad": True, "LimitLoadToSessionType": "Aqua",
            "KeepAlive": {"Crashed": True},
        }).decode()

    def read(self) -> Entry:
        """Return the entry that is there. In the System Settings the user may have switched it off."""
        text = self._text()
        said = self._ask(["/bin/launchctl", "print-disabled", f"gui/{_user()}"]) if text else ""
        off = re.search(rf'"{re.escape(LABEL)}" => (true|disabled)', said)
        return Entry(text, "the System Settings (Login Items)" if off else "")


def _user() -> int:
    if sys.platform == "win32":
        return 0  # there is no launchd there
    return os.getuid()


class RunKey:
    """A value in the registry. registry: the module winreg."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry

    @property
    def where(self) -> str:
        """The place, in words for people."""
        return rf"HKEY_CURRENT_USER\{RUN}, value {NAME}"

    def text(self, command: Sequence[str]) -> str:
        """Return the value that starts a command."""
        program, *rest = command
        return " ".join([f'"{program}"', subprocess.list2cmdline(rest)]).rstrip()

    def read(self) -> Entry:
        """Return the value that is there. In the Task Manager the user may have switched it off."""
        approved = self._value(APPROVED)
        off = isinstance(approved, bytes) and approved[:1] != b"" and approved[0] % 2 == 1
        return Entry(str(self._value(RUN) or ""), "the Task Manager (Startup apps)" if off else "")

    def write(self, text: str) -> None:
        """Set the value."""
        with self._registry.CreateKey(self._registry.HKEY_CURRENT_USER, RUN) as key:
            self._registry.SetValueEx(key, NAME, 0, self._registry.REG_SZ, text)

    def remove(self) -> None:
        """Delete the value."""
        registry = self._registry
        with suppress(FileNotFoundError), \
                registry.OpenKey(registry.HKEY_CURRENT_USER, RUN, 0, registry.KEY_SET_VALUE) as key:
            registry.DeleteValue(key, NAME)

    def _value(self, path: str) -> object:
        try:
            with self._registry.OpenKey(self._registry.HKEY_CURRENT_USER, path) as key:
                return self._registry.QueryValueEx(key, NAME)[0]
        except FileNotFoundError:
            return None
