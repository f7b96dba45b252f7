"""From evidence to state: fold, decide, collapse, and the table of leases. Pure: time is an argument.

`fold` is a join: every register keeps its newest event by the record's own time, so order and repetition
do not matter. What a session claims depends on its registers alone; a claim names a row of LEASES, and that
row, counted from the claim's own time, says which state holds until when. So a verdict holds exactly until
it says, and nothing has to tick.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf

from island.model import KEYLESS, Event, Kind, Reason, Role, Row, Session, State, Sure, Verdict

SECOND, MINUTE, HOUR = 1.0, 60.0, 3600.0

#: Turn-less progress this soon after a firm end is bookkeeping (late flushes, hook summaries); later it
#: means that the user is back. Late flushes were measured at up to 1.2 s.
GRACE = 2 * SECOND

#: Records may follow the death of their process: a hang-up flushes a failed tool after the live record went.
LAST_WORDS = 2 * SECOND


@dataclass(frozen=True, slots=True)
class Step:
    """One state of a lease, for so many seconds. Without a reason, the claim's own reason stands."""

    state: State
    reason: Reason | None
    seconds: float


_EXPIRED = Step(State.IDLE, Reason.EXPIRED, inf)
_SILENT = Step(State.STALLED, Reason.SILENT, HOUR)  # after an hour nobody wonders any more
_WAIT = Step(State.YOUR_TURN, None, 12 * HOUR)  # a day's work: it must survive lunch and meetings


def _ask_after(seconds: float) -> tuple[Step, ...]:
    asks = Step(State.YOUR_TURN, Reason.PERMISSION, 12 * HOUR)
    return (Step(State.WORKING, Reason.TOOL, seconds), asks, _EXPIRED)


#: How long evidence supports a state, and what comes after. One reason for each number.
LEASES: Mapping[str, tuple[Step, ...]] = {
    # A model may think for minutes and write nothing; single responses over 15 min are not normal.
    "model": (Step(State.WORKING, None, 15 * MINUTE), _SILENT, _EXPIRED),
    # A tool may be a night's build; it is open until its result is on disk.
    "tool": (Step(State.WORKING, None, 12 * HOUR), _SILENT, _EXPIRED),
    # No process is known to own it: only fresh records speak for it.
    "ownerless": (Step(State.WORKING, None, 5 * MINUTE), replace(_SILENT, seconds=10 * MINUTE), _EXPIRED),
    # The live record says busy: told, but a hang is a hang (retries write a record each).
    "busy": (Step(State.WORKING, None, 30 * MINUTE), _SILENT, _EXPIRED),
    # Stopped by a signal (Ctrl-Z): nothing happens until somebody continues it.
    "suspended": (Step(State.STALLED, Reason.SILENT, 12 * HOUR), _EXPIRED),
    # The agent itself says that it asks.
    "ask": (_WAIT, _EXPIRED),
    # An approved escalation has its process within 0.3 s; a dialog has none.
    "escalation": _ask_after(0.4),
    # A shell tool without a shell below the agent: a short command between two hooks was measured at 1.9 s.
    "no-shell": _ask_after(2.5),
    # A file edit is done in milliseconds; only a dialog or a slow hook keeps it open.
    "no-edit": _ask_after(3.0),
    # A response is complete but nothing of it was recorded: old Codex in a tool, or in a dialog.
    "unrecorded": _ask_after(1.0),
    # A start-up writes its live record 0.3-1.2 s after its key; the trust dialog comes between.
    "trust": (Step(State.IDLE, Reason.NEW, 1.5), Step(State.YOUR_TURN, Reason.PERMISSION, 12 * HOUR), _EXPIRED),
    # A hand-back with a firm end stands while its process lives ...
    "handed-back": (_WAIT, _EXPIRED),
    # ... and without a known process as long as one may come back to it.
    "left-behind": (replace(_WAIT, seconds=30 * MINUTE), _EXPIRED),
    # It looks final but is not firm: a Stop hook may block, an error line follows within 0.01 s.
    "answer": (Step(State.WORKING, Reason.MODEL, 1.0), _WAIT, _EXPIRED),
    # The next turn of a goal or queue follows an end within 0.07 s.
    "goes-on": (Step(State.WORKING, Reason.MODEL, 0.5), _WAIT, _EXPIRED),
    # The prompt is free but the answer is not on disk: Esc before the first token, or a flush on its way
    # (measured: up to 0.4 s).
    "vanished": (Step(State.WORKING, Reason.MODEL, 1.0), replace(_WAIT, reason=Reason.INTERRUPTED), _EXPIRED),
    # Background shells: a server never ends, and must not hide the hand-back for ever.
    "background": (Step(State.WORKING, Reason.BACKGROUND, 5 * MINUTE), _WAIT, _EXPIRED),
    # Background agents do end, but may take long.
    "children": (Step(State.WORKING, Reason.BACKGROUND, HOUR), _WAIT, _EXPIRED),
    "idle": (Step(State.IDLE, None, inf),),
}

#: Spans that end with their turn at the latest; the others (children, shells) may outlive it.
TURN_BOUND = frozenset({"tool", "shell-tool", "instant-tool", "question", "plan", "permission", "escalation",
                        "unrecorded"})

ASKS: Mapping[str, Reason] = {
    "permission": Reason.PERMISSION, "question": Reason.QUESTION, "plan": Reason.PLAN,
}

#: Open spans of a running turn that mean something other than "a tool runs", most telling first.
SPAN_LEASES: tuple[tuple[str, str], ...] = (
    ("question", "ask"), ("plan", "ask"), ("permission", "ask"), ("escalation", "escalation"),
    ("unrecorded", "unrecorded"), ("shell-tool", "no-shell"), ("instant-tool", "no-edit"),
)


# -- fold -------------------------------------------------------------------------------------------------


def _age(event: Event) -> tuple[float, int, str, str, str, str, float]:
    """Order events of one register; what follows time and place only makes the join total."""
    return (event.at, event.order, event.word, event.turn, event.text, event.source, event.number)


def fold(session: Session, event: Event) -> Session:
    """Join one event into a session's registers. Commutative, associative, idempotent."""
    slot = (event.kind, event.key)
    held = session.registers.get(slot)
    if (held and _age(held) >= _age(event)) or _outdated(event, session.get(Kind.PROMPT)):
        return session
    registers = {**session.registers, slot: event}
    if event.kind is Kind.PROMPT:
        registers = {k: e for k, e in registers.items() if not _outdated(e, event)}
    return replace(session, registers=registers)


def _outdated(event: Event, prompt: Event | None) -> bool:
    """Tell whether a turn-bound span was opened or closed before the newest turn began."""
    bound = event.kind in (Kind.OPENED, Kind.CLOSED) and event.word in TURN_BOUND
    return bound and prompt is not None and event.at < prompt.at


# -- what the registers say -------------------------------------------------------------------------------


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
    """A session's registers, read once: the turn, its end if it stands, the owner and its life."""

    session: Session
    prompt: Event | None
    last: Event | None
    over: Event | None
    owner: Event | None
    gone: Event | None
    live: Event | None

    @property
    def turn(self) -> str:
        """Return the key of the newest turn."""
        if self.over and self.over.turn:
            return self.over.turn
        return self.prompt.turn if self.prompt else ""

    @property
    def began(self) -> float:
        """Return when the newest turn began, or when it is first heard of."""
        return self.prompt.at if self.prompt else self.last.at if self.last else 0.0

    @property
    def abandoned(self) -> bool:
        """Tell whether the newest turn belongs to an earlier process than today's owner."""
        return bool(self.owner and self.last and self.last.at < self.owner.number)

    def open(self, *words: str) -> list[Event]:
        """Return the open spans of these words, oldest first."""
        spans = [e for e in self.session.every(Kind.OPENED) if e.word in words and not self._closed(e)]
        return sorted(spans, key=_age)

    def _closed(self, span: Event) -> bool:
        closed = self.session.get(Kind.CLOSED, span.key)
        return closed is not None and closed.at >= span.at


def _newest(*events: Event | None) -> Event | None:
    return max((e for e in events if e), key=_age, default=None)


def view(session: Session) -> View:
    """Read a session's registers once."""
    end, prompt, answer = session.get(Kind.END), session.get(Kind.PROMPT), session.get(Kind.ANSWER)
    if prompt is None:
        prompt, answer = session.get(Kind.PROMPT, KEYLESS), answer or session.get(Kind.ANSWER, KEYLESS)
    progress = _standing(session.get(Kind.PROGRESS), prompt, end)
    last = _newest(prompt, progress, end, answer)
    over = last if last and last.kind in (Kind.END, Kind.ANSWER) else None
    owner, gone = _owner(session, last)
    live = session.get(Kind.LIVE)
    if gone or (live and owner and live.text != owner.key):
        live = None
    return View(session, prompt, last, over, owner, gone, live)


def _standing(progress: Event | None, prompt: Event | None, end: Event | None) -> Event | None:
    """Return progress unless it is a late record of an ended turn, or bookkeeping after an end."""
    if progress is None:
        return None
    if progress.turn and prompt and progress.turn != prompt.turn:
        return None
    if end is None or progress.at <= end.at:
        return progress
    if progress.turn:
        return None if progress.turn == end.turn else progress
    return progress if progress.at > end.at + GRACE else None


def _owner(session: Session, last: Event | None) -> tuple[Event | None, Event | None]:
    """Return the process that has the session loaded, and its end if it has ended.

    Records well after the end of the last known owner mean that some unseen process goes on with it.
    """
    owners = sorted(session.every(Kind.OWNER), key=_age, reverse=True)
    for owner in owners:
        if not _ended(session, owner):
            return owner, None
    if not owners:
        return None, None
    gone = max((e for o in owners if (e := _ended(session, o))), key=_age)
    if last and last.at > gone.at + LAST_WORDS:
        return None, None
    return owners[0], gone


def _ended(session: Session, process: Event) -> Event | None:
    gone = session.get(Kind.GONE, process.key)
    return gone if gone and gone.at >= process.at else None


# -- claims, in order of precedence -----------------------------------------------------------------------


def _dead(v: View) -> Claim | None:
    if v.gone is None:
        return None
    crashed = v.gone.word == "exit" and v.last is not None and v.over is None
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
    span = next(iter(v.open("question", "plan")), None)
    reason = ASKS[span.word] if span else ASKS[v.live.word]
    return Claim("ask", v.live.at, reason, v.live, f"{v.live.text}@{v.live.at:.3f}")


def _live_busy(v: View) -> Claim | None:
    if v.live is None or v.live.word != "busy" or _firm_since(v, v.live.at):
        return None
    tools = v.open("tool", "shell-tool", "instant-tool", "escalation") if v.over is None else []
    if tools:
        return Claim("tool", tools[-1].at, Reason.TOOL, tools[-1], v.turn, since=v.began)
    sign = v.last if v.last and v.last.at > v.live.at else v.live
    reason = Reason.RETRYING if sign.word == Reason.RETRYING else Reason.MODEL
    return Claim("busy", sign.at, reason, sign, v.turn, since=max(v.began, v.live.at))


def _live_free(v: View) -> Claim | None:
    """The prompt is free: what the history then says, or an interrupt that left no record."""
    if v.live is None or v.live.word not in ("idle", "shell"):
        return None
    if v.last is None or v.abandoned:
        return Claim("idle", v.live.at, Reason.NEW, v.live)
    if v.over:
        return _handed_back(v, background=_live_background(v))
    if v.live.at > v.last.at:
        return Claim("vanished", v.live.at, Reason.INTERRUPTED, v.live, v.turn, Sure.INFERRED)
    return None


def _live_background(v: View) -> str:
    return "background" if v.live and v.live.word == "shell" else ""


def _firm_since(v: View, at: float) -> bool:
    return v.over is not None and v.over.kind is Kind.END and v.over.at > at


def _closed_by_user(v: View) -> Claim | None:
    """The last window that showed the session has gone, and nothing has happened since."""
    windows = list(v.session.every(Kind.ATTACHED))
    ends = [_ended(v.session, w) for w in windows]
    if not windows or not all(ends) or (v.last and v.over is None):
        return None
    end = max((e for e in ends if e), key=_age)
    if v.over and v.over.at > end.at:
        return None
    return Claim("idle", end.at, Reason.ENDED, end, v.turn, Sure.INFERRED)


def _over(v: View) -> Claim | None:
    if v.over is None:
        return None
    children = v.open("child")
    if v.over.number > 0 or (children and not (v.over.number == 0 and children[-1].at < v.over.at)):
        return _handed_back(v, background="children")
    if _running_shells(v):
        return _handed_back(v, background="background")
    return _handed_back(v)


def _running_shells(v: View) -> bool:
    """Tell whether a background shell runs: processes, where they can be seen, beat the records."""
    if v.open("process"):
        return True
    alone = v.session.get(Kind.ALONE)
    quiet = alone.at if alone and alone.word == "yes" else -inf
    return any(shell.at > quiet for shell in v.open("shell"))


def _handed_back(v: View, background: str = "") -> Claim:
    over = v.over
    if over is None:  # pragma: no cover - callers have looked
        raise ValueError("no turn is over")
    reason, source = _hand_back_reason(v, over)
    lease = _hand_back_lease(v, over)
    if background and reason is Reason.FINISHED:
        lease = background
    return Claim(lease, over.at, reason, source, v.turn, since=over.at)


def _hand_back_lease(v: View, over: Event) -> str:
    if over.kind is Kind.ANSWER and v.live is None:
        return "answer"
    if v.prompt and v.prompt.word == "agent" and v.live is None:
        return "goes-on"
    return "handed-back" if v.owner else "left-behind"


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
        return Claim("handed-back", windows[-1].at, Reason.INTERRUPTED, windows[-1], v.turn, Sure.INFERRED)
    return Claim("idle", v.owner.number if v.owner else died, Reason.NEW, v.owner)


def _open_span(v: View) -> Claim | None:
    for word, lease in SPAN_LEASES:
        for span in v.open(word):
            if lease == "ask":
                return Claim(lease, span.at, ASKS[word], span, span.key)
            if not _runs(v, span):
                return Claim(lease, span.at, Reason.TOOL, span, span.key, Sure.INFERRED)
    tools = v.open("tool", "shell-tool", "instant-tool", "escalation", "unrecorded")
    if tools:
        lease = "tool" if v.owner else "ownerless"
        return Claim(lease, tools[-1].at, Reason.TOOL, tools[-1], v.turn, since=v.began)
    return None


def _runs(v: View, span: Event) -> bool:
    """Tell whether a call runs, or may run for all that can be seen.

    A process of that very call was seen; or tool processes were seen since it was opened; or nobody
    can look (no owner is known). An escalation counts by its own process alone.
    """
    if v.session.get(Kind.OPENED, f"process:{span.key}"):
        return True
    if v.owner is None:
        return True
    if span.word in ("escalation", "instant-tool"):
        return False
    alone = v.session.get(Kind.ALONE)
    return not (alone and alone.word == "yes" and alone.at <= span.at)


def _silent_model(v: View, last: Event) -> Claim:
    known = {Reason.TOOL: Reason.MODEL}  # the tool has ended, the model goes on
    word = Reason(last.word) if last.kind is Kind.PROGRESS and last.word else Reason.MODEL
    lease = "model" if v.owner else "ownerless"
    return Claim(lease, last.at, known.get(word, word), last, v.turn, since=v.began)


def _nothing(v: View) -> Claim | None:
    at = max((e.at for e in v.session.registers.values()), default=0.0)
    return Claim("idle", at, Reason.NEW, v.owner)


CLAIMS: tuple[Callable[[View], Claim | None], ...] = (
    _dead, _trust, _suspended, _live_ask, _live_busy, _live_free, _closed_by_user, _over, _open_turn, _nothing,
)


def claim(session: Session) -> Claim:
    """Return what a session's registers claim; the order of CLAIMS is the precedence."""
    v = view(session)
    return next(c for rule in CLAIMS if (c := rule(v)))


# -- decide, collapse -------------------------------------------------------------------------------------


def decide(session: Session, now: float, since: float) -> Verdict:
    """Return the verdict at `now`. A stall that would have begun before `since` (launch) is old news."""
    c = claim(session)
    at = c.at
    for step in LEASES[c.lease]:
        end = at + step.seconds
        if now < end and not (step.state is State.STALLED and at < since and c.lease != "suspended"):
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


def urgency(row: Row) -> tuple[int, float]:
    """Order rows: most urgent first, and of those the one that has waited longest."""
    return (_RANK[row.verdict.state, row.seen], row.verdict.since)


def collapse(rows: Iterable[Row]) -> tuple[State, bool]:
    """Return the icon's state, and whether it is calm (a hand-back already seen)."""
    mine = [row for row in rows if row.role is Role.PERSON]
    if not mine:
        return State.IDLE, False
    first = min(mine, key=urgency)
    return first.verdict.state, first.seen and first.verdict.state is State.YOUR_TURN


def lift(child: Session, verdict: Verdict, parent: str) -> tuple[Event, ...]:
    """Return what a child session's verdict means to its parent: a running child, or an ask."""
    begun = Event(Kind.OPENED, parent, verdict.since, child.id, "child", source="child session")
    if verdict.state is State.WORKING:
        return (begun,)
    if verdict.state is State.YOUR_TURN and verdict.reason.value in ASKS and verdict.reason is not Reason.PLAN:
        asks = replace(begun, key=f"{child.id}:ask", word=verdict.reason.value)
        return (begun, asks)
    ended = replace(begun, kind=Kind.CLOSED)
    return (ended, replace(ended, key=f"{child.id}:ask", word="permission"))
