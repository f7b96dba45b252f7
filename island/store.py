"""What island keeps for its user in its own folders. Shell: must not decide what is silenced or set."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import orjson
import platformdirs

from island.quiet import Hush, from_json, to_json


def hush_path() -> Path:
    """Return where lies what was silenced from the menu."""
    return platformdirs.user_state_path("island") / "quiet.json"


def load_hush(path: Path | None = None) -> tuple[Hush, str]:
    """Return what was silenced, and what is wrong with the file; without one, nothing is."""
    path = path or hush_path()
    try:
        return from_json(orjson.loads(path.read_bytes())), ""
    except FileNotFoundError:
        return Hush(), ""
    except (OSError, ValueError) as error:
        return Hush(), f"{path}: {error}; nothing is muted or snoozed"


def save_hush(hush: Hush, path: Path | None = None) -> None:
    """Keep what is silenced. Raise OSError if it cannot be written; then the old file stands."""
    write(path or hush_path(), orjson.dumps(to_json(hush), option=orjson.OPT_APPEND_NEWLINE))


def write(path: Path, content: bytes) -> None:
    """Write a file of ours at once or not at all, readable by its user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mkstemp gives it the mode 0600
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
