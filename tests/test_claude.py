"""What Claude Code's records and processes mean, beyond what the sequences play."""

import json

import pytest

from island.agents.claude import (
    CLAUDE,
    is_main,
    is_tool,
    key_removed,
    live_removed,
    owns,
    read_key,
    read_live,
    read_transcript,
    role,
)
from island.model import Event, Kind, Process, Record, Role, Session, gone

STAMP, AT = "2026-11-30T09:00:00.500Z", 1_796_029_200.5
MS = int(AT * 1000)


def read(kind, **fields):
    line = {"type": kind, "sessionId": "s", "timestamp": STAMP, **fields}
    return list(read_transcript(Record("/h/.claude/projects/-app/file.jsonl", json.dumps(line).encode(), 9, mtime=7.0)))


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found if e.kind is not Kind.FACT]


def stopped(word):
    """Return what a turn that stopped short says: its end, and the same as its last word."""
    return [("end", "", word), ("answer", "", word)]


def facts(found):
    return {e.key: e.word for e in found if e.kind is Kind.FACT}


def user(content, **more):
    return read("user", message={"role": "user", "content": content}, uuid="u1", **more)


def assistant(*blocks, stop=None, **more):
    return read("assistant", message={"role": "assistant", "content": list(blocks), "stop_reason": stop, **more})


# -- the live record ---------------------------------------------------------------------------------------


def live(**fields):
    line = {"pid": 7, "sessionId": "s", "startedAt": MS - 5000, "updatedAt": MS, "statusUpdatedAt": MS - 1000, **fields}
    return list(read_live(Record("/h/.claude/sessions/7.json", json.dumps(line).encode(), mtime=7.0)))


def status(**fields):
    return [(e.kind.value, e.word) for e in live(**fields) if e.kind in (Kind.LIVE, Kind.UNKNOWN)]


@pytest.mark.parametrize(("fields", "want"), [
    ({"status": "busy"}, [("live", "busy")]), ({"status": "idle"}, [("live", "idle")]),
    ({"status": "shell"}, [("live", "shell")]), ({}, []), ({"status": None}, []), ({"status": 5}, []),
    ({"status": "waiting", "waitingFor": "permission prompt"}, [("live", "permission")]),
    ({"status": "waiting", "waitingFor": "input needed"}, [("live", "question")]),
    ({"status": "waiting", "waitingFor": "dialog open"}, []),
    ({"status": "waiting", "waitingFor": "approve Bash"}, [("live", "permission")]),
    ({"status": "waiting", "waitingFor": "brand new"}, [("live", "permission")]),
    ({"status": "waiting"}, [("live", "permission")]),
    ({"status": "brand new"}, [("unknown", "status brand new")]),
], ids=str)
def test_a_live_record_tells_whether_the_agent_is_busy_free_or_asks(fields, want):
    assert status(**fields) == want


def test_a_status_is_as_old_as_its_own_time_and_the_owner_as_the_newest_of_all():
    told = live(status="busy", procStart="12", pidDomain="linux:x")
    assert [e.at for e in told if e.kind is Kind.LIVE] == [AT - 1]
    (owner,) = [e for e in told if e.kind is Kind.OWNER]
    assert (owner.key, owner.at, owner.number, owner.text) == ("7", AT, AT - 5, "12 linux:x")


def test_without_any_time_the_files_own_counts():
    told = live(status="busy", startedAt=None, updatedAt="x", statusUpdatedAt=True)
    assert {e.at for e in told} == {7.0}


def test_a_name_counts_only_if_the_user_gave_it():
    assert "name" not in facts(live(name="app-1", nameSource="derived"))
    assert facts(live(name="mine", nameSource="user"))["name"] == "mine"


@pytest.mark.parametrize(("entrypoint", "want"), [
    ("cli", "person"), ("claude-vscode", "person"), ("claude-desktop", "person"), ("sdk-py", "machine"),
    ("sdk-cli", "machine"), ("", None), (None, None), (5, None),
])
def test_the_entrypoint_tells_whose_session_it_is(entrypoint, want):
    assert facts(live(entrypoint=entrypoint)).get("role") == want


@pytest.mark.parametrize("data", [
    b"", b"{", b"[]", b"{}", b'{"sessionId": "s"}', b'{"pid": 7}', b'{"pid": "7", "sessionId": "s"}',
    b'{"pid": 7, "sessionId": 5}', b'{"pid": true, "sessionId": "s"}', b'{"pid": -7, "sessionId": "s"}',
    b'{"pid": 0, "sessionId": "s"}',
])
def test_a_live_record_that_is_cut_or_names_no_process_is_none(data):
    with pytest.raises(ValueError):
        list(read_live(Record("/h/.claude/sessions/7.json", data)))


def test_the_removal_of_a_live_record_ends_its_session_in_order():
    told = live(status="idle")
    ends = [e for t in told for e in live_removed(t, 99.0)]
    assert ends == [gone("s", 99.0, "7", "closed", "live record removed")]


# -- the key -----------------------------------------------------------------------------------------------


def test_a_key_tells_that_a_process_starts():
    told = list(read_key(Record("/h/.claude/sessions/7.abc.key", b"", mtime=5.0)))
    assert [(e.session, e.kind.value) for e in told] == [("start:7", "owner"), ("start:7", "opened")]
    assert [e.word for e in key_removed(told[0], 6.0)] == ["closed"]
    assert list(key_removed(told[1], 6.0)) == []


def test_a_key_without_a_pid_tells_nothing():
    assert list(read_key(Record("/h/.claude/sessions/x.abc.key", b"", mtime=5.0))) == []


# -- the user's lines --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("content", "more", "want"), [
    ("Go.", {"promptId": "p1"}, [("prompt", "", "user")]),
    ([{"type": "text", "text": "Go."}], {}, [("prompt", "", "user")]),
    ([{"type": "image"}], {}, [("prompt", "", "user")]),
    (None, {}, [("prompt", "", "user")]),
    ("[Request interrupted by user]", {}, stopped("interrupted")),
    ([{"type": "text", "text": " [Request interrupted by user for tool use]"}], {}, stopped("interrupted")),
    ("<command-name>/model</command-name>", {}, []),
    ("<local-command-stdout>x</local-command-stdout>", {}, []),
    ("<bash-input>ls</bash-input>", {}, []),
    ("<bash-stdout>x</bash-stdout>", {}, []),
    ("<bash-stdout>x</bash-stdout>", {"turnOrigin": "human"}, [("prompt", "", "user")]),
    ("A summary.", {"isCompactSummary": True}, []),
    ("Shown only.", {"isVisibleInTranscriptOnly": True}, []),
    ("Caveat.", {"isMeta": True}, []),
    ("Stop hook feedback: go on", {"isMeta": True}, [("progress", "", "model")]),
    ("<task-notification><task-id>a1</task-id><status>done</status></task-notification>", {},
     [("prompt", "", "task"), ("closed", "task:a1", "shell")]),
    ("<task-notification><task-id>a1</task-id></task-notification>", {}, [("prompt", "", "task")]),
], ids=str)
def test_a_users_line_means(content, more, want):
    assert said(user(content, **more)) == want


def test_a_turn_is_named_by_its_prompt_or_else_by_its_line():
    assert [e.turn for e in user("Go.", promptId="p1") if e.kind is Kind.PROMPT] == ["p1"]
    assert [e.turn for e in user("Go.") if e.kind is Kind.PROMPT] == ["u1"]


@pytest.mark.parametrize(("more", "want"), [
    ({"promptSource": "sdk"}, "machine"), ({"turnOrigin": "sdk"}, "machine"), ({"entrypoint": "cli"}, "person"),
    ({}, None),
])
def test_a_prompt_tells_whose_session_it_is(more, want):
    assert facts(user("Go.", **more)).get("role") == want


RESULT = [{"type": "tool_result", "tool_use_id": "c1"}]
DONE = [("closed", "c1", "tool"), ("progress", "", "model")]


@pytest.mark.parametrize(("result", "more"), [
    (None, []), ("Error: x", []), ({}, []), ({"taskId": "m1"}, []),
    ({"backgroundTaskId": "b1"}, [("opened", "task:b1", "shell")]),
    ({"taskId": "m1", "timeoutMs": 5}, [("opened", "task:m1", "shell")]),
    ({"isAsync": True, "agentId": "a1"}, [("opened", "task:a1", "child")]),
    ({"isAsync": True, "agentId": None}, []), ({"agentId": "a1"}, []),
], ids=str)
def test_a_tools_result_ends_its_call_and_may_leave_something_running(result, more):
    assert said(user(RESULT, toolUseResult=result)) == DONE + more


def test_a_line_without_a_message_is_still_a_prompt():
    assert said(read("user", message="odd", uuid="u1")) == [("prompt", "", "user")]


# -- the agent's lines -------------------------------------------------------------------------------------

TEXT = {"type": "text", "text": "Done."}


def use(name, ident="c1", **arguments):
    return {"type": "tool_use", "id": ident, "name": name, "input": arguments}


@pytest.mark.parametrize(("found", "want"), [
    (assistant(TEXT, stop="end_turn"), [("answer", "", "finished")]),
    (assistant({"type": "text", "text": "Shall I?"}, stop="stop_sequence"), [("answer", "", "question")]),
    (assistant(TEXT, stop="tool_use"), [("progress", "", "model")]),
    (assistant(TEXT), [("progress", "", "model")]),
    (assistant(stop="end_turn"), [("progress", "", "model")]),
    (assistant({"type": "thinking"}, stop="end_turn"), [("progress", "", "model")]),
    (assistant(TEXT, use("Read"), stop="end_turn"), [("opened", "c1", "tool"), ("progress", "", "tool")]),
    (assistant(use("Bash")), [("opened", "c1", "shell-tool"), ("progress", "", "tool")]),
    (assistant(use("Edit")), [("opened", "c1", "instant-tool"), ("progress", "", "tool")]),
    (assistant(use("AskUserQuestion")), [("opened", "c1", "question"), ("progress", "", "tool")]),
    (assistant(use("ExitPlanMode")), [("opened", "c1", "plan"), ("progress", "", "tool")]),
    (assistant(use("KillShell", shell_id="b1")),
     [("opened", "c1", "tool"), ("closed", "task:b1", "shell"), ("progress", "", "tool")]),
    (assistant(use("TaskStop", task_id="b1")),
     [("opened", "c1", "tool"), ("closed", "task:b1", "shell"), ("progress", "", "tool")]),
    (assistant({**use("TaskStop"), "input": None}), [("opened", "c1", "tool"), ("progress", "", "tool")]),
    (assistant(TEXT, stop="end_turn", model="<synthetic>"), []),
    (read("assistant", message={"content": [TEXT]}, isAbortedMidStream=True), []),
    (read("assistant", message={"content": "Done."}), []),
    (read("assistant"), []),
    (read("assistant", isApiErrorMessage=True, error="rate_limit"), stopped("limit")),
    (read("assistant", isApiErrorMessage=True, error="authentication_failed"), stopped("login")),
    (read("assistant", isApiErrorMessage=True, error="invalid_request"), stopped("error")),
    (read("assistant", isApiErrorMessage=True, error=["odd"]), stopped("error")),
], ids=lambda v: " ".join(":".join(w) for w in v) if v and isinstance(v[0], tuple) else None)
def test_an_agents_line_means(found, want):
    assert said(found) == want


def test_an_answer_tells_the_model_and_what_fills_its_window():
    usage = {"input_tokens": 2, "cache_read_input_tokens": 30, "cache_creation_input_tokens": None, "output_tokens": 9}
    assert facts(assistant(TEXT, model="m", usage=usage)) == {"model": "m", "tokens": "32"}
    assert facts(assistant(TEXT, model=5, usage=[])) == {}


@pytest.mark.parametrize(("fields", "want"), [
    ({"subtype": "turn_duration"}, [("end", "", "", -1)]),
    ({"subtype": "turn_duration", "pendingWorkflowCount": 0}, [("end", "", "", 0)]),
    ({"subtype": "turn_duration", "pendingBackgroundAgentCount": 2, "pendingWorkflowCount": 1}, [("end", "", "", 3)]),
    ({"subtype": "turn_duration", "pendingBackgroundAgentCount": True}, [("end", "", "", 0)]),
    ({"subtype": "compact_boundary", "compactMetadata": {"trigger": "manual"}}, [("end", "", "finished", -1)]),
    ({"subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}}, [("progress", "", "model", -1)]),
    ({"subtype": "compact_boundary"}, [("progress", "", "model", -1)]),
    ({"subtype": "api_error"}, [("progress", "", "retrying", -1)]),
    ({"subtype": "model_refusal_no_fallback"}, [("end", "", "error", -1), ("answer", "", "error", -1)]),
    ({"subtype": "away_summary"}, []),
    ({"subtype": "brand new"}, [("unknown", "", "system brand new", -1)]),
    ({}, [("unknown", "", "system", -1)]),
], ids=str)
def test_a_systems_line_means(fields, want):
    assert [(e.kind.value, e.key, e.word, e.number) for e in read("system", uuid="u1", **fields)] == want


# -- other lines -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "fields", "want"), [
    ("ai-title", {"aiTitle": "A"}, [("fact", "title", "A")]),
    ("summary", {"summary": "B"}, [("fact", "title", "B")]),
    ("custom-title", {"customTitle": "C"}, [("fact", "name", "C")]),
    ("api-request", {"querySource": "repl_main_thread"}, [("progress", "", "model")]),
    ("api-request", {"querySource": "title"}, []),
    ("last-prompt", {}, []),
    ("brand-new", {}, [("unknown", "", "brand-new")]),
    (None, {}, [("unknown", "", "")]),
])
def test_a_side_line_means(kind, fields, want):
    assert [(e.kind.value, e.key, e.word) for e in read(kind, **fields)] == want


def test_a_line_without_a_session_belongs_to_that_of_its_file():
    assert {e.session for e in read("user", sessionId=None, message={"content": "Go."})} == {"file"}


def test_a_subagents_line_says_nothing():
    assert read("assistant", isSidechain=True, message={"content": [TEXT], "stop_reason": "end_turn"}) == []


@pytest.mark.parametrize("stamp", [None, "soon", 5])
def test_a_line_of_a_turn_without_time_is_not_of_this_format(stamp):
    with pytest.raises(ValueError):
        user("Go.", timestamp=stamp)


# -- processes ---------------------------------------------------------------------------------------------


def process(name, *cmdline, cwd=""):
    return Process(5, 1, name, cmdline, cwd, 1.0)


@pytest.mark.parametrize(("p", "main"), [
    (process("claude", "claude"), True), (process("claude"), True),
    (process("node", "node", "/usr/bin/claude"), True), (process("node", "node", "/usr/bin/other"), False),
    (process("bash", "bash", "claude"), False), (process("claude", "claude", "daemon"), False),
    (process("claude", "claude", "mcp", "serve"), False), (process("claude", "claude", "--resume"), True),
    (process("node", "node", "/usr/bin/claude", "update"), False),
    (process("node", r"C:\node\node.exe", r"C:\npm\node_modules\@anthropic-ai\claude-code\cli.js"), True),
    (process("node", r"C:\node\node.exe", r"C:\app\cli.js"), False),
])
def test_the_agent_is_known_by_the_name_of_its_program(p, main):
    assert is_main(p) is main
    assert not CLAUDE.window(p)
    assert CLAUDE.resumes(p, []) == ""


@pytest.mark.parametrize(("p", "tool"), [
    (process("bash", "bash", "-c", "source /h/.claude/shell-snapshots/x.sh"), True),
    (process("zsh", "zsh", "-c", "eval 'make'"), True),
    (process("bash", "bash", "-c", "my-hook"), False),
    (process("python3", "python3", "shell-snapshots"), False),
])
def test_a_tools_shell_is_known_by_what_it_sources(p, tool):
    assert is_tool(p) is tool


def test_a_session_without_a_live_record_is_bound_by_its_folder():
    def owned(held, cwd):
        facts_ = {Kind.FACT: {"cwd": Event(Kind.FACT, "s", 1.0, "cwd", held)}} if held else {}
        return owns(process("claude", "claude", cwd=cwd), Session("claude", "s", facts_))

    assert owned("/a", "/a")
    assert owned("", "/a")
    assert owned("/a", "")
    assert not owned("/a", "/b")
    assert not owns(process("bash"), Session("claude", "s"))


def test_a_headless_run_is_known_by_its_command_line():
    assert role(process("claude", "claude", "-p", "go")) is Role.MACHINE
    assert role(process("claude", "claude", "--print")) is Role.MACHINE
    assert role(process("claude", "claude")) is None


def test_its_home_is_moved_by_the_environment():
    assert CLAUDE.home({}, "/home/dev") == "/home/dev/.claude"
    assert CLAUDE.home({"CLAUDE_CONFIG_DIR": "/x"}, "/home/dev") == "/x"
