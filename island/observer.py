"""From hints to verdicts: look at files and processes, read records, fold events, decide. Shell.

Synchronous, and told the time: whoever drives it (the running program, a replay) owns the clock. It decides
nothing itself; what a state is stands in `rules`, what a record means in `agents`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from glob import escape
from math import inf
from pathlib import PurePath
from typing import Protocol

from island.agents import AGENTS
from island.agents.base import Agent, Shape, Source
from island.model import Event, Kind, Process, Record, Role, Row, Session, Snapshot, State, Verdict
from island.rules import claim, collapse, decide, fold, lift, urgency, view
from island.sources.files import Document, Follower, Look, Presence
from island.sources.processes import Change, Table
from island.sources.sweep import matcher, sweep

#: Files older than this when first seen are not read: no lease is longer.
HORIZON = 12 * 3600.0

#: A window opens a thread within this time of its own start at the earliest; file times are coarse.
SLACK = 1.0

#: What a history file said about the turn is forgotten when it is rewritten; the rest came from elsewhere.
KEPT = frozenset({Kind.OWNER, Kind.GONE, Kind.LIVE, Kind.ATTACHED, Kind.STOPPED, Kind.ALONE})

Key = tuple[str, str]  # agent, session


class Looker(Protocol):
    """One followed file."""

    def look(self) -> Look:
        """Return what is new in it."""


LOOKERS: Mapping[Shape, Callable[[str], Looker]] = {
    Shape.LINES: Follower, Shape.DOCUMENT: Document, Shape.PRESENCE: Presence,
}


@dataclass(slots=True)
class Followed:
    """One file that is followed: by which source it is read, and what it told last of each session."""

    agent: Agent
    source: Source
    looker: Looker
    told: dict[str, Event] = field(default_factory=dict)


@dataclass(slots=True)
class Tally:
    """What went wrong or was not understood, by agent: shown, never guessed at."""

    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    unread: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)


class Observer:
    """All sessions of all agents, from evidence to verdicts."""

    def __init__(self, homes: Mapping[str, str], table: Table, now: float, *,
                 agents: Mapping[str, Agent] = AGENTS) -> None:
        self.agents = agents
        self.homes = homes
        self.table = table
        self.since = now
        self.tally = Tally()
        self.sessions: dict[Key, Session] = {}
        self.verdicts: dict[Key, Verdict] = {}
        self.seen: set[str] = set()
        self._files: dict[str, Followed] = {}
        self._touched: set[Key] = set()
        self._sources = [(agent, source, matcher([self._glob(agent, source)]))
                         for agent in agents.values() for source in agent.sources]

    # -- looking ------------------------------------------------------------------------------------------

    def _glob(self, agent: Agent, source: Source) -> str:
        return f"{escape(self.homes[agent.name])}/{source.pattern}"

    def sweep(self, now: float) -> None:
        """Look at every file that may matter, whatever hints said: the safety net."""
        patterns = [self._glob(agent, source) for agent, source, _ in self._sources]
        found = sweep(patterns, now - HORIZON)
        self.changed({f.path for f in found} | self._files.keys(), now)

    def changed(self, paths: Collection[str], now: float) -> None:
        """Look at files that may have changed."""
        for path in sorted(paths):
            followed = self._files.get(path) or self._follow(path)
            if followed:
                self._look(path, followed, now)
        self._settle(now)

    def _follow(self, path: str) -> Followed | None:
        for agent, source, matches in self._sources:
            if matches(path):
                followed = Followed(agent, source, LOOKERS[source.shape](path))
                self._files[path] = followed
                return followed
        return None

    def _look(self, path: str, followed: Followed, now: float) -> None:
        look = followed.looker.look()
        if look.error:
            self.tally.broken[path] = look.error
            return
        self.tally.broken.pop(path, None)
        if look.gone:
            self._removed(path, followed, now)
        elif look.restart and isinstance(followed.looker, Follower):
            self._reread(followed, followed.looker, now)
        else:
            for record in look.records:
                self._take(followed, record, now)

    def _reread(self, followed: Followed, file: Follower, now: float) -> None:
        """Read a file from its end, until every register that matters is found."""
        for session in followed.told:
            self._forget((followed.agent.name, session))
            self._doubt(followed, session)
        followed.told.clear()
        head = file.head() if followed.source.head else None
        if head:
            self._take(followed, head, now)
        for record in file.backwards():
            events = self._take(followed, record, now)
            if any(self._enough(followed.agent, e, now) for e in events):
                break

    def _doubt(self, followed: Followed, session: str) -> None:
        """Have the other histories of a forgotten session read anew at the next look."""
        for path, other in self._files.items():
            shared = other is not followed and other.source is followed.source and session in other.told
            if shared:
                other.looker = LOOKERS[other.source.shape](path)
                other.told.clear()

    def _enough(self, agent: Agent, event: Event, now: float) -> bool:
        """Tell whether nothing before this event can matter: its turn began here, or it is too old."""
        if 0 < event.at < now - HORIZON:
            return True
        if event.kind is not Kind.PROMPT:
            return False
        session = self.sessions[agent.name, event.session]
        keyless = session.get(Kind.PROGRESS, "keyless")
        return event.key == "" or keyless is not None

    def _forget(self, key: Key) -> None:
        session = self.sessions.get(key)
        if session:
            kept = {k: e for k, e in session.registers.items() if k[0] in KEPT}
            self.sessions[key] = replace(session, registers=kept)
            self._touched.add(key)

    def _removed(self, path: str, followed: Followed, now: float) -> None:
        del self._files[path]
        if followed.source.removed:
            for told in list(followed.told.values()):
                self._fold(followed.agent, followed.source.removed(told, now), now)
        elif followed.source.shape is Shape.LINES:
            for session in followed.told:  # archived or deleted: it is no session of today any more
                self.sessions.pop((followed.agent.name, session), None)
                self.verdicts.pop((followed.agent.name, session), None)

    # -- reading ------------------------------------------------------------------------------------------

    def _take(self, followed: Followed, record: Record, now: float) -> list[Event]:
        """Read one record; one that cannot be read is counted and stops nobody."""
        agent = followed.agent
        try:
            events = list(followed.source.read(record))
        except ValueError:
            self.tally.unread[agent.name, followed.source.pattern] += 1
            return []
        except Exception as error:  # noqa: BLE001 - a fault in one reader must not end the others
            self.tally.broken[f"{agent.name} reader"] = f"{type(error).__name__}: {error}"
            return []
        self._rebind(followed, events, now)
        return self._fold(agent, events, now)

    def _rebind(self, followed: Followed, events: Iterable[Event], now: float) -> None:
        """Note of which sessions a file tells. A live record that turns to another has left the first."""
        for event in events:
            if event.kind is Kind.UNKNOWN:
                continue
            if event.kind is Kind.OWNER:
                left = [e for s, e in followed.told.items() if s != event.session and e.kind is Kind.OWNER]
                for old in left:
                    del followed.told[old.session]
                    gone = Event(Kind.GONE, old.session, now, old.key, "left", source="live record moved on")
                    self._fold(followed.agent, [gone], now)
                followed.told[event.session] = event
            else:
                followed.told.setdefault(event.session, event)

    def _fold(self, agent: Agent, events: Iterable[Event], now: float) -> list[Event]:
        folded = []
        for raw in events:
            if raw.kind is Kind.UNKNOWN:
                self.tally.unknown[agent.name, raw.word] += 1
                continue
            event = replace(raw, at=now) if raw.at > now else raw  # a record from the future is from now
            if event.kind is Kind.ATTACHED and not event.key:
                event = self._window(agent, event)
            folded.append(event)
            self._join(agent, event)
            self._check_processes(agent, event, now)
        return folded

    def _join(self, agent: Agent, event: Event) -> None:
        key = (agent.name, event.session)
        before = self.sessions.get(key) or Session(agent.name, event.session)
        after = fold(before, event)
        if after is not before:
            self.sessions[key] = after
            self._touched.add(key)

    # -- processes ----------------------------------------------------------------------------------------

    def _check_processes(self, agent: Agent, event: Event, now: float) -> None:
        if event.kind is Kind.OWNER and event.source != "process":
            alive = self.table.get(int(event.key)) and self.table.same(int(event.key), event.text, event.number)
            if not alive:
                gone = Event(Kind.GONE, event.session, now, event.key, "exit", source="no such process")
                self._join(agent, gone)
            else:
                self._leave_run(agent, int(event.key), now)
                self._note_tools(agent, event.session, int(event.key), now)

    def _window(self, agent: Agent, event: Event) -> Event:
        """Bind a window's mark to the newest window process that was there then."""
        session = self.sessions.get((agent.name, event.session))
        cwd = session.fact("cwd") if session else ""
        windows = [p for p in self.table.all() if agent.window(p) and p.created <= event.at + SLACK
                   and (not cwd or not p.cwd or p.cwd == cwd)]
        if not windows:
            return event
        return replace(event, key=str(max(windows, key=lambda p: p.created).pid))

    def processes_changed(self, change: Change, now: float) -> None:
        """Take note of processes that started or ended."""
        for p in change.exited:
            self._exited(p, now)
        for p in change.started:
            self._note_run(p, now)
            self._note_resumed(p)
        if change.started or change.exited:
            self._bind_owners(now)
        self._settle(now)

    def stopped(self, changed: Iterable[Process], now: float) -> None:
        """Take note of agents suspended by a signal, or continued."""
        for p in changed:
            said = "yes" if p.stopped else "no"
            for agent, session in self._with(Kind.OWNER, str(p.pid)):
                self._join(agent, Event(Kind.STOPPED, session, now, str(p.pid), said, source="process"))
        self._settle(now)

    def _with(self, kind: Kind, key: str) -> list[tuple[Agent, str]]:
        held = [k for k, s in self.sessions.items() if s.get(kind, key)]
        return [(self.agents[agent], session) for agent, session in held]

    def _exited(self, p: Process, now: float) -> None:
        key = str(p.pid)
        for kind in (Kind.OWNER, Kind.ATTACHED):
            for agent, ident in self._with(kind, key):
                self._join(agent, Event(Kind.GONE, ident, now, key, "exit", source="process"))
        for (name, ident), held in list(self.sessions.items()):
            for span in list(held.every(Kind.OPENED)):
                if span.word == "process" and span.text == key:
                    closed = Event(Kind.CLOSED, ident, now, span.key, "process", source="process")
                    self._join(self.agents[name], closed)

    def _bind_owners(self, now: float) -> None:
        for (name, ident), session in list(self.sessions.items()):
            self._bind(self.agents[name], ident, session, now)

    def _bind(self, agent: Agent, ident: str, session: Session, now: float) -> None:
        """Find the process of a session whose records do not tell it, and what runs below it."""
        v = view(session)
        cwd = session.get(Kind.FACT, "cwd")
        opened = max((e.at for e in session.every(Kind.ATTACHED)), default=0.0)
        if v.gone and opened > v.gone.at:
            self._find_owner(agent, session, opened, now)
        elif v.owner is None and (v.last or cwd):
            self._find_owner(agent, session, v.began or (cwd.at if cwd else 0.0), now)
        v = view(self.sessions[agent.name, ident])
        if v.owner and v.gone is None:
            self._note_tools(agent, ident, int(v.owner.key), now)

    def _find_owner(self, agent: Agent, session: Session, began: float, now: float) -> None:
        owners = [p for p in self.table.all() if agent.owns(p, session) and p.created <= began + SLACK]
        if not owners:
            return
        p = max(owners, key=lambda p: p.created)
        self._join(agent, Event(Kind.OWNER, session.id, began, str(p.pid), number=p.created, source="process"))
        role = agent.role(p)
        if role:
            self._join(agent, Event(Kind.FACT, session.id, began, "role", role, source="process"))
        if agent.single:
            self._leave_others(agent, session.id, str(p.pid), now)
        self._leave_run(agent, p.pid, now)

    def _leave_others(self, agent: Agent, ident: str, pid: str, now: float) -> None:
        """Note that the process of a session has left those that it ran before."""
        for other, session in self._with(Kind.OWNER, pid):
            if other is agent and session != ident:
                self._join(agent, Event(Kind.GONE, session, now, pid, "left", source="another session"))

    def _note_run(self, p: Process, now: float) -> None:
        """Note a headless run whose records are not there yet, or never will be."""
        for agent in self.agents.values():
            if agent.main(p) and agent.role(p) is Role.MACHINE and not self._with(Kind.OWNER, str(p.pid)):
                run, at = f"run:{p.pid}", min(p.created, now)
                for event in (
                    Event(Kind.FACT, run, at, "role", Role.MACHINE, source="process"),
                    Event(Kind.OWNER, run, at, str(p.pid), number=at, source="process"),
                    Event(Kind.PROMPT, run, at, word="user", turn=p.identity, source="headless run"),
                ):
                    self._join(agent, event)

    def _note_resumed(self, p: Process) -> None:
        """Note that a process was started to go on with a session: it has it loaded."""
        for agent in self.agents.values():
            mine = [s for (name, _), s in self.sessions.items() if name == agent.name]
            ident = agent.resumes(p, mine)
            if (agent.name, ident) in self.sessions and agent.owns(p, self.sessions[agent.name, ident]):
                owner = Event(Kind.OWNER, ident, p.created, str(p.pid), number=p.created, source="process")
                self._join(agent, owner)

    def _leave_run(self, agent: Agent, pid: int, now: float) -> None:
        """Give up the stand-in for a headless run: its own session is known."""
        if (agent.name, f"run:{pid}") in self.sessions:
            gone = Event(Kind.GONE, f"run:{pid}", now, str(pid), "left", source="its session is known")
            self._join(agent, gone)

    def _note_tools(self, agent: Agent, ident: str, owner: int, now: float) -> None:
        """Note whether tool processes run below an owner, and which call each of them belongs to."""
        session = self.sessions[agent.name, ident]
        below = list(self.table.below(owner))
        held = session.get(Kind.ALONE)
        said = "no" if any(agent.tool(p) for p in below) else "yes"
        if held is None or held.word != said:
            at = now if held else 0.0
            self._join(agent, Event(Kind.ALONE, ident, at, word=said, source="process"))
        for span in view(session).open("escalation", "tool"):
            process = next((p for p in below if runs(p, span)), None)
            key = f"process:{span.key}"
            if process and session.get(Kind.OPENED, key) is None:
                self._join(agent, Event(Kind.OPENED, ident, max(process.created, span.at), key, "process",
                                        text=str(process.pid), source="process"))

    # -- deciding -----------------------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Decide anew what has lapsed."""
        self._touched |= {key for key, verdict in self.verdicts.items() if verdict.until <= now}
        self._settle(now)

    @property
    def due(self) -> float:
        """Return when the next verdict lapses; infinity if none does."""
        return min((v.until for v in self.verdicts.values()), default=inf)

    def refold(self, now: float) -> None:
        """Read everything anew: the clock was set back, and times from before mean nothing now."""
        self._files.clear()
        self.sessions = {k: s for k, s in self.sessions.items() if self.verdicts.get(k)}
        for key in list(self.sessions):
            self.sessions[key] = replace(self.sessions[key], registers={})
        self.sweep(now)

    def _settle(self, now: float) -> None:
        """Decide all touched sessions; a child's verdict is evidence for its parent."""
        while self._touched:
            key = min(self._touched, key=lambda k: (self.sessions[k].fact("parent") == "", k)
                      if k in self.sessions else (False, k))
            self._touched.discard(key)
            session = self.sessions.get(key)
            if session is None:
                continue
            self._bind(self.agents[key[0]], key[1], session, now)
            self._touched.discard(key)
            session = self.sessions[key]
            verdict = decide(session, now, self.since)
            self.verdicts[key] = verdict
            parent = session.fact("parent")
            if parent:
                for event in lift(session, verdict, parent):
                    self._join(self.agents[key[0]], event)

    # -- showing ------------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Return all sessions that are known by more than a title, most urgent first."""
        rows = [self._row(key, verdict) for key, verdict in self.verdicts.items() if self._known(key)]
        return sorted(rows, key=urgency)

    def _known(self, key: Key) -> bool:
        session = self.sessions.get(key)
        return session is not None and any(k is not Kind.FACT for k, _ in session.registers)

    def _row(self, key: Key, verdict: Verdict) -> Row:
        session = self.sessions[key]
        tokens = session.fact("tokens")
        return Row(
            agent=key[0], session=key[1], verdict=verdict, role=Role(session.fact("role") or Role.PERSON),
            project=PurePath(session.fact("cwd").replace("\\", "/")).name,
            title=session.fact("name") or session.fact("title"), model=session.fact("model"),
            tokens=int(tokens) if tokens else None, seen=matter(key, verdict) in self.seen,
            blind=self.agents[key[0]].blind,
        )

    def snapshot(self, now: float) -> Snapshot:
        """Return all that is shown."""
        rows = tuple(self.rows())
        state, calm = collapse(rows)
        return Snapshot(now, state, rows, tuple(self.trouble()), calm)

    def trouble(self) -> Iterator[str]:
        """Yield what is wrong with the looking, in plain words."""
        for name, why in sorted(self.tally.broken.items()):
            yield f"{PurePath(name).name}: {why}"

    def mark_seen(self, agent: str, session: str) -> None:
        """Remember that the user has looked at a session's hand-back."""
        verdict = self.verdicts.get((agent, session))
        if verdict and verdict.state in (State.YOUR_TURN, State.STALLED):
            self.seen.add(matter((agent, session), verdict))

    def hot(self) -> set[str]:
        """Return the files to look at often: those of sessions that are not idle."""
        awake = {key for key, verdict in self.verdicts.items() if verdict.state is not State.IDLE}
        return {path for path, f in self._files.items() if any((f.agent.name, s) in awake for s in f.told)}


def runs(p: Process, span: Event) -> bool:
    """Tell whether a process is that of a call: by its environment, else by the command in its arguments."""
    call = (p.environ or {}).get("CODEX_TOOL_CALL_ID")
    if call:
        return call == span.key
    started_since = p.created >= span.at - SLACK
    return bool(span.text) and started_since and any(span.text in argument for argument in p.cmdline)


def matter(key: Key, verdict: Verdict) -> str:
    """Name what a verdict is about, for marks that must hold until something new is said."""
    turn = verdict.turn or f"{verdict.since:.3f}"
    return f"{key[0]}/{key[1]}/{turn}/{verdict.state}"


def why(session: Session) -> str:
    """Return the evidence behind a session's verdict in a few words."""
    event = claim(session).event
    return f"{event.source or event.kind}" if event else "no evidence"
