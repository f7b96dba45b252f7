"""`island hooks`: let agents tell at once what their files tell late or never. Nothing is set up unasked."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from island.agents import AGENTS
from island.hooks.rows import HOOKS
from island.hooks.setup import Plan, Setup, SetupError
from island.look import look_once
from island.model import Kind, place
from island.text import safe


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("hooks", help="set up hooks, so that agents tell more (optional)", description=__doc__)
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, run, about in (
        ("status", _status, "say where hooks are set up"),
        ("show", _show, "print what `install` would change, and change nothing"),
        ("install", _install, "set hooks up, after showing the change and asking"),
        ("remove", _remove, "take island's hooks out again"),
    ):
        action = actions.add_parser(name, help=about, description=about)
        action.add_argument("agents", nargs="*", metavar="AGENT", help="by default all that are used here")
        if name in ("install", "remove"):
            action.add_argument("--yes", action="store_true", help="do not ask")
        action.set_defaults(run=_for_agents, action=run)


def _for_agents(arguments: argparse.Namespace) -> int:
    setup = Setup()
    known = setup.agents()
    unknown = [name for name in arguments.agents if name not in known]
    if unknown:
        why = " here, as it is not known how it runs them" if HOOKS.keys() & set(unknown) else ""
        print(f"island: no hooks for {', '.join(map(safe, unknown))}{why}; there are: {', '.join(known)}",
              file=sys.stderr)
        return 2
    agents = arguments.agents or [name for name in known if setup.is_here(name)]
    if not agents:
        print("island: no agent that has hooks has been used here")
    codes = [_contained(arguments, setup, agent) for agent in agents]
    return max(codes, default=0)


def _contained(arguments: argparse.Namespace, setup: Setup, agent: str) -> int:
    """Do it for one agent; a file that cannot be read or written is left alone, and stops none of the others."""
    try:
        return int(arguments.action(arguments, setup, agent))
    except SetupError as error:
        print(f"island: {AGENTS[agent].label} is left alone: {error}", file=sys.stderr)
    except OSError as error:
        print(f"island: {AGENTS[agent].label} is left alone: {error}", file=sys.stderr)
    return 2


def _status(_: argparse.Namespace, setup: Setup, agent: str) -> int:
    state = setup.state(agent)
    print(f"{AGENTS[agent].label:16} {state}  ({setup.path(agent)})")
    if state == setup.PRESENT:
        _warn(setup, agent)
    return 0


def _warn(setup: Setup, agent: str) -> None:
    if unheard := setup.unheard(agent):
        print(f"{AGENTS[agent].label}: but {unheard}")


def _show(_: argparse.Namespace, setup: Setup, agent: str) -> int:
    plan = setup.installing(agent)
    print(plan.diff() if plan.changes else f"{AGENTS[agent].label}: nothing would change in {plan.path}")
    return 0


def _install(arguments: argparse.Namespace, setup: Setup, agent: str) -> int:
    _refuse_old(agent)
    plan = setup.installing(agent)
    if not plan.changes and setup.command.exists():
        print(f"{AGENTS[agent].label}: its hooks are installed")
        return 0
    if not _agreed(arguments, plan, "Install these hooks"):
        return 0
    setup.carry_out(plan, install=True)
    print(f"{AGENTS[agent].label}: its hooks are installed. {HOOKS[agent].trust[:1].upper()}{HOOKS[agent].trust[1:]}.")
    _warn(setup, agent)
    return 0


def _refuse_old(agent: str) -> None:
    """Raise SetupError if the version that was seen last is older than hooks were tried with."""
    since, label = HOOKS[agent].since, AGENTS[agent].label
    seen = [e for a, s in look_once().sessions.all() if a.name == agent and (e := s.get(Kind.FACT, "version"))]
    last = max(seen, key=place).word if seen else ""
    if since and last and _numbers(last) < _numbers(since):
        raise SetupError(f"{label} {last} was seen last; hooks need {since} or newer, which takes the events they name")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _remove(arguments: argparse.Namespace, setup: Setup, agent: str) -> int:
    plan = setup.removing(agent)
    if not plan.changes:
        print(f"{AGENTS[agent].label}: no hooks of island's are there")
        return 0
    if not _agreed(arguments, plan, "Remove these hooks"):
        return 0
    setup.carry_out(plan, install=False)
    print(f"{AGENTS[agent].label}: its hooks are removed")
    return 0


def _agreed(arguments: argparse.Namespace, plan: Plan, question: str) -> bool:
    """Show the change and ask, unless that was answered before."""
    print(plan.diff())
    if arguments.yes:
        return True
    try:
        answer = input(f"{question} for {AGENTS[plan.agent].label}? [y/N] ")
    except EOFError:
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print(f"{AGENTS[plan.agent].label}: nothing was changed")
    return False
