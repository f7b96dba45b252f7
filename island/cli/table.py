"""Rows of sessions as a table of text. Pure: must not print or look at a clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from island.model import Role, Row, Snapshot, State, Sure
from island.text import age, safe
from island.tray.face import GLYPHS, Face, face

HEADINGS = ("state", "reason", "project", "agent", "since", "session")


def short(session: str) -> str:
    """Return enough of a session's id to tell it by: some agents begin all of theirs with one word, or a path."""
    return safe(re.split(r"[_/\\]", session)[-1][:8])


def shown(rows: Iterable[Row], *, everything: bool) -> list[Row]:
    """Return the rows that a person wants to see: their own sessions, and of the idle ones those that live."""
    if everything:
        return list(rows)
    over = ("ended", "crashed", "expired")
    return [r for r in rows if r.role is Role.PERSON
            and not (r.verdict.state is State.IDLE and r.verdict.reason.value in over)]


def cells(row: Row, now: float) -> tuple[str, ...]:
    """Return one row's cells, with its sign in the menu; a question mark says that the state is inferred."""
    verdict = row.verdict
    doubt = "?" if verdict.sure is Sure.INFERRED and verdict.state is not State.IDLE else ""
    project = row.project if row.role is Role.PERSON else f"{row.project} ({row.role})"
    seen = " (seen)" if face(row) is Face.CALM else ""
    return (f"{GLYPHS[face(row)]} {verdict.state}{doubt}{seen}", verdict.reason, safe(project), row.agent,
            age(now - verdict.since) if verdict.since > 0 else "", short(row.session))


def table(snapshot: Snapshot, *, everything: bool = False) -> str:
    """Return a snapshot as text: a heading, a line per session, and what is wrong or left out."""
    rows = [cells(r, snapshot.at) for r in shown(snapshot.rows, everything=everything)]
    lines = _aligned([HEADINGS, *rows]) if rows else ["no sessions: nothing needs you"]
    unnamed = ["names are hidden: `Show names` in the menu shows them again"] if rows and snapshot.unnamed else []
    return "\n".join([*lines, *unnamed, *(f"! {safe(trouble, 120)}" for trouble in snapshot.trouble)])


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
