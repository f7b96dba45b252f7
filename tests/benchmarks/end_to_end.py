"""What the whole of island costs, as a table: `python tests/benchmarks/end_to_end.py [--profile FOLDER] [NAME ...]`.

The running program is a process of its own, watched from outside, in a temporary home with 10 000 old session
files in 200 folders and some live sessions whose owners are real processes. Times depend on the machine and on
who else uses it; a ratio of two figures of one run says more. With --profile, each observed process leaves a
profile there, for `python -m pstats`.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import psutil

from island.agents import AGENTS
from island.model import Snapshot
from island.observer import Observer
from island.running import Running
from island.scene import RecordedTable

MB = 1024 * 1024
LENGTH = 30.0  # seconds that a load is measured for
PROFILES: list[Path] = []  # the folder for profiles, if there is one


class Row(NamedTuple):
    """One figure, and how it stands to another of the same run."""

    name: str
    figure: str
    beside: str = ""


def ms(taken: float) -> str:
    return f"{taken * 1e3:.1f} ms"


# -- records, as Claude Code writes them ---------------------------------------------------------------------

numbers = count()


def record(kind: str, session: str, **more: object) -> bytes:
    stamp = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    base = {"parentUuid": f"{next(numbers):032x}", "isSidechain": False, "type": kind, "uuid": f"{next(numbers):032x}",
            "timestamp": stamp, "entrypoint": "cli", "cwd": f"/home/dev/{session}", "sessionId": session,
            "version": "2.1.332", "gitBranch": "main", "userType": "external"}
    return json.dumps(base | more, separators=(",", ":")).encode() + b"\n"


def prompt(session: str) -> bytes:
    message = {"role": "user", "content": "prompt"}
    return record("user", session, promptId=f"p{next(numbers)}", promptSource="typed", message=message)


def call(session: str, ident: str) -> bytes:
    message = {"id": f"m{ident}", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "tool_use",
               "content": [{"type": "tool_use", "id": ident, "name": "Read", "input": {"file_path": "/x" * 200}}],
               "usage": {"input_tokens": 12, "cache_read_input_tokens": 18_000, "output_tokens": 42}}
    return record("assistant", session, message=message)


def result(session: str, ident: str, size: int) -> bytes:
    content = [{"type": "tool_result", "tool_use_id": ident, "content": "y" * size}]
    message = {"role": "user", "content": content}
    return record("user", session, message=message, toolUseResult={"file": {"content": "z" * size}})


def answer(session: str) -> bytes:
    message = {"id": "m", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "end_turn",
               "content": [{"type": "text", "text": "w" * 1200}]}
    return record("assistant", session, message=message) + record("system", session, subtype="turn_duration")


def steps(session: str) -> Iterator[bytes]:
    """Yield lines of a turn at work, for ever: calls, results of all sizes, bookkeeping."""
    rng = random.Random(1)
    for n in count():
        yield call(session, f"t{n}")
        yield record("api-request", session, querySource="repl_main_thread")
        yield result(session, f"t{n}", min(60_000, int(rng.lognormvariate(6.5, 1.2))))
        yield record("attachment", session, attachment={"kind": "x" * 300})


def turns(session: str, size: int) -> Iterator[bytes]:
    """Yield whole turns, so many bytes of them."""
    work, written = steps(session), 0
    while written < size:
        turn = prompt(session) + b"".join(next(work) for _ in range(200)) + answer(session)
        written += len(turn)
        yield turn


# -- a home, and who lives in it -----------------------------------------------------------------------------


class Home:
    """A home with 10 000 old files, and live sessions whose owners wait for their input to end."""

    def __init__(self, root: Path, live: int) -> None:
        self.root = root
        self.projects, self.records = root / ".claude" / "projects", root / ".claude" / "sessions"
        self.records.mkdir(parents=True)
        for n in range(10_000):
            file = self.projects / f"p{n % 200}" / f"{n:08}-old.jsonl"
            file.parent.mkdir(exist_ok=True, parents=True)
            file.write_text("{}\n")
            os.utime(file, (1e9, 1e9))
        wait = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
        self.owners = {f"s{n}": subprocess.Popen(wait, stdin=subprocess.PIPE) for n in range(live)}
        for n, session in enumerate(self.owners):
            self.path(session).write_bytes(b"".join(turns(session, MB if n else 20 * MB)))
            self.live(session, "idle")

    def path(self, session: str) -> Path:
        return self.projects / "p0" / f"{session}.jsonl"

    def append(self, session: str, lines: bytes) -> float:
        """Append, and return the moment at which that was done."""
        with self.path(session).open("ab") as file:
            file.write(lines)
        return time.monotonic()

    def live(self, session: str, status: str) -> None:
        pid, now = self.owners[session].pid, int(time.time() * 1000)
        owner = psutil.Process(pid)
        said = {"pid": pid, "sessionId": session, "cwd": f"/home/dev/{session}", "version": "2.1.332",
                "startedAt": int(owner.create_time() * 1000), "kind": "interactive", "entrypoint": "cli",
                "status": status, "updatedAt": now, "statusUpdatedAt": now}
        (self.records / f"{pid}.json").write_text(json.dumps(said))

    def end(self) -> None:
        for owner in self.owners.values():
            owner.communicate()


@contextmanager
def inhabited(root: Path, live: int) -> Iterator[Home]:
    home = Home(root, live)
    try:
        yield home
    finally:
        home.end()


def homes_in(root: str) -> dict[str, str]:
    return {name: agent.home({}, root) for name, agent in AGENTS.items()}


# -- the observed process ------------------------------------------------------------------------------------


def observe(home: str, profile: str) -> None:
    """Be the observed process: say when what was published, until the input ends."""
    shown: dict[str, str] = {}

    def publish(snapshot: Snapshot, _: object) -> None:
        now = {row.session: f"{row.verdict.state}/{row.verdict.reason}" for row in snapshot.rows}
        changed = {session: said for session, said in now.items() if shown.get(session) != said}
        shown.update(changed)
        print(json.dumps({"at": time.monotonic(), "changed": changed}), flush=True)

    async def work() -> None:
        print(json.dumps({"at": time.monotonic(), "changed": {}}), flush=True)
        task = asyncio.create_task(Running(publish, homes_in(home)).run())
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), task.cancel)
        await asyncio.wait([task])

    profiled = cProfile.Profile() if profile else None
    with profiled or nullcontext():
        asyncio.run(work())
    if profiled:
        profiled.dump_stats(profile)


class Observed:
    """A running program in a process of its own, and what it published when."""

    def __init__(self, home: Home, name: str) -> None:
        self.began = time.monotonic()
        profile = str(PROFILES[0] / f"{name}.prof") if PROFILES else ""
        self._process = subprocess.Popen([sys.executable, __file__, "--observe", str(home.root), profile], text=True,
                                         stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         env=os.environ | {"HOME": str(home.root)})
        self.system = psutil.Process(self._process.pid)
        self.said: list[tuple[float, dict[str, str]]] = []
        self._more = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()
        self.wait(lambda: set(home.owners) <= self.sessions)

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            said = json.loads(line)
            with self._more:
                self.said.append((said["at"], said["changed"]))
                self._more.notify_all()

    @property
    def sessions(self) -> set[str]:
        return {session for _, changed in self.said for session in changed}

    def wait(self, true: Callable[[], object]) -> None:
        with self._more:
            if not self._more.wait_for(true, 60):
                raise TimeoutError

    def said_of(self, session: str, state: str, after: float) -> float:
        """Wait until a session's state is published after that moment, and return when it was."""
        def found() -> float:
            return next((at for at, changed in reversed(self.said)
                         if at >= after and changed.get(session, "").startswith(state)), 0.0)

        self.wait(found)
        return found()

    def load(self, length: float) -> dict[str, float]:
        """Measure what it uses from now on, for so many seconds."""
        before, woken, said = self.system.cpu_times(), self._woken(), len(self.said)
        time.sleep(length)
        now, memory = self.system.cpu_times(), self.system.memory_info()
        return {"cpu": (now.user + now.system - before.user - before.system) / length, "rss": memory.rss / MB,
                "woken": (self._woken() - woken) / length, "published": (len(self.said) - said) / length}

    def _woken(self) -> int:
        """Count how often any of its threads was woken; other systems than Linux do not tell by thread."""
        threads = Path(f"/proc/{self.system.pid}/task").glob("*/status")
        lines = (line for thread in threads for line in thread.read_text().splitlines())
        return sum(int(line.split()[1]) for line in lines if line.startswith("voluntary"))

    def end(self) -> None:
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait()


@contextmanager
def observed(home: Home, name: str) -> Iterator[Observed]:
    program = Observed(home, name)
    try:
        yield program
    finally:
        program.end()


def told(load: dict[str, float]) -> str:
    return f"{load['rss']:.0f} MB, {load['woken']:.0f} wake-ups/s, {load['published']:.1f} snapshots/s"


# -- benchmarks ----------------------------------------------------------------------------------------------


def latency(root: Path) -> Iterator[Row]:
    """From the append of a line to the published snapshot, with five live sessions among 10 000 old files."""
    rng, taken = random.Random(1), {"working": [], "your-turn": []}
    with inhabited(root, 5) as home, observed(home, "latency") as program:
        for n in range(200):
            session = rng.choice(list(home.owners))
            for state, lines in (("working", prompt(session)), ("your-turn", answer(session))):
                time.sleep(rng.uniform(0.03, 0.3))
                at = home.append(session, lines)
                if n >= 5:  # the first ones warm it up
                    taken[state].append(program.said_of(session, state, at) - at)
                else:
                    program.said_of(session, state, at)
    for state, figures in taken.items():
        cuts = quantiles(figures, n=20)
        yield Row(f"a line that means {state}, p50", ms(median(figures)))
        yield Row(f"a line that means {state}, p95", ms(cuts[18]), f"worst {ms(max(figures))}")


def idle(root: Path) -> Iterator[Row]:
    """Nothing happens, or nothing but waiting: 10 000 old files, five live sessions, no line written."""
    with inhabited(root, 5) as home, observed(home, "idle") as program:
        time.sleep(3)
        load = program.load(LENGTH)
        yield Row("idle: five sessions that wait", f"{load['cpu']:.2%} of a core", told(load))
        for session in list(home.owners)[:2]:
            home.live(session, "busy")
            program.said_of(session, "working", home.append(session, prompt(session)))
        time.sleep(6)
        load = program.load(LENGTH)
        yield Row("two of them work in silence", f"{load['cpu']:.2%} of a core", told(load))


def fleet(root: Path) -> Iterator[Row]:
    """Twenty live sessions, each written at five lines a second."""
    over = threading.Event()

    def write(home: Home) -> None:
        works = {session: steps(session) for session in home.owners}
        began = time.monotonic()
        for n in count():
            for session, lines in works.items():
                home.append(session, next(lines))
                over.wait(max(0.0, began + n * 0.2 - time.monotonic()) / len(works))
            if over.is_set():
                return

    with inhabited(root, 20) as home, observed(home, "fleet") as program:
        for session in home.owners:
            home.live(session, "busy")
            home.append(session, prompt(session))
        writer = threading.Thread(target=write, args=(home,))
        writer.start()
        time.sleep(3)
        size = sum(home.path(s).stat().st_size for s in home.owners)
        load = program.load(LENGTH)
        size = sum(home.path(s).stat().st_size for s in home.owners) - size
        over.set()
        writer.join()
    yield Row("twenty sessions, 100 lines/s", f"{load['cpu']:.2%} of a core", told(load))
    yield Row("they wrote", f"{size / LENGTH / 1024:.0f} kB/s")


def start(root: Path) -> Iterator[Row]:
    """From the start of the process to the first snapshot that shows all five live sessions."""
    first, whole, inside = [], [], []
    with inhabited(root, 5) as home:
        for n in range(7):
            with observed(home, f"start-{n}") as program:
                first.append(program.said[1][0] - program.began)
                end = next(at for at, changed in program.said if set(home.owners) <= set(changed))
                whole.append(end - program.began)
                inside.append(end - program.said[0][0])
    yield Row("process to first snapshot", ms(median(first)))
    yield Row("process to all sessions", ms(median(whole)), f"worst {ms(max(whole))}")
    yield Row("of it after Python and imports", ms(median(inside)))


def observer(root: Path) -> Observer:
    table = RecordedTable(frozenset())
    return Observer(homes_in(str(root)), table, time.time())


def history(root: Path, session: str, size: int, *last: bytes) -> str:
    path = root / ".claude" / "projects" / "p" / f"{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    block = b"".join(turns(session, min(size, 10 * MB)))
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(block)
        file.writelines(last)
    return str(path)


def first_sight(root: Path) -> Iterator[Row]:
    """At first sight a transcript costs what its last turn does, whatever lies before."""
    figures = {}
    for size in (1, 500):
        path = history(root, f"s{size}", size * MB, prompt(f"s{size}"), *work(f"s{size}", 40))
        figures[size] = median(sight(root, path) for _ in range(20))
        yield Row(f"first sight of {size} MB", ms(figures[size]), f"{figures[size] / figures[1]:.2f} of 1 MB")
    for lines in (1000, 4000, 16_000):
        path = history(root, f"t{lines}", MB, prompt(f"t{lines}"), *work(f"t{lines}", lines))
        taken = median(sight(root, path) for _ in range(3))
        yield Row(f"first sight of a turn of {lines} lines", ms(taken), f"{taken / lines * 1e6:.0f} µs a line")


def work(session: str, lines: int) -> list[bytes]:
    return list(islice(steps(session), lines))


def sight(root: Path, path: str) -> float:
    watcher = observer(root)
    began = time.perf_counter()
    watcher.changed([path], time.time())
    taken = time.perf_counter() - began
    assert watcher.sessions.rows()[0].verdict.state == "working"
    return taken


def throughput(root: Path) -> Iterator[Row]:
    """From bytes to verdict: a block of lines is appended to a followed file, and one look takes them all."""
    path, lines = history(root, "s", 0, prompt("s")), work("s", 10_000)
    watcher = observer(root)
    watcher.changed([path], time.time())
    taken = look(watcher, path, lines)
    size = sum(map(len, lines)) / MB
    yield Row("records/s, one look for all", f"{len(lines) / taken:,.0f}", f"{size / taken:.0f} MB/s")


def one_line(root: Path) -> Iterator[Row]:
    """From one line to verdict and snapshot: with many lines before it in its turn, or many other sessions."""
    base = 0.0
    for lines, others in ((0, 0), (1000, 0), (4000, 0), (16_000, 0), (0, 20), (0, 200)):
        watcher = observer(root)
        path = history(root, "s", 0, prompt("s"), *work("s", lines))
        watcher.changed([path, *(history(root, f"o{n}", 0, prompt(f"o{n}")) for n in range(others))], time.time())
        taken = median(look(watcher, path, [line], show=True) for line in work("s", 200))
        base = base or taken
        yield Row(f"{lines} lines before it, {others} other sessions", ms(taken), f"{taken / base:.1f} of none")


def look(watcher: Observer, path: str, lines: list[bytes], *, show: bool = False) -> float:
    """Append lines and return how long the look at them takes."""
    with Path(path).open("ab") as file:
        file.writelines(lines)
    began = time.perf_counter()
    watcher.changed([path], time.time())
    if show:
        watcher.snapshot(time.time())
    return time.perf_counter() - began


BENCHMARKS = {work.__name__: work for work in (latency, idle, fleet, start, first_sight, throughput, one_line)}


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--observe"]:
        observe(*arguments[1:])
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    chosen = parser.parse_args(arguments)
    if chosen.profile:
        chosen.profile.mkdir(exist_ok=True, parents=True)
        PROFILES.append(chosen.profile.resolve())
    for name in chosen.names or BENCHMARKS:
        work = BENCHMARKS[name]
        print(f"\n{name}: {work.__doc__}")
        with tempfile.TemporaryDirectory() as folder:
            for row in work(Path(folder)):
                print(f"  {row.name:<46} {row.figure:>16}   {row.beside}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
