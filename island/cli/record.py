"""`island record`: write what one session left on this machine as a sequence file, without its prose.

Reads the agents' files and nothing else; what it writes is for a report, so it must hold no text of a
prompt or an answer, no path and no name of the user: see `blanking`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from glob import escape
from pathlib import Path, PurePath
from typing import Any

import orjson

from island.agents import AGENTS
from island.agents.base import Agent, Shape, Source
from island.agents.reading import when
from island.blanking import PROGRAMS, PROJECT, blank, blank_arguments
from island.look import homes, matters
from island.model import Event, Kind, Process, Record, Session
from island.rules import fold
from island.sequence import VERSION
from island.sources.processes import SystemTable
from island.sources.sweep import sweep

Line = dict[str, Any]

#: Project files are no records with names that could be kept: without its prose nothing would be left of them.
RECORDED = {name: agent for name, agent in AGENTS.items() if not any(source.project for source in agent.sources)}

NOTE = (
    "Please add what was true, as lines in order of time. That it waited for a permission after 12.5 s is"
    ' {{"at": 12.5, "truth": {{"session": "{session}", "state": "your-turn", "reason": "permission"}}}};'
    " states are working, your-turn, stalled, idle, ended. Then say as the law in the first line, in one"
    " sentence, what island should have shown."
)

#: What a name of a file or folder may be without telling of its user: numbers, dates, ids.
PLAIN_NAME = re.compile(r"(inuse\.)?\d+|(rollout-[\dT-]+-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
                        r"|session-[\dT-]+-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Told:
    """One record, by which source it was read, what it means, and when it was made (0: it does not say)."""

    source: Source
    record: Record
    events: tuple[Event, ...]
    at: float


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("record", help="write a session as a file for a report", description=__doc__)
    parser.add_argument("session", metavar="SESSION", help="the beginning of the session's id")
    parser.add_argument("--agent", choices=sorted(RECORDED), help="look for it among this agent's alone")
    parser.add_argument("-o", "--output", metavar="FILE", help="by default AGENT-SESSION.jsonl")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the file; 2 if there is no such session, or more than one, or the file is there already."""
    wanted = [RECORDED[arguments.agent]] if arguments.agent else list(RECORDED.values())
    found = [(agent, ident) for agent in wanted for ident in sorted(sessions(agent, arguments.session))]
    if len(found) != 1:
        return _refuse(_which(arguments.session, found, wanted))
    agent, ident = found[0]
    target = Path(arguments.output or f"{agent.name}-{ident[:8]}.jsonl")
    lines = sequence(agent, ident, datetime.now(UTC).timestamp())
    try:
        target.touch(0o600, exist_ok=False)
        target.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    except FileExistsError:
        return _refuse(f"{target} is there already; name another file with -o")
    except OSError as error:
        return _refuse(f"{target} cannot be written: {error.strerror}")
    print(f"{target}: {len(lines)} lines. Look through it before you give it away; a note says how to go on.")
    return 0


def _refuse(why: str) -> int:
    print(f"island: {why}", file=sys.stderr)
    return 2


def _which(prefix: str, found: list[tuple[Agent, str]], wanted: list[Agent]) -> str:
    if not found and len(wanted) == 1:
        return f"no session of {wanted[0].label} begins with {prefix!r}"
    if not found:
        prose = ", ".join(agent.label for name, agent in AGENTS.items() if name not in RECORDED)
        stores = ", ".join(a.label for a in RECORDED.values() if any(s.shape is Shape.DATABASE for s in a.sources))
        return f"no session begins with {prefix!r}; of {prose} none can be recorded, of {stores} none in a database"
    listed = ", ".join(f"{agent.name} {ident}" for agent, ident in found)
    return f"{len(found)} sessions begin with {prefix!r}: {listed}"


# -- what is there ------------------------------------------------------------------------------------------


def sessions(agent: Agent, prefix: str) -> set[str]:
    """Return the ids of an agent's sessions that begin so: by the names of files, else by what they hold."""
    files = [(source, path) for source in agent.sources for path in _files(agent, source)]
    small = [(source, path) for source, path in files if source.shape is not Shape.LINES]
    for some in ([f for f in files if prefix in PurePath(f[1]).name], small, files):
        events = (e for source, path in some for told in read(source, path) for e in told.events)
        found = {e.session for e in events if e.session.startswith(prefix)}
        if found:
            return found
    return set()


def _files(agent: Agent, source: Source) -> list[str]:
    home = homes()[agent.name]
    return sorted(file.path for file in sweep([f"{escape(home)}/{source.pattern}"]))


def read(source: Source, path: str, about: str = "") -> Iterator[Told]:
    """Read a file whole: each of its records with its meaning. One without the text `about` gives none.

    Nor does a database: it may be huge, and what it holds of other sessions cannot be told apart here.
    """
    if source.shape is Shape.DATABASE:
        return
    try:
        mtime = Path(path).stat().st_mtime
        data = b"" if source.shape is Shape.PRESENCE else Path(path).read_bytes()
    except OSError:
        return
    if about.encode() not in data and source.shape is Shape.LINES:
        return
    lines = data.split(b"\n") if source.shape is Shape.LINES else [data]
    head = lines[0] if source.head else b""
    offset = 0
    for line in lines:
        if line.strip() or source.shape is Shape.PRESENCE:
            yield _told(source, Record(path, line, offset, mtime, head))
        offset += len(line) + 1


def _told(source: Source, record: Record) -> Told:
    try:
        events = tuple(e for e in source.read(record) if e.kind is not Kind.UNKNOWN)
    except Exception:  # noqa: BLE001 - what a reader cannot read is what is to be reported
        events = ()
    at = max((e.at for e in events), default=0.0)
    return Told(source, record, events, at or _stamp(record.data))


def _stamp(data: bytes) -> float:
    """Return the time of a record that means nothing; 0 if it carries none."""
    try:
        return when(orjson.loads(data)["timestamp"])
    except (ValueError, TypeError, KeyError):
        return 0.0


def evidence(agent: Agent, ident: str) -> Iterator[list[Told]]:
    """Yield what each file says of a session: its own files whole, of others only what is about it.

    Other histories are looked into only in the folders of its own: there a resumed one may lie.
    """
    for source in agent.sources:
        files = _files(agent, source)
        own = {path for path in files if _is_own(source, path, ident)}
        folders = {PurePath(path).parent for path in own}
        few = source.shape is not Shape.LINES or "*" not in source.pattern
        for path in files:
            if path in own:
                yield list(read(source, path))
            elif few or PurePath(path).parent in folders:
                yield [t for t in read(source, path, ident) if any(e.session == ident for e in t.events)]


def _is_own(source: Source, path: str, ident: str) -> bool:
    """Tell whether a file is a session's own: by its name, or by a part of that and its head."""
    named, short = PurePath(path).parts[-2:], ident[:8] in PurePath(path).name
    return any(ident in part for part in named) or (
        source.head and short and any(e.session == ident for t in read(source, path) for e in t.events))


# -- what is written ----------------------------------------------------------------------------------------


def sequence(agent: Agent, ident: str, now: float) -> list[Line]:
    """Return the lines of a sequence file: one step for each record, at its own time."""
    files = [file for file in evidence(agent, ident) if file]
    session = reduce(fold, (e for file in files for t in file for e in t.events), Session(agent.name, ident))
    timed = [pair for file in files for pair in _timed(file, now)]
    start = min((at for at, _ in timed), default=now)
    steps = [_step(agent, ident, told, round(at - start, 3)) for at, told in timed]
    steps += _processes(agent, session, start, now)
    steps.sort(key=lambda step: step["at"])
    head = {
        "sequence": VERSION, "title": f"Reported: {agent.label}, session {ident[:8]}", "law": "",
        "agent": agent.name, "version": session.fact("version"), "origin": "reported",
        "start": datetime.fromtimestamp(start, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    last = max([round(now - start, 3), *(step["at"] for step in steps)])
    note = NOTE.format(session=ident)
    return [head, {"at": 0.0, "note": note}, *steps, {"at": last, "note": "the session was recorded here"}]


def _timed(file: list[Told], now: float) -> Iterator[tuple[float, Told]]:
    """Give each record of a file a time: its own, but none before the record above it, and none to come."""
    at = next((t.at for t in file if 0 < t.at <= now), min(file[0].record.mtime, now))
    for told in file:
        at = max(at, told.at) if told.at <= now else at
        yield at, told


def _step(agent: Agent, ident: str, told: Told, at: float) -> Line:
    path = _path(agent, told.source, told.record.path, ident)
    if told.source.shape is Shape.PRESENCE:
        return {"at": at, "touch": path}
    verb = "append" if told.source.shape is Shape.LINES else "write"
    blanked = blank(told.record.data)
    try:
        return {"at": at, verb: path, "records": [orjson.loads(blanked)]}
    except orjson.JSONDecodeError:
        return {"at": at, verb: path, "text": blanked.decode() + "\n"}


def _path(agent: Agent, source: Source, path: str, ident: str) -> str:
    """Return where a file lies in a sequence: below the agent's usual home, without names of the user's."""
    parts = PurePath(path).relative_to(homes()[agent.name]).parts
    named = zip(parts, source.pattern.split("/"), strict=True)
    return "/".join([agent.home({}, "~"), *(p if p == star else _plain(p, ident) for p, star in named)])


def _plain(part: str, ident: str) -> str:
    name = PurePath(part)
    if ident in part or PLAIN_NAME.fullmatch(name.stem):
        return part
    number = part.partition(".")[0]
    return (number if number.isdecimal() else "project") + name.suffix


def _processes(agent: Agent, session: Session, start: float, now: float) -> Iterator[Line]:
    """Yield the session's processes as they are now: those that its records name, else those it may have."""
    table = SystemTable(matters)
    table.poll()
    named = [owner for owner in session.every(Kind.OWNER) if owner.key.isdecimal()]
    alive = [p for o in named if (p := table.get(int(o.key))) and table.same(p.pid, o.text, o.number)]
    dead = {int(o.key) for o in named} - {p.pid for p in alive}
    yield from ({"at": round(now - start, 3), "exit": pid} for pid in sorted(dead))
    if not named:
        alive = [p for p in table.all() if agent.main(p) and agent.owns(p, session)]
    for main in alive:
        yield from (_process(p, session, start) for p in (main, *table.below(main.pid)))


def _process(p: Process, session: Session, start: float) -> Line:
    created = round(p.created - start, 3)
    here = p.cwd in ("", session.fact("cwd"))
    return {"at": max(0.0, created), "process": {
        "pid": p.pid, "ppid": p.ppid, "name": p.name if p.name in PROGRAMS or matters(p) else "process",
        "cmdline": blank_arguments(p.cmdline), "cwd": PROJECT if here else f"{PROJECT}-2", "created": created,
    }}
