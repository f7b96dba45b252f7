"""Cursor: its command line agent and its editor, which write the same transcripts of a conversation.

A transcript has no times, so its file's stand in; its calls have no ids and no results, so a call is open until the
next line, and no approval can be told from it. The editor's store tells its approvals, and what a conversation is;
it tells of turns only where no transcript does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import md5
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Query, Shape, Source
from island.agents.reading import asks, decode, number, text_of, word
from island.model import KEYLESS, Doubt, Event, Kind, Process, Reason, Record, Role, Session

# -- transcripts, projects/<folder>/agent-transcripts/<id>/<id>.jsonl ------------------------------------------------

ENDS: Mapping[str, Reason | str] = {"success": "", "aborted": Reason.INTERRUPTED, "error": Reason.ERROR}
#: What the text of an error tells, the first that fits. The editor calls a turn that was stopped an error.
ERRORS = (
    (re.compile(r"user aborted", re.IGNORECASE), Reason.INTERRUPTED),
    (re.compile(r"\blimit|quota", re.IGNORECASE), Reason.LIMIT),
    (re.compile(r"\b(?:log|sign) ?in\b|authenticat|unauthorized", re.IGNORECASE), Reason.LOGIN),
)
QUESTION = "AskQuestion"
CALL = "call"  # no call has an id: the next line means that those of this one have ended


def read_transcript(record: Record) -> Iterator[Event]:
    """Read one line of a conversation; the place of a line that opens a turn is the turn's key."""
    o, path = decode(record), PurePath(record.path)
    flat, session = path.parent.name == "agent-transcripts", path.stem
    folder = _folders(path, 2 if flat else 3)[0]
    yield Event(Kind.FACT, session, 0, "surface", f"projects/{folder}", source="transcript")
    for place, e in enumerate(_line(o, session, flat)):
        turn = f"{session}@{record.offset}" if e.kind is Kind.PROMPT else ""
        yield replace(e, at=record.mtime, turn=turn, order=4 * record.offset + place)


def _line(o: dict[str, Any], session: str, flat: bool) -> Iterator[Event]:
    blocks = _blocks(o)
    kinds, end = {word(b.get("type")) for b in blocks}, _end(o, blocks)
    match o.get("role"):
        case _ if end is not None:
            yield from _ended(end, session)
        case "user" if kinds == {"tool_result"}:
            yield Event(Kind.PROGRESS, session, 0, word=Reason.MODEL, source="tool result")
        case "user":
            yield Event(Kind.PROMPT, session, 0, word="user", source="user")
        case "assistant":
            yield from _response(o, blocks, session, flat)
        case other:
            yield Event(Kind.UNKNOWN, session, 0, word=word(o.get("type")) or word(other))


def _response(o: dict[str, Any], blocks: list[dict[str, Any]], session: str, flat: bool) -> Iterator[Event]:
    """Read one step of the model. What looks final is the end only where none is written, and it stays quiet."""
    calls = [b for b in blocks if b.get("type") == "tool_use"]
    names = {word(call.get("name")) for call in calls}
    said = Reason.QUESTION if asks(text_of(_content(o))) and not calls else Reason.FINISHED
    unsure = Doubt.QUIET if flat and not calls else ""
    yield Event(Kind.CLOSED, session, 0, CALL, "tool", source="assistant")
    yield Event(Kind.ANSWER, session, 0, word=said, text=unsure, source="assistant")
    if not unsure:
        yield Event(Kind.PROGRESS, session, 0, word=Reason.TOOL if calls else Reason.MODEL, source="assistant")
    if calls:
        about = "question" if QUESTION in names else "tool"
        yield Event(Kind.OPENED, session, 0, CALL, about, source=f"tool_use {min(names)}")


def _ended(end: dict[str, Any], session: str) -> Iterator[Event]:
    status, error = word(end.get("status")), word(end.get("error"))
    reason = ENDS.get(status, Reason.ERROR)
    if reason is Reason.ERROR:
        reason = next((said for pattern, said in ERRORS if pattern.search(error)), reason)
    yield Event(Kind.END, session, 0, word=reason, source=f"turn_ended {status}")
    yield Event(Kind.CLOSED, session, 0, CALL, "tool", source="turn_ended")
    if status not in ENDS:
        yield Event(Kind.UNKNOWN, session, 0, word=f"turn_ended {status}")


def _end(o: dict[str, Any], blocks: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what tells that a turn has ended: a line of its own, or a block of the last answer."""
    return next((e for e in (o, *blocks) if e.get("type") == "turn_ended"), None)


def _content(o: dict[str, Any]) -> object:
    message = o.get("message")
    return message.get("content") if isinstance(message, dict) else message


def _blocks(o: dict[str, Any]) -> list[dict[str, Any]]:
    content = _content(o)
    return [b for b in content if isinstance(b, dict)] if isinstance(content, list) else []


def read_subagent(record: Record) -> Iterator[Event]:
    """Read a subagent's line: it runs until its own transcript ends, perhaps after the turn that began it."""
    o, path = decode(record), PurePath(record.path)
    kind = Kind.OPENED if _end(o, _blocks(o)) is None else Kind.CLOSED
    parent = _folders(path, 2)[0]
    yield Event(kind, parent, record.mtime, path.stem, "child", order=record.offset, source="subagent")


def read_chat(record: Record) -> Iterator[Event]:
    """Read what a conversation of the command line is, chats/<hash of its folder>/<id>/meta.json."""
    o = decode(record)
    folder, session = _folders(PurePath(record.path), 2)
    at, facts = number(o.get("createdAtMs")) / 1000, {"surface": f"chats/{folder}", "cwd": word(o.get("cwd"))}
    yield from (Event(Kind.FACT, session, at, key, value, source="chat") for key, value in facts.items() if value)


# -- the editor's store ------------------------------------------------------------------------------------------------

#: The newest conversations, by index, and how those run that moved of late: what that stands in may be megabytes.
CHATS = """
select h.composerId as id, h.recency, h.checkpointAt as checkpoint, h.isArchived as archived,
  coalesce(json_extract(h.value, '$.subagentInfo') is not null or h.isSubagent, 0) as child,
  json_extract(h.value, '$.isDraft') as draft, json_extract(h.value, '$.workspaceIdentifier.uri.fsPath') as cwd,
  coalesce(json_extract(h.value, '$.unfinishedRunAt'), json_extract(d.value, '$.unfinishedRunAt')) as began,
  json_extract(d.value, '$.status') as status, json_array_length(d.value, '$.generatingBubbleIds') as generating,
  json_extract(d.value, '$.modelConfig.modelName') as model, json_extract(d.value, '$.contextTokensUsed') as tokens,
  coalesce(json_extract(d.value, '$.latestChatGenerationUUID'), (
    select json_extract(b.value, '$.bubbleId') from json_each(d.value, '$.fullConversationHeadersOnly') as b
    where json_extract(b.value, '$.type') = 1 order by b.key desc limit 1)) as turn
from composerHeaders as h left join cursorDiskKV as d
  on d.key = 'composerData:' || h.composerId and json_valid(d.value)
  and max(h.recency, coalesce(h.checkpointAt, 0)) > (:moment - 600) * 1000
where h.recency > (:moment - 43200) * 1000 and json_valid(h.value) order by h.recency desc limit 40
"""
#: Nothing but whether it waits for the user, or was put away: such a row is another exactly when that changes.
WAITS = """
select composerId as id, json_extract(value, '$.hasBlockingPendingActions') as permission,
  json_extract(value, '$.hasPendingPlan') as plan, isArchived as archived
from composerHeaders where recency > (:moment - 43200) * 1000 and json_valid(value)
  and json_extract(value, '$.subagentInfo') is null and not coalesce(isSubagent, 0)
order by recency desc limit 40
"""
EDITOR = "editor"


def read_store(record: Record) -> Iterator[Event]:
    """Read one row of the editor's store."""
    o = decode(record)
    yield from (_chat if o.get("query") == "chats" else _waits)(o, word(o.get("id")), record.mtime)


def _waits(o: dict[str, Any], session: str, now: float) -> Iterator[Event]:
    for ask in ("permission", "plan"):
        kind = Kind.OPENED if o.get(ask) else Kind.CLOSED
        yield Event(kind, session, now, f"editor:{ask}", ask, source="editor: waits")
    yield Event(Kind.FACT, session, now, "archived", "yes" if o.get("archived") else "no", source="editor: waits")


def _chat(o: dict[str, Any], session: str, _: float) -> Iterator[Event]:
    began, checkpoint = number(o.get("began")) / 1000, number(o.get("checkpoint")) / 1000
    at = max(number(o.get("recency")) / 1000, checkpoint, began)
    if o.get("child"):
        yield Event(Kind.FACT, session, at, "role", Role.CHILD, source="editor")
        return
    tokens = number(o.get("tokens"))
    facts = {"surface": EDITOR, "model": word(o.get("model")), "tokens": f"{tokens:.0f}" if tokens else ""}
    yield from (Event(Kind.FACT, session, at, key, value, source="editor") for key, value in facts.items() if value)
    if word(o.get("cwd")):  # without a time: that it has a folder does not mean that anybody runs it
        yield Event(Kind.FACT, session, 0, "cwd", o["cwd"], order=int(1000 * at), source="editor")
    if not (o.get("draft") or o.get("archived")):
        yield from _run(o, session, at, began, checkpoint)


def _run(o: dict[str, Any], session: str, at: float, began: float, checkpoint: float) -> Iterator[Event]:
    """Read whether a conversation runs. The mark that a run has begun may outlive it, and a status its own run."""
    status, turn = word(o.get("status")), word(o.get("turn"))
    ended = {"completed": Reason.FINISHED, "aborted": Reason.INTERRUPTED}.get(status)
    marked = began > 0 and (not ended or began >= checkpoint)
    runs = bool(o.get("generating")) or status == "generating" or marked
    if runs:
        yield Event(Kind.PROMPT, session, at, KEYLESS, "user", turn, source=f"editor: {status or 'runs'}")
    elif ended:
        yield Event(Kind.CLOSED, session, at, CALL, "tool", source=f"editor: {status}")  # also if no line followed it
        if turn:  # it is news only of a turn that was seen: old rows are touched, too
            yield Event(Kind.ANSWER, session, at, KEYLESS, ended, turn, order=1, source=f"editor: {status}")


def _folders(path: PurePath, number: int) -> tuple[str, ...]:
    """Return the names of the innermost folders of a file, outermost first."""
    if len(path.parts) <= number:
        raise ValueError(f"not below {number} folders")
    return path.parts[-number - 1 : -1]


# -- processes ---------------------------------------------------------------------------------------------------------

SCRIPT = re.compile(r"cursor-agent/.*index\.js$")
OTHER_COMMANDS = frozenset({
    "about", "create-chat", "help", "install-shell-integration", "login", "logout", "ls", "mcp", "models", "status",
    "uninstall-shell-integration", "update", "upgrade", "whoami", "worker", "worker-server", "-h", "--help", "-v",
    "--version",
})
HEADLESS = frozenset({"-p", "--print", "acp"})


def command(p: Process) -> tuple[str, ...] | None:
    """Return the arguments of the command line agent; None if a process is something else."""
    slashed = [a.replace("\\", "/") for a in p.cmdline[:4]]
    script = next((i for i, a in enumerate(slashed) if SCRIPT.search(a)), 0)
    if not script and p.called() != "cursor-agent":
        return None
    arguments = p.cmdline[script + 1 :]
    return None if OTHER_COMMANDS & set(arguments[:1]) else arguments


def is_editor(p: Process) -> bool:
    """Tell whether a process is the editor itself: its many helpers say what they are, or run a script."""
    helps = any(a.startswith("--type=") or a.endswith((".js", ".mjs")) for a in p.cmdline[1:])
    return p.called() in ("cursor", "Cursor") and not helps


def owns(p: Process, session: Session) -> int:
    """Tell how likely a process runs a conversation: by the id it was started with, by program, or by folder.

    The command line tells of one before it begins, and the editor after: what nothing tells of is the editor's.
    """
    where, _, folder = session.fact("surface").partition("/")
    arguments = command(p)
    if session.fact("role") == Role.CHILD:
        return 0
    if arguments is None:
        return 2 if is_editor(p) and where in (EDITOR, "projects") else 0
    if where == EDITOR:
        return 0
    cwd = _after(arguments, "--workspace") or p.cwd
    known = {session.fact("cwd"), folder} - {""}
    if _after(arguments, "--resume") == session.id:
        return 3
    may = not cwd or not known or known & {cwd, _hashed(cwd)} or _slug(folder) == _slug(cwd)
    return (2 if where == "chats" else 1) if may else 0


def _hashed(path: str) -> str:
    return md5(path.encode(errors="surrogateescape"), usedforsecurity=False).hexdigest()


def _slug(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", path).strip("-").lower()


def role(p: Process) -> Role | None:
    """Tell whose run it is by its command line: transcripts do not, and a run of either kind may go on with any."""
    arguments = command(p)
    if arguments is None:
        return None
    return Role.MACHINE if HEADLESS & set(arguments) else Role.PERSON


def resumes(p: Process, _: Iterable[Session]) -> str:
    """Return the conversation that a process was started to go on with; empty if it tells none."""
    return _after(command(p) or (), "--resume")


def _after(arguments: tuple[str, ...], option: str) -> str:
    pairs = zip(arguments, (*arguments[1:], ""), strict=False)
    return next((v if a == option else a.partition("=")[2] for a, v in pairs if a.partition("=")[0] == option), "")


STORES = ("Library/Application Support", "AppData/Roaming", ".config")
TRANSCRIPTS = ".cursor/projects/*/agent-transcripts/"

CURSOR = Agent(
    name="cursor",
    label="Cursor",
    home=lambda _, user_home: user_home,  # that of the agent lies in it, and the editor's
    sources=(
        *(Source(f"{folder}/chats/*/*/meta.json", Shape.DOCUMENT, read_chat, side=True)
          for folder in (".cursor", ".config/cursor")),
        *(Source(f"{folder}/Cursor/User/globalStorage/state.vscdb", Shape.DATABASE, read_store, side=True,
                 queries=(Query("chats", CHATS, optional=True), Query("waits", WAITS, optional=True)))
          for folder in STORES),
        Source(TRANSCRIPTS + "*/*.jsonl", Shape.LINES, read_transcript),
        Source(TRANSCRIPTS + "*.jsonl", Shape.LINES, read_transcript),
        Source(TRANSCRIPTS + "*/subagents/*.jsonl", Shape.LINES, read_subagent, side=True),
    ),
    main=lambda p: command(p) is not None or is_editor(p),
    owns=owns,
    tool=lambda _: False,  # no record tells that a call has ended, so no process tells that one asks
    role=role,
    resumes=resumes,
    single=True,
    several=is_editor,
    evidence=("transcripts", "the editor's store", "chats' files", "processes"),
    blind=(
        "approvals in the command-line program",
        "when a call ends: what the model thinks after it looks like the call",
        "in the oldest transcripts the end of a turn is inferred from silence",
    ),
)
