"""OpenAI Codex CLI: one append-only rollout per thread, whose turns have keys, starts and ends.

Newer versions run all threads in one shared server, and the terminal program is only a window on it. Approvals
are never recorded: an open call that asks for escalation and has no process is one. Very old rollouts (no
turn keys) are read into registers of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

import orjson

from island.agents.base import Agent, Before, Shape, Source, moved_by
from island.agents.reading import asks, decode, text_of, when, word
from island.model import AFRESH, KEYLESS, Event, Kind, Process, Reason, Record, Role, Session

# -- rollouts ------------------------------------------------------------------------------------------------

#: Known, and never state: settings, prompts of the harness, copies of what another record says.
BOOKKEEPING = frozenset({
    "compacted", "ghost_snapshot", "inter_agent_communication", "inter_agent_communication_metadata",
    "retained_context", "thread_goal_updated", "world_state",
})
EVENT_BOOKKEEPING = frozenset({
    "agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break", "context_compacted",
    "entered_review_mode", "exited_review_mode", "exec_command_end", "guardian_assessment", "item_started",
    "mcp_tool_call_end", "patch_apply_end", "plan_update", "raw_response_item", "thread_goal_updated",
    "thread_name_updated", "thread_rolled_back", "thread_settings_applied", "undo_completed",
    "view_image_tool_call", "web_search_end", "collab_agent_spawn_end", "collab_waiting_end",
    "collab_agent_interaction_end", "collab_close_end", "collab_resume_end",
})
ITEM_BOOKKEEPING = frozenset({"agent_message", "compaction", "context_compaction", "ghost_snapshot", "other"})

SHELL_CALLS = frozenset({"exec_command", "shell", "shell_command", "local_shell", "container.exec"})
ASKING_CALLS = {"request_user_input": "question", "request_permissions": "permission"}
ERRORS = {"usage_limit_exceeded": Reason.LIMIT, "unauthorized": Reason.LOGIN}
#: Where a turn begins and ends.
EDGES = ("task_started", "turn_started", "task_complete", "turn_complete", "turn_aborted")

#: Of the keys of threads and turns, which are UUIDs: their length, where the version stands, and the time of version 7.
UUID_LENGTH, VERSION, TIME = 36, slice(14, 15), 13


def read_rollout(record: Record) -> Iterator[Event]:
    """Read one line of a thread's rollout."""
    o = decode(record)
    thread = PurePath(record.path).stem[-UUID_LENGTH:]
    kind, payload = word(o.get("type")), o.get("payload")
    reader = RECORDS.get(kind)
    if reader is None or not isinstance(payload, dict):
        return iter(() if kind in BOOKKEEPING else (Event(Kind.UNKNOWN, thread, record.mtime, word=kind),))
    return _placed(reader(payload, thread, when(o.get("timestamp")), record), record, kind)


def _placed(events: Iterator[Event], record: Record, kind: str) -> Iterator[Event]:
    """Yield events with their place and source; nothing goes on in a turn that a fork copied."""
    for e in (e for e in events if e.kind is not Kind.PROGRESS or not _is_copied(e.turn, e.session)):
        source = e.source or kind
        yield Event(e.kind, e.session, e.at, e.key, e.word, e.turn, e.text, e.number, record.offset, source)


def _meta(p: dict[str, Any], thread: str, at: float, record: Record) -> Iterator[Event]:
    """Read who the thread is. Children and forks carry a copy of their parent's: only the first line counts."""
    if record.offset:
        return
    source = p.get("source")
    child = isinstance(source, dict) or p.get("thread_source") == "subagent"
    parent = word(p.get("session_id")) or word(p.get("parent_thread_id"))
    facts = {
        "cwd": p.get("cwd"), "version": p.get("cli_version"), "surface": _surface(p, source),
        "role": Role.CHILD if child else _role(p, source), "parent": parent if child else "",
    }
    yield from (Event(Kind.FACT, thread, at, k, word(v)) for k, v in facts.items() if v)


def _surface(p: dict[str, Any], source: object) -> str:
    """Return what the user sees it in, as far as it tells which process runs it: see `owns`."""
    if isinstance(source, dict):
        return ""
    originator = word(p.get("originator"))
    if originator.startswith(("codex-tui", "codex_cli")):
        return "terminal" if source == "cli" else "shared"
    return "exec" if originator == "codex_exec" or source == "exec" else "editor"


def _role(p: dict[str, Any], source: object) -> Role:
    machine = source in ("exec", "mcp") or word(p.get("originator")) in ("codex_exec", "codex_sdk_ts", "codex_sdk_py")
    return Role.MACHINE if machine else Role.PERSON


def _event(p: dict[str, Any], thread: str, at: float, record: Record) -> Iterator[Event]:
    turn, kind = word(p.get("turn_id")), word(p.get("type"))
    match kind:
        case _ if kind in EDGES and _is_copied(turn, thread):
            yield Event(Kind.END, thread, at, AFRESH, source=f"copied {kind}")
        case "task_started" | "turn_started":
            yield Event(Kind.PROMPT, thread, at, word=_began_by(p), turn=turn, source=kind)
        case "task_complete" | "turn_complete":
            yield Event(Kind.END, thread, at, word=_hand_back(p), turn=turn, source=kind)
        case "turn_aborted":
            yield Event(Kind.END, thread, at, word=Reason.INTERRUPTED, turn=turn, source=kind)
        case "item_completed":
            yield from _item(p, turn, thread, at)
        case "token_count":
            yield from _tokens(p, thread, at)
        case _:
            yield from _older_event(kind, p, thread, at, record)


def _is_copied(turn: str, thread: str) -> bool:
    """Tell whether a turn is older than its thread: a fork copied it. Such keys begin with their time."""
    return turn[VERSION] == thread[VERSION] == "7" and turn[:TIME] < thread[:TIME]


def _older_event(kind: str, p: dict[str, Any], thread: str, at: float, record: Record) -> Iterator[Event]:
    """Read what older versions wrote, some of it beside the records of newer ones."""
    match kind:
        case "error":
            yield Event(Kind.ANSWER, thread, at, word=_error(p.get("codex_error_info")), source=kind)
        case "user_message":
            yield Event(Kind.PROMPT, thread, at, KEYLESS, "user", source=kind)
        case "agent_message":
            yield Event(Kind.OPENED, thread, at, KEYLESS, "unrecorded", source=kind)
        case "stream_error":
            yield Event(Kind.PROGRESS, thread, at, word=Reason.RETRYING, turn=word(p.get("turn_id")), source=kind)
        case _:
            if kind not in EVENT_BOOKKEEPING:
                yield Event(Kind.UNKNOWN, thread, record.mtime, word=f"event_msg {kind}")


def _began_by(p: dict[str, Any]) -> str:
    about = p.get("turn_attribution")
    trigger = about.get("turn_trigger") if isinstance(about, dict) else None
    return "agent" if trigger in ("goal", "queue") else "user"


def _hand_back(p: dict[str, Any]) -> str:
    """Return a finished turn's reason; empty where the record itself says none (a plan, a compaction)."""
    if isinstance(p.get("error"), dict):
        return _error(p["error"].get("codex_error_info"))
    return Reason.QUESTION if asks(word(p.get("last_agent_message"))) else ""


def _error(info: object) -> Reason:
    return ERRORS.get(info, Reason.ERROR) if isinstance(info, str) else Reason.ERROR


def _item(p: dict[str, Any], turn: str, thread: str, at: float) -> Iterator[Event]:
    item = p.get("item")
    kind = word(item.get("type")) if isinstance(item, dict) else ""
    if kind == "Plan":
        yield Event(Kind.PLANNED, thread, at, turn, source="Plan")
    yield Event(Kind.PROGRESS, thread, at, word=Reason.MODEL, turn=turn, source=f"item_completed {kind}".strip())


def _tokens(p: dict[str, Any], thread: str, at: float) -> Iterator[Event]:
    match p:
        case {"info": {"last_token_usage": {"total_tokens": int(total)}, **more}} if not isinstance(total, bool):
            yield Event(Kind.FACT, thread, at, "tokens", str(total))
            if isinstance(window := more.get("model_context_window"), int):
                yield Event(Kind.FACT, thread, at, "window", str(window))


def _response(p: dict[str, Any], thread: str, at: float, record: Record) -> Iterator[Event]:
    passed = p.get("internal_chat_message_metadata_passthrough")
    turn = word(passed.get("turn_id")) if isinstance(passed, dict) else ""
    kind = word(p.get("type"))
    match kind:
        case "function_call" | "custom_tool_call" | "local_shell_call":
            yield _call(p, turn, thread, at)
            yield Event(Kind.PROGRESS, thread, at, word=Reason.TOOL, turn=turn, source=kind)
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            yield Event(Kind.CLOSED, thread, at, word(p.get("call_id")), "tool", turn, source=kind)
            yield Event(Kind.PROGRESS, thread, at, word=Reason.MODEL, turn=turn, source=kind)
        case "message" if p.get("role") == "assistant":
            said = Reason.QUESTION if asks(text_of(p.get("content"))) else Reason.FINISHED
            yield Event(Kind.CLOSED, thread, at, KEYLESS, "unrecorded", source="assistant message")
            yield Event(Kind.ANSWER, thread, at, KEYLESS, said, source="assistant message")
        case "message" | "reasoning" | "web_search_call" | "image_generation_call" | "tool_search_call":
            return
        case _:
            if kind not in ITEM_BOOKKEEPING and not kind.endswith(("_output", "_call")):
                yield Event(Kind.UNKNOWN, thread, record.mtime, word=f"response_item {kind}")


def _call(p: dict[str, Any], turn: str, thread: str, at: float) -> Event:
    name, arguments = word(p.get("name")), _arguments(p)
    escalates = name in SHELL_CALLS and _escalates(arguments)
    meaning = "escalation" if escalates else ASKING_CALLS.get(name, "tool")
    return Event(Kind.OPENED, thread, at, word(p.get("call_id")), meaning, turn,
                 _command(arguments), source=f"function_call {name}")


def _arguments(p: dict[str, Any]) -> dict[str, Any]:
    try:
        value = orjson.loads(word(p.get("arguments")))
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _escalates(arguments: dict[str, Any]) -> bool:
    wanted = arguments.get("sandbox_permissions")
    return wanted == "require_escalated" or arguments.get("with_escalated_permissions") is True


def _command(arguments: dict[str, Any]) -> str:
    """Return the command of a call, to be known again in a process's command line."""
    command = arguments.get("cmd") or arguments.get("command")
    if isinstance(command, list) and command:
        command = command[-1]
    return word(command)


def _turn_facts(p: dict[str, Any], thread: str, at: float, _: Record) -> Iterator[Event]:
    facts = {"model": word(p.get("model")), "cwd": word(p.get("cwd"))}
    yield from (Event(Kind.FACT, thread, at, key, value) for key, value in facts.items() if value)
    turn = word(p.get("turn_id"))
    key = "" if turn else KEYLESS  # written once more for every model call, and for every retry
    yield Event(Kind.PROGRESS, thread, at, key, Reason.MODEL, turn, source="turn_context")


def _usage(p: dict[str, Any], thread: str, at: float, _: Record) -> Iterator[Event]:
    yield Event(Kind.PROGRESS, thread, at, word=Reason.MODEL, turn=word(p.get("turn_id")), source="usage")


RECORDS = {
    "session_meta": _meta, "event_msg": _event, "response_item": _response, "turn_context": _turn_facts,
    "token_usage_record": _usage,
}

# -- side files ------------------------------------------------------------------------------------------------


def read_index(record: Record) -> Iterator[Event]:
    """Read one line of the index of titles."""
    o = decode(record)
    if word(o.get("id")):
        yield Event(Kind.FACT, o["id"], when(o.get("updated_at")), "title", word(o.get("thread_name")),
                    order=record.offset, source="session index")


def read_window(record: Record) -> Iterator[Event]:
    """Read that a terminal has opened a thread: an empty file named after it is made or touched."""
    thread = PurePath(record.path).name
    if len(thread) == UUID_LENGTH:
        yield Event(Kind.ATTACHED, thread, record.mtime, source="terminal opened it")


SHELLS = frozenset({"bash", "zsh", "sh"})

# -- processes ---------------------------------------------------------------------------------------------------


def is_main(p: Process) -> bool:
    """Tell whether a process is Codex itself: server, terminal program or headless run, not its launcher."""
    if p.called() != "codex":
        return False
    return "pid-update-loop" not in p.cmdline


def is_window(p: Process) -> bool:
    """Tell whether a process is the terminal program."""
    return is_main(p) and not {"app-server", "exec", "mcp-server", "daemon"} & set(p.cmdline)


def is_tool(p: Process) -> bool:
    """Tell whether a process is a shell that runs a command, not one that takes stock of the shell itself."""
    return p.name in SHELLS and "-lc" in p.cmdline and not any("# Snapshot file" in a for a in p.cmdline)


def owns(p: Process, session: Session) -> int:
    """Tell how likely a process runs a thread, by the kind of program that its surface runs in."""
    if not is_main(p):
        return 0
    arguments, surface = set(p.cmdline), session.fact("surface")
    server = "--managed-daemon" in arguments
    likely = {
        "exec": "exec" in arguments and _same_folder(p, session),
        "editor": "app-server" in arguments and not server,
        "terminal": is_window(p) and (_same_folder(p, session) or session.id in p.cmdline),
        "shared": server,
    }
    if surface in likely:
        return int(likely[surface])
    return 2 if server else int(is_window(p))  # a child does not tell


def role(p: Process) -> Role | None:
    """Tell a headless run by its command line: an ephemeral one leaves no file at all."""
    return Role.MACHINE if "exec" in p.cmdline[1:2] else None


def resumes(p: Process, sessions: Iterable[Session]) -> str:
    """Return the thread that a terminal program was started to go on with; empty if it tells none."""
    if not is_window(p) or "resume" not in p.cmdline:
        return ""
    if "--last" in p.cmdline:
        here = [s for s in sessions if s.fact("role") == Role.PERSON and _same_folder(p, s)]
        return max(here, key=_last_at).id if here else ""
    return next((a for a in p.cmdline if len(a) == UUID_LENGTH and a.count("-") == 4), "")


def _last_at(session: Session) -> float:
    return max(e.at for e in session.events())


def _same_folder(p: Process, session: Session) -> bool:
    cwd = session.fact("cwd")
    return not p.cwd or not cwd or p.cwd == cwd


CODEX = Agent(
    name="codex",
    label="Codex CLI",
    home=moved_by("CODEX_HOME", ".codex"),
    sources=(
        Source("sessions/*/*/*/rollout-*.jsonl", Shape.LINES, read_rollout, head=True),
        Source("session_index.jsonl", Shape.LINES, read_index, side=True),
        Source("tui-thread-reference-capabilities/*", Shape.PRESENCE, read_window),
    ),
    main=is_main,
    owns=owns,
    window=is_window,
    tool=is_tool,
    role=role,
    resumes=resumes,
    call_variable="CODEX_TOOL_CALL_ID",
    evidence=("rollouts", "processes and their environment", "opened-by-a-terminal marks"),
    blind=(
        "an approval is inferred when a command has no process; approvals of other tools are invisible",
        Before("0.101", "errors are invisible"),
    ),
)
