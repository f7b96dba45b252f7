"""One followed file: by which source of which agent it is read, and what it told last. Shell, by way of its looker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from island.agents.base import Agent, Shape, Source
from island.model import Event, Record
from island.sources.databases import Database
from island.sources.files import Document, Follower, Look, Presence, stamp


class Looker(Protocol):
    """What looks into one file, and knows how far it has read."""

    def look(self) -> Look:
        """Return what is new in it."""


LOOKERS: Mapping[Shape, Callable[[str, Source], Looker]] = {
    Shape.LINES: lambda path, _: Follower(path),
    Shape.DOCUMENT: lambda path, _: Document(path),
    Shape.PRESENCE: lambda path, _: Presence(path),
    Shape.DATABASE: lambda path, source: Database(path, source.queries),
}


@dataclass(slots=True)
class Followed:
    """One file that is followed: by which source it is read, and what it told last of each session."""

    agent: Agent
    source: Source
    path: str
    looker: Looker = field(init=False)
    told: dict[str, Event] = field(default_factory=dict)
    looked_at: float = 0.0
    head: bytes = b""

    def __post_init__(self) -> None:
        self.anew()

    def anew(self) -> None:
        """Begin to follow it as if it had never been looked at."""
        self.looker = LOOKERS[self.source.shape](self.path, self.source)
        self.told.clear()
        self.head = b""

    def headed(self, record: Record) -> Record:
        """Return a record with the first line of its file, if the source wants it."""
        if not self.source.head:
            return record
        if record.offset == 0:
            self.head = record.data
        return replace(record, head=self.head)


def replaced(source: Source, home: str) -> bool:
    """Tell whether a newer layout has taken the place of a source."""
    return bool(source.until) and stamp(f"{home}/{source.until}") is not None
