"""The command line as a user meets it: programs started in a home of their own, what they print, how they end.

No command sees the home, the session bus or the settings of whoever runs the tests.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import orjson
import psutil
import pytest

from island.agents import AGENTS
from island.agents.cursor import CURSOR
from island.cli.export import FIELDS, schema
from island.cli.watch import Screen
from island.model import Reason, Row, Snapshot, State, Verdict
from island.quiet import Hush, to_json

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has other signals, terminals and homes")

DEADLINE = 30  # seconds until a test gives up; a good machine needs a small part of one
COMMANDS = ("status", "watch", "explain", "config", "autostart", "replay", "record", "demo", "doctor")
SECRET = "the words of a prompt"
SESSION = "0bc18d25-5fb3-46dc-a258-f95d3825818f"
OTHER = "77777777-5fb3-46dc-a258-f95d3825818f"


def until(true: Callable[[], object]) -> object:
    end = time.monotonic() + DEADLINE
    while not (answer := true()):
        assert time.monotonic() < end, "not within the deadline"
        time.sleep(0.01)
    return answer


class Home:
    """A home with one session of Claude Code in it that waits for its user, and a process that has it loaded."""

    def __init__(self, root: Path) -> None:
        self.root = root / "home"
        self.root.mkdir()
        self.state = root / "state"
        self.settings = root / "config" / "island" / "config.toml"
        (root / "run").mkdir(0o700)  # an empty one: else the bus of whoever runs the tests is found
        self.environ = {"HOME": str(self.root), "XDG_RUNTIME_DIR": str(root / "run"), "PATH": os.defpath,
                        "XDG_STATE_HOME": str(self.state), "XDG_CONFIG_HOME": str(root / "config"),
                        "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "LINES": "40", "COLUMNS": "120"}
        self.owners: list[subprocess.Popen] = []
        self.own(SESSION, "idle")
        self.prompt(SESSION)
        self.append(SESSION, record("assistant", message=answer("an answer")))
        self.append(SESSION, record("system", subtype="turn_duration"))

    def set(self, text: str) -> None:
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        self.settings.write_text(text)

    def own(self, session: str, status: str) -> None:
        """Start a process that has a session loaded from now on, and says so."""
        owner = subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE)
        self.owners.append(owner)
        now = int(psutil.Process(owner.pid).create_time() * 1000)
        said = {"pid": owner.pid, "sessionId": session, "startedAt": now, "updatedAt": now, "statusUpdatedAt": now,
                "status": status, "entrypoint": "cli", "version": "2.1.332"}
        path = self.root / ".claude" / "sessions" / f"{owner.pid}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(said))

    def end(self) -> None:
        for owner in self.owners:
            owner.communicate()

    def append(self, session: str, *lines: dict) -> Path:
        path = self.root / ".claude" / "projects" / "-app" / f"{session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            file.writelines(json.dumps({"sessionId": session} | line) + "\n" for line in lines)
        return path

    def prompt(self, session: str) -> Path:
        return self.append(session, record("user", promptId="p1", message={"role": "user", "content": SECRET}))

    def run(self, *arguments: str, stdout: int = subprocess.PIPE, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "island", *arguments], env=self.environ | environ, text=True,
                              cwd=self.root, stdout=stdout, stderr=subprocess.PIPE, timeout=DEADLINE, check=False)

    def listing(self) -> dict[str, tuple[int, int]]:
        return {str(p): (s.st_size, s.st_mtime_ns) for p in self.root.parent.rglob("*") if (s := p.lstat())}


def record(kind: str, **more: object) -> dict:
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"type": kind, "timestamp": stamp, "uuid": stamp, "cwd": "/home/dev/app", "entrypoint": "cli",
            "version": "2.1.332"} | more


def answer(text: str) -> dict:
    return {"role": "assistant", "model": "claude-opus-5-5", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}]}


@pytest.fixture
def home(tmp_path):
    home = Home(tmp_path)
    yield home
    home.end()


class Program:
    """A command that goes on until it is told to end, and all that it has said so far."""

    def __init__(self, home: Home, *arguments: str, stdout: int = subprocess.PIPE) -> None:
        self.process = subprocess.Popen([sys.executable, "-m", "island", *arguments], env=home.environ, cwd=home.root,
                                        stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
        self.said = {1: b"", 2: b""}

    def read(self) -> None:
        streams = {f.fileno(): n for n, f in ((1, self.process.stdout), (2, self.process.stderr)) if f}
        for stream in select.select(streams, (), (), 0.05)[0]:
            self.said[streams[stream]] += os.read(stream, 65536)

    def says(self, what: bytes, stream: int = 1) -> bool:
        """Wait until it has said something, for as long as it runs."""
        def heard() -> bool:
            self.read()
            return what in self.said[stream] or self.process.poll() is not None

        until(heard)
        return what in self.said[stream]

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=DEADLINE / 3)
        self.said = {1: self.said[1] + (out or b""), 2: self.said[2] + err}
        return self.process.returncode

    @property
    def runs(self) -> bool:
        return self.process.poll() is None


@pytest.fixture
def begin(home):
    begun: list[Program] = []

    def begin(*arguments: str, **more: int) -> Program:
        begun.append(Program(home, *arguments, **more))
        return begun[-1]

    yield begin
    for program in begun:
        program.process.kill()
        program.process.communicate()


# -- in general ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
def test_each_command_explains_itself(home, command):
    done = home.run(*command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {' '.join(('island', *command))}")
    assert all(word in done.stdout for word in COMMANDS) or command
    assert len(done.stdout.split("\n\n")[1]) > 20  # a sentence that says what it is for


def test_it_tells_its_version(home):
    from island import __version__

    assert home.run("--version").stdout == f"island {__version__}\n"


@pytest.mark.parametrize("arguments", [
    ("wonder",), ("--wonder",), ("status", "--wonder"), ("status", "--format", "wonder"),
    ("status", "--json", "--quiet"), ("watch", "--format", "json"), ("config", "wonder"), ("autostart", "wonder"),
    ("replay",), ("record",), ("replay", "--json", "--score", "x"),
    ("demo", "--speed", "0"), ("demo", "--speed", "-1"), ("demo", "--speed", "nan"), ("demo", "--speed", "inf"),
])
def test_what_is_not_understood_is_said_and_nothing_is_done(home, arguments):
    done = home.run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "island" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("status",), ("explain",), ("replay", "story.jsonl")])
def test_the_text_of_panes_is_asked_for_before_or_behind_the_command(home, command):
    story(home)
    for arguments in (("--panes", *command), (*command, "--panes")):
        done = home.run(*arguments)
        assert (done.returncode, done.stderr) == (0, "")


# -- status --------------------------------------------------------------------------------------------------


def test_status_shows_each_session_in_one_line(home):
    home.own(OTHER, "busy")
    home.append(OTHER, record("user", promptId="p2", message={"role": "user", "content": SECRET}, cwd="/home/dev/site"))
    done = home.run("status")
    assert (done.returncode, done.stderr) == (0, "")
    heading, *lines = done.stdout.splitlines()
    assert heading.split() == ["state", "reason", "project", "agent", "since", "session"]
    first, second = (re.split(r" {2,}", line) for line in lines)
    assert (first[:4], first[5]) == (["✓ your-turn", "finished", "app", "claude"], SESSION[:8])
    assert (second[:4], second[5]) == (["► working", "model", "site", "claude"], OTHER[:8])


def test_status_without_sessions_says_so(home):
    shutil.rmtree(home.root / ".claude")
    done = home.run("status")
    assert (done.returncode, done.stdout) == (0, "no sessions: nothing needs you\n")


def test_headless_sessions_are_shown_on_request(home):
    home.append(OTHER, record("user", promptId="p2", promptSource="sdk", message={"role": "user", "content": SECRET}))
    assert OTHER[:8] not in home.run("status").stdout
    assert "(machine)" in next(x for x in home.run("status", "--all").stdout.splitlines() if OTHER[:8] in x)


def test_status_as_json(home):
    done = home.run("status", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert set(told) == {"schema", "at", "icon", "seen", "sessions", "trouble"}
    assert (told["schema"], told["icon"], told["seen"], told["trouble"]) == (1, "your-turn", False, [])
    (row,) = (row for row in told["sessions"] if row["session"] == SESSION)
    assert set(row) == set(FIELDS)
    assert (row["agent"], row["kind"], row["state"], row["reason"]) == ("claude", "person", "your-turn", "finished")
    assert row["until"] > told["at"] >= row["since"]


#: For tests that count: whoever runs them may run other agents on this machine, too.
ONLY_CLAUDE = 'agents = ["claude"]\n'


def test_status_for_a_script_is_an_exit_code(home):
    home.set(ONLY_CLAUDE)
    for quiet in (("status", "--quiet"), ("-v", "status", "--quiet")):
        done = home.run(*quiet)
        assert (done.returncode, done.stdout, done.stderr) == (20, "", "")
    home.prompt(SESSION)
    shutil.rmtree(home.root / ".claude" / "sessions")
    assert home.run("status", "--quiet").returncode == 10
    shutil.rmtree(home.root / ".claude")
    assert home.run("status", "--quiet").returncode == 0


@pytest.mark.parametrize(("name", "line"), [
    ("plain", "1 finished\n"), ("polybar", "%{F#009e73}✓1%{F-}\n"), ("i3blocks", "✓1\n✓1\n#009e73\n"),
    ("tmux", "#[bg=#1c1f26] #[fg=#009e73]✓1 #[default]\n"), ("starship", "✓1\n"),
])
def test_status_for_a_bar_is_a_line(home, name, line):
    home.set(ONLY_CLAUDE)
    done = home.run("status", "--format", name)
    assert (done.returncode, done.stdout, done.stderr) == (0, line, "")


def test_the_schema_is_printed_on_request(home):
    assert json.loads(home.run("status", "--schema").stdout) == json.loads(json.dumps(schema()))


def test_titles_are_exported_if_the_user_wants_it_and_names_are_hidden_everywhere(home):
    home.append(SESSION, {"type": "custom-title", "customTitle": "my title", "sessionId": SESSION})
    home.set(ONLY_CLAUDE)

    def told():
        (row,) = json.loads(home.run("status", "--json").stdout)["sessions"]
        assert (row["project"] in home.run("status").stdout) or not row["project"]
        return row["project"], row["title"]

    assert told() == ("app", "")
    home.set(ONLY_CLAUDE + "titles.exports = true")
    assert told() == ("app", "my title")
    (home.state / "island").mkdir(parents=True)
    (home.state / "island" / "quiet.json").write_bytes(orjson.dumps(to_json(Hush(hidden=True))))
    assert told() == ("", "")
    assert "names are hidden: " in home.run("status").stdout
    assert "app" not in home.run("status", "--format", "waybar").stdout


def test_a_mistake_in_the_settings_is_shown_and_hides_nothing_else(home):
    home.set("panes = 1\n" + ONLY_CLAUDE)
    assert "! config.toml: line 1: panes: must be true or false\n" in home.run("status").stdout
    told = json.loads(home.run("status", "--json").stdout)
    assert (len(told["sessions"]), told["trouble"]) == (1, ["config.toml: line 1: panes: must be true or false"])
    assert "WRONG settings: config.toml: line 1: panes: must be true or false" in home.run("doctor").stdout


def test_an_agent_that_is_not_watched_is_not_shown(home):
    home.set('agents = ["codex"]')
    assert home.run("status").stdout == "no sessions: nothing needs you\n"


@pytest.mark.parametrize("command", ["status", "explain", "doctor", "config", "autostart"])
def test_a_look_changes_nothing_in_the_home(home, command):
    before = {path: what for path, what in home.listing().items() if path.startswith(str(home.root))}
    home.run(command)
    assert {path: what for path, what in home.listing().items() if path.startswith(str(home.root))} == before


@pytest.mark.parametrize("command", [("status", "--all"), ("status", "--json"), ("explain",), ("doctor",)])
def test_no_word_of_a_prompt_is_shown(home, command):
    home.append(SESSION, {"type": "ai-title", "aiTitle": "title of " + SECRET})
    done = home.run(*command)
    assert SECRET not in done.stdout + done.stderr


EVIL = "\x1b]0;gotcha\x07\x1b[2J\u202e"


@pytest.mark.parametrize("command", [("status", "--all"), ("explain", EVIL)])
def test_nothing_that_an_agent_wrote_acts_on_the_terminal(home, command):
    home.append(EVIL + OTHER, record("user", promptId=EVIL, cwd=f"/home/dev/{EVIL}", version=EVIL,
                                     message={"role": "user", "content": EVIL}))
    home.append(EVIL + OTHER, record("assistant", message=answer(EVIL) | {"model": EVIL}))
    home.append(EVIL + OTHER, {"type": "custom-title", "customTitle": EVIL, "sessionId": EVIL + OTHER})
    done = home.run(*command)
    assert done.returncode == 0
    assert not set("\x1b\x07\u202e") & set(done.stdout + done.stderr)


# -- config, autostart ---------------------------------------------------------------------------------------


def test_config_shows_what_counts_and_where_it_comes_from(home):
    done = home.run("config")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"# {home.settings} (not there: all is as by default)\n")
    assert "\npanes = false  # default\n" in done.stdout
    home.set("panes = true\n\n[notices]\nquiet_hours = '22:00-07:00'\n")
    done = home.run("config")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"# {home.settings}\n")
    assert "\npanes = true  # line 1\n" in done.stdout
    assert '\nquiet_hours = "22:00-07:00"  # line 4\n' in done.stdout
    home.set(done.stdout)
    assert re.sub("line [0-9]+", "default", home.run("config").stdout) == re.sub("line [0-9]+", "default", done.stdout)


def test_config_says_what_is_wrong(home):
    home.set("panes = true\nwonder = 1\n[notices]\nmin_turn = -1\n")
    done = home.run("config")
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"island: {home.settings}: line 2: wonder: no such setting",
        f"island: {home.settings}: line 4: notices.min_turn: must be a number of seconds from 0 to 86400",
    ]
    assert "\npanes = true  # line 1\n" in done.stdout
    assert "\nmin_turn = 0  # default\n" in done.stdout


@pytest.mark.parametrize(("content", "why"), [(None, "Is a directory"), (b"\n\xff", "line 2: not UTF-8")])
def test_config_says_that_its_file_cannot_be_read(home, content, why):
    home.settings.parent.mkdir(parents=True)
    home.settings.mkdir() if content is None else home.settings.write_bytes(content)
    done = home.run("config")
    assert (done.returncode, done.stderr) == (2, f"island: {home.settings}: {why}\n")
    assert done.stdout.startswith(f"# {home.settings} (cannot be read: all is as by default)\n")


def test_config_does_not_call_an_empty_file_missing(home):
    home.set("")
    assert home.run("config").stdout.startswith(f"# {home.settings}\n")


def test_config_tells_the_path(home):
    assert home.run("config", "--path").stdout == f"{home.settings}\n"


def test_autostart_is_off_until_asked_for(home):
    entry = home.settings.parents[1] / "autostart" / "island.desktop"
    assert home.run("autostart").stdout == f"off: nothing is written at {entry}\n"
    done = home.run("autostart", "on")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"on: island starts at your next login\nwritten to {entry}:\n    [Desktop Entry]\n")
    assert "Exec=" in entry.read_text()
    assert home.run("autostart", "status").stdout.startswith(f"on: {entry}:\n")
    assert home.run("autostart", "off").stdout == f"off: island does not start by itself\nremoved {entry}\n"
    assert not entry.exists()


# -- explain -------------------------------------------------------------------------------------------------


def test_explain_shows_the_evidence_behind_a_state(home):
    done = home.run("explain", SESSION[:6])
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Claude Code, session {SESSION}, app\n  your-turn (finished), told\n")
    for part in ("since", "lapses", "decided by", "evidence", "registers (", "prompt", "turn_duration"):
        assert part in done.stdout


def test_explain_tells_what_is_invisible_of_a_version(home):
    assert "invisible" not in home.run("explain", SESSION).stdout
    home.append(OTHER, record("user", promptId="p2", message={"role": "user", "content": SECRET}, version="2.1.100"))
    assert "\n  invisible  before 2.1.120: " in home.run("explain", OTHER).stdout


def test_explain_takes_the_most_urgent_if_none_is_named(home):
    home.prompt(OTHER)
    done = home.run("explain")
    assert done.stdout.startswith(f"Claude Code, session {SESSION}")
    assert "more: island status --all" in done.stdout


def test_explain_says_that_there_is_no_such_session(home):
    done = home.run("explain", "wonder")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "island: no session begins with 'wonder', and no project is called so\n"


def test_explain_takes_a_project_and_lists_what_a_beginning_may_mean(home):
    home.own(OTHER, "busy")
    home.append(OTHER, record("user", promptId="p2", message={"role": "user", "content": SECRET}, cwd="/home/dev/site"))
    assert f"session {OTHER}, site" in home.run("explain", "site").stdout
    home.append(twin := f"{OTHER[:4]}0000", record("user", promptId="p3", message={"role": "user", "content": SECRET}))
    done = home.run("explain", OTHER[:4])
    assert (done.returncode, done.stdout) == (2, "")
    assert OTHER in done.stderr
    assert twin in done.stderr


def test_explain_tells_no_names_while_they_are_hidden(home):
    assert "fact cwd /" in home.run("explain", SESSION).stdout
    home.append(f"{SESSION[:4]}0000", record("user", promptId="p3", message={"role": "user", "content": SECRET}))
    (home.state / "island").mkdir(parents=True)
    (home.state / "island" / "quiet.json").write_bytes(orjson.dumps(to_json(Hush(hidden=True))))
    told = home.run("explain", SESSION).stdout
    assert told.startswith(f"Claude Code, session {SESSION}\n")
    assert re.search(r"\n  fact cwd \[\d+ characters\] ", told)
    assert "fact role person" in told
    for said in (told, home.run("explain", SESSION[:4]).stderr):
        assert not re.search(r"\bapp\b", said)


def test_explain_looks_at_what_the_settings_say_and_at_nothing_else(home):
    home.set('agents = ["codex"]')
    assert home.run("explain").stdout == "no sessions: nothing to explain\n"
    assert home.run("explain", SESSION).returncode == 2


def test_explain_without_sessions_says_so(home):
    shutil.rmtree(home.root / ".claude")
    done = home.run("explain")
    assert (done.returncode, done.stdout) == (0, "no sessions: nothing to explain\n")


# -- replay --------------------------------------------------------------------------------------------------


def story(home: Home, *more: dict, name: str = "story.jsonl") -> str:
    """Write a sequence: a turn that ends and is announced, the next one, a headless run."""
    def at(seconds: float, kind: str, session: str = "s1", **fields: object) -> dict:
        stamp = {"timestamp": f"2026-11-30T10:00:{seconds:06.3f}Z", "sessionId": session}
        line = record(kind, **fields) | stamp
        return {"at": seconds, "append": f"~/.claude/projects/p/{session}.jsonl", "records": [line]}

    prompt = {"role": "user", "content": SECRET}
    lines = [
        {"sequence": 1, "title": "a story", "law": "A story is told.", "agent": "claude", "origin": "written",
         "start": "2026-11-30T10:00:00.000Z"},
        at(1, "user", promptId="p1", message=prompt),
        {"at": 1, "truth": {"session": "s1", "state": "working", "reason": "model"}},
        at(2, "user", "s2", promptId="m1", message=prompt, promptSource="sdk"),
        at(5, "system", subtype="turn_duration"),
        {"at": 5, "truth": {"session": "s1", "state": "your-turn", "reason": "finished"}},
        {"at": 8, "expect": {"s1": "your-turn(finished)", "icon": "your-turn", "notices": ["s1"]}},
        at(9, "user", promptId="p2", message=prompt),
        {"at": 10, "expect": {"s1": "working(model)"}},
        *more,
    ]
    path = home.root / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_replay_prints_a_line_for_each_change(home):
    done = home.run("replay", story(home))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0].endswith("story.jsonl: A story is told.")
    told = [line.split(maxsplit=1) for line in done.stdout.splitlines()[1:] if line]
    assert ["5.000", "truth     s1 your-turn (finished)"] in told
    assert any(at == "5.000" and said.startswith("s1  your-turn (finished), told, from: ") for at, said in told)
    assert ["9.000", "withdrawn s1"] in told
    assert [float(at) for at, _ in told] == sorted(float(at) for at, _ in told)


def test_replay_as_json_has_the_agreed_lines_and_keys(home):
    done = home.run("replay", "--json", story(home))
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    verdict = {"at", "session", "agent", "state", "reason", "sure", "why"}
    shapes = {frozenset(line) for line in lines}
    assert shapes == {frozenset(keys) for keys in (verdict, verdict | {"kind"}, {"at", "icon"}, {"at", "notice"},
                                                   {"at", "withdraw"})}
    assert {line["kind"] for line in lines if "kind" in line} == {"machine"}
    assert {line["session"] for line in lines if "kind" in line} == {"s2"}
    (notice,) = (line["notice"] for line in lines if "notice" in line)
    assert set(notice) == {"session", "reason", "title"}
    assert (notice["session"], notice["reason"]) == ("s1", "finished")
    assert [line["withdraw"] for line in lines if "withdraw" in line] == [{"session": "s1"}]
    assert [line["icon"] for line in lines if "icon" in line] == ["idle", "working", "your-turn", "working"]
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert SECRET not in done.stdout


def test_replay_as_score(home):
    done = home.run("replay", "--score", story(home), story(home, name="again.jsonl"))
    assert (done.returncode, done.stderr) == (0, "")
    first, second, total = done.stdout.splitlines()
    assert "story.jsonl" in first
    assert "again.jsonl" in second
    assert total.startswith("total: 2 files, ")
    assert total.endswith("false 0, missed 0")


def test_without_truth_there_is_nothing_to_score(home):
    file = Path(story(home))
    file.write_text("".join(line for line in file.read_text().splitlines(True) if '"truth"' not in line))
    done = home.run("replay", "--score", str(file))
    assert (done.returncode, done.stdout) == (2, f"{file}: no truth lines\n")
    assert done.stderr == "island: nothing to score\n"
    told = home.run("replay", "--score", str(file), story(home, name="again.jsonl"))
    assert (told.returncode, told.stdout.splitlines()[0]) == (0, f"{file}: no truth lines")
    assert "total: 1 files, " in told.stdout


def test_replay_says_what_was_expected_and_where(home):
    file = story(home, {"at": 11, "expect": {"s1": "idle", "icon": "idle", "s9": "working"}})
    done = home.run("replay", file)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        f"island: {file}:10: at 11.0: s1 is 'working(model)', expected 'idle'",
        f"island: {file}:10: at 11.0: icon is 'working', expected 'idle'",
        f"island: {file}:10: at 11.0: s9 is 'unknown', expected 'working'",
    ]


@pytest.mark.parametrize(("line", "what"), [
    ("{not json", "not JSON"), ('{"at": 1}', "no verb"), ('{"at": -1, "note": ""}', "`at` must be seconds"),
    ('{"at": 99, "append": "/etc/passwd", "text": ""}', "a path must start with ~/"), ("[]", "a JSON object"),
])
def test_a_malformed_file_is_named_with_the_line(home, line, what):
    file = Path(story(home))
    good = file.read_text()
    file.write_text(good + line + "\n")
    for more in ((), ("--json",), ("--score",)):
        done = home.run("replay", str(file), *more)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"island: {file}:10: ")
        assert what in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_file_that_is_no_text_is_named_with_the_line(home):
    file = Path(story(home))
    file.write_bytes(file.read_bytes() + b"\xff\n")
    done = home.run("replay", str(file))
    assert (done.returncode, done.stderr) == (2, f"island: {file}:10: not UTF-8\n")


@pytest.mark.parametrize(("name", "why"), [("missing.jsonl", "No such file"), (".", "Is a directory")])
def test_a_file_that_is_not_there_is_named(home, name, why):
    done = home.run("replay", story(home), name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"island: {name} cannot be read: {why}")


def test_replay_reads_nothing_of_the_home(home):
    home.append(SESSION).chmod(0)
    before = home.listing()
    file = story(home)
    home.run("replay", file)
    assert {path for path in home.listing() if path not in before} == {file}


def test_a_chat_beside_the_code_is_explained_by_its_folder_and_no_key_is_shown(home, tmp_path):
    key, project, program = "sk-0123456789", tmp_path / "webshop", tmp_path / "aider"
    project.mkdir()
    program.symlink_to(Path("/bin/sh").resolve())
    (project / ".aider.chat.history.md").write_text(f"\n#### my {key}  \n")
    agent = subprocess.Popen([program, "-c", "read line", "sh", "--openai-api-key", key], stdin=subprocess.PIPE,
                             cwd=project)
    home.owners.append(agent)
    done = home.run("explain", "webs")
    assert (done.returncode, "working (model)" in done.stdout) == (0, True)
    told = [home.run(*command) for command in (("status", "--json", "--all"), ("status",), ("doctor",))]
    assert "webshop" in told[1].stdout
    assert not [one for one in (done, *told) if key in one.stdout + one.stderr]


# -- doctor --------------------------------------------------------------------------------------------------


def test_doctor_finds_that_there_is_no_desktop_and_says_what_to_do(home):
    done = home.run("doctor")
    assert (done.returncode, done.stderr) == (1, "")
    assert "WRONG tray: there is no session bus\n      start island inside a desktop session" in done.stdout
    assert "WRONG notices: no-bus\n      start island inside a desktop session" in done.stdout
    assert re.search(r"ok    Claude Code: 2 files in .*/home/\.claude, the last change \d+ s ago, versions 2\.1\.332\n"
                     "ok", done.stdout)  # nothing is invisible of so new a version
    absent = [agent.label for agent in AGENTS.values() if f"ok    {agent.label}: " not in done.stdout]  # others may run
    assert "Claude Code" not in absent
    assert f"ok    not here: {', '.join(absent)}\n" in done.stdout
    assert "ok    island: does not run now" in done.stdout


def test_doctor_tells_all_that_is_invisible_of_the_agents_that_are_here(home):
    (home.root / ".cursor/projects/app/agent-transcripts/s1").mkdir(parents=True)
    (home.root / ".cursor/projects/app/agent-transcripts/s1/s1.jsonl").touch()
    done = home.run("doctor")
    told = "".join(f"      invisible: {blind}\n" for blind in CURSOR.blind_in())
    assert re.search(rf"ok    Cursor: 1 file in [^\n]*\n{re.escape(told)}ok", done.stdout)


def test_doctor_says_that_an_agent_runs_of_which_there_is_no_file(home, tmp_path):
    droid = tmp_path / "droid"
    droid.symlink_to("/bin/sleep")
    with subprocess.Popen([droid, "60"]) as running:
        told = home.run("doctor").stdout
        running.kill()
    assert re.search(r"ok    Factory Droid: runs, but has no file in .*\n      if it has been used, its files", told)


def test_doctor_looks_at_what_the_settings_say_and_at_nothing_else(home):
    home.set('agents = ["codex"]')
    done = home.run("doctor")
    assert "Claude Code:" not in done.stdout
    assert "ok    not watched, as the settings say: Aider, Claude Code, " in done.stdout


def test_doctor_tells_what_the_readers_did_not_know(home):
    home.prompt(SESSION)
    home.append(SESSION, {"type": "wonder"})
    with home.append(SESSION).open("a") as file:
        file.write("{not json\n")
    done = home.run("doctor")
    assert "WRONG Claude Code: 1 records of an unknown kind: wonder" in done.stdout
    assert "WRONG Claude Code: 1 records in projects/*/*.jsonl could not be read" in done.stdout
    assert done.returncode == 1


def test_doctor_tells_a_program_the_same_as_people(home):
    told, done = home.run("doctor").stdout, home.run("doctor", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["schema"], report["well"]) == (1, 1, False)
    assert {"well": False, "what": "notices: no-bus", "advice": "start island inside a desktop session",
            "absent": ""} in report["findings"]
    whats = [line[6:] for line in told.splitlines() if line[0] != " "]
    ages = re.compile(r"\d+ s ago")
    here = [ages.sub("", f["what"]) for f in report["findings"] if not f["absent"]]
    assert here == [ages.sub("", what) for what in whats if not what.startswith("not here")]
    absent = [f["absent"] for f in report["findings"] if f["absent"]]
    assert f"not here: {', '.join(absent)}" in whats
    assert "Claude Code" not in absent


def test_doctor_says_that_a_trial_notice_could_not_be_sent(home):
    assert "WRONG trial notice: not sent (no-bus)" in home.run("doctor", "--notify").stdout


# -- watch ---------------------------------------------------------------------------------------------------


def watched(home: Home, watch: Program) -> Program:
    """Wait until it has shown what was there, and what came."""
    assert watch.says(b"island: needs you\n")
    assert watch.says(SESSION[:8].encode())
    home.prompt(OTHER)
    assert watch.says(OTHER[:8].encode())
    assert watch.runs
    return watch


def test_watch_shows_what_changes_until_it_is_interrupted(home, begin):
    watch = watched(home, begin("watch"))
    assert watch.end(signal.SIGINT) == 0
    assert watch.said[2] == b""
    assert b"\x1b" not in watch.said[1]
    assert SECRET.encode() not in watch.said[1]


def test_watch_tells_programs_what_changes(home, begin):
    watch = begin("watch", "--json")
    assert watch.says(SESSION.encode())
    home.prompt(OTHER)
    assert watch.says(OTHER.encode())
    assert watch.end(signal.SIGTERM) == 0
    lines = [json.loads(line) for line in watch.said[1].splitlines()]
    assert SESSION in [row["session"] for row in lines[0]["changed"]]
    assert {line["schema"] for line in lines} == {1}
    assert OTHER in [row["session"] for line in lines[1:] for row in line["changed"]]
    assert SECRET.encode() not in watch.said[1]
    assert watch.said[2] == b""


def test_watch_tells_a_bar_what_changes(home, begin):
    home.set(ONLY_CLAUDE)
    watch = begin("watch", "--format", "i3blocks")
    assert watch.says("✓1\n".encode())
    home.prompt(OTHER)
    assert watch.says("✓1 ►1\n".encode())
    assert watch.end(signal.SIGINT) == 0


def test_watch_ends_when_it_is_told_to_whatever_it_does_just_then(tmp_path):
    for n in range(5):
        tmp_path.joinpath(str(n)).mkdir()
        home = Home(tmp_path / str(n))
        watch = Program(home, "watch")
        try:
            assert watched(home, watch).end(signal.SIGTERM) == 0
            assert watch.said[2] == b""
        finally:
            watch.process.kill()
            watch.process.communicate()
            home.end()


# -- the tray, where there is none ---------------------------------------------------------------------------


def test_without_a_bus_it_says_so_once_goes_on_and_ends_when_told(home, begin):
    tray = begin()
    said = b"island: there is no session bus; notices do not work. `island doctor` says more.\n"
    assert tray.says(b"\n", 2)
    assert tray.runs

    before = home.listing()
    second = home.run()
    assert (second.returncode, second.stdout) == (3, "")
    assert second.stderr == "island: runs already; nothing was changed\n"
    assert home.listing() == before
    assert "ok    island: runs\n" in home.run("doctor").stdout
    assert tray.runs

    assert tray.end(signal.SIGTERM) == 0
    assert tray.said == {1: b"", 2: said}
    assert "ok    island: does not run now" in home.run("doctor").stdout


def test_a_second_start_after_the_first_was_killed_runs(home, begin):
    first = begin()
    until(lambda: "ok    island: runs\n" in home.run("doctor").stdout)
    assert first.end(signal.SIGKILL) == -signal.SIGKILL
    second = begin()
    until(lambda: "ok    island: runs\n" in home.run("doctor").stdout)
    assert second.runs
    assert second.end(signal.SIGINT) == 0


def test_without_a_place_for_its_lock_it_says_so(home):
    home.state.mkdir()
    (home.state / "island").touch()
    done = home.run()
    assert done.returncode == 2
    assert done.stderr.startswith("island: ")
    assert done.stderr.count("\n") == 1
    assert f"WRONG island: its lock cannot be made in {home.state}/island: " in home.run("doctor").stdout


class Terminal:
    """A pseudo terminal, and all that was written to it."""

    def __init__(self) -> None:
        self.ours, self.theirs = pty.openpty()
        self.said = b""

    def says(self, what: bytes, program: Program) -> bool:
        def heard() -> bool:
            self.read()
            return what in self.said or not program.runs

        until(heard)
        return what in self.said

    def read(self) -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while select.select((self.ours,), (), (), 0.05)[0]:
                self.said += os.read(self.ours, 65536)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    os.close(made.ours)
    os.close(made.theirs)


def test_without_a_bus_a_terminal_shows_the_live_table(home, begin, terminal):
    tray = begin(stdout=terminal.theirs)
    assert terminal.says(b"no tray to show the icon in", tray)
    assert terminal.says(SESSION[:8].encode(), tray)
    home.prompt(OTHER)
    assert terminal.says(OTHER[:8].encode(), tray)
    assert b"\x1b[H\x1b[J" in terminal.said
    assert tray.end(signal.SIGINT) == 0
    assert tray.said[2].count(b"\n") == 1


def test_watch_draws_over_itself_on_a_terminal_and_within_it(home, begin, terminal):
    home.environ |= {"COLUMNS": "30", "LINES": "6"}
    for n in range(20):
        home.prompt(f"{n:08}")
    watch = begin("watch", stdout=terminal.theirs)
    assert terminal.says("✓ your-turn".encode(), watch)
    assert watch.end(signal.SIGINT) == 0
    terminal.read()
    for screen in terminal.said.decode().split("\x1b[H\x1b[J")[1:]:
        lines = screen.removesuffix("\r\n").split("\r\n")
        assert len(lines) <= 5
        assert all(len(line) <= 30 for line in lines)
    assert re.fullmatch(r"and \d+ more", lines[-1])


def at(n: int) -> Snapshot:
    verdict = Verdict(State.WORKING, Reason.MODEL, since=1.0)
    rows = tuple(Row("claude", f"s{i}", verdict, project=f"p{i}") for i in range(n))
    return Snapshot(9.0, State.WORKING, rows, ("something is wrong",))


@pytest.mark.parametrize(("height", "rows", "told"), [
    (24, 3, []), (10, 3, []), (9, 3, ["and 2 more"]), (8, 180, ["and 180 more"]), (12, 180, ["and 176 more"]),
])
def test_a_table_with_no_room_for_all_says_how_many_more(monkeypatch, height, rows, told):
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((40, height)))
    lines = Screen(note="a note that is longer than a line of forty signs").text(at(rows), bounded=True).split("\n")
    assert lines[1:4] == ["a note that is longer than a line of", "forty signs", ""]
    assert [line for line in lines if line.startswith("and ")] == told
    assert lines[-1] == "! something is wrong"
    assert len(lines) < height


def test_a_table_that_goes_elsewhere_is_not_cut(monkeypatch):
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((20, 5)))
    lines = Screen().text(at(180), bounded=False).split("\n")
    assert len(lines) == 184


# -- streams that are not as they should be ------------------------------------------------------------------


def closed_pipe() -> int:
    """Return an end of a pipe that nobody reads: what `| head -1` leaves."""
    reading, writing = os.pipe()
    os.close(reading)
    return writing


@pytest.mark.parametrize("command", [("status",), ("status", "--json"), ("explain",), ("doctor",), ("--help",),
                                     ("replay", "--json", "story.jsonl"), ("watch",), ("watch", "--json"),
                                     ("config",), ("status", "--format", "plain"), ("autostart", "status")])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_has_enough_is_no_trouble(home, command, unbuffered):
    story(home)
    pipe = closed_pipe()
    try:
        done = home.run(*command, stdout=pipe, PYTHONUNBUFFERED=unbuffered)
    finally:
        os.close(pipe)
    assert done.stderr == ""
    assert done.returncode in (0, 1)


@pytest.mark.parametrize("command", [("status",), ("status", "--json"), ("doctor",), ("config",),
                                     ("replay", "story.jsonl"), ("watch",), ("watch", "--json"),
                                     ("watch", "--format", "plain"), ("autostart",)])
def test_output_that_finds_no_room_is_told_in_one_line(home, command):
    story(home)
    with Path("/dev/full").open("w") as full:
        done = home.run(*command, stdout=full)
    assert done.stderr == "island: the output could not be written: No space left on device\n"
    assert done.returncode == 2


@pytest.mark.parametrize("command", ["status", "explain", "doctor", "watch", "replay story.jsonl", ""])
def test_without_standard_output_it_goes_on(home, command):
    """Started from a desktop's menu or by `pythonw`, a program may have none."""
    story(home)
    line = f"exec {sys.executable} -m island {command} >&-"
    with subprocess.Popen(["sh", "-c", line], env=home.environ, cwd=home.root, stderr=subprocess.PIPE) as process:
        if command in ("watch", ""):
            until(lambda: process.poll() is not None or watches(process.pid))
            process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=DEADLINE)
    assert b"Traceback" not in err
    assert process.returncode == (1 if command == "doctor" else 0)


def watches(pid: int) -> bool:
    """Tell whether a process has a file watcher by now."""
    folder = Path(f"/proc/{pid}/fd")
    with contextlib.suppress(OSError):
        return any("inotify" in str(fd.readlink()) for fd in folder.iterdir())
    return False


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("environ", [{"LANG": "C"}, ASCII, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "xx_YY.wonder"}])
def test_a_terminal_without_our_signs_is_written_to_all_the_same(home, environ):
    home.own(OTHER, "busy")
    home.append(OTHER, record("user", promptId="p2", cwd="/home/dev/prôjét→", message={"role": "user", "content": ""}))
    for command in (("status",), ("explain", OTHER), ("replay", story(home))):
        done = home.run(*command, **environ)
        assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^. your-turn", home.run("status", **environ).stdout, re.MULTILINE)


def test_the_live_table_needs_no_signs_either(home, begin):
    home.environ |= ASCII
    watch = begin("watch")
    assert watch.says(b"? your-turn")
    assert watch.end(signal.SIGINT) == 0
    assert watch.said[2] == b""


def test_a_home_that_is_not_there_is_no_trouble(home):
    done = home.run("status", HOME=str(home.root / "nowhere"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "no sessions: nothing needs you\n", "")


@pytest.mark.parametrize("variable", ["CLAUDE_CONFIG_DIR", "CODEX_HOME"])
def test_agents_that_were_moved_are_found(home, variable):
    (home.root / ".claude").rename(home.root / "moved")
    done = home.run("status", **{variable: str(home.root / "moved")})
    assert (SESSION[:8] in done.stdout) is (variable == "CLAUDE_CONFIG_DIR")
