"""The table of hooks: for each agent, which events are asked for, what each means, and where they are set up. Pure.

Only what the history does not tell, or tells late, is asked for, by names that versions have known for long: some
agents refuse a whole file for one event that they do not know. A row holds names and words, never texts: what it does
not name changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from island.agents.base import moved_by

#: What the command lines of island's hooks hold, whatever folder the command lies in, and whichever it is.
MARK = "island/hooks/hook."


def is_marked(text: str) -> bool:
    """Tell whether a text names island's command, by a path of any system, quoted or not."""
    return MARK in re.sub(r"\\+", "/", text)


class Means(StrEnum):
    """What a call of a hook means for the turn."""

    PROMPT = "prompt"  # a turn began
    PROGRESS = "progress"  # it goes on: what was asked has been answered
    RUNS = "runs"  # a tool runs, or ran: what a call of it asked has been answered. Whose it is, it does not say
    RETRY = "retry"  # it goes on after an error
    ASK = "ask"  # a dialog is open
    STOP = "stop"  # it is over, as far as the agent knows
    FAILURE = "failure"  # it stopped short: an error
    CHILD = "child"  # a child of the session went on; of the session itself it says nothing
    FREE = "free"  # the prompt is free; why, others must tell


@dataclass(frozen=True, slots=True)
class Call:
    """One event that is asked for.

    matcher: a pattern of what the payload holds in `field`; the others are passed over. It is written into the agent's
    file where that agent knows such a matcher (`told`), else the reader alone keeps to it.
    """

    event: str
    means: Means
    matcher: str = ""
    field: str = ""
    told: bool = False

    def takes(self, event: str, fields: Mapping[str, object]) -> bool:
        """Tell whether this is such a call."""
        said = str(fields.get(self.field))
        return event == self.event and (not self.matcher or re.fullmatch(self.matcher, said) is not None)


class Form(StrEnum):
    """How an agent's hooks are written down."""

    GROUPS = "groups"  # JSON, {"hooks": {EVENT: [{"matcher", "hooks": [ENTRY]}]}}: Claude Code and its kin
    ENTRIES = "entries"  # JSON, {"hooks": {EVENT: [ENTRY]}}
    TABLES = "tables"  # TOML, [[hooks]]
    OWN = "own"  # a file of island's own


class Shell(StrEnum):
    """What an agent runs a command line with."""

    SH = "sh"
    CMD = "cmd"
    POWERSHELL = "powershell"
    EITHER = "bash or powershell"
    NONE = "none"  # it starts the program itself


@dataclass(frozen=True, slots=True)
class Windows:
    """How an agent's row differs on Windows: the shell, and what else stands in an entry.

    command: the key of the command, if it is another one there.
    """

    shell: Shell
    entry: Mapping[str, object] = field(default_factory=dict)
    command: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """One agent's row.

    file: below the agent's home, or below `home` if its settings lie elsewhere; form: how it is written; entry: what
    stands in each entry beside the command, which goes to its key `command`; head: what a file needs that begins with
    island; text: of a file that is a program, with HOOK for the command's words; trust: what the user must still do;
    since: the oldest version that was seen to take it. Older ones may refuse the whole file for one unknown event;
    instead: files beside it (JSON, events at the top) whose hooks of an event run instead of those in it;
    windows: what differs there, None if it is not known with which shell the agent runs its hooks there.
    """

    file: str
    form: Form
    calls: tuple[Call, ...]
    entry: Mapping[str, object]
    command: str = "command"
    head: Mapping[str, object] | None = None
    trust: str = ""
    since: str = ""
    text: str = ""
    instead: tuple[str, ...] = ()
    home: Callable[[Mapping[str, str], str], str] | None = None
    windows: Windows | None = None
    shell: Shell = Shell.SH

    def call(self, event: str, fields: Mapping[str, object]) -> Call | None:
        """Return which of the calls this is, if any."""
        return next((call for call in self.calls if call.takes(event, fields)), None)

    def made(self, event: str, payload: Mapping[str, object]) -> bool:
        """Tell whether the agent runs the command at this event."""
        return any(c.event == event and (not c.told or c.takes(event, payload)) for c in self.calls)


#: OpenCode runs no commands at its events: this plugin does.
PLUGIN = """\
// Tells island (the tray icon) which event of which session came. Made by `island hooks install`; remove it there.
import { spawn } from "node:child_process"

const EVENTS = EVENT_NAMES
const [PROGRAM, ...BEFORE] = HOOK

export const Island = async () => ({
  event: async ({ event }) => {
    if (!EVENTS.includes(event.type)) return
    try {
      const env = { ...process.env, ISLAND_AT: (Date.now() / 1000).toFixed(3) }
      const stdio = ["pipe", "ignore", "ignore"]
      const child = spawn(PROGRAM, [...BEFORE, "opencode", event.type], { env, stdio, windowsHide: true })
      child.on("error", () => {})
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event.properties))
      child.unref()
    } catch {}
  },
})
"""


def _opencode_settings(environ: Mapping[str, str], user_home: str) -> str:
    base = environ.get("XDG_CONFIG_HOME") or f"{user_home}/.config"
    return environ.get("OPENCODE_CONFIG_DIR") or f"{base}/opencode"


#: Tools of Gemini CLI that its own policy lets run unasked: their end answers no dialog, which a subagent may show.
NEVER_ASK = ("cli_help", "codebase_investigator", "complete_task", "get_internal_docs", "glob", "google_web_search",
             "grep_search", "invoke_agent", "list_directory", "list_mcp_resources", "read_file", "read_many_files",
             "read_mcp_resource", "search_file_content", "tracker_.*", "update_topic", "write_todos")

RESTART = "sessions that run now take it up when they are started anew"

HOOKS: Mapping[str, Hooks] = {
    "claude": Hooks(
        "settings.json", Form.GROUPS, entry={"type": "command", "timeout": 5, "async": True},
        calls=(
            Call("PermissionRequest", Means.ASK),
            Call("Stop", Means.STOP),
            Call("SubagentStop", Means.CHILD),
        ),
        trust=RESTART, since="2.0.50",
        windows=Windows(Shell.EITHER),
    ),
    "codex": Hooks(
        "hooks.json", Form.GROUPS, entry={"type": "command", "timeout": 5},
        calls=(
            Call("PermissionRequest", Means.ASK),
            Call("Stop", Means.STOP),
        ),
        trust='Codex runs no hook that you have not trusted: its next start says "Hooks need review"; look at them '
              'there, or choose "Trust all and continue"',
        windows=Windows(Shell.CMD),
    ),
    "copilot": Hooks(
        "hooks/island.json", Form.OWN, entry={"type": "command", "timeoutSec": 5}, command="bash",
        head={"version": 1},
        calls=(
            Call("userPromptSubmitted", Means.PROMPT),
            Call("errorOccurred", Means.RETRY, "true", "recoverable"),
        ),
        trust=RESTART,
        windows=Windows(Shell.POWERSHELL, command="powershell"),
    ),
    "cursor": Hooks(
        "hooks.json", Form.ENTRIES, entry={}, head={"version": 1},
        calls=(
            Call("beforeSubmitPrompt", Means.PROMPT),
            Call("stop", Means.STOP),
        ),
        trust="Cursor takes up the file at once; approvals stay invisible, as no hook tells of them",
    ),
    "droid": Hooks(
        "settings.json", Form.GROUPS, entry={"type": "command", "timeout": 5},
        calls=(
            Call("UserPromptSubmit", Means.PROMPT),
            Call("Notification", Means.ASK, "permission_prompt|elicitation_dialog", "notification_type", told=True),
            Call("Stop", Means.STOP),
        ),
        trust="Droid shows new hooks for review under /hooks; " + RESTART,
        instead=("hooks.json", "hooks/hooks.json"),
    ),
    "gemini": Hooks(
        "settings.json", Form.GROUPS, entry={"type": "command", "name": "island", "timeout": 5000},
        calls=(
            Call("BeforeAgent", Means.PROMPT),
            Call("Notification", Means.ASK, "ToolPermission", "notification_type", told=True),
            Call("AfterTool", Means.RUNS, rf"^(?!({'|'.join(NEVER_ASK)})$).+", "tool_name", told=True),
            Call("AfterAgent", Means.STOP),
        ),
        trust=RESTART,
        windows=Windows(Shell.POWERSHELL),
    ),
    "kimi": Hooks(
        "config.toml", Form.TABLES, entry={"timeout": 5}, home=moved_by("KIMI_CODE_HOME", ".kimi-code"),
        calls=(  # an event that it does not know keeps it from starting
            Call("PermissionRequest", Means.ASK),
            Call("StopFailure", Means.FAILURE),
        ),
        trust=RESTART,
        windows=Windows(Shell.CMD),
    ),
    "opencode": Hooks(
        "plugin/island.js", Form.OWN, entry={}, home=_opencode_settings, text=PLUGIN,
        calls=(  # where 1.0 finds a folder of the newer name, `plugins`, it does not start
            Call("session.status", Means.RETRY, "retry", "status.type"),
            Call("permission.asked", Means.ASK),
            Call("permission.updated", Means.ASK),  # its name before 1.1
            Call("permission.replied", Means.PROGRESS),
            Call("question.asked", Means.ASK),
            Call("question.replied", Means.PROGRESS),
            Call("question.rejected", Means.PROGRESS),
            Call("session.error", Means.FAILURE),
            Call("session.idle", Means.STOP),
        ),
        trust=RESTART,
        windows=Windows(Shell.NONE),
    ),
    "qwen": Hooks(
        "settings.json", Form.GROUPS, entry={"type": "command", "name": "island", "timeout": 5000},
        calls=(
            Call("UserPromptSubmit", Means.PROGRESS),
            Call("PermissionRequest", Means.ASK),
            Call("PreToolUse", Means.RUNS),
            Call("Stop", Means.STOP),
            Call("StopFailure", Means.FAILURE),
            Call("SubagentStop", Means.CHILD),
            Call("Notification", Means.FREE, "idle_prompt", "notification_type", told=True),
        ),
        trust=RESTART, since="0.15.6",
        windows=Windows(Shell.POWERSHELL, {"shell": "powershell"}),
    ),
}


def rows(platform: str) -> Mapping[str, Hooks]:
    """Return the rows as they are on a platform: on Windows, of those agents alone whose shell is known there."""
    return HOOKS if platform != "win32" else {
        name: replace(row, shell=w.shell, entry={**row.entry, **w.entry}, command=w.command or row.command)
        for name, row in HOOKS.items() if (w := row.windows)}
