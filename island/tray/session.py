"""What a session's row opens: what is known of it, and what can be done about it. Pure: must not do it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, tzinfo
from functools import lru_cache
from textwrap import wrap

from island.manner import Ear
from island.model import Reason, Row, State, Sure
from island.quiet import MUTE_PROJECT, MUTE_SESSION, UNMUTE_PROJECT, UNMUTE_SESSION
from island.text import safe
from island.tray.entry import COPY, EXPLAIN, FOLDER, JUMP, SEEN_ONE, MenuRow, action, heading, line

WIDTH = 60
MOST_BLIND = 4  # lines about what is invisible: the rest stands in the explanation

#: No process is left that could be jumped to.
_GONE = frozenset({Reason.ENDED, Reason.EXPIRED, Reason.CRASHED})


def session_rows(row: Row, ear: Ear) -> tuple[MenuRow, ...]:
    """Return the lines of one session."""
    return (*_known(row, ear.zone), line("actions"), *_actions(row, ear))


def _known(row: Row, zone: tzinfo | None) -> Iterator[MenuRow]:
    yield heading("sure", safe(_sure(row, zone), WIDTH))
    if used := " · ".join(part for part in (row.model, context(row)) if part):
        yield heading("model", safe(used, WIDTH))
    for number, text in enumerate(_blind(row.blind)):
        yield heading(f"blind:{number}", text)


def _sure(row: Row, zone: tzinfo | None) -> str:
    verdict = row.verdict
    source = verdict.evidence.source if verdict.evidence else ""
    told = "Told" if verdict.sure is Sure.TOLD else "Inferred"
    by = f" by: {source}" if source and verdict.sure is Sure.TOLD else f" from: {source}" if source else ""
    return f"{told}{by}" + (f", since {clock(verdict.since, zone)}" if verdict.since > 0 else "")


def context(row: Row) -> str:
    """Return how full the model's context is, as far as it is known."""
    if row.tokens is None:
        return ""
    full = percent(row)
    return f"context {full} ({_short(row.tokens)} of {_short(row.window or 0)})" if full else (
        f"{_short(row.tokens)} tokens of context")


def percent(row: Row) -> str:
    """Return the share of the context that is used, where both are known."""
    if row.tokens is None or not row.window:
        return ""
    return f"{min(100, round(100 * row.tokens / row.window))} %"


def _short(tokens: int) -> str:
    return f"{round(tokens / 1000)}k" if tokens >= 1000 else str(tokens)


@lru_cache(maxsize=64)  # one for each agent
def _blind(invisible: tuple[str, ...]) -> list[str]:
    lines = [text for blind in invisible for text in wrap(f"Invisible: {safe(blind, 200)}", WIDTH)]
    return lines if len(lines) <= MOST_BLIND else [*lines[:MOST_BLIND - 1], "…"]


def clock(at: float, zone: tzinfo | None) -> str:
    """Return a moment by the clock on the wall."""
    return f"{datetime.fromtimestamp(at, zone):%H:%M}"


def _actions(row: Row, ear: Ear) -> Iterator[MenuRow]:
    key = f"{row.agent}/{row.session}"
    unseen = row.verdict.state in (State.YOUR_TURN, State.STALLED) and not row.seen
    yield action(JUMP + key, "Jump to its terminal", enabled=row.verdict.reason not in _GONE)
    yield action(SEEN_ONE + key, "Mark seen", enabled=unseen)
    yield from _muting(row, key, ear)
    yield action(EXPLAIN + key, "Explain this state")
    yield action(COPY + key, "Copy session id")
    yield action(FOLDER + key, "Open folder", enabled=bool(row.folder))


def is_set_mute(row: Row, ear: Ear) -> bool:
    """Tell whether the settings silence a session, which the menu cannot change."""
    return row.project in ear.manner.muted_projects or row.agent in ear.manner.muted_agents


def _muting(row: Row, key: str, ear: Ear) -> Iterator[MenuRow]:
    if is_set_mute(row, ear):
        yield heading("muted", "Muted in the settings")
        return
    un, word = (UNMUTE_SESSION, "Unmute") if key in ear.hush.sessions else (MUTE_SESSION, "Mute")
    yield action(un + key, f"{word} this session")
    if row.project:
        un, word = (UNMUTE_PROJECT, "Unmute") if row.project in ear.hush.projects else (MUTE_PROJECT, "Mute")
        name = "its project" if ear.hush.hidden else f"project {safe(row.project, 30)}"
        yield action(un + row.project, f"{word} {name}")
