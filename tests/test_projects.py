"""Files that an agent writes beside the code: found by its processes, followed as long as one lives, never searched."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from island.agents.base import Shape, Source
from island.agents.claude import CLAUDE
from island.cli.table import short
from island.model import Event, Kind, Process
from island.observer import HORIZON, Observer
from island.scene import RecordedTable
from island.sources.processes import Change
from island.sources.projects import folders

NOW = 1_796_000_000.0
PID = 100


def process(cwd, pid=PID, name="beside", created=NOW - 60):
    return Process(pid, 1, name, (name,), str(cwd), created)


# -- where they lie ----------------------------------------------------------------------------------------


def test_they_lie_in_the_working_folder_and_at_the_root_of_its_repository(tmp_path):
    deep = tmp_path / "repo" / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    assert folders(process(deep)) == (str(deep), str(tmp_path / "repo"))
    assert folders(process(tmp_path / "repo")) == (str(tmp_path / "repo"),)


def test_the_root_of_a_worktree_is_marked_by_a_file_and_the_nearest_one_counts(tmp_path):
    (tmp_path / ".git").mkdir()
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / ".git").write_text("gitdir: elsewhere\n")
    assert folders(process(inner)) == (str(inner),)


def test_of_a_process_whose_folder_may_not_be_read_nothing_is_known():
    assert folders(process("")) == ()


def test_a_session_that_is_named_by_its_folder_is_told_by_the_last_part_of_it():
    assert short("/home/dev/app") == short("C:\\dev\\app") == "app"


# -- following them ----------------------------------------------------------------------------------------


def read(record):
    yield Event(Kind.PROMPT, str(Path(record.path).parent), record.mtime, word="user", turn=record.data.decode())


BESIDE = replace(CLAUDE, name="beside", sources=(Source("chat.md", Shape.LINES, read, project=True),),
                 main=lambda p: p.name == "beside", owns=lambda _, __: 1, role=lambda _: None)


class World:
    """An observer of one agent that writes beside the code, and the processes that run."""

    def __init__(self, *running):
        self.table = RecordedTable(frozenset({PID}), complete=True, running={p.pid: p for p in running})
        self.observer = Observer({"beside": "/nowhere"}, self.table, NOW, agents={"beside": BESIDE})
        self.observer.processes_changed(Change(started=running), NOW)

    def start(self, p):
        self.table.running[p.pid] = p
        self.observer.processes_changed(Change(started=(p,)), NOW)

    def end(self, pid=PID):
        self.observer.processes_changed(Change(exited=(self.table.running.pop(pid),)), NOW)

    def states(self):
        return {row.session: row.verdict.state.value for row in self.observer.snapshot(NOW).rows}


def chat(folder, at=NOW):
    path = folder / "chat.md"
    with path.open("a") as file:
        file.write("prompt\n")
    os.utime(path, (at, at))
    return str(path)


def test_a_chat_is_read_once_its_agent_runs(tmp_path):
    path = chat(tmp_path, NOW - 1)
    world = World()
    assert not world.observer.wants(path)
    assert world.observer.hot() == set()
    world.start(process(tmp_path))
    assert world.states() == {str(tmp_path): "working"}


def test_a_chat_that_comes_later_is_waited_for_by_name(tmp_path):
    world = World(process(tmp_path))
    path = str(tmp_path / "chat.md")
    assert world.observer.hot() == {path}
    assert world.observer.wants(path)
    assert not world.observer.wants(str(tmp_path / "other.md"))
    world.observer.changed([chat(tmp_path)], NOW)
    assert world.states() == {str(tmp_path): "working"}


@pytest.mark.parametrize("name", ["app", pytest.param("[a]*?", marks=pytest.mark.posix("such names")), "two words"])
def test_the_sweep_covers_the_chats_of_running_agents_whatever_their_folders_are_called(tmp_path, name):
    (tmp_path / name).mkdir()
    world = World(process(tmp_path / name))
    chat(tmp_path / name)
    world.observer.sweep(NOW)
    assert world.states() == {str(tmp_path / name): "working"}


def test_a_chat_is_followed_no_longer_than_its_agent_lives(tmp_path):
    world = World(process(tmp_path), process(tmp_path, PID + 1))
    path = chat(tmp_path)
    world.end(PID + 1)
    assert world.observer.hot() == {path}
    world.end()
    assert world.observer.hot() == set()
    assert path not in world.observer.patterns


def test_an_old_chat_is_not_read_for_a_new_process(tmp_path):
    chat(tmp_path, NOW - HORIZON - 1)
    world = World(process(tmp_path))
    assert world.states() == {}


def test_other_processes_do_not_have_folders_looked_at(tmp_path):
    chat(tmp_path)
    world = World(process(tmp_path, name="editor"))
    assert world.observer.projects == {}


def test_a_clock_set_back_reads_them_anew(tmp_path):
    world = World(process(tmp_path))
    world.observer.changed([chat(tmp_path)], NOW)
    world.observer.refold(NOW - 5)
    assert list(world.states()) == [str(tmp_path)]
