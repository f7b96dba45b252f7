"""What the registers of a session claim, how long it holds, and what the icon makes of it."""

from dataclasses import replace
from math import inf

import pytest

from island import model
from island.agents import AGENTS
from island.agents.codex import CODEX
from island.claims import TITLE, claim
from island.leases import LEASES
from island.model import (
    AFRESH,
    ANY,
    KEYLESS,
    PROCESS,
    Doubt,
    Event,
    Kind,
    Reason,
    Role,
    Row,
    Session,
    State,
    Sure,
    Verdict,
)
from island.rules import collapse, decide, fold, prune, urgency
from island.sessions import Sessions
from island.view import seen_in, view

MINUTE, HOUR = 60.0, 3600.0


def event(kind, at, key="", word="", **more):
    return Event(kind, "s", float(at), key, word, **more)


def session(*found, agent="codex"):
    held = Session(agent, "s")
    for e in found:
        held = fold(held, e)
    return held


def state_of(*found, now=100.0, since=0.0):
    verdict = decide(session(*found), now, since)
    return f"{verdict.state}({verdict.reason})"


def prompt(at=10, turn="t1", word="user", **more):
    return event(Kind.PROMPT, at, word=word, turn=turn, **more)


def keyless_prompt(at=10):
    return event(Kind.PROMPT, at, KEYLESS, "user")


def end(at=20, word="", turn="t1", **more):
    return event(Kind.END, at, word=word, turn=turn, **more)


def opened(at, key, word, **more):
    return event(Kind.OPENED, at, key, word, **more)


def closed(at, key, word="tool"):
    return event(Kind.CLOSED, at, key, word)


def progress(at, word="model", turn="t1", key="", **more):
    return event(Kind.PROGRESS, at, key, word, turn=turn, **more)


def live(at, word, pid="7", turn=""):
    return event(Kind.LIVE, at, word, word, text=pid, turn=turn)


def owner(at=5, pid="7", started=1.0):
    return event(Kind.OWNER, at, pid, number=started)


def titled(at, word):
    return event(Kind.LIVE, at, "title:7", word, text="7", source=TITLE)


def failed(at):
    return event(Kind.ANSWER, at, word="error", text=Doubt.AGAIN)


def gone(at, pid="7", word="exit"):
    return model.gone("s", float(at), pid, word, "process")


def window(at, pid="9"):
    return event(Kind.ATTACHED, at, pid)


ALONE = event(Kind.ALONE, 0, word="yes")


def short(value):
    """Name a case: its events, its verdicts, or what it wants."""
    if isinstance(value, list | tuple):
        return " ".join(short(v) for v in value if not isinstance(v, float)) or "nothing"
    if isinstance(value, Event):
        return f"{value.kind}:{value.word or value.key}@{value.at:g}"
    return value.reason if isinstance(value, Verdict) else str(value)


# -- fold --------------------------------------------------------------------------------------------------


def test_a_register_keeps_its_newest_event_by_the_events_own_time():
    assert session(end(20, "finished"), end(15, "error")).get(Kind.END).word == "finished"


def test_of_two_events_at_one_time_the_later_in_the_file_counts():
    first, second = end(20, "error", order=1), end(20, "finished", order=2)
    assert session(second, first).get(Kind.END) == session(first, second).get(Kind.END) == second


@pytest.mark.parametrize("order", [1, -1])
def test_what_a_turn_opened_is_over_when_the_next_one_begins(order):
    found = [prompt(10), opened(11, "c1", "tool"), opened(12, "shell", "shell"), prompt(20, "t2")]
    assert [e.key for e in view(session(*found[::order])).open("tool", "shell")] == ["shell"]


def test_processes_that_ended_in_an_earlier_turn_are_forgotten_but_not_what_a_record_tells_of_them():
    seen = [opened(11, f"process:c{n}", "process", text=str(n), source=PROCESS) for n in (1, 2)]
    told = opened(11, "left", "process", text="3", source="tool_result")
    ends = [replace(closed(12, e.key, "process"), source=PROCESS) for e in (seen[0], told)]
    held = prune(session(prompt(10), *seen, told, *ends, prompt(20, "t2")))
    assert {e.key for e in held.events()} == {"", "process:c2", "left"}
    assert held.open.keys() == {"process:c2"}


@pytest.mark.parametrize("begin", [prompt(20, "t2"), keyless_prompt(20)], ids=["with a key", "without a key"])
@pytest.mark.parametrize("span", [opened(15, "c1", "question"), opened(15, KEYLESS, "unrecorded"), closed(15, "c1")])
def test_a_late_span_of_an_earlier_turn_is_not_folded_in_whatever_order(begin, span):
    assert session(begin, span).registers == session(span, begin).registers


def test_what_is_told_at_one_moment_is_told_in_the_order_of_its_file():
    asked, answered = opened(20, "ask", "permission", order=2), event(Kind.CLOSED, 20, "ask", order=1)
    assert [e.key for e in view(session(prompt(), asked, answered)).open("permission")] == ["ask"]
    assert view(session(prompt(), asked, event(Kind.CLOSED, 20, "ask", order=3))).open("permission") == []
    assert view(session(asked, event(Kind.PROMPT, 20, turn="t2", order=3))).open("permission") == []


def test_an_unknown_fact_is_an_empty_text():
    assert session().fact("model") == ""


# -- decide: one turn --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "want"), [
    ([], "idle(new)"),
    ([owner()], "idle(new)"),
    ([event(Kind.FACT, 5, "cwd", "/a")], "idle(new)"),
    ([prompt()], "working(model)"),
    ([prompt(), progress(30, "retrying")], "working(retrying)"),
    ([prompt(), progress(30, "compacting")], "working(compacting)"),
    ([prompt(), progress(30, "tool")], "working(model)"),
    ([prompt(), opened(30, "c1", "tool")], "working(tool)"),
    ([prompt(), opened(30, "c1", "tool"), closed(40, "c1")], "working(model)"),
    ([prompt(), opened(30, "c1", "question")], "your-turn(question)"),
    ([prompt(), opened(30, "c1", "plan")], "your-turn(plan)"),
    ([prompt(), opened(30, "c1", "permission")], "your-turn(permission)"),
    ([prompt(), opened(30, "c1", "question"), opened(31, "c2", "tool")], "your-turn(question)"),
    ([prompt(), end()], "your-turn(finished)"),
    ([prompt(), end(20, "question")], "your-turn(question)"),
    ([prompt(), end(20, "error")], "your-turn(error)"),
    ([prompt(), end(20, "interrupted")], "your-turn(interrupted)"),
    ([prompt(), event(Kind.PLANNED, 15, "t1"), end()], "your-turn(plan)"),
    ([prompt(), event(Kind.PLANNED, 15, "t0"), end()], "your-turn(finished)"),
    ([prompt(), event(Kind.PLANNED, 15, "t1"), end(20, "error")], "your-turn(error)"),
    ([prompt(), event(Kind.ANSWER, 15, word="limit"), end()], "your-turn(limit)"),
    ([event(Kind.ANSWER, 5, word="limit"), prompt(), end()], "your-turn(finished)"),
    ([prompt(), event(Kind.ANSWER, 15, word="question")], "your-turn(question)"),
    ([prompt(), end(), progress(21)], "your-turn(finished)"),
    ([prompt(), end(), progress(90)], "your-turn(finished)"),
    ([prompt(), end(), progress(21, turn="")], "your-turn(finished)"),
    ([prompt(), end(), progress(90, turn="")], "working(model)"),
    ([prompt(), end(), prompt(30, "t2"), progress(40, turn="t1")], "working(model)"),
    ([prompt(), end(20, "interrupted", turn=""), progress(90)], "your-turn(interrupted)"),
    ([end()], "your-turn(finished)"),
    ([progress(90)], "working(model)"),
    ([keyless_prompt(), progress(90, turn="", key=KEYLESS)], "working(model)"),
    ([keyless_prompt(), event(Kind.ANSWER, 50, KEYLESS, "question")], "your-turn(question)"),
    ([keyless_prompt(), prompt(5, "t1"), event(Kind.ANSWER, 50, KEYLESS, "question")], "working(model)"),
], ids=short)
def test_the_evidence_of_a_turn_says_whose_turn_it_is(found, want):
    assert state_of(*found) == want


def test_of_two_open_questions_the_same_one_counts_in_whatever_order():
    asked = [opened(30, "c1", "question"), opened(30, "c2", "question")]
    straight, turned = session(prompt(), *asked), session(prompt(), *asked[::-1])
    assert decide(straight, 100, 0).turn == decide(turned, 100, 0).turn


@pytest.mark.parametrize(("found", "processes"), [
    ([], ()),
    ([owner(5)], (7,)),
    ([owner(5), gone(9)], ()),
    ([owner(5, pid="nobody")], ()),
    ([owner(5), window(8)], (9,)),
    ([owner(5), window(8), window(11, pid="10")], (10, 9)),
    ([owner(5), window(8), gone(9, pid="9")], (7,)),
])
def test_the_user_sees_a_session_in_its_windows_or_in_what_runs_it(found, processes):
    assert seen_in(session(*found)) == processes


def test_a_goals_turn_hands_back_only_when_no_next_one_follows():
    goal = [prompt(word="agent"), end()]
    assert state_of(*goal, now=20.4) == "working(model)"
    assert state_of(*goal, now=20.6) == "your-turn(finished)"


def test_a_goals_turn_that_was_interrupted_is_handed_back_at_once():
    assert state_of(prompt(word="agent"), end(20, "interrupted"), now=20.1) == "your-turn(interrupted)"


def test_an_answer_without_an_end_is_final_after_a_second():
    answer = [prompt(), event(Kind.ANSWER, 15, word="finished")]
    assert state_of(*answer, now=15.9) == "working(model)"
    assert state_of(*answer, now=16.1) == "your-turn(finished)"


def test_a_complete_answer_is_final_as_soon_as_nothing_follows_at_once():
    answer = [prompt(), event(Kind.ANSWER, 15, word="finished", text=Doubt.SOON)]
    assert state_of(*answer, now=15.4) == "working(model)"
    assert state_of(*answer, now=15.6) == "your-turn(finished)"


ANSWERED = event(Kind.ANSWER, 15, word="finished", order=1)
ASKED = event(Kind.OPENED, 15, "ask", "permission", order=2)


@pytest.mark.parametrize(("found", "want"), [
    ([ANSWERED, ASKED], "your-turn(permission)"),
    ([ANSWERED, ASKED, event(Kind.CLOSED, 16, "ask")], "your-turn(finished)"),
    ([ANSWERED, ASKED, event(Kind.CLOSED, 16, "ask"), progress(16, turn="")], "working(model)"),
    ([event(Kind.ANSWER, 15, word="error", order=1), ASKED], "your-turn(error)"),
    ([end(15, "interrupted", order=1), ASKED], "your-turn(interrupted)"),
    ([replace(ANSWERED, order=3), ASKED], "your-turn(finished)"),
], ids=short)
def test_an_ask_after_what_looked_like_the_last_answer_shows_that_it_was_not(found, want):
    assert state_of(prompt(), *found) == want


@pytest.mark.parametrize(("found", "want"), [
    ([event(Kind.ANSWER, 15.1, word="finished")], "your-turn(interrupted)"),
    ([event(Kind.ANSWER, 18, word="finished")], "your-turn(finished)"),
    ([prompt(15.1, "t2"), event(Kind.ANSWER, 15.2, word="finished")], "your-turn(finished)"),
    ([event(Kind.ANSWER, 15.1, word="finished", turn="t2")], "your-turn(finished)"),
], ids=short)
def test_what_was_said_until_an_interrupt_is_no_answer(found, want):
    assert state_of(prompt(), end(15, "interrupted"), *found) == want


def afresh(at=30, **more):
    return event(Kind.END, at, AFRESH, **more)


@pytest.mark.parametrize(("found", "want"), [
    ([prompt(), afresh()], "idle(new)"),
    ([prompt(), end(), afresh()], "idle(new)"),
    ([prompt(), end(), afresh(), end(35, "interrupted", turn="")], "idle(new)"),
    ([prompt(), end(), afresh(), event(Kind.ANSWER, 35, word="finished")], "your-turn(finished)"),
    ([prompt(), end(), afresh(), prompt(40, "t2")], "working(model)"),
    ([owner(), prompt(), gone(29), afresh()], "idle(new)"),
    ([owner(), prompt(), gone(31), afresh()], "idle(ended)"),
], ids=short)
def test_a_conversation_that_begins_afresh_has_no_turn_until_its_first_prompt(found, want):
    assert state_of(*found) == want


# -- decide: leases ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "steps"), [
    ([owner(), prompt()], ["working(model)", 15 * MINUTE, "stalled(silent)", HOUR, "idle(expired)"]),
    ([prompt()], ["working(model)", 5 * MINUTE, "stalled(silent)", 10 * MINUTE, "idle(expired)"]),
    ([owner(), prompt(), opened(10, "c", "tool")],
     ["working(tool)", 12 * HOUR, "stalled(silent)", HOUR, "idle(expired)"]),
    ([prompt(), opened(10, "c", "tool")],
     ["working(tool)", 5 * MINUTE, "stalled(silent)", 10 * MINUTE, "idle(expired)"]),
    ([owner(), prompt(9), end(10)], ["your-turn(finished)", 12 * HOUR, "idle(expired)"]),
    ([prompt(9), end(10)], ["your-turn(finished)", 30 * MINUTE, "idle(expired)"]),
    ([owner(), prompt(9), event(Kind.ANSWER, 10, word="finished")],
     ["working(model)", 1.0, "your-turn(finished)", 12 * HOUR, "idle(expired)"]),
    ([prompt(9), event(Kind.ANSWER, 10, word="finished")],
     ["working(model)", 1.0, "your-turn(finished)", 30 * MINUTE, "idle(expired)"]),
    ([owner(), prompt(9), failed(10)],
     ["working(retrying)", 15 * MINUTE, "your-turn(error)", 12 * HOUR, "idle(expired)"]),
    ([owner(), ALONE, prompt(9), opened(10, "c", "escalation")],
     ["working(tool)", LEASES["escalation"][0].seconds, "your-turn(permission)", 12 * HOUR, "idle(expired)"]),
    ([owner(), ALONE, prompt(9), opened(10, "c", "shell-tool")],
     ["working(tool)", 2.5, "your-turn(permission)", 12 * HOUR, "idle(expired)"]),
    ([owner(), ALONE, prompt(9), opened(10, "c", "instant-tool")],
     ["working(tool)", 3.0, "your-turn(permission)", 12 * HOUR, "idle(expired)"]),
    ([owner(), ALONE, prompt(9), opened(10, "c", "judged-tool")],
     ["working(tool)", 45.0, "your-turn(permission)", 12 * HOUR, "idle(expired)"]),
    ([owner(), ALONE, keyless_prompt(9), opened(10, KEYLESS, "unrecorded")],
     ["working(tool)", 1.0, "your-turn(permission)", 12 * HOUR, "idle(expired)"]),
    ([opened(10, "trust", "trust")], ["idle(new)", 2.5, "your-turn(permission)", 12 * HOUR, "idle(expired)"]),
    ([owner(), prompt(9), live(10, "busy")], ["working(model)", 30 * MINUTE, "stalled(silent)"]),
    ([owner(), prompt(9), event(Kind.STOPPED, 10, "7", "yes")], ["stalled(silent)", 12 * HOUR, "idle(expired)"]),
    ([owner(), prompt(9), live(10, "idle")],
     ["working(model)", 1.0, "your-turn(interrupted)", 12 * HOUR, "idle(expired)"]),
    ([owner(), prompt(9), end(10), opened(9.5, "task:1", "shell")],
     ["working(background)", 5 * MINUTE, "your-turn(finished)", 12 * HOUR, "idle(expired)"]),
    ([owner(), prompt(9), end(10), opened(9.5, "child", "child")],
     ["working(background)", HOUR, "your-turn(finished)", 12 * HOUR, "idle(expired)"]),
    ([owner(), live(9, "busy"), live(10, "idle")], ["working(model)", 1.5, "idle(new)"]),
], ids=short)
def test_a_lease_passes_through_its_states(found, steps):
    at, held = 10.0, session(*found)
    for state, seconds in zip(steps[::2], [*steps[1::2], inf], strict=True):
        verdict = decide(held, at, 0.0)
        assert f"{verdict.state}({verdict.reason})" == state
        assert verdict.until == at + seconds
        at = verdict.until


def test_every_lease_ends_in_rest_without_end():
    for steps in LEASES.values():
        assert (steps[-1].state, steps[-1].seconds) == (State.IDLE, inf)


def test_a_stall_that_began_before_the_launch_is_old_news():
    silent = [owner(), prompt(10)]
    assert state_of(*silent, now=10 + 20 * MINUTE, since=10 + 16 * MINUTE) == "idle(expired)"
    assert state_of(*silent, now=10 + 20 * MINUTE, since=10 + 14 * MINUTE) == "stalled(silent)"


def test_an_agent_that_was_suspended_before_the_launch_is_stalled_all_the_same():
    assert state_of(owner(), prompt(), event(Kind.STOPPED, 20, "7", "yes"), since=50) == "stalled(silent)"


@pytest.mark.parametrize("found", [
    [owner(), prompt(), end(), event(Kind.STOPPED, 30, "7", "yes")],
    [owner(), prompt(), end(), event(Kind.STOPPED, 25, "7", "yes"), event(Kind.STOPPED, 30, "7", "no")],
])
def test_a_suspended_agent_whose_turn_is_over_still_waits_for_the_user(found):
    assert state_of(*found) == "your-turn(finished)"


def test_a_told_state_is_told_and_a_guess_is_inferred():
    assert decide(session(prompt(), opened(30, "c1", "question")), 100, 0).sure is Sure.TOLD
    assert decide(session(owner(), prompt(), opened(30, "c1", "escalation")), 100, 0).sure is Sure.INFERRED


# -- decide: background ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "want"), [
    ([end(number=1)], "working(background)"),
    ([end(number=0), opened(15, "child", "child")], "your-turn(finished)"),
    ([end(number=0), opened(25, "child", "child")], "working(background)"),
    ([end(), opened(15, "child", "child")], "working(background)"),
    ([end(), opened(15, "child", "child"), closed(30, "child", "child")], "your-turn(finished)"),
    ([end(20, "error"), opened(15, "child", "child")], "your-turn(error)"),
    ([end(20, "question"), opened(15, "child", "child")], "your-turn(question)"),
    ([end(), opened(15, "process:c1", "process")], "working(background)"),
    ([end(), opened(15, "process:c1", "process"), closed(30, "process:c1", "process")], "your-turn(finished)"),
    ([end(), opened(15, "task:1", "shell")], "working(background)"),
    ([end(), opened(15, "task:1", "shell"), event(Kind.ALONE, 30, word="yes")], "your-turn(finished)"),
    ([end(), opened(15, "task:1", "shell"), event(Kind.ALONE, 30, word="no")], "working(background)"),
    ([end(), opened(35, "task:1", "shell"), event(Kind.ALONE, 30, word="yes")], "working(background)"),
])
def test_background_work_is_calm_until_it_ends(found, want):
    assert state_of(owner(), prompt(), *found) == want


def test_a_hand_back_after_background_work_is_as_old_as_the_end_of_that_work():
    held = session(owner(), prompt(), end(20), opened(15, "child", "child"), closed(2000, "child", "child"))
    verdict = decide(held, 2001, 0)
    assert (verdict.state, verdict.reason, verdict.since) == (State.YOUR_TURN, Reason.FINISHED, 2000)


@pytest.mark.parametrize(("found", "now", "want"), [
    ([], 29, ("working", "model")),
    ([], 30, ("your-turn", "finished")),
    ([progress(25, turn="")], 30, ("working", "model")),
    ([event(Kind.ANSWER, 25, word="question", text=Doubt.QUIET)], 34, ("working", "model")),
    ([end(21)], 22, ("your-turn", "finished")),
    ([opened(15, "command:1", "command")], 31, ("working", "background")),
    ([opened(15, "command:1", "command"), closed(60, "command:1", "command")], 69, ("working", "model")),
    ([opened(15, "command:1", "command"), closed(60, "command:1", "command")], 70, ("your-turn", "finished")),
    ([opened(5, "command:1", "command")], 30, ("your-turn", "finished")),
])
def test_an_answer_whose_end_nothing_will_tell_is_the_last_when_nothing_follows(found, now, want):
    answer = event(Kind.ANSWER, 20, word="finished", text=Doubt.QUIET)
    verdict = decide(session(owner(), prompt(), answer, *found), now, 0)
    assert (verdict.state, verdict.reason) == want
    lease = claim(session(owner(), prompt(), answer, *found)).lease
    assert (verdict.sure is Sure.INFERRED) is (lease in ("quiet", "background"))


@pytest.mark.parametrize(("at", "reason"), [(19, "error"), (21, "error"), (22, "error"), (23, "finished")])
def test_what_only_looks_final_is_bookkeeping_right_after_an_end(at, reason):
    answer = event(Kind.ANSWER, at, word="finished", text=Doubt.QUIET)
    assert state_of(owner(), prompt(), end(20, "error"), answer) == f"your-turn({reason})"


# -- decide: processes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_processes_that_are_told_of_at_once_it_is_always_the_same_one(order):
    assert view(session(*[owner(pid="1"), owner(pid="2")][::order])).owner == owner(pid="2")


@pytest.mark.parametrize(("found", "want"), [
    ([owner(), prompt(), gone(30)], "idle(crashed)"),
    ([owner(), prompt(), gone(30, word="closed")], "idle(ended)"),
    ([owner(), prompt(), gone(30, word="left")], "idle(ended)"),
    ([owner(), prompt(), end(), gone(30)], "idle(ended)"),
    ([owner(), gone(30)], "idle(ended)"),
    ([owner(), prompt(), gone(30), progress(31)], "idle(crashed)"),
    ([owner(), prompt(), gone(30), end(31)], "idle(ended)"),
    ([owner(), prompt(), gone(30), prompt(90, "t2")], "working(model)"),
    ([owner(), gone(3), prompt()], "working(model)"),
    ([owner(), gone(30), owner(40, "8", started=40), prompt(50)], "working(model)"),
    ([owner(), prompt(), gone(30), owner(40, "8", started=40)], "idle(new)"),
    ([owner(), prompt(), gone(30), owner(40, "8", started=40), window(41)], "your-turn(interrupted)"),
    ([owner(), prompt(), gone(30), owner(40, "8", started=40), window(41), gone(50, "9")], "idle(new)"),
    ([owner(), prompt(), end(), gone(30), owner(40, "8", started=40), window(41)], "your-turn(finished)"),
    ([owner(), prompt(), end(), window(6), gone(30, "9")], "idle(ended)"),
    ([owner(), prompt(), window(6), gone(30, "9")], "working(model)"),
    ([owner(), prompt(), end(40), window(6), gone(30, "9")], "your-turn(finished)"),
    ([owner(), prompt(), end(), window(6), gone(30, "9"), window(35, "10")], "your-turn(finished)"),
    ([owner(), prompt(), end(), window(6), gone(30, "9"), window(35)], "your-turn(finished)"),
    ([owner(), window(6), gone(30, "9")], "idle(ended)"),
], ids=short)
def test_the_life_of_processes_ends_what_they_ran_or_showed(found, want):
    assert state_of(*found) == want


@pytest.mark.parametrize("order", [1, -1])
def test_a_thread_that_was_opened_again_is_interrupted_since_its_newest_window(order):
    windows = [window(41, "1"), window(42, "2")][::order]
    held = session(owner(), prompt(), gone(30), owner(40, "8", started=40), *windows)
    assert decide(held, 100, 0).since == 42


@pytest.mark.parametrize(("found", "want"), [
    ([opened(30, "c", "shell-tool"), ALONE], "your-turn(permission)"),
    ([opened(30, "c", "shell-tool"), event(Kind.ALONE, 30.2, word="no")], "working(tool)"),
    ([opened(30, "c", "shell-tool"), event(Kind.ALONE, 98, word="yes")], "working(tool)"),
    ([opened(30, "c", "shell-tool"), event(Kind.ALONE, 97, word="yes")], "your-turn(permission)"),
    ([opened(30, "c", "shell-tool")], "working(tool)"),
    ([opened(30, "c", "escalation"), event(Kind.ALONE, 30.2, word="no")], "your-turn(permission)"),
    ([opened(30, "c", "escalation"), opened(30.2, "process:c", "process")], "working(tool)"),
    ([opened(30, "c", "instant-tool"), event(Kind.ALONE, 30.2, word="no")], "your-turn(permission)"),
    ([opened(30, "c", "judged-tool"), event(Kind.ALONE, 50, word="yes")], "your-turn(permission)"),
    ([opened(30, "c", "judged-tool"), event(Kind.ALONE, 50, word="no")], "working(tool)"),
])
def test_a_call_runs_if_its_process_was_seen(found, want):
    assert state_of(owner(), prompt(), *found) == want


def copied(since, until):
    return event(Kind.COPIED, until, number=since)


@pytest.mark.parametrize(("found", "want"), [
    ([prompt(), end(20, "interrupted"), prompt(20.1, "t2"), copied(20, 20.2)], "your-turn(interrupted)"),
    ([prompt(), end(20, "interrupted"), prompt(20, "t2", order=9), copied(20, 20)], "your-turn(interrupted)"),
    ([prompt(), end(20, "interrupted"), progress(23, turn=""), copied(20, 23)], "your-turn(interrupted)"),
    ([prompt(), end(20, "interrupted"), copied(20, 21), prompt(22, "t2")], "working(model)"),
    ([prompt(20.1), copied(20, 20.2)], "working(model)"),
    ([prompt(20.1), event(Kind.ANSWER, 20, word="error"), copied(20, 20.2)], "your-turn(error)"),
    ([prompt(), end(20, "interrupted"), prompt(20.1, "t2"), copied(20, 20.2), progress(30, turn="")], "working(model)"),
], ids=short)
def test_a_copy_of_older_records_starts_nothing(found, want):
    assert state_of(owner(), *found) == want


def answer(at, word="finished", **more):
    return event(Kind.ANSWER, at, word=word, **more)


def guess(at):
    return answer(at, text=Doubt.PERHAPS)


def alone(at, word, since=-1):
    return event(Kind.ALONE, at, word=word, number=since)


@pytest.mark.parametrize(("found", "want"), [
    ([guess(20), alone(21, "no")], "working(tool)"),
    ([guess(20), alone(30, "yes", 21)], "working(model)"),
    ([guess(20), alone(19, "no")], "your-turn(finished)"),
    ([guess(20), alone(30, "yes", 19)], "your-turn(finished)"),
    ([guess(20), alone(21, "yes")], "your-turn(finished)"),
    ([guess(20), alone(21, "no"), live(22, "idle")], "your-turn(finished)"),
    ([guess(20), alone(21, "no"), live(15, "idle")], "working(tool)"),
    ([guess(20), alone(21, "no"), end(40, "interrupted")], "your-turn(interrupted)"),
    ([end(20), alone(21, "no")], "your-turn(finished)"),
    ([answer(20), alone(21, "no")], "your-turn(finished)"),
    ([guess(20), alone(21, "no"), gone(40)], "idle(crashed)"),
    ([guess(20), alone(30, "yes", 21), gone(40)], "idle(crashed)"),
    ([guess(20), gone(40)], "idle(ended)"),
], ids=short)
def test_a_tool_that_begins_behind_an_answer_shows_that_it_was_not_the_last(found, want):
    assert state_of(owner(), prompt(), *found) == want


@pytest.mark.parametrize("word", ["shell-tool", "instant-tool", "judged-tool", "escalation", "unrecorded"])
def test_no_dialog_is_inferred_where_nobody_can_look(word):
    assert state_of(prompt(), opened(30, "c", word)) == "working(tool)"


# -- decide: titles of terminals ---------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "want"), [
    ([owner(), prompt(), titled(11, "busy")], "working(model)"),
    ([owner(), prompt(), titled(20, "permission"), opened(19, "c", "plan")], "your-turn(plan)"),
    ([owner(), prompt(), end(), titled(21, "idle")], "your-turn(finished)"),
    ([owner(), prompt(), titled(21, "idle")], "your-turn(interrupted)"),
    ([owner(), prompt(), end(), titled(21, "idle"), opened(15, "child", "child")], "working(background)"),
    ([owner(), prompt(), end(), titled(21, "idle"), opened(15, "task:1", "shell")], "working(background)"),
    ([owner(), prompt(), end(), owner(40, started=40), titled(41, "idle")], "your-turn(finished)"),
    ([owner(), prompt(), owner(40, started=40), titled(41, "idle")], "idle(new)"),
    ([owner(), prompt(), failed(20), titled(11, "busy")], "working(retrying)"),
    ([owner(), prompt(), failed(20), titled(20.5, "idle")], "your-turn(error)"),
    ([owner(), prompt(), failed(20), titled(30, "idle")], "your-turn(interrupted)"),
    ([owner(), prompt(), failed(20), progress(29), titled(11, "busy")], "working(model)"),
], ids=short)
def test_a_title_tells_whether_the_prompt_is_free_and_nothing_of_the_background(found, want):
    assert state_of(*found) == want


@pytest.mark.parametrize(("found", "want"), [
    ([owner(), prompt(), answer(20), live(20.5, "idle", ANY)], "your-turn(finished)"),
    ([owner(), prompt(), answer(20), live(9, "idle", ANY)], "working(model)"),
    ([owner(), prompt(), answer(20), live(20.5, "", ANY)], "working(model)"),
    ([owner(), prompt(), answer(20), opened(15, "p", "process"), live(20.5, "idle", ANY)], "working(background)"),
    ([prompt(), answer(20), live(20.5, "idle", ANY)], "working(model)"),
], ids=short)
def test_a_live_status_may_be_told_of_whichever_process_runs_it(found, want):
    assert state_of(*found, now=20.6) == want


# -- decide: live records ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("found", "want"), [
    ([live(8, "idle")], "idle(new)"),
    ([prompt(), live(9, "busy")], "working(model)"),
    ([prompt(), progress(30, "retrying"), live(9, "busy")], "working(retrying)"),
    ([prompt(), live(9, "busy"), opened(30, "c", "shell-tool"), ALONE], "working(tool)"),
    ([prompt(), live(30, "permission")], "your-turn(permission)"),
    ([prompt(), live(30, "question")], "your-turn(question)"),
    ([prompt(), live(30, "permission"), opened(29, "c", "plan")], "your-turn(plan)"),
    ([prompt(), live(30, "permission"), opened(29, "c", "question")], "your-turn(question)"),
    ([prompt(), live(30, "permission"), end(40)], "your-turn(finished)"),
    ([prompt(), live(9, "busy"), end(40)], "your-turn(finished)"),
    ([prompt(), live(9, "busy"), event(Kind.ANSWER, 40, word="finished")], "working(model)"),
    ([prompt(), end(), live(30, "busy")], "working(model)"),
    ([prompt(), end(number=2), live(30, "busy")], "working(background)"),
    ([prompt(0.5), opened(0.6, "c", "shell-tool"), live(8, "busy")], "working(model)"),
    ([prompt(), end(), live(30, "idle")], "your-turn(finished)"),
    ([prompt(), event(Kind.ANSWER, 20, word="finished"), live(20.1, "idle")], "your-turn(finished)"),
    ([prompt(), end(), live(30, "shell")], "working(background)"),
    ([prompt(), live(9, "idle")], "working(model)"),
    ([prompt(), live(30, "idle")], "your-turn(interrupted)"),
    ([prompt(), live(30, "ready")], "your-turn(error)"),
    ([prompt(), progress(20, text="interrupted"), live(30, "ready")], "your-turn(interrupted)"),
    ([prompt(), live(99, "ready")], "working(model)"),
    ([prompt(), end(), live(30, "ready")], "your-turn(finished)"),
    ([prompt(), live(9, "ready")], "working(model)"),
    ([prompt(), live(30, "busy", pid="8")], "working(model)"),
    ([prompt(), live(30, "permission", pid="8")], "working(model)"),
    ([prompt(), live(30, "permission"), gone(40)], "idle(crashed)"),
    ([prompt(0.5), live(8, "idle")], "idle(new)"),
], ids=short)
def test_a_live_record_is_believed_unless_something_firmer_is_newer(found, want):
    assert state_of(owner(), *found) == want


def test_an_answer_newer_than_the_live_record_stands_for_itself():
    held = session(owner(), prompt(), live(9, "idle"), answer(20))
    assert [decide(held, now, 0).state for now in (20.5, 21.5)] == [State.WORKING, State.YOUR_TURN]


@pytest.mark.parametrize(("text", "sure"), [(Doubt.PERHAPS, Sure.INFERRED), ("", Sure.TOLD), ("odd", Sure.TOLD)])
def test_an_answer_is_as_sure_as_it_says_until_the_prompt_is_free(text, sure):
    found = [owner(), prompt(), answer(20, text=text)]
    assert decide(session(*found), 30, 0).sure is sure
    assert decide(session(*found, live(21, "idle")), 30, 0).sure is Sure.TOLD


@pytest.mark.parametrize(("found", "want"), [
    ([alone(12, "no"), titled(50, "permission")], "stalled(silent)"),
    ([alone(30, "no"), titled(50, "permission")], "your-turn(permission)"),
    ([alone(12, "yes"), titled(50, "permission")], "your-turn(permission)"),
    ([titled(50, "permission")], "your-turn(permission)"),
    ([alone(12, "no"), live(50, "permission")], "your-turn(permission)"),
], ids=short)
def test_a_title_that_asks_long_after_a_command_began_may_speak_of_the_command(found, want):
    assert state_of(owner(), prompt(), *found) == want
    assert state_of(owner(), prompt(), *found, since=60) == want


def test_an_ask_of_the_live_record_has_the_key_that_the_record_gives_it():
    assert decide(session(owner(), prompt(), live(30, "permission", turn="a1")), 100, 0).turn == "a1"


def test_a_busy_agent_never_turns_idle_by_itself_while_its_process_lives():
    assert state_of(owner(), prompt(), live(9, "busy"), now=100 * HOUR) == "stalled(silent)"


def test_a_process_that_starts_without_a_live_record_asks_for_trust_unless_it_left():
    trust = [owner(10), opened(10, "trust", "trust")]
    assert state_of(*trust) == "your-turn(permission)"
    assert state_of(*trust, gone(11, word="left")) == "idle(ended)"


# -- keys of waits -----------------------------------------------------------------------------------------


def test_two_dialogs_of_an_old_version_are_two_waits():
    first = session(owner(), ALONE, keyless_prompt(), opened(20, KEYLESS, "unrecorded"))
    again = session(owner(), ALONE, keyless_prompt(), opened(20, KEYLESS, "unrecorded"),
                    closed(30, KEYLESS, "unrecorded"), opened(40, KEYLESS, "unrecorded"))
    assert claim(first).turn != claim(again).turn


# -- children ----------------------------------------------------------------------------------------------


def child(kind, at, key="", word="", **more):
    return Event(kind, "child", float(at), key, word, **more)


CHILD = [
    child(Kind.FACT, 11, "parent", "s"), child(Kind.FACT, 11, "role", Role.CHILD),
    child(Kind.OWNER, 11, "7", number=1.0), child(Kind.ALONE, 0, word="yes"),
    child(Kind.PROMPT, 12, word="user", turn="u1"),
]
RUNS, QUESTION = child(Kind.OPENED, 30, "c1", "tool"), child(Kind.OPENED, 30, "c1", "question")
ANSWERED, DIALOG = child(Kind.CLOSED, 40, "c1", "tool"), child(Kind.OPENED, 30, "c1", "escalation")
DONE = child(Kind.END, 50, turn="u1")


def family(*found, at_once=False, now=100.0):
    """Return the verdicts of a parent and a child, whose events are known one by one or all at once."""
    sessions = Sessions(AGENTS, 0.0)
    for e in [owner(), prompt(), *found]:
        sessions.join(CODEX, e)
        if not at_once:
            sessions.settle(max(e.at, 12.0) + 0.1, lambda *_: None)
    sessions.settle(now, lambda *_: None)
    sessions.lapse(now)
    sessions.settle(now, lambda *_: None)
    return sessions.verdicts["codex", "s"], sessions.verdicts.get(("codex", "child"))


@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
@pytest.mark.parametrize(("found", "want"), [
    (CHILD, "working(model)"),
    ([*CHILD, end(40)], "working(background)"),
    ([*CHILD, RUNS, end(40)], "working(background)"),
    ([*CHILD, end(40), DONE], "your-turn(finished)"),
    ([*CHILD, DONE], "working(model)"),
    ([*CHILD, end(40), child(Kind.PLANNED, 45, "u1"), DONE], "your-turn(finished)"),
    ([*CHILD, end(40), child(Kind.END, 50, word="interrupted", turn="u1")], "your-turn(finished)"),
    ([*CHILD, end(40), model.gone("child", 50.0, "7", "exit", "process")], "your-turn(finished)"),
    ([*CHILD, QUESTION], "your-turn(question)"),
    ([*CHILD, DIALOG], "your-turn(permission)"),
    ([*CHILD, end(20), QUESTION], "your-turn(question)"),
    ([*CHILD, end(20), DIALOG], "your-turn(permission)"),
    ([*CHILD, QUESTION, ANSWERED], "working(model)"),
    ([*CHILD, end(20), QUESTION, ANSWERED], "working(background)"),
    ([*CHILD, DIALOG, child(Kind.OPENED, 40, "process:c1", "process")], "working(model)"),
    ([*CHILD, QUESTION, ANSWERED, DONE, end(60)], "your-turn(finished)"),
    ([*CHILD, end(40), DONE, child(Kind.PROMPT, 60, word="user", turn="u2")], "working(background)"),
], ids=short)
def test_a_childs_verdict_is_evidence_for_its_parent(found, want, at_once):
    got, _ = family(*found, at_once=at_once)
    assert f"{got.state}({got.reason})" == want


def test_two_dialogs_of_one_child_are_two_waits():
    first, _ = family(*CHILD, QUESTION)
    second, _ = family(*CHILD, QUESTION, ANSWERED, child(Kind.OPENED, 45, "c2", "question"))
    assert first.turn != second.turn


@pytest.mark.parametrize("asked", [QUESTION, DIALOG], ids=["told", "inferred"])
def test_a_parent_is_as_sure_of_its_childs_dialog_as_the_child_itself(asked):
    parents, childs = family(*CHILD, asked)
    assert parents.sure is childs.sure


@pytest.mark.parametrize("at_once", [True, False])
def test_a_parents_wait_is_as_old_as_its_childs_end_however_late_it_is_known(at_once):
    late = child(Kind.FACT, 90, "model", "m")
    assert family(*CHILD, end(40), DONE, late, at_once=at_once)[0].since == 50
    assert family(*CHILD, end(40), DONE, late, at_once=at_once, now=13 * HOUR)[0].reason is Reason.EXPIRED


# -- the icon ----------------------------------------------------------------------------------------------


def verdict(state, reason, since):
    return Verdict(State(state), Reason(reason), since=since, turn="t1")


def row(state, name="s", *, role=Role.PERSON, seen=False, since=50.0):
    reason = {"your-turn": "finished", "stalled": "silent", "working": "tool", "idle": "new"}[state]
    return Row("codex", name, verdict(state, reason, since), role, seen=seen)


@pytest.mark.parametrize(("shown", "icon"), [
    ([], (State.IDLE, False)),
    ([row("idle")], (State.IDLE, False)),
    ([row("idle"), row("working")], (State.WORKING, False)),
    ([row("working"), row("stalled")], (State.STALLED, False)),
    ([row("stalled"), row("your-turn"), row("working")], (State.YOUR_TURN, False)),
    ([row("your-turn", seen=True), row("working")], (State.WORKING, False)),
    ([row("your-turn", seen=True), row("stalled", seen=True)], (State.STALLED, False)),
    ([row("your-turn", seen=True), row("idle")], (State.YOUR_TURN, True)),
    ([row("your-turn", seen=True), row("your-turn")], (State.YOUR_TURN, False)),
    ([row("your-turn", role=Role.MACHINE), row("stalled", role=Role.CHILD)], (State.IDLE, False)),
    ([row("your-turn", role=Role.CHILD), row("working")], (State.WORKING, False)),
])
def test_the_icon_is_the_most_urgent_row_of_a_persons_own(shown, icon):
    assert collapse(shown) == icon


def test_what_asks_comes_before_an_error_and_that_before_what_finished_however_long_it_waited():
    rows = [Row("codex", reason, verdict("your-turn", reason, since)) for since, reason in enumerate(
        (Reason.LIMIT, Reason.FINISHED, Reason.ERROR, Reason.PLAN, Reason.QUESTION, Reason.PERMISSION))]
    assert sorted(rows, key=urgency) == rows[::-1]


def test_of_equally_urgent_rows_the_one_that_has_waited_longest_comes_first():
    early, late = row("your-turn", "early", since=10), row("your-turn", "late", since=20)
    assert sorted([late, row("working"), early], key=urgency)[:2] == [early, late]


@pytest.mark.parametrize(("said", "at", "shown"), [
    ("yes", 30, False), ("no", 30, True), ("yes", 20, False), ("yes", 19, True),
])
def test_a_session_that_was_put_away_is_not_shown_until_it_goes_on(said, at, shown):
    sessions = Sessions(AGENTS, 0.0)
    for e in (owner(), prompt(), end(20), event(Kind.FACT, at, "archived", said)):
        sessions.join(CODEX, e)
    sessions.settle(100.0, lambda _, __: None)
    assert bool(sessions.rows()) is shown


@pytest.mark.parametrize(("seen", "said", "want"), [
    ("", "", "your-turn(finished)"), ("g1", "g1", "your-turn(finished)"), ("g1", "", "your-turn(finished)"),
    ("g1", "g2", "working(model)"), (None, "g1", "idle(new)"), (None, "", "your-turn(finished)"),
])
def test_an_answer_beside_the_history_counts_only_for_the_turn_that_was_seen(seen, said, want):
    begun = [] if seen is None else [event(Kind.PROMPT, 10, KEYLESS, "user", turn=seen)]
    assert state_of(owner(), *begun, event(Kind.ANSWER, 20, KEYLESS, "finished", turn=said)) == want


@pytest.mark.parametrize(("found", "shown"), [
    ([], False), ([closed(30, "c1")], False), ([gone(30)], False),
    ([event(Kind.ANSWER, 30, KEYLESS, "finished", turn="g1")], False),
    ([opened(30, "c1", "tool")], True), ([owner()], True),
    ([live(30, "idle")], True), ([live(30, "idle", ANY)], False), ([opened(30, "c1", "process", text=ANY)], False),
])
def test_that_something_has_ended_is_no_more_than_hearsay(found, shown):
    sessions = Sessions(AGENTS, 0.0)
    for e in (event(Kind.FACT, 10, "cwd", "/a"), *found):
        sessions.join(CODEX, e)
    sessions.settle(100.0, lambda _, __: None)
    assert bool(sessions.rows()) is shown


def test_a_row_says_when_its_newest_prompt_came():
    sessions = Sessions(AGENTS, 0.0)
    agent = AGENTS["codex"]
    sessions.join(agent, Event(Kind.ANSWER, "s", 5.0, word="finished", turn="t"))
    sessions.settle(6.0, lambda *_: None)
    assert [row.begun for row in sessions.rows()] == [0.0]
    for at in (3.0, 2.0):
        sessions.join(agent, Event(Kind.PROMPT, "s", at, turn="t"))
    sessions.settle(6.0, lambda *_: None)
    assert [row.begun for row in sessions.rows()] == [3.0]


def test_a_child_that_goes_on_costs_its_parent_nothing(monkeypatch):
    sessions, agent = Sessions(AGENTS, 0.0), AGENTS["codex"]
    sessions.join(agent, event(Kind.PROMPT, 1, word="user", turn="t"))
    for told in (Event(Kind.FACT, "child", 2.0, "parent", "s"), Event(Kind.PROMPT, "child", 2.0, turn="u")):
        sessions.join(agent, told)
    sessions.settle(3.0, lambda *_: None)
    assert sessions.of(agent, "s").get(Kind.OPENED, "child")
    monkeypatch.setattr(Session, "only", lambda *_: pytest.fail("all registers of the parent were looked at"))
    sessions.join(agent, Event(Kind.PROGRESS, "child", 4.0, word="model"))
    sessions.settle(5.0, lambda *_: None)
