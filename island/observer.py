"""From hints to verdicts: look at files, read records, fold events, decide. Shell.

Synchronous, and told the time: whoever drives it (the running program, a replay) owns the clock. It decides
nothing itself; what a state is stands in `claims` and `leases`, what a record means in `agents`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from glob import escape
from pathlib import PurePath

from island.agents import AGENTS
from island.agents.base import UNMARKED, Agent, Shape, Source, contained, shown
from island.bindings import Bindings
from island.hooks.records import HOME, STATUS
from island.model import AFRESH, KEYLESS, Event, Kind, Process, Record, Row, Snapshot, gone
from island.rules import collapse
from island.sessions import Sessions
from island.sources.databases import LOG, database
from island.sources.files import Follower
from island.sources.followed import Followed, replaced
from island.sources.processes import Change, Table
from island.sources.projects import folders
from island.sources.sweep import matcher, sweep
from island.view import is_copy, view

#: Files older than this when first seen are not read: no lease is longer.
HORIZON = 12 * 3600.0

#: Seconds between looks for what is long over, so that memory stays flat.
PRUNE = 600.0

#: A file that changed is likely to change again within this time: a watcher may be late on new folders.
WARM = 5.0

#: What a history file said about the turn is forgotten when it is rewritten; the rest came from elsewhere.
KEPT = frozenset({Kind.OWNER, Kind.GONE, Kind.LIVE, Kind.ATTACHED, Kind.STOPPED, Kind.ALONE, Kind.FACT})

#: Sources that tell of sessions as they are, not of what has just happened.
WHOLE = frozenset({Shape.DATABASE, Shape.DOCUMENT})


@dataclass(slots=True)
class Tally:
    """What went wrong or was not understood, by agent: shown, never guessed at."""

    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)
    unread: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)


class Observer:
    """All evidence of all agents. homes: the folder of each, and under HOME that of the hook status files, if any."""

    def __init__(self, homes: Mapping[str, str], table: Table, since: float, *,
                 agents: Mapping[str, Agent] = AGENTS,
                 folders: Callable[[Process], Iterable[str]] = folders) -> None:
        self.tally = Tally()
        agents = {name: contained(agent, self._failed) for name, agent in agents.items()}
        self.sessions = Sessions(agents, since)
        self._table = table
        self._bindings = Bindings(self.sessions, table)
        self._folders = folders
        self.projects: Mapping[str, tuple[Agent, Source]] = {}  # project files of the agents that run
        self._files: dict[str, Followed] = {}
        self._doubted: set[str] = set()
        self._looked_at = self._pruned_at = 0.0
        self._homes = homes
        sources = [(agent, source) for agent in agents.values() for source in self._read_of(agent)]
        self._sources = [(agent, source, matcher(self._patterns(agent, source)[:1])) for agent, source in sources
                         if not source.project]

    def _read_of(self, agent: Agent) -> tuple[Source, ...]:
        """Return an agent's own sources, and its hooks' status files if they are to be read."""
        return (*agent.sources, *([STATUS[agent.name]] if agent.name in STATUS and HOME in self._homes else ()))

    def _patterns(self, agent: Agent, source: Source) -> tuple[str, ...]:
        home = self._homes[HOME if source is STATUS.get(agent.name) else agent.name]
        pattern = f"{escape(home)}/{source.pattern}"
        return (pattern, pattern + LOG) if source.shape is Shape.DATABASE else (pattern,)

    @property
    def patterns(self) -> tuple[str, ...]:
        """Return where files lie that may matter now."""
        found = (pattern for agent, source, _ in self._sources if not replaced(source, self._homes[agent.name])
                 for pattern in self._patterns(agent, source))
        return (*found, *map(escape, self.projects))

    # -- what the outside says ------------------------------------------------------------------------------

    def sweep(self, now: float) -> None:
        """Look at every file that may matter, whatever hints said: the safety net."""
        found = sweep(self.patterns, now - HORIZON)
        self.changed({f.path for f in found} | self._files.keys(), now)

    def changed(self, paths: Collection[str], now: float) -> None:
        """Look at files that may have changed."""
        wanted = set(map(database, paths))
        while wanted:
            for path in sorted(wanted):
                followed = self._files.get(path) or self._follow(path)
                if followed:
                    self._look(path, followed, now)
            wanted, self._doubted = self._doubted, set()
        self._settle(now)

    def processes_changed(self, change: Change, now: float) -> None:
        """Take note of processes that started or ended."""
        self._note_projects(change, now)
        self._bindings.changed(change, now)
        self._settle(now)

    def _note_projects(self, change: Change, now: float) -> None:
        """Follow the project files of the agents that run, and of no others."""
        agents = [a for a in self.sessions.agents.values() if any(source.project for source in a.sources)]
        if any(agent.main(p) for p in (*change.started, *change.exited) for agent in agents):
            before, self.projects = self.projects, {
                str(PurePath(folder, source.pattern)): (agent, source)
                for agent in agents for p in self.running(agent)
                for folder in self._folders(p) for source in agent.sources if source.project}
            fresh = sweep(map(escape, self.projects.keys() - before.keys()), now - HORIZON)
            self.changed({file.path for file in fresh}, now)

    def stopped(self, changed: Iterable[Process], now: float) -> None:
        """Take note of agents suspended by a signal, or continued."""
        self._bindings.stopped(changed, now)
        self._settle(now)

    def titled(self) -> set[int]:
        """Return the processes of which the titles of their terminals tell something."""
        return self._of(agent for agent in self.sessions.agents.values() if agent.title)

    def screened(self) -> set[int]:
        """Return the processes of which their screens tell what nothing else does."""
        return self._of(agent for agent in self.sessions.agents.values() if agent.dialogs)

    def _of(self, agents: Iterable[Agent]) -> set[int]:
        return {p.pid for agent in agents for p in self.running(agent)}

    def running(self, agent: Agent) -> list[Process]:
        """Return an agent's own processes."""
        return [p for p in self._table.all() if agent.main(p)]

    def terminals(self, titles: Mapping[int, Collection[str]], screens: Mapping[int, str], now: float) -> None:
        """Take note of what terminals show, by process: the titles that may be its own, and the text of its screen."""
        for agent in self.sessions.agents.values():
            read = agent.title
            for pid in self._of([agent]) if read or agent.dialogs else ():
                words = {read(title) for title in titles.get(pid, ())} - {""} if read else set()
                words = words - {UNMARKED} or words  # another window's, if there are several
                self._bindings.shown(agent, pid, "title", words.pop() if len(words) == 1 else "", now)
                self._bindings.shown(agent, pid, "screen", shown(agent, screens.get(pid, "")), now)
        self._settle(now)

    def tick(self, now: float) -> None:
        """Decide anew what has lapsed, and now and then forget what is long over."""
        self.sessions.lapse(now)
        self._settle(now)
        if now > self._pruned_at + PRUNE:
            self._pruned_at = now
            self._forget_old(now - HORIZON)

    def _forget_old(self, before: float) -> None:
        awake = self.sessions.awake()
        for agent, session in self.sessions.all():
            newest = max((e.at for e in session.events()), default=0.0)
            v = view(session)
            lives = v.owner is not None and v.gone is None
            if newest < before and not lives and (agent.name, session.id) not in awake:
                self.sessions.drop(agent, session.id)
        kept = self.sessions.held.keys()
        self._files = {path: f for path, f in self._files.items()
                       if f.looked_at > before or any((f.agent.name, s) in kept for s in f.told)}

    def refold(self, now: float) -> None:
        """Read everything anew: the clock was set back, and times from before mean nothing now."""
        for followed in self._files.values():
            followed.anew()
        for agent, session in self.sessions.all():
            self.sessions.keep_only(agent, session.id)
        self.sessions.since = min(self.sessions.since, now)
        self._bindings.retell(now)
        self.sweep(now)

    def _failed(self, what: str, error: Exception) -> None:
        self.tally.broken[what] = f"{type(error).__name__}: {error}"

    def _settle(self, now: float) -> None:
        self.sessions.settle(now, lambda agent, session: self._bindings.bind(agent, session, now))

    # -- looking --------------------------------------------------------------------------------------------

    def wants(self, path: str) -> bool:
        """Tell whether a hint at this path is of use."""
        path = database(path)
        known = path in self._files or path in self.projects
        return known or any(matches(path) for _, _, matches in self._sources)

    def hot(self) -> set[str]:
        """Return the files to look at often: of sessions that are not idle, what has just changed, project files."""
        awake = self.sessions.awake()
        hot = [f for f in self._files.values() if f.source.shape is not Shape.PRESENCE
               and (f.looked_at > self._looked_at - WARM or any((f.agent.name, s) in awake for s in f.told))]
        logs = {f.path + LOG for f in hot if f.source.shape is Shape.DATABASE}
        return {f.path for f in hot} | logs | self.projects.keys()

    def _follow(self, path: str) -> Followed | None:
        found = self.projects.get(path) or next(
            ((a, s) for a, s, matches in self._sources if matches(path) and not replaced(s, self._homes[a.name])), None)
        if found:
            self._files[path] = Followed(*found, path)
        return self._files.get(path)

    def _look(self, path: str, followed: Followed, now: float) -> None:
        look = followed.looker.look()
        if look.records or look.restart:
            followed.looked_at = self._looked_at = now
        if look.error:
            self.tally.broken[path] = look.error
        else:
            self.tally.broken.pop(path, None)
        if look.gone:
            self._removed(path, followed, now)
        elif look.restart and isinstance(followed.looker, Follower):
            self._reread(followed, followed.looker, now)
        else:
            self._read(followed, look.records, now)

    def _read(self, followed: Followed, records: Iterable[Record], now: float) -> None:
        known = set(followed.told)
        for record in records:
            self._take(followed, record, now)
        for ident in followed.told.keys() - known if followed.source.shape in WHOLE else ():
            self._bindings.first_seen(followed.agent, self.sessions.of(followed.agent, ident), now)

    def _reread(self, followed: Followed, file: Follower, now: float) -> None:
        """Read a file from its end, until every register that matters is found."""
        for ident in followed.told if not followed.source.side else ():
            self._doubt(followed, ident)
        followed.told.clear()
        head = file.head() if followed.source.head else None
        if head:
            self._take(followed, head, now)
        for record in file.backwards():
            if any(self._enough(followed.agent, e, now) for e in self._take(followed, record, now)):
                break
        for ident in followed.told:
            self._bindings.first_seen(followed.agent, self.sessions.of(followed.agent, ident), now)

    def _doubt(self, followed: Followed, ident: str) -> bool:
        """Forget what histories told of a session; its other ones are read anew at the next look, if any."""
        self.sessions.keep_only(followed.agent, ident, KEPT)
        others = [(path, other) for path, other in self._files.items()
                  if other is not followed and ident in other.told
                  and (other.source is followed.source or other.source.side)]
        for _, other in others:
            other.anew()
        self._doubted |= {path for path, _ in others}
        return any(other.source is followed.source for _, other in others)

    def _enough(self, agent: Agent, event: Event, now: float) -> bool:
        """Tell whether nothing before this event can matter: its turn or conversation began here, or it is too old."""
        if 0 < event.at < now - HORIZON:
            return True
        session = self.sessions.of(agent, event.session)
        if event.key == AFRESH:
            return session.fact("model") != ""
        if event.kind is not Kind.PROMPT or is_copy(session, event):
            return False
        return event.key != KEYLESS or session.get(Kind.PROGRESS, KEYLESS) is not None

    def _removed(self, path: str, followed: Followed, now: float) -> None:
        del self._files[path]
        if followed.source.removed:
            for told in list(followed.told.values()):
                self._fold(followed.agent, followed.source.removed(told, now), now)
        elif followed.source.shape is Shape.LINES and not followed.source.side:
            for ident in followed.told:
                if not self._doubt(followed, ident):  # archived or deleted: it is no session of today any more
                    self.sessions.drop(followed.agent, ident)

    # -- reading --------------------------------------------------------------------------------------------

    def _take(self, followed: Followed, record: Record, now: float) -> list[Event]:
        """Read one record; one that cannot be read is counted and stops nobody."""
        agent = followed.agent
        try:
            events = list(followed.source.read(followed.headed(record)))
        except ValueError:
            self.tally.unread[agent.name, followed.source.pattern] += 1
            return []
        except Exception as error:  # noqa: BLE001 - a fault in one reader must not end the others
            self._failed(f"{agent.name} reader", error)
            return []
        self.tally.unknown.update((agent.name, e.word) for e in events if e.kind is Kind.UNKNOWN)
        known = [e for e in events if e.kind is not Kind.UNKNOWN]
        self._note_told(followed, known, now)
        return self._fold(agent, known, now)

    def _note_told(self, followed: Followed, events: Iterable[Event], now: float) -> None:
        """Note of which sessions a file tells. A live record that turns to another has left the first."""
        for event in events:
            if event.kind is not Kind.OWNER:
                followed.told.setdefault(event.session, event)
                continue
            for old in [e for e in followed.told.values() if e.kind is Kind.OWNER and e.session != event.session]:
                del followed.told[old.session]
                self.sessions.join(followed.agent, gone(old.session, now, old.key, "left", "live record moved on"))
            followed.told[event.session] = event

    def _fold(self, agent: Agent, events: Iterable[Event], now: float) -> list[Event]:
        folded = []
        for raw in events:
            event = _not_from_the_future(raw, now)
            if event.kind is Kind.RUN:
                self._bindings.run_told(agent, event, now)
                continue
            if event.kind is Kind.ATTACHED:
                event = self._bindings.window(agent, event, now)
            self.sessions.join(agent, event)
            if event.kind is Kind.OWNER:
                self._bindings.told(agent, event, now)
            if event.kind is Kind.OPENED and event.word == "process":
                self._bindings.left_running(agent, event, now)
            folded.append(event)
        return folded

    # -- showing --------------------------------------------------------------------------------------------

    def snapshot(self, now: float, trouble: tuple[str, ...] = ()) -> Snapshot:
        """Return all that is shown; `trouble` is what the caller knows to be wrong with the watch."""
        rows = tuple(self._rows())
        state, calm = collapse(rows)
        return Snapshot(now, state, rows, (*trouble, *self._trouble()), calm)

    def _rows(self) -> Iterator[Row]:
        """Yield the sessions; one with a file that can no longer be read says that it is not up to date."""
        unread = {(f.agent.name, ident): why for path, why in self.tally.broken.items()
                  if (f := self._files.get(path)) for ident in f.told}
        for row in self.sessions.rows():
            why = unread.get((row.agent, row.session))
            yield replace(row, blind=(*row.blind, f"what it wrote last: its file is {why}")) if why else row

    def _trouble(self) -> Iterator[str]:
        for name, why in sorted(self.tally.broken.items()):
            yield f"{PurePath(name).name}: {why}"


def _not_from_the_future(event: Event, now: float) -> Event:
    """Take what a record from the future says for said now; when a process started is then not known."""
    if event.at <= now and not (event.kind is Kind.OWNER and event.number > now):
        return event
    number = 0.0 if event.kind is Kind.OWNER and event.number > now else event.number
    return replace(event, at=min(event.at, now), number=number)
