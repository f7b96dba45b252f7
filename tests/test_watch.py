"""The watch: each layer of hints alone finds what it can, and together they miss nothing.

Real files and the real watcher; a test waits for what must come, never for a time in which it should.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from functools import partial, wraps
from pathlib import Path

import pytest
from watchfiles import Change

from island.sources import watch as module
from island.sources.sweep import Found, sweep
from island.sources.watch import Pace, Root, Watch

DEADLINE = 20  # seconds until a test gives up; a good machine needs a small part of one
NEVER = 3600.0
QUICK = Pace(working=0.02, resting=0.02, sweep=NEVER, blind=0.05, retry=0.02, retry_most=0.1)


def in_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**fixtures: object) -> None:
        asyncio.run(asyncio.wait_for(test(**fixtures), 3 * DEADLINE))

    return run


class Heard(set[str]):
    """Gathers hints, and waits for those that must come."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch = watch
        self.sweeps: list[list[Found]] = []

    async def gather(self) -> None:
        while True:
            self |= await self.watch.changed()

    async def of(self, *paths: Path) -> None:
        await until(lambda: {str(path) for path in paths} <= self)
        self.clear()


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not true():  # noqa: ASYNC110 -- what is waited for is mostly a file system
            await asyncio.sleep(0.005)


@asynccontextmanager
async def watching(
    *fixed: Root,
    roots: Callable[[], Iterable[Root]] | None = None,
    hot: tuple[Path, ...] = (),
    patterns: tuple[str, ...] = (),
    **more: object,
) -> AsyncIterator[Heard]:
    def look() -> list[Found]:
        heard.sweeps.append(sweep(patterns))
        return heard.sweeps[-1]

    watch = Watch(
        roots or (lambda: fixed), lambda: [str(path) for path in hot], look, **{"pace": QUICK} | more
    )
    heard = Heard(watch)
    tasks = [asyncio.create_task(watch.run()), asyncio.create_task(heard.gather())]
    await until(lambda: heard.sweeps)  # the watcher is up before the first sweep
    try:
        yield heard
        assert not any(task.done() for task in tasks)
    finally:
        await stopped(*tasks)


async def stopped(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def append(path: Path, text: str = "more\n") -> None:
    with path.open("a") as file:
        file.write(text)


# The watcher


@pytest.mark.windows("hints at what is appended")
@in_loop
async def test_an_append_a_new_file_a_rename_and_a_removal_are_hints(tmp_path):
    file, other = tmp_path / "p" / "one.jsonl", tmp_path / "two.jsonl"
    file.parent.mkdir()
    file.touch()
    async with watching(Root(str(tmp_path))) as heard:
        append(file)
        await heard.of(file)
        other.touch()
        await heard.of(other)
        other.replace(file)
        await heard.of(file, other)
        file.unlink()
        await heard.of(file)


@in_loop
async def test_only_what_is_wanted_is_a_hint(tmp_path):
    async with watching(Root(str(tmp_path)), wanted=lambda path: path.endswith(".jsonl")) as heard:
        (tmp_path / "noise").touch()
        (tmp_path / "one.jsonl").touch()
        await until(lambda: heard)
        assert heard == {str(tmp_path / "one.jsonl")}


@in_loop
async def test_below_a_root_that_is_not_deep_nothing_is_heard_or_listed(tmp_path):
    (tmp_path / "packages").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "noise").touch()
    root = tmp_path / "root"
    root.mkdir()
    async with watching(Root(str(root), deep=False)) as heard:
        (tmp_path / "packages").rename(root / "packages")
        (tmp_path / "full").rename(root / "full")
        (root / "packages" / "noise").touch()
        await until(lambda: str(root / "full") in heard)
        (root / "index").touch()
        await until(lambda: str(root / "index") in heard)
        assert heard == {str(root / name) for name in ("packages", "full", "index")}


@pytest.mark.windows("hints from folders below that were there before")
@in_loop
async def test_flat_and_deep_roots_may_lie_in_each_other(tmp_path):
    day, other = tmp_path / "a" / "sessions" / "day", tmp_path / "other"
    day.mkdir(parents=True)
    other.mkdir()
    roots = Root(str(tmp_path / "a"), deep=False), Root(str(day.parent)), Root(str(other))
    async with watching(*roots) as heard:
        files = {day / "one", tmp_path / "a" / "index", other / "two"}
        for file in files:
            file.touch()
        await until(lambda: len(heard) >= len(files))
        assert heard == set(map(str, files))


@in_loop
async def test_files_made_together_with_their_folders_are_heard(tmp_path):
    files = [tmp_path / f"a{n}" / "b" / "c" / "one.jsonl" for n in range(100)]
    async with watching(Root(str(tmp_path))) as heard:
        for file in files:
            file.parent.mkdir(parents=True)
            file.touch()
        await heard.of(*files)


@in_loop
async def test_a_new_folder_is_listed_twice(tmp_path):
    """The watcher may come to the folder only after our first listing: what was made in between is found."""
    folder = tmp_path / "new"
    folder.mkdir()

    async def listen(*paths, stop_event, **more):
        yield {(Change.added, str(folder))}
        (folder / "late.jsonl").touch()
        await stop_event_set(stop_event)

    async with watching(Root(str(tmp_path)), listen=listen) as heard:
        await heard.of(folder / "late.jsonl")


@in_loop
async def test_a_root_may_appear_later(tmp_path):
    root = tmp_path / "agent" / "sessions"
    async with watching(Root(str(root)), patterns=(f"{root}/*.jsonl",)) as heard:
        root.mkdir(parents=True)
        (root / "one.jsonl").touch()
        await heard.of(root / "one.jsonl")
        append(root / "one.jsonl")
        await heard.of(root / "one.jsonl")


@pytest.mark.windows("names that are free while their folder is still watched")
@pytest.mark.parametrize("leave", [shutil.rmtree, lambda root: root.rename(root.with_name("away"))])
@in_loop
async def test_a_root_may_vanish_and_return(tmp_path, leave):
    root = tmp_path / "root"
    root.mkdir()
    async with watching(Root(str(root)), Root(str(tmp_path), deep=False), patterns=(f"{root}/*",)) as heard:
        leave(root)
        root.mkdir()
        (root / "one").touch()
        await heard.of(root / "one")
        append(root / "one")
        await heard.of(root / "one")
        assert heard.watch.trouble == ()


@in_loop
async def test_roots_may_be_learned_of_later(tmp_path):
    roots: list[Root] = []
    async with watching(roots=lambda: roots) as heard:
        roots.append(Root(str(tmp_path)))
        await until(lambda: len(heard.sweeps) == 2)  # one follows each start of the watcher
        (tmp_path / "one").touch()
        await heard.of(tmp_path / "one")


@pytest.mark.posix("links for everybody")
@in_loop
async def test_a_linked_root_speaks_under_its_own_name(tmp_path):
    real, link, again = tmp_path / "real", tmp_path / "link", tmp_path / "again"
    real.mkdir()
    link.symlink_to(real)
    again.symlink_to(link)
    async with watching(Root(str(link)), Root(str(again))) as heard:
        (real / "one").touch()
        await until(lambda: str(link / "one") in heard)
        assert heard == {str(link / "one"), str(again / "one")}


@pytest.mark.posix("links for everybody")
@in_loop
async def test_a_loop_of_links_does_no_harm(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "loop").symlink_to(tmp_path)
    async with watching(Root(str(tmp_path))) as heard:
        (tmp_path / "p" / "one").touch()
        await heard.of(tmp_path / "p" / "one")


# The watcher fails


def failing(error: Exception, times: int) -> Callable[..., AsyncIterator[set[tuple[Change, str]]]]:
    """Return a watcher that fails so many times, and then is quiet."""
    left = [times]

    async def listen(*paths, stop_event, **more):
        left[0] -= 1
        if left[0] >= 0:
            raise error
        await stop_event_set(stop_event)
        for nothing in ():
            yield nothing

    return listen


async def stop_event_set(event: asyncio.Event) -> None:
    while not event.is_set():  # noqa: ASYNC110 -- as the watcher does, which has only is_set
        await asyncio.sleep(0.005)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            OSError("OS file watch limit reached. about [...]"),
            "the system's limit of file watches is reached",
        ),
        (RuntimeError("Too many open files (os error 24)"), "the system's limit of file watches is reached"),
        (ExceptionGroup("", [RuntimeError("it broke")]), "the file watcher failed (it broke)"),
    ],
)
@in_loop
async def test_without_a_watcher_files_are_polled_and_the_trouble_is_told(tmp_path, error, words):
    hot, cold = tmp_path / "hot", tmp_path / "cold"
    hot.touch()
    more = {"hot": (hot,), "patterns": (f"{tmp_path}/*",), "listen": failing(error, 10**9)}
    async with watching(Root(str(tmp_path)), **more) as heard:
        assert heard.watch.trouble == (f"{words}; files are polled instead, which is slower",)
        await heard.of(hot)
        append(hot)
        cold.touch()
        await heard.of(hot, cold)


@in_loop
async def test_a_watcher_that_recovers_ends_the_trouble_with_a_sweep(tmp_path):
    pace = Pace(working=0.02, resting=0.02, sweep=NEVER, blind=NEVER, retry=0.05)
    more = {"patterns": (f"{tmp_path}/*",), "listen": failing(OSError("no"), 2), "pace": pace}
    async with watching(Root(str(tmp_path)), **more) as heard:
        assert heard.watch.trouble
        (tmp_path / "meanwhile").touch()
        await until(lambda: not heard.watch.trouble)
        await heard.of(tmp_path / "meanwhile")


@in_loop
async def test_retries_are_further_and_further_apart():
    ears = module._Ears(lambda *_: None, Pace(retry=1.0, retry_most=8.0), failing(OSError("no"), 10**9))
    now, delays = asyncio.get_running_loop().time(), []
    for _ in range(6):
        assert not await ears.open([Root(os.sep)], now)
        delays.append(round(ears._retry_at - asyncio.get_running_loop().time()))
        assert not await ears.open([Root(os.sep)], ears._retry_at - 0.1)
        now = ears._retry_at
    assert delays == [1, 2, 4, 8, 8, 8]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere file names are text")
@in_loop
async def test_a_name_that_is_no_text_stops_the_watcher_and_it_comes_back(tmp_path):
    async with watching(Root(str(tmp_path))) as heard:
        (tmp_path / os.fsdecode(b"\xff")).touch()
        await until(lambda: heard.watch.trouble)
        await until(lambda: not heard.watch.trouble)
        (tmp_path / "one").touch()
        await heard.of(tmp_path / "one")


# The hot set and the sweep


def deaf(*paths: str, stop_event: asyncio.Event, **more: object) -> AsyncIterator[set[tuple[Change, str]]]:
    return failing(OSError(), 0)(*paths, stop_event=stop_event, **more)


@in_loop
async def test_a_hot_file_is_a_hint_when_it_becomes_hot_and_when_its_stamp_changes(tmp_path):
    file = tmp_path / "one"
    file.touch()
    async with watching(hot=(file,), listen=deaf) as heard:
        await heard.of(file)
        append(file)
        await heard.of(file)
        os.utime(file, (5, 5))
        await heard.of(file)
        file.unlink()
        await heard.of(file)
        file.touch()
        await heard.of(file)


@in_loop
async def test_an_unchanged_hot_file_is_no_hint(tmp_path):
    file, clock = tmp_path / "one", tmp_path / "two"
    file.touch()
    async with watching(hot=(file, clock), listen=deaf) as heard:
        await heard.of(file)
        for _ in range(3):
            append(clock)
            await until(lambda: str(clock) in heard)
            assert heard == {str(clock)}
            heard.clear()


@in_loop
async def test_the_pace_follows_what_is_at_work():
    busy, looks = [True, True, False], []
    pace = Pace(working=0, resting=NEVER)
    watch = Watch(list, lambda: looks.append(1) or [], list, busy=lambda: busy.pop(0), pace=pace)
    run = asyncio.create_task(watch.run())
    await until(lambda: not busy)
    for _ in range(100):
        await asyncio.sleep(0)
    assert len(looks) == 3
    await stopped(run)


@in_loop
async def test_the_first_hints_are_all_that_the_sweep_finds(tmp_path):
    files = [tmp_path / str(n) for n in range(5)]
    for file in files:
        file.touch()
    async with watching(patterns=(f"{tmp_path}/*",)) as heard:
        await heard.of(*files)


@in_loop
async def test_a_sweep_hints_at_what_came_changed_or_went(tmp_path):
    came, changed, went, same = (tmp_path / name for name in ("came", "changed", "went", "same"))
    for file in (changed, went, same):
        file.touch()
    pace = Pace(resting=0.01, sweep=0.02)
    async with watching(patterns=(f"{tmp_path}/*",), listen=deaf, pace=pace) as heard:
        await heard.of(changed, went, same)
        came.touch()
        append(changed)
        went.unlink()
        await until(lambda: {str(came), str(changed), str(went)} <= heard)
        assert str(same) not in heard


@in_loop
async def test_a_sweep_can_be_asked_for(tmp_path):
    async with watching(patterns=(f"{tmp_path}/*",), listen=deaf) as heard:
        (tmp_path / "one").touch()
        heard.watch.sweep_soon()
        await heard.of(tmp_path / "one")


# Waiting and stopping


@in_loop
async def test_a_wait_that_is_cancelled_loses_no_hint(tmp_path):
    watch = Watch(list, list, partial(sweep, [f"{tmp_path}/*"]), pace=Pace(resting=0.01, sweep=0.01))
    (tmp_path / "one").touch()
    for _ in range(20):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(watch.changed(), 0)
    run = asyncio.create_task(watch.run())
    assert await watch.changed() == {str(tmp_path / "one")}
    await stopped(run)


def test_a_watch_that_ends_leaves_no_thread(tmp_path):
    before = set(threading.enumerate())

    async def some_time() -> None:
        async with watching(Root(str(tmp_path)), Root(str(tmp_path), deep=False)) as heard:
            (tmp_path / "one").touch()
            await heard.of(tmp_path / "one")

    asyncio.run(some_time())
    for thread in set(threading.enumerate()) - before:
        thread.join(DEADLINE)
        assert not thread.is_alive()


@in_loop
async def test_the_watcher_has_ended_when_run_has(tmp_path):
    watch = Watch(lambda: [Root(str(tmp_path))], list, list, pace=QUICK)
    run = asyncio.create_task(watch.run())
    await until(lambda: watch._ears._tasks)
    tasks = list(watch._ears._tasks)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert all(task.done() for task in tasks)
