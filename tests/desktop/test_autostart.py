"""Starting with the desktop, in the places of three platforms: files in a folder of the test, a stand-in for winreg."""

import argparse
import configparser
import os
import plistlib
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from island.cli import autostart as command
from island.desktop import autostart
from island.desktop.autostart import APPROVED, LABEL, RUN, LaunchAgent, RunKey, Xdg, open_autostart, program

PROGRAM = ["/home/dev/my tools/island", "--panes"]


class Registry:
    """What is used of winreg, with its signatures: keys are opened by their full paths."""

    HKEY_CURRENT_USER, REG_SZ, KEY_SET_VALUE, KEY_READ = "HKCU", 1, 2, 0x20019

    def __init__(self):
        self.keys = {}

    def CreateKey(self, key, sub_key):  # noqa: N802 - as the module has it
        self.keys.setdefault(sub_key, {})
        return self._opened(sub_key)

    def OpenKey(self, key, sub_key, reserved=0, access=KEY_READ):  # noqa: N802
        if sub_key not in self.keys:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        return self._opened(sub_key)

    @contextmanager
    def _opened(self, sub_key):
        yield self.keys[sub_key]

    def SetValueEx(self, key, value_name, reserved, type, value):  # noqa: A002, N802
        key[value_name] = (value, type)

    def QueryValueEx(self, key, name):  # noqa: N802
        if name not in key:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        return key[name]

    def DeleteValue(self, key, value):  # noqa: N802
        if value not in key:
            raise FileNotFoundError(2, "The system cannot find the file specified")
        del key[value]


PLACES = {
    "xdg": lambda folder: Xdg(folder / "autostart"), "launchd": lambda folder: LaunchAgent(folder / "a", lambda _: ""),
    "registry": lambda _: RunKey(Registry()),
}


@pytest.fixture(params=PLACES.values(), ids=PLACES)
def place(request, tmp_path):
    return request.param(tmp_path)


def test_what_is_written_is_there_until_it_is_removed(place):
    assert (place.read().on, place.read().text) == (False, "")
    text = place.text(PROGRAM)
    for _ in range(2):
        place.write(text)
        assert (place.read().on, place.read().text) == (True, text)
    for _ in range(2):
        place.remove()
        assert (place.read().on, place.read().text) == (False, "")


def told(place, monkeypatch, capsys, what):
    monkeypatch.setattr(command, "open_autostart", lambda: place)
    assert command.run(argparse.Namespace(what=what)) == 0
    return capsys.readouterr().out


def test_the_command_says_what_it_writes_and_where(place, monkeypatch, capsys):
    text = "\n".join(f"    {line}" for line in place.text(program()).rstrip("\n").split("\n"))
    assert told(place, monkeypatch, capsys, "status") == f"off: nothing is written at {place.where}\n"
    assert told(place, monkeypatch, capsys, "on") == (
        f"on: island starts at your next login\nwritten to {place.where}:\n{text}\n")
    assert told(place, monkeypatch, capsys, "status") == f"on: {place.where}:\n{text}\n"
    off = "off: island does not start by itself\n"
    assert told(place, monkeypatch, capsys, "off") == f"{off}removed {place.where}\n"
    assert told(place, monkeypatch, capsys, "off") == f"{off}nothing was written at {place.where}\n"


def test_an_entry_of_another_island_is_shown_and_named(place, monkeypatch, capsys):
    place.write(place.text(["/elsewhere/island"]))
    said = told(place, monkeypatch, capsys, "status")
    assert said.startswith("on: ")
    assert "/elsewhere/island" in said
    assert said.endswith("this starts another island than the one you asked, or was written by hand\n")


def test_what_cannot_be_written_is_said(tmp_path, monkeypatch, capsys):
    (tmp_path / "autostart").write_text("in the way")
    monkeypatch.setattr(command, "open_autostart", lambda: Xdg(tmp_path / "autostart"))
    assert command.run(argparse.Namespace(what="on")) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("island: ")


# -- each platform -------------------------------------------------------------------------------------------


def test_a_desktop_entry_is_one(tmp_path):
    place = Xdg(tmp_path)
    place.write(place.text(PROGRAM))
    entry = configparser.ConfigParser(interpolation=None)
    entry.optionxform = str
    entry.read(tmp_path / "island.desktop")
    assert dict(entry["Desktop Entry"]) == {
        "Type": "Application", "Name": "island", "Comment": "Does any of my coding agents need me now?",
        "Exec": '"/home/dev/my tools/island" "--panes"', "Terminal": "false", "X-GNOME-Autostart-enabled": "true",
    }


@pytest.mark.skipif(not shutil.which("desktop-file-validate"), reason="desktop-file-validate is not installed")
def test_a_desktop_entry_is_valid(tmp_path):
    place = Xdg(tmp_path)
    place.write(place.text(['/a b/%f/$x/`y`/"z"/\\w', "-m", "island"]))
    done = subprocess.run(["desktop-file-validate", place.where], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_path_with_signs_of_the_format_is_quoted_twice(tmp_path):
    assert r'Exec="/a\\$b/100%%/\\"c\\"/d\\\\e"' + "\n" in Xdg(tmp_path).text(['/a$b/100%/"c"/d\\e'])


@pytest.mark.parametrize("line", ["Hidden=true", "X-GNOME-Autostart-enabled=false", "Hidden = true "])
def test_a_desktop_entry_that_was_switched_off_is_off(tmp_path, monkeypatch, capsys, line):
    place = Xdg(tmp_path)
    place.write(place.text(PROGRAM).replace("X-GNOME-Autostart-enabled=true", line))
    assert not place.read().on
    assert told(place, monkeypatch, capsys, "status").startswith(f"off: switched off by the line {line.strip()}: ")


def test_an_agent_of_launchd_starts_at_the_login_and_again_after_a_crash_alone(tmp_path):
    place = LaunchAgent(tmp_path, lambda _: "")
    place.write(place.text(PROGRAM))
    assert plistlib.loads((tmp_path / f"{LABEL}.plist").read_bytes()) == {
        "Label": LABEL, "ProgramArguments": PROGRAM, "RunAtLoad": True, "LimitLoadToSessionType": "Aqua",
        "KeepAlive": {"Crashed": True},
    }


@pytest.mark.posix("numbers of users")
@pytest.mark.parametrize(("said", "on"), [
    ("", True), ('disabled services = {\n\t"local.island" => disabled\n}', False),
    ('disabled services = {\n\t"local.island" => true\n}', False), ('\t"local.island" => enabled\n', True),
    ('\t"local.islands" => disabled\n', True), ('\t"localxisland" => disabled\n', True),
])
def test_an_agent_of_launchd_that_the_user_switched_off_is_off(tmp_path, said, on):
    asked = []

    def ask(words):
        asked.append(words)
        return said

    place = LaunchAgent(tmp_path, ask)
    assert place.read().text == ""
    assert asked == []
    place.write(place.text(PROGRAM))
    assert place.read().on is on
    assert asked == [["/bin/launchctl", "print-disabled", f"gui/{os.getuid()}"]]


def test_without_launchctl_nobody_switched_it_off():
    assert autostart._ask(["/nowhere/launchctl", "print-disabled"]) == ""


def test_the_run_key_holds_a_quoted_command():
    registry = Registry()
    place = RunKey(registry)
    place.write(place.text([r"C:\Program Files\island\island-tray.exe"]))
    assert registry.keys == {RUN: {"island": (r'"C:\Program Files\island\island-tray.exe"', registry.REG_SZ)}}
    assert place.text([r"C:\py.exe", "-m", "island"]) == r'"C:\py.exe" -m island'


@pytest.mark.parametrize(("approved", "on"), [
    (b"\x02" + bytes(11), True), (b"\x06" + bytes(11), True), (b"\x03" + bytes(11), False), (b"", True), ("?", True),
])
def test_the_switch_of_the_task_manager_is_respected(monkeypatch, capsys, approved, on):
    registry = Registry()
    place = RunKey(registry)
    with registry.CreateKey(registry.HKEY_CURRENT_USER, APPROVED) as key:
        registry.SetValueEx(key, "island", 0, 3, approved)
    said = told(place, monkeypatch, capsys, "on")
    assert place.read().on is on
    assert ("switch it on there" in said) is not on


def test_each_platform_has_its_place(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert open_autostart().where == str(tmp_path / "autostart/island.desktop")
    monkeypatch.setattr(autostart.sys, "platform", "darwin")
    assert open_autostart().where == str(Path.home() / "Library/LaunchAgents/local.island.plist")
    monkeypatch.setattr(autostart.sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "winreg", Registry())
    assert open_autostart().where == rf"HKEY_CURRENT_USER\{RUN}, value island"


def test_the_script_of_this_installation_is_started_where_there_is_one(monkeypatch, tmp_path):
    monkeypatch.setattr(autostart.sys, "platform", "linux")
    monkeypatch.setattr(autostart.sys, "executable", str(tmp_path / "python"))
    assert program() == [str(tmp_path / "python"), "-m", "island"]
    (tmp_path / "island").touch()
    assert program() == [str(tmp_path / "island")]


def test_on_windows_it_is_started_without_a_console(monkeypatch, tmp_path):
    """Scripts lie beside the Python of an environment, and below that of the system."""
    monkeypatch.setattr(autostart.sys, "platform", "win32")
    monkeypatch.setattr(autostart.sys, "executable", str(tmp_path / "python.exe"))
    monkeypatch.setattr(autostart.sysconfig, "get_path", {"scripts": str(tmp_path / "Scripts")}.get)
    (tmp_path / "Scripts").mkdir()
    assert program() == [str(tmp_path / "python.exe"), "-m", "island"]
    (tmp_path / "pythonw.exe").touch()
    assert program() == [str(tmp_path / "pythonw.exe"), "-m", "island"]
    for folder in (tmp_path / "Scripts", tmp_path):
        (folder / "island-tray.exe").touch()
        assert program() == [str(folder / "island-tray.exe")]
