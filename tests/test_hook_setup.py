"""Hooks in agents' files: what others wrote stays, what was there comes back, what cannot be read is left alone."""

import json
import os
import re
import stat
import sys
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.__main__ import main
from island.agents import AGENTS
from island.cli import doctor
from island.hooks import command, setup
from island.hooks.edit import STRANGE, added, complete, entries, removed
from island.hooks.outline import TextError, insert, outline, remove
from island.hooks.rows import HOOKS, Form
from island.hooks.setup import Setup, SetupError
from island.model import HOOK, Event, Kind
from island.observer import Observer
from island.scene import RecordedTable

JSON = [name for name, row in HOOKS.items() if row.form in (Form.GROUPS, Form.ENTRIES)]


def line(event):
    return f"/bin/sh /home/dev/island/hooks/hook.sh agent {event}"


# -- the outline ---------------------------------------------------------------------------------------------------

names = st.text('abc/*,:"\\ \n', max_size=4)
values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
                      | names, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
blanks = st.sampled_from(["", " ", "\n", "\n\t", "// it's {\n", "/* [,\n */"])


@st.composite
def written(draw, value):
    """Write a value as a person might: with comments, blanks, and a comma at the end."""
    gap = lambda: draw(blanks)  # noqa: E731
    if isinstance(value, dict | list) and value:
        pairs = value.items() if isinstance(value, dict) else (("", v) for v in value)
        parts = [f"{gap()}{json.dumps(k) + gap() + ':' if isinstance(value, dict) else ''}{draw(written(v))}{gap()}"
                 for k, v in pairs]
        sides = "{}" if isinstance(value, dict) else "[]"
        return gap() + sides[0] + ",".join(parts) + draw(st.sampled_from(["", ",", ", "])) + gap() + sides[1] + gap()
    return gap() + json.dumps(value) + gap()


@given(values.flatmap(lambda v: st.tuples(st.just(v), written(v))))
def test_an_outline_holds_what_was_written(pair):
    value, text = pair
    assert outline(text).value == value


@given(st.lists(values, max_size=4).flatmap(lambda v: st.tuples(st.just(v), written(v))), values)
def test_what_is_inserted_can_be_removed_again(pair, value):
    held, text = pair
    new = insert(text, outline(text), value)
    assert outline(new).value == [*held, value]
    root = outline(new)
    assert outline(remove(new, root, root.items[-1])).value == held


@given(st.lists(values, min_size=1, max_size=4).flatmap(lambda v: st.tuples(st.just(v), written(v))), st.data())
def test_removing_a_part_leaves_the_others(pair, data):
    held, text = pair
    place = data.draw(st.integers(0, len(held) - 1))
    root = outline(text)
    assert outline(remove(text, root, root.items[place])).value == held[:place] + held[place + 1:]


@pytest.mark.parametrize(("text", "where"), [
    ("", 1), ("{", 1), ('{"a": 1,\n "b" 2}', 2), ('{"a": 1\n "b": 2}', 2), ("{}\n{}", 2), ('["a\n"]', 1), ("[1 2]", 1),
    ('{"a": 1,\n\n"a": 2}', 3), ("[" * 300, 1), ("nul", 1), ("[NaN, 01]", 1), ("{'a': 1}", 1), ("// only a remark", 1),
])
def test_what_is_no_json_is_refused_with_its_line(text, where):
    with pytest.raises(TextError, match=rf"^line {where}: "):
        outline(text)


@given(st.text('{}[]",:/*ab1\n\\', max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        outline(text)
    except TextError:
        return


# -- a file's text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", HOOKS)
def test_entries_are_put_in_once_and_taken_out(agent):
    row = HOOKS[agent]
    text = added(row, "", line)
    assert complete(row, text, line)
    assert added(row, text, line) == text
    assert entries(row, removed(row, text)) == []


@pytest.mark.parametrize("agent", HOOKS)
def test_entries_of_another_version_are_replaced(agent):
    row = HOOKS[agent]
    old = added(row, "", lambda event: f"/bin/sh /old/island/hooks/hook.sh {event}")
    assert not complete(row, old, line)
    new = added(row, old, line)
    assert complete(row, new, line)
    assert "/old/" not in new


others = st.fixed_dictionaries({}, optional={
    "Stop": st.lists(st.sampled_from([{"hooks": [{"type": "command", "command": "notify-send"}]}, {"hooks": []}, {}])),
    "PermissionRequest": st.just([{"matcher": "Bash", "hooks": [{"command": "x"}, {"command": "y"}]}]),
    "Other": st.just([1]),
})
files = st.fixed_dictionaries({}, optional={"hooks": others, "model": names, "z": values}).flatmap(
    lambda v: st.tuples(st.just(v), written(v)))


@pytest.mark.parametrize("agent", JSON)
@given(pair=files)
def test_what_others_wrote_stays_and_comes_back(agent, pair):
    held, text = pair
    row = HOOKS[agent]
    new = added(row, text, line)
    value = outline(new).value
    assert complete(row, new, line)
    assert {k: v for k, v in value.items() if k != "hooks"} == {k: v for k, v in held.items() if k != "hooks"}
    for event, items in held.get("hooks", {}).items():
        assert value["hooks"][event][: len(items)] == items
    left = outline(removed(row, new)).value
    assert tidy(left) == tidy(held)


def tidy(value):
    """Leave out what holds nothing: where it stood before, nobody knows."""
    hooks = {event: items for event, items in value.get("hooks", {}).items() if items}
    return {**{k: v for k, v in value.items() if k != "hooks"}, **({"hooks": hooks} if hooks else {})}


def test_the_texts_of_others_keep_their_form():
    text = '{\n\t// mine\n\t"hooks": {\n\t\t"Stop": [ {"hooks": [{"command": "x"}]} ], // his\n\t},\n\t"z": 1\n}'
    new = added(HOOKS["claude"], text, line)
    for part in ("\t// mine\n", '{"hooks": [{"command": "x"}]}', "// his\n", '\t"z": 1\n}'):
        assert part in new
        assert part in removed(HOOKS["claude"], new)
    assert outline(removed(HOOKS["claude"], new)).value == outline(text).value


def test_an_entry_that_was_moved_among_others_is_found():
    row = HOOKS["claude"]
    mine = {"type": "command", "command": line("Stop")}
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"command": "x"}, mine, {"command": "y"}]}]}}, indent=1)
    assert outline(removed(row, text)).value == {"hooks": {"Stop": [{"hooks": [{"command": "x"}, {"command": "y"}]}]}}


@pytest.mark.parametrize("text", ["[1]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"hooks": {"Stop": 1}}', '"x"'])
def test_hooks_in_an_unknown_form_are_refused(text):
    with pytest.raises(TextError, match=STRANGE):
        added(HOOKS["claude"], text, line)


TOML = 'model = "k"  # mine\n\n[[hooks]]\nevent = "Stop"\ncommand = "x"\n\n[providers.a]\nkey = "y"\n'


@pytest.mark.parametrize("text", [TOML, TOML.rstrip("\n"), "", "\n", 'a = """\n[[hooks]]\n"""\n', "a = 1 # [[hooks]]"])
def test_tables_stand_beside_those_of_others(text):
    row = HOOKS["kimi"]
    new = added(row, text, line)
    held, mine = tomllib.loads(text), tomllib.loads(new)
    assert mine["hooks"][: len(held.get("hooks", []))] == held.get("hooks", [])
    assert complete(row, new, line)
    assert tomllib.loads(removed(row, new)) == held
    assert removed(row, new).rstrip("\n") == text.rstrip("\n")


def test_tables_are_found_though_an_editor_has_changed_the_ends_of_lines():
    row = HOOKS["kimi"]
    mixed = added(row, TOML.replace("\n", "\r\n"), line)
    for text in (mixed, mixed.replace("\r\n", "\n").replace("\n", "\r\n")):
        assert complete(row, text, line)
        assert tomllib.loads(removed(row, text)) == tomllib.loads(TOML)
        assert removed(row, text).replace("\r", "").rstrip("\n") == TOML.rstrip("\n")


def test_tables_after_islands_stay():
    row = HOOKS["kimi"]
    new = added(row, TOML, line) + '\n[[hooks]]\nevent = "Stop"\ncommand = "later"\n\n[more]\nx = 1\n'
    left = tomllib.loads(removed(row, new))
    assert [h["command"] for h in left["hooks"]] == ["x", "later"]
    assert left["more"] == {"x": 1}


@pytest.mark.parametrize(("text", "wrong"), [
    ("a = \n", "line 1: "), ("hooks = []\n", STRANGE + "|line"), ("a = 1\nb\n", "line 2: ")])
def test_tables_that_cannot_be_read_are_refused(text, wrong):
    with pytest.raises(TextError, match=wrong):
        added(HOOKS["kimi"], text, line)


def test_the_plugin_of_opencode_asks_for_its_events_alone():
    text = added(HOOKS["opencode"], "", lambda _: '["/home/dev/it\'s mine/island/hooks/hook.sh"]')
    assert "HOOK" not in text
    assert "EVENT_NAMES" not in text
    assert all(f'"{call.event}"' in text for call in HOOKS["opencode"].calls)


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["win32"] if sys.platform == "win32" else ["linux", "win32"])
def home(request, tmp_path, monkeypatch):
    monkeypatch.setattr(Setup, "PLATFORM", request.param)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "FACTORY_HOME_OVERRIDE", "KIMI_CODE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for folder in (".claude", ".codex", ".copilot", ".factory", ".kimi-code"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setattr(command, "folder", lambda: tmp_path / "state" / "island" / "hooks")
    return tmp_path


def tree(home):
    return {str(p.relative_to(home)): p.read_bytes() if p.is_file() else b"" for p in home.rglob("*")
            if "state" not in p.relative_to(home).parts}


def test_nothing_is_left_of_hooks_that_were_removed(home):
    (home / ".claude/settings.json").write_text('{"hooks": {"Stop": []},\r\n"x": 1 /* mine */,}')
    (home / ".kimi-code/config.toml").write_text(TOML)
    before = tree(home)
    assert main(["hooks", "install", "--yes"]) == 0
    assert tree(home) != before
    assert main(["hooks", "remove", "--yes"]) == 0
    assert tree(home) == before


def test_installing_twice_changes_nothing_and_removing_still_brings_back_what_was(home):
    path = home / ".claude/settings.json"
    path.write_text('{"hooks": {"Stop": [  ]}}')
    main(["hooks", "install", "claude", "--yes"])
    once = tree(home)
    main(["hooks", "install", "claude", "--yes"])
    assert tree(home) == once
    main(["hooks", "remove", "claude", "--yes"])
    assert path.read_text() == '{"hooks": {"Stop": [  ]}}'


def test_later_changes_of_others_stay(home):
    path = home / ".claude/settings.json"
    path.write_text('{\n  "model": "x"\n}\n')
    main(["hooks", "install", "claude", "--yes"])
    path.write_text(path.read_text().replace('"x"', '"y"'))
    main(["hooks", "remove", "claude", "--yes"])
    assert path.read_text() == '{\n  "model": "y"\n}\n'


def test_a_file_made_by_island_stays_if_others_wrote_into_it(home):
    path = home / ".codex/hooks.json"
    main(["hooks", "install", "codex", "--yes"])
    text = path.read_text()
    root = outline(text)
    path.write_text(insert(text, root.members["hooks"], [{"hooks": []}], "SessionStart"))
    main(["hooks", "remove", "codex", "--yes"])
    assert json.loads(path.read_text()) == {"hooks": {"SessionStart": [{"hooks": []}]}}


@pytest.mark.posix("links and modes")
def test_a_link_stays_a_link_and_a_mode_a_mode(home):
    real = home / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    (home / ".claude/settings.json").symlink_to(real)
    main(["hooks", "install", "claude", "--yes"])
    assert (home / ".claude/settings.json").is_symlink()
    assert "island" in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    main(["hooks", "remove", "claude", "--yes"])
    assert real.read_text() == "{}"


@pytest.mark.posix("modes")
def test_what_was_there_is_kept_for_its_owner_alone(home):
    (home / ".kimi-code/config.toml").write_text('key = "a secret"\n')
    main(["hooks", "install", "kimi", "--yes"])
    kept = command.folder() / "kimi.before"
    assert kept.read_text() == 'key = "a secret"\n'
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_write_that_fails_leaves_the_file_and_nothing_else(home, monkeypatch, capsys):
    path = home / ".claude/settings.json"
    path.write_text("{}")
    main(["hooks", "install", "codex", "--yes"])
    before = tree(home)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(setup.os, "fsync", full)
    assert main(["hooks", "install", "claude", "--yes"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert tree(home) == before


def test_a_backup_that_is_damaged_is_not_believed(home):
    path = home / ".claude/settings.json"
    path.write_text('{"a": 1}')
    main(["hooks", "install", "claude", "--yes"])
    (command.folder() / "claude.before").write_text("garbage")
    main(["hooks", "remove", "claude", "--yes"])
    assert json.loads(path.read_text()) == {"a": 1}


@pytest.mark.parametrize(("text", "reason"), [(b'{\n "a" 1}', "line 2: "), (b"{}\n\xff", "line 2: not UTF-8")])
def test_a_file_that_cannot_be_read_is_left_alone_and_stops_no_other(home, capsys, text, reason):
    path = home / ".claude/settings.json"
    path.write_bytes(text)
    assert main(["hooks", "install", "--yes"]) == 2
    told = capsys.readouterr()
    assert f"{path}: {reason}" in told.err
    assert path.read_bytes() == text
    assert (home / ".codex/hooks.json").exists()
    assert main(["hooks", "status"]) == 2
    assert main(["hooks", "remove", "--yes"]) == 2
    assert path.read_bytes() == text


# -- the command line ------------------------------------------------------------------------------------------------


def answers(monkeypatch, *given_):
    left = list(given_)

    def ask(prompt):
        if not left:
            raise EOFError
        assert prompt.endswith("? [y/N] ")
        return left.pop(0)

    monkeypatch.setattr("builtins.input", ask)


@pytest.mark.parametrize("answer", [["n"], [""], ["yess"], []])
def test_nothing_is_installed_without_a_yes(home, monkeypatch, capsys, answer):
    answers(monkeypatch, *answer)
    before = tree(home)
    assert main(["hooks", "install", "claude"]) == 0
    assert tree(home) == before
    assert not command.folder().exists()
    told = capsys.readouterr().out
    assert "+++ " in told
    assert "nothing was changed" in told


def test_a_yes_installs_what_was_shown(home, monkeypatch, capsys):
    answers(monkeypatch, "y")
    main(["hooks", "show", "claude"])
    shown = capsys.readouterr().out
    main(["hooks", "install", "claude"])
    assert shown.strip() in capsys.readouterr().out
    assert (home / ".claude/settings.json").exists()


def test_showing_changes_nothing(home):
    before = tree(home)
    assert main(["hooks", "show"]) == 0
    assert tree(home) == before
    assert not command.folder().exists()


def test_status_tells_what_stands_there(home, capsys):
    main(["hooks", "install", "claude", "--yes"])
    capsys.readouterr()
    main(["hooks", "status", "claude", "codex"])
    one, two = capsys.readouterr().out.splitlines()
    assert " installed " in one
    assert "not installed" in two
    Setup().command.unlink()
    main(["hooks", "status", "claude"])
    assert "the command is gone" in capsys.readouterr().out
    main(["hooks", "install", "claude", "--yes"])
    main(["hooks", "status", "claude"])
    assert "gone" not in capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize("home", ["linux"], indirect=True)  # elsewhere Droid has none
@pytest.mark.parametrize(("name", "held", "taken"), [
    ("hooks.json", '{"Stop": [{"hooks": []}], "PreToolUse": []}', "Stop"),
    ("hooks/hooks.json", '{"Notification": [], "Stop": []}', "Notification, Stop"),
    ("hooks.json", '{"PreToolUse": []}', ""), ("hooks.json", "{", ""),
    ("hooks.json", "[]", ""), ("other.json", "{}", ""),
])
def test_hooks_that_another_file_keeps_from_running_are_told(home, capsys, name, held, taken):
    path = home / ".factory" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(held)
    main(["hooks", "install", "droid", "--yes"])
    main(["hooks", "status", "droid"])
    told = f"Factory Droid: but {path} has hooks of its own for {taken}, which run instead"
    assert capsys.readouterr().out.splitlines().count(told) == (2 if taken else 0)
    assert path.read_text() == held
    (well, advice), = found()[1]().values()
    assert well is not bool(taken)
    assert (taken in advice) if taken else advice == ""


def test_an_unknown_agent_is_refused(home, capsys):
    assert main(["hooks", "install", "claude", "nobody"]) == 2
    assert "no hooks for nobody" in capsys.readouterr().err


@pytest.mark.parametrize("agent", ["cursor", "droid"])
def test_on_windows_an_agent_is_refused_of_which_it_is_not_known_how_it_runs_hooks(monkeypatch, home, capsys, agent):
    monkeypatch.setattr(Setup, "PLATFORM", "win32")
    before = tree(home)
    for action in ("status", "show", "install", "remove"):
        assert main(["hooks", action, agent]) == 2
        assert f"no hooks for {agent} here, as it is not known how it runs them" in capsys.readouterr().err
    assert main(["hooks", "show"]) == 0
    assert tree(home) == before


def test_on_windows_a_path_that_no_shell_takes_is_named_and_nothing_is_written(monkeypatch, home, capsys):
    monkeypatch.setattr(Setup, "PLATFORM", "win32")
    monkeypatch.setattr(command, "folder", lambda: home / "R&D" / "island" / "hooks")
    before = tree(home)
    assert main(["hooks", "install", "codex", "--yes"]) == 2
    assert "R&D" in capsys.readouterr().err
    assert tree(home) == before
    assert main(["hooks", "remove", "codex"]) == 0


@pytest.mark.parametrize(("agent", "file"), [("claude", ".claude/settings.json"), ("kimi", ".kimi-code/config.toml")])
def test_islands_entries_are_known_by_their_paths_on_every_platform(monkeypatch, home, agent, file):
    assert main(["hooks", "install", agent, "--yes"]) == 0
    text = (home / file).read_text()
    (home / file).write_text(re.sub(r"[/\\]+hooks[/\\]+hook\.", lambda _: r"\\hooks\\hook.old.", text))
    assert "another version" in Setup(os.environ, home).state(agent)
    assert main(["hooks", "install", agent, "--yes"]) == 0
    assert Setup(os.environ, home).state(agent) == Setup.PRESENT
    assert main(["hooks", "remove", agent, "--yes"]) == 0
    assert not (home / file).exists() or (home / file).read_text().strip("{} \n") == ""


def test_an_agent_that_is_not_here_is_left_out_unless_it_is_named(home, capsys):
    (home / ".codex").rmdir()
    main(["hooks", "status"])
    assert "Codex" not in capsys.readouterr().out
    main(["hooks", "status", "codex"])
    assert "Codex" in capsys.readouterr().out


def test_a_moved_home_is_followed(home, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "elsewhere"))
    assert Setup(os.environ, home).path("claude") == home / "elsewhere/settings.json"


def test_a_file_that_may_not_be_read_is_named(home, monkeypatch):
    (home / ".claude/settings.json").mkdir()
    with pytest.raises(SetupError, match=r"settings\.json"):
        Setup(os.environ, home, home / "x").state("claude")


# -- the doctor ------------------------------------------------------------------------------------------------------


def found():
    observer = Observer(dict.fromkeys(AGENTS, "/none"), RecordedTable(frozenset()), 0)
    return observer, lambda: {f.what: (f.well, f.advice) for f in doctor._hooks(observer)}


def test_the_doctor_has_nothing_to_say_of_hooks_that_nobody_wants(home):
    assert found()[1]() == {}


def test_the_doctor_sees_hooks_that_are_there_damaged_or_without_their_command(home):
    findings = found()[1]
    main(["hooks", "install", "claude", "codex", "--yes"])
    assert {what: well for what, (well, _) in findings().items()} == {
        "hooks of Claude Code: installed": True, "hooks of Codex CLI: installed": True}
    Setup().command.unlink()
    assert findings()["hooks of Codex CLI: installed, but the command is gone"] == (False, "island hooks install codex")
    (home / ".codex/hooks.json").write_text("{")
    assert any("line 1" in what and not well for what, (well, _) in findings().items())


def test_the_doctor_sees_that_hooks_fell_silent(home):
    observer, findings = found()
    main(["hooks", "install", "codex", "--yes"])
    codex = observer.sessions.agents["codex"]
    for event in (Event(Kind.ANSWER, "a", 10, HOOK, "finished"), Event(Kind.PROMPT, "b", 50), Event(Kind.END, "b", 60)):
        observer.sessions.join(codex, event)
    told = findings()["hooks of Codex CLI: installed, but told nothing of the last turn in 1 sessions"]
    assert told == (False, HOOKS["codex"].trust)
