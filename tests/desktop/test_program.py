"""The program itself on a real desktop: an agent's files change, and the user sees it, is told, and clicks."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from island.tray import icon
from island.tray.menu import Face

from .desk import FIRST_ROW, ICON, ROW, Desk
from .stage import wait_until

pytestmark = pytest.mark.desktop

SESSION = "0bc18d25-5fb3-46dc-a258-f95d3825818f"


class Agent:
    """What Claude Code writes, for a process that really runs."""

    def __init__(self, home: Path) -> None:
        self.home = home / ".claude"
        self.process = subprocess.Popen(["sleep", "600"])
        ticks = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[19]
        self.started = time.time()
        self.guard = ticks

    def live(self, status: str, **more: str) -> None:
        now = int(time.time() * 1000)
        record = {"pid": self.process.pid, "sessionId": SESSION, "cwd": "/home/dev/web_shop", "procStart": self.guard,
                  "startedAt": int(self.started * 1000), "entrypoint": "cli", "status": status,
                  "statusUpdatedAt": now, "updatedAt": now, **more}
        place = self.home / f"sessions/{self.process.pid}.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps(record))

    def write(self, kind: str, **fields: object) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime()) + f".{int(time.time() % 1 * 1000):03d}Z"
        record = {"type": kind, "timestamp": stamp, "sessionId": SESSION, "cwd": "/home/dev/web_shop",
                  "entrypoint": "cli", **fields}
        place = self.home / f"projects/-home-dev-web-shop/{SESSION}.jsonl"
        place.parent.mkdir(parents=True, exist_ok=True)
        with place.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def prompt(self, turn: str) -> None:
        self.live("busy")
        self.write("user", promptId=turn, message={"role": "user", "content": "go"})

    def answer(self) -> None:
        self.write("assistant", message={"model": "m", "content": [{"type": "text", "text": "Done."}],
                                         "stop_reason": "end_turn"})
        self.live("idle")
        self.write("system", subtype="turn_duration", durationMs=5)


@pytest.fixture
def desk(tmp_path):
    with Desk(tmp_path / "desk") as desk:
        yield desk


@pytest.fixture
def agent(desk):
    agent = Agent(Path(desk.environment["HOME"]))
    yield agent
    agent.process.kill()
    agent.process.wait()


@pytest.fixture
def island(desk):
    program = subprocess.Popen([sys.executable, "-m", "island"], env=desk.environment, stderr=subprocess.PIPE)
    yield program
    program.kill()
    program.communicate()


def sees(desk, face):
    ink = bytes(icon.LOOKS[face].ink[:3]).hex()
    wait_until(lambda: ink in desk.colours(24, 24, 4, 3))


def test_what_an_agent_writes_is_seen_told_and_put_away(desk, agent, island):
    sees(desk, Face.IDLE)
    agent.prompt("p1")
    sees(desk, Face.WORKING)
    agent.live("waiting", waitingFor="permission prompt")
    sees(desk, Face.YOUR_TURN)
    wait_until(lambda: desk.windows("dunst") == 1)
    agent.live("busy")
    sees(desk, Face.WORKING)
    wait_until(lambda: desk.windows("dunst") == 0)
    agent.answer()
    sees(desk, Face.DONE)
    wait_until(lambda: desk.windows("dunst") == 1)

    desk.click(*ICON)
    wait_until(lambda: desk.pixel(2, FIRST_ROW) != "000000")
    desk.click(80, FIRST_ROW + ROW + 1)
    sees(desk, Face.CALM)
    wait_until(lambda: desk.windows("dunst") == 0)

    agent.prompt("p2")
    sees(desk, Face.WORKING)
    agent.process.kill()
    agent.process.wait()
    sees(desk, Face.IDLE)

    island.send_signal(signal.SIGTERM)
    assert (island.wait(20), island.stderr.read()) == (0, b"")


def test_a_second_start_changes_nothing(desk, island):
    sees(desk, Face.IDLE)
    second = subprocess.run([sys.executable, "-m", "island"], env=desk.environment, capture_output=True, check=False)
    assert (second.returncode, second.stderr) == (3, b"island: runs already; nothing was changed\n")
    sees(desk, Face.IDLE)


def test_doctor_finds_a_tray_and_a_daemon_and_shows_a_notice(desk):
    doctor = subprocess.Popen([sys.executable, "-m", "island", "doctor", "--notify"], env=desk.environment,
                              stdout=subprocess.PIPE, text=True)
    wait_until(lambda: desk.windows("dunst") == 1)
    told, _ = doctor.communicate()
    assert "ok    tray: it takes icons (StatusNotifierItem)\nok    notices: ready\nok    trial notice: sent\n" in told
    wait_until(lambda: desk.windows("dunst") == 0)
