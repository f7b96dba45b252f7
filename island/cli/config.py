"""`island config`: the settings that count, as a settings file, each with where it comes from."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from island.settings import Path, places, show
from island.store import SettingsFile


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("config", help="show the settings, and where each comes from", description=__doc__)
    parser.add_argument("--path", action="store_true", help="print where the settings file lies, or would lie")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the settings; 2 if something is wrong with their file, which is said."""
    file = SettingsFile()
    if arguments.path:
        print(file.path)
        return 0
    lines = places(file.text)
    wrong = {tuple(problem.setting.split(".")) for problem in file.problems}

    def told(path: Path) -> str:
        if path in wrong or path not in lines:
            return "default"
        return f"line {lines[path]}"

    print(f"# {file.path}" + (f" ({file.missing}: all is as by default)" if file.missing else ""))
    print(show(file.settings, told), end="")
    for problem in file.problems:
        print(f"island: {file.path}: {problem}", file=sys.stderr)
    return 2 if file.problems else 0
