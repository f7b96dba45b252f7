"""The follower of databases: real SQLite files, with a writer at work in another connection or another process."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from island.agents.base import Query, Shape, Source
from island.agents.claude import CLAUDE
from island.model import Event, Kind
from island.observer import Observer
from island.scene import RecordedTable
from island.sources import databases
from island.sources.databases import Database, database
from island.sources.watch import Pace, Root, Watch

NOW = 1_796_000_000.0
DEADLINE = 20  # seconds until a test gives up
COUNT = "n(i) as (select 1 union all select i + 1 from n)"  # without end
TURNS = Query("turns", "select id, state from turn where id > 0 order by id")


def writer(path, mode="wal"):
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"pragma journal_mode={mode}")
    connection.execute("create table if not exists turn (id integer primary key, state text)")
    return connection


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.db"


@pytest.fixture
def agent(path):
    with closing(writer(path)) as connection:
        yield connection


def put(connection, ident, state):
    connection.execute("insert or replace into turn values (?, ?)", (ident, state))


def rows(look):
    assert look.error == ""
    return [(r["id"], r["state"]) for r in map(json.loads, (record.data for record in look.records))]


# -- what a look gives -----------------------------------------------------------------------------------------


def test_the_first_look_gives_all_rows_and_later_ones_what_is_new_or_has_changed(agent, path):
    put(agent, 1, "begun")
    follower = Database(str(path), (TURNS,))
    assert rows(follower.look()) == [(1, "begun")]
    assert rows(follower.look()) == []
    put(agent, 2, "begun")
    put(agent, 1, "over")
    assert rows(follower.look()) == [(1, "over"), (2, "begun")]


def test_a_row_is_a_record_with_its_question_and_the_newest_file_time(agent, path):
    put(agent, 1, "begun")
    os.utime(path, (NOW, NOW))
    os.utime(log_of(path), (NOW + 5, NOW + 5))
    [record] = Database(str(path), (TURNS,)).look().records
    assert json.loads(record.data) == {"query": "turns", "id": 1, "state": "begun"}
    assert (record.path, record.mtime) == (str(path), NOW + 5)


def test_a_question_may_ask_for_what_is_new_since_the_last_look(agent, path):
    put(agent, 1, "begun")
    os.utime(path, (NOW, NOW))
    os.utime(log_of(path), (NOW, NOW))
    follower = Database(str(path), (Query("since", "select :last as id, :moment as state"),))
    assert rows(follower.look()) == [(0.0, NOW)]
    os.utime(log_of(path), (NOW + 1, NOW + 1))
    assert rows(follower.look()) == [(NOW, NOW + 1)]


def test_foreign_bytes_and_broken_text_are_given_as_text(agent, path):
    agent.execute("insert into turn values (1, x'00ff')")
    agent.execute("insert into turn values (2, cast(x'61ff' as text))")
    assert rows(Database(str(path), (TURNS,)).look()) == [(1, "AP8="), (2, "a\ufffd")]


def test_what_is_not_committed_is_not_there(agent, path):
    put(agent, 1, "begun")
    agent.execute("begin immediate")
    put(agent, 2, "begun")
    follower = Database(str(path), (TURNS,))
    assert rows(follower.look()) == [(1, "begun")]
    agent.execute("commit")
    assert rows(follower.look()) == [(2, "begun")]


# -- the writer ------------------------------------------------------------------------------------------------


def test_a_reader_never_keeps_the_writer_from_resetting_its_log(agent, path):
    follower = Database(str(path), (TURNS,))
    for ident in range(200):
        put(agent, ident, "x" * 4000)
        follower.look()
        assert agent.execute("pragma wal_checkpoint(truncate)").fetchone()[0] == 0
    assert Path(log_of(path)).stat().st_size == 0


def test_the_writer_tidies_up_at_its_end_as_if_nobody_had_looked(path):
    connection = writer(path)
    put(connection, 1, "begun")
    follower = Database(str(path), (TURNS,))
    follower.look()
    connection.close()
    assert not Path(log_of(path)).exists()
    assert rows(follower.look()) == []
    assert not Path(log_of(path)).exists(), "a look makes no file where the writer left none"
    assert not Path(f"{path}-shm").exists()


def test_what_a_killed_writer_left_in_its_log_is_read(path):
    script = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('pragma journal_mode=wal'); c.execute('create table turn (id integer primary key, state text)');"
        "c.execute('insert into turn values (1, \"begun\")'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", script, str(path)], check=False)
    assert Path(log_of(path)).stat().st_size
    assert rows(Database(str(path), (TURNS,)).look()) == [(1, "begun")]


@pytest.mark.parametrize("mode", ["delete", "truncate", "persist"])
def test_a_database_without_a_log_is_read_without_a_lock(path, mode):
    with closing(writer(path, mode)) as agent:
        follower = Database(str(path), (TURNS,))
        put(agent, 1, "begun")
        assert rows(follower.look()) == [(1, "begun")]
        agent.execute("pragma cache_size=1")  # so that a long write spills into the file before it is committed
        agent.execute("begin exclusive")
        agent.execute(f"with recursive {COUNT} insert into turn select i + 2, hex(zeroblob(3000)) from n limit 100")
        assert follower.look().error == "being written"
        agent.execute("rollback")
        put(agent, 2, "begun")
        assert rows(follower.look()) == [(2, "begun")]


def test_what_changed_while_it_was_read_without_a_lock_does_not_count(path, monkeypatch):
    with closing(writer(path, "delete")) as agent:
        put(agent, 1, "begun")
        follower = Database(str(path), (TURNS,))
        ask = databases._ask

        def slowly(*about):
            put(agent, 2, "begun")
            return ask(*about)

        monkeypatch.setattr(databases, "_ask", slowly)
        assert rows(follower.look()) == []
        monkeypatch.setattr(databases, "_ask", ask)
        assert rows(follower.look()) == [(1, "begun"), (2, "begun")]


# -- what is wrong ---------------------------------------------------------------------------------------------


def test_another_schema_is_shown_and_the_other_questions_are_still_asked(agent, path):
    put(agent, 1, "begun")
    other = (Query("a", "select id from turns"), Query("b", "select kind from turn"))
    follower = Database(str(path), (*other, TURNS))
    look = follower.look()
    assert [json.loads(r.data)["state"] for r in look.records] == ["begun"]
    assert look.error == "unknown schema: no such table: turns; unknown schema: no such column: kind"
    assert follower.look().error == look.error, "it is no better at a look that finds nothing new"


def test_a_table_that_only_some_versions_have_may_be_missing(agent, path):
    put(agent, 1, "begun")
    optional = Query("a", "select id from turns", optional=True)
    assert rows(Database(str(path), (optional, TURNS)).look()) == [(1, "begun")]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4080])
def test_what_is_no_database_is_said_and_read_when_it_has_become_one(path, content):
    path.write_bytes(content)
    follower = Database(str(path), (TURNS,))
    look = follower.look()
    assert look.error
    assert not look.records
    path.unlink()
    with closing(writer(path)) as agent:
        put(agent, 1, "begun")
        assert rows(follower.look()) == [(1, "begun")]


def test_an_empty_file_is_a_database_without_tables(path):
    path.touch()
    assert Database(str(path), (TURNS,)).look().error == "unknown schema: no such table: turn"


def test_a_question_without_end_is_given_up(agent, path):
    endless = f"with recursive {COUNT} select count(*) from n"
    assert Database(str(path), (Query("a", endless),)).look().error == "a query takes too long"


def test_rows_beyond_all_measure_are_not_taken(agent, path):
    many = f"with recursive {COUNT} select i from n limit {databases.ROWS + 7}"
    assert len(Database(str(path), (Query("a", many),)).look().records) == databases.ROWS


def test_a_database_that_is_locked_for_good_is_said_and_waited_for_no_longer_than_a_moment(agent, path):
    agent.execute("pragma locking_mode=exclusive")
    put(agent, 1, "begun")
    assert Database(str(path), (TURNS,)).look().error == "database is locked"


def test_a_database_that_goes_is_gone_and_what_comes_in_its_place_is_read(path):
    follower = Database(str(path), (TURNS,))
    assert follower.look().gone
    for _ in range(2):
        with closing(writer(path)) as agent:
            put(agent, 1, "begun")
            assert rows(follower.look()) == [(1, "begun")]
        path.unlink()
        assert follower.look().gone


# -- in the observer -------------------------------------------------------------------------------------------


def read_turn(record):
    o = json.loads(record.data)
    yield Event(Kind.PROMPT, "s1", record.mtime, word="user", turn=str(o["id"]), source=o["state"])


ODD = replace(CLAUDE, name="odd", sources=(Source("*.db", Shape.DATABASE, read_turn, queries=(TURNS,)),))


def observer(path):
    return Observer({"odd": str(path.parent)}, RecordedTable(frozenset()), NOW, agents={"odd": ODD})


def test_a_file_of_a_database_is_named_after_it():
    assert [database(p) for p in ("/a/b.db", "/a/b.db-wal", "/a/b.db-journal")] == ["/a/b.db"] * 3


def test_a_hint_at_the_log_is_one_at_the_database_and_both_are_hot(agent, path):
    put(agent, 1, "begun")
    seen = observer(path)
    assert seen.wants(log_of(path))
    assert not seen.wants(f"{path}-shm")
    seen.changed([log_of(path)], NOW)
    assert [s.id for _, s in seen.sessions.all()] == ["s1"]
    assert seen.hot() == {str(path), log_of(path)}


def test_the_sweep_finds_a_database_of_which_only_the_log_is_new(agent, path):
    put(agent, 1, "begun")
    os.utime(path, (1e9, 1e9))
    os.utime(log_of(path), (NOW, NOW))
    seen = observer(path)
    seen.sweep(NOW)
    assert [s.id for _, s in seen.sessions.all()] == ["s1"]


def test_a_broken_database_is_shown_until_it_is_read_again(path):
    path.write_bytes(b"no database" * 100)
    seen = observer(path)
    seen.changed([str(path)], NOW)
    assert seen.snapshot(NOW).trouble == ("agent.db: file is not a database",)
    path.unlink()
    with closing(writer(path)):
        seen.changed([str(path)], NOW)
    assert seen.snapshot(NOW).trouble == ()


@pytest.mark.posix("hints at files that were only read")
def test_the_hint_that_a_look_itself_causes_costs_no_other(agent, path, monkeypatch):
    asyncio.run(asyncio.wait_for(look_and_listen(agent, path, monkeypatch), DEADLINE))


async def look_and_listen(agent, path, monkeypatch):
    """Look at a hint; then follow all hints until the one at a file that another writes afterwards."""
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *about, **how: opened.append(about) or connect(*about, **how))
    seen, other = observer(path), path.with_name("other.db")
    pace = Pace(working=0.02, resting=0.02, sweep=3600.0)
    watch = Watch(lambda: [Root(str(path.parent), deep=False)], set, list, pace=pace, wanted=seen.wants)
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(watch.run())
        while log_of(path) not in await until_heard(watch, lambda: put(agent, 1, "begun")):
            pass
        await quiet(watch)
        seen.changed([str(path)], NOW)
        heard = await watch.changed()
        assert log_of(path) in heard
        while str(other) not in heard:
            seen.changed(heard, NOW)
            heard = await until_heard(watch, other.touch)
        assert len(opened) == 1
        task.cancel()


def log_of(path):
    return f"{path}-wal"


async def until_heard(watch, write):
    """Write again and again until a hint comes: the watcher may not be up yet."""
    while True:
        write()
        try:
            async with asyncio.timeout(0.2):
                return await watch.changed()
        except TimeoutError:
            continue


async def quiet(watch):
    """Take the hints of what was written before."""
    try:
        while True:
            async with asyncio.timeout(0.2):
                await watch.changed()
    except TimeoutError:
        return
