"""What every desktop test stands on: async stories, conditions with a deadline, and a private bus."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

DEADLINE = 20.0

CONFIG = """<busconfig><type>session</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/>
<allow own="*"/></policy></busconfig>"""


def play(story):
    """Make a test of an async story."""
    @functools.wraps(story)
    def test(*args, **kwargs):
        async def bounded():
            async with asyncio.timeout(3 * DEADLINE):
                await story(*args, **kwargs)
        asyncio.run(bounded())
    return test


async def eventually(condition, deadline=DEADLINE):
    """Wait until the condition holds, and return what it said."""
    until = time.monotonic() + deadline
    while not (answer := await _ask(condition)):
        assert time.monotonic() < until, f"not within {deadline} s: {inspect.getsource(condition).strip()}"
        await asyncio.sleep(0.01)
    return answer


async def _ask(condition):
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer


def wait_until(condition, deadline=DEADLINE):
    """Do the same outside an event loop."""
    return asyncio.run(eventually(condition, deadline))


def need(*programs):
    """Skip the test where a program is not installed. In CI that is a failure: nobody would see the skip."""
    lacking = [program for program in programs if not shutil.which(program)]
    if lacking:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"not installed: {', '.join(lacking)}")


class PrivateBus:
    """A session bus of our own, which starts no services: "no daemon" is a state that can be tested."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "bus"
        self.address = f"unix:path={self.socket}"
        self._config = folder / "bus.conf"
        self._config.write_text(CONFIG.format(socket=self.socket), encoding="ascii")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            ["dbus-daemon", f"--config-file={self._config}", "--nofork", "--nopidfile"],
            stderr=subprocess.DEVNULL,
        )
        wait_until_there(self.socket)

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None
            self.socket.unlink(missing_ok=True)


def wait_until_there(path: Path) -> None:
    """Wait until somebody listens on the socket."""
    until = time.monotonic() + DEADLINE
    while True:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                assert time.monotonic() < until, f"nobody listens on {path}"
                time.sleep(0.01)
            else:
                return
