"""One island at a time: who holds the lock, where it lies, and what frees it."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from island.instance import Instance, RunsAlreadyError, lock_path

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


def runtime(tmp_path: Path) -> Path:
    """Make a runtime folder as the system makes it: nobody else may look into it."""
    tmp_path.joinpath("run").mkdir(0o700)
    return tmp_path / "run"


@on_linux
def test_it_lies_in_the_runtime_folder(tmp_path, monkeypatch):
    folder = runtime(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
    assert lock_path() == folder / "island" / "lock"
    with Instance() as instance, pytest.raises(RunsAlreadyError), Instance():
        pytest.fail("both hold it")
    assert instance.path == folder / "island" / "lock"


@on_linux
def test_it_lies_in_the_state_folder_where_there_is_no_runtime_folder(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> Path:
        raise PermissionError

    monkeypatch.setattr("platformdirs.user_runtime_path", refuse)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert lock_path() == tmp_path / "state" / "island" / "lock"
    with Instance():
        assert lock_path().exists()


def lock_path_elsewhere(tmp_path: Path, **environ: str) -> Path:
    """Return where the lock lies in another process, which must not complain."""
    where = {"XDG_STATE_HOME": str(tmp_path / "state"), "TMPDIR": str(tmp_path), "HOME": str(tmp_path)} | environ
    said = subprocess.run(
        [sys.executable, "-c", "import island.instance; print(island.instance.lock_path())"], text=True, check=True,
        env={k: v for k, v in os.environ.items() if k != "XDG_RUNTIME_DIR"} | where, capture_output=True,
    )
    assert said.stderr == ""
    return Path(said.stdout.strip())


@on_linux
def test_no_runtime_folder_is_no_trouble(tmp_path):
    """A login without one is ordinary: cron, a container, ssh without systemd."""
    assert lock_path_elsewhere(tmp_path) == tmp_path / "state" / "island" / "lock"


@on_linux
@pytest.mark.parametrize("whose", ["open to all", "another's"])
def test_a_runtime_folder_of_another_kind_is_no_trouble(tmp_path, whose):
    """On WSL it may be open to all, and after `su` it is still the first user's."""
    folder = tmp_path / "run"
    folder.mkdir(0o700)
    if whose == "open to all":
        folder.chmod(0o755)
    elif os.getuid() == 0:
        os.chown(folder, 1, 1)
    else:
        pytest.skip("only root can give a folder away")
    path = lock_path_elsewhere(tmp_path, XDG_RUNTIME_DIR=str(folder))
    assert path in (folder / "island" / "lock", tmp_path / "state" / "island" / "lock")
