"""Sequence files: replayable histories of evidence with their truth. Pure: text in, text out.

JSON Lines, version 1. The first line is the head, every other one a step: `at` (seconds since the start) and
one verb. A malformed file is a SequenceError with file, line number and what is wrong.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from pathlib import PurePosixPath
from typing import Any

VERSION = 1
STATES = ("working", "your-turn", "stalled", "idle", "ended")
ORIGINS = ("recorded", "written", "reported")


class SequenceError(ValueError):
    """A malformed sequence file: where and what."""

    def __init__(self, name: str, line: int, wrong: str) -> None:
        super().__init__(f"{name}:{line}: {wrong}")


@dataclass(frozen=True, slots=True)
class Step:
    """One line: at that time, this verb with this operand; `fields` is the whole line."""

    at: float
    verb: str
    operand: Any
    fields: Mapping[str, Any]
    line: int

    @property
    def content(self) -> bytes:
        """Return the bytes of an append or write."""
        return content(self.fields)


@dataclass(frozen=True, slots=True)
class Sequence1:
    """A sequence file, read: head and steps in order of time."""

    name: str
    head: Mapping[str, Any]
    steps: tuple[Step, ...] = ()
    start: float = 0.0

    @property
    def end(self) -> float:
        """Return the time of the last step."""
        return self.steps[-1].at if self.steps else 0.0

    def of(self, verb: str) -> list[Step]:
        """Return the steps of one verb."""
        return [s for s in self.steps if s.verb == verb]


def content(fields: Mapping[str, Any]) -> bytes:
    """Return the bytes that `text`, `base64` or `records` stand for."""
    if "records" in fields:
        return b"".join(json.dumps(r, separators=(",", ":")).encode() + b"\n" for r in fields["records"])
    if "base64" in fields:
        return base64.b64decode(fields["base64"], validate=True)
    return str(fields.get("text", "")).encode("utf-8", "surrogateescape")


# -- reading ---------------------------------------------------------------------------------------------------


def parse(text: str, name: str = "sequence") -> Sequence1:
    """Read a sequence file's text. Raise SequenceError at the first line that is wrong."""
    rows = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not rows:
        raise SequenceError(name, 1, "the file is empty; its first line must be the head")
    number, line = rows[0]
    head = _object(name, number, line)
    start = _head(name, number, head)
    steps = [_step(name, number, _object(name, number, line)) for number, line in rows[1:]]
    for before, after in pairwise(steps):
        if after.at < before.at:
            raise SequenceError(name, after.line, f"time goes back: {after.at} after {before.at}")
    return Sequence1(name, head, tuple(steps), start)


def _object(name: str, number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise SequenceError(name, number, f"not JSON: {error}") from None
    if not isinstance(value, dict):
        raise SequenceError(name, number, "a line must be a JSON object")
    return value


def _head(name: str, number: int, head: dict[str, Any]) -> float:
    if head.get("sequence") != VERSION:
        raise SequenceError(name, number, f'the head must say "sequence": {VERSION}')
    if not isinstance(head.get("agent"), str):
        raise SequenceError(name, number, "the head must name its agent")
    if head.get("origin", "written") not in ORIGINS:
        raise SequenceError(name, number, f"origin must be one of {', '.join(ORIGINS)}")
    try:
        moment = datetime.fromisoformat(head.get("start", ""))
    except (TypeError, ValueError):
        raise SequenceError(name, number, "start must be an ISO 8601 time") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _step(name: str, number: int, fields: dict[str, Any]) -> Step:
    at: Any = fields.get("at")
    if _number(at, fields) or at < 0:
        raise SequenceError(name, number, "`at` must be seconds since the start, 0 or more")
    verbs = [v for v in fields if v in VERBS]
    if len(verbs) != 1:
        known = ", ".join(VERBS)
        wrong = "more than one verb: " + ", ".join(verbs) if verbs else f"no verb; known are {known}"
        raise SequenceError(name, number, wrong)
    verb = verbs[0]
    wrong = VERBS[verb](fields[verb], fields)
    if wrong:
        raise SequenceError(name, number, f"{verb}: {wrong}")
    return Step(float(at), verb, fields[verb], fields, number)


# Each verb's check returns what is wrong, or nothing.


def _path(value: object, _: Mapping[str, Any]) -> str:
    if not isinstance(value, str) or value[:2] not in ("~/", "@/") or value.endswith("/"):
        return "a path must start with ~/ (home) or @/ (project)"
    if ".." in PurePosixPath(value).parts or "\0" in value:
        return "a path must stay below its root"
    return ""


def _content(value: object, fields: Mapping[str, Any]) -> str:
    given = [k for k in ("text", "base64", "records") if k in fields]
    if len(given) != 1:
        return "give one of text, base64, records"
    if given == ["records"] and not isinstance(fields["records"], list):
        return "records must be a list"
    if given == ["text"] and not isinstance(fields["text"], str):
        return "text must be a string"
    try:
        content(fields)
    except (binascii.Error, TypeError, ValueError):
        return "base64 cannot be decoded"
    return _path(value, fields)


def _patch(value: object, fields: Mapping[str, Any]) -> str:
    blocks, size = fields.get("blocks"), fields.get("size")
    if not isinstance(size, int) or size < 0:
        return "size must be a whole number"
    try:
        for offset, data in blocks or ():
            if not isinstance(offset, int) or offset < 0:
                return "a block's offset must be a whole number"
            base64.b64decode(data, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return "blocks must be [[offset, base64], ...]"
    return _path(value, fields)


def _rows(value: object, fields: Mapping[str, Any]) -> str:
    tables: Any = fields.get("tables")
    if not isinstance(tables, dict) or not all(isinstance(rows, list) for rows in tables.values()):
        return "tables must be {table: [{column: value, ...}, ...]}"
    rows = [row for rows in tables.values() for row in rows]
    if not all(isinstance(row, dict) and row for row in rows):
        return "a row must be {column: value, ...}"
    if not all(re.fullmatch("[a-z_]+", name) for name in (*tables, *(c for row in rows for c in row))):
        return "names of tables and columns are of small letters and underscores"
    return _path(value, fields)


def _process(value: object, _: Mapping[str, Any]) -> str:
    if not isinstance(value, dict):
        return "a process must be an object"
    for key in ("pid", "ppid"):
        if not isinstance(value.get(key), int):
            return f"{key} must be a whole number"
    arguments = value.get("cmdline", [])
    if not isinstance(arguments, list) or not all(isinstance(a, str) for a in arguments):
        return "cmdline must be a list of texts"
    for key in ("name", "cwd"):
        if not isinstance(value.get(key, ""), str):
            return f"{key} must be a text"
    return "created must be a number" if _number(value.get("created", 0), value) else ""


def _hook(value: object, fields: Mapping[str, Any]) -> str:
    if not isinstance(fields.get("stdin"), dict):
        return "stdin must be an object"
    made: Any = fields.get("made", fields["at"])
    if _number(made, fields) or made > fields["at"]:
        return "made must be a number, and not later than at"
    return _text(value, fields)


def _title(value: object, fields: Mapping[str, Any]) -> str:
    return _text(value, fields) or ("pid must be a whole number" if _whole(fields.get("pid", 0), fields) else "")


def _whole(value: object, _: Mapping[str, Any]) -> str:
    return "" if isinstance(value, int) and not isinstance(value, bool) else "must be a whole number"


def _number(value: object, _: Mapping[str, Any]) -> str:
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        return "must be a number"
    return ""


def _mapping(value: object, _: Mapping[str, Any]) -> str:
    return "" if isinstance(value, dict) else "must be an object"


def _truth(value: object, _: Mapping[str, Any]) -> str:
    if not isinstance(value, dict) or value.get("state") not in STATES:
        return f"state must be one of {', '.join(STATES)}"
    return ""


def _text(value: object, _: Mapping[str, Any]) -> str:
    return "" if isinstance(value, str) else "must be a text"


def _clock(value: object, fields: Mapping[str, Any]) -> str:
    return _number(value, fields)


VERBS: Mapping[str, Callable[[Any, Mapping[str, Any]], str]] = {
    "append": _content, "write": _content, "patch": _patch, "rows": _rows, "touch": _path, "remove": _path,
    "process": _process, "exit": _whole, "cpu": _mapping, "pane": _text, "title": _title, "hook": _hook,
    "clock": _clock, "truth": _truth, "expect": _mapping, "note": _text,
}


# -- scoring: how well a timeline agrees with the truth lines -------------------------------------------------

SLACK = 2.0  # seconds after a truth change that are not judged: evidence needs time to reach the disk
LEAD = 0.4  # seconds before the next truth change that are not judged
#: Runs that no person waits for, by the name of their file: any notice is false, none is missed.
MACHINE = re.compile(r"headless|exec|print")
_RANK = {"your-turn": 4, "stalled": 3, "working": 2, "idle": 1}

Points = list[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Score:
    """Figures of one timeline: judged and agreeing seconds, notices false and missed, and what was wrong."""

    judged: float = 0.0
    good: float = 0.0
    false: int = 0
    missed: int = 0
    wrong: tuple[tuple[float, float, str, str], ...] = field(default=())

    @property
    def agree(self) -> float:
        """Return the share of judged time on which the state equals the truth."""
        return self.good / self.judged if self.judged else 1.0


def _norm(state: str | None) -> str:
    return "idle" if state in (None, "ended") else str(state)


def _at(points: Points, at: float) -> str:
    return next((s for t, s in reversed(points) if t <= at), "idle")


def _merged(lines: Iterable[Points]) -> Points:
    lines = list(lines)
    times = sorted({t for line in lines for t, _ in line})
    return [(t, max((_norm(_at(line, t)) for line in lines), key=_RANK.__getitem__)) for t in times]


def score(sequence: Sequence1, timeline: Sequence[Mapping[str, Any]]) -> Score:
    """Score a timeline against the truth lines of its sequence."""
    pairs = _pairs(sequence, timeline)
    notices = [line["at"] for line in timeline if "notice" in line]
    judged = [_judge(truth, got, sequence.end) for truth, got in pairs]
    machine = bool(MACHINE.search(PurePosixPath(sequence.name).stem))
    missed = 0 if machine else sum(_missed(truth, notices, sequence.end) for truth, _ in pairs)
    return Score(
        judged=sum(j.judged for j in judged), good=sum(j.good for j in judged),
        false=sum(machine or all(_at(_states(t), at + 0.5) != "your-turn" for t, _ in pairs) for at in notices),
        missed=missed, wrong=tuple(w for j in judged for w in j.wrong),
    )


Truth = list[tuple[float, str, str]]


def _states(truth: Truth) -> Points:
    return [(t, _norm(s)) for t, s, _ in truth]


def _pairs(sequence: Sequence1, timeline: Sequence[Mapping[str, Any]]) -> list[tuple[Truth, Points]]:
    truths: dict[str | None, Truth] = {}
    for s in sequence.of("truth"):
        entry = (s.at, str(s.operand["state"]), str(s.operand.get("reason", "")))
        truths.setdefault(s.operand.get("session"), []).append(entry)
    got: dict[str, Points] = {}
    for line in timeline:
        if "session" in line and "state" in line:
            got.setdefault(line["session"], []).append((line["at"], line["state"]))
    named = [k for k in truths if k]
    if len(named) > 1 and all(k in got for k in named):
        return [(truths[k], got[k]) for k in named if k]
    merged = sorted(e for entries in truths.values() for e in entries)
    if len(named) > 1:
        merged = [(t, s, "") for t, s in _merged(_states(truths[k]) for k in named)]
    return [(merged, _merged(got.values()))]


def _spells(truth: Truth, end: float) -> Iterable[tuple[float, float, str, str, str]]:
    for i, (begun, state, reason) in enumerate(truth):
        over = truth[i + 1][0] if i + 1 < len(truth) else end
        yield begun, over, _norm(state), reason, truth[i - 1][1] if i else ""


def _judge(truth: Truth, got: Points, end: float) -> Score:
    judged, good, wrong = 0.0, 0.0, []
    for begun, over, want, _, _ in _spells(truth, end):
        marks = [begun, *(t for t, _ in got if begun < t < over), over]
        for a, b in pairwise(marks):
            low, high = max(a, begun + SLACK), min(b, over - LEAD)
            if high <= low:
                continue
            have = _norm(_at(got, a + 1e-6))
            judged += high - low
            if have == want:
                good += high - low
            else:
                wrong.append((round(low, 1), round(high, 1), want, have))
    return Score(judged, good, wrong=tuple(wrong))


def _missed(truth: Truth, notices: Sequence[float], end: float) -> int:
    silent = ("interrupted", "background", "")
    owed = [(a, b) for a, b, state, reason, before in _spells(truth, end)
            if state == "your-turn" != before and reason not in silent and b - a > 5]
    return sum(not any(a - 0.5 <= n <= b for n in notices) for a, b in owed)


def median_lateness(sequence: Sequence1, timeline: Sequence[Mapping[str, Any]]) -> float:
    """Return the median delay in seconds from a truth change to the first agreement; NaN if never."""
    late = []
    for truth, got in _pairs(sequence, timeline):
        for begun, over, want, _, before in _spells(truth, sequence.end):
            if want == _norm(before or None) or over - begun <= 0.5:
                continue
            marks = [begun, *(t for t, _ in got if begun < t < over)]
            first = next((m for m in marks if _norm(_at(got, m + 1e-6)) == want), None)
            if first is not None:
                late.append(first - begun)
    return statistics.median(late) if late else float("nan")
