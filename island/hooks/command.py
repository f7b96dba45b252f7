"""The command that agents run, and the folder that it writes into. Shell.

The command lies in the folder itself: where the folder is gone, nothing is run and nothing is written.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import platformdirs

from island.hooks.rows import HOOKS, Form, Hooks

Line = Callable[[str], str]

NAME = "hook.sh"

#: Seconds for which the status file of a session is kept after its last line; no lease is longer.
AGE = 24 * 3600.0

#: Bytes beyond which a status file goes as soon as nothing happens in its session for so many seconds.
SIZE, QUIET = 256 * 1024, 60.0

#: Seconds after which a call in a replay is given up.
PATIENCE = 10.0


def folder() -> Path:
    """Return where hook status files lie: one folder for each agent, one file for each session."""
    return platformdirs.user_state_path("island", appauthor=False) / "hooks"


def source() -> bytes:
    """Return the command, as it ships."""
    return Path(__file__).with_name(NAME).read_bytes()


def put(where: Path) -> Path:
    """Put the command and the agents' folders in place; return the command's path."""
    where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    where.mkdir(mode=0o700, exist_ok=True)
    for agent in HOOKS:
        (where / agent).mkdir(mode=0o700, exist_ok=True)
    path = where / NAME
    if not path.exists() or path.read_bytes() != source():
        fresh = path.with_suffix(".new")
        fresh.write_bytes(source())
        fresh.chmod(0o700)
        fresh.replace(path)
    return path


def line(path: Path, agent: str, row: Hooks) -> Line:
    """Return how an agent is to run the command at an event: in words that any shell takes, and that cannot fail.

    A plugin gets the command's path alone.
    """
    if row.form is Form.OWN and row.text:
        return lambda _: str(path)
    return lambda event: f"/bin/sh {shlex.quote(str(path))} {agent} {event} 2>/dev/null || true"


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
    subprocess.run(["/bin/sh", str(path), agent, event], input=payload, env=environ, timeout=PATIENCE, check=False)
