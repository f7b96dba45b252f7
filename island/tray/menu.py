"""What the tray shows of a snapshot. Pure: must not draw, speak a protocol or look at a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from textwrap import wrap

from island.manner import Ear
from island.model import Reason, Role, Row, Snapshot, State
from island.quiet import (
    HIDE_NAMES,
    SHOW_NAMES,
    SNOOZE_HOUR,
    SNOOZE_OFF,
    SNOOZE_QUARTER,
    SNOOZE_TOMORROW,
    UNMUTE_PROJECT,
    UNMUTE_SESSION,
)
from island.text import safe
from island.tray.entry import ABOUT, DOCTOR, QUIET_HOURS, QUIT, SEEN, SETTINGS, MenuRow, RowKind, action, heading, line
from island.tray.face import NEEDED, TOLD, Face, face
from island.tray.listing import NARROW, counted, counted_as, sessions, text
from island.tray.session import clock

MOST_LINES = 6
MOST_TROUBLE = 5
LONGEST_TROUBLE = 240

#: What is over needs nobody, and is listed by `island status --all`; a crash is worth a look.
_OVER = frozenset({Reason.ENDED, Reason.EXPIRED})

EAR = Ear()  # as the defaults say


@dataclass(frozen=True, slots=True)
class TrayModel:
    """All that a tray shows. Equal models look equal, so a backend sends only differences.

    badge: how many sessions wait unseen; title: the essential in one line; attention: the user is needed.
    """

    face: Face = Face.IDLE
    badge: int = 0
    title: str = "island"
    lines: tuple[str, ...] = ()
    attention: bool = False
    rows: tuple[MenuRow, ...] = ()


def model(snapshot: Snapshot, now: float, ear: Ear = EAR) -> TrayModel:
    """Return what the tray shows of `snapshot` at `now`."""
    rows = [row for row in snapshot.rows if row.role is Role.PERSON]
    counts = Counter(map(counted_as, rows))
    icon = _icon(snapshot, rows)
    summary = counted(counts) or "nothing needs you"
    trouble = tuple(f"! {safe(what, NARROW - 2)}" for what in snapshot.trouble[:MOST_TROUBLE])
    return TrayModel(
        face=icon,
        badge=counts["waiting"],
        title=f"island: {summary}",
        lines=_tooltip(rows, ear) + trouble,
        attention=icon in NEEDED,
        rows=tuple(_menu(summary, rows, snapshot.trouble[:MOST_TROUBLE], now, ear)),
    )


def _icon(snapshot: Snapshot, rows: Sequence[Row]) -> Face:
    """Return the icon's face: the snapshot says how urgent, the waiting rows say what for."""
    if snapshot.icon is not State.YOUR_TURN:
        return Face(snapshot.icon.value)
    if snapshot.calm:
        return Face.CALM
    faces = {face(row) for row in rows if row.verdict.state is State.YOUR_TURN and not row.seen}
    return max(faces, key=list(Face).index, default=Face.YOUR_TURN)


def _tooltip(rows: Sequence[Row], ear: Ear) -> tuple[str, ...]:
    """Return what needs the user, without ages: xfce shows a changed tooltip anew, even over the menu."""
    told = (row for row in rows if face(row) in TOLD)
    return tuple(text(row, ear, width=NARROW) for row in islice(told, MOST_LINES))


# -- the menu -----------------------------------------------------------------------------------------------


def _menu(summary: str, rows: Sequence[Row], trouble: Sequence[str], now: float,
          ear: Ear) -> Iterator[MenuRow]:
    yield heading("heading", summary[0].upper() + summary[1:])
    if silent := _silent(now, ear):
        yield heading("silent", silent)
    yield line("sessions")
    listed = [row for row in rows if row.verdict.reason not in _OVER]
    listed.sort(key=lambda row: row.verdict.reason is Reason.CRASHED)  # stable: urgency stays
    yield from sessions(listed, now, ear)
    if listed:
        yield line("trouble")
    yield from (heading(f"trouble:{number}", what) for number, what in enumerate(_wrapped(trouble)))
    if trouble:
        yield line("actions")
    unseen = any(row.verdict.state in (State.YOUR_TURN, State.STALLED) and not row.seen for row in rows)
    yield action(SEEN, "Mark all seen", enabled=unseen)
    yield from _quieting(now, rows, ear)
    yield line("island")
    yield action(SETTINGS, "Settings")
    yield action(DOCTOR, "Doctor")
    yield action(ABOUT, "About island")
    yield action(QUIT, "Quit island")


def _wrapped(trouble: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong, whole: nothing else in the menu tells more of it."""
    for what in trouble:
        yield from wrap(f"! {safe(what, LONGEST_TROUBLE)}", NARROW, subsequent_indent="   ")


def _silent(now: float, ear: Ear) -> str:
    """Say until when no notices come, and why, if it is so."""
    until = replace(ear, away=False).quiet_until(now)  # who reads this is there
    why = "snoozed" if until == ear.hush.snoozed else "quiet hours"
    return f"No notices until {clock(until, ear.zone)}: {why}" if until > now else ""


def _quieting(now: float, rows: Sequence[Row], ear: Ear) -> Iterator[MenuRow]:
    hush = ear.hush
    again = [action(SNOOZE_OFF, "Ring again")] if hush.snoozed > now else []
    yield MenuRow("snooze", "Snooze notices", RowKind.ACTION, rows=(
        action(SNOOZE_QUARTER, "15 minutes"), action(SNOOZE_HOUR, "1 hour"), action(SNOOZE_TOMORROW, "Until tomorrow"),
        *again))
    if muted := tuple(_muted(rows, ear)):
        yield MenuRow("muted", f"Muted ({len(muted)})", RowKind.ACTION, rows=muted)
    yield action(QUIET_HOURS, f"Quiet hours: {ear.manner.quiet_hours or 'off'}")
    if hush.hidden:
        yield action(SHOW_NAMES, "Show names")
    else:
        yield action(HIDE_NAMES, "Hide names, to share the screen")


def _muted(rows: Sequence[Row], ear: Ear) -> Iterator[MenuRow]:
    """Yield what can be unmuted; of sessions those that are still there."""
    hush = ear.hush
    for number, name in enumerate(hush.projects):
        shown = f"project {number + 1}" if hush.hidden else f"project {safe(name, 40)}"
        yield action(UNMUTE_PROJECT + name, f"Unmute {shown}")
    for row in rows:
        if (key := f"{row.agent}/{row.session}") in hush.sessions:
            yield action(UNMUTE_SESSION + key, f"Unmute {text(row, ear, width=NARROW)}")
