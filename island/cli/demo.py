"""`island demo`: play a story through the real tray, for someone who has no agents yet."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from island.cli.actions import Actions
from island.cli.tray import meant
from island.cli.watch import Screen
from island.desktop import notify
from island.desktop.notify import open_notifier
from island.desktop.opening import open_path
from island.instance import LockError, runs
from island.manner import Ear
from island.model import Reason
from island.notices import Notice
from island.observer import Observer
from island.quiet import MUTE_SESSION, after, veiled
from island.replay import Replay
from island.running import until_told
from island.sequence import SequenceError, parse
from island.tray.base import Health, open_tray
from island.tray.entry import COPY, DOCTOR, FOLDER, JUMP, QUIET_HOURS, QUIT, SEEN_ONE, SETTINGS, SHOW, MenuRow
from island.tray.menu import TrayModel, model

#: What needs a real session, or would show what has nothing to do with the story.
UNREAL = (JUMP, COPY, FOLDER, SETTINGS, QUIET_HOURS, DOCTOR)
ONLY = "only a demonstration"

SLOWEST, FASTEST = 0.01, 1000.0


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("demo", help="play a story with every state through the real tray",
                                 description=__doc__)
    parser.add_argument("files", nargs="*", metavar="FILE", help="sequence files to play instead")
    parser.add_argument("--speed", type=float, default=1.0, help="times as fast as it happened (default 1)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Play the story; 2 if a file cannot be read."""
    if not SLOWEST <= arguments.speed <= FASTEST:  # which is so of no number, too
        print(f"island: --speed must be a number from {SLOWEST:g} to {FASTEST:g}", file=sys.stderr)
        return 2
    try:
        stories = [parse(Path(f).read_text("utf-8"), f) for f in arguments.files] or [parse(_story(), "demo")]
    except (OSError, UnicodeDecodeError, SequenceError) as error:
        print(f"island: {error}", file=sys.stderr)
        return 2
    with contextlib.suppress(LockError):
        if runs():
            print("island: runs already: the icon that comes now, beside its own, is that of the demonstration",
                  file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="island-demo-") as folder:
        demo = Demo(arguments.speed, [Replay(story, Path(tempfile.mkdtemp(dir=folder))) for story in stories])
        return demo.tray.run(demo.play)


def _story() -> str:
    """Return the story that ships with the package; in a checkout it lies among the sequences."""
    shipped = resources.files("island") / "demo.jsonl"
    if shipped.is_file():
        return shipped.read_text("utf-8")
    return (Path(__file__).parents[2] / "sequences" / "fleet" / "demo.jsonl").read_text("utf-8")


def shown(model: TrayModel) -> TrayModel:
    """Return what a demonstration shows: what needs a real session cannot be chosen, and says why."""
    return replace(model, rows=tuple(map(_shown, model.rows)))


def _shown(row: MenuRow) -> MenuRow:
    if row.key.startswith(UNREAL):
        return replace(row, enabled=False, text=f"{row.text} ({ONLY})")
    return replace(row, rows=tuple(map(_shown, row.rows)))


class Demo:
    """A replay in real time, on the real desktop. What is chosen is done to the story alone, between its moments."""

    def __init__(self, speed: float, stories: Sequence[Replay],
                 open_: Callable[[Path], str] = open_path) -> None:
        self.tray = open_tray(self._chosen)
        self._notifier = open_notifier(self._answered, getattr(self.tray, "balloon", None))
        self._screen = Screen(note="a demonstration: nothing of this is real")
        self._speed = speed
        self._over = asyncio.Event()
        self._asked = asyncio.Queue[str]()
        self._stories, self._story = stories, stories[0]
        self._actions = Actions(self, open_, clock=lambda: self._story.now)
        self._spoken = 0

    @property
    def observer(self) -> Observer:
        """Who observes the story."""
        return self._story.observer

    @property
    def ear(self) -> Ear:
        """How who looks on listens."""
        return self._story.ear

    def publish_now(self) -> None:
        """Have the story go on from what was seen or silenced; it is shown by who plays."""
        self._story.again()

    # -- in ---------------------------------------------------------------------------------------------------

    def _chosen(self, action: str) -> None:
        if action == QUIT:
            self._over.set()
        else:
            self._asked.put_nowait(action)

    def _answered(self, key: str, action: str) -> None:
        """Do what was chosen on a notice: mute its session, or take it for seen."""
        if key != notify.WORD:
            session = meant(self._story.book, key)
            for verb in (MUTE_SESSION,) if action == notify.MUTE else (SEEN_ONE, JUMP):
                self._asked.put_nowait(verb + session)

    async def _do(self, action: str) -> None:
        hush = after(self._story.ear.hush, action, self._story.now)
        if hush is not None:
            self._story.ear = replace(self._story.ear, hush=hush)
            self._story.again()
        elif action == SHOW or action.startswith(UNREAL):
            await self._say("there is no terminal to be shown")
        elif self._actions.knows(action):
            try:
                word = await self._actions.do(action)
            except OSError as error:
                word = str(error)
            await self._say(word) if word else None

    async def _say(self, word: str) -> None:
        await self._notifier.show(Notice(notify.WORD, "island", "", Reason.SEEN, f"This is {ONLY}", word))

    # -- out --------------------------------------------------------------------------------------------------

    async def play(self) -> int:
        """Play the stories, until their end or until told to end."""
        self._over, self._asked = asyncio.Event(), asyncio.Queue()
        await self.tray.start()
        await self._notifier.start()
        try:
            await until_told(self._play_all(), self._over)
        finally:
            self._actions.leave()
            await self._notifier.stop()
            await self.tray.stop()
        return 0

    async def _play_all(self) -> None:
        for story in self._stories:
            began = time.monotonic()
            self._story, self._spoken = story, 0
            for at in story.moments():
                await self._show()
                await self._listen(began + at / self._speed)

    async def _listen(self, until: float) -> None:
        """Do what is chosen, until a moment of the monotonic clock."""
        while (left := until - time.monotonic()) > 0:
            try:
                async with asyncio.timeout(left):
                    action = await self._asked.get()
            except TimeoutError:
                return
            await self._do(action)
            await self._show()

    async def _show(self) -> None:
        story = self._story
        snapshot = veiled(story.observer.snapshot(story.now), titles=True, names=not story.ear.hush.hidden)
        self.tray.apply(shown(model(snapshot, story.now, story.ear)))
        if self.tray.health is not Health.SHOWN or (sys.stdout and sys.stdout.isatty()):
            self._screen.show(snapshot)
        new, self._spoken = story.spoken[self._spoken:], len(story.spoken)
        for one in new:
            if isinstance(one, Notice):
                await self._notifier.show(one)
            else:
                await self._notifier.withdraw(one.key)
