"""Kimi Code, and kimi-cli before it: a wire file per agent of a session, with turns, ends and dialogs.

Kimi Code tells almost all itself. kimi-cli (home `.kimi`, another program in another format) records no approval:
a call of its shell without a process, or an edit that does not end, is one. Of Kimi Code before 0.33 a final step
stands for the end of a turn. A subagent's own file tells nothing of the main turn but its dialogs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import md5, sha256
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Shape, Source
from island.agents.reading import amount, asks, count, decode, milliseconds, number, part, text_of, when, word
from island.model import Event, Kind, Process, Reason, Record, Role, Session, gone

# -- Kimi Code: sessions/<folder>/<session>/agents/<agent>/wire.jsonl ----------------------------------------------

#: Known, and never state: settings, copies of what other records say. Whole kinds, or their first parts.
BOOKKEEPING = frozenset({
    "agent.turn.ended", "agent.turn.started", "turn.started", "turn.steer", "turn.step.completed",
    "turn.step.interrupted", "turn.step.started",
    "config", "context", "cron", "dispatch_mode", "file_history", "goal", "llm", "metadata", "micro_compaction",
    "permission", "plan", "plan_mode", "plugin", "profile", "prompt", "runtime", "skill", "subagent", "swarm_mode",
    "token_counting", "tools", "usage", "workspace",
})
TASKS = {"agent": "child", "question": "child-question"}  # any other is a shell
ENDS = {"cancelled": Reason.INTERRUPTED, "blocked": Reason.ERROR, "completed": ""}
LOGIN, LIMIT = frozenset({401, 403}), frozenset({402, 429})


def read_wire(record: Record) -> Iterator[Event]:
    """Read one line of an agent's wire file."""
    o, (folder, session, _, agent) = decode(record), _folders(record, 4)
    kind, at = word(o.get("type")), milliseconds(o.get("time"))
    if kind != "metadata" and not at:
        raise ValueError("a record without a time")
    main = agent == "main"
    told = _main(kind, o, session, at, folder) if main else _dialog(kind, o, session, at, "child-")
    return _placed(told, record, kind)


def _placed(events: Iterator[Event], record: Record, kind: str) -> Iterator[Event]:
    for e in events:
        order = 2 * record.offset + (e.kind is Kind.PROGRESS)  # what a step says of its own end comes first
        yield Event(e.kind, e.session, e.at, e.key, e.word, e.turn, e.text, e.number, order, e.source or kind)


def _main(kind: str, o: dict[str, Any], session: str, at: float, folder: str) -> Iterator[Event]:
    reader = MAIN.get(kind)
    if reader:
        yield from reader(kind, o, session, at)
    elif BOOKKEEPING.isdisjoint((kind, kind.partition(".")[0])):
        yield Event(Kind.UNKNOWN, session, at, word=kind)
    if kind == "turn.prompt":
        yield Event(Kind.FACT, session, at, "surface", folder)


def _turn(kind: str, o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    match kind:
        case "turn.prompt":
            turn = word(o.get("promptId")) or f"{session}@{at:.3f}"  # the number of a turn is every session's
            yield Event(Kind.PROMPT, session, at, word=word(part(o, "origin").get("kind")), turn=turn)
        case "turn.step.retrying":
            yield Event(Kind.PROGRESS, session, at, word=Reason.RETRYING)
        case "turn.cancel":
            yield Event(Kind.END, session, at, word=Reason.INTERRUPTED)
        case _:
            yield Event(Kind.END, session, at, word=ENDS.get(word(o.get("reason")), _error(part(o, "error"))))


def _compaction(kind: str, o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    match kind:
        case "full_compaction.begin":
            if o.get("source") == "manual":
                yield Event(Kind.PROMPT, session, at, word="user", turn=f"{session}@{at:.3f}")
            yield Event(Kind.PROGRESS, session, at, word=Reason.COMPACTING)
        case "full_compaction.cancel":
            yield Event(Kind.END, session, at, word=Reason.INTERRUPTED)
        case _:  # one that the agent began is followed at once by the next step of its turn
            yield Event(Kind.ANSWER, session, at, word=Reason.FINISHED)


def _forked(kind: str, _: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    """Read that all before this is a copy of another's history, which nobody has open."""
    yield Event(Kind.OWNER, session, at, NO_PROCESS, number=at)
    yield gone(session, at, NO_PROCESS, "closed", kind)


NO_PROCESS = "0"


def _step(_: str, o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    event = part(o, "event")
    call = word(event.get("toolCallId"))
    match event.get("type"), event.get("finishReason"):
        case "tool.call", _:
            name = word(event.get("name"))
            yield Event(Kind.OPENED, session, at, call, "tool", text=name, source=f"tool.call {name}")
            yield Event(Kind.PROGRESS, session, at, word=Reason.TOOL, source="tool.call")
        case "tool.result", _:
            yield Event(Kind.CLOSED, session, at, call, "tool", source="tool.result")
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, source="tool.result")
        case "step.begin" | "content.part", _:
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, source=word(event["type"]))
        case "step.end", "tool_use" | "error" | "interrupted" | "aborted" | None:
            return
        case "step.end", _:
            yield Event(Kind.ANSWER, session, at, word=Reason.FINISHED, source="step.end")
        case _:
            yield Event(Kind.UNKNOWN, session, at, word=f"loop event {word(event.get('type'))}")


def _answer(_: str, o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    message = part(o, "message")
    said, how = part(message, "message"), part(part(message, "meta"), "finish")
    if said.get("role") == "assistant" and how.get("finishReason") == "completed":
        asked = asks(text_of(said.get("content")))
        yield Event(Kind.ANSWER, session, at, word=Reason.QUESTION if asked else Reason.FINISHED)


def _dialog(kind: str, o: dict[str, Any], session: str, at: float, whose: str = "") -> Iterator[Event]:
    """Read that a dialog opens or closes. All that a subagent's file tells of the session."""
    request = part(o, "request")
    review = request.get("toolName") == "ExitPlanMode" or part(request, "display").get("kind") == "plan_review"
    plan = review and not whose
    about = "question" if o.get("kind") == "question" else "plan" if plan else "permission"
    if kind == "interaction.request":
        yield Event(Kind.OPENED, session, at, word(o.get("id")), whose + about)
    elif kind == "interaction.resolved":
        yield Event(Kind.CLOSED, session, at, word(o.get("id")), whose + "permission")
        yield from [Event(Kind.PROGRESS, session, at, word=Reason.MODEL)] * (not whose)


def _task(kind: str, o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    info = part(o, "info")
    what, task = TASKS.get(word(info.get("kind")), "shell"), f"task:{word(info.get('taskId'))}"
    if kind == "task.terminated":
        yield Event(Kind.CLOSED, session, at, task, what)
    elif info.get("detached") is True:  # the others end with their call
        yield Event(Kind.OPENED, session, at, task, what)


def _settings(_: str, o: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    tokens = amount(o.get("tokens"))
    cwd = word(part(o, "environmentDisclosure").get("cwd"))
    facts = {"model": word(o.get("model")), "tokens": tokens, "cwd": cwd}
    yield from (Event(Kind.FACT, session, at, key, value) for key, value in facts.items() if value)


def _error(error: dict[str, Any]) -> Reason:
    code, status = word(error.get("code")), count(part(error, "details").get("statusCode"))
    if code.startswith("auth.") or code == "provider.auth_error" or status in LOGIN:
        return Reason.LOGIN
    return Reason.LIMIT if code == "provider.rate_limit" or status in LIMIT else Reason.ERROR


MAIN = {
    **dict.fromkeys(("turn.prompt", "turn.cancel", "turn.ended", "turn.step.retrying"), _turn),
    **dict.fromkeys(("interaction.request", "interaction.resolved"), _dialog),
    **dict.fromkeys(("task.started", "task.terminated"), _task),
    **dict.fromkeys(("full_compaction.begin", "full_compaction.cancel", "full_compaction.complete"), _compaction),
    **dict.fromkeys(("llm.request", "profile.bind", "token_counting.measured"), _settings),
    "context.append_loop_event": _step, "agent.message.appended": _answer, "forked": _forked,
}


def read_state(record: Record) -> Iterator[Event]:
    """Read what a session is: a fork's folder is there before anybody opens it; a headless run has no title."""
    o, (session,) = decode(record), _folders(record, 1)
    if "createdAt" not in o:
        return  # kimi-cli's, which says nothing of use
    created, updated = (milliseconds(o.get(k)) or when(o.get(k)) for k in ("createdAt", "updatedAt"))
    named = "name" if o.get("isCustomTitle") is True else "title"
    role = Role.PERSON if o.get("title") else Role.MACHINE if o.get("lastTurnReason") else ""
    facts = {named: word(o.get("title")), "role": role, "archived": "yes" if o.get("archived") is True else ""}
    yield from (Event(Kind.FACT, session, updated, key, value, source="state") for key, value in facts.items() if value)
    if word(o.get("cwd")):
        yield Event(Kind.FACT, session, 0 if o.get("forkedFrom") else created, "cwd", o["cwd"], source="state")


def read_index(record: Record) -> Iterator[Event]:
    """Read one line of the index: of older versions all that tells a session's folder. It carries no time."""
    o = decode(record)
    if word(o.get("sessionId")) and word(o.get("workDir")):
        yield Event(Kind.FACT, o["sessionId"], 0, "cwd", o["workDir"], order=record.offset, source="session index")


# -- kimi-cli: sessions/<folder>/<session>/wire.jsonl ----------------------------------------------------------------

CLI_BOOKKEEPING = frozenset({
    "BtwBegin", "BtwEnd", "HookRequest", "HookResolved", "HookTriggered", "ImageURLPart",
    "MCPLoadingBegin", "MCPLoadingEnd", "MCPStatusSnapshot", "Notification", "PlanDisplay", "QuestionResponse",
    "SteerInput", "TextPart", "ThinkPart", "ToolCallPart", "ToolCallRequest",
})
#: What a turn that ends here has come to. An error ends it always; versions before 1.30 did not say so.
CLI_SAID = {"StepBegin": Reason.INTERRUPTED, "ToolCall": Reason.INTERRUPTED, "StepInterrupted": Reason.ERROR}
CLI_GOES_ON = {
    **dict.fromkeys(("CompactionEnd", "ContentPart", "StepBegin", "SubagentEvent"), Reason.MODEL),
    "CompactionBegin": Reason.COMPACTING, "StepRetry": Reason.RETRYING, "ToolCall": Reason.TOOL,
    "ToolResult": Reason.MODEL,
}
#: Under which key stands the id of what opens or closes, and what it is. A question closes with its call.
CLI_SPANS = {
    "ToolCall": ("id", "tool"), "ToolResult": ("tool_call_id", "tool"), "QuestionRequest": ("tool_call_id", "question"),
    "ApprovalRequest": ("id", "permission"), "ApprovalResponse": ("request_id", "permission"),
}
CLI_KNOWN = CLI_BOOKKEEPING.union(CLI_SAID, CLI_GOES_ON, CLI_SPANS)
CLI_TOOLS = {"Shell": "shell-tool", "WriteFile": "instant-tool", "StrReplaceFile": "instant-tool"}


def read_cli_wire(record: Record) -> Iterator[Event]:
    """Read one line of a kimi-cli session."""
    o, (folder, session) = decode(record), _folders(record, 2)
    message, at = part(o, "message"), number(o.get("timestamp"))
    kind, p = word(message.get("type")), part(message, "payload")
    if not at:
        if o.get("type") != "metadata":
            raise ValueError("a record without a time")
        return iter(())
    return _placed(_cli(kind, p, session, at, folder), record, kind)


def _cli(kind: str, p: dict[str, Any], session: str, at: float, folder: str) -> Iterator[Event]:
    """Read a message. That its turn was cut off, or failed, is told by the last step alone: its end says nothing."""
    if kind in CLI_SAID:
        yield Event(Kind.ANSWER, session, at, word=CLI_SAID[kind])
    if kind == "ContentPart" and p.get("type") == "text":
        yield Event(Kind.ANSWER, session, at, word=Reason.QUESTION if asks(word(p.get("text"))) else Reason.FINISHED)
    if kind in CLI_GOES_ON:
        yield Event(Kind.PROGRESS, session, at, word=CLI_GOES_ON[kind])
    if kind in CLI_SPANS:
        yield from _cli_span(kind, p, session, at)
    match kind:
        case "TurnBegin":
            yield Event(Kind.PROMPT, session, at, word="user", turn=f"{session}@{at:.3f}")
            yield Event(Kind.FACT, session, at, "surface", folder)
            yield from _cli_role(p.get("user_input"), session, at)
        case "TurnEnd":
            yield Event(Kind.END, session, at)
        case "StatusUpdate":
            yield Event(Kind.FACT, session, at, "tokens", str(count(p.get("context_tokens"))))
        case _:
            if kind not in CLI_KNOWN:
                yield Event(Kind.UNKNOWN, session, at, word=kind)


def _cli_span(kind: str, p: dict[str, Any], session: str, at: float) -> Iterator[Event]:
    slot, what = CLI_SPANS[kind]
    name = word(part(p, "function").get("name"))
    closes = kind in ("ToolResult", "ApprovalResponse")
    what = CLI_TOOLS.get(name, what)
    yield Event(Kind.CLOSED if closes else Kind.OPENED, session, at, word(p.get(slot)), what, text=name)


def _cli_role(prompt: object, session: str, at: float) -> Iterator[Event]:
    """Read whose turn it is: the terminal hands on a list; a text is a command, or what a headless run was given."""
    if isinstance(prompt, list):
        yield Event(Kind.FACT, session, at, "role", Role.PERSON)
    elif not word(prompt).startswith("<"):
        yield Event(Kind.FACT, session, 0, "role", Role.MACHINE)


def read_cli_task(record: Record) -> Iterator[Event]:
    """Read how a background task of kimi-cli is: rewritten at each heartbeat."""
    o, (session, _, task) = decode(record), _folders(record, 3)
    begun, ended, now = (number(o.get(k)) for k in ("started_at", "finished_at", "updated_at"))
    kind = Kind.CLOSED if ended else Kind.OPENED
    what = "child" if task.startswith("agent") else "shell"
    yield Event(kind, session, ended or begun or now, f"task:{task}", what, source="task")


# -- small readings ----------------------------------------------------------------------------------------------------


def _folders(record: Record, number: int) -> tuple[str, ...]:
    """Return the names of the innermost folders of a record's file, outermost first."""
    parts = PurePath(record.path).parts
    if len(parts) <= number:
        raise ValueError(f"not below {number} folders")
    return parts[-number - 1 : -1]


# -- processes ---------------------------------------------------------------------------------------------------------


def product(p: Process) -> str:
    """Tell which of the two programs a process is. Both rename themselves, and lose their arguments by it."""
    program, script = p.called(), p.called(1)
    if "Kimi Code" in (p.name, program):
        return "cli"
    if program.startswith("python"):
        return "cli" if script in ("kimi", "kimi-cli") else ""
    named = "kimi-code" in (p.name, program) or program == "kimi"
    run = program == "node" and (script in ("kimi", "kimi-code") or "kimi-code/dist/main" in _slashed(p.cmdline[1:2]))
    return "code" if named or run else ""


def _slashed(arguments: tuple[str, ...]) -> str:
    return " ".join(arguments).replace("\\", "/")


def owns(p: Process, session: Session) -> int:
    """Tell whether a process may run a session: by its program and its folder, whose hash names the session's."""
    if product(p) != ("code" if session.id.startswith("session_") else "cli"):
        return 0
    cwd, folder = session.fact("cwd"), session.fact("surface").rpartition("_")[2]
    if not p.cwd or not (cwd or folder):
        return 1
    path = p.cwd.encode(errors="surrogateescape")
    hashes = (md5(path, usedforsecurity=False).hexdigest(), sha256(path).hexdigest()[:12])
    return int(p.cwd == cwd or folder in hashes)


def role(p: Process) -> Role | None:
    """Tell a headless run by its command line, as long as it has one."""
    return Role.MACHINE if product(p) and {"-p", "--prompt", "--print"} & set(p.cmdline) else None


def home(environ: Mapping[str, str], user_home: str) -> str:
    """Return the folder that a variable names, else the user's home: it holds that of either program."""
    return environ.get("KIMI_CODE_HOME") or environ.get("KIMI_SHARE_DIR") or user_home


WIRE, STATE = "sessions/*/*/agents/main/wire.jsonl", "sessions/*/*/state.json"
CHILD_WIRE = "sessions/*/*/agents/agent-*/wire.jsonl"
CLI_WIRE, CLI_TASK = "sessions/*/*/wire.jsonl", "sessions/*/*/tasks/*/runtime.json"

KIMI = Agent(
    name="kimi",
    label="Kimi Code",
    home=home,
    sources=tuple(
        Source(folder + pattern, shape, read, side=side)
        for folders, pattern, shape, read, side in (
            (("", ".kimi-code/"), WIRE, Shape.LINES, read_wire, False),
            (("", ".kimi-code/"), CHILD_WIRE, Shape.LINES, read_wire, True),
            (("", ".kimi-code/"), STATE, Shape.DOCUMENT, read_state, False),
            ((".kimi-code/",), "session_index.jsonl", Shape.LINES, read_index, True),
            (("", ".kimi/"), CLI_WIRE, Shape.LINES, read_cli_wire, False),
            (("", ".kimi/"), CLI_TASK, Shape.DOCUMENT, read_cli_task, False),
        ) for folder in folders
    ),
    main=lambda p: product(p) != "",
    owns=owns,
    tool=lambda p: p.name != "sh" and not product(p),  # sh runs hooks
    role=role,
    single=True,
    evidence=("wire files with turns, ends and dialogs", "state files", "processes"),
    blind=(
        "before Kimi Code 0.33: approvals and errors; in kimi-cli before 1.30 Esc, before 1.0 ends",
        "in kimi-cli an approval is inferred when a command has no process or an edit stays open; others are invisible",
        "which of two programs in one folder runs a session is a guess",
    ),
)
