"""Who is looked at has been seen: a session that waits while the user has its terminal before him. Shell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from island.sessions import Key, Sessions

#: Seconds between looks: two in a row see the same before the shortest dwell of a notice is over.
GLANCE = 0.5

LookedAt = Callable[[Collection[int]], frozenset[int]]  # those of some processes that the user looks at just now


class Attention:
    """What the user looks at, one look after the other. looked_at: is asked in a thread of its own."""

    def __init__(self, looked_at: LookedAt) -> None:
        self._looked_at = looked_at
        self._before: frozenset[int] = frozenset()

    async def seen(self, sessions: Sessions) -> list[Key]:
        """Return which of the sessions that wait the user looks at, now and at the look before.

        Whoever only passes by a window has not seen it. While nothing waits, nobody is asked.
        """
        waits: Mapping[Key, set[int]] = {key: set(sessions.processes(key)) for key in sessions.unseen()}
        pids = set[int]().union(*waits.values())
        now = await asyncio.to_thread(self._looked_at, pids) if pids else frozenset[int]()
        before, self._before = self._before, now
        return [key for key, mine in waits.items() if mine & before & now]
