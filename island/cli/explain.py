"""`island explain`: every register of a session, what decided, when it lapses, what cannot be seen."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from math import isinf
from typing import Any

from island.agents import AGENTS
from island.cli.table import cells, short
from island.look import look_once
from island.model import Event, Kind, Row, Session
from island.observer import Observer
from island.text import age, safe
from island.wishes import Wishes

#: Facts that agents make from prompts, and facts that tell no name.
PROSE = frozenset({"title", "name"})
NAMELESS = frozenset({"role", "model", "tokens", "window", "version", "parent"})


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("explain", help="show the evidence behind a session's state", description=__doc__)
    parser.add_argument("session", nargs="?",
                        help="the beginning of a session's id, or its project; without it, the most urgent")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain one session; 2 if it is not clear which."""
    now, wishes, wanted = time.time(), Wishes(), arguments.session or ""
    settings, hidden = wishes.settings, wishes.hush.hidden
    observer = look_once(now, panes=arguments.panes or settings.panes, agents=settings.agents)
    observer.sessions.seen = wishes.seen
    rows = observer.sessions.rows()
    meant = [row for row in rows if _is_meant(row, wanted)]
    if not wanted and not rows:
        print("no sessions: nothing to explain")
    elif not meant:
        print(f"island: no session begins with {wanted!r}, and no project is called so", file=sys.stderr)
        return 2
    elif wanted and len(meant) > 1:
        print(f"island: {wanted!r} may be any of {len(meant)} sessions:\n{_listed(meant, now, hidden=hidden)}",
              file=sys.stderr)
        return 2
    else:
        print("\n".join(explanation(observer, meant[0], now, hidden=hidden)))
    if len(rows) > 1 and not wanted:
        print(f"\n{len(rows) - 1} more: island status --all lists them")
    return 0


def _is_meant(row: Row, wanted: str) -> bool:
    """Tell whether a row is named: by the beginning of its id, as the table cuts it or whole, or by its project."""
    return wanted == row.project or any(ident.startswith(wanted) for ident in (row.session, short(row.session)))


def _listed(rows: list[Row], now: float, *, hidden: bool) -> str:
    shown = [replace(row, project="") if hidden else row for row in rows]
    return "\n".join("  " + "  ".join(filter(None, (*cells(row, now)[:-1], _ident(row, hidden)))) for row in shown)


def _ident(row: Row, hidden: bool) -> str:
    """Return a session's id, but no path if names are hidden: some agents keep one session in each folder."""
    return short(row.session) if hidden and set(row.session) & set("/\\") else safe(row.session)


def explanation(observer: Observer, row: Row, now: float, *, hidden: bool = False) -> Iterator[str]:
    """Yield the lines that explain one row; hidden: without the names of projects and folders."""
    verdict, agent = row.verdict, AGENTS[row.agent]
    session = observer.sessions.held[row.agent, row.session]
    named = f", {safe(row.project)}" if row.project and not hidden else ""
    yield f"{agent.label}, session {_ident(row, hidden)}{named}"
    yield f"  {verdict.state} ({verdict.reason}), {verdict.sure}" + (", seen" if row.seen else "")
    yield f"  since      {_clock(verdict.since)} ({age(now - verdict.since)} ago)"
    yield "  lapses     " + ("never" if isinf(verdict.until) else f"{_clock(verdict.until)}, if nothing else comes")
    if verdict.evidence:
        yield f"  decided by {_event(verdict.evidence, now, hidden)}"
    yield f"  kind       {row.role}" + (": neither rings nor colours the icon" if row.role != "person" else "")
    yield "  evidence   " + "; ".join(agent.evidence)
    for blind in row.blind:
        yield f"  invisible  {blind}"
    yield ""
    yield from _registers(session, now, hidden)


def _registers(session: Session, now: float, hidden: bool) -> Iterator[str]:
    events = list(session.events())
    yield f"registers ({len(events)}), newest first:"
    for event in sorted(events, key=lambda e: (-e.at, -e.order)):
        yield f"  {_event(event, now, hidden)}"


def _event(event: Event, now: float, hidden: bool) -> str:
    private = event.key in PROSE or (hidden and event.kind is Kind.FACT and event.key not in NAMELESS)
    word = f"[{len(event.word)} characters]" if private else event.word
    said = " ".join(part for part in (event.kind, event.key, word) if part)
    turn = f" turn {event.turn}" if event.turn else ""
    when = age(now - event.at) + " ago" if event.at > 0 else "no time"
    return safe(f"{said}{turn} [{event.source or 'record'}, {when}]", 200)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S") if at > 0 else "ever"
