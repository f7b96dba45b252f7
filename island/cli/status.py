"""`island status`: what is true now, once: for people, for bars and prompts, for scripts. Must not change anything."""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from island.cli.bars import FORMATS, state_word
from island.cli.export import schema
from island.cli.table import table
from island.look import look_as_set

#: Exit codes of `--quiet`. A stall may need the user or not: a code between, so that whoever wants it can tell.
CODES = {"idle": 0, "seen": 0, "working": 10, "stalled": 15, "your-turn": 20}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("status", help="show all sessions once", description=__doc__)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--format", choices=FORMATS, help="one line for a bar or a prompt")
    how.add_argument("--json", action="store_const", const="json", dest="format", help="print one JSON object")
    how.add_argument("--quiet", action="store_true",
                     help="print nothing; exit code 0: nothing needs you, 10: working, 15: stalled, 20: your turn")
    how.add_argument("--schema", action="store_true", help="print the JSON Schema of --json and of `watch --json`")
    parser.add_argument("--all", action="store_true", help="show ended, headless and child sessions too")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the sessions."""
    if arguments.schema:
        print(json.dumps(schema(), indent=2))
        return 0
    snapshot = look_as_set(time.time(), panes=arguments.panes, exported=bool(arguments.format))
    if arguments.quiet:
        return CODES[state_word(snapshot)]
    print(FORMATS[arguments.format](snapshot) if arguments.format else table(snapshot, everything=arguments.all))
    return 0
