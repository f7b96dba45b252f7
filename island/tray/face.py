"""What a state looks like: the icon's faces, and a row's sign and words. Pure: must not draw."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from island.model import Reason, Row, State


class Face(StrEnum):
    """What the icon looks like, least urgent first."""

    IDLE = "idle"
    CALM = "calm"  # handed back, and the user knows
    WORKING = "working"
    STALLED = "stalled"
    DONE = "done"
    ERROR = "error"
    YOUR_TURN = "your-turn"


GLYPHS: Mapping[Face, str] = {
    # None of these has an emoji form, which would bring its own colour and width.
    Face.IDLE: "○", Face.CALM: "◇", Face.WORKING: "►", Face.STALLED: "▲",
    Face.DONE: "✓", Face.ERROR: "✕", Face.YOUR_TURN: "◆",
}

WORDS: Mapping[Reason, str] = {
    Reason.MODEL: "thinking", Reason.TOOL: "running a tool", Reason.COMPACTING: "compacting",
    Reason.RETRYING: "retrying", Reason.BACKGROUND: "background work", Reason.FINISHED: "finished",
    Reason.QUESTION: "asks a question", Reason.PLAN: "plan to approve", Reason.PERMISSION: "needs permission",
    Reason.ERROR: "stopped by an error", Reason.LIMIT: "usage limit", Reason.LOGIN: "needs a login",
    Reason.INTERRUPTED: "interrupted", Reason.SILENT: "gone silent",
    Reason.MAYBE_PERMISSION: "may need permission", Reason.NEW: "new", Reason.SEEN: "seen",
    Reason.EXPIRED: "long ago", Reason.ENDED: "ended", Reason.CRASHED: "crashed",
}

#: Waits that do not look like a question. Whoever interrupted a turn knows it is over.
_WAITS: Mapping[Reason, Face] = {
    Reason.FINISHED: Face.DONE, Reason.ERROR: Face.ERROR, Reason.LIMIT: Face.ERROR,
    Reason.LOGIN: Face.ERROR, Reason.INTERRUPTED: Face.CALM,
    Reason.SEEN: Face.CALM, Reason.SILENT: Face.STALLED, Reason.MAYBE_PERMISSION: Face.STALLED,
}

#: Faces that the user is needed for, and those that he is told of.
NEEDED = frozenset({Face.YOUR_TURN, Face.ERROR, Face.DONE})
TOLD = NEEDED | {Face.STALLED}


def face_of(reason: Reason) -> Face:
    """Return the face of something that may need the user and that he has not seen yet."""
    return _WAITS.get(reason, Face.YOUR_TURN)


def face(row: Row) -> Face:
    """Return the face of a row."""
    if row.verdict.state is not State.YOUR_TURN:
        return Face(row.verdict.state.value)
    return Face.CALM if row.seen else face_of(row.verdict.reason)
