"""The hook command: what it writes, what it never writes, and that no agent ever notices it.

There are two, for POSIX and for Windows. Whatever is asked of one is asked of the other.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from island.agents.reading import asks
from island.hooks import command
from island.hooks.edit import added
from island.hooks.records import STATUS
from island.hooks.rows import HOOKS, rows
from island.model import Record

ON_WINDOWS = sys.platform == "win32"
COMMANDS = [command.PYTHON] if ON_WINDOWS else [command.SCRIPT, command.PYTHON]
HERE = rows(sys.platform)
SEQUENCES = Path(__file__).parents[1] / "sequences"

on_posix = pytest.mark.skipif(ON_WINDOWS, reason="shells and modes of POSIX")

IDENTIFIER = re.compile(r"[A-Za-z0-9_.:@#+-]+")
SESSIONS = ("session_id", "sessionId", "conversation_id", "sessionID")
KEPT = (
    "prompt_id", "turn_id", "generation_id", "agent_id", "agentId", "subagent_id", "tool_use_id", "tool_call_id",
    "tool_name", "toolName", "notification_type", "details.type", "error", "error.name", "error_type", "status",
    "status.type", "reason", "source", "trigger", "id", "requestID", "recoverable", "is_interrupt", "origin_kind",
    "origin_name",
)
SAYS = ("last_assistant_message", "prompt_response")


def made(root, name):
    where = root / f"state of {name}" / "island" / "hooks"
    command.put(where, name)
    return where


@pytest.fixture(params=COMMANDS)
def folder(tmp_path, request):
    return made(tmp_path, request.param)


def script(folder):
    return folder / folder.parents[1].name.rpartition(" ")[2]


def run(folder, payload, agent="claude", event="Stop", **environ):
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    line = command.line(script(folder), agent, HERE["codex"])(event)
    shell = ["cmd.exe", "/C", line] if ON_WINDOWS else ["/bin/sh", "-c", line]
    return subprocess.run(shell, input=data, capture_output=True, check=False, timeout=60,
                          env={**(os.environ if ON_WINDOWS else {"PATH": os.environ["PATH"]}), **environ})


def silent(done):
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def lines(folder):
    return [json.loads(line) for path in sorted(folder.glob("*/*.jsonl")) for line in path.read_text().splitlines()]


PAYLOAD = {
    "session_id": "s1", "cwd": "/home/dev/app", "tool_name": "Bash", "tool_use_id": "toolu_1", "prompt": "a secret",
    "tool_input": {"command": 'echo "tool_name": "x"', "session_id": "evil", "list": [{"prompt_id": "evil"}, "}{]["]},
    "background_tasks": [{"id": "1", "type": "shell", "status": "running"}, {"type": "subagent", "status": "running"},
                         {"type": "subagent", "status": "completed"}],
    "last_assistant_message": 'Shall I say "yes"?**\n', "prompt_id": "p1",
}


# -- what is written ---------------------------------------------------------------------------------------------


def test_a_call_leaves_one_line_of_identifiers_for_its_owner_alone(folder):
    assert silent(run(folder, PAYLOAD, ISLAND_AT="12.5"))
    assert lines(folder) == [{"at": 12.5, "agent": "claude", "event": "Stop", "session": "s1", "tool_name": "Bash",
                              "tool_use_id": "toolu_1", "prompt_id": "p1", "left": 1, "asks": True}]
    path = folder / "claude" / "s1.jsonl"
    if ON_WINDOWS:
        return
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_time_is_that_of_the_call(folder):
    assert silent(run(folder, PAYLOAD))
    written = (folder / "claude" / "s1.jsonl").stat().st_mtime
    assert written - 10 < lines(folder)[0]["at"] <= written + 0.01


words = st.text(st.sampled_from('ab"\\{}[]:,? \n\té？\0'), max_size=8) | st.sampled_from(["p1", "Bash", "null", "7?"])  # noqa: RUF001
keys = st.sampled_from([*SESSIONS, *KEPT, *SAYS, "details", "status", "error", "background_tasks", "type", "name",
                        "prompt", "tool_input"]) | words
leaves = st.none() | st.booleans() | st.integers(-9, 99) | words
things = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
                      max_leaves=12)
payloads = st.dictionaries(keys, things, max_size=8)


def expected(payload):
    """Return what may be written of a payload: nothing but identifiers, from where they must stand."""
    flat = {key: value for key, value in payload.items() if "." not in key}
    for key, inner in payload.items():
        if isinstance(inner, dict):
            flat |= {f"{key}.{name}": value for name, value in inner.items()}
    named = {key: v if isinstance(v, str) else json.dumps(v) for key, v in flat.items()
             if v is not None and not isinstance(v, dict | list)}
    fields = {key: v for key, v in named.items() if IDENTIFIER.fullmatch(v) and v != "null"}
    sessions = [fields[key] for key in payload if key in SESSIONS and key in fields]
    if not sessions or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", sessions[0]):
        return None
    told = {key: v for key, v in fields.items() if key in KEPT} | {"session": sessions[0]}
    if any(isinstance(v, str) and asks(v) for key, v in payload.items() if key in SAYS):
        told["asks"] = True
    return told


def same(line, wanted):
    return {k: v for k, v in line.items() if k not in ("at", "agent", "event", "left")} == wanted


def told_by_all(payload):
    """Have each command note a payload; return what they wrote but for the time, which must be the same."""
    told = []
    with TemporaryDirectory() as home:
        for name in COMMANDS:
            folder = made(Path(home), name)
            assert silent(run(folder, payload))
            told.append([{k: v for k, v in line.items() if k != "at"} for line in lines(folder)])
    assert all(one == told[0] for one in told)
    return told[0]


@settings(max_examples=60)
@given(payloads, st.booleans(), st.sampled_from([None, 2]), st.booleans())
def test_nothing_is_written_but_what_looks_like_an_identifier_and_stands_where_it_must(payload, ascii_, indent, named):
    if named:
        payload = {**payload, "session_id": "s1"}
    written = told_by_all(json.dumps(payload, ensure_ascii=ascii_, indent=indent).encode())
    wanted = expected(payload)
    assert len(written) == (wanted is not None)
    assert all(same(line, wanted) for line in written)


@pytest.mark.parametrize("agent", sorted({p.parent.name for p in SEQUENCES.glob("*/*.jsonl")} & HOOKS.keys()))
def test_of_what_agents_send_every_command_writes_the_same(agent):
    steps = [json.loads(line) for path in sorted((SEQUENCES / agent).glob("*.jsonl"))
             for line in path.read_text("utf-8").splitlines() if '"hook":' in line]
    for sent in {json.dumps(step["stdin"]): None for step in steps}:
        assert told_by_all(sent.encode())


@pytest.mark.parametrize(("tasks", "left"), [
    ([], 0), ([{}], 1), ([{"type": "shell"}, {"type": "monitor", "status": "running"}], 0), ([{"status": None}], 0),
    ([{"type": "agent", "status": {"a": 1}}, {"status": "done"}, [{"type": "agent"}], "x", 1], 1), ("x", None),
])
def test_the_children_that_are_left_are_counted(tasks, left):
    assert [line.get("left") for line in told_by_all({"session_id": "s1", "background_tasks": tasks})] == [left]


def test_both_commands_keep_the_same_names():
    script, python = (command.source(name).decode() for name in (command.SCRIPT, command.PYTHON))
    names = re.search(r'split\("(.*?)", names', script, re.DOTALL)[1]
    assert sorted(re.sub(r'" \\\s+"', "", names).split()) == sorted(KEPT)
    assert set(re.findall(r'"([\w.]+)"', re.search(r"WANTED = .*?\}\)", python, re.DOTALL)[0])) == set(KEPT)


def test_of_a_name_that_comes_twice_the_first_value_that_is_one_counts():
    (line,) = told_by_all(b'{"error": "a word", "session_id": "s1", "error": "e1", "sessionId": "s2", "error": "e2"}')
    assert (line["session"], line["error"]) == ("s1", "e1")


@pytest.mark.parametrize("text", ["So?", "So.", "So? ", 'Is it "so"?', 'He said "so?"', "**So?**\n\n", "So？", "`so?`",  # noqa: RUF001
                                  "(so?)", "", "?", "So? Yes.", "«so?»", "x" * 5000 + "?", "?" + "x" * 5000])
def test_a_question_is_told_as_readers_tell_it(folder, text):
    for ascii_ in (True, False):
        run(folder, json.dumps({"session_id": "s1", "last_assistant_message": text}, ensure_ascii=ascii_).encode())
    assert [line.get("asks", False) for line in lines(folder)] == [asks(text)] * 2


def test_a_long_value_is_no_identifier(folder):
    run(folder, {"session_id": "s1", "tool_name": "x" * 5000, "error": "y" * 100})
    assert set(lines(folder)[0]) == {"at", "agent", "event", "session", "error"}


def test_a_megabyte_of_quotes_is_read_in_its_place(folder):
    assert silent(run(folder, {"tool_input": {"text": 'a "q" \\' * 100_000}, "session_id": "s1", "tool_name": "Edit"}))
    assert lines(folder)[0]["tool_name"] == "Edit"


# -- that it cannot fail -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"{", b"null", b"[]", b'{"session_id": "s1"', b'{"session_id": "../../x"}',
                                  b'{"session_id": ".hidden"}', b"\0\xff" * 99, b"plain words", b'"session_id":"s1"}'])
def test_what_is_no_payload_is_passed_over_in_silence(folder, data):
    assert silent(run(folder, data))
    assert lines(folder) == []
    assert {p for p in folder.parent.parent.rglob("*") if p.is_file()} == {script(folder)}


def test_without_island_it_is_a_silent_success(folder):
    shutil.rmtree(folder)
    assert silent(run(folder, PAYLOAD))
    assert not folder.exists()


def test_without_the_agents_folder_it_is_a_silent_success(folder):
    shutil.rmtree(folder / "claude")
    assert silent(run(folder, PAYLOAD))


def test_without_any_program_on_the_path_it_is_a_silent_success(folder, tmp_path):
    assert silent(run(folder, PAYLOAD, PATH=str(tmp_path)))


def test_on_a_full_disk_it_is_a_silent_success(folder):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    (folder / "claude" / "s1.jsonl").symlink_to("/dev/full")
    assert silent(run(folder, PAYLOAD))


def test_without_the_command_it_is_a_silent_success(folder):
    script(folder).unlink()
    assert silent(run(folder, PAYLOAD))


def test_without_any_python_it_is_a_silent_success(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "interpreter", lambda: str(tmp_path / "python.exe"))
    assert silent(run(folder, PAYLOAD))


def test_a_file_never_grows_beyond_two_megabytes(folder):
    path = folder / "claude" / "s1.jsonl"
    path.write_bytes(b"x" * (2048 * 1024 + 1))
    assert silent(run(folder, PAYLOAD))
    assert path.stat().st_size == 2048 * 1024 + 1
    assert not list(Path.cwd().glob("core*"))


def test_many_at_once_write_whole_lines(folder):
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(lambda n: run(folder, {**PAYLOAD, "tool_use_id": f"call_{n}"}), range(60)))
    assert all(map(silent, done))
    assert sorted(line["tool_use_id"] for line in lines(folder)) == sorted(f"call_{n}" for n in range(60))


@on_posix
@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish", "dash", "ksh"])
def test_any_shell_takes_the_line(folder, shell):
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"no {shell} here")
    line = command.line(script(folder), "claude", HOOKS["claude"])("Stop")
    for _ in range(2):
        done = subprocess.run([found, "-c", line], input=json.dumps(PAYLOAD).encode(), capture_output=True, check=False)
        assert silent(done)
        script(folder).unlink(missing_ok=True)  # the second time it is gone
    assert len(lines(folder)) == 1


# -- the lines of Windows ------------------------------------------------------------------------------------------

HOME = "C:\\Users\\dév\\AppData\\Local\\island\\hooks"


@pytest.mark.parametrize(("agent", "line"), [
    ("claude", "C:/Python/python.exe -I -S -E C:/Users/dév/AppData/Local/island/hooks/hook.py claude E; exit 0"),
    ("codex", f"C:\\Python\\python.exe -I -S -E {HOME}\\hook.py codex E 2>nul || exit 0"),
    ("kimi", f"C:\\Python\\python.exe -I -S -E {HOME}\\hook.py kimi E 2>nul || exit 0"),
    ("gemini", f"try {{ C:\\Python\\python.exe -I -S -E {HOME}\\hook.py gemini E 2>$null }} catch {{ }}; exit 0"),
    ("opencode", json.dumps(["C:\\Python\\python.exe", "-I", "-S", "-E", f"{HOME}\\hook.py"])),
])
def test_each_agent_gets_a_line_for_its_shell_without_any_quotes(monkeypatch, agent, line):
    monkeypatch.setattr(command, "interpreter", lambda: "C:\\Python\\python.exe")
    assert command.line(PureWindowsPath(HOME, "hook.py"), agent, rows("win32")[agent])("E") == line


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_a_path_with_blanks_is_written_by_its_short_name_or_not_at_all(monkeypatch, agent):
    monkeypatch.setattr(command, "interpreter", lambda: "C:\\Program Files (x86)\\python.exe")
    row, path = rows("win32")[agent], PureWindowsPath(HOME, "hook.py")
    monkeypatch.setattr(command, "short", lambda path: path.replace("Program Files (x86)", "PROGRA~2"))
    assert "PROGRA~2" in command.line(path, agent, row)("E")
    monkeypatch.setattr(command, "short", lambda path: path)
    with pytest.raises(command.NoLineError, match="without quotes"):
        command.line(path, agent, row)


@pytest.mark.parametrize("sign", ["&", "%", "^", "'", '"', "$", "`", ";", "(", ",", "!", "|", ">", "#", "@", "*"])
def test_no_sign_that_a_shell_reads_stands_in_a_line(sign):
    with pytest.raises(command.NoLineError):
        command.line(PureWindowsPath(f"C:\\a{sign}b", "hook.py"), "codex", rows("win32")["codex"])


@on_posix
@pytest.mark.parametrize("there", [True, False])
def test_gits_bash_takes_the_line_that_powershell_takes_too(tmp_path, there):
    command.put(tmp_path, command.PYTHON)
    line = command.line(tmp_path / command.PYTHON, "claude", rows("win32")["claude"])("Stop")
    if not there:
        (tmp_path / command.PYTHON).unlink()
    done = subprocess.run(["bash", "-c", line], input=b'{"session_id": "s1"}', capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert len(lines(tmp_path)) == there



# -- the folder --------------------------------------------------------------------------------------------------


def test_only_what_is_long_over_or_has_grown_too_big_is_pruned(folder):
    now = 1_800_000_000.0
    for name, size, age in (("old", 10, command.AGE + 1), ("new", 10, 5), ("big", command.SIZE + 1, command.QUIET + 1),
                            ("big-at-work", command.SIZE + 1, 5)):
        path = folder / "claude" / f"{name}.jsonl"
        path.write_bytes(b"x" * size)
        os.utime(path, (now - age, now - age))
    command.prune(folder, now)
    assert {p.stem for p in folder.glob("*/*.jsonl")} == {"new", "big-at-work"}
    assert script(folder).exists()


@pytest.mark.parametrize("agent", HOOKS)
@given(data=st.binary(max_size=60) | st.builds(lambda p: json.dumps(p).encode("utf-8", "replace"), payloads))
def test_a_hostile_line_raises_nothing_but_a_value_error(agent, data):
    try:
        found = list(STATUS[agent].read(Record(f"{agent}/s1.jsonl", data)))
    except ValueError:
        return
    assert all(event.key.startswith("hook") for event in found)


# -- the plugin --------------------------------------------------------------------------------------------------

DRIVER = """
import { Island } from "./island.mjs"
const plugin = await Island({})
for (const event of JSON.parse(process.argv[2])) await plugin.event({ event })
"""


@pytest.mark.skipif(not shutil.which("node"), reason="no JavaScript here")
@pytest.mark.parametrize("gone", [False, True])
def test_the_plugin_tells_of_the_events_that_are_asked_for_alone(folder, tmp_path, gone):
    row = HOOKS["opencode"]
    (tmp_path / "island.mjs").write_text(added(row, "", command.line(script(folder), "opencode", row)))
    (tmp_path / "driver.mjs").write_text(DRIVER)
    if gone:
        shutil.rmtree(folder)
    events = [{"type": "message.part.delta", "properties": {"sessionID": "ses_1", "delta": "a secret"}},
              {"type": "permission.asked", "properties": {"sessionID": "ses_1", "id": "per_1", "metadata": {"x": "y"}}},
              {"type": "session.status", "properties": {"sessionID": "ses_1", "status": {"type": "retry"}}}]
    done = subprocess.run(["node", str(tmp_path / "driver.mjs"), json.dumps(events)], capture_output=True, check=False,
                          timeout=30)
    assert silent(done)
    end = time.monotonic() + 20
    while not gone and len(lines(folder)) < 2 and time.monotonic() < end:
        time.sleep(0.01)  # a command that was started goes on without the agent
    told = sorted(lines(folder), key=lambda line: line["at"])
    assert [(line["event"], line.get("id"), line.get("status.type")) for line in told] == (
        [] if gone else [("permission.asked", "per_1", None), ("session.status", None, "retry")])
