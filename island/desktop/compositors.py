"""Windows on Wayland compositors that answer on a socket of their own: Hyprland, sway, niri. Shell."""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterator
from typing import Any

from island.desktop.programs import local_socket
from island.sources.terminals import Window

LARGEST = 1 << 24


def _ask(path: str, question: bytes) -> socket.socket:
    """Put a question to a compositor, and return the connection on which it answers."""
    line = local_socket(path)
    line.sendall(question)
    return line


def _all(line: socket.socket) -> bytes:
    with line, line.makefile("rb") as file:
        return file.read(LARGEST)


class Hyprland:
    """Hyprland (https://wiki.hypr.land/IPC/)."""

    each = True

    def __init__(self) -> None:
        folder = f"hypr/{os.environ['HYPRLAND_INSTANCE_SIGNATURE']}/.socket.sock"
        runtime = f"{os.environ.get('XDG_RUNTIME_DIR', '')}/{folder}"
        self._path = runtime if os.path.exists(runtime) else f"/tmp/{folder}"  # noqa: PTH110, S108 - before 0.40

    def of(self, pid: int) -> list[Window]:
        """Return the windows of a process."""
        return [w for w in map(self._window, json.loads(self._say("j/clients"))) if w.pid == pid]

    def active(self) -> Window | None:
        """Return the window that has the keyboard."""
        found = json.loads(self._say("j/activewindow"))
        return self._window(found) if found else None

    def idle(self) -> None:
        """Hyprland tells only who holds a Wayland connection."""

    def bring(self, window: Window) -> bool:
        """Focus a window, on whatever workspace it is."""
        return self._say(f"dispatch focuswindow address:{window.ident:#x}").strip() == b"ok"

    def close(self) -> None:
        """Nothing is held open."""

    def _say(self, command: str) -> bytes:
        return _all(_ask(self._path, command.encode()))

    @staticmethod
    def _window(one: dict[str, Any]) -> Window:
        return Window(int(one["address"], 16), int(one["pid"]), str(one.get("title", "")))


class Sway:
    """Sway (sway-ipc(7))."""

    each = True

    COMMAND, TREE = 0, 4
    HEAD = struct.Struct("=6sII")
    MAGIC = b"i3-ipc"

    def of(self, pid: int) -> list[Window]:
        """Return the windows of a process."""
        return [self._window(node) for node in self._nodes(self._say(self.TREE)) if node.get("pid") == pid]

    def active(self) -> Window | None:
        """Return the window that has the keyboard."""
        nodes = self._nodes(self._say(self.TREE))
        return next((self._window(node) for node in nodes if node.get("focused") and node.get("pid")), None)

    def idle(self) -> None:
        """Sway tells only who holds a Wayland connection."""

    def bring(self, window: Window) -> bool:
        """Focus a window, on whatever workspace it is."""
        return all(done.get("success") for done in self._say(self.COMMAND, f"[con_id={window.ident}] focus"))

    def close(self) -> None:
        """Nothing is held open."""

    def _say(self, kind: int, text: str = "") -> Any:
        question = self.HEAD.pack(self.MAGIC, len(text.encode()), kind) + text.encode()
        with _ask(os.environ["SWAYSOCK"], question) as line, line.makefile("rb") as file:
            _, size, _ = self.HEAD.unpack(file.read(self.HEAD.size))
            return json.loads(file.read(min(size, LARGEST)))

    def _nodes(self, node: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield node
        for below in (*node.get("nodes", ()), *node.get("floating_nodes", ())):
            yield from self._nodes(below)

    @staticmethod
    def _window(node: dict[str, Any]) -> Window:
        return Window(int(node["id"]), int(node["pid"]), str(node.get("name") or ""))


class Niri:
    """Niri (https://yalter.github.io/niri/IPC.html)."""

    each = True

    def of(self, pid: int) -> list[Window]:
        """Return the windows of a process."""
        return [w for w in map(self._window, self._say("Windows")["Windows"]) if w.pid == pid]

    def active(self) -> Window | None:
        """Return the window that has the keyboard."""
        found = self._say("FocusedWindow")["FocusedWindow"]
        return self._window(found) if found else None

    def idle(self) -> None:
        """Niri tells only who holds a Wayland connection."""

    def bring(self, window: Window) -> bool:
        """Focus a window, on whatever workspace it is."""
        return bool(self._say({"Action": {"FocusWindow": {"id": window.ident}}}) == "Handled")

    def close(self) -> None:
        """Nothing is held open."""

    def _say(self, request: Any) -> Any:
        with _ask(os.environ["NIRI_SOCKET"], json.dumps(request).encode() + b"\n") as line, line.makefile("rb") as file:
            return json.loads(file.readline(LARGEST))["Ok"]

    @staticmethod
    def _window(one: dict[str, Any]) -> Window:
        return Window(int(one["id"]), int(one.get("pid") or 0), str(one.get("title") or ""))
