"""What Copilot's records and processes mean, beyond what the sequences play."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.agents.copilot import (
    COPILOT,
    is_main,
    is_tool,
    lock_removed,
    owns,
    read_lock,
    read_log,
    read_open,
    read_workspace,
    role,
)
from island.model import ANY, KEYLESS, Event, Kind, Process, Record, Role, Session
from island.sources.sweep import matcher

ID = "5f2c8a10-0000-4000-8000-000000000001"
AGENT = "5f2c8a10-0000-4000-8000-0000000000a1"
LOG = f"/h/.copilot/session-state/{ID}/events.jsonl"
STAMP = "2026-11-30T09:00:00.500Z"
AT = 1_796_029_200.5


def read(kind, agent=None, **data):
    line = {"type": kind, "timestamp": STAMP, "data": data} | ({"agentId": agent} if agent else {})
    return list(read_log(Record(LOG, json.dumps(line).encode(), 10, mtime=7.0)))


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


def facts(found):
    return {e.key: e.word for e in found if e.kind is Kind.FACT}


def message(*calls, **more):
    return read("assistant.message", messageId="m1", interactionId="i1", toolRequests=list(calls), **more)


# -- the log -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("more", "word"), [
    ({"delivery": "idle"}, "user"), ({"delivery": "queued"}, "user"), ({"source": "autopilot"}, "agent"), ({}, "user"),
])
def test_a_prompt_begins_a_turn_under_its_interaction(more, word):
    begun = Event(Kind.PROMPT, ID, AT, "", word, "i1", order=10, source="user.message")
    assert read("user.message", interactionId="i1", turnId="0", **more) == [begun]


def test_a_messages_session_is_its_folder_and_a_line_that_is_no_record_is_refused():
    for bad in (b"{", b"[]", b'{"type": "abort"}', b'{"type": "abort", "timestamp": "soon"}'):
        with pytest.raises(ValueError):
            list(read_log(Record(LOG, bad)))


@pytest.mark.parametrize(("kind", "data", "want"), [
    ("assistant.turn_start", {"interactionId": "i1"}, [("progress", "", "model")]),
    ("assistant.turn_end", {"turnId": "0"}, []),
    ("tool.execution_start", {"toolCallId": "c1", "toolName": "bash"}, [("progress", "", "tool")]),
    ("tool.execution_complete", {"toolCallId": "c1", "interactionId": "i1"},
     [("closed", "c1", "tool"), ("progress", "", "model")]),
    ("tool.execution_complete", {"toolCallId": "c1"}, [("closed", "c1", "tool")]),
    ("tool.user_requested", {"toolName": "local_shell"}, []),
    ("permission.requested", {"requestId": "r1"}, [("opened", "r1", "permission")]),
    ("permission.completed", {"requestId": "r1"}, [("closed", "r1", "permission")]),
    ("abort", {"reason": "user_initiated"}, [("end", "", "interrupted")]),
    ("session.resume", {}, [("end", "", "interrupted")]),
    ("session.error", {"errorType": "authentication"}, [("answer", "", "login")]),
    ("session.error", {"errorType": "rate_limit"}, [("answer", "", "limit")]),
    ("session.error", {"errorType": "quota"}, [("answer", "", "limit")]),
    ("session.error", {"errorType": "query"}, [("answer", "", "error")]),
    ("session.error", {}, [("answer", "", "error")]),
    ("session.task_complete", {"success": True}, [("answer", "", "finished")]),
    ("session.compaction_start", {"trigger": "manual"}, [("progress", "", "compacting")]),
    ("session.compaction_start", {"trigger": "threshold"}, []),
    ("session.compaction_complete", {"trigger": "manual", "success": True}, [("end", "", "finished")]),
    ("session.compaction_complete", {"trigger": "manual", "success": False}, [("end", "", "interrupted")]),
    ("session.compaction_complete", {"trigger": "threshold", "success": True}, []),
    ("hook.start", {"hookType": "userPromptSubmitted", "input": {"sessionId": ID}}, [("progress", "", "model")]),
    ("hook.start", {"hookType": "userPromptSubmitted", "input": {"sessionId": AGENT, "agentId": AGENT}}, []),
    ("hook.start", {"hookType": "userPromptSubmitted", "input": 5}, []),
    ("hook.start", {"hookType": "sessionStart", "input": {"sessionId": ID, "initialPrompt": "go"}},
     [("progress", "", "model")]),
    ("hook.start", {"hookType": "sessionStart", "input": {"sessionId": ID}}, []),
    ("hook.start", {"hookType": "agentStop", "input": {"sessionId": ID}}, []),
    ("model.turn_ended", {}, []),
    ("session.weather", {}, [("unknown", "", "session.weather")]),
    ("", {}, [("unknown", "", "")]),
])
def test_a_record_of_the_main_thread_means(kind, data, want):
    assert said(read(kind, **data)) == want


@pytest.mark.parametrize(("content", "word"), [
    ("Done.", "finished"), ("Shall I?", "question"), ("**Shall I?** ", "question"), ("", "finished"), (5, "finished"),
])
def test_a_message_without_calls_looks_final_under_its_own_key(content, word):
    (answer,) = message(content=content)
    assert (answer.kind, answer.word, answer.turn) == (Kind.ANSWER, word, "m1")


@pytest.mark.parametrize(("name", "word"), [
    ("bash", "tool"), ("ask_user", "question"), ("exit_plan_mode", "plan"), (5, "tool"), (None, "tool"),
])
def test_a_call_is_open_from_its_message_on(name, word):
    call = {"toolCallId": "c1", "name": name, "arguments": {"command": "ls -la"}}
    opened, progress = message(call, content="I look?")
    assert (opened.kind, opened.key, opened.word, opened.text) == (Kind.OPENED, "c1", word, "ls -la")
    assert progress.kind is Kind.PROGRESS


def test_calls_of_odd_forms_do_no_harm():
    assert said(message(5, {"arguments": "x"})) == [("opened", "", "tool"), ("progress", "", "tool")]
    assert said(read("assistant.message", messageId="m1", toolRequests=1)) == [("answer", "", "finished")]


@pytest.mark.parametrize(("state", "ends"), [
    ([{"lastActiveModel": None, "pendingRewriteSources": ["rewind"]}], True),
    ([{"lastActiveModel": "gpt-5.2", "pendingRewriteSources": ["rewind"]}], False),
    ([{"lastActiveModel": None, "pendingRewriteSources": []}], False),
    ([{"pendingRewriteSources": ["rewind"]}], False), ([5], False), ({}, False), (None, False),
])
def test_only_a_history_rewritten_before_any_model_was_active_is_a_turn_taken_back(state, ends):
    found = read("session.usage_checkpoint", promptCacheBreakState=state)
    assert said(found) == ([("end", "", "interrupted")] if ends else [])


def test_what_a_session_is_stands_where_it_starts_goes_on_and_changes():
    start = read("session.start", copilotVersion="1.0.102", selectedModel="gpt-5.2", context={"cwd": "/home/dev/app"})
    assert facts(start) == {"cwd": "/home/dev/app", "model": "gpt-5.2", "version": "1.0.102"}
    assert facts(read("session.resume", context={"cwd": "/b"})) == {"cwd": "/b"}
    assert facts(read("session.context_changed", cwd="/b")) == {"cwd": "/b"}
    assert facts(read("session.start", context=5, selectedModel=5)) == {}
    assert facts(read("session.model_change", newModel="o9")) == {"model": "o9"}
    assert facts(read("session.usage_record", usage={"inputTokens": 12})) == {"tokens": "12"}
    assert facts(read("session.shutdown", currentTokens=14)) == {"tokens": "14"}
    assert facts(read("session.usage_record", usage={"inputTokens": True})) == {}
    assert facts(read("session.start", detachedFromSpawningParentSessionId="p")) == {"parent": "p", "role": "child"}


def shell_said(content, **told):
    found = read("tool.execution_complete", toolCallId="c", result={"content": content},
                 toolTelemetry={"properties": told})
    return [s for s in said(found) if s[2] == "shell"]


@pytest.mark.parametrize(("content", "mode", "want"), [
    ("<command started in background with shellId: 0>", "async", "opened"),
    ("<command started in detached background with shellId: 0. You will be notified when it completes.>", "async",
     "opened"),
    ("out\n<command with shellId: 0 is still running after 5 seconds. Use read_bash to wait.>", "sync", "opened"),
    ("<command with shellId: 0 is running in the background after the user moved it off the main turn.>", "sync",
     "opened"),
    ("<command with shellId: 0 is already running, wait for output with read_bash>", "async", "opened"),
    ("out\n<shellId: 0 completed with exit code 0>", "", "closed"),
    ("out\n<command with id: 0 exited with exit code 0>", "", "closed"),
    ("<command with id: 0 stopped>", "", "closed"),
    ("<command with id: 0 had already stopped>", "", "closed"),
    ("<unable to send input. no command with id: 0 is currently running>", "", "closed"),
    ("out\n<shellId: 0 completed with exit code 0>", "sync", ""),
    ("<command started in background with shellId: 0>\nquoted", "", ""),
    ("<exited with exit code 0>", "sync", ""),
    (5, "async", ""),
])
def test_a_shells_last_words_tell_whether_it_goes_on(content, mode, want):
    assert shell_said(content, executionMode=mode) == ([(want, "shell:0", "shell")] if want else [])


def notified(about):
    line = {"type": "system.notification", "timestamp": STAMP, "data": {"kind": about}}
    return list(read_log(Record(LOG, json.dumps(line).encode(), 10, 7.0)))


@pytest.mark.parametrize(("about", "want"), [
    ({"type": "shell_completed", "shellId": "0"}, [("closed", "shell:0", "shell")]),
    ({"type": "shell_detached_completed", "shellId": "0"}, [("closed", "shell:0", "shell")]),
    ({"type": "agent_idle", "agentId": "a"}, []), ({}, []), (5, []), ({"type": 5}, []),
])
def test_a_notification_tells_that_a_shell_has_ended(about, want):
    assert said(notified(about)) == want


@pytest.mark.parametrize(("kind", "data", "want"), [
    ("user.message", {"interactionId": "i2", "source": f"agent-{ID}"}, []),
    ("assistant.turn_start", {}, []),
    ("assistant.message", {"toolRequests": [], "content": "a is fine"}, []),
    ("tool.execution_complete", {"toolCallId": "c3", "interactionId": "i2"}, []),
    ("session.error", {"errorType": "quota"}, []),
    ("session.model_change", {"newModel": "small"}, []),
    ("abort", {}, []),
    ("subagent.started", {"executionMode": "background", "toolCallId": "c"}, [("opened", "task:c", "child")]),
    ("subagent.started", {"executionMode": "sync"}, []),
    ("subagent.completed", {"toolCallId": "c"}, [("closed", "task:c", "child")]),
    ("subagent.failed", {"toolCallId": "c"}, [("closed", "task:c", "child")]),
    ("permission.requested", {"requestId": "r1"}, [("opened", "r1", "child-permission")]),
    ("permission.completed", {"requestId": "r1"}, [("closed", "r1", "child-permission")]),
])
def test_a_subagents_record_says_nothing_of_the_main_turn(kind, data, want):
    assert said(read(kind, AGENT, **data)) == want


values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just([{}]) | st.just({"a": 1})
names = st.sampled_from([
    "interactionId", "toolRequests", "context", "usage", "input", "trigger", "errorType", "agentId", "hookType",
    "content", "promptCacheBreakState", "executionMode", "requestId", "selectedModel",
])
kinds = st.sampled_from([
    "user.message", "assistant.message", "session.start", "session.error", "session.usage_record", "hook.start",
    "abort", "session.usage_checkpoint", "permission.requested", "tool.execution_complete", "subagent.started",
    "session.shutdown",
])


@given(kinds | values, st.dictionaries(names, values) | values, values)
def test_no_record_of_an_odd_form_breaks_the_reader(kind, data, agent):
    line = {"type": kind, "timestamp": STAMP, "data": data, "agentId": agent}
    for e in read_log(Record(LOG, json.dumps(line).encode(), 10, 7.0)):
        assert isinstance(e.word, str)


# -- side files --------------------------------------------------------------------------------------------------


def table(**entries):
    return list(read_open(Record("/h/.copilot/open-sessions-state.json", json.dumps(entries).encode(), 0, 7.0)))


def test_the_table_tells_which_sessions_work_at_its_own_times():
    told = table(s1={"working": True, "refreshedAt": STAMP}, s2={"working": False, "refreshedAt": STAMP}, s3=5)
    working, busy, idle, free = told
    assert (working.kind, working.session, working.key, working.at) == (Kind.OPENED, "s1", "working", AT)
    assert (busy.kind, busy.word) == (Kind.LIVE, "")  # it may ask
    assert (idle.kind, idle.session, idle.word) == (Kind.CLOSED, "s2", "process")
    assert (free.kind, free.session, free.word, free.text, free.at) == (Kind.LIVE, "s2", "idle", ANY, AT)
    assert table() == []
    with pytest.raises(ValueError):
        table(s1={"working": True})


def workspace(**pairs):
    text = "".join(f"{key}: {value}\n" for key, value in pairs.items())
    found = list(read_workspace(Record(f"/h/.copilot/session-state/{ID}/workspace.yaml", text.encode(), 0, 7.0)))
    return [(e.kind, e.key, e.word, e.at) for e in found]


def test_a_name_that_no_user_gave_is_that_of_the_first_prompt():
    facts = [(Kind.FACT, "cwd", "/w", AT), (Kind.FACT, "title", "Do: this", AT)]
    prompt = (Kind.PROMPT, KEYLESS, "user", AT)
    told = {"cwd": "/w", "updated_at": STAMP}
    assert workspace(**told, name="'Do: this'", user_named="false") == [*facts, prompt]
    assert workspace(**told, name="Mine", user_named="true") == [facts[0], (Kind.FACT, "name", "Mine", AT)]
    assert workspace(**told, user_named="false") == facts[:1]
    assert workspace(**told, summary="'Do: this'") == facts  # older: a model made it, later


def test_a_lock_names_the_process_of_its_session_and_its_removal_is_an_orderly_end():
    (owner,) = read_lock(Record(f"/h/.copilot/session-state/{ID}/inuse.4711.lock", b"", 0, 7.0))
    assert (owner.kind, owner.session, owner.key, owner.number) == (Kind.OWNER, ID, "4711", 7.0)
    (ended,) = lock_removed(owner, 9.0)
    assert (ended.kind, ended.session, ended.key, ended.at) == (Kind.GONE, ID, "4711/closed", 9.0)
    assert list(read_lock(Record(f"/h/.copilot/session-state/{ID}/inuse.x.lock", b""))) == []


def test_other_locks_of_the_program_are_not_looked_at():
    wanted = matcher([f"/h/.copilot/{s.pattern}" for s in COPILOT.sources])
    assert wanted(f"/h/.copilot/session-state/{ID}/inuse.4711.lock")
    for other in (f"session-state/{ID}/.workspace-fork.lock", f"session-state/{ID}/inuse.4711.hold",
                  f"session-state/.session-operation-locks/{ID}.lock", "settings.json.lock"):
        assert not wanted(f"/h/.copilot/{other}")


def test_its_home_is_moved_by_its_variable():
    assert COPILOT.home({}, "/h") == "/h/.copilot"
    assert COPILOT.home({"COPILOT_HOME": "/x"}, "/h") == "/x"


# -- processes ---------------------------------------------------------------------------------------------------

NATIVE = "/usr/lib/node_modules/@github/copilot-linux-x64/copilot"


def process(*cmdline, name="MainThread", cwd="/home/dev/app"):
    return Process(7, 1, name, cmdline, cwd)


@pytest.mark.parametrize(("cmdline", "main", "whose"), [
    ((NATIVE,), True, Role.PERSON),
    ((NATIVE, "--resume=x"), True, Role.PERSON),
    ((NATIVE, "-p", "do it"), True, Role.MACHINE),
    ((NATIVE, "--allow-all-tools", "--prompt=do it"), True, Role.MACHINE),
    ((NATIVE, "--server"), True, Role.MACHINE),
    (("copilot.exe",), True, Role.PERSON),
    ((NATIVE, "--version"), False, None),
    ((NATIVE, "login"), False, None),
    (("timeout", "20", NATIVE), False, None),
    ((), False, None),
])
def test_a_process_is_known_by_its_program_and_a_headless_run_by_its_arguments(cmdline, main, whose):
    assert (is_main(process(*cmdline)), role(process(*cmdline))) == (main, whose)


def test_without_a_lock_a_process_may_run_the_sessions_of_its_folder():
    def session(cwd):
        return Session("copilot", ID, {Kind.FACT: {"cwd": Event(Kind.FACT, ID, 0, "cwd", cwd)}} if cwd else {})

    assert [owns(process(NATIVE), session(cwd)) for cwd in ("/home/dev/app", "/home/dev/b", "")] == [1, 0, 1]
    assert owns(process("vim"), session("/home/dev/app")) == 0
    assert owns(process(NATIVE, cwd=""), session("/home/dev/app")) == 1
    assert not COPILOT.window(process(NATIVE))


def test_a_command_of_a_tool_is_a_shell_that_reads_no_settings():
    assert is_tool(process("/bin/bash", "--norc", "--noprofile", "-c", "ls", name="bash"))
    assert not is_tool(process("bash", "-c", "hook", name="bash"))
    assert not is_tool(process("python3", "-c", "--norc", name="python3"))
