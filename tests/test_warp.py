"""What Warp's rows and processes mean, beyond what the sequences play."""

import json
import sqlite3
from contextlib import closing

import pytest

from island.agents.warp import ANSWERS, PROMPTS, WARP, is_tool, owns, program, read_store, role
from island.model import Doubt, Event, Kind, Process, Record, Role, Session
from island.sources.sweep import matcher

ID, TURN = "5f2c8a10-0000-4000-8000-000000000001", "5f2c8a10-0000-4000-8000-0000000000e1"
APP, TUI = "/h/.local/state/warp-terminal/warp.sqlite", "/h/.local/state/warp-terminal/tui/warp.sqlite"
BEGAN, AT, NOW = "2026-11-30 09:00:00.500000", 1_796_029_200.5, 1_796_029_230.0


def read(query, path=APP, **row):
    line = json.dumps({"query": query, "id": ID, **row}).encode()
    return list(read_store(Record(path, line, mtime=NOW)))


def prompt(status='"Pending"', **row):
    return read("prompts", turn=TURN, **{"began": BEGAN, "status": status, **row})[1:]


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


# -- rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("began", [BEGAN, "2026-11-30 09:00:00.500000123", "2026-11-30 09:00:00.5"])
def test_a_prompt_begins_a_turn_at_its_own_time(began):
    (begun,) = prompt(began=began)
    assert (begun.kind, begun.session, begun.at, begun.turn) == (Kind.PROMPT, ID, AT, TURN)


@pytest.mark.parametrize(("status", "means"), [
    ('"Pending"', []), ('"Completed"', []),
    ('"Cancelled"', [("end", "", "interrupted")]), ('"Failed"', [("end", "", "error")]),
    ('"Dreamt"', [("unknown", "", 'status "Dreamt"')]), (7, [("unknown", "", "status ")]),
])
def test_only_an_answer_that_was_stopped_or_failed_ends_a_turn(status, means):
    assert said(prompt(status))[1:] == means


def test_an_end_is_of_now_unless_its_turn_is_old():
    assert prompt('"Failed"')[1].at == NOW
    old = prompt('"Failed"', began="2026-11-30 07:00:00")
    assert old[1].at == old[0].at + 900


def test_a_prompt_tells_its_folder_and_model():
    assert said(prompt(cwd="/a", model="auto"))[1:] == [("fact", "cwd", "/a"), ("fact", "model", "auto")]


@pytest.mark.parametrize(("row", "means"), [
    ({}, ("answer", NOW)),
    ({"used": "[1.0,0.1]", "answered": None}, ("answer", NOW)),
    ({"at": "2026-11-30 09:00:10"}, ("answer", AT + 9.5)),
    ({"command": "b1", "answered": 0}, ("progress", NOW)),
    ({"command": "b1", "answered": None}, ("progress", NOW)),
    ({"command": "b1", "answered": 1}, ("answer", NOW)),
])
def test_an_answer_only_looks_final_and_the_end_of_a_command_goes_on(row, means):
    (e,) = read("answers", **row)[1:]
    assert (e.kind.value, e.at) == means
    assert (e.text == Doubt.QUIET) is (e.kind is Kind.ANSWER)


def test_a_conversation_that_another_began_is_a_child():
    assert said(read("answers", parent="p1"))[1:3] == [("fact", "parent", "p1"), ("fact", "role", Role.CHILD)]


@pytest.mark.parametrize(("path", "place"), [(APP, "app"), (TUI, "tui")])
def test_a_database_is_one_programs_own(path, place):
    assert said(read("answers", path))[0] == ("fact", "surface", place)


@pytest.mark.parametrize("data", [b"", b"[]", b"7", b'{"query": "prompts"}', b'{"query": "prompts", "began": "soon"}'])
def test_what_is_no_row_is_a_value_error(data):
    with pytest.raises(ValueError):
        list(read_store(Record(APP, data)))


@pytest.mark.parametrize("path", [
    "/h/.local/state/warp-terminal/warp.sqlite", "/h/.local/state/warp-terminal-preview/warp.sqlite",
    "/h/.local/state/warp-oss/tui/warp.sqlite",
    "/h/Library/Group Containers/2BBY89MBSN.dev.warp/Library/Application Support/dev.warp.Warp-Stable/warp.sqlite",
    "/h/Library/Application Support/dev.warp.Warp-Stable/tui/warp.sqlite",
    "/h/AppData/Local/warp/Warp/data/warp.sqlite",
])
def test_each_channels_database_is_looked_for_on_each_platform(path):
    assert any(matcher([f"/h/{source.pattern}"])(path) for source in WARP.sources)
    assert not any("*" in source.pattern for source in WARP.sources)  # a star would have all of its folder watched


# -- questions -----------------------------------------------------------------------------------------------------

SCHEMA = """
create table ai_queries (id integer primary key not null, exchange_id text not null, conversation_id text not null,
  start_ts datetime not null, input text not null, working_directory text, output_status text not null,
  model_id text not null default '');
create table agent_conversations (id integer primary key not null, conversation_id text not null,
  conversation_data text not null, last_modified_at timestamp not null default current_timestamp);
create unique index ux_agent_conversations_conversation_id on agent_conversations (conversation_id);
create table blocks (id integer primary key, stylized_output blob, completed_ts datetime, block_id text,
  ai_metadata text);
"""


def ask(*rows, moment=NOW):
    """Return what both questions find in a database with these rows: (table, values)."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.row_factory = sqlite3.Row
        connection.executescript(SCHEMA)
        for table, *values in rows:
            connection.execute(f"insert into {table} values ({', '.join('?' * len(values))})", values)
        return [[dict(row) for row in connection.execute(sql, {"moment": moment, "last": 0})]
                for sql in (PROMPTS, ANSWERS)]


def asked(number, conversation=ID, began=BEGAN):
    return ("ai_queries", number, f"e{number}", conversation, began, "[]", "/a", '"Completed"', "auto")


def written(conversation=ID, at="2026-11-30 09:00:20", **data):
    return ("agent_conversations", None, conversation, json.dumps(data), at)


def block(number, completed, **metadata):
    return ("blocks", number, b"", completed, f"b{number}", json.dumps(metadata) if metadata else None)


def test_of_each_conversation_the_newest_prompt_of_today_is_asked_for():
    prompts, answers = ask(asked(1), asked(2), asked(3, "other"), asked(4, "old", "2026-11-29 09:00:00"))
    assert {(row["id"], row["turn"]) for row in prompts} == {(ID, "e2"), ("other", "e3")}
    assert answers == []


@pytest.mark.parametrize(("blocks", "command", "answered"), [
    ([], None, None),
    ([block(1, "2026-11-30 09:00:19.9", conversation_id=ID, requested_command_action_id="a")], "b1", 1),
    ([block(1, "2026-11-30 09:00:20.1", conversation_id=ID, requested_command_action_id="a")], "b1", 0),
    ([block(1, "2026-11-30 09:00:20.1", conversation_id=ID, action_id="a")], "b1", 0),
    ([block(1, "2026-11-30 09:00:20.1", conversation_id=ID)], None, None),
    ([block(1, "2026-11-30 09:00:20.1", conversation_id="other", action_id="a")], None, None),
    ([block(1, "2026-11-30 09:00:20.1")], None, None),
])
def test_the_agents_own_commands_are_newer_than_its_last_answer_or_not(blocks, command, answered):
    (row,) = ask(asked(1), written(), *blocks)[1]
    assert (row["command"], row["answered"]) == (command, answered)


def test_what_was_written_a_while_ago_tells_when():
    assert ask(asked(1), written())[1][0]["at"] is None
    assert ask(asked(1), written(), moment=NOW + 60)[1][0]["at"] == "2026-11-30 09:00:20"


def test_a_new_answer_changes_its_row_and_a_new_title_does_not():
    used = {"credits_spent": 1.5, "context_window_usage": 0.25}
    one, two, other = (ask(asked(1), written(conversation_usage_metadata=u, agent_name=name))[1]
                       for u, name in ((used, "a"), (used, "b"), ({**used, "credits_spent": 2.5}, "b")))
    assert one == two != other


def test_a_conversation_that_is_no_json_hides_no_other():
    bad = ("agent_conversations", None, "bad", "{", "2026-11-30 09:00:20")
    assert [row["id"] for row in ask(asked(1), asked(2, "bad"), written(), bad)[1]] == [ID]


# -- processes -----------------------------------------------------------------------------------------------------


def process(*cmdline, name=""):
    return Process(7, 1, name or (cmdline[0].rpartition("/")[2] if cmdline else ""), cmdline, "/a", 1.0)


@pytest.mark.parametrize(("p", "which"), [
    (process("/opt/warpdotdev/warp-terminal/warp"), "app"),
    (process("/opt/warpdotdev/warp-terminal-preview/warp-preview", "warp://action"), "app"),
    (process("warp-terminal"), "app"),
    (process("/Applications/Warp.app/Contents/MacOS/stable"), "app"),
    (process("C:\\Programs\\Warp\\warp.exe"), "app"),
    (process("/opt/warpdotdev/warp-terminal/warp", "terminal-server", "--parent-pid", "1"), ""),
    (process("/opt/warpdotdev/warp-terminal/warp", "--plugin-host"), ""),
    (process("/usr/local/bin/warp-tui"), "tui"),
    (process("warp-tui-oss"), "tui"),
    (process("/usr/bin/oz", "agent", "run", "--prompt", "x"), "run"),
    (process("/opt/warpdotdev/warp-terminal/warp", "agent", "run"), "run"),
    (process("oz", "agent", "list"), ""),
    (process("oz", "login"), ""),
    (process("/usr/bin/warp-svc"), ""),
    (process("/bin/bash"), ""),
    (process(), ""),
])
def test_the_programs_are_told_apart(p, which):
    assert program(p) == which
    assert WARP.main(p) is (which != "")
    assert role(p) == (Role.MACHINE if which == "run" else None)


@pytest.mark.parametrize(("place", "likely"), [("app", 1), ("tui", 0), ("", 0)])
def test_a_conversation_is_run_by_the_program_whose_database_it_stands_in(place, likely):
    session = Session("warp", ID, {Kind.FACT: {"surface": Event(Kind.FACT, ID, 1, "surface", place)}})
    assert owns(process("/opt/warpdotdev/warp-terminal/warp"), session) == likely
    assert owns(process("oz", "agent", "run"), session) == owns(process("/bin/bash"), session) == 0


@pytest.mark.parametrize(("p", "is_one"), [
    (process("make"), True), (process("/usr/bin/python3", "x.py"), True), (process("-zsh"), False),
    (process("/bin/bash", "--rcfile", "x"), False), (process("C:\\x\\pwsh.exe"), False),
    (process("/opt/warpdotdev/warp-terminal/warp", "terminal-server"), False), (process(name="sleep"), True),
])
def test_a_command_is_more_than_a_shell_that_waits(p, is_one):
    assert is_tool(p) is is_one
