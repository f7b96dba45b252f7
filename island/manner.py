"""In which manner the user wants to be told: by reason, how soon, how loud, and of what not at all. Pure.

The defaults stand here with their reasons; the settings change them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from enum import StrEnum
from math import inf

from island.model import Reason, Row, Sure
from island.quiet import LONGEST_SNOOZE, Hours, Hush
from island.text import safe


class Urgency(StrEnum):
    """How a desktop is to treat a notice, in the words of its notification daemon; off: no notice at all."""

    OFF = "off"
    LOW = "low"
    NORMAL = "normal"
    CRITICAL = "critical"


class Sound(StrEnum):
    """What a notice sounds like; each desktop has its own name for it."""

    NONE = "none"
    ASK = "ask"
    DONE = "done"
    TROUBLE = "trouble"


@dataclass(frozen=True, slots=True)
class Tone:
    """How one reason to wait is told: in which words, after how many seconds of waiting, and how loud."""

    words: str
    dwell: float
    urgency: Urgency
    sound: Sound


#: Every reason to wait, most pressing first.
#:
#: Dwell: a wait must last before it is announced, for who watches begins to type at once, and a queued prompt, a
#: goal's next turn or a blocking hook takes a turn back within a second. A permission waits longer: automatic reviews
#: and rules of the user's own answer many within two seconds, and nobody is needed for those.
#: Urgency: none is critical, which some daemons keep on the screen for ever and show above full-screen windows; and of
#: what needs the user none is low, which some do not show at all. A limit only time can lift.
TONES: Mapping[Reason, Tone] = {
    Reason.PERMISSION: Tone("waits for your permission", 2.5, Urgency.NORMAL, Sound.ASK),
    Reason.QUESTION: Tone("asks you a question", 1.5, Urgency.NORMAL, Sound.ASK),
    Reason.PLAN: Tone("shows a plan for you to approve", 1.5, Urgency.NORMAL, Sound.ASK),
    Reason.LOGIN: Tone("needs you to log in", 1.5, Urgency.NORMAL, Sound.TROUBLE),
    Reason.ERROR: Tone("stopped with an error", 1.5, Urgency.NORMAL, Sound.TROUBLE),
    Reason.FINISHED: Tone("finished: your turn", 1.5, Urgency.NORMAL, Sound.DONE),
    Reason.LIMIT: Tone("stopped at a usage limit", 1.5, Urgency.LOW, Sound.TROUBLE),
}

#: What is only inferred dwells at least so long: most inferences that are wrong are put right within it.
INFERRED_DWELL = 2.5


@dataclass(frozen=True, slots=True)
class Manner:
    """What the settings say of notices.

    min_turn: a turn that took less of the user's time (seconds) is not told to have finished; titles: a notice names
    the session's title.
    """

    on: bool = True
    titles: bool = False
    sound: bool = True
    min_turn: float = 0.0
    quiet_hours: Hours | None = None
    muted_projects: tuple[str, ...] = ()
    muted_agents: tuple[str, ...] = ()
    dwell: Mapping[Reason, float] = field(default_factory=lambda: {r: tone.dwell for r, tone in TONES.items()})
    urgency: Mapping[Reason, Urgency] = field(default_factory=lambda: {r: tone.urgency for r, tone in TONES.items()})
    sounds: Mapping[Reason, Sound] = field(default_factory=lambda: {r: tone.sound for r, tone in TONES.items()})

    def dwells(self, row: Row) -> float:
        """Return how many seconds a wait must last."""
        return max(self.dwell[row.verdict.reason], INFERRED_DWELL if row.verdict.sure is Sure.INFERRED else 0.0)

    def mutes(self, row: Row) -> bool:
        """Tell whether this wait is never told."""
        off = not self.on or self.urgency[row.verdict.reason] is Urgency.OFF
        return off or row.project in self.muted_projects or row.agent in self.muted_agents or self._brief(row)

    def _brief(self, row: Row) -> bool:
        """Tell whether a turn was over before the user can have turned to something else; unknown is not."""
        took = row.verdict.since - row.begun
        return row.verdict.reason is Reason.FINISHED and row.begun > 0 and took < self.min_turn

    def sound_of(self, reason: Reason) -> Sound:
        """Return what a notice of this reason sounds like."""
        return self.sounds[reason] if self.sound else Sound.NONE


@dataclass(frozen=True, slots=True)
class Ear:
    """How the user listens just now: as his settings say, to what he did not silence, if he is there.

    away: nobody looks at the screen; zone: that of the clock on the wall, None for the machine's own.
    """

    manner: Manner = field(default_factory=Manner)
    hush: Hush = field(default_factory=Hush)
    away: bool = False
    zone: tzinfo | None = None

    def mutes(self, row: Row) -> bool:
        """Tell whether this wait is never told."""
        return self.manner.mutes(row) or self.hush.mutes(row)

    def quiet_until(self, now: float) -> float:
        """Return until when nothing is told, which is for ever while the user is away; 0 if it may be told now."""
        snoozed = self.hush.snoozed if now < self.hush.snoozed <= now + LONGEST_SNOOZE else 0.0
        hours = self.manner.quiet_hours.over(now, self.zone) if self.manner.quiet_hours else 0.0
        return inf if self.away else max(snoozed, hours)

    def name(self, row: Row) -> str:
        """Return what a session is called, as far as a notice may tell it, on one line: a name is a foreign text."""
        named = (row.project, row.title if self.manner.titles else "")
        return "" if self.hush.hidden else ": ".join(filter(None, map(safe, named)))
