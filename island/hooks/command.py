"""The command that agents run, and the folder that it writes into. Shell.

The command lies in the folder itself: where the folder is gone, nothing is run and nothing is written.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import platformdirs

from island.hooks.rows import HOOKS, Hooks, Shell

Line = Callable[[str], str]

#: The command of each platform: a shell script, or where there is no shell, one for an isolated Python.
SCRIPT, PYTHON = "hook.sh", "hook.py"
NAME = PYTHON if sys.platform == "win32" else SCRIPT

#: Without the user's and the site's modules, and without a look for them.
ISOLATED = ("-I", "-S", "-E")

#: The line that each shell takes, whose end is well and without a word if anything is not there. PowerShell ends as
#: the command did unless it is told otherwise. What Claude Code runs may be bash or PowerShell, which share little.
LINES: Mapping[Shell, str] = {
    Shell.SH: "{} {} {} 2>/dev/null || true",
    Shell.CMD: "{} {} {} 2>nul || exit 0",
    Shell.POWERSHELL: "try {{ {} {} {} 2>$null }} catch {{ }}; exit 0",
    Shell.EITHER: "{} {} {}; exit 0",
}

#: What no shell takes for anything but itself. Agents quote a line once more before cmd gets it, and not as cmd reads
#: it, and PowerShell takes a quoted word for a text: so there are no quotes.
BARE = re.compile(r"[\w.:~+/\\-]+")

#: Seconds for which the status file of a session is kept after its last line; no lease is longer.
AGE = 24 * 3600.0

#: Bytes beyond which a status file goes as soon as nothing happens in its session for so many seconds.
SIZE, QUIET = 256 * 1024, 60.0

#: Seconds after which a call in a replay is given up.
PATIENCE = 10.0


def folder() -> Path:
    """Return where hook status files lie: one folder for each agent, one file for each session."""
    return platformdirs.user_state_path("island", appauthor=False) / "hooks"


class NoLineError(Exception):
    """No line can be written that every shell of a kind takes: why."""


def source(name: str = NAME) -> bytes:
    """Return the command, as it ships."""
    return Path(__file__).with_name(name).read_bytes()


def put(where: Path, name: str = NAME) -> Path:
    """Put the command and the agents' folders in place; return the command's path."""
    where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    where.mkdir(mode=0o700, exist_ok=True)
    for agent in HOOKS:
        (where / agent).mkdir(mode=0o700, exist_ok=True)
    path = where / name
    if not path.exists() or path.read_bytes() != source(name):
        fresh = path.with_suffix(".new")
        fresh.write_bytes(source(name))
        fresh.chmod(0o700)
        fresh.replace(path)
    return path


def line(path: Path, agent: str, row: Hooks) -> Line:
    """Return how an agent is to run the command at an event: in words that its shell takes, and that cannot fail.

    A plugin gets the words as JSON. Raise NoLineError if a path cannot be written for the shell.
    """
    words = _words(path)
    if row.text:
        return lambda _: json.dumps(words)
    quoted = shlex.join(words) if row.shell is Shell.SH else _bare(words, row.shell)
    return lambda event: LINES[row.shell].format(quoted, agent, event)


def _words(path: Path) -> list[str]:
    return ["/bin/sh", str(path)] if path.name == SCRIPT else [interpreter(), *ISOLATED, str(path)]


def interpreter() -> str:
    """Return the Python that runs the command: that of the system, as one of an environment starts a second process."""
    base = Path(getattr(sys, "_base_executable", sys.executable))
    return str(base.with_name(base.name.replace("pythonw", "python")))


def _bare(words: list[str], shell: Shell) -> str:
    """Return words as they can be written without quotes: a path with blanks by its short name."""
    written = [w if BARE.fullmatch(w) else short(w) for w in words]
    for word in written:
        if not BARE.fullmatch(word):
            raise NoLineError(f"{word} cannot be written for {shell} without quotes, and has no short name")
    return " ".join(written).replace("\\", "/") if shell is Shell.EITHER else " ".join(written)


def short(path: str) -> str:
    """Return a path with the name that Windows has for each part with blanks; as it is, where there is none."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415 - few paths have a blank

        room, found = ctypes.create_unicode_buffer(len(path) + 1), Path(path).anchor
        for part in Path(path).parts[1:]:
            found = str(Path(found, part))
            if not BARE.fullmatch(part) and ctypes.WinDLL("kernel32").GetShortPathNameW(found, room, len(room)):
                found = room.value
        return found
    return path


def prune(where: Path | str, now: float) -> None:
    """Remove the status files of sessions that are long over, and those that have grown too big."""
    for file in Path(where).glob("*/*.jsonl"):
        try:
            status = file.stat()
            if status.st_mtime < now - AGE or (status.st_size > SIZE and status.st_mtime < now - QUIET):
                file.unlink()
        except OSError:
            continue  # another island was quicker


def call(path: Path, agent: str, event: str, payload: bytes, at: float) -> None:
    """Run the command as an agent does, at this moment."""
    environ = {**os.environ, "ISLAND_AT": f"{at:.6f}"}
    subprocess.run([*_words(path), agent, event], input=payload, env=environ, timeout=PATIENCE, check=False)
