"""The settings: what is read, what is refused and in which line, and that what is shown can be read."""

import re
import tomllib
from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.agents import AGENTS
from island.manner import TONES, Manner, Sound, Urgency
from island.model import Reason
from island.quiet import Hours
from island.settings import SETTINGS, Problem, Settings, parse, places, show

ALL = """
agents = ["claude", "codex"]
panes = true
[titles]
menu = false
notices = true
exports = true
[notices]
on = false
sound = false
min_turn = 30
quiet_hours = "22:00-07:00"
muted_projects = ["scratch"]
muted_agents = ["kimi"]
dwell.finished = 5
urgency.error = "critical"
sounds = { question = "none" }
"""


def test_every_setting_is_read():
    settings, problems = parse(ALL)
    assert problems == ()
    plain = Manner()
    assert settings == Settings(("claude", "codex"), panes=True, titles=False, exports=True, manner=Manner(
        on=False, titles=True, sound=False, min_turn=30, quiet_hours=Hours(time(22), time(7)),
        muted_projects=("scratch",), muted_agents=("kimi",), dwell={**plain.dwell, Reason.FINISHED: 5},
        urgency={**plain.urgency, Reason.ERROR: Urgency.CRITICAL}, sounds={**plain.sounds, Reason.QUESTION: Sound.NONE},
    ))


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", "[notices]\n", "[notices.dwell]\n[titles]\n"])
def test_what_is_not_set_has_its_default(text):
    assert parse(text) == (Settings(), ())


def test_titles_are_shown_in_the_menu_and_nowhere_else_unless_asked_for():
    settings = Settings()
    assert (settings.titles, settings.manner.titles, settings.exports) == (True, False, False)


@pytest.mark.parametrize(("text", "line", "setting", "why"), [
    ("\nwonder = 1", 2, "wonder", "no such setting"),
    ("[notices]\nmin_trun = 1", 2, "notices.min_trun", "no such setting; is it notices.min_turn?"),
    ("min_turn = 1", 1, "min_turn", "no such setting; is it notices.min_turn?"),
    ("dwell.permision = 5", 1, "dwell.permision", "no such setting; is it notices.dwell.permission?"),
    ("[notices.urgency]\npermision = 5", 2, "notices.urgency.permision",
     "no such setting; is it notices.urgency.permission?"),
    ("\n\n[wonder]", 3, "wonder", "no such setting"),
    ("[wonder]\n\nx = 1", 3, "wonder.x", "no such setting"),
    ("[[notices]]\non = true", 1, "notices", "must be a table"),
    ("notices = 3", 1, "notices", "must be a table"),
    ('"notices.on" = true', 1, "notices.on", "no such setting"),
    ("panes = 1", 1, "panes", "must be true or false"),
    ("panes = {}", 1, "panes", "must be true or false"),
    ("[notices]\n# note\nmin_turn = -1", 3, "notices.min_turn", "must be a number of seconds from 0 to 86400"),
    ("notices.min_turn = true", 1, "notices.min_turn", "must be a number of seconds from 0 to 86400"),
    ("notices.min_turn = nan", 1, "notices.min_turn", "must be a number of seconds from 0 to 86400"),
    ("notices.dwell = { error = 3601 }", 1, "notices.dwell.error", "must be a number of seconds from 0 to 3600"),
    ('[notices]\n\nquiet_hours = "22-7"', 3, "notices.quiet_hours", 'must be two times such as "22:00-07:00"'),
    ('[notices]\nquiet_hours = "22:00-22:00"', 2, "notices.quiet_hours", "must begin and end at different times"),
    ("notices.quiet_hours = 22:00:00", 1, "notices.quiet_hours", 'must be two times in quotes, such as "22:00-07:00"'),
    ("[notices]\nmuted_projects = 'x'", 2, "notices.muted_projects", 'must be a list of names, such as ["one", "two"]'),
    ("[notices]\nmuted_projects = [1]", 2, "notices.muted_projects", 'must be a list of names, such as ["one", "two"]'),
    ('# note\nagents = [\n  "claude",\n  "hal",\n]', 2, "agents",
     f'"hal": no such agent; there are {", ".join(AGENTS)}'),
    ("agents = []", 1, "agents", f"must name one at least, else nothing is watched; there are {', '.join(AGENTS)}"),
    ('[notices.urgency]\nerror = "loud"', 2, "notices.urgency.error",
     'must be one of "off", "low", "normal", "critical"'),
    ("[notices.sounds]\nerror = []", 2, "notices.sounds.error", 'must be one of "none", "ask", "done", "trouble"'),
    ("panes = true\npanes = true", 2, "", "not TOML: Cannot overwrite a value"),
    ("panes = true\nagents = [1", 2, "", "not TOML: Unclosed array"),
    ("\n\npanes = yes\n", 3, "", "not TOML: Invalid value"),
    ("x = " + "[" * 20_000, 0, "", "not TOML: maximum recursion depth exceeded"),
])
def test_what_is_wrong_is_said_with_its_line(text, line, setting, why):
    settings, (problem,) = parse(text)
    assert settings == Settings()
    assert (problem.line, problem.setting) == (line, setting)
    assert problem.why.startswith(why)


def test_all_that_is_wrong_is_said_and_what_is_right_counts():
    settings, problems = parse("wonder = 1\npanes = true\n[titles]\nmenu = 0\nnotices = true\n")
    assert [str(p) for p in problems] == ["line 1: wonder: no such setting",
                                          "line 4: titles.menu: must be true or false"]
    assert (settings.panes, settings.titles, settings.manner.titles) == (True, True, True)


def test_a_problem_without_a_place_is_said_all_the_same():
    assert str(Problem(0, "", "why")) == "why"


def test_a_statement_of_several_lines_is_found_where_it_begins():
    text = 'x = """\ny = 1\n[z]\n"""\n\na.b = [\n[1],\n]\n[t]\nc = { d = 1 }\n[[u]]\ne = 1\n'
    assert places(text) == {("x",): 1, ("a", "b"): 6, ("t",): 9, ("t", "c", "d"): 10, ("u",): 11, ("u", "e"): 12}


seconds = st.floats(0, 3600).map(lambda x: float(f"{x:g}"))
times = st.times().map(lambda t: t.replace(second=0, microsecond=0))
agents = st.lists(st.sampled_from(sorted(AGENTS))).map(tuple)
names = st.lists(st.text(st.characters(exclude_categories=["Cs"]))).map(tuple)
manners = st.builds(
    Manner, on=st.booleans(), titles=st.booleans(), sound=st.booleans(), min_turn=seconds, muted_projects=names,
    quiet_hours=st.none() | st.lists(times, min_size=2, max_size=2, unique=True).map(lambda two: Hours(*two)),
    muted_agents=agents, dwell=st.fixed_dictionaries(dict.fromkeys(TONES, seconds)),
    urgency=st.fixed_dictionaries(dict.fromkeys(TONES, st.sampled_from(Urgency))),
    sounds=st.fixed_dictionaries(dict.fromkeys(TONES, st.sampled_from(Sound))),
)


@given(st.builds(Settings, agents.filter(bool), st.booleans(), st.booleans(), st.booleans(), manners))
def test_what_is_shown_can_be_read(settings):
    assert parse(show(settings, lambda path: f"{path} is no remark that counts")) == (settings, ())


@given(st.text())
def test_no_text_does_harm(text):
    settings, problems = parse(text)
    assert settings == Settings() or not problems or tomllib.loads(text)


def test_each_setting_is_shown_once_in_its_table():
    shown = show(Settings())
    assert set(places(shown)) == {*SETTINGS, ("titles",), ("notices",), ("notices", "dwell"), ("notices", "urgency"),
                                  ("notices", "sounds")}


def test_each_setting_is_explained_in_whole_sentences_of_its_own():
    told = [setting.means for path, setting in SETTINGS.items() if path[-1] not in TONES or setting.means]
    assert [means for means in told if not re.fullmatch(r"[A-Z].*\.", means) or means.count(". ") > 1] == []
    assert len(set(told)) == len(told)
