"""Where the parts of a JSON text stand, so that it can be changed in place: comments, order and blanks stay. Pure.

Takes JSON with comments and commas at the end, as agents do in their settings.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
REMARK = re.compile(r"//[^\n]*\n|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
WORD = re.compile(r"[-+.\w]+")

#: Nobody writes settings deeper than this.
DEPTH = 100


class TextError(ValueError):
    """A text that is not what it should be. line: where, from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")


@dataclass(slots=True)
class Node:
    """One value: its text from `start` to `end`. members: of an object, in order; items: of a list."""

    start: int
    end: int = 0
    value: object = None
    members: dict[str, Node] = field(default_factory=dict)
    items: list[Node] = field(default_factory=list)

    @property
    def parts(self) -> list[Node]:
        """Return what it holds, in order."""
        return [*self.members.values(), *self.items]


def outline(text: str) -> Node:
    """Return the parts of a JSON text. Raise TextError if it is none."""
    reading = _Reading(text)
    node = reading.value(0)
    reading.blank()
    if reading.at < len(text):
        raise reading.error("something follows the end")
    return node


class _Reading:
    """One pass over a text, from the front."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def error(self, reason: str) -> TextError:
        return TextError(self.text.count("\n", 0, self.at) + 1, reason)

    def blank(self) -> None:
        self.at = _blank(self.text, self.at)

    def take(self, sign: str) -> bool:
        self.blank()
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def value(self, depth: int) -> Node:
        self.blank()
        node = Node(self.at)
        if depth > DEPTH:
            raise self.error("too deep")
        if self.take("{"):
            self.members(node, depth)
        elif self.take("["):
            self.items(node, depth)
        else:
            node.value = self.scalar()
        node.end = self.at
        return node

    def scalar(self) -> object:
        found = STRING.match(self.text, self.at) or WORD.match(self.text, self.at)
        try:
            value = json.loads(found.group()) if found else None
        except json.JSONDecodeError:
            found = None
        if found is None:
            raise self.error("a value is expected" if self.at < len(self.text) else "the end is missing")
        self.at = found.end()
        return value

    def members(self, node: Node, depth: int) -> None:
        node.value = held = {}
        while not self.take("}"):
            self.blank()
            key = self.scalar()
            if not isinstance(key, str) or not self.take(":"):
                raise self.error("a name and a colon are expected")
            if key in node.members:
                raise self.error(f"{key!r} stands there twice")
            node.members[key] = self.value(depth + 1)
            held[key] = node.members[key].value
            self.comma("}")

    def items(self, node: Node, depth: int) -> None:
        node.value = held = []
        while not self.take("]"):
            node.items.append(self.value(depth + 1))
            held.append(node.items[-1].value)
            self.comma("]")

    def comma(self, end: str) -> None:
        if not self.take(",") and not self.text.startswith(end, self.at):
            raise self.error(f"a comma or {end!r} is expected")


# -- changes -------------------------------------------------------------------------------------------------


def insert(text: str, within: Node, value: object, key: str = "") -> str:
    """Return the text with one more part at the end of an object (by its key) or of a list."""
    name = f"{json.dumps(key)}: " if key else ""
    last = within.parts[-1].end if within.parts else 0
    if last and "\n" not in text[within.start:within.end]:
        return f"{text[:last]}, {name}{json.dumps(value)}{text[last:]}"
    step, margin = _step(text), _margin(text, within.start)
    shown = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", f"\n{margin}{step}")
    new = f"\n{margin}{step}{name}{shown}"
    if last:
        return f"{text[:last]},{new}{text[last:]}"
    rest = text[within.start + 1:]
    return f"{text[:within.start + 1]}{new}" + (rest if "\n" in text[within.start:within.end] else f"\n{margin}{rest}")


def remove(text: str, within: Node, part: Node) -> str:
    """Return the text without one part, and without the comma that it needed."""
    parts = within.parts
    place = parts.index(part)
    before = parts[place - 1].end if place else within.start + 1
    comma = _blank(text, before)
    begin = _kept(text, before if place == 0 else comma + 1)
    after = _blank(text, part.end)
    if place + 1 < len(parts):
        return text[:begin] + text[after + 1:]
    if place:
        return text[:comma] + text[comma + 1:begin] + text[part.end:]
    end = after + 1 if text[after] == "," else part.end
    inner = text[within.start + 1:begin] + text[end:within.end - 1]
    return text[:within.start + 1] + (inner if inner.strip() else "") + text[within.end - 1:]


def _kept(text: str, at: int) -> int:
    """Return where the blanks begin that stand before a part: remarks are kept, with the end of their line."""
    end = at
    for found in REMARK.finditer(text, at, _blank(text, at)):
        end = found.end()
    return end


def _blank(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return found.end() if found else at


def _step(text: str) -> str:
    """Return by how much the text indents."""
    found = re.search(r"\n([ \t]+)[^\s/]", text)
    return found.group(1) if found else "  "


def _margin(text: str, at: int) -> str:
    """Return the blanks that the line at this place begins with."""
    line = text[text.rfind("\n", 0, at) + 1:at]
    return line[: len(line) - len(line.lstrip())]
