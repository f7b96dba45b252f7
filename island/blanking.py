"""Take the prose out of what an agent wrote, and leave what its reader reads. Pure.

What is kept is named, so what is not known is blanked: keys that are names, numbers, times, ids under keys
that say so, and single words under keys whose values are words of a vocabulary (a type, a status, a model).
Any other text becomes "[23 chars]", with the marks by which readers tell one kind of text from another: a
leading tag, the ids and the status of a task's notification, an interrupt, a closing question mark.

The working folder becomes "/project": its path holds the user's name and often a client's. All sessions of
one report are of one folder, and nothing but a comparison of folders is read from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import orjson

from island.model import file_name

PROJECT = "/project"
DEEP = 64  # levels of nesting: what an agent writes has fewer than ten

#: Keys of ids, and what may stand there.
ID_KEYS = re.compile(r"(^|_)(id|ids|uuid|uuids)$|(Id|Ids|ID|IDs|Uuid|Uuids|UUID)$")
ID = re.compile(r"[A-Za-z0-9][\w.:#-]{0,79}", re.ASCII)
#: Keys that may name a person or a machine: nothing that stands there is kept.
PERSONAL = re.compile(r"(?i)user(?!type$)|account|org|email|login|owner|author|machine|device|host")

#: Keys whose values are words of a vocabulary, by their last part.
WORD_KEYS = re.compile(
    r"(?:^|_|(?<=[a-z]))(type|kind|status|state|reason|mode|source|origin|role|phase|event|operation|subtype|"
    r"decision|trigger|version|model|entrypoint|originator|level|error|info|effort|tool|start|policy|finish|"
    r"sandbox_permissions|visibility)$",
    re.IGNORECASE,
)
WORD = re.compile(r"[A-Za-z0-9<][\w.:+<>-]{0,39}", re.ASCII)
#: What a live record says that it waits for: a few words of the agent's own.
PHRASE_KEYS = frozenset({"waitingFor"})
PHRASE = re.compile(r"[a-z]{1,12}( [a-z]{1,12}){0,2}")
#: The name of a tool stands beside the type of its call; any other name may be a person's.
CALL = re.compile(r"tool|call|function", re.IGNORECASE)
#: The name of a kind of error.
FAILURE = re.compile(r"[A-Z][A-Za-z]{1,40}Error", re.ASCII)
#: Names that an agent itself gives to a kind of session, or to what ends one.
TAGS = frozenset({"exec", "complete_task"})
CONNECTED = "mcp__"  # a tool of a connected server bears the server's name

FOLDER_KEYS = frozenset({"cwd", "workdir", "work_dir", "workingDirectory", "working_directory"})
HASH_KEYS = frozenset({"projectHash"})
PROJECT_HASH = sha256(PROJECT.encode()).hexdigest()
KEY = re.compile(r"[A-Za-z_$][\w$-]{0,59}|event\.(name|timestamp)", re.ASCII)
UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)?")

#: A line of a document of keys and values that is no JSON, and the values that tell nothing.
KEYED = re.compile(r"([a-z_]{1,40}): (\S.*)")
PLAIN = re.compile(r"true|false|\d+")

#: A line of a log: its head, and what is kept of the rest, words of the agent's own and pairs of a key and a value.
LOGGED = re.compile(r"(timestamp=\S+|[A-Z]{4,5} +\d{4}-\S+ \+\d+ms) (.*)")
LOG_WORDS = frozenset({
    "asking", "creating instance", "evaluated", "exiting loop", "loop", "process", "stream", "stream error",
})
PAIR = re.compile(r'([\w.]+)=(\{[^{}]*\}|"(?:[^"\\]|\\.)*"|\S+)')
LOG_KEYS = frozenset({"id", "level", "run", "service", "session.id", "sessionID", "small"})
ACTION = re.compile(r'"action":"(\w+)"')

#: Keys of what a tool was called with, and of the arguments in it that readers look for.
CALLED_WITH = frozenset({"input", "arguments", "args"})
ARGUMENTS = frozenset({"sandbox_permissions", "shell_id", "task_id", "mode", "kind"})

#: What readers know a text by: how it begins, what a notification is about, and whether it asks.
OPENINGS = (
    "[Request interrupted by user for tool use]", "[Request interrupted by user]",
    "[Request interrupted by user", "Stop hook feedback",
    "Tool execution cancelled", "Error: Tool execution cancelled by user", "Error: Request was aborted.", "Error: ",
    "Request cancelled by user", "Request interrupted by user", "BYOK Error: ", "API Validation Error: ",
    "The AI model timed out.", "The upstream AI model provider is currently overloaded.",
    "Request blocked by provider safety checks.", "Credit limit reached.", "You have reached the credit limit ",
    "Your previous response ", "Continue.",
    "The user rejected permission to use this specific tool call.", "The user dismissed this question",
    "Request cancelled.", "User cancelled the request.", "Agent execution stopped", "[Operation Cancelled]",
    "[API Error: API key", '[API Error: {"error":{"code":401', '[API Error: {"error":{"code":403',
    "[API Error: Request had invalid authentication", "[API Error: Permission denied",
    "[API Error: You have exhausted", "[API Error: You exceeded", "[API Error: Quota exceeded",
    "[API Error: Resource has been exhausted", '[API Error: {"error":{"code":429', "[API Error",
    "The session has reached the maximum number of turns", "The model returned ", "The model response was blocked",
    "Model response was truncated", "Invalid stream", "A potential loop was detected.",
    "[System: ", "System: ", "I ran the following shell command", "- **Workspace Directories:**",
    "User has manually exited Plan Mode.", "Here is the user's editor context",
    "Here is a summary of changes in the user's editor context",
)
MOVED = re.compile(r"Command moved to background \(PID: \d{1,9}\)")
TAG = re.compile(r"<[a-z][a-z_-]{0,31}>")
WORKSPACE = "**Workspace Directories:**\n  - "
NOTIFICATION = "<task-notification>"
NOTIFIED = re.compile(r"<(task-id|tool-use-id|status)>[A-Za-z0-9][\w-]{0,63}</\1>", re.ASCII)
QUESTION = re.compile(r"[?？؟][ \t\r\n*_`\"')\]>»”]*\Z")  # noqa: RUF001 - real question marks

#: Which shell a result is of, said last, and whether it goes on.
SHELL = re.compile(r"<[^<>]*\b(?:shellId|id): ([\w.-]{0,63}\w)[^<>]*>\s*\Z", re.ASCII)
GOES_ON, STARTED = re.compile(r"<command started in |is (?:still |already )?running"), "command started in "

#: What this module itself puts in place of a text: it is left alone when it is blanked again.
BLANKED = re.compile(
    r" ?(?:" + "|".join(map(re.escape, OPENINGS)) + "|" + MOVED.pattern + "|" + TAG.pattern + r")?"
    r"(?:<[a-z-]+>[\w-]{1,64}</[a-z-]+>)*(?:" + re.escape(f"{WORKSPACE}{PROJECT}\n") + r")?\[\d+ chars\]\??"
    r"(?:<(?:" + STARTED + r")?shellId: [\w.-]{1,64}>)?", re.ASCII,
)


def blank(record: bytes) -> bytes:
    """Return a JSON record without its prose; what is no JSON becomes a mark of its length."""
    try:
        value = orjson.loads(record)
    except orjson.JSONDecodeError:
        return _logged(record) or _keyed(record) or f"[{len(record)} bytes]".encode()
    return orjson.dumps(_value(value, "", {}, 0))


def _logged(record: bytes) -> bytes:
    """Blank a line of a log: what is not named is left out."""
    line = LOGGED.fullmatch(record.decode(errors="replace"))
    if line is None:
        return b""
    head, rest = line.groups()
    ends = (words for words in LOG_WORDS if rest.endswith(f" {words}"))
    kept = (_pair(key, value) for key, value in PAIR.findall(rest))
    return " ".join([head, *filter(None, kept), max(ends, key=len, default="")]).rstrip().encode()


def _pair(key: str, value: str) -> str:
    """Return a pair of a log, if it tells nothing but what a reader looks for."""
    if key == "action" and (action := ACTION.search(value)):
        return f'action={{"action":"{action[1]}"}}'
    known = value.strip('"') in LOG_WORDS if key == "message" else key in LOG_KEYS and WORD.fullmatch(value)
    return f"{key}={value}" if known else ""


def _keyed(record: bytes) -> bytes:
    """Blank a document of lines `key: value`; what goes on over several lines is left out."""
    lines = record.decode(errors="replace").splitlines()
    pairs = [m for line in lines if (m := KEYED.fullmatch(line))]
    if not pairs or not KEYED.fullmatch(lines[0]):
        return b""
    blanked = (v if PLAIN.fullmatch(v) else _string(v, k, {}, 0) for k, v in (m.groups() for m in pairs))
    return "".join(f"{m[1]}: {value}\n" for m, value in zip(pairs, blanked, strict=True)).encode()


def blank_text(text: str) -> str:
    """Return a mark in place of a text: its length, and what readers look for in it."""
    if not text or BLANKED.fullmatch(text):
        return text
    bare = text.lstrip()
    space = " " if bare != text else ""
    size = f"[{len(text)} chars]" + ("?" if QUESTION.search(text) else "")
    return space + _opening(bare) + size + _shell(text)


def _shell(text: str) -> str:
    """Return which shell a text is of, in as few words as a reader needs."""
    told = SHELL.search(text)
    return f"<{STARTED if GOES_ON.search(told[0]) else ''}shellId: {told[1]}>" if told else ""


def _opening(text: str) -> str:
    """Return how a text begins, as far as a reader may know it by that."""
    for opening in OPENINGS:
        if text.startswith(opening):
            return opening
    tag = TAG.match(text)
    if tag is None:
        moved = MOVED.match(text)
        return moved[0] if moved else ""
    notified = NOTIFIED.finditer(text) if tag[0] == NOTIFICATION else ()
    folder = f"{WORKSPACE}{PROJECT}\n" if WORKSPACE in text else ""
    return tag[0] + "".join(m[0] for m in notified) + folder


def _value(value: Any, key: str, around: dict[str, Any], depth: int) -> Any:
    """Blank any JSON value; `key` is the key it stands under, `around` the object that it stands in."""
    if depth > DEEP:
        return None
    match value:
        case dict() | list() if key in CALLED_WITH and "hookType" not in around:
            return _strict(value, key, depth)
        case dict():
            return _object(value, depth)
        case list():
            return [_value(item, key, around, depth + 1) for item in value]
        case str():
            return _string(value, key, around, depth)
        case _:
            return value


def _object(value: dict[str, Any], depth: int) -> dict[str, Any]:
    blanked: dict[str, Any] = {}
    for key, item in value.items():
        name = key if KEY.fullmatch(key) or UUID.fullmatch(key) else blank_text(key)
        while name in blanked:
            name += "+"  # two keys of one length are still two
        blanked[name] = _value(item, key, value, depth + 1)
    return blanked


def _string(text: str, key: str, around: dict[str, Any], depth: int) -> str:
    if key in FOLDER_KEYS and text:
        return PROJECT
    if key in HASH_KEYS and text:
        return PROJECT_HASH
    if _kept(text, key, around):
        return text
    if text[:1] in ("{", "["):
        return _packed(text, key, depth)
    return blank_text(text)


def _strict(value: Any, key: str, depth: int) -> Any:
    """Blank what a tool was called with: all of it may be the user's own, but for what readers look for."""
    if depth > DEEP:
        return None
    match value:
        case dict():
            return {name if KEY.fullmatch(name) else blank_text(name): _strict(item, name, depth + 1)
                    for name, item in value.items()}
        case list():
            return [_strict(item, key, depth + 1) for item in value]
        case str():
            return value if key in ARGUMENTS and ID.fullmatch(value) else blank_text(value)
        case _:
            return value


def _kept(text: str, key: str, around: dict[str, Any]) -> bool:
    if TIME.fullmatch(text) or (key == "name" and FAILURE.fullmatch(text)):
        return True
    if PERSONAL.search(key):
        return False
    if ID_KEYS.search(key):
        return ID.fullmatch(text) is not None
    if key in PHRASE_KEYS:
        return PHRASE.fullmatch(text) is not None
    if key == "name" and (text in TAGS or _is_call(around)):
        return WORD.fullmatch(text) is not None and not text.startswith(CONNECTED)
    return (key == "event.name" or WORD_KEYS.search(key) is not None) and WORD.fullmatch(text) is not None


def _is_call(around: dict[str, Any]) -> bool:
    return "arguments" in around or "args" in around or CALL.search(str(around.get("type", ""))) is not None


def _packed(text: str, key: str, depth: int) -> str:
    """Blank JSON that stands in a string, as the arguments of a call do."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return blank_text(text)
    return orjson.dumps(_value(value, key if key in CALLED_WITH else "", {}, depth + 1)).decode()


# -- command lines ---------------------------------------------------------------------------------------

PROGRAMS = frozenset({"node", "bun", "deno", "python", "python3", "bash", "zsh", "sh", "dash", "fish"})
#: Subcommands by which processes of agents are told apart; no others are kept, they may be a prompt.
SUBCOMMANDS = frozenset({
    "agents", "app-server", "attach", "bg-pty-host", "bg-spare", "daemon", "doctor", "exec", "logs", "mcp",
    "mcp-server", "proto", "resume", "run", "serve", "stop", "update",
})
SECRET = re.compile(r"(?i)key|token|secret|pass|auth|credential")  # such an option's value may look like an id
OPTION = re.compile(r"-{1,2}[A-Za-z][A-Za-z-]{0,30}|--max-old-space-size=\d{1,9}")


def blank_arguments(arguments: Sequence[str]) -> list[str]:
    """Return a command line without its prose: the program, options, subcommands and ids of sessions."""
    interpreted = bool(arguments) and file_name(arguments[0]) in PROGRAMS and arguments[1:2] != ["-c"]
    script = next((n for n, a in enumerate(arguments) if n and not OPTION.fullmatch(a)), 0) if interpreted else 0
    pairs = [*zip(arguments, ("", *arguments), strict=False)]  # each with the one before it
    return [_program(a) if n in (0, script) and not SECRET.search(before) else _argument(a, before)
            for n, (a, before) in enumerate(pairs)]


def _program(argument: str) -> str:
    name = file_name(argument)
    return name if WORD.fullmatch(name) else blank_text(argument)


def _argument(argument: str, before: str) -> str:
    if SECRET.search(before) and OPTION.fullmatch(before):
        return blank_text(argument)
    if argument in SUBCOMMANDS or OPTION.fullmatch(argument) or UUID.fullmatch(argument):
        return argument
    marks = (("shell-snapshots" in argument, "shell-snapshots "), (argument.startswith("eval "), "eval "),
             ("_bgpids_file=" in argument, "_bgpids_file="), ("pgrep -g 0 >" in argument, "pgrep -g 0 >"))
    return next((mark for there, mark in marks if there), "") + blank_text(argument)
