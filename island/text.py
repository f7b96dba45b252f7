"""Text for people: foreign text made safe to show, spans of time made short. Pure; must not decide what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from itertools import islice
from unicodedata import category

#: Joiners shape Persian and Indic words and emoji; every other format character is invisible, turns the
#: direction of what follows, or both.
_JOINERS = "\u200c\u200d"

#: Dropped: controls, format characters (all bidi marks among them) and lone surrogates, which D-Bus refuses.
_DROPPED = frozenset({"Cc", "Cf", "Cs"})

#: Texts up to this length are looked at whole: most have nothing in them to drop, which is seen at once.
PLAIN = 200


def safe(text: str, width: int = 60) -> str:
    """Return at most `width` characters of `text`, on one line, with nothing in it that acts on a display."""
    plain = len(text) <= PLAIN and text.isascii() and text.isprintable() and "  " not in text
    kept = text.strip(" ") if plain else "".join(islice(_kept(text), width + 1))
    if len(kept) > width:
        kept = kept[: width - 1].rstrip(" " + _JOINERS) + "…"
    return kept.rstrip(" ")


def markup(text: str) -> str:
    """Return `text` for a place that reads markup: a tooltip, or a notification's body on many desktops."""
    return escape(text, quote=False)


def age(seconds: float) -> str:
    """Return a span of time in its largest unit."""
    seconds = max(0.0, seconds)
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def _kept(text: str) -> Iterator[str]:
    """Yield the harmless characters; any run of white space, line ends included, becomes one space."""
    gap = True  # drops leading space
    for char in text:
        if char.isspace():
            if not gap:
                yield " "
            gap = True
        elif char in _JOINERS or category(char) not in _DROPPED:
            yield char
            gap = False
