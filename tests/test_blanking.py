"""No prose survives blanking, and no reader misses what was taken out."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.agents import AGENTS
from island.agents.base import Shape
from island.agents.claude import read_live, read_transcript
from island.agents.codex import read_rollout
from island.agents.reading import asks
from island.blanking import DEEP, PROJECT, blank, blank_arguments, blank_text
from island.cli.record import RECORDED
from island.model import Kind, Process, Record
from island.sequence import parse
from island.sources.sweep import matcher

RECORDINGS = Path(__file__).parents[2] / "shared" / "recordings"
SHORT = 40  # a word of a vocabulary is shorter than that; the marks and ids that are longer hold no blank

prose = st.text(min_size=SHORT + 1, max_size=200)
words = st.sampled_from(["the", "Büro", "key", "is", "sk-secret", "会议", "?"])
sentences = st.lists(words, min_size=12).map(" ".join)
marks = st.sampled_from([
    "", "\n ", "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n", "<command-name>",
    "<bash-stdout>", "[Request interrupted by user]", "[Request interrupted by user for tool use]",
    " <local-command-x>", "Stop hook feedback:\n", " Stop hook feedback", "<system-reminder>", '{"a": "', "[",
])
endings = st.sampled_from(["", "?", "? **", ".", "？", "\n", "]?", "</task-notification>"])  # noqa: RUF001
texts = st.builds("{}{}{}".format, marks, prose | sentences | st.just(""), endings)
keys = st.sampled_from([
    "text", "content", "type", "status", "name", "id", "userName", "cwd", "tool_use_id", "message",
])
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys | texts, inner, max_size=4),
    max_leaves=20,
)


def leaves(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, str):
        try:
            packed = json.loads(value)
        except ValueError:
            packed = None
        yield from leaves(packed) if isinstance(packed, dict | list) else [value]


# -- what must not survive ---------------------------------------------------------------------------------


@given(documents)
def test_no_text_longer_than_forty_characters_survives(document):
    for leaf in leaves(json.loads(blank(orjson.dumps(document)))):
        without_marks = leaf
        for mark in ("[Request interrupted by user for tool use]", "[Request interrupted by user]"):
            without_marks = without_marks.removeprefix(mark)
        assert len(without_marks) <= SHORT or " " not in without_marks.replace(" chars]", "")
        assert without_marks.isascii() or len(without_marks) <= 1


@given(st.dictionaries(keys, sentences, min_size=1))
def test_no_sentence_survives_under_any_key(document):
    blanked = blank(orjson.dumps(document)).decode()
    assert not any(sentence in blanked for sentence in document.values())
    assert not any(word in blanked for word in ("Büro", "会议", "sk-secret"))


@pytest.mark.parametrize("record", [
    {"name": "alice"}, {"userId": "alice"}, {"gitBranch": "alice/fix"}, {"cwd": "/home/alice/acme"},
    {"title": "Acme"}, {"toolUseResult": {"answers": {"Which client shall we bill?": "acme"}}},
    {"pidDomain": "linux:alice"}, {"snapshot": {"trackedFileBackups": {"/home/alice/acme.py": 1}}},
    {"arguments": '{"cmd": "cat /home/alice/acme"}'}, {"type": "alice at acme"}, {"id": "alice@acme.com"},
    {"type": "tool_use", "name": "mcp__acme__invoices"},
])
def test_no_name_of_the_user_or_the_project_survives(record):
    blanked = blank(orjson.dumps(record)).lower()
    assert b"alice" not in blanked
    assert b"acme" not in blanked


def test_the_names_of_tools_survive_and_other_names_do_not():
    call = {"type": "tool_use", "name": "Bash", "input": {"name": "Bash"}}
    assert json.loads(blank(orjson.dumps(call))) == {
        "type": "tool_use", "name": "Bash", "input": {"name": "[4 chars]"},
    }


def test_the_name_of_a_call_and_of_an_event_and_the_place_of_a_request_survive():
    call = {"functionCall": {"id": "c1", "name": "edit", "args": {"file_path": "/home/alice/x"}}, "name": "alice"}
    told = {"event.name": "qwen-code.api_error", "prompt_id": "0bc18d25-5fb3-46dc-a258-f95d3825818f########0"}
    assert json.loads(blank(orjson.dumps(call))) == {
        "functionCall": {"id": "c1", "name": "edit", "args": {"file_path": "[13 chars]"}}, "name": "[5 chars]",
    }
    assert json.loads(blank(orjson.dumps(told))) == told


def test_what_is_no_json_becomes_its_length_and_stays_none():
    assert blank(b'{"type": "user", "text": "half of a li') == b"[38 bytes]"


def test_nesting_without_end_is_cut():
    deep = "[" * 500 + "]" * 500
    assert blank(deep.encode()).count(b"[") <= DEEP + 2


def test_a_process_keeps_what_tells_it_apart_and_nothing_else():
    session = "0bc18d25-5fb3-46dc-a258-f95d3825818f"
    line = ["/usr/bin/node", "/home/alice/.bin/claude", "-p", "--resume", session, "fix acme"]
    assert blank_arguments(line) == ["node", "claude", "-p", "--resume", session, "[8 chars]"]
    shell = ["/bin/bash", "-c", "source /home/alice/.claude/shell-snapshots/x.sh && eval 'ls acme'"]
    kept = blank_arguments(shell)
    assert kept[:2] == ["bash", "-c"]
    assert not any("alice" in argument or "acme" in argument for argument in kept)
    assert AGENTS["claude"].tool(Process(1, 0, "bash", tuple(kept)))


@pytest.mark.parametrize("option", ["--openai-api-key", "--api-key", "--token", "--client-secret", "--password"])
def test_a_key_on_a_command_line_is_blanked_even_if_it_looks_like_an_id(option):
    key = "0bc18d25-5fb3-46dc-a258-f95d3825818f"
    assert blank_arguments(["python3", "aider", option, key, "--model", "x"])[2:] == [
        option, "[36 chars]", "--model", "[1 chars]"]
    assert key not in blank_arguments(["aider", f"{option}={key}"])[1]


def test_the_script_behind_its_interpreters_options_is_kept_and_no_secret_is_taken_for_one():
    line = ["/usr/bin/node", "--max-old-space-size=12052", "/home/alice/.bin/gemini", "-p", "fix acme"]
    assert blank_arguments(line) == ["node", "--max-old-space-size=12052", "gemini", "-p", "[8 chars]"]
    assert blank_arguments(["python3", "--api-key", "abc123"]) == ["python3", "--api-key", "[6 chars]"]


# -- what must survive ---------------------------------------------------------------------------------------


def masked(event):
    """Leave out what is prose: titles, folders, commands. That there is one must be told all the same."""
    if event.kind is Kind.FACT and event.key in ("title", "name", "cwd", "surface"):
        event = replace(event, word="something" if event.word else "")
    return replace(event, text="something" if event.text else "")


def meaning(read, record):
    try:
        return [masked(event) for event in read(record)]
    except ValueError:
        return None


def same(read, data, path="~/s1.jsonl", offset=0):
    before = meaning(read, Record(path, data, offset, 5.0))
    return before == meaning(read, Record(path, blank(data), offset, 5.0))


@given(texts)
def test_a_blanked_text_asks_when_the_text_asks_and_is_blanked_once(text):
    blanked = blank_text(text)
    assert asks(blanked) == asks(text)
    assert blank_text(blanked) == blanked


@given(st.booleans(), texts, st.booleans(), st.booleans())
def test_a_line_of_a_conversation_means_the_same(user, text, meta, listed):
    content = [{"type": "text", "text": text}] if listed or not user else text
    message = {"role": "user", "content": content}
    if not user:
        message |= {"role": "assistant", "model": "m", "stop_reason": "end_turn"}
    line = {"type": "user" if user else "assistant", "timestamp": "2026-11-30T09:00:00Z", "uuid": "u1",
            "sessionId": "s1", "message": message, "isMeta": meta, "entrypoint": "cli", "version": "2.1.332"}
    assert same(read_transcript, orjson.dumps(line))


@given(texts)
def test_a_line_of_a_rollout_means_the_same(text):
    payload = {"type": "task_complete", "turn_id": "t1", "last_agent_message": text}
    line = {"timestamp": "2026-11-30T09:00:00Z", "type": "event_msg", "payload": payload}
    assert same(read_rollout, orjson.dumps(line))


@pytest.mark.parametrize("waiting", ["permission prompt", "input needed", "dialog open", "the weather"])
def test_a_live_record_means_the_same(waiting):
    record = {
        "pid": 7, "sessionId": "s1", "cwd": "/home/alice/app", "startedAt": 1796000000000,
        "procStart": "1712", "pidDomain": "linux:1", "version": "2.1.332", "entrypoint": "cli",
        "name": "acme", "nameSource": "user", "status": "waiting", "waitingFor": waiting,
        "statusUpdatedAt": 1796000001000,
    }
    assert same(read_live, orjson.dumps(record))
    assert json.loads(blank(orjson.dumps(record)))["cwd"] == PROJECT


@cache
def recorded(agent):
    """Return the records of an agent's recordings: by which reader each is read, path, place, bytes."""
    read = [s for s in agent.sources if s.shape is not Shape.PRESENCE]
    sources = [(s, matcher([f"{agent.home({}, '~')}/{s.pattern}"])) for s in read]
    records = []
    for file in sorted((RECORDINGS / agent.name).glob("*.jsonl")):
        sequence = parse(file.read_text(), file.name)
        for step in (s for s in sequence.steps if s.verb in ("append", "write")):
            for source in (s for s, matches in sources if matches(step.operand)):
                lines = step.content.split(b"\n") if source.shape is Shape.LINES else [step.content]
                records += [(source.read, step.operand, n, x) for n, x in enumerate(lines) if x.strip()]
    return records


@pytest.mark.recordings
@pytest.mark.parametrize("agent", RECORDED.values(), ids=RECORDED)
def test_every_recorded_line_means_the_same(agent):
    if not (RECORDINGS / agent.name).is_dir():
        pytest.skip("the recordings are not here")
    records = recorded(agent)
    assert records
    different = [(path, line) for read, path, offset, line in records if not same(read, line, path, offset)]
    assert not different[:3]


@pytest.mark.parametrize(("last", "kept"), [
    ("<command started in detached background with shellId: 0>", "<command started in shellId: 0>"),
    ("<command with shellId: a.b is still running after 30 s. My plan.>", "<command started in shellId: a.b>"),
    ("<shellId: 0 completed with exit code 0>", "<shellId: 0>"),
    ("<command with id: 0 stopped>\n", "<shellId: 0>"),
    ("<shellId: 0> my secret plan", ""),
])
def test_of_a_result_is_kept_which_shell_it_is_of_and_whether_it_goes_on(last, kept):
    text = f"my secret plan {last}"
    assert blank_text(text) == f"[{len(text)} chars]{kept}" == blank_text(blank_text(text))


NEW, OLD = "timestamp=2026-11-30T09:00:00.5Z level=ERROR run=a1b2c3d4", "INFO  2026-11-30T09:00:00 +6ms service=a"


@pytest.mark.parametrize(("head", "rest", "kept"), [
    (NEW, ' message=asking id=per_1 permission=edit patterns="[\\"a\\"]"', " message=asking id=per_1"),
    (NEW, ' message="creating instance" directory=/home/alice/acme', ' message="creating instance"'),
    (NEW, ' message="my secret plan" error="of ours"', ""),
    (OLD, ' pattern=acme action={"permission":"edit","action":"ask"} evaluated', ' action={"action":"ask"} evaluated'),
    (OLD, " e=Is my secret plan known? rejection", ""),
])
def test_of_a_line_of_a_log_only_what_is_named_is_kept(head, rest, kept):
    assert blank(f"{head}{rest}".encode()).decode() == head + kept
    assert blank(f"{head}{kept}".encode()).decode() == head + kept


def test_a_line_of_prose_is_no_line_of_a_log():
    assert blank(b"my secret plan is level=INFO") == b"[28 bytes]"
