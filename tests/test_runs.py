"""What a log says of an agent's starts: which process each of them is, and for which call it asks."""

from island.model import ASK_OF, Event, Kind, Process, Session
from island.rules import fold
from island.runs import AT_ONCE, KEPT, SOON, Run, note, processes

AT = 1_796_029_200.0


def run(began=0.0, *asks):
    made = Run()
    if began:
        made.note(Event(Kind.RUN, "r", AT + began, word="began"))
    for n, at in enumerate(asks):
        made.note(Event(Kind.RUN, "r", AT + at, str(n), "asks"))
    return made


def process(pid, created):
    return Process(pid, 1, "agent", created=AT + created)


def found(runs, *running):
    return {name: p.pid for name, p in processes(runs, running).items()}


def call(at, key, word="tool", text=""):
    return Event(Kind.OPENED, "s", AT + at, key, word, text=text)


def session(*events):
    held = Session("agent", "s")
    for event in events:
        held = fold(held, event)
    return held


def asked(made, *events):
    return [(e.key, e.word, round(e.at - AT, 3)) for e in made.asking([session(*events)])]


# -- processes -----------------------------------------------------------------------------------------------


def test_a_run_is_the_process_that_started_last_before_its_log_began():
    assert found({"r": run(2)}, process(1, -500), process(2, 0), process(3, 40)) == {"r": 2}


def test_runs_that_begin_slowly_keep_the_order_of_their_processes():
    assert found({"a": run(18), "b": run(30)}, process(1, 0), process(2, 7)) == {"a": 1, "b": 2}


def test_a_run_without_a_process_or_a_beginning_is_none():
    assert found({"over": run(2), "young": run()}, process(1, 100)) == {}
    assert found({"r": run(SOON + 1)}, process(1, 0)) == {}


def test_the_first_beginning_counts():
    made = run(2)
    made.note(Event(Kind.RUN, "r", AT + 900, word="began"))
    made.note(Event(Kind.RUN, "r", AT + 1, word="began"))
    assert made.began == AT + 1


# -- asks ----------------------------------------------------------------------------------------------------


def test_an_ask_is_of_the_call_that_was_opened_last_before_it():
    assert asked(run(0, 5.1), call(1, "a"), call(5, "b"), call(9, "c")) == [(f"{ASK_OF}b", "permission", 5.1)]


def test_an_ask_of_a_command_is_over_when_its_process_runs():
    assert asked(run(0, 5.1), call(5, "a", "shell-tool", "make")) == [(f"{ASK_OF}a", "escalation", 5.1)]


def test_an_ask_whose_time_is_cut_is_no_older_than_its_call():
    assert asked(run(0, 5), call(5.7, "a")) == [(f"{ASK_OF}a", "permission", 5.7)]


def test_an_ask_long_after_a_call_is_not_known_to_be_its():
    assert asked(run(0, 5 + AT_ONCE + 1), call(5, "a")) == []


def test_an_ask_is_not_of_a_call_that_was_over():
    closed = Event(Kind.CLOSED, "s", AT + 4, "a", "tool")
    assert asked(run(0, 5), call(3, "a"), closed) == []


def test_a_question_asks_for_itself():
    assert asked(run(0, 5), call(5, "a", "question")) == []


def test_only_the_newest_asks_are_remembered():
    assert len(run(0, *range(2 * KEPT)).asks) == KEPT


def test_only_the_newest_runs_are_remembered_in_whatever_order_they_are_told():
    runs = {}
    for n in (*range(KEPT), -1, KEPT):
        note(runs, Event(Kind.RUN, str(n), AT + n, word="began"))
    assert {int(name) for name in runs} == set(range(1, KEPT + 1))
