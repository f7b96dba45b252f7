from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.model import Reason, Role, Row, Snapshot, State, Sure, Verdict
from island.tray.menu import (
    GLYPHS,
    MOST_ROWS,
    QUIT,
    SEEN,
    WORDS,
    Face,
    RowKind,
    TrayModel,
    face_of,
    model,
)

NOW = 2_000_000_000.0
MINUTE, HOUR, DAY = 60, 3600, 86400

YOUR_TURN, STALLED, WORKING, IDLE = State.YOUR_TURN, State.STALLED, State.WORKING, State.IDLE


def row(state, reason, session="s1", *, age=200.0, **more):
    verdict = Verdict(state, reason, more.pop("sure", Sure.TOLD), since=NOW - age)
    return Row(more.pop("agent", "claude"), session, verdict, project=more.pop("project", "web_shop"), **more)


def shown(*rows, icon=None, calm=False, trouble=()):
    return model(Snapshot(NOW, icon or (rows[0].verdict.state if rows else IDLE), rows, trouble, calm), NOW)


ASK = row(YOUR_TURN, Reason.PERMISSION)
DONE = row(YOUR_TURN, Reason.FINISHED, "s2")
WORK = row(WORKING, Reason.TOOL, "s3")


@pytest.mark.parametrize(("rows", "calm", "face", "attention"), [
    ((), False, Face.IDLE, False),
    ((row(IDLE, Reason.NEW),), False, Face.IDLE, False),
    ((WORK,), False, Face.WORKING, False),
    ((row(STALLED, Reason.SILENT), WORK), False, Face.STALLED, False),
    ((DONE, WORK), False, Face.DONE, True),
    ((row(YOUR_TURN, Reason.LIMIT), DONE), False, Face.ERROR, True),
    ((DONE, row(YOUR_TURN, Reason.ERROR), ASK), False, Face.YOUR_TURN, True),
    ((row(YOUR_TURN, Reason.INTERRUPTED),), False, Face.CALM, False),
    ((row(YOUR_TURN, Reason.INTERRUPTED), DONE), False, Face.DONE, True),
    ((replace(ASK, seen=True),), True, Face.CALM, False),
])
def test_the_face_tells_the_most_urgent_state_and_what_the_wait_is_for(rows, calm, face, attention):
    tray = shown(*rows, calm=calm)
    assert (tray.face, tray.attention) == (face, attention)


def test_the_title_counts_what_matters_most_first():
    seen = replace(DONE, seen=True)
    stopped = row(YOUR_TURN, Reason.INTERRUPTED)
    assert shown(ASK, DONE, WORK).title == "island: 2 waiting, 1 working"
    assert shown(ASK, stopped, row(STALLED, Reason.SILENT), WORK, seen).title == (
        "island: 1 waiting, 1 interrupted, 1 stalled, 1 working, 1 already seen"
    )
    assert shown(row(IDLE, Reason.NEW)).title == "island: nothing needs you"


def test_the_badge_counts_unseen_waits_only():
    assert shown(ASK, DONE, replace(DONE, seen=True), row(YOUR_TURN, Reason.INTERRUPTED), WORK).badge == 2


def test_only_a_persons_own_sessions_are_shown():
    child, machine = replace(ASK, role=Role.CHILD), replace(DONE, role=Role.MACHINE)
    tray = shown(child, machine, WORK, icon=WORKING)
    assert [r.key for r in tray.rows if r.kind is RowKind.ROW] == ["claude/s3"]
    assert (tray.badge, tray.title) == (0, "island: 1 working")


def test_a_row_says_state_reason_project_title_age_and_agent():
    assert texts(shown(replace(ASK, title="Fix the till"))) == [
        "◆ needs permission · web_shop: Fix the till · 3 min · claude",
    ]


@pytest.mark.parametrize(("given", "text"), [
    (row(YOUR_TURN, Reason.FINISHED, sure=Sure.INFERRED), "✓ finished? · web_shop · 3 min · claude"),
    (row(STALLED, Reason.SILENT, sure=Sure.INFERRED), "▲ gone silent · web_shop · 3 min · claude"),
    (row(YOUR_TURN, Reason.FINISHED, seen=True), "◇ finished · web_shop · 3 min · claude"),
    (row(YOUR_TURN, Reason.ERROR, project=""), "✕ stopped by an error · 3 min · claude"),
    (row(WORKING, Reason.MODEL, age=NOW), "► thinking · web_shop · claude"),
    (row(WORKING, Reason.MODEL, label="Claude Code"), "► thinking · web_shop · 3 min · Claude Code"),
    (row(IDLE, Reason.CRASHED, agent="", title="t"), "○ crashed · web_shop: t · 3 min"),
])
def test_what_is_not_known_is_said_or_left_out(given, text):
    assert texts(shown(given)) == [text]


@pytest.mark.parametrize(("age", "text"), [
    (-500, "now"), (0, "now"), (59.9, "now"), (60, "1 min"), (3599, "59 min"), (HOUR, "1 h"),
    (DAY - 1, "23 h"), (DAY, "1 d"), (40 * DAY, "40 d"),
])
def test_an_age_has_one_unit(age, text):
    assert texts(shown(row(WORKING, Reason.MODEL, age=age, project="")))[0].split(" · ")[1] == text


def test_long_names_give_way_to_state_age_and_agent():
    (text,) = texts(shown(replace(ASK, project="p" * 50, title="t" * 500)))
    assert len(text) == 60
    assert text.startswith("◆ needs permission · ppp")
    assert text.endswith("… · 3 min · claude")


def test_a_crash_comes_last_and_what_is_over_is_not_listed():
    past = [row(IDLE, Reason.CRASHED, "old"), row(IDLE, Reason.ENDED, "over"), row(IDLE, Reason.EXPIRED, "late")]
    assert keys(shown(*past, row(IDLE, Reason.NEW, "new"), icon=IDLE)) == ["claude/new", "claude/old"]


def test_the_most_urgent_are_listed_and_the_rest_counted():
    tray = shown(*(row(WORKING, Reason.TOOL, f"s{n}") for n in range(MOST_ROWS + 5)))
    assert keys(tray) == [f"claude/s{n}" for n in range(MOST_ROWS)]
    assert [r.text for r in tray.rows if r.key == "more"] == ["and 5 more"]


def test_the_menu_ends_with_trouble_and_the_actions():
    tray = shown(ASK, trouble=("no\x00 hooks", "b" * 100))
    assert [(r.key, r.text, r.kind, r.enabled) for r in tray.rows] == [
        ("heading", "1 waiting", RowKind.HEADING, False),
        ("line:sessions", "", RowKind.SEPARATOR, False),
        ("claude/s1", "◆ needs permission · web_shop · 3 min · claude", RowKind.ROW, True),
        ("line:trouble", "", RowKind.SEPARATOR, False),
        ("trouble:0", "! no hooks", RowKind.HEADING, False),
        ("trouble:1", "! " + "b" * 57 + "…", RowKind.HEADING, False),
        ("line:actions", "", RowKind.SEPARATOR, False),
        (SEEN, "Mark all seen", RowKind.ACTION, True),
        (QUIT, "Quit island", RowKind.ACTION, True),
    ]
    assert tray.lines[-2:] == ("! no hooks", "! " + "b" * 57 + "…")


def test_without_sessions_there_is_no_empty_part():
    assert [r.kind for r in shown().rows] == [
        RowKind.HEADING, RowKind.SEPARATOR, RowKind.ACTION, RowKind.ACTION,
    ]


def test_mark_all_seen_is_offered_only_when_something_is_unseen():
    enabled = [next(r.enabled for r in tray.rows if r.key == SEEN)
               for tray in (shown(), shown(WORK), shown(replace(ASK, seen=True), calm=True), shown(ASK))]
    assert enabled == [False, False, False, True]


def test_the_tooltip_lists_what_needs_the_user_and_does_not_age():
    seen, silent = replace(DONE, seen=True), row(STALLED, Reason.SILENT, "s8")
    assert shown(ASK, silent, WORK, seen, row(IDLE, Reason.NEW, "s9")).lines == (
        "◆ needs permission · web_shop · claude", "▲ gone silent · web_shop · claude",
    )


def test_every_reason_and_face_has_its_word_and_mark():
    assert set(WORDS) == set(Reason)
    assert set(GLYPHS) == set(Face)
    assert len(set(GLYPHS.values())) == len(Face)


def test_every_wait_has_a_face():
    faces = {Reason.PLAN: Face.YOUR_TURN, Reason.LOGIN: Face.ERROR, Reason.FINISHED: Face.DONE,
             Reason.SILENT: Face.STALLED}
    assert {reason: face_of(reason) for reason in faces} == faces


@given(st.text(), st.text(), st.text(), st.text())
def test_no_foreign_text_reaches_a_row_as_it_is(agent, session, project, title):
    tray = shown(replace(ASK, agent=agent, session=session, project=project, title=title), trouble=(title,))
    for text in (tray.title, *tray.lines, *(r.text for r in tray.rows)):
        assert len(text) <= 60
        assert text.isprintable() or any(char in text for char in "\u200c\u200d\u00a0 ") or text == ""
        text.encode()


def test_an_equal_snapshot_gives_an_equal_model():
    assert shown(ASK, WORK) == shown(ASK, WORK)
    assert TrayModel() == TrayModel()


def texts(tray):
    return [r.text for r in tray.rows if r.kind is RowKind.ROW]


def keys(tray):
    return [r.key for r in tray.rows if r.kind is RowKind.ROW]
