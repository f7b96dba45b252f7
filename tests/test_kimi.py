"""What Kimi's records and processes mean, beyond what the sequences play."""

import json
from hashlib import md5, sha256

import pytest

from island.agents.kimi import (
    KIMI,
    home,
    owns,
    product,
    read_cli_task,
    read_cli_wire,
    read_index,
    read_state,
    read_wire,
    role,
)
from island.model import Event, Kind, Process, Record, Role, Session

SESSION = "session_5f0c2a1e-0000-4000-8000-000000000001"
OLD = "7d1b0c66-0000-4000-8000-000000000001"
CWD = "/home/dev/app"
FOLDER, OLD_FOLDER = f"wd_app_{sha256(CWD.encode()).hexdigest()[:12]}", md5(CWD.encode()).hexdigest()
BELOW = f"/h/.kimi-code/sessions/{FOLDER}/{SESSION}"
TIME = 1_796_029_200_500
AT = TIME / 1000


def read(kind, agent="main", /, **fields):
    line = {"type": kind, "time": TIME, **fields}
    return list(read_wire(Record(f"{BELOW}/agents/{agent}/wire.jsonl", json.dumps(line).encode(), 10)))


def cli(kind, /, **payload):
    line = {"timestamp": AT, "message": {"type": kind, "payload": payload}}
    path = f"/h/.kimi/sessions/{OLD_FOLDER}/{OLD}/wire.jsonl"
    return list(read_cli_wire(Record(path, json.dumps(line).encode(), 10)))


def state(**fields):
    line = {"createdAt": TIME, "updatedAt": TIME + 1000, **fields}
    return {e.key: e for e in read_state(Record(f"{BELOW}/state.json", json.dumps(line).encode()))}


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


# -- turns --------------------------------------------------------------------------------------------------


def test_a_turn_is_known_by_the_prompt_that_began_it_also_in_a_fork():
    prompt, folder = read("turn.prompt", promptId="msg_1", turnId=0, origin={"kind": "user"})
    assert (prompt.kind, prompt.session, prompt.at, prompt.turn, prompt.word) == (
        Kind.PROMPT, SESSION, AT, "msg_1", "user")
    assert (folder.key, folder.word) == ("surface", FOLDER)


def test_a_turn_without_a_prompt_of_its_own_has_a_key_that_no_other_session_has():
    prompt, _ = read("turn.prompt", turnId=1, origin={"kind": "task"})
    assert prompt.turn == f"{SESSION}@{AT:.3f}"


@pytest.mark.parametrize(("fields", "reason"), [
    ({"reason": "completed"}, ""),
    ({"reason": "cancelled"}, "interrupted"),
    ({"reason": "blocked"}, "error"),
    ({"reason": "failed"}, "error"),
    ({"reason": "failed", "error": {"code": "provider.api_error", "details": {"statusCode": 400}}}, "error"),
    ({"reason": "failed", "error": {"code": "provider.api_error", "details": {"statusCode": 429}}}, "limit"),
    ({"reason": "failed", "error": {"code": "provider.rate_limit"}}, "limit"),
    ({"reason": "failed", "error": {"code": "provider.api_error", "details": {"statusCode": 402}}}, "limit"),
    ({"reason": "failed", "error": {"code": "provider.auth_error"}}, "login"),
    ({"reason": "failed", "error": {"code": "auth.login_required"}}, "login"),
    ({"reason": "failed", "error": {"code": "x", "details": {"statusCode": 401}}}, "login"),
    ({"reason": "failed", "error": "[object Object]"}, "error"),
    ({"reason": 7}, "error"),
    ({}, "error"),
])
def test_an_end_says_why(fields, reason):
    assert said(read("turn.ended", turnId=0, **fields)) == [("end", "", reason)]


@pytest.mark.parametrize(("event", "means"), [
    ({"type": "step.begin"}, [("progress", "", "model")]),
    ({"type": "content.part"}, [("progress", "", "model")]),
    ({"type": "step.end", "finishReason": "end_turn"}, [("answer", "", "finished")]),
    ({"type": "step.end", "finishReason": "max_tokens"}, [("answer", "", "finished")]),
    ({"type": "step.end", "finishReason": "tool_use"}, []),
    ({"type": "step.end", "finishReason": "error"}, []),
    ({"type": "step.end", "finishReason": "interrupted"}, []),
    ({"type": "step.end"}, []),
    ({"type": "tool.call", "toolCallId": "c1", "name": "Bash"}, [("opened", "c1", "tool"), ("progress", "", "tool")]),
    ({"type": "tool.result", "toolCallId": "c1"}, [("closed", "c1", "tool"), ("progress", "", "model")]),
    ({"type": "step.dreamt"}, [("unknown", "", "loop event step.dreamt")]),
    ({}, [("unknown", "", "loop event")]),
    (7, [("unknown", "", "loop event")]),
])
def test_a_step_means(event, means):
    found = [(kind, key, word.strip()) for kind, key, word in said(read("context.append_loop_event", event=event))]
    assert found == means


@pytest.mark.parametrize(("kind", "fields", "means"), [
    ("full_compaction.begin", {"source": "auto"}, [("progress", "", "compacting")]),
    ("full_compaction.cancel", {}, [("end", "", "interrupted")]),
    ("full_compaction.complete", {}, [("answer", "", "finished")]),
    ("turn.cancel", {}, [("end", "", "interrupted")]),
    ("turn.step.retrying", {}, [("progress", "", "retrying")]),
    ("turn.steer", {}, []),
    ("agent.turn.ended", {"outcome": "done"}, []),
    ("goal.update", {}, []),
    ("turn.dreamt", {}, [("unknown", "", "turn.dreamt")]),
    ("hologram.shown", {}, [("unknown", "", "hologram.shown")]),
    ("", {}, [("unknown", "", "")]),
])
def test_a_record_means(kind, fields, means):
    assert said(read(kind, **fields)) == means


def test_a_compaction_by_hand_is_a_turn_of_its_own():
    prompt, progress = read("full_compaction.begin", source="manual")
    assert (prompt.kind, prompt.turn) == (Kind.PROMPT, f"{SESSION}@{AT:.3f}")
    assert (progress.kind, progress.word) == (Kind.PROGRESS, "compacting")
    assert progress.order > prompt.order


# -- dialogs and background work ----------------------------------------------------------------------------


@pytest.mark.parametrize(("agent", "fields", "word"), [
    ("main", {"kind": "approval"}, "permission"),
    ("main", {"kind": "question"}, "question"),
    ("main", {"kind": "approval", "request": {"toolName": "ExitPlanMode"}}, "plan"),
    ("main", {"kind": "approval", "request": {"display": {"kind": "plan_review"}}}, "plan"),
    ("main", {"kind": "approval", "request": 7}, "permission"),
    ("agent-0", {"kind": "approval"}, "child-permission"),
    ("agent-0", {"kind": "question"}, "child-question"),
    ("agent-0", {"kind": "approval", "request": {"toolName": "ExitPlanMode"}}, "child-permission"),
])
def test_a_dialog_is_its_sessions_whoever_opened_it(agent, fields, word):
    (opened,) = read("interaction.request", agent, id="i1", **fields)
    assert (opened.session, opened.kind, opened.key, opened.word) == (SESSION, Kind.OPENED, "i1", word)
    closed = read("interaction.resolved", agent, id="i1")[0]
    assert (closed.session, closed.kind, closed.key) == (SESSION, Kind.CLOSED, "i1")


@pytest.mark.parametrize("kind", ["turn.prompt", "turn.ended", "task.started", "context.append_loop_event", "new.kind"])
def test_nothing_else_of_a_subagent_is_its_parents(kind):
    assert read(kind, "agent-0", turnId=0, reason="completed", info={"detached": True}) == []


@pytest.mark.parametrize(("kind", "span"), [
    ("process", "shell"), ("agent", "child"), ("question", "child-question"), ("cron", "shell"), (None, "shell"),
])
def test_a_detached_task_outlives_its_turn(kind, span):
    info = {"taskId": "t1", "kind": kind, "detached": True}
    assert said(read("task.started", info=info)) == [("opened", "task:t1", span)]
    assert said(read("task.terminated", info=info)) == [("closed", "task:t1", span)]
    assert read("task.started", info={**info, "detached": False}) == []


# -- what a session is --------------------------------------------------------------------------------------


def test_the_model_the_context_and_the_folder_are_told():
    assert said(read("llm.request", model="k3", kind="loop")) == [("fact", "model", "k3")]
    assert said(read("token_counting.measured", tokens=1250)) == [("fact", "tokens", "1250")]
    assert said(read("profile.bind", environmentDisclosure={"cwd": CWD})) == [("fact", "cwd", CWD)]


def test_a_title_is_the_users_only_if_it_says_so():
    assert state(title="prose", isCustomTitle=False)["title"].word == "prose"
    assert state(title="mine", isCustomTitle=True)["name"].word == "mine"
    assert state(archived=True)["archived"].word == "yes"


def test_a_headless_run_ends_without_a_title():
    assert state(title="x", lastTurnReason="completed")["role"].word == Role.PERSON
    assert state(lastTurnReason="completed")["role"].word == Role.MACHINE
    assert "role" not in state()  # both begin so


def test_a_folder_is_as_old_as_its_session_and_that_of_a_fork_tells_of_no_program():
    assert state(cwd=CWD)["cwd"].at == AT
    assert state(cwd=CWD, forkedFrom="session_1")["cwd"].at == 0


def test_older_state_files_have_iso_times_and_those_of_kimi_cli_none():
    assert state(createdAt="2026-11-30T09:00:00.500Z", cwd=CWD)["cwd"].at == AT
    assert list(read_state(Record(f"{BELOW}/state.json", b'{"version": 1, "archived": false}'))) == []


def test_the_index_tells_the_folder_alone():
    line = json.dumps({"sessionId": SESSION, "sessionDir": "/x", "workDir": CWD}).encode()
    (fact,) = read_index(Record("/h/.kimi-code/session_index.jsonl", line, 5))
    assert (fact.session, fact.at, fact.key, fact.word) == (SESSION, 0, "cwd", CWD)
    assert list(read_index(Record("/h/.kimi-code/session_index.jsonl", b"{}"))) == []


def test_a_fork_is_nobodys():
    owner, left = read("forked")
    assert (owner.kind, owner.key, left.kind, left.word) == (Kind.OWNER, "0", Kind.GONE, "closed")
    assert left.at >= owner.at


# -- kimi-cli ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "payload", "means"), [
    ("StepBegin", {"n": 1}, [("answer", "", "interrupted"), ("progress", "", "model")]),
    ("ContentPart", {"type": "text", "text": "Done."}, [("answer", "", "finished"), ("progress", "", "model")]),
    ("ContentPart", {"type": "text", "text": "Go?"}, [("answer", "", "question"), ("progress", "", "model")]),
    ("ContentPart", {"type": "think", "think": "Go?"}, [("progress", "", "model")]),
    ("StepInterrupted", {}, [("answer", "", "error")]),
    ("StepRetry", {}, [("progress", "", "retrying")]),
    ("TurnEnd", {}, [("end", "", "")]),
    ("CompactionBegin", {}, [("progress", "", "compacting")]),
    ("CompactionEnd", {}, [("progress", "", "model")]),
    ("SubagentEvent", {"event": {"type": "TurnEnd"}}, [("progress", "", "model")]),
    ("StatusUpdate", {"context_tokens": 12}, [("fact", "tokens", "12")]),
    ("ToolResult", {"tool_call_id": "c1"}, [("progress", "", "model"), ("closed", "c1", "tool")]),
    ("QuestionRequest", {"id": "q1", "tool_call_id": "c1"}, [("opened", "c1", "question")]),
    ("ApprovalRequest", {"id": "a1", "tool_call_id": "c1"}, [("opened", "a1", "permission")]),
    ("ApprovalResponse", {"request_id": "a1"}, [("closed", "a1", "permission")]),
    ("Notification", {}, []),
    ("Hologram", {}, [("unknown", "", "Hologram")]),
])
def test_a_message_of_kimi_cli_means(kind, payload, means):
    assert said(cli(kind, **payload)) == means


@pytest.mark.parametrize(("name", "span"), [
    ("Shell", "shell-tool"), ("WriteFile", "instant-tool"), ("StrReplaceFile", "instant-tool"), ("ReadFile", "tool"),
    ("Agent", "tool"), (7, "tool"),
])
def test_a_call_of_kimi_cli_asks_by_its_tool(name, span):
    opened = cli("ToolCall", id="c1", function={"name": name, "arguments": "{}"})[-1]
    assert (opened.kind, opened.key, opened.word) == (Kind.OPENED, "c1", span)


def test_what_a_step_says_of_its_end_stands_only_if_its_turn_ends():
    answer, progress = cli("StepBegin", n=1)
    assert answer.at == progress.at
    assert answer.order < progress.order


@pytest.mark.parametrize(("prompt", "facts"), [
    ([{"type": "text", "text": "x"}], [("person", AT)]),
    ("do it", [("machine", 0)]),
    ("<system-reminder>Background tasks completed", []),
])
def test_a_terminal_hands_on_lists_and_a_headless_run_its_text(prompt, facts):
    found = cli("TurnBegin", user_input=prompt)
    assert [(e.word, e.at) for e in found if e.key == "role"] == facts
    assert found[0].turn == f"{OLD}@{AT:.3f}"


@pytest.mark.parametrize(("task", "fields", "means"), [
    ("bash-1", {"status": "running", "started_at": AT, "updated_at": AT + 9}, ("opened", "shell", AT)),
    ("bash-1", {"status": "starting", "started_at": None, "updated_at": AT}, ("opened", "shell", AT)),
    ("bash-1", {"status": "completed", "started_at": AT, "finished_at": AT + 5}, ("closed", "shell", AT + 5)),
    ("agent-1", {"status": "running", "started_at": AT}, ("opened", "child", AT)),
])
def test_a_task_of_kimi_cli_runs_until_it_has_finished(task, fields, means):
    path = f"/h/.kimi/sessions/{OLD_FOLDER}/{OLD}/tasks/{task}/runtime.json"
    (e,) = read_cli_task(Record(path, json.dumps(fields).encode()))
    assert (e.kind.value, e.word, e.at) == means
    assert (e.session, e.key) == (OLD, f"task:{task}")


# -- what is not its format ---------------------------------------------------------------------------------


@pytest.mark.parametrize("read_one", [read_wire, read_state, read_index, read_cli_wire, read_cli_task])
@pytest.mark.parametrize("data", [b"", b"[]", b"7", b'{"type": "turn.pro', b"\xff"])
def test_what_is_no_object_is_a_value_error(read_one, data):
    with pytest.raises(ValueError):
        list(read_one(Record(f"{BELOW}/agents/main/wire.jsonl", data)))


@pytest.mark.parametrize("read_one", [read_wire, read_cli_wire])
def test_a_record_without_a_time_is_a_value_error_but_for_the_first(read_one):
    path = f"{BELOW}/agents/main/wire.jsonl"
    with pytest.raises(ValueError, match="without a time"):
        list(read_one(Record(path, b'{"type": "turn.prompt"}')))
    assert list(read_one(Record(path, b'{"type": "metadata", "protocol_version": "1.5"}'))) == []


# -- processes ---------------------------------------------------------------------------------------------


def process(*cmdline, name="", cwd=CWD):
    return Process(7, 1, name or cmdline[0].rpartition("/")[2], cmdline, cwd, 1.0)


CODE = process("kimi-code")
CLI = process("Kimi Code", "", "")


@pytest.mark.parametrize(("p", "which"), [
    (CODE, "code"),
    (process("/usr/bin/node", "/usr/lib/node_modules/@moonshot-ai/kimi-code/dist/main.mjs", "-c"), "code"),
    (process("node", "/home/dev/.npm/bin/kimi"), "code"),
    (process("/home/dev/.kimi-code/bin/kimi"), "code"),
    (CLI, "cli"),
    (process("/usr/bin/python3.13", "/home/dev/.local/bin/kimi", "--print"), "cli"),
    (process("python", "-m", "kimi_cli.cli", "__background-task-worker"), ""),
    (process("/bin/bash", "-c", "cd '/home/dev/app' && kimi"), ""),
    (process("node", "server.js"), ""),
    (process("node"), ""),
    (Process(7, 1, ""), ""),
])
def test_the_two_programs_are_told_apart(p, which):
    assert product(p) == which
    assert KIMI.main(p) is (which != "")


def session(ident=SESSION, **facts):
    return Session("kimi", ident, {Kind.FACT: {k: Event(Kind.FACT, ident, 1, k, v) for k, v in facts.items()}})


@pytest.mark.parametrize(("p", "of", "likely"), [
    (CODE, session(cwd=CWD), 1),
    (CODE, session(surface=FOLDER), 1),
    (CODE, session(cwd="/home/dev/other"), 0),
    (CODE, session(surface="wd_app_0123456789ab"), 0),
    (CODE, session(), 1),
    (CODE, session(OLD, surface=OLD_FOLDER), 0),
    (CLI, session(OLD, surface=OLD_FOLDER), 1),
    (CLI, session(OLD, surface="0" * 32), 0),
    (CLI, session(cwd=CWD), 0),
    (process("kimi-code", cwd=""), session(cwd="/home/dev/other"), 1),
    (process("bash"), session(cwd=CWD), 0),
])
def test_a_process_runs_the_sessions_of_its_program_and_folder(p, of, likely):
    assert owns(p, of) == likely


def test_a_headless_run_is_known_by_its_arguments_while_it_has_them():
    assert role(process("node", "/x/bin/kimi", "-p", "do it")) is Role.MACHINE
    assert role(process("python3", "/x/bin/kimi", "--print")) is Role.MACHINE
    assert role(CODE) is None
    assert role(process("claude", "-p")) is None


def test_hooks_are_no_tools():
    assert KIMI.tool(process("/bin/bash", "-c", "cd '/home/dev/app' && ls"))
    assert KIMI.tool(process("npm", "test"))  # a shell becomes what it runs, where that is one command
    assert not KIMI.tool(process("/bin/sh", "-c", "hook.sh"))
    assert not KIMI.tool(CODE)


def test_either_home_can_be_moved():
    assert home({}, "/h") == "/h"
    assert home({"KIMI_CODE_HOME": "/k", "KIMI_SHARE_DIR": "/s"}, "/h") == "/k"
    assert home({"KIMI_SHARE_DIR": "/s"}, "/h") == "/s"
    patterns = {s.pattern for s in KIMI.sources}
    assert {"sessions/*/*/agents/main/wire.jsonl", ".kimi-code/sessions/*/*/agents/main/wire.jsonl"} <= patterns
    assert {"sessions/*/*/wire.jsonl", ".kimi/sessions/*/*/wire.jsonl"} <= patterns
