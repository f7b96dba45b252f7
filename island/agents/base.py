"""What an agent is to island: a row of the table, and how that row finds its files and processes. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from island.model import Event, Process, Reader, Role, Session


class Shape(StrEnum):
    """How a source is written, and so how it is read."""

    LINES = "lines"  # one record a line, appended
    DOCUMENT = "document"  # a small file, rewritten whole
    PRESENCE = "presence"  # never opened: that it is there, and its file time, is all that counts
    DATABASE = "database"  # SQLite, asked by the source's queries; each row is a record


@dataclass(frozen=True, slots=True)
class Query:
    """One question that is put to a database whenever it has changed.

    name: stands as "query" in each row's record, beside the columns; sql: bounded, by an index or a row id, and no
    more than what the state needs. It may use `:moment`, the newest file time of the database in seconds, and `:last`,
    the same at the look before (0 at first sight). optional: older or newer versions lack its tables.
    """

    name: str
    sql: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """Where records of one shape lie below an agent's home.

    pattern: glob, one star within one folder; removed: what the end of such a file means for the sessions
    that it told of; head: read the first line too, it carries what the tail does not, and each record bears it;
    side: it tells only facts of sessions whose history lies elsewhere; queries: what a database is asked; project:
    the pattern is the full name of a file in the folder that the agent's process works in, or at the root of its
    repository, not in its home; until: where this file of a newer layout is, these are not looked for any more,
    however many were left behind.
    """

    pattern: str
    shape: Shape
    read: Reader
    removed: Callable[[Event, float], Iterable[Event]] | None = None
    head: bool = False
    side: bool = False
    queries: tuple[Query, ...] = ()
    project: bool = False
    until: str = ""


#: What a title without a mark says: that the prompt is free, if the title had a mark before. Older versions and some
#: settings mark nothing.
UNMARKED = "unmarked"


@dataclass(frozen=True, slots=True)
class Dialog:
    """How a dialog of an agent looks on its screen, for agents that leave no other trace of it.

    word: of LIVE; pattern: searched in the last lines that are not empty, `^` and `$` are those of a line; sample: the
    end of a screen that shows it.
    """

    word: str
    pattern: str
    sample: str


@dataclass(frozen=True, slots=True)
class Before:
    """What cannot be seen of an agent's versions before one."""

    version: str
    blind: str

    def __str__(self) -> str:
        return f"before {self.version}: {self.blind}"

    def holds(self, version: str) -> bool:
        """Tell whether it is so of a version; of one that is not known it may be."""
        return not (numbers := _numbers(version)) or numbers < _numbers(self.version)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the dotted numbers that a version begins with, without zeros at their end."""
    found = re.match(r"v?(\d+(?:\.\d+)*)", version, re.ASCII)
    return tuple(map(int, re.sub(r"(\.0+)+$", "", found[1]).split("."))) if found else ()


@dataclass(frozen=True, slots=True)
class Agent:
    """One row of the table of agents.

    home: where its files lie, by environment and the user's home folder.
    main: a process is the agent itself; owns: how likely it runs that session, where no record tells (0: it
    does not); window: it shows sessions that another process runs; tool: it is a command that the agent runs
    for a tool; role: whose run it is, where only the command line tells; resumes: which session it was started
    to go on with; unasked: it answers by itself what it asks; single: one process runs one session at a time;
    several: this process does not, it runs many at once; call_variable: the variable in which a tool's process carries
    the call that it runs for; nameless: its records tell of no call, so any command that began below it in the turn's
    folder since the turn did may be one; title: what the title of its terminal says, as a word of LIVE, UNMARKED or
    nothing, for agents that mark there what stands nowhere else; dialogs: what its screen shows, the same.
    evidence, blind: what the verdicts rest on, and what cannot be seen, for people.
    """

    name: str
    label: str
    home: Callable[[Mapping[str, str], str], str]
    sources: tuple[Source, ...]
    main: Callable[[Process], bool]
    owns: Callable[[Process, Session], int]
    tool: Callable[[Process], bool]
    role: Callable[[Process], Role | None]
    window: Callable[[Process], bool] = lambda _: False
    resumes: Callable[[Process, Iterable[Session]], str] = lambda _, __: ""
    unasked: Callable[[Process], bool] = lambda _: False
    single: bool = False
    several: Callable[[Process], bool] = lambda _: False
    call_variable: str = ""
    nameless: bool = False
    title: Callable[[str], str] | None = None
    dialogs: tuple[Dialog, ...] = ()
    evidence: tuple[str, ...] = ()
    blind: tuple[str | Before, ...] = ()

    def blind_in(self, *versions: str) -> tuple[str, ...]:
        """Return what cannot be seen of one of these versions, "" for one that is not known; of none, of any."""
        return tuple(str(blind) for blind in self.blind if not isinstance(blind, Before)
                     or any(map(blind.holds, versions or ("",))))


#: What a predicate of a row that fails is taken to say.
SILENT: Mapping[str, Any] = {"main": False, "owns": 0, "window": False, "tool": False, "role": None, "resumes": "",
                             "title": "", "several": False, "unasked": False}


def contained(agent: Agent, failed: Callable[[str, Exception], None]) -> Agent:
    """Return a row whose predicates fail alone: `failed` is told which one, and the others go on."""

    def guard(name: str) -> Callable[..., Any]:
        ask = getattr(agent, name)

        def asked(*about: Any) -> Any:
            try:
                return ask(*about)
            except Exception as error:  # noqa: BLE001 - a fault in one agent must not end the others
                failed(f"{agent.name} {name}", error)
                return SILENT[name]

        return asked

    guarded: dict[str, Any] = {name: guard(name) for name in SILENT if getattr(agent, name)}
    return replace(agent, **guarded)


#: Lines at the end of a screen that may belong to an open dialog: options, hints, a status line.
DIALOG = 12


def shown(agent: Agent, screen: str) -> str:
    """Return what a screen of an agent says, as a word of LIVE, or nothing."""
    lines = [line.rstrip() for line in screen.splitlines() if line.strip()]
    end = "\n".join(lines[-DIALOG:])
    return next((d.word for d in agent.dialogs if re.search(d.pattern, end, re.MULTILINE)), "")


def moved_by(variable: str, default: str) -> Callable[[Mapping[str, str], str], str]:
    """Return a home: the folder that an environment variable names, else one below the user's home."""

    def home(environ: Mapping[str, str], user_home: str) -> str:
        return environ.get(variable) or f"{user_home}/{default}"

    return home
