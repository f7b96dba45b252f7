"""`island demo`: play a story through the real tray, for someone who has no agents yet."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from importlib import resources
from pathlib import Path
from typing import Any

from island.cli.watch import Screen
from island.desktop.notify import open_notifier
from island.model import Snapshot
from island.notices import Notice, Withdraw
from island.replay import Replay
from island.running import until_told
from island.sequence import Sequence1, SequenceError, parse
from island.tray.base import Health, open_tray
from island.tray.entry import QUIT
from island.tray.menu import model


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("demo", help="play a story with every state through the real tray",
                                 description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="sequence files to play instead")
    parser.add_argument("--speed", type=float, default=1.0, help="times as fast as it happened (default 1)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Play the story; 2 if a file cannot be read."""
    if arguments.speed <= 0:
        print("island: --speed must be above 0", file=sys.stderr)
        return 2
    try:
        stories = [parse(Path(f).read_text("utf-8"), f) for f in arguments.files] or [parse(_story(), "demo")]
    except (OSError, UnicodeDecodeError, SequenceError) as error:
        print(f"island: {error}", file=sys.stderr)
        return 2
    demo = Demo(arguments.speed)
    return demo.tray.run(lambda: demo.play(stories))


def _story() -> str:
    """Return the story that ships with the package; in a checkout it lies among the sequences."""
    shipped = resources.files("island") / "demo.jsonl"
    if shipped.is_file():
        return shipped.read_text("utf-8")
    return (Path(__file__).parents[2] / "sequences" / "fleet" / "demo.jsonl").read_text("utf-8")


class Demo:
    """A replay in real time, on the real desktop."""

    def __init__(self, speed: float) -> None:
        self.tray = open_tray(self._chosen)
        self._notifier = open_notifier(lambda _key, _action: None)
        self._screen = Screen(note="a demonstration: nothing of this is real")
        self._speed = speed
        self._over = asyncio.Event()
        self._spoken = 0

    def _chosen(self, key: str) -> None:
        if key == QUIT:
            self._over.set()

    async def play(self, stories: list[Sequence1]) -> int:
        """Play the stories, until their end or until told to end."""
        self._over = asyncio.Event()
        await self.tray.start()
        await self._notifier.start()
        try:
            await until_told(self._play_all(stories), self._over)
        finally:
            await self._notifier.stop()
            await self.tray.stop()
        return 0

    async def _play_all(self, stories: list[Sequence1]) -> None:
        for story in stories:
            with tempfile.TemporaryDirectory(prefix="island-demo-") as folder:
                await self._play_one(Replay(story, Path(folder)))

    async def _play_one(self, replay: Replay) -> None:
        began = time.monotonic()
        self._spoken = 0
        for at in replay.moments():
            await asyncio.sleep(max(0.0, at / self._speed - (time.monotonic() - began)))
            await self._show(replay)

    async def _show(self, replay: Replay) -> None:
        snapshot: Snapshot = replay.observer.snapshot(replay.now)
        self.tray.apply(model(snapshot, replay.now))
        if self.tray.health is not Health.SHOWN or sys.stdout.isatty():
            self._screen.show(snapshot)
        new, self._spoken = replay.spoken[self._spoken:], len(replay.spoken)
        for one in new:
            if isinstance(one, Notice):
                await self._notifier.show(one)
            elif isinstance(one, Withdraw):
                await self._notifier.withdraw(one.key)
