"""What the tray shows of a snapshot. Pure: must not draw, speak a protocol or look at a clock."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from island.model import Reason, Role, Row, Snapshot, State, Sure
from island.text import age, safe

#: Keys of the actions. A session's key is "agent/session", so none can be taken for another.
SHOW, SEEN, QUIT = "show", "seen", "quit"

#: The most urgent sessions are listed, the rest counted: a menu longer than the screen cannot be read.
MOST_ROWS = 20
WIDTH = 60
MOST_LINES = 6
MOST_TROUBLE = 5

MINUTE = 60


class Face(StrEnum):
    """What the icon looks like, least urgent first."""

    IDLE = "idle"
    CALM = "calm"  # handed back, and the user knows
    WORKING = "working"
    STALLED = "stalled"
    DONE = "done"
    ERROR = "error"
    YOUR_TURN = "your-turn"


class RowKind(StrEnum):
    """What a menu row is for."""

    ROW = "row"
    HEADING = "heading"
    SEPARATOR = "separator"
    ACTION = "action"


@dataclass(frozen=True, slots=True)
class MenuRow:
    """One line of the menu. `key` stays the same while the text changes, so that a late click hits."""

    key: str
    text: str = ""
    kind: RowKind = RowKind.ROW
    enabled: bool = True


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
    Reason.SILENT: Face.STALLED, Reason.MAYBE_PERMISSION: Face.STALLED,
}

#: What is over needs nobody, and is listed by `island status --all`; a crash is worth a look.
_OVER = frozenset({Reason.ENDED, Reason.EXPIRED})
_NEEDED = frozenset({Face.YOUR_TURN, Face.ERROR, Face.DONE})
_TOLD = _NEEDED | {Face.STALLED}
_COUNTED = ("waiting", "interrupted", "stalled", "working", "already seen")


def model(snapshot: Snapshot, now: float) -> TrayModel:
    """Return what the tray shows of `snapshot` at `now`."""
    rows = [row for row in snapshot.rows if row.role is Role.PERSON]
    counts = Counter(map(_counted_as, rows))
    face = _icon(snapshot, rows)
    summary = ", ".join(f"{counts[word]} {word}" for word in _COUNTED if counts[word]) or "nothing needs you"
    trouble = tuple(f"! {safe(line, WIDTH - 2)}" for line in snapshot.trouble[:MOST_TROUBLE])
    return TrayModel(
        face=face,
        badge=counts["waiting"],
        title=f"island: {summary}",
        lines=_tooltip(rows) + trouble,
        attention=face in _NEEDED,
        rows=tuple(_menu(summary, rows, trouble, now)),
    )


def face_of(reason: Reason) -> Face:
    """Return the face of something that may need the user and that he has not seen yet."""
    return _WAITS.get(reason, Face.YOUR_TURN)


def _icon(snapshot: Snapshot, rows: Sequence[Row]) -> Face:
    """Return the icon's face: the snapshot says how urgent, the waiting rows say what for."""
    if snapshot.icon is not State.YOUR_TURN:
        return Face(snapshot.icon.value)
    if snapshot.calm:
        return Face.CALM
    faces = {_face(row) for row in rows if row.verdict.state is State.YOUR_TURN and not row.seen}
    return max(faces, key=list(Face).index, default=Face.YOUR_TURN)


def _face(row: Row) -> Face:
    if row.verdict.state is not State.YOUR_TURN:
        return Face(row.verdict.state.value)
    return Face.CALM if row.seen else face_of(row.verdict.reason)


def _counted_as(row: Row) -> str:
    """Return the word of the summary under which a row is counted, if any."""
    if row.verdict.state is not State.YOUR_TURN:
        return row.verdict.state.value
    if row.seen:
        return "already seen"
    return "interrupted" if row.verdict.reason is Reason.INTERRUPTED else "waiting"


def _tooltip(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return what needs the user, without ages: xfce shows a changed tooltip anew, even over the menu."""
    return tuple(_text(row) for row in islice((row for row in rows if _face(row) in _TOLD), MOST_LINES))


def _menu(summary: str, rows: Sequence[Row], trouble: Sequence[str], now: float) -> Iterator[MenuRow]:
    yield MenuRow("heading", summary[0].upper() + summary[1:], RowKind.HEADING, enabled=False)
    yield _line("sessions")
    listed = [row for row in rows if row.verdict.reason not in _OVER]
    listed.sort(key=lambda row: row.verdict.reason is Reason.CRASHED)  # stable: urgency stays
    for row in listed[:MOST_ROWS]:
        yield MenuRow(f"{row.agent}/{row.session}", _text(row, _age(row.verdict.since, now)))
    if len(listed) > MOST_ROWS:
        yield MenuRow("more", f"and {len(listed) - MOST_ROWS} more", RowKind.HEADING, enabled=False)
    if listed:
        yield _line("trouble")
    for number, text in enumerate(trouble):
        yield MenuRow(f"trouble:{number}", text, RowKind.HEADING, enabled=False)
    if trouble:
        yield _line("actions")
    unseen = any(row.verdict.state in (State.YOUR_TURN, State.STALLED) and not row.seen for row in rows)
    yield MenuRow(SEEN, "Mark all seen", RowKind.ACTION, enabled=unseen)
    yield MenuRow(QUIT, "Quit island", RowKind.ACTION)


def _line(before: str) -> MenuRow:
    return MenuRow(f"line:{before}", kind=RowKind.SEPARATOR, enabled=False)


def _text(row: Row, waited: str = "") -> str:
    """Return a row as text. Only the name gives way to the width: state, age and agent are the point."""
    words = WORDS[row.verdict.reason]
    if row.verdict.sure is Sure.INFERRED and row.verdict.state is not State.STALLED:
        words += "?"  # a stall is inferred by its nature and says so in words
    head = f"{GLYPHS[_face(row)]} {words}"
    tail = [part for part in (waited, safe(row.label or row.agent, 16)) if part]
    room = WIDTH - len(" · ".join([head, "", *tail]))
    name = safe(": ".join(part for part in (row.project, row.title) if part), room)
    return " · ".join(part for part in (head, name, *tail) if part)


def _age(since: float, now: float) -> str:
    """Return an age, if it is known; a clock set back makes it "now", not negative."""
    if since <= 0:
        return ""
    return age(now - since) if now - since >= MINUTE else "now"
