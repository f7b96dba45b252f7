"""Claude Code: one transcript per session, one live record per process.

Since about 2.1.120 each process keeps `sessions/<pid>.json` up to date, which tells busy, idle and waiting at
the edge; the transcript tells why, and everything about older versions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Before, Shape, Source, moved_by
from island.agents.reading import asks, count, decode, facts, milliseconds, text_of, when, word
from island.model import Event, Kind, Process, Reason, Record, Role, Session, gone

# -- the live record, sessions/<pid>.json -----------------------------------------------------------------

STATUS = {"busy": "busy", "idle": "idle", "shell": "shell"}

#: What a dialog is that the agent waits in, by its own word; of any other word it is an approval, as the agent itself
#: has it: "permission prompt", "approve TOOL" of older versions, "sandbox request", "worker request", "goal proposal".
#: `dialog open` is the user's own menu: what was true before stays true, so it gives no event.
WAITING = {"input needed": "question", "dialog open": ""}

PERSON_ENTRYPOINTS = ("cli", "claude-vscode", "claude-desktop", "local-agent", "remote")


def read_live(record: Record) -> Iterator[Event]:
    """Read the live record of one process. It is rewritten in place: a cut one is a ValueError."""
    o = decode(record)
    session, pid = word(o.get("sessionId")), count(o.get("pid"))
    if not session or pid <= 0:
        raise ValueError("a live record without session or pid")
    started = milliseconds(o.get("startedAt"))
    at = max(started, milliseconds(o.get("updatedAt")), milliseconds(o.get("statusUpdatedAt")))
    at = at or record.mtime
    guard = f"{word(o.get('procStart'))} {word(o.get('pidDomain'))}"
    yield Event(Kind.OWNER, session, at, str(pid), text=guard, number=started or at, source="live record")
    yield gone(f"start:{pid}", at, str(pid), "left", "live record")
    yield from facts(session, at, cwd=o.get("cwd"), role=_role(o.get("entrypoint")), version=o.get("version"))
    if o.get("nameSource") == "user":
        yield from facts(session, at, name=o.get("name"))
    yield from _status(o, session, str(pid), at)


def _status(o: dict[str, Any], session: str, pid: str, at: float) -> Iterator[Event]:
    status = word(o.get("status"))
    said = WAITING.get(word(o.get("waitingFor")), "permission") if status == "waiting" else STATUS.get(status)
    changed = milliseconds(o.get("statusUpdatedAt")) or at
    if said:
        turn, source = f"{pid}@{changed:.3f}", f"live record: {status}"
        yield Event(Kind.LIVE, session, changed, f"{pid}/{said}", said, turn, pid, source=source)
    elif said is None and status:
        yield Event(Kind.UNKNOWN, session, at, word=f"status {status}")


def live_removed(told: Event, now: float) -> Iterator[Event]:
    """Read the removal of a live record: the process ended in order."""
    if told.kind is Kind.OWNER:
        yield gone(told.session, now, told.key, "closed", "live record removed")


# -- the key of a starting process, sessions/<pid>.<hex>.key: its presence alone, it is a secret -------------


def read_key(record: Record) -> Iterator[Event]:
    """Read that a process has begun to start: without a live record soon, it asks for trust in the folder."""
    pid = PurePath(record.path).name.split(".")[0]
    if pid.isdecimal():
        session = f"start:{pid}"
        yield Event(Kind.OWNER, session, record.mtime, pid, number=record.mtime, source="key")
        yield Event(Kind.OPENED, session, record.mtime, "trust", "trust", source="key without live record")


def key_removed(told: Event, now: float) -> Iterator[Event]:
    """Read the removal of a key: the process ended in order."""
    return live_removed(told, now)


# -- the transcript, projects/<slug>/<session>.jsonl ---------------------------------------------------------

SHELL_TOOLS = frozenset({"Bash"})
INSTANT_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
TOOL_WORDS = {
    **dict.fromkeys(SHELL_TOOLS, "shell-tool"),
    **dict.fromkeys(INSTANT_TOOLS, "instant-tool"),
    "AskUserQuestion": "question",
    "ExitPlanMode": "plan",
}
#: Reasons for a response to stop after which the agent goes on by itself; older versions write None at first.
UNFINISHED = (None, "tool_use", "max_tokens", "pause_turn", "refusal")
STOPPING_TOOLS = ("KillShell", "KillBash", "TaskStop")

ERRORS = {
    "rate_limit": Reason.LIMIT,
    "billing_error": Reason.LIMIT,
    "authentication_failed": Reason.LOGIN,
    "oauth_org_not_allowed": Reason.LOGIN,
}

#: Known, and never state. Most carry no time.
BOOKKEEPING = frozenset({
    "agent-name", "api-request", "api-request-blob", "api-request-shape", "atis-latch", "attachment",
    "bridge-session", "cost-state", "file-history-delta", "file-history-snapshot", "last-prompt", "mode",
    "permission-mode", "pr-link", "progress", "queue-operation", "tag", "tools-used", "worktree-state",
})
SYSTEM_BOOKKEEPING = frozenset({
    "away_summary", "informational", "local_command", "stop_hook_summary", "microcompact_boundary",
    "bridge_status", "memory_saved", "agents_killed", "scheduled_task_fire",
})

INTERRUPTED = "[Request interrupted by user"
COMMAND = re.compile(r"\s*<(command-name|local-command-\w+|bash-input)>")
SHELL_OUTPUT = re.compile(r"\s*<bash-std(out|err)>")
NOTIFIED = re.compile(r"<task-id>([^<]+)</task-id>")


def read_transcript(record: Record) -> Iterator[Event]:
    """Read one line of a session's transcript."""
    o = decode(record)
    session = word(o.get("sessionId")) or PurePath(record.path).stem  # 1.0 resumes into a file of another name
    kind = word(o.get("type"))
    if o.get("isSidechain") is True:
        return iter(())  # a subagent's line: it never says anything about the main turn
    reader = MESSAGES.get(kind)
    if reader is None:
        return _side_line(kind, o, session, record)
    return _placed(reader(o, session, when(o.get("timestamp"))), record, kind)


def _placed(events: Iterable[Event], record: Record, kind: str) -> Iterator[Event]:
    for e in events:
        source = e.source or kind
        yield Event(e.kind, e.session, e.at, e.key, e.word, e.turn, e.text, e.number, record.offset, source)


def _side_line(kind: str, o: dict[str, Any], session: str, record: Record) -> Iterator[Event]:
    match kind:
        case "ai-title" | "summary":
            title = word(o.get("aiTitle")) or word(o.get("summary"))
            yield Event(Kind.FACT, session, 0, "title", title, order=record.offset, source=kind)
        case "custom-title":
            yield Event(Kind.FACT, session, 0, "name", word(o.get("customTitle")), order=record.offset, source=kind)
        case "api-request" if o.get("querySource") == "repl_main_thread":
            at = when(o.get("timestamp"))
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, order=record.offset, source=kind)
        case _:
            if kind not in BOOKKEEPING:
                yield Event(Kind.UNKNOWN, session, record.mtime, word=kind)


def _user(o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    content = (o.get("message") or {}).get("content") if isinstance(o.get("message"), dict) else None
    text = text_of(content)
    if o.get("isCompactSummary") or o.get("isVisibleInTranscriptOnly"):
        return
    if o.get("isMeta"):
        blocked = text.startswith("Stop hook feedback")
        yield from [Event(Kind.PROGRESS, session, at, word=Reason.MODEL, source="stop hook feedback")] * blocked
        return
    results = _blocks(content, "tool_result")
    if results:
        yield from _tool_results(o, results, session, at)
    elif text.lstrip().startswith(INTERRUPTED):
        yield from _stopped(session, at, Reason.INTERRUPTED, "interrupted")
    elif COMMAND.match(text) or (SHELL_OUTPUT.match(text) and not o.get("turnOrigin")):
        yield from facts(session, at, cwd=o.get("cwd"))  # no turn, but a session that is there
    else:
        yield from _prompt(o, text, session, at)


def _prompt(o: dict[str, Any], text: str, session: str, at: float) -> Iterator[Event]:
    turn = word(o.get("promptId")) or word(o.get("uuid"))
    notified = text.lstrip().startswith("<task-notification>")
    yield Event(Kind.PROMPT, session, at, word="task" if notified else "user", turn=turn)
    ended = NOTIFIED.findall(text) if notified and "<status>" in text else ()  # a monitor's event has no status
    yield from (Event(Kind.CLOSED, session, at, f"task:{task}", "shell") for task in ended)
    sdk = "sdk" in (o.get("promptSource"), o.get("turnOrigin"))
    yield from facts(session, at, role=Role.MACHINE if sdk else _role(o.get("entrypoint")),
                      cwd=o.get("cwd"), version=o.get("version"))


def _tool_results(o: dict[str, Any], results: list[dict[str, Any]], session: str, at: float) -> Iterator[Event]:
    for block in results:
        yield Event(Kind.CLOSED, session, at, word(block.get("tool_use_id")), "tool", source="tool_result")
    yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, source="tool_result")
    result = o.get("toolUseResult")
    if not isinstance(result, dict):
        return
    monitor = word(result.get("taskId")) if "timeoutMs" in result else ""  # a task of a to-do list has none
    shell = word(result.get("backgroundTaskId")) or monitor
    if shell:
        yield Event(Kind.OPENED, session, at, f"task:{shell}", "shell", source="tool_result")
    if result.get("isAsync") and word(result.get("agentId")):
        yield Event(Kind.OPENED, session, at, f"task:{result['agentId']}", "child", source="tool_result")


def _assistant(o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    match o:
        case {"isApiErrorMessage": True}:
            reason = ERRORS.get(word(o.get("error")), Reason.ERROR)
            yield from _stopped(session, at, reason, "API error")
        case {"message": {"model": "<synthetic>"}} | {"isAbortedMidStream": True}:
            return  # repair text on resume; a cut text, whose interrupt line follows
        case {"message": dict(message)} if isinstance(message.get("content"), list):
            yield from _response(message, session, at)
        case _:
            return


def _response(message: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    content = message["content"]
    calls = _blocks(content, "tool_use")
    for call in calls:
        yield from _call(call, session, at)
    text = text_of(content)
    if message.get("stop_reason") not in UNFINISHED and text and not calls:
        said = Reason.QUESTION if asks(text) else Reason.FINISHED
        yield Event(Kind.ANSWER, session, at, word=said, source="final text")
    else:
        yield Event(Kind.PROGRESS, session, at, word=Reason.TOOL if calls else Reason.MODEL)
    yield from facts(session, at, model=message.get("model"), tokens=_tokens(message.get("usage")))


def _call(call: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    name, ident = word(call.get("name")), word(call.get("id"))
    yield Event(Kind.OPENED, session, at, ident, TOOL_WORDS.get(name, "tool"), text=name, source=f"tool_use {name}")
    arguments = call.get("input")
    if name in STOPPING_TOOLS and isinstance(arguments, dict):
        task = word(arguments.get("shell_id")) or word(arguments.get("task_id"))
        yield Event(Kind.CLOSED, session, at, f"task:{task}", "shell", source=name)


def _system(o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    match word(o.get("subtype")):
        case "turn_duration":
            left = [count(o[k]) for k in ("pendingBackgroundAgentCount", "pendingWorkflowCount") if k in o]
            yield Event(Kind.END, session, at, number=sum(left) if left else -1, source="turn_duration")
        case "compact_boundary" if _compacted_by_hand(o):
            yield Event(Kind.END, session, at, word=Reason.FINISHED, turn=word(o.get("uuid")), source="compaction")
        case "compact_boundary":
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, source="compaction")
        case "api_error":
            yield Event(Kind.PROGRESS, session, at, word=Reason.RETRYING, source="API error, retried")
        case "model_refusal_no_fallback":
            yield from _stopped(session, at, Reason.ERROR, "refusal")
        case subtype:
            if subtype not in SYSTEM_BOOKKEEPING:
                yield Event(Kind.UNKNOWN, session, at, word=f"system {subtype}".strip())


def _stopped(session: str, at: float, reason: Reason, source: str) -> Iterator[Event]:
    """Return that a turn stopped short. It is the turn's last word too: some versions measure such a turn as well."""
    yield Event(Kind.END, session, at, word=reason, source=source)
    yield Event(Kind.ANSWER, session, at, word=reason, source=source)


MESSAGES = {"user": _user, "assistant": _assistant, "system": _system}


# -- small readings --------------------------------------------------------------------------------------------


def _compacted_by_hand(o: dict[str, Any]) -> bool:
    about = o.get("compactMetadata")
    return isinstance(about, dict) and about.get("trigger") == "manual"


def _blocks(content: object, kind: str) -> list[dict[str, Any]]:
    blocks = content if isinstance(content, list) else []
    return [b for b in blocks if isinstance(b, dict) and b.get("type") == kind]


def _role(entrypoint: object) -> str:
    """Return whose session it is. Versions that write no entrypoint do not tell."""
    if not isinstance(entrypoint, str) or not entrypoint:
        return ""
    return Role.PERSON if entrypoint.startswith(PERSON_ENTRYPOINTS) else Role.MACHINE


def _tokens(usage: object) -> str:
    if not isinstance(usage, dict):
        return ""
    parts = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return str(sum(count(usage.get(p)) for p in parts))


# -- processes ---------------------------------------------------------------------------------------------------

SHELLS = frozenset({"bash", "zsh", "sh", "dash", "fish"})
SUBCOMMANDS = ("daemon", "bg-pty-host", "bg-spare", "agents", "stop", "logs", "attach", "mcp", "update", "doctor")


#: What npm's starter on Windows has Node.js run; elsewhere it is found by the name of a link to it.
SCRIPT = "/@anthropic-ai/claude-code/cli.js"


def is_main(p: Process) -> bool:
    """Tell whether a process is Claude Code itself, by the name of its program."""
    script = p.cmdline[1].replace("\\", "/") if len(p.cmdline) > 1 else ""
    is_script = "claude" in (p.called(), p.called(1)) or script.endswith(SCRIPT)
    named = p.name == "claude" or (p.name == "node" and is_script)
    return named and not set(p.cmdline[1:3]) & set(SUBCOMMANDS)


def owns(p: Process, session: Session) -> int:
    """Tell whether a process may run a session of a version without live records: by its folder."""
    cwd = session.fact("cwd")
    return int(is_main(p) and (not p.cwd or not cwd or p.cwd == cwd))


def is_tool(p: Process) -> bool:
    """Tell whether a process is a shell that Claude Code runs for a tool, not for a hook or itself."""
    return p.name in SHELLS and any("shell-snapshots" in a or a.startswith("eval ") for a in p.cmdline)


def role(p: Process) -> Role | None:
    """Tell a headless run by its command line: older versions say it nowhere else."""
    return Role.MACHINE if {"-p", "--print"} & set(p.cmdline) else None


CLAUDE = Agent(
    name="claude",
    label="Claude Code",
    home=moved_by("CLAUDE_CONFIG_DIR", ".claude"),
    sources=(
        Source("sessions/*.json", Shape.DOCUMENT, read_live, live_removed),
        Source("sessions/*.key", Shape.PRESENCE, read_key, key_removed),
        Source("projects/*/*.jsonl", Shape.LINES, read_transcript),
    ),
    main=is_main,
    owns=owns,
    tool=is_tool,
    role=role,
    single=True,
    evidence=("live record per process (2.1.120 and newer)", "transcript", "processes"),
    blind=(
        Before("2.1.120", "approvals are inferred, a compaction and Esc before the first token are invisible"),
        Before("2.1.235", "the question whether to trust a folder is invisible"),
    ),
)
