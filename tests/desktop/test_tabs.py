"""The tabs of terminal programs, by what each is known to answer."""

import asyncio
import json
import sys
from typing import Annotated

import pytest
from dbus_fast.annotations import DBusInt32, DBusSignature, DBusStr, DBusUInt32
from dbus_fast.service import ServiceInterface, dbus_method

from island.desktop.tabs import BY_NAME, TERMINALS, Tab, in_front, known_as, select
from island.sources.terminals import Place

from .fakes import Peer
from .stage import play
from .test_windows import compositor, program  # noqa: F401 - a fixture

pytestmark = [pytest.mark.desktop, pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts here")]

PLACE = Place("/dev/pts/3", above=(11, 10))


def tab(**environ):
    return Tab(12, PLACE, environ)


@pytest.mark.parametrize(("name", "known"), [
    ("Code Helper (Plugin)", "code"), ("WindowsTerminal.exe", "windowsterminal"), ("iTerm2", "iterm2"),
    ("gnome-terminal-server", "gnome-terminal-server"), ("Cursor Helper", "cursor"),
])
def test_a_program_is_known_by_its_process(name, known):
    assert known_as(name) == known
    assert known in BY_NAME


def test_no_name_stands_in_two_rows():
    names = [name for terminal in TERMINALS for name in terminal.names]
    assert len(set(names)) == len(names)
    assert names == [known_as(name) for name in names]


# -- kitty --------------------------------------------------------------------------------------------------

LISTED = [{"is_focused": True, "tabs": [
    {"is_focused": False, "windows": [{"id": 1, "is_focused": True}]},
    {"is_focused": True, "windows": [{"id": 2, "is_focused": True}, {"id": 3, "is_focused": False}]}]}]


def framed(answer):
    return b"\x1bP@kitty-cmd" + json.dumps(answer).encode() + b"\x1b\\"


def kitty(tmp_path, compositor, answer):  # noqa: F811 - the fixture
    there = compositor(tmp_path / "kitty", lambda _: framed(answer))
    return there, lambda number: tab(KITTY_LISTEN_ON=f"unix:{tmp_path}/kitty", KITTY_WINDOW_ID=str(number))


def test_kitty_focuses_the_window_that_it_numbered(tmp_path, compositor):  # noqa: F811 - the fixture
    there, numbered = kitty(tmp_path, compositor, {"ok": True})
    assert select(BY_NAME["kitty"], numbered(2)) == ""
    asked = json.loads(there.asked[0].removeprefix(b"\x1bP@kitty-cmd").removesuffix(b"\x1b\\"))
    assert (asked["cmd"], asked["payload"]) == ("focus-window", {"match": "id:2"})


def test_kitty_tells_which_window_is_in_front(tmp_path, compositor):  # noqa: F811 - the fixture
    _, numbered = kitty(tmp_path, compositor, {"ok": True, "data": json.dumps(LISTED)})
    assert [number for number in (1, 2, 3, 4) if in_front(BY_NAME["kitty"], numbered(number))] == [2]


@pytest.mark.parametrize(("answer", "word"), [
    ({"ok": False, "error": "No matching windows"}, "kitty: No matching windows"),
    ({"what": 1}, "kitty answers what island does not know"),
    ([], "kitty answers what island does not know"),
])
def test_what_kitty_refuses_is_a_word(tmp_path, compositor, answer, word):  # noqa: F811 - the fixture
    _, numbered = kitty(tmp_path, compositor, answer)
    assert select(BY_NAME["kitty"], numbered(2)) == word
    assert not in_front(BY_NAME["kitty"], numbered(2))


def test_a_kitty_that_takes_no_commands_says_so(tmp_path):
    assert "allow_remote_control" in select(BY_NAME["kitty"], tab(KITTY_WINDOW_ID="2"))
    gone = tab(KITTY_WINDOW_ID="2", KITTY_LISTEN_ON=f"unix:{tmp_path}/gone")
    assert "No such file" in select(BY_NAME["kitty"], gone)


# -- WezTerm ------------------------------------------------------------------------------------------------


@pytest.fixture
def wezterm(tmp_path, monkeypatch):
    said = tmp_path / "said"
    panes = [{"pane_id": 4, "tty_name": "/dev/pts/3"}, {"pane_id": 5, "tty_name": "/dev/pts/9"}]
    clients = [{"focused_pane_id": 4}]
    program(tmp_path / "wezterm", f"""echo "$WEZTERM_UNIX_SOCKET $@" >> {said}
case "$2" in
list) echo '{json.dumps(panes)}' ;;
list-clients) echo '{json.dumps(clients)}' ;;
esac""")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return said


def test_wezterm_activates_the_pane_that_has_the_terminal(wezterm):
    assert select(BY_NAME["wezterm-gui"], tab(WEZTERM_PANE="4", WEZTERM_UNIX_SOCKET="/s")) == ""
    assert wezterm.read_text().splitlines()[-1] == "/s cli activate-pane --pane-id 4"
    assert select(BY_NAME["wezterm-gui"], tab(WEZTERM_PANE="5")) == "WezTerm does not know its pane any more"
    assert select(BY_NAME["wezterm-gui"], tab()) == "WezTerm did not number its pane"
    assert in_front(BY_NAME["wezterm-gui"], tab(WEZTERM_PANE="4"))
    assert not in_front(BY_NAME["wezterm-gui"], tab(WEZTERM_PANE="5"))


def test_a_program_that_fails_or_is_not_there_is_a_word(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert select(BY_NAME["wezterm-gui"], tab(WEZTERM_PANE="4")) == "wezterm is not installed"
    program(tmp_path / "wezterm", "echo 'no mux' >&2; exit 3")
    assert select(BY_NAME["wezterm-gui"], tab(WEZTERM_PANE="4")) == "wezterm: no mux"


# -- Konsole and GNOME Terminal -----------------------------------------------------------------------------


class KonsoleSession(ServiceInterface):
    def __init__(self):
        super().__init__("org.kde.konsole.Session")
        self.shell = 11

    @dbus_method("processId")
    def process_id(self) -> DBusInt32:
        return self.shell


class KonsoleWindow(ServiceInterface):
    def __init__(self):
        super().__init__("org.kde.konsole.Window")
        self.current, self.sessions = 1, ["1", "3"]

    @dbus_method("sessionList")
    def session_list(self) -> Annotated[list[str], DBusSignature("as")]:
        return self.sessions

    @dbus_method("currentSession")
    def current_session(self) -> DBusInt32:
        return self.current

    @dbus_method("setCurrentSession")
    def set_current_session(self, number: DBusInt32) -> None:
        self.current = number


@pytest.mark.usefixtures("bus")
@play
async def test_konsole_shows_the_tab_that_runs_the_shell():
    row, session, window = BY_NAME["konsole"], KonsoleSession(), KonsoleWindow()
    named = tab(KONSOLE_DBUS_SERVICE="org.kde.konsole", KONSOLE_DBUS_WINDOW="/Windows/1",
                KONSOLE_DBUS_SESSION="/Sessions/3")
    async with Peer("org.kde.konsole", "/Windows/1", window) as konsole:
        konsole.bus.export("/Sessions/3", session)
        assert not await asyncio.to_thread(in_front, row, named)
        assert await asyncio.to_thread(select, row, named) == ""
        assert window.current == 3
        assert await asyncio.to_thread(in_front, row, named)
        session.shell = 99
        assert await asyncio.to_thread(select, row, named) == "Konsole runs something else in its tab"
        assert not await asyncio.to_thread(in_front, row, named)
        session.shell, window.sessions = 11, ["1"]
        assert await asyncio.to_thread(select, row, named) == "Konsole has moved its tab to another window"
    assert await asyncio.to_thread(select, row, named) != ""


class Search(ServiceInterface):
    def __init__(self):
        super().__init__("org.gnome.Shell.SearchProvider2")
        self.shown = []

    @dbus_method("ActivateResult")
    def activate_result(self, ident: DBusStr, terms: Annotated[list[str], DBusSignature("as")], at: DBusUInt32) -> None:
        self.shown.append((ident, terms, at))


@pytest.mark.usefixtures("bus")
@play
async def test_gnome_terminal_shows_a_tab_as_the_find_of_a_search():
    row, search = BY_NAME["gnome-terminal-server"], Search()
    named = tab(GNOME_TERMINAL_SCREEN="/org/gnome/Terminal/screen/6cadb11c_720c_4634")
    async with Peer("org.gnome.Terminal", "/org/gnome/Terminal/SearchProvider", search):
        assert await asyncio.to_thread(select, row, named) == ""
        assert search.shown == [("6cadb11c-720c-4634", [], 0)]
    assert "shell-integration-enabled" in await asyncio.to_thread(select, row, named)


# -- macOS --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["iterm2", "terminal"])
def test_a_tab_on_macos_is_found_by_its_terminal_as_an_argument(tmp_path, monkeypatch, name):
    said = tmp_path / "said"
    program(tmp_path / "osascript", f'for a in "$@"; do echo "$a" > {said}; done; cat {tmp_path}/answer')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (tmp_path / "answer").write_text("found\n")
    assert select(BY_NAME[name], tab()) == ""
    assert said.read_text() == "/dev/pts/3\n"
    assert BY_NAME[name].raises
    (tmp_path / "answer").write_text("\n")
    assert select(BY_NAME[name], tab()) == "none of its tabs has this terminal"


def test_what_lets_nobody_choose_says_so():
    assert select(BY_NAME["xterm"], tab()) == "it lets no program choose among its tabs"
    assert not in_front(BY_NAME["xterm"], tab())
