"""`island explain`: every register of a session, what decided, when it lapses, what cannot be seen."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from math import isinf
from typing import Any

from island.agents import AGENTS
from island.cli.table import short
from island.look import look_once
from island.model import Event, Row, Session
from island.observer import Observer
from island.text import age, safe


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("explain", help="show the evidence behind a session's state", description=__doc__)
    parser.add_argument("session", nargs="?", help="the beginning of a session's id; without it, the most urgent")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain one session."""
    now = time.time()
    observer = look_once(now, panes=arguments.panes)
    wanted = arguments.session or ""
    rows = [row for row in observer.sessions.rows()
            if row.session.startswith(wanted) or short(row.session).startswith(wanted)]
    if not rows:
        print(f"island: no session begins with {wanted!r}" if wanted else "island: no sessions", file=sys.stderr)
        return 2 if wanted else 0
    print("\n".join(explanation(observer, rows[0], now)))
    if len(rows) > 1 and not wanted:
        print(f"\n{len(rows) - 1} more: island status --all lists them")
    return 0


def explanation(observer: Observer, row: Row, now: float) -> Iterator[str]:
    """Yield the lines that explain one row."""
    verdict, agent = row.verdict, AGENTS[row.agent]
    session = observer.sessions.held[row.agent, row.session]
    yield f"{agent.label}, session {safe(row.session)}" + (f", {safe(row.project)}" if row.project else "")
    yield f"  {verdict.state} ({verdict.reason}), {verdict.sure}"
    yield f"  since      {_clock(verdict.since)} ({age(now - verdict.since)} ago)"
    yield "  lapses     " + ("never" if isinf(verdict.until) else f"{_clock(verdict.until)}, if nothing else comes")
    if verdict.evidence:
        yield f"  decided by {_event(verdict.evidence, now)}"
    yield f"  kind       {row.role}" + (": neither rings nor colours the icon" if row.role != "person" else "")
    yield "  evidence   " + "; ".join(agent.evidence)
    for blind in row.blind:
        yield f"  invisible  {blind}"
    yield ""
    yield from _registers(session, now)


def _registers(session: Session, now: float) -> Iterator[str]:
    yield f"registers ({len(session.registers)}), newest first:"
    for event in sorted(session.registers.values(), key=lambda e: (-e.at, -e.order)):
        yield f"  {_event(event, now)}"


def _event(event: Event, now: float) -> str:
    word = f"[{len(event.word)} characters]" if event.key in ("title", "name") else event.word
    said = " ".join(part for part in (event.kind, event.key, word) if part)
    turn = f" turn {event.turn}" if event.turn else ""
    when = age(now - event.at) + " ago" if event.at > 0 else "no time"
    return safe(f"{said}{turn} [{event.source or 'record'}, {when}]", 200)


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S") if at > 0 else "ever"
