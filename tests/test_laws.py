"""Laws that hold for any evidence, in any order, at any time."""

import json
import os
from dataclasses import replace
from functools import cache, reduce
from itertools import pairwise
from math import inf, nextafter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from island.agents import AGENTS
from island.agents.claude import read_transcript
from island.manner import Ear
from island.model import (
    AFRESH,
    FACTS,
    KEYLESS,
    Event,
    Kind,
    Reason,
    Record,
    Role,
    Row,
    Session,
    State,
    Sure,
    Verdict,
    place,
)
from island.notices import FRESH, MANY, Book, Notice, Withdraw, about, advance, key_of
from island.observer import Observer
from island.quiet import Hush
from island.rules import TURN_BOUND, URGENCY, collapse, decide, fold, lift
from island.scene import RecordedTable
from island.sequence import parse
from island.view import view

SEQUENCES = Path(__file__).parent.parent / "sequences"
START = 1_796_000_000.0
THREAD = "01a22d40-ffff-7fff-8a00-ffffffffffff"
ROLLOUT = f".codex/sessions/2026/11/30/rollout-2026-11-30T09-00-00-{THREAD}.jsonl"
WORKING = ("model", "tool", "compacting", "retrying")
HAND_BACKS = ("", "finished", "question", "plan", "error", "limit", "login", "interrupted")
ASKS = ("permission", "question", "plan")

# -- evidence ----------------------------------------------------------------------------------------------

#: What each kind of event may carry: keys, words.
VOCABULARY = {
    Kind.FACT: (FACTS, ("", "a", "b")),
    Kind.PROMPT: (("", KEYLESS), ("user", "agent", "task")),
    Kind.PROGRESS: (("", KEYLESS), WORKING),
    Kind.ANSWER: (("", KEYLESS), HAND_BACKS),
    Kind.END: (("", AFRESH), HAND_BACKS),
    Kind.PLANNED: (("t1", "t2"), ("",)),
    Kind.LIVE: (("busy", "idle", "shell", *ASKS), ()),
    Kind.OWNER: (("1", "2"), ("",)),
    Kind.GONE: (("1", "2"), ("exit", "closed", "left")),
    Kind.ATTACHED: (("1", "2"), ("",)),
    Kind.STOPPED: (("1", "2"), ("yes", "no")),
    Kind.ALONE: (("",), ("yes", "no")),
}
#: A span's key belongs to one kind of span for good.
SPANS = {
    "c1": ("tool", "shell-tool", "instant-tool", "judged-tool", "escalation"), "c2": ("question", "plan", "permission"),
    "c3": ("question", "permission", "escalation"),
    KEYLESS: ("unrecorded",), "task:1": ("shell",), "child": ("child",), "process:c1": ("process",),
    "command:1": ("command",),
    "trust": ("trust",),
}
times = st.integers(0, 40).map(lambda n: START + n / 2) | st.sampled_from([START + 900, START + 50_000])


@st.composite
def events(draw, kinds=(*VOCABULARY, Kind.OPENED, Kind.CLOSED), times=times):
    kind = draw(st.sampled_from(kinds))
    if kind in (Kind.OPENED, Kind.CLOSED):
        key = draw(st.sampled_from(sorted(SPANS)))
        word = draw(st.sampled_from(SPANS[key]))
    else:
        keys, words = VOCABULARY[kind]
        key = draw(st.sampled_from(keys))
        word = draw(st.sampled_from(words)) if words else key
    return Event(
        kind, "s", draw(times), key, word, draw(st.sampled_from(["", "t1", "t2"])),
        draw(st.sampled_from(["", "1", "2"])), draw(st.sampled_from([-1, 0, 1, START + 5])),
        draw(st.integers(0, 2)),
    )


@st.composite
def wild_events(draw):
    """Any kind with any key and any word, as no reader would put them together."""
    words = ["", "yes", "user", "child", "shell", "process", "finished", *sorted(TURN_BOUND)]
    return Event(
        draw(st.sampled_from([Kind.OPENED, Kind.CLOSED, Kind.PROMPT, *VOCABULARY])), "s", draw(times),
        draw(st.sampled_from(["", KEYLESS])), draw(st.sampled_from(words)),
        draw(st.sampled_from(["", "t1"])), order=draw(st.integers(0, 2)),
        number=draw(st.sampled_from([-1.0, 0.0, 1.0])),
    )


@st.composite
def histories(draw):
    """The events of some turns as an agent writes them: calls that open and close, plans, ends, late records."""
    found, at, order = [], START, 0

    def say(kind, key="", word="", turn="", text=""):
        nonlocal order
        order += 1
        found.append(Event(kind, "s", at, key, word, turn, text, order=order))

    for number in range(draw(st.integers(1, 4))):
        turn = f"t{number}"
        say(Kind.PROMPT, word=draw(st.sampled_from(["user", "agent"])), turn=turn)
        for call in range(draw(st.integers(0, 3))):
            at += draw(st.sampled_from([0.0, 0.001, 0.5, 30.0]))
            word = draw(st.sampled_from(["tool", "shell-tool", "instant-tool", "question", "escalation"]))
            say(Kind.OPENED, f"{turn}c{call}", word, turn)
            say(Kind.PROGRESS, word="tool", turn=turn)
            at += draw(st.sampled_from([0.001, 3.0, 60.0]))
            if draw(st.booleans()):
                say(Kind.CLOSED, f"{turn}c{call}", "tool", turn)
                say(Kind.PROGRESS, word="model", turn=turn)
        at += 1.0
        if draw(st.booleans()):
            say(Kind.PLANNED, turn)
        if draw(st.integers(0, 3)):
            say(Kind.END, word=draw(st.sampled_from(HAND_BACKS)), turn=turn)
            at += draw(st.sampled_from([0.001, 1.0, 60.0]))
            if draw(st.booleans()):
                say(Kind.PROGRESS, word="model", turn=draw(st.sampled_from([turn, ""])))
        at += draw(st.sampled_from([0.05, 10.0]))
    return found


def folded(found, session=None):
    session = session or Session("claude", "s")
    for event in found:
        session = fold(session, event)
    return session


@st.composite
def shuffled(draw, found):
    """Give events back in another order, some of them twice."""
    once = draw(found)
    again = draw(st.lists(st.sampled_from(once), max_size=5)) if once else []
    return once, draw(st.permutations(once + again))


# -- fold --------------------------------------------------------------------------------------------------


@given(shuffled(histories()))
def test_order_and_repetition_do_not_matter_to_a_history(pair):
    straight, mixed = pair
    assert folded(mixed).registers == folded(straight).registers


@given(shuffled(st.lists(events(), max_size=12)))
def test_order_and_repetition_do_not_matter_to_any_evidence(pair):
    straight, mixed = pair
    assert folded(mixed).registers == folded(straight).registers


@given(shuffled(st.lists(wild_events(), max_size=10)))
def test_order_and_repetition_do_not_matter_even_to_nonsense(pair):
    straight, mixed = pair
    assert folded(mixed).registers == folded(straight).registers


@given(st.lists(events(), max_size=12), st.lists(events(), max_size=6))
def test_evidence_that_is_known_changes_nothing(found, more):
    session = folded(found + more)
    assert folded(found, session) is session


# -- decide ------------------------------------------------------------------------------------------------


@given(st.lists(events(), max_size=14) | histories(), times, st.sampled_from([0.0, START + 3, START + 1000]),
       st.floats(0, 1, exclude_max=True))
def test_a_verdict_holds_exactly_until_it_says(found, now, since, part):
    session = folded(found)
    verdict = decide(session, now, since)
    assert verdict.until > now
    moment = min(now + min(verdict.until - now, 1e6) * part, nextafter(verdict.until, now))
    meanwhile = decide(session, moment, since)
    assert (meanwhile.state, meanwhile.reason, meanwhile.turn) == (verdict.state, verdict.reason, verdict.turn)
    assert meanwhile.until == verdict.until
    if verdict.until < inf:
        after = decide(session, verdict.until, since)
        assert (after.state, after.reason) != (verdict.state, verdict.reason)
        assert after.until > verdict.until


@given(st.lists(events(), max_size=14), times)
def test_every_session_comes_to_rest(found, now):
    session, moment = folded(found), now
    for _ in range(10):
        verdict = decide(session, moment, 0.0)
        if verdict.until == inf:
            break
        moment = verdict.until
    assert verdict.until == inf
    assert verdict.state in (State.IDLE, State.STALLED)


few = st.sampled_from([START, START + 2])


@given(st.lists(events(times=few) | events((Kind.OPENED, Kind.ATTACHED, Kind.OWNER), few), max_size=9), few, times)
def test_a_verdict_depends_on_the_evidence_alone_not_on_how_it_lies(found, now, since):
    session = folded(found)
    turned = reduce(Session.put, reversed(list(session.events())), Session(session.agent, session.id))
    assert decide(session, now, since) == decide(turned, now, since)


# -- subagents ---------------------------------------------------------------------------------------------

verdicts = st.builds(
    Verdict, st.sampled_from(State), st.sampled_from(Reason), st.sampled_from(Sure), times, times,
    st.sampled_from(["", "t1", "c1"]),
)


NEWEST = Event(Kind.PROMPT, "s", START + 3000, word="user", turn="t9")
late = st.lists(events(kinds=(Kind.FACT, Kind.OPENED, Kind.CLOSED, Kind.PROGRESS)), max_size=6)
running = st.builds(lambda before, after: [*before, NEWEST, *after], histories(), late)
children = st.lists(st.tuples(st.sampled_from([Kind.OPENED, Kind.CLOSED]), times, st.sampled_from("ab")), max_size=6)


@given(running, st.lists(verdicts, min_size=1, max_size=4), st.sampled_from([START + 3001, START + 8000]))
def test_a_subagent_never_ends_its_parents_turn(found, told, now):
    parent = folded(found)
    assert view(parent).over is None
    for number, verdict in enumerate(told):
        parent = folded(lift(Session("codex", f"child{number % 2}"), verdict, "s"), parent)
        assert view(parent).over is None
        assert decide(parent, now, 0.0).reason is not Reason.FINISHED


@given(running, children)
def test_a_subagents_start_or_end_changes_nothing_while_the_turn_runs(found, told):
    parent = folded(found)
    told = folded([Event(kind, "s", at, key, "child") for kind, at, key in told], parent)
    assert decide(told, START + 3001, 0.0) == decide(parent, START + 3001, 0.0)


@given(st.sampled_from(["user", "assistant", "system"]), st.dictionaries(st.text(max_size=8), st.text(max_size=8)))
def test_a_sidechain_line_says_nothing(kind, more):
    line = json.dumps({**more, "type": kind, "isSidechain": True, "sessionId": "s"}).encode()
    assert list(read_transcript(Record("/p/s.jsonl", line))) == []


# -- notices -----------------------------------------------------------------------------------------------


@st.composite
def rows(draw, since=times):
    state = draw(st.sampled_from([State.YOUR_TURN, State.YOUR_TURN, State.YOUR_TURN, State.WORKING, State.IDLE]))
    verdict = Verdict(
        state, draw(st.sampled_from([Reason.FINISHED, Reason.QUESTION, Reason.PERMISSION, Reason.ERROR,
                                     Reason.INTERRUPTED])),
        draw(st.sampled_from(Sure)), draw(since), inf, draw(st.sampled_from(["", "t1", "t2", "t3"])),
    )
    role, seen = draw(st.sampled_from([Role.PERSON] * 5 + [Role.CHILD])), draw(st.sampled_from([False] * 5 + [True]))
    return Row(draw(st.sampled_from(["claude", "codex"])), draw(st.sampled_from("abcdefg")), verdict, role, seen=seen)


@st.composite
def frames(draw, since=times):
    """Some moments in order of time, each with what is shown then; a turn's key names its session too."""
    now, found = START, []
    for _ in range(draw(st.integers(1, 8))):
        now += draw(st.sampled_from([0.0, 0.1, 1.0, 1.5, 2.5, 20.0, 700.0]))
        shown = {key_of(r): r for r in draw(st.lists(rows(since), max_size=8))}
        found.append((now, [_keyed(r) for r in shown.values()]))
    return found


def _keyed(row):
    turn = row.verdict.turn and f"{row.agent}-{row.session}-{row.verdict.turn}"
    return replace(row, verdict=replace(row.verdict, turn=turn))


def played(found, book):
    """Yield, for each moment and each end of a dwell between, the rows, the book and what was said."""
    for (at, shown), (until, _) in pairwise([*found, (found[-1][0] + 3, [])]):
        now = at
        while True:
            book, said = advance(book, shown, now)
            yield now, shown, book, said
            if book.due >= until:
                break
            now = book.due


@given(frames(since=st.just(START - 1) | times.map(lambda t: t - 60_000)))
def test_first_sight_never_interrupts(found):
    for _, _, _, said in played(found, Book(since=START)):
        assert not [n for n in said if isinstance(n, Notice)]


@given(frames())
def test_old_evidence_never_interrupts(found):
    for now, shown, _, said in played(found, Book(since=0.0)):
        since = {r.session: max(o.verdict.since for o in shown if o.session == r.session) for r in shown}
        assert all(since[s] >= now - FRESH - 3 for n in said if isinstance(n, Notice) for s in n.sessions)


@given(frames())
def test_one_notice_for_each_turn_and_reason(found):
    told = []
    for _, shown, _, said in played(found, Book(since=0.0)):
        matters = {(r.agent, r.session): about(r) for r in shown}
        for notice in (n for n in said if isinstance(n, Notice)):
            told += [matters[a, s] for a, s in matters if s in notice.sessions and _speaks(notice, a, s)]
    assert len(told) == len(set(told))


# A wait that stays is told while nothing is quiet, or when it no more is: once, and never in between.

spans = st.lists(st.tuples(st.sampled_from(["away", "snoozed", "muted", "loud"]), st.sampled_from([1.0, 9.0, 3000.0])),
                 max_size=5)


def heard(kind, now):
    """Return an ear for a span of a kind that begins now."""
    hush = Hush(snoozed=now + 86400) if kind == "snoozed" else Hush(projects=("p",)) if kind == "muted" else Hush()
    return Ear(hush=hush, away=kind == "away")


@given(spans, st.integers(1, 6), st.sampled_from(Sure), st.sampled_from([0.0, 4.0]))
def test_what_is_missed_is_told_once_when_it_may_be(found, count, sure, apart):
    waiting = [(START + apart * i, Row("codex", f"s{i}", Verdict(
        State.YOUR_TURN, Reason.FINISHED, sure, START + apart * i, inf, f"t{i}"), project="p")) for i in range(count)]
    book, now, told = Book(since=0.0), START, []
    for kind, span in [*found, ("loud", 60.0)]:
        ear, until = heard(kind, now), now + span
        while now < until:
            book, said = advance(book, [row for at, row in waiting if at <= now], now, ear)
            told += [(kind, session) for notice in said if isinstance(notice, Notice) for session in notice.sessions]
            now = min([until, *(m for m in (book.due, *(at for at, _ in waiting)) if m > now)])
    assert {kind for kind, _ in told} <= {"loud"}
    assert len({session for _, session in told}) == len(told)
    if not any(kind == "muted" for kind, _ in found):  # what is muted once has been passed over
        assert len(told) == count


def waits(row):
    verdict = row.verdict
    loud = verdict.state is State.YOUR_TURN and verdict.reason is not Reason.INTERRUPTED
    return loud and row.role is Role.PERSON and not row.seen


def _speaks(notice, agent, session):
    return notice.key == f"{agent}/{session}" or notice.key.startswith(MANY)


@given(st.integers(1, 12), st.lists(st.sampled_from(Sure), min_size=12, max_size=12))
def test_no_notice_is_lost_when_many_ripen(count, sure):
    shown = [Row("codex", f"s{i}", Verdict(State.YOUR_TURN, Reason.FINISHED, sure[i], START, inf, f"t{i}"))
             for i in range(count)]
    told = []
    for _, _, _, said in played([(START, shown)], Book(since=0.0)):
        told += [s for n in said if isinstance(n, Notice) for s in n.sessions]
    assert sorted(told) == sorted(r.session for r in shown)


@given(frames())
def test_nobody_is_told_of_machines_children_interrupts_or_what_was_seen(found):
    for _, shown, _, said in played(found, Book(since=0.0)):
        loud = {r.session for r in shown if waits(r)}
        assert all(set(n.sessions) <= loud for n in said if isinstance(n, Notice))


@given(frames())
def test_every_notice_is_withdrawn_or_replaced_once_its_wait_is_over(found):
    screen = {}
    for _, shown, book, said in played([*found, (found[-1][0] + 30, [])], Book(since=0.0)):
        matters = {key_of(r): about(r) for r in shown if waits(r)}
        for change in said:
            if isinstance(change, Withdraw):
                assert change.key in screen
                del screen[change.key]
            else:
                screen[change.key] = {k: m for k, m in matters.items() if k.partition("/")[2] in change.sessions
                                      and (change.key == k or change.key.startswith(MANY))}
        for spoken in screen.values():
            assert any(matters.get(k) == m or k in book.dwelling for k, m in spoken.items())
    assert not screen


# -- collapse ----------------------------------------------------------------------------------------------


@given(st.lists(rows(), max_size=8).flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_the_icon_is_a_maximum(pair):
    straight, mixed = pair
    assert collapse(mixed) == collapse(straight)
    mine = [(r.verdict.state, r.seen) for r in straight if r.role is Role.PERSON]
    first = min(mine, key=URGENCY.index, default=(State.IDLE, False))
    assert collapse(straight)[0] is first[0]


# -- readers -----------------------------------------------------------------------------------------------

SOURCES = [(source, f"/h/{source.pattern.replace('*', '0123456789abcdef0123456789abcdef0123')}")
           for agent in AGENTS.values() for source in agent.sources]


@cache
def samples():
    """Return records of all agents as they write them, from the sequences, with their sources' patterns."""
    found = []
    for path in sorted(SEQUENCES.glob("*/*.jsonl")):
        for step in parse(path.read_text(encoding="utf-8"), path.name).steps:
            if step.verb in ("append", "write"):
                found += [(step.operand, line) for line in step.content.split(b"\n") if line and len(line) < 4000]
    return found[:: max(1, len(found) // 400)]


numbers = st.integers(-(2**63), 2**64) | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | st.text(max_size=5)
values = st.recursive(leaves, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3),
                      max_leaves=6)


@st.composite
def mutated(draw):
    """A real-looking record, some of whose values, types or keys are not what they should be."""
    path, line = draw(st.sampled_from(samples()))
    try:
        value = json.loads(line)
    except ValueError:
        return path, line
    for _ in range(draw(st.integers(1, 4))):
        value = _mutate(draw, value)
    return path, json.dumps(value, allow_nan=False).encode("utf-8", "surrogatepass")


def _mutate(draw, value):
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        match draw(st.sampled_from(["inside", "inside", "inside", "without", "renamed"])):
            case "inside":
                return {**value, key: _mutate(draw, value[key])}
            case "without":
                return {k: v for k, v in value.items() if k != key}
            case _:
                return {**value, draw(st.sampled_from(sorted(value)) | st.text(max_size=5)): value[key]}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _mutate(draw, value[place]), *value[place + 1 :]]
    return draw(values)


def read(source, path, data):
    try:
        found = list(source.read(Record(path, data, mtime=START)))
    except ValueError:
        return
    assert all(isinstance(e, Event) and isinstance(e.at, float | int) and isinstance(e.key, str) for e in found)
    assert all(type(e.word) is str or isinstance(e.word, str) for e in found)


@pytest.mark.parametrize(("source", "path"), SOURCES, ids=[source.pattern for source, _ in SOURCES])
@given(data=st.binary(max_size=60) | values.map(lambda v: json.dumps(v).encode("utf-8", "replace")))
def test_a_reader_raises_nothing_but_value_errors_on_any_bytes(source, path, data):
    read(source, path, data)


@given(mutated())
def test_a_reader_raises_nothing_but_value_errors_on_damaged_records(record):
    path, data = record
    for source, _ in SOURCES:
        read(source, path, data)


# -- the observer ------------------------------------------------------------------------------------------


def observer(home, now):
    homes = {name: agent.home({}, home) for name, agent in AGENTS.items()}
    return Observer(homes, RecordedTable(frozenset()), now)


def write(path, data, now, mode="ab"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open(mode) as file:
        file.write(data)
    os.utime(path, (now, now))


LIVE = "~/.claude/sessions/7.json"


@given(st.lists(mutated(), min_size=1, max_size=6))
@example([(LIVE, b'{"pid": true, "sessionId": "x"}')])
@example([(LIVE, b'{"pid": -5, "sessionId": "x", "startedAt": 1e300, "status": "busy"}')])
@example([(LIVE, b'{"pid": 7, "sessionId": "x", "statusUpdatedAt": -1e300, "status": "busy"}')])
def test_whatever_files_hold_the_observer_tells_of_the_others(records):
    with TemporaryDirectory() as home:
        looks = observer(home, START)
        good = Path(home, ROLLOUT)
        write(good, rollout(["start"]), START)
        for path, data in records:
            bad = Path(home, path[2:])
            write(bad, data + b"\n", START, "wb" if bad.suffix == ".json" else "ab")
            looks.changed([str(good), str(bad)], START + 2)
        looks.tick(START + 3)
        shown = {row.session: row.verdict.state for row in looks.snapshot(START + 3).rows}
        assert shown[THREAD] is State.WORKING


scripts = st.lists(st.sampled_from(["start", "call", "escalate", "output", "plan", "end", "ask?", "error", "abort",
                                    "late", "huge", "new kind", "torn"]), max_size=14)


def rollout(script):
    """Return a rollout: a line for each word of the script, a second apart."""
    lines, turn = [_line(0, "session_meta", id=THREAD, cwd="/home/dev/app", source="vscode", originator="codex-tui")], 0
    for number, step in enumerate(script, 1):
        turn += step == "start"
        lines.append(_step(number, step, f"t{turn}", f"c{number}"))
    return b"".join(lines)


def _step(at, step, turn, call):
    kind, inner, payload = STEPS[step]
    named = {"call_id": call if inner == "function_call" else f"c{at - 1}"} if kind == "response_item" else {}
    passed = {"internal_chat_message_metadata_passthrough": {"turn_id": turn}}
    if kind == "torn":
        return b'{"type": "event_msg", "payl\n'
    return _line(at, kind, inner, **{"turn_id": turn, **passed, **named, **payload})


ESCALATED = json.dumps({"cmd": "make", "sandbox_permissions": "require_escalated"})
STEPS = {
    "start": ("event_msg", "task_started", {}),
    "call": ("response_item", "function_call", {"name": "exec_command", "arguments": '{"cmd": "make"}'}),
    "escalate": ("response_item", "function_call", {"name": "exec_command", "arguments": ESCALATED}),
    "output": ("response_item", "function_call_output", {"output": ""}),
    "plan": ("event_msg", "item_completed", {"item": {"type": "Plan"}}),
    "end": ("event_msg", "task_complete", {"last_agent_message": None}),
    "ask?": ("event_msg", "task_complete", {"last_agent_message": "So?"}),
    "error": ("event_msg", "task_complete", {"error": {"codex_error_info": "other"}}),
    "abort": ("event_msg", "turn_aborted", {}),
    "late": ("event_msg", "item_completed", {"item": {"type": "CommandExecution"}, "turn_id": "t1"}),
    "huge": ("compacted", None, {"message": "ä" * 9000}),
    "new kind": ("brand_new", None, {}),
    "torn": ("torn", None, {}),
}


def _line(at, kind, inner=None, **payload):
    payload = {"type": inner, **payload} if inner else payload
    stamp = f"2026-11-30T00:53:{20 + at:02d}.000Z"  # START is at 20
    return json.dumps({"timestamp": stamp, "type": kind, "payload": payload}, ensure_ascii=False).encode() + b"\n"


@given(scripts, st.lists(st.integers(1, 400), max_size=30))
def test_a_file_read_in_pieces_tells_what_it_tells_at_once(script, sizes):
    data, now = rollout(script), START + 60
    with TemporaryDirectory() as home:
        path = Path(home, ROLLOUT)
        write(path, b"", now)
        pieces = observer(home, START)
        pieces.sweep(now)
        for size in [*sizes, len(data)]:
            write(path, data[:size], now)
            data = data[size:]
            pieces.changed([str(path)], now)
        whole = observer(home, START)
        whole.sweep(now)
        some, all_ = (set(o.sessions.held["codex", THREAD].events()) for o in (whole, pieces))
        began = pieces.sessions.held["codex", THREAD].get(Kind.PROMPT)
        assert some <= all_  # a look back spares itself what came before the newest turn
        assert all(began and place(event) < place(began) for event in all_ - some)
        assert shown_by(whole, now) == shown_by(pieces, now)
        assert shown_by(whole, now + 3600) == shown_by(pieces, now + 3600)


def shown_by(looks, now):
    looks.tick(now)
    return [(r.session, r.verdict, r.role, r.project) for r in looks.snapshot(now).rows]


@given(scripts, st.lists(st.integers(1, 400), max_size=30))
def test_pieces_of_any_size_give_the_same_registers(script, sizes):
    whole, now, held = rollout(script), START + 60, []
    for cuts in ([], sizes):
        with TemporaryDirectory() as home:
            path, data = Path(home, ROLLOUT), whole
            write(path, b"", now)
            looks = observer(home, START)
            looks.sweep(now)
            for size in [*cuts, len(data)]:
                write(path, data[:size], now)
                data = data[size:]
                looks.changed([str(path)], now)
            held.append(looks.sessions.held["codex", THREAD].registers)
    assert held[0] == held[1]
