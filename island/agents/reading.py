"""How readers read: what each promises, and the small readings that they share. Pure.

A reader takes one record and returns its events. It keeps no state between records and looks at no clock
and no other file. It raises ValueError for what is not its format at all (a line that is not JSON), and
nothing else; what it knows but what says nothing about the turn gives no event; a kind of record that it
does not know gives an UNKNOWN event, which is counted and shown as possible drift.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from island.model import Event, Kind, Record

#: No time and no amount that a record tells is larger.
MOST = 1e15


def decode(record: Record) -> dict[str, Any]:
    """Return a record's JSON object. Raise ValueError if it is none."""
    value = orjson.loads(record.data)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004 - readers promise ValueError alone
    return value


def when(stamp: object) -> float:
    """Return an ISO 8601 stamp as seconds since the epoch; without a zone it is UTC. ValueError if bad."""
    if not isinstance(stamp, str):
        raise ValueError("a time stamp is missing")  # noqa: TRY004 - readers promise ValueError alone
    moment = datetime.fromisoformat(stamp)
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except OverflowError as error:
        raise ValueError(f"a time stamp is out of range: {stamp}") from error


def text_of(content: object) -> str:
    """Return the text of a message's content: a string, or its text blocks joined."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (b.get("text") for b in content if isinstance(b, dict))
    return "\n".join(p for p in parts if isinstance(p, str))


def word(value: object) -> str:
    """Return a value if it is text, else nothing: foreign fields may hold anything."""
    return value if isinstance(value, str) else ""


def asks(text: str) -> bool:
    """Tell whether a closing text ends in a question. A label only, never what makes it the user's turn."""
    return text.rstrip(" \t\r\n*_`\"')]»”").endswith(("?", "？", "؟"))  # noqa: RUF001 - real question marks


def part(o: dict[str, Any], key: str) -> dict[str, Any]:
    """Return an object within a record's object; an empty one if there is none."""
    value = o.get(key)
    return value if isinstance(value, dict) else {}


def count(value: object) -> int:
    """Return a value if it is a whole number, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def amount(value: object) -> str:
    """Return a count as a fact's value, if there is anything to count."""
    return str(count(value) or "")


def number(value: object) -> float:
    """Return a value if it is a number as a time or an amount may be, else 0."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST else 0.0


def milliseconds(value: object) -> float:
    """Return a time in milliseconds as seconds; 0 if it is none."""
    return number(value) / 1000


def facts(session: str, at: float, **told: object) -> Iterator[Event]:
    """Yield the facts of a session of which a record tells something."""
    yield from (Event(Kind.FACT, session, at, key, value) for key, value in told.items()
                if isinstance(value, str) and value)
