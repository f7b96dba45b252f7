"""When the user is told, in which words, and when a notice is taken away again."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from island.model import Reason, Role, Row, State, Sure, Verdict
from island.notices import DWELL, FRESH, HEADLINES, MANY, Book, Notice, Withdraw, about, advance, key_of
from island.replay import play
from island.sequence import parse

FLEET = Path(__file__).parent.parent / "sequences" / "fleet"
NOW = 10_000.0
TOLD, INFERRED = DWELL[Sure.TOLD], DWELL[Sure.INFERRED]


def wait(name="s", reason="finished", *, turn="t1", since=NOW, sure=Sure.TOLD, state="your-turn", **more):
    return Row("codex", name, Verdict(State(state), Reason(reason), sure, since, inf, turn), **more)


def after(*frames, since=0.0):
    """Play frames of (moment, rows) and the dwells between them; return the book and all that was said."""
    book, told = Book(since=since), []
    for now, rows in frames:
        book, said = advance(book, rows, now)
        told += said
    return book, told


def announced(*rows, since=0.0):
    """Show rows for long enough, and return the notices."""
    return after((NOW, rows), (NOW + TOLD, rows), (NOW + INFERRED, rows), since=since)[1]


# -- who is told, and when ---------------------------------------------------------------------------------


def test_a_wait_is_announced_after_its_dwell_and_once():
    row = wait()
    book, said = after((NOW, [row]))
    assert (said, book.due) == ([], NOW + TOLD)
    book, said = advance(book, [row], NOW + TOLD - 0.01)
    assert said == ()
    book, said = advance(book, [row], NOW + TOLD)
    assert [n.session for n in said] == ["s"]
    assert book.due == inf
    assert advance(book, [row], NOW + 500)[1] == ()


def test_what_is_only_inferred_dwells_longer():
    assert after((NOW, [wait(sure=Sure.INFERRED)]))[0].due == NOW + INFERRED > NOW + TOLD


def test_a_wait_that_is_over_within_its_dwell_is_never_announced():
    assert after((NOW, [wait()]), (NOW + 1, []), (NOW + 60, []))[1] == []


def test_a_wait_that_turns_into_another_within_its_dwell_dwells_anew():
    question, permission = wait(reason="question"), wait(reason="permission")
    assert after((NOW, [question]), (NOW + 1, [permission]), (NOW + TOLD, [permission]))[1] == []


@pytest.mark.parametrize("row", [
    wait(reason="interrupted"), wait(role=Role.MACHINE), wait(role=Role.CHILD), wait(seen=True),
    wait(state="working", reason="model"), wait(state="stalled", reason="silent"), wait(state="idle", reason="ended"),
    wait(since=NOW - FRESH - 1),
], ids=lambda row: f"{row.role} {row.verdict.reason}")
def test_nobody_is_told_of(row):
    assert announced(row) == []


def test_nobody_is_told_of_what_was_true_at_the_launch():
    assert announced(wait(since=NOW - 5), since=NOW - 2) == []
    assert len(announced(wait(since=NOW - 1), since=NOW - 2)) == 1


@pytest.mark.parametrize("later", [
    wait(turn="t2"), wait(reason="question"), wait(turn="", since=NOW + 50),
], ids=["another turn", "another reason", "no turn, later"])
def test_another_matter_of_the_same_session_is_told_again(later):
    frames = [(NOW, [wait()]), (NOW + 5, [wait()]), (NOW + 60, [later]), (NOW + 65, [later])]
    later_told = [n for n in after(*frames)[1] if isinstance(n, Notice)]
    assert len(later_told) == 2


def test_a_wait_without_a_turn_is_told_once_while_it_lasts():
    row = wait(turn="")
    assert len([n for n in after((NOW, [row]), (NOW + 5, [row]), (NOW + 9, [row]))[1] if isinstance(n, Notice)]) == 1


def test_a_clock_that_is_set_back_silences_nothing_that_comes_after():
    row = wait(since=NOW - 3600)
    said = after((NOW, []), (NOW - 3600, [row]), (NOW - 3600 + TOLD, [row]), since=NOW)[1]
    assert [n.session for n in said] == ["s"]


def test_a_dwell_that_runs_while_the_clock_is_set_back_is_not_drawn_out():
    row = wait()
    book = after((NOW, [row]))[0]
    set_back = wait(since=NOW - 3600)
    book = advance(book, [set_back], NOW - 3600)[0]
    assert book.due <= NOW - 3600 + TOLD


# -- words -------------------------------------------------------------------------------------------------


def test_every_reason_to_wait_has_its_own_words():
    assert set(HEADLINES) == {
        Reason.FINISHED, Reason.QUESTION, Reason.PLAN, Reason.PERMISSION, Reason.ERROR, Reason.LIMIT, Reason.LOGIN,
    }
    assert len(set(HEADLINES.values())) == len(HEADLINES)


def test_a_notice_names_the_agent_the_reason_and_the_project_and_no_text_of_the_session():
    (notice,) = announced(wait(reason="error", label="Codex CLI", project="app", title="a secret"))
    assert (notice.title, notice.body) == ("Codex CLI stopped with an error", "app")
    assert "secret" not in repr(notice)


def test_an_agent_without_a_name_for_people_is_named_by_its_own():
    assert announced(wait())[0].title == "codex finished: your turn"


@pytest.mark.parametrize("reason", HEADLINES, ids=str)
def test_a_notice_tells_its_reason(reason):
    (notice,) = announced(wait(reason=reason))
    assert (notice.reason, notice.turn, notice.sessions) == (reason, "t1", ("s",))
    assert HEADLINES[reason] in notice.title


def test_up_to_three_waits_are_told_one_by_one():
    rows = [wait(f"s{i}", turn=f"t{i}") for i in range(3)]
    assert [n.key for n in announced(*rows)] == [key_of(row) for row in rows]


def test_more_waits_at_once_are_one_notice_that_names_all():
    rows = [wait(f"s{i}", turn=f"t{i}", project=f"p{i}" if i else "", reason="error" if i == 2 else "finished")
            for i in range(5)]
    (notice,) = announced(*rows)
    assert (notice.key, notice.title) == (f"{MANY}:s0", "5 sessions need you")
    assert notice.sessions == tuple(f"s{i}" for i in range(5))
    assert notice.body.splitlines()[1:3] == ["p1: codex finished: your turn", "p2: codex stopped with an error"]
    assert notice.body.startswith("s0: ")


# -- the end of a wait -------------------------------------------------------------------------------------


def test_the_end_of_a_wait_takes_its_notice_away():
    row = wait()
    assert after((NOW, [row]), (NOW + 5, [row]), (NOW + 9, []))[1][-1] == Withdraw("codex/s", "s")


@pytest.mark.parametrize("change", [
    {"seen": True}, {"role": Role.MACHINE}, {"verdict": Verdict(State.WORKING, Reason.MODEL, turn="t1")},
    {"verdict": Verdict(State.IDLE, Reason.ENDED, turn="t1")},
], ids=["seen", "found to be a machine's", "working again", "ended"])
def test_a_notice_goes_when_its_session_is(change):
    row = wait()
    said = after((NOW, [row]), (NOW + 5, [row]), (NOW + 9, [replace(row, **change)]))[1]
    assert said[1:] == [Withdraw("codex/s", "s")]


def test_another_wait_of_the_same_session_replaces_its_notice():
    first, second = wait(reason="question"), wait(reason="permission")
    said = after((NOW, [first]), (NOW + 5, [first]), (NOW + 9, [second]), (NOW + 14, [second]))[1]
    assert [type(s) for s in said] == [Notice, Notice]
    assert said[0].key == said[1].key


@pytest.mark.parametrize("then", [[], [wait(state="working", reason="model")], [wait(reason="interrupted")]],
                         ids=["gone", "working", "interrupted"])
def test_a_notice_goes_although_another_wait_has_come_and_gone_within_the_dwell(then):
    first, second = wait(reason="question"), wait(reason="permission")
    said = after((NOW, [first]), (NOW + 5, [first]), (NOW + 9, [second]), (NOW + 10, then), (NOW + 60, then))[1]
    assert [type(s) for s in said] == [Notice, Withdraw]


def test_a_notice_goes_when_its_session_waits_again_for_what_was_told_before():
    first, second = wait(reason="finished"), wait(reason="permission")
    shown = [first, first, second, second, first, first]
    said = after(*[(NOW + 5 * i, [row]) for i, row in enumerate(shown)])[1]
    assert [type(s) for s in said] == [Notice, Notice, Withdraw]


def test_a_merged_notice_stays_until_the_last_of_its_waits_is_over():
    rows = [wait(f"s{i}", turn=f"t{i}") for i in range(4)]
    book, said = after((NOW, rows), (NOW + 5, rows), (NOW + 9, rows[:1]))
    assert [type(s) for s in said] == [Notice]
    assert advance(book, [], NOW + 10)[1] == (Withdraw(f"{MANY}:s0", "s0"),)


def test_keys_name_agent_and_session_and_matters_name_turn_and_reason():
    assert key_of(wait()) == "codex/s"
    assert about(wait()) != about(wait(turn="t2")) != about(wait(turn="t2", reason="error"))


# -- what expect lines do not reach: what is taken away, and what a merged notice names ----------------------


def fleet(name):
    return play(parse((FLEET / f"{name}.jsonl").read_text(encoding="utf-8"), name))


@pytest.mark.parametrize("name", ["withdrawn-on-reply", "withdrawn-on-end", "replaced-then-answered", "short-wait"])
def test_after_the_sequence_no_notice_is_left_of_a_wait_that_is_over(name):
    timeline = fleet(name)
    waiting = {line["session"]: line["state"] == "your-turn" for line in timeline if "state" in line}
    shown = set()
    for line in timeline:
        shown |= {line["notice"]["session"]} if "notice" in line else set()
        shown -= {line["withdraw"]["session"]} if "withdraw" in line else set()
    assert shown == {session for session in shown if waiting[session]}


def test_a_reply_takes_the_notice_away_at_once():
    timeline = fleet("withdrawn-on-reply")
    withdrawn = [line["at"] for line in timeline if "withdraw" in line]
    assert withdrawn == [20.0, 30.0, 45.0]


def test_a_merged_notice_names_all_its_sessions():
    merged = [line["notice"] for line in fleet("merged") if "sessions" in line.get("notice", {})]
    assert [len(n["sessions"]) for n in merged] == [4]


def test_errors_are_told_by_their_names():
    told = [line["notice"]["reason"] for line in fleet("errors-are-named") if "notice" in line]
    assert told == ["error", "limit", "login", "error", "limit"]
