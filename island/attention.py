"""Who is looked at has been seen: a session that waits while the user has its terminal before him. Shell."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from island.sessions import Key, Sessions

#: Seconds between looks: two in a row see the same before the shortest dwell of a notice is over. What has waited for
#: longer than a notice dwells has been told already, and every look costs some milliseconds.
GLANCE, CALM, YOUNG = 0.5, 3.0, 10.0

LookedAt = Callable[[Collection[int]], frozenset[int]]  # those of some processes that the user looks at just now


class Attention:
    """What the user looks at, one look after the other. looked_at: is asked in a thread of its own."""

    def __init__(self, looked_at: LookedAt) -> None:
        self._looked_at = looked_at
        self._before: frozenset[int] = frozenset()
        self._asked = 0.0

    def due(self, sessions: Sessions, now: float) -> bool:
        """Tell whether to look now: at once while a wait is young, and now and then at those that have been told."""
        young = any(now - sessions.verdicts[key].since < YOUNG for key in sessions.unseen())
        if young or not self._asked <= now < self._asked + CALM:
            self._asked = now
            return True
        return False

    async def seen(self, sessions: Sessions) -> list[Key]:
        """Return which of the sessions that wait the user looks at, now and at the look before.

        Whoever only passes by a window has not seen it. While nothing waits, nobody is asked.
        """
        waits: Mapping[Key, set[int]] = {key: set(sessions.processes(key)) for key in sessions.unseen()}
        pids = set[int]().union(*waits.values())
        now = await asyncio.to_thread(self._looked_at, pids) if pids else frozenset[int]()
        before, self._before = self._before, now
        return [key for key, mine in waits.items() if mine & before & now]
