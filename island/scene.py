"""The scene of a replay: a sequence's files, databases and processes, made in a temporary home step by step. Shell.

Each verb of a sequence is done to what the code that ships will look at, and hinted at as the watch would hint.
"""

from __future__ import annotations

import base64
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from island.agents import AGENTS
from island.hooks.command import call, put
from island.hooks.records import HOME
from island.hooks.rows import HOOKS
from island.model import Process
from island.observer import Observer
from island.sequence import Sequence1, Step
from island.sources.processes import Change, descendants

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


class Scene:
    """What a sequence has made so far, and the observer that looks at it.

    panes: with the text of the terminal, which is not read unless asked for; hooks: with the calls of hooks that were
    recorded, made anew by island's own command.
    """

    def __init__(self, sequence: Sequence1, folder: Path, *, panes: bool = False, hooks: bool = False) -> None:
        self.sequence, self.panes, self.hooks = sequence, panes, hooks
        self.home, self.project, self._status = folder / "home", folder / "project", folder / "hooks"
        self.home.mkdir()
        self.project.mkdir()
        self.now = sequence.start
        self._clock_steps = 0.0
        self.titles: dict[int, tuple[str, ...]] = {}
        self.screens: dict[int, str] = {}
        spoken = {s.operand["pid"] for s in sequence.of("process")} | {s.operand for s in sequence.of("exit")}
        self.table = RecordedTable(frozenset(spoken), complete=bool(spoken))
        homes = {name: agent.home({}, str(self.home)) for name, agent in AGENTS.items()} | {HOME: str(self._status)}
        self.observer = Observer(homes, self.table, self.now, folders=self._folders)

    def wall(self, at: float) -> float:
        """Return what the clock on the wall shows at a time of the sequence."""
        return self.sequence.start + at + self._clock_steps

    def perform(self, step: Step) -> None:
        """Let a step happen, at its time."""
        self.now = self.wall(step.at)
        VERBS[step.verb](self, step)

    def step_clock(self, seconds: float) -> None:
        """Set the clock on the wall."""
        self._clock_steps += seconds
        self.now += seconds

    def path(self, name: str) -> Path:
        """Return where a path of the sequence lies in the temporary home."""
        root = self.home if name.startswith("~/") else self.project
        return root / name[2:]

    def prepared(self, name: str) -> Path:
        """Return where a path of the sequence lies, and make its folder."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _folders(self, p: Process) -> tuple[str, ...]:
        """Return where a process keeps project files: of a sequence, only one project's lie here."""
        return () if p.cwd else (str(self.project),)

    def touch(self, path: Path) -> None:
        """Give a file the time of now, and hint at it."""
        os.utime(path, (self.now, self.now))
        self.observer.changed([str(path)], self.now)

    def call_hook(self, event: str, payload: Mapping[str, Any], at: float) -> None:
        """Make one call of island's own hook command, if the agent's row asks for this event."""
        agent = self.sequence.head["agent"]
        row = HOOKS.get(agent)
        if row and row.made(event, payload):
            call(put(self._status), agent, event, orjson.dumps(payload), at)

    def look_at_hooks(self) -> None:
        """Look at what the calls have written."""
        for path in self._status.glob("*/*.jsonl"):
            self.touch(path)


def _recorded_call(line: bytes) -> tuple[str, Mapping[str, Any]] | None:
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


def _append(scene: Scene, step: Step) -> None:
    path = scene.prepared(step.operand)
    with path.open("ab") as file:
        file.write(step.content)
    scene.touch(path)
    _call_recorded(scene, step)


def _write(scene: Scene, step: Step) -> None:
    path = scene.prepared(step.operand)
    if step.fields.get("replaced") and path.exists():
        fresh = path.with_name(path.name + ".replacing")
        fresh.write_bytes(step.content)
        fresh.replace(path)
    else:
        path.write_bytes(step.content)
    scene.touch(path)
    _call_recorded(scene, step)


def _call_recorded(scene: Scene, step: Step) -> None:
    """Take recorded calls of hooks for calls of island's own, if that was asked for."""
    if scene.hooks and step.operand == CALLS and not step.fields.get("baseline"):
        for event, payload in filter(None, map(_recorded_call, step.content.splitlines())):
            scene.call_hook(event, payload, scene.now)
        scene.look_at_hooks()


def _hook(scene: Scene, step: Step) -> None:
    made = step.fields.get("made", step.at)
    scene.call_hook(step.operand, step.fields["stdin"], scene.now + made - step.at)
    scene.look_at_hooks()


def _patch(scene: Scene, step: Step) -> None:
    path = scene.prepared(step.operand)
    path.touch()
    with path.open("r+b") as file:
        for offset, data in step.fields["blocks"]:
            file.seek(offset)
            file.write(base64.b64decode(data))
        file.truncate(step.fields["size"])
    scene.touch(path)


def _rows(scene: Scene, step: Step) -> None:
    """Put rows into a SQLite database; its tables and columns are made as they are named."""
    path = scene.prepared(step.operand)
    with closing(sqlite3.connect(path)) as connection, connection:
        for table, rows in step.fields["tables"].items():
            for row in rows:
                _put_row(connection, table, row)
    scene.touch(path)


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


def _touch(scene: Scene, step: Step) -> None:
    path = scene.prepared(step.operand)
    path.touch()
    scene.touch(path)


def _remove(scene: Scene, step: Step) -> None:
    path = scene.path(step.operand)
    path.unlink(missing_ok=True)
    scene.observer.changed([str(path)], scene.now)


def _process(scene: Scene, step: Step) -> None:
    p = step.operand
    created = scene.sequence.start + float(p.get("created", step.at))
    cwd = "" if p.get("cwd", PROJECT).startswith(PROJECT) else p["cwd"]
    process = Process(p["pid"], p["ppid"], p.get("name", ""), tuple(p.get("cmdline", ())), cwd, created,
                      stopped=bool(p.get("stopped")))
    scene.table.running[process.pid] = process
    scene.observer.processes_changed(Change(started=(process,)), scene.now)
    scene.observer.stopped((process,), scene.now) if "stopped" in p else None


def _exit(scene: Scene, step: Step) -> None:
    process = scene.table.running.pop(step.operand, None)
    if process:
        scene.observer.processes_changed(Change(exited=(process,)), scene.now)


def _clock(scene: Scene, step: Step) -> None:
    scene.step_clock(step.operand)
    look = scene.observer.refold if step.operand < 0 else scene.observer.tick
    look(scene.now)


def _title(scene: Scene, step: Step) -> None:
    """Show a title to one process, else to the only agent: of several terminals nobody can say whose it is."""
    if "pid" in step.fields:
        scene.titles[step.fields["pid"]] = (step.operand,)
    else:
        scene.titles = dict.fromkeys(_only(scene, scene.observer.titled()), (step.operand,))
    scene.observer.terminals(scene.titles, scene.screens, scene.now)


def _only(scene: Scene, pids: set[int]) -> set[int]:
    """Return these processes if they are one agent's, with those below."""
    first = [p.pid for p in scene.table.all() if p.pid in pids and p.ppid not in pids]
    return {first[0], *(p.pid for p in scene.table.below(first[0]))} if len(first) == 1 else set()


def _first(scene: Scene, pids: set[int]) -> set[int]:
    """Return, of these processes, the one that began first and those below it."""
    first = min((p for p in scene.table.all() if p.pid in pids), key=lambda p: p.created, default=None)
    return {first.pid, *(p.pid for p in scene.table.below(first.pid))} if first else set()


def _pane(scene: Scene, step: Step) -> None:
    """Show a text to the agent that began first, if texts are to be read."""
    if scene.panes:
        scene.screens |= dict.fromkeys(_first(scene, scene.observer.screened()), step.operand)
        scene.observer.terminals(scene.titles, scene.screens, scene.now)


def _note(scene: Scene, step: Step) -> None:
    """Take a note of a title, as older recordings have it, for the title itself."""
    mark, _, title = step.operand.partition(TITLE)
    if title and not mark:
        _title(scene, replace(step, operand=title))


def _nothing(_: Scene, __: Step) -> None:
    """Pass over what is for people, or for sources that are not read."""


VERBS: Mapping[str, Callable[[Scene, Step], None]] = {
    "append": _append, "write": _write, "patch": _patch, "rows": _rows, "touch": _touch, "remove": _remove,
    "process": _process, "exit": _exit, "clock": _clock,
    "hook": _hook, "title": _title, "note": _note, "pane": _pane,
    "cpu": _nothing, "truth": _nothing, "expect": _nothing,
}
