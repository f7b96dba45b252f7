"""What a log says of an agent's starts: which process each of them is, and for which call it asks. Pure.

Such a log names the run that writes a line, and in some lines a session, so sessions know their run. Where nothing
else tells which process runs a session, the first line of its run does: it follows the start of the process soon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from island.model import ASK_OF, Event, Kind, Process, Session, place

#: Times in logs may be cut to seconds, and those of processes are coarse.
SLACK = 1.0

#: A log begins so long after its process at the latest: 3 s are normal, on a machine under load.
SOON = 60.0

#: A call asks at once: an ask so many seconds after the last call was opened is not known to be its.
AT_ONCE = 5.0

#: So many asks of one run are remembered, and so many runs.
KEPT = 100

#: Spans that are calls of tools, and may ask.
CALLS = frozenset({"tool", "shell-tool", "instant-tool"})


@dataclass(slots=True)
class Run:
    """One start of an agent: when its log begins (0: not known), when it asked for permission, the last of these."""

    began: float = 0.0
    asks: dict[str, float] = field(default_factory=dict)
    last: float = 0.0

    def note(self, event: Event) -> None:
        """Take in what a line of the log tells."""
        self.last = max(self.last, event.at)
        if event.word == "began":
            self.began = min(self.began or event.at, event.at)
        else:
            self.asks[event.key] = event.at
            for old in sorted(self.asks, key=lambda key: self.asks[key])[:-KEPT]:
                del self.asks[old]

    def asking(self, sessions: Iterable[Session]) -> Iterator[Event]:
        """Yield each ask as opened on the call that waits for it. One with a command runs when its process does."""
        calls = [(s, e) for s in sessions for e in s.every(Kind.OPENED) if e.word in CALLS] if self.asks else []
        for at in self.asks.values():
            near = [e for s, e in calls if at - AT_ONCE <= e.at <= at + SLACK and not _over_by(s, e, at)]
            if near:
                call = max(near, key=place)
                word = "escalation" if call.text else "permission"
                yield replace(call, at=max(at, call.at), key=ASK_OF + call.key, word=word)


def note(runs: dict[str, Run], event: Event) -> None:
    """Take in what a line of the log tells of one of the runs, and forget the oldest of too many."""
    runs.setdefault(event.session, Run()).note(event)
    if len(runs) > KEPT:
        del runs[min(runs, key=lambda name: runs[name].last)]


def _over_by(session: Session, call: Event, at: float) -> bool:
    closed = session.get(Kind.CLOSED, call.key)
    return closed is not None and call.at <= closed.at < at


def processes(runs: Mapping[str, Run], running: Iterable[Process]) -> Mapping[str, Process]:
    """Return which process each run is: the newest that was there when its log begins, and that is no later run's."""
    waiting = sorted(running, key=lambda p: p.created, reverse=True)
    found: dict[str, Process] = {}
    for name, run in sorted(runs.items(), key=lambda item: (item[1].began, item[0]), reverse=True):
        p = next((p for p in waiting if run.began - SOON <= p.created <= run.began + SLACK), None)
        if run.began and p:
            waiting.remove(p)
            found[name] = p
    return found
