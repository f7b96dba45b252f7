"""Pi: one history per session, a tree of lines, and its processes.

A line is written when a message is complete: nothing of a session is on disk before its first answer, and the results
of calls that run at once only when the last of them has ended. It asks for no permission, but its extensions may. A
fork begins with a copy of older lines, under a head that is younger than they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Shape, Source
from island.agents.reading import amount, asks, decode, facts, part, text_of, when, word
from island.model import Doubt, Event, Kind, Process, Reason, Record, Role, Session

# -- the history, sessions/<folder>/<time>_<session>.jsonl ---------------------------------------------------------

#: Known, and never state: settings, marks, what extensions keep, and a summary of what was left for another branch.
BOOKKEEPING = frozenset({"branch_summary", "compaction", "custom", "custom_message", "label", "thinking_level_change"})
#: Messages that are never state: the user's own `!command`, what extensions say, and summaries (older versions).
ASIDES = frozenset({"bashExecution", "branchSummary", "compactionSummary", "custom", "hookMessage"})

#: Tools that ask, of its example extensions.
ASKING_TOOLS = frozenset({"question", "questionnaire"})
#: Tools whose call asks while nothing runs, unless another tool was called at once: the result may wait for that one.
BRIEF = frozenset({"bash", "edit", "write"})

LOGIN = re.compile(r"\b40[13]\b|api key|unauthorized|authentication|oauth|/login", re.IGNORECASE)
LIMIT = re.compile(r"\b429\b|quota|rate.?limit|too many requests|usage.?limit|billing|credit", re.IGNORECASE)
#: Errors that it tries again, three times by default, as its own rule has them.
TRANSIENT = re.compile(
    r"overloaded|provider.?returned.?error|rate.?limit|too many requests|429|50[0234]|service.?unavailable"
    r"|server.?error|internal.?error|network.?error|connection.?(?:error|refused|lost)|websocket.?(?:closed|error)"
    r"|other side closed|fetch failed|upstream.?connect|reset before headers|socket hang up|ended without"
    r"|http2 request did not get a response|timed? out|timeout|terminated|retry delay",
    re.IGNORECASE,
)
#: Errors after which it makes the context smaller, and then tries again.
TOO_LONG = re.compile(r"too (?:long|large|many tokens)|context (?:window|length|size)|context_length|maximum prompt"
                      r"|reduce the length|token (?:count|limit)|request_too_large", re.IGNORECASE)


def read_history(record: Record) -> Iterator[Event]:
    """Read one line of a history. Its session is the one that its head names: a copied file has another name."""
    o, head = decode(record), _head(record)
    session = word(head.get("id")) or PurePath(record.path).stem.rpartition("_")[2]
    kind, at = word(o.get("type")), when(o.get("timestamp"))
    if kind != "session" and _is_copied(head, at):
        return
    for e in _line(kind, o, session, at):
        known = e.kind is not Kind.UNKNOWN
        yield Event(e.kind, session, e.at if known else record.mtime, e.key, e.word, e.turn, e.text, e.number,
                    record.offset, kind)


def _head(record: Record) -> dict[str, Any]:
    """Return the first line of a record's file; an empty one if it is none."""
    try:
        return decode(Record(record.path, record.head or record.data))
    except ValueError:
        return {}


def _is_copied(head: dict[str, Any], at: float) -> bool:
    """Tell whether a line is older than the fork in whose file it stands."""
    return bool(word(head.get("parentSession"))) and at < when(head.get("timestamp"))


def _line(kind: str, o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    match kind:
        case "message":
            yield from _message(part(o, "message"), session, at, word(o.get("id")))
        case "session":
            yield from facts(session, at, cwd=o.get("cwd"))
        case "model_change":
            yield from facts(session, at, model=o.get("modelId"))
        case "session_info":
            yield Event(Kind.FACT, session, at, "name", word(o.get("name")))
        case _ if kind in BOOKKEEPING:
            return
        case _:
            yield Event(Kind.UNKNOWN, session, at, word=kind)


def _message(m: dict[str, Any], session: str, at: float, ident: str) -> Iterator[Event]:
    match word(m.get("role")):
        case "user":
            yield Event(Kind.PROMPT, session, at, word="user", turn=ident)
        case "assistant":
            yield from facts(session, at, model=m.get("model"), tokens=amount(part(m, "usage").get("totalTokens")))
            yield from _answer(m, session, at)
        case "toolResult":
            yield Event(Kind.CLOSED, session, at, word(m.get("toolCallId")), "tool")
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL)
        case said if said in ASIDES:
            return
        case said:
            yield Event(Kind.UNKNOWN, session, at, word=f"message {said}")


def _answer(m: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    """Read one answer of the model. What ends it comes before what it calls: a failed one calls nothing any more."""
    match word(m.get("stopReason")):
        case "error":
            yield _error(word(m.get("errorMessage")), session, at)
        case "aborted":
            yield Event(Kind.END, session, at, word=Reason.INTERRUPTED)
        case "toolUse":
            yield from _calls(m.get("content"), session, at)
            yield Event(Kind.PROGRESS, session, at, word=Reason.TOOL)
        case "stop" | "length":  # a queued prompt may follow at once
            said = Reason.QUESTION if asks(text_of(m.get("content"))) else Reason.FINISHED
            yield Event(Kind.ANSWER, session, at, word=said)
        case reason:
            yield Event(Kind.UNKNOWN, session, at, word=f"stop reason {reason}")


def _error(text: str, session: str, at: float) -> Event:
    """Read an error: one that it tries again is not told from the last of them."""
    reason = Reason.LIMIT if LIMIT.search(text) else Reason.LOGIN if LOGIN.search(text) else Reason.ERROR
    if TRANSIENT.search(text) or TOO_LONG.search(text):
        return Event(Kind.ANSWER, session, at, word=reason, text=Doubt.AGAIN)
    return Event(Kind.END, session, at, word=reason)


def _calls(content: object, session: str, at: float) -> Iterator[Event]:
    """Read the calls of one answer: they run at once, and each stays open until the last has ended."""
    blocks = content if isinstance(content, list) else []
    calls = [b for b in blocks if isinstance(b, dict) and b.get("type") == "toolCall"]
    meaning = _meaning(frozenset(word(c.get("name")) for c in calls))
    for call in calls:
        span = "question" if word(call.get("name")) in ASKING_TOOLS else meaning
        command = word(part(call, "arguments").get("command"))
        yield Event(Kind.OPENED, session, at, word(call.get("id")), span, text=command)


def _meaning(tools: frozenset[str]) -> str:
    """Return what calls that were made at once mean: an edit is open for as long as the command beside it."""
    if not tools <= BRIEF:
        return "tool"
    return "shell-tool" if "bash" in tools else "instant-tool"


# -- processes -----------------------------------------------------------------------------------------------------

#: Its own commands, which are no session.
OTHER_COMMANDS = frozenset({"config", "install", "list", "remove", "uninstall", "update", "--export", "--help", "-h",
                            "--list-models", "--version", "-v"})
HEADLESS = frozenset({"-p", "--print", "json"})


def home(environ: Mapping[str, str], user_home: str) -> str:
    """Return where Pi keeps its files, or its sessions alone where a variable moves only them."""
    return (environ.get("PI_CODING_AGENT_SESSION_DIR") or environ.get("PI_CODING_AGENT_DIR")
            or f"{user_home}/.pi/agent")


def _arguments(p: Process) -> tuple[str, ...] | None:
    """Return what Pi was started with; None if it is another program. Soon after its start it wipes its arguments."""
    if p.called() == "pi":
        return p.cmdline[1:]
    script = p.cmdline[1].replace("\\", "/") if p.called() in ("node", "bun") and p.cmdline[1:] else ""
    ours = p.called(1) == "pi" or script.endswith("/pi-coding-agent/dist/cli.js")
    return p.cmdline[2:] if script and ours else None


def is_main(p: Process) -> bool:
    """Tell whether a process is Pi itself."""
    arguments = _arguments(p)
    return arguments is not None and not OTHER_COMMANDS & set(arguments[:1])


def owns(p: Process, session: Session) -> int:
    """Tell whether a process may run a session: by its folder, nothing else tells."""
    cwd = session.fact("cwd")
    return int(is_main(p) and (not p.cwd or not cwd or p.cwd == cwd))


def is_tool(p: Process) -> bool:
    """Tell whether a process runs for a call: all that Pi starts do, but for itself at the moment of starting."""
    return not is_main(p)


def role(p: Process) -> Role | None:
    """Tell a headless run by its command line, as long as that stands there. Over `rpc` a person may speak to it."""
    return Role.MACHINE if HEADLESS & set(_arguments(p) or ()) else None


PI = Agent(
    name="pi",
    label="Pi",
    home=home,
    sources=(
        Source("sessions/*/*.jsonl", Shape.LINES, read_history, head=True),
        Source("*.jsonl", Shape.LINES, read_history, head=True),
    ),
    main=is_main,
    owns=owns,
    tool=is_tool,
    role=role,
    single=True,
    evidence=("session histories", "processes"),
    blind=(
        "a session before its first answer",
        "a permission that an extension asks for is inferred when a command has no process or an edit stays open",
        "that an error was the last: it looks like those after which it tries again",
        "a compaction",
        "headless runs that began before island did look like a person's",
        "a resumed session appears only with its first prompt",
        "sessions kept in a folder that its settings name are not found",
    ),
)
