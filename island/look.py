"""One look at everything that agents write and run. Shell: every few seconds for a bar, so it must be quick to start.

It imports no event loop and no watcher; what runs on is the business of `running`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from island.agents import AGENTS
from island.agents.base import Agent, contained
from island.hooks.command import folder
from island.hooks.records import HOME
from island.model import Process, Snapshot
from island.observer import Observer
from island.sources.processes import SystemTable
from island.sources.terminals import Terminals
from island.wishes import Wishes


def homes(environ: Mapping[str, str] = os.environ, agents: Mapping[str, Agent] = AGENTS) -> dict[str, str]:
    """Return the folder of each agent, as its own environment variables move it."""
    return {name: agent.home(environ, str(Path.home())) for name, agent in agents.items()}


def watched() -> dict[str, str]:
    """Return all folders that are read: those of the agents, and that of their hooks' status files."""
    return {**homes(), HOME: str(folder())}


_CONTAINED = tuple(contained(agent, lambda _what, _error: None) for agent in AGENTS.values())


def matters(p: Process) -> bool:
    """Tell whether a process is an agent; what fails to tell is told by the observer, which asks the same."""
    return any(agent.main(p) for agent in _CONTAINED)


def look_once(now: float | None = None, since: float = 0.0, *, panes: bool = False,
              agents: Collection[str] = AGENTS) -> Observer:
    """Look at everything once, and return what is known. panes: at the text of terminals, too."""
    now = time.time() if now is None else now
    table = SystemTable(matters)
    first = table.poll()
    observer = Observer(watched(), table, since, agents={name: AGENTS[name] for name in AGENTS if name in agents})
    observer.processes_changed(first, now)
    observer.sweep(now)
    seen = Terminals().poll(observer.titled(), observer.screened() if panes else ())
    observer.terminals(seen.titles, seen.screens, now)
    return observer


def look_as_set(now: float, *, panes: bool = False, exported: bool = False) -> Snapshot:
    """Return what is to be shown, as the settings say, and by what was silenced and seen in the menu.

    exported: to other programs.
    """
    wishes = Wishes()
    observer = look_once(now, panes=panes or wishes.settings.panes, agents=wishes.settings.agents)
    observer.sessions.seen = wishes.seen
    return wishes.veil(observer.snapshot(now, wishes.trouble), exported=exported)
