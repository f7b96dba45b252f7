"""Replay a sequence in virtual time, through the code that ships, down to reads of real files. Shell.

The sequence's files are made in a temporary home, its processes in a table; what the observer and the notices
say is printed on the sequence's clock.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from island.agents import AGENTS
from island.hooks.command import call, put
from island.hooks.records import HOME
from island.hooks.rows import HOOKS
from island.model import Process, Role, Row, State
from island.notices import EAR, Book, Notice, Withdraw, advance, stepped
from island.observer import Observer
from island.sequence import Sequence1, Step
from island.sessions import why
from island.sources.processes import Change, descendants

Line = dict[str, Any]

#: Where the working folder of a recorded process is not its real path, it cannot be compared.
PROJECT = "@"

#: How a recorder without a verb for it notes the title of the terminal.
TITLE = "terminal title: "

#: Where a recorder notes the calls of hooks: a line for each, with its event and its standard input.
CALLS = "~/hook-events.jsonl"


@dataclass(slots=True)
class RecordedTable:
    """The processes of a sequence. A pid that it never speaks of cannot be checked, and counts as alive.

    complete: it speaks of processes at all, so one that it does not tell of is not there.
    """

    spoken_of: frozenset[int]
    complete: bool = False
    running: dict[int, Process] = field(default_factory=dict)

    def get(self, pid: int) -> Process | None:
        """Return a running process; one that the sequence never speaks of runs."""
        if pid not in self.spoken_of:
            return Process(pid, 0, "")
        return self.running.get(pid)

    def below(self, pid: int) -> Iterable[Process]:
        """Return the running descendants of a process."""
        return descendants(pid, self.running.values())

    def all(self) -> Iterable[Process]:
        """Return all running processes."""
        return self.running.values()

    def foreign(self, guard: str) -> bool:  # noqa: ARG002 - as below
        """Count a namespace that cannot be checked as this one."""
        return False

    def same(self, pid: int, guard: str, started: float) -> bool:  # noqa: ARG002 - recorded without guards
        """Count a guard that cannot be checked as passed."""
        return self.get(pid) is not None


class Replay:
    """One sequence, played once.

    panes: with the text of the terminal, which is not read unless asked for; hooks: with the calls of hooks that were
    recorded, made anew by island's own command.
    """

    def __init__(self, sequence: Sequence1, home: Path, *, panes: bool = False, hooks: bool = False) -> None:
        self.sequence, self.panes = sequence, panes
        self._home, self._project, self._hooks = home / "home", home / "project", home / "hooks"
        self.hooks = hooks
        self._home.mkdir()
        self._project.mkdir()
        self.now = sequence.start
        self._steps_of_clock = 0.0
        self._next_at = 0.0
        self.titles: dict[int, tuple[str, ...]] = {}
        self.screens: dict[int, str] = {}
        self.spoken: list[Notice | Withdraw] = []
        spoken = {s.operand["pid"] for s in sequence.of("process")} | {s.operand for s in sequence.of("exit")}
        self.table = RecordedTable(frozenset(spoken), complete=bool(spoken))
        homes = {name: agent.home({}, str(self._home)) for name, agent in AGENTS.items()} | {HOME: str(self._hooks)}
        self.observer = Observer(homes, self.table, self.now, folders=self._folders)
        self.book = Book(since=self.now)
        self.ear = EAR
        self.rows: dict[str, Row] = {}
        self.lines: list[Line] = []
        self._said: dict[tuple[str, str], tuple[str, ...]] = {}
        self._icon: State | None = None

    # -- running --------------------------------------------------------------------------------------------

    def run(self) -> Iterator[str]:
        """Play all steps at once; yield what an `expect` line finds different."""
        heard = 0
        for step in self._moves():
            if step and step.verb == "expect":
                yield from self._compare(step, self.lines[heard:])
                heard = len(self.lines)

    def moments(self) -> Iterator[float]:
        """Play step by step: yield the time of what is to happen next, and let it happen when asked on.

        Until then all is as it is before it: it can be shown, and be looked at by whoever watches.
        """
        moves = self._moves()
        at = 0.0
        while True:
            yield at
            if next(moves, self) is self:
                return
            at = max(at, self._next_at)

    def _moves(self) -> Iterator[Step | None]:
        """Let everything happen in order of time: the steps, and before each, and before what lapses, None."""
        self.observer.sweep(self.now)
        self._report(0.0)
        for step in self.sequence.steps:
            yield from self._until(step.at)
            self._next_at = step.at
            yield None
            self.now = self._wall(step.at)
            VERBS[step.verb](self, step)
            self._report(step.at)
            yield step

    def _wall(self, at: float) -> float:
        return self.sequence.start + at + self._steps_of_clock

    def _until(self, at: float) -> Iterator[None]:
        """Let time pass: what lapses before `at` lapses in its order."""
        while (due := min(self.observer.sessions.due, self.book.due)) <= self._wall(at):
            self._next_at = max(self.now, due) - self._wall(0)
            yield None
            self.now = max(self.now, due)
            self.observer.tick(self.now)
            self.again()

    # -- verbs ----------------------------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        """Return where a path of the sequence lies in the temporary home."""
        root = self._home if name.startswith("~/") else self._project
        return root / name[2:]

    def _folders(self, p: Process) -> tuple[str, ...]:
        """Return where a process keeps project files: of a sequence, only one project's lie here."""
        return () if p.cwd else (str(self._project),)

    def touch(self, path: Path) -> None:
        """Give a file the time of now, and hint at it."""
        os.utime(path, (self.now, self.now))
        self.observer.changed([str(path)], self.now)

    def call_hook(self, event: str, payload: Line, at: float) -> None:
        """Make one call of island's own hook command, if the agent's row asks for this event."""
        agent = self.sequence.head["agent"]
        row = HOOKS.get(agent)
        if row and row.made(event, payload):
            call(put(self._hooks), agent, event, orjson.dumps(payload), at)

    def look_at_hooks(self) -> None:
        """Look at what the calls have written."""
        for path in self._hooks.glob("*/*.jsonl"):
            self.touch(path)

    # -- saying ---------------------------------------------------------------------------------------------

    def again(self) -> None:
        """Say what is different now, though nothing was written: something lapsed, or the user saw or silenced it."""
        self._report(self.now - self._wall(0))

    def _report(self, at: float) -> None:
        at = round(at, 3)
        found = self.observer.sessions.rows()
        rows = [replace(row, session=row.session.replace(str(self._project), PROJECT)) for row in found]
        self.rows = {row.session: row for row in rows}
        for row, named in zip(found, rows, strict=True):
            self._say_verdict(at, named, why(self.observer.sessions.held[row.agent, row.session]))
        for agent, session in self._said.keys() - {(row.agent, row.session) for row in rows}:
            del self._said[agent, session]
            self.lines.append({"at": at, "session": session, "agent": agent, "state": "idle", "reason": "ended",
                               "sure": "told", "why": "no longer there"})
        snapshot = self.observer.snapshot(self.now)
        if snapshot.icon is not self._icon:
            self._icon = snapshot.icon
            self.lines.append({"at": at, "icon": snapshot.icon.value})
        self.book, spoken = advance(self.book, rows, self.now, self.ear)
        self.spoken += spoken
        self.lines += [_notice_line(at, s) for s in spoken]

    def _say_verdict(self, at: float, row: Row, because: str) -> None:
        key, verdict = (row.agent, row.session), row.verdict
        said = (verdict.state, verdict.reason, verdict.sure, row.role)
        if self._said.get(key) == said:
            return
        self._said[key] = said
        line: Line = {"at": at, "session": row.session, "agent": row.agent, "state": verdict.state.value,
                      "reason": verdict.reason.value, "sure": verdict.sure.value, "why": because}
        if row.role is not Role.PERSON:
            line["kind"] = row.role.value
        self.lines.append(line)

    def _compare(self, step: Step, heard: list[Line]) -> Iterator[str]:
        for who, want in step.operand.items():
            have = self._have(who, heard)
            short = who not in ("icon", "notices") and have.partition("(")[0]
            if want not in (have, short):
                yield f"{self.sequence.name}:{step.line}: at {step.at}: {who} is {have!r}, expected {want!r}"

    def _have(self, who: str, heard: list[Line]) -> Any:
        if who == "icon":
            return self._icon.value if self._icon else "idle"
        if who == "notices":
            return [line["notice"]["session"] for line in heard if "notice" in line]
        row = self.rows.get(who)
        return f"{row.verdict.state.value}({row.verdict.reason.value})" if row else "unknown"


def _recorded_call(line: bytes) -> tuple[str, Line] | None:
    """Return the event and the payload of a recorded call of a hook."""
    try:
        recorded = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None  # a torn line, or another's
    match recorded:
        case {"event": str(event), "stdin": dict(payload)} | {"event": str(event), "data": dict(payload)}:
            return event, payload
        case _:
            return None


def _notice_line(at: float, spoken: Notice | Withdraw) -> Line:
    if isinstance(spoken, Withdraw):
        return {"at": at, "withdraw": {"session": spoken.session}}
    told: Line = {"session": spoken.session, "reason": spoken.reason.value, "title": spoken.title}
    if len(spoken.sessions) > 1:
        told["sessions"] = list(spoken.sessions)
    return {"at": at, "notice": told}


def _append(replay: Replay, step: Step) -> None:
    path = replay.path(step.operand)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(step.content)
    replay.touch(path)
    _call_recorded(replay, step)


def _write(replay: Replay, step: Step) -> None:
    path = replay.path(step.operand)
    path.parent.mkdir(parents=True, exist_ok=True)
    if step.fields.get("replaced") and path.exists():
        fresh = path.with_name(path.name + ".replacing")
        fresh.write_bytes(step.content)
        fresh.replace(path)
    else:
        path.write_bytes(step.content)
    replay.touch(path)
    _call_recorded(replay, step)


def _call_recorded(replay: Replay, step: Step) -> None:
    """Take recorded calls of hooks for calls of island's own, if that was asked for."""
    if replay.hooks and step.operand == CALLS and not step.fields.get("baseline"):
        for event, payload in filter(None, map(_recorded_call, step.content.splitlines())):
            replay.call_hook(event, payload, replay.now)
        replay.look_at_hooks()


def _hook(replay: Replay, step: Step) -> None:
    made = step.fields.get("made", step.at)
    replay.call_hook(step.operand, step.fields["stdin"], replay.now + made - step.at)
    replay.look_at_hooks()


def _patch(replay: Replay, step: Step) -> None:
    path = replay.path(step.operand)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("r+b") as file:
        for offset, data in step.fields["blocks"]:
            file.seek(offset)
            file.write(base64.b64decode(data))
        file.truncate(step.fields["size"])
    replay.touch(path)


def _rows(replay: Replay, step: Step) -> None:
    """Put rows into a SQLite database; its tables and columns are made as they are named."""
    path = replay.path(step.operand)
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, rows in step.fields["tables"].items():
            for row in rows:
                _put_row(connection, table, row)
    replay.touch(path)


def _put_row(connection: sqlite3.Connection, table: str, row: Mapping[str, Any]) -> None:
    """Put one row, whose first column is its key. An object is JSON, and changes only what it names."""
    key, *others = row
    connection.execute(f"create table if not exists {table} ({key} primary key)")
    known = {name for _, name, *_ in connection.execute(f"pragma table_info({table})")}
    for column in row.keys() - known:
        connection.execute(f"alter table {table} add column {column}")
    patched = (f"{c} = json_patch(coalesce({c}, '{{}}'), excluded.{c})" if isinstance(row[c], dict)
               else f"{c} = excluded.{c}" for c in others)
    values = [json.dumps(v) if isinstance(v, dict | list) else v for v in row.values()]
    connection.execute(
        f"insert into {table} ({', '.join(row)}) values ({', '.join('?' * len(row))}) "  # noqa: S608 - names are checked
        f"on conflict do update set {', '.join(patched) or f'{key} = {key}'}", values)


def _touch(replay: Replay, step: Step) -> None:
    path = replay.path(step.operand)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    replay.touch(path)


def _remove(replay: Replay, step: Step) -> None:
    path = replay.path(step.operand)
    path.unlink(missing_ok=True)
    replay.observer.changed([str(path)], replay.now)


def _process(replay: Replay, step: Step) -> None:
    p = step.operand
    created = replay.sequence.start + float(p.get("created", step.at))
    cwd = "" if p.get("cwd", PROJECT).startswith(PROJECT) else p["cwd"]
    process = Process(p["pid"], p["ppid"], p.get("name", ""), tuple(p.get("cmdline", ())), cwd, created,
                      stopped=bool(p.get("stopped")))
    replay.table.running[process.pid] = process
    replay.observer.processes_changed(Change(started=(process,)), replay.now)
    replay.observer.stopped((process,), replay.now) if "stopped" in p else None


def _exit(replay: Replay, step: Step) -> None:
    process = replay.table.running.pop(step.operand, None)
    if process:
        replay.observer.processes_changed(Change(exited=(process,)), replay.now)


def _clock(replay: Replay, step: Step) -> None:
    before = replay.now
    replay._steps_of_clock += step.operand  # noqa: SLF001 - the verbs are the replay's own
    replay.now += step.operand
    if replay.now < before:
        replay.observer.refold(replay.now)
    else:
        replay.observer.tick(replay.now)
        replay.book = stepped(replay.book, step.operand, replay.now)


def _title(replay: Replay, step: Step) -> None:
    """Show a title to one process, else to the only agent: of several terminals nobody can say whose it is."""
    if "pid" in step.fields:
        replay.titles[step.fields["pid"]] = (step.operand,)
    else:
        replay.titles = dict.fromkeys(_only(replay, replay.observer.titled()), (step.operand,))
    replay.observer.terminals(replay.titles, replay.screens, replay.now)


def _only(replay: Replay, pids: set[int]) -> set[int]:
    """Return these processes if they are one agent's, with those below."""
    first = [p.pid for p in replay.table.all() if p.pid in pids and p.ppid not in pids]
    return {first[0], *(p.pid for p in replay.table.below(first[0]))} if len(first) == 1 else set()


def _first(replay: Replay, pids: set[int]) -> set[int]:
    """Return, of these processes, the one that began first and those below it."""
    first = min((p for p in replay.table.all() if p.pid in pids), key=lambda p: p.created, default=None)
    return {first.pid, *(p.pid for p in replay.table.below(first.pid))} if first else set()


def _pane(replay: Replay, step: Step) -> None:
    """Show a text to the agent that began first, if texts are to be read."""
    if replay.panes:
        replay.screens |= dict.fromkeys(_first(replay, replay.observer.screened()), step.operand)
        replay.observer.terminals(replay.titles, replay.screens, replay.now)


def _note(replay: Replay, step: Step) -> None:
    """Take a note of a title, as older recordings have it, for the title itself."""
    mark, _, title = step.operand.partition(TITLE)
    if title and not mark:
        _title(replay, replace(step, operand=title))


def _nothing(_: Replay, __: Step) -> None:
    """Pass over what is for people, or for sources that are not read."""


VERBS: Mapping[str, Callable[[Replay, Step], None]] = {
    "append": _append, "write": _write, "patch": _patch, "rows": _rows, "touch": _touch, "remove": _remove,
    "process": _process, "exit": _exit, "clock": _clock,
    "hook": _hook, "title": _title, "note": _note, "pane": _pane,
    "cpu": _nothing, "truth": _nothing, "expect": _nothing,
}


def play(sequence: Sequence1, *, panes: bool = False, hooks: bool = False) -> list[Line]:
    """Return the timeline of a sequence."""
    with tempfile.TemporaryDirectory(prefix="island-replay-") as folder:
        replay = Replay(sequence, Path(folder), panes=panes, hooks=hooks)
        for _ in replay.run():
            pass
        return replay.lines


def check(sequence: Sequence1, *, panes: bool = False, hooks: bool = False) -> list[str]:
    """Return what is different from the sequence's `expect` lines."""
    with tempfile.TemporaryDirectory(prefix="island-replay-") as folder:
        return list(Replay(sequence, Path(folder), panes=panes, hooks=hooks).run())
