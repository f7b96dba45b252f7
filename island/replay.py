"""Replay a sequence in virtual time, through the code that ships, down to reads of real files. Shell.

What happens is made in a scene; what the observer and the notices say of it is printed on the sequence's clock.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from island.model import Role, Row, State
from island.notices import EAR, Book, Notice, Withdraw, advance, stepped
from island.observer import Observer
from island.scene import PROJECT, Scene
from island.sequence import Sequence1, Step
from island.sessions import why

Line = dict[str, Any]


class Replay:
    """One sequence, played once; `panes` and `hooks` as its scene has them."""

    def __init__(self, sequence: Sequence1, folder: Path, *, panes: bool = False, hooks: bool = False) -> None:
        self.sequence = sequence
        self.scene = Scene(sequence, folder, panes=panes, hooks=hooks)
        self._next_at = 0.0
        self.spoken: list[Notice | Withdraw] = []
        self.book = Book(since=self.now)
        self.ear = EAR
        self.rows: dict[str, Row] = {}
        self.lines: list[Line] = []
        self._said: dict[tuple[str, str], tuple[str, ...]] = {}
        self._icon: State | None = None

    @property
    def now(self) -> float:
        """Return the time on the wall."""
        return self.scene.now

    @property
    def observer(self) -> Observer:
        """Return what looks at the scene."""
        return self.scene.observer

    # -- running --------------------------------------------------------------------------------------------

    def run(self) -> Iterator[str]:
        """Play all steps at once; yield what an `expect` line finds different."""
        heard = 0
        for step in self._moves():
            if step and step.verb == "expect":
                yield from self._compare(step, self.lines[heard:])
                heard = len(self.lines)

    def moments(self) -> Iterator[float]:
        """Play step by step: yield the time of what is to happen next, and let it happen when asked on.

        Until then all is as it is before it: it can be shown, and be looked at by whoever watches.
        """
        moves = self._moves()
        at = 0.0
        while True:
            yield at
            if next(moves, self) is self:
                return
            at = max(at, self._next_at)

    def _moves(self) -> Iterator[Step | None]:
        """Let everything happen in order of time: the steps, and before each, and before what lapses, None."""
        self.observer.sweep(self.now)
        self._report(0.0)
        for step in self.sequence.steps:
            yield from self._until(step.at)
            self._next_at = step.at
            yield None
            self.scene.perform(step)
            if step.verb == "clock" and step.operand >= 0:
                self.book = stepped(self.book, step.operand, self.now)
            self._report(step.at)
            yield step

    def _until(self, at: float) -> Iterator[None]:
        """Let time pass: what lapses before `at` lapses in its order."""
        while (due := min(self.observer.sessions.due, self.book.due)) <= self.scene.wall(at):
            self._next_at = max(self.now, due) - self.scene.wall(0)
            yield None
            self.scene.now = max(self.now, due)
            self.observer.tick(self.now)
            self.again()

    # -- saying ---------------------------------------------------------------------------------------------

    def again(self) -> None:
        """Say what is different now, though nothing was written: something lapsed, or the user saw or silenced it."""
        self._report(self.now - self.scene.wall(0))

    def _report(self, at: float) -> None:
        at = round(at, 3)
        found = self.observer.sessions.rows()
        rows = [replace(row, session=row.session.replace(str(self.scene.project), PROJECT)) for row in found]
        self.rows = {row.session: row for row in rows}
        for row, named in zip(found, rows, strict=True):
            self._say_verdict(at, named, why(self.observer.sessions.held[row.agent, row.session]))
        for agent, session in self._said.keys() - {(row.agent, row.session) for row in rows}:
            del self._said[agent, session]
            self.lines.append({"at": at, "session": session, "agent": agent, "state": "idle", "reason": "ended",
                               "sure": "told", "why": "no longer there"})
        snapshot = self.observer.snapshot(self.now)
        if snapshot.icon is not self._icon:
            self._icon = snapshot.icon
            self.lines.append({"at": at, "icon": snapshot.icon.value})
        self.book, spoken = advance(self.book, rows, self.now, self.ear)
        self.spoken += spoken
        self.lines += [_notice_line(at, s) for s in spoken]

    def _say_verdict(self, at: float, row: Row, because: str) -> None:
        key, verdict = (row.agent, row.session), row.verdict
        said = (verdict.state, verdict.reason, verdict.sure, row.role)
        if self._said.get(key) == said:
            return
        self._said[key] = said
        line: Line = {"at": at, "session": row.session, "agent": row.agent, "state": verdict.state.value,
                      "reason": verdict.reason.value, "sure": verdict.sure.value, "why": because}
        if row.role is not Role.PERSON:
            line["kind"] = row.role.value
        self.lines.append(line)

    def _compare(self, step: Step, heard: list[Line]) -> Iterator[str]:
        for who, want in step.operand.items():
            have = self._have(who, heard)
            short = who not in ("icon", "notices") and have.partition("(")[0]
            if want not in (have, short):
                yield f"{self.sequence.name}:{step.line}: at {step.at}: {who} is {have!r}, expected {want!r}"

    def _have(self, who: str, heard: list[Line]) -> Any:
        if who == "icon":
            return self._icon.value if self._icon else "idle"
        if who == "notices":
            return [line["notice"]["session"] for line in heard if "notice" in line]
        row = self.rows.get(who)
        return f"{row.verdict.state.value}({row.verdict.reason.value})" if row else "unknown"


def _notice_line(at: float, spoken: Notice | Withdraw) -> Line:
    if isinstance(spoken, Withdraw):
        return {"at": at, "withdraw": {"session": spoken.session}}
    told: Line = {"session": spoken.session, "reason": spoken.reason.value, "title": spoken.title}
    if len(spoken.sessions) > 1:
        told["sessions"] = list(spoken.sessions)
    return {"at": at, "notice": told}


def play(sequence: Sequence1, *, panes: bool = False, hooks: bool = False) -> list[Line]:
    """Return the timeline of a sequence."""
    with tempfile.TemporaryDirectory(prefix="island-replay-") as folder:
        replay = Replay(sequence, Path(folder), panes=panes, hooks=hooks)
        for _ in replay.run():
            pass
        return replay.lines


def check(sequence: Sequence1, *, panes: bool = False, hooks: bool = False) -> list[str]:
    """Return what is different from the sequence's `expect` lines."""
    with tempfile.TemporaryDirectory(prefix="island-replay-") as folder:
        return list(Replay(sequence, Path(folder), panes=panes, hooks=hooks).run())
