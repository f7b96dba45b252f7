"""What Cursor's records and processes mean, beyond what the sequences play."""

import json
import os
import sqlite3
from contextlib import closing
from hashlib import md5

import pytest

from island.agents.cursor import (
    CHATS,
    CURSOR,
    WAITS,
    command,
    is_editor,
    owns,
    read_chat,
    read_store,
    read_subagent,
    read_transcript,
    resumes,
    role,
)
from island.model import KEYLESS, Doubt, Event, Kind, Process, Record, Role, Session, State
from island.observer import Observer
from island.scene import RecordedTable

ID, CHILD = "5f2c8a10-0000-4000-8000-000000000001", "5f2c8a10-0000-4000-8000-0000000000c1"
CWD = "/home/dev/my_app"
BELOW = "/h/.cursor/projects/home-dev-my-app/agent-transcripts"
NESTED, FLAT = f"{BELOW}/{ID}/{ID}.jsonl", f"{BELOW}/{ID}.jsonl"
HASH = md5(CWD.encode()).hexdigest()
AT = 1_796_029_200.5


def read(line, path=NESTED, offset=10):
    return list(read_transcript(Record(path, json.dumps(line).encode(), offset, mtime=AT)))[1:]


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


def answer(*blocks):
    return {"role": "assistant", "message": {"content": list(blocks)}}


def text(words):
    return {"type": "text", "text": words}


def call(name):
    return {"type": "tool_use", "name": name, "input": {}}


# -- transcripts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [[text("<user_query>\nx\n</user_query>")], "x", [], None, 7])
def test_a_users_line_begins_a_turn_whose_key_is_its_place(content):
    (begun,) = read({"role": "user", "message": {"content": content}}, offset=120)
    assert begun == Event(Kind.PROMPT, ID, AT, "", "user", f"{ID}@120", order=480, source="user")


def test_results_are_not_what_a_user_says():
    results = {"role": "user", "message": {"content": [{"type": "tool_result"}]}}
    assert said(read(results)) == [("progress", "", "model")]


@pytest.mark.parametrize(("blocks", "means"), [
    ([text("Done.")], [("answer", "", "finished"), ("progress", "", "model")]),
    ([text("Go on?")], [("answer", "", "question"), ("progress", "", "model")]),
    ([text("Go?"), call("Read")], [("answer", "", "finished"), ("progress", "", "tool"), ("opened", "call", "tool")]),
    ([call("AskQuestion")], [("answer", "", "finished"), ("progress", "", "tool"), ("opened", "call", "question")]),
    ([call("Read"), call("AskQuestion")],
     [("answer", "", "finished"), ("progress", "", "tool"), ("opened", "call", "question")]),
    ([call(7)], [("answer", "", "finished"), ("progress", "", "tool"), ("opened", "call", "tool")]),
])
def test_a_step_of_the_model_closes_the_calls_before_it(blocks, means):
    found = read(answer(*blocks))
    assert said(found) == [("closed", "call", "tool"), *means]
    assert [e.order for e in found] == sorted({e.order for e in found})


def test_only_where_no_end_is_written_the_last_words_may_be_it():
    closed, last = read(answer(text("Done.")), FLAT)
    assert (closed.kind, last.kind, last.text) == (Kind.CLOSED, Kind.ANSWER, Doubt.QUIET)
    assert [e.kind for e in read(answer(text("Done."), call("Read")), FLAT)][-1] is Kind.OPENED


@pytest.mark.parametrize(("status", "error", "reason"), [
    ("success", None, ""),
    ("aborted", "User aborted/interrupted manually.", "interrupted"),
    ("error", "User aborted request", "interrupted"),
    ("error", "You've reached your monthly usage limit", "limit"),
    ("error", "Quota exceeded", "limit"),
    ("error", "Authentication required", "login"),
    ("error", "Please sign in again", "login"),
    ("error", "unlimited patience is needed", "error"),
    ("error", None, "error"),
    ("error", 7, "error"),
])
def test_an_end_says_why(status, error, reason):
    line = {"type": "turn_ended", "status": status, "error": error}
    want = [("end", "", reason), ("closed", "call", "tool")]
    assert said(read(line)) == want
    assert said(read(answer(text("x"), line))) == want


@pytest.mark.parametrize(("line", "kind"), [
    ({"type": "hologram"}, "hologram"), ({"role": "system"}, "system"), ({"role": 7}, ""), ({}, ""),
])
def test_what_is_not_known_is_counted(line, kind):
    assert said(read(line)) == [("unknown", "", kind)]


def test_an_end_of_a_new_kind_is_an_error_and_is_counted():
    assert said(read({"type": "turn_ended", "status": "dreamt"})) == [
        ("end", "", "error"), ("closed", "call", "tool"), ("unknown", "", "turn_ended dreamt")]


@pytest.mark.parametrize("path", [NESTED, FLAT])
def test_a_transcript_tells_the_folder_it_stands_in(path):
    fact = next(iter(read_transcript(Record(path, b'{"role": "user"}'))))
    assert (fact.session, fact.at, fact.key, fact.word) == (ID, 0, "surface", "projects/home-dev-my-app")


@pytest.mark.parametrize(("line", "kind"), [
    ({"role": "user"}, Kind.OPENED), (answer(call("Read")), Kind.OPENED),
    ({"type": "turn_ended", "status": "aborted"}, Kind.CLOSED),
])
def test_a_subagent_runs_until_its_own_end(line, kind):
    path = f"{BELOW}/{ID}/subagents/{CHILD}.jsonl"
    (e,) = read_subagent(Record(path, json.dumps(line).encode(), 10, mtime=AT))
    assert (e.kind, e.session, e.key, e.word, e.at, e.order) == (kind, ID, CHILD, "child", AT, 10)


# -- what a conversation is ------------------------------------------------------------------------------------


def test_a_chats_file_tells_its_folder_from_the_start():
    line = {"createdAtMs": AT * 1000, "updatedAtMs": AT * 1000 + 5000, "title": "x", "cwd": CWD}
    found = {e.key: e for e in read_chat(Record(f"/h/.cursor/chats/{HASH}/{ID}/meta.json", json.dumps(line).encode()))}
    assert {k: (e.word, e.at) for k, e in found.items()} == {
        "surface": (f"chats/{HASH}", AT), "cwd": (CWD, AT)}


def store(**row):
    line = json.dumps({"query": "chats", "id": ID, **row}).encode()
    return list(read_store(Record("/h/state.vscdb", line, mtime=AT)))


MS = AT * 1000


@pytest.mark.parametrize(("row", "means"), [
    ({"status": "none"}, []),
    ({"status": "generating"}, ["prompt"]),
    ({"status": "none", "generating": 1}, ["prompt"]),
    ({"status": "completed", "generating": 1}, ["prompt"]),
    ({"began": MS}, ["prompt"]),
    ({"began": MS - 9000, "checkpoint": MS}, ["prompt"]),
    ({"began": MS, "checkpoint": MS - 9000, "status": "completed"}, ["prompt"]),
    ({"began": MS - 9000, "checkpoint": MS, "status": "completed"}, ["closed", "finished"]),
    ({"status": "completed"}, ["closed", "finished"]),
    ({"status": "aborted"}, ["closed", "interrupted"]),
    ({"status": "aborted", "began": MS}, ["prompt"]),
    ({"status": "completed", "turn": None}, ["closed"]),
    ({"status": "dreamt"}, []),
    ({"status": "completed", "draft": 1}, []),
    ({"status": "completed", "archived": 1}, []),
    ({"status": "completed", "child": 1}, []),
    ({"status": 7, "began": "soon", "generating": None, "turn": []}, []),
])
def test_the_editors_store_tells_how_a_conversation_runs(row, means):
    found = [e for e in store(**{"recency": MS, "turn": "t1", **row}) if e.kind is not Kind.FACT]
    assert [e.word if e.kind is Kind.ANSWER else e.kind.value for e in found] == means
    assert {(e.key, e.turn) for e in found} <= {(KEYLESS, "t1"), (KEYLESS, ""), ("call", "")}


def test_the_editors_store_tells_what_a_conversation_is():
    found = {e.key: e.word for e in store(recency=MS, cwd=CWD, model="m", tokens=1200)}
    assert found == {"surface": "editor", "cwd": CWD, "model": "m", "tokens": "1200"}
    assert {e.key: e.word for e in store(recency=MS, child=1, cwd=CWD)} == {"role": Role.CHILD}


@pytest.mark.parametrize(("row", "means"), [
    ({}, [("closed", "editor:permission"), ("closed", "editor:plan"), ("fact", "archived")]),
    ({"permission": 1}, [("opened", "editor:permission"), ("closed", "editor:plan"), ("fact", "archived")]),
    ({"plan": 1}, [("closed", "editor:permission"), ("opened", "editor:plan"), ("fact", "archived")]),
])
def test_the_editors_store_tells_what_waits_when_that_changes(row, means):
    found = store(**{"query": "waits", **row})
    assert [(e.kind.value, e.key) for e in found] == means
    assert {e.at for e in found} == {AT}


@pytest.mark.parametrize("sql", [CHATS, WAITS])
def test_the_store_is_asked_by_its_indexes_alone(sql):
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript("""
            create table cursorDiskKV (key text unique on conflict replace, value blob);
            create table composerHeaders (composerId text primary key, workspaceId text, createdAt integer,
              lastUpdatedAt integer, isArchived integer, isSubagent integer, recency integer, checkpointAt integer,
              value text);
            create index idx_composerHeaders_1 on composerHeaders (recency, composerId);""")
        plan = connection.execute(f"explain query plan {sql}", {"moment": AT}).fetchall()
    scans = [row[-1] for row in plan if row[-1].startswith("SCAN") and "VIRTUAL" not in row[-1]]
    assert scans == []


# -- what is not its format ------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_one", [read_transcript, read_subagent, read_chat, read_store])
@pytest.mark.parametrize("data", [b"", b"[]", b"7", b'{"role": "us', b"\xff"])
def test_what_is_no_object_is_a_value_error(read_one, data):
    with pytest.raises(ValueError):
        list(read_one(Record(NESTED, data)))


# -- first sight -----------------------------------------------------------------------------------------------


def test_at_first_sight_a_transcript_is_as_old_as_its_file(tmp_path):
    path = tmp_path / f".cursor/projects/x/agent-transcripts/{ID}/{ID}.jsonl"
    path.parent.mkdir(parents=True)
    lines = ({"role": "user"}, answer(text("Done.")), {"type": "turn_ended", "status": "success"})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    os.utime(path, (AT - 3600, AT - 3600))
    running = Process(1, 0, "node", ("/u/bin/cursor-agent",), "/x", AT - 7200)
    observer = Observer({"cursor": str(tmp_path)}, RecordedTable(frozenset(), True, {1: running}), AT,
                        agents={"cursor": CURSOR})
    observer.sweep(AT)
    (row,) = observer.sessions.rows()
    assert (row.verdict.state, row.verdict.since, row.verdict.turn) == (State.YOUR_TURN, AT - 3600, f"{ID}@0")


# -- processes ---------------------------------------------------------------------------------------------------

SCRIPT = "/home/dev/.local/share/cursor-agent/versions/2026.10.01-a/index.js"


def process(*cmdline, cwd=CWD):
    return Process(7, 1, "node", cmdline, cwd, 1.0)


def agent(*arguments, cwd=CWD):
    return process("/home/dev/.local/bin/agent", "--use-system-ca", SCRIPT, *arguments, cwd=cwd)


EDITOR = process("/usr/share/cursor/cursor", CWD, cwd="/")


@pytest.mark.parametrize(("p", "arguments"), [
    (agent(), ()),
    (agent("-p", "x"), ("-p", "x")),
    (process("/home/dev/.local/bin/cursor-agent", "--resume", ID), ("--resume", ID)),
    (process("C:\\x\\cursor-agent\\versions\\1\\node.exe", "C:\\x\\cursor-agent\\versions\\1\\index.js"), ()),
    (agent("worker-server"), None),
    (agent("login"), None),
    (process("/usr/bin/node", "index.js"), None),
    (process("/usr/bin/agent"), None),
    (EDITOR, None),
    (process(), None),
])
def test_the_command_line_agent_is_known_by_its_script(p, arguments):
    assert command(p) == arguments
    assert CURSOR.main(p) is (arguments is not None or p is EDITOR)


@pytest.mark.parametrize(("p", "is_one"), [
    (EDITOR, True),
    (process("/Applications/Cursor.app/Contents/MacOS/Cursor"), True),
    (process("C:\\Programs\\cursor\\Cursor.exe"), True),
    (process("/usr/share/cursor/cursor", "--type=renderer"), False),
    (process("/usr/share/cursor/cursor", "/x/extensions/ts/server.js", "--stdio"), False),
    (process("/Applications/Cursor.app/Contents/Frameworks/Cursor Helper.app/Contents/MacOS/Cursor Helper"), False),
    (process("/usr/bin/code"), False),
    (process(), False),
])
def test_the_editor_is_none_of_its_helpers(p, is_one):
    assert is_editor(p) is is_one
    assert CURSOR.several(p) is is_one


@pytest.mark.parametrize(("p", "who"), [
    (agent(), Role.PERSON), (agent("--resume", ID), Role.PERSON), (agent("-p", "x"), Role.MACHINE),
    (agent("--print", "x"), Role.MACHINE), (agent("acp"), Role.MACHINE), (EDITOR, None),
])
def test_whose_run_it_is(p, who):
    assert role(p) == who


def session(**facts):
    return Session("cursor", ID, {Kind.FACT: {k: Event(Kind.FACT, ID, 1, k, v) for k, v in facts.items()}})


@pytest.mark.parametrize(("p", "of", "likely"), [
    (agent(), session(), 1),
    (agent(), session(surface="projects/home-dev-my-app"), 1),
    (agent(), session(surface="projects/home-dev-other"), 0),
    (agent(), session(surface=f"chats/{HASH}"), 2),
    (agent(), session(surface=f"chats/{HASH[::-1]}"), 0),
    (agent(), session(surface=f"chats/{HASH[::-1]}", cwd=CWD), 2),
    (agent(cwd=""), session(surface="projects/home-dev-other"), 1),
    (agent("--workspace", "/home/dev/other"), session(surface="projects/home-dev-other"), 1),
    (agent(f"--resume={ID}"), session(surface="projects/home-dev-other"), 3),
    (agent(), session(surface="editor"), 0),
    (agent(), session(role=Role.CHILD), 0),
    (EDITOR, session(surface="editor"), 2),
    (EDITOR, session(surface="projects/home-dev-my-app"), 2),
    (EDITOR, session(surface=f"chats/{HASH}"), 0),
    (EDITOR, session(surface="editor", role=Role.CHILD), 0),
    (process("node"), session(), 0),
])
def test_a_conversation_is_run_by_the_program_that_keeps_it_or_from_its_folder(p, of, likely):
    assert owns(p, of) == likely


@pytest.mark.parametrize(("p", "ident"), [
    (agent("--resume", ID), ID), (agent(f"--resume={ID}"), ID), (agent("--resume"), ""), (agent(), ""), (EDITOR, ""),
])
def test_a_process_may_tell_what_it_goes_on_with(p, ident):
    assert resumes(p, []) == ident
