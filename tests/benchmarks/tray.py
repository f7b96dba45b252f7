"""Ten changes a second on a real panel and a real notification daemon: what it costs, and whether it stays flat.

    python tests/benchmarks/tray.py [--minutes 60]        (needs the Debian packages that tests/desktop/desk.py names)

A hundred sessions; with each change one of them is in another state, so icon, badge, tooltip and menu change all the
time. Notices come, are replaced and go. Figures of the tray's own process, and of the panel's that shows it, are taken
once the first minute is over (a tenth of the whole, if that is shorter) and at the end.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from island.desktop.freedesktop import FreedesktopNotifier
from island.model import Reason, Row, Snapshot, State, Verdict
from island.notices import Notice
from island.rules import collapse, urgency
from island.tray.base import Health
from island.tray.menu import model
from island.tray.sni import SniTray
from tests.desktop.desk import Desk
from tests.desktop.stage import eventually

SESSIONS, EVERY = 100, 0.1
STATES = ((State.WORKING, Reason.TOOL), (State.YOUR_TURN, Reason.PERMISSION), (State.WORKING, Reason.MODEL),
          (State.YOUR_TURN, Reason.FINISHED), (State.IDLE, Reason.NEW), (State.STALLED, Reason.SILENT))
MB = 1024 * 1024


class Figures:
    """What processes hold and have used."""

    def __init__(self, panel: psutil.Process) -> None:
        self._own = psutil.Process()
        self._host = [panel, *panel.children(recursive=True)]

    def take(self) -> tuple[float, int, float, float]:
        """Return MB and open files of the tray, seconds of its processor, MB of the panel."""
        used = self._own.cpu_times()
        shown = sum(p.memory_info().rss for p in self._host) / MB
        return self._own.memory_info().rss / MB, self._own.num_fds(), used.user + used.system, shown


def snapshot(number: int, now: float) -> Snapshot:
    """Return a hundred sessions, of which one is in another state than before."""
    rows = []
    for n in range(SESSIONS):
        state, reason = STATES[(number + (n < number % SESSIONS) + n) // SESSIONS * 5 % len(STATES)]
        rows.append(Row("claude", f"s{n}", Verdict(state, reason, since=now - 60 * n), label="Claude Code",
                        project=f"project_{n % 9}", folder="/home/dev/x", model="m", tokens=1000 * (number % 200),
                        window=200_000, blind=("approvals, without hooks",)))
    rows.sort(key=urgency)
    state, calm = collapse(rows)
    return Snapshot(now, state, tuple(rows), calm=calm)


async def play(figures: Figures, seconds: float) -> None:
    tray, notices = SniTray(lambda _: None), FreedesktopNotifier(lambda *_: None)
    await tray.start()
    await notices.start()
    await eventually(lambda: tray.health is Health.SHOWN)
    began, number, first, at_first = time.monotonic(), 0, None, 0
    while (passed := time.monotonic() - began) < seconds:
        if first is None and passed > min(60.0, seconds / 10):
            first, at_first = figures.take(), number
        tray.apply(model(snapshot(number, time.time()), time.time()))
        notice = Notice(f"claude/s{number // 20 % 3}", "claude", "s", Reason.PERMISSION, f"{number}", "web_shop")
        if number % 5 == 0:
            await notices.show(replace(notice, sessions=("s",)))
        if number % 20 == 19:
            await notices.withdraw(notice.key)
        number += 1
        await asyncio.sleep(max(0.0, began + number * EVERY - time.monotonic()))
    last = figures.take()
    await notices.stop()
    await tray.stop()
    report(first or last, last, number - at_first)


def report(first: tuple[float, int, float, float], last: tuple[float, int, float, float], changes: int) -> None:
    print(f"{changes} changes of {SESSIONS} sessions")
    for name, index, form in (("memory of the tray, MB", 0, ".1f"), ("open files of the tray", 1, "d"),
                              ("memory of the panel, MB", 3, ".1f")):
        print(f"{name:28}{first[index]:{form}} -> {last[index]:{form}}")
    print(f"{'processor for each change':28}{(last[2] - first[2]) / changes * 1e3:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder, Desk(Path(folder) / "desk") as desk:
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = desk.bus.address
        asyncio.run(play(Figures(psutil.Process(desk.pid("panel"))), 60 * minutes))


if __name__ == "__main__":
    main()
