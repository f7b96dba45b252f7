"""What a turn that looks over claims: why it was handed back, and whether that may still be taken back. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from island.leases import Claim
from island.model import AFRESH, HOOK, Doubt, Event, Kind, Reason, Sure
from island.news import told_of
from island.view import View


def over(v: View) -> Claim | None:
    """Return what a turn that is over claims; background work may go on behind it."""
    last = v.over
    if last is None:
        return None
    if last.key == AFRESH:
        return Claim("idle", last.at, Reason.NEW, last)
    children = v.open("child")
    if last.number > 0 or (children and not (last.number == 0 and children[-1].at < last.at)):
        return handed_back(v, last, background="children")
    if _running_shells(v):
        return handed_back(v, last, background="background")
    return handed_back(v, last)


def _running_shells(v: View) -> bool:
    """Tell whether a background shell runs: processes, where they can be seen, beat the records."""
    if v.open("process", "command"):
        return True
    return any(shell.at > v.quiet_since for shell in v.open("shell"))


def handed_back(v: View, last: Event, background: str = "") -> Claim:
    """Return that a turn was handed back with its last event; background: the lease of what still runs behind it."""
    reason, source = _hand_back_reason(v, last)
    lease = _hand_back_lease(v, last, reason)
    if background and reason is Reason.FINISHED:
        lease = background
    waits = lease in ("handed-back", "left-behind", "quiet")
    at = max(last.at, _background_end(v)) if waits else last.at
    inferred = last.text == Doubt.QUIET or (last.text == Doubt.PERHAPS and lease in UNSETTLED)
    return Claim(lease, at, reason, source, v.turn, Sure.INFERRED if inferred else Sure.TOLD, at)


def _background_end(v: View) -> float:
    """Return when the last background work was over: until then it was not the user's turn."""
    ends = [e.at for e in v.session.every(Kind.CLOSED) if e.word in ("child", "shell", "process", "command")]
    if v.open("shell"):
        ends.append(v.quiet_since)
    return max(ends, default=-inf)


def _hand_back_lease(v: View, last: Event, reason: Reason) -> str:
    doubt = _doubt(v, last) if last.kind is Kind.ANSWER else ""
    if doubt:
        return doubt
    if v.prompt and v.prompt.word == "agent" and reason is Reason.FINISHED:
        return "goes-on"
    return "handed-back" if v.owner else "left-behind"


#: Leases of an answer that nothing has confirmed.
UNSETTLED = frozenset({"answer", "answer-left", "awaited"})

#: How long an answer is doubted that says itself why it may not be the last.
DOUBTS: Mapping[str, str] = {Doubt.QUIET: "quiet", Doubt.SOON: "goes-on"}


def _doubt(v: View, answer: Event) -> str:
    """Return the lease of an answer that is doubted; nothing if it is not."""
    if answer.key == HOOK:
        return "" if v.live else "goes-on"
    if answer.text == Doubt.AGAIN and v.live is None:
        return "tried-again"
    if answer.text in DOUBTS:
        return DOUBTS[answer.text]
    if v.live and v.live.at >= answer.at:
        return ""
    if answer.text == Doubt.PERHAPS and told_of(v.session):
        return "awaited"
    return "answer" if v.owner else "answer-left"


def _hand_back_reason(v: View, last: Event) -> tuple[Reason, Event]:
    """Return why it was handed back: an end's own word, else that of the answer before it."""
    answer = v.session.get(Kind.ANSWER)
    source = last
    if last.kind is Kind.END and last.word == "" and answer and answer.at >= v.began:
        source = answer
    if source.word in ("", Reason.FINISHED) and v.session.get(Kind.PLANNED, last.turn):
        return Reason.PLAN, last
    return Reason(source.word or Reason.FINISHED), source
