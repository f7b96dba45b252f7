"""Processes: real ones are found, watched, told apart and let go; what cannot be read is unknown, not gone.

Agents are shells under a borrowed name that wait for their standard input to end: no test leaves one behind.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from island.calls import runs
from island.look import matters
from island.model import Event, Kind, Process
from island.sources import processes as module
from island.sources.processes import CALL_VARIABLES, SystemTable, descendants

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="borrows names the way Linux lends them")

DEADLINE = 20  # seconds until a test gives up; a good machine needs a small part of one
NOBODY = 2**22 + 1  # no Linux gives so high a pid


def until(true: Callable[[], object]) -> object:
    end = time.monotonic() + DEADLINE
    while not (answer := true()):
        assert time.monotonic() < end, "not within the deadline"
        time.sleep(0.005)
    return answer


class Program:
    """A shell that is called like an agent. It runs `script`, and ends at the latest when its input does."""

    def __init__(self, path: Path, script: str = "", *arguments: str, **environ: str) -> None:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(Path("/bin/sh").resolve())
        self.process = subprocess.Popen(
            [path, "-c", f'{script}\necho up $!; while read line; do eval "$line"; done', "sh", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=path.parent, text=True, start_new_session=True,
            env={"PATH": os.defpath, "HOME": str(path.parent), **environ},
        )
        self.pid = self.process.pid
        self.child = int(self.heard().removeprefix("up").strip() or 0)

    def heard(self) -> str:
        return self.process.stdout.readline()

    def do(self, line: str) -> None:
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def kill(self) -> None:
        """End it, and leave a zombie."""
        self.process.kill()
        until(lambda: psutil.Process(self.pid).status() == psutil.STATUS_ZOMBIE)

    def end(self) -> None:
        """End it with all that it started, and take note of its end."""
        if self.process.returncode is None:
            os.killpg(self.pid, signal.SIGKILL)  # its own group: it began a session
        with self.process:
            pass


@pytest.fixture
def start(tmp_path):
    programs = []

    def begin(name: str = "claude", script: str = "", *arguments: str, **environ: str) -> Program:
        programs.append(Program(tmp_path / name, script, *arguments, **environ))
        return programs[-1]

    yield begin
    for program in programs:
        program.end()


@pytest.fixture
def table():
    return SystemTable(matters)


def pids(processes) -> set[int]:
    return {p.pid for p in processes}


# -- what is found -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_an_agent_that_runs_already_is_found_at_the_first_look(start, table, tmp_path, name):
    agent = start(name)
    assert not table.complete
    found = {p.pid: p for p in table.poll().started}[agent.pid]
    assert table.complete
    assert (found.name, found.ppid, found.cwd) == (name, os.getpid(), str(tmp_path))
    assert found.cmdline[:2] == (str(tmp_path / name), "-c")
    assert found.created == psutil.Process(agent.pid).create_time()
    assert not found.stopped
    assert table.get(agent.pid) is found


def test_an_agent_under_a_borrowed_zeroth_argument_is_found(table):
    """Codex is known by its command line alone: its npm launcher names it so."""
    with subprocess.Popen(["bash", "-c", "exec -a codex sh -c 'echo up; read line'"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as codex:
        assert codex.stdout.readline() == b"up\n"
        assert codex.pid in pids(table.poll().started)
        codex.stdin.close()


def test_an_agent_that_starts_later_is_found_once(start, table):
    table.poll()
    agent = start()
    assert agent.pid in pids(table.poll().started)
    assert agent.pid not in pids(table.poll().started)
    assert agent.pid in pids(table.all())


def test_what_is_no_agent_is_passed_over(start, table):
    other = start("vi")
    assert other.pid not in pids(table.poll().started)
    assert other.pid not in pids(table.all())


def test_a_process_asked_for_by_pid_matters_from_then_on(start, table):
    other = start("vi")
    table.poll()
    assert table.get(other.pid).name == "vi"
    other.kill()
    assert other.pid in pids(table.poll().exited)


def test_what_an_agent_starts_is_found_below_it(start, table):
    agent = start("claude", "sleep 600 &")
    table.poll()
    assert pids(table.below(agent.pid)) == {agent.child}
    agent.do("sh -c 'sleep 600 & echo $!; wait' &")
    grandchild = int(agent.heard())
    assert grandchild in pids(table.poll().started)
    assert {agent.child, grandchild} < pids(table.below(agent.pid))


def test_an_agent_that_was_a_wrapper_when_first_seen_is_found_once_it_is_itself(start, table):
    table.poll()
    wrapper = start("wrapper")
    assert wrapper.pid not in pids(table.poll().started)
    borrow(wrapper, "claude")
    assert wrapper.pid in pids(table.poll().started)


def test_a_child_first_seen_before_its_program_is_known_by_its_program(start, table, tmp_path):
    """A forked child is a copy of its agent until it runs its own program."""
    os.mkfifo(tmp_path / "gate")
    table.poll()
    agent = start("claude", "(read line < gate; exec sleep 600) &")
    table.poll()
    assert table.get(agent.child).name == "claude"
    (tmp_path / "gate").write_text("\n")
    until(lambda: psutil.Process(agent.child).name() == "sleep")
    table.poll()
    assert table.get(agent.child).name == "sleep"


def borrow(program: Program, name: str) -> None:
    """Have a program become another one in the same process, as wrappers and launchers do."""
    path = Path(program.process.args[0]).with_name(name)
    path.symlink_to(Path("/bin/sh").resolve())
    program.do(f"exec {path} -c 'echo up; read line'")
    assert program.heard() == "up\n"


# -- what ends -----------------------------------------------------------------------------------------------


def test_an_end_is_told_once(start, table):
    agent = start()
    table.poll()
    agent.end()
    assert agent.pid in pids(table.poll().exited)
    assert agent.pid not in pids(table.poll().exited)
    assert table.get(agent.pid) is None


def test_a_zombie_has_ended(start, table):
    agent, other = start(), start("claude-too")
    table.poll()
    agent.kill()
    other.kill()
    assert agent.pid in pids(table.poll().exited)
    assert agent.pid not in pids(table.poll().exited)
    assert table.get(agent.pid) is None
    assert table.get(other.pid) is None


def test_nobody_has_no_process(table):
    assert table.get(NOBODY) is None
    assert list(table.below(NOBODY)) == []
    assert not table.same(NOBODY, "", time.time())


def test_a_pid_that_is_no_pid_has_no_process(table):
    assert table.get(-5) is None


# -- suspended -----------------------------------------------------------------------------------------------


def test_an_agent_is_seen_to_be_suspended_and_to_go_on(start, table):
    agent = start()
    table.poll()
    assert agent.pid not in pids(table.stopped())
    os.kill(agent.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(agent.pid).status() == psutil.STATUS_STOPPED)
    assert [p.stopped for p in table.stopped() if p.pid == agent.pid] == [True]
    assert table.get(agent.pid).stopped
    assert agent.pid not in pids(table.stopped())
    os.kill(agent.pid, signal.SIGCONT)
    until(lambda: psutil.Process(agent.pid).status() != psutil.STATUS_STOPPED)
    assert [p.stopped for p in table.stopped() if p.pid == agent.pid] == [False]


def test_only_agents_are_asked_whether_they_are_suspended(start, table):
    other = start("vi")
    table.get(other.pid)
    os.kill(other.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(other.pid).status() == psutil.STATUS_STOPPED)
    assert other.pid not in pids(table.stopped())
    os.kill(other.pid, signal.SIGCONT)


def test_an_agent_found_suspended_is_known_to_be(start, table):
    agent = start()
    os.kill(agent.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(agent.pid).status() == psutil.STATUS_STOPPED)
    found = next(p for p in table.poll().started if p.pid == agent.pid)
    assert found.stopped
    os.kill(agent.pid, signal.SIGCONT)


# -- the same process? ---------------------------------------------------------------------------------------


def ticks(pid: int) -> int:
    """Return field 22 of stat, read in another way than the product does."""
    return round((psutil.Process(pid).create_time() - psutil.boot_time()) * os.sysconf("SC_CLK_TCK"))


def here(pid_namespace: str = "") -> str:
    namespace = pid_namespace or Path("/proc/self/ns/pid").readlink()
    machine = Path("/etc/machine-id")
    return f"linux:{machine.read_text().strip() if machine.exists() else ''}:{namespace}"


def test_the_start_in_ticks_tells_a_process_from_the_next_with_its_pid(start, table):
    agent = start()
    fields = Path(f"/proc/{agent.pid}/stat").read_text().rsplit(")", 1)[1].split()
    mine = int(fields[22 - 3])  # after pid and name, the third field is the first
    assert abs(mine - ticks(agent.pid)) <= 1
    long_ago = time.time() - 10 * 86400
    assert table.same(agent.pid, f"{mine} {here()}", long_ago)
    assert table.same(agent.pid, f"{mine} ", long_ago)
    assert not table.same(agent.pid, f"{mine - 1} {here()}", time.time())


def test_a_name_with_blanks_and_brackets_hides_no_field(start, table):
    agent = start("cl) 4 (au de")
    mine = ticks(agent.pid)
    assert any(table.same(agent.pid, f"{mine + d} {here()}", 0) for d in (-1, 0, 1))
    assert not table.same(agent.pid, "1 ", time.time())


def test_without_ticks_a_process_that_started_after_its_record_is_another(start, table):
    agent = start()
    created = psutil.Process(agent.pid).create_time()
    assert table.same(agent.pid, "", created + 1)
    assert table.same(agent.pid, " ", created - 1)  # file times are coarse, and clocks are set
    assert not table.same(agent.pid, "", created - 60)
    assert not table.same(agent.pid, "no-ticks ", created - 60)


def test_pids_of_another_namespace_say_nothing(start, table):
    agent = start()
    assert table.same(agent.pid, f"1 {here('pid:[1]')}", 0)
    assert table.same(NOBODY, f"1 {here('pid:[1]')}", 0)
    assert not table.same(NOBODY, f"1 {here()}", 0)


def test_pids_of_another_machine_say_nothing(start, table):
    """The first namespace has the same number on each Linux machine: only its name tells a mounted home."""
    agent = start()
    elsewhere = f"linux:{'0' * 32}:{Path('/proc/self/ns/pid').readlink()}"
    assert table.same(agent.pid, f"1 {elsewhere}", 0)


def test_a_record_may_name_the_boot_and_the_namespace_alone(start, table):
    agent = start()
    namespace, boot = Path("/proc/self/ns/pid").readlink(), Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    mine = Path(f"/proc/{agent.pid}/stat").read_text().rsplit(")", 1)[1].split()[22 - 3]
    assert table.same(agent.pid, f"{boot}:{mine} :{namespace}", 0)
    assert not table.same(agent.pid, f"{boot}:{int(mine) - 1} :{namespace}", time.time())
    assert not table.same(agent.pid, f"{'0' * 8}{boot[8:]}:{mine} :{namespace}", time.time())  # an earlier boot
    assert table.foreign(f"{boot}:{mine} :pid:[1]")
    assert not table.foreign(f"{boot}:{mine} :{namespace}")


NEW_NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc")
REUSE = """
import subprocess, sys, time
from pathlib import Path
from island.look import matters
from island.sources.processes import SystemTable

start = lambda: subprocess.Popen([sys.argv[1], "-c", "read line"], stdin=subprocess.PIPE)
table = SystemTable(matters)
table.poll()
first = start()
table.poll()
before = table.get(first.pid)
first.communicate()
ended = time.monotonic()
while time.monotonic() < ended + 0.05:  # starts are counted in ticks of a hundredth
    pass
Path("/proc/sys/kernel/ns_last_pid").write_text(str(first.pid - 1))
second = start()
change = table.poll()
print(second.pid == first.pid, before in change.exited, [p.pid for p in change.started] == [second.pid],
      before.identity != table.get(second.pid).identity)
"""


def test_a_pid_that_is_used_again_is_another_process(tmp_path):
    """In a pid namespace of our own, where we may say which pid comes next."""
    if not shutil.which("unshare") or subprocess.call([*NEW_NAMESPACE, "true"], stderr=subprocess.DEVNULL):
        pytest.skip("namespaces of pids may not be made here")
    (tmp_path / "claude").symlink_to(Path("/bin/sh").resolve())
    command = [*NEW_NAMESPACE, sys.executable, "-c", REUSE, str(tmp_path / "claude")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=False)
    assert done.stdout.split() == ["True"] * 4, done.stderr


@pytest.mark.parametrize("step", [-3600, 2, 3600])
def test_a_clock_that_is_set_ends_no_process(start, table, monkeypatch, step):
    """Linux counts starts from the boot, and the moment of the boot moves when the clock is set."""
    from psutil import _pslinux

    agent = start()
    table.poll()
    boot = _pslinux.boot_time()
    monkeypatch.setattr(_pslinux, "boot_time", lambda: boot + step)
    assert agent.pid not in pids(table.poll().exited)
    assert agent.pid in pids(table.all())


# -- what may not be read ------------------------------------------------------------------------------------


def denied(monkeypatch, *looks: str) -> None:
    def refuse(self: psutil.Process, *_: object) -> None:
        raise psutil.AccessDenied(self.pid)

    for look in looks:
        monkeypatch.setattr(psutil.Process, look, refuse)


def test_folder_and_environment_that_may_not_be_read_are_unknown(start, table, monkeypatch):
    agent = start()
    denied(monkeypatch, "cwd", "environ")
    found = next(p for p in table.poll().started if p.pid == agent.pid)
    assert (found.cwd, found.environ) == ("", None)


def test_a_known_process_that_may_no_longer_be_read_is_not_gone(start, table, monkeypatch):
    agent = start()
    table.poll()
    denied(monkeypatch, "status", "cmdline", "name")
    change = table.poll()
    assert agent.pid not in pids(change.exited)
    assert agent.pid not in pids(table.stopped())
    assert table.get(agent.pid)


def test_a_process_that_may_not_be_read_is_not_gone(start, table, monkeypatch):
    agent = start()
    denied(monkeypatch, "cmdline")
    table.poll()
    assert table.get(agent.pid)
    assert table.get(agent.pid).cmdline == ()


def test_a_process_that_ends_while_it_is_read_is_none(start, table, monkeypatch):
    def ends(self: psutil.Process) -> None:
        raise psutil.NoSuchProcess(self.pid)

    agent = start()
    monkeypatch.setattr(psutil.Process, "cmdline", ends)
    table.poll()
    assert table.get(agent.pid) is None


# -- environment ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("named", "name"), [("git.exe", "git"), ("bash", "bash")])
def test_a_process_has_the_name_that_it_has_on_other_systems(monkeypatch, named, name):
    monkeypatch.setattr(module.psutil.Process, "name", lambda _: named)
    p = module._read(os.getpid())
    assert p is not None
    assert p.name == name


def test_of_an_environment_only_what_names_the_call_is_kept(start, table):
    agent = start("codex", OPENAI_API_KEY="secret", **dict.fromkeys(CALL_VARIABLES, "call_1"))
    found = next(p for p in table.poll().started if p.pid == agent.pid)
    assert found.environ == dict.fromkeys(CALL_VARIABLES, "call_1")
    assert "secret" not in repr(table)


def test_a_process_without_these_variables_has_an_empty_environment(start, table):
    agent = start()
    assert next(p for p in table.poll().started if p.pid == agent.pid).environ == {}


def test_the_call_of_a_real_command_is_known_by_its_environment(start, table):
    agent = start("codex", "CODEX_TOOL_CALL_ID=call_1 sleep 600 &")
    until(lambda: psutil.Process(agent.child).name() == "sleep")
    table.poll()
    (command,) = table.below(agent.pid)
    assert runs(command, span("call_1", text="something else"))
    assert not runs(command, span("call_2", text="sleep 600"))


# -- which call a process runs -------------------------------------------------------------------------------


def span(key: str = "call_1", at: float = 100.0, text: str = "") -> Event:
    return Event(Kind.OPENED, "s", at, key, "escalation", text=text)


def process(pid: int = 10, ppid: int = 1, *cmdline: str, created: float = 100.0, **environ: str) -> Process:
    return Process(pid, ppid, "bash", cmdline, created=created, environ=environ or None)


def test_a_call_is_known_by_its_command_line_where_the_environment_says_nothing():
    build = process(10, 1, "bash", "-lc", "make all")
    assert runs(build, span(text="make all"))
    assert runs(process(10, 1, "bash", "-lc", "cd x && make all"), span(text="make all"))
    assert not runs(build, span(text="make none"))
    assert not runs(build, span(text=""))


def test_an_earlier_process_is_not_that_of_a_call():
    assert runs(process(10, 1, "make", created=99.5), span(text="make"))
    assert not runs(process(10, 1, "make", created=90.0), span(text="make"))


def test_the_environment_beats_the_command_line():
    command = process(10, 1, "make", CODEX_TOOL_CALL_ID="call_2")
    assert runs(command, span("call_2"))
    assert not runs(command, span("call_1", text="make"))


def test_an_environment_that_names_only_the_thread_leaves_the_command_line_to_tell():
    assert runs(process(10, 1, "make", CODEX_THREAD_ID="t1"), span(text="make"))


# -- descendants ---------------------------------------------------------------------------------------------


def test_descendants_are_all_below_and_nobody_else():
    tree = [process(2, 1), process(3, 2), process(4, 3), process(5, 1), process(6, 5)]
    assert sorted(pids(descendants(2, tree))) == [3, 4]
    assert sorted(pids(descendants(1, tree))) == [2, 3, 4, 5, 6]
    assert descendants(4, tree) == []
    assert descendants(2, iter(tree))


class Counted:
    """A process whose pid may be asked for only so often: what would never end, fails."""

    def __init__(self, pid: int, ppid: int) -> None:
        self._pid, self.ppid, self._left = pid, ppid, 100

    @property
    def pid(self) -> int:
        self._left -= 1
        if self._left < 0:
            raise RecursionError(f"process {self._pid} is looked at for ever")
        return self._pid


def test_a_ring_of_parents_ends():
    """A parent's pid, used again by its child's child, closes a ring: what is known of parents is from before."""
    ring = [Counted(10, 20), Counted(20, 10), Counted(30, 20)]
    assert sorted(pids(descendants(10, ring))) in ([20, 30], [10, 20, 30])


def test_a_parent_with_a_higher_pid_than_its_child_is_found_with_it(table, monkeypatch):
    """Pids wrap around: at the first look, a child may come before its parent."""
    monkeypatch.setattr(psutil, "pids", lambda: [10, 20])
    family = {20: Process(20, 1, "claude", ("claude",)), 10: Process(10, 20, "bash", ("bash",))}
    monkeypatch.setattr(module, "_read", family.get)
    monkeypatch.setattr(module, "_whole", lambda p: p)
    assert pids(table.poll().started) == {10, 20}
    assert pids(table.below(20)) == {10}


def test_a_look_costs_only_what_is_new(start, table, monkeypatch):
    start()
    table.poll()
    read = []
    monkeypatch.setattr(module, "_read", read.append)
    later = start()
    table.poll()
    assert later.pid in read
    assert len(read) < len(psutil.pids()) / 2


def test_the_lab_has_what_it_borrows_names_from():
    assert shutil.which("bash")
    assert shutil.which("sleep")
