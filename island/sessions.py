"""All sessions and their verdicts: joins events, decides what was touched, shows rows. Pure, but for keeping."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import reduce
from itertools import islice, product
from math import inf
from pathlib import PurePath
from typing import NamedTuple

from island.agents.base import Agent
from island.claims import claim
from island.model import ANY, HOOK, SPAN_EDGES, Event, Kind, Reason, Role, Row, Session, State, Verdict
from island.news import silent
from island.rules import LIFTED, decide, fold, lift, outdated, prune, urgency
from island.view import seen_in, view

Key = tuple[str, str]  # agent, session

#: What says no more of a session than that somebody heard of it. Hooks do not, either: runs that nobody wrote down
#: have them, too.
HEARSAY = frozenset({Kind.FACT, Kind.GONE, Kind.CLOSED, Kind.ANSWER})

#: So much of what was seen is remembered: more than can wait at a time.
MOST_SEEN = 500

#: What cannot be seen where hooks that were heard once fell silent.
NO_NEWS = "hooks told nothing of the last turn: the state rests on the other sources"


class _Made(NamedTuple):
    """A row, and what it was made of."""

    session: Session
    verdict: Verdict
    beside: tuple[bool, float]
    row: Row | None


class Sessions:
    """The sessions of all agents. `since`: a stall that began before it is old news."""

    def __init__(self, agents: Mapping[str, Agent], since: float) -> None:
        self.agents = agents
        self.since = since
        self.held: dict[Key, Session] = {}
        self.verdicts: dict[Key, Verdict] = {}
        self._made: dict[Key, _Made] = {}
        self.seen: Mapping[str, None] = {}  # what the user has looked at, oldest first; replaced when it changes
        self._touched: set[Key] = set()
        self._hooks_heard: dict[str, float] = {}  # by agent, when first

    def of(self, agent: Agent, ident: str) -> Session:
        """Return a session; one that was never heard of is empty."""
        return self.held.get((agent.name, ident)) or Session(agent.name, ident)

    def join(self, agent: Agent, event: Event) -> None:
        """Join an event into its session."""
        before = self.of(agent, event.session)
        if outdated(event, before.get(Kind.PROMPT)):
            return
        if event.key.startswith(HOOK):
            self._hooks_heard[agent.name] = min(event.at, self._hooks_heard.get(agent.name, inf))
        after = fold(before, event)
        if after is not before:
            self._put(agent, prune(after) if event.kind is Kind.PROMPT else after)

    def keep_only(self, agent: Agent, ident: str, kinds: frozenset[Kind] = frozenset()) -> None:
        """Forget a session's registers but for these kinds: what told the others has changed."""
        session = self.of(agent, ident)
        self._put(agent, session.only(lambda e: e.kind in kinds or (bool(kinds) and e.source == LIFTED)))

    def drop(self, agent: Agent, ident: str) -> None:
        """Forget a session altogether."""
        key = (agent.name, ident)
        self.held.pop(key, None)
        self.verdicts.pop(key, None)
        self._made.pop(key, None)
        self._touched.discard(key)

    def _put(self, agent: Agent, session: Session) -> None:
        self.held[agent.name, session.id] = session
        self._touched.add((agent.name, session.id))

    def all(self, agent: Agent | None = None) -> list[tuple[Agent, Session]]:
        """Return all sessions, or one agent's, with their agents."""
        return [(self.agents[name], s) for (name, _), s in self.held.items() if agent is None or name == agent.name]

    def having(self, kind: Kind, key: str) -> list[tuple[Agent, Session]]:
        """Return the sessions that hold an event of that kind for that key."""
        return [(agent, session) for agent, session in self.all() if session.get(kind, key)]

    # -- deciding -------------------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        """Return when the next verdict lapses; infinity if none does."""
        return min((v.until for v in self.verdicts.values()), default=inf)

    def lapse(self, now: float) -> None:
        """Have what has lapsed decided anew."""
        self._touched |= {key for key, verdict in self.verdicts.items() if verdict.until <= now}

    def settle(self, now: float, bind: Callable[[Agent, Session], None]) -> None:
        """Decide all touched sessions, after binding them to processes. A child's verdict tells its parent."""
        while self._touched:
            name, ident = key = min(self._touched, key=self._children_first)
            agent = self.agents[name]
            bind(agent, self.held[key])
            self._touched.discard(key)
            session = self.held[key]
            self.verdicts[key] = verdict = decide(session, now, self.since)
            parent = session.fact("parent")
            if parent not in ("", ident):
                self._put_lifted(agent, parent, ident, lift(session, verdict, parent))

    def _put_lifted(self, agent: Agent, parent: str, child: str, lifted: Collection[Event]) -> None:
        """Replace what a child's verdict meant to its parent."""
        before = self.of(agent, parent)
        slots = product(SPAN_EDGES, (child, f"{child}:ask"))
        held = {e for slot in slots if (e := before.get(*slot)) and e.source == LIFTED}
        if held != {*lifted}:
            self._put(agent, reduce(Session.put, lifted, before.only(lambda e: e not in held)))

    def _children_first(self, key: Key) -> tuple[bool, Key]:
        return (self.held[key].fact("parent") == "", key)

    # -- showing --------------------------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """Return all sessions of which there is more than hearsay, most urgent first."""
        return sorted(filter(None, map(self._shown, self.verdicts)), key=urgency)

    def _shown(self, key: Key) -> Row | None:
        """Return a session's row, if it matters: made anew only if anything of it has changed."""
        session, verdict = self.held[key], self.verdicts[key]
        beside = (self._is_seen(key), self._hooks_heard.get(key[0], inf))
        made = self._made.get(key)
        if made is None or made.session is not session or made.verdict is not verdict or made.beside != beside:
            row = self._row(key) if self._matters(key) else None
            self._made[key] = made = _Made(session, verdict, beside, row)
        return made.row

    def _matters(self, key: Key) -> bool:
        """Tell whether there is more of a session than hearsay, and more than a start without a turn that is over."""
        session, verdict = self.held[key], self.verdicts[key]
        last, archived = view(session).last, session.get(Kind.FACT, "archived")
        if all(_is_hearsay(event, last) for event in session.events()):
            return False
        put_away = archived is not None and archived.word == "yes" and (last is None or last.at <= archived.at)
        return not put_away and (verdict.reason is not Reason.ENDED or last is not None)

    def _row(self, key: Key) -> Row:
        session, verdict, agent = self.held[key], self.verdicts[key], self.agents[key[0]]
        prompt = session.get(Kind.PROMPT)
        return Row(
            agent=agent.name, session=session.id, verdict=verdict,
            role=Role(session.fact("role") or Role.PERSON), label=agent.label,
            project=PurePath(session.fact("cwd").replace("\\", "/")).name, folder=session.fact("cwd"),
            title=session.fact("name") or session.fact("title"), model=session.fact("model"),
            tokens=_number(session.fact("tokens")), window=_number(session.fact("window")),
            begun=prompt.at if prompt else 0.0, seen=self._is_seen(key),
            blind=(*agent.blind_in(session.fact("version")),
                   *([NO_NEWS] if self.hooks_are_silent(agent, session) else ())),
        )

    def hooks_are_silent(self, agent: Agent, session: Session) -> bool:
        """Tell whether hooks that had been heard told nothing of a session's newest turn."""
        return silent(session, view(session).over, self._hooks_heard.get(agent.name, inf))

    def _is_seen(self, key: Key) -> bool:
        """Tell whether the user knows: it was looked at, or it was the user's own doing."""
        verdict = self.verdicts[key]
        return verdict.reason is Reason.INTERRUPTED or _matter(key, verdict) in self.seen

    def mark_seen(self, key: Key) -> None:
        """Remember that the user has looked at what a session waits for, until it waits for something else."""
        verdict = self.verdicts.get(key)
        if verdict and verdict.state in (State.YOUR_TURN, State.STALLED):
            kept = dict(islice(self.seen.items(), max(0, len(self.seen) - MOST_SEEN), None))
            self.seen = {**kept, _matter(key, verdict): None}

    def unseen(self) -> list[Key]:
        """Return the sessions of the user's own that wait for him, or may, without his having looked at them."""
        return [key for key, verdict in self.verdicts.items() if verdict.state in (State.YOUR_TURN, State.STALLED)
                and not self._is_seen(key) and self.held[key].fact("role") in ("", Role.PERSON)]

    def processes(self, key: Key) -> tuple[int, ...]:
        """Return the living processes in which the user sees a session, likeliest first."""
        return seen_in(self.held[key]) if key in self.held else ()

    def awake(self) -> set[Key]:
        """Return the sessions that are not idle."""
        return {key for key, verdict in self.verdicts.items() if verdict.state is not State.IDLE}


def _number(fact: str) -> int | None:
    return int(fact) if fact.isdecimal() else None


def _is_hearsay(event: Event, last: Event | None) -> bool:
    """Tell whether an event proves no session. Of a turn that hooks alone tell, what was found out is no proof."""
    if event.key.startswith(HOOK):
        return True
    if last and last.key == HOOK:
        return event.source.startswith("process") or event.kind in HEARSAY - {Kind.FACT}
    return last is None and (event.kind in HEARSAY or event.text == ANY)


def _matter(key: Key, verdict: Verdict) -> str:
    turn = verdict.turn or f"{verdict.since:.3f}"
    return f"{key[0]}/{key[1]}/{turn}/{verdict.state}"


def why(session: Session) -> str:
    """Return what decided about a session, in a few words."""
    event = claim(session).event
    return event.source or event.kind.value if event else "no evidence"
