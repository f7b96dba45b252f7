"""Laws of the merge: no order of arrival matters, and hooks never overrule what the history proves."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from island.agents import AGENTS
from island.hooks.rows import HOOKS
from island.leases import GRACE
from island.model import HOOK, Event, Kind, Reason, Session, State
from island.replay import Replay, play
from island.rules import decide, fold
from island.scene import CALLS
from island.sequence import parse
from island.sessions import NO_NEWS, Sessions

SEQUENCES = Path(__file__).parents[1] / "sequences"
FILES = [path for path in sorted(SEQUENCES.glob("*/*.jsonl")) if '"hook":' in path.read_text("utf-8")]
every_file = pytest.mark.parametrize("path", FILES, ids=[f"{p.parent.name}/{p.stem}" for p in FILES])


def test_each_agent_with_hooks_has_sequences_with_hooks():
    assert {path.parent.name for path in FILES} >= AGENTS.keys() & HOOKS.keys()


@cache
def joined(path):
    """Return all events of a sequence, as they came, and the end."""
    found = {}
    join = Sessions.join

    def note(self, agent, event):
        found.setdefault((agent.name, event.session), []).append(event)
        join(self, agent, event)

    Sessions.join = note
    try:
        sequence = parse(path.read_text("utf-8"), path.name)
        play(sequence)
    finally:
        Sessions.join = join
    return found, sequence.start + sequence.end + 1


@every_file
@given(st.randoms(use_true_random=False))
def test_any_interleaving_gives_the_same_verdict(path, random):
    found, now = joined(path)
    for (agent, ident), events in found.items():
        verdicts = []
        for order in (events, random.sample(events, len(events))):
            session = Session(agent, ident)
            for event in order:
                session = fold(session, event)
            verdicts.append(decide(session, now, 0))
        assert verdicts[0] == verdicts[1]


def late(sequence, delays):
    """Return a sequence whose calls of hooks are made when they were, but seen later."""
    delays = iter(delays)
    steps = [replace(s, at=s.at + next(delays, 0.0), fields={"made": s.at, **s.fields}) if s.verb == "hook" else s
             for s in sequence.steps if s.verb != "expect"]
    return replace(sequence, steps=tuple(sorted(steps, key=lambda s: s.at)))


def final(sequence):
    with TemporaryDirectory() as home:
        played = Replay(sequence, Path(home))
        list(played.run())
        played.observer.tick(played.now + 10)
        return {row.session: (row.verdict.state, row.verdict.reason) for row in played.observer.sessions.rows()}


@every_file
@settings(max_examples=5)
@given(st.lists(st.floats(0, 4), max_size=12))
def test_hooks_may_be_seen_as_late_as_they_like(path, delays):
    sequence = parse(path.read_text("utf-8"), path.name)
    assert final(late(sequence, delays)) == final(late(sequence, ()))


# -- what hooks may not do -----------------------------------------------------------------------------------------

GOES_ON = [(Kind.PROMPT, "user"), (Kind.PROGRESS, "model"), (Kind.PROGRESS, "retrying")]
ANY = [*GOES_ON, (Kind.ANSWER, "finished"), (Kind.END, "error"), (Kind.ASKED, "permission"), (Kind.LIVE, "idle")]


def told(at, kinds=ANY, key=HOOK, turn=""):
    return st.builds(lambda k, t: Event(k[0], "s", t, key, k[1], turn, source="hook"), st.sampled_from(kinds), at)


def history(*events):
    return [Event(Kind.OWNER, "s", 1, "7", number=1, source="process"),
            Event(Kind.PROMPT, "s", 10, word="user", turn="t1"), *events]


def verdict(events, now):
    session = Session("claude", "s")
    for event in events:
        session = fold(session, event)
    return decide(session, now, 0)


@pytest.mark.parametrize("word", [Reason.INTERRUPTED, Reason.ERROR, Reason.FINISHED])
@given(st.lists(told(st.floats(0, 30 + GRACE))), st.floats(33, 300))
def test_what_hooks_say_never_outlives_an_end_on_record(word, hooks, now):
    end = Event(Kind.END, "s", 30, word=word, turn="t1")
    said = verdict(history(end, *hooks), now)
    assert (said.state, said.reason) == (State.YOUR_TURN, word)


@given(st.lists(told(st.floats(0, 300), [*GOES_ON, (Kind.ASKED, "question")], turn="t1")))
def test_a_hook_that_names_the_turn_that_has_ended_opens_none(hooks):
    said = verdict(history(Event(Kind.END, "s", 30, word=Reason.INTERRUPTED, turn="t1"), *hooks), 400)
    assert said.reason is Reason.INTERRUPTED


@given(st.lists(told(st.floats(0, 60), [(Kind.PROGRESS, "model")], key=f"{HOOK}:child")),
       st.sampled_from([(), (Event(Kind.END, "s", 30, word=Reason.FINISHED),),
                        (Event(Kind.OPENED, "s", 20, "c", "tool"),)]))
def test_a_child_never_touches_the_main_turn(hooks, more):
    assert verdict(history(*more, *hooks), 70) == verdict(history(*more), 70)


@given(st.floats(11, 50), st.floats(0.6, 50), st.sampled_from(["progress", "end", "hook", "prompt", "process"]))
def test_a_permission_is_closed_by_any_later_progress(at, later, what):
    ask = Event(Kind.ASKED, "s", at, HOOK, "permission")
    after = {
        "progress": Event(Kind.PROGRESS, "s", at + later, word=Reason.MODEL),
        "end": Event(Kind.END, "s", at + later, word=Reason.FINISHED),
        "hook": Event(Kind.PROGRESS, "s", at + later, HOOK, Reason.MODEL),
        "prompt": Event(Kind.PROMPT, "s", at + later, word="user", turn="t2"),
        "process": Event(Kind.ALONE, "s", at + later, word="no"),
    }[what]
    assert verdict(history(ask), at + later).reason is Reason.PERMISSION
    assert verdict(history(ask, after), at + later + 1).reason is not Reason.PERMISSION


@given(st.floats(11, 50), st.floats(0, 0.4))
def test_the_record_of_the_call_itself_closes_no_permission(at, later):
    ask, call = Event(Kind.ASKED, "s", at, HOOK, "permission"), Event(Kind.PROGRESS, "s", at + later, word=Reason.TOOL)
    assert verdict(history(ask, call), at + 5).reason is Reason.PERMISSION


# -- recorded calls ------------------------------------------------------------------------------------------------

HEAD = {"sequence": 1, "title": "t", "law": "L.", "agent": "codex", "start": "2026-11-30T09:00:00Z"}
ROLLOUT = "~/.codex/sessions/2026/11/30/rollout-2026-11-30T09-00-00-01a22d40-0001-7001-8a00-000000000001.jsonl"
THREAD = "01a22d40-0001-7001-8a00-000000000001"


def recorded(*calls, verb="append", **fields):
    started = [{"timestamp": "2026-11-30T09:00:01Z", "type": kind, "payload": payload} for kind, payload in (
        ("session_meta", {"id": THREAD, "source": "cli"}), ("event_msg", {"type": "task_started", "turn_id": "t1"}))]
    steps = [{"at": 1, "append": ROLLOUT, "records": started},
             *({"at": 2 + n, verb: CALLS, "text": call, **fields} for n, call in enumerate(calls))]
    return parse("\n".join(json.dumps(line) for line in [HEAD, *steps]))


ASK = {"session_id": THREAD, "turn_id": "t1", "tool_name": "Bash", "tool_input": {"command": "x"}}


def states(sequence, **how):
    return [line["reason"] for line in play(sequence, **how) if line.get("session") == THREAD and "state" in line]


@pytest.mark.parametrize("payload", ["stdin", "data"])
@pytest.mark.parametrize("verb", ["append", "write"])
def test_recorded_calls_are_seen_if_they_are_asked_for(payload, verb):
    sequence = recorded(json.dumps({"event": "PermissionRequest", payload: ASK}) + "\n", verb=verb)
    assert states(sequence) == ["model"]
    assert states(sequence, hooks=True) == ["model", "permission"]


@pytest.mark.parametrize("call", ["torn", '{"event": "PermissionRequest"', '{"event": 7, "data": {}}', "[]", "7",
                                  '{"event": "PreToolUse", "data": {"session_id": "x"}}'])
def test_what_is_no_call_of_islands_is_passed_over(call):
    assert states(recorded(call + "\n"), hooks=True) == ["model"]


def test_calls_from_before_the_start_are_not_made_again():
    call = json.dumps({"event": "PermissionRequest", "data": ASK}) + "\n"
    assert states(recorded(call, verb="write", baseline=True), hooks=True) == ["model"]


# -- hooks that fell silent ----------------------------------------------------------------------------------------


def blind(*events):
    sessions = Sessions(AGENTS, 0)
    for event in events:
        sessions.join(AGENTS["claude"], event)
    sessions.settle(200, lambda _agent, _session: None)
    return {row.session: NO_NEWS in row.blind for row in sessions.rows()}


def turn(session, began, ended, word="", hook=0.0):
    yield Event(Kind.PROMPT, session, began, word="user")
    yield Event(Kind.END, session, ended, word=word)
    if hook:
        yield Event(Kind.ANSWER, session, hook, HOOK, Reason.FINISHED)


def test_a_turn_without_hooks_after_one_with_them_is_told():
    assert blind(*turn("a", 10, 20, hook=20)) == {"a": False}
    assert blind(*turn("a", 10, 20, hook=20), *turn("a", 50, 60)) == {"a": True}
    assert blind(*turn("a", 10, 20, hook=20), *turn("b", 50, 60)) == {"a": False, "b": True}


def test_who_never_had_hooks_or_had_none_then_is_not_told_of_them():
    assert blind(*turn("a", 10, 20)) == {"a": False}
    assert blind(*turn("a", 10, 20), *turn("b", 50, 60, hook=60)) == {"a": False, "b": False}


@pytest.mark.parametrize("word", [Reason.INTERRUPTED, Reason.ERROR])
def test_a_turn_that_stopped_short_need_not_have_had_any(word):
    assert blind(*turn("a", 10, 20, hook=20), *turn("a", 50, 60, word)) == {"a": False}


def test_a_turn_that_runs_has_had_none_yet():
    assert blind(*turn("a", 10, 20, hook=20), Event(Kind.PROMPT, "a", 50, word="user")) == {"a": False}


# -- runs that hooks alone tell of -----------------------------------------------------------------------------------


EXEC = {"pid": 7, "ppid": 1, "name": "codex", "cmdline": ["codex", "exec", "--ephemeral", "x"], "cwd": "/home/dev/app"}


@pytest.mark.parametrize("process", [False, True])
@pytest.mark.parametrize("late", [0, 3600])
def test_a_run_that_nobody_wrote_down_is_no_session(process, late):
    steps = [{"at": 1, "process": EXEC}] if process else []
    steps += [{"at": 2 + late, "hook": "PermissionRequest", "stdin": {**ASK, "session_id": "s9"}, "made": 2},
              {"at": 3 + late, "hook": "Stop", "stdin": {"session_id": "s9", "turn_id": "t1"}, "made": 3},
              {"at": 9 + late, "note": "the end"}]
    sequence = parse("\n".join(json.dumps(line) for line in [HEAD, *steps]))
    assert not [line for line in play(sequence) if line.get("session") == "s9" or "notice" in line]
