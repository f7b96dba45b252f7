"""Sequence files: what is malformed is told by file, line and fault; what is well-formed is played and scored."""

import base64
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from island.replay import check
from island.sequence import SequenceError, content, median_lateness, parse, score

SEQUENCES = Path(__file__).parent.parent / "sequences"
HEAD = {"sequence": 1, "agent": "codex", "start": "2026-11-30T09:00:00.000Z"}


def text(*steps, **head):
    return "\n".join(json.dumps(line) for line in ({**HEAD, **head}, *steps))


def fault(body):
    with pytest.raises(SequenceError) as caught:
        parse(body, "f.jsonl")
    return str(caught.value)


# -- malformed files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("body", "want"), [
    ("", "f.jsonl:1: the file is empty; its first line must be the head"),
    ("\n \n", "f.jsonl:1: the file is empty; its first line must be the head"),
    ("\n{", "f.jsonl:2: not JSON: "),
    ("[1]", "f.jsonl:1: a line must be a JSON object"),
    (text(sequence=2), 'f.jsonl:1: the head must say "sequence": 1'),
    (text(agent=None), "f.jsonl:1: the head must name its agent"),
    (text(origin="dreamt"), "f.jsonl:1: origin must be one of recorded, written, reported"),
    (text(start="yesterday"), "f.jsonl:1: start must be an ISO 8601 time"),
    (text(start=5), "f.jsonl:1: start must be an ISO 8601 time"),
    (text() + "\n\n{]", "f.jsonl:3: not JSON: "),
    (text([]), "f.jsonl:2: a line must be a JSON object"),
])
def test_a_malformed_file_is_told_by_file_line_and_fault(body, want):
    assert fault(body).startswith(want)


@pytest.mark.parametrize(("step", "want"), [
    ({"note": "x"}, "`at` must be seconds since the start, 0 or more"),
    ({"at": -1, "note": "x"}, "`at` must be seconds since the start, 0 or more"),
    ({"at": True, "note": "x"}, "`at` must be seconds since the start, 0 or more"),
    ({"at": "1", "note": "x"}, "`at` must be seconds since the start, 0 or more"),
    ({"at": 1}, "no verb; known are append, "),
    ({"at": 1, "dance": "x"}, "no verb; known are append, "),
    ({"at": 1, "note": "x", "touch": "~/a"}, "more than one verb: note, touch"),
    ({"at": 1, "append": "/etc/passwd", "text": ""}, "append: a path must start with ~/ (home) or @/ (project)"),
    ({"at": 1, "touch": 7}, "touch: a path must start with ~/ (home) or @/ (project)"),
    ({"at": 1, "remove": "~/../x"}, "remove: a path must stay below its root"),
    ({"at": 1, "remove": "@/a\0"}, "remove: a path must stay below its root"),
    ({"at": 1, "write": "~/a"}, "write: give one of text, base64, records"),
    ({"at": 1, "write": "~/a", "text": "", "records": []}, "write: give one of text, base64, records"),
    ({"at": 1, "write": "~/a", "records": {}}, "write: records must be a list"),
    ({"at": 1, "write": "~/a", "text": 5}, "write: text must be a string"),
    ({"at": 1, "write": "~/a", "base64": "!"}, "write: base64 cannot be decoded"),
    ({"at": 1, "write": "~/a", "base64": 5}, "write: base64 cannot be decoded"),
    ({"at": 1, "patch": "~/a", "blocks": []}, "patch: size must be a whole number"),
    ({"at": 1, "patch": "~/a", "size": -1}, "patch: size must be a whole number"),
    ({"at": 1, "patch": "~/a", "size": 1, "blocks": [[-1, ""]]}, "patch: a block's offset must be a whole number"),
    ({"at": 1, "patch": "~/a", "size": 1, "blocks": [[0, "!"]]}, "patch: blocks must be [[offset, base64], ...]"),
    ({"at": 1, "patch": "~/a", "size": 1, "blocks": [[0]]}, "patch: blocks must be [[offset, base64], ...]"),
    ({"at": 1, "rows": "~/a"}, "rows: tables must be {table: [{column: value, ...}, ...]}"),
    ({"at": 1, "rows": "~/a", "tables": {"t": {}}}, "rows: tables must be {table: [{column: value, ...}, ...]}"),
    ({"at": 1, "rows": "~/a", "tables": {"t": [{}]}}, "rows: a row must be {column: value, ...}"),
    ({"at": 1, "rows": "~/a", "tables": {"t; x": [{"id": 1}]}},
     "rows: names of tables and columns are of small letters and underscores"),
    ({"at": 1, "rows": "/a", "tables": {"t": [{"id": 1}]}}, "rows: a path must start with ~/ (home) or @/ (project)"),
    ({"at": 1, "patch": "/a", "size": 1, "blocks": []}, "patch: a path must start with ~/ (home) or @/ (project)"),
    ({"at": 1, "process": 5}, "process: a process must be an object"),
    ({"at": 1, "process": {"pid": 5}}, "process: ppid must be a whole number"),
    ({"at": 1, "process": {"pid": "5", "ppid": 1}}, "process: pid must be a whole number"),
    ({"at": 1, "process": {"pid": 5, "ppid": 1, "cmdline": "x"}}, "process: cmdline must be a list"),
    ({"at": 1, "exit": "5"}, "exit: must be a whole number"),
    ({"at": 1, "exit": True}, "exit: must be a whole number"),
    ({"at": 1, "clock": "5"}, "clock: must be a number"),
    ({"at": 1, "clock": True}, "clock: must be a number"),
    ({"at": 1, "cpu": []}, "cpu: must be an object"),
    ({"at": 1, "expect": []}, "expect: must be an object"),
    ({"at": 1, "pane": 5}, "pane: must be a text"),
    ({"at": 1, "title": 5}, "title: must be a text"),
    ({"at": 1, "title": "x", "pid": "5"}, "title: pid must be a whole number"),
    ({"at": 1, "truth": "x"}, "truth: state must be one of working, your-turn, stalled, idle, ended"),
    ({"at": 1, "truth": {"state": "asleep"}}, "truth: state must be one of working, your-turn, stalled, idle, ended"),
], ids=lambda v: v if isinstance(v, str) else " ".join(v))
def test_a_malformed_step_is_told_by_its_line_and_its_fault(step, want):
    assert fault(text({"at": 0, "note": "fine"}, step)).startswith(f"f.jsonl:3: {want}")


def test_time_must_not_go_back():
    assert fault(text({"at": 2, "note": ""}, {"at": 1, "note": ""})) == "f.jsonl:3: time goes back: 1.0 after 2.0"


# -- well-formed files -------------------------------------------------------------------------------------


def test_a_file_is_read_into_its_head_and_its_steps():
    steps = [
        {"at": 0, "process": {"pid": 5, "ppid": 1}}, {"at": 0, "patch": "~/db", "size": 2, "blocks": [[0, "YWI="]]},
        {"at": 1.5, "touch": "@/a"}, {"at": 2, "exit": 5}, {"at": 2, "cpu": {"5": 0.1}}, {"at": 3, "clock": -3600},
    ]
    read = parse("\n" + text(*steps, start="2026-11-30T10:00:00+01:00"), "f")
    assert (read.head["agent"], read.start, read.end) == ("codex", 1796029200.0, 3.0)
    assert [s.verb for s in read.steps] == ["process", "patch", "touch", "exit", "cpu", "clock"]
    assert [s.operand for s in read.of("exit")] == [5]
    assert read.steps[0].line == 3


def test_a_start_without_a_zone_is_utc():
    assert parse(text(start="2026-11-30T09:00:00")).start == parse(text()).start


def test_a_file_without_steps_ends_as_it_begins():
    assert parse(text()).end == 0.0


@pytest.mark.parametrize(("fields", "want"), [
    ({"text": "ä\n"}, "ä\n".encode()),
    ({"text": "\udcff"}, b"\xff"),
    ({"base64": base64.b64encode(b"\0\xff").decode()}, b"\0\xff"),
    ({"records": [{"a": 1}, []]}, b'{"a":1}\n[]\n'),
    ({"records": []}, b""),
])
def test_text_base64_and_records_stand_for_bytes(fields, want):
    step = parse(text({"at": 1, "write": "~/a", **fields})).steps[0]
    assert step.content == content(fields) == want


# -- scores ------------------------------------------------------------------------------------------------


def truths(*points, session="s"):
    return [{"at": at, "truth": {"session": session, "state": state, "reason": reason}} for at, state, reason in points]


def judged(steps, timeline, name="f", end=30):
    return score(parse(text(*sorted(steps, key=lambda s: s["at"]), {"at": end, "note": ""}), name), timeline)


def line(at, state, session="s"):
    return {"at": at, "session": session, "state": state}


TURN = truths((0, "idle", ""), (10, "working", "prompt"), (20, "your-turn", "finished"))


def test_a_timeline_that_agrees_scores_full():
    got = judged(TURN, [line(0, "idle"), line(10.1, "working"), line(20.1, "your-turn"), {"at": 21, "notice": {}}])
    assert (got.agree, got.false, got.missed, got.wrong) == (1.0, 0, 0, ())


def test_what_disagrees_is_told_with_its_time():
    got = judged(TURN, [line(0, "idle"), line(15, "working"), line(20, "your-turn")])
    assert got.wrong == ((12.0, 15, "working", "idle"),)
    assert 0.8 < got.agree < 1
    assert got.missed == 1


def test_a_notice_while_nobody_waits_is_false():
    assert judged(TURN, [line(0, "idle"), {"at": 5, "notice": {}}]).false == 1


def test_the_end_of_a_session_is_rest():
    assert judged(truths((0, "working", ""), (10, "ended", "quit")), [line(0, "working"), line(10, "idle")]).agree == 1


def test_of_a_headless_run_any_notice_is_false_and_none_is_missed():
    got = judged(TURN, [line(0, "idle"), {"at": 21, "notice": {}}], name="x/exec-run.jsonl")
    assert (got.false, got.missed) == (1, 0)


@pytest.mark.parametrize("reason", ["interrupted", "background", ""])
def test_no_notice_is_owed_for(reason):
    assert judged(truths((0, "working", ""), (10, "your-turn", reason)), []).missed == 0


def test_several_sessions_are_judged_each_by_itself_if_all_are_told_of():
    steps = truths((0, "working", "x")) + truths((0, "your-turn", "finished"), session="t")
    got = judged(steps, [line(0, "working"), line(0, "your-turn", "t"), {"at": 1, "notice": {}}])
    assert (got.agree, got.missed) == (1, 0)


def test_several_sessions_are_judged_together_if_one_is_not_told_of():
    steps = truths((0, "working", "x")) + truths((5, "your-turn", "finished"), session="t")
    assert judged(steps, [line(0, "working"), line(5, "your-turn")]).agree == 1


def test_without_judged_time_nothing_is_wrong():
    assert judged([], [line(0, "working")]).agree == 1.0


def test_lateness_is_the_median_from_each_change_to_the_first_agreement():
    timeline = [line(0, "idle"), line(10.5, "working"), line(21, "your-turn")]
    assert median_lateness(parse(text(*TURN, {"at": 30, "note": ""})), timeline) == 0.75
    assert math.isnan(median_lateness(parse(text(*TURN, {"at": 30, "note": ""})), []))


# -- the specification by example --------------------------------------------------------------------------

FILES = sorted(SEQUENCES.glob("codex/*.jsonl")) + sorted(SEQUENCES.glob("fleet/*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_the_law_of_the_sequence_holds(path):
    sequence = parse(path.read_text(encoding="utf-8"), path.name)
    assert check(sequence) == []


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_the_law_holds_however_the_lines_arrive(path):
    sequence = parse(path.read_text(encoding="utf-8"), path.name)
    steps = tuple(piece for step in sequence.steps for piece in line_by_line(step))
    assert check(replace(sequence, steps=steps)) == check(sequence)


def line_by_line(step):
    """Split an append into its lines, and the last of them in two: each is looked at by itself."""
    if step.verb != "append":
        return [step]
    *lines, last = step.content.splitlines(keepends=True) or [b""]
    pieces = [*lines, last[: len(last) // 2], last[len(last) // 2 :]]
    return [replace(step, fields={"append": step.operand, "base64": base64.b64encode(p).decode()}) for p in pieces]


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_sequence_states_its_law_and_expects_something(path):
    sequence = parse(path.read_text(encoding="utf-8"), path.name)
    assert sequence.head["law"].endswith(".")
    assert sequence.head["title"]
    assert {"version", "origin"} <= sequence.head.keys()
    assert sequence.of("expect") or path.stem == "demo"  # which is for show
