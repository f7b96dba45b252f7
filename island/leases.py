"""How long evidence supports a state, and what comes after: one literal table. Pure.

A claim names a row; the row, counted from the claim's own time, says which state holds until when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf

from island.model import Event, Reason, State, Sure

SECOND, MINUTE, HOUR = 1.0, 60.0, 3600.0

#: Turn-less progress this soon after a firm end is bookkeeping (late flushes, hook summaries); later it
#: means that the user is back. Late flushes were measured at up to 1.2 s.
GRACE = 2 * SECOND

#: The last error of a request frees the prompt at once: measured at 0.5 s, with titles looked at twice a second.
FREED = 1.5 * SECOND

#: Records may follow the death of their process: a hang-up flushes a failed tool after the live record went.
LAST_WORDS = 2 * SECOND


#: Records of the call that asks may carry a time this much after that of the hook that tells of its dialog.
LATE = 0.5 * SECOND

#: A title that asks may mean a command that has written nothing for half a minute, and not a dialog; it is seen late.
HUSHED = 25 * SECOND


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
    # The live record says busy: told, but a hang is a hang (retries write a record each). It never turns idle
    # by itself: the process lives, also after a night's sleep of the machine.
    "busy": (Step(State.WORKING, None, 30 * MINUTE), replace(_SILENT, seconds=inf), _EXPIRED),
    # Stopped by a signal (Ctrl-Z): nothing happens until somebody continues it.
    "suspended": (Step(State.STALLED, Reason.SILENT, 12 * HOUR), _EXPIRED),
    # A command wrote something, and then nothing for half a minute: it may wait for input, or be slow.
    "hushed": (Step(State.STALLED, Reason.SILENT, 12 * HOUR), _EXPIRED),
    # The agent itself says that it asks.
    "ask": (_WAIT, _EXPIRED),
    # An approved escalation has its process within 0.3 s, and processes are looked at twice a second.
    "escalation": _ask_after(1.0),
    # A shell tool without a shell below the agent: a short command between two hooks was measured at 1.9 s.
    "no-shell": _ask_after(2.5),
    # A file edit is done in milliseconds; only a dialog or a slow hook keeps it open.
    "no-edit": _ask_after(3.0),
    # A model may be asked first whether a command is safe: 10 s and again 30 s by Qwen Code's own limits.
    "judged": _ask_after(45.0),
    # A response is complete but nothing of it was recorded: old Codex in a tool, or in a dialog.
    "unrecorded": _ask_after(1.0),
    # A start-up writes its live record 0.3-1.2 s after its key, under load; the trust dialog comes between.
    "trust": (Step(State.IDLE, Reason.NEW, 2.5), Step(State.YOUR_TURN, Reason.PERMISSION, 12 * HOUR), _EXPIRED),
    # A hand-back with a firm end stands while its process lives ...
    "handed-back": (_WAIT, _EXPIRED),
    # ... and without a known process as long as one may come back to it.
    "left-behind": (replace(_WAIT, seconds=30 * MINUTE), _EXPIRED),
    # It looks final but is not firm: a Stop hook may block, an error line follows within 0.01 s.
    "answer": (Step(State.WORKING, Reason.MODEL, 1.0), _WAIT, _EXPIRED),
    "answer-left": (Step(State.WORKING, Reason.MODEL, 1.0), replace(_WAIT, seconds=30 * MINUTE), _EXPIRED),
    # The same where hooks told of the turn and tell of its end, too: a tool runs behind it, or a call was lost.
    "awaited": (Step(State.WORKING, Reason.MODEL, 15 * MINUTE), _WAIT, _EXPIRED),
    # A request failed, and may be tried again: tries were measured up to 34 s apart, and then the model may think.
    "tried-again": (Step(State.WORKING, Reason.RETRYING, 15 * MINUTE), _WAIT, _EXPIRED),
    # It looks final, and the end is never written: only that nothing follows tells it, so it waits longer than
    # the steps of a turn are commonly apart, and stays inferred.
    "quiet": (Step(State.WORKING, Reason.MODEL, 10.0), _WAIT, _EXPIRED),
    # The next turn of a goal or queue follows an end within 0.07 s, a dialog a complete answer within 0.15 s.
    "goes-on": (Step(State.WORKING, Reason.MODEL, 0.5), _WAIT, _EXPIRED),
    # The prompt is free but the answer is not on disk: Esc before the first token, or a flush on its way
    # (measured: up to 0.4 s).
    "vanished": (Step(State.WORKING, Reason.MODEL, 1.0), replace(_WAIT, reason=Reason.INTERRUPTED), _EXPIRED),
    # The same of an agent that puts every interrupt on record: it was not the user who stopped it.
    "stopped": (Step(State.WORKING, Reason.MODEL, 1.5), _WAIT, _EXPIRED),
    # It was busy, and nothing of it is on disk yet: a first turn is written up to 0.9 s late.
    "unwritten": (Step(State.WORKING, Reason.MODEL, 1.5), Step(State.IDLE, Reason.NEW, inf)),
    # Background shells: a server never ends, and must not hide the hand-back for ever.
    "background": (Step(State.WORKING, Reason.BACKGROUND, 5 * MINUTE), _WAIT, _EXPIRED),
    # Background agents do end, but may take long.
    "children": (Step(State.WORKING, Reason.BACKGROUND, HOUR), _WAIT, _EXPIRED),
    "idle": (Step(State.IDLE, None, inf),),
}
