"""`island replay`: play sequence files in virtual time, through the code that ships."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from island.replay import Line, check, play
from island.sequence import Score, Sequence1, SequenceError, median_lateness, parse, score


def add_parser(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser("replay", help="play sequence files and print what island says", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a sequence file (see the README)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print the timeline as JSON Lines")
    how.add_argument("--score", action="store_true", help="print how well it agrees with the truth lines")
    parser.add_argument("--hooks", action="store_true",
                        help="take recorded calls of hooks for calls of island's own hook command")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Play the files; 1 if an `expect` line is not met, 2 if a file cannot be read."""
    try:
        sequences = [_read(name) for name in arguments.files]
    except SequenceError as error:
        print(f"island: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"island: {error.filename} cannot be read: {error.strerror}", file=sys.stderr)
        return 2
    try:
        return _score(sequences, arguments) if arguments.score else _play(sequences, arguments)
    except OSError as error:  # a path that is a file in one step and a folder in another
        if error.filename is None:
            raise  # of the output: no step is at fault
        print(f"island: a step cannot be played: {error}", file=sys.stderr)
        return 2


def _play(sequences: list[Sequence1], how: argparse.Namespace) -> int:
    wrong: list[str] = []
    for sequence in sequences:
        lines = play(sequence, panes=how.panes, hooks=how.hooks)
        print("\n".join(map(json.dumps, lines) if how.json else _told(sequence, lines)))
        wrong += check(sequence, panes=how.panes, hooks=how.hooks)
    for difference in wrong:
        print(f"island: {difference}", file=sys.stderr)
    return 1 if wrong else 0


def _read(name: str) -> Sequence1:
    text = Path(name).read_bytes()
    try:
        return parse(text.decode(), name)
    except UnicodeDecodeError as error:
        line = text[: error.start].count(b"\n") + 1
        raise SequenceError(name, line, "not UTF-8") from None


def _told(sequence: Sequence1, lines: list[Line]) -> Iterator[str]:
    yield f"{sequence.name}: {sequence.head.get('law') or sequence.head.get('title', '')}"
    truth = [{"at": step.at, "truth": step.operand} for step in sequence.of("truth")]
    for line in sorted([*lines, *truth], key=lambda line: line["at"]):
        yield f"{line['at']:9.3f}  {_sentence(line)}"
    yield ""


def _sentence(line: Line) -> str:
    match line:
        case {"session": str(session), "state": state, "reason": reason, "sure": sure, "why": why}:
            kind = f" [{line['kind']}]" if "kind" in line else ""
            return f"{session[:8]}{kind}  {state} ({reason}), {sure}, from: {why}"
        case {"icon": icon}:
            return f"icon      {icon}"
        case {"notice": {"session": session, "title": title}}:
            return f"notice    {session[:8]}: {title}"
        case {"withdraw": {"session": session}}:
            return f"withdrawn {session[:8]}"
        case {"truth": {"state": state, **rest}}:
            return f"truth     {rest.get('session') or ''} {state} ({rest.get('reason', '')})"
        case _:
            return str(line)


def _score(sequences: list[Sequence1], how: argparse.Namespace) -> int:
    judged = good = 0.0
    false = missed = 0
    true = [sequence for sequence in sequences if sequence.of("truth")]
    for sequence in sequences:
        if sequence not in true:
            print(f"{sequence.name}: no truth lines")
            continue
        timeline = play(sequence, panes=how.panes, hooks=how.hooks)
        figures = score(sequence, timeline)
        judged, good = judged + figures.judged, good + figures.good
        false, missed = false + figures.false, missed + figures.missed
        print(_figures(sequence.name, figures, median_lateness(sequence, timeline)))
    if not true:
        print("island: nothing to score", file=sys.stderr)
        return 2
    total = 100 * good / judged if judged else 100.0
    print(f"total: {len(true)} files, {total:.3f} % of {judged:.1f} s, false {false}, missed {missed}")
    return 0


def _figures(name: str, figures: Score, late: float) -> str:
    return (f"{'/'.join(Path(name).parts[-2:]):56} {100 * figures.agree:7.2f} % of {figures.judged:6.1f} s  "
            f"late {late:5.2f} s  false {figures.false}  missed {figures.missed}")
