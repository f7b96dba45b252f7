"""What bars, prompts and other programs are told."""

import json
import re
from math import inf

import pytest

from island.cli.bars import COLOURS, FORMATS, MOST_LINES, faces, plain, state_word
from island.cli.export import FIELDS, SCHEMA, Changes, as_json, as_row, schema
from island.cli.status import CODES
from island.manner import Urgency
from island.model import Event, Kind, Reason, Role, Row, Snapshot, State, Sure, Verdict
from island.notices import Notice, Withdraw
from island.rules import collapse, urgency
from island.tray.icon import LOOKS
from island.tray.menu import Face

NOW = 1_796_029_200.0
EVIL = 'a%{F#f00}b#[fg=red]c<b>&\x1b[2J\u202e"d\n\\e'


def row(session="s", state="your-turn", reason="finished", since=NOW - 200, **more):
    return Row("claude", session, Verdict(State(state), Reason(reason), Sure.TOLD, since, inf, "t"), **more)


ASKS, DONE, ERROR = row("a", reason="permission"), row("d"), row("e", reason="error")
STALLED, WORKING = row("s", "stalled", "silent"), row("w", "working", "tool")
SEEN, IDLE = row("n", seen=True), row("i", "idle", "new")
MACHINE = row("m", role=Role.MACHINE)


def snapshot(*rows, trouble=()):
    state, calm = collapse(rows)
    return Snapshot(NOW, state, tuple(sorted(rows, key=urgency)), trouble, calm)


ALL = snapshot(ASKS, DONE, row("d2"), ERROR, STALLED, WORKING, SEEN, IDLE, MACHINE)

# -- one line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "line"), [
    ("plain", "1 ask you, 1 stopped, 2 finished, 1 stalled, 1 working"),
    ("polybar", "%{F#e69f00}◆1%{F-} %{F#cc2430}✕1%{F-} %{F#009e73}✓2%{F-} %{F#cc79a7}▲1%{F-} %{F#56b4e9}►1%{F-}"),
    ("i3blocks", "◆1 ✕1 ✓2 ▲1 ►1\n◆1\n#e69f00"),
    ("tmux", ("#[bg=#1c1f26] #[fg=#e69f00]◆1 #[fg=#cc2430]✕1 #[fg=#009e73]✓2 #[fg=#cc79a7]▲1 #[fg=#56b4e9]►1 "
              "#[default]")),
    ("starship", "◆1 ✕1 ✓2 ▲1 ►1"),
])
def test_a_bar_is_told_what_there_is_most_pressing_first(name, line):
    assert FORMATS[name](ALL) == line


@pytest.mark.parametrize(("rows", "lines"), [
    ((), {"plain": "nothing needs you", "starship": "", "i3blocks": "○\n○\n#8e9296"}),
    ((SEEN,), {"plain": "nothing needs you", "starship": "", "polybar": "%{F#e69f00}◇%{F-}"}),
    ((IDLE, MACHINE), {"plain": "nothing needs you", "polybar": "%{F#8e9296}○%{F-}"}),
    ((WORKING, SEEN), {"plain": "1 working", "starship": "►1", "i3blocks": "►1\n►1\n#56b4e9"}),
])
def test_where_little_goes_on_little_is_said(rows, lines):
    assert {name: FORMATS[name](snapshot(*rows)) for name in lines} == lines


@pytest.mark.parametrize("count", [0, 1, 200])
def test_a_prompt_stays_short(count):
    many = snapshot(*(row(f"s{i}", reason=reason) for i in range(count) for reason in ("finished", "error", "plan")))
    assert len(FORMATS["starship"](many)) <= 15


def test_waybar_is_told_in_its_own_words():
    told = json.loads(FORMATS["waybar"](ALL))
    assert set(told) == {"text", "alt", "tooltip", "class", "percentage"}
    assert (told["text"], told["alt"], told["class"]) == ("◆1 ✕1 ✓2 ▲1 ►1", "your-turn", ["your-turn", "permission"])
    assert told["percentage"] == round(100 * 4 / 7)  # who waits, of all that are not idle
    assert told["tooltip"].splitlines()[0] == "◆ needs permission · 3 min · claude"
    assert len(told["tooltip"].splitlines()) == 7


@pytest.mark.parametrize(("rows", "alt", "percentage"), [
    ((), "idle", 0), ((WORKING,), "working", 0), ((SEEN,), "seen", 0), ((DONE,), "your-turn", 100),
    ((STALLED,), "stalled", 0),
])
def test_waybar_has_a_word_for_each_state(rows, alt, percentage):
    told = json.loads(FORMATS["waybar"](snapshot(*rows)))
    assert (told["alt"], told["class"][0], told["percentage"]) == (alt, alt, percentage)


def test_a_tooltip_is_no_list():
    told = json.loads(FORMATS["waybar"](snapshot(*(row(f"s{i}") for i in range(40)), trouble=("a watch failed",))))
    assert told["tooltip"].splitlines()[MOST_LINES:] == ["and 28 more", "! a watch failed"]


def test_nothing_that_an_agent_wrote_acts_on_a_bar():
    evil = snapshot(row(project=EVIL, title=EVIL, label=EVIL), trouble=(EVIL,))
    for name in FORMATS.keys() - {"json", "waybar"}:
        assert not {"b", "\x1b", "\u202e"} & set(re.sub("ble|bg=", "", FORMATS[name](evil)))
    tooltip = json.loads(FORMATS["waybar"](evil))["tooltip"]
    assert not {"<", ">", "\x1b", "\u202e"} & set(tooltip)
    assert "&lt;b&gt;&amp;" in tooltip
    assert len(tooltip.splitlines()) == 2


def test_the_colours_are_those_of_the_icon():
    assert {face: "#" + bytes(look.ink[:3]).hex() for face, look in LOOKS.items()} == COLOURS


def test_only_the_users_own_sessions_are_counted():
    assert faces(snapshot(MACHINE, row("c", role=Role.CHILD))) == {}


# -- exit codes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "code"), [
    ((), 0), ((IDLE,), 0), ((SEEN,), 0), ((WORKING, SEEN), 10), ((STALLED, WORKING), 15), ((DONE, STALLED), 20),
    ((MACHINE, WORKING), 10), ((row(reason="interrupted", seen=True),), 0),
])
def test_the_exit_code_tells_what_is_most_pressing(rows, code):
    assert CODES[state_word(snapshot(*rows))] == code


def test_every_state_has_a_code():
    assert set(CODES) == {*State, "seen"}


# -- JSON ----------------------------------------------------------------------------------------------------


TYPES = {"string": str, "boolean": bool, "integer": int, "number": (int, float), "null": type(None), "array": list,
         "object": dict}


def fits(value, kind, defs):  # noqa: PLR0911 - a case for each kind
    """Tell whether a value is as a schema says: as much of JSON Schema as ours uses."""
    match kind:
        case {"$ref": name}:
            return fits(value, defs[name.rpartition("/")[2]], defs)
        case {"const": one}:
            return value == one
        case {"enum": some}:
            return value in some
        case {"anyOf": kinds}:
            return any(fits(value, k, defs) for k in kinds)
        case {"type": "array", "items": items}:
            return isinstance(value, list) and all(fits(item, items, defs) for item in value)
        case {"type": "object", "required": names, "properties": kinds}:
            return set(names) <= set(value) and all(fits(value[n], k, defs) for n, k in kinds.items() if n in value)
        case {"type": [*names]}:
            return any(fits(value, {"type": name}, defs) for name in names)
        case {"type": name}:
            return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def valid(value):
    told = schema()
    return fits(json.loads(json.dumps(value)), {"anyOf": told["anyOf"]}, told["$defs"])


def test_what_is_told_is_as_the_schema_says():
    full = row("f", begun=NOW - 300, tokens=5, model="m", title="t", blind=("approvals",))
    evident = row("v", "working", "tool")
    evidence = Event(Kind.PROGRESS, "v", NOW, source="assistant")
    evident = Row("claude", "v", Verdict(State.WORKING, Reason.TOOL, evidence=evidence, until=NOW + 5))
    told = snapshot(full, evident, SEEN, trouble=("wrong",))
    changes = Changes()
    lines = [as_json(told), changes.since(told), changes.since(snapshot(SEEN), [
        Notice("claude/f", "claude", "f", Reason.FINISHED, "title"), Withdraw("claude/f", "f")])]
    assert all(map(valid, lines))
    assert not valid({**lines[0], "schema": SCHEMA + 1})
    assert not valid({**lines[0], "sessions": [{**as_row(full), "state": "happy"}]})
    assert not valid({key: value for key, value in lines[1].items() if key != "gone"})


def test_a_session_is_told_with_all_its_fields():
    told = as_row(row("f", begun=NOW - 300, tokens=5, model="m", title="t", project="p", blind=("approvals",)))
    assert set(told) == set(FIELDS)
    assert told == {
        "agent": "claude", "session": "f", "kind": "person", "state": "your-turn", "reason": "finished",
        "sure": "told", "since": NOW - 200, "until": None, "begun": NOW - 300, "why": "", "project": "p", "title": "t",
        "model": "m", "tokens": 5, "seen": False, "blind": ["approvals"],
    }


def test_a_stream_begins_with_all_and_goes_on_with_what_is_new():
    changes = Changes()
    first = changes.since(snapshot(WORKING, DONE))
    assert (first["schema"], first["icon"]) == (SCHEMA, "your-turn")
    assert [r["session"] for r in first["changed"]] == ["d", "w"]
    assert changes.since(snapshot(WORKING, DONE)) is None
    later = changes.since(snapshot(row("w", reason="question"), DONE))
    assert ([r["session"] for r in later["changed"]], later["gone"]) == (["w"], [])
    last = changes.since(snapshot(DONE))
    assert (last["changed"], last["gone"]) == ([], [{"agent": "claude", "session": "w"}])
    assert changes.since(snapshot(DONE, trouble=("wrong",)))["trouble"] == ["wrong"]
    assert changes.since(snapshot(DONE))["trouble"] == []


def test_what_only_lives_on_is_no_change():
    changes = Changes()
    for at in (NOW, NOW + 1):
        evidence = Event(Kind.PROGRESS, "w", at, source=f"record at {at}")
        told = changes.since(snapshot(Row("claude", "w", Verdict(
            State.WORKING, Reason.TOOL, since=NOW, until=at + 60, evidence=evidence))))
    assert told is None


def test_an_empty_stream_begins_with_nothing():
    assert Changes().since(snapshot())["changed"] == []


def test_notices_are_told_in_the_stream():
    changes = Changes()
    changes.since(snapshot(DONE))
    notice = Notice("claude/d", "claude", "d", Reason.FINISHED, "title", "body", "t", ("d",), Urgency.LOW)
    assert changes.since(snapshot(DONE), [notice])["notices"] == [{
        "key": "claude/d", "withdrawn": False, "agent": "claude", "sessions": ["d"], "reason": "finished",
        "urgency": "low", "title": "title", "body": "body"}]
    assert changes.since(snapshot(DONE), [Withdraw("claude/d", "d")])["notices"] == [
        {"key": "claude/d", "withdrawn": True}]


def test_every_face_is_counted_or_calm():
    assert plain(ALL).count(",") == len(Face) - 3
