"""What Codex's records and processes mean, beyond what the sequences play."""

import json

import pytest

from island.agents.base import moved_by
from island.agents.codex import CODEX, is_main, is_window, owns, read_index, read_rollout, read_window, resumes, role
from island.agents.reading import asks, decode, text_of, when, word
from island.model import KEYLESS, Event, Kind, Process, Record, Role, Session

THREAD = "01a22d40-0001-7001-8a00-000000000001"
OTHER = "01a22d40-0002-7002-8a00-000000000002"
PATH = f"/h/.codex/sessions/2026/11/30/rollout-2026-11-30T09-00-00-{THREAD}.jsonl"
STAMP = "2026-11-30T09:00:00.500Z"
AT = 1_796_029_200.5


def read(kind, inner=None, *, offset=10, **payload):
    payload = {"type": inner, **payload} if inner else payload
    return events({"timestamp": STAMP, "type": kind, "payload": payload}, offset)


def events(line, offset=10):
    return list(read_rollout(Record(PATH, json.dumps(line).encode(), offset, mtime=7.0)))


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


def facts(found):
    return {e.key: e.word for e in found if e.kind is Kind.FACT}


# -- who a thread is ---------------------------------------------------------------------------------------


def meta(**more):
    return facts(read("session_meta", offset=0, id=THREAD, **more))


@pytest.mark.parametrize(("more", "surface", "role"), [
    ({"originator": "codex-tui", "source": "vscode"}, "shared", "person"),
    ({"originator": "codex-tui", "source": "cli"}, "terminal", "person"),
    ({"originator": "codex_cli_rs", "source": "cli"}, "terminal", "person"),
    ({"originator": "codex_vscode", "source": "vscode"}, "editor", "person"),
    ({"originator": "codex_exec", "source": "exec"}, "exec", "machine"),
    ({"originator": "somebody", "source": "exec"}, "exec", "machine"),
    ({"originator": "somebody", "source": "mcp"}, "editor", "machine"),
    ({"originator": "codex_sdk_ts", "source": "vscode"}, "editor", "machine"),
    ({}, "editor", "person"),
    ({"originator": 5, "source": 5}, "editor", "person"),
])
def test_the_first_line_tells_what_the_thread_is_seen_in_and_whose_it_is(more, surface, role):
    told = meta(**more)
    assert (told["surface"], told["role"]) == (surface, role)
    assert "parent" not in told


@pytest.mark.parametrize("more", [
    {"source": {"subagent": {"thread_spawn": {"parent_thread_id": OTHER}}}, "session_id": OTHER},
    {"source": {"subagent": "review"}, "parent_thread_id": OTHER},
    {"thread_source": "subagent", "session_id": OTHER},
], ids=["spawned", "review", "by its thread source"])
def test_a_subagents_thread_is_a_child_of_its_root(more):
    told = meta(**more)
    assert (told["role"], told["parent"]) == ("child", OTHER)


def test_only_the_first_line_tells_who_the_thread_is():
    assert read("session_meta", id=OTHER, cwd="/a", source="cli") == []


# -- turns -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("trigger", "word"), [
    ({"turn_trigger": "user"}, "user"), ({"turn_trigger": "goal"}, "agent"), ({"turn_trigger": "queue"}, "agent"),
    ({"turn_trigger": None}, "user"), (None, "user"), ("odd", "user"),
])
def test_a_turn_is_begun_by_the_user_or_by_the_agent_itself(trigger, word):
    (begun,) = read("event_msg", "task_started", turn_id="t1", turn_attribution=trigger)
    assert begun == Event(Kind.PROMPT, THREAD, AT, "", word, "t1", order=10, source="task_started")


@pytest.mark.parametrize(("payload", "reason"), [
    ({"last_agent_message": "Done."}, ""), ({"last_agent_message": None}, ""), ({"last_agent_message": 5}, ""),
    ({}, ""),
    ({"last_agent_message": "Shall I?"}, "question"), ({"last_agent_message": "**Shall I?** "}, "question"),
    ({"error": {"codex_error_info": "other"}}, "error"), ({"error": {}}, "error"), ({"error": None}, ""),
    ({"error": {"codex_error_info": "usage_limit_exceeded"}}, "limit"),
    ({"error": {"codex_error_info": "unauthorized"}}, "login"),
    ({"error": {"codex_error_info": {"http_connection_failed": {"http_status_code": 502}}}}, "error"),
    ({"error": {"codex_error_info": "other"}, "last_agent_message": "Shall I?"}, "error"),
], ids=str)
def test_the_end_of_a_turn_says_why_it_is_handed_back(payload, reason):
    for name in ("task_complete", "turn_complete"):
        assert said(read("event_msg", name, turn_id="t1", **payload)) == [("end", "", reason)]


@pytest.mark.parametrize(("turn", "copied"), [
    ("01a22d40-0000-7001-8a00-000000000001", True), (THREAD, False), (OTHER, False),
    ("01a22d40-0001-7000-8a00-000000000001", False),  # in the same millisecond
    ("01a22d40-0000-4001-8a00-000000000001", False), ("1", False), ("", False),
])
def test_a_turn_that_is_older_than_its_thread_was_copied(turn, copied):
    for name in ("task_started", "turn_started", "task_complete", "turn_complete", "turn_aborted"):
        assert (said(read("event_msg", name, turn_id=turn)) == [("end", "afresh", "")]) is copied


@pytest.mark.parametrize(("kind", "inner", "payload", "want"), [
    ("event_msg", "turn_aborted", {"reason": "interrupted"}, [("end", "", "interrupted")]),
    ("event_msg", "error", {"codex_error_info": "usage_limit_exceeded"}, [("answer", "", "limit")]),
    ("event_msg", "stream_error", {}, [("progress", "", "retrying")]),
    ("event_msg", "user_message", {}, [("prompt", KEYLESS, "user")]),
    ("event_msg", "agent_message", {}, [("opened", KEYLESS, "unrecorded")]),
    ("event_msg", "item_completed", {"item": {"type": "Plan"}, "turn_id": "t1"},
     [("planned", "t1", ""), ("progress", "", "model")]),
    ("event_msg", "item_completed", {"item": None}, [("progress", "", "model")]),
    ("event_msg", "token_count", {"info": {"last_token_usage": {"total_tokens": 12}}}, [("fact", "tokens", "12")]),
    ("event_msg", "token_count", {"info": None}, []),
    ("event_msg", "token_count", {"info": {"last_token_usage": {"total_tokens": 12}, "model_context_window": 272000}},
     [("fact", "tokens", "12"), ("fact", "window", "272000")]),
    ("event_msg", "token_count", {"info": {"last_token_usage": {"total_tokens": "12"}}}, []),
    ("event_msg", "thread_settings_applied", {}, []),
    ("event_msg", "exec_command_end", {}, []),
    ("response_item", "message", {"role": "user", "content": []}, []),
    ("response_item", "message", {"role": "assistant", "content": [{"text": "So?"}, 5, {"text": None}]},
     [("closed", KEYLESS, "unrecorded"), ("answer", KEYLESS, "question")]),
    ("response_item", "message", {"role": "assistant", "content": "Done."},
     [("closed", KEYLESS, "unrecorded"), ("answer", KEYLESS, "finished")]),
    ("response_item", "message", {"role": "assistant", "content": 5},
     [("closed", KEYLESS, "unrecorded"), ("answer", KEYLESS, "finished")]),
    ("response_item", "reasoning", {}, []),
    ("response_item", "mcp_list_tools_output", {}, []),
    ("response_item", "compaction", {}, []),
    ("response_item", "custom_tool_call_output", {"call_id": "c1"},
     [("closed", "c1", "tool"), ("progress", "", "model")]),
    ("turn_context", None, {"model": "m", "turn_id": "t1"}, [("fact", "model", "m"), ("progress", "", "model")]),
    ("turn_context", None, {"model": 5}, [("progress", KEYLESS, "model")]),
    ("token_usage_record", None, {"turn_id": "t1"}, [("progress", "", "model")]),
    ("compacted", None, {}, []),
    ("world_state", None, {}, []),
], ids=str)
def test_a_record_means(kind, inner, payload, want):
    assert said(read(kind, inner, **payload)) == want


def call(name, arguments, kind="function_call"):
    opened, progress = read("response_item", kind, name=name, call_id="c1", arguments=arguments)
    assert said([progress]) == [("progress", "", "tool")]
    return opened


@pytest.mark.parametrize(("name", "arguments", "word", "text"), [
    ("exec_command", '{"cmd": "make"}', "tool", "make"),
    ("exec_command", '{"cmd": "make", "sandbox_permissions": "require_escalated"}', "escalation", "make"),
    ("shell", '{"command": ["bash", "-lc", "make"], "with_escalated_permissions": true}', "escalation", "make"),
    ("shell", '{"command": ["bash", "-lc", "make"], "with_escalated_permissions": "yes"}', "tool", "make"),
    ("shell", '{"command": []}', "tool", ""),
    ("shell", '{"command": [5]}', "tool", ""),
    ("search_docs", '{"sandbox_permissions": "require_escalated"}', "tool", ""),
    ("request_user_input", "{}", "question", ""),
    ("request_permissions", "{}", "permission", ""),
    ("exec_command", "not json", "tool", ""),
    ("exec_command", "[1]", "tool", ""),
    ("exec_command", None, "tool", ""),
    (None, None, "tool", ""),
])
def test_a_call_runs_a_tool_or_asks_the_user(name, arguments, word, text):
    opened = call(name, arguments)
    assert (opened.kind, opened.key, opened.word, opened.text) == (Kind.OPENED, "c1", word, text)


def test_the_turn_of_a_call_stands_in_what_was_passed_through():
    passed = {"internal_chat_message_metadata_passthrough": {"turn_id": "t1"}}
    assert {e.turn for e in read("response_item", "function_call", name="x", call_id="c", **passed)} == {"t1"}
    assert {e.turn for e in read("response_item", "function_call", name="x", call_id="c")} == {""}


@pytest.mark.parametrize(("line", "name"), [
    ({"type": "brand_new", "payload": {}}, "brand_new"),
    ({"type": "event_msg", "payload": {"type": "brand_new"}, "timestamp": STAMP}, "event_msg brand_new"),
    ({"type": "response_item", "payload": {"type": "brand_new"}, "timestamp": STAMP}, "response_item brand_new"),
    ({"type": "event_msg", "payload": None}, "event_msg"),
    ({"type": 5}, ""),
])
def test_an_unknown_kind_of_record_is_named_and_says_nothing(line, name):
    assert said(events(line)) == [("unknown", "", name)]


@pytest.mark.parametrize("line", [
    {"type": "event_msg", "payload": {"type": "task_started"}},
    {"type": "event_msg", "payload": {"type": "task_started"}, "timestamp": "yesterday"},
    {"type": "event_msg", "payload": {"type": "task_started"}, "timestamp": 5},
    [],
])
def test_a_record_without_time_is_not_of_this_format(line):
    with pytest.raises(ValueError):
        events(line)


# -- side files --------------------------------------------------------------------------------------------


def test_the_index_tells_titles():
    line = json.dumps({"id": THREAD, "thread_name": "A name", "updated_at": STAMP}).encode()
    assert list(read_index(Record("/h/session_index.jsonl", line, 9))) == [
        Event(Kind.FACT, THREAD, AT, "title", "A name", order=9, source="session index"),
    ]
    assert list(read_index(Record("/h/session_index.jsonl", b'{"id": null}'))) == []


def test_a_mark_tells_that_a_terminal_opened_the_thread():
    assert said(read_window(Record(f"/h/m/{THREAD}", b"", mtime=5.0))) == [("attached", "", "")]
    assert list(read_window(Record("/h/m/.hidden", b"", mtime=5.0))) == []


# -- processes ---------------------------------------------------------------------------------------------


def process(*cmdline, cwd="", pid=5, created=1.0):
    return Process(pid, 1, "codex", cmdline, cwd, created)


WINDOW, SERVER = process("/bin/codex"), process("/bin/codex", "app-server", "--listen", "unix://", "--managed-daemon")
EXEC, EDITOR = process("/bin/codex", "exec", "go"), process("codex.exe", "app-server")
UPDATER = process("/bin/codex", "app-server", "daemon", "pid-update-loop")


@pytest.mark.parametrize(("p", "main", "window", "whose"), [
    (WINDOW, True, True, None), (SERVER, True, False, None), (EXEC, True, False, Role.MACHINE),
    (EDITOR, True, False, None), (UPDATER, False, False, None),
    (process("node", "/bin/codex"), False, False, None), (process(), False, False, None),
    (process("/bin/codex", "resume", THREAD), True, True, None),
    (process("/bin/codex", "mcp-server"), True, False, None),
])
def test_a_process_is_known_by_its_command_line(p, main, window, whose):
    assert (is_main(p), is_window(p), role(p)) == (main, window, whose)


def thread(surface, cwd="/app", ident=THREAD, at=1.0, whose="person"):
    held = {"surface": surface, "cwd": cwd, "role": whose}
    return Session("codex", ident, {Kind.FACT: {k: Event(Kind.FACT, ident, at, k, v) for k, v in held.items()}})


@pytest.mark.parametrize(("surface", "owners"), [
    ("shared", [SERVER]), ("terminal", [WINDOW]), ("exec", [EXEC]), ("editor", [EDITOR]),
])
def test_a_thread_is_run_by_the_program_of_its_surface(surface, owners):
    processes = {SERVER, EXEC, EDITOR, UPDATER} | ({WINDOW} if surface != "shared" else set())
    assert {p for p in processes if owns(p, thread(surface))} == set(owners)


@pytest.mark.parametrize(("surface", "program"), [("terminal", "/bin/codex"), ("exec", "/bin/codex exec go")])
def test_a_program_of_another_folder_does_not_run_it(surface, program):
    assert owns(process(*program.split(), cwd="/app"), thread(surface))
    assert not owns(process(*program.split(), cwd="/else"), thread(surface))
    assert owns(process(*program.split(), cwd="/else"), thread(surface, cwd=""))


@pytest.mark.parametrize(("p", "want"), [
    (WINDOW, ""), (SERVER, ""), (process("/bin/codex", "resume"), ""),
    (process("/bin/codex", "resume", OTHER), OTHER),
    (process("/bin/codex", "resume", "--last"), OTHER),
    (process("/bin/codex", "resume", "--last", cwd="/app"), THREAD),
    (process("/bin/codex", "resume", "--last", cwd="/nowhere"), ""),
    (process("node", "/bin/codex", "resume", "--last"), ""),
])
def test_a_terminal_goes_on_with_the_thread_that_it_was_started_for(p, want):
    machine = thread("exec", ident="m", at=9.0, whose="machine")
    assert resumes(p, [thread("shared"), thread("shared", "/else", OTHER, 5.0), machine]) == want


def test_its_home_is_moved_by_the_environment():
    assert CODEX.home({}, "/home/dev") == "/home/dev/.codex"
    assert CODEX.home({"CODEX_HOME": "/x"}, "/home/dev") == "/x"
    assert moved_by("A", "b/c")({"A": ""}, "/h") == "/h/b/c"


def test_its_row_says_what_its_verdicts_rest_on_and_what_cannot_be_seen():
    assert CODEX.evidence
    assert CODEX.blind


# -- small readings ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("content", "want"), [
    ("a", "a"), (None, ""), ({}, ""), ([{"text": "a"}, {"text": 5}, "x", {"text": "b"}], "a\nb"),
])
def test_the_text_of_a_message(content, want):
    assert text_of(content) == want


@pytest.mark.parametrize(("closing", "want"), [
    ("Shall I?", True), ("Shall I?** ", True), ('"Shall I?")', True), ("Done.", False), ("", False),
    ("好吗？", True),  # noqa: RUF001 - a real question mark
    ("Why? Because.", False),
])
def test_a_closing_question_is_known_by_its_mark(closing, want):
    assert asks(closing) is want


def test_a_stamp_without_a_zone_is_utc():
    assert when("2026-11-30T09:00:00.5") == when(STAMP) == when("2026-11-30T10:00:00.5+01:00") == AT


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"5", b'"x"', b"\xff"])
def test_what_is_no_object_is_not_of_this_format(data):
    with pytest.raises(ValueError):
        decode(Record("/p", data))


def test_a_foreign_field_is_a_word_only_if_it_is_text():
    assert (word("a"), word(5), word(None), word(["a"])) == ("a", "", "", "")
