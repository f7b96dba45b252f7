"""What other programs are told: snapshots and changes as JSON, and the schema of both. Pure.

A new field does not change the schema's number; whatever else changes does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from island.model import Reason, Role, Row, Snapshot, State, Sure
from island.notices import Notice, Withdraw

SCHEMA = 1

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a session: how it is got, what it may be, what it means."""

    get: Callable[[Row], Any]
    kind: Json
    means: str = ""


TEXT: Json = {"type": "string"}
YES_OR_NO: Json = {"type": "boolean"}
MOMENT: Json = {"type": ["number", "null"]}


def _moment(at: float) -> float | None:
    return round(at, 3) if isfinite(at) and at > 0 else None


FIELDS: Mapping[str, Field] = {
    "agent": Field(lambda row: row.agent, TEXT),
    "session": Field(lambda row: row.session, TEXT, "the agent's own id; unique with the agent"),
    "kind": Field(lambda row: row.role.value, {"enum": [*Role]}, "a person's own, a headless run, or a subagent's"),
    "state": Field(lambda row: row.verdict.state.value, {"enum": [*State]}),
    "reason": Field(lambda row: row.verdict.reason.value, {"enum": [*Reason]}),
    "sure": Field(lambda row: row.verdict.sure.value, {"enum": [*Sure]}, "told by a record, or inferred"),
    "since": Field(lambda row: round(row.verdict.since, 3), {"type": "number"}, "seconds since 1970, as all times"),
    "until": Field(lambda row: _moment(row.verdict.until), MOMENT, "without new evidence; null: for ever"),
    "begun": Field(lambda row: _moment(row.begun), MOMENT, "when the newest prompt came; null: not known"),
    "why": Field(lambda row: row.verdict.evidence.source if row.verdict.evidence else "", TEXT, "kind of evidence"),
    "project": Field(lambda row: row.project, TEXT, "name of its folder; empty while names are hidden"),
    "title": Field(lambda row: row.title, TEXT, "empty unless the setting titles.exports is on"),
    "model": Field(lambda row: row.model, TEXT),
    "tokens": Field(lambda row: row.tokens, {"type": ["integer", "null"]}, "of context in use; null: not known"),
    "seen": Field(lambda row: row.seen, YES_OR_NO, "the user has looked at what it waits for"),
    "blind": Field(lambda row: [*row.blind], {"type": "array", "items": TEXT}, "what cannot be seen of this agent"),
}

#: What changes with every line that an agent writes, and is no change to tell.
RESTLESS = frozenset({"until", "why"})


def as_row(row: Row) -> Json:
    """Return one session."""
    return {name: field.get(row) for name, field in FIELDS.items()}


def as_json(snapshot: Snapshot) -> Json:
    """Return a snapshot: every session, those that the icon leaves out too."""
    return {**_head(snapshot), "sessions": [as_row(row) for row in snapshot.rows], "trouble": [*snapshot.trouble]}


def _head(snapshot: Snapshot) -> Json:
    return {"schema": SCHEMA, "at": round(snapshot.at, 3), "icon": snapshot.icon.value, "seen": snapshot.calm}


class Changes:
    """A stream of changes: the first holds all sessions, and each after it what is new since the last."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], Json] = {}
        self._head: Any = None

    def since(self, snapshot: Snapshot, spoken: Iterable[Notice | Withdraw] = ()) -> Json | None:
        """Return what has changed, with the notices that came and went; None if nothing did."""
        rows = {(row.agent, row.session): as_row(row) for row in snapshot.rows}
        changed = [row for key, row in rows.items() if _matter(row) != _matter(self._told.get(key, {}))]
        gone = [{"agent": agent, "session": session} for agent, session in self._told.keys() - rows.keys()]
        head = (snapshot.icon, snapshot.calm, snapshot.trouble)
        same, self._told, self._head = head == self._head, rows, head
        notices = list(_notices(spoken))
        if same and not (changed or gone or notices):
            return None
        return {**_head(snapshot), "changed": changed, "gone": gone, "notices": notices,
                "trouble": [*snapshot.trouble]}


def _matter(row: Json) -> Json:
    return {name: value for name, value in row.items() if name not in RESTLESS}


def _notices(spoken: Iterable[Notice | Withdraw]) -> Iterator[Json]:
    for one in spoken:
        if isinstance(one, Withdraw):
            yield {"key": one.key, "withdrawn": True}
        else:
            yield {"key": one.key, "withdrawn": False, "agent": one.agent, "sessions": [*one.sessions],
                   "reason": one.reason.value, "urgency": one.urgency.value, "title": one.title, "body": one.body}


# -- the schema ---------------------------------------------------------------------------------------------


def schema() -> Json:
    """Return the JSON Schema of a snapshot, and of a line of the stream."""
    head: Json = {"schema": {"const": SCHEMA}, "at": {"type": "number"}, "icon": {"enum": [*State]},
            "seen": YES_OR_NO, "trouble": {"type": "array", "items": TEXT}}
    rows = {"type": "array", "items": {"$ref": "#/$defs/session"}}
    fields = {name: {**field.kind, **({"description": field.means} if field.means else {})}
              for name, field in FIELDS.items()}
    name = _object({"agent": TEXT, "session": TEXT})
    notice = {"type": "object", "required": ["key", "withdrawn"], "properties": {"key": TEXT, "withdrawn": YES_OR_NO}}
    line = {"changed": rows, "gone": {"type": "array", "items": name}, "notices": {"type": "array", "items": notice}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"island, schema {SCHEMA}",
        "$defs": {"session": _object(fields)},
        "anyOf": [_object({**head, "sessions": rows}), _object({**head, **line})],
    }


def _object(properties: Mapping[str, Json]) -> Json:
    return {"type": "object", "required": [*properties], "properties": {**properties}}
