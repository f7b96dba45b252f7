"""island's hook on Windows: notes that an event of an agent came, and when. Agents run it; island never imports it.

It is hook.sh again, for a system without sh and awk: the same arguments (agent, event; the agent's JSON on stdin), and
the same lines. It prints nothing, ends well whatever happens, and keeps no text.

A batch file cannot read JSON, and PowerShell starts in a third of a second. An isolated Python, with none of its
library but what it has loaded anyway, takes 10 ms of processor time; with the module `json`, which loads `re`, 20.
"""

from __future__ import annotations

import os
import sys
import time
from _json import make_scanner  # all of `json` that is needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SESSIONS = frozenset({"session_id", "sessionId", "conversation_id", "sessionID"})
WANTED = frozenset({
    "prompt_id", "turn_id", "generation_id", "agent_id", "agentId", "subagent_id", "tool_use_id", "tool_call_id",
    "tool_name", "toolName", "notification_type", "details.type", "error", "error.name", "error_type", "status",
    "status.type", "reason", "source", "trigger", "id", "requestID", "recoverable", "is_interrupt", "origin_kind",
    "origin_name",
})
SAYS = frozenset({"last_assistant_message", "prompt_response"})
TASKS = "background_tasks"

DIGITS = "0123456789"
WORD = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_" + DIGITS)
PLAIN = WORD | frozenset(".:@#+-")
NAME = WORD | frozenset(".-")

LONGEST = 256  # what is longer is no identifier
LARGEST = 1024 * 1024  # bytes of a status file, whatever an agent does

Pairs = tuple[tuple[str, object], ...]  # an object of JSON, in its order; a list of JSON is a list


class Shape:
    """How the scanner makes values: numbers stay as they are written, objects become pairs."""

    strict = False
    object_hook = None
    object_pairs_hook = tuple
    parse_float = parse_int = parse_constant = str


def line(agent: str, event: str, at: str, payload: str) -> tuple[str, str]:
    """Return the session of a payload and the line for its status file; both empty if it names none."""
    scan = make_scanner(Shape())  # type: ignore[arg-type]  # anything with these names will do
    root, _ = scan(payload.lstrip("\ufeff \t\r\n"), 0)
    kept: dict[str, str] = {}
    for name, value in words(root) if isinstance(root, tuple) else ():
        known = "session" if name in SESSIONS else name
        if (name in SESSIONS or name in WANTED) and known not in kept and is_identifier(value):
            kept[known] = value
    session = kept.get("session", "")
    if session[:1] not in WORD or not {*session} <= NAME:
        return "", ""
    told = [("agent", agent), ("event", event), *kept.items()]
    parts = [f'"at":{at}', *(f'"{name}":"{value}"' for name, value in told), *lasting(root)]
    return session, "{" + ",".join(parts) + "}\n"


def words(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """Yield what an object holds, and the objects in it, by name."""
    for key, value in pairs:
        name = "" if "." in key or len(key) > LONGEST else key
        if isinstance(value, tuple):
            yield from ((f"{name}.{inner}", word(v)) for inner, v in value if "." not in inner)
        else:
            yield name, word(value)


def word(value: object) -> str:
    """Return a value as it is written, without quotes; nothing for a list or an object."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else "null" if value is None else ""


def is_identifier(value: str) -> bool:
    """Tell whether a value can be no text of anybody's."""
    return 0 < len(value) <= LONGEST and {*value} <= PLAIN and value != "null"


def lasting(root: Pairs) -> Iterator[str]:
    """Yield how many children still run, if that is told, and whether the last words ask."""
    listed = [value for key, value in root if key == TASKS and isinstance(value, list)]
    if listed:
        yield f'"left":{sum(map(children, listed))}'
    if any(asks(word(value)) for key, value in root if key in SAYS):
        yield '"asks":true'


def children(tasks: Iterable[object]) -> int:
    """Return how many of these tasks run that are agents."""
    held = [{key: word(value) for key, value in task} for task in tasks if isinstance(task, tuple)]
    return sum(t.get("type") not in ("shell", "monitor") and t.get("status", "") in ("running", "") for t in held)


def asks(text: str) -> bool:
    """Tell whether a text ends in a question, as readers tell it."""
    return text.rstrip(" \t\r\n*_`\"')]>\xbb\u201d").endswith(("?", "\uff1f", "\u061f"))


if sys.platform == "win32":
    import _winapi

    APPEND_DATA, OPEN_ALWAYS, SHARE_ALL = 0x4, 4, 0x1 | 0x2 | 0x4

    def append(path: str, text: bytes) -> None:
        """Write at the end in one step: with this right alone, the system itself looks for the end."""
        file = _winapi.CreateFile(path, APPEND_DATA, SHARE_ALL, 0, OPEN_ALWAYS, 0, 0)
        _winapi.WriteFile(file, text)
else:
    def append(path: str, text: bytes) -> None:
        """Write at the end in one step."""
        os.write(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), text)


def main(agent: str, event: str) -> None:
    """Note a call."""
    now = os.environ.get("ISLAND_AT", "")
    at = now if now and not now.strip(DIGITS + ".") else f"{time.time():.6f}"
    session, text = line(agent, event, at, sys.stdin.buffer.read().decode("utf-8", "replace"))
    if not session:
        return
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), agent, f"{session}.jsonl")
    if not os.path.exists(path) or os.stat(path).st_size < LARGEST:
        append(path, text.encode())


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    finally:
        os._exit(0)  # whatever went wrong, and without a word
