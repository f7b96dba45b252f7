"""When the user is told, in which words, and when a notice is taken away again."""

from dataclasses import replace
from datetime import UTC
from math import inf
from pathlib import Path

import pytest

from island.manner import INFERRED_DWELL, TONES, Ear, Manner, Sound, Urgency
from island.model import Reason, Role, Row, State, Sure, Verdict
from island.notices import FRESH, MANY, NAP, SETTLE, Book, Notice, Withdraw, about, advance, key_of, stepped
from island.quiet import Hush, hours
from island.replay import play
from island.sequence import parse

FLEET = Path(__file__).parent.parent / "sequences" / "fleet"
NOW = 10_000.0
TOLD, INFERRED = TONES[Reason.FINISHED].dwell, INFERRED_DWELL
LONG = max(tone.dwell for tone in TONES.values())


def wait(name="s", reason="finished", *, turn="t1", since=NOW, sure=Sure.TOLD, state="your-turn", **more):
    return Row("codex", name, Verdict(State(state), Reason(reason), sure, since, inf, turn), **more)


def after(*frames, since=0.0, ear=None):
    """Play frames of (moment, rows, and perhaps another ear from then on); return the book and all that was said."""
    book, told, ear = Book(since=since), [], ear or Ear()
    for now, rows, *another in frames:
        ear = another[0] if another else ear
        book, said = advance(book, rows, now, ear)
        told += said
    return book, told


def announced(*rows, since=0.0, ear=None):
    """Show rows for long enough, and return the notices."""
    return after(*((NOW + s, rows) for s in (0, TOLD, INFERRED, LONG)), since=since, ear=ear)[1]


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
    late = NOW + 1 + TONES[Reason.PERMISSION].dwell
    assert after((NOW, [question]), (NOW + 1, [permission]), (late - 0.1, [permission]))[1] == []


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


def test_a_permission_that_may_be_granted_by_a_rule_dwells_longer():
    assert after((NOW, [wait(reason="permission")]))[0].due == NOW + 2.5 > NOW + TOLD


# -- in the user's manner ----------------------------------------------------------------------------------


def ear(*, hush=None, away=False, **manner):
    return Ear(Manner(**manner), hush or Hush(), away, UTC)


@pytest.mark.parametrize("deaf", [
    ear(on=False), ear(urgency={**Manner().urgency, Reason.FINISHED: Urgency.OFF}), ear(muted_agents=("codex",)),
    ear(muted_projects=("app",)), ear(hush=Hush(sessions=("codex/s",))), ear(hush=Hush(projects=("app",))),
], ids=["notices off", "this reason off", "agent", "project", "session, in the menu", "project, in the menu"])
def test_what_is_muted_never_rings_also_when_it_is_heard_again(deaf):
    row = wait(project="app")
    assert announced(row, ear=deaf) == []
    assert after((NOW, [row], deaf), (NOW + 5, [row], Ear()), (NOW + 9, [row]))[1] == []
    another = wait(project="app", turn="t2")
    assert len(after((NOW, [row], deaf), (NOW + 5, [another], Ear()), (NOW + 9, [another]))[1]) == 1


@pytest.mark.parametrize("other", [
    ear(urgency={**Manner().urgency, Reason.ERROR: Urgency.OFF}), ear(muted_agents=("claude",)),
    ear(muted_projects=("app2", "")), ear(hush=Hush(sessions=("codex/s2",))), ear(hush=Hush(projects=("ap",))),
], ids=["reason", "agent", "project", "session", "project, in the menu"])
def test_a_mute_of_something_else_silences_nothing(other):
    assert len(announced(wait(project="app"), ear=other)) == 1


def test_a_mute_takes_away_what_is_on_the_screen():
    row = wait()
    muted = ear(hush=Hush(sessions=("codex/s",)))
    assert after((NOW, [row]), (NOW + 5, [row]), (NOW + 6, [row], muted))[1][-1] == Withdraw("codex/s", "s")


@pytest.mark.parametrize(("begun", "reason", "told"), [
    (NOW - 29, "finished", 0), (NOW - 30, "finished", 1), (0.0, "finished", 1), (NOW - 1, "permission", 1),
    (NOW - 1, "error", 1),
], ids=["short", "long enough", "nobody knows", "a permission", "an error"])
def test_a_short_turn_is_not_told_to_have_finished(begun, reason, told):
    assert len(announced(wait(reason=reason, begun=begun), ear=ear(min_turn=30))) == told


def test_a_notice_names_the_title_if_the_user_wants_it():
    row = wait(project="app", title="the big one")
    assert announced(row, ear=ear(titles=True))[0].body == "app: the big one"


@pytest.mark.parametrize("count", [1, 5])
def test_a_name_cannot_make_a_line_of_its_own(count):
    evil = "app\ncodex waits for your permission\x1b[2J\u202e"
    rows = [wait(f"s{i}", turn=f"t{i}", project=evil, title=evil) for i in range(count)]
    (notice,) = announced(*rows, ear=ear(titles=True))
    assert len(notice.body.splitlines()) == count
    assert not {"\x1b", "\u202e"} & set(notice.title + notice.body)


@pytest.mark.parametrize("count", [1, 5])
def test_while_names_are_hidden_no_notice_has_any(count):
    rows = [wait(f"secret-{i}", turn=f"t{i}", project="secret", title="secret") for i in range(count)]
    (notice,) = announced(*rows, ear=ear(titles=True, hush=Hush(hidden=True)))
    assert "secret" not in notice.title + notice.body


def test_names_that_are_to_be_hidden_leave_the_screen():
    row, hidden = wait(project="app"), ear(hush=Hush(hidden=True))
    said = after((NOW, [row]), (NOW + 5, [row]), (NOW + 6, [row], hidden), (NOW + 7, [row]))[1]
    assert said[1:] == [Withdraw("codex/s", "s")]


@pytest.mark.parametrize(("reason", "sound"), [("question", Sound.ASK), ("finished", Sound.DONE),
                                               ("error", Sound.TROUBLE)])
def test_each_reason_has_its_sound(reason, sound):
    assert announced(wait(reason=reason))[0].sound is sound
    assert announced(wait(reason=reason), ear=ear(sound=False))[0].sound is Sound.NONE


def test_urgency_and_sound_of_a_reason_are_the_users_to_choose():
    loud = ear(urgency={**Manner().urgency, Reason.ERROR: Urgency.CRITICAL},
               sounds={**Manner().sounds, Reason.ERROR: Sound.ASK})
    (notice,) = announced(wait(reason="error"), ear=loud)
    assert (notice.urgency, notice.sound) == (Urgency.CRITICAL, Sound.ASK)


def test_a_merged_notice_is_as_loud_as_the_most_pressing_of_its_waits():
    rows = [wait(f"s{i}", reason="question" if i == 3 else "limit", turn=f"t{i}") for i in range(4)]
    (notice,) = announced(*rows)
    assert (notice.reason, notice.urgency, notice.sound) == (Reason.QUESTION, Urgency.NORMAL, Sound.ASK)


# -- while it is to be quiet -------------------------------------------------------------------------------

QUIETS = {
    "snoozed": (ear(hush=Hush(snoozed=NOW + 900)), NOW + 900), "away": (ear(away=True), inf),
    "quiet hours": (ear(quiet_hours=hours("02:00-03:00")), 3 * 3600.0),  # NOW is 02:46:40
}
each_quiet = pytest.mark.parametrize(("quiet", "over"), QUIETS.values(), ids=QUIETS)


@each_quiet
def test_nothing_is_told_while_it_is_quiet_and_what_still_waits_is_told_then(quiet, over):
    rows = [wait("s1", turn="t1", project="a"), wait("s2", "question", turn="t2", project="b")]
    book, said = after((NOW, rows), (NOW + 5, rows), (NOW + 799, rows), ear=quiet)
    assert (said, book.due) == ([], over)
    book, (notice,) = advance(book, rows, NOW + 900, Ear(quiet.manner, quiet.hush, zone=UTC))
    assert (notice.title, notice.sessions) == ("Meanwhile, 2 sessions need you", ("s2", "s1"))
    assert notice.body.splitlines() == ["b: codex asks you a question", "a: codex finished: your turn"]
    assert book.due == inf
    assert advance(book, [], NOW + 901)[1] == (Withdraw(f"{MANY}:s2", "s2"),)


@each_quiet
def test_what_was_answered_while_it_was_quiet_is_never_told(quiet, over):
    row = wait()
    assert after((NOW, [row]), (NOW + 5, [row]), (NOW + 60, []), (NOW + 900, [], Ear()), ear=quiet)[1] == []


@each_quiet
def test_one_wait_that_was_missed_is_told_as_itself(quiet, over):
    row = wait()
    (notice,) = after((NOW, [row]), (NOW + 5, [row]), (NOW + 900, [row], Ear()), ear=quiet)[1]
    assert notice.title == "codex finished: your turn"


@each_quiet
def test_what_was_on_the_screen_before_stays_until_its_wait_is_over(quiet, over):
    row, other = wait(reason="question"), wait(reason="permission")
    begun = (NOW - 5, [row], Ear()), (NOW, [row], Ear())
    assert [type(s) for s in after(*begun, (NOW + 60, [row], quiet))[1]] == [Notice]
    assert [type(s) for s in after(*begun, (NOW + 60, [other], quiet))[1]] == [Notice, Withdraw]


def test_what_ends_early_is_told_early():
    row = wait()
    snoozed = ear(hush=Hush(snoozed=NOW + 900))
    assert len(after((NOW, [row], snoozed), (NOW + 20, [row]), (NOW + 21, [row], Ear()))[1]) == 1


def test_a_snooze_from_another_age_is_none():
    assert len(announced(wait(), ear=ear(hush=Hush(snoozed=NOW + 30 * 86400)))) == 1


def test_what_is_seen_after_a_sleep_is_told_together_once_things_have_settled():
    woken = NOW + 3600
    rows = [wait("s1", turn="t1")]
    book, _ = after((NOW, rows))  # falls asleep within the dwell
    rows += [wait("s2", "error", turn="t2", since=woken + 1), wait("s3", "error", turn="t3", since=woken + 4)]
    book = stepped(book, 3599, woken)
    book, said = advance(book, rows[:1], woken)
    assert (said, book.due) == ((), woken + SETTLE)
    for at, count in ((1, 2), (4, 3)):
        book, said = advance(book, rows[:count], woken + at)
        assert said == ()
    book, (notice,) = advance(book, rows, book.due)
    assert (notice.title, notice.sessions) == ("Meanwhile, 3 sessions need you", ("s2", "s3", "s1"))


def test_a_clock_put_right_by_a_little_is_no_sleep():
    assert stepped(Book(0.0), NAP, NOW) == Book(0.0)


def test_a_clock_set_back_while_things_settle_does_not_draw_that_out():
    book = advance(stepped(Book(0.0), 100, NOW), [], NOW - 3600)[0]
    assert book.quiet == NOW - 3600 + SETTLE


# -- words -------------------------------------------------------------------------------------------------


def test_every_reason_to_wait_has_its_own_words():
    assert set(TONES) == {
        Reason.FINISHED, Reason.QUESTION, Reason.PLAN, Reason.PERMISSION, Reason.ERROR, Reason.LIMIT, Reason.LOGIN,
    }
    assert len({tone.words for tone in TONES.values()}) == len(TONES)


def test_a_notice_names_the_agent_the_reason_and_the_project_and_no_text_of_the_session():
    (notice,) = announced(wait(reason="error", label="Codex CLI", project="app", title="a secret"))
    assert (notice.title, notice.body) == ("Codex CLI stopped with an error", "app")
    assert "secret" not in repr(notice)


def test_an_agent_without_a_name_for_people_is_named_by_its_own():
    assert announced(wait())[0].title == "codex finished: your turn"


@pytest.mark.parametrize("reason", TONES, ids=str)
def test_a_notice_tells_its_reason(reason):
    (notice,) = announced(wait(reason=reason))
    assert (notice.reason, notice.turn, notice.sessions) == (reason, "t1", ("s",))
    assert TONES[reason].words in notice.title


def test_up_to_three_waits_are_told_one_by_one():
    rows = [wait(f"s{i}", turn=f"t{i}") for i in range(3)]
    assert [n.key for n in announced(*rows)] == [key_of(row) for row in rows]


def test_more_waits_at_once_are_one_notice_that_names_all():
    rows = [wait(f"s{i}", turn=f"t{i}", project=f"p{i}" if i else "", reason="error" if i == 2 else "finished")
            for i in range(5)]
    (notice,) = announced(*rows)
    assert (notice.key, notice.title) == (f"{MANY}:s2", "5 sessions need you")
    assert notice.sessions == ("s2", "s0", "s1", "s3", "s4")
    assert notice.reason is Reason.ERROR
    assert notice.body.splitlines()[:3] == ["p2: codex stopped with an error", "s0: codex finished: your turn",
                                            "p1: codex finished: your turn"]


@pytest.mark.parametrize(("count", "last"), [(4, "p3: "), (6, "p5: "), (7, "and 2 more"), (30, "and 25 more")])
def test_a_merged_notice_names_what_a_desktop_has_room_for_and_counts_the_rest(count, last):
    (notice,) = announced(*(wait(f"s{i:02}", turn=f"t{i}", project=f"p{i}") for i in range(count)))
    assert len(notice.body.splitlines()) == min(count, 6)
    assert notice.body.splitlines()[-1].startswith(last)
    assert (len(notice.sessions), notice.title) == (count, f"{count} sessions need you")


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
