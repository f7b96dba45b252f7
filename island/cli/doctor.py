"""`island doctor`: can island see, and can it be seen? Must not change anything."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from glob import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from island.agents import AGENTS
from island.agents.base import Agent
from island.desktop.notify import Health as NoticeHealth
from island.desktop.notify import Notifier, open_notifier
from island.hooks.rows import HOOKS
from island.hooks.setup import Setup, SetupError
from island.instance import LockError, runs
from island.look import homes, look_once
from island.model import Reason
from island.notices import Notice
from island.observer import Observer
from island.sources.sweep import sweep
from island.text import age, safe
from island.tray.base import Health, open_tray
from island.wishes import Wishes

#: Seconds that a tray gets to take a trial icon, and a daemon to answer.
TRIAL = 1.5

#: Seconds for which a trial notice stays.
SHOWN = 4.0

SCHEMA = 1

#: Characters of the longest line: what is longer is no text of ours.
WIDEST = 400

#: An agent that runs has its files somewhere else, or none yet.
MOVED = "if it has been used, its files lie elsewhere: start island with the same variables that moved them"

#: Notices come, whether or not they can be clicked.
WELL = (NoticeHealth.READY, NoticeHealth.SHOW_ONLY)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: whether it is well, and what to do if it is not, or what else to know, in lines.

    absent: the agent that is not here at all; people are told of all these in one line.
    """

    well: bool
    what: str
    advice: str = ""
    absent: str = ""


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("doctor", help="say what island can see, and what is wrong", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--notify", action="store_true", help="show a notice, to see whether it reaches you")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings; 1 if something is wrong."""
    wishes = Wishes()
    observer = look_once(panes=arguments.panes or wishes.settings.panes, agents=wishes.settings.agents)
    desktop = asyncio.run(_desktop(notify=arguments.notify))
    agents = [*_agents(observer), *_hooks(observer), *_drift(observer)]
    findings = [*desktop, *_settings(wishes), *_limits(), *agents, _instance()]
    print(_as_json(findings) if arguments.json else "\n".join(_as_text(findings)))
    return 0 if all(f.well for f in findings) else 1


def _as_json(findings: list[Finding]) -> str:
    """Return all findings as one object, with whether all is well."""
    return json.dumps({"schema": SCHEMA, "well": all(f.well for f in findings), "findings": [*map(asdict, findings)]})


def _as_text(findings: list[Finding]) -> Iterator[str]:
    """Yield the lines for people."""
    for absent, some in groupby(findings, lambda finding: bool(finding.absent)):
        for finding in [Finding(True, f"not here: {', '.join(f.absent for f in some)}")] if absent else some:
            yield ("ok    " if finding.well else "WRONG ") + safe(finding.what, WIDEST)
            yield from (f"      {safe(advice, WIDEST)}" for advice in finding.advice.splitlines())


async def _desktop(*, notify: bool) -> list[Finding]:
    tray, notifier = open_tray(lambda _: None), open_notifier(lambda _key, _action: None)
    here = sys.platform not in {"darwin", "win32"}
    if here:
        await tray.start()
    if here or notify:
        await notifier.start()
        await asyncio.sleep(TRIAL)
    found = [_tray(tray.health), _notices(notifier.health)] if here else [Finding(True, "tray: the system's own")]
    found += [await _trial(notifier)] if notify else []
    if here or notify:
        await notifier.stop()
    if here:
        await tray.stop()
    return found


async def _trial(notifier: Notifier) -> Finding:
    """Show a notice for a moment. Whether anybody saw it, nobody tells: a quiet mode hides it without a word."""
    if notifier.health not in WELL:
        return Finding(False, f"trial notice: not sent ({notifier.health})")
    await notifier.show(Notice("island/doctor", "island", "doctor", Reason.FINISHED, "This is a trial notice",
                               "island can reach you"))
    await asyncio.sleep(SHOWN)
    return Finding(True, "trial notice: sent", "if you did not see it, a do-not-disturb mode may be on")


def _tray(health: Health) -> Finding:
    if health is Health.SHOWN:
        return Finding(well=True, what="tray: it takes icons (StatusNotifierItem)")
    if health is Health.NO_BUS:
        return Finding(False, "tray: there is no session bus",
                       "start island inside a desktop session, or use `island watch` in a terminal")
    return Finding(False, "tray: nobody shows icons (no StatusNotifierWatcher on the session bus)",
                   "GNOME: switch on the AppIndicator extension; i3bar, tint2, polybar: run snixembed")


def _notices(health: NoticeHealth) -> Finding:
    advice = {
        NoticeHealth.NO_DAEMON: "install a notification daemon, such as dunst, mako or xfce4-notifyd",
        NoticeHealth.NO_BUS: "start island inside a desktop session",
        NoticeHealth.REFUSED: "allow island's notifications in the system's settings",
    }
    return Finding(health in WELL, f"notices: {health}", advice.get(health, ""))


def _settings(wishes: Wishes) -> Iterator[Finding]:
    """Yield whether the settings, and what island keeps, are understood, and which agents they leave out."""
    for trouble in wishes.trouble:
        yield Finding(False, f"settings: {trouble}", "`island config` shows what counts")
    if not wishes.trouble:
        yield Finding(True, f"settings: {wishes.file.path}" if wishes.file.text else "settings: all as by default")
    if out := [agent.label for name, agent in AGENTS.items() if name not in wishes.settings.agents]:
        yield Finding(True, f"not watched, as the settings say: {', '.join(out)}")


def _limits() -> Iterator[Finding]:
    """Yield the system's limits on file watches, where it tells them."""
    folder = Path("/proc/sys/fs/inotify")
    for name, least in (("max_user_watches", 8192), ("max_user_instances", 64)):
        try:
            limit = int((folder / name).read_text())
        except (OSError, ValueError):
            continue
        yield Finding(limit >= least, f"file watches: {name} is {limit}",
                      "" if limit >= least else f"raise fs.inotify.{name}; until then files are polled")


def _agents(observer: Observer) -> list[Finding]:
    """Return what there is of each agent; first of those that are here."""
    where = homes(agents=observer.sessions.agents)
    return sorted((_agent(observer, observer.sessions.agents[name], home) for name, home in where.items()),
                  key=lambda finding: bool(finding.absent))


def _agent(observer: Observer, agent: Agent, home: str) -> Finding:
    below = [f"{escape(home)}/{source.pattern}" for source in agent.sources if not source.project]
    beside = [escape(path) for path, (a, _) in observer.projects.items() if a.name == agent.name]
    found, running = sweep([*below, *beside]), len(observer.running(agent))
    where = home if below else "the folders it runs in"
    if not found and not running:
        return Finding(True, f"{agent.label}: not here (no file in {where}, and no process)", absent=agent.label)
    blind = "\n".join(f"invisible: {what}" for what in agent.blind_in(*_versions(observer, agent)))
    if not found:
        return Finding(True, f"{agent.label}: runs, but has no file in {where}", f"{MOVED}\n{blind}".rstrip())
    newest = age(time.time() - max(f.mtime for f in found))
    known = ", ".join(_versions(observer, agent))
    files = "1 file" if len(found) == 1 else f"{len(found)} files"
    return Finding(True, f"{agent.label}: {files} in {where}, the last change {newest} ago"
                   + (f", versions {known}" if known else ""), blind)


def _versions(observer: Observer, agent: Agent) -> list[str]:
    return sorted({session.fact("version") for _, session in observer.sessions.all(agent)} - {""})


def _hooks(observer: Observer) -> Iterator[Finding]:
    """Yield how the hooks stand that were set up; that they are none is no fault."""
    setup, sessions = Setup(), observer.sessions
    for name in setup.agents():
        try:
            state = setup.state(name)
        except SetupError as error:
            yield Finding(False, f"hooks of {AGENTS[name].label}: {error}")
            continue
        if state == setup.ABSENT:
            continue
        deaf = [s for agent, s in sessions.all() if agent.name == name and sessions.hooks_are_silent(agent, s)]
        unheard = setup.unheard(name) if state == setup.PRESENT else ""
        well = state == setup.PRESENT and not deaf and not unheard
        told = f", but told nothing of the last turn in {len(deaf)} sessions" if deaf else ""
        remedy = unheard or HOOKS[name].trust if state == setup.PRESENT else f"island hooks install {name}"
        yield Finding(well, f"hooks of {AGENTS[name].label}: {state}{told}", "" if well else remedy)


def _drift(observer: Observer) -> Iterator[Finding]:
    """Yield what the readers did not know or could not read: the agent's format may have changed."""
    for (agent, kind), count in sorted(observer.tally.unknown.items()):
        yield Finding(False, f"{AGENTS[agent].label}: {count} records of an unknown kind: {safe(kind, 40)}",
                      "they are passed over; island may need a newer version")
    for (agent, pattern), count in sorted(observer.tally.unread.items()):
        yield Finding(False, f"{AGENTS[agent].label}: {count} records in {pattern} could not be read")
    for name, why in sorted(observer.tally.broken.items()):
        yield Finding(False, f"{name}: {why}")


def _instance() -> Finding:
    try:
        return Finding(True, "island: runs" if runs() else "island: does not run now")
    except LockError as error:
        return Finding(False, f"island: {error}")
