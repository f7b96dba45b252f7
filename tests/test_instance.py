"""One island at a time: who holds the lock, where it lies, and what frees it."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from island.instance import Instance, LockError, RunsAlreadyError, lock_path, runs

HOLD = """
import sys
from pathlib import Path
from island.instance import Instance
with Instance(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "lock"


@pytest.fixture
def other(lock):
    """Another process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline().strip() == b"held"
        yield process
        process.stdin.close()


def test_the_second_is_told_and_the_first_keeps_it(lock):
    with Instance(lock):
        for _ in range(2):
            with pytest.raises(RunsAlreadyError), Instance(lock):
                pytest.fail("both hold it")


def test_it_is_free_after_the_block_whatever_ended_it(lock):
    with pytest.raises(ZeroDivisionError), Instance(lock):
        raise ZeroDivisionError
    with Instance(lock):
        pass
    assert lock.exists()


def test_another_process_is_told(lock, other):
    with pytest.raises(RunsAlreadyError), Instance(lock):
        pytest.fail("both hold it")
    other.stdin.close()
    other.wait()
    with Instance(lock):
        pass


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_the_system_frees_it_when_its_holder_is_killed(lock, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    with Instance(lock):
        pass


def test_a_program_started_meanwhile_does_not_hold_it(lock):
    command = [sys.executable, "-c", "print(flush=True); input()"]
    with Instance(lock):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=False)
        child.stdout.readline()  # it runs its own program now
    with child, Instance(lock):
        child.communicate(b"\n")


def test_it_leaks_no_file(lock):
    before = open_files()
    for _ in range(3):
        with Instance(lock), pytest.raises(RunsAlreadyError), Instance(lock):
            pytest.fail("both hold it")
    assert open_files() == before


def open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes")
def test_only_its_user_may_open_it(lock):
    mask = os.umask(0)
    try:
        with Instance(lock):
            assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    finally:
        os.umask(mask)


def test_nothing_is_written_into_it(lock):
    lock.write_text("not ours\n")
    with Instance(lock):
        pass
    assert lock.read_text() == "not ours\n"


# -- where it lies -------------------------------------------------------------------------------------------

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="asks for the XDG folders")


@on_linux
def test_it_lies_in_a_state_folder_that_nobody_else_may_look_into(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with Instance() as instance, pytest.raises(RunsAlreadyError), Instance():
        pytest.fail("both hold it")
    assert instance.path == lock_path() == tmp_path / "state" / "island" / "lock"
    assert stat.S_IMODE(instance.path.parent.stat().st_mode) == 0o700


@on_linux
@pytest.mark.parametrize("runtime", ["", "/nowhere", "/tmp", "/proc/1"])
def test_all_logins_of_a_user_have_one_lock_and_none_complains(tmp_path, runtime):
    """A runtime folder may be missing (cron, ssh), open to all (WSL), or still that of the user before `su`."""
    where = {"XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path), "XDG_RUNTIME_DIR": runtime}
    said = subprocess.run(
        [sys.executable, "-c", "import island.instance; print(island.instance.lock_path())"], text=True, check=True,
        env={k: v for k, v in (os.environ | where).items() if v}, capture_output=True,
    )
    assert (said.stdout.strip(), said.stderr) == (str(tmp_path / "island" / "lock"), "")


@on_linux
def test_a_lock_that_cannot_be_made_is_told_with_its_place(tmp_path, monkeypatch):
    (tmp_path / "island").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(LockError, match=re.escape(str(tmp_path / "island" / "lock"))), Instance():
        pytest.fail("there is no place for it")


@on_linux
@pytest.mark.parametrize("folder", ["there", "there/not/yet"])
def test_whether_one_could_run_is_told_and_nothing_is_made(tmp_path, monkeypatch, folder):
    (tmp_path / "there").mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / folder))
    assert runs() is False
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != tmp_path / "there")  # root may write anywhere
    with pytest.raises(LockError, match=f"{tmp_path}/there may not be written into"):
        runs()
    (tmp_path / "there").rmdir()
    (tmp_path / "there").touch()
    with pytest.raises(LockError, match=f"{tmp_path}/there is no folder"):
        runs()
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]


def test_a_file_system_without_locks_is_not_taken_for_another_island(lock, monkeypatch):
    def refuse(_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("island.instance._lock", refuse)
    before = open_files()
    with pytest.raises(LockError), Instance(lock):
        pytest.fail("nobody can hold it")
    assert open_files() == before
