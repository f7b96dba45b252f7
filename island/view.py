"""A session's registers, read once: its newest turn, whether that is over, who runs it, what is open. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf

from island.leases import GRACE, LAST_WORDS
from island.model import AFRESH, ANY, KEYLESS, TURN_BOUND, Doubt, Event, Kind, Reason, Session, before, newest, place
from island.news import asked, news

ASKS: Mapping[str, Reason] = {
    "permission": Reason.PERMISSION, "question": Reason.QUESTION, "plan": Reason.PLAN,
    "child-permission": Reason.PERMISSION, "child-question": Reason.QUESTION,
}

#: Spans that live within the agent's process: what an earlier one opened ended with it.
PROCESS_BOUND = frozenset({"child", "child-permission", "child-question", "shell"})


#: So many views are kept, for those who ask next. No more: each holds the registers that it was made of.
KEPT = 32


@dataclass(frozen=True, slots=True)
class View:
    """A session's registers, read once: the turn, its end if it stands, the owner and its life.

    last, over: as the history tells, or newer and by a hook; asked: the open dialog of which only hooks tell.
    """

    session: Session
    prompt: Event | None
    last: Event | None
    over: Event | None
    owner: Event | None
    gone: Event | None
    live: Event | None
    spans: tuple[Event, ...]
    asked: Event | None = None

    @property
    def turn(self) -> str:
        """Return the key of the newest turn."""
        if self.over and self.over.turn:
            return self.over.turn
        return self.prompt.turn if self.prompt else ""

    @property
    def began(self) -> float:
        """Return when the newest turn began, or when it is first heard of."""
        if self.last and self.last.kind is Kind.PROMPT:
            return self.last.at
        return self.prompt.at if self.prompt else self.last.at if self.last else 0.0

    @property
    def abandoned(self) -> bool:
        """Tell whether the newest turn belongs to an earlier process than today's owner."""
        return bool(self.owner and self.last and self.last.at < self.owner.number)

    @property
    def quiet_since(self) -> float:
        """Return since when no tool process runs: one of several calls may have ended, and another may ask."""
        alone = self.session.get(Kind.ALONE)
        return alone.at if alone and alone.word == "yes" else -inf

    def open(self, *words: str) -> list[Event]:
        """Return the open spans of these words, oldest first."""
        return [span for span in self.spans if span.word in words]


@lru_cache(maxsize=KEPT)
def view(session: Session) -> View:
    """Read a session's registers once."""
    end, prompt, answer = session.get(Kind.END), session.get(Kind.PROMPT), session.get(Kind.ANSWER)
    if prompt is None:
        prompt, keyless = session.get(Kind.PROMPT, KEYLESS), session.get(Kind.ANSWER, KEYLESS)
        unseen = keyless and keyless.turn and (prompt is None or prompt.turn != keyless.turn)
        answer = answer or (None if unseen else keyless)
    end = newest(end, _timeless_end(session, prompt))
    prompt = _as_first_written(session, prompt, newest(end, answer))
    answer = None if _cut_off(answer, prompt, end) else answer
    afresh = session.get(Kind.END, AFRESH)
    if afresh and (prompt is None or before(prompt, afresh)):
        prompt, end = None, afresh
    progress = session.get(Kind.PROGRESS)
    progress = None if progress and is_copy(session, progress) else _standing(progress, prompt, end)
    told = newest(prompt, progress, end, answer)
    last = newest(told, news(session, prompt, told))
    over = last if last and last.kind in (Kind.END, Kind.ANSWER) else None
    owner, gone = _owner(session, last)
    live = _live(session, owner) if owner and gone is None else None
    since = owner.number if owner else 0.0
    spans = sorted((e for e in session.open.values() if _has_outlived(e, prompt, since)), key=_by_place_and_key)
    return View(session, prompt, last, over, owner, gone, live, tuple(spans), asked(session, prompt, told, since))


def _as_first_written(session: Session, prompt: Event | None, done: Event | None) -> Event | None:
    """Return a prompt; if it was read from a copy of older records, as one that began nothing after `done`."""
    if prompt is None or done is None or not is_copy(session, prompt):
        return prompt
    return min(prompt, replace(prompt, at=done.at, order=done.order - 1), key=place)


def is_copy(session: Session, event: Event) -> bool:
    """Tell whether an event was read from a copy of older records: it began nothing, and does not go on with it."""
    copied = session.get(Kind.COPIED)
    return copied is not None and copied.number <= event.at <= copied.at


def _has_outlived(span: Event, prompt: Event | None, since: float) -> bool:
    if span.word in TURN_BOUND and prompt and before(span, prompt):
        return False
    return span.word not in PROCESS_BOUND or span.at >= since


def _by_place_and_key(event: Event) -> tuple[object, ...]:
    return (place(event), event.key)


def _timeless_end(session: Session, prompt: Event | None) -> Event | None:
    """Return the end of the newest turn where it carries the turn's key but no time: right after its last record."""
    end = session.get(Kind.END, prompt.turn) if prompt and prompt.turn else None
    if end is None or prompt is None:
        return None
    told = (session.get(Kind.PROGRESS), session.get(Kind.ANSWER))
    return replace(end, at=max([prompt.at, *(e.at for e in told if e)]))


def _standing(progress: Event | None, prompt: Event | None, end: Event | None) -> Event | None:
    """Return progress unless it is a late record of an ended turn, or bookkeeping after an end."""
    if progress is None:
        return None
    if progress.turn and prompt and progress.turn != prompt.turn:
        return None
    if end is None or progress.at <= end.at:
        return progress
    if progress.turn:
        ended = end.turn or (prompt.turn if prompt and prompt.at <= end.at else "")
        return None if progress.turn == ended else progress
    return progress if progress.at > end.at + GRACE else None


def _cut_off(answer: Event | None, prompt: Event | None, end: Event | None) -> bool:
    """Tell whether an answer is what was said until the turn was interrupted, or failed, written just after that."""
    if answer is None or end is None or answer.turn:
        return False
    if end.word != Reason.INTERRUPTED and answer.text != Doubt.QUIET:
        return False
    return before(end, answer) and answer.at <= end.at + GRACE and (prompt is None or before(prompt, end))


def _owner(session: Session, last: Event | None) -> tuple[Event | None, Event | None]:
    """Return the process that has the session loaded, and its end if it has ended.

    Records well after the end of the last known owner mean that some unseen process goes on with it.
    """
    owners = sorted(session.every(Kind.OWNER), key=_by_place_and_key, reverse=True)
    living = [owner for owner in owners if not ended(session, owner)]
    if living:
        return min(living, key=lambda owner: _calm(_live(session, owner))), None
    if not owners:
        return None, None
    gone = max((e for o in owners if (e := ended(session, o))), key=_by_place_and_key)
    if last and last.at > gone.at + (0 if last.key == AFRESH else LAST_WORDS):
        return None, None
    return owners[0], gone


def _live(session: Session, owner: Event) -> Event | None:
    """Return what a process itself says of the session; a source that says nothing now hides no other."""
    return newest(*(e for e in session.every(Kind.LIVE) if e.text in (owner.key, ANY) and e.word))


def _calm(live: Event | None) -> int:
    """Rank the processes that have one session open: one that asks before one that works before the others."""
    return 0 if live and live.word in ASKS else 1 if live and live.word == "busy" else 2


def ended(session: Session, process: Event) -> Event | None:
    """Return the first end of a process since it was last told of: an orderly end comes before the exit."""
    ends = (session.get(Kind.GONE, f"{process.key}/{word}") for word in ("closed", "exit", "left"))
    return min((e for e in ends if e and e.at >= process.at), key=place, default=None)


def seen_in(session: Session) -> tuple[int, ...]:
    """Return the living processes in which the user sees a session: its windows, newest first, or what runs it."""
    windows = sorted((e for e in session.every(Kind.ATTACHED) if not ended(session, e)), key=place, reverse=True)
    v = view(session)
    shows = windows or ([v.owner] if v.owner and v.gone is None else [])
    return tuple(int(e.key) for e in shows if e.key.isdecimal())
