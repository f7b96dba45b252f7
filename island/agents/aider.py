"""Aider: one Markdown file per project, in which all its chats stand one after another.

A line means what it means by itself. What the user and the program say ends in two blanks: `#### ` is a prompt, `> ` is
what the program prints. Any other line is of the model's answer, which is written only when it is complete. A dialog's
question is written with its answer; while it waits there is only what it is about, if anything. No line carries an id,
and few a time: the project's folder stands for the one, the file's time for the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from island.agents.base import Agent, Dialog, Shape, Source
from island.agents.reading import asks
from island.model import AFRESH, Doubt, Event, Kind, Process, Reason, Record, Role, Session

# -- the chats, .aider.chat.history.md -------------------------------------------------------------------------------

Said = tuple[Kind, str, str]  # kind, key, word

ASK, RUN = "ask", "run"  # keys: there is one dialog at a time, and one command
ASKED: Said = (Kind.OPENED, ASK, "permission")
CLOSED: tuple[Said, ...] = ((Kind.CLOSED, ASK, "permission"), (Kind.CLOSED, RUN, "shell-tool"))
GOES_ON: Said = (Kind.PROGRESS, "", Reason.MODEL)
DONE: Said = (Kind.ANSWER, "", Reason.FINISHED)
FAILED: Said = (Kind.ANSWER, "", Reason.ERROR)
LEFT_OFF: Said = (Kind.END, "", Reason.INTERRUPTED)

SENTENCE = r".*[^\s/.][.!?:,]$|.*\.\.\.$"
STARTED = re.compile(r"# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
#: What is typed beside prompts: it calls no model, or writes a prompt of its own. By it the user was there.
COMMAND = re.compile(r"/[a-z][a-z-]*( |$)|![^\s=]")
#: A dialog and its answer; older versions did not write the choices.
ANSWERED = re.compile(r"(.+\?)(?: \(Y\)es/\(N\)o.*\[\w+\]:)? ([a-z]+)")

#: What a yes and a no to a dialog lead to, the first that fits. After any other it is as it was before.
DIALOGS: Sequence[tuple[re.Pattern[str], tuple[Said, ...], tuple[Said, ...]]] = tuple(
    (re.compile(asked), yes, no) for asked, yes, no in (
        (r"Create new file|Allow (creation of|edits to)|Run shell commands?|Add command output", (DONE,), (DONE,)),
        (r"Add (the output|[\d.]+k tokens of command output) to the chat", (), ()),
        (r"Add .+ to the chat", (GOES_ON,), ()),
        (r"Attempt to fix (lint|test) errors|Fix lint errors in |Edit the files", (GOES_ON,), ()),
        (r"Try to proceed anyway", (GOES_ON,), (LEFT_OFF,)),
    )
)

#: What the program prints, the first that fits. What fits none is what a dialog is about: a file, a page, a command.
PRINTED: Sequence[tuple[re.Pattern[str], tuple[Said, ...]]] = tuple((re.compile(line), said) for line, said in (
    (r"\^C|\^KeyboardInterrupt", (*CLOSED, LEFT_OFF)),
    (r"Retrying in [\d.]+ seconds", (*CLOSED, (Kind.PROGRESS, "", Reason.RETRYING))),
    (r"litellm\.(exceptions\.)?(Authentication|PermissionDenied)Error", ((Kind.ANSWER, "", Reason.LOGIN),)),
    (r"litellm\.(exceptions\.)?(RateLimit|RouterRateLimit|BudgetExceeded)Error", ((Kind.ANSWER, "", Reason.LIMIT),)),
    (r"litellm\.\w|BadRequestError: ", (FAILED,)),
    (r"Model \S+ has hit a token limit|Empty response received from LLM|Only \d+ reflections allowed", (FAILED,)),
    (r"Running \S", (CLOSED[0], (Kind.PROGRESS, "", Reason.TOOL), (Kind.OPENED, RUN, "shell-tool"))),
    (r"The LLM did not conform to the edit format|Exception while updating files|No filename provided ", (GOES_ON,)),
    (r"Un(paired|matched) \.\.\. in |Error (parsing|applying) |Unexpected error |Unknown function_call ", (GOES_ON,)),
    (r"https://aider\.chat/docs/troubleshooting/edit-errors", ()),
    (r"Your estimated chat context of |# Fix any errors below", (ASKED,)),
    (r"(Tokens|Cost|Warning): |Commit [0-9a-f]{7,} |(Applied edit|Skipping edits|Did not apply edit) to ", ()),
    (r"- (Use /|Break your code)|(Added|Creating|Dropping|Moved|Unable to|Restored|Failed to) ", ()),
    (r"Aider v|((Main |Weak |Editor )?[Mm]odels?|Git repo|Git working dir|Repo-map): |Use /help ", ()),
    (r"[\[\]{}()<>\"'|*#^]", ()),  # of an error's details
    (SENTENCE, ()),
    (r"", (ASKED,)),
))
#: The same, where it ends what the program prints on several lines: why an edit is to be done again, or commands.
PRINTED_LAST: Sequence[tuple[re.Pattern[str], tuple[Said, ...]]] = tuple((re.compile(line), said) for line, said in (
    (r"The SEARCH section must exactly match |Just reply with fixed versions |Note: some hunks did ", (GOES_ON,)),
    (r"\^\^\^ |.*```$", (GOES_ON,)),
    (SENTENCE, ()),
    (r"", (ASKED,)),
))
FACTS = {"version": re.compile(r"Aider v(\S+)"), "model": re.compile(r"(?:Main model|Models?): (\S+) with ")}


def read_chat(record: Record) -> Iterator[Event]:
    """Read one line of a project's chats."""
    line, folder = record.data.decode(errors="replace"), str(PurePath(record.path).parent)
    source, said = _line(line.rstrip(), ended=line.endswith("  "))
    for kind, key, word in said:
        turn = f"{folder}@{record.offset}" if kind is Kind.PROMPT else ""
        doubt = Doubt.SOON if kind is Kind.ANSWER else ""
        yield Event(kind, folder, record.mtime, key, word, turn, doubt, order=record.offset, source=source)
    if source in ("start of a chat", "prompt"):
        yield Event(Kind.FACT, folder, record.mtime, "cwd", folder, order=record.offset, source=source)


def _line(text: str, *, ended: bool) -> tuple[str, Iterator[Said]]:
    """Return what a line is, and what it says; `ended` as the program ends its own lines."""
    if STARTED.fullmatch(text):
        return "start of a chat", iter((*CLOSED, (Kind.END, AFRESH, "")))
    if ended and text.startswith("####"):
        return "prompt", _prompt(text[5:])
    if ended and text.startswith(">"):
        return "printed line", _printed(text[1:].lstrip())
    if ended:
        return "printed line", iter(_first_that_fits(PRINTED_LAST, text) if text else ())
    if not text:
        return "", iter(())
    return "answer", iter([(Kind.ANSWER, "", Reason.QUESTION if asks(text) else Reason.FINISHED)])


def _prompt(text: str) -> Iterator[Said]:
    """Read a line of a prompt. A dialog that is answered for a whole group looks like one."""
    if COMMAND.match(text):
        yield LEFT_OFF
    elif text not in ("", "<blank>") and "(Y)es/(N)o" not in text:
        yield (Kind.PROMPT, "", "user")


def _printed(text: str) -> Iterator[Said]:
    answered = ANSWERED.fullmatch(text)
    if answered:
        yield from (*CLOSED, *_led_to(*answered.groups()))
    elif text:
        yield from _first_that_fits(PRINTED, text)
        yield from ((Kind.FACT, name, m[1]) for name, fact in FACTS.items() if (m := fact.match(text)))


def _first_that_fits(table: Sequence[tuple[re.Pattern[str], tuple[Said, ...]]], text: str) -> tuple[Said, ...]:
    return next(said for line, said in table if line.match(text))


def _led_to(asked: str, answer: str) -> tuple[Said, ...]:
    agreed = answer[0] in "ya"  # yes, or all of them
    return next((yes if agreed else no for dialog, yes, no in DIALOGS if dialog.match(asked)), ())


# -- processes ---------------------------------------------------------------------------------------------------------

#: Arguments of a run that ends by itself, with or without a prompt.
HEADLESS = frozenset({"--message", "--msg", "-m", "--message-file", "-f", "--commit", "--lint", "--test", "--exit",
                      "--apply", "--show-repo-map", "--show-prompts"})


def arguments(p: Process) -> tuple[str, ...] | None:
    """Return what Aider was started with; None if a process is not Aider. They may hold keys: they are told nowhere."""
    if p.called() == "aider":
        return p.cmdline[1:]
    if "python" not in p.called().lower():
        return None
    if p.called(1) == "aider":
        return p.cmdline[2:]
    return p.cmdline[3:] if p.cmdline[1:3] == ("-m", "aider") else None


def owns(p: Process, session: Session) -> int:
    """Tell whether a process may have a project's chat: it works in its folder, or below that."""
    if arguments(p) is None:
        return 0
    here = PurePath(p.cwd or session.id)
    return 2 if str(here) == session.id else int(here.is_relative_to(session.id))


def role(p: Process) -> Role | None:
    """Tell a headless run from a person's: both write into one file."""
    started = arguments(p)
    if started is None:
        return None
    headless = any(a.partition("=")[0] in HEADLESS for a in started)
    return Role.MACHINE if headless else Role.PERSON


AIDER = Agent(
    name="aider",
    label="Aider",
    home=lambda _, user_home: user_home,
    sources=(Source(".aider.chat.history.md", Shape.LINES, read_chat, project=True),),
    main=lambda p: arguments(p) is not None,
    owns=owns,
    tool=lambda p: p.name != "git" and arguments(p) is None,
    role=role,
    single=True,
    dialogs=(Dialog("permission", r"\? \(Y\)es/\(N\)o.*\]:\Z", "Edit the files? (Y)es/(N)o [Yes]: "),),
    evidence=("chat history in the project's folder", "processes"),
    blind=(
        "a dialog that prints nothing but its question is seen only with `--panes`",
        "a prompt in a comment of the code is noticed only when its answer comes",
        "two in one folder count as one session, and the newest line of either decides",
        "a history that lies neither at the repository's root nor in the working folder is not found",
    ),
)
