"""Which process runs which session: told by records, found by what the agent's row knows, or unknown.

Puts what the processes say into the sessions' registers; decides nothing. Shell, by way of the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from island.agents.base import UNMARKED, Agent
from island.calls import SLACK, told_by
from island.model import HOOK, PROCESS, Event, Kind, Process, Role, Session, gone
from island.runs import Run, note, processes
from island.sessions import Sessions
from island.sources.processes import Change, Table
from island.view import ASKS, View, view

#: Records older than this at first sight, and no process that could have written them: nobody runs it.
OLD = 10.0

#: A launcher has started the program itself within so many seconds: up to 3 were measured, under load.
LAUNCH = 10.0

NOBODY = "nobody"  # stands for a process that had ended before anybody looked


class Bindings:
    """The processes behind the sessions."""

    def __init__(self, sessions: Sessions, table: Table) -> None:
        self._sessions = sessions
        self._table = table
        self._shown: dict[tuple[str, int, str], str] = {}  # by agent, pid, and title or screen
        self._runs: dict[str, dict[str, Run]] = {}  # by agent and the name of the run

    # -- what records tell ----------------------------------------------------------------------------------

    def told(self, agent: Agent, event: Event, now: float) -> None:
        """Check the process that a record names: it may have ended, or its pid may be another's by now."""
        pid = int(event.key)
        if self._table.foreign(event.text):
            return  # what cannot be seen is taken at its word
        if self._table.same(pid, event.text, event.number):
            self._leave_run(agent, pid, event.session, event.at)
            p = self._table.get(pid)
            self._note_stopped(agent, event.session, p, now)
            self._note_role(agent, event.session, p, event.at)
            self._note_folder(agent, event.session, p, event.at)
            self._note_shown(agent, self._sessions.of(agent, event.session), pid, now)
        else:
            self._sessions.join(agent, gone(event.session, now, event.key, "exit", "no such process"))

    def _note_folder(self, agent: Agent, ident: str, p: Process | None, at: float) -> None:
        """Note where a session runs whose records do not tell it, or not yet."""
        if p and p.cwd and not self._sessions.of(agent, ident).fact("cwd"):
            self._sessions.join(agent, Event(Kind.FACT, ident, at, "cwd", p.cwd, source=PROCESS))

    def left_running(self, agent: Agent, event: Event, now: float) -> None:
        """Check a process that a record says was left to run: it may have ended before anybody looked."""
        if event.text.isdecimal() and self._table.get(int(event.text)) is None:
            ended = Event(Kind.CLOSED, event.session, now, event.key, event.word, source="no such process")
            self._sessions.join(agent, ended)

    def window(self, agent: Agent, event: Event, now: float) -> Event:
        """Bind a window's mark to the newest window process that was there then."""
        cwd = self._sessions.of(agent, event.session).fact("cwd")
        windows = [p for p in self._table.all() if agent.window(p) and was_there(p, event.at, now)
                   and (not cwd or not p.cwd or p.cwd == cwd)]
        if windows:
            return replace(event, key=str(max(windows, key=lambda p: p.created).pid))
        if self._table.complete:
            self._sessions.join(agent, gone(event.session, now, NOBODY, "exit", "no such window"))
        return replace(event, key=NOBODY)

    def first_seen(self, agent: Agent, session: Session, now: float) -> None:
        """Note that nobody runs a session: its records are old, and there is no process it could be."""
        v = view(session)
        if v.owner or v.last is None or v.last.at > now - OLD or not self._table.complete:
            return
        at = v.last.at
        if not any(agent.owns(p, session) and was_there(p, at, now) for p in self._free(agent, session)):
            owner = Event(Kind.OWNER, session.id, v.last.at, NOBODY, number=0, source=PROCESS)
            self._sessions.join(agent, owner)
            self._sessions.join(agent, gone(session.id, at, NOBODY, "exit", "no process runs it"))

    def run_told(self, agent: Agent, event: Event, now: float) -> None:
        """Take note of what a log says of one start of an agent."""
        note(self._runs.setdefault(agent.name, {}), event)
        for session in self._sessions_of_run(agent, event.session):
            self.bind(agent, session, now)

    def _sessions_of_run(self, agent: Agent, run: str) -> list[Session]:
        return [s for _, s in self._sessions.all(agent) if s.fact("run") == run]

    def _note_asks(self, agent: Agent, session: Session) -> None:
        """Open what the run of a session asks, unless its process answers that by itself."""
        run = self._runs.get(agent.name, {}).get(session.fact("run"))
        if run is None or not run.asks:
            return
        owner = view(session).owner
        p = self._table.get(int(owner.key)) if owner and owner.key.isdecimal() else None
        if p is None or not agent.unasked(p):
            for event in run.asking(self._sessions_of_run(agent, session.fact("run"))):
                self._sessions.join(agent, event)

    def _process_of_run(self, agent: Agent, session: Session) -> Process | None:
        """Return the process of the run that works on a session, if its log tells when it began."""
        runs = self._runs.get(agent.name, {})
        if session.fact("run") not in runs:
            return None
        p = processes(runs, filter(agent.main, self._table.all())).get(session.fact("run"))
        return p if p and agent.owns(p, session) else None

    # -- what processes tell --------------------------------------------------------------------------------

    def changed(self, change: Change, now: float) -> None:
        """Take note of processes that started or ended."""
        for p in change.exited:
            self._exited(p, now)
        for p in change.started:
            self._note_run(p, now)
            self._note_resumed(p, now)
            self._note_window(p, now)
        for agent, session in self._sessions.all() if change.started or change.exited else ():
            if self._sessions.of(agent, session.id).registers:  # binding another may have ended this one
                self.bind(agent, session, now)

    def stopped(self, changed: Iterable[Process], now: float) -> None:
        """Take note of agents suspended by a signal, or continued."""
        for p in changed:
            for agent, session in self._sessions.having(Kind.OWNER, str(p.pid)):
                self._note_stopped(agent, session.id, p, now)

    def _note_stopped(self, agent: Agent, ident: str, p: Process | None, now: float) -> None:
        key = str(p.pid) if p else ""
        held = self._sessions.of(agent, ident).get(Kind.STOPPED, key)
        said = "yes" if p and p.stopped else "no"
        if said != (held.word if held else "no"):
            self._sessions.join(agent, Event(Kind.STOPPED, ident, now, key, said, source="process state"))

    # -- what terminals tell --------------------------------------------------------------------------------

    def shown(self, agent: Agent, pid: int, where: str, word: str, now: float) -> None:
        """Take note of what the title or the screen of a process's terminal says, if that has changed."""
        slot = (agent.name, pid, where)
        if word == UNMARKED:
            word = "idle" if self._shown.get(slot) else ""
        if word == self._shown.get(slot):
            return
        self._shown[slot] = word
        for owning, session in self._sessions.having(Kind.OWNER, str(pid)):
            if owning is agent:
                self._note_shown(agent, session, pid, now)

    def _note_shown(self, agent: Agent, session: Session, pid: int, now: float) -> None:
        for (name, of, where), word in self._shown.items():
            key = f"{where}:{pid}"
            held = session.get(Kind.LIVE, key)
            if (name, of) != (agent.name, pid) or (held and held.word == word):
                continue
            last = view(session).last
            at = min(now, last.at) if last and not held and word in ASKS else now  # it was there before the first look
            live = Event(Kind.LIVE, session.id, at, key, word, text=str(pid), source=f"terminal {where}")
            self._sessions.join(agent, live)

    def retell(self, now: float) -> None:
        """Tell anew what only processes tell: the sessions have forgotten it."""
        self._shown.clear()
        for p in list(self._table.all()):
            self._note_run(p, now)
            self._note_resumed(p, now)

    def _exited(self, p: Process, now: float) -> None:
        key = str(p.pid)
        self._shown = {slot: word for slot, word in self._shown.items() if slot[1] != p.pid}
        for kind in (Kind.OWNER, Kind.ATTACHED):
            for agent, session in self._sessions.having(kind, key):
                held = session.get(kind, key)
                if held and not self._table.foreign(held.text):
                    self._sessions.join(agent, gone(session.id, now, key, "exit", PROCESS))
        for agent, session in self._sessions.all():
            for span in view(session).open("process", "command"):
                if span.text == key:
                    ended = Event(Kind.CLOSED, session.id, now, span.key, span.word, source=PROCESS)
                    self._sessions.join(agent, ended)

    def _note_run(self, p: Process, now: float) -> None:
        """Note a headless run whose records are not there yet, or never will be."""
        for agent in self._sessions.agents.values():
            parent = next((q for q in self._table.all() if q.pid == p.ppid), None)
            if parent and agent.main(parent):
                continue  # a process that is just becoming what its agent started
            if agent.main(p) and agent.role(p) is Role.MACHINE and not self._owned(agent, p.pid):
                run, at = f"run:{p.pid}", min(p.created, now)
                for event in (
                    Event(Kind.FACT, run, at, "role", Role.MACHINE, source=PROCESS),
                    Event(Kind.OWNER, run, at, str(p.pid), number=at, source=PROCESS),
                    Event(Kind.PROMPT, run, at, word="run", turn=p.identity, source="headless run"),
                ):
                    self._sessions.join(agent, event)

    def _note_window(self, p: Process, now: float) -> None:
        """Bind the marks of a window that was there when they were made, but is seen only now."""
        for agent, session in self._sessions.having(Kind.ATTACHED, NOBODY):
            mark = session.get(Kind.ATTACHED, NOBODY)
            if mark and agent.window(p) and was_there(p, mark.at, now):
                self._sessions.join(agent, replace(mark, key=str(p.pid)))

    def _owned(self, agent: Agent, pid: int) -> bool:
        return any(a is agent for a, _ in self._sessions.having(Kind.OWNER, str(pid)))

    def _leave_run(self, agent: Agent, pid: int, ident: str, at: float) -> None:
        """Give up the stand-in for a headless run: its own session is known. Its program may wipe its arguments."""
        role = self._sessions.of(agent, f"run:{pid}").fact("role")
        if role:
            self._sessions.join(agent, Event(Kind.FACT, ident, at, "role", role, source=PROCESS))
        self._sessions.drop(agent, f"run:{pid}")

    def _note_resumed(self, p: Process, now: float) -> None:
        """Note that a process was started to go on with a session: it has it loaded."""
        for agent in self._sessions.agents.values():
            session = self._sessions.of(agent, agent.resumes(p, [s for _, s in self._sessions.all(agent)]))
            if session.registers and agent.owns(p, session):
                self._own(agent, session, p, min(p.created, now), now)

    # -- what is found --------------------------------------------------------------------------------------

    def bind(self, agent: Agent, session: Session, now: float) -> None:
        """Find the process of a session whose records do not tell it, what runs below it, and what it asks."""
        v = view(session)
        began = self._unbound_since(session, v)
        if began:
            self._find_owner(agent, session, began, now)
        self._correct_owner(agent, self._sessions.of(agent, session.id), now)
        self._note_asks(agent, self._sessions.of(agent, session.id))
        v = view(self._sessions.of(agent, session.id))
        if v.owner and v.gone is None and v.owner.key.isdecimal() and not self._table.foreign(v.owner.text):
            for event in told_by(agent, v, list(self._table.below(int(v.owner.key))), now):
                self._sessions.join(agent, event)

    def _unbound_since(self, session: Session, v: View) -> float:
        """Return the moment for whose process is to be looked; 0 if the process is known."""
        loaded = session.get(Kind.FACT, "loaded")
        opened = max((e.at for e in (*session.every(Kind.ATTACHED), loaded) if e), default=0.0)
        if v.gone:
            return opened if opened > v.gone.at else 0.0
        cwd = session.get(Kind.FACT, "cwd")
        by_hooks = v.prompt is None and v.last is not None and v.last.key == HOOK  # perhaps of a run nobody wrote down
        return 0.0 if v.owner else (0.0 if by_hooks else v.began) or (cwd.at if cwd else 0.0)

    def _find_owner(self, agent: Agent, session: Session, began: float, now: float) -> None:
        owners = [p for p in self._free(agent, session) if agent.owns(p, session) and was_there(p, began, now)]
        if owners:
            likely = max(owners, key=lambda p: (
                agent.owns(p, session), not self._launched(agent, p), -self._taken(agent, session, p),
                not self._started_in_turn(agent, p), p.created))
            self._give(agent, session, self._process_of_run(agent, session) or likely, began, now)

    def _correct_owner(self, agent: Agent, session: Session, now: float) -> None:
        """Bind a session to the process of its run, where another had been found by guess."""
        v = view(session)
        if v.owner is None or v.gone or v.owner.source != PROCESS:
            return
        p = self._process_of_run(agent, session)
        if p and v.owner.key != str(p.pid):
            self._sessions.join(agent, gone(session.id, now, v.owner.key, "left", "another run"))
            self._give(agent, session, p, max(v.owner.at, p.created), now)

    def _give(self, agent: Agent, session: Session, p: Process, at: float, now: float) -> None:
        """Note that a process runs a session, and what follows from that."""
        self._own(agent, session, p, at, now)
        self._note_role(agent, session.id, p, at)
        self._note_folder(agent, session.id, p, at)
        if _single(agent, p):
            self._leave_others(agent, str(p.pid), now)
        for pid in (p.pid, p.ppid):  # it may have been started by another of its kind
            self._leave_run(agent, pid, session.id, at)

    def _note_role(self, agent: Agent, ident: str, p: Process | None, at: float) -> None:
        """Note whose run it is, where only the command line of its process tells."""
        role = agent.role(p) if p and not is_child(self._sessions.of(agent, ident)) else None
        if role:
            self._sessions.join(agent, Event(Kind.FACT, ident, at, "role", role, source=PROCESS))

    def _launched(self, agent: Agent, p: Process) -> bool:
        """Tell whether a process only waits for the agent that it has launched."""
        return any(q.ppid == p.pid and agent.main(q) and q.created <= p.created + LAUNCH for q in self._table.all())

    def _started_in_turn(self, agent: Agent, p: Process) -> bool:
        """Tell whether an agent started a process later: another of its kind, or one that still becomes what it is."""
        parents = (q for q in self._table.all() if q.pid == p.ppid and agent.main(q))
        return any(p.created > parent.created + LAUNCH for parent in parents)

    def _taken(self, agent: Agent, session: Session, p: Process) -> int:
        """Rank what a process runs already, if it runs one session at a time: nothing, one that rests, one that works.

        One that rests may be left for another at any time. A child's parent does not count.
        """
        if is_child(session):
            parent = view(self._sessions.of(agent, session.fact("parent")))
            return int(not (parent.owner and parent.gone is None and parent.owner.key == str(p.pid)))
        owned = [s for a, s in self._sessions.having(Kind.OWNER, str(p.pid)) if a is agent and s.id != session.id]
        running = [v for s in owned if (v := view(s)).gone is None] if _single(agent, p) else []
        return max((1 if v.over or v.last is None else 2 for v in running), default=0)

    def _own(self, agent: Agent, session: Session, p: Process, at: float, now: float) -> None:
        started = p.created if p.created <= now else 0.0
        owner = Event(Kind.OWNER, session.id, at, str(p.pid), number=started, source=PROCESS)
        self._sessions.join(agent, owner)
        self._note_stopped(agent, session.id, p, now)
        self._note_shown(agent, self._sessions.of(agent, session.id), p.pid, now)

    def _free(self, agent: Agent, session: Session) -> list[Process]:
        """Return the processes that may be a session's: not those that say themselves what they run."""
        told = {e.key for _, s in self._sessions.all(agent) if s.id != session.id
                for e in s.every(Kind.OWNER) if e.source != PROCESS}
        return [p for p in self._table.all() if str(p.pid) not in told]

    def _leave_others(self, agent: Agent, pid: str, now: float) -> None:
        """Note that a process has left the sessions that it ran before the newest, but for what goes on in them."""
        owned = {s.id: owner for a, s in self._sessions.having(Kind.OWNER, pid)
                 if a is agent and (owner := s.get(Kind.OWNER, pid)) and view(s).gone is None and not is_child(s)}
        newest = max(owned, key=lambda ident: (owned[ident].at, ident), default="")
        for ident in owned.keys() - {newest}:
            v = view(self._sessions.of(agent, ident))
            if v.last is None or v.over:
                self._sessions.join(agent, gone(ident, now, pid, "left", "another session"))

def _single(agent: Agent, p: Process) -> bool:
    return agent.single and not agent.several(p)


def is_child(session: Session) -> bool:
    """Tell whether a session works for another, in that one's process."""
    return session.fact("parent") not in ("", session.id)


def was_there(p: Process, at: float, now: float) -> bool:
    """Tell whether a process had started by then. One that starts in the future tells of a clock set back."""
    return p.created <= at + SLACK or p.created > now + SLACK
