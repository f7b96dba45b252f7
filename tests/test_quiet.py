"""What the user silenced: spans of the day, snooze, mutes, and that it is kept."""

import json
from datetime import UTC, datetime, time
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.model import Reason, Row, State, Sure, Verdict
from island.quiet import (
    ACTIONS,
    HIDE_NAMES,
    MOST_MUTES,
    MUTE_PROJECT,
    MUTE_SESSION,
    SHOW_NAMES,
    SNOOZE_HOUR,
    SNOOZE_OFF,
    SNOOZE_QUARTER,
    SNOOZE_TOMORROW,
    UNMUTE_PROJECT,
    UNMUTE_SESSION,
    Hours,
    Hush,
    after,
    from_json,
    hours,
    to_json,
    tomorrow,
)

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = st.sampled_from([UTC, BERLIN, ZoneInfo("America/St_Johns"), ZoneInfo("Australia/Lord_Howe"),
                         ZoneInfo("Pacific/Apia")])
NOW = 10_000.0
moments = st.floats(1_600_000_000, 1_900_000_000)
names = st.text(min_size=1)
hushes = st.builds(Hush, st.floats(0, 2e9), st.lists(names, unique=True).map(tuple),
                   st.lists(names, unique=True).map(tuple), st.booleans())


def at(text, zone=BERLIN):
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def shown(project="app", session="s"):
    return Row("codex", session, Verdict(State.YOUR_TURN, Reason.FINISHED, Sure.TOLD, NOW, inf, "t"), project=project)


# -- hours of the day ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("span", "now", "over"), [
    ("22:00-07:00", "2026-11-30 21:59:59", None),
    ("22:00-07:00", "2026-11-30 22:00:00", "2026-12-01 07:00"),
    ("22:00-07:00", "2026-12-01 00:00:00", "2026-12-01 07:00"),
    ("22:00-07:00", "2026-12-01 06:59:59", "2026-12-01 07:00"),
    ("22:00-07:00", "2026-12-01 07:00:00", None),
    ("12:00-13:30", "2026-12-01 12:00:00", "2026-12-01 13:30"),
    ("12:00-13:30", "2026-12-01 13:30:00", None),
    ("22:00-00:00", "2026-12-01 23:00:00", "2026-12-02 00:00"),
    ("00:00-07:00", "2026-12-01 00:00:00", "2026-12-01 07:00"),
    ("22:00-07:00", "2026-10-24 23:00:00", "2026-10-25 07:00"),  # the clock is set back in that night
    ("22:00-07:00", "2026-03-28 23:00:00", "2026-03-29 07:00"),
])
def test_quiet_hours_are_those_of_the_clock_on_the_wall(span, now, over):
    assert hours(span).over(at(now), BERLIN) == (at(over) if over else 0)


@given(moments, ZONES, st.times(timezones=st.none()), st.times(timezones=st.none()))
def test_quiet_hours_are_over_within_a_day_and_then_they_are(now, zone, begin, end):
    span = Hours(begin.replace(second=0, microsecond=0), end.replace(second=0, microsecond=0))
    over = span.over(now, zone)
    assert over == 0 or now < over <= now + 25.5 * 3600
    assert span.begin == span.end or not over or span.over(over, zone) in (0, over + 3600, over + 1800)


@pytest.mark.parametrize("text", ["22:00-07:00", "00:30-00:00", "12:00-13:00"])
def test_hours_are_read_as_they_are_written(text):
    assert str(hours(text)) == text


@pytest.mark.parametrize("text", ["", "22", "22:00", "22:00-", "-", "25:00-07:00", "22:00-07:00-08:00", "10 pm-7 am"])
def test_what_is_no_span_of_hours_is_said(text):
    with pytest.raises(ValueError, match='two times such as "22:00-07:00"'):
        hours(text)


def test_hours_that_are_no_time_or_all_of_it_are_refused():
    with pytest.raises(ValueError, match="different times"):
        hours("22:00-22:00")


@pytest.mark.parametrize(("now", "morning"), [
    ("2026-11-30 23:00", "2026-12-01 08:00"), ("2026-12-01 02:00", "2026-12-01 08:00"),
    ("2026-12-01 06:30", "2026-12-02 08:00"), ("2026-10-24 20:00", "2026-10-25 08:00"),
])
def test_tomorrow_is_after_the_next_sleep(now, morning):
    assert tomorrow(at(now), BERLIN) == at(morning)


@given(moments, ZONES)
def test_tomorrow_is_between_a_short_night_and_a_long_day_away(now, zone):
    assert 3 * 3600 <= tomorrow(now, zone) - now <= 53 * 3600  # Apia once left out a whole day
    assert datetime.fromtimestamp(tomorrow(now, zone), zone).time() == time(8)


# -- actions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("action", "until"), [
    (SNOOZE_QUARTER, NOW + 900), (SNOOZE_HOUR, NOW + 3600), (SNOOZE_TOMORROW, tomorrow(NOW, UTC)), (SNOOZE_OFF, 0),
])
def test_a_snooze_silences_all_until_its_end(action, until):
    assert after(Hush(snoozed=5), action, NOW, UTC) == Hush(snoozed=until)


def test_a_session_is_muted_and_unmuted_by_its_key():
    hush = after(Hush(), MUTE_SESSION + "codex/s", NOW)
    assert hush.mutes(shown())
    assert not hush.mutes(shown(session="s2"))
    assert not after(hush, UNMUTE_SESSION + "codex/s", NOW).mutes(shown())


def test_a_project_is_muted_with_all_its_sessions():
    hush = after(Hush(), MUTE_PROJECT + "a:b", NOW)
    assert hush.mutes(shown("a:b"))
    assert not hush.mutes(shown("app"))
    assert not after(hush, UNMUTE_PROJECT + "a:b", NOW).mutes(shown("a:b"))


def test_names_are_hidden_and_shown_again():
    assert after(Hush(), HIDE_NAMES, NOW).hidden
    assert not after(Hush(hidden=True), SHOW_NAMES, NOW).hidden


@pytest.mark.parametrize("action", ["", "quit", "codex/s", "snooze:", "snooze:7", MUTE_SESSION, "mute-session", ":"])
def test_what_is_no_action_of_these_changes_nothing(action):
    assert after(Hush(), action, NOW) is None


@given(hushes, st.sampled_from(sorted(ACTIONS)), names, moments)
def test_an_action_done_twice_is_done_once(hush, action, what, now):
    action += what if action.endswith(":") else ""
    once = after(hush, action, now, UTC)
    assert after(once, action, now, UTC) == once


def test_the_oldest_mutes_are_forgotten():
    hush = Hush()
    for i in range(MOST_MUTES + 1):
        hush = after(hush, f"{MUTE_SESSION}codex/{i}", NOW)
    assert (hush.sessions[0], len(hush.sessions)) == ("codex/1", MOST_MUTES)


# -- kept ----------------------------------------------------------------------------------------------------


@given(hushes)
def test_what_is_silenced_is_kept(hush):
    assert from_json(json.loads(json.dumps(to_json(hush)))) == hush


@pytest.mark.parametrize("kept", [None, [], {}, {"schema": 1}, to_json(Hush()) | {"sessions": [1]},
                                  to_json(Hush()) | {"snoozed": "x"}, to_json(Hush()) | {"hidden": 1}])
def test_what_is_not_ours_is_refused(kept):
    with pytest.raises(ValueError, match="not what island keeps"):
        from_json(kept)
