"""When to interrupt the user. Pure: time is an argument.

One notice per turn key and reason, after a short dwell; none for what was true at launch, none for old
evidence, none for an interrupt; withdrawn when the wait is over; merged, without losing any, when many come
at once, or were missed while nobody was to be told.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from math import inf

from island.manner import TONES, Ear, Manner, Sound, Urgency
from island.model import Reason, Role, Row, State, Sure

#: Evidence older than this when it is first seen is old: a laptop that wakes must not ring for Friday.
FRESH = 600.0

#: More new waits than this at one moment become one notice, as do all that were missed while it was quiet.
MERGE_ABOVE, MERGE_MISSED = 3, 1

#: A merged notice names so many sessions, and counts the rest: notices are cut short on every desktop.
MOST_NAMED = 5

#: So many announcements are remembered; what is older is not fresh any more.
REMEMBERED = 5000

#: Whoever slept for longer than a nap (seconds) was away. His agents' connections broke meanwhile, and their errors
#: come one by one while things settle: they are told together.
NAP, SETTLE = 30.0, 10.0

MANY = "island/many"
EAR = Ear()

#: Most pressing first.
ORDER: Mapping[Reason, int] = {reason: place for place, reason in enumerate(TONES)}


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
    urgency: Urgency = Urgency.NORMAL
    sound: Sound = Sound.NONE


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

    shown: session key -> (what the notice is about, key of the notice on the screen); still: nothing is told before
    that; quiet: until when nothing is told, as of the last look, or 0: what ripens meanwhile goes on to dwell;
    hidden: what is on the screen names nothing.
    """

    since: float
    announced: Mapping[str, None] = field(default_factory=dict)
    dwelling: Mapping[str, Wait] = field(default_factory=dict)
    shown: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    still: float = 0.0
    quiet: float = 0.0
    hidden: bool = False

    @property
    def due(self) -> float:
        """Return when there may be something to tell; infinity if nothing dwells."""
        return max(self.quiet, min((w.ripe for w in self.dwelling.values()), default=inf))


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


def stepped(book: Book, seconds: float, now: float) -> Book:
    """Return the book after the wall clock ran ahead: after a long sleep, what was missed is told together."""
    return replace(book, still=now + SETTLE) if seconds > NAP else book


def advance(book: Book, rows: Iterable[Row], now: float, ear: Ear = EAR) -> tuple[Book, tuple[Notice | Withdraw, ...]]:
    """Return the book after these rows, and what must change on the screen."""
    # A clock that was set back must not silence what comes.
    book = replace(book, since=min(book.since, now), still=min(book.still, now + SETTLE))
    missed, book = book.quiet > 0, replace(book, quiet=max(ear.quiet_until(now), book.still if now < book.still else 0))
    waiting = {key_of(row): row for row in rows if _waits(row)}
    muted = {key for key, row in waiting.items() if ear.mutes(row)}
    book = _dwell(book, waiting, muted, now, ear.manner)
    book, withdrawn = _withdraw(book, {key: row for key, row in waiting.items() if key not in muted}, ear.hush.hidden)
    ripe = [w for _, w in sorted(book.dwelling.items()) if w.ripe <= now and not book.quiet]
    spoken = _spoken([w.row for w in ripe], ear, missed)
    return _announce(book, ripe, spoken), withdrawn + spoken


def _withdraw(book: Book, waiting: Mapping[str, Row], hidden: bool) -> tuple[Book, tuple[Withdraw, ...]]:
    """Take away the notices whose wait is over, but leave those that another of the same session will replace.

    Names that are hidden from now on leave the screen, too.
    """
    def stands(key: str, matter: str) -> bool:
        if hidden and not book.hidden:
            return False
        return key in waiting and (about(waiting[key]) == matter or (key in book.dwelling and not book.quiet))

    still = {key: on for key, on in book.shown.items() if stands(key, on[0])}
    on_screen = {notice for _, notice in still.values()}
    gone = {on[1]: key for key, on in sorted(book.shown.items()) if on[1] not in on_screen}
    withdrawn = tuple(Withdraw(notice, key.partition("/")[2]) for notice, key in gone.items())
    return replace(book, shown=still, hidden=hidden), withdrawn


def _dwell(book: Book, waiting: Mapping[str, Row], muted: Collection[str], now: float, manner: Manner) -> Book:
    """Let waits dwell. What is muted or old when it is first seen counts as announced: it never rings."""
    dwelling, passed = {}, []
    for key, row in waiting.items():
        matter, held = about(row), book.dwelling.get(key)
        dwells = held is not None and held.about == matter
        ripe = now + manner.dwells(row)
        if matter in book.announced:
            continue
        if key in muted or (row.verdict.since < max(book.since, now - FRESH) and not dwells):
            passed.append(matter)
        else:
            dwelling[key] = Wait(matter, row, min(held.ripe, ripe) if held and dwells else ripe)
    return replace(book, announced=_remember(book.announced, passed), dwelling=dwelling)


def _remember(announced: Mapping[str, None], matters: Iterable[str]) -> Mapping[str, None]:
    """Add what was announced, and forget the oldest of too many."""
    new = dict.fromkeys(matters)
    if not new:
        return announced
    kept = {**announced, **new}
    return dict(islice(kept.items(), max(0, len(kept) - REMEMBERED), None))


def _announce(book: Book, ripe: list[Wait], spoken: tuple[Notice, ...]) -> Book:
    many = spoken[0].key if spoken and len(spoken[0].sessions) > 1 else ""
    keys = {key_of(w.row): (w.about, many or key_of(w.row)) for w in ripe}
    return replace(
        book,
        announced=_remember(book.announced, [w.about for w in ripe]),
        dwelling={k: w for k, w in book.dwelling.items() if k not in keys},
        shown={**book.shown, **keys},
    )


# -- words --------------------------------------------------------------------------------------------------


def _spoken(rows: list[Row], ear: Ear, missed: bool) -> tuple[Notice, ...]:
    if len(rows) > (MERGE_MISSED if missed else MERGE_ABOVE):
        return (_merged(rows, ear, missed),)
    return tuple(_notice(row, ear) for row in rows)


def _notice(row: Row, ear: Ear) -> Notice:
    reason = row.verdict.reason
    return Notice(key_of(row), row.agent, row.session, reason, _says(row), ear.name(row), row.verdict.turn,
                  (row.session,), ear.manner.urgency[reason], ear.manner.sound_of(reason))


def _merged(rows: list[Row], ear: Ear, missed: bool) -> Notice:
    """Return one notice for many waits, most pressing first; its key is that of the first, so that it stays its own."""
    rows = sorted(rows, key=lambda row: ORDER[row.verdict.reason])
    first = rows[0]
    names = [ear.name(row) or ("" if ear.hush.hidden else row.session) for row in rows]
    lines = [": ".join(filter(None, (name, _says(row)))) for name, row in zip(names, rows, strict=True)]
    if len(lines) > MOST_NAMED + 1:
        lines[MOST_NAMED:] = [f"and {len(lines) - MOST_NAMED} more"]
    title = f"{'Meanwhile, ' if missed else ''}{len(rows)} sessions need you"
    return Notice(f"{MANY}:{first.session}", first.agent, first.session, first.verdict.reason, title, "\n".join(lines),
                  "", tuple(row.session for row in rows), ear.manner.urgency[first.verdict.reason],
                  ear.manner.sound_of(first.verdict.reason))


def _says(row: Row) -> str:
    """Return what a row says in words; what is only inferred carries a question mark."""
    doubt = "?" if row.verdict.sure is Sure.INFERRED else ""
    return f"{row.label or row.agent} {TONES[row.verdict.reason].words}{doubt}"

