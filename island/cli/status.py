"""`island status`: what is true now, once. Must not change anything."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from island.cli.table import table
from island.model import Row, Snapshot
from island.running import look_once

SCHEMA = 1


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("status", help="show all sessions once", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--all", action="store_true", help="show ended, headless and child sessions too")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the sessions."""
    now = time.time()
    snapshot = look_once(now, panes=arguments.panes).snapshot(now)
    if arguments.json:
        print(json.dumps(as_json(snapshot)))
    else:
        print(table(snapshot, everything=arguments.all))
    return 0


def as_json(snapshot: Snapshot) -> dict[str, Any]:
    """Return a snapshot as JSON: every session, those that the icon leaves out too."""
    rows = [_row(row) for row in snapshot.rows]
    return {"schema": SCHEMA, "at": round(snapshot.at, 3), "icon": snapshot.icon.value, "seen": snapshot.calm,
            "sessions": rows, "trouble": list(snapshot.trouble)}


def _row(row: Row) -> dict[str, Any]:
    verdict, event = row.verdict, row.verdict.evidence
    return {
        "agent": row.agent, "session": row.session, "kind": row.role.value, "state": verdict.state.value,
        "reason": verdict.reason.value, "sure": verdict.sure.value, "since": round(verdict.since, 3),
        "until": round(verdict.until, 3) if verdict.until < float("inf") else None,
        "why": event.source if event else "", "project": row.project, "model": row.model,
        "tokens": row.tokens, "seen": row.seen, "blind": list(row.blind),
    }
