"""One line of the menu, and the words of what a click on it asks for. Pure: must not do any of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: Actions. What one is about follows the colon: "agent/session". `quiet` has those that silence.
SHOW, SEEN, SETTINGS, QUIET_HOURS, DOCTOR, ABOUT, QUIT = (
    "show", "seen", "settings", "quiet-hours", "doctor", "about", "quit")
JUMP, SEEN_ONE, EXPLAIN, COPY, FOLDER = "jump:", "seen:", "explain:", "copy:", "folder:"


class RowKind(StrEnum):
    """What a menu row is for."""

    ROW = "row"
    HEADING = "heading"
    SEPARATOR = "separator"
    ACTION = "action"


@dataclass(frozen=True, slots=True)
class MenuRow:
    """One line of the menu. `key` stays the same while the text changes, so that a late click hits.

    rows: what it opens, each with a key that no sister has; then a click on the line itself does nothing.
    """

    key: str
    text: str = ""
    kind: RowKind = RowKind.ROW
    enabled: bool = True
    rows: tuple[MenuRow, ...] = ()


def heading(key: str, text: str) -> MenuRow:
    """Return a line that only tells something."""
    return MenuRow(key, text, RowKind.HEADING, enabled=False)


def line(before: str) -> MenuRow:
    """Return a line that only parts."""
    return MenuRow(f"line:{before}", kind=RowKind.SEPARATOR, enabled=False)


def action(key: str, text: str, *, enabled: bool = True) -> MenuRow:
    """Return a line that does something."""
    return MenuRow(key, text, RowKind.ACTION, enabled)
