"""What Gemini's records, titles and processes mean, beyond what the sequences play."""

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.agents.base import shown
from island.agents.gemini import (
    ENDS,
    GEMINI,
    NO_PROMPTS,
    NUDGES,
    home,
    is_main,
    is_tool,
    owns,
    read_document,
    read_line,
    read_subagent,
    role,
    title,
)
from island.blanking import blank_text
from island.hooks.rows import HOOKS
from island.model import Doubt, Event, Kind, Process, Record, Role, Session
from island.sources.sweep import matcher

ID = "5f2c8a10-0000-4000-8000-000000000001"
CHILD = "5f2c8a10-0000-4000-8000-0000000000c1"
CWD = "/home/dev/app"
HASH = sha256(CWD.encode()).hexdigest()
CHATS = "/h/.gemini/tmp/app/chats"
LINES = f"{CHATS}/session-2026-11-30T09-00-5f2c8a10.jsonl"
STAMP, LATER = "2026-11-30T09:00:00.500Z", "2026-11-30T09:00:07.500Z"
AT = 1_796_029_200.5
HEAD = {"sessionId": ID, "projectHash": HASH, "startTime": STAMP, "lastUpdated": STAMP, "kind": "main"}


def line(record, head=HEAD):
    return list(read_line(Record(LINES, json.dumps(record).encode(), 10, 7.0, json.dumps(head).encode())))


def message(kind, content="", /, **more):
    named = {"model": "gemini-2.5-pro"} if kind == "gemini" else {}
    return line({"id": "m1", "timestamp": STAMP, "type": kind, "content": content, **named, **more})


def document(*messages, **more):
    data = json.dumps({**HEAD, "messages": list(messages), **more}).encode()
    return list(read_document(Record(LINES.removesuffix("l"), data, 0, 7.0)))


def subagent(record):
    path = f"{CHATS}/{ID}/{CHILD}.jsonl"
    return list(read_subagent(Record(path, json.dumps(record).encode(), 10, 7.0,
                                     json.dumps({**HEAD, "sessionId": CHILD}).encode())))


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found if e.kind is not Kind.FACT]


def facts(found):
    return {e.key: e.word for e in found if e.kind is Kind.FACT}


def call(name="run_shell_command", status="success", **more):
    return {"id": "c1", "name": name, "status": status, "timestamp": LATER, **more}


# -- histories of lines ----------------------------------------------------------------------------------------


def test_a_line_belongs_to_the_session_of_the_head_of_its_file():
    (prompt,) = message("user", [{"text": "prompt"}])
    assert prompt == Event(Kind.PROMPT, ID, AT, "", "user", "m1", order=10, source="user")


def test_a_subagents_history_beside_its_sessions_says_nothing_as_nobody_knows_whose_it_is():
    head = {**HEAD, "kind": "subagent"}
    assert line(user(), head) == line(head, head) == document(user(), kind="subagent") == []


def test_a_line_without_a_head_is_refused():
    for head in (b"", b"[]", b"{", b'{"sessionId": 7}'):
        with pytest.raises(ValueError):
            list(read_line(Record(LINES, b'{"type": "user"}', 10, 7.0, head)))


def test_the_head_tells_the_hash_of_the_folder_as_of_the_start_of_the_session():
    (told,) = line(HEAD)
    assert (told.key, told.word, told.at) == ("surface", HASH, AT)


@pytest.mark.parametrize("record", [
    {"$set": {"lastUpdated": STAMP}}, {"$set": {"memoryScratchpad": {}}}, {"$set": {"sessionId": ID}},
    {"$rewindTo": "m1"}, {"$set": {"messages": []}}, {"$set": {"messages": [7], "lastUpdated": STAMP}},
])
def test_bookkeeping_says_nothing(record):
    assert line(record) == []


def test_a_history_written_anew_tells_the_folder_and_that_it_is_loaded():
    context = [{"text": f"<session_context>\nx\n- **Workspace Directories:**\n  - {CWD}\n  - /tmp\n"}]
    first = {"id": "m0", "timestamp": STAMP, "type": "user", "content": context}
    record = {"$set": {"messages": [first], "lastUpdated": STAMP}}
    assert [(e.key, e.word, e.at) for e in line(record)] == [("cwd", CWD, AT), ("loaded", "yes", AT)]


def test_a_history_whose_first_message_is_new_was_copied_message_by_message():
    context = {"id": CHILD, "timestamp": STAMP, "type": "user", "content": [{"text": "<session_context>"}]}
    record = {"$set": {"messages": [context, user(), answer()], "lastUpdated": LATER}}
    assert [(e.number, e.at) for e in line(record) if e.kind is Kind.COPIED] == [(AT, AT + 7)]
    assert line(answer()) == []  # a copy of what a model said names no model
    for same in ({"id": "d04923d38bb0f6017037e74183378ef4"}, {"timestamp": "2026-11-30T08:59:00.000Z"}):
        assert said(line({"$set": {"messages": [{**context, **same}, user(), answer()], "lastUpdated": LATER}})) == []


def test_a_summary_is_a_title_and_no_name_given_by_the_user():
    assert facts(line({"$set": {"summary": "Greetings"}})) == {"title": "Greetings"}


@pytest.mark.parametrize(("content", "means"), [
    ([{"text": "prompt"}], [("prompt", "", "user")]),
    ("prompt", [("prompt", "", "user")]),
    ({"text": "prompt"}, [("prompt", "", "user")]),
    ([{"inlineData": {"mimeType": "image/png"}}], [("prompt", "", "user")]),
    ([{"text": "?"}], [("prompt", "", "user")]),
    ([], []),
    ("", []),
    *([([{"text": f"{start} more"}], []) for start in NO_PROMPTS]),
    *([([{"text": f"\n{start}more"}], [("progress", "", "model")]) for start in NUDGES]),
    ([{"functionResponse": {"response": {"output": "x"}}}], [("progress", "", "model")]),
    ([{"text": "hint"}, {"functionResponse": {"response": {"error": "no such file"}}}], [("progress", "", "model")]),
    ([{"functionResponse": {"response": {"error": "[Operation Cancelled] Reason"}}}], []),
    ([{"functionResponse": {"response": {"error": "[Operation Cancelled] Reason"}}},
      {"functionResponse": {"response": {"output": "x"}}}], [("progress", "", "model")]),
    ([{"functionResponse": 7}], [("progress", "", "model")]),
])
def test_what_stands_as_the_users_means(content, means):
    assert said(message("user", content)) == means


@pytest.mark.parametrize(("content", "more", "means"), [
    ("Done.", {}, [("answer", "", "finished")]),
    ([{"text": "Done."}], {}, [("answer", "", "finished")]),
    ("Shall I?", {}, [("answer", "", "question")]),
    ("", {}, [("progress", "", "tool")]),
    (" \n", {}, [("progress", "", "tool")]),
    ([{"text": "Reading."}, {"functionCall": {"name": "read_file"}}], {}, [("progress", "", "tool")]),
    ("Reading.", {"toolCalls": []}, [("answer", "", "finished")]),
    ("Reading.", {"toolCalls": [call()]}, [("progress", "", "model")]),
    ("Reading.", {"toolCalls": [call(status="error")]}, [("progress", "", "model")]),
    ("Reading.", {"toolCalls": [call(status="cancelled")]}, []),
    ("Reading.", {"toolCalls": [call(status="cancelled"), call()]}, [("progress", "", "model")]),
    ("Reading.", {"toolCalls": [7]}, [("answer", "", "finished")]),
    ("Reading.", {"toolCalls": 7}, [("answer", "", "finished")]),
])
def test_an_answer_means(content, more, means):
    assert said(message("gemini", content, **more)) == means


def test_tools_have_ended_when_the_last_of_them_has_not_when_they_were_called():
    found = message("gemini", "", toolCalls=[call(), call(timestamp=STAMP)])
    assert {e.at for e in found if e.kind is Kind.PROGRESS} == {AT + 7}


def test_work_that_was_cut_off_in_part_says_so():
    mixed = [{"functionResponse": {"response": {"error": "[Operation Cancelled] Reason"}}},
             {"functionResponse": {"response": {"output": "x"}}}]
    found = [*message("gemini", "", toolCalls=[call(status="cancelled"), call()]), *message("user", mixed),
             *message("gemini", "", toolCalls=[call()]), *message("user", mixed[1:])]
    assert [e.text for e in found if e.kind is Kind.PROGRESS] == ["interrupted", "interrupted", "", ""]


def test_an_answer_is_a_guess_and_leaves_no_subagents():
    answer = message("gemini", "Done.")[-1]
    assert (answer.text, answer.number, answer.turn) == (Doubt.PERHAPS, 0, "m1")


def test_an_answer_tells_the_model_and_what_was_sent_to_it():
    found = message("gemini", "Done.", model="gemini-2.5-pro", tokens={"input": 9000, "total": 9040})
    assert facts(found) == {"model": "gemini-2.5-pro", "tokens": "9000"}
    assert facts(message("gemini", "Done.", model=7, tokens=["x"])) == {}


def test_a_command_moved_to_the_background_is_known_by_its_pid():
    moved = call(resultDisplay="Command moved to background (PID: 14380). Output hidden. Press Ctrl+B to view.")
    (opened,) = [e for e in message("gemini", "", toolCalls=[moved]) if e.kind is Kind.OPENED]
    assert (opened.key, opened.word, opened.text, opened.at) == ("shell:14380", "process", "14380", AT + 7)


@pytest.mark.parametrize(("kind", "text", "means"), [
    ("info", "Request cancelled.", [("end", "", "interrupted")]),
    ("info", "User cancelled the request.", [("end", "", "interrupted")]),
    ("info", "Model set to gemini-2.5-flash", []),
    ("info", "Context compressed from 67% to 0%.", []),
    ("info", "This request failed. Press F12 for diagnostics", []),
    ("warning", "The weather", []),
    ("error", "Unknown command: /foo", []),
    ("error", "[API Error: terminated]", [("answer", "", "error")]),
    ("error", '[API Error: {"error":{"code":400,"message":"x"}}]', [("answer", "", "error")]),
    ("error", '[API Error: {"error":{"code":429,"message":"x"}}]', [("answer", "", "limit")]),
    ("error", "[API Error: You have exhausted your daily quota on this model.]", [("answer", "", "limit")]),
    ("error", "[API Error: API key not valid. Please pass a valid API key.]", [("answer", "", "login")]),
    ("error", "The model returned an empty response with no text or thoughts.", [("answer", "", "error")]),
    ("info", "A potential loop was detected. This can happen", [("end", "", "error")]),
    ("info", "The session has reached the maximum number of turns: 3.", [("end", "", "limit")]),
    ("info", "Agent execution stopped: by a hook", [("end", "", "finished")]),
    ("hologram", "x", [("unknown", "", "hologram")]),
])
def test_what_the_program_says_means(kind, text, means):
    assert said(message(kind, text)) == means


def test_a_record_of_no_kind_is_unknown():
    assert said(line({"shape": "new"})) == [("unknown", "", "record")]


@pytest.mark.parametrize("start", [*ENDS, *NO_PROMPTS, *NUDGES])
def test_what_readers_know_a_text_by_survives_blanking(start):
    if not start.startswith("<"):
        assert blank_text(f"{start} and more of it").startswith(start)


# -- histories as a document -----------------------------------------------------------------------------------


def user(content="prompt", ident="u1"):
    return {"id": ident, "timestamp": STAMP, "type": "user", "content": content}


def answer(content="Done.", **more):
    return {"id": "g1", "timestamp": LATER, "type": "gemini", "content": content, **more}


def named(message):
    return {**message, "model": "gemini-2.5-pro"}


def test_a_document_tells_what_has_happened_since_the_newest_prompt():
    found = document(user(), named(answer()), user(ident="u2"), named(answer("", toolCalls=[call()])))
    assert said(found) == [("progress", "", "model"), ("prompt", "", "user")]
    assert [e.turn for e in found if e.kind is Kind.PROMPT] == ["u2"]


def test_of_two_messages_at_one_time_the_later_in_the_document_counts():
    orders = {e.word: e.order for e in document(user(), named(answer()), named(answer("So?"))) if e.kind is Kind.ANSWER}
    assert orders["question"] > orders["finished"]


def test_a_document_tells_the_same_facts_as_a_head():
    assert facts(document(user(), summary="Greetings")) == {"surface": HASH, "title": "Greetings"}


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}", b'{"sessionId": "s1"}',
                                  b'{"sessionId": 7, "messages": []}', b'{"sessionId": "s1", "messages": {}}'])
def test_what_is_no_history_is_refused(data):
    with pytest.raises(ValueError):
        list(read_document(Record(LINES, data)))


# -- subagents -------------------------------------------------------------------------------------------------


def test_a_subagent_is_a_child_of_the_session_whose_folder_it_lies_in_until_it_hands_over():
    (begun,) = subagent({**HEAD, "sessionId": CHILD, "kind": "subagent"})
    assert (begun.kind, begun.session, begun.key, begun.word, begun.at) == (Kind.OPENED, ID, CHILD, "child", AT)
    (ended,) = subagent(answer("", toolCalls=[call("read_file"), call("complete_task")]))
    assert (ended.kind, ended.session, ended.key, ended.at) == (Kind.CLOSED, ID, CHILD, AT + 7)


@pytest.mark.parametrize("record", [
    user(), answer(), answer("", toolCalls=[call()]), answer("", toolCalls=[call("complete_task", "error")]),
    answer("", toolCalls=[7]), {"$set": {"summary": "x"}}, {"type": "hologram"},
])
def test_nothing_else_of_a_subagent_says_anything(record):
    assert subagent(record) == []


# -- any bytes -------------------------------------------------------------------------------------------------

leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from([STAMP, "user", "gemini"])
words = st.sampled_from(["$set", "sessionId", "type", "content", "timestamp", "toolCalls", "messages", "startTime",
                         "response", "functionResponse", "text", "status", "name", "tokens", "id"])
values = st.recursive(leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(words, v, max_size=4), max_leaves=8)
messages = st.fixed_dictionaries({"type": st.sampled_from(["user", "gemini", "info", "error", "x"]),
                                  "timestamp": st.sampled_from([STAMP, LATER, "soon"]), "content": values},
                                 optional={"toolCalls": values, "id": values, "tokens": values, "model": values})


@given(st.sampled_from([read_line, read_document, read_subagent]), messages | values | st.lists(messages).map(
    lambda found: {**HEAD, "messages": found}), st.sampled_from([b"", json.dumps(HEAD).encode(), b"{}"]))
def test_readers_raise_nothing_but_value_errors(read, value, head):
    try:
        found = list(read(Record(LINES, json.dumps(value).encode("utf-8", "replace"), 3, 7.0, head)))
    except ValueError:
        return
    assert all(isinstance(e, Event) and isinstance(e.word, str) and isinstance(e.key, str) for e in found)


# -- titles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "means"), [
    ("◇  Ready (app)", "ready"), ("✦  Working… (app)", "busy"), ("⏲  Working… (app)", "busy"),
    ("✦  Reading the code (app)" + " " * 40, "busy"), ("✋  Action Required (app)", "permission"),
    ("Gemini CLI (app)", ""), ("Gemini - app", ""), ("", ""), ("✦", ""), ("✦ app", ""), ("vm", ""), ("✳ app", ""),
])
def test_a_title_says(text, means):
    assert title(text) == means


LIMIT = """
╭────────────────────────────────────────────────────────╮
│                                                        │
│ Usage limit reached for all Pro models.                │
│ /model to switch models.                               │
│                                                        │
│ ● 1. Keep trying                                       │
│   2. Stop                                              │
│                                                        │
╰────────────────────────────────────────────────────────╯
"""


@pytest.mark.parametrize(("screen", "means"), [
    (LIMIT, "question"),
    *((dialog.sample, dialog.word) for dialog in GEMINI.dialogs),
    (f"{LIMIT}\n > Type your message\n" + "a line of work\n" * 12, ""),
    ("✦ 1. Keep trying\n  2. Stop\n", ""),
    ("│ ● 1. Allow once                │\n│   2. No, suggest changes (esc) │\n", ""),
    ("", ""),
])
def test_a_screen_shows_a_dialog_that_nothing_else_tells(screen, means):
    assert shown(GEMINI, screen) == means


# -- processes -------------------------------------------------------------------------------------------------

NODE = "/usr/bin/node"
HEAP = "--max-old-space-size=12052"


def process(*cmdline, created=AT - 3, cwd=CWD, pid=7):
    return Process(pid, 1, "node", cmdline, cwd, created)


@pytest.mark.parametrize(("cmdline", "ours"), [
    (("node", "/usr/lib/node_modules/.bin/gemini"), True),
    ((NODE, HEAP, "/usr/lib/node_modules/.bin/gemini", "--approval-mode", "yolo"), True),
    ((NODE, "--no-warnings=DEP0040", "/opt/node_modules/@google/gemini-cli/dist/index.js"), True),
    (("C:\\node\\node.exe", "C:\\x\\node_modules\\@google\\gemini-cli\\bundle\\gemini.js"), True),
    (("/opt/gemini/gemini", "-p", "x"), True),
    (("gemini", "extensions", "list"), False),
    (("node", "/usr/bin/gemini", "mcp", "list"), False),
    (("node", "/usr/bin/gemini", "--version"), False),
    (("node", "/usr/bin/gemini", "mcp is broken"), True),
    (("node", "/srv/app/server.js", "gemini"), False),
    (("node", "--inspect"), False),
    (("vim", "gemini"), False),
    (("node",), False),
    ((), False),
])
def test_a_process_is_gemini_by_its_script_not_by_its_name(cmdline, ours):
    assert is_main(process(*cmdline)) is ours


@pytest.mark.parametrize(("given", "whose"), [
    ((), Role.PERSON), (("-i", "x"), Role.PERSON), (("-p", "x"), Role.MACHINE), (("--prompt=x",), Role.MACHINE),
    (("--resume", "latest", "--prompt", "x"), Role.MACHINE),
])
def test_a_run_is_headless_by_its_command_line(given, whose):
    assert role(process(NODE, HEAP, "/usr/bin/gemini", *given)) is whose


def test_another_program_is_nobodys_run():
    assert role(process("node", "server.js", "-p")) is None


def session(surface=HASH, cwd=CWD):
    told = {"surface": surface, "cwd": cwd}
    return Session("gemini", ID, {Kind.FACT: {k: Event(Kind.FACT, ID, AT, k, v) for k, v in told.items() if v}})


@pytest.mark.parametrize(("created", "rank"), [(-3, 2), (-29, 2), (-31, 1), (-600, 1), (0.5, 2), (5, 1)])
def test_a_process_that_had_just_started_when_a_session_was_opened_is_the_likeliest(created, rank):
    assert owns(process("node", "/usr/bin/gemini", created=AT + created), session()) == rank


@pytest.mark.parametrize(("p", "of", "may"), [
    (process("node", "gemini", cwd="/home/dev/other"), session(), False),
    (process("node", "gemini", cwd=""), session(), True),
    (process("node", "gemini"), session(cwd=""), True),
    (process("node", "gemini"), session("", ""), True),
    (process("node", "gemini", cwd="/link"), session(cwd="/link"), True),
    (process("node", "server.js"), session(), False),
])
def test_a_process_owns_a_session_of_its_folder(p, of, may):
    assert bool(owns(p, of)) is may


@pytest.mark.parametrize(("command", "tool"), [
    ("shopt -u x; _bgpids_file=/tmp/gemini-shell-x/bgpids.tmp\n(\n  trap 'jobs -p' EXIT\nsleep 2\n)\n", True),
    ("{ sleep 2; }; __code=$?; pgrep -g 0 >/tmp/shell_pgrep_1.tmp 2>&1; exit $__code;", True),
    ('{ ls; }; __code=$?; pwd > "/tmp/shell_pwd_1.tmp"; exit $__code', False),
    ("/home/dev/hook.sh AfterModel", False),
    ("ps -o comm= -p $PPID", False),
])
def test_a_shell_is_a_tools_if_it_notes_what_it_leaves_running(command, tool):
    assert is_tool(Process(9, 7, "bash", ("/usr/bin/bash", "-c", command))) is tool


# -- the row ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "number"), [
    ("tmp/app/chats/session-2026-11-30T09-00-5f2c8a10.jsonl", 0),
    (f"tmp/{HASH}/chats/session-2026-11-30T09-00-5f2c8a10.json", 1),
    (f"tmp/app/chats/{ID}/{CHILD}.jsonl", 2),
])
def test_each_file_is_read_by_one_source(path, number):
    assert [n for n, source in enumerate(GEMINI.sources) if matcher([f"/h/{source.pattern}"])(f"/h/{path}")] == [number]


def test_the_folder_keeps_its_name_wherever_it_lies():
    assert home({}, "/home/dev") == "/home/dev/.gemini"
    assert home({"GEMINI_CLI_HOME": "/x"}, "/home/dev") == "/x/.gemini"


@pytest.mark.parametrize(("tool", "asks"), [
    ("run_shell_command", True), ("replace", True), ("ask_user", True), ("server__read_file", True),
    ("read_files", True), ("read_file", False), ("complete_task", False), ("tracker_get_task", False),
])
def test_the_end_of_a_tool_is_told_if_it_may_have_asked(tool, asks):
    assert HOOKS["gemini"].made("AfterTool", {"tool_name": tool}) is asks
