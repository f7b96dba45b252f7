"""What OpenCode's rows, documents, log lines and processes mean, beyond what the sequences play."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.agents.opencode import (
    OPENCODE,
    QUERIES,
    command,
    home,
    is_main,
    is_tool,
    owns,
    read_log,
    read_message,
    read_part,
    read_row,
    read_session,
    role,
    unasked,
)
from island.model import ASK_OF, Event, Kind, Process, Record, Role, Session

TIME = 1_796_029_200_500
AT = TIME / 1000
REJECTED = "The user rejected permission to use this specific tool call"


def row(query, /, **fields):
    return list(read_row(Record("/h/opencode.db", json.dumps({"query": query, **fields}).encode(), mtime=7.0)))


def session(**fields):
    return row("session", id="ses_1", **{"created": TIME, "updated": TIME + 1000} | fields)


def answer(**fields):
    common = {"session": "ses_1", "role": "assistant", "turn": "msg_1", "created": TIME, "begun": TIME}
    return row("message", **common | fields)


def call(tool="edit", **fields):
    return row("call", session="ses_1", turn="msg_1", tool=tool, call="c1", **fields)


def document(read, mtime=7.0, /, **fields):
    return list(read(Record("/h/storage/x/y/z.json", json.dumps(fields).encode(), mtime=mtime)))


def log(line, name="opencode"):
    return list(read_log(Record(f"/h/log/{name}.log", line.encode(), 10)))


def new(rest):
    return log(f"timestamp=2026-11-30T09:00:00.500Z level=INFO run=a1b2c3d4 {rest}")


def old(rest):
    return log(f"INFO  2026-11-30T09:00:00 +12ms {rest}", "2026-11-30T085959")


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


def facts(found):
    return {e.key: (e.word, e.at) for e in found if e.kind is Kind.FACT}


def ends(found):
    return [(e.kind.value, e.word, e.at) for e in found if e.kind in (Kind.ANSWER, Kind.END)]


# -- sessions ------------------------------------------------------------------------------------------------------


def test_what_a_session_is_holds_since_it_began_and_its_title_since_it_changed():
    assert facts(session(directory="/home/dev/app", version="1.18.33", title="t")) == {
        "cwd": ("/home/dev/app", AT), "version": ("1.18.33", AT), "title": ("t", AT + 1)}


@pytest.mark.parametrize(("fields", "whose"), [
    ({"parent": "ses_0"}, Role.CHILD), ({"parent": "ses_0", "headless": 1}, Role.CHILD),
    ({"headless": 1}, Role.MACHINE),
])
def test_whose_a_session_is_stands_in_its_row(fields, whose):
    assert facts(session(**fields))["role"] == (whose, AT)


def test_a_session_without_parent_or_rules_is_left_to_its_process():
    assert "role" not in facts(session(parent=None, headless=0))


def test_a_turn_taken_back_is_an_interrupted_one():
    assert ends(session(taken_back="msg_1")) == [("end", "interrupted", AT + 1)]


def test_an_archived_session_is_put_away():
    assert facts(session(archived=TIME + 500))["archived"] == ("yes", AT + 0.5)


# -- messages ------------------------------------------------------------------------------------------------------


def test_a_turn_begins_with_the_first_answer_to_its_prompt():
    begun = answer(begun=TIME - 9000)[0]
    assert begun == Event(Kind.PROMPT, "ses_1", AT - 9, word="user", turn="msg_1", source="user message")


@pytest.mark.parametrize("by_itself", [{"synthetic": 1}, {"prompt": "compaction", "auto": 1}])
def test_a_prompt_that_nobody_wrote_is_the_agent_s(by_itself):
    assert said(answer(**by_itself))[0] == ("prompt", "", "agent")


def test_a_command_of_the_user_s_own_says_nothing():
    assert answer(own=1, completed=TIME) == []


def test_an_answer_goes_on_from_its_first_moment():
    assert said(answer(model="m", tokens=12)) == [
        ("prompt", "", "user"), ("fact", "model", "m"), ("fact", "tokens", "12"), ("progress", "", "model")]
    assert said(answer(prompt="compaction", auto=0))[-1] == ("progress", "", "compacting")


@pytest.mark.parametrize(("fields", "kind", "word"), [
    ({"finish": "stop"}, "answer", "finished"),
    ({"finish": "length"}, "answer", "finished"),
    ({"finish": "stop", "said": "Shall I? "}, "answer", "question"),
    ({"finish": "stop", "prompt": "compaction", "auto": 0}, "answer", "finished"),
    ({"finish": None}, "answer", "interrupted"),
    ({"finish": "tool-calls", "refused": 1}, "answer", "interrupted"),
    ({"error": "MessageAbortedError"}, "end", "interrupted"),
    ({"error": "MessageAbortedError", "finish": "stop"}, "end", "interrupted"),
    ({"error": "ProviderAuthError"}, "end", "login"),
    ({"error": "APIError", "status": 401}, "end", "login"),
    ({"error": "APIError", "status": 402}, "end", "limit"),
    ({"error": "APIError", "status": 400}, "end", "error"),
    ({"error": "ContextOverflowError"}, "end", "error"),
])
def test_a_complete_answer_is_handed_back_as(fields, kind, word):
    assert ends(answer(completed=TIME + 2000, **fields)) == [(kind, word, AT + 2)]


@pytest.mark.parametrize("fields", [
    {"finish": "tool-calls"}, {"finish": "unknown"}, {"finish": "stop", "prompt": "compaction", "auto": 1},
])
def test_a_complete_answer_may_be_a_step(fields):
    assert ends(answer(completed=TIME + 2000, **fields)) == []
    assert said(answer(completed=TIME + 2000, **fields))[-1] == ("progress", "", "model")


def test_an_answer_is_the_last_one_from_its_last_step_on():
    assert ends(answer(finish="stop", finished=TIME + 1000)) == [("answer", "finished", AT + 1)]
    assert ends(answer(finish="stop", finished=TIME + 1000, completed=TIME + 3000)) == [("answer", "finished", AT + 1)]


# -- calls ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "span"), [
    ("edit", "tool"), ("task", "tool"), ("bash", "shell-tool"), ("question", "question"), ("plan_exit", "plan"),
])
def test_a_call_is_open_from_its_start_to_its_end(tool, span):
    assert said(call(tool)) == []
    assert said(call(tool, began=TIME)) == [("opened", "c1", span), ("progress", "", "tool")]
    assert said(call(tool, began=TIME, ended=TIME + 9000))[2:] == [
        ("closed", f"{ASK_OF}c1", "permission"), ("closed", "c1", span), ("progress", "", "model")]


def test_a_call_that_shows_something_asks_no_more():
    closed = call("bash", began=TIME, shown=TIME + 3000, command="ls")[-1]
    assert (closed.kind, closed.key, closed.at) == (Kind.CLOSED, f"{ASK_OF}c1", AT + 3)


def test_a_subagent_is_put_away_with_the_call_that_it_worked_for():
    assert said(call("task", began=TIME, child="ses_2"))[2:] == []
    away = call("task", began=TIME, ended=TIME + 9000, child="ses_2")[-1]
    assert (away.session, away.key, away.word, away.at) == ("ses_2", "archived", "yes", AT + 9)


def test_only_a_command_is_known_by_its_text():
    assert [e.text for e in call("bash", began=TIME, command="ls")] == ["ls", ""]
    assert [e.text for e in call("edit", began=TIME, command="ls")] == ["", ""]


def test_the_engine_to_come_is_unknown():
    assert said(row("next", session="ses_1", kind="user")) == [("unknown", "", "session_message user")]


# -- the queries ---------------------------------------------------------------------------------------------------

TABLES = """
create table session (id, parent_id, directory, title, version, revert, permission, time_created, time_updated,
  time_archived);
create table message (id, session_id, time_created, time_updated, data);
create table part (id, message_id, session_id, time_created, time_updated, data);
"""


@pytest.fixture
def database():
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(TABLES)
        connection.execute("insert into session values ('ses_1', null, '/a', 't', '1', null, null, ?, ?, null)",
                           (TIME, TIME))
        yield connection


def ask(database, name, moment=AT, last=0.0):
    (query,) = (q for q in QUERIES if q.name == name)
    cursor = database.execute(query.sql, {"moment": moment, "last": last})
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def say(database, ident, at=TIME, **data):
    database.execute("insert into message values (?, 'ses_1', ?, ?, ?)", (ident, at, at, json.dumps(data)))


def part(database, ident, message, at=TIME, **data):
    database.execute("insert into part values (?, ?, 'ses_1', ?, ?, ?)", (ident, message, at, at, json.dumps(data)))


def test_only_sessions_of_the_last_day_are_asked_for(database):
    assert [o["id"] for o in ask(database, "session")] == ["ses_1"]
    assert ask(database, "session", AT + 90_000) == []


def test_only_messages_that_changed_since_the_last_look_are_looked_into(database):
    say(database, "msg_1", role="user")
    say(database, "msg_2", role="assistant", parentID="msg_1")
    assert [o["turn"] for o in ask(database, "message", last=AT)] == ["msg_1"]
    assert ask(database, "message", last=AT + 61) == []


def test_of_a_long_turn_it_is_known_when_it_began(database):
    say(database, "msg_1", role="user")
    for n in range(1, 20):
        say(database, f"msg_1{n:02}", TIME + n, role="assistant", parentID="msg_1")
    assert {(o["turn"], o["begun"]) for o in ask(database, "message")} == {("msg_1", TIME + 1)}


def test_a_prompt_without_an_answer_says_nothing(database):
    say(database, "msg_1", role="user")
    assert ask(database, "message") == []


def test_copies_that_a_fork_made_are_left_out(database):
    say(database, "msg_1", TIME - 1, role="user")
    say(database, "msg_2", TIME - 1, role="assistant", parentID="msg_1")
    part(database, "prt_1", "msg_2", TIME - 1, type="tool", state={})
    assert ask(database, "message") == ask(database, "call") == []


@pytest.mark.parametrize(("error", "refused"), [
    (f"{REJECTED}.", 1), (f"{REJECTED} with the following feedback: no", 0), ("The user dismissed this question", 1),
    ("The user has specified a rule which prevents you from using this", 0), ("File not found", 0),
])
def test_a_refused_call_is_told_by_its_words(database, error, refused):
    say(database, "msg_1", role="user")
    say(database, "msg_2", role="assistant", parentID="msg_1", time={"completed": TIME}, finish="tool-calls")
    part(database, "prt_1", "msg_2", type="tool", state={"error": error})
    assert [o["refused"] for o in ask(database, "message")] == [refused]


def test_no_more_of_an_answer_is_read_than_its_end(database):
    say(database, "msg_1", role="user")
    say(database, "msg_2", role="assistant", parentID="msg_1", finish="stop")
    part(database, "prt_1", "msg_2", type="text", text="x" * 100 + "?")
    (found,) = ask(database, "message")
    assert found["said"] == "x" * 23 + "?"


def test_no_query_names_a_table_that_holds_secrets():
    secrets = ("account", "credential", "session_share", "auth")
    assert [(q.name, s) for q in QUERIES for s in secrets if s in q.sql] == []


# -- documents -----------------------------------------------------------------------------------------------------


def test_a_session_s_document_means_what_its_row_does():
    found = document(read_session, id="ses_1", parentID="ses_0", directory="/a", revert={"messageID": "m"},
                     time={"created": TIME, "updated": TIME + 1000, "archived": TIME})
    assert facts(found) == {
        "cwd": ("/a", AT), "parent": ("ses_0", AT), "role": (Role.CHILD, AT), "archived": ("yes", AT)}
    assert ends(found) == [("end", "interrupted", AT + 1)]


def test_a_message_s_document_means_what_its_row_does():
    fields = {"sessionID": "ses_1", "parentID": "msg_1", "role": "assistant", "finish": "stop", "modelID": "m",
              "tokens": {"total": 3}, "time": {"created": TIME, "completed": TIME + 2000}}
    found = document(read_message, id="msg_2", **fields)
    assert said(found) == [("fact", "model", "m"), ("fact", "tokens", "3"), ("progress", "", "model"),
                           ("answer", "", "finished")]
    failed = document(read_message, **fields, error={"name": "APIError", "data": {"statusCode": 403}})
    assert ends(failed) == [("end", "login", AT + 2)]
    begun = document(read_message, id="msg_1", sessionID="ses_1", role="user", time={"created": TIME})
    assert [(e.kind, e.turn) for e in begun] == [(Kind.PROMPT, "msg_1")]


def test_a_part_s_document_means_what_its_row_does():
    state = {"time": {"start": TIME}, "input": {"command": "ls"}, "metadata": {}}
    found = document(read_part, AT + 3, sessionID="ses_1", type="tool", tool="bash", callID="c1", state=state)
    assert said(found) == [("opened", "c1", "shell-tool"), ("progress", "", "tool"), ("closed", "ask:c1", "permission")]
    assert [e.at for e in found] == [AT, AT, AT + 3]
    assert document(read_part, sessionID="ses_1", type="text", text="x") == []


def test_a_refused_call_ends_the_turn_also_in_a_document():
    state = {"time": {"start": TIME, "end": TIME + 1000}, "error": f"{REJECTED}."}
    assert ends(document(read_part, sessionID="ses_1", type="tool", state=state)) == [("end", "interrupted", AT + 1)]
    feedback = {**state, "error": f"{REJECTED} with the following feedback: no"}
    assert ends(document(read_part, sessionID="ses_1", type="tool", state=feedback)) == []


# -- the log -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rest", "want"), [
    ('message="creating instance" directory=/a', [("run", "", "began")]),
    ("message=asking id=per_1 permission=edit patterns=[]", [("run", "10", "asks")]),
    ("message=asking id=que_1 questions=1", []),
    ("message=evaluated permission=edit action.action=ask", []),
    ("message=loop session.id=ses_1 step=0", [("fact", "run", "a1b2c3d4")]),
    ('message="stream error" session.id=ses_1 small=false',
     [("fact", "run", "a1b2c3d4"), ("progress", "", "retrying")]),
    ('message="stream error" session.id=ses_1 small=true', [("fact", "run", "a1b2c3d4")]),
    ('message="exiting loop" session.id=ses_1', [("fact", "run", "a1b2c3d4"), ("end", "", "")]),
    ("message=init", []),
])
def test_a_line_of_the_log_means(rest, want):
    assert said(new(rest)) == want
    assert {e.at for e in new(rest)} <= {AT}


@pytest.mark.parametrize(("rest", "want"), [
    ("service=default directory=/a creating instance", [("run", "", "began")]),
    ('service=permission permission=edit pattern=a action={"permission":"edit","action":"ask"} evaluated',
     [("run", "10", "asks")]),
    ('service=permission permission=edit pattern=a action={"permission":"edit","action":"allow"} evaluated', []),
    ('service=permission permission=edit ruleset=[{"action":"ask"}] evaluate', []),
    ("service=permission id=per_1 permission=edit patterns=[] asking", [("run", "10", "asks")]),
    ("service=session.prompt step=0 sessionID=ses_1 loop", [("fact", "run", "2026-11-30T085959")]),
    ("service=session.prompt sessionID=ses_1 exiting loop", [("fact", "run", "2026-11-30T085959"), ("end", "", "")]),
])
def test_a_line_of_an_old_log_means(rest, want):
    assert said(old(rest)) == want


def test_an_end_whose_time_is_cut_comes_after_all_that_it_may_follow():
    assert old("service=session.prompt sessionID=ses_1 exiting loop")[-1].at == pytest.approx(AT + 0.499)


@pytest.mark.parametrize("line", ["", "    at foo (bar.ts:1:2)", "+ @opencode-ai/plugin@1.1.65", "timestamp=x"])
def test_a_line_of_an_error_says_nothing(line):
    assert log(line) == []


def test_a_line_with_a_time_that_is_none_is_no_line_of_the_log():
    with pytest.raises(ValueError, match="Invalid isoformat"):
        log("timestamp=yesterday level=INFO run=a1b2c3d4 message=init")


NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
ANY = st.none() | st.booleans() | NUMBERS | st.text(max_size=9) | st.lists(st.none(), max_size=2)
FIELDS = ("query", "id", "session", "role", "turn", "created", "begun", "completed", "finished", "finish", "error",
          "status", "refused", "prompt", "auto", "said", "tool", "call", "began", "ended", "shown", "command", "type",
          "state", "time", "sessionID", "tokens", "revert", "updated", "parent", "archived")


@given(st.dictionaries(st.sampled_from(FIELDS), ANY | st.dictionaries(st.sampled_from(FIELDS), ANY, max_size=3)),
       st.sampled_from(["session", "message", "call", "next", "other"]))
def test_no_field_of_any_kind_breaks_a_reader(fields, query):
    for read, given_fields in ((read_row, {**fields, "query": query}), (read_session, fields), (read_message, fields),
                               (read_part, fields)):
        try:
            assert all(isinstance(e, Event) for e in read(Record("/h/x", json.dumps(given_fields).encode())))
        except ValueError:
            assert read is read_row
            assert query == "other"


# -- processes -----------------------------------------------------------------------------------------------------


def opencode(*arguments, cwd="/home/dev/app", program="/usr/bin/opencode", name="opencode"):
    return Process(100, 1, name, (program, *arguments), cwd, AT)


@pytest.mark.parametrize(("p", "main"), [
    (opencode(), True), (opencode("-c"), True), (opencode("/home/dev/app"), True), (opencode("run", "x"), True),
    (opencode("serve", "--port", "4096"), True), (opencode("attach", "http://localhost:4096"), False),
    (opencode("pm", "ls", "-g"), False), (opencode("install"), False), (opencode("--version"), False),
    (opencode("--log-level", "DEBUG", "serve"), True), (opencode("/x/langserver.index.js", "--stdio"), False),
    (opencode(program="C:\\bin\\opencode.exe"), True), (opencode(program="/usr/bin/node"), False),
    (Process(1, 1, "opencode"), True), (Process(1, 1, "bash", ("bash", "-c", "opencode")), False),
])
def test_opencode_is_told_from_what_it_starts(p, main):
    assert is_main(p) is main


def test_a_command_is_the_first_word_that_is_no_option():
    assert command(opencode("--print-logs", "--log-level", "INFO", "run", "hello")) == "run"
    assert command(opencode()) == ""
    assert command(Process(1, 1, "bash", ("bash",))) is None


def in_folder(cwd="/home/dev/app"):
    folder = Event(Kind.FACT, "ses_1", AT, "cwd", cwd)
    return Session("opencode", "ses_1", {Kind.FACT: {"cwd": folder}})


def test_a_process_owns_what_is_in_its_folder_and_a_server_what_nobody_else_does():
    assert owns(opencode(), in_folder()) == owns(opencode(cwd=""), in_folder()) == 2
    assert owns(opencode("serve", cwd="/"), in_folder()) == 1
    assert owns(opencode(cwd="/elsewhere"), in_folder()) == 0
    assert owns(opencode("attach", "http://localhost:4096"), in_folder()) == 0
    assert owns(opencode(), Session("opencode", "ses_1")) == 0, "a session that no database tells of is nobody's"


def test_what_runs_for_a_tool_is_neither_opencode_nor_its_snapshots():
    assert [is_tool(Process(1, 1, name)) for name in ("bash", "zsh", "opencode", "git")] == [True, True, False, False]


def test_a_run_without_a_terminal_is_a_machine_s():
    assert role(opencode("run", "x")) is Role.MACHINE
    assert role(opencode()) is role(opencode("serve")) is Role.PERSON
    assert role(replace(opencode(), name="bash", cmdline=("bash",))) is None


def test_what_approves_all_by_itself_is_told_by_its_options():
    assert [unasked(opencode(*a)) for a in ((), ("-c",), ("--auto",), ("--yolo",))] == [False, False, True, True]


@pytest.mark.parametrize(("environ", "folder"), [
    ({}, "/h/.local/share/opencode"), ({"XDG_DATA_HOME": "/d"}, "/d/opencode"),
    ({"OPENCODE_DB": "/x/opencode.db"}, "/x"), ({"OPENCODE_DB": "sub/opencode.db"}, "/h/.local/share/opencode/sub"),
])
def test_the_folder_is_that_of_the_database(environ, folder):
    assert home(environ, "/h") == folder


def test_a_watch_needs_nothing_below_the_folder_of_the_database():
    patterns = [s.pattern for s in OPENCODE.sources if not s.until]
    assert all("*" not in p or p.startswith("log/") for p in patterns)
