"""Hands a file or a folder to the program that the desktop has for it. Shell."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from island.desktop.programs import ProgramError, start


def open_path(path: Path) -> str:
    """Open a file or a folder as the user's desktop does; return what stood in the way, or nothing."""
    if not path.exists():
        return f"{path} is not there"
    try:
        _open(path)
    except (OSError, ProgramError) as error:
        return f"{path} cannot be opened: {error}"
    return ""


def _open(path: Path) -> None:
    if sys.platform == "win32":
        os.startfile(path)  # noqa: S606 - there is no shell, and the path is our own or an agent's folder
    elif sys.platform == "darwin":
        start("open", *(["-t"] if path.is_file() else []), str(path))  # a text, whatever its ending is bound to
    else:
        start("xdg-open", str(path))
