"""The windows of each kind of desktop, by what it is known to answer."""

import importlib
import json
import socket
import struct
import sys
import threading
from types import ModuleType, SimpleNamespace

import pytest
from dbus_fast.annotations import DBusStr, DBusUInt32, DBusUInt64
from dbus_fast.service import ServiceInterface, dbus_method

from island.desktop import compositors, windows
from island.desktop.focus import Focus
from island.desktop.windows import open_windows
from island.sources.terminals import Window

from .fakes import Peer
from .stage import play

pytestmark = pytest.mark.desktop

on_unix = pytest.mark.skipif(sys.platform == "win32", reason="sockets of this machine")


@pytest.mark.parametrize(("environ", "platform", "kind"), [
    ({"DISPLAY": ":0"}, "linux", "x11:X11Windows"),
    ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, "linux", ""),
    ({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0", "SWAYSOCK": "/s"}, "linux", "compositors:Sway"),
    ({"WAYLAND_DISPLAY": "w", "HYPRLAND_INSTANCE_SIGNATURE": "h"}, "linux", "compositors:Hyprland"),
    ({"WAYLAND_DISPLAY": "w", "NIRI_SOCKET": "/n"}, "linux", "compositors:Niri"),
    ({"WAYLAND_DISPLAY": "w", "XDG_CURRENT_DESKTOP": "ubuntu:GNOME"}, "linux", "gnome:Gnome"),
    ({"DISPLAY": ":0", "XDG_CURRENT_DESKTOP": "GNOME"}, "linux", "x11:X11Windows"),
    ({"WAYLAND_DISPLAY": "w", "XDG_CURRENT_DESKTOP": "KDE"}, "linux", "kde:Kde"),
    ({}, "linux", ""),
    ({}, "darwin", "darwin:DarwinWindows"),
    ({}, "win32", "win32:Win32Windows"),
])
def test_each_desktop_has_its_own(monkeypatch, environ, platform, kind):
    made = []

    def module(name):
        return SimpleNamespace(**{kind.partition(":")[2]: lambda: made.append(name) or "windows"})

    monkeypatch.setattr(windows, "import_module", module)
    assert open_windows(environ, platform) == ("windows" if kind else None)
    assert made == ([f"island.desktop.{kind.partition(':')[0]}"] if kind else [])


# -- compositors --------------------------------------------------------------------------------------------


class Compositor:
    """Listens on a socket; `answer` gives for each question what is said."""

    def __init__(self, path, answer):
        self.asked, self._answer = [], answer
        self._line = socket.socket(socket.AF_UNIX)
        self._line.bind(str(path))
        self._line.listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        while True:
            try:
                line, _ = self._line.accept()
            except OSError:
                return
            with line:
                question = line.recv(65536)
                self.asked.append(question)
                line.sendall(self._answer(question))

    def close(self):
        self._line.shutdown(socket.SHUT_RDWR)
        self._line.close()
        self._thread.join(5)


@pytest.fixture
def compositor(tmp_path):
    made = []

    def listen(path, answer):
        path.parent.mkdir(parents=True, exist_ok=True)
        made.append(Compositor(path, answer))
        return made[0]

    yield listen
    for one in made:
        one.close()


@on_unix
def test_hyprland(tmp_path, monkeypatch, compositor):
    monkeypatch.setenv("HYPRLAND_INSTANCE_SIGNATURE", "sig")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    one = {"address": "0x55d0", "pid": 7, "title": "one"}
    says = {b"j/clients": [one, {"address": "0x1", "pid": 8, "title": ""}], b"j/activewindow": one}
    there = compositor(tmp_path / "hypr/sig/.socket.sock",
                       lambda question: json.dumps(says[question]).encode() if question in says else b"ok")
    desktop = compositors.Hyprland()
    assert desktop.of(7) == [Window(0x55D0, 7, "one")]
    assert desktop.active() == Window(0x55D0, 7, "one")
    assert desktop.bring(Window(0x55D0, 7, "one"))
    assert there.asked[-1] == b"dispatch focuswindow address:0x55d0"
    says[b"j/activewindow"] = {}
    assert desktop.active() is None


@on_unix
def test_sway(tmp_path, monkeypatch, compositor):
    monkeypatch.setenv("SWAYSOCK", str(tmp_path / "sway"))
    tree = {"id": 1, "nodes": [{"id": 2, "pid": 7, "name": "one", "focused": True, "nodes": []}],
            "floating_nodes": [{"id": 3, "pid": 7, "name": None}, {"id": 4, "pid": 8, "name": "x"}]}
    said = [tree]

    def answer(question):
        head = struct.pack("=6sII", b"i3-ipc", len(json.dumps(said[0])), 4)
        return head + json.dumps(said[0]).encode()

    there = compositor(tmp_path / "sway", answer)
    desktop = compositors.Sway()
    assert desktop.of(7) == [Window(2, 7, "one"), Window(3, 7, "")]
    assert desktop.active() == Window(2, 7, "one")
    said[0] = [{"success": True}]
    assert desktop.bring(Window(3, 7, ""))
    assert there.asked[-1][14:] == b"[con_id=3] focus"
    said[0] = [{"success": False}]
    assert not desktop.bring(Window(3, 7, ""))


@on_unix
def test_niri(tmp_path, monkeypatch, compositor):
    monkeypatch.setenv("NIRI_SOCKET", str(tmp_path / "niri"))
    one = {"id": 5, "pid": 7, "title": "one"}
    says = {'"Windows"': {"Windows": [one, {"id": 6, "pid": None, "title": None}]},
            '"FocusedWindow"': {"FocusedWindow": one}}
    there = compositor(tmp_path / "niri", lambda q: json.dumps({"Ok": says.get(q.decode().strip(), "Handled")}).encode()
                       + b"\n")
    desktop = compositors.Niri()
    assert (desktop.of(7), desktop.of(0)) == ([Window(5, 7, "one")], [Window(6, 0, "")])
    assert desktop.active() == Window(5, 7, "one")
    assert desktop.bring(Window(5, 7, "one"))
    assert json.loads(there.asked[-1]) == {"Action": {"FocusWindow": {"id": 5}}}
    says['"FocusedWindow"'] = {"FocusedWindow": None}
    assert desktop.active() is None


@on_unix
def test_a_compositor_that_has_gone_is_looked_at_by_nobody(tmp_path, monkeypatch):
    monkeypatch.setenv("SWAYSOCK", str(tmp_path / "gone"))
    assert Focus(compositors.Sway).look([1]) == frozenset()


# -- GNOME and KDE ------------------------------------------------------------------------------------------


class WindowCalls(ServiceInterface):
    def __init__(self):
        super().__init__("org.gnome.Shell.Extensions.Windows")
        self.brought = []

    @dbus_method("List")
    def list_windows(self) -> DBusStr:
        return json.dumps([{"id": 1, "pid": 7, "title": "one", "focus": False}, {"id": 2, "pid": 8, "focus": True}])

    @dbus_method("Activate")
    def activate(self, number: DBusUInt32) -> None:
        self.brought.append(number)


class IdleMonitor(ServiceInterface):
    def __init__(self):
        super().__init__("org.gnome.Mutter.IdleMonitor")

    @dbus_method("GetIdletime")
    def idle(self) -> DBusUInt64:
        return 2500


@pytest.mark.usefixtures("bus")
@play
async def test_gnome_tells_of_its_windows_through_an_extension():
    import asyncio

    from island.desktop.gnome import Gnome

    shell, desktop = WindowCalls(), Gnome()
    async with (Peer("org.gnome.Shell", "/org/gnome/Shell/Extensions/Windows", shell),
                Peer("org.gnome.Mutter.IdleMonitor", "/org/gnome/Mutter/IdleMonitor/Core", IdleMonitor())):
        assert await asyncio.to_thread(desktop.of, 7) == [Window(1, 7, "one")]
        assert await asyncio.to_thread(desktop.active) == Window(2, 8, "")
        assert await asyncio.to_thread(desktop.idle) == 2.5
        assert await asyncio.to_thread(desktop.bring, Window(1, 7, "one"))
        assert shell.brought == [1]
    assert await asyncio.to_thread(desktop.idle) is None
    assert await asyncio.to_thread(Focus(Gnome).look, [1]) == frozenset()


@on_unix
def test_kde_is_asked_through_kdotool_for_a_jump_alone(tmp_path, monkeypatch):
    from island.desktop.kde import Kde

    said = tmp_path / "said"
    program(tmp_path / "kdotool", f'echo "$@" >> {said}; [ $1 = search ] && echo '
                                  '"{0d1ff1b4-7e4c-4f0e-9f0a-6f6f6f6f6f6f}"; exit 0')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (window,) = Kde().of(7)
    assert Kde().bring(window)
    assert said.read_text().splitlines() == [
        "search --pid 7", "windowactivate {0d1ff1b4-7e4c-4f0e-9f0a-6f6f6f6f6f6f}"]
    assert Kde().active() is None


def program(path, script):
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


# -- macOS and Windows, by stand-ins ------------------------------------------------------------------------


def fresh(monkeypatch, name, stand_ins):
    for stand_in, names in stand_ins.items():
        module = ModuleType(stand_in)
        vars(module).update(names)
        monkeypatch.setitem(sys.modules, stand_in, module)
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    monkeypatch.delitem(sys.modules, name)
    return module


class App:
    def __init__(self, pid, name):
        self.pid, self.name, self.brought = pid, name, []

    def processIdentifier(self):  # noqa: N802 - as AppKit calls it
        return self.pid

    def localizedName(self):  # noqa: N802 - as above
        return self.name

    def activateWithOptions_(self, options):  # noqa: N802 - as above
        self.brought.append((options, threading.current_thread()))
        return True


def test_macos_is_asked_on_its_main_thread(monkeypatch):
    iterm, main = App(7, "iTerm2"), []

    def on_main(act):
        thread = threading.Thread(target=act, name="main")
        main.append(thread)
        thread.start()

    module = fresh(monkeypatch, "island.desktop.darwin", {
        "AppKit": {
            "NSRunningApplication": SimpleNamespace(
                runningApplicationWithProcessIdentifier_=lambda pid: iterm if pid == 7 else None),
            "NSWorkspace": SimpleNamespace(sharedWorkspace=lambda: SimpleNamespace(frontmostApplication=lambda: iterm)),
        },
        "Quartz": {"CGEventSourceSecondsSinceLastEventType": lambda state, kind: 3.5},
        "PyObjCTools": {"AppHelper": SimpleNamespace(callAfter=on_main)},
    })
    desktop = module.DarwinWindows()
    assert (desktop.of(7), desktop.of(8)) == ([Window(7, 7, "iTerm2")], [])
    assert desktop.active() == Window(7, 7, "iTerm2")
    assert desktop.idle() == 3.5
    assert desktop.bring(Window(7, 7, "iTerm2"))
    assert iterm.brought == [(module.ALL_WINDOWS, main[-1])]
    assert not desktop.each
    with pytest.raises(ZeroDivisionError):
        module.on_main(lambda: 1 / 0)


def test_windows_shows_a_minimized_window_and_brings_it(monkeypatch):
    import ctypes

    titles, owners, calls = {10: "one", 11: "", 12: "two"}, {10: 7, 11: 7, 12: 8}, []

    def owner(handle, pid):
        pid._obj.value = owners[handle]

    def title(handle, buffer, _):
        buffer.value = titles[handle]

    def last_input(last):
        last._obj.time = 5_000
        return True

    user32 = SimpleNamespace(
        EnumWindows=lambda note, _: [note(handle, 0) for handle in owners], IsWindowVisible=lambda handle: True,
        GetForegroundWindow=lambda: 12, GetWindowThreadProcessId=owner, GetWindowTextW=title,
        IsIconic=lambda handle: handle == 10, ShowWindow=lambda *call: calls.append(call),
        SetForegroundWindow=lambda handle: calls.append(handle) or True, GetLastInputInfo=last_input)
    kernel32 = SimpleNamespace(GetTickCount=lambda: 7_500)
    monkeypatch.setattr(ctypes, "WinDLL", {"user32": user32, "kernel32": kernel32}.get, raising=False)
    monkeypatch.setattr(ctypes, "WINFUNCTYPE", lambda *_: lambda note: note, raising=False)
    module = fresh(monkeypatch, "island.desktop.win32", {})
    desktop = module.Win32Windows()
    assert desktop.of(7) == [Window(10, 7, "one")]
    assert desktop.active() == Window(12, 8, "two")
    assert desktop.idle() == 2.5
    assert desktop.bring(Window(10, 7, "one"))
    assert calls == [(10, module.SW_RESTORE), 10]
