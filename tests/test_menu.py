from dataclasses import replace
from datetime import UTC
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.manner import Ear, Manner
from island.model import Event, Kind, Reason, Role, Row, Snapshot, State, Sure, Verdict
from island.quiet import ACTIONS, SNOOZE_HOUR, SNOOZE_OFF, SNOOZE_QUARTER, SNOOZE_TOMORROW, Hush, after, hours
from island.tray.entry import SEEN, RowKind
from island.tray.face import GLYPHS, WORDS, Face, face_of
from island.tray.listing import MOST_FOLDS, MOST_ROWS
from island.tray.menu import EAR, TrayModel, model

NOW = 2_000_000_000.0
MINUTE, HOUR, DAY = 60, 3600, 86400

YOUR_TURN, STALLED, WORKING, IDLE = State.YOUR_TURN, State.STALLED, State.WORKING, State.IDLE


def row(state, reason, session="s1", *, age=200.0, **more):
    verdict = Verdict(state, reason, more.pop("sure", Sure.TOLD), since=NOW - age)
    return Row(more.pop("agent", "claude"), session, verdict, project=more.pop("project", "web_shop"), **more)


def shown(*rows, icon=None, calm=False, trouble=(), ear=EAR):
    snapshot = Snapshot(NOW, icon or (rows[0].verdict.state if rows else IDLE), rows, trouble, calm)
    return model(snapshot, NOW, replace(ear, zone=UTC))


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
    assert len(text) == 72
    assert text.startswith("◆ needs permission · ppp")
    assert text.endswith("… · 3 min · claude")


@pytest.mark.parametrize(("tokens", "window", "end", "said"), [
    (None, None, "claude", "opus"),
    (86_400, 200_000, "claude · 43 %", "opus · context 43 % (86k of 200k)"),
    (86_400, None, "claude", "opus · 86k tokens of context"),
    (900, 0, "claude", "opus · 900 tokens of context"),
    (300_000, 200_000, "claude · 100 %", "opus · context 100 % (300k of 200k)"),
])
def test_a_row_says_how_full_the_context_is_as_far_as_it_is_known(tokens, window, end, said):
    tray = shown(replace(ASK, model="opus", tokens=tokens, window=window))
    assert texts(tray) == [f"◆ needs permission · web_shop · 3 min · {end}"]
    assert [r.text for r in opened(tray, "claude/s1") if r.key == "model"] == [said]


def test_a_crash_comes_last_and_what_is_over_is_not_listed():
    past = [row(IDLE, Reason.CRASHED, "old"), row(IDLE, Reason.ENDED, "over"), row(IDLE, Reason.EXPIRED, "late")]
    assert keys(shown(*past, row(IDLE, Reason.NEW, "new"), icon=IDLE)) == ["claude/new", "claude/old"]


def test_of_too_many_the_urgent_are_listed_and_the_rest_folded_by_project():
    asking = [row(YOUR_TURN, Reason.PERMISSION, f"a{n}", project=f"p{n}") for n in range(3)]
    working = [row(WORKING, Reason.TOOL, f"w{n}", project=f"p{n % 2}") for n in range(40)]
    resting = [row(IDLE, Reason.NEW, f"r{n}", project="") for n in range(57)]
    tray = shown(*asking, *working, *resting)
    assert [(r.key, r.text, len(r.rows)) for r in tray.rows[2:8]] == [
        ("claude/a0", "◆ needs permission · p0 · 3 min · claude", 9),
        ("claude/a1", "◆ needs permission · p1 · 3 min · claude", 9),
        ("claude/a2", "◆ needs permission · p2 · 3 min · claude", 9),
        ("fold:p0", "► p0 · 20 sessions · 20 working", 20),
        ("fold:p1", "► p1 · 20 sessions · 20 working", 20),
        ("fold:", "○ sessions · 57 sessions", 57),
    ]
    assert [r.key for r in opened(tray, "fold:p1")][:2] == ["claude/w1", "claude/w3"]
    hidden = shown(*asking, *working, *resting, ear=Ear(hush=Hush(hidden=True)))
    assert [(r.key, r.text) for r in hidden.rows[5:7]] == [
        ("fold:", "► sessions · 97 sessions · 40 working"), ("line:trouble", "")]


def test_of_too_many_projects_the_rest_is_one():
    tray = shown(*(row(WORKING, Reason.TOOL, f"s{n}", project=f"p{n}") for n in range(100)))
    *alone, rest = [r for r in tray.rows if r.rows and r.kind is RowKind.ROW]
    assert [r.key for r in alone] == [f"claude/s{n}" for n in range(MOST_FOLDS)]
    more = 100 - MOST_FOLDS
    assert rest.text == f"► {more} more projects · {more} sessions · {more} working"


@given(st.lists(st.sampled_from([
    (YOUR_TURN, Reason.FINISHED), (STALLED, Reason.SILENT), (WORKING, Reason.TOOL), (IDLE, Reason.NEW)]), max_size=130),
    st.integers(1, 30))
def test_every_session_is_in_the_menu_once_and_the_menu_stays_short(states, projects):
    tray = shown(*(row(*state, f"s{n}", project=f"p{n % projects}") for n, state in enumerate(states)))
    assert sorted(listed(tray.rows)) == sorted(f"claude/s{n}" for n in range(len(states)))
    assert len([r for r in tray.rows if r.kind is RowKind.ROW]) <= MOST_ROWS + MOST_FOLDS + 1
    assert unique(tray.rows)


def listed(rows):
    return [key for r in rows for key in ([r.key] if r.key.startswith("claude/") else listed(r.rows))]


def unique(rows):
    return len({r.key for r in rows}) == len(rows) and all(unique(r.rows) for r in rows)


def test_the_menu_ends_with_trouble_and_the_actions():
    tray = shown(ASK, trouble=("no\x00 hooks", "watch limit reached: " + "raise it " * 6 + "or live with polling"))
    assert [(r.key, r.text, r.kind, r.enabled) for r in tray.rows] == [
        ("heading", "1 waiting", RowKind.HEADING, False),
        ("line:sessions", "", RowKind.SEPARATOR, False),
        ("claude/s1", "◆ needs permission · web_shop · 3 min · claude", RowKind.ROW, True),
        ("line:trouble", "", RowKind.SEPARATOR, False),
        ("trouble:0", "! no hooks", RowKind.HEADING, False),
        ("trouble:1", "! watch limit reached: raise it raise it raise it raise it", RowKind.HEADING, False),
        ("trouble:2", "   raise it raise it or live with polling", RowKind.HEADING, False),
        ("line:actions", "", RowKind.SEPARATOR, False),
        ("seen", "Mark all seen", RowKind.ACTION, True),
        ("snooze", "Snooze notices", RowKind.ACTION, True),
        ("quiet-hours", "Quiet hours: off", RowKind.ACTION, True),
        ("names:hide", "Hide names, to share the screen", RowKind.ACTION, True),
        ("line:island", "", RowKind.SEPARATOR, False),
        ("settings", "Settings", RowKind.ACTION, True),
        ("doctor", "Doctor", RowKind.ACTION, True),
        ("about", "About island", RowKind.ACTION, True),
        ("quit", "Quit island", RowKind.ACTION, True),
    ]
    assert tray.lines[-2:] == ("! no hooks", "! watch limit reached: raise it raise it raise it raise it…")


def test_without_sessions_there_is_no_empty_part():
    kinds = [r.kind for r in shown().rows]
    assert kinds[:3] == [RowKind.HEADING, RowKind.SEPARATOR, RowKind.ACTION]
    assert RowKind.ROW not in kinds


# -- what a session's row opens -----------------------------------------------------------------------------


def opened(tray, key):
    return next(r.rows for r in tray.rows if r.key == key)


def test_a_row_opens_what_is_known_of_its_session_and_what_can_be_done():
    event = Event(Kind.LIVE, "s1", NOW, source="live record")
    known = replace(ASK, folder="/home/dev/web_shop", blind=("approvals, without hooks",),
                    verdict=replace(ASK.verdict, evidence=event))
    assert [(r.key, r.text, r.enabled) for r in opened(shown(known), "claude/s1")] == [
        ("sure", "Told by: live record, since 03:30", False),
        ("blind:0", "Invisible: approvals, without hooks", False),
        ("line:actions", "", False),
        ("jump:claude/s1", "Jump to its terminal", True),
        ("seen:claude/s1", "Mark seen", True),
        ("mute-session:claude/s1", "Mute this session", True),
        ("mute-project:web_shop", "Mute project web_shop", True),
        ("explain:claude/s1", "Explain this state", True),
        ("copy:claude/s1", "Copy session id", True),
        ("folder:claude/s1", "Open folder", True),
    ]


@pytest.mark.parametrize(("given", "closed"), [
    (replace(DONE, folder="/f"), set()),
    (replace(DONE, folder="/f", seen=True), {"Mark seen"}),
    (replace(WORK, session="s2"), {"Mark seen", "Open folder"}),
    (row(IDLE, Reason.CRASHED, "s2", folder="/f"), {"Mark seen", "Jump to its terminal"}),
])
def test_what_cannot_be_done_is_greyed(given, closed):
    rows = opened(shown(given), "claude/s2")
    assert {r.text for r in rows if r.kind is RowKind.ACTION and not r.enabled} == closed


@pytest.mark.parametrize(("sure", "since", "said"), [
    (Sure.TOLD, NOW, "Told, since 03:33"), (Sure.INFERRED, NOW, "Inferred, since 03:33"), (Sure.TOLD, 0.0, "Told"),
])
def test_a_row_says_how_sure_its_state_is(sure, since, said):
    rows = opened(shown(replace(ASK, verdict=Verdict(YOUR_TURN, Reason.PERMISSION, sure, since))), "claude/s1")
    assert rows[0].text == said


def test_what_is_invisible_is_wrapped_and_cut():
    tray = shown(replace(ASK, blind=("a word " * 30, "another " * 30)))
    lines = [r.text for r in opened(tray, "claude/s1") if r.key.startswith("blind:")]
    assert lines[0].startswith("Invisible: a word")
    assert lines[-1] == "…"
    assert len(lines) == 4
    assert max(map(len, lines)) <= 60


# -- silence ------------------------------------------------------------------------------------------------


def quiet(hours_):
    return Ear(Manner(quiet_hours=hours(hours_)))


@pytest.mark.parametrize(("ear", "said"), [
    (Ear(), None),
    (Ear(away=True), None),
    (Ear(hush=Hush(snoozed=NOW)), None),
    (Ear(hush=Hush(snoozed=NOW + 900)), "No notices until 03:48: snoozed"),
    (quiet("03:00-04:33"), "No notices until 04:33: quiet hours"),
    (replace(quiet("03:00-04:33"), hush=Hush(snoozed=NOW + 900)), "No notices until 04:33: quiet hours"),
    (quiet("04:00-05:00"), None),
])
def test_the_menu_says_until_when_it_is_silent(ear, said):
    tray = shown(ASK, ear=ear)
    assert next((r.text for r in tray.rows if r.key == "silent"), None) == said


def test_snoozing_is_offered_and_ringing_again_while_it_lasts():
    assert [r.key for r in opened(shown(), "snooze")] == [SNOOZE_QUARTER, SNOOZE_HOUR, SNOOZE_TOMORROW]
    assert [r.key for r in opened(shown(ear=Ear(hush=Hush(snoozed=NOW + 1))), "snooze")][3:] == [SNOOZE_OFF]
    assert "Quiet hours: 22:00-07:00" in [r.text for r in shown(ear=quiet("22:00-07:00")).rows]


def test_what_is_muted_says_so_and_can_be_unmuted_in_two_places():
    hush = Hush(sessions=("claude/s1", "claude/ended"), projects=("docs",))
    tray = shown(ASK, replace(DONE, project="docs"), WORK, ear=Ear(hush=hush))
    assert texts(tray) == ["◆ needs permission · web_shop · 3 min · claude · muted",
                           "✓ finished · docs · 3 min · claude · muted", "► running a tool · web_shop · 3 min · claude"]
    assert [(r.key, r.text) for r in opened(tray, "muted")] == [
        ("unmute-project:docs", "Unmute project docs"),
        ("unmute-session:claude/s1", "Unmute ◆ needs permission · web_shop · claude · muted"),
    ]
    assert "unmute-session:claude/s1" in [r.key for r in opened(tray, "claude/s1")]
    assert "unmute-project:docs" in [r.key for r in opened(tray, "claude/s2")]


def test_what_the_settings_mute_says_where():
    tray = shown(ASK, ear=Ear(Manner(muted_projects=("web_shop",))))
    assert texts(tray) == ["◆ needs permission · web_shop · 3 min · claude · muted"]
    rows = {r.text: r.enabled for r in opened(tray, "claude/s1")}
    assert rows["Muted in the settings"] is False
    assert not [text for text in rows if text.startswith(("Mute ", "Unmute "))]


def test_hidden_names_are_nowhere_on_the_screen():
    hush = Hush(projects=("web_shop",), sessions=("claude/s1",), hidden=True)
    tray = shown(replace(ASK, title="Fix the till", folder="/home/dev/web_shop"), ear=Ear(hush=hush))
    assert texts(tray) == ["◆ needs permission · 3 min · claude · muted"]
    said = "\n".join([tray.title, *tray.lines, *every_text(tray.rows)])
    assert "web_shop" not in said
    assert "till" not in said
    assert "Show names" in said


def every_text(rows):
    return [text for r in rows for text in (r.text, *every_text(r.rows))]


def test_all_that_silences_is_an_action_of_the_menu():
    hush = Hush(snoozed=NOW + 1, sessions=("claude/s1",), projects=("docs",))
    offered = {r.key for t in (shown(ASK), shown(ASK, replace(DONE, project="docs"), ear=Ear(hush=hush)),
                               shown(ear=Ear(hush=Hush(hidden=True)))) for r in every_row(t.rows)}
    assert {word for word in ACTIONS if not any(key.startswith(word) for key in offered)} == set()
    silencing = [key for key in offered if after(hush, key, NOW)]
    assert len(silencing) >= len(ACTIONS)


def every_row(rows):
    return [one for r in rows for one in (r, *every_row(r.rows))]


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
    row = replace(ASK, agent=agent, session=session, project=project, title=title, model=title, blind=(title,))
    tray = shown(row, trouble=(title,))
    for text in (tray.title, *tray.lines, *every_text(tray.rows)):
        assert len(text) <= 72
        assert [c for c in text if category(c) in ("Cc", "Cf", "Cs") and c not in "\u200c\u200d"] == []
        text.encode()


def test_an_equal_snapshot_gives_an_equal_model():
    assert shown(ASK, WORK) == shown(ASK, WORK)
    assert TrayModel() == TrayModel()


def texts(tray):
    return [r.text for r in tray.rows if r.kind is RowKind.ROW]


def keys(tray):
    return [r.key for r in tray.rows if r.kind is RowKind.ROW]
