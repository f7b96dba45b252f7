"""What runs below the process of a session: whether tools do, and which call each of them is. Must not look itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from island.agents.base import Agent
from island.hooks.rows import is_marked
from island.model import PROCESS, Event, Kind, Process
from island.sources.processes import CALL_VARIABLES, descendants
from island.view import View

#: Records and marks may be this much older than the process that made them: file times are coarse.
SLACK = 1.0

#: Begins the key of the process of a call.
CALL = "process:"


def told_by(agent: Agent, v: View, below: list[Process], now: float) -> Iterator[Event]:
    """Yield what the processes below a session's own tell of its turn, if it is new."""
    yield from _alone(v, [p for p in _in_turn(v, below) if agent.tool(p)], now)
    for span in v.open("escalation", "tool"):
        key = f"{CALL}{span.key}"
        process = next((p for p in below if runs(p, span)), None)
        if process and v.session.get(Kind.OPENED, key) is None:
            yield _began(v, process, max(process.created, span.at), key, "process")
    for p in below if agent.nameless else ():
        if agent.tool(p) and _may_be_called(p, v):
            yield _began(v, p, p.created, f"command:{p.pid}", "command")


def _began(v: View, p: Process, at: float, key: str, word: str) -> Event:
    return Event(Kind.OPENED, v.session.id, at, key, word, text=str(p.pid), source=PROCESS)


def _alone(v: View, tools: list[Process], now: float) -> Iterator[Event]:
    """Yield whether the agent's process is alone, without any tool below it, if that has changed."""
    held, said = v.session.get(Kind.ALONE), "no" if tools else "yes"
    if held is None or held.word != said:
        at = now if held else max([0.0, *(min(p.created, now) for p in tools)])
        since = held.at if held and said == "yes" else -1
        yield Event(Kind.ALONE, v.session.id, at, word=said, number=since, source=PROCESS)


def _in_turn(v: View, below: list[Process]) -> Iterable[Process]:
    """Leave out what a record says was left to run, and island's own hooks, each with what runs below it.

    A hook is no tool, and must not answer the dialog that it tells of.
    """
    left = {int(e.text) for e in v.open("process") if e.text.isdecimal() and not e.key.startswith(CALL)}
    hooks = {p.pid for p in below if any(map(is_marked, p.cmdline))}
    apart = {pid for top in left | hooks for pid in (top, *(p.pid for p in descendants(top, below)))}
    return (p for p in below if p.pid not in apart)


def _may_be_called(p: Process, v: View) -> bool:
    """Tell whether a process may be a call of the newest turn: it began since, and in the same folder."""
    cwd = v.session.fact("cwd")
    return v.prompt is not None and p.created >= v.prompt.at and (not cwd or not p.cwd or p.cwd == cwd)


def runs(p: Process, span: Event) -> bool:
    """Tell whether a process is that of a call: by its environment, else by the command in its arguments."""
    calls = [call for name in CALL_VARIABLES if (call := (p.environ or {}).get(name))]
    if calls:
        return span.key in calls
    started_since = p.created >= span.at - SLACK
    return bool(span.text) and started_since and any(span.text in argument for argument in p.cmdline)
