"""A snapshot in one line, in the words of status bars and prompts. Pure: must not look at a clock."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping

from island.cli.export import as_json
from island.model import Role, Row, Snapshot, State
from island.text import age, markup, safe
from island.tray.face import GLYPHS, WORDS, Face, face

#: The icon's own colours, told apart by the colour-blind too, and by their signs without any.
COLOURS: Mapping[Face, str] = {
    Face.YOUR_TURN: "#e69f00", Face.ERROR: "#cc2430", Face.DONE: "#009e73", Face.STALLED: "#cc79a7",
    Face.WORKING: "#56b4e9", Face.CALM: "#e69f00", Face.IDLE: "#8e9296",
}

#: What they stand out from.
GROUND = "#1c1f26"

#: Most pressing first: what is counted, and in which words.
COUNTED: Mapping[Face, str] = {
    Face.YOUR_TURN: "ask you", Face.ERROR: "stopped", Face.DONE: "finished", Face.STALLED: "stalled",
    Face.WORKING: "working",
}

#: A bar's tooltip is no list: the most pressing sessions are enough.
MOST_LINES = 12


def faces(snapshot: Snapshot) -> Counter[Face]:
    """Count the user's own sessions by their faces."""
    return Counter(face(row) for row in snapshot.rows if row.role is Role.PERSON)


def state_word(snapshot: Snapshot) -> str:
    """Return the icon's state in one word; what was seen is no wait any more."""
    return "seen" if snapshot.calm and snapshot.icon is State.YOUR_TURN else snapshot.icon.value


def _signs(snapshot: Snapshot, dress: Callable[[str, str], str] = lambda sign, _: sign) -> str:
    """Return signs with their counts, dressed in their colours; a ring where nothing goes on."""
    counts = faces(snapshot)
    shown = [(one, f"{GLYPHS[one]}{counts[one]}") for one in COUNTED if counts[one]]
    rest = Face.CALM if counts[Face.CALM] else Face.IDLE
    return " ".join(dress(sign, COLOURS[one]) for one, sign in shown or [(rest, GLYPHS[rest])])


def _first(snapshot: Snapshot) -> str:
    """Return the colour of the most pressing."""
    counts = faces(snapshot)
    return COLOURS[next((one for one in COUNTED if counts[one]), Face.IDLE)]


def plain(snapshot: Snapshot) -> str:
    """Return the counts in words."""
    counts = faces(snapshot)
    return ", ".join(f"{counts[one]} {word}" for one, word in COUNTED.items() if counts[one]) or "nothing needs you"


def waybar(snapshot: Snapshot) -> str:
    """Return what a waybar module with "return-type": "json" reads; waybar reads text as markup."""
    rows = [row for row in snapshot.rows if row.role is Role.PERSON and face(row) in (*COUNTED, Face.CALM)]
    counts = faces(snapshot)
    waiting = counts[Face.YOUR_TURN] + counts[Face.ERROR] + counts[Face.DONE]
    lines = [_line(row, snapshot.at) for row in rows[:MOST_LINES]]
    lines += [f"and {len(rows) - MOST_LINES} more"] if len(rows) > MOST_LINES else []
    lines += [f"! {safe(trouble, 120)}" for trouble in snapshot.trouble]
    word = state_word(snapshot)
    return json.dumps({
        "text": markup(_signs(snapshot)), "alt": word, "tooltip": markup("\n".join(lines or ["nothing needs you"])),
        "class": [word, rows[0].verdict.reason.value] if rows else [word],
        "percentage": round(100 * waiting / len(rows)) if rows else 0,
    }, ensure_ascii=False)


def _line(row: Row, now: float) -> str:
    name = safe(": ".join(filter(None, (row.project, row.title))), 40)
    waited = age(now - row.verdict.since) if row.verdict.since > 0 else ""
    return f"{GLYPHS[face(row)]} " + " · ".join(filter(None, (
        WORDS[row.verdict.reason], name, waited, safe(row.label or row.agent, 20))))


FORMATS: Mapping[str, Callable[[Snapshot], str]] = {
    "plain": plain,
    "json": lambda snapshot: json.dumps(as_json(snapshot)),
    "waybar": waybar,
    "polybar": lambda snapshot: _signs(snapshot, lambda sign, colour: f"%{{F{colour}}}{sign}%{{F-}}"),
    # Three lines: the text, the same where there is little room, and its colour.
    "i3blocks": lambda snapshot: f"{_signs(snapshot)}\n{_signs(snapshot).split()[0]}\n{_first(snapshot)}",
    # Its own status line is black on green, on which these colours are not seen: so with a ground of their own.
    "tmux": lambda snapshot: (
        f"#[bg={GROUND}] {_signs(snapshot, lambda sign, colour: f'#[fg={colour}]{sign}')} #[default]"),
    # A prompt has room for what matters alone; what is empty, starship leaves out.
    "starship": lambda snapshot: _signs(snapshot) if any(faces(snapshot)[one] for one in COUNTED) else "",
}
