"""What hooks tell of a turn: news only where it is newer than what is on disk. Pure, and without time.

A hook is quick, but it may be late, lost, or of a child. So what it says stands in registers of its own, and never
overrules what the history proves.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from island.leases import GRACE, LATE
from island.model import HOOK, Event, Kind, Reason, Session, newest, place

#: How a turn is handed back that came to its end; of another no end makes one of these.
WELL = ("", Reason.FINISHED, Reason.QUESTION)


def news(session: Session, prompt: Event | None, told: Event | None) -> Event | None:
    """Return what hooks tell of the turn, if it is more than a repetition of what the history says.

    A hook may be late: what it says soon after a firm end is of the turn that has ended, unless it names another.
    """
    begun = _begun(session, prompt, told)
    if told and told.kind is Kind.END and begun is None:
        return None
    short, answer = session.get(Kind.END, HOOK), session.get(Kind.ANSWER, HOOK)
    later = newest(begun, session.get(Kind.PROMPT), session.get(Kind.PROGRESS))
    if short and (later is None or later.at <= short.at):
        return short  # an agent may say that it is free once more
    if answer and told and told.kind is Kind.ANSWER and (begun is None or begun.at <= told.at < answer.at):
        last = replace(answer, at=told.at, order=told.order + 1)  # the same answer: it was the last
        return last if told.text or told.word in WELL else replace(last, word=told.word)
    return newest(begun, short, answer)


def _begun(session: Session, prompt: Event | None, told: Event | None) -> Event | None:
    begun = newest(session.get(Kind.PROMPT, HOOK), session.get(Kind.PROGRESS, HOOK))
    return None if begun and _has_ended(begun, prompt, told) else begun


def _has_ended(event: Event, prompt: Event | None, told: Event | None) -> bool:
    """Tell whether the turn that a hook speaks of has come to a firm end."""
    if told is None or told.kind is not Kind.END:
        return False
    ended = told.turn or (prompt.turn if prompt and prompt.at <= told.at else "")
    if event.turn and ended:
        return event.turn == ended or event.at <= told.at
    return event.at <= told.at + GRACE


def asked(session: Session, prompt: Event | None, told: Event | None, since: float) -> Event | None:
    """Return the newest dialog that is still open: its turn, or its child, has not gone on since."""
    asks = [ask for ask in session.every(Kind.ASKED)
            if ask.at >= since and (_is_child(ask) or not _has_ended(ask, prompt, told))
            and not _answered(session, ask, told)]
    return max(asks, key=place, default=None)


def heard(session: Session) -> float:
    """Return when a hook told last that the turn goes on: what was asked until then has been answered."""
    told = (session.get(Kind.PROGRESS, HOOK), *_answers(session, HOOK))
    return max((e.at for e in told if e), default=-inf)


#: A hook may be called this much before the record of its prompt is made: other hooks run first.
EARLY = 10.0


def told_of(session: Session) -> bool:
    """Tell whether hooks told of the newest turn when it began: where answers are in doubt, they tell its end, too."""
    prompt, begun = session.get(Kind.PROMPT), session.get(Kind.PROMPT, HOOK)
    return prompt is not None and begun is not None and begun.at > prompt.at - EARLY


def silent(session: Session, over: Event | None, since: float) -> bool:
    """Tell whether hooks told nothing of the newest turn, which is finished, though they were heard before it.

    since: when the agent's hooks were first heard, in whatever session.
    """
    prompt = session.get(Kind.PROMPT)
    if prompt is None or over is None or over.key == HOOK or over.word not in WELL:
        return False
    told = (e.at for e in session.events() if e.key.startswith(HOOK))
    return prompt.at > since + EARLY and max(told, default=0.0) < prompt.at - EARLY


def _answered(session: Session, ask: Event, told: Event | None) -> bool:
    kinds = (Kind.PROMPT, Kind.PROGRESS, Kind.ANSWER, Kind.END, Kind.LIVE)
    key = ask.key if _is_child(ask) else HOOK
    went_on = [e for kind in kinds if (e := session.get(kind, key))]
    if any(place(e) > place(ask) for e in (*went_on, *_answers(session, ask.key))):
        return True
    newest = session.get(Kind.PROMPT) if _is_child(ask) else told
    late = 0.0 if newest and newest.kind in (Kind.END, Kind.PROMPT) else LATE
    return bool(newest and newest.at > ask.at + late) or (not _is_child(ask) and _runs_since(session, ask.at))


def _answers(session: Session, key: str) -> list[Event]:
    """Return what answers an ask of that key: a call of its tool that ran, or of any if it names none."""
    return [e for e in session.every(Kind.PROGRESS) if e.key == key or (key == HOOK and e.key.startswith(f"{HOOK}/"))]


def _is_child(event: Event) -> bool:
    """Tell whether a hook names a child that it was called for."""
    return event.key.startswith(f"{HOOK}:")


def _runs_since(session: Session, at: float) -> bool:
    """Tell whether a tool has begun to run since then: it was allowed."""
    alone = session.get(Kind.ALONE)
    runs = [e for e in session.every(Kind.OPENED) if e.word == "process"]
    if alone and alone.word == "no":
        runs.append(alone)
    return any(e.at > at for e in runs)
