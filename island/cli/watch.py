"""`island watch`: a live table in the terminal. Must not change anything but the screen."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
from typing import Any

from island.cli.table import table
from island.model import Snapshot
from island.running import Running, Spoken, until_told

CLEAR = "\x1b[H\x1b[J"
NAMES = {"your-turn": "needs you", "stalled": "stalled", "working": "working", "idle": "nothing to do"}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("watch", help="show a live table in the terminal", description=__doc__)
    parser.add_argument("--all", action="store_true", help="show ended, headless and child sessions too")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the table until interrupted."""
    screen = Screen(everything=arguments.all)
    asyncio.run(_watch(screen, panes=arguments.panes))
    return 0


async def _watch(screen: Screen, *, panes: bool) -> None:
    await until_told(Running(screen.show, panes=panes).run(), asyncio.Event())


class Screen:
    """The table on a terminal; where there is none, a new table at each change."""

    def __init__(self, *, everything: bool = False, note: str = "") -> None:
        self._everything = everything
        self.note = note
        self._last = ""

    def show(self, snapshot: Snapshot, _: Spoken = ()) -> None:
        """Draw a snapshot, if it looks different."""
        text = self._text(snapshot)
        if text == self._last or sys.stdout is None:  # a program without a console has no output
            return
        self._last = text
        sys.stdout.write(CLEAR + text + "\n" if sys.stdout.isatty() else text + "\n\n")
        sys.stdout.flush()

    def _text(self, snapshot: Snapshot) -> str:
        size = shutil.get_terminal_size()
        head = f"island: {NAMES[snapshot.icon.value]}" + (" (seen)" if snapshot.calm else "")
        lines = [head, self.note, "", *table(snapshot, everything=self._everything).split("\n")]
        lines = [line for i, line in enumerate(lines) if line or i == 2]
        return "\n".join(line[: size.columns] for line in lines[: size.lines - 1])
