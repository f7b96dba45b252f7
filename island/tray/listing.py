"""The sessions in the menu: one line each, and of too many the rest folded by project. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from island.manner import Ear
from island.model import Reason, Role, Row, State, Sure
from island.text import age, safe
from island.tray.entry import MenuRow
from island.tray.face import GLYPHS, TOLD, WORDS, face
from island.tray.session import is_set_mute, percent, session_rows

#: So many sessions are listed one by one; of more, only those that need the user, and the rest folded by project: a
#: menu longer than the screen cannot be read.
MOST_ROWS = 20
MOST_FOLDS = 12
WIDTH = 72
NARROW = 60  # the tooltip, and where no age stands

MINUTE = 60

_COUNTED = ("waiting", "interrupted", "stalled", "working", "already seen")


def sessions(rows: Sequence[Row], now: float, ear: Ear) -> Iterator[MenuRow]:
    """Yield the lines of sessions, which come by urgency."""
    if len(rows) <= MOST_ROWS:
        alone, others = list(rows), list[Row]()
    else:
        urgent = sorted(rows, key=lambda row: face(row) not in TOLD)  # stable
        most = min(MOST_ROWS, sum(face(row) in TOLD for row in rows))
        alone, others = urgent[:most], urgent[most:]
    yield from (_session(row, now, ear) for row in alone)
    yield from _folds(others, now, ear)


def _session(row: Row, now: float, ear: Ear) -> MenuRow:
    said = text(row, ear, _age(row.verdict.since, now))
    return MenuRow(f"{row.agent}/{row.session}", said, rows=session_rows(row, ear))


def _folds(rows: Sequence[Row], now: float, ear: Ear) -> Iterator[MenuRow]:
    """Yield a line for each project, most urgent first, and one for all the projects that are too many.

    The only session of a project has a line of its own.
    """
    projects: dict[str, list[Row]] = {}
    for row in rows:
        projects.setdefault("" if ear.hush.hidden else row.project, []).append(row)
    named = list(projects.items())
    for name, within in named[:MOST_FOLDS]:
        if len(within) == 1:
            yield _session(within[0], now, ear)
        else:
            yield _fold(f"fold:{name}", safe(name, 30) or "sessions", within, now, ear)
    others = [row for _, within in named[MOST_FOLDS:] for row in within]
    if others:
        yield _fold("others", f"{len(named) - MOST_FOLDS} more projects", others, now, ear)


def _fold(key: str, name: str, rows: Sequence[Row], now: float, ear: Ear) -> MenuRow:
    counts = counted(Counter(map(counted_as, rows)))
    said = " · ".join(part for part in (f"{GLYPHS[face(rows[0])]} {name}", f"{len(rows)} sessions", counts) if part)
    return MenuRow(key, safe(said, WIDTH), rows=tuple(_session(row, now, ear) for row in rows))


def needs(row: Row) -> bool:
    """Tell whether a session of the user's own needs him, or may."""
    return row.role is Role.PERSON and face(row) in TOLD


def counted_as(row: Row) -> str:
    """Return the word of the summary under which a row is counted, if any."""
    if row.verdict.state is not State.YOUR_TURN:
        return row.verdict.state.value
    if row.seen:
        return "already seen"
    return "interrupted" if row.verdict.reason is Reason.INTERRUPTED else "waiting"


def counted(counts: Counter[str]) -> str:
    """Return the counts in words, what matters most first."""
    return ", ".join(f"{counts[word]} {word}" for word in _COUNTED if counts[word])


def text(row: Row, ear: Ear, waited: str = "", width: int = WIDTH) -> str:
    """Return a row as text. Only the name gives way to the width: state, age and agent are the point."""
    words = WORDS[row.verdict.reason]
    if row.verdict.sure is Sure.INFERRED and row.verdict.state is not State.STALLED:
        words += "?"  # a stall is inferred by its nature and says so in words
    head = f"{GLYPHS[face(row)]} {words}"
    muted = "muted" if ear.hush.mutes(row) or is_set_mute(row, ear) else ""
    tail = [part for part in (waited, safe(row.label or row.agent, 16), percent(row), muted) if part]
    room = width - len(" · ".join([head, "", *tail]))
    name = "" if ear.hush.hidden else safe(": ".join(part for part in (row.project, row.title) if part), room)
    return " · ".join(part for part in (head, name, *tail) if part)


def _age(since: float, now: float) -> str:
    """Return an age, if it is known; a clock set back makes it "now", not negative."""
    if since <= 0:
        return ""
    return age(now - since) if now - since >= MINUTE else "now"
