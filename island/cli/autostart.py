"""`island autostart`: start island with the desktop, or not. Off unless asked for; says what it writes, and where."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from island.desktop.autostart import Autostart, open_autostart, program


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("autostart", help="start with the desktop, or not", description=__doc__)
    parser.add_argument("what", choices=("on", "off", "status"), nargs="?", default="status")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do it, and say what was done; 2 if it cannot be done."""
    act = {"on": _on, "off": _off, "status": _status}[arguments.what]
    try:
        told = list(act(open_autostart()))
    except OSError as error:
        print(f"island: {error}", file=sys.stderr)
        return 2
    print("\n".join(told))
    return 0


def _on(place: Autostart) -> Iterator[str]:
    text = place.text(program())
    place.write(text)
    yield f"on: island starts at your next login\nwritten to {place.where}:\n{_indented(text)}"
    if off := place.read().switched_off:
        yield f"but {off} has it switched off: switch it on there"


def _off(place: Autostart) -> Iterator[str]:
    there = place.read().text
    place.remove()
    yield f"off: island does not start by itself\n{'removed' if there else 'nothing was written at'} {place.where}"


def _status(place: Autostart) -> Iterator[str]:
    entry = place.read()
    if not entry.text:
        yield f"off: nothing is written at {place.where}"
        return
    yield f"{'on' if entry.on else 'off: switched off by ' + entry.switched_off}: {place.where}:"
    yield _indented(entry.text)
    if entry.text != place.text(program()):
        yield "this starts another island than the one you asked, or was written by hand"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip("\n").split("\n"))
