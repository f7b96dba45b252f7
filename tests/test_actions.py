"""What a choice in the menu or on a notice does, on a desk without a desktop."""

import asyncio
import json
import re
from functools import partial

import pytest

from island.cli import actions as acting
from island.cli import tray as desk_module
from island.cli.actions import PAGES, Actions
from island.cli.tray import ATTEMPTS, Desk
from island.desktop import notify
from island.model import Event, Kind, Reason, State
from island.notices import MANY, Book
from island.quiet import HIDE_NAMES
from island.running import Running
from island.settings import SETTINGS, Settings, parse, places
from island.store import settings_path, state_path
from island.tray import entry

KEY = ("codex", "s1")
NAME = "codex/s1"


class Opened:
    """Stands for the desktop that opens files."""

    def __init__(self):
        self.paths, self.texts = [], []

    def __call__(self, path):
        self.paths.append(path)
        self.texts.append(path.read_text("utf-8") if path.is_file() else "")
        return ""


@pytest.fixture
def running(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for kind in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    running = Running(lambda *_: None, {name: str(tmp_path / name) for name in ("codex",)} | dict.fromkeys(
        Running(lambda *_: None).where, str(tmp_path / "none")))
    put(running, "s1", tmp_path)
    return running


def put(running, ident, folder):
    sessions = running.observer.sessions
    agent = sessions.agents["codex"]
    now = running.observer.sessions.since + 10
    for event in (Event(Kind.FACT, ident, now, "cwd", str(folder)), Event(Kind.OWNER, ident, now, "77", number=now),
                  Event(Kind.PROMPT, ident, now, word="user", turn=f"t-{ident}"),
                  Event(Kind.END, ident, now + 1, turn=f"t-{ident}")):
        sessions.join(agent, event)
    sessions.settle(now + 5, lambda agent, session: None)


def state(running, key=KEY):
    row = next(r for r in running.observer.sessions.rows() if (r.agent, r.session) == key)
    return row.verdict.state, row.seen


def do(running, action, opened=None):
    return asyncio.run(Actions(running, opened or Opened()).do(action))


def test_a_session_is_marked_seen_alone_or_with_all_others(running, tmp_path):
    put(running, "s2", tmp_path)
    assert do(running, entry.SEEN_ONE + NAME) == ""
    assert (state(running), state(running, ("codex", "s2"))) == ((State.YOUR_TURN, True), (State.YOUR_TURN, False))
    assert do(running, entry.SEEN) == ""
    assert state(running, ("codex", "s2")) == (State.YOUR_TURN, True)


@pytest.mark.parametrize(("word", "seen"), [("", True), ("no terminal", False)])
def test_who_is_shown_has_been_seen(running, tmp_path, monkeypatch, word, seen):
    asked = []
    monkeypatch.setattr(acting, "jump", lambda pids, folder: asked.append((pids, folder)) or word)
    assert do(running, entry.JUMP + NAME) == word
    assert asked == [((77,), str(tmp_path))]
    assert state(running) == (State.YOUR_TURN, seen)


@pytest.mark.posix("modes")
def test_an_explanation_is_a_page_that_is_taken_away(running):
    opened = Opened()
    assert do(running, entry.EXPLAIN + NAME, opened) == ""
    assert opened.paths == [state_path("explanation.txt")]
    assert opened.texts[0].startswith("Codex CLI, session s1")
    assert opened.paths[0].stat().st_mode & 0o777 == 0o600
    assert do(running, entry.EXPLAIN + "codex/gone", opened) == "island has forgotten it: it is long over"
    Actions.leave()
    assert not [name for name in PAGES if state_path(name).exists()]


def test_an_explanation_tells_no_names_while_they_are_hidden(running, tmp_path):
    opened = Opened()
    do(running, entry.EXPLAIN + NAME, opened)
    assert running.silence(HIDE_NAMES)
    do(running, entry.EXPLAIN + NAME, opened)
    assert [tmp_path.name in text for text in opened.texts] == [True, False]


def test_the_id_is_copied_and_the_folder_opened(running, tmp_path, monkeypatch):
    copied, opened = [], Opened()
    monkeypatch.setattr(acting, "copy", lambda text: copied.append(text) or "")
    assert do(running, entry.COPY + NAME) == ""
    assert copied == ["s1"]
    assert do(running, entry.FOLDER + NAME, opened) == ""
    assert opened.paths == [tmp_path]
    assert do(running, entry.FOLDER + "codex/gone", opened) == "its folder is not known"


@pytest.mark.parametrize("action", [entry.SETTINGS, entry.QUIET_HOURS])
def test_the_settings_are_opened_and_if_there_are_none_written_as_remarks(running, action):
    opened = Opened()
    assert do(running, action, opened) == ""
    assert opened.paths == [settings_path()]
    lines = opened.texts[0].splitlines()
    assert len(lines) > 10
    assert all(line[:1] in ("", "#", "[") for line in lines)
    assert not [line for line in lines if line.startswith(("# #", "##"))]
    assert parse(opened.texts[0]) == (Settings(), ())
    settings_path().write_text("[notices]\n")
    assert do(running, action, opened) == ""
    assert opened.texts[1] == "[notices]\n"


def test_each_setting_of_the_page_needs_no_more_than_its_sign_taken_away():
    lines = acting.blank_settings().splitlines()
    settings = [number for number, line in enumerate(lines) if re.match(r"#\w+ = ", line)]
    for number in settings:
        text = "\n".join([*lines[:number], lines[number][1:], *lines[number + 1:]])
        assert parse(text) == (Settings(), ())
        assert number + 1 in places(text).values()
    assert len(settings) == len(SETTINGS)


@pytest.mark.posix("scripts that are programs")
def test_the_doctor_and_what_island_is_are_pages(running, tmp_path, monkeypatch):
    opened = Opened()
    doctor = tmp_path / "python"
    doctor.write_text('#!/bin/sh\necho "$@"; exit 1\n')
    doctor.chmod(0o755)
    monkeypatch.setattr(acting.sys, "executable", str(doctor))
    assert do(running, entry.DOCTOR, opened) == ""
    assert opened.texts[0] == "-m island doctor\n\n"
    assert do(running, entry.ABOUT, opened) == ""
    assert opened.texts[1].startswith("island ")
    doctor.write_text("#!/bin/sh\nexec sleep 600\n")
    monkeypatch.setattr(acting, "LONGEST_EXAMINATION", 0.1)
    assert do(running, entry.DOCTOR, opened) == "the doctor came to no end"


def test_every_action_of_the_menu_is_known_and_has_its_attempt(running):
    actions = Actions(running)
    words = {value for name, value in vars(entry).items() if name.isupper() and isinstance(value, str)}
    done_by_the_desk = {entry.SHOW, entry.QUIT}
    assert words == {action for action in words if actions.knows(action)} | done_by_the_desk
    assert set(ATTEMPTS) == {word.rstrip(":") for word in words - done_by_the_desk}
    assert not actions.knows("")


# -- the desk -----------------------------------------------------------------------------------------------


class Notifier:
    def __init__(self):
        self.shown, self.withdrawn = [], []

    async def show(self, notice):
        self.shown.append(notice)

    async def withdraw(self, key):
        self.withdrawn.append(key)


@pytest.fixture
def desk(running, monkeypatch):
    monkeypatch.setattr(desk_module, "READING", 0.0)
    desk = Desk()
    desk.running, desk._notifier, desk._actions = running, Notifier(), Actions(running, Opened())
    desk.jumped = []
    monkeypatch.setattr(acting, "jump", lambda pids, folder: desk.jumped.append(pids) or desk.word)
    desk.word = ""
    return desk


def after(desk, *acts):
    async def story():
        for act in acts:
            act()
        while desk._tasks:
            await asyncio.gather(*desk._tasks)

    asyncio.run(story())


def test_what_cannot_be_done_is_said_for_a_while(desk):
    desk.word = "no terminal on this screen shows it"
    after(desk, partial(desk._chosen, entry.JUMP + NAME))
    (notice,) = desk._notifier.shown
    assert (notice.key, notice.title, notice.body) == (
        notify.WORD, "island could not show the session", "no terminal on this screen shows it")
    assert notify.actions(notice) == ()
    assert desk._notifier.withdrawn == [notify.WORD]


def test_an_action_that_fails_is_said_too(desk, caplog):
    desk._actions._all = {entry.JUMP: None}
    after(desk, partial(desk._chosen, entry.JUMP + NAME))
    assert desk._notifier.shown[0].body.startswith("TypeError")
    assert "jump:codex/s1 failed" in caplog.text


def test_a_click_on_a_notice_shows_its_session_and_a_button_mutes_it(desk):
    after(desk, partial(desk._answered, NAME, notify.SHOW))
    assert desk.jumped == [(77,)]
    assert state(desk.running) == (State.YOUR_TURN, True)
    after(desk, partial(desk._answered, NAME, notify.MUTE))
    assert desk.running.ear.hush.sessions == (NAME,)
    assert json.loads(state_path("quiet.json").read_text())["sessions"] == [NAME]


def test_a_merged_notice_shows_its_first_session(desk, tmp_path):
    put(desk.running, "s2", tmp_path)
    key = f"{MANY}:s2"
    desk.running.book = Book(0.0, shown={NAME: ("a", key), "codex/s2": ("b", key), "codex/s3": ("c", "codex/s3")})
    after(desk, partial(desk._answered, key, notify.SHOW))
    assert state(desk.running, ("codex", "s2")) == (State.YOUR_TURN, True)
    assert state(desk.running) == (State.YOUR_TURN, False)


def test_a_click_on_what_island_said_does_nothing(desk):
    after(desk, partial(desk._answered, notify.WORD, notify.SHOW))
    assert (desk.jumped, desk._notifier.shown) == ([], [])


def test_a_click_on_the_icon_shows_who_needs_the_user_most(desk, tmp_path):
    after(desk, partial(desk._chosen, entry.SHOW))
    assert desk.jumped == []
    desk.tray.apply = lambda _: None
    desk._publish(desk.running.observer.snapshot(desk.running.observer.sessions.since + 20), ())
    after(desk, partial(desk._chosen, entry.SHOW))
    assert desk.jumped == [(77,)]


def test_every_reason_that_a_notice_may_carry_has_a_picture():
    from island.tray.face import Face, face_of

    assert face_of(Reason.SEEN) is Face.CALM
