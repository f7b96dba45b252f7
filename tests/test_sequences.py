"""The specification by example: every sequence file replays to what its `expect` lines say.

`pytest tests/test_sequences.py --rewrite` writes into the `expect` lines what island says now, for a reader to judge.
"""

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from island.agents import AGENTS
from island.model import Reason, Role, State, Sure
from island.replay import Replay, check, play
from island.sequence import Sequence1, SequenceError, parse

SEQUENCES = Path(__file__).parent.parent / "sequences"
FILES = sorted(SEQUENCES.glob("*/*.jsonl"))
FLEET = "fleet"  # sequences of several agents at once
DEMO = SEQUENCES / FLEET / "demo.jsonl"  # to be looked at, in any build of island

every_sequence = pytest.mark.parametrize("path", FILES, ids=[f"{p.parent.name}/{p.stem}" for p in FILES])


def read(path: Path) -> Sequence1:
    return parse(path.read_text("utf-8"), f"{path.parent.name}/{path.name}")


# -- the files -----------------------------------------------------------------------------------------------


@every_sequence
def test_a_sequence_states_its_law_and_expects_something(path):
    sequence = read(path)
    law = sequence.head["law"]
    assert re.fullmatch(r"[A-Z`][^\n]+\.", law), "the law is one sentence"
    assert sequence.head["title"]
    assert path.parent.name == FLEET or path.parent.name == sequence.head["agent"]
    assert sequence.of("expect") or path == DEMO


@every_sequence
def test_a_sequence_holds_no_path_of_a_real_home(path):
    assert not re.search(r"/home/(?!dev\b)|/Users/|\\Users\\", path.read_text("utf-8"))


@pytest.mark.parametrize(("folder", "least"), [(name, 10) for name in (*AGENTS, FLEET)])
def test_there_are_enough_sequences(folder, least):
    assert len(list((SEQUENCES / folder).glob("*.jsonl"))) >= least


# -- what they replay to ---------------------------------------------------------------------------------------


@every_sequence
def test_a_sequence_replays_as_expected(path, request):
    if request.config.getoption("--rewrite"):
        rewrite(path)
    assert not check(read(path))


@every_sequence
def test_a_timeline_has_the_documented_form(path):
    timeline = json.loads(json.dumps(play(read(path))))
    for line in timeline:
        assert form(line), line
    times = [line["at"] for line in timeline]
    assert times == sorted(times)
    assert all(at >= 0 for at in times)


def form(line):
    """Tell whether a line of a timeline is one of the four that there are."""
    match line:
        case {"session": str(), "agent": agent, "state": state, "reason": reason, "sure": sure, "why": str(), **rest}:
            known = agent in AGENTS and state in set(State) and reason in set(Reason) and sure in set(Sure)
            return known and set(rest) <= {"at", "kind"} and rest.get("kind") in (None, Role.MACHINE, Role.CHILD)
        case {"at": _, "icon": state, **rest}:
            return state in set(State) and not rest
        case {"at": _, "notice": {"session": str(), "reason": reason, "title": str(), **more}, **rest}:
            return reason in set(Reason) and not rest and set(more) <= {"sessions"}
        case {"at": _, "withdraw": {"session": str(), **more}, **rest}:
            return not rest and not more
        case _:
            return False


# -- writing the expect lines anew -----------------------------------------------------------------------------


class Teller(Replay):
    """A replay that keeps what island says where an `expect` line says something else."""

    def __init__(self, sequence, home):
        super().__init__(sequence, home)
        self.said = {}

    def _compare(self, step, heard):
        wrong = [who for who, want in step.operand.items()
                 if list(super(Teller, self)._compare(replace(step, operand={who: want}), heard))]
        if wrong:
            self.said[step.line] = {who: self._have(who, heard) for who in wrong}
        return iter(())


def rewrite(path):
    """Write what island says now into the `expect` lines that differ; touch no other line. Return how many."""
    text = path.read_text("utf-8")
    sequence = parse(text, path.name)
    with TemporaryDirectory() as home:
        teller = Teller(sequence, Path(home))
        list(teller.run())
    lines = text.split("\n")
    for number, said in teller.said.items():
        step = json.loads(lines[number - 1])
        step["expect"] |= said
        lines[number - 1] = json.dumps(step, ensure_ascii=False)
    if teller.said:
        path.write_text("\n".join(lines), "utf-8")
    return len(teller.said)


HEAD = '{"sequence": 1, "title": "t", "law": "L.", "agent": "claude", "start": "2026-11-30T09:00:00Z"}'
LIVE = (
    '{"at": 1, "write": "~/.claude/sessions/7.json", "records": [{"pid": 7, "sessionId": "s1", "entrypoint": "cli",'
    ' "startedAt": 1796029200000,   "status": "busy", "statusUpdatedAt": 1796029200000}]}'
)


def test_rewriting_changes_expect_lines_alone_and_only_what_differs(tmp_path):
    path = tmp_path / "s.jsonl"
    right = '{"at": 2,  "expect": {"s1": "working(model)", "icon": "working"}}'
    wrong = '{"at": 3, "expect": {"s1": "idle(new)", "icon": "working", "notices": []}}'
    path.write_text(f"{HEAD}\n{LIVE}\n{right}\n{wrong}\n")
    assert rewrite(path) == 1
    said = '{"at": 3, "expect": {"s1": "working(model)", "icon": "working", "notices": []}}'
    assert path.read_text() == f"{HEAD}\n{LIVE}\n{right}\n{said}\n"
    assert rewrite(path) == 0


def test_rewriting_refuses_a_malformed_file(tmp_path):
    path = tmp_path / "s.jsonl"
    wrong, earlier = '{"at": 2, "expect": {"s1": "idle(new)"}}', '{"at": 1, "expect": {}}'
    text = f"{HEAD}\n{LIVE}\n{wrong}\n{earlier}"
    path.write_text(text)
    with pytest.raises(SequenceError, match=r"s\.jsonl:4: time goes back"):
        rewrite(path)
    assert path.read_text() == text


def test_rows_make_what_they_name_and_change_no_more_than_that():
    def rows(at, **row):
        return {"at": at, "rows": "~/a/store.db", "tables": {"turn": [row]}}

    steps = [rows(1, id="t1", data={"time": {"begun": 1}}, text="x"), rows(2, id="t1", data={"time": {"ended": 2}}),
             rows(3, id="t2", other=[1])]
    head = {"sequence": 1, "agent": "claude", "start": "2026-11-30T09:00:00Z"}
    with TemporaryDirectory() as folder:
        replay = Replay(parse("\n".join(map(json.dumps, [head, *steps]))), Path(folder))
        assert list(replay.run()) == []
        with closing(sqlite3.connect(replay.scene.path("~/a/store.db"))) as connection:
            assert connection.execute("select id, json(data), text, other from turn order by id").fetchall() == [
                ("t1", '{"time":{"begun":1,"ended":2}}', "x", None), ("t2", None, None, "[1]")]
