"""What the user looks at, and how his terminal is brought to him: real windows, a window manager, a real tmux."""

import os
import subprocess
import sys
from contextlib import ExitStack, closing, contextmanager

import pytest

from island.desktop import jump as jumping
from island.desktop.focus import PRESENT, Focus
from island.desktop.jump import jump, titled
from island.desktop.windows import open_windows
from island.sources.terminals import Window, place

from .stage import need, wait_until

pytestmark = [pytest.mark.desktop, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="X11")]


class Screen:
    """A screen with a window manager, and terminals on it."""

    def __init__(self, folder, stack):
        self.folder, self._stack, self._count = folder, stack, 0

    def start(self, *command, **more):
        log = self._stack.enter_context((self.folder / "log").open("ab"))
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, **more)
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def manage(self):
        """Start a window manager, and return it once it manages."""
        manager = self.start("openbox")

        def managed():
            with closing(open_windows()) as shown:
                shown._atoms["check"] = shown._display.intern_atom("_NET_SUPPORTING_WM_CHECK")
                return shown._property(shown._root, "check")

        wait_until(managed)
        return manager

    def terminal(self, command="exec sleep 600"):
        """Open an xterm, and return the process in it."""
        self._count += 1
        told = self.folder / f"pid-{self._count}"
        self.start("xterm", "-e", "sh", "-c", f"echo $$ > {told}.new; mv {told}.new {told}; {command}")
        wait_until(told.exists)
        pid = int(told.read_text())
        wait_until(lambda: place(pid).window in {w.ident for w in self.windows()})
        return pid

    def windows(self):
        with closing(open_windows()) as shown:
            return shown.windows()

    def active(self):
        """Return the terminal program in front."""
        with closing(open_windows()) as shown:
            active = shown.active()
            return active and active.pid


@pytest.fixture
def screen(display, tmp_path, monkeypatch):
    need("openbox", "xterm")
    for name in ("WAYLAND_DISPLAY", "TMUX", "SWAYSOCK", "HYPRLAND_INSTANCE_SIGNATURE", "NIRI_SOCKET", "WINDOWID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with ExitStack() as stack:
        screen = Screen(tmp_path, stack)
        screen.manage()
        yield screen


def looked_at(*pids):
    with closing(Focus()) as focus:
        return focus.look(pids)


def program(pid):
    return place(pid).above[0]


def test_the_window_of_a_session_is_brought_and_then_looked_at(screen):
    first, second = screen.terminal(), screen.terminal()
    for pid in (first, second, first):
        assert jump([pid]) == ""
        assert screen.active() == program(pid)
        assert looked_at(first, second) == {pid}


def test_of_several_processes_that_show_a_session_the_first_that_can_be_shown_is(screen):
    pid = screen.terminal()
    screen.terminal()
    assert jump([os.getpid(), pid]) == ""
    assert screen.active() == program(pid)


def test_a_terminal_started_from_another_is_not_in_it(screen):
    inner = screen.folder / "inner"
    outer = screen.terminal(f"xterm -e sh -c 'echo $$ > {inner}; exec sleep 600' & exec sleep 600")
    wait_until(lambda: inner.exists() and inner.read_text().strip())
    pid = int(inner.read_text())
    wait_until(lambda: place(pid).window in {w.ident for w in screen.windows()})
    for here in (pid, outer):
        assert jump([here]) == ""
        assert looked_at(outer, pid) == {here}


def test_a_terminal_that_a_tool_makes_is_no_other_tab(screen):
    pid = screen.terminal("script -qc 'sleep 600' /dev/null & exec sleep 600")
    assert jump([pid]) == ""
    assert looked_at(pid) == {pid}


def test_who_has_left_looks_at_nothing(screen, monkeypatch):
    pid = screen.terminal()
    assert jump([pid]) == ""
    with closing(Focus()) as focus:
        assert focus.look([pid]) == {pid}
        monkeypatch.setattr(focus._windows, "idle", lambda: PRESENT + 1)
        assert focus.look([pid]) == frozenset()


def test_a_process_without_a_terminal_is_neither_shown_nor_looked_at(screen):
    screen.terminal()
    alone = screen.start("sleep", "600")
    assert jump([alone.pid]) == "no terminal on this screen shows it"
    assert jump([]) == "which process runs it is not known"
    assert looked_at(alone.pid, 2**22 + 1) == frozenset()


def test_without_a_window_manager_a_window_is_not_said_to_have_come(display, tmp_path, monkeypatch):
    need("openbox", "xterm")
    monkeypatch.setattr("island.desktop.x11.PATIENCE", 0.05)
    with ExitStack() as stack:
        screen = Screen(tmp_path, stack)
        manager = screen.manage()
        pid = screen.terminal()
        screen.terminal()
        manager.kill()
        manager.wait()
        assert jump([pid]).startswith("the desktop did not bring the window of xterm")


@pytest.mark.filterwarnings("ignore:.*socket:pytest.PytestUnraisableExceptionWarning")  # Xlib leaves it where it failed
def test_a_screen_that_has_gone_is_a_word_and_is_asked_anew(screen, display):
    focus, pid = Focus(), screen.terminal()
    jump([pid])
    assert focus.look([pid]) == {pid}
    display.kill()
    display.wait()
    assert focus.look([pid]) == frozenset()
    assert focus._windows is None
    assert jump([pid]).startswith("the desktop does not answer")


# -- tmux ---------------------------------------------------------------------------------------------------


@pytest.fixture
def tmux(tmp_path):
    need("tmux")
    socket = str(tmp_path / "tmux")

    def ask(*command):
        environ = {"PATH": os.environ["PATH"], "SHELL": "/bin/sh", "TERM": "xterm", "LANG": "C.UTF-8"}
        done = subprocess.run(["tmux", "-f", "/dev/null", "-S", socket, *command], env=environ, capture_output=True,
                              text=True, check=True)
        return done.stdout.strip()

    ask("new-session", "-d", "-s", "one", "-x", "80", "-y", "24", "sleep 600")
    ask.socket = socket
    yield ask
    ask("kill-server")


def pane(tmux, target):
    pid = int(tmux("display-message", "-p", "-t", target, "#{pane_pid}"))
    wait_until(lambda: place(pid).server)
    return pid


def attach(screen, tmux, session):
    """Attach a new terminal to a session, and return its client."""
    client = screen.terminal(f"exec tmux -S {tmux.socket} attach -t {session}")
    wait_until(lambda: str(client) in tmux("list-clients", "-F", "#{client_pid}").split())
    return client


def test_a_pane_is_brought_in_the_terminal_that_shows_its_session(screen, tmux):
    tmux("new-session", "-d", "-s", "two", "sleep 600")
    tmux("new-window", "-t", "two", "sleep 600")
    tmux("split-window", "-d", "-t", "two:1", "sleep 600")
    clients = {session: attach(screen, tmux, session) for session in ("one", "two")}
    panes = {target: pane(tmux, target) for target in ("one:0.0", "two:0.0", "two:1.0", "two:1.1")}
    for target in ("two:1.1", "one:0.0", "two:0.0", "two:1.0"):
        assert jump([panes[target]]) == ""
        assert screen.active() == program(clients[target[:3]])
        assert looked_at(*panes.values()) == {panes[target]}


def test_a_session_that_no_terminal_shows_is_shown_by_the_one_last_used(screen, tmux):
    tmux("new-session", "-d", "-s", "two", "sleep 600")
    client = attach(screen, tmux, "one")
    screen.terminal()
    pid = pane(tmux, "two:0.0")
    assert looked_at(pid) == frozenset()
    assert jump([pid]) == ""
    assert screen.active() == program(client)
    assert looked_at(pid, pane(tmux, "one:0.0")) == {pid}


def test_a_server_without_terminals_says_how_to_attach_one(screen, tmux):
    screen.terminal()
    assert jump([pane(tmux, "one:0.0")]) == "no terminal shows its tmux session: tmux attach -t one"


def test_a_tmux_in_a_tmux_is_found(screen, tmux, tmp_path):
    client = attach(screen, tmux, "one")
    inner = tmp_path / "inner"
    tmux("new-window", "-t", "one", f"TMUX= tmux -f /dev/null -S {inner} new-session 'sleep 600'; true")

    def asked():
        ask = ["tmux", "-S", str(inner), "display-message", "-p", "#{pane_pid}"]
        return subprocess.run(ask, capture_output=True, check=False).stdout.strip()

    pid = int(wait_until(asked))
    wait_until(lambda: place(pid).server == str(inner))
    tmux("select-window", "-t", "one:0")
    assert looked_at(pid) == frozenset()
    assert jump([pid]) == ""
    assert screen.active() == program(client)
    assert looked_at(pid) == {pid}
    subprocess.run(["tmux", "-S", str(inner), "kill-server"], check=True)


# -- which window -------------------------------------------------------------------------------------------

WINDOWS = [Window(1, 7, "main.py - web_shop - Visual Studio Code"), Window(2, 7, "● notes.md - docs - Cursor"),
           Window(3, 7, "x [app] - Code"), Window(4, 7, "Welcome - docs-old")]


@pytest.mark.parametrize(("folder", "ident"), [
    ("/home/dev/web_shop", 1), ("/home/dev/docs", 2), ("/home/dev/web_shop/src/web", 1), ("/srv/app", 3),
    ("/home/dev", None), ("", None), ("/", None),
])
def test_an_editors_window_is_known_by_the_nearest_folder_that_its_title_names(folder, ident):
    found = titled(WINDOWS, folder)
    assert (found and found.ident) == ident


def test_two_windows_of_one_name_are_neither():
    assert titled([Window(1, 7, "a - docs"), Window(2, 7, "b - docs")], "/home/dev/docs") is None


# -- desktops that are not there ----------------------------------------------------------------------------


class Given:
    """A desktop with these windows; `brought` is what was asked for."""

    def __init__(self, *windows, each=True):
        self.each, self.brought, self._windows = each, [], windows

    def of(self, pid):
        return [w for w in self._windows if w.pid == pid]

    def active(self):
        return self._windows[0]

    def idle(self):
        return None

    def bring(self, window):
        self.brought.append(window.ident)
        return True

    def close(self):
        pass


@contextmanager
def spotted(monkeypatch, terminal, lanes=("/dev/pts/1",), **environ):
    """Have every process run in a terminal program of that name, pid 7, which shows these terminals."""
    from island.desktop import spots
    from island.desktop.tabs import BY_NAME, Tab
    from island.sources.terminals import Place

    spot = spots.Spot(Tab(12, Place(lanes[0] if lanes else "", above=(11, 7)), environ), 7, terminal, BY_NAME[terminal])
    for module in ("jump", "focus"):
        monkeypatch.setattr(f"island.desktop.{module}.spot", lambda _: spot)
        monkeypatch.setattr(f"island.desktop.{module}.lanes", lambda *_: set(lanes))
    yield


@pytest.mark.parametrize(("terminal", "lanes", "windows", "each", "word", "brought"), [
    ("alacritty", ["a"], [Window(1, 7, "")], True, "", [1]),
    ("xfce4-terminal", ["a", "b"], [Window(1, 7, "")], True,
     "its window is in front, but not surely its tab: it lets no program choose among its tabs", [1]),
    ("foot", ["a", "b"], [Window(1, 7, ""), Window(2, 7, "")], True,
     "foot shows several terminals, and which is the right one cannot be told", []),
    ("ghostty", ["a", "b"], [Window(1, 7, "")], False,
     "ghostty shows several terminals, and which is the right one cannot be told", []),
    ("ghostty", ["a"], [Window(1, 7, "")], False, "", [1]),
    ("st", ["a"], [Window(1, 8, "")], True, "no window of st is on this screen", []),
])
def test_a_window_is_brought_only_if_it_is_surely_the_right_one(  # noqa: PLR0917
    monkeypatch, terminal, lanes, windows, each, word, brought,
):
    desktop = Given(*windows, each=each)
    with spotted(monkeypatch, terminal, lanes):
        assert (jump([12], opened=lambda: desktop), desktop.brought) == (word, brought)


def test_a_desktop_that_tells_nothing_says_so(monkeypatch):
    with spotted(monkeypatch, "alacritty"):
        assert jump([12], opened=lambda: None) == "this desktop lets no program bring a window to the front"
        assert Focus(lambda: None).look([12]) == frozenset()


@pytest.mark.parametrize(("terminal", "lanes", "active", "seen"), [
    ("alacritty", ["a"], Window(1, 7, ""), True),
    ("alacritty", ["a"], Window(1, 8, ""), False),
    ("alacritty", ["a", "b"], Window(1, 7, ""), False),
    ("code", ["a"], Window(1, 7, ""), False),
])
def test_what_is_not_surely_looked_at_is_not(monkeypatch, terminal, lanes, active, seen):
    with spotted(monkeypatch, terminal, lanes):
        assert Focus(lambda: Given(active)).look([12]) == (frozenset({12}) if seen else frozenset())


@pytest.mark.parametrize(("windows", "each", "installed", "word", "brought", "started"), [
    ([WINDOWS[0], WINDOWS[1]], True, True, "", [1], []),
    ([WINDOWS[1]], True, True, "", [2], []),
    ([WINDOWS[1], WINDOWS[2]], True, True, "", [], [("code", "/home/dev/web_shop")]),
    ([Window(7, 7, "Code")], False, True, "", [], [("code", "/home/dev/web_shop")]),
    ([], True, False, "which window of code it is cannot be told, and code is not installed", [], []),
])
def test_an_editor_shows_the_folder_of_the_session(  # noqa: PLR0917
    monkeypatch, windows, each, installed, word, brought, started,
):
    ran, desktop = [], Given(*windows, each=each)

    def start(*command):
        if not installed:
            raise jumping.ProgramError(f"{command[0]} is not installed")
        ran.append(command)

    monkeypatch.setattr(jumping, "start", start)
    with spotted(monkeypatch, "code"):
        assert jump([12], "/home/dev/web_shop", lambda: desktop) == word
    assert (desktop.brought, ran) == (brought, started)
