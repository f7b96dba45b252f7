"""What a demonstration does with a click, on a desk without a desktop."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from island.cli import demo as demonstrating
from island.cli.demo import ONLY, Demo
from island.desktop import notify
from island.instance import Instance
from island.model import Reason
from island.quiet import HIDE_NAMES, SNOOZE_HOUR
from island.replay import Replay
from island.sequence import parse
from island.tray.entry import ABOUT, EXPLAIN, JUMP, QUIT, SEEN, SHOW

STORY = """
{"sequence":1,"title":"It asks","law":"A click is done.","agent":"claude","origin":"written","version":"2.1.332",\
"start":"2026-03-02T09:00:00.000Z"}
{"at":0,"process":{"pid":401,"ppid":1,"name":"claude","cmdline":["claude"],"cwd":"/home/dev/shop","created":0}}
{"at":1,"write":"~/.claude/sessions/401.json","records":[{"pid":401,"sessionId":"s1","cwd":"/home/dev/shop",\
"startedAt":1772442000000,"version":"2.1.332","kind":"interactive","entrypoint":"cli","status":"waiting",\
"waitingFor":"permission prompt","statusUpdatedAt":1772442001000,"updatedAt":1772442001000}]}
{"at":9,"note":"it still waits"}
""".strip()
KEY = "claude/s1"


class Desktop:
    """Stands for a tray and a notifier. Whatever is to be clicked once it can be seen is clicked."""

    def __init__(self):
        self.health = notify.Health.READY
        self.models, self.notices, self.withdrawn, self.clicks = [], [], [], []

    async def start(self): ...

    async def stop(self): ...

    def apply(self, tray):
        self.models.append(tray)
        if self.clicks and self.clicks[0][0](self):
            _, click, what = self.clicks.pop(0)
            click(*what)

    async def show(self, notice):
        self.notices.append(notice)

    async def withdraw(self, key):
        self.withdrawn.append(key)


@pytest.fixture
def desktop(monkeypatch, tmp_path):
    desktop = Desktop()
    for kind in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    monkeypatch.setattr(demonstrating, "open_tray", lambda _: desktop)
    monkeypatch.setattr(demonstrating, "open_notifier", lambda *_: desktop)
    return desktop


def listed(rows):
    for row in rows:
        yield row
        yield from listed(row.rows)


def waits(desktop):
    return any(row.key == f"{EXPLAIN}{KEY}" for row in listed(desktop.models[-1].rows)) and desktop.models[-1].attention


def play(desktop, *clicks, open_=str):
    """Play the story, with clicks in the menu, and (pairs) on notices, each as soon as the session waits."""
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(20, [Replay(parse(STORY, "story"), Path(folder))], open_)
        for click in clicks:
            notice = isinstance(click, tuple)
            desktop.clicks.append((waits, demo._answered if notice else demo._chosen, click if notice else (click,)))
        asyncio.run(demo.play())
        return demo


def test_a_story_is_told(desktop):
    play(desktop)
    assert [notice.reason for notice in desktop.notices] == [Reason.PERMISSION]
    assert desktop.models[-1].badge == 1


@pytest.mark.parametrize("click", [f"seen:{KEY}", SEEN, (KEY, notify.SHOW)])
def test_what_is_marked_seen_is_calm(desktop, click):
    play(desktop, click)
    assert (desktop.models[-1].attention, desktop.models[-1].badge) == (False, 0)


@pytest.mark.parametrize("click", [SNOOZE_HOUR, f"mute-session:{KEY}", "mute-project:shop", (KEY, notify.MUTE)])
def test_what_is_silenced_is_not_told(desktop, click):
    play(desktop, click)
    assert desktop.notices == []


def test_names_are_hidden(desktop):
    play(desktop, HIDE_NAMES)
    assert "shop" not in " ".join(row.text for row in listed(desktop.models[-1].rows))


@pytest.mark.parametrize(("click", "page"), [(f"{EXPLAIN}{KEY}", "permission"), (ABOUT, "One tray icon")])
def test_a_page_is_shown_and_taken_away(desktop, tmp_path, click, page):
    told = []
    play(desktop, click, open_=lambda path: told.append(path.read_text()) or "")
    assert page in told[0]
    assert " d ago" not in told[0]  # by the story's clock
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("click", [SHOW, JUMP + KEY, (KEY, notify.SHOW)])
def test_that_there_is_no_terminal_is_said(desktop, click):
    play(desktop, click)
    assert f"This is {ONLY}" in [notice.title for notice in desktop.notices]


def test_it_can_be_quit(desktop):
    play(desktop, QUIT)
    assert desktop.notices == []


def test_what_needs_a_real_session_cannot_be_chosen(desktop):
    play(desktop)
    closed = [row for row in listed(desktop.models[-1].rows) if row.text.endswith(f"({ONLY})")]
    assert {row.key.partition(":")[0] for row in closed} == {
        "jump", "copy", "folder", "settings", "quiet-hours", "doctor"}
    assert not any(row.enabled for row in closed)


def test_that_two_icons_stand_there_is_said(desktop, monkeypatch, tmp_path, capsys):
    path = tmp_path / "story.jsonl"
    path.write_text(STORY)
    monkeypatch.setattr(Desktop, "run", lambda _, work: asyncio.run(work()), raising=False)
    arguments = demonstrating.argparse.Namespace(speed=1000, files=[str(path)])
    with Instance():
        assert demonstrating.run(arguments) == 0
    assert "island: runs already" in capsys.readouterr().err
    assert demonstrating.run(arguments) == 0
    assert capsys.readouterr().err == ""
