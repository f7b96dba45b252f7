"""Put hooks into agents' files and take them out, each change as a plan first. Shell.

A plan holds what stands there and what would; only `carry_out` writes. What the file held before is kept in island's
state folder, and comes back byte for byte if nobody has changed the file since.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from island.agents import AGENTS
from island.hooks import command
from island.hooks.edit import added, complete, entries, removed
from island.hooks.outline import TextError, outline
from island.hooks.rows import rows


class SetupError(Exception):
    """A file that is left alone: which, where, and why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would change in one agent's file. before, after: None where there is no file."""

    agent: str
    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def changes(self) -> bool:
        """Tell whether anything would."""
        return self.before != self.after

    def diff(self) -> str:
        """Return the change as a diff."""
        (old, old_name), (new, new_name) = (
            ([], os.devnull) if held is None else (held.decode().splitlines(keepends=True), str(self.path))
            for held in (self.before, self.after))
        lines = unified_diff(old, new, old_name, new_name)
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


class Setup:
    """The hooks of all agents, for one user."""

    PRESENT, ABSENT = "installed", "not installed"
    PLATFORM = sys.platform

    def __init__(self, environ: Mapping[str, str] = os.environ, home: Path | None = None,
                 where: Path | None = None) -> None:
        self._environ, self._home = environ, home or Path.home()
        self.where = where or command.folder()
        self._rows = rows(self.PLATFORM)
        self.command = self.where / (command.PYTHON if self.PLATFORM == "win32" else command.SCRIPT)

    def agents(self) -> list[str]:
        """Return the agents that have hooks which island can set up here."""
        return [name for name in AGENTS if name in self._rows]

    def is_here(self, agent: str) -> bool:
        """Tell whether the agent has been used here."""
        return self._folder(agent).is_dir()

    def path(self, agent: str) -> Path:
        """Return the file in which an agent's hooks are set up; behind a link, the file itself."""
        path = self._folder(agent) / self._rows[agent].file
        return path.resolve() if path.is_symlink() else path

    def state(self, agent: str) -> str:
        """Return how the hooks of an agent stand: installed, partly, or not installed. Raise SetupError."""
        row, held = self._rows[agent], _text(self.path(agent))
        with _told(self.path(agent)):
            if complete(row, held, self._line(agent)):
                return self.PRESENT if self.command.exists() else "installed, but the command is gone"
            return "installed by another version" if entries(row, held) else self.ABSENT

    def unheard(self, agent: str) -> str:
        """Return which file of the agent keeps island's hooks from running, and at which events; nothing if none."""
        row = self._rows[agent]
        for path in (self._folder(agent) / name for name in row.instead):
            with contextlib.suppress(SetupError, TextError):
                held = outline(_text(path) or "{}").value
                taken = sorted({c.event for c in row.calls if isinstance(held, dict) and c.event in held})
                if taken:
                    return f"{path} has hooks of its own for {', '.join(taken)}, which run instead"
        return ""

    def installing(self, agent: str) -> Plan:
        """Plan to put hooks in. Raise SetupError if the file cannot be read."""
        row, path = self._rows[agent], self.path(agent)
        held = _text(path)
        with _told(path):
            same = complete(row, held, self._line(agent))
            after = held if same else added(row, held, self._line(agent))
        return Plan(agent, path, _bytes(path), after.encode())

    def removing(self, agent: str) -> Plan:
        """Plan to take hooks out. Raise SetupError if the file cannot be read."""
        path, before = self.path(agent), _bytes(self.path(agent))
        note = self._note(agent)
        if before is not None and note.get("after") == _digest(before) and self._is_kept(agent):
            return Plan(agent, path, before, _bytes(self._backup(agent)) if note["before"] else None)
        with _told(path):
            after = removed(self._rows[agent], _text(path)).encode()
        made = note.get("before") == ""  # by island, and what is left of it says nothing
        return Plan(agent, path, before, None if before is None or (made and not after.strip(b" \t\r\n{}")) else after)

    def carry_out(self, plan: Plan, *, install: bool) -> None:
        """Write what was planned, after keeping what was there; the command lies in place first."""
        if install:
            command.put(self.where, self.command.name)
            self._keep(plan)
        if plan.changes:
            _write(plan.path, plan.after)
        if not install:
            self._forget(plan)

    def _forget(self, plan: Plan) -> None:
        if self._note(plan.agent).get("folder") == "new":
            with contextlib.suppress(OSError):  # something else lies in it by now
                plan.path.parent.rmdir()
        for kept in (self._note_path(plan.agent), self._backup(plan.agent)):
            kept.unlink(missing_ok=True)

    # -- what was there before --------------------------------------------------------------------------------

    def _keep(self, plan: Plan) -> None:
        """Keep what the file held before island's first entry, with what tells whether it has changed since."""
        if plan.before is None:
            original = None
        elif _digest(plan.before) == self._note(plan.agent).get("after") and self._is_kept(plan.agent):
            original = _bytes(self._backup(plan.agent)) if self._note(plan.agent)["before"] else None
        else:
            original = removed(self._rows[plan.agent], plan.before.decode()).encode()
        if original is not None:
            _write(self._backup(plan.agent), original, 0o600)
        note = {"file": str(plan.path), "before": _digest(original), "after": _digest(plan.after),
                "folder": self._note(plan.agent).get("folder") or ("old" if plan.path.parent.exists() else "new")}
        _write(self._note_path(plan.agent), json.dumps(note).encode(), 0o600)

    def _note(self, agent: str) -> dict[str, str]:
        try:
            note = json.loads(self._note_path(agent).read_bytes())
        except (OSError, ValueError):
            return {}
        return note if isinstance(note, dict) and note.get("file") == str(self.path(agent)) else {}

    def _is_kept(self, agent: str) -> bool:
        """Tell whether what the file held before is still known."""
        before = self._note(agent).get("before")
        return before == "" or before == _digest(_bytes(self._backup(agent)))

    def _note_path(self, agent: str) -> Path:
        return self.where / f"{agent}.json"

    def _backup(self, agent: str) -> Path:
        return self.where / f"{agent}.before"

    # -- names ------------------------------------------------------------------------------------------------

    def _folder(self, agent: str) -> Path:
        home = self._rows[agent].home or AGENTS[agent].home
        return Path(home(self._environ, str(self._home)))

    def _line(self, agent: str) -> command.Line:
        try:
            return command.line(self.command, agent, self._rows[agent])
        except command.NoLineError as error:
            raise SetupError(str(error)) from None


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    """Say of which file it is that it cannot be read."""
    try:
        yield
    except TextError as error:
        raise SetupError(f"{path}: {error}") from None


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(f"{path}: {error.strerror}") from None


def _text(path: Path) -> str:
    held = _bytes(path) or b""
    try:
        return held.decode()
    except UnicodeDecodeError as error:
        line = held[: error.start].count(b"\n") + 1
        raise SetupError(f"{path}: line {line}: not UTF-8") from None


def _digest(held: bytes | None) -> str:
    return "" if held is None else hashlib.sha256(held).hexdigest()


def _write(path: Path, held: bytes | None, mode: int | None = None) -> None:
    """Write a file whole or not at all, with the mode that it had."""
    if held is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(held)
            file.flush()
            os.fsync(file.fileno())
        Path(fresh).chmod(mode if mode is not None else path.stat().st_mode & 0o777 if path.exists() else 0o600)
        Path(fresh).replace(path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
