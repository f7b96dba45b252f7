"""The words of island: what every other module speaks of.

Pure: imports nothing of island, looks at no clock, opens no file. Times are seconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from math import inf


class State(StrEnum):
    """Whether anything more will happen without the user."""

    YOUR_TURN = "your-turn"
    STALLED = "stalled"
    WORKING = "working"
    IDLE = "idle"


class Reason(StrEnum):
    """Why a session is in its state: the same words for every agent."""

    MODEL = "model"
    TOOL = "tool"
    COMPACTING = "compacting"
    RETRYING = "retrying"
    BACKGROUND = "background"
    FINISHED = "finished"
    QUESTION = "question"
    PLAN = "plan"
    PERMISSION = "permission"
    ERROR = "error"
    LIMIT = "limit"
    LOGIN = "login"
    INTERRUPTED = "interrupted"
    SILENT = "silent"
    MAYBE_PERMISSION = "maybe-permission"
    NEW = "new"
    SEEN = "seen"
    EXPIRED = "expired"
    ENDED = "ended"
    CRASHED = "crashed"


class Sure(StrEnum):
    """How sure: told by a record, or inferred from what is missing."""

    TOLD = "told"
    INFERRED = "inferred"


class Kind(StrEnum):
    """What an event means. A session keeps the newest event of each (kind, key)."""

    FACT = "fact"  # key: a name of FACTS; word: its value
    PROMPT = "prompt"  # a turn began; word: who began it (user, agent, machine)
    PROGRESS = "progress"  # the main thread went on; word: a working reason; text: "interrupted" in part, if so
    ANSWER = "answer"  # looks final, may still go on; word: a hand-back reason; text: a Doubt; number: as of END
    END = "end"  # the turn is over; word: a hand-back reason; number: background agents left. Without a time of
    # its own (at 0) its key is the turn's; with the key AFRESH another conversation begins, which has no turn yet
    COPIED = "copied"  # what was written from `number` to `at` is a copy of older records, and says nothing
    PLANNED = "planned"  # key: turn; the turn ends in a plan to approve
    OPENED = "opened"  # key: id; word: a span of SPANS; text: the tool's name or command
    CLOSED = "closed"  # key: id
    LIVE = "live"  # key, word: the agent's own live status: busy, idle (or ready: each interrupt is on record), shell,
    # or an ask; text: pid, or ANY if it is told whichever process runs it; turn: key
    OWNER = "owner"  # key: pid; that process has the session loaded; number: when it started, 0 if unknown
    GONE = "gone"  # made by `gone`: a process ended, or turned to another session
    ATTACHED = "attached"  # key: pid; a window of the user shows the session
    STOPPED = "stopped"  # key: pid; word: yes or no; suspended by a signal
    ASKED = "asked"  # key: as of HOOK; word: of ASKS; told by a hook: open until the turn (or that child) goes on
    ALONE = "alone"  # no tool process runs under the owner since `at`; word: yes or no; number: when they had begun
    RUN = "run"  # session: a start of the agent, as its log names it; word: began or asks (key: the ask's id). Never
    # folded: see Runs, which opens the ask of a call as ASK_OF and the call's key
    UNKNOWN = "unknown"  # word: a kind of record the reader does not know; counted, never folded


#: Facts a session may carry, by key of a FACT event. `name` is a title given by the user, `title` one that was made
#: from prompts, `window` the tokens that the model takes at most, `surface` what the user sees the session in (the
#: agent's own word). `run` is the start of the agent that works on it last, `loaded` tells that a process loaded it,
#: then.
FACTS = ("cwd", "title", "name", "model", "tokens", "window", "version", "role", "parent", "surface", "archived", "run",
         "loaded")

#: Spans that end with their turn at the latest; the others (children, shells) may outlive it.
TURN_BOUND = frozenset({"tool", "shell-tool", "instant-tool", "judged-tool", "question", "plan", "permission",
                        "escalation", "unrecorded", "command"})

#: Key of an END that begins another conversation in the same place.
AFRESH = "afresh"

#: Key of turn registers read from records that carry no turn key at all (very old formats), or beside the history.
#: They count only while no record with a turn key has been seen; an answer that names its turn, only if that was seen.
KEYLESS = "keyless"

#: Key of turn registers told by hooks; of a child's, a colon and its id follow. They count where they are news. Of an
#: ask that names its tool, and of a tool that runs, a slash and the tool follow.
HOOK = "hook"

#: Text of what is told of a session whichever process runs it: it names none, and proves none.
ANY = "*"

#: Key of the ask of a call, before the call's own.
ASK_OF = "ask:"

#: Spans, by word of an OPENED event.
SPANS = ("tool", "shell-tool", "instant-tool", "judged-tool", "question", "plan", "permission", "escalation",
         "unrecorded", "trust", "child", "child-permission", "child-question", "shell", "process",
         "command")


class Doubt(StrEnum):
    """Why what looks like the last answer may be none: the text of an ANSWER. Without one, whatever follows tells."""

    AGAIN = "again"  # an error of a request, which may be tried again
    PERHAPS = "perhaps"  # a tool may stand behind it, for all that its record tells
    QUIET = "quiet"  # an end is never written: it is the last if nothing follows for long enough
    SOON = "soon"  # complete: what may follow does so at once


class Role(StrEnum):
    """Whose session it is: only a person's own sessions reach the icon and the notices."""

    PERSON = "person"
    MACHINE = "machine"
    CHILD = "child"


@dataclass(frozen=True, slots=True)
class Record:
    """One native line, document or row, as bytes.

    path: the file it stands in; offset: its first byte there (0 for a whole document);
    mtime: file time, a stand-in only for formats that carry no time; head: the first line of its file, where the
    source reads it.
    """

    path: str
    data: bytes
    offset: int = 0
    mtime: float = 0.0
    head: bytes = b""


@dataclass(frozen=True, slots=True)
class Event:
    """A record's meaning.

    at: the record's own time; order: place in its file, which breaks ties; turn: the turn's stable
    key; source: the kind of record it was read from; number: a count, see Kind.
    """

    kind: Kind
    session: str
    at: float
    key: str = ""
    word: str = ""
    turn: str = ""
    text: str = ""
    number: float = -1
    order: int = 0
    source: str = ""


def gone(session: str, at: float, process: str, word: str, source: str) -> Event:
    """Return that a process has nothing to do with a session any more; word: exit, closed (in order) or left.

    Each word has a register of its own: what came first counts, see `claims`.
    """
    return Event(Kind.GONE, session, at, f"{process}/{word}", word, source=source)


def place(event: Event) -> tuple[float, int, str, str, str, str, float]:
    """Return what orders events of one register; the fields after time and place only make it total."""
    return (event.at, event.order, event.word, event.turn, event.text, event.source, event.number)


def before(one: Event, other: Event) -> bool:
    """Tell whether one event came before another: what a format without times says at one moment stands in order."""
    return (one.at, one.order) < (other.at, other.order)


def newest(*events: Event | None) -> Event | None:
    """Return the newest of some events that may be missing."""
    return max((e for e in events if e), key=place, default=None)


NONE: Mapping[str, Event] = {}

#: Source of what was seen of a process, and stands in no record.
PROCESS = "process"

#: What opens a span, and what closes it.
SPAN_EDGES = frozenset({Kind.OPENED, Kind.CLOSED})


@dataclass(frozen=True, slots=True, eq=False)
class Session:
    """The registers of one conversation: the newest event for each key of each kind.

    open: those of Kind.OPENED that no later event closed, which are few however many have been. Never changed, and so
    told from others by its identity alone: what was made of one can be kept.
    """

    agent: str
    id: str
    registers: Mapping[Kind, Mapping[str, Event]] = field(default_factory=dict)
    open: Mapping[str, Event] = field(default_factory=dict)

    def get(self, kind: Kind, key: str = "") -> Event | None:
        """Return the newest event of that kind for that key."""
        return self.registers.get(kind, NONE).get(key)

    def every(self, kind: Kind) -> Collection[Event]:
        """Return the newest event of that kind for each of its keys."""
        return self.registers.get(kind, NONE).values()

    def events(self) -> Iterator[Event]:
        """Yield what stands in all registers."""
        return chain.from_iterable(held.values() for held in self.registers.values())

    def fact(self, name: str) -> str:
        """Return a fact's value, or an empty text."""
        event = self.get(Kind.FACT, name)
        return event.word if event else ""

    def put(self, event: Event) -> Session:
        """Return this session with an event in its register, whatever stood there."""
        held = {**self.registers.get(event.kind, NONE), event.key: event}
        after = replace(self, registers={**self.registers, event.kind: held})
        span = after.get(Kind.OPENED, event.key) if event.kind in SPAN_EDGES else None
        if span is None:
            return after
        others = {key: e for key, e in self.open.items() if key != event.key}
        return replace(after, open={**others, event.key: span} if after.is_open(span) else others)

    def only(self, keep: Callable[[Event], bool]) -> Session:
        """Return this session with those registers alone."""
        kept: dict[Kind, dict[str, Event]] = {}
        for event in filter(keep, self.events()):
            kept.setdefault(event.kind, {})[event.key] = event
        left = replace(self, registers=kept)
        return replace(left, open={e.key: e for e in left.every(Kind.OPENED) if left.is_open(e)})

    def is_open(self, span: Event) -> bool:
        """Tell whether nothing has closed a span since it was opened."""
        closed = self.get(Kind.CLOSED, span.key)
        return closed is None or before(closed, span)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A state held from `since` until `until`, unless new evidence comes.

    turn: key of what is said (turn or ask), stable over re-reads; evidence: the event that decided.
    """

    state: State
    reason: Reason
    sure: Sure = Sure.TOLD
    since: float = 0.0
    until: float = inf
    turn: str = ""
    evidence: Event | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One session as it is shown.

    label: the agent's name for people; project: the name of its folder; title: may be made from prompts, so the menu
    alone shows it, and a notice if the user wants that; tokens, window: in use, and at most; begun: when the newest
    prompt came, 0 if unknown; seen: the user has looked at this.
    """

    agent: str
    session: str
    verdict: Verdict
    role: Role = Role.PERSON
    label: str = ""
    project: str = ""
    folder: str = ""
    title: str = ""
    model: str = ""
    tokens: int | None = None
    window: int | None = None
    begun: float = 0.0
    seen: bool = False
    blind: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that is shown at one moment: rows by urgency, the icon, and what is wrong with the watch."""

    at: float
    icon: State
    rows: tuple[Row, ...] = ()
    trouble: tuple[str, ...] = ()
    calm: bool = False  # the icon's your-turn has been seen
    unnamed: bool = False  # the user hides all names for now


def file_name(path: str) -> str:
    """Return the last part of a path, as any system writes paths."""
    return path.replace("\\", "/").rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Process:
    """One running process. name: the same on all systems; created: -1 if unknown; environ: None if not readable."""

    pid: int
    ppid: int
    name: str
    cmdline: tuple[str, ...] = ()
    cwd: str = ""
    created: float = -1.0
    environ: Mapping[str, str] | None = None
    stopped: bool = False

    @property
    def identity(self) -> str:
        """Name this process for good: pids are used again, a pid with its start time is not."""
        return f"{self.pid}:{self.created:.2f}"

    def called(self, place: int = 0) -> str:
        """Return the name of the program or script at a place of the command line, as any system writes paths."""
        argument = self.cmdline[place] if place < len(self.cmdline) else ""
        return file_name(argument).removesuffix(".exe")


#: read(record) -> its events. Keeps no state, looks at no clock and no other file, never raises on
#: what an agent could write except ValueError for what is not its format at all.
Reader = Callable[[Record], Iterable[Event]]
