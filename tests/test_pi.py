"""What Pi's lines and processes mean, beyond what the sequences play."""

import json

import pytest

from island.agents.pi import PI, is_tool, owns, read_history, role
from island.model import Doubt, Event, Kind, Process, Record, Role, Session
from island.sources.sweep import matcher

ID, OTHER = "01a22e62-23f4-70ed-857b-b5866bc3088f", "01a22e62-23f4-70ed-857b-5d40a96e655c"
PATH = f"/h/.pi/agent/sessions/--a--/2026-11-30T09-00-00-000Z_{ID}.jsonl"
HEAD = {"type": "session", "version": 3, "id": ID, "timestamp": "2026-11-30T09:00:00.000Z", "cwd": "/a"}
AT = 1_796_029_205.5


def read(kind, head=HEAD, at="2026-11-30T09:00:05.500Z", **fields):
    line = {"type": kind, "id": "e1", "parentId": None, "timestamp": at, **fields}
    return list(read_history(Record(PATH, json.dumps(line).encode(), 7, head=json.dumps(head).encode())))


def message(role, **fields):
    return read("message", message={"role": role, **fields})


def answer(reason, *content, **fields):
    return [e for e in message("assistant", stopReason=reason, content=list(content), **fields) if e.kind != Kind.FACT]


def call(name, number=1, **arguments):
    return {"type": "toolCall", "id": f"c{number}", "name": name, "arguments": arguments}


def said(found):
    return [(e.kind.value, e.key, e.word) for e in found]


# -- lines ---------------------------------------------------------------------------------------------------------


def test_a_prompt_begins_a_turn_at_its_own_time():
    (e,) = message("user", content="x")
    assert (e.kind, e.session, e.at, e.turn, e.order) == (Kind.PROMPT, ID, AT, "e1", 7)


def test_the_head_names_the_session_not_the_file():
    assert read("label", {**HEAD, "id": OTHER}) == []
    assert {e.session for e in read("message", {**HEAD, "id": OTHER}, message={"role": "user"})} == {OTHER}
    assert {e.session for e in read("message", {}, message={"role": "user"})} == {ID}


@pytest.mark.parametrize(("head", "copied"), [
    ({**HEAD, "timestamp": "2026-11-30T09:10:00.000Z", "parentSession": "/s.jsonl"}, True),
    ({**HEAD, "timestamp": "2026-11-30T09:10:00.000Z"}, False),  # a clock that was set back
    ({**HEAD, "parentSession": "/s.jsonl"}, False),
])
def test_what_is_older_than_its_fork_is_a_copy(head, copied):
    assert (read("message", head, message={"role": "user"}) == []) is copied


@pytest.mark.parametrize(("names", "words"), [
    (["bash"], ["shell-tool"]),
    (["edit"], ["instant-tool"]),
    (["write", "edit"], ["instant-tool", "instant-tool"]),
    (["bash", "edit"], ["shell-tool", "shell-tool"]),
    (["bash", "read"], ["tool", "tool"]),
    (["edit", "subagent"], ["tool", "tool"]),
    (["question", "edit"], ["question", "tool"]),
])
def test_a_call_may_wait_for_those_beside_it(names, words):
    found = answer("toolUse", *(call(name, n) for n, name in enumerate(names)))
    assert said(found) == [*(("opened", f"c{n}", w) for n, w in enumerate(words)), ("progress", "", "tool")]


@pytest.mark.parametrize(("reason", "text", "means"), [
    ("stop", "Done.", ("answer", "", "finished")),
    ("stop", "Shall I?", ("answer", "", "question")),
    ("length", "Half", ("answer", "", "finished")),
    ("aborted", "Half", ("end", "", "interrupted")),
    ("dreamt", "", ("unknown", "", "stop reason dreamt")),
])
def test_why_an_answer_stopped_says_what_it_is(reason, text, means):
    assert said(answer(reason, {"type": "text", "text": text})) == [means]


@pytest.mark.parametrize(("text", "word", "again"), [
    ("500 internal server error", "error", True),
    ("400 Bad request: unsupported", "error", False),
    ("401 Incorrect API key provided", "login", False),
    ("No API key found for anthropic. Use /login", "login", False),
    ("429 You exceeded your current quota", "limit", True),
    ("Your credit balance is too low", "limit", False),
    ("400 This model's maximum context length is 32000 tokens.", "error", True),
    ("", "error", False),
])
def test_an_error_that_it_tries_again_is_no_end(text, word, again):
    (e,) = answer("error", errorMessage=text)
    assert (e.kind, e.word, e.text) == ((Kind.ANSWER, word, Doubt.AGAIN) if again else (Kind.END, word, ""))


def test_a_failed_answer_calls_nothing():
    assert said(answer("error", call("bash"), errorMessage="x")) == [("end", "", "error")]


def test_facts():
    found = message("assistant", stopReason="stop", model="m", usage={"totalTokens": 1240}, content=[])
    assert said(found)[:2] == [("fact", "model", "m"), ("fact", "tokens", "1240")]
    assert said(read("session", cwd="/a")) == [("fact", "cwd", "/a")]
    assert said(read("model_change", modelId="m2")) == [("fact", "model", "m2")]
    assert said(read("session_info", name="")) == [("fact", "name", "")]  # a name that was taken away


@pytest.mark.parametrize("role", ["bashExecution", "branchSummary", "compactionSummary", "custom", "hookMessage"])
def test_what_is_not_said_by_user_or_model_means_nothing(role):
    assert message(role) == []


@pytest.mark.parametrize("data", [b"", b"[]", b"7", b"{}", b'{"type": "message", "timestamp": "soon"}'])
def test_what_is_no_line_is_a_value_error(data):
    with pytest.raises(ValueError):
        list(read_history(Record(PATH, data)))


@pytest.mark.parametrize(("environ", "path"), [
    ({}, PATH),
    ({"PI_CODING_AGENT_DIR": "/p"}, "/p/sessions/--a--/x.jsonl"),
    ({"PI_CODING_AGENT_DIR": "/p", "PI_CODING_AGENT_SESSION_DIR": "/s"}, "/s/x.jsonl"),
])
def test_where_its_histories_lie(environ, path):
    home = PI.home(environ, "/h")
    assert any(matcher([f"{home}/{source.pattern}"])(path) for source in PI.sources)


# -- processes -----------------------------------------------------------------------------------------------------


def process(*cmdline, cwd="/a"):
    return Process(7, 1, "pi", cmdline, cwd, 1.0)


@pytest.mark.parametrize(("p", "is_main", "whose"), [
    (process("pi", "", ""), True, None),
    (process("node", "/usr/bin/pi"), True, None),
    (process("node", "/usr/bin/pi", "-p", "x"), True, Role.MACHINE),
    (process("node", "/x/pi-coding-agent/dist/cli.js", "--mode", "json"), True, Role.MACHINE),
    (process("node", "/x/pi-coding-agent/dist/cli.js", "--mode", "rpc"), True, None),
    (process("C:\\x\\node.exe", "C:\\x\\pi-coding-agent\\dist\\cli.js"), True, None),
    (process("/opt/pi/pi", "-c"), True, None),
    (process("node", "/usr/bin/pi", "install", "x"), False, None),
    (process("vim", "/usr/bin/pi"), False, None),
    (process("/bin/bash", "-c", "sleep 6"), False, None),
    (process("node"), False, None),
    (process(), False, None),
])
def test_pi_is_told_from_what_it_runs(p, is_main, whose):
    assert (PI.main(p), is_tool(p), role(p)) == (is_main, not is_main, whose)


@pytest.mark.parametrize(("cwd", "likely"), [("/a", 1), ("/b", 0), ("", 1)])
def test_a_session_is_run_in_its_folder(cwd, likely):
    session = Session("pi", ID, {Kind.FACT: {"cwd": Event(Kind.FACT, ID, 1, "cwd", "/a")}})
    assert owns(process("pi", "", cwd=cwd), session) == likely
    assert owns(process("/bin/bash", cwd=cwd), session) == 0
