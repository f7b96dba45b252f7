"""The running program, on real files, real processes and the real clock: what is written is shown, and told.

A test waits for what must come, never for a time in which it should.
"""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path

import psutil
import pytest

from island.agents import AGENTS
from island.cli import tray
from island.hooks.records import HOME
from island.look import homes, look_once
from island.model import Row, Snapshot, State
from island.notices import Notice, Withdraw
from island.quiet import HIDE_NAMES, MUTE_SESSION, SHOW_NAMES, SNOOZE_HOUR, Hush
from island.running import Running, Spoken
from island.store import settings_path
from island.tray.base import Health, TrayModel
from island.tray.entry import QUIT

DEADLINE = 20  # seconds until a test gives up; a good machine needs a small part of one

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="borrows names the way Linux lends them")


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**fixtures: object) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), 4 * DEADLINE))

    return run


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not true():  # noqa: ASYNC110 -- what is waited for is mostly a file system
            await asyncio.sleep(0.01)


# -- a home, what is shown of it, and who lives in it --------------------------------------------------------


class Home:
    """A temporary home: the agents' folders, once something is written into them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.where = {name: agent.home({}, str(root)) for name, agent in AGENTS.items()}
        self.cwd = str(root / "project")
        self.turns = 0

    def append(self, session: str, *lines: dict) -> Path:
        path = self.root / ".claude" / "projects" / "-project" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.writelines(json.dumps(line | {"sessionId": session, "cwd": self.cwd}) + "\n" for line in lines)
        return path

    def live(self, session: str, status: str, owner: subprocess.Popen, **more: object) -> Path:
        path = self.root / ".claude" / "sessions" / f"{owner.pid}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        now = int(time.time() * 1000)
        began = int(psutil.Process(owner.pid).create_time() * 1000) if owner.poll() is None else now
        record = {"pid": owner.pid, "sessionId": session, "cwd": self.cwd, "procStart": start_ticks(owner.pid),
                  "startedAt": began, "updatedAt": now, "statusUpdatedAt": now, "entrypoint": "cli",
                  "version": "2.1.332", "status": status}
        path.write_text(json.dumps(record | more))
        return path

    def prompt(self, session: str) -> Path:
        self.turns += 1
        message = {"role": "user", "content": "prompt"}
        return self.append(session, record("user", promptId=f"p{self.turns}", message=message))

    def end(self, session: str) -> Path:
        content = [{"type": "text", "text": "answer"}]
        message = {"role": "assistant", "model": "claude-opus-5-5", "stop_reason": "end_turn", "content": content}
        return self.append(session, record("assistant", message=message), record("system", subtype="turn_duration"))


def record(kind: str, **more: object) -> dict:
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"type": kind, "timestamp": stamp, "uuid": stamp, "entrypoint": "cli", "version": "2.1.332"} | more


def start_ticks(pid: int) -> str:
    stat = Path(f"/proc/{pid}/stat")
    return stat.read_text().rpartition(")")[2].split()[19] if stat.exists() else ""


class Shown:
    """All that was published, by a program that runs as long as its task."""

    def __init__(self) -> None:
        self.task: asyncio.Future[None] = asyncio.Future()
        self.program: Running
        self.snapshots: list[Snapshot] = []
        self.spoken: list[Notice | Withdraw] = []

    def __call__(self, snapshot: Snapshot, spoken: Spoken) -> None:
        self.snapshots.append(snapshot)
        self.spoken += spoken

    async def until(self, true: Callable[[], object]) -> None:
        """Wait until that is true, but not for a program that has ended."""
        await until(lambda: true() or self.task.done())
        assert not self.task.done(), "it ended by itself"

    def of(self, session: str) -> str:
        rows = self.snapshots[-1].rows if self.snapshots else ()
        found = [f"{row.verdict.state}({row.verdict.reason})" for row in rows if row.session == session]
        return found[0] if found else "nothing"

    def row(self, session: str) -> Row:
        return next(row for row in self.snapshots[-1].rows if row.session == session)

    def notices(self, session: str) -> list[Notice | Withdraw]:
        return [one for one in self.spoken if one.session == session]


@asynccontextmanager
async def running(home: Home, shown: Shown | None = None) -> AsyncIterator[Shown]:
    shown = shown or Shown()
    shown.program = program = Running(shown, home.where)
    shown.task = asyncio.create_task(program.run())
    try:
        await shown.until(lambda: shown.snapshots)
        yield shown
        assert not shown.task.done(), "it ended by itself"
    finally:
        shown.task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await shown.task


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


@pytest.fixture
def start(tmp_path):
    """Start a program that stands for an agent: it waits for its input to end."""
    if sys.platform == "win32":
        pytest.skip("programs borrow names the way POSIX lends them")
    begun = []

    def begin(name: str = "sleeper", *arguments: str) -> subprocess.Popen:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.symlink_to(Path("/bin/sh").resolve())
        (tmp_path / "project").mkdir(exist_ok=True)
        begun.append(subprocess.Popen([path, "-c", "echo up; read line", "sh", *arguments], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, cwd=tmp_path / "project"))
        begun[-1].stdout.readline()
        return begun[-1]

    yield begin
    for process in begun:
        process.kill()
        process.communicate()


# -- what is shown -------------------------------------------------------------------------------------------


@in_loop
async def test_what_is_there_at_launch_is_shown(home, start):
    home.prompt("s1")
    home.live("s1", "busy", start())
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
        assert shown.snapshots[-1].trouble == ()


@in_loop
async def test_nothing_is_shown_before_all_that_is_there_was_looked_at(home, start, monkeypatch):
    """Not even if a change is heard of, or the user does something, while a slow disk is still searched."""
    home.prompt("s1")
    home.live("s1", "busy", start())
    found, go_on = threading.Event(), threading.Event()

    def slowly(self: Running, sweep: Callable[[Running], list] = Running._sweep) -> list:
        files = sweep(self)
        found.set()
        assert go_on.wait(DEADLINE)
        return files

    monkeypatch.setattr(Running, "_sweep", slowly)
    shown = Shown()
    program = Running(shown, home.where)
    task = asyncio.create_task(program.run())
    await until(found.is_set)
    path = home.prompt("s2")
    await until(lambda: str(path) in program.observer.hot())  # it was heard of, and looked at
    program.publish_now()
    assert shown.snapshots == []
    go_on.set()
    await until(lambda: shown.snapshots)
    assert {row.session for row in shown.snapshots[0].rows} >= {"s1", "s2"}
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.usefixtures("own_folders")
@pytest.mark.parametrize(("titles", "told", "exported"), [("notices", True, False), ("exports", False, True)])
def test_the_notices_that_other_programs_read_have_titles_only_if_they_may_be_told_any(titles, told, exported):
    settings_path().parent.mkdir(parents=True, exist_ok=True)
    settings_path().write_text(f"titles.{titles} = true")
    assert Running(lambda *_: None).ear.manner.titles is told
    assert Running(lambda *_: None, exported=True).ear.manner.titles is exported


@in_loop
async def test_before_the_first_look_the_tray_has_a_menu_to_quit_by(monkeypatch, own_folders):
    shown: list[TrayModel] = []

    class Desktop:
        health = Health.NO_BUS
        apply = staticmethod(shown.append)

        async def start(self) -> None:
            pass

        stop = start

    for name in ("open_tray", "open_notifier", "open_away"):
        monkeypatch.setattr(tray, name, lambda *_: Desktop())
    monkeypatch.setattr(Running, "run", lambda _: asyncio.sleep(0))
    await tray.Desk().work()
    assert [row.key for row in shown[0].rows][-1] == QUIT


@in_loop
async def test_that_there_is_nothing_is_shown_too(home):
    async with running(home) as shown:
        assert not [row for row in shown.snapshots[0].rows if row.session.startswith("s")]


@in_loop
async def test_a_line_that_is_appended_is_shown(home, start):
    owner = start()
    home.prompt("s1")
    home.live("s1", "busy", owner)
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
        call = [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]
        home.append("s1", record("assistant", message={"role": "assistant", "content": call}))
        await shown.until(lambda: shown.of("s1") == "working(tool)")
        home.end("s1")
        home.live("s1", "idle", owner)
        await shown.until(lambda: shown.of("s1") == "your-turn(finished)")


@in_loop
async def test_folders_that_appear_later_are_found(home, start):
    home.root.joinpath("empty").mkdir()
    async with running(home) as shown:
        assert shown.snapshots[-1].icon is State.IDLE
        home.prompt("s1")
        home.live("s1", "busy", start())
        await shown.until(lambda: shown.of("s1") == "working(model)")
        home.prompt("s2")
        await shown.until(lambda: shown.of("s2") == "working(model)")


@in_loop
async def test_a_chat_beside_the_code_is_followed_while_its_agent_lives(home, start):
    project = str(home.root / "project")
    chat = Path(project) / ".aider.chat.history.md"
    async with running(home) as shown:
        agent = start("aider")
        chat.write_text("\n#### prompt  \n")
        await shown.until(lambda: shown.of(project) == "working(model)")
        with chat.open("a") as file:
            file.write("\nanswer\n\n")
        await shown.until(lambda: shown.of(project) == "your-turn(finished)")
        agent.kill()
        agent.wait()
        await shown.until(lambda: shown.of(project) == "idle(ended)")


@in_loop
async def test_what_is_moved_away_is_shown_no_more(home):
    async with running(home) as shown:
        path = home.prompt("s1")
        await shown.until(lambda: shown.of("s1") == "working(model)")
        path.rename(home.root / "archived.jsonl")
        await shown.until(lambda: shown.of("s1") == "nothing")


@in_loop
async def test_nothing_is_published_while_nothing_changes(home):
    async with running(home) as shown:
        home.prompt("s1")
        await shown.until(lambda: shown.of("s1") == "working(model)")
        before = len(shown.snapshots)
        home.append("s1", record("attachment"))  # known, and never state
        home.prompt("s2")
        await shown.until(lambda: shown.of("s2") == "working(model)")
        assert len(shown.snapshots) <= before + 2


# -- what is told --------------------------------------------------------------------------------------------


@in_loop
async def test_a_wait_that_lasts_becomes_a_notice_and_goes_with_the_wait(home, start):
    owner = start()
    home.prompt("s1")
    home.live("s1", "busy", owner)
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
        home.end("s1")
        home.live("s1", "idle", owner)
        await shown.until(lambda: shown.notices("s1"))
        assert [type(one) for one in shown.notices("s1")] == [Notice]
        home.prompt("s1")
        home.live("s1", "busy", owner)
        await shown.until(lambda: len(shown.notices("s1")) == 2)
        assert isinstance(shown.notices("s1")[1], Withdraw)


@in_loop
async def test_what_was_true_at_launch_is_not_told(home, start):
    first, second = start(), start()
    for session in ("s1", "s2"):
        home.prompt(session)
    home.end("s1")
    home.live("s1", "idle", first)
    home.live("s2", "busy", second)
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "your-turn(finished)" and shown.of("s2") == "working(model)")
        home.end("s2")
        home.live("s2", "idle", second)
        await shown.until(lambda: shown.notices("s2"))
        assert shown.notices("s1") == []


# -- what the user wants -------------------------------------------------------------------------------------


@pytest.fixture
def own_folders(monkeypatch, tmp_path):
    """Folders for settings and state of this test alone."""
    for kind in ("CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    return tmp_path


def set_to(text: str) -> None:
    settings_path().parent.mkdir(parents=True, exist_ok=True)
    settings_path().write_text(text)


@in_loop
async def test_settings_that_change_apply_at_once(home, start, own_folders):
    home.prompt("s1")
    home.live("s1", "busy", start(), name="a title", nameSource="user")
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
        assert shown.row("s1").title == "a title"
        set_to("titles.menu = false")
        await shown.until(lambda: shown.row("s1").title == "")
        set_to("titles.wonder = false")
        await shown.until(lambda: shown.snapshots[-1].trouble)
        assert shown.snapshots[-1].trouble == ("config.toml: line 1: titles.wonder: no such setting",)
        assert shown.row("s1").title == ""
        set_to("agents = ['codex']")
        await shown.until(lambda: shown.of("s1") == "nothing" and not shown.snapshots[-1].trouble)
        settings_path().unlink()
        await shown.until(lambda: shown.of("s1") == "working(model)" and shown.row("s1").title)
        home.end("s1")
        await shown.until(lambda: shown.of("s1") == "your-turn(finished)")


@in_loop
async def test_an_agent_more_to_watch_hides_none_that_were(home, start, own_folders):
    set_to("agents = ['claude']")
    home.prompt("s1")
    home.live("s1", "busy", start())
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
        before, told = shown.program.observer, len(shown.snapshots)
        set_to("agents = ['claude', 'codex']")
        await shown.until(lambda: shown.program.observer is not before and len(shown.snapshots) > told)
        assert shown.of("s1") == "working(model)"


@in_loop
async def test_what_is_silenced_is_kept_and_hidden_names_are_nowhere(home, start, own_folders):
    home.prompt("s1")
    home.live("s1", "busy", start(), name="a title", nameSource="user")
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
        assert shown.program.silence(HIDE_NAMES)
        assert (shown.row("s1").project, shown.row("s1").title) == ("", "")
        assert shown.program.silence(MUTE_SESSION + "claude/s1")
        assert not shown.program.silence("quit")
    async with running(home) as shown:
        assert shown.program.ear.hush == Hush(sessions=("claude/s1",), hidden=True)
        assert shown.row("s1").project == ""
        assert shown.program.silence(SHOW_NAMES)
        assert shown.row("s1").project == "project"


@in_loop
async def test_a_session_that_is_muted_does_not_ring(home, start, own_folders):
    owners = start(), start()
    for session, owner in zip(("s1", "s2"), owners, strict=True):
        home.prompt(session)
        home.live(session, "busy", owner)
    async with running(home) as shown:
        await shown.until(lambda: (shown.of("s1"), shown.of("s2")) == ("working(model)", "working(model)"))
        shown.program.silence(MUTE_SESSION + "claude/s1")
        for session, owner in zip(("s1", "s2"), owners, strict=True):
            home.end(session)
            home.live(session, "idle", owner)
        await shown.until(lambda: shown.notices("s2"))
        assert shown.of("s1") == "your-turn(finished)"
        assert shown.notices("s1") == []


@in_loop
async def test_what_was_seen_is_still_seen_after_a_new_start_and_by_a_single_look(home, start, own_folders):
    home.prompt("s1")
    home.end("s1")
    home.live("s1", "idle", start())
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "your-turn(finished)")
        shown.program.observer.sessions.mark_seen(("claude", "s1"))
        shown.program.publish_now()
        assert shown.row("s1").seen
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "your-turn(finished)")
        assert shown.row("s1").seen


@in_loop
async def test_what_comes_while_the_screen_is_locked_is_told_when_it_is_not(home, start, own_folders):
    owners = [start() for _ in range(2)]
    for n, owner in enumerate(owners):
        home.prompt(f"s{n}")
        home.live(f"s{n}", "busy", owner)
    async with running(home) as shown:
        await shown.until(lambda: (shown.of("s0"), shown.of("s1")) == ("working(model)", "working(model)"))
        shown.program.went(away=True)
        for n, owner in enumerate(owners):
            home.end(f"s{n}")
            home.live(f"s{n}", "idle", owner)
        await shown.until(lambda: len(shown.program.book.dwelling) == 2)
        ripe = max(wait.ripe for wait in shown.program.book.dwelling.values())
        await shown.until(lambda: time.time() > ripe + 1)
        assert shown.spoken == []
        shown.program.went(away=False)
        (notice,) = shown.spoken
        assert notice.title == "Meanwhile, 2 sessions need you"


@pytest.mark.posix("a file in the way of a folder")
@in_loop
async def test_what_cannot_be_kept_is_said_and_done_all_the_same(home, own_folders):
    (own_folders / "state").write_text("in the way of a folder")
    async with running(home) as shown:
        assert shown.program.silence(SNOOZE_HOUR)
        (trouble,) = shown.snapshots[-1].trouble
        assert trouble.startswith("forgotten when island ends")
        assert shown.program.ear.hush.snoozed > time.time()


# -- processes -----------------------------------------------------------------------------------------------


@in_loop
async def test_the_end_of_a_process_is_seen(home, start):
    owner, calm = start(), start()
    home.prompt("s1")
    home.live("s1", "busy", owner)
    home.live("s2", "idle", calm)
    async with running(home) as shown:
        await shown.until(lambda: (shown.of("s1"), shown.of("s2")) == ("working(model)", "idle(new)"))
        owner.kill()  # and nobody waits for it: a zombie has ended
        await shown.until(lambda: shown.of("s1") == "idle(crashed)")
        assert shown.of("s2") == "idle(new)"
        calm.kill()
        calm.wait()
        await shown.until(lambda: shown.of("s2") in ("idle(ended)", "nothing"))


@in_loop
async def test_a_dead_process_in_a_live_record_is_no_life(home, start):
    owner = start()
    home.prompt("s1")
    home.live("s1", "busy", owner)
    owner.kill()
    owner.wait()
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "idle(crashed)")


@on_linux
@in_loop
async def test_the_pid_of_another_process_in_a_live_record_is_no_life(home, start):
    home.prompt("s1")
    home.live("s1", "busy", start(), procStart="1")
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "idle(crashed)")


@on_linux
@in_loop
async def test_an_agent_that_is_suspended_stalls_until_it_goes_on(home, start):
    owner = start("claude")
    home.prompt("s1")
    home.live("s1", "busy", owner)
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
        owner.send_signal(signal.SIGSTOP)
        await shown.until(lambda: shown.of("s1") == "stalled(silent)")
        owner.send_signal(signal.SIGCONT)
        await shown.until(lambda: shown.of("s1") == "working(model)")


@on_linux
@in_loop
async def test_a_headless_run_is_shown_as_a_machines(home, start):
    async with running(home) as shown:
        run = start("claude", "-p", "prompt")
        ident = f"run:{run.pid}"
        await shown.until(lambda: shown.of(ident) == "working(model)")
        assert shown.snapshots[-1].icon is State.IDLE
        run.kill()
        run.wait()
        await shown.until(lambda: shown.of(ident) in ("idle(ended)", "idle(crashed)", "nothing"))


# -- what goes wrong -----------------------------------------------------------------------------------------


@in_loop
async def test_a_foolish_record_stops_nobody(home):
    foolish = home.root / ".claude" / "sessions" / "1.json"
    foolish.parent.mkdir(parents=True)
    foolish.write_text(json.dumps({"pid": True, "sessionId": "s0", "status": "busy"}))
    async with running(home) as shown:
        home.prompt("s2")
        await shown.until(lambda: shown.of("s2") == "working(model)")


@in_loop
async def test_a_tray_that_fails_once_is_shown_the_next_thing(home):
    class Clumsy(Shown):
        def __call__(self, snapshot: Snapshot, spoken: Spoken) -> None:
            super().__call__(snapshot, spoken)
            if len(self.snapshots) == 2:
                raise RuntimeError("the tray fails")

    async with running(home, Clumsy()) as shown:
        for session in ("s1", "s2", "s3"):
            home.prompt(session)
            await shown.until(lambda: shown.of(session) == "working(model)")  # noqa: B023


@in_loop
async def test_a_look_at_the_processes_that_fails_is_followed_by_another(home, monkeypatch):
    """The system's limit of open files may be reached for a moment."""
    real, failed = psutil.pids, []

    def fail_once() -> list[int]:
        if failed:
            return real()
        failed.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    async with running(home) as shown:
        monkeypatch.setattr(psutil, "pids", fail_once)
        await shown.until(lambda: failed)
        home.prompt("s1")
        await shown.until(lambda: shown.of("s1") == "working(model)")


@pytest.mark.posix("these words for a folder")
@in_loop
async def test_a_file_that_cannot_be_read_is_shown_as_trouble(home):
    folder = home.prompt("s1").with_name("s2.jsonl")
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
        folder.mkdir()
        await shown.until(lambda: shown.snapshots[-1].trouble == ("s2.jsonl: is a directory",))
        folder.rmdir()
        await shown.until(lambda: shown.snapshots[-1].trouble == ())


# -- its end -------------------------------------------------------------------------------------------------


def test_when_it_is_cancelled_no_task_thread_or_file_is_left(home):
    threads, files = set(threading.enumerate()), open_files()
    end = time.monotonic() + 2 * DEADLINE

    async def some_time() -> None:
        async with running(home) as shown:
            home.prompt("s1")
            await shown.until(lambda: shown.of("s1") == "working(model)")
        assert asyncio.all_tasks() == {asyncio.current_task()}

    for _ in range(3):
        asyncio.run(some_time())
    for thread in set(threading.enumerate()) - threads:
        thread.join(DEADLINE)
        assert not thread.is_alive()
    while open_files() > files:  # the watcher closes its own in its own time
        assert time.monotonic() < end, "files stay open"
        time.sleep(0.01)


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@in_loop
async def test_it_may_be_cancelled_before_it_has_begun(home):
    task = asyncio.create_task(Running(Shown(), home.where).run())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@in_loop
async def test_it_writes_nothing_into_the_homes(home, start):
    home.prompt("s1")
    home.live("s1", "busy", start())
    before = listing(home.root)
    async with running(home) as shown:
        await shown.until(lambda: shown.of("s1") == "working(model)")
    assert listing(home.root) == before


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p): (s.st_size, s.st_mtime_ns) for p in folder.rglob("*") if (s := p.lstat())}


# -- one look ------------------------------------------------------------------------------------------------


def test_one_look_shows_what_is_there(home, start, monkeypatch):
    monkeypatch.setattr("island.look.homes", lambda: home.where)
    home.prompt("s1")
    home.live("s1", "busy", start())
    home.prompt("s2")
    home.end("s2")
    rows = look_once().snapshot(time.time()).rows
    said = {row.session: row.verdict.state for row in rows if row.session in ("s1", "s2")}
    assert said == {"s1": State.WORKING, "s2": State.YOUR_TURN}


def test_the_agents_own_variables_move_their_homes():
    moved = homes({"CLAUDE_CONFIG_DIR": "/one", "CODEX_HOME": "/two"})
    assert (moved["claude"], moved["codex"]) == ("/one", "/two")
    assert homes({})["codex"] == f"{Path.home()}/.codex"
    assert homes({"CODEX_HOME": ""})["codex"] == f"{Path.home()}/.codex"


@pytest.mark.parametrize("written", ["{}/", "{}/.", "{}//"])
def test_a_file_has_one_name_however_its_agents_folder_is_written(tmp_path, written):
    """Or it would be followed twice: as the sweep names it, and as the watcher does."""
    home = written.format(tmp_path / "agent")
    program = Running(lambda *_: None, {**dict.fromkeys(AGENTS, home), HOME: home})
    assert {str(tmp_path / "agent" / name) for name in ("projects", "claude")} <= {r.path for r in program._roots()}
    assert [r.path for r in program._roots() if r.path != str(Path(r.path))] == []
