"""`island watch`: a live table in the terminal, or a stream of changes. Must not change anything but the screen."""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import shutil
import sys
import textwrap
from typing import Any

from island.cli.bars import FORMATS
from island.cli.export import Changes
from island.cli.table import table
from island.model import Snapshot
from island.running import Publish, Running, Spoken, until_told

CLEAR = "\x1b[H\x1b[J"
STD_OUTPUT, VIRTUAL_TERMINAL = -11, 0x0004  # as Windows numbers them
NAMES = {"your-turn": "needs you", "stalled": "stalled", "working": "working", "idle": "nothing to do"}


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("watch", help="show a live table in the terminal", description=__doc__)
    parser.add_argument("--all", action="store_true", help="show ended, headless and child sessions too")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print a line of JSON for each change; the first has all")
    how.add_argument("--format", choices=[name for name in FORMATS if name != "json"],
                     help="print a line for a bar at each change")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the table, or the changes, until interrupted."""
    stream = bool(arguments.json or arguments.format)
    publish = Stream(arguments.format or "").show if stream else Screen(everything=arguments.all).show
    asyncio.run(_watch(publish, panes=arguments.panes, exported=stream))
    return 0


async def _watch(publish: Publish, *, panes: bool, exported: bool) -> None:
    await until_told(Running(publish, panes=panes, exported=exported).run(), asyncio.Event())


class Stream:
    """A line at each change, for other programs: as JSON, or in the words of a bar."""

    def __init__(self, bar: str = "") -> None:
        self._changes = Changes()
        self._bar = bar
        self._last = ""

    def show(self, snapshot: Snapshot, spoken: Spoken = ()) -> None:
        """Print a line, if there is anything new in it."""
        line = self._line(snapshot, spoken)
        if line != self._last and sys.stdout is not None:  # a program without a console has no output
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
            self._last = line

    def _line(self, snapshot: Snapshot, spoken: Spoken) -> str:
        if self._bar:
            return FORMATS[self._bar](snapshot).partition("\n")[0]  # a line more would be the next one
        change = self._changes.since(snapshot, spoken)
        return json.dumps(change) if change else self._last


class Screen:
    """The table on a terminal; where there is none, a new table at each change."""

    def __init__(self, *, everything: bool = False, note: str = "") -> None:
        self._everything = everything
        self.note = note
        self._last = ""
        _have_signs_taken()

    def show(self, snapshot: Snapshot, _: Spoken = ()) -> None:
        """Draw a snapshot, if it looks different."""
        if sys.stdout is None:  # a program without a console has no output
            return
        bounded = sys.stdout.isatty()
        text = self.text(snapshot, bounded=bounded)
        if text == self._last:
            return
        self._last = text
        sys.stdout.write(CLEAR + text + "\n" if bounded else text + "\n\n")
        sys.stdout.flush()

    def text(self, snapshot: Snapshot, *, bounded: bool) -> str:
        """Return the table; bounded: as much of it as there is room for on the terminal."""
        size = shutil.get_terminal_size()
        head = f"island: {NAMES[snapshot.icon.value]}" + (" (seen)" if snapshot.calm else "")
        lines = [head, *textwrap.wrap(self.note, size.columns), ""]
        rows = table(snapshot, everything=self._everything).split("\n")
        if not bounded:
            return "\n".join([*lines, *rows])
        end = len(rows) - len(snapshot.trouble)
        trouble = _fitting(rows[end:], size.lines // 3, 0)
        lines += [*_fitting(rows[:end], size.lines - 1 - len(lines) - len(trouble), 1), *trouble]
        return "\n".join(line[: size.columns] for line in lines[: size.lines - 1])


def _have_signs_taken() -> None:
    """Have the console of Windows take the signs that clear it: it does so only for who asks."""
    if sys.platform == "win32":
        system, mode = ctypes.WinDLL("kernel32"), ctypes.c_uint()
        system.GetStdHandle.restype = ctypes.c_void_p
        console = ctypes.c_void_p(system.GetStdHandle(STD_OUTPUT))
        if system.GetConsoleMode(console, ctypes.byref(mode)):
            system.SetConsoleMode(console, mode.value | VIRTUAL_TERMINAL)


def _fitting(lines: list[str], room: int, headings: int) -> list[str]:
    """Return as many lines as there is room for; the last says how many more there are, headings not counted."""
    if len(lines) <= room:
        return lines
    kept = max(room - 1, 0)
    return [*lines[:kept], f"and {len(lines) - max(kept, headings)} more"]
