"""What island keeps for its user in its own folders. Shell: must not decide what is silenced or set."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import orjson
import platformdirs

from island.quiet import Hush, from_json, to_json
from island.settings import Problem, Settings, parse

#: A settings file that is larger is none: it is not even read.
MOST_BYTES = 65536


def settings_path() -> Path:
    """Return where the settings lie: in the platform's folder for them."""
    return platformdirs.user_config_path("island", appauthor=False) / "config.toml"


def stamp(path: Path) -> tuple[int, ...]:
    """Return what changes when a file is written anew; nothing for one that is not there."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return (found.st_mtime_ns, found.st_size, found.st_ino)


class SettingsFile:
    """The settings as their file has them; without one, the defaults.

    While anything is wrong with a changed file, the settings from before stand; at the first look there are none, so
    what is right counts. A change counts once it stands still for a look: editors empty a file before they fill it.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or settings_path()
        self.settings = Settings()
        self.text = self.missing = ""  # missing: why there is no text
        self.problems: tuple[Problem, ...] = ()
        self._stamp = self._seen = stamp(self.path)
        self._read(first=True)

    def changed(self) -> bool:
        """Look whether the file has changed, and read it if so; tell whether it was read."""
        before, self._seen = self._seen, stamp(self.path)
        if self._seen != before or self._seen == self._stamp:
            return False
        self._stamp = self._seen
        self._read()
        return True

    def trouble(self) -> str:
        """Return what is wrong with the file, in one line."""
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return f"{self.path.name}: {self.problems[0]}{more}" if self.problems else ""

    def _read(self, *, first: bool = False) -> None:
        try:
            self.text, self.missing = _text(self.path), ""
            settings, self.problems = parse(self.text)
        except FileNotFoundError:
            self.text, self.missing, settings, self.problems = "", "not there", Settings(), ()
        except (OSError, ValueError) as error:
            self.text, self.missing, settings, self.problems = "", "cannot be read", Settings(), (_unread(error),)
        if first or not self.problems:
            self.settings = settings


def _unread(error: OSError | ValueError) -> Problem:
    return Problem(0, "", str((isinstance(error, OSError) and error.strerror) or error))


def _text(path: Path) -> str:
    with path.open("rb") as file:
        found = file.read(MOST_BYTES + 1)
    if len(found) > MOST_BYTES:
        raise ValueError(f"larger than {MOST_BYTES} bytes")
    try:
        return found.decode("utf-8-sig")  # some editors begin a file with a mark that TOML does not know
    except UnicodeDecodeError as error:
        line = found.count(b"\n", 0, error.start) + 1
        raise ValueError(f"line {line}: not UTF-8") from None


T = TypeVar("T")


def state_path(name: str) -> Path:
    """Return where a file of island's own state lies: "quiet.json", what was silenced, or "seen.json"."""
    return platformdirs.user_state_path("island", appauthor=False) / name


def load_hush(path: Path | None = None) -> tuple[Hush, str]:
    """Return what was silenced, and what is wrong with the file; without one, nothing is."""
    return _load(path or state_path("quiet.json"), from_json, Hush())


def save_hush(hush: Hush, path: Path | None = None) -> None:
    """Keep what is silenced. Raise OSError if it cannot be written; then the old file stands."""
    _save(path or state_path("quiet.json"), to_json(hush))


def load_seen(path: Path | None = None) -> tuple[dict[str, None], str]:
    """Return what the user has seen, oldest first, and what is wrong with the file."""
    return _load(path or state_path("seen.json"), _seen, {})


def save_seen(seen: Iterable[str], path: Path | None = None) -> None:
    """Keep what the user has seen. Raise OSError if it cannot be written."""
    _save(path or state_path("seen.json"), {"schema": 1, "seen": list(seen)})


def _seen(kept: Any) -> dict[str, None]:
    match kept:
        case {"seen": [*matters]} if all(isinstance(matter, str) for matter in matters):
            return dict.fromkeys(matters)
        case _:
            raise ValueError("not what island keeps here")


def _load(path: Path, read: Callable[[Any], T], nothing: T) -> tuple[T, str]:
    try:
        return read(orjson.loads(path.read_bytes())), ""
    except FileNotFoundError:
        return nothing, ""
    except (OSError, ValueError) as error:
        return nothing, f"{path}: {error}"


def _save(path: Path, content: Any) -> None:
    write(path, orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE))


def write(path: Path, content: bytes) -> None:
    """Write a file of ours at once or not at all, readable by its user alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()  # of a process that had this number, and did not get as far as we
    number = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
