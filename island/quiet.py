"""What the user silenced: snooze, mutes, hidden names, quiet hours. Pure: the time and its zone are arguments.

Settings stand in a file that the user writes. A `Hush` is what he chose in the menu: it is kept over restarts, and
changed by actions alone. A zone of None is the machine's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta, tzinfo
from typing import Any

from island.model import Row, Snapshot

#: Actions, as the menu offers them. What a mute is about follows the colon: "agent/session", or a project's name.
SNOOZE_QUARTER, SNOOZE_HOUR, SNOOZE_TOMORROW, SNOOZE_OFF = "snooze:15", "snooze:60", "snooze:tomorrow", "snooze:off"
MUTE_SESSION, UNMUTE_SESSION = "mute-session:", "unmute-session:"
MUTE_PROJECT, UNMUTE_PROJECT = "mute-project:", "unmute-project:"
HIDE_NAMES, SHOW_NAMES = "names:hide", "names:show"

#: Who works at two in the morning means by tomorrow the day that his sleep is followed by.
NEW_DAY, MORNING = timedelta(hours=4), time(8)

#: No action snoozes for longer: what says so comes from another clock, or another hand.
LONGEST_SNOOZE = 3 * 86400.0

#: So many mutes are kept; sessions end, and nobody unmutes them.
MOST_MUTES = 200

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Hush:
    """What the user silenced from the menu.

    snoozed: until when nothing rings; sessions: "agent/session" each, and projects: names, that never ring, oldest
    first; hidden: no names of projects or sessions are shown, for the sharing of a screen.
    """

    snoozed: float = 0.0
    sessions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    hidden: bool = False

    def mutes(self, row: Row) -> bool:
        """Tell whether a session never rings, by itself or by its project."""
        return f"{row.agent}/{row.session}" in self.sessions or row.project in self.projects


@dataclass(frozen=True, slots=True)
class Hours:
    """A span of each day, by the clock on the wall; it may cross midnight."""

    begin: time
    end: time

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"

    def over(self, now: float, zone: tzinfo | None = None) -> float:
        """Return when the span that `now` lies in is over; 0 if it lies in none."""
        local = datetime.fromtimestamp(now, zone)
        clock = local.time()
        crosses = self.end <= self.begin
        if not (clock >= self.begin or clock < self.end if crosses else self.begin <= clock < self.end):
            return 0.0
        day = local.date() + timedelta(days=crosses and clock >= self.begin)
        return datetime.combine(day, self.end, zone).timestamp()


def hours(text: str) -> Hours:
    """Read "22:00-07:00". ValueError says what is wrong."""
    begin, dash, end = text.partition("-")
    try:
        found = Hours(*(datetime.strptime(part.strip(), "%H:%M").time() for part in (begin, end)))  # noqa: DTZ007
    except ValueError:
        raise ValueError('must be two times such as "22:00-07:00"') from None
    if found.begin == found.end or not dash:
        raise ValueError("must begin and end at different times")
    return found


def tomorrow(now: float, zone: tzinfo | None = None) -> float:
    """Return when the next morning begins for someone who is awake now."""
    day = (datetime.fromtimestamp(now, zone) - NEW_DAY).date() + timedelta(days=1)
    return datetime.combine(day, MORNING, zone).timestamp()


def veiled(snapshot: Snapshot, *, titles: bool, names: bool) -> Snapshot:
    """Return a snapshot with the titles, or any names of projects and sessions, left out."""
    if titles and names:
        return snapshot
    rows = (replace(row, title="", project=row.project if names else "") for row in snapshot.rows)
    return replace(snapshot, rows=tuple(rows), unnamed=not names)


# -- actions ------------------------------------------------------------------------------------------------

Act = Callable[[Hush, str, float, tzinfo | None], Hush]

ACTIONS: Mapping[str, Act] = {
    SNOOZE_QUARTER: lambda hush, _, now, __: replace(hush, snoozed=now + 900),
    SNOOZE_HOUR: lambda hush, _, now, __: replace(hush, snoozed=now + 3600),
    SNOOZE_TOMORROW: lambda hush, _, now, zone: replace(hush, snoozed=tomorrow(now, zone)),
    SNOOZE_OFF: lambda hush, *_: replace(hush, snoozed=0.0),
    MUTE_SESSION: lambda hush, what, *_: replace(hush, sessions=_with(hush.sessions, what)),
    UNMUTE_SESSION: lambda hush, what, *_: replace(hush, sessions=_without(hush.sessions, what)),
    MUTE_PROJECT: lambda hush, what, *_: replace(hush, projects=_with(hush.projects, what)),
    UNMUTE_PROJECT: lambda hush, what, *_: replace(hush, projects=_without(hush.projects, what)),
    HIDE_NAMES: lambda hush, *_: replace(hush, hidden=True),
    SHOW_NAMES: lambda hush, *_: replace(hush, hidden=False),
}


def after(hush: Hush, action: str, now: float, zone: tzinfo | None = None) -> Hush | None:
    """Return what is silenced after an action; None if it is none of `ACTIONS`."""
    word, colon, what = action.partition(":")
    act = ACTIONS.get(action) or ACTIONS.get(word + colon)
    return act(hush, what, now, zone) if act and what else None


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return (*_without(names, name), name)[-MOST_MUTES:]


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(n for n in names if n != name)


# -- kept over restarts -------------------------------------------------------------------------------------


def to_json(hush: Hush) -> dict[str, Any]:
    """Return it as it is kept."""
    return {"schema": SCHEMA, "snoozed": hush.snoozed, "sessions": list(hush.sessions),
            "projects": list(hush.projects), "hidden": hush.hidden}


def from_json(kept: object) -> Hush:
    """Return what was kept. ValueError for what is not ours."""
    match kept:
        case {"schema": int(), "snoozed": int() | float() as snoozed, "sessions": list() as sessions,
              "projects": list() as projects, "hidden": bool(hidden)}:
            if all(isinstance(name, str) for name in (*sessions, *projects)):
                return Hush(float(snoozed), tuple(sessions), tuple(projects), hidden)
        case _:
            pass
    raise ValueError("not what island keeps here")
