"""What watching and reading cost, as a table: `python tests/benchmarks/run.py [NAME ...]`.

Times depend on the machine and on who else uses it; a ratio of two figures of one run says more.
A benchmark is a function that gets an empty folder and yields rows; its first line says what it shows.
"""
# ruff: noqa: T201

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from island.agents import AGENTS
from island.sources.databases import Database
from island.sources.files import Follower
from island.sources.sweep import matcher, sweep
from island.sources.watch import Root, Watch

MB = 1024 * 1024


class Row(NamedTuple):
    """One figure, and how it stands to another of the same run."""

    name: str
    figure: str
    beside: str = ""


def seconds(work: Callable[[], object], times: int) -> float:
    """Return the median time of some work."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken)


def us(taken: float) -> str:
    return f"{taken * 1e6:.0f} µs" if taken < 1e-3 else f"{taken * 1e3:.1f} ms"


def log(path: Path, size: int) -> Path:
    """Write a log of that size, with lines from 0.2 to 80 kB as agents write them."""
    rng = random.Random(1)
    lines = [b"%d" % n + b"x" * int(rng.lognormvariate(7.6, 1.2)) + b"\n" for n in range(400)]
    block = b"".join(line[:80_000] for line in lines)
    with path.open("wb") as file:
        while file.tell() < size:
            file.write(block)
    return path


def tree(folder: Path) -> list[Path]:
    """Make 10 000 old files in 200 folders."""
    files = [folder / f"p{n % 200}" / f"{n}.jsonl" for n in range(10_000)]
    for file in files:
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text("{}\n")
        os.utime(file, (1e9, 1e9))
    return files


def append(path: Path, line: bytes = b"x" * 1400 + b"\n") -> None:
    with path.open("ab") as file:
        file.write(line)


def last_record(folder: Path) -> Iterator[Row]:
    """At first sight, the size of a file does not matter."""

    def first_sight(path: Path) -> None:
        follower = Follower(str(path))
        follower.look()
        next(follower.backwards())

    small, large = log(folder / "small", MB), log(folder / "large", 500 * MB)
    first_sight(small), first_sight(large)
    base = seconds(partial(first_sight, small), 300)
    big = seconds(partial(first_sight, large), 300)
    yield Row("last record of 1 MB", us(base))
    yield Row("last record of 500 MB", us(big), f"{big / base:.2f} of 1 MB")


def one_append(folder: Path) -> Iterator[Row]:
    """A look costs what was appended, whatever is there."""

    def look(path: Path, follower: Follower) -> float:
        append(path)
        return seconds(lambda: follower.look().records, 1)

    figures = []
    for size in (1, 100):
        path = log(folder / str(size), size * MB)
        follower = Follower(str(path))
        follower.look()
        figures.append(median(look(path, follower) for _ in range(500)))
    yield Row("look after one line, 1 MB", us(figures[0]))
    yield Row("look after one line, 100 MB", us(figures[1]), f"{figures[1] / figures[0]:.2f} of 1 MB")
    nothing = seconds(follower.look, 500)
    yield Row("look when nothing changed", us(nothing), f"{nothing / figures[1]:.2f} of one line")


def huge_line(folder: Path) -> Iterator[Row]:
    """A line of 20 MB costs its bytes, once backwards, and twice if it grows in pieces."""
    path = folder / "huge"
    path.write_bytes(b"x" * 20 * MB + b"\n")
    plain = seconds(path.read_bytes, 5)

    def first_sight() -> None:
        follower = Follower(str(path))
        follower.look()
        assert len(next(follower.backwards()).data) == 20 * MB

    whole = seconds(first_sight, 5)
    growing = Follower(str(folder / "growing"))

    def grow() -> None:
        (folder / "growing").write_bytes(b"")
        for _ in range(320):
            append(folder / "growing", b"x" * 65_536)
            growing.look()
        append(folder / "growing", b"\n")
        assert len(growing.look().records[0].data) == 20 * MB

    pieces = seconds(grow, 1)
    yield Row("plain read of 20 MB", us(plain))
    yield Row("line of 20 MB, backwards", us(whole), f"{whole / plain:.1f} of a plain read")
    yield Row("the same in 320 pieces, with writing", us(pieces), f"{pieces / plain:.1f} of a plain read")


def full_look(folder: Path) -> Iterator[Row]:
    """A sweep costs little more than the system calls it needs."""
    tree(folder)
    patterns = [f"{folder}/*/*.jsonl", f"{folder}/*/*/subagents/agent-*.jsonl"]

    def bare() -> None:
        for below in os.scandir(folder):
            for entry in os.scandir(below.path):
                entry.stat()

    base, every = seconds(bare, 15), seconds(lambda: sweep(patterns), 15)
    recent = seconds(lambda: sweep(patterns, newer_than=1.5e9), 15)
    yield Row("bare listing and stat of 10 000 files", us(base))
    yield Row("sweep of 10 000 files, all new", us(every), f"{every / base:.2f} of bare")
    yield Row("sweep of 10 000 files, all old", us(recent), f"{recent / base:.2f} of bare")


@asynccontextmanager
async def watching(folder: Path, hot: list[Path]) -> Iterator[Watch]:
    patterns = [f"{folder}/*/*.jsonl"]
    watch = Watch(
        lambda: [Root(str(folder)), Root(str(folder.parent), deep=False)],
        lambda: [str(path) for path in hot],
        partial(sweep, patterns, time.time() - 7 * 86400),
        wanted=matcher(patterns),
    )
    run = asyncio.create_task(watch.run())
    await asyncio.sleep(1)
    yield watch
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)


def latency(folder: Path) -> Iterator[Row]:
    """From an append to its hint: one to two steps of the watcher, without help of the hot set."""

    async def measure() -> list[float]:
        taken = []
        files = tree(folder)
        async with watching(folder, []) as watch:
            for _ in range(200):
                await asyncio.sleep(random.uniform(0.03, 0.3))
                append(path := random.choice(files))
                start = time.perf_counter()
                while str(path) not in await watch.changed():
                    pass
                taken.append(time.perf_counter() - start)
        return taken

    cuts = quantiles(asyncio.run(measure()), n=20)
    yield Row("append to hint, p50", us(cuts[9]))
    yield Row("append to hint, p95", us(cuts[18]), f"{cuts[18] / 0.05:.2f} of 50 ms")


SCHEMA = """
create table session (id text primary key, parent_id text, directory text, title text, version text, revert text,
  permission text, time_created integer, time_updated integer, time_archived integer);
create table message (id text primary key, session_id text, time_created integer, time_updated integer, data text);
create table part (id text primary key, message_id text, session_id text, time_created integer, time_updated integer,
  data text);
create index message_session_time_created_id_idx on message (session_id, time_created, id);
create index part_message_id_id_idx on part (message_id, id);
create table session_message (session_id text, type text, seq integer);
create unique index session_message_session_seq_idx on session_message (session_id, seq);
"""


def opencode(path: Path, size: int) -> sqlite3.Connection:
    """Make a database as OpenCode has it: 400 sessions, a tenth of them of today, of 60 messages of 5 parts."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("pragma journal_mode=wal; pragma synchronous=normal;" + SCHEMA)
    part, now = "x" * (size // 120_000), int(time.time() * 1000)
    connection.execute("begin")
    for number in range(400):
        updated = now - 60_000 * number - (0 if number < 40 else 10**9)
        connection.execute("insert into session values (?, null, '/app', 't', '1', null, null, ?, ?, null)",
                           (f"s{number}", updated - 10**7, updated))
        for turn in range(60):
            message, at = f"m{number}-{turn:03}", updated - 1000 * (60 - turn)
            data = {"role": "assistant" if turn % 2 else "user", "parentID": f"m{number}-{turn - 1:03}",
                    "finish": "stop", "time": {"created": at, "completed": at + 900}, "text": part[:500]}
            connection.execute("insert into message values (?, ?, ?, ?, ?)",
                               (message, f"s{number}", at, at, json.dumps(data)))
            parts = [(f"p{message}-{n}", message, f"s{number}", at, at, json.dumps({"type": "text", "text": part}))
                     for n in range(5)]
            connection.executemany("insert into part values (?, ?, ?, ?, ?, ?)", parts)
    connection.execute("commit")
    connection.execute("pragma wal_checkpoint(truncate)")
    return connection


def database(folder: Path) -> Iterator[Row]:
    """A look at a database costs what has changed, not what is kept; and its writer does not feel it."""
    queries = next(source.queries for source in AGENTS["opencode"].sources if source.queries)
    figures: dict[int, tuple[float, ...]] = {}
    for size in (20 * MB, 2000 * MB):
        path = folder / f"{size}.db"
        connection = opencode(path, size)
        follower = Database(str(path), queries)
        numbers = itertools.count()

        def write(connection: sqlite3.Connection = connection, numbers: Iterator[int] = numbers) -> None:
            now = int(time.time() * 1000)
            connection.execute("insert into part values (?, 'm0-059', 's0', ?, ?, '{}')",
                               (f"new{next(numbers)}", now, now))

        def look(follower: Database = follower) -> None:
            assert follower.look().error == ""

        first = seconds(look, 1)
        alone = seconds(write, 300)
        looks, beside = [], []
        for _ in range(300):
            beside.append(seconds(write, 1))
            looks.append(seconds(look, 1))
        figures[size] = first, median(looks), alone, median(beside), seconds(look, 300)
        yield Row(f"{size // MB} MB: first look at 40 sessions of today", us(first))
        connection.close()
    small, large = figures.values()
    yield Row("2 GB: look after a write", us(large[1]), f"{large[1] / small[1]:.2f} of 20 MB")
    yield Row("2 GB: look when nothing changed", us(large[4]), f"{large[4] / large[1]:.3f} of a look")
    yield Row("2 GB: a write between looks", us(large[3]), f"{large[3] / large[2]:.2f} of a write without them")


def idle(folder: Path) -> Iterator[Row]:
    """Nothing happens: 10 000 old files, 40 hot ones, two watchers, one sweep a minute."""

    async def measure(hot: list[Path], length: float) -> tuple[float, int]:
        async with watching(folder, hot):
            before, woken = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
            await asyncio.sleep(length)
            woken = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - woken
            return (time.process_time() - before) / length, int(woken / length)

    files = tree(folder)
    looks, woken = asyncio.run(measure(files[::250], 20))
    sweeps = seconds(lambda: sweep([f"{folder}/*/*.jsonl"], time.time() - 7 * 86400), 5) / 60
    yield Row("idle: watcher and hot set", f"{looks:.2%} of a core", f"{woken} wake-ups a second")
    yield Row("idle: with a sweep a minute", f"{looks + sweeps:.2%} of a core", "0.50% is the goal")


BENCHMARKS = {work.__name__: work for work in (last_record, one_append, huge_line, full_look, latency, database,
                                                 idle)}


def main(names: list[str]) -> None:
    for name in names or BENCHMARKS:
        work = BENCHMARKS[name]
        print(f"\n{name}: {work.__doc__}")
        with tempfile.TemporaryDirectory() as folder:
            (home := Path(folder) / "home").mkdir()
            for row in work(home):
                print(f"  {row.name:<40} {row.figure:>16}   {row.beside}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
