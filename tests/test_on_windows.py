"""What is different on Windows: encodings, folders, locks, the registry. Much of it can be tried anywhere."""

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import platformdirs
import pytest
from platformdirs.windows import Windows

import island.__main__ as start
from island.cli import watch
from island.desktop import focus, spots
from island.hooks.command import folder as hooks_folder
from island.instance import lock_path
from island.sources import processes
from island.sources.terminals import Place, Window
from island.store import settings_path, state_path

on_windows = pytest.mark.skipif(sys.platform != "win32", reason="the real program on Windows, or under Wine")


# -- anywhere ----------------------------------------------------------------------------------------------------


class Console(io.TextIOWrapper):
    def isatty(self):
        return True


@pytest.mark.parametrize(("kind", "asked", "encoding"), [
    (io.TextIOWrapper, "", "utf-8"), (Console, "", None), (io.TextIOWrapper, "cp850", None),
])
def test_what_is_written_for_others_is_utf8(monkeypatch, kind, asked, encoding):
    monkeypatch.setenv("PYTHONIOENCODING", asked)
    with kind(io.BytesIO(), encoding="cp1252") as stream:
        assert start._encoding(stream, "win32") == encoding
        assert start._encoding(stream, "linux") is None


def test_an_output_that_keeps_its_encoding_takes_signs_that_this_lacks(monkeypatch, capsys):
    monkeypatch.setattr(start, "_encoding", lambda _: None)
    with io.TextIOWrapper(io.BytesIO(), encoding="cp1252", write_through=True) as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        assert start.main(["autostart", "status"]) == 0
        print("◆", file=stream)
        assert stream.buffer.getvalue().strip().endswith(b"?")


def test_all_that_island_keeps_lies_in_one_folder(monkeypatch):
    class Platform(Windows):
        @property
        def user_data_dir(self):
            return self._append_parts("C:\\Local")

        user_config_dir = user_state_dir = user_data_dir

    monkeypatch.setattr(platformdirs, "PlatformDirs", Platform)
    kept = [lock_path(), state_path("seen.json"), settings_path(), hooks_folder()]
    assert {path.parent for path in kept} == {Path("C:\\Local", "island")}


@pytest.mark.parametrize("is_console", [True, False])
def test_the_console_is_asked_to_take_the_signs_that_clear_it(monkeypatch, is_console):
    def mode(_, into):
        into._obj.value = 3
        return is_console

    asked = []
    kernel32 = SimpleNamespace(GetStdHandle=lambda _: 7, GetConsoleMode=mode,
                               SetConsoleMode=lambda console, wanted: asked.append((console.value, wanted)))
    monkeypatch.setattr(watch.sys, "platform", "win32")
    monkeypatch.setattr(watch.ctypes, "WinDLL", lambda _: kernel32, raising=False)
    watch.Screen()
    assert asked == ([(7, 7)] if is_console else [])


@pytest.mark.parametrize("platform", ["win32", "darwin"])
def test_what_a_container_writes_into_the_home_of_another_system_is_not_judged_by_its_processes(monkeypatch, platform):
    monkeypatch.setattr(processes.sys, "platform", platform)
    table = processes.SystemTable(lambda _: True)
    assert table.foreign("12 linux:m:pid:[1]")
    assert not table.foreign("12")


# -- terminals, of which Windows tells no names --------------------------------------------------------------------


@pytest.fixture
def tree(monkeypatch):
    """Processes: those above, and the names of all. Below a console's first program lies its host."""
    above, names = {}, {}
    monkeypatch.setattr(spots, "ON_WINDOWS", True)
    monkeypatch.setattr(spots, "place", lambda pid: Place(above=above.get(pid, ())))
    monkeypatch.setattr(spots, "_environ", lambda _: {})
    monkeypatch.setattr(spots, "_name", lambda pid: names.get(pid, ""))
    monkeypatch.setattr(spots, "_children", lambda pid: [p for p, over in above.items() if over[:1] == (pid,)])

    def add(pid, name, *over):
        above[pid], names[pid] = over, name

    return add


def test_a_console_without_a_terminal_program_is_that_of_the_program_it_began_with(tree):
    tree(2, "explorer.exe")
    tree(3, "cmd.exe", 2)
    tree(4, "conhost.exe", 3)
    tree(5, "node.exe", 3, 2)
    tree(6, "cmd.exe", 3, 2)  # in the same console
    where = spots.spot(5)
    assert (where.program, where.name) == (3, "cmd")
    assert spots.lanes(where) == {where.tab.place.tty}
    assert spots.spot(2).terminal is None


def test_of_a_terminal_with_several_tabs_none_is_surely_in_front(tree):
    tree(3, "WindowsTerminal.exe")
    tree(4, "OpenConsole.exe", 3)
    tree(5, "pwsh.exe", 3)
    tree(6, "node.exe", 5, 3)
    window = Window(1, 3, "pwsh")
    windows = SimpleNamespace(of=lambda pid: [window] if pid == 3 else [])
    assert focus.looked_at(6, window, windows)
    tree(7, "OpenConsole.exe", 3)
    tree(8, "cmd.exe", 3)
    assert spots.lanes(spots.spot(6)) == {"", "8"}
    assert not focus.looked_at(6, window, windows)


# -- the real program ----------------------------------------------------------------------------------------------


def island(*arguments, environ=None, **options):
    return subprocess.run([sys.executable, "-m", "island", *arguments], env={**os.environ, **(environ or {})},
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False, **options)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with one session of Claude Code in it that works."""
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("WIN_PD_OVERRIDE_LOCAL_APPDATA", str(tmp_path / "state"))
    folder = tmp_path / ".claude" / "projects" / "C--Users-dev-app"
    folder.mkdir(parents=True)
    prompt = {"type": "user", "uuid": "u1", "promptId": "p1", "sessionId": "s1", "cwd": "C:\\Users\\dev\\app",
              "timestamp": datetime.now(UTC).isoformat(), "message": {"role": "user", "content": "x"}}
    (folder / "s1.jsonl").write_text(json.dumps(prompt) + "\n")
    return tmp_path


@on_windows
def test_a_session_is_seen_with_the_name_of_its_folder(home):
    said = island("status", "--json")
    (row,) = json.loads(said.stdout)["sessions"]
    assert (row["project"], row["state"], said.stderr) == ("app", "working", b"")


@on_windows
@pytest.mark.parametrize("environ", [{}, {"PYTHONIOENCODING": "cp1252"}])
def test_the_signs_are_told_or_replaced(home, environ):
    said = island("status", environ=environ)
    assert said.returncode == 0
    assert ("►".encode() in said.stdout) is (not environ)
