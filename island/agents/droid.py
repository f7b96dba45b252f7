"""Factory Droid: one history per session, whose turns have keys and ends; its settings stand beside it.

The end of a turn carries no time, so what ends a turn is read from the messages before it wherever they tell. No
file tells which process runs a session, and none that a permission is asked for: a command without a process is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Shape, Source
from island.agents.reading import asks, decode, number, text_of, when, word
from island.model import Event, Kind, Process, Reason, Record, Role, Session

# -- the history, sessions/<folder>/<session>.jsonl --------------------------------------------------------------

#: Known, and never state.
BOOKKEEPING = frozenset({"compaction_state", "session_end", "todo_state"})  # a subagent's end: it has answered

ASKING = {"AskUser": "question", "ExitSpecMode": "plan"}
SHELL, EDITS = frozenset({"Execute"}), frozenset({"ApplyPatch", "Create", "Edit", "MultiEdit", "Write"})
#: Done in milliseconds, and never asked about in the working folder.
LOOKS = frozenset({"Glob", "Grep", "LS", "Read", "TodoWrite"})

#: What is written where a person stopped it, in place of a result or as a message of its own.
STOPPED = (
    "Tool execution cancelled", "Error: Tool execution cancelled by user",
    "Request cancelled by user", "Request interrupted by user", "Error: Request was aborted.",
)

#: How an error begins that is shown; newer versions write the turn's outcome after it. In English alone: what is not
#: known may be a notice on the way.
SHOWN: Mapping[str, Reason] = {
    **dict.fromkeys((
        "Error: ", "BYOK Error: ", "API Validation Error: ", "The AI model timed out.",
        "The upstream AI model provider is currently overloaded.", "Request blocked by provider safety checks.",
    ), Reason.ERROR),
    **dict.fromkeys(("Credit limit reached.", "You have reached the credit limit "), Reason.LIMIT),
}

#: What sends the model on by itself, said to it alone: its answer was cut off at the output limit, or came to nothing.
SENT_ON = ("Your previous response ", "Continue.")

#: Why a turn ended. A spec that is handed off goes on in another session: nothing to announce.
OUTCOMES: Mapping[str, Reason | str] = {
    "completed": "", "model_usage_exhausted": Reason.LIMIT, "model_rate_limited": Reason.LIMIT,
    "model_authentication_failed": Reason.LOGIN,
    **dict.fromkeys(("cancelled", "permission_rejected", "process_exit", "spec_handoff"), Reason.INTERRUPTED),
    **dict.fromkeys((
        "error", "structured_output_missing", "structured_output_invalid", "structured_output_schema_invalid",
        "model_request_rejected", "model_provider_unreachable", "model_provider_unavailable", "prompt_rejected",
        "completion_persistence_failed", "no_approver_available",
    ), Reason.ERROR),
}


def read_history(record: Record) -> Iterator[Event]:
    """Read one line of a session's history. It is written anew as a whole when the title changes."""
    o = decode(record)
    session, kind = PurePath(record.path).stem, word(o.get("type"))
    match kind:
        case "session_start":
            events = _start(o, session)
        case "message" if isinstance(o.get("message"), dict):
            events = _message(o, o["message"], session, when(o.get("timestamp")))
        case "agent_turn_outcome":
            events = _outcome(o, session, record.mtime)
        case _:
            unknown = Event(Kind.UNKNOWN, session, record.mtime, word=kind)
            events = iter(() if kind in BOOKKEEPING else (unknown,))
    return (replace(e, order=record.offset, source=e.source or kind) for e in events)


def _start(o: dict[str, Any], session: str) -> Iterator[Event]:
    """Read who the session is. `parent` is what a fork was copied from, and no session that works for it."""
    parent, title = word(o.get("callingSessionId")), word(o.get("title"))
    child = parent or o.get("decompSessionType") == "worker"
    name = title if o.get("isSessionTitleManuallySet") is True else ""
    facts = {"cwd": word(o.get("cwd")), "title": title, "name": name, "parent": parent,
             "role": Role.CHILD if child else ""}
    yield from (Event(Kind.FACT, session, 0, key, value) for key, value in facts.items() if value)


def _message(o: dict[str, Any], message: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    content, ident = message.get("content"), word(o.get("id"))
    text, results = text_of(content), _blocks(content, "tool_result")
    if message.get("hookEventName"):
        return  # hooks run before a turn, in it and after its end
    if message.get("visibility"):  # for the model alone, or for the eyes alone
        yield from _aside(message["visibility"], text, session, at)
    elif message.get("role") == "assistant":
        yield from _response(message, text, session, at)
    elif results:
        yield from _results(results, session, at)
    elif text and not ident.startswith("context-"):
        yield Event(Kind.PROMPT, session, at, word="user", turn=ident, source="prompt")


def _aside(visibility: object, text: str, session: str, at: float) -> Iterator[Event]:
    """Read what is said to the model alone, or shown alone: how a turn was stopped, failed, or was sent on."""
    failed = next((reason for begins, reason in SHOWN.items() if text.startswith(begins)), "")
    if text.startswith(STOPPED):
        yield Event(Kind.ANSWER, session, at, word=Reason.INTERRUPTED, source="interrupted")
    elif visibility == "user_only" and failed:
        yield Event(Kind.ANSWER, session, at, word=failed, source="error shown")
    elif visibility == "llm_only" and text.startswith(SENT_ON):
        yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, source="sent on")


def _results(results: list[dict[str, Any]], session: str, at: float) -> Iterator[Event]:
    for block in results:
        yield Event(Kind.CLOSED, session, at, word(block.get("tool_use_id")), "tool", source="tool_result")
    if any(b.get("is_error") is True and text_of(b.get("content")).startswith(STOPPED) for b in results):
        yield Event(Kind.ANSWER, session, at, word=Reason.INTERRUPTED, source="cancelled")
    else:
        yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, source="tool_result")


def _response(message: dict[str, Any], text: str, session: str, at: float) -> Iterator[Event]:
    calls = _blocks(message.get("content"), "tool_use")
    names = {word(call.get("name")) for call in calls}
    for call in calls:
        name, ident = word(call.get("name")), word(call.get("id"))
        yield Event(Kind.OPENED, session, at, ident, _span(name, names), text=name, source=f"tool_use {name}")
    if text and not calls:
        said = Reason.QUESTION if asks(text) else Reason.FINISHED
        yield Event(Kind.ANSWER, session, at, word=said, source="final text")
    else:
        yield Event(Kind.PROGRESS, session, at, word=Reason.TOOL if calls else Reason.MODEL)
    if word(message.get("modelId")):
        yield Event(Kind.FACT, session, at, "model", message["modelId"])


def _span(name: str, names: set[str]) -> str:
    """Return what an open call means. All results of one response are written at once, after the slowest call."""
    if name in ASKING:
        return ASKING[name]
    if names <= SHELL | EDITS | LOOKS:
        if name in SHELL:
            return "shell-tool"
        if name in EDITS and not names & SHELL:
            return "instant-tool"
    return "tool"


def _outcome(o: dict[str, Any], session: str, mtime: float) -> Iterator[Event]:
    """Read the end of a turn. It carries the turn's key, and no time."""
    reason, turn = word(o.get("reason")), word(o.get("turnId"))
    if reason not in OUTCOMES:
        yield Event(Kind.UNKNOWN, session, mtime, word=f"outcome {reason}")
    said = OUTCOMES.get(reason, Reason.ERROR)
    yield Event(Kind.END, session, 0, turn, said, turn, source=f"outcome {reason}")


def _blocks(content: object, kind: str) -> list[dict[str, Any]]:
    blocks = content if isinstance(content, list) else []
    return [b for b in blocks if isinstance(b, dict) and b.get("type") == kind]


# -- beside it -----------------------------------------------------------------------------------------------------


def read_settings(record: Record) -> Iterator[Event]:
    """Read a session's settings, <session>.settings.json: they tell a headless run, and what it has used."""
    o, at = decode(record), record.mtime
    session, tags, used = PurePath(record.path).name.removesuffix(".settings.json"), o.get("tags"), o.get("tokenUsage")
    headless = isinstance(tags, list) and {"name": "exec"} in tags
    parts = ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
    tokens = sum(int(number(used.get(p))) for p in parts) if isinstance(used, dict) else 0
    facts = {"role": Role.MACHINE if headless else "", "model": word(o.get("model")),
             "tokens": str(tokens) if tokens else "", "archived": "yes" if o.get("archivedAt") else ""}
    yield from (Event(Kind.FACT, session, at, k, v, source="settings") for k, v in facts.items() if v)


def read_background(record: Record) -> Iterator[Event]:
    """Read which commands were left to run. Entries outlive their processes: these are looked at."""
    entries = decode(record).get("processes")
    for entry in entries if isinstance(entries, list) else ():
        match entry:
            case {"pid": int(pid), "sessionId": str(session)} if pid > 1 and session:
                began = entry.get("startTime")
                at = when(began) if isinstance(began, str) else number(began) / 1000 or record.mtime
                yield Event(Kind.OPENED, session, at, f"background:{pid}@{at:.3f}", "process", text=str(pid),
                            source="background process")


# -- processes -----------------------------------------------------------------------------------------------------

SERVICES = frozenset({"daemon", "mcp", "plugin", "update", "computer", "search"})
SHELLS = frozenset({"bash", "zsh", "fish", "powershell", "pwsh", "cmd"})
RESUMING = ("-s", "--session-id", "-r", "--resume")


def home(environ: Mapping[str, str], user_home: str) -> str:
    """Return where Droid keeps its files: the variable moves the user's home, not the folder in it."""
    return f"{environ.get('FACTORY_HOME_OVERRIDE') or user_home}/.factory"


def is_main(p: Process) -> bool:
    """Tell whether a process is Droid itself, and no service of it nor, up to 0.117, a subagent."""
    return p.called() == "droid" and not SERVICES & set(p.cmdline[1:2]) and "--depth" not in p.cmdline


def role(p: Process) -> Role | None:
    """Tell a headless run by its command line. A client that speaks over a pipe has a person before it."""
    return Role.MACHINE if "exec" in p.cmdline[1:2] and "stream-jsonrpc" not in p.cmdline else None


def owns(p: Process, session: Session) -> int:
    """Tell how likely a process runs a session: by the id that it was started with, else by its folder."""
    if not is_main(p) or session.fact("role") == Role.CHILD:
        return 0
    if _after(p, *RESUMING) == session.id:
        return 2
    if session.fact("role") == Role.MACHINE and role(p) is None:
        return 0
    cwd, folder = session.fact("cwd"), _after(p, "--cwd") or p.cwd
    return int(not folder or not cwd or folder == cwd)


def is_tool(p: Process) -> bool:
    """Tell whether a process is a shell that runs a command. Hooks and servers run under `sh`."""
    return p.name in SHELLS


def resumes(p: Process, _: Iterable[Session]) -> str:
    """Return the session that a process was started to go on with; empty if it tells none."""
    return _after(p, *RESUMING) if is_main(p) else ""


def _after(p: Process, *options: str) -> str:
    return next((value for option, value in zip(p.cmdline, p.cmdline[1:], strict=False) if option in options), "")


DROID = Agent(
    name="droid",
    label="Factory Droid",
    home=home,
    sources=(
        Source("sessions/*/*.jsonl", Shape.LINES, read_history, head=True),
        Source("sessions/*.jsonl", Shape.LINES, read_history, head=True),
        Source("sessions/*/*.settings.json", Shape.DOCUMENT, read_settings, side=True),
        Source("sessions/*.settings.json", Shape.DOCUMENT, read_settings, side=True),
        Source("state/background-processes.json", Shape.DOCUMENT, read_background, side=True),
        Source("background-processes.json", Shape.DOCUMENT, read_background, side=True),  # up to 0.215
    ),
    main=is_main,
    owns=owns,
    tool=is_tool,
    role=role,
    resumes=resumes,
    single=True,
    evidence=("session histories and their settings", "list of background processes", "processes"),
    blind=(
        "an approval is inferred when a command has no process or an edit stays open; others are invisible",
        "retries, a compaction by hand, and that its client is gone",
    ),
)
