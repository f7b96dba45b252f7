"""What a session's registers claim about its turn: the rules, in order of precedence. Pure, and without time.

A claim depends on the evidence alone, never on the moment of asking: how it ages is the business of its lease.
"""

from __future__ import annotations

from collections.abc import Callable

from island.handback import handed_back, over
from island.leases import FREED, HUSHED, Claim
from island.model import ANY, HOOK, KEYLESS, TURN_BOUND, Doubt, Event, Kind, Reason, Session, Sure, before, place
from island.news import heard
from island.view import ASKS, View, ended, view

#: Source of a LIVE event that was read from the title of a terminal.
TITLE = "terminal title"

#: Open spans of a running turn that mean something other than "a tool runs", most telling first.
SPAN_LEASES: tuple[tuple[str, str], ...] = (
    ("question", "ask"), ("plan", "ask"), ("permission", "ask"), ("escalation", "escalation"),
    ("unrecorded", "unrecorded"), ("shell-tool", "no-shell"), ("instant-tool", "no-edit"), ("judged-tool", "judged"),
)

#: Open spans in which a tool runs, for all that can be seen.
TOOLS = ("tool", "shell-tool", "instant-tool", "judged-tool", "escalation")


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
    reason = Reason.RETRYING if sign.word == Reason.RETRYING or sign.text == Doubt.AGAIN else Reason.MODEL
    if v.over and v.over.number > 0:
        reason = Reason.BACKGROUND  # its agents went on after an answer to one of them
    return Claim("busy", sign.at, reason, sign, v.turn, since=max(v.began, v.live.at))


def _went_on(v: View) -> Claim | None:
    """A tool began behind what was taken for the last answer: it was none."""
    over, alone = v.over, v.session.get(Kind.ALONE)
    if over is None or over.text != Doubt.PERHAPS or v.owner is None or alone is None:
        return None
    runs = alone.word == "no"
    began = alone.at if runs else alone.number
    if began <= over.at or (v.live and v.live.at > began):
        return None
    word, lease = (Reason.TOOL, "tool") if runs else (Reason.MODEL, "model")
    return Claim(lease, alone.at, word, alone, v.turn, Sure.INFERRED, since=v.began)


def _live_free(v: View) -> Claim | None:
    """The prompt is free: what the history then says, or an end that left no record."""
    if v.live is None or v.live.word not in ("idle", "shell", "ready"):
        return None
    if v.last is None and any(e.word == "busy" for e in v.session.every(Kind.LIVE)):
        return Claim("unwritten", v.live.at, Reason.NEW, v.live)
    if v.last is None or (v.abandoned and not (v.over and _says_no_more(v.live))):
        return Claim("idle", v.live.at, Reason.NEW, v.live)
    if v.over and not _stopped_trying(v, v.over, v.live):
        return over(v) if _says_no_more(v.live) else handed_back(v, v.over, _live_background(v))
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


def _says_no_more(live: Event) -> bool:
    """Tell whether it says nothing of what runs in the background, nor of an earlier process's turn."""
    return live.source == TITLE or live.text == ANY


def _stopped_trying(v: View, over: Event, live: Event) -> bool:
    """Tell whether somebody stopped what was about to be tried again: the last error frees the prompt at once."""
    return over.text == Doubt.AGAIN and over is v.last and live.at > over.at + FREED


def _firm_since(v: View, at: float) -> bool:
    return v.over is not None and v.over.kind is Kind.END and v.over.at > at


def _asked_since(v: View) -> Claim | None:
    """An ask opened after what looked like the last answer: it was not the last. An error stays an error."""
    over = v.over
    if over is None or over.kind is not Kind.ANSWER or over.word not in ("", Reason.FINISHED, Reason.QUESTION):
        return None
    asks = [span for span in v.open(*ASKS) if span.word in TURN_BOUND and before(over, span)]
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
    ends = [ended(v.session, w) for w in windows]
    if not windows or not all(ends) or (v.last and v.over is None):
        return None
    end = max((e for e in ends if e), key=place)
    if v.over and v.over.at > end.at:
        return None
    return Claim("idle", end.at, Reason.ENDED, end, v.turn, Sure.INFERRED)


def _open_turn(v: View) -> Claim | None:
    if v.last is None:
        return None
    if v.abandoned:
        return _reopened(v, v.last.at)
    return _open_span(v) or _silent_model(v, v.last)


def _reopened(v: View, died: float) -> Claim:
    """Return what a turn is whose process died, now that another has the session loaded."""
    windows = [e for e in v.session.every(Kind.ATTACHED) if e.at > died and not ended(v.session, e)]
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
                at = max(span.at, v.quiet_since, heard(v.session))
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


def _silent_model(v: View, last: Event) -> Claim:
    known = {Reason.TOOL: Reason.MODEL}  # the tool has ended, the model goes on
    word = Reason(last.word) if last.kind is Kind.PROGRESS and last.word else Reason.MODEL
    lease = "model" if v.owner else "ownerless"
    return Claim(lease, last.at, known.get(word, word), last, v.turn, since=v.began)


def _nothing(v: View) -> Claim | None:
    at = max((e.at for e in v.session.events()), default=0.0)
    return Claim("idle", at, Reason.NEW, v.owner)


CLAIMS: tuple[Callable[[View], Claim | None], ...] = (
    _dead, _trust, _suspended, _live_ask, _child_ask, _live_busy, _went_on, _live_free, _hook_ask, _hook_free,
    _closed_by_user, _asked_since, over, _open_turn, _nothing,
)


def claim(session: Session) -> Claim:
    """Return what a session's registers claim; the order of CLAIMS is the precedence."""
    v = view(session)
    return next(c for rule in CLAIMS if (c := rule(v)))
