"""Qwen Code: one history per session, a record per process of what it runs, and the title of its terminal.

The history tells turns, answers, tools and errors, but no dialog and nothing of an Esc before the first word: those
the title tells (0.23 and newer), else processes. Errors are told each time, not whether another attempt follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from island.agents.base import UNMARKED, Agent, Shape, Source
from island.agents.reading import amount, asks, count, decode, facts, number, part, when, word
from island.model import Doubt, Event, Kind, Process, Reason, Record, Role, Session, gone

# -- the history, projects/<folder>/chats/<session>.jsonl ---------------------------------------------------------

#: Who begins a turn, by the kind of its first record. A goal's next turn follows by itself.
BEGINNERS = {"": "user", "notification": "task", "cron": "task", "goal_runtime": "agent"}

#: Known, and never state.
BOOKKEEPING = frozenset({
    "at_command", "attribution_snapshot", "background_task_completed", "branch_checkpoint", "file_history_snapshot",
    "goal_state", "goal_turn_end", "omni_recall", "realtime_message", "session_artifact_event",
    "session_artifact_snapshot", "session_model", "session_source", "session_sources_snapshot", "slash_command",
    "user_text_elements",
})

ASKING = {"ask_user_question": "question", "exit_plan_mode": "plan"}
SHELL, EDITS = frozenset({"run_shell_command"}), frozenset({"edit", "notebook_edit", "write_file"})
#: Done in milliseconds, and not asked about in the working folder.
LOOKS = frozenset({"glob", "grep_search", "list_directory", "read_file", "read_many_files", "todo_write"})

OUTCOMES: Mapping[str, Reason | str] = {"completed": "", "cancelled": Reason.INTERRUPTED, "error": Reason.ERROR}
ERRORS = {401: Reason.LOGIN, 402: Reason.LIMIT, 403: Reason.LOGIN, 429: Reason.LIMIT}
#: Errors of a request that are tried again all the same, like all others that are not the request's fault.
TRIED_AGAIN = frozenset({408, 409, 413, 425, 429})
OVERFULL = re.compile(r"context|token|too (long|large)", re.IGNORECASE)  # tried again after a compaction


def read_history(record: Record) -> Iterator[Event]:
    """Read one line of a session's history."""
    o = decode(record)
    session, kind, about = word(o.get("sessionId")), word(o.get("type")), word(o.get("subtype"))
    reader = READERS.get(kind)
    if not session:
        raise ValueError("a record without a session")
    known = reader(o, session, when(o.get("timestamp")), about) if reader else None
    events = (Event(Kind.UNKNOWN, session, record.mtime, word=kind),) if known is None else known
    copied = "forkedFrom" in o  # another session's history, as it was when this one branched off
    return (replace(e, order=record.offset, source=e.source or about or kind) for e in events
            if e.kind is Kind.FACT or not copied)


def _user(o: dict[str, Any], session: str, at: float, about: str) -> Iterator[Event]:
    if about == "mid_turn_user_message":
        yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL)
    elif about in BEGINNERS:
        yield Event(Kind.PROMPT, session, at, word=BEGINNERS[about], turn=word(o.get("uuid")))
        yield from facts(session, at, cwd=o.get("cwd"), version=o.get("version"))
    else:
        yield from _other(session, at, about)


def _assistant(o: dict[str, Any], session: str, at: float, about: str) -> Iterator[Event]:
    if about:
        yield from _other(session, at, about)
        return
    parts, usage, newer = _parts(o), part(o, "usageMetadata"), "provenance" in o
    calls = [part(p, "functionCall") for p in parts if "functionCall" in p]
    names = {word(call.get("name")) for call in calls}
    for call in calls:
        name, ident = word(call.get("name")), word(call.get("id"))
        span = _span(name, names, judged=newer)
        yield Event(Kind.OPENED, session, at, ident, span, text=name, source=f"call of {name}")
        if not newer and part(call, "args").get("is_background") is True:  # newer versions tell more of it elsewhere
            yield Event(Kind.OPENED, session, at, f"shell:{ident}", "shell", source="call in the background")
    text = "".join(word(p.get("text")) for p in parts if not p.get("thought")).strip()
    if calls or not text:
        yield Event(Kind.PROGRESS, session, at, word=Reason.TOOL if calls else Reason.MODEL)
    elif newer and not usage:  # what there was of an answer when it was cut off: older versions keep nothing
        yield Event(Kind.ANSWER, session, at, word=Reason.INTERRUPTED, source="cut answer")
    else:
        yield Event(Kind.ANSWER, session, at, word=Reason.QUESTION if asks(text) else Reason.FINISHED, source="answer")
    tokens = amount(usage.get("promptTokenCount"))
    yield from facts(session, at, model=o.get("model"), tokens=tokens)


def _span(name: str, names: set[str], *, judged: bool) -> str:
    """Return what an open call means. All results of one response are written at once, after the slowest call."""
    if name in ASKING:
        return ASKING[name]
    if not names <= SHELL | EDITS | LOOKS or name in LOOKS or (name in EDITS and names & SHELL):
        return "tool"
    return "judged-tool" if judged else "shell-tool" if name in SHELL else "instant-tool"


def _result(o: dict[str, Any], session: str, at: float, _: str) -> Iterator[Event]:
    """Read that a call has ended. A cancelled one ends the turn, unless others of its response were not."""
    result = part(o, "toolCallResult")
    calls = {word(result.get("callId")), *(word(part(p, "functionResponse").get("id")) for p in _parts(o))} - {""}
    yield from (Event(Kind.CLOSED, session, at, call, "tool") for call in sorted(calls))
    if result.get("status") in ("cancelled", "error"):
        yield from (Event(Kind.CLOSED, session, at, f"shell:{call}", "shell") for call in sorted(calls))
    if result.get("status") == "cancelled":
        yield Event(Kind.ANSWER, session, at, word=Reason.INTERRUPTED, source="cancelled call")
    else:
        yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL)


def _system(o: dict[str, Any], session: str, at: float, about: str) -> Iterator[Event]:
    payload = part(o, "systemPayload")
    match about:
        case "ui_telemetry":
            yield from _telemetry(part(payload, "uiEvent"), session, at)
        case "chat_compression" if part(payload, "info").get("triggerReason") == "manual":
            yield Event(Kind.END, session, at, word=Reason.FINISHED, turn=word(o.get("uuid")))
        case "chat_compression":
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL)
        case "rewind":  # only at a free prompt
            yield Event(Kind.END, session, at, word=Reason.INTERRUPTED)
        case "turn_result":
            state = word(payload.get("state"))
            yield Event(Kind.END, session, at, word=OUTCOMES.get(state, Reason.ERROR), source=f"turn {state}".strip())
        case "custom_title":
            named = "title" if payload.get("titleSource") == "auto" else "name"
            yield from facts(session, at, **{named: payload.get("customTitle")})
        case "parent_session":
            yield from facts(session, at, parent=payload.get("parentSessionId"), role=Role.CHILD)
        case _:
            yield from _other(session, at, about)


def _telemetry(told: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    """Read of a request what nothing else tells: that it failed. Those of subagents stand here too."""
    mine = word(told.get("prompt_id")).startswith(f"{session}########") and not told.get("subagent_name")
    if told.get("event.name") == "qwen-code.api_error" and mine:
        status = count(told.get("status_code"))
        refused = 400 <= status < 500 and status not in TRIED_AGAIN
        again = "" if refused and not OVERFULL.search(word(told.get("error_message"))) else Doubt.AGAIN
        reason = ERRORS.get(status, Reason.ERROR)
        yield Event(Kind.ANSWER, session, at, word=reason, text=again, source=f"API error {status}")


def _other(session: str, at: float, about: str) -> Iterator[Event]:
    if about not in BOOKKEEPING:
        yield Event(Kind.UNKNOWN, session, at, word=about)


READERS = {"user": _user, "assistant": _assistant, "tool_result": _result, "system": _system}


# -- beside it -------------------------------------------------------------------------------------------------------


def read_live(record: Record) -> Iterator[Event]:
    """Read which session a process has loaded, sessions/<pid>.json (0.23 and newer). It holds a secret, too."""
    o = decode(record)
    session, pid = word(o.get("sessionId")), count(o.get("pid"))
    if not session or pid <= 0:
        raise ValueError("a live record without session or pid")
    if o.get("kind") == "external":
        return  # another program, which speaks with sessions
    begun = word(o.get("procStart"))  # the boot and the ticks since
    guard = f"{begun} :pid:[{o.get('pidNs')}]" if begun else ""
    started = number(o.get("startedAt")) / 1000 or record.mtime
    yield Event(Kind.OWNER, session, started, str(pid), text=guard, number=started, source="live record")
    role = Role.MACHINE if o.get("kind") == "headless" else ""
    yield from facts(session, started, cwd=o.get("cwd"), version=o.get("qwenVersion"), role=role)


def live_removed(told: Event, now: float) -> Iterator[Event]:
    """Read the removal of a live record: the process ended in order."""
    if told.kind is Kind.OWNER:
        yield gone(told.session, now, told.key, "closed", "live record removed")


def read_runtime(record: Record) -> Iterator[Event]:
    """Read which process loaded a session last, chats/<session>.runtime.json (since early 2026). An exit leaves it."""
    o = decode(record)
    session, pid, started = word(o.get("session_id")), count(o.get("pid")), number(o.get("started_at"))
    if not session or pid <= 0:
        raise ValueError("a runtime file without session or pid")
    yield Event(Kind.OWNER, session, started, str(pid), number=started, source="runtime file")
    yield from facts(session, started, cwd=o.get("work_dir"), version=o.get("qwen_version"))


def runtime_removed(told: Event, now: float) -> Iterator[Event]:
    """Read the removal of a runtime file: its process turned to another session."""
    if told.kind is Kind.OWNER:
        yield gone(told.session, now, told.key, "left", "runtime file removed")


def read_agent(record: Record) -> Iterator[Event]:
    """Read how a subagent is, subagents/<session>/agent-<id>.meta.json. In the foreground its call tells as much."""
    o = decode(record)
    session, ident = word(o.get("parentSessionId")), word(o.get("agentId"))
    if session and o.get("isBackgrounded") is not False:
        kind = Kind.OPENED if o.get("status") == "running" else Kind.CLOSED
        at = when(o.get("lastUpdatedAt") or o.get("createdAt"))
        yield Event(kind, session, at, f"agent:{ident}", "child", source="subagent")


def read_shell(record: Record) -> Iterator[Event]:
    """Read how a background shell is, background-shells/<session>/shell-<id>.status."""
    o, session = decode(record), PurePath(record.path).parent.name
    running = o.get("status") == "running"
    at = when(o.get("startTime")) if running else when(o.get("endTime") or o.get("updatedAt"))
    kind, ident = Kind.OPENED if running else Kind.CLOSED, word(o.get("id"))
    yield Event(kind, session, at, f"shell:{ident}", "shell", source="background shell")


# -- small readings --------------------------------------------------------------------------------------------------


def _parts(o: dict[str, Any]) -> list[dict[str, Any]]:
    parts = part(o, "message").get("parts")
    return [p for p in parts if isinstance(p, dict)] if isinstance(parts, list) else []


# -- processes and their terminals -----------------------------------------------------------------------------------

SERVICES = frozenset({"auth", "channel", "extensions", "hooks", "mcp", "review", "serve"})
HEADLESS = frozenset({"-p", "--prompt", "-o", "--output-format", "--input-format"})
RESUMING = ("-r", "--resume", "--session-id")
INTERPRETERS = frozenset({"node", "bun"})
PROGRAM = re.compile(r"(^|/)(qwen(\.exe)?|qwen-code/(dist/)?cli(-entry)?\.js)$")
MARKS = {"◐": "busy", "✳": "permission"}


def home(environ: Mapping[str, str], user_home: str) -> str:
    """Return where histories lie. If a variable parts them from the live records, runtime files tell as much."""
    return environ.get("QWEN_RUNTIME_DIR") or environ.get("QWEN_HOME") or f"{user_home}/.qwen"


def is_main(p: Process) -> bool:
    """Tell whether a process is Qwen Code itself: it runs as two or three, one below the other."""
    paths = [a.replace("\\", "/") for a in p.cmdline]
    scripts = [a for a in paths[1:] if not a.startswith("-")] if p.called() in INTERPRETERS else paths
    arguments = scripts[1:2] if scripts and PROGRAM.search(scripts[0]) else None
    return arguments is not None and not SERVICES & set(arguments)


def owns(p: Process, session: Session) -> int:
    """Tell how likely a process runs a session of a version that does not tell: by its arguments, else its folder."""
    if not is_main(p):
        return 0
    if resumes(p, ()) == session.id:
        return 2
    cwd = session.fact("cwd")
    return int(not p.cwd or not cwd or p.cwd == cwd)


def role(p: Process) -> Role | None:
    """Tell a headless run by its command line."""
    headless = any(a in HEADLESS or a.startswith("--prompt=") for a in p.cmdline)
    return Role.MACHINE if headless and is_main(p) else None


def resumes(p: Process, _: Iterable[Session]) -> str:
    """Return the session that a process was started to go on with; empty if it tells none."""
    pairs = zip(p.cmdline, p.cmdline[1:], strict=False)
    return next((value for option, value in pairs if option in RESUMING), "") if is_main(p) else ""


def title(text: str) -> str:
    """Return what the title of its terminal says: a mark stands before the name of the session or the folder."""
    return MARKS.get(text[:1], UNMARKED)


QWEN = Agent(
    name="qwen",
    label="Qwen Code",
    home=home,
    sources=(
        Source("sessions/*.json", Shape.DOCUMENT, read_live, live_removed),
        Source("projects/*/chats/*.runtime.json", Shape.DOCUMENT, read_runtime, runtime_removed, side=True),
        Source("projects/*/chats/*.jsonl", Shape.LINES, read_history),
        Source("projects/*/subagents/*/agent-*.meta.json", Shape.DOCUMENT, read_agent, side=True),
        Source("tmp/*/background-shells/*/shell-*.status", Shape.DOCUMENT, read_shell, side=True),
    ),
    main=is_main,
    owns=owns,
    tool=lambda p: not is_main(p),
    role=role,
    resumes=resumes,
    single=True,
    title=title,
    evidence=(
        "histories", "a record per process (2026 and newer)", "marks in the title of the terminal (0.23 and newer)",
        "processes",
    ),
    blind=(
        "where no title of a terminal is seen, an approval is inferred when a command or an edit has not run for 45 s",
        "without that title: other approvals, Esc before the first word, and whether an error was the last",
        "histories from before November 2025 are not read",
    ),
)
