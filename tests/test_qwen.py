"""What Qwen Code's records, processes and titles mean, beyond what the sequences play."""

import json

import pytest

from island.agents.base import UNMARKED
from island.agents.qwen import (
    QWEN,
    home,
    is_main,
    live_removed,
    owns,
    read_agent,
    read_history,
    read_live,
    read_runtime,
    read_shell,
    resumes,
    role,
    runtime_removed,
    title,
)
from island.model import Doubt, Event, Kind, Process, Record, Role, Session

SESSION = "5d0e6c1a-0000-4000-8000-000000000001"
CWD = "/home/dev/app"
PROJECT = "/h/.qwen/projects/-home-dev-app"
STAMP, AT = "2026-11-30T09:00:00.500Z", 1_796_029_200.5


def read(kind, /, **fields):
    line = {"type": kind, "timestamp": STAMP, "sessionId": SESSION, "provenance": "system", **fields}
    line = {k: v for k, v in line.items() if v is not None}
    return list(read_history(Record(f"{PROJECT}/chats/{SESSION}.jsonl", json.dumps(line).encode(), 10)))


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


def parts(*found):
    return {"role": "model", "parts": list(found)}


def text(words, **more):
    return {"text": words, **more}


def call(name, ident="c1"):
    return {"functionCall": {"id": ident, "name": name, "args": {}}}


USED = {"promptTokenCount": 9000}


# -- turns --------------------------------------------------------------------------------------------------


def test_a_turn_is_known_by_the_record_that_began_it():
    prompt, cwd, version = read("user", uuid="u1", cwd=CWD, version="0.24.4", message=parts(text("hi")))
    assert (prompt.kind, prompt.session, prompt.at, prompt.turn, prompt.word, prompt.order) == (
        Kind.PROMPT, SESSION, AT, "u1", "user", 10)
    assert [(e.key, e.word) for e in (cwd, version)] == [("cwd", CWD), ("version", "0.24.4")]


@pytest.mark.parametrize(("about", "means"), [
    (None, ("prompt", "user")), ("notification", ("prompt", "task")), ("cron", ("prompt", "task")),
    ("goal_runtime", ("prompt", "agent")), ("mid_turn_user_message", ("progress", "model")),
    ("hologram", ("unknown", "hologram")),
])
def test_who_speaks_begins_a_turn_or_goes_on_in_one(about, means):
    (e,) = read("user", uuid="u1", subtype=about)
    assert (e.kind.value, e.word) == means


def test_what_is_said_aloud_is_no_turn():
    assert read("user", uuid="u1", subtype="realtime_message") == []
    assert read("assistant", subtype="realtime_message", message=parts(text("hi")), usageMetadata=USED) == []


@pytest.mark.parametrize(("message", "fields", "means"), [
    (parts(text("Done.")), {"usageMetadata": USED}, ("answer", "finished")),
    (parts(text("hm", thought=True), text("Shall I?")), {"usageMetadata": USED}, ("answer", "question")),
    (parts(text("Do")), {}, ("answer", "interrupted")),
    (parts(text("Do")), {"provenance": None}, ("answer", "finished")),
    (parts(text("hm", thought=True)), {"usageMetadata": USED}, ("progress", "model")),
    (parts(text(" \n")), {"usageMetadata": USED}, ("progress", "model")),
    (parts(text("First."), call("glob")), {"usageMetadata": USED}, ("progress", "tool")),
    (None, {}, ("progress", "model")),
    ({"parts": [7, {"text": 7}, {"functionCall": 7}]}, {}, ("progress", "tool")),
])
def test_a_response_ends_the_turn_if_it_says_something_and_calls_nothing(message, fields, means):
    told = [e for e in read("assistant", message=message, **fields) if e.kind in (Kind.ANSWER, Kind.PROGRESS)]
    assert [(e.kind.value, e.word) for e in told] == [means]


def test_a_response_tells_the_model_and_the_context():
    told = read("assistant", model="qwen3-coder-plus", message=parts(text("Done.")), usageMetadata=USED)
    assert {e.key: e.word for e in told if e.kind is Kind.FACT} == {"model": "qwen3-coder-plus", "tokens": "9000"}


@pytest.mark.parametrize(("names", "newer", "older"), [
    (["run_shell_command"], ["judged-tool"], ["shell-tool"]),
    (["edit"], ["judged-tool"], ["instant-tool"]),
    (["write_file", "read_file"], ["judged-tool", "tool"], ["instant-tool", "tool"]),
    (["run_shell_command", "edit"], ["judged-tool", "tool"], ["shell-tool", "tool"]),
    (["run_shell_command", "agent"], ["tool", "tool"], ["tool", "tool"]),
    (["read_file"], ["tool"], ["tool"]),
    (["web_fetch"], ["tool"], ["tool"]),
    (["ask_user_question", "agent"], ["question", "tool"], ["question", "tool"]),
    (["exit_plan_mode"], ["plan"], ["plan"]),
    ([7], ["tool"], ["tool"]),
])
def test_an_open_call_may_ask_if_nothing_else_keeps_it_open(names, newer, older):
    message = parts(*(call(name, f"c{number}") for number, name in enumerate(names)))
    for provenance, spans in ("assistant_output", newer), (None, older):
        told = read("assistant", message=message, provenance=provenance)
        assert [e.word for e in told if e.kind is Kind.OPENED] == spans


@pytest.mark.parametrize(("status", "means"), [
    ("success", ("progress", "model")), ("error", ("progress", "model")), (None, ("progress", "model")),
    ("cancelled", ("answer", "interrupted")),
])
def test_a_cancelled_call_ends_the_turn(status, means):
    response = {"role": "user", "parts": [{"functionResponse": {"id": "c1"}}]}
    closed, *_, then = read("tool_result", message=response, toolCallResult={"callId": "c1", "status": status})
    assert (closed.kind, closed.key) == (Kind.CLOSED, "c1")
    assert (then.kind.value, then.word) == means


def test_older_versions_tell_of_a_shell_in_the_background_by_its_call_alone():
    asked = {"functionCall": {"id": "c1", "name": "run_shell_command", "args": {"is_background": True}}}
    shell = ("opened", "shell:c1", "shell")
    assert shell in said(read("assistant", message=parts(asked), provenance=None))
    assert shell not in said(read("assistant", message=parts(asked)))
    for status, closes in ("success", False), ("cancelled", True), ("error", True):
        told = said(read("tool_result", toolCallResult={"callId": "c1", "status": status}))
        assert (("closed", "shell:c1", "shell") in told) is closes


@pytest.mark.parametrize(("about", "payload", "means"), [
    ("chat_compression", {"info": {"triggerReason": "manual"}}, [("end", "", "finished")]),
    ("chat_compression", {"info": {"triggerReason": "token_limit"}}, [("progress", "", "model")]),
    ("chat_compression", {"info": 7}, [("progress", "", "model")]),
    ("rewind", {}, [("end", "", "interrupted")]),
    ("turn_result", {"state": "completed"}, [("end", "", "")]),
    ("turn_result", {"state": "cancelled"}, [("end", "", "interrupted")]),
    ("turn_result", {"state": "error"}, [("end", "", "error")]),
    ("turn_result", {"state": "dreamt"}, [("end", "", "error")]),
    ("custom_title", {"customTitle": "mine", "titleSource": "manual"}, [("fact", "name", "mine")]),
    ("custom_title", {"customTitle": "mine"}, [("fact", "name", "mine")]),
    ("custom_title", {"customTitle": "prose", "titleSource": "auto"}, [("fact", "title", "prose")]),
    ("parent_session", {"parentSessionId": "p"}, [("fact", "parent", "p"), ("fact", "role", "child")]),
    ("slash_command", {"phase": "invocation", "rawCommand": "/about"}, []),
    ("file_history_snapshot", {}, []),
    ("hologram", {}, [("unknown", "", "hologram")]),
    (None, {}, [("unknown", "", "")]),
])
def test_a_record_beside_the_messages_means(about, payload, means):
    assert said(read("system", subtype=about, systemPayload=payload)) == means


def test_a_compaction_by_hand_is_a_turn_of_its_own():
    (end,) = read("system", uuid="u7", subtype="chat_compression", systemPayload={"info": {"triggerReason": "manual"}})
    assert end.turn == "u7"


def test_a_copied_record_tells_facts_alone():
    told = read("user", uuid="u1", cwd=CWD, forkedFrom={"sessionId": "s0", "messageUuid": "u0"})
    assert said(told) == [("fact", "cwd", CWD)]


@pytest.mark.parametrize("kind", ["hologram", None, 7])
def test_an_unknown_kind_is_counted(kind):
    (e,) = read(kind)
    assert (e.kind, e.word) == (Kind.UNKNOWN, kind if isinstance(kind, str) else "")


# -- errors -------------------------------------------------------------------------------------------------


def failed(status, message="", **fields):
    told = {"event.name": "qwen-code.api_error", "prompt_id": f"{SESSION}########3", "status_code": status,
            "error_message": message, **fields}
    return [(e.word, e.text) for e in read("system", subtype="ui_telemetry", systemPayload={"uiEvent": told})]


@pytest.mark.parametrize(("status", "message", "means"), [
    (400, "400 Invalid value in request.", ("error", "")),
    (400, "This model's maximum context length is 32768 tokens.", ("error", Doubt.AGAIN)),
    (401, "Incorrect API key provided.", ("login", "")),
    (402, "", ("limit", "")),
    (403, "", ("login", "")),
    (404, "", ("error", "")),
    (408, "", ("error", Doubt.AGAIN)),
    (413, "Request too large", ("error", Doubt.AGAIN)),
    (429, "", ("limit", Doubt.AGAIN)),
    (500, "", ("error", Doubt.AGAIN)),
    (None, "terminated", ("error", Doubt.AGAIN)),
    ("400", "", ("error", Doubt.AGAIN)),
])
def test_an_error_says_what_it_is_and_whether_it_may_be_tried_again(status, message, means):
    assert failed(status, message) == [means]


@pytest.mark.parametrize("fields", [
    {"prompt_id": f"{SESSION}#general-purpose-c1#0"}, {"prompt_id": "compress-1"}, {"prompt_id": None},
    {"subagent_name": "general-purpose"}, {"event.name": "qwen-code.api_response"}, {"event.name": None},
])
def test_what_is_not_the_main_threads_error_is_none(fields):
    assert failed(500, **fields) == []


# -- beside it ------------------------------------------------------------------------------------------------


def test_a_live_record_names_the_process_its_start_and_its_namespace():
    document = {"pid": 700, "procStart": "b00t:374867", "pidNs": 4026531836, "sessionId": SESSION, "cwd": CWD,
                "name": "app-15", "startedAt": AT * 1000, "qwenVersion": "0.24.4", "kind": "tui", "ipcToken": "secret"}
    owner, *facts = read_live(Record("/h/.qwen/sessions/700.json", json.dumps(document).encode()))
    assert (owner.kind, owner.session, owner.key, owner.number) == (Kind.OWNER, SESSION, "700", AT)
    assert owner.text == "b00t:374867 :pid:[4026531836]"
    assert [(e.key, e.word) for e in facts] == [("cwd", CWD), ("version", "0.24.4")]
    assert not any("secret" in repr(e) for e in (owner, *facts))


@pytest.mark.parametrize(("kind", "roles"), [("headless", [Role.MACHINE]), ("tui", []), ("serve", []), (None, [])])
def test_a_live_record_tells_a_headless_run(kind, roles):
    document = {"pid": 700, "sessionId": SESSION, "startedAt": 5, "kind": kind}
    owner, *facts = read_live(Record("/h/.qwen/sessions/700.json", json.dumps(document).encode(), mtime=9.0))
    assert [e.word for e in facts if e.key == "role"] == roles
    assert (owner.text, owner.at) == ("", 0.005)


def test_a_program_that_is_no_session_is_passed_over():
    document = {"pid": 700, "sessionId": "bridge", "startedAt": 5, "kind": "external"}
    assert list(read_live(Record("/h/.qwen/sessions/700.json", json.dumps(document).encode()))) == []


@pytest.mark.parametrize("read_one", [read_live, read_runtime])
@pytest.mark.parametrize("document", [
    {}, {"pid": 7}, *({"pid": pid, "sessionId": "s", "session_id": "s"} for pid in (0, -7, "7", 7.5, True, None)),
])
def test_a_record_of_a_process_without_session_or_pid_is_a_value_error(read_one, document):
    with pytest.raises(ValueError, match="without session or pid"):
        list(read_one(Record("/h/x.json", json.dumps(document).encode())))


def test_a_runtime_file_names_the_process_and_its_removal_says_that_it_turned_away():
    document = {"schema_version": 1, "pid": 700, "session_id": SESSION, "work_dir": CWD, "started_at": AT}
    owner, cwd = read_runtime(Record(f"{PROJECT}/chats/{SESSION}.runtime.json", json.dumps(document).encode()))
    assert (owner.kind, owner.key, owner.at, owner.number, cwd.word) == (Kind.OWNER, "700", AT, AT, CWD)
    for removed, how in (runtime_removed, "left"), (live_removed, "closed"):
        (gone,) = removed(owner, AT + 9)
        assert (gone.kind, gone.key, gone.at) == (Kind.GONE, f"700/{how}", AT + 9)
        assert list(removed(cwd, AT + 9)) == []


@pytest.mark.parametrize(("fields", "means"), [
    ({"status": "running", "isBackgrounded": True}, [("opened", "agent:a1", "child")]),
    ({"status": "running"}, [("opened", "agent:a1", "child")]),
    ({"status": "completed", "isBackgrounded": True}, [("closed", "agent:a1", "child")]),
    ({"status": "cancelled"}, [("closed", "agent:a1", "child")]),
    ({"status": "running", "isBackgrounded": False}, []),
    ({"status": "running", "parentSessionId": None}, []),
])
def test_an_agent_in_the_background_outlives_its_turn(fields, means):
    document = {"agentId": "a1", "parentSessionId": SESSION, "createdAt": STAMP, **fields}
    record = Record(f"{PROJECT}/subagents/{SESSION}/agent-a1.meta.json", json.dumps(document).encode())
    assert said(read_agent(record)) == means


@pytest.mark.parametrize(("fields", "means"), [
    ({"status": "running", "startTime": STAMP, "pid": 9}, ("opened", AT)),
    ({"status": "completed", "startTime": "2026-11-30T08:00:00Z", "endTime": STAMP}, ("closed", AT)),
    ({"status": "failed", "updatedAt": STAMP}, ("closed", AT)),
])
def test_a_shell_in_the_background_outlives_its_turn(fields, means):
    record = Record(f"/h/.qwen/tmp/1f/background-shells/{SESSION}/shell-bg_1.status",
                    json.dumps({"id": "bg_1", **fields}).encode())
    (e,) = read_shell(record)
    assert ((e.kind.value, e.at), e.session, e.key, e.word) == (means, SESSION, "shell:bg_1", "shell")


@pytest.mark.parametrize("read_one", [read_history, read_live, read_runtime, read_agent, read_shell])
@pytest.mark.parametrize("data", [b"", b"[]", b"7", b'{"type": "use', b"\xff"])
def test_what_is_no_object_is_a_value_error(read_one, data):
    with pytest.raises(ValueError):
        list(read_one(Record(f"{PROJECT}/chats/{SESSION}.jsonl", data)))


@pytest.mark.parametrize("line", [b'{"type": "user"}', b'{"type": "user", "sessionId": "s"}'])
def test_a_line_without_session_or_time_is_a_value_error(line):
    with pytest.raises(ValueError, match=r"without a session|missing"):
        list(read_history(Record("x", line)))


# -- processes and titles -------------------------------------------------------------------------------------


def process(*cmdline, cwd=CWD):
    return Process(7, 1, cmdline[0].rpartition("/")[2] if cmdline else "", cmdline, cwd, 1.0)


CLI = ("/usr/bin/node", "--expose-gc", "/usr/lib/node_modules/@qwen-code/qwen-code/cli.js")


@pytest.mark.parametrize(("p", "main"), [
    (process(*CLI), True),
    (process("node", "/usr/bin/qwen", "-c"), True),
    (process("/usr/bin/node", "--max-old-space-size=4096", "/usr/bin/qwen"), True),
    (process("node", "/usr/lib/node_modules/@qwen-code/qwen-code/cli-entry.js"), True),
    (process("node.exe", "C:\\Users\\dev\\node_modules\\@qwen-code\\qwen-code\\dist\\cli.js"), True),
    (process("/opt/qwen/bin/qwen", "fix it"), True),
    (process(*CLI, "mcp", "list"), False),
    (process("node", "/usr/bin/qwen", "serve"), False),
    (process("node", "--input-type=commonjs", "--eval", "'use strict';"), False),
    (process("vi", "qwen"), False),
    (process("node", "server.js", "/usr/bin/qwen"), False),
    (process("python3", "-m", "http.server"), False),
    (process(), False),
])
def test_the_program_is_known_by_its_script(p, main):
    assert is_main(p) is main
    assert QWEN.tool(p) is not main


@pytest.mark.parametrize(("arguments", "whose"), [
    (("-p", "fix it"), Role.MACHINE), (("--prompt=fix",), Role.MACHINE), (("-o", "json", "fix"), Role.MACHINE),
    ((), None), (("-i", "fix it"), None), (("--acp",), None),
])
def test_a_headless_run_is_known_by_its_arguments(arguments, whose):
    assert role(process(*CLI, *arguments)) is whose
    assert role(process("grep", *arguments)) is None


@pytest.mark.parametrize("option", ["-r", "--resume", "--session-id"])
def test_a_process_that_was_started_to_go_on_with_a_session_says_so(option):
    assert resumes(process(*CLI, option, SESSION), ()) == SESSION
    assert resumes(process(*CLI, option), ()) == ""
    assert resumes(process("grep", option, SESSION), ()) == ""


@pytest.mark.parametrize(("p", "cwd", "likely"), [
    (process(*CLI), CWD, 1), (process(*CLI), "", 1), (process(*CLI, cwd=""), CWD, 1),
    (process(*CLI), "/home/dev/other", 0), (process(*CLI, "-r", SESSION), "/home/dev/other", 2),
    (process("bash"), CWD, 0),
])
def test_where_no_record_tells_the_folder_does(p, cwd, likely):
    facts = {Kind.FACT: {"cwd": Event(Kind.FACT, SESSION, 1, "cwd", cwd)}} if cwd else {}
    assert owns(p, Session("qwen", SESSION, facts)) == likely


@pytest.mark.parametrize(("shown", "says"), [
    ("◐︎ Qwen - app", "busy"), ("✳︎ Qwen - app", "permission"), ("◐ mine", "busy"),
    ("Qwen - app", UNMARKED), ("mine", UNMARKED), ("vm", UNMARKED), ("", UNMARKED),
])
def test_a_title_is_marked_while_the_prompt_is_not_free(shown, says):
    assert title(shown) == says


def test_the_histories_lie_where_the_variables_say():
    assert home({}, "/h") == "/h/.qwen"
    assert home({"QWEN_HOME": "/q"}, "/h") == "/q"
    assert home({"QWEN_HOME": "/q", "QWEN_RUNTIME_DIR": "/r"}, "/h") == "/r"
