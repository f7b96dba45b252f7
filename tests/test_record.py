"""`island record`: what one session left on this machine becomes a sequence that says the same, without prose."""

import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from island.__main__ import main
from island.agents.base import Shape, Source
from island.cli import record
from island.model import Process
from island.replay import play
from island.sequence import parse
from island.sources.processes import Change, SystemTable

NOW = datetime.now(UTC).timestamp()
START = float(int(NOW)) - 86_400
SESSION = "0bc18d25-5fb3-46dc-a258-f95d3825818f"
OTHER = "0bc19999-5fb3-46dc-a258-f95d3825818f"
SLUG = "-home-alice-acme"


def line(kind, at, **more):
    stamp = datetime.fromtimestamp(START + at, UTC).isoformat(timespec="milliseconds")
    base = {"type": kind, "timestamp": stamp, "uuid": f"u{at}", "sessionId": SESSION, "cwd": "/home/alice/acme",
            "entrypoint": "cli", "version": "2.1.332", "promptId": "p1"}
    return base | more


def user(at, text="Please invoice the client Acme", **more):
    return line("user", at, message={"role": "user", "content": text}, **more)


def said(at, text="I have sent the invoice to Acme. Shall I go on?", **more):
    content = [{"type": "text", "text": text}]
    message = {"role": "assistant", "model": "claude-opus-5-5", "stop_reason": "end_turn", "content": content}
    return line("assistant", at, message=message, **more)


def ended(at, **more):
    return line("system", at, subtype="turn_duration", durationMs=3000, **more)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with one Claude Code session in it, and the folder to write to as the working folder."""
    home = tmp_path / "alice"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    title = {"type": "ai-title", "aiTitle": "Invoices of Acme", "sessionId": SESSION}
    history(home, SESSION, user(0), user(1, "<bash-input>ls /home/alice</bash-input>"), title, said(9), ended(9.5))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return home


def history(home, session, *lines, name=""):
    file = home / "claude" / "projects" / SLUG / f"{name or session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as f:
        f.writelines(json.dumps(x | {"sessionId": session}) + "\n" for x in lines)
    return file


def live(home, pid, **more):
    file = home / "claude" / "sessions" / f"{pid}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {"pid": pid, "sessionId": SESSION, "cwd": "/home/alice/acme", "startedAt": int((START - 60) * 1000),
             "version": "2.1.332", "entrypoint": "cli", "name": "acme-1", "nameSource": "derived",
             "status": "idle", "statusUpdatedAt": int((START + 9.4) * 1000)}
    file.write_text(json.dumps(about | more))


def recorded(name=f"claude-{SESSION[:8]}.jsonl"):
    text = Path(name).read_text()
    return text, parse(text, name)


def last_state(sequence, session=SESSION):
    return next(x for x in reversed(play(sequence)) if x.get("session") == session)


# -- what is written -----------------------------------------------------------------------------------------


def test_it_writes_one_step_for_each_record_at_its_own_time(home):
    assert main(["record", SESSION[:8]]) == 0
    _, sequence = recorded()
    assert sequence.head["origin"] == "reported"
    assert sequence.head["agent"] == "claude"
    assert sequence.head["version"] == "2.1.332"
    assert sequence.start == START
    appended = sequence.of("append")
    assert [s.at for s in appended] == [0, 1, 1, 9, 9.5]
    assert all(len(s.fields["records"]) == 1 for s in appended)


def test_it_tells_how_to_add_the_truth(home):
    main(["record", SESSION[:8]])
    _, sequence = recorded()
    note = sequence.of("note")[0].operand
    example = json.loads(re.search(r"\{.*\}", note)[0])
    assert example["truth"]["session"] == SESSION


class OneProcess(SystemTable):
    """A machine on which one agent runs, since before the session began."""

    def poll(self):
        program = ("/usr/bin/claude", "--continue")
        self.known = {77: Process(77, 1, "claude", program, "/home/alice/acme", START - 60)}
        return Change()

    def same(self, pid, guard, started):
        return True


def test_the_written_file_replays_to_what_the_session_was(home, monkeypatch):
    monkeypatch.setattr(record, "SystemTable", OneProcess)
    live(home, 77)
    main(["record", SESSION])
    _, sequence = recorded()
    assert [s.operand for s in sequence.of("process")] == [{
        "pid": 77, "ppid": 1, "name": "claude", "cmdline": ["claude", "--continue"], "cwd": "/project",
        "created": -60.0,
    }]
    shown = [(x["state"], x["reason"]) for x in play(sequence) if x.get("session") == SESSION]
    assert shown[-2:] == [("your-turn", "question"), ("idle", "expired")]


def test_a_process_that_no_record_names_is_found_by_its_folder(home, monkeypatch):
    monkeypatch.setattr(record, "SystemTable", OneProcess)
    main(["record", SESSION])
    _, sequence = recorded()
    assert [s.operand["pid"] for s in sequence.of("process")] == [77]


def test_no_prose_path_or_name_is_written(home):
    live(home, os.getpid(), name="Acme", nameSource="user")
    main(["record", SESSION])
    text, _ = recorded()
    for secret in ("acme", "alice", "invoice", "client", "ls /"):
        assert secret not in text.lower()


def test_the_live_record_comes_with_its_process(home):
    program = [sys.executable, "-c", "import time; time.sleep(60)", "--print"]
    with subprocess.Popen(program) as child:
        try:
            live(home, child.pid, startedAt=int(datetime.now(UTC).timestamp() * 1000) + 60_000)
            assert main(["record", SESSION]) == 0
        finally:
            child.kill()
    _, sequence = recorded()
    assert [s.operand["pid"] for s in sequence.of("process")] == [child.pid]
    assert sequence.of("process")[0].operand["cmdline"][-1] == "--print"
    assert [s.operand for s in sequence.of("write")] == [f"~/.claude/sessions/{child.pid}.json"]
    assert sequence.of("exit") == []


def test_a_live_record_without_its_process_is_told_as_such(home):
    live(home, 2**22 + 7)
    main(["record", SESSION])
    _, sequence = recorded()
    assert [s.operand for s in sequence.of("exit")] == [2**22 + 7]
    assert last_state(sequence)["state"] == "idle"


def test_lines_of_the_session_in_another_file_are_found(home):
    history(home, SESSION, user(30), said(35), name=OTHER)  # as version 1.0 resumes
    history(home, "1bc18d25-5fb3-46dc-a258-f95d3825818f", user(40))
    main(["record", SESSION])
    _, sequence = recorded()
    assert {s.operand for s in sequence.of("append")} == {
        f"~/.claude/projects/project/{SESSION}.jsonl", f"~/.claude/projects/project/{OTHER}.jsonl",
    }
    assert max(s.at for s in sequence.of("append")) == 35


def test_a_damaged_line_and_a_time_to_come_are_no_hindrance(home):
    file = history(home, SESSION, user(3e9))
    with file.open("a") as f:
        f.write('{"type": "user", "message": "cut off in the mid')
    main(["record", SESSION])
    text, sequence = recorded()
    assert len(sequence.of("append")) == 7
    assert "cut off" not in text
    assert sequence.steps[-1].at >= sequence.of("append")[-1].at
    assert play(sequence)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_the_file_is_its_owners_alone(home):
    main(["record", SESSION])
    assert Path(f"claude-{SESSION[:8]}.jsonl").stat().st_mode & 0o777 == 0o600


# -- what is refused -------------------------------------------------------------------------------------------


def test_it_refuses_to_overwrite(home, capsys):
    Path("out.jsonl").write_text("mine")
    assert main(["record", SESSION, "-o", "out.jsonl"]) == 2
    assert "out.jsonl is there already" in capsys.readouterr().err
    assert Path("out.jsonl").read_text() == "mine"


def test_it_refuses_a_prefix_of_no_session_and_of_two(home, capsys):
    assert main(["record", "ffff"]) == 2
    assert "no session begins with 'ffff'" in capsys.readouterr().err
    assert main(["record", "ffff", "--agent", "codex"]) == 2
    assert capsys.readouterr().err == "island: no session of Codex CLI begins with 'ffff'\n"
    history(home, OTHER, user(0))
    assert main(["record", "0bc1"]) == 2
    assert f"2 sessions begin with '0bc1': claude {SESSION}, claude {OTHER}" in capsys.readouterr().err
    assert list(Path().iterdir()) == []


def test_a_folder_that_is_not_there_is_said(home, capsys):
    assert main(["record", SESSION, "-o", "no/such/folder.jsonl"]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_session_known_by_its_live_record_alone_is_found(home):
    (home / "claude" / "projects" / SLUG / f"{SESSION}.jsonl").unlink()
    live(home, os.getpid())
    assert main(["record", SESSION[:6], "--agent", "claude"]) == 0
    _, sequence = recorded()
    assert len(sequence.of("write")) == 1


def test_a_codex_session_is_recorded_too(home):
    ident = "01a22cf9-9dc3-7541-83e6-711cb90bfd66"
    folder = home / "codex" / "sessions" / "2026" / "11" / "30"
    folder.mkdir(parents=True)
    meta = {"id": ident, "cwd": "/home/alice/acme", "cli_version": "0.171.0", "originator": "codex-tui"}
    events = [("session_meta", meta), ("event_msg", {"type": "task_started", "turn_id": "t1"}),
              ("event_msg", {"type": "task_complete", "turn_id": "t1", "last_agent_message": "Shall I bill Acme?"})]
    lines = [{"timestamp": f"2026-11-30T09:00:0{n}.000Z", "type": kind, "payload": payload}
             for n, (kind, payload) in enumerate(events)]
    name = f"rollout-2026-11-30T09-00-00-{ident}.jsonl"
    (folder / name).write_text("".join(json.dumps(x) + "\n" for x in lines))
    (home / "codex" / "session_index.jsonl").write_text(
        "".join(json.dumps({"id": x, "thread_name": "Acme", "updated_at": "2026-11-30T09:00:05Z"}) + "\n"
                for x in (ident, OTHER)))
    assert main(["record", "01a22cf9"]) == 0
    text, sequence = recorded("codex-01a22cf9.jsonl")
    assert "acme" not in text.lower()
    assert OTHER not in text
    assert {s.operand for s in sequence.of("append")} == {
        f"~/.codex/sessions/2026/11/30/{name}", "~/.codex/session_index.jsonl",
    }
    states = [(x["state"], x["reason"]) for x in play(sequence) if x.get("session") == ident]
    assert ("your-turn", "question") in states


def test_a_database_is_never_read_as_one_record(tmp_path):
    path = tmp_path / "store.db"
    path.write_text(SESSION)
    assert list(record.read(Source("store.db", Shape.DATABASE, lambda _: ()), str(path))) == []


def test_a_history_that_only_its_head_names_is_written_with_what_its_reader_reads(home, monkeypatch):
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home))
    stamps = [datetime.fromtimestamp(START + at, UTC).isoformat(timespec="milliseconds") for at in range(4)]
    chats = home / ".gemini" / "tmp" / "acme" / "chats"
    (chats / SESSION).mkdir(parents=True)
    head = {"sessionId": SESSION, "projectHash": "f" * 64, "startTime": stamps[0], "kind": "main"}
    context = [{"text": "<session_context>\n- **Workspace Directories:**\n  - /home/alice/acme\n"}]
    first = {"id": "c0", "timestamp": stamps[0], "type": "user", "content": context}
    prompt = {"id": "m1", "timestamp": stamps[1], "type": "user", "content": [{"text": "Invoice Acme please"}]}
    over = {"id": "m2", "timestamp": stamps[3], "type": "info", "content": "Request cancelled."}
    lines = [head, {"$set": {"messages": [first], "lastUpdated": stamps[0]}}, prompt, over]
    file = chats / f"session-2026-11-30T09-00-{SESSION[:8]}.jsonl"
    file.write_text("".join(json.dumps(x) + "\n" for x in lines))
    child = {**head, "sessionId": OTHER, "startTime": stamps[2], "kind": "subagent"}
    (chats / SESSION / f"{OTHER}.jsonl").write_text(json.dumps(child) + "\n")
    assert main(["record", SESSION, "--agent", "gemini"]) == 0
    text, sequence = recorded(f"gemini-{SESSION[:8]}.jsonl")
    assert "acme" not in text.lower()
    names = [s.operand.rpartition("/")[2][:8] for s in sequence.of("append")]
    assert names == ["session-"] * 3 + [OTHER[:8], "session-"]
    assert "interrupted" in [x["reason"] for x in play(sequence) if x.get("session") == SESSION]
