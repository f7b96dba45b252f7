"""What Droid's records and processes mean, beyond what the sequences play."""

import json

import pytest

from island.agents import droid as module
from island.agents.droid import home, is_main, is_tool, owns, read_background, read_history, read_settings, resumes
from island.model import Event, Kind, Process, Record, Role, Session

FOLDER = "/h/.factory/sessions/-home-dev-app"
STAMP, AT = "2026-11-30T09:00:00.500Z", 1_796_029_200.5
BIN = "/usr/lib/node_modules/@factory/cli-linux-x64/bin/droid"


def read(line, reader=read_history, name="s1.jsonl"):
    return list(reader(Record(f"{FOLDER}/{name}", json.dumps(line).encode(), 10, mtime=7.0)))


def message(role, content, ident="m1", **more):
    return read({"type": "message", "id": ident, "timestamp": STAMP,
                 "message": {"role": role, "content": content, **more}})


def text(words):
    return [{"type": "text", "text": words}]


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


def facts(found):
    return {e.key: e.word for e in found if e.kind is Kind.FACT}


# -- who a session is --------------------------------------------------------------------------------------


def start(**more):
    return facts(read({"type": "session_start", "id": "s1", "title": "New Session", "cwd": "/home/dev/app", **more}))


def test_the_first_line_tells_folder_and_title():
    assert start() == {"cwd": "/home/dev/app", "title": "New Session"}


def test_only_a_title_that_the_user_gave_is_a_name():
    assert start(isSessionTitleManuallySet=True)["name"] == "New Session"
    assert "name" not in start(isSessionTitleManuallySet=False)


def test_a_subagent_tells_who_called_it_and_a_fork_does_not_work_for_its_origin():
    assert start(callingSessionId="s0")["parent"] == "s0"
    assert start(callingSessionId="s0")["role"] == Role.CHILD
    assert start(decompSessionType="worker")["role"] == Role.CHILD
    assert not {"parent", "role"} & start(parent="s0").keys()


def test_the_first_line_has_no_time_so_it_binds_no_process():
    assert {e.at for e in read({"type": "session_start", "cwd": "/home/dev/app"})} == {0}


def test_settings_tell_a_headless_run_and_what_was_used():
    used = {"inputTokens": 3, "outputTokens": 4, "cacheCreationTokens": 5, "cacheReadTokens": 6, "factoryCredits": 9}
    told = read({"tags": [{"name": "exec"}], "model": "m", "tokenUsage": used, "archivedAt": 5},
                read_settings, "s1.settings.json")
    assert facts(told) == {"role": Role.MACHINE, "model": "m", "tokens": "18", "archived": "yes"}
    assert {(e.session, e.at) for e in told} == {("s1", 7.0)}


@pytest.mark.parametrize("o", [{}, {"tags": "exec"}, {"tags": [1, {}]}, {"tokenUsage": []}, {"model": 5},
                               {"tokenUsage": {"inputTokens": "x", "outputTokens": None}}])
def test_settings_may_hold_anything(o):
    assert read(o, read_settings, "s1.settings.json") == []


# -- turns -------------------------------------------------------------------------------------------------


def test_a_prompt_is_keyed_by_its_own_id():
    (e,) = message("user", text("do it"), interactionMode="auto")
    assert (e.kind, e.word, e.turn, e.at, e.order) == (Kind.PROMPT, "user", "m1", AT, 10)


@pytest.mark.parametrize("more", [
    {"ident": "context-m1"}, {"visibility": "llm_only"}, {"visibility": "user_only"}, {"hookEventName": "Stop"},
])
def test_not_all_that_the_user_is_said_to_say_is_a_prompt(more):
    assert message("user", text("Keep it short."), **more) == []


@pytest.mark.parametrize(("words", "visibility", "want"), [
    ("BYOK Error: 401 no", "user_only", [("answer", "", "error")]),
    ("BYOK Error: 401 no", "llm_only", []),
    ("Credit limit reached. Use /limits", "user_only", [("answer", "", "limit")]),
    ("Error: Request was aborted.", "user_only", [("answer", "", "interrupted")]),
    ("Request cancelled by user", "both", [("answer", "", "interrupted")]),
    ("Your previous response ended before completion. Continue where you left off.", "llm_only",
     [("progress", "", "model")]),
    ("Continue.", "llm_only", [("progress", "", "model")]),
    ("Continue.", "user_only", []),
    ("Switched to another model.", "user_only", []),
])
def test_what_is_said_aside_tells_how_a_turn_failed_or_was_sent_on(words, visibility, want):
    assert said(message("user", text(words), visibility=visibility)) == want


@pytest.mark.parametrize("words", ["Request cancelled by user", "Request interrupted by user"])
def test_the_marks_of_an_interrupt(words):
    assert said(message("user", text(words), visibility="llm_only")) == [("answer", "", "interrupted")]


def test_a_text_hands_back_and_a_call_does_not():
    assert said(message("assistant", text("Done."))) == [("answer", "", "finished")]
    assert said(message("assistant", text("Shall I?"))) == [("answer", "", "question")]
    assert said(message("assistant", [])) == [("progress", "", "model")]
    assert facts(message("assistant", text("Done."), modelId="m")) == {"model": "m"}


def calls(*names):
    blocks = [{"type": "tool_use", "id": f"c{n}", "name": name, "input": {}} for n, name in enumerate(names)]
    return [e.word for e in message("assistant", [*text("I go on."), *blocks]) if e.kind is Kind.OPENED]


@pytest.mark.parametrize(("names", "spans"), [
    (["Execute"], ["shell-tool"]),
    (["Edit"], ["instant-tool"]),
    (["Create", "Read"], ["instant-tool", "tool"]),
    (["Edit", "Execute"], ["tool", "shell-tool"]),
    (["Execute", "Task"], ["tool", "tool"]),
    (["Edit", "mcp___x"], ["tool", "tool"]),
    (["AskUser"], ["question"]),
    (["ExitSpecMode", "Read"], ["plan", "tool"]),
    (["Task", "Task"], ["tool", "tool"]),
    ([5], ["tool"]),
])
def test_what_an_open_call_means_depends_on_what_may_run_beside_it(names, spans):
    assert calls(*names) == spans


def results(*contents, error=True):
    return said(message("user", [{"type": "tool_result", "tool_use_id": f"c{n}", "is_error": error, "content": c}
                                 for n, c in enumerate(contents)]))


def test_a_result_closes_its_call_and_the_model_goes_on():
    assert results("no such file", "x") == [
        ("closed", "c0", "tool"), ("closed", "c1", "tool"), ("progress", "", "model")]


def test_a_refused_call_hands_back_as_interrupted():
    assert results("x", "Tool execution cancelled by user")[-1] == ("answer", "", "interrupted")
    assert results("Error: Tool execution cancelled by user")[-1] == ("answer", "", "interrupted")
    assert results("Tool execution cancelled by user", error=False)[-1] == ("progress", "", "model")


def ended(reason, kind="text"):
    return read({"type": "agent_turn_outcome", "turnId": "t1", "reason": reason, "resultKind": kind})


@pytest.mark.parametrize(("reason", "word"), [
    ("cancelled", "interrupted"), ("permission_rejected", "interrupted"), ("process_exit", "interrupted"),
    ("spec_handoff", "interrupted"), ("model_rate_limited", "limit"), ("model_usage_exhausted", "limit"),
    ("model_authentication_failed", "login"), ("error", "error"), ("model_provider_unavailable", "error"),
    ("no_approver_available", "error"),
])
def test_why_a_turn_ended(reason, word):
    (e,) = ended(reason, None)
    assert (e.kind, e.key, e.word, e.turn, e.at) == (Kind.END, "t1", word, "t1", 0)


def test_a_turn_that_is_completed_is_over_whatever_it_gave():
    assert said(ended("completed")) == said(ended("completed", "structured")) == [("end", "t1", "")]


def test_what_is_not_known_is_said():
    assert said(ended("model_on_holiday")) == [("unknown", "", "outcome model_on_holiday"), ("end", "t1", "error")]
    assert said(read({"type": "new"})) == [("unknown", "", "new")]
    assert said(read({"type": "message"})) == [("unknown", "", "message")]
    assert read({"type": "todo_state"}) == read({"type": "compaction_state"}) == []


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"type": "message", "message": {}}',
                                  b'{"type": "message", "message": {}, "timestamp": "noon"}'])
def test_what_is_not_its_format_is_a_value_error(data):
    with pytest.raises(ValueError):
        list(read_history(Record(f"{FOLDER}/s1.jsonl", data)))


# -- background --------------------------------------------------------------------------------------------


def background(**entry):
    entry = {"pid": 7, "sessionId": "s1", "startTime": 1_796_029_200_500, **entry}
    return read({"processes": [entry]}, read_background, "background-processes.json")


def test_a_command_left_to_run_is_known_by_its_process():
    (e,) = background()
    assert (e.kind, e.session, e.at, e.word, e.text) == (Kind.OPENED, "s1", AT, "process", "7")
    assert background(startTime=STAMP)[0].at == AT
    assert background(startTime=None)[0].at == 7.0


@pytest.mark.parametrize("entry", [{"pid": 0}, {"pid": True}, {"pid": "7"}, {"sessionId": ""}, {"sessionId": None}])
def test_an_entry_without_process_or_session_says_nothing(entry):
    assert background(**entry) == []


@pytest.mark.parametrize("o", [{}, {"processes": 5}, {"processes": [5, None]}])
def test_a_list_of_commands_may_hold_anything(o):
    assert read(o, read_background, "background-processes.json") == []


# -- processes ---------------------------------------------------------------------------------------------


def droid(*arguments, cwd="/home/dev/app", name="droid"):
    return Process(5, 1, name, (BIN, *arguments), cwd)


def session(ident="s1", **told):
    told = {"cwd": "/home/dev/app", **told}
    return Session("droid", ident, {Kind.FACT: {k: Event(Kind.FACT, ident, 0, k, v) for k, v in told.items()}})


def test_the_program_is_known_by_its_name_and_its_services_are_not_it():
    assert is_main(droid())
    assert is_main(droid("exec", "x"))
    assert not is_main(droid("exec", "x", "--depth", "1"))
    assert is_main(Process(5, 1, "droid.exe", ("C:\\x\\droid.exe",)))
    assert not is_main(droid("daemon"))
    assert not is_main(Process(5, 1, "bash", ("/bin/bash", "droid")))
    assert not is_main(Process(5, 1, "droid"))


def test_a_headless_run_is_a_machines_and_a_client_over_a_pipe_has_a_person_before_it():
    assert module.role(droid("exec", "x")) is Role.MACHINE
    assert module.role(droid("exec", "--input-format", "stream-jsonrpc")) is None
    assert module.role(droid()) is None
    assert module.role(droid("fix", "exec")) is None


def test_a_process_runs_the_session_it_was_started_with_or_one_of_its_folder():
    assert owns(droid(), session()) == 1
    assert owns(droid(cwd="/elsewhere"), session()) == 0
    assert owns(droid("--cwd", "/home/dev/app", cwd="/"), session()) == 1
    assert owns(droid("--resume", "s1", cwd="/elsewhere"), session()) == 2
    assert owns(droid("--fork", "s1", cwd="/elsewhere"), session()) == 0
    assert owns(droid("exec", "-s", "s1"), session(role="machine")) == 2
    assert owns(droid(), session(role="machine")) == 0
    assert owns(droid(), session(role="child")) == 0
    assert owns(Process(5, 1, "bash", ("bash",)), session()) == 0


def test_a_process_tells_which_session_it_goes_on_with():
    assert resumes(droid("exec", "-s", "s1"), []) == "s1"
    assert resumes(droid("--resume"), []) == ""
    assert resumes(droid(), []) == ""


def test_shells_are_tools_and_hooks_are_not():
    assert is_tool(Process(6, 5, "bash", ("/bin/bash", "-c", "x", "factory-execute-supervisor", "5")))
    assert not is_tool(Process(6, 5, "sh", ("sh", "-c", "hook")))


def test_the_variable_moves_the_home_that_the_folder_lies_in():
    assert home({}, "/home/dev") == "/home/dev/.factory"
    assert home({"FACTORY_HOME_OVERRIDE": "/x"}, "/home/dev") == "/x/.factory"
    assert module.DROID.home({}, "/home/dev") == "/home/dev/.factory"
