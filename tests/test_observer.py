"""The observer: which files it reads, how much of them, what it makes of what it cannot read or no longer finds.

Real files in a temporary home, a table of made-up processes, and time as an argument.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from types import FrameType

import orjson
import pytest

from island.agents import AGENTS
from island.agents.base import Shape, Source
from island.agents.claude import CLAUDE
from island.look import matters
from island.model import Event, Kind, Process, Record, Role
from island.observer import HORIZON, WARM, Observer
from island.scene import RecordedTable
from island.sources import files
from island.sources.processes import Change, SystemTable

NOW = 1_796_000_000.0
HOUR = 3600.0
MB = 1024 * 1024
FORK = "01a22ed0-a09d-7a70-be33-60f96e805206"
THREAD = "0199f0aa-1111-7222-8333-444455556666"


class Table(RecordedTable):
    """The processes of a test: a pid that is not there does not run."""

    def __init__(self, *running: Process, complete: bool) -> None:
        super().__init__(frozenset(), complete, running={p.pid: p for p in running})

    def get(self, pid: int) -> Process | None:
        return self.running.get(pid)


def claude(pid: int = 100, created: float = NOW - 600, cwd: str = "/home/dev/app") -> Process:
    return Process(pid, 1, "claude", ("claude",), cwd, created)


class Home:
    """A temporary home with an observer on it, which sees no processes."""

    def __init__(self, root, agents=AGENTS) -> None:
        self.root = root
        self.agents = agents
        self.start(complete=False)

    def start(self, *running: Process, at: float = NOW, complete: bool = True) -> Observer:
        """Launch island anew, with these processes running, and no others if all can be seen."""
        self.table = Table(*running, complete=complete)
        homes = {name: str(self.root / agent.name) for name, agent in self.agents.items()}
        self.observer = Observer(homes, self.table, at, agents=self.agents)
        return self.observer

    def path(self, name: str):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def append(self, name: str, *lines: dict | str, at: float = NOW) -> str:
        path = self.path(name)
        with path.open("a") as file:
            file.writelines((x if isinstance(x, str) else json.dumps(x)) + "\n" for x in lines)
        os.utime(path, (at, at))
        return str(path)

    def write(self, name: str, document: dict | str, at: float = NOW) -> str:
        path = self.path(name)
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        os.utime(path, (at, at))
        return str(path)

    def hint(self, *names: str, at: float = NOW) -> None:
        self.observer.changed([str(self.root / name) for name in names], at)

    def said(self, session: str) -> str:
        """Return what island says of a session: its state and reason."""
        found = [row.verdict for row in self.observer.snapshot(NOW).rows if row.session == session]
        return f"{found[0].state}({found[0].reason})" if found else "nothing"


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path)


# -- records -------------------------------------------------------------------------------------------------


def stamp(at: float) -> str:
    return datetime.fromtimestamp(NOW + at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def line(kind: str, at: float, session: str, **more) -> dict:
    return {"type": kind, "timestamp": stamp(at), "uuid": f"u{at}", "sessionId": session, "cwd": "/home/dev/app",
            "entrypoint": "cli", "version": "2.1.332"} | more


def prompt(at: float, session: str = "s1", **more) -> dict:
    return line("user", at, session, promptId=f"p{at}", message={"role": "user", "content": "prompt"}, **more)


def said(at: float, session: str = "s1", *content: dict, stop: str = "end_turn") -> dict:
    content = content or ({"type": "text", "text": "answer"},)
    message = {"role": "assistant", "model": "claude-opus-5-5", "stop_reason": stop, "content": list(content)}
    return line("assistant", at, session, message=message)


def called(at: float, session: str = "s1", tool: str = "Read", ident: str = "t1") -> dict:
    return said(at, session, {"type": "tool_use", "id": ident, "name": tool, "input": {}}, stop="tool_use")


def ended(at: float, session: str = "s1") -> dict:
    return line("system", at, session, subtype="turn_duration", durationMs=3000)


def live(at: float, session: str, status: str, pid: object = 100, **more) -> dict:
    changed = int((NOW + at) * 1000)
    return {"pid": pid, "sessionId": session, "cwd": "/home/dev/app", "startedAt": int((NOW - 600) * 1000),
            "version": "2.1.332", "kind": "interactive", "entrypoint": "cli", "status": status,
            "updatedAt": changed, "statusUpdatedAt": changed} | more


def rollout(kind: str, at: float, **payload) -> dict:
    return {"timestamp": stamp(at), "type": kind, "payload": payload}


def thread(ident: str = THREAD, cwd: str = "/home/dev/app") -> dict:
    return rollout("session_meta", -60, id=ident, cwd=cwd, originator="codex-tui", source="cli", cli_version="0.140.0")


HISTORY = "claude/projects/-home-dev-app/s1.jsonl"
LIVE = "claude/sessions/100.json"
ROLLOUT = f"codex/sessions/2026/11/30/rollout-2026-11-30T10-00-00-{THREAD}.jsonl"
INDEX = "codex/session_index.jsonl"


# -- the live record -----------------------------------------------------------------------------------------


def test_a_live_record_that_turns_to_another_session_leaves_the_first(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30))
    home.write(LIVE, live(-30, "s1", "busy"))
    home.hint(HISTORY, LIVE)
    assert home.said("s1") == "working(model)"
    home.write(LIVE, live(-1, "s2", "idle"))
    home.hint(LIVE)
    assert home.said("s1") == "idle(ended)"
    assert home.said("s2") == "idle(new)"


def test_a_live_record_that_turns_back_takes_the_first_up_again(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30))
    for at, session in ((-30, "s1"), (-20, "s2"), (-10, "s1")):
        home.write(LIVE, live(at, session, "busy"))
        home.hint(HISTORY, LIVE, at=NOW + at)
    assert home.said("s1") == "working(model)"
    assert home.said("s2") in ("nothing", "idle(ended)")


@pytest.mark.parametrize(("lines", "state"), [
    ([prompt(-60), called(-50)], "idle(crashed)"),
    ([prompt(-60), said(-50), ended(-50)], "idle(ended)"),
    ([], "nothing"),
])
def test_a_live_record_whose_process_is_dead_at_launch_is_no_life(home, lines, state):
    home.write(LIVE, live(-60, "s1", "busy"), at=NOW - 60)
    home.append(HISTORY, *lines, at=NOW - 50)
    home.start()
    home.observer.sweep(NOW)
    assert home.said("s1") == state
    assert home.observer.snapshot(NOW).icon == "idle"


def test_a_live_record_without_ticks_whose_pid_is_anothers_is_no_life(home):
    class Other(Table):
        def same(self, pid: int, guard: str, started: float) -> bool:
            return False

    home.start()
    home.observer._bindings._table = Other(Process(100, 1, "vi", ("vi",), created=NOW), complete=True)
    home.append(HISTORY, prompt(-60), called(-50))
    home.write(LIVE, live(-60, "s1", "busy"))
    home.observer.sweep(NOW)
    assert home.said("s1") == "idle(crashed)"


def test_a_live_record_that_goes_ends_its_session_in_order(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30))
    home.write(LIVE, live(-30, "s1", "busy"))
    home.observer.sweep(NOW)
    home.path(LIVE).unlink()
    home.hint(LIVE)
    assert home.said("s1") == "idle(ended)"


def test_a_live_record_that_is_cut_says_nothing_until_it_is_whole(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30))
    home.write(LIVE, live(-30, "s1", "busy"))
    home.observer.sweep(NOW)
    whole = json.dumps(live(-1, "s1", "waiting", waitingFor="permission prompt"))
    for text, state in (("", "working(model)"), (whole[:90], "working(model)"), (whole, "your-turn(permission)")):
        home.write(LIVE, text)
        home.hint(LIVE)
        assert home.said("s1") == state


@pytest.mark.parametrize("pid", [-5, True])
def test_a_live_record_with_a_pid_that_is_none_stops_nobody(home, pid):
    home.observer._bindings._table = SystemTable(matters)
    home.append(HISTORY, prompt(-30), said(-20), ended(-20))
    home.write("claude/sessions/1.json", live(-30, "s0", "busy", pid=pid))
    home.observer.sweep(NOW)
    assert home.said("s1") == "your-turn(finished)"
    assert home.said("s0") in ("nothing", "idle(ended)")


def test_a_live_record_of_a_container_is_not_judged_by_our_processes(home):
    home.observer._bindings._table = SystemTable(matters)
    home.append(HISTORY, prompt(-30))
    home.write(LIVE, live(-30, "s1", "busy", pid=2**22 + 1, procStart="1", pidDomain="linux:m:pid:[1]"))
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(model)"


def test_what_runs_in_a_container_cannot_be_seen_so_no_dialog_is_inferred_there(home):
    home.observer._bindings._table = SystemTable(matters)
    home.append(HISTORY, prompt(-30), called(-20, tool="Bash"))
    home.write(LIVE, live(-30, "s1", "", pid=2**22 + 1, procStart="1", pidDomain="linux:m:pid:[1]"))
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(tool)"


# -- what cannot be read -------------------------------------------------------------------------------------


def test_unknown_records_and_unreadable_lines_are_counted_and_stop_nobody(home):
    home.append(HISTORY, prompt(-30), {"type": "wonder", "sessionId": "s1"}, "{not json", "[]", '"text"',
                {"type": "user", "sessionId": "s1"}, "\x00\x00", line("system", -20, "s1", subtype="wonder"),
                {"type": "wonder", "sessionId": "s1"}, called(-20))
    home.append(ROLLOUT, thread(), rollout("event_msg", -6, type="task_started", turn_id="t1"),
                rollout("event_msg", -5, type="wonder"), rollout("wonder", -5))
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(tool)"
    assert home.said(THREAD) == "working(model)"
    tally = home.observer.tally
    assert tally.unknown == {("claude", "wonder"): 2, ("claude", "system wonder"): 1,
                             ("codex", "event_msg wonder"): 1, ("codex", "wonder"): 1}
    assert tally.unread == {("claude", "projects/*/*.jsonl"): 5}
    assert tally.broken == {}


def test_what_is_not_understood_is_counted_once_however_often_the_file_is_looked_at(home):
    home.append(HISTORY, prompt(-30), "{not json", {"type": "wonder", "sessionId": "s1"})
    for _ in range(3):
        home.observer.sweep(NOW)
    assert sum(home.observer.tally.unread.values()) == 1
    assert sum(home.observer.tally.unknown.values()) == 1


def test_a_line_that_is_still_being_written_is_waited_for(home):
    home.append(HISTORY, prompt(-30))
    whole = json.dumps(called(-20))
    with home.path(HISTORY).open("a") as file:
        file.write(whole[:100])
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(model)"
    with home.path(HISTORY).open("a") as file:
        file.write(whole[100:] + "\n")
    home.hint(HISTORY)
    assert home.said("s1") == "working(tool)"
    assert not home.observer.tally.unread


def fails(record: Record) -> Iterator[Event]:
    """Read what makes this reader fail, and else as Claude Code's does."""
    if b"wonder" in record.data:
        raise KeyError("wonder")
    return CLAUDE.sources[-1].read(record)


ODD = replace(CLAUDE, name="odd", label="Odd", sources=(Source("projects/*/*.jsonl", Shape.LINES, fails),))


def test_a_reader_that_fails_is_named_and_contained(tmp_path):
    home = Home(tmp_path, {"odd": ODD, **AGENTS})
    home.append("odd/projects/p/s0.jsonl", prompt(-30, "s0"), {"type": "wonder"}, said(-20, "s0"), ended(-20, "s0"))
    home.append(HISTORY, prompt(-30), said(-20), ended(-20))
    home.observer.sweep(NOW)
    assert home.said("s0") == "your-turn(finished)"
    assert home.said("s1") == "your-turn(finished)"
    assert home.observer.snapshot(NOW).trouble == ("odd reader: KeyError: 'wonder'",)


def test_a_reader_that_fails_in_mid_record_keeps_nothing_of_it(tmp_path):
    def half(record: Record) -> Iterator[Event]:
        yield Event(Kind.PROMPT, "s0", NOW - 30, word="user", turn="t")
        raise TypeError(record.offset)

    odd = replace(ODD, sources=(Source("projects/*/*.jsonl", Shape.LINES, half),))
    home = Home(tmp_path, {"odd": odd})
    home.append("odd/projects/p/s0.jsonl", prompt(-30, "s0"))
    home.observer.sweep(NOW)
    assert home.said("s0") == "nothing"


@pytest.mark.parametrize("part", ["main", "owns", "window", "tool", "role", "resumes"])
def test_a_predicate_that_fails_is_contained(tmp_path, part):
    def broken(*_: object) -> bool:
        raise KeyError(part)

    sources = (*CLAUDE.sources, Source("windows/*", Shape.PRESENCE, read_window))
    odd = replace(CLAUDE, name="odd", sources=sources, **{part: broken})
    home = Home(tmp_path, {"odd": odd, **AGENTS})
    home.append(HISTORY, prompt(-30))
    home.append("odd/projects/p/s0.jsonl", prompt(-30, "s0"))
    home.write("odd/windows/s0", "")
    home.start(claude(), replace(claude(101), cmdline=("claude", "-p")), Process(102, 100, "bash", created=NOW - 20))
    home.observer.processes_changed(Change(started=tuple(home.table.all())), NOW)
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(model)"
    assert home.observer.snapshot(NOW).trouble


def read_window(record: Record) -> Iterator[Event]:
    yield Event(Kind.ATTACHED, "s0", record.mtime, source="window")


@pytest.mark.posix("these words for a folder")
def test_a_file_that_cannot_be_read_is_named_until_it_can(home):
    home.append(HISTORY, prompt(-30), said(-20), ended(-20))
    folder = home.path("claude/projects/-home-dev-app/s2.jsonl")
    folder.mkdir()
    home.hint(HISTORY, "claude/projects/-home-dev-app/s2.jsonl")
    assert home.said("s1") == "your-turn(finished)"
    assert home.observer.snapshot(NOW, ("the watch ails",)).trouble == ("the watch ails", "s2.jsonl: is a directory")
    folder.rmdir()
    home.append("claude/projects/-home-dev-app/s2.jsonl", prompt(-5, "s2"))
    home.hint("claude/projects/-home-dev-app/s2.jsonl")
    assert home.observer.snapshot(NOW).trouble == ()
    assert home.said("s2") == "working(model)"


def test_a_session_with_a_file_that_has_become_too_large_says_so_until_it_is_read_again(home):
    home.start(claude(), claude(101))
    home.write(LIVE, live(-5, "s1", "busy"))
    home.write("claude/sessions/101.json", live(-5, "s2", "busy", pid=101))
    home.hint(LIVE, "claude/sessions/101.json")
    small = home.path(LIVE).read_text()
    home.write(LIVE, small + " " * files.DOCUMENT)
    home.hint(LIVE)
    blind = {row.session: row.blind for row in home.observer.snapshot(NOW).rows}
    assert blind == {"s1": ("what it wrote last: its file is too large",), "s2": ()}
    home.write(LIVE, small + " ")
    home.hint(LIVE)
    assert {row.blind for row in home.observer.snapshot(NOW).rows} == {()}


def test_what_is_invisible_of_older_versions_is_not_said_of_newer_ones(home):
    versions = {"s1": "2.1.119", "s2": "2.1.235", "s3": None}
    home.start(*(claude(100 + number) for number, _ in enumerate(versions)))
    for number, (session, version) in enumerate(versions.items()):
        path = f"claude/sessions/{100 + number}.json"
        home.write(path, live(-5, session, "busy", pid=100 + number, version=version))
        home.hint(path)
    blind = {row.session: row.blind for row in home.observer.snapshot(NOW).rows}
    assert blind == {"s1": CLAUDE.blind_in(), "s2": (), "s3": CLAUDE.blind_in()}


def test_a_file_that_could_not_be_read_and_has_gone_is_no_trouble(home):
    name = "claude/projects/-home-dev-app/s2.jsonl"
    home.path(name).mkdir()
    home.hint(name)
    assert home.observer.snapshot(NOW).trouble
    home.path(name).rmdir()
    home.hint(name)
    assert home.observer.snapshot(NOW).trouble == ()


def test_a_record_from_the_future_is_from_now(home):
    home.append(HISTORY, prompt(3 * HOUR))
    home.observer.sweep(NOW)
    row = next(r for r in home.observer.snapshot(NOW).rows if r.session == "s1")
    assert row.verdict.since == NOW


# -- which files, and how much of them -----------------------------------------------------------------------


@pytest.fixture
def opened(monkeypatch):
    """The paths of all files opened, in order."""
    paths, real = [], files._reading
    monkeypatch.setattr(files, "_reading", lambda path: paths.append(path) or real(path))
    return paths


@pytest.fixture
def pieces(monkeypatch):
    """The size of each read."""
    sizes, real = [], files._read

    def read(file, start, size):
        data = real(file, start, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(files, "_read", read)
    return sizes


@pytest.fixture
def taken(home, monkeypatch):
    """The records taken from Claude Code's transcripts."""
    records = []
    followed = home.observer._sources
    for i, (agent, source, matches) in enumerate(followed):
        def read(record, real=source.read):
            records.append(record)
            return real(record)

        if source is CLAUDE.sources[-1]:
            followed[i] = (agent, replace(source, read=read), matches)
    return records


@pytest.mark.posix("a stat that opens nothing")
def test_only_files_newer_than_the_horizon_are_opened(home, opened):
    old, new = NOW - HORIZON - 60, NOW - HORIZON + 60
    for n in range(300):
        home.append(f"claude/projects/p{n % 10}/old{n}.jsonl", prompt(-HORIZON - 60, f"old{n}"), at=old)
        home.append(f"codex/sessions/2026/11/29/rollout-{n}-{THREAD[:-3]}{n:03}.jsonl", thread(), at=old)
    news = {home.append(f"claude/projects/p{n}/new.jsonl", prompt(-60, f"new{n}"), at=new) for n in range(5)}
    home.observer.sweep(NOW)
    assert set(opened) == news
    assert len(home.observer.sessions.held) == 5


def test_a_file_that_has_not_changed_is_only_looked_at(home, opened, pieces):
    home.append(HISTORY, *(prompt(-60 + n) for n in range(50)))
    home.observer.sweep(NOW)
    pieces.clear()
    home.observer.sweep(NOW)
    assert sum(pieces) <= 2 * files.MARK
    assert opened.count(str(home.path(HISTORY))) <= 4


def test_an_old_file_that_is_touched_costs_one_record(home, taken):
    lines = [x for n in range(100) for x in (prompt(-2 * HORIZON + n), said(-2 * HORIZON + n + 0.5))]
    home.append(HISTORY, *lines)
    home.observer.sweep(NOW)
    assert len(taken) == 1
    assert home.observer.snapshot(NOW).icon == "idle"


def test_reading_backwards_ends_where_the_turn_began(home, taken, pieces):
    """50 MB of earlier turns cost nothing: records and bytes taken are those of the last turn."""
    home.append(HISTORY, *bulk(50 * MB), prompt(-30), called(-20), said(-10), ended(-10))
    home.observer.sweep(NOW)
    assert home.said("s1") == "your-turn(finished)"
    assert len(taken) == 4
    assert sum(pieces) <= 3 * files.BLOCK


def test_reading_goes_on_behind_a_huge_line(home, taken, pieces):
    home.append(HISTORY, *bulk(5 * MB), prompt(-30), said(-20, "s1", {"type": "text", "text": "x" * 3 * MB}))
    home.observer.sweep(NOW)
    assert [r.offset for r in taken] == sorted((r.offset for r in taken), reverse=True)
    assert len(taken) == 2
    assert sum(pieces) <= 3 * MB + 3 * files.BLOCK


def test_after_first_sight_only_what_is_appended_is_read(home, taken, pieces):
    home.append(HISTORY, *bulk(5 * MB), prompt(-30))
    home.observer.sweep(NOW)
    taken.clear()
    pieces.clear()
    for n in range(10):
        home.append(HISTORY, called(-20 + n, ident=f"t{n}"))
        home.hint(HISTORY)
    assert len(taken) == 10
    assert sum(pieces) <= 10 * (2 * files.MARK + 1000)


def steps(number: int, first: int = 0) -> list[dict]:
    """Return so many calls, each with its result."""
    def result(n: int) -> dict:
        content = [{"type": "tool_result", "tool_use_id": f"t{n}", "content": "done"}]
        return line("user", -20 + n / 1000, "s1", message={"role": "user", "content": content})

    return [x for n in range(first, first + number) for x in (called(-20 + n / 1000, ident=f"t{n}"), result(n))]


def work(do: Callable[[], object]) -> int:
    """Return how much there is to do, in steps of the interpreter: a measure that no other load disturbs."""
    steps = [0]

    def count(frame: FrameType, event: str, _about: object) -> object:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps[0] += event == "opcode"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        do()
    finally:
        sys.settrace(before)
    return steps[0]


def turn_of(home: Home, number: int) -> None:
    """Have a turn with so many calls in it, seen for the first time."""
    home.start(complete=False)
    home.path(HISTORY).unlink(missing_ok=True)
    home.append(HISTORY, prompt(-30), *steps(number))


def test_at_first_sight_a_turn_costs_what_its_lines_do(home):
    costs = []
    for number in (10, 80):
        turn_of(home, number)
        costs.append(work(lambda: home.hint(HISTORY)))
    assert costs[1] < 1.2 * 8 * costs[0]


def bulk(size: int) -> Iterator[str]:
    """Return the lines of earlier turns, so many bytes of them."""
    turn = [prompt(-HOUR), said(-HOUR, "s1", {"type": "text", "text": "x" * MB}), ended(-HOUR)]
    text = "\n".join(json.dumps(x) for x in turn)
    return iter([text] * (size // MB))


def test_a_thread_that_never_says_a_turn_key_is_read_to_its_last_prompt(home):
    """Very old rollouts: no turn keys at all."""
    said_so = [rollout("event_msg", -50 + n, type="user_message", message="prompt") for n in range(20)]
    home.append(ROLLOUT, thread(), *said_so, rollout("event_msg", -5, type="agent_message", message="answer"))
    home.observer.sweep(NOW)
    assert home.said(THREAD).startswith("working")


def test_a_fork_that_begins_with_a_copy_is_read_no_further_than_its_last_turn(home, pieces):
    """A fork nobody has prompted yet holds copied turns alone: the last of them tells its model, and nothing else."""
    copied = "01a00000-0000-7000-8000-000000000001"
    turn = (rollout("event_msg", -60, type="task_started", turn_id=copied), rollout("turn_context", -60, model="m"),
            rollout("event_msg", -60, type="task_complete", turn_id=copied, last_agent_message="x" * 1000))
    name = f"codex/sessions/2026/11/30/rollout-1-{FORK}.jsonl"
    home.append(name, thread(FORK), *(turn * 5000))
    home.observer.sweep(NOW)
    (row,) = home.observer.sessions.rows()
    assert (row.verdict.reason, row.model, row.project) == ("new", "m", "app")
    assert sum(pieces) <= 4 * files.BLOCK


def test_the_first_line_is_read_too_where_it_tells_what_the_others_do_not(home):
    turn = [rollout("event_msg", -50, type="task_started", turn_id="t0"),
            *(rollout("response_item", -40, type="reasoning", summary="x" * 1000) for _ in range(300)),
            rollout("event_msg", -30, type="task_complete", turn_id="t0", last_agent_message="done"),
            rollout("event_msg", -20, type="task_started", turn_id="t1")]
    meta = rollout("session_meta", -60, id=THREAD, cwd="/home/dev/app", originator="codex_exec", source="exec")
    home.append(ROLLOUT, meta, *turn)
    home.observer.sweep(NOW)
    row = next(r for r in home.observer.snapshot(NOW).rows if r.session == THREAD)
    assert (row.role, row.project) == (Role.MACHINE, "app")


# -- files that go, move and come ----------------------------------------------------------------------------


def test_the_row_of_a_history_that_is_moved_away_goes(home):
    home.append(ROLLOUT, thread(), rollout("event_msg", -4, type="task_started", turn_id="t1"))
    home.append(HISTORY, prompt(-30))
    home.observer.sweep(NOW)
    assert home.said(THREAD) == "working(model)"
    archive = home.path(f"codex/archived_sessions/{home.path(ROLLOUT).name}")
    home.path(ROLLOUT).rename(archive)
    home.hint(ROLLOUT, str(archive.relative_to(home.root)))
    assert home.said(THREAD) == "nothing"
    assert home.said("s1") == "working(model)"
    archive.rename(home.path(ROLLOUT))
    home.hint(ROLLOUT)
    assert home.said(THREAD) == "working(model)"


def test_a_history_replaced_by_a_shorter_one_says_what_it_says_now(home):
    home.append(HISTORY, prompt(-60), said(-50), ended(-50), prompt(-30), called(-20))
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(tool)"
    fresh = home.path(HISTORY + ".new")
    fresh.write_text("".join(json.dumps(x) + "\n" for x in (prompt(-60), said(-50), ended(-50))))
    fresh.replace(home.path(HISTORY))
    home.hint(HISTORY)
    assert home.said("s1") == "your-turn(finished)"


def test_what_a_newer_layout_has_replaced_is_neither_swept_nor_followed(tmp_path):
    history = next(s for s in CLAUDE.sources if s.pattern.endswith(".jsonl"))
    home = Home(tmp_path, {"claude": replace(CLAUDE, sources=(replace(history, until="new.db"),))})
    assert len(home.observer.patterns) == 1
    home.write("claude/new.db", "")
    assert home.observer.patterns == ()
    home.append(HISTORY, prompt(-60))
    home.hint(HISTORY)
    assert home.said("s1") == "nothing"
    home.path("claude/new.db").unlink()
    home.hint(HISTORY)
    assert home.said("s1") == "working(model)"


SECOND = "claude/projects/-home-dev-app/other-name.jsonl"


def test_a_second_history_of_a_session_goes_on_with_it(home):
    """Claude Code 1.0 resumes into a file of another name, whose lines carry the first's id."""
    home.append(HISTORY, prompt(-60), said(-50), ended(-50))
    home.observer.sweep(NOW)
    home.append(SECOND, prompt(-10))
    home.hint(SECOND)
    assert home.said("s1") == "working(model)"
    assert len(home.observer.snapshot(NOW).rows) == 1


def test_when_one_history_is_rewritten_the_other_still_counts(home):
    home.append(HISTORY, prompt(-60), said(-50), ended(-50))
    home.append(SECOND, prompt(-10), called(-5))
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(tool)"
    home.path(HISTORY).write_text("".join(json.dumps(x) + "\n" for x in (prompt(-60), said(-50), ended(-50))) + "\n")
    home.hint(HISTORY)
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(tool)"


def test_when_one_history_goes_the_other_still_counts(home):
    home.append(HISTORY, prompt(-60), said(-50), ended(-50))
    home.append(SECOND, prompt(-10), called(-5))
    home.observer.sweep(NOW)
    home.path(HISTORY).unlink()
    home.hint(HISTORY)
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(tool)"


@pytest.mark.parametrize("how", ["rewritten", "removed"])
def test_the_index_of_titles_is_no_history(home, how):
    home.append(ROLLOUT, thread(), rollout("event_msg", -4, type="task_started", turn_id="t1"))
    home.append(INDEX, {"id": THREAD, "thread_name": "a title", "updated_at": stamp(-3)})
    home.observer.sweep(NOW)
    assert home.said(THREAD) == "working(model)"
    home.path(INDEX).unlink()
    if how == "rewritten":
        home.append(INDEX, {"id": THREAD, "thread_name": "another title", "updated_at": stamp(-3)})
    home.hint(INDEX)
    home.observer.sweep(NOW)
    assert home.said(THREAD) == "working(model)"


# -- the clock -----------------------------------------------------------------------------------------------


def test_after_the_clock_was_set_back_everything_is_read_anew(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30), said(-20), ended(-20))
    home.write(LIVE, live(-20, "s1", "idle"))
    home.observer.sweep(NOW)
    assert home.said("s1") == "your-turn(finished)"
    back = NOW - HOUR
    home.observer.refold(back)
    row = next(r for r in home.observer.snapshot(back).rows if r.session == "s1")
    assert row.verdict.state == "your-turn"
    assert row.verdict.since <= back
    home.append(HISTORY, prompt(-HOUR + 5), at=back + 5)
    home.hint(HISTORY, at=back + 5)
    assert home.said("s1") == "working(model)"


def test_a_headless_run_that_writes_nothing_outlives_the_reading_anew(home):
    run = Process(200, 1, "claude", ("claude", "-p", "prompt"), "/home/dev/app", NOW - 5)
    home.start(run)
    home.observer.processes_changed(Change(started=(run,)), NOW)
    home.observer.refold(NOW)
    assert home.said("run:200") == "working(model)"


def test_a_suspended_process_is_still_suspended_after_the_reading_anew(home):
    home.start(replace(claude(), stopped=True))
    home.append(HISTORY, prompt(-30))
    home.write(LIVE, live(-30, "s1", "busy"))
    home.observer.sweep(NOW)
    home.observer.stopped(home.table.all(), NOW)
    assert home.said("s1") == "stalled(silent)"
    home.observer.refold(NOW)
    assert home.said("s1") == "stalled(silent)"


def test_a_stall_after_the_clock_was_set_back_is_no_old_news(home):
    home.append(HISTORY, prompt(-30))
    home.start(at=NOW - 40, complete=False)
    home.observer.sweep(NOW)
    home.observer.refold(NOW - HOUR)
    home.observer.tick(home.observer.sessions.due)
    assert home.said("s1") == "stalled(silent)"


def test_reading_anew_adds_nothing(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30), called(-20))
    home.append(ROLLOUT, thread(), rollout("event_msg", -4, type="task_started", turn_id="t1"))
    home.write(LIVE, live(-20, "s1", "busy"))
    home.observer.sweep(NOW)
    before = home.observer.snapshot(NOW).rows
    home.observer.refold(NOW)
    assert home.observer.snapshot(NOW).rows == before


# -- hot and wanted ------------------------------------------------------------------------------------------


def test_hot_are_the_files_of_sessions_that_are_not_idle(home):
    done = home.append("claude/projects/p/s2.jsonl", prompt(-11 * HOUR, "s2"), ended(-11 * HOUR, "s2"), at=NOW - 60)
    works = home.append(HISTORY, prompt(-30))
    home.observer.sweep(NOW)
    home.append("claude/projects/p/s3.jsonl", prompt(2 * WARM, "s3"), at=NOW + 2 * WARM)
    home.hint("claude/projects/p/s3.jsonl", at=NOW + 2 * WARM)
    assert works in home.observer.hot()
    assert done not in home.observer.hot()


def test_hot_are_the_files_that_have_just_changed(home):
    done = home.append(HISTORY, prompt(-11 * HOUR), ended(-11 * HOUR))
    home.observer.sweep(NOW)
    assert home.said("s1").startswith("idle")
    assert done in home.observer.hot()


def test_both_files_of_a_session_that_works_are_hot(home):
    home.start(claude())
    paths = {home.append(HISTORY, prompt(-30)), home.write(LIVE, live(-30, "s1", "busy"))}
    home.observer.sweep(NOW)
    assert paths <= home.observer.hot()


def test_wanted_are_the_files_of_the_agents_and_nothing_else(home):
    wants = home.observer.wants
    for name in (HISTORY, LIVE, ROLLOUT, INDEX, "claude/sessions/100.abc.key"):
        assert wants(str(home.root / name))
    for name in ("claude/projects/p/s1/subagents/agent-1.jsonl", "claude/projects/p/s1.json", "claude/history.jsonl",
                 "claude/sessions", "codex/sessions/2026/11/30/notes.jsonl", "codex/archived_sessions/rollout-1.jsonl"):
        assert not wants(str(home.root / name))


@pytest.mark.posix("such names")
def test_a_home_with_signs_of_a_pattern_in_its_name_is_itself(tmp_path):
    home = Home(tmp_path / "[a]*?")
    home.append(HISTORY, prompt(-30))
    other = Home(tmp_path / "ax")
    other.append(HISTORY, prompt(-30, "s9"))
    home.observer.sweep(NOW)
    assert [row.session for row in home.observer.snapshot(NOW).rows] == ["s1"]


def test_a_hint_at_what_nobody_wants_costs_nothing(home, opened):
    home.append("claude/projects/p/notes.txt", "{}")
    home.observer.changed([str(home.root / "claude/projects/p/notes.txt"), "/nowhere"], NOW)
    assert opened == []


def test_what_is_long_over_is_forgotten_and_taken_up_again_when_it_goes_on(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30), said(-20), ended(-20))
    home.write(LIVE, live(-20, "s1", "idle"))
    over = home.append("claude/projects/p/s2.jsonl", prompt(-30, "s2", cwd="/x"), said(-20, "s2"), ended(-20, "s2"))
    home.observer.sweep(NOW)
    assert {"s1", "s2"} <= {ident for _, ident in home.observer.sessions.held}
    later = NOW + 2 * HORIZON
    home.observer.tick(later)
    assert {ident for _, ident in home.observer.sessions.held} == {"s1"}
    assert over not in home.observer._files
    home.append("claude/projects/p/s2.jsonl", prompt(2 * HORIZON, "s2", cwd="/x"), at=later)
    home.hint("claude/projects/p/s2.jsonl", at=later)
    assert home.said("s2") == "working(model)"


# -- the baseline --------------------------------------------------------------------------------------------


def test_a_history_that_no_process_can_have_written_has_ended(home):
    home.append(HISTORY, prompt(-60), said(-50), ended(-50), at=NOW - 50)
    home.start(replace(claude(), cwd="/home/dev/other"), Process(7, 1, "vi", ("vi",)))
    home.observer.processes_changed(Change(started=tuple(home.table.all())), NOW)
    home.observer.sweep(NOW)
    assert home.said("s1") == "idle(ended)"


def test_a_history_whose_process_may_run_is_taken_as_it_stands(home):
    home.append(HISTORY, prompt(-60), said(-50), ended(-50), at=NOW - 50)
    home.start(claude())
    home.observer.sweep(NOW)
    assert home.said("s1") == "your-turn(finished)"


def test_a_history_from_just_now_may_have_a_process_that_is_not_seen_yet(home):
    home.append(HISTORY, prompt(-5), said(-2), ended(-2))
    home.start()
    home.observer.sweep(NOW)
    assert home.said("s1") == "your-turn(finished)"


def test_while_processes_cannot_be_seen_a_history_is_taken_as_it_stands(home):
    home.append(HISTORY, prompt(-60), said(-50), ended(-50), at=NOW - 50)
    home.start(complete=False)
    home.observer.sweep(NOW)
    assert home.said("s1") == "your-turn(finished)"


def test_a_session_that_had_ended_at_launch_and_goes_on_works(home):
    home.append(HISTORY, prompt(-60), said(-50), ended(-50), at=NOW - 50)
    home.start()
    home.observer.sweep(NOW)
    assert home.said("s1") == "idle(ended)"
    home.append(HISTORY, prompt(20), at=NOW + 20)
    home.hint(HISTORY, at=NOW + 20)
    assert home.said("s1") == "working(model)"


# -- processes -----------------------------------------------------------------------------------------------


def test_the_end_of_its_process_ends_a_session(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30), called(-20))
    home.observer.sweep(NOW)
    home.observer.processes_changed(Change(exited=(home.table.running.pop(100),)), NOW + 1)
    assert home.said("s1") == "idle(crashed)"


def test_a_launcher_runs_nothing_itself_so_a_new_session_is_of_the_program_that_it_launched(home):
    launcher, program = claude(100), replace(claude(101), ppid=100)
    observer = home.start(launcher, program)
    for session, at in ("s1", NOW - 20), ("s2", NOW - 5):
        for event in (Event(Kind.FACT, session, at, "cwd", "/home/dev/app"),
                      Event(Kind.PROMPT, session, at, word="user", turn=session),
                      Event(Kind.END, session, at + 2, word="finished", turn=session)):
            observer.sessions.join(CLAUDE, event)
        observer.tick(NOW)
    states = {row.session: row.verdict.state.value for row in observer.sessions.rows()}
    assert states == {"s1": "idle", "s2": "your-turn"}


@pytest.mark.parametrize(("began", "owner"), [(NOW - 595, "101"), (NOW - 2, "100")])
def test_what_an_agent_starts_in_a_turn_and_looks_like_it_does_not_run_its_session(home, began, owner):
    """Soon after the start it is the program that a launcher waits for; later a copy that is still to become a tool."""
    observer = home.start(claude(100), replace(claude(101), ppid=100, created=began))
    for event in (Event(Kind.FACT, "s1", NOW - 1, "cwd", "/home/dev/app"),
                  Event(Kind.PROMPT, "s1", NOW - 1, word="user", turn="t1")):
        observer.sessions.join(CLAUDE, event)
    observer.tick(NOW)
    [(_, session)] = observer.sessions.all()
    assert [e.key for e in session.every(Kind.OWNER)] == [owner]


def test_a_run_that_was_headless_when_it_began_stays_so_though_it_wipes_its_arguments(home):
    run = replace(claude(), cmdline=("claude", "-p", "do it"), created=NOW - 5)
    observer = home.start(run)
    observer.processes_changed(Change(started=(run,)), NOW - 4)
    home.table.running[100] = wiped = replace(run, cmdline=("claude",))
    observer.processes_changed(Change(started=(wiped,)), NOW - 3)
    observer.sessions.join(CLAUDE, Event(Kind.PROMPT, "s1", NOW - 2, word="user", turn="t1"))
    observer.tick(NOW)
    assert {(row.session, row.role) for row in observer.sessions.rows()} == {("s1", Role.MACHINE)}


def test_a_process_suspended_in_mid_turn_stalls_its_session(home):
    home.start(claude())
    home.append(HISTORY, prompt(-30))
    home.write(LIVE, live(-30, "s1", "busy"))
    home.observer.sweep(NOW)
    for at, stopped, state in ((1, True, "stalled(silent)"), (2, False, "working(model)")):
        home.observer.stopped((replace(claude(), stopped=stopped),), NOW + at)
        assert home.said("s1") == state


def test_a_process_that_was_suspended_before_launch_stalls_its_session(home):
    suspended = replace(claude(), stopped=True)
    home.append(HISTORY, prompt(-30))
    home.write(LIVE, live(-30, "s1", "busy"))
    home.start(suspended)
    home.observer.processes_changed(Change(started=(suspended,)), NOW)
    home.observer.sweep(NOW)
    assert home.said("s1") == "stalled(silent)"


def test_a_headless_run_is_seen_before_and_without_its_records(home):
    run = Process(200, 1, "claude", ("claude", "-p", "prompt"), "/home/dev/app", NOW - 5)
    home.start(run)
    home.observer.processes_changed(Change(started=(run,)), NOW)
    row = next(iter(home.observer.snapshot(NOW).rows))
    assert (row.role, row.verdict.state) == (Role.MACHINE, "working")
    home.append(HISTORY, prompt(-4))
    home.hint(HISTORY)
    assert [row.session for row in home.observer.snapshot(NOW).rows] == ["s1"]


GEMINI = "gemini/tmp/app/chats/session-2026-11-30T09-00-5f2c8a10.json"


def gemini(pid: int = 110, ppid: int = 1, created: float = NOW - 600, *arguments: str) -> Process:
    cmdline = ("node", "--max-old-space-size=1", "/usr/bin/gemini", *arguments)
    return Process(pid, ppid, "node", cmdline, "/home/dev/app", created)


def shell(pid: int, ppid: int = 110, created: float = NOW - 5) -> Process:
    return Process(pid, ppid, "bash", ("bash", "-c", "_bgpids_file=x"), "/home/dev/app", created)


def message(kind: str, at: float, **more) -> dict:
    return {"id": f"m{at}", "timestamp": stamp(at), "type": kind, "content": "text", "model": "gemini"} | more


def head(at: float = -30) -> dict:
    return {"sessionId": "s1", "projectHash": "", "startTime": stamp(at), "lastUpdated": stamp(at)}


def document(*messages: dict) -> dict:
    return {**head(-900), "messages": list(messages)}


@pytest.mark.parametrize(("running", "state"), [((), "idle(ended)"), ((gemini(),), "your-turn(finished)")])
def test_a_whole_document_at_launch_may_be_nobodys(home, running, state):
    home.write(GEMINI, document(message("user", -300), message("gemini", -290)))
    home.start(*running)
    home.observer.sweep(NOW)
    assert home.said("s1") == state


def test_each_line_of_a_file_bears_its_head(home):
    home.append(GEMINI + "l", head(), *(message("info", -20) for _ in range(3)), message("user", -10))
    home.observer.sweep(NOW)
    home.append(GEMINI + "l", message("info", -5) | {"content": "Request cancelled."})
    home.hint(GEMINI + "l")
    assert home.said("s1") == "your-turn(interrupted)"


def test_the_head_of_a_file_that_is_written_anew_is_read_anew(home):
    home.append(GEMINI + "l", head(), message("user", -10))
    home.observer.sweep(NOW)
    home.path(GEMINI + "l").unlink()
    home.append(GEMINI + "l", head() | {"sessionId": "s2"}, message("user", -9))
    home.hint(GEMINI + "l")
    assert (home.said("s1"), home.said("s2")) == ("nothing", "working(model)")


def test_a_command_that_was_left_to_run_is_no_tool_of_the_turn(home):
    moved = {"name": "x", "status": "success", "timestamp": stamp(-7),
             "resultDisplay": "Command moved to background (PID: 300)"}
    home.start(gemini(), shell(300), shell(301, 300))
    home.write(GEMINI, document(message("user", -9), message("gemini", -8, toolCalls=[moved]), message("gemini", -6)))
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(background)"
    home.table.running[400] = shell(400)
    home.observer.processes_changed(Change(started=(shell(400),)), NOW)
    assert home.said("s1") == "working(tool)"


@pytest.mark.parametrize(("began", "state"), [(-5, "working(tool)"), (-9, "your-turn(finished)")])
def test_a_command_that_runs_at_launch_counts_from_its_own_start(home, began, state):
    home.write(GEMINI, document(message("user", -20), message("gemini", -7)))
    home.start(gemini(), shell(300, created=NOW + began))
    home.observer.sweep(NOW)
    assert home.said("s1") == state


def test_a_session_that_is_found_to_be_a_processes_own_runs_in_its_folder(home):
    home.start(gemini())
    home.write(GEMINI, document(message("user", -9)))
    home.hint(GEMINI)
    assert [row.project for row in home.observer.snapshot(NOW).rows] == ["app"]


def test_a_session_that_is_loaded_again_is_the_new_processes_before_its_next_prompt(home):
    home.start(gemini(110))
    home.append(GEMINI + "l", head(), message("user", -20), message("gemini", -15))
    home.hint(GEMINI + "l")
    home.observer.processes_changed(Change(exited=(home.table.running.pop(110),)), NOW)
    assert home.said("s1") == "idle(ended)"
    home.table.running[210] = later = gemini(210, 1, NOW + 5)
    home.observer.processes_changed(Change(started=(later,)), NOW + 6)
    assert home.said("s1") == "idle(ended)"
    home.append(GEMINI + "l", {"$set": {"messages": [message("user", -20)], "lastUpdated": stamp(8)}})
    home.hint(GEMINI + "l", at=NOW + 9)
    assert home.said("s1") == "your-turn(finished)"


def test_a_headless_run_is_one_though_its_process_has_started_another(home):
    outer, inner = gemini(100, 1, NOW - 9, "-p", "x"), gemini(110, 100, NOW - 8, "-p", "x")
    home.start(outer, inner)
    home.observer.processes_changed(Change(started=(outer, inner)), NOW)
    assert [row.session for row in home.observer.snapshot(NOW).rows] == ["run:100"]
    home.write(GEMINI, document(message("user", -5)))
    home.hint(GEMINI)
    assert [(row.session, row.role) for row in home.observer.snapshot(NOW).rows] == [("s1", Role.MACHINE)]


# -- what lapses ---------------------------------------------------------------------------------------------


def test_what_lapses_is_decided_anew_at_the_moment_it_said(home):
    home.append(HISTORY, prompt(-30))
    home.start(at=NOW - 60, complete=False)
    home.observer.sweep(NOW)
    assert home.said("s1") == "working(model)"
    due = home.observer.sessions.due
    home.observer.tick(due - 0.001)
    assert home.said("s1") == "working(model)"
    home.observer.tick(due)
    assert home.said("s1") == "stalled(silent)"
    assert home.observer.sessions.due > due


def test_a_child_tells_its_parent(home):
    child = THREAD[:-1] + "7"
    meta = rollout("session_meta", -20, id=child, session_id=THREAD, parent_thread_id=THREAD, cwd="/home/dev/app",
                   source={"subagent": {"thread_spawn": {}}})
    home.append(ROLLOUT, thread(), rollout("event_msg", -30, type="task_started", turn_id="t1"),
                rollout("event_msg", -10, type="task_complete", turn_id="t1", last_agent_message="done"))
    home.append(ROLLOUT.replace(THREAD, child), meta, rollout("event_msg", -19, type="task_started", turn_id="c1"))
    home.observer.sweep(NOW)
    assert home.said(THREAD) == "working(background)"
    home.append(ROLLOUT.replace(THREAD, child),
                rollout("event_msg", -5, type="task_complete", turn_id="c1", last_agent_message="done"))
    home.hint(ROLLOUT.replace(THREAD, child))
    assert home.said(THREAD) == "your-turn(finished)"


def test_lines_are_json_as_agents_write_it():
    assert orjson.loads(json.dumps(prompt(-1)))["type"] == "user"
