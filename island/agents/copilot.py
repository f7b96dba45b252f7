"""GitHub Copilot CLI: one event log per session, a lock per process that has it open, and one table of what works.

The log tells everything about a turn but for its retries; a model's round is no turn, and what looks like the last
answer may go on. The table `open-sessions-state.json` (after 1.0.80) tells whether a session works at all: so it
tells background work, but not what for, nor that a dialog waits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Before, Shape, Source, moved_by
from island.agents.reading import amount, asks, decode, facts, part, when, word
from island.model import ANY, KEYLESS, Event, Kind, Process, Reason, Record, Role, Session, gone

# -- the event log, session-state/<session>/events.jsonl -------------------------------------------------------

#: Known, and never state: settings, copies of what another record says, and what versions to come may persist.
BOOKKEEPING = frozenset({
    "assistant.intent", "assistant.reasoning", "assistant.turn_end", "assistant.usage", "human_response.recorded",
    "session.custom_agents_updated", "session.handoff", "session.import_legacy", "session.info",
    "session.mode_changed", "session.mode_notice_delivered", "session.permissions_changed", "session.plan_changed",
    "session.skills_loaded", "session.snapshot_rewind", "session.tools_updated", "session.truncation",
    "session.usage_info", "session.warning", "session.workspace_file_changed", "skill.invoked", "subagent.configured",
    "subagent.deselected", "subagent.selected", "system.message", "tool.user_requested",
})
BOOKKEEPING_KINDS = ("hook.", "model.")  # `hook.start` of a prompt is read before

ASKING_TOOLS = {"ask_user": "question", "exit_plan_mode": "plan"}
ERRORS = {"authentication": Reason.LOGIN, "authorization": Reason.LOGIN, "quota": Reason.LIMIT,
          "rate_limit": Reason.LIMIT}

#: What a shell tool tells the model last: which shell it was, and in these words that it goes on.
SHELL = re.compile(r"<[^<>]*\b(?:shellId|id): ([\w.-]*\w)[^<>]*>\s*\Z")
GOES_ON = re.compile(r"<command started in |is (?:still |already )?running")


def read_log(record: Record) -> Iterator[Event]:
    """Read one line of a session's log. Progress carries no turn: a turn that is over goes on under its old key."""
    o = decode(record)
    session, kind, d = PurePath(record.path).parent.name, word(o.get("type")), o.get("data")
    at, events = when(o.get("timestamp")), _subagent if word(o.get("agentId")) else _main
    for e in events(kind, d if isinstance(d, dict) else {}, session, at):
        known = e.kind is not Kind.UNKNOWN
        yield Event(e.kind, session, e.at if known else record.mtime, e.key, e.word, e.turn, e.text, e.number,
                    record.offset, kind)


def _main(kind: str, d: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    match kind:
        case "user.message":
            began = "agent" if d.get("source") == "autopilot" else "user"
            yield Event(Kind.PROMPT, session, at, word=began, turn=word(d.get("interactionId")))
        case "hook.start" if _prompted(d.get("hookType"), d.get("input"), session):
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL)  # the prompt itself follows when it has run
        case "assistant.turn_start":
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL)
        case "assistant.message":
            yield from _message(d, session, at)
        case "tool.execution_start":
            yield Event(Kind.PROGRESS, session, at, word=Reason.TOOL)
        case "tool.execution_complete":
            yield from _called(d, session, at)
        case "permission.requested":
            yield Event(Kind.OPENED, session, at, word(d.get("requestId")), "permission")
        case "permission.completed":
            yield Event(Kind.CLOSED, session, at, word(d.get("requestId")), "permission")
        case _:
            yield from _end(kind, d, session, at)


def _prompted(hook: object, about: object, session: str) -> bool:
    """Tell whether a hook runs for a prompt, not for a subagent's: the one of the start runs at the first prompt."""
    if not isinstance(about, dict) or about.get("sessionId") != session or about.get("agentId"):
        return False
    return hook == "userPromptSubmitted" or (hook == "sessionStart" and bool(about.get("initialPrompt")))


def _message(d: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    """Read one answer of the model. Each final one has a key of its own: background work may wake the agent later."""
    calls = d.get("toolRequests")
    yield from facts(session, at, model=d.get("model"))
    if isinstance(calls, list) and calls:
        yield from (_call(c, session, at) for c in calls if isinstance(c, dict))
        yield Event(Kind.PROGRESS, session, at, word=Reason.TOOL)
    else:
        said = Reason.QUESTION if asks(word(d.get("content"))) else Reason.FINISHED
        yield Event(Kind.ANSWER, session, at, word=said, turn=word(d.get("messageId")))


def _call(call: dict[str, Any], session: str, at: float) -> Event:
    arguments = call.get("arguments")
    command = word(arguments.get("command")) if isinstance(arguments, dict) else ""
    meaning = ASKING_TOOLS.get(word(call.get("name")), "tool")
    return Event(Kind.OPENED, session, at, word(call.get("toolCallId")), meaning, text=command)


def _called(d: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    """Read that a call has returned: up to 1.0.80 it alone tells what goes on in the background."""
    told = part(part(d, "toolTelemetry"), "properties")
    yield Event(Kind.CLOSED, session, at, word(d.get("toolCallId")), "tool")
    if told.get("execution_mode") == "background":
        yield Event(Kind.OPENED, session, at, _task(d), "child")
    if shell := SHELL.search(word(part(d, "result").get("content"))):
        if GOES_ON.search(shell[0]):
            yield Event(Kind.OPENED, session, at, f"shell:{shell[1]}", "shell")
        elif told.get("executionMode") != "sync":  # that one never went to the background
            yield Event(Kind.CLOSED, session, at, f"shell:{shell[1]}", "shell")
    if d.get("interactionId"):  # the user's own `!command` has none
        yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL)


def _end(kind: str, d: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    """Read how a turn ends other than with an answer. Nothing says that an error is the end: it may go on."""
    match kind:
        case "session.error":
            reason = ERRORS.get(word(d.get("errorType")), Reason.ERROR)
            yield Event(Kind.ANSWER, session, at, word=reason, turn=f"{session}@{at:.3f}")
        case "session.task_complete":
            yield Event(Kind.ANSWER, session, at, word=Reason.FINISHED, turn=f"{session}@{at:.3f}")
        case "abort" | "session.resume":  # what was open when a session was left is open no more
            yield Event(Kind.END, session, at, word=Reason.INTERRUPTED)
            yield from _about_session(d, session, at)
        case "session.usage_checkpoint" if _took_all_back(d.get("promptCacheBreakState")):
            yield Event(Kind.END, session, at, word=Reason.INTERRUPTED)
        case "session.info" if d.get("infoType") == "rewind":  # the turns since are in the log no more
            yield Event(Kind.END, session, at, word=Reason.INTERRUPTED)
        case "session.compaction_start" if d.get("trigger") == "manual":
            yield Event(Kind.PROGRESS, session, at, word=Reason.COMPACTING)
        case "session.compaction_complete" if d.get("trigger") == "manual":
            reason = Reason.FINISHED if d.get("success") is True else Reason.INTERRUPTED
            yield Event(Kind.END, session, at, word=reason, turn=word(d.get("compactionAttemptId")))
        case _:
            yield from _bookkeeping(kind, d, session, at)


def _took_all_back(state: object) -> bool:
    """Tell whether the history was rewritten before any model was ever active: its only turn was taken back."""
    rows = state if isinstance(state, list) else []
    return any(isinstance(r, dict) and r.get("pendingRewriteSources") and r.get("lastActiveModel", "") is None
               for r in rows)


def _bookkeeping(kind: str, d: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    match kind:
        case "session.start" | "session.context_changed":
            yield from _about_session(d, session, at)
        case "session.model_change":
            yield from facts(session, at, model=d.get("newModel"))
        case "session.usage_record" if isinstance(d.get("usage"), dict):
            yield from facts(session, at, tokens=amount(d["usage"].get("inputTokens")))
        case "system.notification" if word(part(d, "kind").get("type")).startswith("shell_"):
            yield Event(Kind.CLOSED, session, at, f"shell:{word(part(d, 'kind').get('shellId'))}", "shell")
        case "system.notification":
            return
        case "session.shutdown":
            yield from facts(session, at, tokens=amount(d.get("currentTokens")))
        case _ if kind in BOOKKEEPING or kind.startswith((*BOOKKEEPING_KINDS, "session.compaction_", "session.usage_")):
            return
        case _:
            yield Event(Kind.UNKNOWN, session, at, word=kind)


def _about_session(d: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    where = d.get("context") if isinstance(d.get("context"), dict) else d
    yield from facts(session, at, cwd=where.get("cwd") if isinstance(where, dict) else "",
                      model=d.get("selectedModel"), version=d.get("copilotVersion"))
    parent = word(d.get("detachedFromSpawningParentSessionId"))
    if parent:
        yield from facts(session, at, parent=parent, role=Role.CHILD)


def _subagent(kind: str, d: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    """Read a subagent's line: it never says anything of the main turn, but its dialogs are the session's."""
    match kind:
        case "subagent.started" if d.get("executionMode") == "background":
            yield Event(Kind.OPENED, session, at, _task(d), "child")
        case "subagent.completed" | "subagent.failed":
            yield Event(Kind.CLOSED, session, at, _task(d), "child")
        case "permission.requested":
            yield Event(Kind.OPENED, session, at, word(d.get("requestId")), "child-permission")
        case "permission.completed":
            yield Event(Kind.CLOSED, session, at, word(d.get("requestId")), "child-permission")
        case _:
            return


def _task(d: dict[str, Any]) -> str:
    """Name a subagent by the call that it was started with."""
    return f"task:{word(d.get('toolCallId'))}"


# -- side files --------------------------------------------------------------------------------------------------


def read_open(record: Record) -> Iterator[Event]:
    """Read which open sessions work, were it in the background: as a process would, whose end is told.

    One that works may ask: that is no live status. A killed process leaves its sessions in the table.
    """
    for session, entry in decode(record).items():
        if isinstance(entry, dict):
            works, at = entry.get("working") is True, when(entry.get("refreshedAt"))
            kind, live = (Kind.OPENED, "") if works else (Kind.CLOSED, "idle")
            yield Event(kind, session, at, "working", "process", text=ANY, source="open sessions: working")
            yield Event(Kind.LIVE, session, at, "table", live, text=ANY, source="open sessions: working")


def read_workspace(record: Record) -> Iterator[Event]:
    """Read where a session works and what it is called: YAML of one line for each key, perhaps cut.

    It is named after its first prompt as soon as that is sent: its log is made when hooks and more have run.
    """
    lines = (line.partition(": ") for line in record.data.decode().splitlines())
    pairs = {key: value.strip("'\"") for key, _, value in lines}
    session, at = PurePath(record.path).parent.name, when(pairs.get("updated_at"))
    named = "name" if pairs.get("user_named") == "true" else "title"
    yield from facts(session, at, cwd=pairs.get("cwd"), **{named: pairs.get("name") or pairs.get("summary")})
    if pairs.get("name") and pairs.get("user_named") == "false":
        yield Event(Kind.PROMPT, session, at, KEYLESS, "user", source="workspace")


def read_lock(record: Record) -> Iterator[Event]:
    """Read that a process has a session open: a lock is named after its pid, and stays when it is killed."""
    path = PurePath(record.path)
    pid, session = path.name.split(".")[1], path.parent.name
    if pid.isdecimal():
        yield Event(Kind.OWNER, session, record.mtime, pid, number=record.mtime, source="lock")


def lock_removed(told: Event, now: float) -> Iterator[Event]:
    """Read the removal of a lock: the session was closed in order."""
    yield gone(told.session, now, told.key, "closed", "lock removed")


# -- processes -----------------------------------------------------------------------------------------------------

SHELLS = frozenset({"bash", "zsh", "sh", "pwsh", "powershell"})
HEADLESS = frozenset({"-p", "--prompt", "--server", "--headless"})
OTHER_COMMANDS = frozenset({"help", "init", "login", "mcp", "plugin", "update", "version", "--help", "--version"})


def is_main(p: Process) -> bool:
    """Tell whether a process is Copilot itself: its own name is that of a thread."""
    return p.called() == "copilot" and not OTHER_COMMANDS & set(p.cmdline[1:2])


def owns(p: Process, session: Session) -> int:
    """Tell whether a process may run a session whose lock is older than what is read: by its folder."""
    cwd = session.fact("cwd")
    return int(is_main(p) and (not p.cwd or not cwd or p.cwd == cwd))


def is_tool(p: Process) -> bool:
    """Tell whether a process is a shell that runs a command for a tool."""
    return p.name in SHELLS and "--norc" in p.cmdline and "-c" in p.cmdline


def role(p: Process) -> Role | None:
    """Tell whose run it is by its command line: records do not, and a run of either kind may go on with any."""
    headless = any(a in HEADLESS or a.startswith("--prompt=") for a in p.cmdline[1:])
    return (Role.MACHINE if headless else Role.PERSON) if is_main(p) else None


COPILOT = Agent(
    name="copilot",
    label="Copilot CLI",
    home=moved_by("COPILOT_HOME", ".copilot"),
    sources=(
        Source("session-state/*/inuse.*.lock", Shape.PRESENCE, read_lock, lock_removed),
        Source("session-state/*/events.jsonl", Shape.LINES, read_log, head=True),
        Source("session-state/*/workspace.yaml", Shape.DOCUMENT, read_workspace),
        Source("open-sessions-state.json", Shape.DOCUMENT, read_open),
    ),
    main=is_main,
    owns=owns,
    tool=is_tool,
    role=role,
    evidence=("event logs", "a lock per process", "table of what works (after 1.0.80)", "processes"),
    blind=(
        Before("1.0.40", "approvals"),
        "retries and queued prompts look like thinking",
        "a resumed session appears only with its first prompt",
    ),
)
