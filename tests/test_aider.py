"""What the lines of Aider's chats and its processes mean, beyond what the sequences play."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from island.agents.aider import AIDER, arguments, owns, read_chat, role
from island.agents.base import shown
from island.claims import claim
from island.cli.explain import explanation
from island.cli.export import as_json
from island.model import AFRESH, Event, Kind, Process, Reason, Record, Role, Session
from island.observer import Observer
from island.rules import fold
from island.scene import RecordedTable
from island.sources.processes import Change

FOLDER = "/home/dev/app"
NOW = 1_796_029_200.0


def read(line, offset=10):
    return list(read_chat(Record(f"{FOLDER}/.aider.chat.history.md", line.encode(), offset, mtime=NOW)))


def said(line):
    return [(e.kind.value, e.key, e.word) for e in read(line) if e.kind is not Kind.FACT]


def facts(line):
    return {e.key: e.word for e in read(line) if e.kind is Kind.FACT}


# -- whose lines they are ----------------------------------------------------------------------------------


def test_a_prompt_begins_a_turn_of_the_projects_chat():
    prompt, cwd = read("#### add a test  ", offset=99)
    assert (prompt.kind, prompt.session, prompt.at, prompt.turn) == (Kind.PROMPT, FOLDER, NOW, f"{FOLDER}@99")
    assert (cwd.key, cwd.word) == ("cwd", FOLDER)


@pytest.mark.parametrize("line", ["#### A heading", "> a quotation", "# aider chat started at noon", "- a list", "##"])
def test_lines_of_an_answer_end_as_the_program_never_ends_its_own(line):
    assert said(line) == [("answer", "", "finished")]


def test_a_hard_break_in_an_answer_is_not_its_last_line():
    answer = ["Two lines:", "the first  ", "and the second."]
    events = [e for number, line in enumerate(answer) for e in read(line, offset=number)]
    session = Session("aider", FOLDER)
    for e in [*read("#### do it  ", -1), *events]:
        session = fold(session, e)
    assert claim(session).reason is Reason.FINISHED


@pytest.mark.parametrize("line", ["", "  ", "####   ", "#### <blank>  ", ">  "])
def test_lines_without_words_say_nothing(line):
    assert said(line) == []


def test_a_chat_that_starts_leaves_what_was_open():
    assert said("# aider chat started at 2026-11-30 09:00:01") == [
        ("closed", "ask", "permission"), ("closed", "run", "shell-tool"), ("end", AFRESH, "")]


@pytest.mark.parametrize("command", ["/add app.py", "/ask why?", "/exit", "/read-only x", "!ls", "!git status"])
def test_a_command_is_not_a_prompt(command):
    assert said(f"#### {command}  ") == [("end", "", "interrupted")]


@pytest.mark.parametrize("text", ["/usr/bin/app fails", "//comment", "!= is wrong", "! is not allowed", "/ is full"])
def test_what_looks_like_a_command_may_be_a_prompt(text):
    assert [kind for kind, _, _ in said(f"#### {text}  ")] == ["prompt"]


# -- what the program prints -------------------------------------------------------------------------------


@pytest.mark.parametrize("subject", [
    "README.md", "src/two words.py", "https://example.org/page", "sleep 8; echo done", "git add .", "cd ..", "ls -l ./",
    "pip install -e .[test]", "C:\\app\\x.py", ".env", "Makefile",
])
def test_what_a_dialog_is_about_opens_it(subject):
    assert said(f"> {subject}  ") == [("opened", "ask", "permission")]


@pytest.mark.parametrize("line", [
    "Tokens: 1.2k sent, 8 received.", "Tokens: 2k sent, 9 received. Cost: $0.01 message, $0.02 session.",
    "Applied edit to app.py", "Commit 1a2b3c4 feat: add a test", "Skipping edits to note.py",
    "Added app.py to the chat.",
    "You can use /undo to undo and discard each aider commit.", "Repo-map: using 4096 tokens, auto refresh",
    "Initial repo scan can be slow in larger repos, but only happens once.", "Scraping https://example.org...",
    "The API provider's servers are down or overloaded.", '"error": {', "Did not apply edit to app.py (--dry-run)",
    "Git repo: .git with 258 files", "Weak model: gpt-5-mini", "Restored previous conversation history.",
    "- Use /drop to remove unneeded files from the chat", "Creating empty file note.py",
])
def test_what_the_program_only_tells_opens_no_dialog(line):
    assert said(f"> {line}  ") == []


ANSWERED = [("closed", "ask", "permission"), ("closed", "run", "shell-tool")]
CHOICES = " (Y)es/(N)o/(A)ll/(S)kip all/(D)on't ask again [Yes]:"


@pytest.mark.parametrize(("asked", "yes", "no"), [
    ("Add file to the chat?" + CHOICES, ("progress", "", "model"), None),
    ("Add these files to the chat?", ("progress", "", "model"), None),
    ("Add URL to the chat?" + CHOICES, ("progress", "", "model"), None),
    ("Add https://example.org/?a=b to the chat?", ("progress", "", "model"), None),
    ("Add src/app.py to the chat?" + CHOICES, ("progress", "", "model"), None),
    ("Add 0.2k tokens of command output to the chat? (Y)es/(N)o [Yes]:", None, None),
    ("Attempt to fix lint errors? (Y)es/(N)o [Yes]:", ("progress", "", "model"), None),
    ("Edit the files? (Y)es/(N)o [Yes]:", ("progress", "", "model"), None),
    ("Try to proceed anyway? (Y)es/(N)o [Yes]:", ("progress", "", "model"), ("end", "", "interrupted")),
    ("Create new file? (Y)es/(N)o [Yes]:", ("answer", "", "finished"), ("answer", "", "finished")),
    ("Allow creation of new file note.py?", ("answer", "", "finished"), ("answer", "", "finished")),
    ("Add command output to the chat?" + CHOICES, ("answer", "", "finished"), ("answer", "", "finished")),
    ("Open documentation url for more info?" + CHOICES, None, None),
])
def test_the_answer_to_a_dialog_closes_it_and_says_what_comes(asked, yes, no):
    for answer, led_to in (("y", yes), ("n", no)):
        assert said(f"> {asked} {answer}  ") == [*ANSWERED, *([led_to] if led_to else [])]


def test_all_of_a_group_is_a_yes():
    assert ("progress", "", "model") in said(f"> Add file to the chat?{CHOICES} a  ")
    assert said(f"#### Add file to the chat?{CHOICES} all  ") == []


@pytest.mark.parametrize(("line", "reason"), [
    ("litellm.AuthenticationError: AuthenticationError: wrong key", "login"),
    ("litellm.RateLimitError: RateLimitError: slow down", "limit"),
    ("litellm.BadRequestError: OpenAIException - Invalid request", "error"),
    ("BadRequestError: litellm.BadRequestError: Invalid request", "error"),
    ("Model gpt-5 has hit a token limit!", "error"),
    ("Empty response received from LLM. Check your provider account?", "error"),
    ("Only 3 reflections allowed, stopping.", "error"),
])
def test_an_error_says_what_it_is_of(line, reason):
    assert said(f"> {line}  ") == [("answer", "", reason)]


@pytest.mark.parametrize("line", [
    "> The LLM did not conform to the edit format.", "> No filename provided before ``` in file listing",
    "Just reply with fixed versions of the block above that failed to match.", "^^^ Expected `=======`", "```",
])
def test_why_an_edit_is_done_again_has_the_model_at_work(line):
    assert said(f"{line}  ") == [("progress", "", "model")]


def test_version_and_model_are_told():
    assert facts("> Aider v0.86.2  ") == {"version": "0.86.2"}
    assert facts("> Main model: openai/gpt-5 with diff edit format  ") == {"model": "openai/gpt-5"}
    assert facts("> Models: gpt-4o with diff edit format, weak model gpt-4o-mini  ") == {"model": "gpt-4o"}


# -- its screen --------------------------------------------------------------------------------------------


def test_a_dialog_is_on_the_screen_until_it_is_answered():
    assert shown(AIDER, "> do it\n\nEdit the files? (Y)es/(N)o [Yes]: \n\n") == "permission"
    assert shown(AIDER, "README.md\nAdd file to the chat? (Y)es/(N)o/(D)on't ask again [Yes]:") == "permission"
    assert shown(AIDER, "Edit the files? (Y)es/(N)o [Yes]: y\n\n> ") == ""
    assert all(shown(AIDER, dialog.sample) == dialog.word for dialog in AIDER.dialogs)


# -- processes ---------------------------------------------------------------------------------------------


def process(*cmdline, name="aider", cwd=FOLDER):
    return Process(7, 1, name, cmdline, cwd, NOW - 60)


@pytest.mark.parametrize(("cmdline", "started"), [
    (("/usr/bin/python3.12", "/home/dev/.local/bin/aider", "--model", "x"), ("--model", "x")),
    (("C:\\Python312\\python.exe", "C:\\Scripts\\aider.exe"), ()),
    (("python", "-m", "aider", "app.py"), ("app.py",)),
    (("/opt/homebrew/Frameworks/Python.app/Contents/MacOS/Python", "/opt/homebrew/bin/aider"), ()),
    (("aider", "app.py"), ("app.py",)),
    (("python3", "-m", "pip", "install", "aider"), None),
    (("vim", "aider"), None),
    (("python3", "/home/dev/aider.py"), None),
    (("/bin/bash", "-i", "-c", "make"), None),
    ((), None),
])
def test_aider_is_told_by_its_script(cmdline, started):
    assert arguments(process(*cmdline)) == started


@pytest.mark.parametrize(("started", "whose"), [
    ((), Role.PERSON), (("--message", "do it"), Role.MACHINE), (("-m", "do it"), Role.MACHINE),
    (("--message-file=todo.md",), Role.MACHINE), (("--commit",), Role.MACHINE), (("--model", "x"), Role.PERSON),
])
def test_a_run_that_ends_by_itself_is_headless(started, whose):
    assert role(process("python3", "/usr/bin/aider", *started)) is whose


def test_the_module_option_of_python_is_none_of_aiders():
    assert role(process("python3", "-m", "aider")) is Role.PERSON
    assert role(process("bash")) is None


@pytest.mark.parametrize(("cwd", "likely"), [
    (FOLDER, 2), (f"{FOLDER}/src/deep", 1), ("/home/dev", 0), ("/home/dev/app2", 0), ("", 2),
])
def test_a_chat_is_that_of_a_process_in_its_folder_or_below(cwd, likely):
    assert owns(process("aider", cwd=cwd), Session("aider", FOLDER)) == likely


def test_its_git_is_no_tool_of_the_model():
    assert not AIDER.tool(process("git", "cat-file", "--batch", name="git"))
    assert AIDER.tool(process("/bin/bash", "-i", "-c", "make", name="bash"))


# -- privacy -----------------------------------------------------------------------------------------------

KEY = "sk-proj-0123456789"


def test_a_key_on_its_command_line_and_what_was_said_are_shown_nowhere(tmp_path):
    chat = tmp_path / ".aider.chat.history.md"
    chat.write_text(f"# aider chat started at 2026-11-30 09:00:01\n\n> aider --openai-api-key {KEY}  \n"
                    f"\n#### my {KEY}  \n\nIt is {KEY}.\n\n> rm {KEY}  \n")
    p = process("python3", "/usr/bin/aider", "--openai-api-key", KEY, cwd=str(tmp_path))
    now = chat.stat().st_mtime
    observer = Observer({"aider": "/nowhere"}, RecordedTable(frozenset(), running={p.pid: p}), now,
                        agents={"aider": AIDER})
    observer.processes_changed(Change(started=(p,)), now + 2)
    snapshot = observer.snapshot(now + 2)
    (row,) = snapshot.rows
    assert row.verdict.reason is Reason.PERMISSION
    told = "\n".join(explanation(observer, row, now + 2)) + json.dumps(as_json(snapshot)) + repr(observer.sessions.held)
    assert KEY not in told


# -- laws --------------------------------------------------------------------------------------------------


@given(st.binary(max_size=80) | st.text(max_size=80).map(lambda t: f"> {t}  ".encode())
       | st.text(max_size=80).map(lambda t: f"#### {t}  ".encode()))
def test_any_bytes_are_a_line(data):
    events = list(read_chat(Record(f"{FOLDER}/x.md", data, 5, mtime=NOW)))
    assert all(isinstance(e, Event) and e.session == FOLDER and e.at == NOW for e in events)
    assert all(isinstance(e.word, str) and (e.kind is not Kind.FACT or e.key in ("cwd", "version", "model"))
               for e in events)
