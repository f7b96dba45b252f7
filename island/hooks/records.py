"""What a line of a hook status file means: events in registers of their own, so that no order of arrival matters. Pure.

A line holds the time, the event's name, and identifiers of the payload, as island's hook command wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from island.agents.base import Shape, Source
from island.agents.reading import decode, word
from island.hooks.rows import HOOKS, Hooks, Means
from island.model import HOOK, Event, Kind, Reason, Record

#: Words of tools, notifications and events whose dialog is more telling than a permission.
DIALOGS: Mapping[str, str] = {
    **dict.fromkeys(("AskUserQuestion", "AskUser", "ask_user_question", "ask_user", "request_user_input",
                     "elicitation_dialog", "question.asked"), "question"),
    **dict.fromkeys(("ExitPlanMode", "ExitSpecMode", "exit_plan_mode"), "plan"),
}

ERRORS: Mapping[str, Reason] = {
    **dict.fromkeys(("rate_limit", "billing_error", "quota_exceeded"), Reason.LIMIT),
    **dict.fromkeys(("authentication_failed", "oauth_org_not_allowed", "ProviderAuthError"), Reason.LOGIN),
    "MessageAbortedError": Reason.INTERRUPTED,
}

#: How an agent says in its end event that it did not end well.
ENDS: Mapping[str, Reason] = {"aborted": Reason.INTERRUPTED, "error": Reason.ERROR}

#: Agents whose children are sessions of their own, with their own files: what a child's hook says is said of it.
CHILD_SESSIONS = frozenset({"codex"})


def read(agent: str, row: Hooks, record: Record) -> Iterator[Event]:
    """Read one line of a hook status file; an event that is not asked for says nothing."""
    o = decode(record)
    at, session = o.get("at"), word(o.get("session"))
    if not session or not isinstance(at, int | float) or isinstance(at, bool):
        raise ValueError("a hook's line without session or time")
    call = row.call(word(o.get("event")), o)
    if call is None:
        return
    child = word(o.get("agent_id")).removeprefix("main")
    if child and agent in CHILD_SESSIONS:
        session, child = child, ""
    event = Event(Kind.PROGRESS, session, float(at), HOOK, Reason.MODEL, turn=_turn(o), order=record.offset,
                  source=f"hook {call.event}")
    if child:
        yield _child(call.means, event, child, o)
    elif call.means is not Means.CHILD:
        yield replace(MEANS[call.means](event, o), key=_key(row, call.means, word(o.get("tool_name"))))


def _child(means: Means, event: Event, child: str, o: dict[str, Any]) -> Event:
    """A child never touches the main turn; but its dialog is the user's to answer."""
    meant = _ask(event, o) if means is Means.ASK else event
    return _changed(meant, meant.kind, key=f"{HOOK}:{child}")


def _key(row: Hooks, means: Means, tool: str) -> str:
    """Return the key of a call; of an ask and its answer, with the tool, if the agent tells that one runs."""
    if means is Means.RUNS or (means is Means.ASK and tool and any(call.means is Means.RUNS for call in row.calls)):
        return f"{HOOK}/{tool}"
    return HOOK


def _turn(o: dict[str, Any]) -> str:
    return next((t for name in ("prompt_id", "turn_id", "generation_id") if (t := word(o.get(name)))), "")


def _changed(event: Event, kind: Kind, word: str | None = None, key: str = HOOK, number: float = -1) -> Event:
    said = event.word if word is None else word
    return Event(kind, event.session, event.at, key, said, event.turn, event.text, number, event.order, event.source)


def _prompt(event: Event, _: dict[str, Any]) -> Event:
    return _changed(event, Kind.PROMPT, "user")


def _progress(event: Event, _: dict[str, Any]) -> Event:
    return event


def _retry(event: Event, _: dict[str, Any]) -> Event:
    return _changed(event, Kind.PROGRESS, Reason.RETRYING)


def _ask(event: Event, o: dict[str, Any]) -> Event:
    words = [word(o.get(name)) for name in ("tool_name", "details.type", "notification_type", "event")]
    return _changed(event, Kind.ASKED, next((DIALOGS[w] for w in words if w in DIALOGS), "permission"))


def _stop(event: Event, o: dict[str, Any]) -> Event:
    short = ENDS.get(word(o.get("status")))
    if short:
        return _changed(event, Kind.END, short)
    left = o.get("left")
    said = Reason.QUESTION if o.get("asks") is True else Reason.FINISHED
    return _changed(event, Kind.ANSWER, said, number=left if isinstance(left, int) else -1)


def _failure(event: Event, o: dict[str, Any]) -> Event:
    said = (word(o.get(name)) for name in ("error", "error.name", "error_type"))
    return _changed(event, Kind.END, next((ERRORS[w] for w in said if w in ERRORS), Reason.ERROR))


def _free(event: Event, _: dict[str, Any]) -> Event:
    return _changed(event, Kind.LIVE, "idle")


MEANS: Mapping[Means, Callable[[Event, dict[str, Any]], Event]] = {
    Means.PROMPT: _prompt, Means.PROGRESS: _progress, Means.RUNS: _progress, Means.RETRY: _retry, Means.ASK: _ask,
    Means.STOP: _stop, Means.FAILURE: _failure, Means.FREE: _free,
}

#: Among the homes of agents, the name of the folder of hook status files.
HOME = "hooks"

#: One more source for each agent that has hooks: its status files, below the folder of them all.
STATUS: Mapping[str, Source] = {
    name: Source(f"{name}/*.jsonl", Shape.LINES, partial(read, name, row), side=True) for name, row in HOOKS.items()
}
