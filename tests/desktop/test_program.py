"""The program itself on a real desktop: an agent's files change, and the user sees it, is told, and clicks."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from island.tray import icon
from island.tray.face import Face

from .desk import FIRST_ROW, ICON, Desk
from .stage import need, wait_until

pytestmark = pytest.mark.desktop

SESSION = "0bc18d25-5fb3-46dc-a258-f95d3825818f"


class Agent:
    """What Claude Code writes, for a process that really runs."""

    def __init__(self, home: Path, pid: int) -> None:
        self.home, self.pid = home / ".claude", pid
        self.started = time.time()
        self.guard = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]

    def live(self, status: str, **more: str) -> None:
        now = int(time.time() * 1000)
        record = {"pid": self.pid, "sessionId": SESSION, "cwd": "/home/dev/web_shop", "procStart": self.guard,
                  "startedAt": int(self.started * 1000), "entrypoint": "cli", "status": status,
                  "statusUpdatedAt": now, "updatedAt": now, **more}
        place = self.home / f"sessions/{self.pid}.json"
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
    process = subprocess.Popen(["sleep", "600"])
    agent = Agent(Path(desk.environment["HOME"]), process.pid)
    agent.process = process
    yield agent
    process.kill()
    process.wait()


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
    desk.press("Down", "Right", "Down", "Return")  # what its row opens: to its terminal, and below that: seen
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


# -- the user's terminals -----------------------------------------------------------------------------------


@pytest.fixture
def terminals(desk, tmp_path):
    """A window manager, and terminals: opened by name, each with the process that runs in it."""
    need("openbox", "xterm", "dunstctl")
    desk.start("wm", "openbox")
    manages = ["xdotool", "get_desktop"]  # only a window manager knows
    wait_until(lambda: subprocess.run(manages, env=desk.environment, capture_output=True, check=False).returncode == 0)

    def terminal(name):
        told = tmp_path / name
        desk.start(name, "xterm", "-geometry", "40x10+100+200", "-T", name, "-e", "sh", "-c",
                   f"echo $$ > {told}.new; mv {told}.new {told}; exec sleep 600")
        wait_until(told.exists)
        wait_until(lambda: in_front(desk) == name)
        return int(told.read_text())

    return terminal


def in_front(desk):
    """Return the title of the window that has the keyboard."""
    done = subprocess.run(["xdotool", "getactivewindow", "getwindowname"], env=desk.environment, capture_output=True,
                          text=True, check=False)
    return done.stdout.strip()


def told(desk):
    """Count the notices that are no more on the screen, but were."""
    done = subprocess.run(["dunstctl", "count", "history"], env=desk.environment, capture_output=True, check=True)
    return int(done.stdout)


def test_a_click_on_a_notice_brings_the_terminal_and_who_looks_at_it_is_not_told(desk, terminals, island):
    agent = Agent(Path(desk.environment["HOME"]), terminals("agent"))
    terminals("other")
    sees(desk, Face.IDLE)
    agent.prompt("p1")
    sees(desk, Face.WORKING)
    agent.answer()
    sees(desk, Face.DONE)
    wait_until(lambda: desk.windows("dunst") == 1)
    desk.click(900, 70, 2)  # dunst acts on the middle button
    wait_until(lambda: in_front(desk) == "agent")
    sees(desk, Face.CALM)
    wait_until(lambda: desk.windows("dunst") == 0)

    before = told(desk)
    agent.prompt("p2")
    sees(desk, Face.WORKING)
    agent.answer()
    sees(desk, Face.CALM)
    assert (desk.windows("dunst"), told(desk)) == (0, before)

    agent.prompt("p3")
    sees(desk, Face.WORKING)
    terminals("third")
    agent.live("waiting", waitingFor="permission prompt")
    sees(desk, Face.YOUR_TURN)
    wait_until(lambda: desk.windows("dunst") == 1)
    desk.click(*ICON)
    wait_until(lambda: desk.pixel(2, FIRST_ROW) != "000000")
    desk.press("Down", "Right", "Return")
    wait_until(lambda: in_front(desk) == "agent")
    sees(desk, Face.CALM)


def test_what_cannot_be_done_is_said(desk, agent, island):
    sees(desk, Face.IDLE)
    agent.prompt("p1")
    sees(desk, Face.WORKING)
    desk.click(*ICON)
    wait_until(lambda: desk.pixel(2, FIRST_ROW) != "000000")
    desk.press("Down", "Right", "Return")
    wait_until(lambda: desk.windows("dunst") == 1)
