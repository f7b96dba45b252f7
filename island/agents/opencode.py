"""OpenCode: one database of sessions, messages and parts for all its processes, and a log that tells what asks.

Nothing in the database tells which process runs a session, nor that a call waits for permission: the log names the run
that asks, and in other lines the sessions of that run. Before 1.2 the same objects lay in a file each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Query, Shape, Source
from island.agents.reading import amount, asks, decode, facts, milliseconds, part, when, word
from island.model import ASK_OF, Event, Kind, Process, Reason, Record, Role, Session

# -- opencode.db -------------------------------------------------------------------------------------------------------

#: The sessions of the last day, by the time of the newest writing. Of their newest messages only those are looked into
#: that have changed since the last look, or shortly before: a row is written a little later than it says.
RECENT = """
with recent as (
  select * from session where time_updated > (:moment - 86400) * 1000 order by time_updated desc limit 100
), changed as (select (:last - 60) * 1000 as since)
"""

SESSIONS = """
select id, parent_id parent, directory, title, version, time_created created, time_updated updated,
  time_archived archived, json_extract(revert, '$.messageID') taken_back,
  permission like '%"plan_exit"%"deny"%' headless
from recent
"""

#: The answers alone: a prompt may wait behind a running turn, or want no answer, so it is begun with its first one.
#: Copies that a fork made are older than their session. What the first part of a prompt is tells who sent it.
MESSAGES = """
, newest as (
  select m.*, json_extract(m.data, '$.parentID') turn, json_extract(m.data, '$.finish') finish,
    json_extract(m.data, '$.time.completed') completed
  from recent s join message m on m.id in (
    select id from message where session_id = s.id order by time_created desc, id desc limit 6)
  where m.time_updated > (select since from changed) and m.time_created >= s.time_created
), asked as (
  select m.*, u.time_created sent, (select data from part where message_id = m.turn order by id limit 1) prompt,
    finish not in ('tool-calls', 'unknown') final
  from newest m join message u on u.id = m.turn
)
select session_id session, 'assistant' role, turn, time_created created, completed, finish,
  (select f.time_created from message f where f.session_id = m.session_id and f.time_created >= sent
    and json_extract(f.data, '$.parentID') = turn order by f.time_created, f.id limit 1) begun,
  json_extract(prompt, '$.type') prompt, json_extract(prompt, '$.auto') auto,
  json_extract(prompt, '$.synthetic') synthetic,
  json_extract(prompt, '$.text') like 'The following tool was executed by the user%' own,
  json_extract(data, '$.error.name') error, json_extract(data, '$.error.data.statusCode') status,
  json_extract(data, '$.modelID') model, json_extract(data, '$.tokens.total') tokens,
  completed and exists (select 1 from part where message_id = m.id
    and (json_extract(data, '$.state.error') like 'The user rejected permission to use this specific tool call.'
      or json_extract(data, '$.state.error') like 'The user dismissed this question%')) refused,
  case when final then (select time_created from part where message_id = m.id
    and json_extract(data, '$.type') = 'step-finish' order by id desc limit 1) end finished,
  case when final then (select substr(json_extract(data, '$.text'), -24) from part where message_id = m.id
    and json_extract(data, '$.type') = 'text' order by id desc limit 1) end said
from asked m
"""

CALLS = """
select m.session_id session, json_extract(m.data, '$.parentID') turn, json_extract(p.data, '$.tool') tool,
  json_extract(p.data, '$.callID') call, substr(json_extract(p.data, '$.state.input.command'), 1, 80) command,
  json_extract(p.data, '$.state.time.start') began, json_extract(p.data, '$.state.time.end') ended,
  json_extract(p.data, '$.state.metadata.sessionId') child,
  case when json_type(p.data, '$.state.metadata') is not null then p.time_updated end shown
from recent s join message m on m.id in (
    select id from message where session_id = s.id order by time_created desc, id desc limit 3)
  join part p on p.message_id = m.id
where p.time_updated > (select since from changed) and p.time_created >= s.time_created
  and json_extract(p.data, '$.type') = 'tool'
"""

#: Of an engine to come: the table has long been there, and is empty.
NEXT = """
select m.session_id session, m.type kind from recent s
join session_message m on m.id = (select id from session_message where session_id = s.id order by seq desc limit 1)
"""

QUERIES = tuple(
    Query(name, RECENT + sql, optional=name == "next")
    for name, sql in (("session", SESSIONS), ("message", MESSAGES), ("call", CALLS), ("next", NEXT))
)


def read_row(record: Record) -> Iterator[Event]:
    """Read one row of the answer to a query."""
    o = decode(record)
    reader = ROWS.get(word(o.get("query")))
    if reader is None:
        raise ValueError("not the answer to a query")
    return reader(o)


def _session(o: dict[str, Any]) -> Iterator[Event]:
    """Read what a session is."""
    session, created, updated = word(o.get("id")), milliseconds(o.get("created")), milliseconds(o.get("updated"))
    parent, archived = word(o.get("parent")), milliseconds(o.get("archived"))
    whose = Role.CHILD if parent else Role.MACHINE if o.get("headless") else ""
    yield from facts(session, created, cwd=o.get("directory"), version=o.get("version"), parent=parent, role=whose)
    yield from facts(session, updated, title=o.get("title"))
    yield from facts(session, archived, archived="yes" if archived else "")
    if o.get("taken_back"):
        yield Event(Kind.END, session, updated, word=Reason.INTERRUPTED, source="revert")


def _message(o: dict[str, Any]) -> Iterator[Event]:
    """Read one message: an answer of the model, or a prompt. A command of the user's own is no turn."""
    if o.get("own"):
        return
    session, turn = word(o.get("session")), word(o.get("turn"))
    created, begun = milliseconds(o.get("created")), milliseconds(o.get("begun"))
    answer = o.get("role") == "assistant"
    if begun or not answer:
        who = "agent" if o.get("synthetic") or o.get("auto") else "user"
        yield Event(Kind.PROMPT, session, begun or created, word=who, turn=turn, source="user message")
    if answer:
        yield from facts(session, created, model=o.get("model"), tokens=amount(o.get("tokens")))
        doing = Reason.COMPACTING if o.get("prompt") == "compaction" else Reason.MODEL
        yield Event(Kind.PROGRESS, session, created, word=doing, turn=turn, order=1, source="assistant message")
        yield from _outcome(o, session, turn)


def _outcome(o: dict[str, Any], session: str, turn: str) -> Iterator[Event]:
    """Read what has become of an answer: the next step follows, or it is handed back. A compaction may still follow."""
    completed, finish = milliseconds(o.get("completed")), word(o.get("finish"))
    at = milliseconds(o.get("finished")) or completed
    match o:
        case _ if not at:
            return
        case {"error": str(error)}:
            yield Event(Kind.END, session, at, word=_error(error, o.get("status")), turn=turn, source=error)
        case {"refused": 1}:
            yield Event(Kind.ANSWER, session, at, word=Reason.INTERRUPTED, turn=turn, source="refused")
        case {"finish": "tool-calls" | "unknown"} | {"prompt": "compaction", "auto": 1}:
            yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, turn=turn, order=1, source=f"finish {finish}")
        case _ if not finish:  # Esc in the pause before another try
            yield Event(Kind.ANSWER, session, at, word=Reason.INTERRUPTED, turn=turn, source="no finish")
        case _:
            said = Reason.QUESTION if asks(word(o.get("said"))) else Reason.FINISHED
            yield Event(Kind.ANSWER, session, at, word=said, turn=turn, source=f"finish {finish}")


def _error(name: str, status: object) -> Reason:
    if name == "MessageAbortedError":
        return Reason.INTERRUPTED
    if name == "ProviderAuthError" or status in (401, 403):
        return Reason.LOGIN
    return Reason.LIMIT if status in (402, 429) else Reason.ERROR


TOOLS = {"bash": "shell-tool", "question": "question", "plan_enter": "question", "plan_exit": "plan"}


def _call(o: dict[str, Any]) -> Iterator[Event]:
    """Read one call of a tool. One that shows something of its work, or has ended, asks no more.

    The session of a subagent is put away with the call that it worked for.
    """
    session, tool, key, turn = (word(o.get(k)) for k in ("session", "tool", "call", "turn"))
    began, ended, shown = (milliseconds(o.get(k)) for k in ("began", "ended", "shown"))
    what, source = TOOLS.get(tool, "tool"), f"tool {tool}"
    if began:
        command = word(o.get("command")) if what == "shell-tool" else ""
        yield Event(Kind.OPENED, session, began, key, what, text=command, source=source)
        yield Event(Kind.PROGRESS, session, began, word=Reason.TOOL, turn=turn, order=2, source=source)
    if ended or shown:
        yield Event(Kind.CLOSED, session, ended or shown, ASK_OF + key, "permission", source=source)
    if ended:
        yield Event(Kind.CLOSED, session, ended, key, what, source=source)
        yield Event(Kind.PROGRESS, session, ended, word=Reason.MODEL, turn=turn, order=2, source=source)
    if ended and word(o.get("child")):
        yield Event(Kind.FACT, o["child"], ended, "archived", "yes", source=source)


def _next_engine(o: dict[str, Any]) -> Iterator[Event]:
    yield Event(Kind.UNKNOWN, word(o.get("session")), 0.0, word=f"session_message {word(o.get('kind'))}")


ROWS = {"session": _session, "message": _message, "call": _call, "next": _next_engine}

# -- before 1.2: storage/{session,message,part}/*/*.json ---------------------------------------------------------------


def read_session(record: Record) -> Iterator[Event]:
    """Read a session's document."""
    o = decode(record)
    return _session({**o, **part(o, "time"), "parent": o.get("parentID"),
                     "taken_back": part(o, "revert").get("messageID")})


def read_message(record: Record) -> Iterator[Event]:
    """Read a message's document. It does not tell who sent a prompt, nor whether that waits or wants no answer."""
    o = decode(record)
    error = part(o, "error")
    return _message({
        **part(o, "time"), "session": o.get("sessionID"), "role": o.get("role"), "finish": o.get("finish"),
        "turn": o.get("parentID") or o.get("id"), "prompt": "compaction" if o.get("summary") is True else "",
        "error": error.get("name"), "status": part(error, "data").get("statusCode"),
        "model": o.get("modelID"), "tokens": part(o, "tokens").get("total"),
    })


def read_part(record: Record) -> Iterator[Event]:
    """Read a part's document: of a call, as the others say no more than their message."""
    o = decode(record)
    state, session = part(o, "state"), word(o.get("sessionID"))
    times, command = part(state, "time"), word(part(state, "input").get("command"))
    if o.get("type") != "tool":
        return
    yield from _call({
        "session": session, "tool": o.get("tool"), "call": o.get("callID"), "command": command[:80],
        "began": times.get("start"), "ended": times.get("end"), "child": part(state, "metadata").get("sessionId"),
        "shown": record.mtime * 1000 if "metadata" in state else 0,
    })
    if REFUSED.match(word(state.get("error"))):
        yield Event(Kind.END, session, milliseconds(times.get("end")), word=Reason.INTERRUPTED, source="refused")


REFUSED = re.compile(
    r"(Error: )?The user (rejected permission to use this specific tool call\.|dismissed this question)")

# -- log/*.log ---------------------------------------------------------------------------------------------------------

#: A line, and one of the time when each start had a log of its own, whose times are cut to seconds.
LINE = re.compile(r"timestamp=(?P<at>\S+) level=\w+ run=(?P<run>\w+) (?P<rest>.*)")
OLD_LINE = re.compile(r"[A-Z]+ +(?P<at>\d{4}-\S+) \+\d+ms (?P<rest>.*)")
CUT = 0.999

SESSION = re.compile(r"\bsession(?:\.id|ID)=(ses_\w+)")
BEGINS = re.compile(r"\bcreating instance\b")
ENDS = re.compile(r"\bexiting loop\b")
FAILS = re.compile(r'message="stream error"(?!.* small=true)')
ASKS = re.compile(
    r"message=asking id=per_|service=permission .* asking$|service=permission .*action=\{[^{}]*\"ask\"[^{}]*\} eval")


def read_log(record: Record) -> Iterator[Event]:
    """Read one line of a log: a run begins, asks, or works on a session, whose turn fails or is over."""
    line = record.data.decode(errors="replace")
    found = LINE.match(line) or OLD_LINE.match(line)
    if found is None:
        return  # one of the lines of an error
    at, rest, old = when(found["at"]), found["rest"], found.re is OLD_LINE
    run = PurePath(record.path).stem if old else found["run"]
    if BEGINS.search(rest):
        yield Event(Kind.RUN, run, at, word="began")
    if ASKS.search(rest):
        yield Event(Kind.RUN, run, at, str(record.offset), "asks")
    if named := SESSION.search(rest):
        yield Event(Kind.FACT, named[1], at, "run", run, order=record.offset)
        if FAILS.search(rest):
            yield Event(Kind.PROGRESS, named[1], at, word=Reason.RETRYING, source="stream error")
        if ENDS.search(rest):
            yield Event(Kind.END, named[1], at + CUT * old, source="exiting loop")


# -- small readings ----------------------------------------------------------------------------------------------------


# -- processes ---------------------------------------------------------------------------------------------------------

#: What its program does besides running sessions. It also is the JavaScript runtime of what it starts.
OTHER_COMMANDS = frozenset({
    "add", "agent", "attach", "auth", "completion", "db", "debug", "export", "import", "install", "mcp", "models",
    "plug", "plugin", "pm", "providers", "session", "stats", "uninstall", "upgrade", "x",
})
OTHER_OPTIONS = frozenset({"--help", "-h", "--version", "-v", "--stdio"})
SERVERS = frozenset({"acp", "serve", "web"})
LEVELS = frozenset({"DEBUG", "INFO", "WARN", "ERROR"})


def command(p: Process) -> str | None:
    """Return which of OpenCode's commands a process is, "" for the terminal; None if it is not OpenCode."""
    if (p.called() if p.cmdline else p.name) not in ("opencode", "opencode-cli"):
        return None
    return next((a for a in p.cmdline[1:] if not a.startswith("-") and a not in LEVELS), "")


def is_main(p: Process) -> bool:
    """Tell whether a process is OpenCode itself, running sessions."""
    what = command(p)
    if what is None or what in OTHER_COMMANDS or what.endswith((".js", ".mjs", ".cjs")):
        return False
    return not OTHER_OPTIONS & set(p.cmdline[1:])


def owns(p: Process, session: Session) -> int:
    """Tell how likely a process runs a session: one in its folder, else a server, which works for all folders."""
    cwd = session.fact("cwd")
    if not is_main(p) or not cwd:
        return 0
    return 2 if p.cwd in ("", cwd) else int(command(p) in SERVERS)


def is_tool(p: Process) -> bool:
    """Tell whether a process may run for a tool: whatever is neither its own nor makes its snapshots."""
    return p.name not in ("opencode", "git", "npm", "npm list")


def role(p: Process) -> Role | None:
    """Tell whose run it is by its command line: a run of either kind may go on with any session."""
    if not is_main(p):
        return None
    return Role.MACHINE if command(p) in ("run", "github") else Role.PERSON


def unasked(p: Process) -> bool:
    """Tell whether a process was started to approve all by itself."""
    return bool({"--auto", "--yolo", "--dangerously-skip-permissions"} & set(p.cmdline))


def home(environ: Mapping[str, str], user_home: str) -> str:
    """Return the folder of its database: named by a variable, else below the user's folder for data."""
    folder = f"{environ.get('XDG_DATA_HOME') or f'{user_home}/.local/share'}/opencode"
    return str(PurePath(folder, environ.get("OPENCODE_DB") or DATABASES[0]).parent)


#: Builds that are no release have a database of their own.
DATABASES = ("opencode.db", "opencode-dev.db", "opencode-local.db")

OPENCODE = Agent(
    name="opencode",
    label="OpenCode",
    home=home,
    sources=(
        *(Source(name, Shape.DATABASE, read_row, queries=QUERIES) for name in DATABASES),
        Source("log/*.log", Shape.LINES, read_log, side=True),
        *(Source(f"storage/{kind}/*/*.json", Shape.DOCUMENT, read, until=DATABASES[0])
          for kind, read in (("session", read_session), ("message", read_message), ("part", read_part))),
    ),
    main=is_main,
    owns=owns,
    tool=is_tool,
    role=role,
    unasked=unasked,
    single=True,
    several=lambda p: command(p) in SERVERS,
    evidence=("database, before 1.2 a file per message", "logs: which run asks, and which process it is", "processes"),
    blind=(
        "where its logs go to the screen (`--print-logs`): approvals of anything but a command",
        "that a web page or a tool server was approved, until it answers",
        "that its user has it approve everything",
    ),
)
