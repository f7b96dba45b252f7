"""Warp's own agent, in the terminal, its text interface and `oz`: what the client keeps to restore its sessions.

A prompt has a row with its time and how its first answer came out; a conversation's row is written after each answer
of the model, and nothing says which one was the last: a conversation that stays quiet has come to rest. Commands that
run meanwhile are told by their processes, and by their blocks when they have ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from island.agents.base import Agent, Query, Shape, Source
from island.agents.reading import decode, when, word
from island.model import Doubt, Event, Kind, Process, Reason, Record, Role, Session

# -- warp.sqlite ---------------------------------------------------------------------------------------------------

#: The newest prompt of each conversation of today.
PROMPTS = """
select conversation_id as id, exchange_id as turn, start_ts as began, output_status as status,
  working_directory as cwd, model_id as model, max(number) as number
from (select id as number, conversation_id, exchange_id, start_ts, output_status, working_directory, model_id
  from ai_queries order by id desc limit 30)
where start_ts > datetime(:moment - 43200, 'unixepoch') group by conversation_id
"""
#: What changes with an answer of the model, or with the end of a command that it had run, and with nothing else. What
#: was written more than a minute ago carries its time: it is old at first sight, and newer than nothing later on.
ANSWERS = """
select c.conversation_id as id, json_extract(c.conversation_data, '$.parent_conversation_id') as parent,
  json_extract(c.conversation_data, '$.conversation_usage_metadata.credits_spent',
    '$.conversation_usage_metadata.context_window_usage') as used,
  b.block_id as command, c.last_modified_at >= b.completed_ts as answered,
  case when c.last_modified_at < datetime(:moment - 60, 'unixepoch') then c.last_modified_at end as at
from (select distinct conversation_id from (select conversation_id, start_ts from ai_queries order by id desc limit 30)
  where start_ts > datetime(:moment - 43200, 'unixepoch')) as q
join agent_conversations as c on c.conversation_id = q.conversation_id and json_valid(c.conversation_data)
left join (
  select json_extract(ai_metadata, '$.conversation_id') as conversation_id, block_id, completed_ts, max(number)
  from (select id as number, block_id, completed_ts, ai_metadata from blocks order by id desc limit 5)
  where json_valid(ai_metadata) and coalesce(json_extract(ai_metadata, '$.requested_command_action_id'),
    json_extract(ai_metadata, '$.action_id')) is not null group by 1) as b on b.conversation_id = c.conversation_id
"""

#: How an answer came out that is the end of its turn. "Completed" is none: the answer may call for a tool.
ENDS: Mapping[str, Reason] = {'"Cancelled"': Reason.INTERRUPTED, '"Failed"': Reason.ERROR}
KNOWN = frozenset({*ENDS, '"Pending"', '"Completed"'})

#: No single answer takes longer; the row of one that ended before anybody looked does not say when.
LONGEST = 900.0


def read_store(record: Record) -> Iterator[Event]:
    """Read one row of Warp's database."""
    o, path = decode(record), PurePath(record.path)
    session = word(o.get("id"))
    place = "tui" if path.parent.name == "tui" else "app"
    yield Event(Kind.FACT, session, 0, "surface", place, source="store")
    yield from (_prompt if o.get("query") == "prompts" else _answer)(o, session, record.mtime)


def _prompt(o: dict[str, Any], session: str, now: float) -> Iterator[Event]:
    began, turn, status = when(o.get("began")), word(o.get("turn")), word(o.get("status"))
    yield Event(Kind.PROMPT, session, began, word="user", turn=turn, source=f"query {status.lower()}")
    if status in ENDS:
        at = min(now, began + LONGEST)
        yield Event(Kind.END, session, at, word=ENDS[status], turn=turn, order=1, source=f"query {status.lower()}")
    elif status not in KNOWN:
        yield Event(Kind.UNKNOWN, session, now, word=f"status {status}")
    facts = {"cwd": word(o.get("cwd")), "model": word(o.get("model"))}
    yield from (Event(Kind.FACT, session, began, key, value, source="query") for key, value in facts.items() if value)


def _answer(o: dict[str, Any], session: str, now: float) -> Iterator[Event]:
    at = when(o["at"]) if o.get("at") else now
    if word(o.get("parent")):
        yield Event(Kind.FACT, session, at, "parent", o["parent"], source="conversation")
        yield Event(Kind.FACT, session, at, "role", Role.CHILD, source="conversation")
    if o.get("command") and not o.get("answered"):
        yield Event(Kind.PROGRESS, session, at, word=Reason.MODEL, source="command ended")
    else:
        yield Event(Kind.ANSWER, session, at, word=Reason.FINISHED, text=Doubt.QUIET, source="conversation written")


# -- processes -----------------------------------------------------------------------------------------------------

APP = re.compile(r"(?:^|/)warp(?:-(?:preview|dev|oss|terminal(?:-[a-z]+)?))?$|/Warp[^/]*\.app/Contents/MacOS/[^/]+$")
#: What the app's program is besides the app.
WORKERS = frozenset({
    "--plugin-host", "agent", "completions", "environment", "login", "logout", "mcp", "minidump-server", "model",
    "remote-server-daemon", "remote-server-proxy", "ripgrep-search", "run", "terminal-server", "whoami",
})
SHELLS = frozenset({"bash", "zsh", "fish", "sh", "dash", "nu", "pwsh", "powershell", "cmd"})


def _is_app(p: Process) -> bool:
    path = p.cmdline[0].replace("\\", "/").removesuffix(".exe") if p.cmdline else ""
    return APP.search(path) is not None


def program(p: Process) -> str:
    """Tell which of Warp's programs a process is: the app, the text interface (tui), or a headless run."""
    name, app = p.called(), _is_app(p)
    if p.cmdline[1:3] == ("agent", "run") and (app or name.partition("-")[0] == "oz"):
        return "run"
    if name.startswith("warp-tui"):
        return "tui"
    return "app" if app and not WORKERS & set(p.cmdline[1:2]) else ""


def owns(p: Process, session: Session) -> int:
    """Tell whether a process runs a conversation: each program keeps its own, and a headless run keeps none."""
    return int(program(p) in ("app", "tui") and program(p) == session.fact("surface"))


def is_tool(p: Process) -> bool:
    """Tell whether a process below Warp is more than a shell that waits."""
    return (p.called() or p.name).lstrip("-") not in SHELLS and not _is_app(p)


def role(p: Process) -> Role | None:
    """Tell a headless run by its command line: nothing else tells of it at all."""
    return Role.MACHINE if program(p) == "run" else None


#: Where the channels keep their state, by platform. Each by its name: what lies beside it is other programs'.
FOLDERS = (
    *(f".local/state/{name}" for name in ("warp-terminal", "warp-terminal-preview", "warp-terminal-tui", "warp-oss")),
    *(f"{group}Library/Application Support/dev.warp.{name}"
      for group in ("Library/Group Containers/2BBY89MBSN.dev.warp/", "")
      for name in ("Warp-Stable", "Warp-Preview", "WarpOss")),
    *(f"AppData/Local/warp/{name}/data" for name in ("Warp", "WarpPreview", "WarpOss")),
)

WARP = Agent(
    name="warp",
    label="Warp",
    home=lambda _, user_home: user_home,
    sources=tuple(
        Source(f"{folder}/{below}warp.sqlite", Shape.DATABASE, read_store,
               queries=(Query("prompts", PROMPTS), Query("answers", ANSWERS)))
        for folder in FOLDERS for below in ("", "tui/")
    ),
    main=lambda p: program(p) != "",
    owns=owns,
    tool=is_tool,
    role=role,
    nameless=True,
    evidence=("the client's database", "processes"),
    blind=(
        "permissions and questions",
        "the end of a turn is inferred from ten quiet seconds, and a model that thinks for longer looks the same",
        "retries, and a turn that is stopped after its first answer, look like an end, too",
        "of headless runs (`oz agent run`) all but their processes",
    ),
)
