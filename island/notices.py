"""When to interrupt the user. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from island.model import Reason


@dataclass(frozen=True, slots=True)
class Notice:
    """One desktop notification: `key` names it for replacing and withdrawing.

    key: "agent/session"; sessions: how many it speaks for (more than one: a merged notice).
    """

    key: str
    agent: str
    session: str
    reason: Reason
    title: str
    body: str = ""
    turn: str = ""
    sessions: int = 1


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The wait is over: take the notice with this key away."""

    key: str
    session: str
