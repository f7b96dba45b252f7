"""Terminals: a real tmux server, a real X server, and whose title it is when several could be meant."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import replace

import pytest

from island.agents import AGENTS
from island.agents.base import UNMARKED, Dialog, shown
from island.agents.claude import CLAUDE
from island.model import Event, Kind, Process
from island.observer import Observer
from island.scene import RecordedTable
from island.sources import terminals
from island.sources.terminals import Place, Terminals, Window, bound, place
from island.view import ASKS as CLAIMED

from .stage import need, wait_until

NOW = 1_796_000_000.0

# -- whose title it is -------------------------------------------------------------------------------------------

TERMINAL, SHELL, AGENT, OTHER = 10, 11, 12, 13
XTERM = Window(1, TERMINAL, "ready")


def test_the_window_of_the_program_above_a_process_is_its_own():
    assert bound({AGENT: Place("/dev/pts/1", above=(SHELL, TERMINAL, 1))}, [XTERM, Window(2, 99, "x")]) == {
        AGENT: ("ready",)}


def test_the_window_that_its_environment_names_comes_before_that_of_a_program():
    windows = [XTERM, Window(7, TERMINAL, "mine")]
    assert bound({AGENT: Place("/dev/pts/1", window=7, above=(TERMINAL,))}, windows) == {AGENT: ("mine",)}


def test_all_windows_of_a_program_may_be_meant():
    windows = [XTERM, Window(2, TERMINAL, "busy")]
    assert bound({AGENT: Place("/dev/pts/1", above=(TERMINAL,))}, windows) == {AGENT: ("ready", "busy")}


def test_two_agents_on_one_terminal_share_its_title():
    one = Place("/dev/pts/1", above=(TERMINAL,))
    assert bound({AGENT: one, OTHER: one}, [XTERM]) == {AGENT: ("ready",), OTHER: ("ready",)}


@pytest.mark.parametrize("window", [0, 1])
def test_a_program_that_shows_two_agents_terminals_says_nothing_of_either(window):
    places = {AGENT: Place("/dev/pts/1", "", window, (TERMINAL,)), OTHER: Place("/dev/pts/2", "", window, (TERMINAL,))}
    assert bound(places, [XTERM]) == {}


def test_a_process_under_no_window_has_no_title():
    assert bound({AGENT: Place("/dev/pts/1", above=(1,))}, [XTERM]) == {}


def test_a_process_that_is_not_there_has_no_place():
    assert place(2**22 + 1) == Place()


# -- tmux --------------------------------------------------------------------------------------------------------


@contextmanager
def tmux(folder):
    """A tmux server of our own; yields what asks it."""
    need("tmux")
    socket = str(folder / "tmux")

    def ask(*command):
        environ = {"PATH": os.environ["PATH"], "SHELL": "/bin/sh", "TERM": "xterm", "LANG": "C.UTF-8"}
        done = subprocess.run(["tmux", "-f", "/dev/null", "-S", socket, *command], env=environ, capture_output=True,
                              text=True, check=True)
        return done.stdout.split()

    ask("new-session", "-d", "-x", "80", "-y", "24", "sleep 600")
    try:
        yield ask
    finally:
        ask("kill-server")


def pane_of(ask, target):
    [pid] = ask("display-message", "-p", "-t", target, "#{pane_pid}")
    wait_until(lambda: place(int(pid)).server)
    return int(pid)


def test_a_terminal_that_was_opened_after_the_first_look_has_a_name(tmp_path):
    place(os.getpid())
    with tmux(tmp_path) as ask:
        [tty] = ask("display-message", "-p", "#{pane_tty}")
        assert place(pane_of(ask, ":0.0")).tty == tty


def poll(source, *pids):
    return source.poll(pids).titles


def test_each_process_in_tmux_has_the_title_of_its_own_pane(tmp_path):
    with tmux(tmp_path) as ask:
        ask("split-window", "-d", "sleep 600")
        first, second = pane_of(ask, ":0.0"), pane_of(ask, ":0.1")
        ask("select-pane", "-t", ":0.0", "-T", "✋  Action Required (app)")
        ask("select-pane", "-t", ":0.1", "-T", "◇  Ready (app)")
        source = Terminals()
        assert poll(source, first, second) == {first: ("✋  Action Required (app)",), second: ("◇  Ready (app)",)}
        ask("select-pane", "-t", ":0.0", "-T", "")
        assert poll(source, first) == {first: ("",)}
        assert source.places.keys() == {first}


def test_a_tmux_server_that_is_gone_or_does_not_answer_gives_no_title(tmp_path, monkeypatch):
    source = Terminals()
    with tmux(tmp_path) as ask:
        pid = pane_of(ask, ":0.0")
        assert poll(source, pid)
        monkeypatch.setattr(terminals, "PATIENCE", 0.0)
        assert poll(source, pid) == {}
    monkeypatch.undo()
    assert poll(source, pid) == {}


def test_without_the_program_tmux_there_is_no_title(tmp_path, monkeypatch):
    with tmux(tmp_path) as ask:
        pid = pane_of(ask, ":0.0")
        with monkeypatch.context() as lacking:
            lacking.setenv("PATH", str(tmp_path))
            assert poll(Terminals(), pid) == {}


def test_a_pane_is_read_as_it_looks_and_only_that_of_the_process(tmp_path):
    with tmux(tmp_path) as ask:
        ask("split-window", "-d", "echo one; echo 'Create new file? (Y)es/(N)o [Yes]:'; exec sleep 600")
        first, second = pane_of(ask, ":0.0"), pane_of(ask, ":0.1")
        source = Terminals()
        wait_until(lambda: "Yes" in source.poll((), [second]).screens[second])
        seen = source.poll([first], [second])
        assert seen.screens[second].splitlines()[:2] == ["one", "Create new file? (Y)es/(N)o [Yes]:"]
        assert (seen.screens.keys(), seen.titles.keys()) == ({second}, {first})


# -- X11 ---------------------------------------------------------------------------------------------------------


def show(display, title, pid):
    """Make a window, and list it as a window manager would."""
    from Xlib import Xatom

    root = display.screen().root
    window = root.create_window(0, 0, 10, 10, 0, display.screen().root_depth)
    utf8 = display.intern_atom("UTF8_STRING")
    window.change_property(display.intern_atom("_NET_WM_NAME"), utf8, 8, title.encode())
    window.change_property(display.intern_atom("_NET_WM_PID"), Xatom.CARDINAL, 32, [pid])
    root.change_property(display.intern_atom("_NET_CLIENT_LIST"), Xatom.WINDOW, 32, [window.id, 0x1234567])
    display.sync()
    return window


def test_the_title_of_the_window_above_a_process_is_read_and_a_server_that_went_gives_none(display):
    from Xlib.display import Display

    agent = subprocess.Popen(["sleep", "600"], env={"PATH": os.environ["PATH"]})
    try:
        manager, source = Display(), Terminals()
        assert poll(source, agent.pid) == {}
        window = show(manager, "✋  Action Required (app)", os.getpid())
        assert poll(source, agent.pid) == {agent.pid: ("✋  Action Required (app)",)}
        window.change_property(manager.intern_atom("_NET_WM_NAME"), manager.intern_atom("UTF8_STRING"), 8, b"\xff ok")
        manager.sync()
        assert poll(source, agent.pid) == {agent.pid: ("\ufffd ok",)}
        display.kill()
        display.wait()
        assert poll(source, agent.pid) == {}
        manager.display.socket.close()
    finally:
        agent.kill()
        agent.wait()


# -- what it means -----------------------------------------------------------------------------------------------

WORDS = {"asks": "permission", "works": "busy", "waits": "idle"}
ASKS = Dialog("permission", r"\?.*\[Yes\]:$", "note.py\nCreate new file? (Y)es/(N)o [Yes]:")
PROCESS = Process(7, 1, "claude", ("claude",), "/app", NOW - 60)


class Stage:
    """One agent at work since ten seconds ago, on a terminal with a title."""

    def __init__(self, began=NOW - 10.0, marks=WORDS):
        self.agent = replace(CLAUDE, name="odd", title=lambda title: marks.get(title, ""), dialogs=(ASKS,))
        table = RecordedTable(frozenset({7}), complete=True, running={7: PROCESS})
        self.observer = Observer({"odd": "/none"}, table, NOW, agents={"odd": self.agent})
        for event in (Event(Kind.OWNER, "s1", began, "7", number=NOW - 60),
                      Event(Kind.PROMPT, "s1", began, word="user", turn="t1")):
            self.observer.sessions.join(self.agent, event)

    def says(self, now, *titles):
        self.observer.terminals({7: titles} if titles else {}, {}, now)
        return self.state()

    def shows(self, now, screen):
        self.observer.terminals({}, {7: screen}, now)
        return self.state()

    def state(self):
        [row] = self.observer.sessions.rows()
        return f"{row.verdict.state}({row.verdict.reason})", row.verdict.since


def test_a_title_that_asks_makes_it_the_users_turn_until_it_does_not():
    stage = Stage()
    assert stage.says(NOW, "works")[0] == "working(model)"
    assert stage.says(NOW + 1, "asks") == ("your-turn(permission)", NOW + 1)
    assert stage.says(NOW + 2, "works")[0] == "working(model)"


def test_what_asked_before_anybody_looked_is_not_new():
    assert Stage(began=NOW - 3600).says(NOW, "asks") == ("your-turn(permission)", NOW - 3600)


def test_a_title_that_cannot_be_seen_any_more_or_says_nothing_counts_for_nothing():
    stage = Stage()
    stage.says(NOW, "works")
    stage.says(NOW + 1, "asks")
    assert stage.says(NOW + 2)[0] == "working(model)"
    stage.says(NOW + 3, "asks")
    assert stage.says(NOW + 4, "bash")[0] == "working(model)"


def test_of_several_titles_only_one_may_say_something():
    stage = Stage()
    stage.says(NOW, "works")
    assert stage.says(NOW + 1, "bash", "asks")[0] == "your-turn(permission)"
    assert stage.says(NOW + 2, "works", "asks")[0] == "working(model)"


def test_a_title_without_a_mark_says_that_the_prompt_is_free_only_where_there_was_a_mark():
    stage = Stage(marks={"◐ app": "busy", "app": UNMARKED, "vi": UNMARKED})
    assert stage.says(NOW, "app")[0] == "working(model)"
    stage.says(NOW + 1, "◐ app", "vi")
    stage.says(NOW + 2, "app", "vi")
    stage.observer.tick(NOW + 4)
    assert stage.says(NOW + 4, "app")[0] == "your-turn(interrupted)"
    stage.says(NOW + 5)
    assert stage.says(NOW + 6, "app")[0] == "working(model)"


def test_only_agents_whose_titles_tell_something_are_asked_for():
    assert Stage().observer.titled() == {7}
    silent = Observer({"claude": "/none"}, RecordedTable(frozenset(), running={7: PROCESS}), NOW,
                      agents={"claude": CLAUDE})
    assert silent.titled() == set()


def test_a_screen_that_shows_a_dialog_makes_it_the_users_turn_until_it_is_answered():
    stage = Stage()
    stage.shows(NOW, "> do it")
    assert stage.shows(NOW + 1, f"> do it\n{ASKS.sample}\n\n") == ("your-turn(permission)", NOW + 1)
    assert stage.shows(NOW + 2, f"> do it\n{ASKS.sample} n\nSkipping edits\n")[0] == "working(model)"
    answered = f"{ASKS.sample}\n" + "more\n" * 12
    assert stage.shows(NOW + 3, answered)[0] == "working(model)", "what has moved up is no open dialog"


@pytest.mark.parametrize(("agent", "dialog"), [(agent, d) for agent in AGENTS.values() for d in agent.dialogs],
                         ids=lambda v: getattr(v, "name", getattr(v, "word", "")))
def test_each_dialog_is_found_in_its_sample(agent, dialog):
    assert shown(replace(agent, dialogs=(dialog,)), f"before\n{dialog.sample}\n") == dialog.word
    assert dialog.word in CLAIMED
