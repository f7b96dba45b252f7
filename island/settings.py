"""The settings: what they are, how they are written, what is wrong with them. Pure.

One table says all: a setting's name in the file, where its value goes, how it is read, what it means.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from math import isfinite
from typing import Any

from island.agents import AGENTS
from island.manner import TONES, Manner, Sound, Urgency
from island.quiet import hours

#: A setting's place: its tables and its name in the file, its attributes and keys in `Settings`.
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user has set.

    agents: those that are watched; panes: the text of terminals is read; titles: in the menu; exports: titles, in what
    other programs read (`island status --json`, bars); manner: how notices are told.
    """

    agents: tuple[str, ...] = tuple(AGENTS)
    panes: bool = False
    titles: bool = True
    exports: bool = False
    manner: Manner = field(default_factory=Manner)


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a settings file: in which line (0 if that is not known), with which setting, and why."""

    line: int
    setting: str
    why: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (f"line {self.line}" if self.line else "", self.setting, self.why)))


# -- how a value is read; each raises ValueError with what it must be -----------------------------------------

Read = Callable[[Any], Any]


def _switch(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("must be true or false")


def _seconds(value: Any, most: float) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and 0 <= value <= most:
        return float(value)
    raise ValueError(f"must be a number of seconds from 0 to {most:g}")


def _names(value: Any) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    raise ValueError('must be a list of names, such as ["one", "two"]')


def _agents(value: Any) -> tuple[str, ...]:
    names = _names(value)
    if unknown := [name for name in names if name not in AGENTS]:
        raise ValueError(f"{', '.join(map(json.dumps, unknown))}: no such agent; there are {', '.join(AGENTS)}")
    return names


def _watched(value: Any) -> tuple[str, ...]:
    if value == []:
        raise ValueError(f"must name one at least, else nothing is watched; there are {', '.join(AGENTS)}")
    return _agents(value)


def _hours(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError('must be two times in quotes, such as "22:00-07:00"')  # noqa: TRY004 - a file's fault
    return hours(value) if value else None


def _word(value: Any, words: type[Urgency | Sound]) -> Urgency | Sound:
    try:
        return words(value)
    except ValueError:
        raise ValueError(f"must be one of {', '.join(map(json.dumps, words))}") from None


# -- the table ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: where its value goes, how it is read, what it means."""

    to: Path
    read: Read
    means: str = ""


def _by_reason(name: str, read: Read, means: str) -> Iterator[tuple[Path, Setting]]:
    """Yield a table with a setting for each reason to wait."""
    for number, reason in enumerate(TONES):
        yield ("notices", name, reason.value), Setting(("manner", name, reason.value), read, "" if number else means)


SETTINGS: Mapping[Path, Setting] = {
    ("agents",): Setting(("agents",), _watched, "The agents that are watched. Nothing of the others is read."),
    ("panes",): Setting(("panes",), _switch, "Read the visible text of tmux panes. Some agents show a question nowhere"
                        " else."),
    ("titles", "menu"): Setting(("titles",), _switch, "Show the titles of sessions in the menu. Agents make them from"
                                " your prompts."),
    ("titles", "notices"): Setting(("manner", "titles"), _switch, "Show the titles in notices, too."),
    ("titles", "exports"): Setting(("exports",), _switch, "Tell the titles to bars and other programs, too."),
    ("notices", "on"): Setting(("manner", "on"), _switch, "Show notices."),
    ("notices", "sound"): Setting(("manner", "sound"), _switch, "Let notices make a sound, where the desktop has one."),
    ("notices", "min_turn"): Setting(("manner", "min_turn"), partial(_seconds, most=86400.0), "The end of a turn that"
                                     " took fewer seconds is not told. What asks you always is."),
    ("notices", "quiet_hours"): Setting(("manner", "quiet_hours"), _hours, 'No notice comes in these hours, such as'
                                        ' "22:00-07:00". What still waits at their end is told then.'),
    ("notices", "muted_projects"): Setting(("manner", "muted_projects"), _names, "Projects of which no notice tells,"
                                           " by the names of their folders."),
    ("notices", "muted_agents"): Setting(("manner", "muted_agents"), _agents, "Agents of which no notice tells, by the"
                                         " names that `agents` has."),
    **dict(_by_reason("dwell", partial(_seconds, most=3600.0), "How many seconds a wait must last before a notice tells"
                      " of it, by its reason.")),
    **dict(_by_reason("urgency", partial(_word, words=Urgency), f"How urgent the desktop takes a notice to be, by its"
                      f" reason: {', '.join(Urgency)}. Off means no notice.")),
    **dict(_by_reason("sounds", partial(_word, words=Sound), f"What a notice sounds like, by its reason:"
                      f" {', '.join(Sound)}.")),
}

TABLES = frozenset(path[:end] for path in SETTINGS for end in range(1, len(path)))


# -- reading ------------------------------------------------------------------------------------------------


def parse(text: str) -> tuple[Settings, tuple[Problem, ...]]:
    """Read a settings file. A setting that is not understood is named, and has its default."""
    settings, problems, lines = Settings(), list[Problem](), places(text)
    try:
        values = dict(_flat(tomllib.loads(text)))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return settings, (_not_toml(str(error), text),)
    for path, value in values.items():
        try:
            setting = SETTINGS.get(path) or _unknown(path)
            settings = _put(settings, setting.to, setting.read(value))
        except ValueError as error:
            problems.append(Problem(_line(lines, path), ".".join(path), str(error)))
    return settings, tuple(sorted(problems, key=lambda p: p.line))


def places(text: str) -> dict[Path, int]:
    """Return the line in which each setting of a file begins.

    The parser tells no lines. But a statement is the shortest run of lines that parses by itself: so each is parsed
    alone, below the last heading.
    """
    found: dict[Path, int] = {}
    table: Path = ()
    begun, statement = 1, ""
    for number, line in enumerate(text.split("\n"), 1):
        statement += line + "\n"
        try:
            paths = [path for path, _ in _flat(tomllib.loads(statement), table)]
        except (tomllib.TOMLDecodeError, RecursionError):
            continue
        if statement.lstrip(" \t").startswith("["):
            table = _heading(tomllib.loads(statement))
            paths = [table]
        for path in paths:
            found.setdefault(path, begun)
        begun, statement = number + 1, ""
    return found


def _flat(table: Mapping[str, Any], above: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield each value of a table, and of those within; an empty table that is none of ours is a value, too."""
    for name, value in table.items():
        path = (*above, name)
        if isinstance(value, dict) and path not in SETTINGS and (value or path in TABLES):
            yield from _flat(value, path)
        else:
            yield path, value


def _heading(document: Any) -> Path:
    """Return which table a heading opens."""
    if isinstance(document, list):
        document = document[0]
    return next(((name, *_heading(below)) for name, below in document.items()), ())


def _line(lines: Mapping[Path, int], path: Path) -> int:
    """Return the line of a setting, or of the nearest table that it stands in."""
    return next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), 0)


def _not_toml(why: str, text: str) -> Problem:
    why, at, place = why.partition(" (at ")
    line = re.search(r"line (\d+)", place)
    return Problem(int(line[1]) if line else text.rstrip().count("\n") + 1 if at else 0, "", f"not TOML: {why}")


def _unknown(path: Path) -> Setting:
    if path in TABLES:
        raise ValueError("must be a table")
    near = get_close_matches(path[-1], {known[-1] for known in SETTINGS}, n=1, cutoff=0.8)
    whole = get_close_matches(".".join(path), [".".join(known) for known in SETTINGS if known[-1] in near], 1, cutoff=0)
    raise ValueError("no such setting" + (f"; is it {whole[0]}?" if whole else ""))


def _put(whole: Any, path: Path, value: Any) -> Any:
    """Return `whole` with another value at a path of attributes and keys."""
    name, *below = path
    if isinstance(whole, Mapping):
        return {**whole, name: _put(whole[name], tuple(below), value) if below else value}
    return replace(whole, **{name: _put(getattr(whole, name), tuple(below), value) if below else value})


# -- writing ------------------------------------------------------------------------------------------------


def show(settings: Settings, told: Callable[[Path], str] = lambda _: "") -> str:
    """Return settings as the text of a settings file; told: what to remark on each."""
    lines, table = list[str](), Path()
    for path, setting in SETTINGS.items():
        if path[:-1] != table:
            table = path[:-1]
            lines += ["", f"[{'.'.join(table)}]"]
        if setting.means:
            lines.append(f"# {setting.means}")
        remark = told(path)
        lines.append(f"{path[-1]} = {_toml(_get(settings, setting.to))}" + (f"  # {remark}" if remark else ""))
    return "\n".join(lines).lstrip("\n") + "\n"


def _get(whole: Any, path: Path) -> Any:
    for name in path:
        whole = whole[name] if isinstance(whole, Mapping) else getattr(whole, name)
    return whole


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(str(value or ""), ensure_ascii=False).replace("\x7f", "\\u007f")
