"""What tmux tells of its panes and clients, and how a client is brought to a pane. Shell."""

from __future__ import annotations

from typing import NamedTuple

from island.sources.terminals import tmux


class Pane(NamedTuple):
    """A pane as one session has it: a window may be linked into several. active: its session shows it."""

    tty: str
    ident: str
    session: str
    window: str
    active: bool
    name: str  # of the session


class Client(NamedTuple):
    """A terminal that is attached. control: a program that draws the panes itself, such as iTerm2."""

    pid: int
    tty: str
    session: str
    activity: int
    control: bool


def panes(server: str, tty: str) -> list[Pane]:
    """Return the pane with that terminal, once for each session that has it."""
    form = "#{pane_tty} #{pane_id} #{session_id} #{window_id} #{window_active}#{pane_active} #{session_name}"
    lines = (line.split(" ", 5) for line in tmux(server, "list-panes", "-a", "-F", form).splitlines())
    return [Pane(of, ident, session, window, active == "11", name)
            for of, ident, session, window, active, name in lines if of == tty]


def clients(server: str) -> list[Client]:
    """Return the terminals that are attached, the last used first."""
    form = "#{client_pid} #{client_tty} #{session_id} #{client_activity} #{client_control_mode}"
    lines = (line.split() for line in tmux(server, "list-clients", "-F", form).splitlines())
    found = [Client(int(pid), tty, session, int(at), control == "1") for pid, tty, session, at, control in lines]
    return sorted(found, key=lambda client: -client.activity)


def show(server: str, client: Client, pane: Pane) -> None:
    """Have a client show a pane."""
    if client.session != pane.session:
        tmux(server, "switch-client", "-c", client.tty, "-t", pane.session)
    tmux(server, "select-window", "-t", f"{pane.session}:{pane.window}")
    tmux(server, "select-pane", "-t", pane.ident)
