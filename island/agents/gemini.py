"""Gemini CLI: a history per session, of lines (spring 2026 and later) or as one document (before), and a title.

The history tells prompts, answers, ended tools, errors and interrupts. It does not tell a tool before it has ended:
an answer with text is the last one, or a tool runs behind it, or a dialog waits. The shell of a command tells the
second; the title of the terminal tells all three, where it can be seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Dialog, Shape, Source
from island.agents.reading import asks, decode, facts, text_of, when, word
from island.model import Doubt, Event, Kind, Process, Reason, Record, Role, Session

Object = dict[str, Any]

# -- histories: tmp/<folder>/chats/session-*.jsonl and session-*.json -----------------------------------------------


def read_line(record: Record) -> Iterator[Event]:
    """Read one line of a session's history. Only the head says whose it is; a resumed session has a second file."""
    o, head = decode(record), _head(record)
    if head.get("kind") != "subagent":  # older versions lay it here, and nobody knows the parent
        yield from (_placed(e, record, record.offset, o) for e in _line(o, head["sessionId"]))


def _head(record: Record) -> Object:
    head = decode(replace(record, data=record.head or record.data))
    if not word(head.get("sessionId")):
        raise ValueError("a history without a head")
    return head


def _placed(e: Event, record: Record, order: int, o: Object) -> Event:
    return replace(e, at=record.mtime if e.kind is Kind.UNKNOWN else e.at, order=order, source=word(o.get("type")))


def _line(o: Object, session: str) -> Iterator[Event]:
    match o:
        case {"$set": {"messages": [dict() as first, *_], "lastUpdated": str(now)}}:  # without what tells of its end
            yield from _folder(first, session)
            yield from facts(session, when(now), loaded="yes")  # if it is not loaded already
            yield from _copied(first, session, when(now))
        case {"$set": {"summary": str(summary)}}:
            yield from facts(session, 0, title=summary)
        case {"$set": _} | {"$rewindTo": _}:
            return
        case {"sessionId": _}:
            yield from _about(o, session)
        case _:
            yield from _message(o, session)


def read_document(record: Record) -> Iterator[Event]:
    """Read a whole history: what has happened since the newest prompt."""
    o = _head(record)
    session, messages = word(o["sessionId"]), o.get("messages")
    if not isinstance(messages, list):
        raise ValueError("not a history")  # noqa: TRY004 - readers promise ValueError alone
    if o.get("kind") == "subagent":
        return
    yield from _about(o, session)
    yield from facts(session, when(o.get("lastUpdated")), title=o.get("summary"))
    for order, m in reversed([*enumerate(messages)]):
        told = [_placed(e, record, order, m) for e in _message(m, session)] if isinstance(m, dict) else []
        yield from told
        if any(e.kind is Kind.PROMPT for e in told):
            return


def _about(o: Object, session: str) -> Iterator[Event]:
    """Read the head: the hash of the folder that it runs in, told when it was opened. See `owns`."""
    yield from facts(session, when(o.get("startTime")), surface=o.get("projectHash"))


def _copied(first: Object, session: str, now: float) -> Iterator[Event]:
    """Read whether a history was just written again message by message, as it is when a dialog was escaped.

    Its first message, which the program makes itself, then has an id like those of all others, and is as new as they.
    """
    since = when(first.get("timestamp"))
    if "-" in word(first.get("id")) and since <= now <= since + COPYING:
        yield Event(Kind.COPIED, session, now, number=since)


COPYING = 10.0  # seconds: eight messages take 1 ms


def _folder(message: Object, session: str) -> Iterator[Event]:
    found = WORKSPACE.search(text_of(message.get("content")))
    yield from facts(session, when(message.get("timestamp")), cwd=found[1] if found else "")


WORKSPACE = re.compile(r"<session_context>[^<]*\*\*Workspace Directories:\*\*\n  - (.+)")


# -- messages -------------------------------------------------------------------------------------------------------


def _message(m: Object, session: str) -> Iterator[Event]:
    kind = m.get("type")
    match kind:
        case "user":
            yield from _user(m, session)
        case "gemini":
            yield from _gemini(m, session) if "model" in m else ()  # a copy has none
        case "info" | "error" | "warning":
            yield from _said(text_of(m.get("content")), session, when(m.get("timestamp")))
        case _:
            yield Event(Kind.UNKNOWN, session, 0, word=word(kind) or "record")


#: What stands as the user's though the program put it there: it starts nothing, or the turn goes on with it.
NO_PROMPTS = (
    "<session_context>", "<hook_context>", "I ran the following shell command", "- **Workspace Directories:**",
    "User has manually exited Plan Mode.", "Here is the user's editor context",
    "Here is a summary of changes in the user's editor context",
)
NUDGES = ("[System: ", "System: ")


def _user(m: Object, session: str) -> Iterator[Event]:
    at, parts = when(m.get("timestamp")), _parts(m.get("content"))
    text = text_of(parts).lstrip()
    results = [_cancelled(p["functionResponse"]) for p in parts if "functionResponse" in p]
    if text.startswith(NUDGES) or not all(results):
        yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, text=Reason.INTERRUPTED if any(results) else "")
    elif parts and not results and not text.startswith(NO_PROMPTS):
        yield Event(Kind.PROMPT, session, at, word="user", turn=word(m.get("id")))


def _parts(content: object) -> list[Object]:
    """Return the parts of a message, which may be one part, or texts."""
    parts = content if isinstance(content, list) else [content]
    return [{"text": p} if isinstance(p, str) else p for p in parts if p and isinstance(p, str | dict)]


def _cancelled(result: object) -> bool:
    response = result.get("response") if isinstance(result, dict) else None
    return isinstance(response, dict) and word(response.get("error")).startswith("[Operation Cancelled]")


def _gemini(m: Object, session: str) -> Iterator[Event]:
    """Read an answer of the model. It is written again when its tools have ended, and only then tells of them.

    Its own id keys the hand-back: that of the prompt changes when a history is copied.
    """
    at, parts = when(m.get("timestamp")), _parts(m.get("content"))
    tokens = m.get("tokens")
    count = tokens.get("input") if isinstance(tokens, dict) else None
    yield from facts(session, at, model=m.get("model"), tokens=str(count) if isinstance(count, int) else "")
    calls = _parts(m.get("toolCalls"))
    text = text_of(parts).strip()
    if calls:
        yield from _ended(calls, session, at)
    elif not text or any("functionCall" in p for p in parts):
        yield Event(Kind.PROGRESS, session, at, word=Reason.TOOL)
    else:
        said = Reason.QUESTION if asks(text) else Reason.FINISHED
        yield Event(Kind.ANSWER, session, at, word=said, turn=word(m.get("id")), text=Doubt.PERHAPS, number=0)


def _ended(calls: list[Object], session: str, at: float) -> Iterator[Event]:
    """Read that tools have ended. One that moved to the background is told by its shell's pid."""
    cut = any(call.get("status") == "cancelled" for call in calls)
    for call in calls:
        if call.get("status") != "cancelled":
            at = max(at, when(call["timestamp"])) if call.get("timestamp") else at
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, text=Reason.INTERRUPTED if cut else "")
        left = BACKGROUND.match(word(call.get("resultDisplay")))
        if left:
            yield Event(Kind.OPENED, session, at, f"shell:{left[1]}", "process", text=left[1])


BACKGROUND = re.compile(r"Command moved to background \(PID: (\d{1,9})\)")

#: What the program says of a turn that ends without an answer, by its first words; the first that fits counts. An
#: error may be followed by work: behind a tool the program asks the model again by itself.
ENDS = {
    "Request cancelled.": (Kind.END, Reason.INTERRUPTED),
    "User cancelled the request.": (Kind.END, Reason.INTERRUPTED),
    "Agent execution stopped": (Kind.END, Reason.FINISHED),
    "The session has reached the maximum number of turns": (Kind.END, Reason.LIMIT),
    "A potential loop was detected.": (Kind.END, Reason.ERROR),
    **dict.fromkeys((
        "[API Error: API key", '[API Error: {"error":{"code":401', '[API Error: {"error":{"code":403',
        "[API Error: Request had invalid authentication", "[API Error: Permission denied",
    ), (Kind.ANSWER, Reason.LOGIN)),
    **dict.fromkeys((
        "[API Error: You have exhausted", "[API Error: You exceeded", "[API Error: Quota exceeded",
        "[API Error: Resource has been exhausted", '[API Error: {"error":{"code":429',
    ), (Kind.ANSWER, Reason.LIMIT)),
    **dict.fromkeys((
        "[API Error", "The model returned ", "The model response was blocked", "Model response was truncated",
        "Invalid stream",
    ), (Kind.ANSWER, Reason.ERROR)),
}


def _said(text: str, session: str, at: float) -> Iterator[Event]:
    kind, reason = next((end for start, end in ENDS.items() if text.startswith(start)), (None, ""))
    if kind:
        yield Event(kind, session, at, word=reason)


# -- subagents: tmp/<folder>/chats/<session>/<subagent>.jsonl -------------------------------------------------------


def read_subagent(record: Record) -> Iterator[Event]:
    """Read one line of a subagent's history: it runs from its head until it hands its result over."""
    o, child, parent = decode(record), word(_head(record)["sessionId"]), PurePath(record.path).parent.name
    match o:
        case {"sessionId": _, "startTime": began}:
            yield Event(Kind.OPENED, parent, when(began), child, "child", source="subagent begins")
        case {"type": "gemini", "toolCalls": [*calls]}:
            for call in calls:
                if isinstance(call, dict) and (call.get("name"), call.get("status")) == ("complete_task", "success"):
                    yield Event(Kind.CLOSED, parent, when(call.get("timestamp")), child, "child", source="its result")
        case _:
            return


# -- the terminal ---------------------------------------------------------------------------------------------------

TITLES = {"◇": "ready", "✦": "busy", "⏲": "busy", "✋": "permission"}


def title(text: str) -> str:
    """Read the title: ready, working, or a dialog of any kind. Older versions, and the setting, tell nothing by it."""
    sign, _, rest = text.partition("  ")
    return TITLES.get(sign, "") if rest else ""


#: Dialogs of which the title says that the program works, or is ready.
DIALOGS = (
    Dialog("question", r"^ *│ [● ] \d\. (Keep trying|Upgrade for higher limits|Stop) +│$", """
 │ Usage limit reached for all Pro models.   │
 │ ● 1. Keep trying                          │
 │   2. Stop                                 │
 ╰───────────────────────────────────────────╯"""),
    Dialog("question", r"^ *│ [● ] 1\. Keep loop detection enabled", """
 │ ?  A potential loop was detected                  │
 │ ● 1. Keep loop detection enabled (esc)            │
 │   2. Disable loop detection for this session      │
 ╰───────────────────────────────────────────────────╯"""),
)


# -- processes ------------------------------------------------------------------------------------------------------

#: Runs that are no session.
OTHER_COMMANDS = frozenset({"mcp", "extensions", "extension", "skills", "skill", "hooks", "gemma", "--help", "-h",
                            "--version", "-v", "--list-sessions", "--delete-session", "--list-extensions", "-l"})
#: What stands in the command line of a shell that runs a command of the model's: it notes what is left running.
SHELL_MARKS = ("_bgpids_file=", "pgrep -g 0 >")

OPENS = 30.0  # seconds from the start of a process until it opens a session: 0-4 were measured, a login may be between


def arguments(p: Process) -> tuple[str, ...] | None:
    """Return the arguments that the program was given; None if it is another program."""
    if p.called() == "gemini":
        return p.cmdline[1:]
    place = next((n for n, a in enumerate(p.cmdline[1:], 1) if not a.startswith("-")), 0)
    if not place or p.called() not in ("node", "bun"):
        return None
    script = p.cmdline[place].replace("\\", "/")
    ours = p.called(place) in ("gemini", "gemini.js") or "@google/gemini-cli/" in script
    return p.cmdline[place + 1 :] if ours else None


def is_main(p: Process) -> bool:
    """Tell whether a process is Gemini CLI: the one that is started, or the one below it that does the work."""
    given = arguments(p)
    return given is not None and OTHER_COMMANDS.isdisjoint(given[:1])


def owns(p: Process, session: Session) -> int:
    """Tell how likely a process runs a session: by its folder, whose hash is told, and by its start."""
    opened = session.get(Kind.FACT, "surface")
    path = p.cwd.encode(errors="surrogateescape")
    here = not p.cwd or opened is None or sha256(path).hexdigest() == opened.word or p.cwd == session.fact("cwd")
    if not is_main(p) or not here:
        return 0
    return 1 + (opened is not None and -1 <= opened.at - p.created <= OPENS)


def is_tool(p: Process) -> bool:
    """Tell whether a process is a shell that runs a command of the model's, not the user's own or a hook."""
    return any(mark in a for a in p.cmdline for mark in SHELL_MARKS)


def role(p: Process) -> Role | None:
    """Tell whose run it is by its command line: histories do not."""
    given = arguments(p)
    if given is None:
        return None
    headless = any(a in ("-p", "--prompt") or a.startswith("--prompt=") for a in given)
    return Role.MACHINE if headless else Role.PERSON


def home(environ: Mapping[str, str], user_home: str) -> str:
    """Return the folder that holds everything: its name stays when another home is named."""
    return f"{environ.get('GEMINI_CLI_HOME') or user_home}/.gemini"


GEMINI = Agent(
    name="gemini",
    label="Gemini CLI",
    home=home,
    sources=(
        Source("tmp/*/chats/session-*.jsonl", Shape.LINES, read_line, head=True),
        Source("tmp/*/chats/session-*.json", Shape.DOCUMENT, read_document),
        Source("tmp/*/chats/*/*.jsonl", Shape.LINES, read_subagent, head=True, side=True),
    ),
    main=is_main,
    owns=owns,
    tool=is_tool,
    role=role,
    single=True,
    title=title,
    dialogs=DIALOGS,
    evidence=("session histories", "terminal titles", "processes"),
    blind=(
        "where the terminal's title is not seen, a dialog looks like a finished turn; so may a tool that is no command",
        "a dialog about a used-up quota; one about a loop looks like an error",
        "which of two programs in one folder runs a cleared session is a guess",
    ),
)
