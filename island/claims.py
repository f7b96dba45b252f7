"""What a session's registers claim about its turn: the rules, in order of precedence. Pure, and without time.

A claim depends on the evidence alone, never on the moment of asking: how it ages is the business of its lease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf

from island.leases import FREED, GRACE, HUSHED, LAST_WORDS
from island.model import (
    AFRESH,
    AGAIN,
    HOOK,
    KEYLESS,
    PERHAPS,
    TURN_BOUND,
    Event,
    Kind,
    Reason,
    Session,
    Sure,
    newest,
    place,
)
from island.news import asked, heard, news

#: Source of a LIVE event that was read from the title of a terminal.
TITLE = "terminal title"

ASKS: Mapping[str, Reason] = {
    "permission": Reason.PERMISSION, "question": Reason.QUESTION, "plan": Reason.PLAN,
    "child-permission": Reason.PERMISSION, "child-question": Reason.QUESTION,
}

#: Spans that live within the agent's process: what an earlier one opened ended with it.
PROCESS_BOUND = frozenset({"child", "child-permission", "child-question", "shell"})

#: Open spans of a running turn that mean something other than "a tool runs", most telling first.
SPAN_LEASES: tuple[tuple[str, str], ...] = (
    ("question", "ask"), ("plan", "ask"), ("permission", "ask"), ("escalation", "escalation"),
    ("unrecorded", "unrecorded"), ("shell-tool", "no-shell"), ("instant-tool", "no-edit"), ("judged-tool", "judged"),
)

#: Open spans in which a tool runs, for all that can be seen.
TOOLS = ("tool", "shell-tool", "instant-tool", "judged-tool", "escalation")


@dataclass(frozen=True, slots=True)
class Claim:
    """What a session's evidence claims: a row of LEASES, counted from `at`.

    The claim's `reason` stands where the row has none; `turn` keys the hand-back or the ask.
    """

    lease: str
    at: float
    reason: Reason
    event: Event | None = None
    turn: str = ""
    sure: Sure = Sure.TOLD
    since: float = -inf


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

    def open(self, *words: str) -> list[Event]:
        """Return the open spans of these words, oldest first."""
        return [span for span in self.spans if span.word in words]


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
    if afresh and (prompt is None or _before(prompt, afresh)):
        prompt, end = None, afresh
    progress = session.get(Kind.PROGRESS)
    progress = None if progress and is_copy(session, progress) else _standing(progress, prompt, end)
    told = newest(prompt, progress, end, answer)
    last = newest(told, news(session, prompt, told))
    over = last if last and last.kind in (Kind.END, Kind.ANSWER) else None
    owner, gone = _owner(session, last)
    live = _live(session, owner) if owner and gone is None else None
    since = owner.number if owner else 0.0
    spans = sorted((e for e in session.every(Kind.OPENED) if _is_open(session, e, prompt, since)),
                   key=_by_place_and_key)
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


def _is_open(session: Session, span: Event, prompt: Event | None, since: float) -> bool:
    if span.word in TURN_BOUND and prompt and _before(span, prompt):
        return False
    if span.word in PROCESS_BOUND and span.at < since:
        return False
    closed = session.get(Kind.CLOSED, span.key)
    return closed is None or _before(closed, span)


def _before(one: Event, other: Event) -> bool:
    """Tell whether one event came before another: what a format without times says at one moment stands in order."""
    return (one.at, one.order) < (other.at, other.order)


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
    if end.word != Reason.INTERRUPTED and not _only_looks_final(answer):
        return False
    return _before(end, answer) and answer.at <= end.at + GRACE and (prompt is None or _before(prompt, end))


def _owner(session: Session, last: Event | None) -> tuple[Event | None, Event | None]:
    """Return the process that has the session loaded, and its end if it has ended.

    Records well after the end of the last known owner mean that some unseen process goes on with it.
    """
    owners = sorted(session.every(Kind.OWNER), key=_by_place_and_key, reverse=True)
    living = [owner for owner in owners if not _ended(session, owner)]
    if living:
        return min(living, key=lambda owner: _calm(_live(session, owner))), None
    if not owners:
        return None, None
    gone = max((e for o in owners if (e := _ended(session, o))), key=_by_place_and_key)
    if last and last.at > gone.at + (0 if last.key == AFRESH else LAST_WORDS):
        return None, None
    return owners[0], gone


def _live(session: Session, owner: Event) -> Event | None:
    """Return what a process itself says of the session; a source that says nothing now hides no other."""
    return newest(*(e for e in session.every(Kind.LIVE) if e.text == owner.key and e.word))


def _calm(live: Event | None) -> int:
    """Rank the processes that have one session open: one that asks before one that works before the others."""
    return 0 if live and live.word in ASKS else 1 if live and live.word == "busy" else 2


def _ended(session: Session, process: Event) -> Event | None:
    """Return the first end of a process since it was last told of: an orderly end comes before the exit."""
    ends = (session.get(Kind.GONE, f"{process.key}/{word}") for word in ("closed", "exit", "left"))
    return min((e for e in ends if e and e.at >= process.at), key=place, default=None)


def seen_in(session: Session) -> tuple[int, ...]:
    """Return the living processes in which the user sees a session: its windows, newest first, or what runs it."""
    windows = sorted((e for e in session.every(Kind.ATTACHED) if not _ended(session, e)), key=place, reverse=True)
    v = view(session)
    shows = windows or ([v.owner] if v.owner and v.gone is None else [])
    return tuple(int(e.key) for e in shows if e.key.isdecimal())


# -- claims, in order of precedence -----------------------------------------------------------------------


def _dead(v: View) -> Claim | None:
    if v.gone is None:
        return None
    unfinished = v.last is not None and v.last.word != "run" and (v.over is None or _went_on(v) is not None)
    crashed = v.gone.word == "exit" and unfinished
    reason = Reason.CRASHED if crashed else Reason.ENDED
    return Claim("idle", v.gone.at, reason, v.gone, v.turn)


def _trust(v: View) -> Claim | None:
    for span in v.open("trust"):
        return Claim("trust", span.at, Reason.PERMISSION, span, span.key, Sure.INFERRED)
    return None


def _suspended(v: View) -> Claim | None:
    stopped = v.session.get(Kind.STOPPED, v.owner.key) if v.owner else None
    if stopped and stopped.word == "yes" and v.last and v.over is None:
        return Claim("suspended", stopped.at, Reason.SILENT, stopped, v.turn)
    return None


def _live_ask(v: View) -> Claim | None:
    if v.live is None or v.live.word not in ASKS or _firm_since(v, v.live.at):
        return None
    alone = v.session.get(Kind.ALONE)
    if v.live.source == TITLE and alone and alone.word == "no" and v.live.at > alone.at + HUSHED:
        return Claim("hushed", v.live.at, Reason.SILENT, v.live, v.turn, Sure.INFERRED)
    span = next(iter(v.open("question", "plan")), None)
    reason = ASKS[span.word] if span else ASKS[v.live.word]
    return Claim("ask", v.live.at, reason, v.live, v.live.turn)


def _child_ask(v: View) -> Claim | None:
    """A child's dialog is the parent's, whether its own turn is over or not."""
    for span in v.open("child-permission", "child-question"):
        return Claim("ask", span.at, ASKS[span.word], span, _about(span), Sure(span.text or Sure.TOLD))
    return None


def _live_busy(v: View) -> Claim | None:
    if v.live is None or v.live.word != "busy" or _firm_since(v, v.live.at):
        return None
    settled = v.over is not None or v.abandoned
    tools = [] if settled else v.open(*TOOLS)
    if tools:
        return Claim("tool", tools[-1].at, Reason.TOOL, tools[-1], v.turn, since=v.began)
    sign = v.last if v.last and v.last.at > v.live.at else v.live
    reason = Reason.RETRYING if sign.word == Reason.RETRYING or sign.text == AGAIN else Reason.MODEL
    if v.over and v.over.number > 0:
        reason = Reason.BACKGROUND  # its agents went on after an answer to one of them
    return Claim("busy", sign.at, reason, sign, v.turn, since=max(v.began, v.live.at))


def _went_on(v: View) -> Claim | None:
    """A tool began behind what was taken for the last answer: it was none."""
    over, alone = v.over, v.session.get(Kind.ALONE)
    if over is None or not _is_guess(over) or v.owner is None or alone is None:
        return None
    runs = alone.word == "no"
    began = alone.at if runs else alone.number
    if began <= over.at or (v.live and v.live.at > began):
        return None
    word, lease = (Reason.TOOL, "tool") if runs else (Reason.MODEL, "model")
    return Claim(lease, alone.at, word, alone, v.turn, Sure.INFERRED, since=v.began)


def _is_guess(over: Event) -> bool:
    """Tell whether it is an answer that a tool may stand behind, for all that its record tells."""
    return over.kind is Kind.ANSWER and over.text == PERHAPS


def _live_free(v: View) -> Claim | None:
    """The prompt is free: what the history then says, or an end that left no record."""
    if v.live is None or v.live.word not in ("idle", "shell", "ready"):
        return None
    if v.last is None and any(e.word == "busy" for e in v.session.every(Kind.LIVE)):
        return Claim("unwritten", v.live.at, Reason.NEW, v.live)
    if v.last is None or (v.abandoned and not (v.over and _is_title(v.live))):
        return Claim("idle", v.live.at, Reason.NEW, v.live)
    if v.over and not _stopped_trying(v, v.over, v.live):
        return _over(v) if _is_title(v.live) else _handed_back(v, background=_live_background(v))
    return _stopped(v, v.live, v.last)


def _stopped(v: View, live: Event, last: Event) -> Claim | None:
    """A turn that has gone without a record: by the user's hand, or else for a reason that only the screen tells."""
    if live.at <= last.at:
        return None
    interrupted = live.word != "ready" or last.text == Reason.INTERRUPTED
    lease, reason = ("vanished", Reason.INTERRUPTED) if interrupted else ("stopped", Reason.ERROR)
    return Claim(lease, live.at, reason, live, v.turn, Sure.INFERRED)


def _live_background(v: View) -> str:
    return "background" if v.live and v.live.word == "shell" else ""


def _is_title(live: Event) -> bool:
    """Tell whether it is a title: it says nothing of what runs in the background, nor of an earlier process's turn."""
    return live.source == TITLE


def _stopped_trying(v: View, over: Event, live: Event) -> bool:
    """Tell whether somebody stopped what was about to be tried again: the last error frees the prompt at once."""
    return over.text == AGAIN and over is v.last and live.at > over.at + FREED


def _firm_since(v: View, at: float) -> bool:
    return v.over is not None and v.over.kind is Kind.END and v.over.at > at


def _asked_since(v: View) -> Claim | None:
    """An ask opened after what looked like the last answer: it was not the last. An error stays an error."""
    over = v.over
    if over is None or over.kind is not Kind.ANSWER or over.word not in ("", Reason.FINISHED, Reason.QUESTION):
        return None
    asks = [span for span in v.open(*ASKS) if span.word in TURN_BOUND and _before(over, span)]
    return next((Claim("ask", s.at, ASKS[s.word], s, _about(s)) for s in asks), None)


def _hook_ask(v: View) -> Claim | None:
    if v.asked is None:
        return None
    return Claim("ask", v.asked.at, ASKS[v.asked.word], v.asked, _about(v.asked))


def _hook_free(v: View) -> Claim | None:
    """A hook says that the prompt is free, and nobody said why: an interrupt that left no record."""
    free = v.session.get(Kind.LIVE, HOOK)
    if free is None or v.last is None or v.over or v.abandoned or free.at <= v.last.at:
        return None
    return Claim("vanished", free.at, Reason.INTERRUPTED, free, v.turn, Sure.INFERRED)


def _closed_by_user(v: View) -> Claim | None:
    """The last window that showed the session has gone, and nothing has happened since."""
    windows = list(v.session.every(Kind.ATTACHED))
    ends = [_ended(v.session, w) for w in windows]
    if not windows or not all(ends) or (v.last and v.over is None):
        return None
    end = max((e for e in ends if e), key=place)
    if v.over and v.over.at > end.at:
        return None
    return Claim("idle", end.at, Reason.ENDED, end, v.turn, Sure.INFERRED)


def _over(v: View) -> Claim | None:
    if v.over is None:
        return None
    if v.over.key == AFRESH:
        return Claim("idle", v.over.at, Reason.NEW, v.over)
    children = v.open("child")
    if v.over.number > 0 or (children and not (v.over.number == 0 and children[-1].at < v.over.at)):
        return _handed_back(v, background="children")
    if _running_shells(v):
        return _handed_back(v, background="background")
    return _handed_back(v)


def _running_shells(v: View) -> bool:
    """Tell whether a background shell runs: processes, where they can be seen, beat the records."""
    if v.open("process", "command"):
        return True
    return any(shell.at > _quiet_since(v) for shell in v.open("shell"))


def _handed_back(v: View, background: str = "") -> Claim:
    over = v.over
    if over is None:  # pragma: no cover - callers have looked
        raise ValueError("no turn is over")
    reason, source = _hand_back_reason(v, over)
    lease = _hand_back_lease(v, over, reason)
    if background and reason is Reason.FINISHED:
        lease = background
    waits = lease in ("handed-back", "left-behind", "quiet")
    at = max(over.at, _background_end(v)) if waits else over.at
    inferred = _only_looks_final(over) or (_is_guess(over) and lease.startswith("answer"))
    return Claim(lease, at, reason, source, v.turn, Sure.INFERRED if inferred else Sure.TOLD, at)


def _only_looks_final(event: Event) -> bool:
    return event.kind is Kind.ANSWER and event.text == Sure.INFERRED


def _background_end(v: View) -> float:
    """Return when the last background work was over: until then it was not the user's turn."""
    ends = [e.at for e in v.session.every(Kind.CLOSED) if e.word in ("child", "shell", "process", "command")]
    if v.open("shell"):
        ends.append(_quiet_since(v))
    return max(ends, default=-inf)


def _hand_back_lease(v: View, over: Event, reason: Reason) -> str:
    doubt = _doubt(v, over) if over.kind is Kind.ANSWER else ""
    if doubt:
        return doubt
    if v.prompt and v.prompt.word == "agent" and reason is Reason.FINISHED:
        return "goes-on"
    return "handed-back" if v.owner else "left-behind"


def _doubt(v: View, answer: Event) -> str:
    """Return how an answer is doubted, if it is: it may not be the last."""
    if answer.key == HOOK:
        return "" if v.live else "goes-on"
    if answer.text == AGAIN and v.live is None:
        return "tried-again"
    if _only_looks_final(answer):
        return "quiet"
    if answer.number == 0 and not _is_guess(answer):
        return "goes-on"
    return "" if v.live and v.live.at >= answer.at else "answer" if v.owner else "answer-left"


def _hand_back_reason(v: View, over: Event) -> tuple[Reason, Event]:
    """Return why it was handed back: an end's own word, else that of the answer before it."""
    answer = v.session.get(Kind.ANSWER)
    source = over
    if over.kind is Kind.END and over.word == "" and answer and answer.at >= v.began:
        source = answer
    if source.word in ("", Reason.FINISHED) and v.session.get(Kind.PLANNED, over.turn):
        return Reason.PLAN, over
    return Reason(source.word or Reason.FINISHED), source


def _open_turn(v: View) -> Claim | None:
    if v.last is None:
        return None
    if v.abandoned:
        return _reopened(v, v.last.at)
    return _open_span(v) or _silent_model(v, v.last)


def _reopened(v: View, died: float) -> Claim:
    """Return what a turn is whose process died, now that another has the session loaded."""
    windows = [e for e in v.session.every(Kind.ATTACHED) if e.at > died and not _ended(v.session, e)]
    if windows:
        shown = max(windows, key=place)
        return Claim("handed-back", shown.at, Reason.INTERRUPTED, shown, v.turn, Sure.INFERRED)
    return Claim("idle", v.owner.number if v.owner else died, Reason.NEW, v.owner)


def _open_span(v: View) -> Claim | None:
    for word, lease in SPAN_LEASES:
        for span in v.open(word):
            if lease == "ask":
                return Claim(lease, span.at, ASKS[word], span, _about(span))
            if not _runs(v, span):
                at = max(span.at, _quiet_since(v), heard(v.session))
                return Claim(lease, at, Reason.TOOL, span, _about(span), Sure.INFERRED)
    tools = v.open(*TOOLS, "unrecorded")
    if tools:
        lease = "tool" if v.owner else "ownerless"
        return Claim(lease, tools[-1].at, Reason.TOOL, tools[-1], v.turn, since=v.began)
    alone = v.session.get(Kind.ALONE)
    if v.owner and v.prompt and v.prompt.key == KEYLESS and alone and alone.word == "no":
        return Claim("tool", alone.at, Reason.TOOL, alone, v.turn, since=v.began)  # it records none before its end
    return None


def _about(span: Event) -> str:
    """Name one ask: a key may be used again."""
    return f"{span.key}@{span.at:.3f}"


def _runs(v: View, span: Event) -> bool:
    """Tell whether a call runs, or may run for all that can be seen.

    A process of that very call was seen; or a tool process runs now; or nobody can look (no owner is
    known). An escalation counts by its own process alone.
    """
    if v.session.get(Kind.OPENED, f"process:{span.key}"):
        return True
    if v.owner is None:
        return True
    if span.word in ("escalation", "instant-tool"):
        return False
    alone = v.session.get(Kind.ALONE)
    return alone is None or alone.word != "yes"


def _quiet_since(v: View) -> float:
    """Return since when no tool process runs: one of several calls may have ended, and another may ask."""
    alone = v.session.get(Kind.ALONE)
    return alone.at if alone and alone.word == "yes" else -inf


def _silent_model(v: View, last: Event) -> Claim:
    known = {Reason.TOOL: Reason.MODEL}  # the tool has ended, the model goes on
    word = Reason(last.word) if last.kind is Kind.PROGRESS and last.word else Reason.MODEL
    lease = "model" if v.owner else "ownerless"
    return Claim(lease, last.at, known.get(word, word), last, v.turn, since=v.began)


def _nothing(v: View) -> Claim | None:
    at = max((e.at for e in v.session.registers.values()), default=0.0)
    return Claim("idle", at, Reason.NEW, v.owner)


CLAIMS: tuple[Callable[[View], Claim | None], ...] = (
    _dead, _trust, _suspended, _live_ask, _child_ask, _live_busy, _went_on, _live_free, _hook_ask, _hook_free,
    _closed_by_user, _asked_since, _over, _open_turn, _nothing,
)


def claim(session: Session) -> Claim:
    """Return what a session's registers claim; the order of CLAIMS is the precedence."""
    v = view(session)
    return next(c for rule in CLAIMS if (c := rule(v)))
