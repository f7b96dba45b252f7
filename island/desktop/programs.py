"""Other programs of the desktop, asked for a moment. Shell: texts are arguments, and no shell is between."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

PATIENCE = 3.0


class ProgramError(Exception):
    """A program is not there, failed, or does not come to an end; the text says which and why."""


def run(program: str, *arguments: str, environ: Mapping[str, str] | None = None) -> str:
    """Run a program to its end, with more variables, and return what it says."""
    more = {**os.environ, **(environ or {})}
    done = _run(program, arguments, stdin=subprocess.DEVNULL, capture_output=True, env=more)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise ProgramError(f"{program}: {said[-1] if said else f'ended with {done.returncode}'}")
    return str(done.stdout)


def feed(program: str, text: str) -> None:
    """Give a program a text to read. What it says is lost: it may leave a child behind that says more."""
    done = _run(program, (), input=text, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if done.returncode:
        raise ProgramError(f"{program} ended with {done.returncode}")


def start(program: str, *arguments: str) -> None:
    """Start a program that goes its own way; ProgramError if it is not there."""
    try:
        started = subprocess.Popen([_path(program), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        raise ProgramError(f"{program}: {error}") from error
    threading.Thread(target=started.wait, name=program, daemon=True).start()  # else its end would leave a zombie


def _run(program: str, arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    try:
        return subprocess.run([_path(program), *arguments], text=True, encoding="utf-8", errors="replace",
                              timeout=PATIENCE, check=False, **options)
    except (OSError, ValueError) as error:
        raise ProgramError(f"{program}: {error}") from error
    except subprocess.TimeoutExpired:
        raise ProgramError(f"{program} does not answer") from None


def _path(program: str) -> str:
    found = shutil.which(program)
    if not found:
        raise ProgramError(f"{program} is not installed")
    return found


def local_socket(path: str) -> socket.socket:
    """Return a connection to a program of this machine that listens there; raises OSError."""
    if sys.platform == "win32":
        raise OSError("no program listens on such a socket here")
    line = socket.socket(socket.AF_UNIX)
    try:
        line.settimeout(PATIENCE)
        line.connect(path)
    except BaseException:
        line.close()
        raise
    return line
