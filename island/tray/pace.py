"""How often something is told to a desktop. Must not know what is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Pace:
    """Calls `act` at most once in `gap` seconds: the first at once, and the last is never lost."""

    def __init__(self, gap: float, act: Callable[[], None]) -> None:
        self._gap = gap
        self._act = act
        self._next = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        """Have `act` called, now or as soon as the gap allows."""
        if self._timer is None:
            self.wait(self._next - asyncio.get_running_loop().time())

    def wait(self, delay: float) -> None:
        """Have `act` called after `delay` seconds, instead of when it was due."""
        self.stop()
        if delay > 0:
            self._timer = asyncio.get_running_loop().call_later(delay, self.fire)
        else:
            self.fire()

    def fire(self) -> None:
        """Call `act` now."""
        self.stop()
        self._next = asyncio.get_running_loop().time() + self._gap
        self._act()

    def stop(self) -> None:
        """Forget what was asked for."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
