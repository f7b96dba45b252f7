"""When to interrupt the user. Pure: time is an argument.

One notice per turn key and reason, after a short dwell; none for what was true at launch, none for old
evidence, none for an interrupt; withdrawn when the wait is over; merged, without losing any, when many come
at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf

from island.model import Reason, Role, Row, State, Sure

#: Seconds that a wait must last before it is announced. Who watches begins to type within them; a queued
#: prompt, a goal's next turn or a blocking Stop hook takes the turn back; an automatic review answers a
#: permission. What is only inferred waits longer.
DWELL: Mapping[Sure, float] = {Sure.TOLD: 1.5, Sure.INFERRED: 2.5}

#: Evidence older than this when it is first seen is old: a laptop that wakes must not ring for Friday.
FRESH = 600.0

#: More new waits than this at one moment become one notice.
MERGE_ABOVE = 3

#: So many announcements are remembered; what is older is not fresh any more.
REMEMBERED = 5000

MANY = "island/many"

HEADLINES: Mapping[Reason, str] = {
    Reason.FINISHED: "finished: your turn",
    Reason.QUESTION: "asks you a question",
    Reason.PLAN: "shows a plan for you to approve",
    Reason.PERMISSION: "waits for your permission",
    Reason.ERROR: "stopped with an error",
    Reason.LIMIT: "stopped at a usage limit",
    Reason.LOGIN: "needs you to log in",
}


@dataclass(frozen=True, slots=True)
class Notice:
    """One desktop notification: `key` names it for replacing and withdrawing.

    key: "agent/session", or MANY and more; sessions: the ids it speaks for (more than one: a merged notice).
    """

    key: str
    agent: str
    session: str
    reason: Reason
    title: str
    body: str = ""
    turn: str = ""
    sessions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The wait is over: take the notice with this key away."""

    key: str
    session: str


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of one session, by what it is about; `ripe` is when it may be announced."""

    about: str
    row: Row
    ripe: float


@dataclass(frozen=True, slots=True)
class Book:
    """What has been said: since when island looks, what was announced, what dwells, what is on the screen.

    shown: session key -> (what the notice is about, key of the notice on the screen).
    """

    since: float
    announced: Mapping[str, None] = field(default_factory=dict)
    dwelling: Mapping[str, Wait] = field(default_factory=dict)
    shown: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def due(self) -> float:
        """Return when the next dwell is over; infinity if none runs."""
        return min((w.ripe for w in self.dwelling.values()), default=inf)


def key_of(row: Row) -> str:
    """Return the key of a session's notice."""
    return f"{row.agent}/{row.session}"


def about(row: Row) -> str:
    """Return what a wait is about: one turn and reason, over re-reads, forks and resumes."""
    verdict = row.verdict
    turn = verdict.turn or f"{row.session}@{verdict.since:.3f}"
    return f"{row.agent}/{turn}/{verdict.reason}"


def _waits(row: Row) -> bool:
    mine = row.role is Role.PERSON and not row.seen
    return mine and row.verdict.state is State.YOUR_TURN and row.verdict.reason is not Reason.INTERRUPTED


def advance(book: Book, rows: Iterable[Row], now: float) -> tuple[Book, tuple[Notice | Withdraw, ...]]:
    """Return the book after these rows, and what must change on the screen."""
    book = replace(book, since=min(book.since, now))  # a clock that was set back must not silence what comes
    waiting = {key_of(row): row for row in rows if _waits(row)}
    book, withdrawn = _withdraw(_dwell(book, waiting, now), waiting)
    ripe = [w for _, w in sorted(book.dwelling.items()) if w.ripe <= now]
    return _announce(book, ripe), withdrawn + _spoken(ripe)


def _withdraw(book: Book, waiting: Mapping[str, Row]) -> tuple[Book, tuple[Withdraw, ...]]:
    """Take away the notices whose wait is over, but leave those that another of the same session will replace."""
    def stands(key: str, matter: str) -> bool:
        return key in waiting and (about(waiting[key]) == matter or key in book.dwelling)

    still = {key: on for key, on in book.shown.items() if stands(key, on[0])}
    on_screen = {notice for _, notice in still.values()}
    gone = {on[1]: key for key, on in sorted(book.shown.items()) if on[1] not in on_screen}
    withdrawn = tuple(Withdraw(notice, key.partition("/")[2]) for notice, key in gone.items())
    return replace(book, shown=still), withdrawn


def _dwell(book: Book, waiting: Mapping[str, Row], now: float) -> Book:
    dwelling, old = {}, []
    for key, row in waiting.items():
        matter, held = about(row), book.dwelling.get(key)
        if matter in book.announced:
            continue
        if row.verdict.since < max(book.since, now - FRESH):
            old.append(matter)
        elif held and held.about == matter:
            dwelling[key] = Wait(matter, row, min(held.ripe, now + DWELL[row.verdict.sure]))
        else:
            dwelling[key] = Wait(matter, row, now + DWELL[row.verdict.sure])
    return replace(book, announced=_remember(book.announced, old), dwelling=dwelling)


def _remember(announced: Mapping[str, None], matters: Iterable[str]) -> Mapping[str, None]:
    """Add what was announced, and forget the oldest of too many."""
    new = dict.fromkeys(matters)
    if not new:
        return announced
    kept = {**announced, **new}
    return dict(islice(kept.items(), max(0, len(kept) - REMEMBERED), None))


def _announce(book: Book, ripe: list[Wait]) -> Book:
    many = _many([w.row for w in ripe]) if len(ripe) > MERGE_ABOVE else ""
    keys = {key_of(w.row): (w.about, many or key_of(w.row)) for w in ripe}
    return replace(
        book,
        announced=_remember(book.announced, [w.about for w in ripe]),
        dwelling={k: w for k, w in book.dwelling.items() if k not in keys},
        shown={**book.shown, **keys},
    )


def _spoken(ripe: list[Wait]) -> tuple[Notice, ...]:
    if len(ripe) > MERGE_ABOVE:
        return (_merged([w.row for w in ripe]),)
    return tuple(_notice(w.row) for w in ripe)


def _notice(row: Row) -> Notice:
    reason = row.verdict.reason
    title = f"{row.label or row.agent} {HEADLINES[reason]}"
    return Notice(key_of(row), row.agent, row.session, reason, title, row.project, row.verdict.turn, (row.session,))


def _many(rows: list[Row]) -> str:
    """Name a merged notice by its first session, so that the next one does not take its place."""
    return f"{MANY}:{rows[0].session}"


def _merged(rows: list[Row]) -> Notice:
    lines = (f"{row.project or row.session}: {row.label or row.agent} {HEADLINES[row.verdict.reason]}" for row in rows)
    first = rows[0]
    title = f"{len(rows)} sessions need you"
    return Notice(_many(rows), first.agent, first.session, first.verdict.reason, title, "\n".join(lines),
                  sessions=tuple(row.session for row in rows))
