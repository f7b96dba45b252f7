"""From evidence to state: fold, decide, collapse. Pure: time is an argument.

`fold` is a join: every register keeps its newest event by the record's own time, so order and repetition
do not matter. What the registers claim stands in `claims`, how long it holds in `leases`. So a verdict holds
exactly until it says, and nothing has to tick.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from island.claims import claim
from island.leases import LEASES
from island.manner import TONES
from island.model import PROCESS, SPAN_EDGES, TURN_BOUND, Event, Kind, Role, Row, Session, State, Verdict, place
from island.view import ASKS

#: Source of what a child's verdict puts into its parent's registers.
LIFTED = "child session"

# -- fold -------------------------------------------------------------------------------------------------


def fold(session: Session, event: Event) -> Session:
    """Join one event into a session's registers. Commutative, associative, idempotent."""
    held = session.get(event.kind, event.key)
    return session if held and place(held) >= place(event) else session.put(event)


def prune(session: Session) -> Session:
    """Forget what cannot matter any more: spans of earlier turns, and processes that were seen to end in them."""
    prompt = session.get(Kind.PROMPT)
    return session.only(lambda event: not outdated(event, prompt) and not _is_spent(event, session, prompt))


def outdated(event: Event, prompt: Event | None) -> bool:
    """Tell whether a turn-bound span was opened or closed before the newest turn began."""
    bound = event.kind in SPAN_EDGES and event.word in TURN_BOUND
    return bound and prompt is not None and event.at < prompt.at


def _is_spent(event: Event, session: Session, prompt: Event | None) -> bool:
    """Tell whether an event is of a process that was over before the newest turn: no record will tell of it again."""
    span = session.get(Kind.OPENED, event.key) if event.kind in SPAN_EDGES else None
    seen = span is not None and span.source == PROCESS and event.key not in session.open
    return seen and prompt is not None and event.at < prompt.at


# -- decide, collapse -------------------------------------------------------------------------------------


def decide(session: Session, now: float, since: float) -> Verdict:
    """Return the verdict at `now`. A stall that would have begun before `since` (launch) is old news."""
    c = claim(session)
    at = c.at
    for step in LEASES[c.lease]:
        if step.state is State.STALLED and at < since and c.lease not in ("suspended", "hushed"):
            continue
        end = at + step.seconds
        if now < end:
            begun = c.since if at == c.at and c.since > -inf else at
            return Verdict(step.state, step.reason or c.reason, c.sure, begun, end, c.turn, c.event)
        at = end
    raise AssertionError("every lease ends in a step without end")  # pragma: no cover


#: Urgency, most urgent first; seen hand-backs come after working.
URGENCY: tuple[tuple[State, bool], ...] = (
    (State.YOUR_TURN, False), (State.STALLED, False), (State.STALLED, True), (State.WORKING, False),
    (State.WORKING, True), (State.YOUR_TURN, True), (State.IDLE, False), (State.IDLE, True),
)
_RANK = {pair: rank for rank, pair in enumerate(URGENCY)}


#: Reasons to wait, most pressing first; of the others none presses more than another.
_PRESSING = {reason: rank for rank, reason in enumerate(TONES)}


def urgency(row: Row) -> tuple[int, int, float]:
    """Order rows: most urgent first, of those what presses most, and of those the one that has waited longest."""
    return (_RANK[row.verdict.state, row.seen], _PRESSING.get(row.verdict.reason, len(_PRESSING)), row.verdict.since)


def collapse(rows: Iterable[Row]) -> tuple[State, bool]:
    """Return the icon's state, and whether it is calm (a hand-back already seen)."""
    mine = [row for row in rows if row.role is Role.PERSON]
    if not mine:
        return State.IDLE, False
    first = min(mine, key=urgency)
    return first.verdict.state, first.seen and first.verdict.state is State.YOUR_TURN


def lift(child: Session, verdict: Verdict, parent: str) -> tuple[Event, ...]:
    """Return what a child session's verdict means to its parent: a running child, an ask, or an end.

    Derived, and so no evidence to be joined: it takes the place of what was lifted before.
    """
    begun = Event(Kind.OPENED, parent, verdict.since, child.id, "child", source=LIFTED)
    word = f"child-{verdict.reason}"
    if verdict.state is State.WORKING:
        return (begun,)
    if verdict.state is State.YOUR_TURN and word in ASKS:
        return (begun, replace(begun, key=f"{child.id}:ask", word=word, text=verdict.sure))
    over = verdict.evidence.at if verdict.evidence else verdict.since
    return (replace(begun, kind=Kind.CLOSED, at=over),)
